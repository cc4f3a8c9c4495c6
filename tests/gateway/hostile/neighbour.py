#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A well-behaved provider and caller in a process of their own, beside whoever is hostile.

    neighbour.py ADDRESS OTHER TOKEN|- PAUSE

Calls its own tool, one call after the other, PAUSE seconds between them. Each line of its input begins a phase of that
name; in the phase `stormy` every other call goes to the gateway OTHER, and its time to the phase `aside`. At the end of
the input it says, in JSON, how long the calls of each phase took and which failed.
"""

import json
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "promises"))
sys.dont_write_bytecode = True

from world import Caller, Echo, Failed, Provider  # noqa: E402


class At:
    def __init__(self, address):
        self.address = address


class Phases:
    """Times and failures by phase; the one that runs is set by another thread."""

    def __init__(self):
        self.now = "begin"
        self.figures = {}
        for name in ("calm", "stormy", "aside"):
            self.of(name)

    def of(self, name):
        return self.figures.setdefault(name, {"ms": [], "failed": []})


def call_once(caller, figures, pause_s):
    began = time.monotonic()
    try:
        caller.call("neighbour")
        figures["ms"].append((time.monotonic() - began) * 1000)
    except Failed as error:
        figures["failed"].append(f"{error.name} {error.message}")
    time.sleep(pause_s)


def call_until_done(caller, other, phases, is_done, pause_s):
    while not is_done.is_set():
        phase = phases.now
        call_once(caller, phases.of(phase), pause_s)
        if phase == "stormy":
            call_once(other, phases.of("aside"), pause_s)


def told(times):
    times = sorted(times)
    if not times:
        return {"n": 0, "p50": 0, "p99": 0}
    return {"n": len(times), "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def main(address, other_address, token, pause_s):
    token = None if token == "-" else token
    phases = Phases()
    is_done = threading.Event()
    with Caller(At(address), token) as caller, Caller(At(other_address)) as other, \
            Provider(At(address), "neighbour", token=token, credits=16) as provider, \
            Provider(At(other_address), "neighbour", credits=16) as other_provider:
        Echo(provider)
        Echo(other_provider)
        caller.call("neighbour")
        other.call("neighbour")
        print("ready", flush=True)
        thread = threading.Thread(target=call_until_done, args=(caller, other, phases, is_done, float(pause_s)))
        thread.start()
        for line in sys.stdin:
            phases.now = line.strip()
        is_done.set()
        thread.join()
        print(json.dumps({name: told(figures["ms"]) | {"failed": figures["failed"][:3]}
                          for name, figures in phases.figures.items()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
    os._exit(0)  # what gRPC's threads still do is of no interest
