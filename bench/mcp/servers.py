# SPDX-License-Identifier: Apache-2.0
"""The servers that the mcp bench measures: how each is started, and how it is asked."""

import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time

SOURCE = pathlib.Path(__file__).resolve().parent
START_S, STOP_S = 60, 20
META = "io.modelcontextprotocol/"
MODERN = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {},
          META + "clientInfo": {"name": "load", "version": "1"}}


@dataclasses.dataclass
class Server:
    """One that runs; the first of its processes is what stands between client and tool."""

    name: str
    address: str
    processes: list
    path: str = "/mcp"
    is_modern: bool = False
    has_sessions: bool = False

    def pids(self):
        return [process.pid for process in self.processes]

    def rss_mb(self):
        """Of all its processes, and of those that they have started."""
        return sum(rss_mb(pid) for parent in self.pids() for pid in (parent, *children_of(parent)))

    def request(self, method, params, name=None):
        """Options of mcp-load."""
        made = ["--target", self.address, "--path", self.path, "--method", method]
        if self.is_modern:
            params = params | {"_meta": MODERN}
            made += ["--header", "MCP-Protocol-Version: 2026-07-28", "--header", "Mcp-Method: " + method]
            made += ["--header", "Mcp-Name: " + name] if name else []
        made += ["--session"] if self.has_sessions else []
        return [*made, "--params", json.dumps(params, separators=(",", ":"))]


# ---- processes -----------------------------------------------------------------------------


def read_if_there(path):
    """Of a thread or process, which may have ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def children_of(pid):
    """All that descend from it."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in read_if_there(task).split():
            found += [int(child), *children_of(int(child))]
    return found


def rss_mb(pid):
    lines = read_if_there(pathlib.Path(f"/proc/{pid}/status")).splitlines()
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stack:
    """Starts processes, and stops them by their pids at the end of the block; those started last first."""

    def __init__(self, folder):
        self.folder, self.started = folder, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, command, **more):
        """Its standard input stays open: some end with it."""
        log = open(self.folder / f"log-{len(self.started)}", "w", encoding="utf-8")
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                   text=True, **more)
        self.started.append(process)
        return process

    def start_saying(self, word, command, **more):
        """The line with which it says that it is ready."""
        process = self.start(command, **more)
        for line in process.stdout:
            if word in line:
                return process, line.strip()
        raise RuntimeError(f"{command[0]} did not start; see {self.folder}")


def wait_for_port(port):
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


# ---- ours ----------------------------------------------------------------------------------


def start_gateway(stack, program):
    port = free_port()
    command = [program("pegboard"), "serve", "--addr", f"127.0.0.1:{port}", "--store", "memory", "--log-file",
               stack.folder / "gateway.log"]
    process, _ = stack.start_saying(str(port), command)
    return process, f"127.0.0.1:{port}"


def direct(stack, program, is_modern):
    process, line = stack.start_saying("http://", [program("mcp-direct-server")])
    return Server("pegboard, direct", line.split("/")[2], [process], is_modern=is_modern)


def attached(stack, program, is_modern):
    """A gateway, and a provider that answers on its loop."""
    process, address = start_gateway(stack, program)
    provider, _ = stack.start_saying("ready", [program("gateway-provider"), address])
    return Server("pegboard serve, attached provider", address, [process, provider], "/mcp/bench", is_modern)


def imported(stack, program):
    """A gateway, and a server on pipes whose tools are provided to it: what supergateway does, too."""
    process, address = start_gateway(stack, program)
    command = [program("pegboard"), "provide", "--mcp", "--toolset", "far", "--registry", address, "--",
               program("mcp-stdio-server")]
    provider = stack.start(command)
    end = time.monotonic() + START_S
    while subprocess.run([program("pegboard"), "call", "far", "echo", "text=x", "--registry", address],
                         capture_output=True).returncode:
        if time.monotonic() > end:
            raise RuntimeError("pegboard provide --mcp does not answer")
        time.sleep(0.1)
    return Server("pegboard serve, stdio server", address, [process, provider], "/mcp/far")


# ---- peers ---------------------------------------------------------------------------------


def install(build):
    """The folder that has node_modules, and None; or None, and why."""
    where = build / "mcp-peers"
    lock = (SOURCE / "package-lock.json").read_text()
    stamp = where / "installed.json"
    if stamp.exists() and stamp.read_text() == lock:
        return where, None
    if not shutil.which("npm") or not shutil.which("node"):
        return None, "node and npm are not here (apt-get install nodejs npm)"
    where.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(SOURCE / name, where / name)
    made = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=where, capture_output=True, text=True)
    if made.returncode:
        return None, "npm ci failed: " + made.stderr.strip()[-300:]
    stamp.write_text(lock)
    return where, None


def version_of(package):
    return json.loads((SOURCE / "package.json").read_text())["dependencies"][package]


def sdk1(stack, where, n_more=0):
    process, line = stack.start_saying("listening", ["node", SOURCE / "sdk1.mjs", str(n_more)], cwd=where)
    return Server("TypeScript SDK " + version_of("@modelcontextprotocol/sdk"), line.split()[-1], [process], has_sessions=True)


def sdk2(stack, where):
    process, line = stack.start_saying("listening", ["node", SOURCE / "sdk2.mjs"], cwd=where)
    return Server("TypeScript SDK " + version_of("@modelcontextprotocol/server"), line.split()[-1], [process], is_modern=True)


def supergateway(stack, where, program, is_modern):
    """With sessions, each with a child: without them, as for modern clients, it starts one for each request."""
    port = free_port()
    command = ["node", "node_modules/supergateway/dist/index.js", "--stdio", program("mcp-stdio-server"), "--outputTransport",
               "streamableHttp", "--stateful", "--sessionTimeout", "60000", "--port", str(port), "--logLevel", "none"]
    process = stack.start(command, cwd=where, env=os.environ | {"NODE_ENV": "production"})
    wait_for_port(port)
    return Server("supergateway " + version_of("supergateway"), f"127.0.0.1:{port}", [process], is_modern=is_modern,
                  has_sessions=not is_modern)


def start_all(stack, build, program, left_out):
    """Ours first; what cannot be had is left out, with the reason."""
    started = [direct(stack, program, False), attached(stack, program, False), imported(stack, program)]
    where, reason = install(build)
    if where:
        started += [sdk1(stack, where), sdk2(stack, where)]
        started += [supergateway(stack, where, program, is_modern) for is_modern in (False, True)]
    else:
        left_out.append("TypeScript SDK, supergateway: " + reason)
    return started + [direct(stack, program, True), attached(stack, program, True)]
