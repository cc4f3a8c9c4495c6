#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the gateway beside our own bare gRPC echo; bench/run calls it. See bench/README.md.

  bench/gateway/measure.py BUILD [--quick] [--rounds N] [--seconds S]

BUILD is a directory that bench/run has built. Gateway, provider and client are processes of their own. Cells of the
echo and of the gateway take turns, so that what else the machine does meets both; a figure is the median of the rounds,
a ratio the median of the ratios of each round. The client sleeps while
it waits: one that spins would take a core from two processes that need it in turn. Results: tables on stdout; gateway.md and gateway.json in BUILD.
"""

import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

IN_FLIGHT = [1, 16, 128, 1000]
TOOLSETS, TOOLS = 1000, 10
SEARCHED = 10000


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="one round of 0.3 s")
    parser.add_argument("--rounds", type=int, help="[5]")
    parser.add_argument("--seconds", type=float, help="of each cell [1]")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else 1.0)
    return options


def program_finder(build):
    text = subprocess.run(["meson", "introspect", "--targets", str(build)], check=True, capture_output=True).stdout
    found = {target["name"]: target["filename"][0] for target in json.loads(text) if target["type"] == "executable"}
    return found.get


class Process:
    """A started program that says a line when it is ready; stopped by its pid at the end of the block."""

    def __init__(self, command, expected, log):
        self.log = open(log, "w")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.pid = self.process.pid
        self.line = ""
        for line in self.process.stdout:
            if expected in line:
                self.line = line.strip()
                return
        self.process.wait()
        raise RuntimeError(f"{command[0]} did not start; see {log}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_gateway(program, folder, *arguments):
    port = free_port()
    command = [program("pegboard"), "serve", "--addr", f"127.0.0.1:{port}", "--data-dir", str(folder / f"data-{port}"),
               *arguments]
    process = Process(command, str(port), folder / "gateway.log")
    process.address = f"127.0.0.1:{port}"
    return process


def run_cell(options, load, address, pid, kind, streams):
    command = [load, "--target", address, "--pid", str(pid), "--kind", kind, "--conns", "1", "--streams", str(streams),
               "--size", "500", "--seconds", str(options.seconds), "--warm", "0.2", "--sleeps"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if made.returncode:
        raise RuntimeError(f"{kind} with {streams} in flight: {made.stderr.strip()[-300:]}")
    row = json.loads(made.stdout)
    return {"p50_us": row["p50_us"], "p99_us": row["p99_us"], "per_s": row["calls"] / row["seconds"],
            "cpu_us": row["server_cpu_s"] / row["calls"] * 1e6}


def median_row(rows):
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def measure_calls(options, program, folder, provider, name):
    """Echo and call in turns, for each number in flight."""
    load = program("grpc-load")
    rows = []
    with Process([program("grpc-echo-server"), "--addr", "127.0.0.1:0"], "ready", folder / "echo.log") as echo, \
            start_gateway(program, folder) as gateway:
        echo_address = "127.0.0.1:" + echo.line.split()[1]
        with Process([*provider, gateway.address], "ready", folder / "provider.log"):
            run_cell(options, load, gateway.address, gateway.pid, "call", 16)
            for streams in IN_FLIGHT:
                pairs = []
                for _ in range(options.rounds):
                    pairs.append((run_cell(options, load, echo_address, echo.pid, "echo", streams),
                                  run_cell(options, load, gateway.address, gateway.pid, "call", streams)))
                row = {"provider": name, "in_flight": streams, "echo": median_row([pair[0] for pair in pairs]),
                       "call": median_row([pair[1] for pair in pairs]),
                       "p50_ratio": statistics.median(pair[1]["p50_us"] / pair[0]["p50_us"] for pair in pairs)}
                rows.append(row)
                print(f"  {name}, {streams} in flight: p50 {row['call']['p50_us']:.0f} us, {row['p50_ratio']:.2f} x echo, "
                      f"{row['call']['per_s']:,.0f} calls/s", flush=True)
    return rows


def measure_memory(program, folder):
    with start_gateway(program, folder) as gateway:
        time.sleep(0.5)
        idle = rss_mb(gateway.pid)
        subprocess.run([program("gateway-catalog"), gateway.address, "fill", str(TOOLSETS), str(TOOLS)], check=True)
        full = rss_mb(gateway.pid)
    return {"idle_mb": idle, "with_tools_mb": full, "tools": TOOLSETS * TOOLS}


def measure_catalog(options, program, folder):
    with start_gateway(program, folder, "--store", "memory") as gateway:
        subprocess.run([program("gateway-catalog"), gateway.address, "fill", str(SEARCHED), "1"], check=True)
        made = subprocess.run([program("gateway-catalog"), gateway.address, "ask", "200" if options.quick else "2000"],
                              check=True, capture_output=True, text=True)
        row = json.loads(made.stdout)
        made = subprocess.run([program("gateway-catalog"), gateway.address, "pages", "50" if options.quick else "500"],
                              check=True, capture_output=True, text=True)
        row |= json.loads(made.stdout)
        with Process([program("grpc-echo-server"), "--addr", "127.0.0.1:0"], "ready", folder / "echo.log") as echo:
            address = "127.0.0.1:" + echo.line.split()[1]
            row["echo_us"] = run_cell(options, program("grpc-load"), address, echo.pid, "echo", 1)["p50_us"]
        return row | {"toolsets": SEARCHED, "rss_mb": rss_mb(gateway.pid)}


def markdown(figures):
    lines = ["| provider | in flight | p50 | p99 | calls/s | gateway CPU/call | echo p50 | p50 to echo |",
             "|---|---|---|---|---|---|---|---|"]
    for row in figures["calls"]:
        call, echo = row["call"], row["echo"]
        lines.append(f"| {row['provider']} | {row['in_flight']} | {call['p50_us']:.0f} µs | {call['p99_us']:.0f} µs | "
                     f"{call['per_s']:,.0f} | {call['cpu_us']:.1f} µs | {echo['p50_us']:.0f} µs | "
                     f"{row['p50_ratio']:.2f}× |")
    memory, catalog = figures["memory"], figures["catalog"]
    lines += ["", "| gateway | figure |", "|---|---|",
              f"| memory, idle | {memory['idle_mb']:.1f} MB |",
              f"| memory, {memory['tools']:,} tools | {memory['with_tools_mb']:.1f} MB |",
              f"| search in {catalog['toolsets']:,} toolsets, whole RPC | {catalog['search_us']:.0f} µs "
              f"(p99 {catalog['search_p99_us']:.0f} µs) |",
              f"| list of 100, whole RPC | {catalog['list_100_us']:.0f} µs |",
              f"| list of 1,000, the last page, whole RPC | {catalog['list_1000_us']:.0f} µs |",
              f"| get, whole RPC | {catalog['get_us']:.0f} µs |", ""]
    return "\n".join(lines)


def main():
    options = parse_arguments()
    program = program_finder(options.build)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        calls = measure_calls(options, program, folder, [program("gateway-provider")], "on its loop")
        calls += measure_calls(options, program, folder, [program("gateway-worker-provider")], "worker threads")
        figures = {"calls": calls, "memory": measure_memory(program, folder),
                   "catalog": measure_catalog(options, program, folder)}
    text = markdown(figures)
    (options.build / "gateway.json").write_text(json.dumps(figures, indent=1) + "\n")
    (options.build / "gateway.md").write_text(text)
    print("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
