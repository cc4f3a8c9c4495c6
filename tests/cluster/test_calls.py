#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What happened to a call: `pegboard calls`, at one node alone and at a node of a cluster that had nothing to do with
the call.

    test_calls.py PEGBOARD
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

from test_cluster import Redis, await_health, cluster  # noqa: E402  (it says where the rest is)
from world import (PEGBOARD, WAIT_S, Caller, Gateway, Provider, await_true, fails_as, make_token, outcome,  # noqa: E402
                   token_file, tool, v1)
import tap  # noqa: E402


def run(gateway, *arguments, token=None):
    env = dict(os.environ, PEGBOARD_TOKEN=token) if token else None
    return subprocess.run([PEGBOARD, "calls", "--registry", gateway.address, *arguments], capture_output=True, text=True,
                          check=False, timeout=WAIT_S, env=env)


def described(gateway, *arguments, token=None):
    done = run(gateway, "--json", *arguments, token=token)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_unknown(gateway, *arguments, token=None):
    done = run(gateway, *arguments, token=token)
    return done.returncode == 1 and "(not_found)" in done.stderr


def start(caller, key, **more):
    request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', idempotency_key=key, **more)
    return caller.ask("StartTool", request)


def shown(provider):
    """What the name of a provider begins with; it goes on with a hash of its toolset and owner."""
    return provider.incarnation[:31]


def providers(told):
    return [attempt["provider"][:31] for attempt in told["attempts"]]


def node_of(gateway):
    done = subprocess.run([PEGBOARD, "cluster", "--json", "--registry", gateway.address], capture_output=True, text=True,
                          check=True, timeout=WAIT_S)
    (own,) = [item["id"] for item in json.loads(done.stdout)["nodes"] if item["answers"]]
    return own


# ---- one node ---------------------------------------------------------------------------------

def test_one_node_tells_of_a_call_that_waits_runs_and_has_ended():
    with Gateway("--store", "memory") as gateway, Provider(gateway, "sums", credits=1) as provider, \
            Caller(gateway) as caller:
        provider.ready()
        await_health([gateway])
        first = start(caller, "first")
        call = provider.next_call()
        second = start(caller, "second")
        told = described(gateway, first.call_id)
        assert (told["call_id"], told["state"], told["toolset"], told["tool"], told["principal"]) == \
            (first.call_id, "running", "sums", "add", "local"), told
        assert told["outcome"] is None and not told["coordinator_lost"] and not told["other_epoch"], told
        assert told["deadline_ms"] == first.deadline_unix_ms and told["admitted_ms"] < told["deadline_ms"], told
        (attempt,) = told["attempts"]
        assert (attempt["state"], attempt["node"], attempt["address"], attempt["attached"]) == \
            ("claimed", node_of(gateway), gateway.address, True), attempt
        assert providers(told) == [shown(provider)], told
        waits = described(gateway, second.call_id)
        assert waits["state"] == "waiting" and waits["attempts"] == [], waits
        provider.answer(call, b"12345")
        await_true(lambda: described(gateway, first.call_id)["state"] == "ended", "it has ended")
        told = described(gateway, "--toolset", "sums", "--idempotency-key", "first")
        assert told["outcome"] == {"kind": "result", "started": True, "error": "", "message": "", "result_bytes": 5}, told
        provider.fail(provider.next_call(), "no_sum", "not today")
        await_true(lambda: described(gateway, second.call_id)["state"] == "ended", "so has this one")
        told = described(gateway, second.call_id)
        assert told["outcome"] == {"kind": "error", "started": True, "error": "no_sum", "message": "not today",
                                   "result_bytes": 0}, told


def test_people_read_the_same():
    with Gateway("--store", "memory") as gateway, Provider(gateway, "sums") as provider, Caller(gateway) as caller:
        provider.ready()
        await_health([gateway])
        started = start(caller, "key")
        call = provider.next_call()
        lines = run(gateway, started.call_id).stdout.splitlines()
        assert lines[0] == f"call {started.call_id}: running", lines
        assert "  tool         sums add, for local" in lines, lines
        assert any(line.startswith("  attempt 1    claimed by provider " + shown(provider)) and " at node " in line
                   for line in lines), lines
        provider.answer(call, b"1")
        await_true(lambda: "  outcome      result of 1 bytes" in run(gateway, started.call_id).stdout, "its end")


def test_a_call_without_an_identity_is_known_while_it_runs():
    with Gateway("--store", "memory") as gateway, Provider(gateway, "sums") as provider, Caller(gateway) as caller:
        provider.ready()
        await_health([gateway])
        future = caller.start_call("sums")
        call = provider.next_call()
        told = described(gateway, call.call_id)
        assert (told["state"], told["toolset"], told["tool"], told["kept_until_ms"]) == ("running", "sums", "add", 0), told
        assert providers(told) == [shown(provider)], told
        provider.answer(call, b"1")
        outcome(future)
        assert is_unknown(gateway, call.call_id)


def test_nothing_is_known_of_calls_that_never_were():
    with Gateway("--store", "memory") as gateway:
        for arguments in (["0" * 32], ["0" * 64], ["--toolset", "sums", "--idempotency-key", "k"],
                          ["--toolset", "sums", "--run-id", "r", "--tool-call-id", "c"]):
            assert is_unknown(gateway, *arguments), arguments
        assert run(gateway, "nonsense").returncode == 1
        for arguments in ([], ["--toolset", "sums"], ["0" * 32, "--toolset", "sums"], ["--run-id", "r"]):
            assert run(gateway, *arguments).returncode == 2, arguments


def test_a_call_is_forgotten_some_time_after_its_deadline():
    with Gateway("--store", "memory", "--result-mapping-ttl", "1s") as gateway, Provider(gateway, "sums") as provider, \
            Caller(gateway) as caller:
        provider.ready()
        await_health([gateway])
        started = start(caller, "key", timeout_ms=2000)
        provider.answer(provider.next_call(), b"1")
        told = await_true(lambda: (found := described(gateway, started.call_id))["state"] == "ended" and found, "its end")
        assert told["kept_until_ms"] == started.deadline_unix_ms + 1000, told
        await_true(lambda: is_unknown(gateway, started.call_id), "it is forgotten")


# ---- whose call it is -------------------------------------------------------------------------

def with_tokens(gateway):
    """Names and tokens; it has to be started after that."""
    tokens = {name: make_token(gateway, name) for name in ("anna", "ben")}
    tokens["root"] = make_token(gateway, "root", "--admin")
    gateway.arguments += ("--token-file", token_file(gateway))
    return tokens


def test_a_call_is_told_to_its_principal_and_to_operators_alone():
    gateway = Gateway("--store", "memory")
    tokens = with_tokens(gateway)
    with gateway, Provider(gateway, "sums", token=tokens["ben"]) as provider, Caller(gateway, tokens["anna"]) as anna, \
            Caller(gateway, tokens["ben"]) as ben:
        provider.ready()
        await_true(lambda: anna.health("sums").state == 1, "it is healthy")
        started = start(anna, "mine")
        call = provider.next_call()
        unkeyed = anna.start_call("sums")
        second = provider.next_call()
        for call_id in (started.call_id, second.call_id):
            assert described(gateway, call_id, token=tokens["anna"])["principal"] == "token:anna"
            assert described(gateway, call_id, token=tokens["root"])["principal"] == "token:anna"
            with fails_as("not_found"):
                ben.ask("DescribeCall", v1("DescribeCallRequest", call_id=call_id))
        by_key = ("--toolset", "sums", "--idempotency-key", "mine")
        assert described(gateway, *by_key, token=tokens["anna"])["call_id"] == started.call_id
        assert is_unknown(gateway, *by_key, token=tokens["ben"])
        assert is_unknown(gateway, *by_key, "--principal", "token:anna", token=tokens["ben"])
        assert is_unknown(gateway, *by_key, token=tokens["root"])
        assert described(gateway, *by_key, "--principal", "token:anna", token=tokens["root"])["call_id"] == \
            started.call_id
        provider.answer(second, b"1")
        outcome(unkeyed)
        provider.fail(call, "no_sum", "what only anna reads")
        await_true(lambda: described(gateway, started.call_id, token=tokens["root"])["state"] == "ended", "its end")
        told = described(gateway, started.call_id, token=tokens["root"])["outcome"]
        assert (told["error"], told["message"]) == ("no_sum", ""), told
        told = described(gateway, started.call_id, token=tokens["anna"])["outcome"]
        assert (told["error"], told["message"]) == ("no_sum", "what only anna reads"), told


# ---- a cluster --------------------------------------------------------------------------------

def test_a_node_that_had_nothing_to_do_with_a_call_tells_of_it():
    with cluster(3) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        started = start(callers[0], "key")
        call = provider.next_call()
        told = described(nodes[2], started.call_id)
        assert (told["state"], told["coordinator"], told["coordinator_address"]) == \
            ("running", node_of(nodes[0]), nodes[0].address), told
        (attempt,) = told["attempts"]
        assert (attempt["node"], attempt["address"]) == (node_of(nodes[1]), nodes[1].address), told
        assert providers(told) == [shown(provider)], told
        follower = callers[1].begin("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))
        await_true(lambda: described(nodes[2], started.call_id)["waiters"] == 1, "one more waits")
        provider.answer(call, b"42")
        assert outcome(follower).result == b"42"
        told = described(nodes[2], "--toolset", "sums", "--idempotency-key", "key")
        assert told["state"] == "ended" and told["outcome"]["kind"] == "result", told


def test_a_call_whose_coordinator_was_killed_is_still_told():
    with cluster(2) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        started = start(callers[0], "key")
        call = provider.next_call()
        first = node_of(nodes[0])
        nodes[0].process.kill()
        told = await_true(lambda: (found := described(nodes[1], started.call_id))["coordinator_lost"] and found,
                          "its coordinator is lost")
        assert (told["state"], told["coordinator"]) == ("running", first), told
        assert "which is lost" in run(nodes[1], started.call_id).stdout
        provider.answer(call, b"1")
        await_true(lambda: described(nodes[1], started.call_id)["state"] == "ended", "its provider ended it")


def test_attempts_that_did_not_end_a_call_are_told():
    with cluster(2) as (_, nodes, callers), contextlib.ExitStack() as stack:
        again = tool(idempotent=True)
        lost = stack.enter_context(Provider(nodes[0], "sums", again))
        lost.ready()
        await_health(nodes)
        started = start(callers[1], "key")
        lost.next_call()
        second = stack.enter_context(Provider(nodes[1], "sums", again)).ready()
        lost.cut()
        call = second.next_call()
        told = described(nodes[0], started.call_id)
        assert [item["number"] for item in told["attempts"]] == [1, 2], told
        assert providers(told) == [shown(lost), shown(second)], told
        assert [item["attached"] for item in told["attempts"]] == [False, True], told
        second.answer(call, b"1")


def test_a_call_without_an_identity_is_told_by_its_node_and_to_operators_elsewhere():
    with cluster(2) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        future = callers[0].start_call("sums")
        call = provider.next_call()
        own = described(nodes[0], call.call_id)
        assert (own["toolset"], own["tool"], own["coordinator"]) == ("sums", "add", node_of(nodes[0])), own
        other = described(nodes[1], call.call_id)
        assert other["state"] == "running" and other["toolset"] == "", other
        assert providers(other) == [shown(provider)], other
        provider.answer(call, b"1")
        outcome(future)
        await_true(lambda: is_unknown(nodes[0], call.call_id) and is_unknown(nodes[1], call.call_id), "it is forgotten")


def test_calls_that_were_lost_with_an_epoch_are_not_known():
    with cluster(2) as (redis, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        started = start(callers[0], "key")
        provider.answer(provider.next_call(), b"1")
        await_true(lambda: described(nodes[1], started.call_id)["state"] == "ended", "its end")
        redis.command("flushall")
        await_true(lambda: is_unknown(nodes[1], started.call_id), "it is lost")
        await_health(nodes)
        assert is_unknown(nodes[0], started.call_id)


def test_a_call_that_outlived_an_epoch_says_so():
    with cluster(1, "--appendonly", "yes", "--appendfsync", "always") as (redis, nodes, callers), \
            Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        started = start(callers[0], "key")
        provider.answer(provider.next_call(), b"1")
        await_true(lambda: described(nodes[0], started.call_id)["state"] == "ended", "its end")
        redis.stop()
        redis.start()

        def told():
            done = run(nodes[0], "--json", started.call_id)
            return done.returncode == 0 and json.loads(done.stdout)["other_epoch"]
        await_true(told, "it is known that something may be lost")


def test_a_node_without_redis_says_so():
    with Redis() as redis, redis.node() as gateway, Provider(gateway, "sums") as provider, Caller(gateway) as caller:
        await_health([gateway])
        started = start(caller, "key")
        provider.next_call()
        redis.stop()
        await_true(lambda: "(service_unavailable)" in run(gateway, started.call_id).stderr, "Redis does not answer")
        redis.start()


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
