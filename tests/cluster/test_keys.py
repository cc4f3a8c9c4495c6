#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What calls leave in Redis goes: keys and memory stay the same however long a cluster works, and every key has an
expiry but those of the catalog, the epoch and the secret.

Results are kept for 300 ms, a thousandth of the default, so a day of retention is a minute and a half here.

    test_keys.py PEGBOARD
"""

import contextlib
import os
import shutil
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from test_cluster import Redis, await_health  # noqa: E402
from world import BRIEF, Caller, Echo, Failed, Gateway, Provider, await_true, v1  # noqa: E402

PREFIX = "peg:registry:"
FOR_EVER = {PREFIX + name for name in ("epoch", "secret", "map:toolsets", "map:toolsets:index", "map:providers",
                                       "map:providers:index", "map:nodes", "map:nodes:index")}
KEEP = ("--result-mapping-ttl", "300ms")
DEADLINE_S = 2
N_PHASES, PHASE_S, N_CALLERS = 4, 3, 6
LARGE = b'{"n":1,"pad":"' + b"x" * 100_000 + b'"}'
# of what is left after a phase: tables of Redis that shrink later, and buffers of its clients
SPARE_BYTES = 400_000

# The names of all keys that have no expiry.
FIND_ENDLESS = """local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then found[#found + 1] = key end
end
return found"""


def endless_keys(redis):
    return set(redis.command("eval", FIND_ENDLESS, "0").split())


def used_memory(redis):
    lines = dict(line.split(":", 1) for line in redis.command("info", "memory").split("\n") if ":" in line)
    return int(lines["used_memory"].strip())


class Load:
    """Callers of both nodes: calls without an identity, with one, with one that both nodes are asked for at once,
    with a large payload, and given up by their callers."""

    def __init__(self, nodes, number):
        self.nodes, self.number, self.is_over = nodes, number, False
        self.n_answered, self.n_asked = 0, 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(N_CALLERS)]

    def run(self, worker):
        with contextlib.ExitStack() as stack:
            callers = [stack.enter_context(Caller(node)) for node in self.nodes]
            i = 0
            while not self.is_over:
                i += 1
                self.ask(callers[i % 2], callers[(i + 1) % 2], i, f"{self.number}-{worker}-{i}")

    def ask(self, caller, other, i, key):
        payload = LARGE if i % 10 == 0 else b'{"n":1}'
        more = {"idempotency_key": key} if i % 3 else {}
        futures = [caller.start_call("sums", payload=payload, timeout=DEADLINE_S, **more)]
        if i % 3 == 2:
            futures.append(other.start_call("sums", payload=payload, timeout=DEADLINE_S, **more))
        if i % 7 == 0:
            futures[0].cancel()
        answered = sum(self.is_answered(future) for future in futures)
        with self.lock:
            self.n_asked += len(futures)
            self.n_answered += answered

    @staticmethod
    def is_answered(future):
        try:
            future.result(DEADLINE_S + 5)
            return True
        except Exception:  # pylint: disable=broad-except
            return False  # cancelled, or late on a busy machine: what it leaves matters, not how it ended

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def run_phase(redis, nodes, number):
    """Some seconds of calls, in which a provider comes and goes; returns how many were answered."""
    with Provider(nodes[1], "sums", credits=64) as provider:
        await_health(nodes)
        echo = Echo(provider)
        with Load(nodes, number) as load:
            until = time.monotonic() + PHASE_S
            while time.monotonic() < until:
                assert endless_keys(redis) <= FOR_EVER, endless_keys(redis) - FOR_EVER
                time.sleep(0.2)
        echo.is_stopped = True
        echo.join()
        provider.leave()
    return load.n_answered


def keys_left(redis):
    """Without leases, which come and go."""
    return {key for key in redis.command("keys", "*").split() if not key.startswith(PREFIX + "lease:")}


def test_keys_and_memory_stay_the_same_however_many_calls_there_were():
    left = FOR_EVER | {PREFIX + "loops"}
    memory, answered = [], []
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        nodes = [stack.enter_context(Gateway("--redis", "unix://" + redis.socket, *BRIEF, *KEEP)) for _ in range(2)]
        for number in range(N_PHASES):
            answered.append(run_phase(redis, nodes, number))
            # a call without an identity that was given up is there for 15 s beyond its deadline
            await_true(lambda: keys_left(redis) <= left, f"only {left} are left, not {sorted(keys_left(redis))[:20]}", 40)
            memory.append(used_memory(redis))
    assert min(answered) >= 20, answered
    assert max(memory[1:]) - memory[0] < SPARE_BYTES, memory
    print(f"# answered {answered}, bytes of Redis {memory}")


def test_each_key_that_has_no_expiry_is_known_by_name():
    with Redis() as redis, Gateway("--redis", "unix://" + redis.socket, *BRIEF, *KEEP) as node, \
            Provider(node, "sums"), Caller(node) as caller:
        await_health([node])
        caller.ask("Register", v1("RegisterRequest", name="other", tools=[v1(
            "Tool", name="add", description="adds", input_schema=b'{"type":"object"}')]))
        assert endless_keys(redis) == FOR_EVER, endless_keys(redis) ^ FOR_EVER
        with contextlib.suppress(Failed):
            caller.call("other", payload=b"{}", idempotency_key="nobody provides it", timeout=DEADLINE_S)
        assert endless_keys(redis) == FOR_EVER, endless_keys(redis) ^ FOR_EVER


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
