# SPDX-License-Identifier: Apache-2.0
"""The ways to the tool `echo` that the http bench measures: how each is started, and what a request of it is."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SOURCE.parent / "mcp"))

import servers  # noqa: E402  (needs the path above)

PATH = "/v1/toolsets/bench/tools/echo/calls"
RPC = "/pegboard.v1.Registry/CallTool"
INSTALL_S = 600


@dataclasses.dataclass
class Way:
    """A server that runs, and how it is asked. The first of its processes is what the client speaks to."""

    name: str
    address: str
    processes: list
    path: str
    version: str = "1.1"  # of HTTP
    is_grpc: bool = False
    frame_len: int = 0  # of an answer: what is around the arguments that come back

    def body(self, arguments):
        return grpc_message(arguments) if self.is_grpc else arguments

    def options(self):
        """Of h2load."""
        if self.is_grpc:
            return ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        return ["-H", "content-type: application/json", *(["--h1"] if self.version == "1.1" else [])]


# ---- a request of gRPC ---------------------------------------------------------------------


def field(number, data):
    """A field of protobuf that has a length."""
    length, n = b"", len(data)
    while n > 0x7f:
        length, n = length + bytes([n & 0x7f | 0x80]), n >> 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + data


def grpc_message(arguments):
    """A CallToolRequest: toolset, tool, payload."""
    message = field(1, b"bench") + field(2, b"echo") + field(3, arguments)
    return b"\0" + len(message).to_bytes(4, "big") + message


# ---- packages ------------------------------------------------------------------------------


def install(place, files, commands):
    """Runs commands in a folder with these files, once for their contents: why they failed, or None."""
    stamp, wanted = place / "installed", "".join((SOURCE / name).read_text() for name in files)
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    place.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copyfile(SOURCE / name, place / name)
    for command in commands:
        try:
            made = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=INSTALL_S)
        except subprocess.TimeoutExpired:
            return f"{command[0]} did not end within {INSTALL_S} s"
        if made.returncode:
            return f"{' '.join(command[:2])} failed: " + made.stderr.strip()[-300:]
    stamp.write_text(wanted)
    return None


def install_npm(build):
    """The folder that has node_modules, and None; or None, and why."""
    if not shutil.which("npm") or not shutil.which("node"):
        return None, "node and npm are not here (apt-get install nodejs npm)"
    place = build / "http-peers"
    reason = install(place, ["package.json", "package-lock.json"], [["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]])
    return (None, reason) if reason else (place, None)


def install_python(build):
    """A Python that has FastAPI, and None; or None, and why."""
    place = build / "http-fastapi"
    reason = install(place, ["requirements.txt"], [
        [sys.executable, "-m", "venv", "--clear", "venv"],
        ["venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]])
    return (None, reason) if reason else (place / "venv" / "bin" / "python", None)


def version_from_npm(package):
    return json.loads((SOURCE / "package.json").read_text())["dependencies"][package]


def version_from_pip(package):
    lines = (SOURCE / "requirements.txt").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(package + "=="))


# ---- servers -------------------------------------------------------------------------------


OURS, OURS_2, GRPC = "pegboard, HTTP/1.1", "pegboard, HTTP/2", "pegboard, gRPC"


def start_ours(stack, program):
    """One gateway with one provider in C, asked in three ways."""
    gateway, address = servers.start_gateway(stack, program)
    provider, _ = stack.start_saying("ready", [program("gateway-provider"), address])
    processes = [gateway, provider]
    return [Way(OURS, address, processes, PATH), Way(OURS_2, address, processes, PATH, version="2"),
            Way(GRPC, address, processes, RPC, version="2", is_grpc=True)]


def start_express(stack, place):
    process, line = stack.start_saying("listening", ["node", SOURCE / "express.mjs"], cwd=place,
                                       env=os.environ | {"NODE_ENV": "production"})
    name = f"Express {version_from_npm('express')}, ajv {version_from_npm('ajv')}"
    return Way(name, line.split()[-1], [process], "/echo")


def start_fastapi(stack, python):
    port = servers.free_port()
    process = stack.start([python, "-B", SOURCE / "fastapi_echo.py", port])
    servers.wait_for_port(port)
    name = f"FastAPI {version_from_pip('fastapi')}, uvicorn {version_from_pip('uvicorn')}"
    return Way(name, f"127.0.0.1:{port}", [process], "/echo")


def start_all(stack, build, program, left_out):
    """Ours first; what cannot be had is left out, with the reason."""
    ways = start_ours(stack, program)
    for who, get, start in (("Express", install_npm, start_express), ("FastAPI", install_python, start_fastapi)):
        found, reason = get(build)
        try:
            if found:
                ways.append(start(stack, found))
        except (OSError, RuntimeError) as error:
            reason = str(error)
        if reason:
            left_out.append(f"{who}: {reason}")
    return ways
