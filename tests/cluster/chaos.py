#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random faults against real gateways on a real Redis: does every call get its one end?

    chaos.py [--build DIR] [--seed N] [--schedules M] [--jobs J] [--kind KIND] [--plant BUG] [--calls N]

Each schedule has three to five nodes, providers and callers over all of them, and faults drawn by its seed:
nodes are killed, stopped for longer than their lease and drained; providers die and lose their streams; Redis
is restarted with and without what it knew, flushed and replaced by its replica; connections to it break, stand
still and are slow; clocks jump. What happened is recorded from every side and held against the promises
(harness/checks.py). A seed makes the same schedule again; processes and the kernel decide when each step of
it happens, so what a seed finds once it may find only sometimes.

--kind     only faults of this kind: calm nodes stops providers network redis clocks kept all
--plant    with a bug, which is to be found: claim, fence
--calls    goes on with further seeds until so many calls were made

Failures leave their folder, with the history and the logs. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCHEDULE_S = 240


def arguments():
    parser = argparse.ArgumentParser(description="Random faults against a cluster.")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--schedules", type=int, default=1)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="schedules at once: they mostly wait")
    parser.add_argument("--kind")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--plant", choices=("claim", "fence"))
    parser.add_argument("--tap", action="store_true", help="as a test of meson")
    return parser.parse_args()


def tools_of(options):
    folder = os.path.join(os.path.abspath(options.build), "tests", "cluster")
    gateway = os.path.join(folder, "cluster_planted") if options.plant else os.path.join(
        os.path.abspath(options.build), "src", "cli", "pegboard")
    tools = {"pegboard": gateway, "check_history": os.path.join(folder, "cluster_check_history"),
             "clock_step": os.path.join(folder, "libcluster_clock_step.so"),
             "env": {"PLANT": options.plant} if options.plant else {}}
    for name in ("pegboard", "check_history", "clock_step"):
        if not os.path.exists(tools[name]):
            sys.exit(f"{tools[name]} is not there: build it first (ninja -C {options.build})")
    return tools


def run_schedule(options, tools, seed):
    """What schedule.py says of it; its folder stays if it failed."""
    folder = tempfile.mkdtemp(prefix=f"chaos-{seed}-")
    wanted = {"seed": seed, "folder": folder, "tools": tools, "kind": options.kind, "seconds": options.seconds}
    with open(os.path.join(folder, "schedule.log"), "w+", encoding="utf-8") as log:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["setpriv", "--pdeathsig", "KILL", sys.executable, os.path.join(HERE, "harness", "schedule.py"),
             json.dumps(wanted)], stdout=log, stderr=log, start_new_session=True)
        try:
            process.wait(SCHEDULE_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_group(process)
        log.seek(0)
        said = log.read()
    try:
        with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError):
        result = {"seed": seed, "kind": "?", "plan": f"seed {seed}", "counts": {},
                  "problems": [["harness", "it did not end: " + said[-2000:]]]}
    result["folder"] = folder
    if not result["problems"]:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def end_group(process):
    """The schedule and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def report(result):
    for promise, message in result["problems"][:5]:
        print(f"# {promise}: {message[:700]}")
    if result["problems"]:
        print(f"# {result['plan']}: {len(result['problems'])} promises broken; kept in {result['folder']}")
    sys.stdout.flush()


def main():
    options = arguments()
    tools = tools_of(options)
    first = options.seed if options.seed is not None else random.randrange(1 << 30)
    counts, kinds, promises = collections.Counter(), collections.Counter(), collections.Counter()
    n_failed = n_done = 0
    began = time.monotonic()
    print(f"# seeds from {first}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        seed = first
        running = set()
        results = []
        while n_done < options.schedules or counts["calls"] < options.calls:
            while len(running) < options.jobs and (n_done + len(running) < options.schedules or
                                                   counts["calls"] < options.calls):
                running.add(pool.submit(run_schedule, options, tools, seed))
                seed += 1
            done = next((task for task in running if task.done()), None)
            if not done:
                time.sleep(0.05)
                continue
            running.discard(done)
            result = done.result()
            n_done += 1
            results.append(result)
            report(result)
            n_failed += bool(result["problems"])
            counts.update(result["counts"])
            kinds[result["kind"]] += 1
            promises.update({promise for promise, _ in result["problems"]})
            if options.schedules > 20 and n_done % 20 == 0:
                print(f"# {n_done} schedules, {counts['calls']} calls, {n_failed} failed, {time.monotonic() - began:.0f} s",
                      flush=True)
    print(f"# {n_done} schedules in {time.monotonic() - began:.0f} s: {dict(kinds)}")
    for name in sorted(counts):
        print(f"#   {name}: {counts[name]}")
    if promises:
        print(f"# broken: {dict(promises)}")
    print(f"{n_done - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
