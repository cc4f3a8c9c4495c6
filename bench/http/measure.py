#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures our HTTP server beside those of others with small POSTs that are echoed, calls of a tool over HTTP (calls.py), and the console (console.py);
bench/run calls it. See bench/README.md.

  bench/http/measure.py BUILD [--quick] [--rounds N] [--seconds S] [--server PROGRAM] [--only servers|calls|console ...]

BUILD is a directory that bench/run has built; PROGRAM is used in the place of its http-echo-server. The load is h2load, the same for all. Servers take turns
within a round; a figure is the median of the rounds, a ratio the median of the ratios of each round. Results: tables on stdout; http.md and http.json in BUILD.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import calls  # noqa: E402  (writes no bytecode, as said above)
import console  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent
PARTS = ["servers", "calls", "console"]
PAYLOAD = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}'
# (version, connections, requests at once on each)
CELLS = [("1.1", 1, 1), ("1.1", 32, 1), ("1.1", 256, 1), ("2", 1, 1), ("2", 8, 16)]
OURS = "pegboard"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, help="[5]")
    parser.add_argument("--seconds", type=int, default=1, help="of each cell [1]")
    parser.add_argument("--server", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts [all]")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.server = options.server or options.build / "bench" / "http" / "http-echo-server"
    return options


class Server:
    """One that runs, on one thread."""

    def __init__(self, name, versions, command, env=None):
        self.name, self.versions = name, versions
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | (env or {}))
        self.address = self.process.stdout.readline().split()[-1]

    def cpu_seconds(self):
        # What follows the name, which may hold anything: utime and stime are the 12th and 13th.
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


def start_servers(options, left_out):
    servers = [Server(OURS, ("1.1", "2"), [str(options.server), "127.0.0.1:0"])]
    if shutil.which("go"):
        program = options.build / "http-go-echo"
        made = subprocess.run(["go", "build", "-o", str(program), str(SOURCE / "echo.go")], capture_output=True, text=True)
        if made.returncode == 0:
            servers.append(Server("Go net/http", ("1.1",), [str(program)], {"GOMAXPROCS": "1"}))
        else:
            left_out.append("Go net/http: go build failed: " + made.stderr.strip()[-200:])
    else:
        left_out.append("Go net/http: there is no go on the PATH")
    if shutil.which("node"):
        for module, versions in (("http", ("1.1",)), ("http2", ("2",))):
            servers.append(Server(f"node {module}", versions, ["node", str(SOURCE / "echo.mjs"), module]))
    else:
        left_out.append("node: it is not here (apt-get install nodejs)")
    return servers


def load(server, cell, seconds, folder):
    """Runs h2load for so long; requests per second, p50 and p99 in us, CPU of the server in us for each request."""
    version, n_conns, n_streams = cell
    body, log = folder / "body", folder / "log"
    body.write_bytes(PAYLOAD)
    log.unlink(missing_ok=True)
    command = ["h2load", "-c", str(n_conns), "-m", str(n_streams), "-d", str(body), "-H", "content-type: application/json", "-t", "1",
               "--log-file", str(log), f"--duration={seconds}"]
    if version == "1.1":
        command.append("--h1")
    before = server.cpu_seconds()
    made = subprocess.run([*command, f"http://{server.address}/echo"], capture_output=True, text=True, check=True)
    cpu = server.cpu_seconds() - before
    found = re.search(r"finished in .*, ([\d.]+) req/s", made.stdout)
    counts = re.search(r"requests: (\d+) total, .* (\d+) succeeded, (\d+) failed", made.stdout)
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    times = sorted(int(line[2]) for line in lines if line[1] == "200")
    if not found or not counts or int(counts[3]) > 0 or len(times) < 10:
        sys.exit(f"bench/http: {server.name} failed requests of HTTP/{version}:\n{made.stdout}{made.stderr}")
    return {"rps": float(found[1]), "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "cpu_us": cpu * 1e6 / len(times)}


def measure(options, servers, folder):
    rows = {}
    for server in servers:  # warm them
        load(server, (server.versions[0], 8, 1), 1, folder)
    for _ in range(options.rounds):
        for cell in CELLS:
            for server in servers:
                if cell[0] in server.versions:
                    rows.setdefault((cell, server.name), []).append(load(server, cell, options.seconds, folder))
    return rows


def summarize(rows):
    """Medians, and beside each peer the median of its ratios to ours: CPU for a request, and requests per second."""
    results = []
    for (cell, name), rounds in rows.items():
        ours = rows[cell, OURS]
        result = {"version": cell[0], "connections": cell[1], "at_once": cell[2], "server": name}
        result |= {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        result["cpu_ratio"] = statistics.median(one["cpu_us"] / max(mine["cpu_us"], 0.01) for one, mine in zip(rounds, ours))
        result["rps_ratio"] = statistics.median(mine["rps"] / one["rps"] for one, mine in zip(rounds, ours))
        results.append(result)
    return results


def table(results):
    lines = ["## HTTP: small POSTs, echoed", "",
             "| HTTP | connections | at once on each | server | requests/s | p50 µs | p99 µs | CPU µs of the server | CPU, times ours | ours, times its requests/s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in sorted(results, key=lambda row: (row["version"], row["connections"], row["at_once"], row["server"] != OURS, row["server"])):
        lines.append(f"| {row['version']} | {row['connections']} | {row['at_once']} | {row['server']} | {row['rps']:,.0f} | {row['p50']} | {row['p99']} "
                     f"| {row['cpu_us']:.1f} | {row['cpu_ratio']:.2f} | {row['rps_ratio']:.2f} |")
    return lines


def program_finder(build):
    text = subprocess.run(["meson", "introspect", "--targets", str(build)], check=True, capture_output=True).stdout
    found = {target["name"]: target["filename"][0] for target in json.loads(text) if target["type"] == "executable"}
    return lambda name: found[name]


def measure_servers(options, folder, left_out):
    servers = start_servers(options, left_out)
    try:
        return summarize(measure(options, servers, folder))
    finally:
        for server in servers:
            server.stop()


def main():
    options = parse_arguments()
    left_out, figures, texts = [], {}, []
    if not shutil.which("h2load"):
        sys.exit("bench/http: there is no h2load (apt-get install nghttp2-client)")
    program = program_finder(options.build)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "servers" in options.only:
            figures["servers"] = measure_servers(options, folder, left_out)
            texts += table(figures["servers"])
        if "calls" in options.only:
            figures["calls"] = calls.measure(options, program, folder, left_out)
            texts += ["", *calls.table(figures["calls"])]
        if "console" in options.only:
            figures["console"] = console.measure(options, program, folder, left_out)
            texts += ["", *console.table(figures["console"])]
    figures["left_out"] = left_out
    text = "\n".join(texts + ["", *(f"Left out: {reason}" for reason in left_out)]).strip() + "\n"
    print("\n" + text)
    (options.build / "http.json").write_text(json.dumps(figures, indent=1) + "\n")
    (options.build / "http.md").write_text(text)


if __name__ == "__main__":
    main()
