#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A well-behaved provider and caller in a process of their own, beside whoever is hostile.

    neighbour.py ADDRESS TOKEN|-

Calls its own tool, one call after the other. Each line of its input begins a phase of that name;
at the end of the input it says, in JSON, how long the calls of each phase took and which failed.
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

PAUSE_S = 0.001


class At:
    def __init__(self, address):
        self.address = address


def call_until_done(caller, phases, is_done):
    while not is_done.is_set():
        figures = phases[-1][1]
        began = time.monotonic()
        try:
            caller.call("neighbour")
            figures["ms"].append((time.monotonic() - began) * 1000)
        except Failed as error:
            figures["failed"].append(f"{error.name} {error.message}")
        time.sleep(PAUSE_S)


def told(times):
    times = sorted(times)
    if not times:
        return {"n": 0, "p50": 0, "p99": 0}
    return {"n": len(times), "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def main(address, token):
    token = None if token == "-" else token
    phases = [("begin", {"ms": [], "failed": []})]
    is_done = threading.Event()
    with Caller(At(address), token) as caller, \
            Provider(At(address), "neighbour", token=token, credits=16) as provider:
        Echo(provider)
        caller.call("neighbour")
        print("ready", flush=True)
        thread = threading.Thread(target=call_until_done, args=(caller, phases, is_done))
        thread.start()
        for line in sys.stdin:
            phases.append((line.strip(), {"ms": [], "failed": []}))
        is_done.set()
        thread.join()
        print(json.dumps({name: told(figures["ms"]) | {"failed": figures["failed"][:3]}
                          for name, figures in phases}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    os._exit(0)  # what gRPC's threads still do is of no interest
