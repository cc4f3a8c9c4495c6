#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures MCP over HTTP, direct and through a gateway, beside the TypeScript SDK and supergateway; bench/run calls it. See bench/README.md.

  bench/mcp/measure.py BUILD [--quick] [--rounds N] [--seconds S]

BUILD is a directory that bench/run has built. Servers take turns within a round; a figure is the median of the rounds, and what the
gateway adds is the median of the differences of each round. Results: tables on stdout; mcp.md and mcp.json in BUILD.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import servers  # noqa: E402

CONNECTIONS = [1, 32, 256]
TOOLSETS, TOOLS = 1000, 10
WARM_CALLS, WARM_S, WARM_TIMES = 20000, 2, 10
TEXT = "$" * 8 + " and some words that make these arguments as long as those of most tools are, which is hundred bytes"
DIRECT, ATTACHED = "pegboard, direct", "pegboard serve, attached provider"


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
    return lambda name: found[name]


def watch_memory(process, server):
    """The most that it has while the load runs, which says little, so that it ends although its output is not read."""
    most = 0.0
    while process.poll() is None:
        most = max(most, server.rss_mb())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    return most


def load(program, server, request, conns, seconds, *more):
    command = [program("mcp-load"), *request, "--conns", str(conns), "--seconds", str(seconds), "--warm", "0.3", *more]
    for pid in server.pids():
        command += ["--pid", str(pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        most_mb = watch_memory(process, server)
        said, complaints = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"{server.name}, {conns} connections: {complaints.strip()[-500:]}")
    row = json.loads(said)
    return {"p50_us": row["p50_us"], "p99_us": row["p99_us"], "per_s": row["calls"] / row["seconds"],
            "cpu_us": row["server_cpu_s"] / row["calls"] * 1e6, "bytes": row["bytes"] / row["calls"],
            "rss_mb": most_mb}


def call(program, server, conns, seconds):
    request = server.request("tools/call", {"name": "echo", "arguments": {"text": TEXT}}, "echo")
    return load(program, server, request, conns, seconds, "--echo")


def try_call(program, server, conns, seconds, left_out):
    """None: a peer has failed, which has no figures then. Ours may not."""
    try:
        return call(program, server, conns, seconds)
    except RuntimeError as error:
        if server.name.startswith("pegboard"):
            raise
        left_out.append(str(error))
        return None


def warm(options, program, server):
    """By calls, not by time: servers in JavaScript are compiled meanwhile, and a busy machine gives them little of it."""
    n_calls = n_times = 0
    while n_times == 0 or (not options.quick and n_calls < WARM_CALLS and n_times < WARM_TIMES):
        n_calls += WARM_S * call(program, server, 8, 0.5 if options.quick else WARM_S)["per_s"]
        n_times += 1


def median_row(rows):
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


# ---- calls ---------------------------------------------------------------------------------


def measure_calls(options, program, folder, left_out):
    rows = []
    with servers.Stack(folder) as stack:
        started = servers.start_all(stack, options.build, program, left_out)
        idle = {(server.name, server.is_modern): server.rss_mb() for server in started}
        for server in started:
            warm(options, program, server)
        for conns in CONNECTIONS:
            rounds = [[try_call(program, server, conns, options.seconds, left_out) for server in started]
                      for _ in range(options.rounds)]
            for i, server in enumerate(started):
                if not all(one[i] for one in rounds):
                    continue
                row = {"server": server.name, "era": "modern" if server.is_modern else "legacy", "connections": conns}
                row |= median_row([one[i] for one in rounds]) | {"idle_mb": idle[server.name, server.is_modern]}
                rows.append(row)
                print(f"  {row['server']}, {row['era']}, {conns} connections: p50 {row['p50_us']:.0f} us, "
                      f"{row['per_s']:,.0f} calls/s", flush=True)
            rows[-1]["added"] = added_by_gateway(started, rounds)
    return rows


def added_by_gateway(started, rounds):
    """Microseconds of p50 over our own direct server, by era."""
    place = {(server.name, server.is_modern): i for i, server in enumerate(started)}
    return {era: statistics.median(one[place[ATTACHED, is_modern]]["p50_us"] - one[place[DIRECT, is_modern]]["p50_us"]
                                   for one in rounds) for era, is_modern in (("legacy", False), ("modern", True))}


# ---- lists ---------------------------------------------------------------------------------


def ask(server, method, params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(f"http://{server.address}{server.path}", body, {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text)["result"], len(text)


def walk(server):
    """The whole list, page by page, by a client in Python: seconds, pages, tools, bytes, and the last cursor."""
    began, cursor, last, pages, tools, size = time.monotonic(), None, None, 0, 0, 0
    while pages == 0 or cursor:
        result, length = ask(server, "tools/list", {"cursor": cursor} if cursor else {})
        last, cursor = cursor, result.get("nextCursor")
        pages, tools, size = pages + 1, tools + len(result["tools"]), size + length
    return {"s": time.monotonic() - began, "pages": pages, "tools": tools, "bytes": size}, last


def measure_lists(options, program, folder, left_out):
    rows = []
    with servers.Stack(folder) as stack:
        process, address = servers.start_gateway(stack, program)
        subprocess.run([program("gateway-catalog"), address, "fill", str(TOOLSETS), str(TOOLS)], check=True)
        server = servers.Server("pegboard serve", address, [process])
        walk(server)
        whole, last = walk(server)
        if whole["tools"] != TOOLSETS * TOOLS:
            raise RuntimeError(f"the list has {whole['tools']} tools")
        asked = [("first page of the list", "/mcp", "tools/list", {}),
                 ("last page of the list", "/mcp", "tools/list", {"cursor": last}),
                 ("list in search mode", "/mcp?tools=search", "tools/list", {}),
                 ("search_tools, 5 results", "/mcp?tools=search", "tools/call",
                  {"name": "search_tools", "arguments": {"query": "find the orders of region 77", "limit": 5}})]
        for what, server.path, method, params in asked:
            row = load(program, server, server.request(method, params), 1, options.seconds)
            rows.append({"server": server.name, "what": what} | row)
        server.path = "/mcp"
        rows.append({"server": server.name, "what": f"whole list, {whole['pages']} pages, by a client in Python",
                     "p50_us": whole["s"] * 1e6, "bytes": whole["bytes"], "rss_mb": server.rss_mb()})
    where, reason = servers.install(options.build)
    if not where:
        left_out.append("lists of the TypeScript SDK: " + reason)
        return rows
    with servers.Stack(folder) as stack:
        server = servers.sdk1(stack, where, TOOLSETS * TOOLS)
        rows.append({"server": server.name, "what": "whole list, which has one page"} |
                    load(program, server, server.request("tools/list", {}), 1, 2 if options.quick else 10))
    return rows


# ---- tables --------------------------------------------------------------------------------


def calls_table(rows):
    lines = ["## MCP over HTTP: tools/call", "",
             "| connections | era | server | p50 µs | p99 µs | calls/s | CPU µs of the server | memory MB | idle MB | p50, times direct |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    base = {(row["connections"], row["era"]): row["p50_us"] for row in rows if row["server"] == DIRECT}
    for row in sorted(rows, key=lambda row: (row["connections"], row["era"])):
        lines.append(f"| {row['connections']} | {row['era']} | {row['server']} | {row['p50_us']:,.0f} | {row['p99_us']:,.0f} | "
                     f"{row['per_s']:,.0f} | {row['cpu_us']:,.1f} | {row['rss_mb']:.1f} | {row['idle_mb']:.1f} | "
                     f"{row['p50_us'] / base[row['connections'], row['era']]:.2f} |")
    lines.append("")
    for row in rows:
        if "added" in row and row["connections"] == 1:  # with more, connections wait for each other
            lines.append(f"The gateway adds to p50 of our direct server, at one connection: {row['added']['legacy']:.0f} µs (legacy), "
                         f"{row['added']['modern']:.0f} µs (modern).")
    return lines


def lists_table(rows):
    lines = ["", f"## MCP over HTTP: lists of {TOOLSETS * TOOLS:,} tools", "",
             "| server | asked for | p50 µs | CPU µs of the server | bytes of the answer | memory MB |", "|---|---|---|---|---|---|"]
    for row in rows:
        cpu = f"{row['cpu_us']:,.0f}" if "cpu_us" in row else ""
        lines.append(f"| {row['server']} | {row['what']} | {row['p50_us']:,.0f} | {cpu} | {row['bytes']:,.0f} | {row['rss_mb']:.1f} |")
    return lines


def main():
    options = parse_arguments()
    program = program_finder(options.build)
    left_out = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        figures = {"calls": measure_calls(options, program, folder, left_out),
                   "lists": measure_lists(options, program, folder, left_out), "left_out": left_out}
    lines = calls_table(figures["calls"]) + lists_table(figures["lists"])
    text = "\n".join(lines + ["", *(f"Left out: {reason}" for reason in left_out)]).rstrip() + "\n"
    print("\n" + text)
    (options.build / "mcp.json").write_text(json.dumps(figures, indent=1) + "\n")
    (options.build / "mcp.md").write_text(text)


if __name__ == "__main__":
    main()
