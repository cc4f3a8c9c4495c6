# SPDX-License-Identifier: Apache-2.0
"""Turns the rows of the grpc bench into text and Markdown."""

import math

OURS = "pegboard"
# What issue 5 asks for: requests per CPU second, ours to theirs; µs of server CPU in two cells.
RATIO_GOALS = {"grpc-js": 20, "gRPC core": 5, "grpc-go": 3}
CPU_GOALS = {(1, 128): 3.0, (128, 1): 8.0}
KINDS = {"echo": "unary echo", "chat": "ping-pong on open streams", "stream": "server streams of 1,000"}


def key_of(row):
    return row["kind"], row["conns"], row["streams"], row["tls"]


def cell_text(row):
    return f"{row['conns']} × {row['streams']}"


def progress(row):
    head = f"  {row['server']:<10} {'TLS  ' if row['tls'] else 'plain'} {row['kind']:<6} {cell_text(row):<8} {row['by']:<9}"
    if "error" in row:
        return f"{head} FAILED: {row['error']}"
    latency = f"  p50 {row['p50_us']:.0f} µs, p99 {row['p99_us']:.0f} µs" if "p50_us" in row else ""
    return f"{head} {row['per_s']:9.0f}/s  {row['server_us']:7.2f} µs of server CPU{latency}  {row['rss_kb'] / 1024:.1f} MB"


def good(rows, by):
    return [row for row in rows if "error" not in row and row["by"] == by]


def ratios(rows, by="grpc-load"):
    """(server, cell) -> how many times as many a CPU second of ours does."""
    ours = {key_of(row): row["per_cpu_s"] for row in good(rows, by) if row["server"] == OURS}
    return {(row["server"], key_of(row)): ours[key_of(row)] / row["per_cpu_s"]
            for row in good(rows, by) if row["server"] != OURS and key_of(row) in ours}


def ratio_text(value):
    return "" if value is None else f"{value:.1f}×"


def table(heads, lines, n_left=2):
    rule = ["---"] * n_left + ["---:"] * (len(heads) - n_left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule] + lines) + "\n"


def in_cells(rows):
    """The rows of one cell together, cells and servers in the order in which they first came."""
    order = {}
    for row in rows:
        order.setdefault(key_of(row), len(order))
    return sorted(rows, key=lambda row: order[key_of(row)])


def main_table(rows, what):
    heads = ["conns × at once", "server", f"{what}/s", "per CPU second", "server µs", "p50 µs", "p99 µs", "RSS MB", "ours is"]
    told, lines = ratios(rows), []
    for row in in_cells(good(rows, "grpc-load")):
        latency = [f"{row['p50_us']:.0f}", f"{row['p99_us']:.0f}"] if "p50_us" in row else ["", ""]
        lines.append([cell_text(row), row["server"], f"{row['per_s']:.0f}", f"{row['per_cpu_s']:.0f}", f"{row['server_us']:.2f}",
                      *latency, f"{row['rss_kb'] / 1024:.1f}", ratio_text(told.get((row["server"], key_of(row))))])
    return table(heads, lines)


def cross_table(rows):
    heads = ["conns × at once", "server", "server µs, grpc-load", "server µs, h2load", "ours is, grpc-load", "ours is, h2load"]
    ours = {(row["server"], key_of(row)): row for row in good(rows, "grpc-load")}
    by_load, by_h2load = ratios(rows), ratios(rows, "h2load")
    lines = []
    for row in in_cells(good(rows, "h2load")):
        key = row["server"], key_of(row)
        beside = ours.get(key)
        lines.append([cell_text(row) + (", TLS" if row["tls"] else ""), row["server"],
                      f"{beside['server_us']:.2f}" if beside else "", f"{row['server_us']:.2f}",
                      ratio_text(by_load.get(key)), ratio_text(by_h2load.get(key))])
    return table(heads, lines)


def memory_table(rows):
    heads = ["server", "idle MB", "peak MB", "idle MB, TLS", "peak MB, TLS"]
    lines = []
    for server in dict.fromkeys(row["server"] for row in rows):
        line = [server]
        for tls in (False, True):
            mine = [row for row in rows if row["server"] == server and row["tls"] == tls and "error" not in row]
            line += [f"{mine[0]['idle_kb'] / 1024:.1f}", f"{max(r['peak_kb'] for r in mine) / 1024:.1f}"] if mine else ["", ""]
        lines.append(line)
    return table(heads, lines, n_left=1)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def verdict(is_met):
    return "met" if is_met else "MISSED"


def in_how_many(told, goal):
    """In which cells a ratio reaches the goal."""
    missed = [f"{key[1]} × {key[2]}" for key, value in told.items() if value < goal]
    if not missed:
        return "met in every cell"
    return f"met in {len(told) - len(missed)} of {len(told)} cells, MISSED at {', '.join(missed)}"


def summary(rows):
    """Unary calls: the least and the mean ratio for each peer, and the goals."""
    lines = []
    for server in dict.fromkeys(row["server"] for row in rows if row["server"] != OURS):
        for tls in (False, True):
            mine = {key: value for (name, key), value in ratios(rows).items()
                    if name == server and key[0] == "echo" and key[3] == tls}
            if not mine:
                continue
            worst = min(mine, key=mine.get)
            line = (f"{server}{', TLS' if tls else ''}: a CPU second of ours answers {geometric_mean(mine.values()):.1f} times as "
                    f"many unary calls (geometric mean of {len(mine)} cells); least {mine[worst]:.1f} at {worst[1]} × {worst[2]}")
            if server in RATIO_GOALS and not tls:
                line += f"; goal {RATIO_GOALS[server]}: {in_how_many(mine, RATIO_GOALS[server])}"
            lines.append(line + ".")
    for row in good(rows, "grpc-load"):
        goal = CPU_GOALS.get((row["conns"], row["streams"]))
        if row["server"] == OURS and row["kind"] == "echo" and not row["tls"] and goal:
            lines.append(f"Server CPU of ours at {cell_text(row)}: {row['server_us']:.2f} µs; goal {goal:.0f} µs: "
                         f"{verdict(row['server_us'] <= goal)}.")
    return lines


def markdown(rows, servers, options):
    parts = ["Servers: " + ", ".join(f"{s.name} {s.version}".strip() for s in servers if s.command) + ". Each on one thread; "
             f"the load comes from one thread on the same machine; {options.seconds:g} s a cell."]
    parts += [f"{s.name} is left out: {s.reason}" for s in servers if s.reason]
    for kind, words in KINDS.items():
        for tls in (False, True):
            mine = [row for row in rows if row["kind"] == kind and row["tls"] == tls]
            if good(mine, "grpc-load"):
                parts.append(f"**gRPC: {words}, {'TLS' if tls else 'plain'}**")
                parts.append(main_table(mine, "requests" if kind == "echo" else "messages"))
    if good(rows, "h2load"):
        parts += ["**gRPC: the same calls from nghttp2's h2load, a client that is not ours**", cross_table(rows)]
    if rows:
        parts += ["**gRPC: memory of the server processes**", memory_table(rows)]
    parts += ["\n".join("- " + line for line in summary(rows))]
    parts += ["FAILED: " + progress(row).strip() for row in rows if "error" in row]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"
