#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The registries of goa-ai beside ours: results that come by EmitToolResult, and whose they are.

    test_compat.py PEGBOARD
"""

import http.client
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from wire import Wire  # noqa: E402
from world import (SILENT, Caller, Gateway, Provider, await_true, failure, fails_as,  # noqa: E402
                   make_token, outcome, protos, token_file, v1)

G0, G1 = "registry", "goa_ai_registry"
CHUNK = 64 << 10
MOST = 8 << 20


def any_of(**value):
    """As goa writes it: a Value in an Any."""
    return protos().make("google.protobuf.Any", type_url="type.googleapis.com/google.protobuf.Value",
                         value=protos().make("google.protobuf.Value", **value).SerializeToString())


def json_of(wrapped):
    value = protos().make("google.protobuf.Value")
    value.ParseFromString(wrapped.value)
    return json.loads(value.string_value)


def call_g0(caller):
    return caller.method("CallTool", "registry.Registry").future(
        protos().make("registry.CallToolRequest", toolset="sums", tool="add",
                      payload=any_of(string_value='{"n":1}')), timeout=30,
        metadata=caller.metadata)


def emit_g0(caller, call, **what):
    caller.ask("EmitToolResult", protos().make("registry.EmitToolResultRequest",
                                               tool_use_id=call.call_id, **what),
               service="registry.Registry")


def answer_in_chunks(provider, call, text):
    for at in range(0, len(text), CHUNK):
        provider.answer(call, text[at:at + CHUNK], more=at + CHUNK < len(text))


def text_of(n_bytes):
    return b'"' + b"%07d " * 2 % (n_bytes, n_bytes) + b"x" * (n_bytes - 18) + b'"'


def in_flight(caller):
    return caller.ask("Status", v1("StatusRequest"), service="pegboard.v1.Admin").in_flight


def ask_of(service, caller, verb, **fields):
    return caller.ask(verb, protos().make(f"{service}.{verb}Request", **fields),
                      service=service + ".Registry")


# ---- CallTool -------------------------------------------------------------------------------

def test_the_trace_context_of_a_caller_by_g0_reaches_the_provider():
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
             "tracestate": "a=1", "baggage": "tenant=7"}
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        caller.metadata = tuple(trace.items())
        future = call_g0(caller)
        call = provider.next_call()
        provider.answer(call)
        assert json_of(outcome(future).result) == 1
        assert {key: getattr(call, key) for key in trace} == trace, call


def test_trace_context_in_several_fields_reaches_the_provider_as_one():
    """W3C: lists that come in pieces are put together, in their order, with commas."""
    fields = (("baggage", "tenant=7"), ("tracestate", "a=1"), ("baggage", ""),
              ("tracestate", "b=2"), ("baggage", "user=8,plan=9;p=1"))
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        caller.metadata = fields
        for start in (call_g0, lambda caller: caller.start_call("sums")):
            future = start(caller)
            call = provider.next_call()
            provider.answer(call)
            outcome(future)
            assert call.baggage == "tenant=7,user=8,plan=9;p=1", call
            assert call.tracestate == "a=1,b=2", call
        future = caller.start_call("sums", baggage="mine=1")
        call = provider.next_call()
        provider.answer(call)
        outcome(future)
        assert (call.baggage, call.tracestate) == ("mine=1", "a=1,b=2"), "what it says itself wins"


def test_trace_context_in_several_fields_reaches_the_provider_by_http_too():
    fields = (("Baggage", "tenant=7"), ("tracestate", "a=1"), ("baggage", "user=8"), ("tracestate", "b=2"),
              ("Content-Type", "application/json"), ("Content-Length", "7"))
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.putrequest("POST", "/v1/toolsets/sums/tools/add/calls")
        for name, value in fields:
            connection.putheader(name, value)
        connection.endheaders(b'{"n":1}')
        call = provider.next_call()
        provider.answer(call)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, 1), response.status
        connection.close()
        assert (call.baggage, call.tracestate) == ("tenant=7,user=8", "a=1,b=2"), call


def test_results_of_every_size_arrive_by_g0():
    """Around every border: of a length, of what is sent in one piece, of what goes out shared, of
    what clients take by default; and the most that there is."""
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for n_bytes in (18, 127, 128, 8 << 10, (8 << 10) + 1, CHUNK + 1, 4 << 20, 5 << 20, MOST):
            text = text_of(n_bytes)
            future = call_g0(caller)
            call = provider.next_call()
            answer_in_chunks(provider, call, text)
            answer = outcome(future)
            assert answer.result.type_url == "type.googleapis.com/google.protobuf.Value"
            assert json_of(answer.result) == json.loads(text), n_bytes
            assert answer.tool_use_id == call.call_id and not answer.HasField("error")


def test_errors_of_every_size_arrive_by_g0():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for words in ("", "not today", "not " * 10000):
            future = call_g0(caller)
            provider.fail(provider.next_call(), "tired", words)
            error = outcome(future).error
            assert (error.code, error.message_) == ("tired", words)
            assert error.HasField("message_"), "the reference insists on it"


def test_who_cannot_be_told_by_g0_hears_that_the_tool_has_run():
    """More waits on the connection than it may hold (PEG_LIMIT_GRPC_HELD_BYTES)."""
    with Gateway() as gateway, Wire(gateway) as wire, Caller(wire) as caller, \
            Caller(gateway) as other, Provider(gateway, "sums") as provider:
        future = call_g0(caller)
        call = provider.next_call()
        crowd = [caller.start_call("sums", idempotency_key="crowd") for _ in range(30)]
        crowded = provider.next_call()
        await_true(lambda: in_flight(other) == 2, "both run")
        caller.ask("ListToolsets", v1("ListToolsetsRequest"))  # what was asked before has come
        wire.hold()
        answer_in_chunks(provider, crowded, text_of(3 << 20))
        answer_in_chunks(provider, call, text_of(MOST))
        await_true(lambda: in_flight(other) == 0, "both have ended")
        wire.go_on()
        error = failure(future)
        assert error.name == "outcome_unknown" and error.started == "true", error
        assert error.trailers["pegboard-call-id"] == call.call_id
        assert "64 MiB wait on this connection" in error.message, error.message
        for one in crowd:
            one.cancel()


# ---- EmitToolResult -------------------------------------------------------------------------

def test_a_result_may_come_by_the_emit_of_g0():
    numbers = {"values": [{"number_value": 1}, {"bool_value": True}]}
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for sent, got in (({"string_value": '{"ok":true}'}, {"ok": True}),
                          ({"list_value": numbers}, [1, True])):
            future = call_g0(caller)
            call = provider.next_call()
            emit_g0(caller, call, result=any_of(**sent))
            answer = outcome(future)
            assert json_of(answer.result) == got and not answer.HasField("error")
            assert answer.tool_use_id == call.call_id
            with fails_as("not_found"):
                emit_g0(caller, call, result=any_of(string_value="2"))
        future = caller.start_call("sums")
        emit_g0(caller, provider.next_call(), result=any_of(string_value="7"))
        assert outcome(future).result == b"7", "whoever called by ours gets it, too"


def test_an_error_may_come_by_the_emit_of_g0():
    tired = protos().make("registry.ToolError", code="tired", message_="not today")
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = call_g0(caller)
        emit_g0(caller, provider.next_call(), error=tired)
        answer = outcome(future)
        assert (answer.error.code, answer.error.message_) == ("tired", "not today")
        assert not answer.HasField("result")
        future = call_g0(caller)
        emit_g0(caller, provider.next_call(), result=any_of(string_value="no JSON"))
        assert outcome(future).error.code == "malformed_result"
        future = call_g0(caller)
        emit_g0(caller, provider.next_call())  # neither: its result is null
        answer = outcome(future)
        assert not answer.HasField("error") and not answer.HasField("result")


# ---- whose it is ----------------------------------------------------------------------------

def test_another_principal_cannot_touch_a_toolset_by_the_registries_of_goa_ai():
    with Gateway(*SILENT) as gateway:
        tokens = {name: make_token(gateway, name) for name in ("anna", "ben")}
        gateway.stop()
        gateway.arguments += ("--token-file", token_file(gateway))
        gateway.start()
        with Caller(gateway, tokens["anna"]) as anna, Caller(gateway, tokens["ben"]) as ben, \
                Provider(gateway, "sums", token=tokens["anna"]) as provider:
            for service in (G0, G1):
                with fails_as("permission_denied"):
                    ask_of(service, ben, "Unregister", name="sums")
            future = call_g0(anna)
            call = provider.next_call()
            with fails_as("not_found"):
                emit_g0(ben, call, result=any_of(string_value="666"))
            emit_g0(anna, call, result=any_of(string_value="1"))
            assert json_of(outcome(future).result) == 1
            provider.answers_pings = False
            await_true(lambda: anna.health("sums").state == 2, "nothing is heard of it")
            heard_ms = anna.health("sums").last_pong_unix_ms
            pong = {"ping_id": provider.last_ping, "toolset": "sums"}
            for service in (G0, G1, "pegboard.v1"):
                ask_of(service, ben, "Pong", **pong)  # it is answered, as it must be
            time.sleep(0.2)
            assert anna.health("sums").last_pong_unix_ms == heard_ms, "ben spoke for it"
            for service in (G0, G1):
                ask_of(service, anna, "Pong", **pong)
                await_true(lambda: anna.health("sums").last_pong_unix_ms > heard_ms, "it is heard")
                heard_ms = anna.health("sums").last_pong_unix_ms
                time.sleep(0.01)  # its clock has milliseconds
            for service in (G0, G1):
                ask_of(service, anna, "Unregister", name="sums")
                anna.ask("Register", v1("RegisterRequest", name="sums", tools=[
                    v1("Tool", name="add", input_schema=b"{}")]))


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
