#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Agents of goa-ai, imitated, in a process of their own: makes calls, some at once, and says in JSON how they ended.

    agents.py REDIS GATEWAY TOOLSET N_CALLS N_AT_ONCE DROP_EVERY TIMEOUT_S

Each call has a text of its own, which is to come back. Every DROP_EVERY-th agent drops the result that it reads first,
as theirs do by chance; 0: none. Gateways are separated by commas, and used in turn.
"""

import collections
import itertools
import json
import sys
import threading
import time
import uuid

from interop import G1, META, Failed

from goa.agent import Agent, Lost
from goa.messages import Failure
from goa.redis import Pool

SPINS = (0, 3, 0, 29)  # two calls were captured, with 0 and 29
BEAT_S = 0.02


class Heartbeat(threading.Thread):
    """How long this machine has held up a thread that only wants to be awake."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest_s = 0.0
        self.start()

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(BEAT_S)
            now = time.monotonic()
            self.longest_s, last = max(self.longest_s, now - last - BEAT_S), now


class Agents:
    def __init__(self, redis, gateways, toolset, drop_every, timeout_s):
        self.agents = [Agent(Pool(redis), G1(gateway).call) for gateway in gateways.split(",")]
        self.toolset, self.drop_every, self.timeout_s = toolset, drop_every, timeout_s
        self.ends = collections.Counter()
        self.refusals, self.took_s = collections.Counter(), []
        self.numbers = itertools.count(1)
        self.heartbeat = Heartbeat()

    def one(self, number):
        text = f"{number} {uuid.uuid4()} " + "x" * 400
        drops = bool(self.drop_every) and number % self.drop_every == 0
        agent = self.agents[number % len(self.agents)]
        began = time.monotonic()
        try:
            answer = agent.execute(self.toolset, "echo.say", {"text": text}, META, self.timeout_s, drops_result=drops,
                                   n_spins=SPINS[number % len(SPINS)])
            self.ends["result" if answer.value == {"text": text} else "wrong"] += 1
            self.took_s.append(time.monotonic() - began)
        except Failure as failure:
            self.ends["error"] += 1
            self.refusals[failure.code] += 1
        except Failed as failed:
            self.ends["refused"] += 1
            self.refusals[failed.name] += 1
        except Lost:
            self.ends["lost"] += 1

    def work(self, n_calls):
        while (number := next(self.numbers)) <= n_calls:
            self.one(number)

    def run(self, n_calls, n_at_once):
        threads = [threading.Thread(target=self.work, args=(n_calls,)) for _ in range(n_at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def report(self):
        took = sorted(self.took_s) or [0.0]
        return {"held_up_s": self.heartbeat.longest_s, "ends": self.ends, "refusals": self.refusals, "longest_s": took[-1], "p50_s": took[len(took) // 2],
                "p99_s": took[len(took) * 99 // 100], "over_1s": sum(1 for second in took if second > 1)}


def main():
    redis, gateways, toolset = sys.argv[1:4]
    n_calls, n_at_once, drop_every = map(int, sys.argv[4:7])
    agents = Agents(redis, gateways, toolset, drop_every, float(sys.argv[7]))
    agents.run(n_calls, n_at_once)
    print(json.dumps(agents.report()))


main()
