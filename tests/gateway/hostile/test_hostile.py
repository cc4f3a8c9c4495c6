#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Callers, providers and watchers of a gateway who mean harm, or do not know what they do.

    test_hostile.py PEGBOARD

Each attack has an error with a name, the gateway's memory stays within what the test says, and
no call of a neighbour fails meanwhile. How long the neighbour's calls took is told, not asserted:
attackers share the processors of this machine with it.
"""

import json
import os
import random
import socket
import struct
import sys
import threading
import time
import uuid

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE)),
                os.path.join(os.path.dirname(HERE), "promises")]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from battle import (IS_SANITIZED, Raw, battle, data_frames, frame, memory_mb, storm,  # noqa: E402
                    tell_ratios)
from world import (Caller, Failed, Gateway, PEGBOARD, Provider, WAIT_S, as_usual, await_true,  # noqa: E402
                   fails_as, outcome, protos, tool, toolset, v1)

GARBAGE = (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05abc", b"\x0b" * 200,
           b"\x08" + b"\xff" * 11)
FAST = ("--lease", "2s")
TEXT = tool(input_schema=b'{"type":"string"}')


# ---- what is no message -----------------------------------------------------------------

def test_garbage_on_every_method_is_an_error_and_no_more():
    names = ("pegboard.v1.Registry", "pegboard.v1.Admin", "registry.Registry",
             "goa_ai_registry.Registry")
    with battle("garbage", extra_mb=16) as gateway, Caller(gateway) as caller:
        for _ in storm():
            for name in names:
                for method in protos().pool.FindServiceByName(name).methods:
                    for garbage in GARBAGE:
                        code, words, kind = ask_with_bytes(caller, name, method, garbage)
                        assert code == grpc.StatusCode.INVALID_ARGUMENT, \
                            f"{name}.{method.name}: {code} {words}"
                        assert words, f"{name}.{method.name} says nothing"
                        assert kind == "validation_error", f"{name}.{method.name}: {kind} {words}"
                    for _ in range(50):
                        ask_with_bytes(caller, name, method, random_bytes())


def test_requests_that_are_too_large_to_be_read_are_named():
    with battle("large requests", extra_mb=16) as gateway, Caller(gateway) as caller:
        for service in ("pegboard.v1", "registry"):
            request = protos().make(service + ".SearchRequest", query="x" * (5 << 20))
            with fails_as("limit_exceeded", grpc.StatusCode.RESOURCE_EXHAUSTED):
                caller.ask("Search", request, service=service + ".Registry")
            request.query = "x"
            with fails_as("limit_exceeded", grpc.StatusCode.RESOURCE_EXHAUSTED):
                caller.ask("Search", request, service=service + ".Registry",
                           metadata=[("x", "y" * 20000)])


def ask_with_bytes(caller, service, method, data):
    if method.name in ("DrainNode", "Attach", "Watch") and data not in GARBAGE:
        return None, None, None  # those would do what they are asked for
    kind = ("stream" if method.client_streaming else "unary") + "_" + \
           ("stream" if method.server_streaming else "unary")
    stub = getattr(caller.channel, kind)(f"/{service}/{method.name}", lambda data: data,
                                         lambda data: data)
    try:
        answer = stub(iter([data]) if method.client_streaming else data, timeout=WAIT_S)
        if method.server_streaming:
            list(answer)
    except grpc.RpcError as error:
        return error.code(), error.details(), Failed(error).name
    return grpc.StatusCode.OK, "", ""


def random_bytes():
    """Begins as a message does, so that more of it is read."""
    out = bytearray()
    for _ in range(random.randrange(1, 8)):
        part = random.randbytes(random.randrange(0, 40))
        out += bytes((random.randrange(1, 12) << 3 | 2, len(part))) + part
    return bytes(out)


def test_names_that_are_none_are_named():
    bad = ["", "*", "a*", "a b", "a\nb", "a\tb", "a\x01b", "a,b", "a;b", "a\\b", "a|b", "ä", "a\x7f",
           "x" * 257, "{}", "'; drop table toolsets; --", "a\x00b", "?", "[a]", "%s%n", "\u202e"]
    named = {"validation_error", "missing_field", "invalid_length", "invalid_pattern",
             "invalid_format", "not_found"}
    with battle("names", extra_mb=16) as gateway, Caller(gateway) as caller:
        for _ in storm():
            for name in bad:
                for verb, request in (
                        ("Register", toolset(name)), ("Register", toolset("fine", tool(name))),
                        ("Unregister", v1("UnregisterRequest", name=name)),
                        ("GetToolset", v1("GetToolsetRequest", name=name)),
                        ("CallTool", v1("CallToolRequest", toolset=name, tool="x")),
                        ("CallTool", v1("CallToolRequest", toolset="neighbour", tool=name)),
                        ("AwaitTool", v1("AwaitToolRequest", call_id=name)),
                        ("CancelTool", v1("CancelToolRequest", call_id=name)),
                        ("EmitToolResult", v1("EmitToolResultRequest", call_id=name))):
                    try:
                        caller.ask(verb, request)
                        raise AssertionError(f"{verb} took the name {name!r}")
                    except Failed as error:
                        said = f"{verb} {name!r}: {error.name} {error}"
                        assert error.name in named, said
                        assert error.code in (grpc.StatusCode.INVALID_ARGUMENT,
                                              grpc.StatusCode.NOT_FOUND), said
                        if "\x00" in name:
                            assert error.name == "validation_error", said
                        assert not any(ord(c) < 32 for c in error.message), error.message
                refuse_hello(gateway, toolset=name, incarnation="test-12345678", credits=1)
                refuse_hello(gateway, toolset="neighbour", incarnation=name, credits=1)
            assert [info.name for info in
                    caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets] == \
                ["neighbour"]
    for log_line in ("\x01", "\x7f", "\u202e"):
        assert log_line not in gateway_log(gateway)


def gateway_log(gateway):
    return gateway.said() if os.path.exists(gateway.log) else ""


def refuse_hello(gateway, name=None, **hello):
    """Says the Hello and returns the error."""
    with Caller(gateway, gateway.token) as caller:
        stream = caller.method("Attach")(iter([v1("AttachRequest", hello=v1("Hello", **hello))]),
                                         timeout=WAIT_S, metadata=caller.metadata)
        try:
            frames = list(stream)
        except grpc.RpcError as error:
            failed = Failed(error)
            assert name is None or failed.name == name, f"{failed.name} {failed}"
            assert failed.name, failed
            return failed
        raise AssertionError(f"Hello {str(hello)[:200]} was welcome: {frames}")


# ---- registrations ----------------------------------------------------------------------

def test_ten_thousand_tools_are_taken_and_one_more_is_not():
    schema = b'{"type":"object","properties":{"n":{"type":"integer"}}}'
    tools = [v1("Tool", name=f"tool-{i}", description="one of many", input_schema=schema)
             for i in range(10001)]
    with battle("10,000 tools", extra_mb=160) as gateway, Caller(gateway) as caller:
        for _ in storm():
            for _ in range(3):
                caller.ask("Register", toolset("many", *tools[:10000]))
            with fails_as("limit_exceeded", grpc.StatusCode.RESOURCE_EXHAUSTED) as told:
                caller.ask("Register", toolset("more", *tools))
            assert "tools: use at most" in told["error"].message
            info = caller.ask("GetToolset", v1("GetToolsetRequest", name="many"))
            assert len(info.tools) == 10000
            with Provider(gateway, "many", registers=False) as provider:
                future = caller.start_call("many", "tool-9999")
                provider.answer(provider.next_call(), b"7")
                assert outcome(future).result == b"7"


def nested(n):
    return b'{"items":' * n + b"{}" + b"}" * n


def test_schemas_past_their_limits_are_named():
    wide = json.dumps({"anyOf": [{"const": i} for i in range(20001)]}).encode()
    large = b'{"description":"' + b"x" * (1 << 20) + b'"}'
    bad = {"deep": nested(129), "deeper than JSON": nested(5000), "wide": wide, "large": large,
           "none": b"{", "wrong": b'{"type":7}', "number": b"7", "loop": b'{"$ref":"#/nothing"}',
           "pattern": b'{"pattern":"("}', "abroad": b'{"$ref":"http://127.0.0.1:1/x"}',
           "not text": b'"\xff"'}
    with battle("schemas", extra_mb=128) as gateway, Caller(gateway) as caller:
        for _ in storm():
            for what, schema in bad.items():
                for field in ("input_schema", "output_schema"):
                    try:
                        caller.ask("Register", toolset("schemas", tool(**{field: schema})))
                        raise AssertionError(f"{what} as {field} was taken")
                    except Failed as error:
                        assert error.name in ("validation_error", "limit_exceeded"), \
                            f"{what}: {error.name} {error}"
                        assert "schema" in error.message or "LIMIT" in error.message, error.message
            for fine in (nested(60), b'{"$ref":"#"}', b"true"):
                caller.ask("Register", toolset("schemas", tool(input_schema=fine)))
            huge = [tool(f"t{i}", input_schema=large[:950000] + b'"}') for i in range(4)]
            with fails_as("limit_exceeded") as told:
                caller.ask("Register", toolset("huge", *huge))
            assert "bytes of text and schemas: use at most" in told["error"].message
            with fails_as("invalid_length"):
                caller.ask("Register", toolset("wordy", description="x" * 4097))


def of_size(n_bytes):
    return b'{"description":"' + b"x" * (n_bytes - 18) + b'"}'


def anything_of(n):
    return json.dumps({"anyOf": [{"const": i} for i in range(n)]}).encode()


def pattern(text):
    return b'{"type":"string","pattern":"' + text + b'"}'


# What is taken, what it is called with, and what is one too many. The schema itself is one of its
# 128 levels, and of its 20,000 subschemas.
AT_LIMITS = {
    "depth": (nested(127), b"[" * 127 + b"]" * 127, nested(128)),
    "subschemas": (anything_of(19999), b"19998", anything_of(20000)),
    "bytes": (of_size(1 << 20), b"7", of_size((1 << 20) + 1)),
    "pattern": (pattern(b"x" * 4096), b'"' + b"x" * 4096 + b'"', pattern(b"x" * 4097)),
    "groups": (pattern(b"(" * 100 + b"x" + b")" * 100), b'"x"',
               pattern(b"(" * 101 + b"x" + b")" * 101)),
}


def test_schemas_at_their_limits_are_taken_and_called():
    with battle("schemas at their limits", extra_mb=128) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "limits") as provider:
        for _ in storm():
            for what, (schema, payload, more) in AT_LIMITS.items():
                for field in ("input_schema", "output_schema"):
                    with fails_as("limit_exceeded"):
                        caller.ask("Register", toolset("limits", tool(what, **{field: more})))
                provider.offer(tool(what, input_schema=schema, output_schema=schema))
                future = caller.start_call("limits", what, payload)
                call = provider.next_call()
                assert call.payload == payload, what
                provider.answer(call, payload)
                assert outcome(future).result == payload, what


def last_of(n_bytes):
    return tool("last", input_schema=of_size(n_bytes))


def size_told(told):
    assert "bytes of text and schemas: use at most" in told["error"].message
    return int(told["error"].message.split("has ")[1].split()[0])


def test_a_toolset_at_its_limits_is_taken_and_called():
    limit = 7 << 19
    tools = [tool(f"t{i}", input_schema=of_size(900000 + i)) for i in range(3)]
    with battle("a toolset at its limits", extra_mb=128) as gateway, Caller(gateway) as caller:
        for _ in storm():
            # too much: the refusal tells how much there is with all that stands around the schemas
            with fails_as("limit_exceeded") as told:
                caller.ask("Register", toolset("full", *tools, last_of(1 << 20)))
            rest = (1 << 20) - (size_told(told) - limit)
            caller.ask("Register", toolset("full", *tools, last_of(rest)))
            with fails_as("limit_exceeded") as told:
                caller.ask("Register", toolset("full", *tools, last_of(rest + 1)))
            assert size_told(told) == limit + 1
            caller.ask("Register", toolset("wordy", description="x" * 4096))
            with Provider(gateway, "full", registers=False) as provider:
                future = caller.start_call("full", "last")
                provider.answer(provider.next_call(), b"7")
                assert outcome(future).result == b"7"


def test_schemas_that_cost_much_cost_their_own_caller():
    slow = b'{"type":"string","pattern":"^(a+)+$"}'
    unique = b'{"type":"array","uniqueItems":true}'
    with battle("costly schemas", extra_mb=96) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "costly", tool("regex", input_schema=slow),
                     tool("unique", input_schema=unique)) as provider:
        for _ in storm():
            with fails_as("validation_error"):
                caller.call("costly", "regex", json.dumps("a" * 50000 + "b").encode())
            items = json.dumps([{"n": i} for i in range(5000)]).encode()
            future = caller.start_call("costly", "unique", items)
            provider.answer(provider.next_call())
            assert outcome(future).result == b"1"


def test_an_unregister_and_register_storm_leaves_nothing_behind():
    with battle("registration storm", "--store", "memory", extra_mb=64) as gateway, \
            Caller(gateway) as caller:
        until = time.monotonic() + 3
        n = 0
        while time.monotonic() < until:
            futures = []
            for i in range(50):
                futures.append(caller.begin("Register", toolset(f"storm-{i}", version=f"1.0.{n}")))
                futures.append(caller.begin("Unregister",
                                            v1("UnregisterRequest", name=f"storm-{i}")))
            for future in futures:
                swallow(future)
            n += 1
        for i in range(50):
            swallow(caller.begin("Unregister", v1("UnregisterRequest", name=f"storm-{i}")))
        assert caller.ask("ListToolsets", v1("ListToolsetsRequest")).total == 1


def swallow(future, allowed=("not_found",)):
    try:
        return outcome(future)
    except Failed as error:
        assert error.name in allowed, f"{error.name} {error}"
        return None


def test_the_catalog_takes_as_many_toolsets_as_it_says():
    """All 100,000 with HOSTILE_LONG=1, which takes minutes: each change costs more, the more there
    are."""
    is_long = os.environ.get("HOSTILE_LONG") == "1"
    n_toolsets = 100000 if is_long else 5000
    with battle(f"{n_toolsets} toolsets", "--store", "memory",
                extra_mb=600 if is_long else 64) as gateway, Caller(gateway) as caller:
        register_many(caller, n_toolsets - 1)
        assert caller.ask("ListToolsets", v1("ListToolsetsRequest")).total == n_toolsets
        if is_long:
            with fails_as("limit_exceeded") as told:
                caller.ask("Register", toolset("one-more"))
            assert "too many toolsets" in told["error"].message


def register_many(caller, n):
    for first in range(0, n, 500):
        for future in [caller.begin("Register", toolset(f"t/{i}"), timeout=120)
                       for i in range(first, min(first + 500, n))]:
            outcome(future)


# ---- callers ----------------------------------------------------------------------------

def test_payloads_that_are_deep_long_or_none_are_named():
    anything = tool(input_schema=b"{}")
    with battle("payloads", extra_mb=160) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "any", anything) as provider:
        for payload in (b"[" * 257 + b"]" * 257, b"[" * 1000000, b'{"a":' * 100000, b"\xff",
                        b"1 2", b'"\\ud800"x', b"nul", b"{" * 65537):
            with fails_as("validation_error", grpc.StatusCode.INVALID_ARGUMENT):
                caller.call("any", payload=payload)
        with fails_as("limit_exceeded") as told:
            caller.call("any", payload=b'"' + b"x" * (2 << 20) + b'"')
        assert "PEG_LIMIT_GATEWAY_PAYLOAD_BYTES" in told["error"].message
        try:
            caller.call("any", payload=b'"' + b"x" * (5 << 20) + b'"')
            raise AssertionError("a message of 5 MiB was taken")
        except Failed as error:
            assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED, error
        for more in ({"metadata": [v1("MetadataEntry", key="k", value="v")] * 65},
                     {"metadata": [v1("MetadataEntry", key="k", value="v" * 17000)]},
                     {"idempotency_key": "k" * 257}, {"timeout_ms": -1},
                     {"timeout_ms": 1 << 62}, {"traceparent": "x" * 20000},
                     {"meta": v1("CallMeta", run_id="r" * 257, tool_call_id="c")}):
            try:
                caller.ask("CallTool", v1("CallToolRequest", toolset="any", tool="add",
                                          payload=b"1", **more),
                           timeout=1 if "timeout_ms" in more else WAIT_S)
                raise AssertionError(f"{str(more)[:80]} was taken")
            except Failed as error:
                if "timeout_ms" not in more:
                    assert error.name in ("limit_exceeded", "invalid_length", "validation_error"), \
                        f"{str(more)[:80]}: {error.name} {error}"
        future = caller.start_call("any", payload=b"[" * 200 + b"]" * 200)
        call = provider.next_call()
        while call.payload == b"1":  # those that were taken
            call = provider.next_call()
        provider.answer(call, b"[" * 200 + b"]" * 200)
        assert outcome(future).result == b"[" * 200 + b"]" * 200


def test_a_thousand_calls_whose_answers_nobody_reads():
    with battle("1,000 calls unread", extra_mb=192) as gateway, \
            Provider(gateway, "echo", TEXT, credits=1000) as provider:
        request = v1("CallToolRequest", toolset="echo", tool="add", payload=b'"x"')
        with Raw(gateway) as raw:
            for _ in range(1000):
                raw.open("CallTool", request.SerializeToString())
            text = b'"' + b"y" * 60000 + b'"'
            for _ in range(1000):
                provider.answer(provider.next_call(), text)
            for _ in range(1000):
                provider.acks.get(timeout=WAIT_S)
        time.sleep(0.3)


def test_calls_opened_and_reset_at_once():
    with battle("calls opened and left", extra_mb=64) as gateway, \
            Provider(gateway, "echo", TEXT, credits=100) as provider:
        for _ in storm():
            request = v1("CallToolRequest", toolset="echo", tool="add", payload=b'"x"')
            for _ in range(20):
                with Raw(gateway) as raw:
                    for _ in range(500):
                        raw.open("CallTool", request.SerializeToString())
            with Caller(gateway) as caller:
                await_true(lambda: in_flight(caller) <= 100, "they are gone, but for what runs")
            assert provider.calls.qsize() <= 10000


def in_flight(caller):
    status = caller.ask("Status", v1("StatusRequest"), service="pegboard.v1.Admin")
    return status.in_flight + status.queued


def test_long_calls_that_nobody_awaits_stay_within_the_bounds():
    with battle("StartTool for nobody", "--max-queue", "100", extra_mb=256) as gateway, \
            Caller(gateway) as caller, Provider(gateway, "slow", TEXT, credits=1):
        for _ in storm():
            payload = b'"' + b"x" * 100000 + b'"'
            started = []
            for _ in range(10):
                started += [outcome(future) for future in
                            [caller.begin("StartTool", v1("CallToolRequest", toolset="slow",
                                                          tool="add", payload=payload,
                                                          timeout_ms=86400000))
                             for _ in range(100)]]
            with fails_as("not_found") as told:
                caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started[-1].call_id))
            assert "for want of a provider or of room" in told["error"].message
            assert in_flight(caller) <= 2 * 101 + 2


def test_large_requests_that_run_for_ever_are_bounded():
    with battle("large requests", extra_mb=320) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "slow", TEXT, credits=10000) as provider:
        payload = b'"' + b"x" * ((2 << 20) - 2) + b'"'
        started = []
        with fails_as("overloaded", grpc.StatusCode.RESOURCE_EXHAUSTED) as told:
            for _ in range(150):
                started.append(start_long(caller, payload))
        assert "large payloads" in told["error"].message, told["error"].message
        assert told["error"].trailers.get("pegboard-retry-after-ms"), told["error"].trailers
        assert len(started) == 128, len(started)
        small = start_long(caller, b'"small"')
        await_true(lambda: provider.calls.qsize() == 129, "all of them run")
        caller.ask("CancelTool", v1("CancelToolRequest", call_id=small.call_id))
        large = provider.next_call()
        provider.answer(large)
        caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=large.call_id))
        start_long(caller, payload)


def start_long(caller, payload):
    return caller.ask("StartTool", v1("CallToolRequest", toolset="slow", tool="add", payload=payload,
                                      timeout_ms=600000))


def test_kept_ends_that_fill_their_room_cost_their_owner_alone():
    large = b'"' + b"x" * ((8 << 20) - 2) + b'"'
    gateway = Gateway()
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    with gateway, battle("kept ends are full", extra_mb=400, gateway=gateway, token=ben), \
            Caller(gateway, anna) as caller, Caller(gateway, ben) as neighbour, \
            Provider(gateway, "big", TEXT, token=anna) as provider, \
            Provider(gateway, "small", token=ben) as small:
        for i in range(26):  # 24 have room: three quarters
            future = caller.start_call("big", payload=b'"x"', idempotency_key=f"key-{i}")
            answer_in_chunks(provider, provider.next_call(), large)
            assert outcome(future).result == large
        ask_small_calls(neighbour, small)
        for i in (0, 23):
            again = caller.call("big", payload=b'"x"', idempotency_key=f"key-{i}")
            assert again.attached and again.result == large
        for i in (24, 25):
            with fails_as("outcome_unknown") as told:
                caller.call("big", payload=b'"x"', idempotency_key=f"key-{i}")
            assert "PEG_LIMIT_BUS_LARGE_BYTES" in told["error"].message, told["error"].message
            assert told["error"].started == "true"
        assert provider.has_no_call(), "a call that had ended was started again"


def test_results_that_take_long_to_read_are_bounded():
    """They come faster than workers read them."""
    often = [{"uniqueItems": True, "minItems": i} for i in range(10)]
    slow = tool(input_schema=b'{"type":"string"}', output_schema=json.dumps({"allOf": often}).encode())
    large = json.dumps([{"n": i, "words": "x" * 20} for i in range(160000)]).encode()
    assert 7 << 20 < len(large) <= 8 << 20, len(large)
    with battle("results faster than read", extra_mb=350) as gateway:
        as_usual()  # who stands back behind the workers is never faster than they
        with Caller(gateway) as caller, Provider(gateway, "slow", slow, credits=100) as provider:
            futures = [caller.start_call("slow", payload=b'"x"', timeout=120) for _ in range(60)]
            for _ in futures:
                answer_in_chunks(provider, provider.next_call(), large)
            for future in futures:  # its stream waits for the workers: nothing is refused
                try:
                    assert outcome(future).result == large
                except Failed as failed:  # a busy machine has not read it in time
                    assert failed.name == "outcome_unknown", failed


def answer_in_chunks(provider, call, result):
    for at in range(0, len(result), 65536):
        provider.answer(call, result[at:at + 65536], more=at + 65536 < len(result))


def ask_small_calls(caller, provider):
    """With and without an identity, and again: each runs once."""
    for i in range(10):
        identity = {"idempotency_key": f"small-{i}"} if i % 2 else {}
        future = caller.start_call("small", **identity)
        provider.answer(provider.next_call(), b"%d" % i)
        assert outcome(future).result == b"%d" % i
        if identity:
            again = caller.call("small", **identity)
            assert again.attached and again.result == b"%d" % i
    assert provider.has_no_call()


def test_a_stream_reader_that_stops_is_told_what_it_missed():
    with battle("deltas unread", extra_mb=64) as gateway, \
            Provider(gateway, "chatty", TEXT) as provider:
        for _ in storm():
            request = v1("CallToolRequest", toolset="chatty", tool="add", payload=b'"x"',
                         timeout_ms=60000)
            with Raw(gateway, window=1000) as raw:
                raw.open("CallToolStream", request.SerializeToString())
                call = provider.next_call()
                for _ in range(3000):
                    provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt,
                                          stream="stdout", delta="d" * 50000))
                provider.answer(call, b"1")
                provider.acks.get(timeout=2 * WAIT_S)


def test_watchers_that_do_not_read_cost_little():
    with battle("watchers unread", "--store", "memory", extra_mb=160) as gateway, \
            Caller(gateway) as caller:
        raws = [Raw(gateway, window=0) for _ in range(2)]
        for raw in raws:
            for _ in range(400):
                raw.open("Watch", v1("WatchRequest").SerializeToString())
        for n in range(60):
            for future in [caller.begin("Register", toolset(f"w{i}", version=f"1.0.{n}",
                                                            description="x" * 1000))
                           for i in range(50)]:
                outcome(future)
        refused = [caller.method("Watch")(v1("WatchRequest"), timeout=WAIT_S) for _ in range(300)]
        names = set()
        for stream in refused:
            try:
                next(stream)
                stream.cancel()
            except grpc.RpcError as error:
                names.add(Failed(error).name)
        assert names == {"limit_exceeded"}, names
        for raw in raws:
            raw.close()


# ---- providers --------------------------------------------------------------------------

def test_hellos_that_ask_for_too_much_are_named():
    with battle("hellos", extra_mb=64) as gateway:
        for _ in storm():
            base = {"toolset": "neighbour", "incarnation": "test-12345678"}
            for credits in (0, 10001, 0xffffffff):
                error = refuse_hello(gateway, "limit_exceeded", credits=credits, **base)
                assert "credits" in error.message
            running = v1("RunningCall", call_id="0" * 32, attempt=1, route=b"1-1", tool="add")
            error = refuse_hello(gateway, "limit_exceeded", credits=1, running=[running] * 10001,
                                 **base)
            assert "running calls" in error.message
            for bad in (v1("RunningCall"), v1("RunningCall", call_id="x", attempt=1, route=b"1"),
                        v1("RunningCall", call_id="0" * 32, attempt=1, route=b"\xff\x00")):
                refuse_hello(gateway, "validation_error", credits=1, running=[bad], **base)
            refuse_hello(gateway, "not_found", toolset="nobody", incarnation="test-12345678",
                         credits=1)
            with Provider(gateway, "twice") as provider:
                provider.say(hello=v1("Hello", toolset="twice", incarnation="test-12345678",
                                      credits=1))
                assert provider.ended.wait(WAIT_S) and provider.error.name == "validation_error"


def some_running(gateway, n, token=None):
    """Calls that never were, with the route of one that was."""
    with Caller(gateway, token) as caller, Provider(gateway, "route", TEXT, token=token) as provider:
        future = caller.start_call("route", payload=b'"x"')
        call = provider.next_call()
        provider.answer(call)
        outcome(future)
    running = type(v1("RunningCall"))  # looked up once: there are many
    return [running(call_id=random.randbytes(16).hex(), attempt=1, route=call.route, tool="add")
            for _ in range(n)]


def test_hellos_with_ten_thousand_calls_of_nobody_are_bounded():
    with battle("hellos with 10,000 calls", *FAST, extra_mb=256) as gateway:
        names = set()
        for i in range(60):
            provider = Provider(gateway, "liar", TEXT, credits=10000, incarnation=f"liar-{i:08}",
                                running=some_running(gateway, 10000))
            try:
                provider.ready()
            except Failed as error:
                names.add(error.name)
            if i % 2:
                provider.caller.close()
            else:
                provider.cut()
        assert names <= {"overloaded"}, names
        with Provider(gateway, "liar", TEXT, incarnation="liar-again", credits=10000,
                      running=some_running(gateway, 9000)) as again:
            again.cut()


def test_a_provider_that_comes_back_with_thousands_of_calls_is_taken_each_time():
    with battle("2,000 calls come back", extra_mb=256) as gateway:
        provider = Provider(gateway, "much", TEXT, credits=10000).ready()
        with Raw(gateway, window=1 << 20) as one, Raw(gateway, window=1 << 20) as two:
            request = v1("CallToolRequest", toolset="much", tool="add", payload=b'"x"',
                         timeout_ms=60000).SerializeToString()
            for raw in (one, two):
                for _ in range(1000):
                    raw.open("CallTool", request)
            calls = [provider.next_call() for _ in range(2000)]
            listed = [provider.listed(call) for call in calls]
            for _ in range(20):
                incarnation = provider.incarnation
                provider.cut()
                provider = Provider(gateway, "much", TEXT, credits=10000, running=listed,
                                    incarnation=incarnation).ready()
            for call in calls:
                provider.answer(call)
            for _ in calls:
                provider.acks.get(timeout=WAIT_S)
        provider.cut()


def test_a_call_that_is_listed_by_a_thief_is_not_his_to_answer():
    with Gateway() as gateway:
        with Caller(gateway) as caller, Provider(gateway, "sums") as provider:
            for attempt in (1, 2, 7):
                future = caller.start_call("sums")
                call = provider.next_call()
                stolen = provider.listed(call)
                stolen.attempt = attempt
                thief = Provider(gateway, "thief", running=[stolen])
                thief.welcomed.wait(WAIT_S)
                assert not thief.error, thief.error  # it can't tell whether such a call exists
                thief.say(delta=v1("Delta", call_id=call.call_id, attempt=attempt,
                                   stream="stdout", delta="666"))
                thief.say(result=v1("Result", call_id=call.call_id, attempt=attempt,
                                    chunk=b"666"))
                time.sleep(0.2)
                assert not future.done()
                provider.answer(call, b"1")
                assert outcome(future).result == b"1"
                thief.cut()


def test_a_call_that_a_thief_listed_before_its_turn_still_runs():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums") as first, Provider(gateway, "sums") as second:
        future = caller.start_call("sums")
        await_true(lambda: first.calls.qsize() + second.calls.qsize(), "one has it")
        has, other = (first, second) if first.calls.qsize() else (second, first)
        call = has.next_call()
        stolen = has.listed(call)
        stolen.attempt = 2
        with Provider(gateway, "thief", running=[stolen]):
            has.say(nak=v1("Nak", call_id=call.call_id, attempt=1))
            again = other.next_call()
            assert again.attempt == 2
            other.answer(again, b"5")
            assert outcome(future).result == b"5"


def test_floods_for_calls_of_others_change_nothing():
    with battle("floods of foreign frames", extra_mb=64) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums") as provider, Provider(gateway, "flood") as flood:
        future = caller.start_call("sums", timeout=4 * WAIT_S, timeout_ms=4000 * WAIT_S)
        call = provider.next_call()
        for i in range(8000):
            for call_id in (call.call_id, uuid.uuid4().hex, "nonsense"):
                flood.say(result=v1("Result", call_id=call_id, attempt=1, chunk=b"666",
                                    more=bool(i & 1)))
            flood.say(delta=v1("Delta", call_id=call.call_id, attempt=1, stream="s", delta="x"))
            flood.say(nak=v1("Nak", call_id=call.call_id, attempt=1))
            flood.say(pong=v1("ProviderPong", ping_id=f"nobody/{i}"))
        await_true(flood.out.empty, "all of it is sent", 2 * WAIT_S)
        assert not future.done()
        provider.answer(call, b"1")
        assert outcome(future).result == b"1"


def test_a_flood_of_results_whose_acks_nobody_reads_is_bounded():
    hello = v1("AttachRequest", hello=v1("Hello", toolset="deaf", incarnation="deaf-00000000",
                                         credits=1, registration=toolset("deaf")))
    with battle("acks unread", extra_mb=64) as gateway, Raw(gateway, window=0) as raw:
        stream = raw.open("Attach", hello.SerializeToString(), is_last=False)
        raw.socket.settimeout(2)
        try:
            for _ in range(100000):
                frame = v1("AttachRequest", result=v1("Result", call_id=uuid.uuid4().hex,
                                                      attempt=1, chunk=b"1"))
                raw.send(stream, frame.SerializeToString())
        except (socket.timeout, ConnectionError):
            pass  # it is not read, or told to go: both are bounds


def test_halves_of_results_for_ever_are_bounded_and_leave_room_to_others():
    gateway = Gateway()
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    gateway.arguments += FAST
    with gateway, battle("halves of results", extra_mb=272, gateway=gateway, token=ben), \
            Caller(gateway, ben) as caller, \
            Provider(gateway, "whole", token=ben) as whole:
        lists = [some_running(gateway, 200, anna) for _ in range(6)]
        providers = [Provider(gateway, "half", TEXT, credits=1000, running=running, token=anna).ready()
                     for running in lists]
        chunk = b"x" * 65536
        for provider, running in zip(providers, lists):
            for call in running:
                for _ in range(10):
                    provider.say(result=v1("Result", call_id=call.call_id, attempt=1, chunk=chunk,
                                           more=True))
        for provider in providers:
            await_true(provider.out.empty, "all of it is sent", 2 * WAIT_S)
        result = b'"' + b"y" * 1000000 + b'"'
        future = caller.start_call("whole")
        answer_in_chunks(whole, whole.next_call(), result)
        answer = outcome(future)
        assert answer.result == result, (len(answer.result), answer.error)
        for provider in providers:
            provider.cut()


def test_small_chunks_of_many_results_cost_their_provider_alone():
    with battle("small chunks", extra_mb=64) as gateway:
        running = some_running(gateway, 10000)
        with Provider(gateway, "crumbs", TEXT, credits=10000, running=running) as provider:
            for _ in range(3):
                for call in running:
                    provider.say(result=v1("Result", call_id=call.call_id, attempt=1, chunk=b"x",
                                           more=True))
            await_true(provider.out.empty, "all of it is sent", 4 * WAIT_S)


def test_a_result_without_end_is_refused():
    with battle("a result without end", extra_mb=64) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "endless") as provider:
        for _ in storm():
            future = caller.start_call("endless", timeout=2 * WAIT_S)
            call = provider.next_call()
            for _ in range(1000):
                provider.answer(call, b"x" * 65536, more=True)
            answer = outcome(future)
            assert answer.error.code == "malformed_result", answer
            assert "a result has more than" in answer.error.message, answer.error.message
            future = caller.start_call("endless")
            provider.answer(provider.next_call(), b"x" * 65537)
            assert "more than 64 KiB" in outcome(future).error.message


def test_providers_that_attach_and_leave_in_a_loop_take_no_place():
    with battle("attach and leave", extra_mb=96) as gateway:
        for _ in storm():
            with Caller(gateway) as caller:
                caller.ask("Register", toolset("loop"))

            def loop(number):
                for i in range(40):
                    with Raw(gateway, window=1 << 20) as raw:
                        for j in range(100):
                            hello = v1("Hello", toolset="loop", credits=1,
                                       incarnation=f"loop-{number}-{i:04}-{j:04}")
                            raw.open("Attach", v1("AttachRequest", hello=hello).SerializeToString(),
                                     is_last=False)
                        raw.socket.recv(100)

            threads = [threading.Thread(target=loop, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with Provider(gateway, "loop", registers=False), Caller(gateway) as caller:
                await_true(lambda: caller.health("loop").providers == 1, "only one is left")


# ---- who they are -----------------------------------------------------------------------

def reflection_frames():
    """A thousand streams that ask for a file of some ten KiB each."""
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    question = b"\x22\x14pegboard.v1.Registry"
    return lambda raw: b"".join(
        frame(1, 4, stream, raw.headers(path)) + data_frames(stream, question, False)
        for stream in range(1, 2000, 2))


def half_frames():
    """A hundred messages of 4 MiB, of which a part comes."""
    head = b"\x00" + struct.pack(">I", 4 << 20) + bytes(16000)
    return lambda raw: b"".join(
        frame(1, 4, stream, raw.headers("/pegboard.v1.Registry/CallTool")) + frame(0, 0, stream, head) +
        frame(0, 0, stream, bytes(16000)) * 9
        for stream in range(1, 200, 2))


def attack_together(gateway, frames, n, token=None):
    """All at once, until the last has come. How many were cut."""
    raws = []
    n_cut = 0
    for _ in range(n):
        raw = Raw(gateway, window=0, token=token)
        raws.append(raw)
        try:
            raw.socket.sendall(frames(raw))
        except OSError:
            pass
    for raw in raws:
        n_cut += is_cut(raw)
        raw.close()
    return n_cut


def is_cut(raw):
    raw.socket.settimeout(0.05)
    try:
        while raw.socket.recv(1 << 16):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def check_rest(gateway, before):
    """Memory that nobody uses goes back to the system: `serve` looks once in ten seconds."""
    if not IS_SANITIZED:
        await_true(lambda: memory_mb(gateway.process.pid, "VmRSS") - before <= 10,
                   "the gateway is as large as before", 90)


def test_strangers_without_a_token_hold_little_together_and_are_cut():
    gateway = Gateway()
    anna = make_token(gateway, "anna")
    with gateway:
        with battle("strangers", extra_mb=64, gateway=gateway, token=anna):
            before = memory_mb(gateway.process.pid, "VmRSS")
            n_cut = attack_together(gateway, reflection_frames(), 100)
            assert n_cut > 0, "none was cut"
            print(f"# {n_cut} of 100 were cut")
        check_rest(gateway, before)
        assert "E_HELD_LIMIT" in gateway.said() or "held most" in gateway.said(), gateway.said()[-2000:]


def test_messages_that_do_not_end_are_bounded_for_all_connections():
    gateway = Gateway()
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    gateway.arguments += ("--max-held", "64MiB")
    with gateway:
        with battle("halves of messages", extra_mb=96, gateway=gateway, token=ben):
            before = memory_mb(gateway.process.pid, "VmRSS")
            assert attack_together(gateway, half_frames(), 30, token=anna) > 0, "none was cut"
        check_rest(gateway, before)


def make_token(gateway, name):
    import subprocess  # pylint: disable=import-outside-toplevel

    path = os.path.join(gateway.folder, "tokens")
    made = subprocess.run([PEGBOARD, "token", "new", "--token-file", path, name], check=True,
                          capture_output=True, text=True)
    gateway.arguments = ("--token-file", path)
    return made.stdout.split()[-1]


def test_tokens_guessed_in_a_loop_and_incarnations_that_are_stolen():
    gateway = Gateway()
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    with gateway, battle("tokens guessed", extra_mb=32, gateway=gateway, token=anna):
        with Provider(gateway, "sums", token=anna) as provider, Caller(gateway, anna) as caller:
            for i in range(1500):
                guess_once(caller, ("peg_" + uuid.uuid4().hex * 2)[:47] if i % 3 else "x" * (i + 1))
            future = caller.start_call("sums")
            call = provider.next_call()
            for _ in range(10):  # its own toolset it may provide: that touches nobody else's
                with Provider(gateway, "mine", token=ben,
                              incarnation=provider.incarnation) as thief:
                    thief.answer(call, b"666")
                    thief.leave()
            provider.answer(call, b"1")
            assert outcome(future).result == b"1" and not provider.ended.is_set()
    assert "peg_" not in gateway_log(gateway)


def guess_once(caller, guess):
    try:
        caller.method("ListToolsets")(v1("ListToolsetsRequest"), timeout=WAIT_S,
                                      metadata=(("authorization", "Bearer " + guess),))
        raise AssertionError("a guess was right")
    except grpc.RpcError as error:
        failed = Failed(error)
        assert failed.name == "unauthenticated", f"{failed.name} {failed}"


# ---- HTTP/1 -----------------------------------------------------------------------------

def test_http1_garbage_is_answered_or_closed():
    lines = [b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/9.9\r\nHost: a\r\n\r\n",
             b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
             b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n",
             b"GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
             b"Content-Length: 3\r\n\r\nzzz\r\n",
             b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 50000 + b"\r\n",
             b"\x00" * 1000, b"\r\n" * 1000, b"GET", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
             b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", b"DELETE / HTTP/1.1\r\n\r\n"]
    with battle("HTTP/1 garbage", extra_mb=32) as gateway:
        for _ in range(10):
            for line in lines:
                said = http1(gateway, line)
                assert not said or said.startswith(b"HTTP/1.") or said[3:4] in b"\x04\x07", said
                assert b"root:" not in said
        said = http1(gateway, b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", WAIT_S)
        assert said.startswith(b"HTTP/1.1 200"), said[:100]


def http1(gateway, request, seconds=0.2):
    """What is said for so long, or until it is over."""
    said = b""
    with socket.create_connection(("127.0.0.1", gateway.port), WAIT_S) as peer:
        peer.settimeout(seconds)
        try:
            peer.sendall(request)
            while len(said) < 1 << 20:
                part = peer.recv(65536)
                if not part:
                    break
                said += part
        except (socket.timeout, ConnectionError):
            pass
    return said


if __name__ == "__main__":
    code = tap.run(globals())
    tell_ratios()
    sys.exit(code)
