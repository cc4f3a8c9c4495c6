#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attach streams that do what no good program does, and programs with several of them.

    test_attach.py PEGBOARD
"""

import os
import sys
import time
import uuid

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import (BRIEF, SILENT, Caller, Gateway, Provider, await_true, outcome,  # noqa: E402
                   toolset, v1)


# ---- registrations that no stream can serve ---------------------------------------------------

def test_a_hello_with_a_direct_registration_is_refused_and_registers_nothing():
    with Gateway("--store", "memory") as gateway, Caller(gateway) as caller:
        caller.ask("Register", toolset("sums"))
        for name in ("sums", "fresh"):
            frame = hello_with_registration(name)
            frame.hello.registration.kind = 2
            assert attach_with(caller, [frame]) == grpc.StatusCode.INVALID_ARGUMENT
        listed = caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets
        assert [(info.name, info.kind) for info in listed] == [("sums", 1)], listed


def test_a_hello_that_is_refused_is_told_with_its_toolset():
    with Gateway() as gateway, Caller(gateway) as caller:
        for n, hello in enumerate((
                {"incarnation": "short"},
                {"incarnation": "test-12345678", "registration": toolset("another")},
                {"incarnation": "test-12345678", "registration": toolset("sums-2", kind=2)},
                {"incarnation": "test-12345678",
                 "running": [v1("RunningCall", call_id="no id")]})):
            said = attach_with(caller, [v1("AttachRequest", hello=v1(
                "Hello", toolset=f"sums-{n}", credits=1, **hello))])
            assert said == grpc.StatusCode.INVALID_ARGUMENT, said
            told = (f"event=refused error=validation_error rpc=/pegboard.v1.Registry/Attach "
                    f"toolset=sums-{n} principal=local peer=127.0.0.1:")
            await_true(lambda told=told: told in gateway.said(), told)


def test_a_hello_with_a_registration_of_another_toolset_hears_what_to_do():
    with Gateway("--store", "memory") as gateway, Caller(gateway) as caller:
        frame = hello_with_registration("sums")
        frame.hello.registration.name = "other"
        try:
            list(caller.method("Attach")(iter([frame])))
            assert False, "it was let in"
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert "Hello, which is of 'sums': name the same in both, or" in error.details(), error


# ---- what waits while the toolset is registered ---------------------------------------------

def hello_with_registration(name):
    hello = v1("Hello", toolset=name, incarnation="test-" + uuid.uuid4().hex, credits=4, number=1)
    hello.registration.CopyFrom(toolset(name))
    return v1("AttachRequest", hello=hello)


def attach_with(caller, frames):
    """All frames and the half-close at once: how it ended."""
    try:
        for _ in caller.method("Attach")(iter(frames)):
            pass
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def serves(gateway, caller):
    """A gateway that still does its work."""
    with Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b"5")
        return outcome(future).result == b"5" and gateway.process.poll() is None


def test_a_stream_may_end_while_its_registration_is_written():
    with Gateway() as gateway, Caller(gateway) as caller:
        for i in range(20):
            frames = [hello_with_registration(f"left-{i}")]
            assert attach_with(caller, frames) == grpc.StatusCode.OK
        assert serves(gateway, caller)


def test_a_second_hello_while_the_first_is_registered_ends_the_stream_alone():
    with Gateway() as gateway, Caller(gateway) as caller:
        for i in range(20):
            frames = [hello_with_registration(f"twice-{i}")] * 2
            assert attach_with(caller, frames) == grpc.StatusCode.INVALID_ARGUMENT
        assert serves(gateway, caller)


# ---- results that are begun and never finished ----------------------------------------------

CHUNK = b" " * 65536
N_CHUNKS = 126  # not quite 8 MiB, the largest result


def begin_result(provider, call):
    for _ in range(N_CHUNKS):
        provider.answer(call, CHUNK, more=True)


def finish_in_chunks(provider, caller):
    """A result that takes a little room only."""
    future = caller.start_call("sums")
    call = provider.next_call()
    provider.answer(call, b"4", more=True)
    provider.answer(call, b"2")
    return outcome(future).result == b"42"


def test_a_begun_result_takes_no_room_when_its_call_is_refused():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=1) as provider:
        for _ in range(9):  # 8 of them are PEG_LIMIT_GATEWAY_ASSEMBLED_BYTES
            future = caller.start_call("sums")
            call = provider.next_call()
            begin_result(provider, call)
            provider.say(nak=v1("Nak", call_id=call.call_id, attempt=call.attempt, reason=1))
            provider.answer(provider.next_call(), b"7")
            assert outcome(future).result == b"7"
        assert finish_in_chunks(provider, caller)


def test_a_begun_result_takes_no_room_when_its_call_was_answered_otherwise():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=1) as provider:
        for _ in range(9):
            events = caller.method("CallToolStream")(
                v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}'), timeout=30)
            call = provider.next_call()
            begin_result(provider, call)
            provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt,
                                  stream="stdout", delta="begun"))
            while next(events).WhichOneof("event") != "output":
                pass  # when it comes, the chunks before it have come
            caller.ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id,
                                            attempt=call.attempt, result=b"11"))
            assert next(events).result.result == b"11"
        assert finish_in_chunks(provider, caller)


# ---- one process, several toolsets ----------------------------------------------------------

def test_a_process_may_provide_two_toolsets_with_one_incarnation():
    with Gateway(*SILENT, *BRIEF) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums") as sums:
        future = caller.start_call("sums")
        call = sums.next_call()
        for _ in range(10):  # for several leases, on this loop and on another one
            with Provider(gateway, "lists", incarnation=sums.incarnation) as lists:
                other = caller.start_call("lists")
                lists.answer(lists.next_call(), b"8")
                assert outcome(other).result == b"8"
                lists.leave()
            time.sleep(0.9)
        assert not future.done() and not sums.ended.is_set(), "the other toolset is another matter"
        sums.answer(call, b"9")
        assert outcome(future).result == b"9"


def test_a_process_with_two_toolsets_comes_back_with_the_calls_of_each():
    with Gateway() as gateway, Caller(gateway) as caller:
        incarnation = "process-" + uuid.uuid4().hex
        names = ("sums", "lists")
        before = {name: Provider(gateway, name, incarnation=incarnation).ready() for name in names}
        futures = {name: caller.start_call(name) for name in names}
        calls = {name: before[name].next_call() for name in names}
        for name in names:
            before[name].cut()
        for name in names:
            with Provider(gateway, name, incarnation=incarnation, number=2,
                          running=[before[name].listed(calls[name])]) as again:
                again.answer(calls[name], b"10")
                assert outcome(futures[name]).result == b"10"


def test_another_stream_of_the_same_incarnation_and_toolset_takes_its_place():
    with Gateway() as gateway, Provider(gateway, "sums") as before:
        with Provider(gateway, "sums", incarnation=before.incarnation, number=2):
            assert before.ended.wait(30) and before.error.name == "conflict"


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
