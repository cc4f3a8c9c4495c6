#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Payloads, results and server-data that are large: what goes in comes out, whichever way it takes.

    test_large.py PEGBOARD
"""

import os
import sys

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import Caller, Failed, Gateway, Provider, fails_as, outcome, tool, v1  # noqa: E402

CHUNK = 64 << 10
MOST = 8 << 20
# Around every border: what is read on the loop, one chunk, lengths of two, three and four bytes.
SIZES = (8 << 10, (8 << 10) + 1, CHUNK, CHUNK + 1, 2 << 20, (2 << 20) + 1, MOST)


def text_of(n_bytes):
    """JSON that shows when a part of it is missing, or in another place."""
    words = b"".join(b"%07d " % i for i in range(n_bytes // 8 + 1))
    return b'"' + words[:n_bytes - 2] + b'"'


def answer_in_chunks(provider, call, text, **last):
    starts = range(0, len(text), CHUNK)
    for at in starts:
        is_last = at == starts[-1]
        provider.answer(call, text[at:at + CHUNK], more=not is_last, **(last if is_last else {}))


def test_results_of_every_size_arrive_by_every_way():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for n_bytes in SIZES:
            text = text_of(n_bytes)
            key = {"idempotency_key": f"key-{n_bytes}"}
            request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', **key)
            stream = caller.method("CallToolStream")(request, timeout=60)
            started = next(stream).started
            answer_in_chunks(provider, provider.next_call(), text)
            last = list(stream)[-1].result
            assert last.result == text and last.call_id == started.call_id and not last.attached
            again = caller.call("sums", **key)
            assert again.result == text and again.attached and again.call_id == last.call_id
            awaited = caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=last.call_id))
            assert awaited.result == text and awaited.call_id == last.call_id
            assert provider.has_no_call(0)


def test_a_result_that_is_too_large_is_refused():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums", timeout=60)
        answer_in_chunks(provider, provider.next_call(), text_of(MOST + 1))
        answer = outcome(future)
        assert answer.error.code == "malformed_result" and not answer.result
        assert "a result has more than" in answer.error.message


def test_large_results_are_read_before_anybody_gets_them():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(output_schema=b'{"type":"string"}')) as provider:
        text = text_of(300000)
        for bad, word in ((text[:-1], "middle of a value"), (b"[" + text + b"]", "string")):
            future = caller.start_call("sums")
            answer_in_chunks(provider, provider.next_call(), bad)
            answer = outcome(future)
            assert answer.error.code == "malformed_result" and not answer.result
            assert answer.error.message.startswith("result validation failed: ")
            assert word in answer.error.message, answer.error.message
        future = caller.start_call("sums")
        answer_in_chunks(provider, provider.next_call(), text)
        assert outcome(future).result == text


def test_an_error_behind_a_large_result_is_what_counts():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        answer_in_chunks(provider, provider.next_call(), text_of(300000),
                         error=v1("ToolError", code="tired", message="not today"))
        answer = outcome(future)
        assert answer.error.code == "tired" and not answer.result


def test_server_data_come_behind_a_large_result():
    good = [v1("ServerData", kind="trace", data=text_of(1 << 20)),
            v1("ServerData", kind="log", audience="observer", data=b"7")]
    bad = [good[1], v1("ServerData", kind="trace", data=text_of(1 << 20)[:-1])]
    text = text_of(MOST)
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        answer_in_chunks(provider, provider.next_call(), text, server_data=good)
        answer = outcome(future)
        assert answer.result == text and list(answer.server_data) == good
        future = caller.start_call("sums")
        answer_in_chunks(provider, provider.next_call(), text, server_data=bad)
        answer = outcome(future)
        assert answer.error.code == "malformed_result" and not answer.server_data
        assert "server-data" in answer.error.message, answer.error.message


def test_server_data_that_are_refused_take_nothing_of_the_room_for_results():
    """Each leaves something behind in what was to become the answer."""
    good = v1("ServerData", kind="trace", data=text_of(1 << 20))
    text = text_of(300000)
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for bad in ([good, v1("ServerData", kind="", data=b"7")],
                    [v1("ServerData", kind="log", data=b"7"), v1("ServerData", kind="log", data=b"{")]):
            future = caller.start_call("sums")
            answer_in_chunks(provider, provider.next_call(), text, server_data=bad)
            assert outcome(future).error.code == "malformed_result"
            future = caller.start_call("sums")
            answer_in_chunks(provider, provider.next_call(), text)
            assert outcome(future).result == text


def test_who_joins_an_ended_call_gets_its_large_result_at_once():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        text = text_of(MOST)
        request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}',
                     idempotency_key="joined")
        future = caller.begin("CallTool", request)
        answer_in_chunks(provider, provider.next_call(), text,
                         server_data=[v1("ServerData", kind="trace", data=text_of(1 << 20))])
        assert outcome(future).result == text
        for _ in range(3):
            *_, last = caller.method("CallToolStream")(request, timeout=60)
            assert last.result.result == text and last.result.attached


def test_who_cannot_be_told_a_large_result_hears_that_it_is_there():
    """More of them wait on one connection than it may hold (PEG_LIMIT_GRPC_HELD_BYTES)."""
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        text = text_of(MOST)
        key = {"idempotency_key": "crowd"}
        futures = [caller.start_call("sums", **key) for _ in range(12)]
        call = provider.next_call()
        for _ in range(3):  # what was asked before on this connection has come
            caller.ask("ListToolsets", v1("ListToolsetsRequest"))
        answer_in_chunks(provider, call, text)
        untold = 0
        for future in futures:
            try:
                assert outcome(future).result == text
            except Failed as error:
                untold += 1
                assert error.name == "outcome_unknown" and error.started == "true", error
                assert error.trailers["pegboard-call-id"] == call.call_id
        assert 0 < untold < 12, untold
        assert caller.call("sums", **key).result == text
        assert provider.has_no_call(0)


def test_a_caller_who_leaves_in_the_middle_of_a_large_result_leaves_nothing_behind():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        text = text_of(MOST)
        key = {"idempotency_key": "left"}
        with Caller(gateway) as leaving:
            future = leaving.start_call("sums", **key)
            answer_in_chunks(provider, provider.next_call(), text)
            provider.acks.get(timeout=30)  # the result stands, and is on its way
            future.cancel()
        again = caller.call("sums", **key)
        assert again.result == text and again.attached
        # One who takes no more than the first bytes is told so by his own gRPC.
        with grpc.insecure_channel(gateway.address,
                                   [("grpc.max_receive_message_length", 1 << 20)]) as channel:
            small = Caller(gateway)
            small.channel = channel
            try:
                small.method("CallTool")(v1("CallToolRequest", toolset="sums", tool="add",
                                            payload=b'{"n":1}', **key), timeout=30)
                raise AssertionError("a message of 8 MiB was taken")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert caller.call("sums", **key).result == text
        assert provider.has_no_call(0)


def test_large_server_data_arrive_and_malformed_ones_void_the_result():
    large = b'{"text":"' + b"x" * (1 << 20) + b'"}'
    good = [v1("ServerData", kind="trace", data=large),
            v1("ServerData", kind="log", audience="observer", data=b"7")]
    bad = [good[0], v1("ServerData", kind="log", data=large[:-1])]
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for error in (None, v1("ToolError", code="tired", message="not today")):
            more = {"error": error} if error else {}
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"" if error else b"1", server_data=good, **more)
            answer = outcome(future)
            assert [data.data for data in answer.server_data] == [large, b"7"]
            assert answer.error.code == ("tired" if error else "")
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"" if error else b"1", server_data=bad, **more)
            answer = outcome(future)
            assert answer.error.code == "malformed_result" and not answer.server_data
            assert "server-data" in answer.error.message, answer.error.message
        for data, code in ((good, ""), (bad, "malformed_result")):
            future = caller.start_call("sums")
            call = provider.next_call()
            caller.ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id,
                                            attempt=call.attempt, result=b"1", server_data=data))
            assert outcome(future).error.code == code


def test_what_a_payload_may_be_is_an_option_up_to_what_the_library_takes():
    with Gateway("--max-payload", "4MiB") as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(input_schema=b'{"type":"string"}')) as provider:
        text = b'"' + b"y" * ((4 << 20) - 66000) + b'"'  # a stock provider takes 4 MiB in all
        future = caller.start_call("sums", payload=text)
        call = provider.next_call()
        assert call.payload == text
        provider.answer(call)
        assert outcome(future).result == b"1"
        with fails_as("limit_exceeded") as told:
            caller.call("sums", payload=b'"' + b"y" * (4 << 20) + b'"')
        assert "--max-payload" in told["error"].message
    with Gateway("--max-payload", "1KiB") as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(input_schema=b'{"type":"string"}')):
        with fails_as("limit_exceeded") as told:
            caller.call("sums", payload=b'"' + b"y" * 1024 + b'"')
        assert "1024 bytes" in told["error"].message


def test_a_large_payload_is_checked_and_one_too_large_is_refused():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(input_schema=b'{"type":"string"}')) as provider:
        text = b'"' + b"y" * ((2 << 20) - 2) + b'"'
        future = caller.start_call("sums", payload=text)
        call = provider.next_call()
        assert call.payload == text
        provider.answer(call)
        assert outcome(future).result == b"1"
        with fails_as("limit_exceeded") as told:
            caller.call("sums", payload=text + b" ")
        assert "PEG_LIMIT_GATEWAY_PAYLOAD_BYTES" in told["error"].message
        with fails_as("validation_error"):
            caller.call("sums", payload=b'{"a":' + text[:-1000] + b'"}')


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
