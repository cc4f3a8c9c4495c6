#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures search: what it finds, beside BM25, and what it takes; bench/run calls it. See bench/README.md.

  bench/search/measure.py BUILD [--quick] [--data DIR]

BUILD is a directory that bench/run has built. DIR has tools.jsonl and queries.jsonl, lines with name and description
(and input_schema), and with query and tool. BM25 is PyPI's bm25s, installed into a venv in BUILD. Results: tables on
stdout; search.md and search.json in BUILD.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SOURCE.parent / "gateway"))
sys.dont_write_bytecode = True

import measure as gateway_bench  # noqa: E402  (needs the path above)

TOOLSETS = 10000


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="fewer questions over RPCs")
    parser.add_argument("--data", type=pathlib.Path, default=SOURCE.parent.parent.parent / "shared/data/tool-search",
                        help="[../shared/data/tool-search beside the repository]")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def run_lines(*command):
    made = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in made.stdout.splitlines()]


# ---- what is found -----------------------------------------------------------------------


def install_bm25s(folder):
    """The Python of a venv that has bm25s; None with a reason on stderr if it can't be had."""
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        for command in ([sys.executable, "-m", "venv", str(folder)],
                        [str(python), "-m", "pip", "install", "--quiet", "bm25s", "PyStemmer"]):
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode:
                print("bench/search: bm25s can't be installed, so BM25 is left out; it said:\n" + made.stderr[-500:],
                      file=sys.stderr)
                return None
        (folder / "installed").touch()
    return python


def measure_quality(options, bench):
    (ours,) = run_lines(bench, "quality", options.data)
    rows = [{"name": "pegboard"} | ours]
    python = install_bm25s(options.build / "search-peers")
    if python:
        tokens = options.build / "search-tokens.txt"
        with tokens.open("w") as out:
            subprocess.run([bench, "tokens", str(options.data)], check=True, stdout=out)
        (peers,) = run_lines(python, "-B", SOURCE / "peers.py", options.data, tokens)
        rows.append({"name": f"BM25 (bm25s {peers['bm25s']}), our tokens"} | peers["ours"])
        rows.append({"name": f"BM25 (bm25s {peers['bm25s']}), its own tokens"} | peers["own"])
    return rows


# ---- what it takes -----------------------------------------------------------------------


def cpu_us(pid):
    """Of all threads so far."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1000


def measure_rpcs(options, program, bench):
    rows = []
    n = 300 if options.quick else 2000
    with tempfile.TemporaryDirectory() as name:
        with gateway_bench.start_gateway(program, pathlib.Path(name), "--store", "memory") as gateway:
            subprocess.run([bench, "fill", str(options.data), gateway.address, str(TOOLSETS)], check=True)
            for kind in ("words", "sentences"):
                run_lines(bench, "ask", options.data, gateway.address, kind, 100)
                before = cpu_us(gateway.pid)
                (row,) = run_lines(bench, "ask", options.data, gateway.address, kind, n)
                rows.append(row | {"cpu_us": (cpu_us(gateway.pid) - before) / n})
            rows.append({"what": "memory", "rss_mb": gateway_bench.rss_mb(gateway.pid)})
    return rows


# ---- tables ------------------------------------------------------------------------------


def markdown(figures):
    lines = [f"Search: {figures['questions']:,} questions, {figures['tools']} tools, each a toolset", "",
             "| | recall@1 | recall@5 | recall@10 | nDCG@10 |", "|---|---|---|---|---|"]
    for row in figures["quality"]:
        lines.append(f"| {row['name']} | {row['recall_1']:.1f} | {row['recall_5']:.1f} | {row['recall_10']:.1f} | "
                     f"{row['ndcg_10']:.1f} |")
    lines += ["", f"| {TOOLSETS:,} toolsets | CPU of a search, p50 | p99 | RPC, p50 | p99 | gateway's CPU for an RPC |",
              "|---|---|---|---|---|---|"]
    alone = {row["what"]: row for row in reversed(figures["alone"]) if "p50_us" in row}
    for row in figures["rpcs"]:
        if "p50_us" in row:
            mine = alone[row["what"]]
            lines.append(f"| {row['what']} | {mine['p50_us']:.0f} µs | {mine['p99_us']:.0f} µs | {row['p50_us']:.0f} µs "
                         f"| {row['p99_us']:.0f} µs | {row['cpu_us']:.0f} µs |")
    return "\n".join(lines) + "\n"


def main():
    options = parse_arguments()
    program = gateway_bench.program_finder(options.build)
    bench = program("search-bench")
    if not (options.data / "queries.jsonl").exists():
        text = f"Search: left out, as {options.data} has no queries.jsonl; --data names another folder.\n"
        figures = {"skipped": text}
    else:
        figures = {"tools": len((options.data / "tools.jsonl").read_text().splitlines()),
                   "questions": len((options.data / "queries.jsonl").read_text().splitlines()),
                   "quality": measure_quality(options, bench),
                   "alone": run_lines(bench, "speed", options.data, TOOLSETS),
                   "rpcs": measure_rpcs(options, program, bench)}
        text = markdown(figures)
    print(text)
    (options.build / "search.md").write_text(text)
    (options.build / "search.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
