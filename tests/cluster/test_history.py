#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what went wrong in the systems before this one does not go wrong here. docs/history.md has the list, and which
test covers which entry; here are those that need several real nodes, and a check that the page names tests that exist.

    test_history.py PEGBOARD
"""

import glob
import os
import re
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from test_cluster import Redis, await_health, call_until_taken, is_healthy  # noqa: E402
from world import (BRIEF, SILENT, WAIT_S, Caller, Gateway, Provider, await_true, outcome, toolset,  # noqa: E402
                   v1)

STALE_S = 4  # SILENT: three missed pings of one second, and one


def await_pings(provider, n=2):
    for _ in range(n):
        last = provider.last_ping
        await_true(lambda last=last: provider.last_ping != last, "the provider is pinged")


class Nodes:
    """Two nodes that ping each second, on one Redis."""

    def __enter__(self):
        self.redis = Redis().start()
        self.nodes = [self.start_node(), self.start_node()]
        self.callers = [Caller(node) for node in self.nodes]
        return self

    def start_node(self):
        return Gateway("--redis", "unix://" + self.redis.socket, *BRIEF, *SILENT).start()

    def __exit__(self, *_):
        for caller in self.callers:
            caller.close()
        for node in self.nodes:
            node.stop()
            shutil.rmtree(node.folder, ignore_errors=True)
        self.redis.__exit__()

    def is_healthy_everywhere(self, name="sums"):
        return all(is_healthy(caller, name) for caller, node in zip(self.callers, self.nodes)
                   if node.process.poll() is None)


def test_pings_outlive_the_rpc_that_registered():  # 1
    with Nodes() as world:
        registrar = Caller(world.nodes[0])
        registrar.ask("Register", toolset("sums"))
        with Provider(world.nodes[0], "sums", registers=False) as provider:
            registrar.close()
            await_pings(provider, 3)
            assert world.is_healthy_everywhere()


def test_pings_go_on_when_another_node_is_killed():  # 2
    with Nodes() as world, Provider(world.nodes[1], "sums") as provider:
        await_health(world.nodes)
        world.nodes[0].process.kill()
        world.nodes[0].process.wait(WAIT_S)
        await_pings(provider, STALE_S + 1)
        assert is_healthy(world.callers[1], "sums")


def test_pings_go_on_when_another_node_ends_in_good_order():  # 3
    with Nodes() as world, Provider(world.nodes[1], "sums") as provider:
        await_health(world.nodes)
        assert world.nodes[0].stop() == 0
        await_pings(provider, STALE_S + 1)
        assert is_healthy(world.callers[1], "sums")


def test_a_new_node_pings_and_sees_what_was_there_before():  # 2, 6
    with Nodes() as world, Provider(world.nodes[0], "sums"):
        await_health(world.nodes)
        late = world.start_node()
        world.nodes.append(late)
        world.callers.append(Caller(late))
        with Provider(late, "late") as provider:
            await_pings(provider)
            await_true(world.is_healthy_everywhere, "the old toolset is healthy at the new node")
            await_true(lambda: world.is_healthy_everywhere("late"), "the new one at the old nodes")


def test_pings_go_on_after_redis_was_away():  # 8
    with Nodes() as world, Provider(world.nodes[0], "sums") as provider:
        await_health(world.nodes)
        world.redis.stop()
        await_pings(provider)
        world.redis.start()
        await_pings(provider, STALE_S + 1)
        await_true(world.is_healthy_everywhere, "every node sees the toolset healthy again")


def test_a_flush_is_healed_by_both_nodes_and_later_writes_are_seen():  # 11, 12
    with Nodes() as world, Provider(world.nodes[0], "sums") as provider, Provider(world.nodes[1], "texts"):
        await_health(world.nodes)
        await_health(world.nodes, "texts")
        world.redis.command("flushall")
        for name in ("sums", "texts"):
            await_true(lambda name=name: world.redis.command("hlen", "peg:registry:map:toolsets") == "2" and
                       world.is_healthy_everywhere(name), "all of it is there again")
        assert call_until_taken(world.callers[1], provider) == b"3"
        for number, caller in enumerate(world.callers):
            caller.ask("Register", toolset(f"later-{number}"))
            for other in world.callers:
                await_true(lambda other=other, number=number: f"later-{number}" in [
                    item.name for item in other.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets],
                           "a registration after the flush is seen at every node")


def test_one_tool_call_id_in_two_runs_is_two_calls():  # 13
    with Nodes() as world, Provider(world.nodes[0], "sums") as provider:
        await_health(world.nodes)
        for run_id, result in (("run-1", b"1"), ("run-2", b"2")):
            future = world.callers[1].start_call("sums", meta=v1("CallMeta", run_id=run_id, tool_call_id="call-1"))
            provider.answer(provider.next_call(), result)
            assert outcome(future).result == result
        again = world.callers[0].call("sums", meta=v1("CallMeta", run_id="run-1", tool_call_id="call-1"))
        assert again.result == b"1" and again.attached


def test_a_registration_is_listed_at_its_node_at_once():  # 14
    with Nodes() as world:
        for number in range(100):
            world.callers[0].ask("Register", toolset(f"set-{number}"))
            names = [item.name for item in world.callers[0].ask("ListToolsets", v1("ListToolsetsRequest")).toolsets]
            assert f"set-{number}" in names, (number, names)


def test_calls_that_wait_do_not_poll_redis():  # 19
    """A coordinator looks at what is overdue, less and less often: the reference did so ten times a second."""
    def rate(n_pings):
        before, began = commands(), time.monotonic()
        await_pings(provider, n_pings)
        return (commands() - before) / (time.monotonic() - began)

    def commands():
        return int(re.search(r"total_commands_processed:(\d+)", world.redis.command("info", "stats"))[1])

    with Nodes() as world, Provider(world.nodes[0], "sums", credits=50) as provider:
        await_health(world.nodes)
        idle = rate(2)
        futures = [world.callers[1].start_call("sums") for _ in range(50)]
        calls = [provider.next_call() for _ in futures]
        busy = rate(6)
        for call in calls:
            provider.answer(call, b"1")
        assert all(outcome(future).result == b"1" for future in futures)
        assert busy - idle < 50 * 5, f"{busy} commands a second for 50 calls, {idle} without"


def test_ids_of_the_greatest_length_are_taken():  # 21
    with Nodes() as world, Provider(world.nodes[0], "sums") as provider:
        await_health(world.nodes)
        meta = v1("CallMeta", run_id="r" * 256, tool_call_id="t" * 256)
        future = world.callers[1].start_call("sums", meta=meta)
        provider.answer(provider.next_call(), b"1")
        assert outcome(future).result == b"1"
        assert world.callers[0].call("sums", meta=meta).attached


def test_the_page_names_a_test_for_each_failure():
    with open(os.path.join(ROOT, "docs", "history.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| (\d+) \|(.*)\|(.*)\|$", file.read(), re.M)
    assert [int(row[0]) for row in rows] == list(range(1, 24)), rows
    for number, _, covered in rows:
        tests = re.findall(r"`(tests/\S+): (\w+)`", covered)
        assert tests, number
        for path, name in tests:
            assert glob.glob(os.path.join(ROOT, path)), (number, path)
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                assert re.search(rf"\b(test_|TEST\(|TORTURE\()?{name}\b", file.read()), (number, path, name)


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
