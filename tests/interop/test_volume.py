#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: thousands of calls of agents of goa-ai, imitated, through two nodes: none takes longer than a second, though
some agents drop the result that they read first; and when all is over, Redis holds nothing without an expiry but the
catalog and what a provider that is there needs. Then a provider is killed and started again: each call has one end.

    test_volume.py PEGBOARD [N_CALLS]          PEG_TEST_CALLS=10000: that many
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from interop import G1, HERE, TOOLSET, V1, await_healthy, await_true, cluster, needs_redis

import tap
from world import WAIT_S

N_CALLS = int(os.environ.get("PEG_TEST_CALLS") or (sys.argv[2] if len(sys.argv) > 2 else 10_000))
N_PROCESSES, AT_ONCE = 2, 3
DROP_EVERY = 200  # theirs did it in one call of 230 to 750
TIMEOUT_S = 60
LONGEST_S = 5.0  # a call that is polled for, or lost and swept up, takes ten
# A busy machine may hold up each of the four processes of a call as long as it held up the agents' heartbeat.
N_HELD_UP = 4

CATALOG = {"peg:registry:" + name for name in (
    "epoch", "secret", "map:toolsets", "map:toolsets:index", "map:providers", "map:providers:index", "map:nodes",
    "map:nodes:index")}
OF_A_PROVIDER = {f"pulse:stream:toolset:{TOOLSET}:requests", f"map:stream:toolset:{TOOLSET}:requests:sinks:content",
                 "map:sink:provider:keepalive:content"}

FIND_ENDLESS = """local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then found[#found + 1] = key end
end
return found"""


@contextlib.contextmanager
def provider_process(redis, node, grace_s=20.0):
    process = subprocess.Popen([sys.executable, os.path.join(HERE, "serve.py"), redis.address, node.address, TOOLSET,
                                str(grace_s)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait(WAIT_S)
        process.stdout.close()


def start_agents(redis, nodes, n_calls, drop_every):
    addresses = ",".join(node.address for node in nodes)
    return [subprocess.Popen([sys.executable, os.path.join(HERE, "agents.py"), redis.address, addresses, TOOLSET,
                              str(n_calls // N_PROCESSES), str(AT_ONCE), str(drop_every), str(TIMEOUT_S)],
                             stdout=subprocess.PIPE, text=True) for _ in range(N_PROCESSES)]


def reports(agents):
    found = []
    for process in agents:
        out, _ = process.communicate(timeout=540)
        assert process.returncode == 0, process.returncode
        found.append(json.loads(out))
        print("# " + out.strip())
    return found


def total(found, end):
    return sum(report["ends"].get(end, 0) for report in found)


def endless(redis):
    return {key.decode() for key in redis.ask("EVAL", FIND_ENDLESS, 0)}


def agents_in_the_map(redis):
    return [field for field in redis.ask("HKEYS", "map:sink:agent:keepalive:content") if not field.startswith(b"=")]


def test_ten_thousand_calls_have_no_stall_and_leave_nothing():
    with cluster(2, "--ping-interval", "2s") as (redis, nodes), G1(nodes[0].address) as service:
        service.register()
        with provider_process(redis, nodes[1]):
            for node in nodes:
                await_healthy(node.address)
            began = time.monotonic()
            found = reports(start_agents(redis, nodes, N_CALLS, DROP_EVERY))
            print(f"# {N_CALLS / (time.monotonic() - began):.0f} calls a second")
            assert total(found, "result") == N_CALLS, [report["ends"] for report in found]
            longest_s = max(report["longest_s"] for report in found)
            assert longest_s < LONGEST_S + N_HELD_UP * max(report["held_up_s"] for report in found), longest_s
            left = CATALOG | OF_A_PROVIDER
            await_true(lambda: endless(redis) <= left, f"only {left} have no expiry", 120)
            await_true(lambda: redis.ask("XLEN", f"pulse:stream:toolset:{TOOLSET}:requests") < 100,
                       "what was read is trimmed", 60)
            await_true(lambda: not agents_in_the_map(redis), "signs of life of agents that are gone are removed", 120)


def test_each_call_has_one_end_when_the_provider_is_killed_and_started_again():
    """Calls that it had read come again after the grace of its group: two seconds here, an option of theirs."""
    n_calls = min(N_CALLS, 1200)
    with cluster(2) as (redis, nodes), G1(nodes[0].address) as service, V1(nodes[1].address) as ours:
        service.register()
        with provider_process(redis, nodes[1], 2.0) as first:
            for node in nodes:
                await_healthy(node.address)
            agents = start_agents(redis, nodes, n_calls, 0)
            stream = f"pulse:stream:toolset:{TOOLSET}:requests"
            group = lambda: redis.ask("XINFO", "GROUPS", stream)[0]  # noqa: E731
            await_true(lambda: int(group()[group().index(b"entries-read") + 1] or 0) > n_calls // 4, "it is in the middle")
            first.kill()
            first.wait(WAIT_S)
        with provider_process(redis, nodes[0], 2.0):
            found = reports(agents)
            await_healthy(nodes[1].address)
            assert ours.call(TOOLSET, "echo.say", {"text": "after"}) == {"text": "after"}
            assert total(found, "result") + total(found, "refused") == n_calls, [report["ends"] for report in found]
            refusals = {name for report in found for name in report["refusals"]}
            assert refusals <= {"service_unavailable"}, refusals
            assert total(found, "result") > n_calls // 2, found


def test_a_caller_that_waits_has_one_end_when_the_provider_is_killed():
    with cluster(2) as (redis, nodes), G1(nodes[0].address) as service, V1(nodes[1].address) as ours:
        service.register()
        with provider_process(redis, nodes[1], 1.0) as first:
            await_healthy(nodes[1].address)
            first.send_signal(signal.SIGSTOP)
            stream = f"pulse:stream:toolset:{TOOLSET}:requests"
            started = ours.ask("StartTool", toolset=TOOLSET, tool="echo.say", payload=b'{"text":"x"}', timeout_ms=25000)
            await_true(lambda: redis.ask("XLEN", stream) > 0, "the call is on its stream")
            first.kill()
            first.wait(WAIT_S)
        with provider_process(redis, nodes[0], 1.0):
            answer = ours.ask("AwaitTool", call_id=started.call_id, timeout_ms=25000)
            assert json.loads(answer.result) == {"text": "x"}, answer
            again = ours.ask("AwaitTool", call_id=started.call_id, timeout_ms=25000)
            assert again.result == answer.result


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
