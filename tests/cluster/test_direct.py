#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Direct toolsets: a provider reads its calls from a stream on Redis and answers at any node; the caller, at
whichever node, gets the result.

    test_direct.py PEGBOARD
"""

import json
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True

from direct_world import (DIRECT, DirectProvider, await_healthy, nodes, register, world)  # noqa: E402
from world import (Caller, Failed, Gateway, Provider, await_true, failure, fails_as, outcome, tool,  # noqa: E402
                   toolset, v1)
from asking import CAN_FORM  # noqa: E402
import grpc  # noqa: E402
import tap  # noqa: E402
import tasking  # noqa: E402

STARTED, OUTPUT, RESULT = "started", "output", "result"


# ---- the brief's flow -------------------------------------------------------------------------

def test_call_at_one_node_is_answered_by_a_provider_at_another_and_returns_at_a_third():
    with nodes(3) as (redis, gateways, (first, second, third)):
        registered = register(first)
        assert registered.stream_id == "toolset:sums:requests"
        with DirectProvider(redis, gateways[1]) as provider:
            await_healthy((first, second, third))
            future = third.start_call("sums", payload=b'{"n":2}')
            call = provider.next_call()
            assert (call["tool"], call["payload"]) == ("add", {"n": 2}), call
            assert call["meta"]["run_id"] and call["meta"]["session_id"], "providers of the reference need them"
            assert redis.command("get", "registry:result-stream:" + call["tool_use_id"]) == "result:" + call["tool_use_id"]
            provider.emit(call, second, result=b'{"sum":3}')
            done = outcome(future)
            assert (done.result, done.call_id) == (b'{"sum":3}', call["tool_use_id"]), done


def test_result_on_its_stream_returns_too():
    with world(2) as (_, _, callers, provider):
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), result_json={"sum": 3},
                         server_data=[{"kind": "trace", "audience": "ops", "data": {"a": 1}}])
        done = outcome(future)
        assert json.loads(done.result) == {"sum": 3}
        assert [(item.kind, item.audience, json.loads(item.data)) for item in done.server_data] == [("trace", "ops", {"a": 1})]


def test_result_of_an_old_provider_returns_too():
    with world(1) as (_, _, callers, provider):
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), result={"sum": 3})
        assert json.loads(outcome(future).result) == {"sum": 3}


def test_error_of_a_tool_is_the_tools_own():
    with world(2) as (_, _, callers, provider):
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), error={"code": "too_hard", "message": "no"})
        done = outcome(future)
        assert (done.error.code, done.error.message, done.result) == ("too_hard", "no", b"")
        future = callers[0].start_call("sums")
        provider.emit(provider.next_call(), error=v1("ToolError", code="too_hard", message="never"))
        assert outcome(future).error.message == "never"


def test_outputs_come_before_the_result():
    with world(2) as (_, _, callers, provider):
        events = callers[0].method("CallToolStream")(v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}'),
                                                     timeout=30)
        call = provider.next_call()
        assert next(events).started.call_id == call["tool_use_id"]
        provider.publish(call, "output_delta", stream="stdout", delta="one")
        assert next(events).output.delta == "one"
        provider.publish(call, "output_delta", stream="stdout", delta="two")
        provider.publish(call, result_json=1)
        assert (next(events).output.delta, next(events).result.result) == ("two", b"1")


def test_many_outputs_and_large_results_arrive_whole():
    with world(1) as (_, _, callers, provider):
        events = callers[0].method("CallToolStream")(v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}'),
                                                     timeout=30)
        call = provider.next_call()
        for i in range(100):
            provider.publish(call, "output_delta", stream="stdout", delta=str(i))
        provider.publish(call, result_json="x" * (1 << 20))
        events = list(events)
        assert [event.output.delta for event in events if event.HasField(OUTPUT)] == [str(i) for i in range(100)]
        assert len(events[-1].result.result) == (1 << 20) + 2


# ---- checks: known, valid, healthy ------------------------------------------------------------

def test_checks_come_in_the_order_of_all_calls():
    with nodes(1) as (redis, gateways, (caller,)):
        register(caller)
        with fails_as("not_found"):
            caller.call("sums", "other")
        with fails_as("validation_error"):
            caller.call("sums", payload=b'{"n":"x"}')
        with fails_as("service_unavailable") as failed:
            caller.call("sums")
        assert "last_pong=missing" in failed["error"].message, failed["error"].message
        with DirectProvider(redis, gateways[0]):
            await_healthy([caller])
        await_true(lambda: caller.health("sums").state == 2, "a provider that is silent is unhealthy")


def test_result_that_breaks_its_schema_is_the_providers_fault():
    schema = json.dumps({"type": "object", "required": ["sum"]}).encode()
    with world(1, tool(output_schema=schema)) as (_, _, callers, provider):
        for bad in ({}, {"large": "x" * 20000}):
            future = callers[0].start_call("sums")
            provider.publish(provider.next_call(), result_json=bad)
            assert outcome(future).error.code == "malformed_result"
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), result_json={"sum": "x" * 20000})
        assert not outcome(future).HasField("error")
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), result_json={"sum": 1}, server_data=[{"audience": "ops"}])
        assert outcome(future).error.code == "malformed_result"


def test_first_result_counts_and_what_is_no_result_does_not():
    with world(1) as (_, _, callers, provider):
        future = callers[0].start_call("sums")
        call = provider.next_call()
        key = "pulse:stream:result:" + call["tool_use_id"]
        provider.out.ask("XADD", key, "*", "n", "result", "p", "not json")
        provider.out.ask("XADD", key, "*", "x", "y")
        provider.publish({"tool_use_id": "another"}, result_json=1)
        provider.out.ask("XADD", key, "*", "n", "result", "p", json.dumps({"tool_use_id": "another", "result_json": 2}))
        provider.publish(call, result_json=3)
        provider.publish(call, result_json=4)
        assert outcome(future).result == b"3"


# ---- deadlines and cancellation ---------------------------------------------------------------

def test_deadline_of_a_call_that_nobody_took_is_a_timeout():
    with world(1) as (redis, _, callers, provider):
        provider.is_over = True
        provider.thread.join()
        with fails_as("timeout") as failed:
            callers[0].call("sums", timeout_ms=300)
        assert failed["error"].started == "false"
        entries = redis.command("xrange", provider.key, "-", "+")
        assert '"call"' not in entries, "and it was taken back"


def test_deadline_of_a_call_that_a_provider_took_is_unknown():
    with world(1) as (_, _, callers, provider):
        future = callers[0].start_call("sums", timeout_ms=500)
        provider.next_call()
        failed = failure(future)
        assert (failed.name, failed.started) == ("outcome_unknown", "true")


def test_call_of_a_caller_that_leaves_is_taken_back():
    with world(1) as (redis, _, callers, provider):
        provider.is_over = True
        provider.thread.join()
        future = callers[0].start_call("sums")
        await_true(lambda: '"call"' in redis.command("xrange", provider.key, "-", "+").replace("\\", ""), "it is sent")
        future.cancel()
        await_true(lambda: '"call"' not in redis.command("xrange", provider.key, "-", "+").replace("\\", ""),
                   "it is taken back")


def test_call_of_an_mcp_client_that_leaves_is_taken_back():
    with world(1) as (redis, gateways, _, provider):
        def is_sent():
            return '"call"' in redis.command("xrange", provider.key, "-", "+").replace("\\", "")

        provider.is_over = True
        provider.thread.join()
        # It can be asked, so the gateway has made an identity that nobody else knows.
        connection = tasking.begin(gateways[0], "tools/call", {"name": "add", "arguments": {"n": 1}}, CAN_FORM)
        await_true(is_sent, "it is sent")
        connection.close()
        await_true(lambda: not is_sent(), "it is taken back")


def test_emitted_result_of_no_call_is_refused():
    with world(1) as (_, _, callers, provider):
        with fails_as("not_found"):
            provider.emit({"tool_use_id": "d14ec700" + 24 * "0"}, result=b"1")
        future = callers[0].start_call("sums")
        call = provider.next_call()
        with fails_as("validation_error"):
            provider.emit(call, result=b"{")
        provider.emit(call, result=b"1")
        assert outcome(future).result == b"1"


# ---- identities -------------------------------------------------------------------------------

def test_identity_attaches_at_another_node_and_later():
    with world(2) as (_, _, callers, provider):
        futures = [caller.start_call("sums", idempotency_key="k") for caller in callers + callers]
        provider.publish(provider.next_call(), result_json=7)
        done = [outcome(future) for future in futures]
        assert [item.result for item in done] == 4 * [b"7"]
        assert len({item.call_id for item in done}) == 1 and sum(item.attached for item in done) == 3
        assert callers[1].call("sums", idempotency_key="k").result == b"7"
        with fails_as("validation_error"):
            callers[1].call("sums", payload=b'{"n":2}', idempotency_key="k")
        assert not provider.calls, "it was asked for once"


def test_call_goes_on_when_its_node_is_killed():
    with world(2) as (_, gateways, callers, provider):
        callers[0].start_call("sums", idempotency_key="k")
        call = provider.next_call()
        gateways[0].stop(signal.SIGKILL)
        future = callers[1].start_call("sums", idempotency_key="k")
        provider.publish(call, result_json=7)
        done = outcome(future)
        assert (done.result, done.attached) == (b"7", True)
        assert not provider.calls


def test_started_call_is_awaited_and_canceled_at_any_node():
    with world(2) as (redis, _, callers, provider):
        ask = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', timeout_ms=20000)
        started = callers[0].ask("StartTool", ask)
        futures = [caller.begin("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id)) for caller in callers]
        provider.publish(provider.next_call(), result_json=7)
        assert [outcome(future).result for future in futures] == [b"7", b"7"]
        assert callers[1].ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id)).result == b"7"
        with fails_as("not_found"):
            callers[1].ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id[:-4] + "0000"))
        provider.is_over = True
        provider.thread.join()
        started = callers[0].ask("StartTool", ask)
        callers[1].ask("CancelTool", v1("CancelToolRequest", call_id=started.call_id))
        with fails_as("canceled"):
            callers[0].ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))


# ---- health and registration ------------------------------------------------------------------

def test_leader_pings_and_another_takes_over():
    with world(2) as (_, gateways, callers, provider):
        n_pings = len(provider.pings)
        await_true(lambda: len(provider.pings) >= n_pings + 3, "pings come")
        provider.caller = callers[0]
        gateways[1].stop(signal.SIGKILL)
        n_pings = len(provider.pings)
        await_true(lambda: len(provider.pings) >= n_pings + 3, "and go on")
        await_healthy(callers[:1])


def test_other_schemas_have_to_be_answered_for():
    with world(2) as (_, _, callers, provider):
        provider.answers_pings = False
        register(callers[0])  # the same again
        assert callers[0].health("sums").state == 1
        register(callers[0], "sums", tool(), tool("more"))
        for caller in callers:
            await_true(lambda caller=caller: caller.health("sums").state == 2, "unhealthy")
        old = provider.pings[0]
        callers[0].ask("Pong", v1("PongRequest", ping_id=old, toolset="sums"))
        time.sleep(0.3)
        assert callers[0].health("sums").state == 2, "an old ping was answered"
        provider.answers_pings = True
        await_healthy(callers)


def test_kind_changes_only_without_live_providers():
    with world(1) as (_, gateways, callers, provider):
        with fails_as("conflict"):
            callers[0].ask("Register", toolset("sums"))
        provider.answers_pings = False
        await_true(lambda: callers[0].health("sums").state == 2, "its provider is silent")
        with Provider(gateways[0], "sums"):
            await_healthy(callers)
            with fails_as("conflict"):
                register(callers[0])
            assert callers[0].ask("GetToolset", v1("GetToolsetRequest", name="sums")).toolset.kind != DIRECT


def test_unregistered_toolset_gets_no_pings_and_keeps_its_stream():
    with world(2) as (redis, _, callers, provider):
        callers[1].ask("Unregister", v1("UnregisterRequest", name="sums"))
        with fails_as("not_found"):
            callers[1].call("sums")
        time.sleep(1.5)
        n_pings = len(provider.pings)
        time.sleep(2.5)
        assert len(provider.pings) == n_pings
        assert redis.command("exists", provider.key) == "1"
        register(callers[0])
        await_healthy(callers)


def test_redis_that_lost_everything_is_set_up_again():
    with world(2) as (redis, _, callers, provider):
        redis.command("flushall")
        await_true(lambda: redis.command("exists", provider.key) == "1", "the stream is there again")
        await_healthy(callers)
        future = callers[0].start_call("sums")
        provider.publish(provider.next_call(), result_json=7)
        assert outcome(future).result == b"7"


def test_lost_connection_loses_no_result():
    with world(1) as (redis, _, callers, provider):
        for i in range(5):
            future = callers[0].start_call("sums", **({"idempotency_key": f"k{i}"} if i % 2 else {}))
            call = provider.next_call()
            redis.command("client", "kill", "type", "pubsub")
            provider.publish(call, result_json=i)
            assert outcome(future).result == str(i).encode()


def test_result_arrives_when_redis_has_forgotten_the_call():
    with world(1) as (redis, _, callers, provider):
        future = callers[0].start_call("sums")
        call = provider.next_call()
        redis.command("flushall")
        provider.publish(call, result_json=7)  # makes the stream anew, as providers of the reference do
        assert outcome(future).result == b"7"
        await_true(lambda: redis.command("exists", "pulse:stream:result:" + call["tool_use_id"]) == "0", "and is removed")


def test_call_while_redis_stands_still_ends_in_time():
    with world(1) as (redis, _, callers, provider):
        redis.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        failed = failure(callers[0].start_call("sums", timeout_ms=1000))
        redis.process.send_signal(signal.SIGCONT)
        assert failed.name in ("outcome_unknown", "timeout"), failed
        assert time.monotonic() - began < 20
        await_healthy(callers)
        future = callers[0].start_call("sums", payload=b'{"n":9}')
        await_true(lambda: [call for _, call in provider.calls if call["payload"] == {"n": 9}], "calls go on")
        provider.publish(next(call for _, call in provider.calls if call["payload"] == {"n": 9}), result_json=1)
        assert outcome(future).result == b"1"


# ---- what is left -----------------------------------------------------------------------------

def leftovers(redis):
    """Keys of ours and of peers without an expiry, but for the catalog's and the request stream."""
    keys = [key for key in redis.command("keys", "*").splitlines() if not key.startswith("peg:")]
    return [key for key in keys if redis.command("ttl", key) == "-1" and not key.endswith(":requests")]


def test_calls_leave_nothing_behind():
    with world(1) as (redis, _, callers, provider):
        for i in range(20):
            future = callers[0].start_call("sums", **({"idempotency_key": f"k{i}"} if i % 2 else {}))
            call = provider.next_call()
            provider.publish(call, result_json=i)
            provider.acknowledge(call)
            outcome(future)
        await_true(lambda: not redis.command("keys", "pulse:stream:result:*"), "result streams are removed")
        await_true(lambda: not redis.command("keys", "registry:result-stream:*"), "and mappings")
        assert not leftovers(redis)


def test_janitor_cleans_what_peers_leave():
    with world(1) as (redis, _, _, _):
        redis.command("xadd", "pulse:stream:result:old", "*", "n", "result", "p", "{}")
        redis.command("hset", "map:stream:result:old:sinks:content", "=rev", "2")
        old, new = int((time.time() - 60) * 1e9), int((time.time() + 60) * 1e9)
        redis.command("hset", "map:sink:agent:keepalive:content", "=rev", "2", "dead", str(old), "alive", str(new))
        await_true(lambda: redis.command("hkeys", "map:sink:agent:keepalive:content").split() == ["=rev", "alive"],
                   "dead consumers go")
        await_true(lambda: int(redis.command("ttl", "pulse:stream:result:old")) > 800, "streams expire")
        await_true(lambda: int(redis.command("ttl", "map:stream:result:old:sinks:content")) > 800, "hashes expire")


def test_acknowledged_requests_are_trimmed_and_others_are_not():
    with world(1) as (redis, _, callers, provider):
        redis.command("config", "set", "stream-node-max-entries", "1")
        futures = [callers[0].start_call("sums") for _ in range(5)]
        calls = [provider.next_call() for _ in futures]
        for call in calls[1:]:
            provider.publish(call, result_json=1)
            provider.acknowledge(call)
        time.sleep(2.5)
        assert int(redis.command("xlen", provider.key)) >= 5, "the first is not acknowledged"
        provider.publish(calls[0], result_json=1)
        provider.acknowledge(calls[0])
        assert [outcome(future).result for future in futures] == 5 * [b"1"]
        await_true(lambda: int(redis.command("xlen", provider.key)) <= 3, "they are trimmed")


# ---- without Redis ----------------------------------------------------------------------------

def test_node_without_redis_says_what_to_do():
    with Gateway() as gateway, Caller(gateway) as caller:
        with fails_as("service_unavailable") as failed:
            register(caller)
        assert "REDIS_URL" in failed["error"].message


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
