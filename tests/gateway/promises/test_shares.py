#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one principal has taken of a gateway's memory leaves others something to begin with.

    test_shares.py PEGBOARD
"""

import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import Caller, Failed, Gateway, Provider, make_token, outcome  # noqa: E402
from world import token_file, tool, v1  # noqa: E402

A_DAY_MS = 24 * 60 * 60 * 1000
CHUNK = 64 << 10
MOST_PAYLOAD = 2 << 20
MOST_RESULT = 8 << 20
ROOM = 256 << 20  # PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES, PEG_LIMIT_BUS_LARGE_BYTES


@contextlib.contextmanager
def anna_and_ben():
    """A gateway of one loop that asks who calls."""
    gateway = Gateway()
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    gateway.arguments = ("--threads", "1", "--token-file", token_file(gateway))
    with gateway:
        yield gateway, anna, ben


def payload_of(n_bytes):
    head, tail = b'{"n":1,"more":"', b'"}'
    return head + b"x" * (n_bytes - len(head) - len(tail)) + tail


def start_slow(caller, number, payload):
    return caller.ask("StartTool", v1("CallToolRequest", toolset="slow", tool="add",
                                      payload=payload, timeout_ms=A_DAY_MS,
                                      idempotency_key=f"key-{number}"))


def test_large_payloads_of_one_principal_leave_room_to_others():
    with anna_and_ben() as (gateway, of_anna, of_ben), \
            Caller(gateway, of_anna) as anna, Caller(gateway, of_ben) as ben, \
            Provider(gateway, "slow", token=of_anna, credits=200) as slow, \
            Provider(gateway, "sums", token=of_ben) as provider:
        most = payload_of(MOST_PAYLOAD)
        started = []
        try:
            while len(started) * MOST_PAYLOAD < ROOM:
                started.append(start_slow(anna, len(started), most))
        except Failed as error:
            assert error.name == "overloaded", error
            assert "of this principal" in error.message, error.message
            assert "large payloads" in error.message, error.message
        assert len(started) == ROOM * 3 // 4 // MOST_PAYLOAD, len(started)
        future = ben.start_call("sums", payload=payload_of(100 << 10))
        provider.answer(provider.next_call())
        assert outcome(future).result == b"1"
        first = started[0].call_id
        again = start_slow(anna, 0, most)
        assert again.attached and again.call_id == first
        anna.ask("CancelTool", v1("CancelToolRequest", call_id=first))
        slow.answer(slow.next_call())
        assert anna.ask("AwaitTool", v1("AwaitToolRequest", call_id=first)).result == b"1"


def answer_in_chunks(provider, call, text):
    starts = range(0, len(text), CHUNK)
    for at in starts:
        provider.answer(call, text[at:at + CHUNK], more=at != starts[-1])


def call_with_result(caller, provider, number, text):
    """Its end, and what is told to one who asks again."""
    key = {"idempotency_key": f"key-{number}", "timeout_ms": A_DAY_MS}
    future = caller.start_call(provider.name, timeout=60, **key)
    answer_in_chunks(provider, provider.next_call(), text)
    assert outcome(future).result == text
    return caller.call(provider.name, **key)


def test_results_that_are_kept_for_one_principal_leave_room_to_others():
    most = b'"' + b"x" * (MOST_RESULT - 2) + b'"'
    with anna_and_ben() as (gateway, of_anna, of_ben), \
            Caller(gateway, of_anna) as anna, Caller(gateway, of_ben) as ben, \
            Provider(gateway, "big", tool(output_schema=b"{}"), token=of_anna) as big, \
            Provider(gateway, "sums", tool(output_schema=b"{}"), token=of_ben) as sums:
        kept = 0
        try:
            while kept * MOST_RESULT < ROOM:
                assert call_with_result(anna, big, kept, most).result == most
                kept += 1
        except Failed as error:
            assert error.name == "outcome_unknown", error
            assert "PEG_LIMIT_BUS_LARGE_BYTES" in error.message, error.message
        assert 0 < kept <= ROOM * 3 // 4 // MOST_RESULT, kept
        text = most[:1 << 20] + b'"'
        again = call_with_result(ben, sums, 0, text)
        assert again.result == text and again.attached


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
