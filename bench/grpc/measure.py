#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures our gRPC server beside those of others; bench/run calls it. See bench/README.md.

  bench/grpc/measure.py BUILD [--quick] [--only NAME ...] [--seconds S]

BUILD is a directory that bench/run has built. Servers: pegboard, core, go, tonic, js.
Results: tables on stdout; grpc.md and grpc.json in BUILD.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import peers  # noqa: E402
import report  # noqa: E402

# (kind, connections, calls at once on each)
UNARY = [("echo", 1, 1), ("echo", 1, 16), ("echo", 1, 128), ("echo", 8, 1), ("echo", 8, 16), ("echo", 8, 128),
         ("echo", 128, 1)]
PLAIN = UNARY + [("chat", 1, 1), ("chat", 1, 128), ("stream", 1, 1), ("stream", 1, 16)]
TLS = UNARY + [("chat", 1, 128), ("stream", 1, 16)]
CROSS = [("echo", 1, 128), ("echo", 128, 1)]  # also with h2load
QUICK = [("echo", 1, 128), ("echo", 128, 1), ("chat", 1, 128), ("stream", 1, 16)]
PAYLOAD = 500
H2LOAD_REQUESTS = 2000  # to begin with


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="four cells of 0.3 s")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=["pegboard", "core", "go", "tonic", "js"])
    parser.add_argument("--seconds", type=float, help="of each cell [2]")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.seconds = options.seconds or (0.3 if options.quick else 2.0)
    options.warm = 0.2 if options.quick else 0.4
    options.first_warm = 0.6 if options.quick else 3.0
    return options


# ---- servers --------------------------------------------------------------------------


def cpu_seconds(pid):
    """CPU of a process since its start, all threads: the clock that clock_getcpuclockid() names."""
    return time.clock_gettime((~pid << 3) | 2)


def memory_kb(pid):
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])


class Running:
    """A started server; stopped by its pid at the end of the block."""

    def __init__(self, server, tls, log):
        arguments = ["--addr", "127.0.0.1:0"]
        if tls:
            arguments += ["--tls-cert", str(tls[0]), "--tls-key", str(tls[1])]
        self.name = server.name
        self.log = open(log, "w")
        self.process = subprocess.Popen(server.command + arguments, cwd=server.cwd, env=os.environ | server.env,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()  # the server is ready, or it has ended
        if not line.startswith("ready "):
            self.__exit__()
            raise RuntimeError(f"{self.name} did not start; see {self.log.name}")
        self.pid = self.process.pid
        self.port = int(line.split()[1])
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


# ---- cells -----------------------------------------------------------------------------


def run_cell(options, running, cell, tls):
    kind, conns, streams = cell
    command = [options.load, "--target", f"127.0.0.1:{running.port}", "--pid", str(running.pid), "--kind", kind,
               "--conns", str(conns), "--streams", str(streams), "--size", str(PAYLOAD),
               "--seconds", str(options.seconds), "--warm", str(options.warm)]
    made = subprocess.run(command + (["--ca", str(tls[0])] if tls else []), capture_output=True, text=True, timeout=90)
    row = {"server": running.name, "kind": kind, "conns": conns, "streams": streams, "tls": bool(tls), "by": "grpc-load"}
    if made.returncode:
        return row | {"error": made.stderr.strip()[-300:] or f"ended with {made.returncode}"}
    row |= json.loads(made.stdout)
    return finish_row(row, running, row["calls"] if kind == "echo" else row["messages"])


def finish_row(row, running, n):
    """Per request, or per message of a stream."""
    row["rss_kb"], row["peak_kb"] = memory_kb(running.pid)
    row["per_s"] = n / row["seconds"]
    row["server_us"] = row["server_cpu_s"] / n * 1e6
    row["per_cpu_s"] = n / row["server_cpu_s"]
    if "client_cpu_s" in row:
        row["client_us"] = row["client_cpu_s"] / n * 1e6
    return row


def h2load(options, running, cell, tls, n):
    """So many requests of nghttp2's load generator: what it says, the seconds, the server's CPU."""
    scheme = "https" if tls else "http"
    before, start = cpu_seconds(running.pid), time.monotonic()
    made = subprocess.run(["h2load", "-n", str(n), "-c", str(cell[1]), "-m", str(cell[2]), "-d", str(options.body),
                           "-H", "content-type: application/grpc", "-H", "te: trailers",
                           f"{scheme}://127.0.0.1:{running.port}/pegboard.test.Echo/Echo"],
                          capture_output=True, text=True, timeout=90)
    return made.stdout, time.monotonic() - start, cpu_seconds(running.pid) - before


def run_cross(options, running, cell, tls):
    """The same cell with a client that is not ours: first a few requests, then as many as fill the time."""
    row = {"server": running.name, "kind": cell[0], "conns": cell[1], "streams": cell[2], "tls": bool(tls), "by": "h2load"}
    n = H2LOAD_REQUESTS
    _, seconds, _ = h2load(options, running, cell, tls, n)
    n = max(n, int(n / seconds * options.seconds))
    said, seconds, cpu = h2load(options, running, cell, tls, n)
    if f"{n} succeeded" not in said:
        return row | {"error": "not all requests succeeded: " + said[-300:].strip()}
    return finish_row(row | {"calls": n, "seconds": seconds, "server_cpu_s": cpu}, running, n)


def warm_up(options, running, tls):
    """Once for each process: what is compiled (node takes its time) or allocated at first is not measured."""
    short = argparse.Namespace(**vars(options) | {"seconds": options.first_warm})
    run_cell(short, running, ("echo", 1, 16), tls)


def cells_of(options, tls):
    if options.quick:
        return QUICK, CROSS[:1]
    return (TLS if tls else PLAIN), (CROSS[:1] if tls else CROSS)


def run_server(options, server, tls):
    rows = []
    log = options.build / "grpc-peers" / f"{server.name.replace(' ', '-')}{'-tls' if tls else ''}.log"
    cells, cross = cells_of(options, tls)
    with Running(server, tls, log) as running:
        idle_kb = memory_kb(running.pid)[0]
        warm_up(options, running, tls)
        for cell in cells:
            rows.append(run_cell(options, running, cell, tls))
            print(report.progress(rows[-1]), flush=True)
        for cell in cross if shutil.which("h2load") else []:
            rows.append(run_cross(options, running, cell, tls))
            print(report.progress(rows[-1]), flush=True)
    return [row | {"idle_kb": idle_kb} for row in rows]


# ---- the bench ---------------------------------------------------------------------------


def make_certificate(build):
    """A key and a certificate of its own for 127.0.0.1, of the kind that most servers have: P-256."""
    cert, key = build / "grpc-peers" / "cert.pem", build / "grpc-peers" / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                    "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def make_body(build):
    """A request of h2load: one message, `bytes payload = 1`."""
    message = b"\x0a" + bytes([0x80 | PAYLOAD & 0x7f, PAYLOAD >> 7]) + b"x" * PAYLOAD
    path = build / "grpc-peers" / "body"
    path.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    return path


def program_finder(build):
    text = subprocess.run(["meson", "introspect", "--targets", str(build)], check=True, capture_output=True).stdout
    found = {target["name"]: target["filename"][0] for target in json.loads(text) if target["type"] == "executable"}
    return found.get


def main():
    options = parse_arguments()
    program = program_finder(options.build)
    servers = peers.make(options.build / "grpc-peers", program, options.only)
    options.load, options.body = program("grpc-load"), make_body(options.build)
    tls = make_certificate(options.build)
    rows = []
    for server in servers:
        if not server.command:
            print(f"bench/grpc: {server.name} is left out: {server.reason}", file=sys.stderr)
            continue
        for security in (None, tls):
            try:
                rows += run_server(options, server, security)
            except RuntimeError as error:
                server.reason = str(error)
                print(f"bench/grpc: {error}", file=sys.stderr)
    text = report.markdown(rows, servers, options)
    (options.build / "grpc.json").write_text(json.dumps(rows, indent=1) + "\n")
    (options.build / "grpc.md").write_text(text)
    print("\n" + text)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
