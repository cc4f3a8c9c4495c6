#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures calls through a cluster beside raw round trips on the same Redis; bench/run calls it. See bench/README.md.

  bench/cluster/measure.py BUILD [--quick] [--rounds N] [--seconds S] [--only PART ...]

BUILD is a directory that bench/run has built. The caller is at node A, the provider at node B. Cells of the echo, of
the streams and of the calls take turns, so that what else the machine does meets all of them; a figure is the median of
the rounds, a ratio the median of the ratios of each round. Results: tables on stdout; cluster.md and cluster.json in
BUILD.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SPEC = importlib.util.spec_from_file_location("gateway_measure", HERE.parent / "gateway" / "measure.py")
gateway = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gateway)

PARTS = ["calls", "toolsets", "nodes", "direct", "memory"]
IN_FLIGHT = [1, 128]
PERSISTENCE = {
    "no AOF": ["--appendonly", "no"],
    "AOF, everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
    "AOF, always": ["--appendonly", "yes", "--appendfsync", "always"],
}
KINDS = {"call": "no identity", "keyed": "identity"}
MAX_P50 = {"call": 1.8, "keyed": 2.2}  # times (raw round trip + two echoes)
MIN_RATE = {"call": 0.5, "keyed": 0.35}  # of the raw round trips in a second
# ../shared/spec/gateway-executed.md 4, on a machine of the same kind; best of its runs
GOA_AI = {"per_s": 299, "p50_us": 1750}
MIN_GOA_AI = 20
FEW, MANY = 10, 10000
NODES = [1, 2, 4]
PROCESSES = ["node A", "node B", "Redis", "provider"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="one round of 0.3 s")
    parser.add_argument("--rounds", type=int, help="[5]")
    parser.add_argument("--seconds", type=float, help="of each cell [1]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else 1.0)
    options.many = MANY // 10 if options.quick else MANY
    return options


# ---- processes ------------------------------------------------------------------------------


class Redis:
    """A redis-server of its own, on TCP as in production; stopped by its pid at the end of the block."""

    def __init__(self, folder, *arguments):
        self.port = gateway.free_port()
        self.url = f"127.0.0.1:{self.port}"
        data = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(data), "--logfile",
             str(data / "log"), *arguments])
        self.pid = self.process.pid
        until = time.monotonic() + 10
        while self.ask("ping") != "PONG":
            if time.monotonic() > until:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.02)

    def ask(self, *words):
        made = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, check=False)
        return made.stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def start_node(program, folder, redis):
    """Results are kept for a second beyond the deadline: the node's quota is not what is measured."""
    return gateway.start_gateway(program, folder, "--redis", redis.url, "--store", "memory", "--result-mapping-ttl",
                                 "1s")


def start_provider(program, folder, node):
    return gateway.Process([program("gateway-provider"), node.address], "ready", folder / "provider.log")


def await_call(program, node):
    """Until a node calls the tool, which it learns of through Redis."""
    until = time.monotonic() + 20
    command = [program("pegboard"), "call", "bench", "echo", "text=x", "--registry", node.address]
    while subprocess.run(command, capture_output=True, check=False).returncode:
        if time.monotonic() > until:
            raise RuntimeError("a node does not call the tool of another")
        time.sleep(0.1)


@contextlib.contextmanager
def cluster(program, folder, persistence=("--appendonly", "no")):
    """A Redis, nodes A and B, and the provider at B, as PROCESSES has them; what is to be read of each is its pid."""
    with Redis(folder, *persistence) as redis, start_node(program, folder, redis) as first, \
            start_node(program, folder, redis) as second, start_provider(program, folder, second) as provider:
        await_call(program, first)
        yield redis, first, second, [first.pid, second.pid, redis.pid, provider.pid]


# ---- cells ----------------------------------------------------------------------------------


def figures_of(command, what):
    made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if made.returncode:
        raise RuntimeError(f"{what}: {made.stderr.strip()[-300:]}")
    row = json.loads(made.stdout)
    return {"p50_us": row["p50_us"], "p99_us": row["p99_us"], "per_s": row["calls"] / row["seconds"],
            "client_us": row["client_cpu_s"] / row["calls"] * 1e6,
            **{f"cpu_{i}_us": cpu / row["calls"] * 1e6 for i, cpu in enumerate(row["cpu_s"])}}


def cell_options(options, pids, streams):
    return ["--streams", str(streams), "--size", "500", "--seconds", str(options.seconds), "--warm", "0.2",
            *(word for pid in pids for word in ("--pid", str(pid)))]


def run_load(options, program, address, pids, kind, streams):
    return figures_of([program("grpc-load"), "--target", address, "--kind", kind, "--sleeps",
                       *cell_options(options, pids, streams)], f"{kind} with {streams} in flight")


def run_raw(options, program, redis, pids, streams, *more):
    return figures_of([program("cluster-stream"), "load", "--redis", redis.url, *more,
                       *cell_options(options, pids, streams)], f"streams with {streams} in flight")


def median_of(rounds, ratio):
    return statistics.median(ratio(one) for one in rounds)


# ---- calls beside streams -------------------------------------------------------------------


def compare(rounds, kind):
    return {"p50_ratio": median_of(rounds, lambda one: one[kind]["p50_us"] / (one["raw"]["p50_us"] +
                                                                             2 * one["echo"]["p50_us"])),
            "rate_ratio": median_of(rounds, lambda one: one[kind]["per_s"] / one["raw"]["per_s"]),
            "gathered_ratio": median_of(rounds, lambda one: one[kind]["per_s"] / one["gathered"]["per_s"]),
            "goa_ai": median_of(rounds, lambda one: one[kind]["per_s"] / GOA_AI["per_s"])}


def measure_calls(options, program, folder):
    rows = []
    with gateway.Process([program("grpc-echo-server"), "--addr", "127.0.0.1:0"], "ready", folder / "echo.log") as echo:
        echo_address = "127.0.0.1:" + echo.line.split()[1]
        for persistence, arguments in PERSISTENCE.items():
            with cluster(program, folder, arguments) as (redis, first, _, pids), \
                    gateway.Process([program("cluster-stream"), "peer", "--redis", redis.url], "ready",
                                    folder / "peer.log") as peer:
                for streams in IN_FLIGHT:
                    rounds = []
                    for _ in range(options.rounds):
                        rounds.append({
                            "echo": run_load(options, program, echo_address, [echo.pid], "echo", streams),
                            "raw": run_raw(options, program, redis, [redis.pid, peer.pid], streams),
                            "call": run_load(options, program, first.address, pids, "call", streams),
                            "gathered": run_raw(options, program, redis, [redis.pid, peer.pid], streams, "--gathered"),
                            "keyed": run_load(options, program, first.address, pids, "keyed", streams)})
                    row = {"persistence": persistence, "in_flight": streams,
                           **{name: gateway.median_row([one[name] for one in rounds]) for name in rounds[0]},
                           "ratios": {kind: compare(rounds, kind) for kind in KINDS}}
                    rows.append(row)
                    print(f"  {persistence}, {streams} in flight: " + "; ".join(
                        f"{name} {row[kind]['per_s']:,.0f}/s, p50 {row[kind]['p50_us']:.0f} us"
                        for kind, name in [("raw", "raw"), *KINDS.items()]), flush=True)
    return rows


# ---- toolsets, nodes, memory ----------------------------------------------------------------


def measure_toolsets(options, program, folder):
    """The same calls in two registries that differ in how many toolsets they have, in turns."""
    counts = (FEW, options.many)
    with contextlib.ExitStack() as stack:
        clusters = []
        for count in counts:
            one = stack.enter_context(cluster(program, folder))
            subprocess.run([program("gateway-catalog"), one[1].address, "fill", str(count), "1"], check=True)
            clusters.append(one)
        time.sleep(1)  # what the fill left is done
        rounds = [[run_load(options, program, first.address, pids, "call", 128) for _, first, _, pids in clusters]
                  for _ in range(options.rounds)]
        memory = [[gateway.rss_mb(first.pid), gateway.rss_mb(second.pid)] for _, first, second, _ in clusters]
    rows = [{"toolsets": count, "rss_mb": memory[i], **gateway.median_row([one[i] for one in rounds])}
            for i, count in enumerate(counts)]
    totals = [[sum(value for key, value in row.items() if key.startswith("cpu_")) for row in one] for one in rounds]
    ratio = statistics.median(many / few for few, many in totals)
    print(f"  CPU of a call with {options.many:,} toolsets: {ratio:.2f} times that with {FEW}", flush=True)
    return {"rows": rows, "cpu_ratio": ratio}


def load_all(options, program, nodes, redis):
    """Calls with an identity at every node at once: those without one would stay in their nodes."""
    commands = [[program("grpc-load"), "--target", node.address, "--kind", "keyed", "--sleeps",
                 *cell_options(options, [node.pid, redis.pid], max(128 // len(nodes), 1))] for node in nodes]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for command in commands]
    rows = []
    for process in running:
        out, err = process.communicate(timeout=120)
        if process.returncode:
            raise RuntimeError(f"{len(nodes)} nodes: {err.strip()[-300:]}")
        rows.append(json.loads(out))
    calls = sum(row["calls"] for row in rows)
    return {"per_s": sum(row["calls"] / row["seconds"] for row in rows),
            "node_us": sum(row["cpu_s"][0] for row in rows) / calls * 1e6,
            "redis_us": statistics.mean(row["cpu_s"][1] for row in rows) / calls * 1e6}


def load_new_registry(options, program, folder, count):
    """A registry for each round: it keeps identities for their retention, and would be full after some rounds."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis(folder, "--appendonly", "no"))
        nodes = [stack.enter_context(start_node(program, folder, redis)) for _ in range(count)]
        for node in nodes:
            stack.enter_context(start_provider(program, folder, node))
        for node in nodes:
            await_call(program, node)
        return load_all(options, program, nodes, redis)


def measure_nodes(options, program, folder):
    rows = []
    for count in NODES:
        rounds = [load_new_registry(options, program, folder, count) for _ in range(options.rounds)]
        rows.append({"nodes": count, **gateway.median_row(rounds)})
        print(f"  {count} nodes: {rows[-1]['per_s']:,.0f} calls/s", flush=True)
    return rows


# ---- direct toolsets ------------------------------------------------------------------------


def commands_of(redis):
    """How often each command was run, by name."""
    lines = redis.ask("info", "commandstats").splitlines()
    return {line.split(":")[0][len("cmdstat_"):]: int(line.split("calls=")[1].split(",")[0])
            for line in lines if line.startswith("cmdstat_")}


def load_way_in(options, program, folder, way):
    """Caller at A, provider of the library at B: attached, or by streams of Redis."""
    with Redis(folder, "--appendonly", "no") as redis, start_node(program, folder, redis) as first, \
            start_node(program, folder, redis) as second:
        command = [program("gateway-worker-provider"), second.address, redis.url if way == "direct" else way]
        with gateway.Process(command, "ready", folder / "provider.log") as provider:
            await_call(program, first)
            pids = [first.pid, second.pid, redis.pid, provider.pid]
            rows = {streams: run_load(options, program, first.address, pids, "call", streams) for streams in (1, 128)}
            before = commands_of(redis)
            row = json.loads(subprocess.run(
                [program("grpc-load"), "--target", first.address, "--kind", "call", "--sleeps",
                 *cell_options(options, pids, 16)], capture_output=True, text=True, timeout=120, check=True).stdout)
            after = commands_of(redis)
    counts = {name: (after[name] - before.get(name, 0)) / row["calls"] for name in after}
    return rows, {name: round(count, 1) for name, count in counts.items() if count >= 0.05}


def measure_direct(options, program, folder):
    made = {way: load_way_in(options, program, folder, way) for way in ("attached", "direct")}
    print("  gateway CPU of a direct call, 128 in flight: "
          f"{sum(made['direct'][0][128][f'cpu_{i}_us'] for i in (0, 1)):.1f} us", flush=True)
    return [{"way": way, "in_flight": streams, "commands": commands, **row}
            for way, (rows, commands) in made.items() for streams, row in rows.items()]


def measure_memory(program, folder):
    with Redis(folder, "--appendonly", "no") as redis, start_node(program, folder, redis) as node:
        time.sleep(0.5)
        return {"idle_mb": gateway.rss_mb(node.pid), "redis_idle_mb": gateway.rss_mb(redis.pid)}


# ---- tables ---------------------------------------------------------------------------------


def verdict(is_met):
    return "" if is_met else " (missed)"


def calls_table(rows):
    lines = ["| Redis | in flight | | p50 | p99 | calls/s | p50 to raw + 2 echoes | calls/s to raw | to gathered | "
             "to goa-ai |", "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lead = f"| {row['persistence']} | {row['in_flight']} |"
        for name in ("echo", "raw", "gathered"):
            one = row[name]
            title = {"echo": "bare gRPC echo", "raw": "raw streams", "gathered": "raw streams, gathered"}[name]
            lines.append(f"{lead} {title} | {one['p50_us']:.0f} µs | {one['p99_us']:.0f} µs | {one['per_s']:,.0f} | | "
                         "| | |")
        for kind, title in KINDS.items():
            one, ratio = row[kind], row["ratios"][kind]
            is_alone = row["in_flight"] == 1
            p50 = f"{ratio['p50_ratio']:.2f}×" + (verdict(ratio["p50_ratio"] <= MAX_P50[kind]) if is_alone else "")
            rate = f"{ratio['rate_ratio']:.0%}" + ("" if is_alone else verdict(ratio["rate_ratio"] >= MIN_RATE[kind]))
            goa_ai = f"{ratio['goa_ai']:.0f}×" + ("" if is_alone else verdict(ratio["goa_ai"] >= MIN_GOA_AI))
            lines.append(f"{lead} **CallTool, {title}** | {one['p50_us']:.0f} µs | {one['p99_us']:.0f} µs | "
                         f"{one['per_s']:,.0f} | {p50} | {rate} | {ratio['gathered_ratio']:.0%} | {goa_ai} |")
    lines += [f"| | 1 to 128 | goa-ai v0.46.0, measured elsewhere | 1.7-1.8 ms (alone) | | 224-{GOA_AI['per_s']} | | | | 1 |"]
    lines += ["", "| CPU of a call | Redis | in flight | node A | node B | Redis itself | provider | client | all |",
              "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        for kind, title in KINDS.items():
            one = row[kind]
            parts = [one[f"cpu_{i}_us"] for i in range(len(PROCESSES))] + [one["client_us"]]
            lines.append(f"| {title} | {row['persistence']} | {row['in_flight']} | " +
                         " | ".join(f"{part:.1f} µs" for part in [*parts, sum(parts)]) + " |")
        raw = row["raw"]
        lines.append(f"| raw streams | {row['persistence']} | {row['in_flight']} | | | {raw['cpu_0_us']:.1f} µs | "
                     f"{raw['cpu_1_us']:.1f} µs | {raw['client_us']:.1f} µs | "
                     f"{raw['cpu_0_us'] + raw['cpu_1_us'] + raw['client_us']:.1f} µs |")
    return lines


def toolsets_table(figures):
    lines = ["", "| toolsets | calls/s at 128 | node A | node B | Redis | memory of A | memory of B |",
             "|---|---|---|---|---|---|---|"]
    for row in figures["rows"]:
        lines.append(f"| {row['toolsets']:,} | {row['per_s']:,.0f} | {row['cpu_0_us']:.1f} µs | "
                     f"{row['cpu_1_us']:.1f} µs | {row['cpu_2_us']:.1f} µs | {row['rss_mb'][0]:.1f} MB | "
                     f"{row['rss_mb'][1]:.1f} MB |")
    return lines + ["", f"CPU of a call with the more toolsets: {figures['cpu_ratio']:.2f} times that with the fewer."]


def nodes_table(rows):
    lines = ["", "| nodes | calls/s, identity, 128 in flight in all | CPU of the nodes | of Redis |", "|---|---|---|---|"]
    return lines + [f"| {row['nodes']} | {row['per_s']:,.0f} | {row['node_us']:.1f} µs | {row['redis_us']:.1f} µs |"
                    for row in rows]


def direct_table(rows):
    lines = ["", "| toolset | in flight | p50 | calls/s | nodes | Redis | provider |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {row['way']} | {row['in_flight']} | {row['p50_us']:.0f} µs | {row['per_s']:,.0f} | "
              f"{row['cpu_0_us'] + row['cpu_1_us']:.1f} µs | {row['cpu_2_us']:.1f} µs | {row['cpu_3_us']:.1f} µs |"
              for row in rows]
    lines += ["| goa-ai v0.46.0, measured elsewhere | 1 to 128 | | 224-299 | 262-463 µs | 650-1304 µs | 84-260 µs |", ""]
    for way in ("attached", "direct"):
        commands = next(row["commands"] for row in rows if row["way"] == way)
        lines.append(f"Commands of one call at Redis, {way}, nodes and provider together: " +
                     ", ".join(f"{name} {count}" for name, count in sorted(commands.items())) + ".")
    return lines


def markdown(figures):
    load = figures["load"]
    lines = [f"Load average {load[0]:.1f} before, {load[1]:.1f} after, {os.cpu_count()} cores.", ""]
    if "calls" in figures:
        lines += calls_table(figures["calls"])
    if "toolsets" in figures:
        lines += toolsets_table(figures["toolsets"])
    if "nodes" in figures:
        lines += nodes_table(figures["nodes"])
    if "direct" in figures:
        lines += direct_table(figures["direct"])
    if "memory" in figures:
        lines += ["", f"An idle node takes {figures['memory']['idle_mb']:.1f} MB, its Redis "
                  f"{figures['memory']['redis_idle_mb']:.1f} MB."]
    return "\n".join([*lines, ""])


def main():
    options = parse_arguments()
    program = gateway.program_finder(options.build)
    before = os.getloadavg()[0]
    figures = {}
    if not shutil.which("redis-server"):
        text = "The cluster is left out: redis-server is not here (apt-get install redis-server).\n"
    else:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            parts = {"calls": lambda: measure_calls(options, program, folder),
                     "toolsets": lambda: measure_toolsets(options, program, folder),
                     "nodes": lambda: measure_nodes(options, program, folder),
                     "direct": lambda: measure_direct(options, program, folder),
                     "memory": lambda: measure_memory(program, folder)}
            figures = {part: parts[part]() for part in options.only}
        figures["load"] = [before, os.getloadavg()[0]]
        text = markdown(figures)
    (options.build / "cluster.json").write_text(json.dumps(figures, indent=1) + "\n")
    (options.build / "cluster.md").write_text(text)
    print("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
