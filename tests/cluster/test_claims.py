#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what the brief says of a clustered registry is so. docs/cluster.md lists its claims, each with a test; here are
those that no other file shows, and a check that the page names tests that exist.

    test_claims.py PEGBOARD
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
from test_cluster import Redis, await_health, cluster, is_healthy  # noqa: E402
from world import (BRIEF, SILENT, Caller, Gateway, Provider, await_true, fails_as, failure, outcome,  # noqa: E402
                   toolset, v1)


def names_at(caller, **query):
    return [item.name for item in caller.ask("ListToolsets", v1("ListToolsetsRequest", **query)).toolsets]


# ---- registrations ----------------------------------------------------------------------------

def test_nodes_of_another_name_on_the_same_redis_are_another_registry():
    with Redis() as redis, redis.node() as first, \
            Gateway("--redis", "unix://" + redis.socket, "--name", "other", *BRIEF) as second, \
            Caller(first) as caller, Caller(second) as stranger, Provider(first, "sums") as provider:
        provider.ready()
        await_health([first])
        assert names_at(caller) == ["sums"] and names_at(stranger) == []
        with fails_as("not_found"):
            stranger.call("sums")
        with Provider(second, "sums") as other:
            other.ready()
            await_health([second])
            future = stranger.start_call("sums", idempotency_key="key")
            other.answer(other.next_call(), b"2")
            assert outcome(future).result == b"2"
            future = caller.start_call("sums", idempotency_key="key")
            provider.answer(provider.next_call(), b"1")
            assert outcome(future).result == b"1", "the same key is another call there"


def test_discovery_answers_the_same_at_every_node():
    with cluster(3) as (_, nodes, callers):
        callers[0].ask("Register", toolset("maps/city", description="streets of towns", tags=["geo"], version="1.2.0"))
        callers[1].ask("Register", toolset("sums", description="adds numbers", tags=["math"]))
        for caller in callers:
            await_true(lambda caller=caller: len(names_at(caller)) == 2, "both are listed")
            assert names_at(caller) == ["maps/city", "sums"] and names_at(caller, tags=["geo"]) == ["maps/city"]
            hits = caller.ask("Search", v1("SearchRequest", query="street")).hits
            assert [hit.toolset.name for hit in hits] == ["maps/city"], hits
        asked = [caller.ask("GetToolset", v1("GetToolsetRequest", name="maps/city")) for caller in callers]
        assert asked[0] == asked[1] == asked[2], asked
        assert asked[0].tools[0].input_schema and asked[0].toolset.version == "1.2.0", asked[0]


def test_toolsets_in_memory_outlive_every_node_that_was_there_when_they_came():
    with cluster(2) as (redis, nodes, callers):
        callers[0].ask("Register", toolset("sums"))
        await_true(lambda: names_at(callers[1]) == ["sums"], "it is shared")
        nodes[0].process.kill()
        with redis.node() as late, Caller(late) as caller:
            await_true(lambda: names_at(caller) == ["sums"], "a node that came later has it")
            nodes[1].process.kill()
            assert names_at(caller) == ["sums"]
            with Provider(late, "sums", registers=False) as provider:
                provider.ready()
                await_health([late])


# ---- health -----------------------------------------------------------------------------------

def test_a_silent_provider_is_unhealthy_at_every_node_and_fails_calls_at_once():
    with Redis() as redis:
        options = ("--redis", "unix://" + redis.socket, *BRIEF, *SILENT)
        with Gateway(*options) as first, Gateway(*options) as second, Caller(first) as one, Caller(second) as two, \
                Provider(first, "sums") as provider:
            provider.ready()
            await_health([first, second])
            provider.answers_pings = False
            for caller in (one, two):
                await_true(lambda caller=caller: not is_healthy(caller, "sums"), "it is unhealthy")
                began = time.monotonic()
                with fails_as("service_unavailable"):
                    caller.call("sums")
                assert time.monotonic() - began < 5, "it does not wait for the time of the call"
            assert one.health("sums").last_pong_unix_ms == two.health("sums").last_pong_unix_ms
            provider.answers_pings = True
            await_health([first, second])


def test_one_node_pings_a_provider():
    """Pings are numbered: were there two nodes that ping, there would be two in an interval."""
    with Redis() as redis:
        options = ("--redis", "unix://" + redis.socket, *BRIEF, *SILENT)
        with Gateway(*options) as first, Gateway(*options) as second, Provider(second, "sums") as provider:
            provider.ready()
            await_health([first, second])

            def number():
                return int(provider.last_ping.rsplit("/", 1)[1])
            await_true(lambda: provider.last_ping, "it is pinged")
            began, first_number = time.monotonic(), number()
            await_true(lambda: number() >= first_number + 4, "it is pinged again")
            intervals = time.monotonic() - began  # of a second each
            assert number() - first_number <= intervals + 1.5, (first_number, provider.last_ping, intervals)


# ---- calls ------------------------------------------------------------------------------------

def test_a_result_may_be_emitted_at_any_node():
    with cluster(3) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        future = callers[0].start_call("sums", idempotency_key="key")
        call = provider.next_call()
        callers[2].ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id, attempt=call.attempt,
                                            result=b"42"))
        assert outcome(future).result == b"42"


def test_no_session_is_bound_to_a_node():
    """Started at one node, awaited at the next, canceled at the third; then asked for again at each."""
    with cluster(3) as (_, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', idempotency_key="first")
        started = callers[0].ask("StartTool", request)
        call = provider.next_call()
        future = callers[1].begin("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))
        provider.answer(call, b"7")
        assert outcome(future).result == b"7"
        for caller in callers:
            again = caller.ask("CallTool", request)
            assert again.result == b"7" and again.attached, again
        request.idempotency_key = "second"
        started = callers[1].ask("StartTool", request)
        call = provider.next_call()
        future = callers[0].begin("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))
        callers[2].ask("CancelTool", v1("CancelToolRequest", call_id=started.call_id))
        assert provider.cancels.get(timeout=30).call_id == call.call_id
        provider.fail(call, "canceled", "as you wish")
        assert outcome(future).error.code == "canceled"


def test_arguments_are_checked_before_health_at_every_node():
    with cluster(2) as (_, nodes, callers):
        callers[0].ask("Register", toolset("sums"))
        for caller in callers:
            await_true(lambda caller=caller: names_at(caller) == ["sums"], "it is listed")
            with fails_as("validation_error"):
                caller.call("sums", payload=b'{"n":"x"}')
            with fails_as("service_unavailable"):
                caller.call("sums")


def test_a_node_that_is_added_serves_what_was_there():
    with cluster(1) as (redis, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        with redis.node() as late, Caller(late) as caller:
            await_health([late])
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"1")
            assert outcome(future).result == b"1"


def test_a_call_whose_provider_is_lost_with_its_node_ends_for_callers_of_others():
    with cluster(2) as (_, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        future = callers[1].start_call("sums")
        provider.next_call()
        nodes[0].process.kill()
        provider.cut()
        assert failure(future).name == "outcome_unknown"


# ---- the page ---------------------------------------------------------------------------------

def test_the_page_names_a_test_for_each_claim():
    with open(os.path.join(ROOT, "docs", "cluster.md"), encoding="utf-8") as file:
        page = file.read()
    section = page[page.index("## What the brief says"):]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*`tests/[^|]*) \|$", section, re.M)
    assert len(rows) >= 15, rows
    for claim, covered in rows:
        tests = re.findall(r"`(tests/\S+): (\w+)`", covered)
        assert tests, claim
        for path, name in tests:
            assert glob.glob(os.path.join(ROOT, path)), (claim, path)
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                assert re.search(rf"(def (test_)?|TEST\(|TORTURE\(){name}\b", file.read()), (claim, path, name)


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
