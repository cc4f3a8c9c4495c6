#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The registries of goa-ai on a cluster: their providers register and answer, their agents call, toolsets of both
kinds; results come as each of them expects.

    test_direct_compat.py PEGBOARD
"""

import json
import shutil
import sys
import time

sys.dont_write_bytecode = True

from direct_world import DirectProvider, await_healthy, nodes, world  # noqa: E402
from test_cluster import await_health  # noqa: E402
from test_compat import any_of, ask_of, json_of  # noqa: E402
from world import SCHEMA, Provider, await_true, fails_as, outcome, protos, tool, v1  # noqa: E402
import tap  # noqa: E402

G0, G1 = "registry", "goa_ai_registry"
META = {"run_id": "run-1", "session_id": "session-1"}
SCHEMA_BYTES = json.dumps(SCHEMA).encode()


def register_g0(caller, name="sums"):
    schema = protos().make("registry.ToolSchema", name="add", input_schema=SCHEMA_BYTES)
    return ask_of(G0, caller, "Register", name=name, tools=[schema])


def register_g1(caller, name="sums"):
    schema = protos().make("goa_ai_registry.ToolSchema", name="add", payload_schema=SCHEMA_BYTES, result_schema=b"{}")
    return ask_of(G1, caller, "Register", name=name, tools=[schema])


def call_g1(caller, payload=b'{"n":1}', **meta):
    return ask_of(G1, caller, "CallTool", toolset="sums", tool="add", payload_json=payload,
                  meta=protos().make("goa_ai_registry.ToolCallMeta", **META, **meta))


def results(redis, stream_id):
    """The payloads of the results on a stream."""
    lines = redis.command("xrange", "pulse:stream:" + stream_id, "-", "+").splitlines()
    return [json.loads(lines[i + 3]) for i in range(len(lines) - 3) if lines[i:i + 3] == ["n", "result", "p"]]


def await_results(redis, stream_id, count=1):
    await_true(lambda: len(results(redis, stream_id)) >= count, f"{count} results are on the stream")
    return results(redis, stream_id)


# ---- registry.Registry ------------------------------------------------------------------------

def test_the_flow_of_the_brief_by_the_older_registry():
    with nodes(3) as (redis, gateways, callers):
        registered = register_g0(callers[0])
        assert registered.stream_id == "toolset:sums:requests" and registered.registered_at.endswith("Z")
        with DirectProvider(redis, gateways[1]) as provider:
            provider.caller.service = "pegboard.v1.Registry"
            await_healthy(callers)
            future = callers[2].method("CallTool", "registry.Registry").future(
                protos().make("registry.CallToolRequest", toolset="sums", tool="add",
                              payload=any_of(string_value='{"n":1}')), timeout=30)
            call = provider.next_call()
            ask_of(G0, callers[1], "EmitToolResult", tool_use_id=call["tool_use_id"],
                   result=any_of(string_value='{"sum":2}'))
            done = outcome(future)
            assert (json_of(done.result), done.tool_use_id) == ({"sum": 2}, call["tool_use_id"])


def test_error_by_the_older_registry():
    with world(1) as (_, _, callers, provider):
        future = callers[0].method("CallTool", "registry.Registry").future(
            protos().make("registry.CallToolRequest", toolset="sums", tool="add",
                          payload=any_of(string_value='{"n":1}')), timeout=30)
        ask_of(G0, callers[0], "EmitToolResult", tool_use_id=provider.next_call()["tool_use_id"],
               error=protos().make("registry.ToolError", code="bad", message_="no"))
        done = outcome(future)
        assert (done.error.code, done.error.message_) == ("bad", "no")


def test_pong_by_either_registry_is_a_sign_of_life():
    with nodes(1) as (redis, gateways, (caller,)):
        register_g1(caller)
        with DirectProvider(redis, gateways[0]) as provider:
            provider.answers_pings = False
            await_true(lambda: provider.pings, "it is pinged at once")
            for service in (G0, G1):
                ask_of(service, caller, "Pong", ping_id=provider.pings[-1], toolset="sums")
            await_healthy([caller])
            ask_of(G1, caller, "Pong", ping_id="any", toolset="another")  # old providers end if it fails


# ---- goa_ai_registry.Registry -----------------------------------------------------------------

def test_agent_reads_the_result_of_a_direct_toolset_from_its_stream():
    with nodes(2) as (redis, gateways, callers):
        assert register_g1(callers[0]).stream_id == "toolset:sums:requests"
        with DirectProvider(redis, gateways[1]) as provider:
            await_healthy(callers)
            started = call_g1(callers[0], tool_call_id="call-1")
            assert started.result_stream_id == "result:" + started.tool_use_id
            key = "pulse:stream:" + started.result_stream_id
            assert redis.command("xlen", key) == "1" and int(redis.command("ttl", key)) > 890, "it is there, and expires"
            call = provider.next_call()
            assert call["tool_use_id"] == started.tool_use_id and call["meta"] == dict(META, tool_call_id="call-1"), call
            assert list(call) == ["type", "tool_use_id", "tool", "payload", "meta", "entry"], call
            provider.publish(call, result_json={"sum": 2})
            found = await_results(redis, started.result_stream_id, 2)
            assert all(item == {"tool_use_id": started.tool_use_id, "result_json": {"sum": 2}} for item in found), found


def test_stream_that_an_agent_has_removed_stays_away():
    with world(1) as (redis, _, callers, provider):
        started = call_g1(callers[0])
        provider.publish(provider.next_call(), result_json=1)
        redis.command("del", "pulse:stream:" + started.result_stream_id)
        time.sleep(0.5)
        assert redis.command("exists", "pulse:stream:" + started.result_stream_id) == "0"


def test_agent_reads_the_result_of_an_attached_toolset_from_a_stream():
    with nodes(2) as (redis, gateways, callers), Provider(gateways[1], "sums") as provider:
        await_health(gateways)
        started = call_g1(callers[0])
        key = "pulse:stream:" + started.result_stream_id
        assert redis.command("xlen", key) == "1" and int(redis.command("ttl", key)) > 890
        call = provider.next_call()
        assert call.call_id == started.tool_use_id and call.meta.run_id == "run-1"
        provider.answer(call, b'{"sum":2}')
        found = await_results(redis, started.result_stream_id, 2)
        assert all(item == {"tool_use_id": started.tool_use_id, "result_json": {"sum": 2}} for item in found), found


def test_agent_learns_how_a_call_of_an_attached_toolset_failed():
    with nodes(1) as (redis, gateways, callers), \
            Provider(gateways[0], "sums", tool(timeout_ms=300)) as provider:
        await_health(gateways)
        started = call_g1(callers[0])
        provider.next_call()
        failed = await_results(redis, started.result_stream_id)[0]
        assert failed["error"]["code"] == "outcome_unknown" and failed["error"]["message"], failed


def test_checks_of_the_newer_registry_come_in_order():
    with nodes(1) as (_, _, (caller,)):
        with fails_as("not_found"):
            call_g1(caller)
        register_g1(caller)
        with fails_as("validation_error"):
            call_g1(caller, b'{"n":"x"}')
        with fails_as("service_unavailable") as failed:
            call_g1(caller)
        assert "last_pong=missing" in failed["error"].message
        with fails_as("invalid_length"):
            call_g1(caller, b"")
        with fails_as("missing_field"):
            ask_of(G1, caller, "CallTool", toolset="sums", tool="add", payload_json=b"{}")
        with fails_as("missing_field"):
            ask_of(G1, caller, "Register", name="empty", tools=[])
        with fails_as("validation_error"):
            ask_of(G1, caller, "Register", name="bad", tools=[
                protos().make("goa_ai_registry.ToolSchema", name="t", payload_schema=b"{", result_schema=b"{}")])


def test_next_generation_has_no_stream_ids():
    with nodes(1, "--goa-generation", "2") as (redis, gateways, (caller,)):
        registered = register_g1(caller)
        assert registered.stream_id.endswith("Z") and not registered.registered_at, "the date is its first field"
        found = ask_of(G1, caller, "GetToolset", name="sums")
        assert found.stream_id.endswith("Z") and not found.registered_at
        assert register_g0(caller, "older").stream_id == "toolset:older:requests"
        with DirectProvider(redis, gateways[0]) as provider:
            await_healthy([caller])
            started = call_g1(caller)
            assert started.tool_use_id and not started.result_stream_id
            provider.publish(provider.next_call(), result_json=1)
            await_results(redis, "result:" + started.tool_use_id)


def test_toolset_of_theirs_is_called_by_our_callers():
    with nodes(1) as (redis, gateways, (caller,)):
        register_g1(caller)
        with DirectProvider(redis, gateways[0]) as provider:
            await_healthy([caller])
            future = caller.start_call("sums")
            provider.publish(provider.next_call(), result_json=5)
            assert outcome(future).result == b"5"
            found = caller.ask("GetToolset", v1("GetToolsetRequest", name="sums"))
            assert (found.stream_id, found.toolset.kind) == ("toolset:sums:requests", 2)


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
