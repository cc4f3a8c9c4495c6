#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Providers that go without a word, in each part of a call: their network breaks, they are killed,
or they are paused, and no one ever tells the gateway.

    test_lost.py PEGBOARD
"""

import os
import signal
import sys

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from wire import ProviderProcess, Wire  # noqa: E402
from world import (BRIEF, SILENT, Caller, Gateway, Provider, await_true, fails_as,  # noqa: E402
                   outcome, queued)


# ---- its network breaks before the Ack ------------------------------------------------------

def answered_and_cut(gateway, caller, how=Wire.cut):
    """A provider that has answered a call, and lost its network before the Ack came."""
    with Wire(gateway) as wire:
        provider = Provider(wire, "sums").ready()
        future = caller.start_call("sums", idempotency_key="once")
        call = provider.next_call()
        wire.mute()
        gateway.process.send_signal(signal.SIGSTOP)  # it will find the answer and the end at once
        provider.answer(call, b"7654321")
        wire.await_passed(b"7654321")
        how(wire)
        gateway.process.send_signal(signal.SIGCONT)
    assert provider.ended.wait(30) and provider.acks.empty(), "it knows of no Ack"
    return provider, call, future


def ran_once(caller, future):
    assert outcome(future).result == b"7654321"
    again = caller.call("sums", idempotency_key="once")
    return again.result == b"7654321" and again.attached


def test_a_result_counts_though_its_provider_was_lost_before_the_ack():
    for how in (Wire.cut, Wire.reset):
        with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
            _, _, future = answered_and_cut(gateway, caller, how)
            with Provider(gateway, "sums") as other:
                assert ran_once(caller, future) and other.has_no_call()


def test_a_result_that_is_sent_again_for_want_of_an_ack_is_the_same_one():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider, call, future = answered_and_cut(gateway, caller)
        with Provider(gateway, "sums", incarnation=provider.incarnation, number=2,
                      running=[provider.listed(call)]) as back:
            back.answer(call, b"666")  # it may answer as it likes: the first answer counts
            back.acks.get(timeout=30)
            assert ran_once(caller, future) and back.has_no_call()


def test_a_provider_that_comes_back_without_what_it_answered_does_not_get_it_again():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider, _, future = answered_and_cut(gateway, caller)
        with Provider(gateway, "sums", incarnation=provider.incarnation, number=2) as back:
            assert ran_once(caller, future) and back.has_no_call()


# ---- it is killed ---------------------------------------------------------------------------

def test_a_process_killed_before_the_claim_costs_nothing_and_after_it_the_outcome():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller, \
            ProviderProcess(gateway, "sums", credits=1) as first:
        running = caller.start_call("sums")
        first.hears('call {"n":1}')
        waiting = caller.start_call("sums", payload=b'{"n":2}')
        await_true(lambda: queued(caller) == 1, "the second call waits")
        with Provider(gateway, "sums") as second:
            first.kill()
            call = second.next_call()
            assert call.attempt == 2 and call.payload == b'{"n":2}'
            second.answer(call, b"2")
            assert outcome(waiting).result == b"2"
            with fails_as("outcome_unknown", grpc.StatusCode.UNKNOWN) as told:
                outcome(running)
            assert told["error"].started == "true" and second.has_no_call()


def test_a_process_killed_in_the_middle_of_its_result_leaves_the_outcome_unknown():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller, \
            ProviderProcess(gateway, "sums") as process:
        future = caller.start_call("sums")
        process.hears('call {"n":1}')
        process.tell("half 12")  # which would be a whole one, if it was taken for that
        process.hears("sent")
        process.kill()
        with fails_as("outcome_unknown", grpc.StatusCode.UNKNOWN) as told:
            outcome(future)
        assert told["error"].started == "true"


def test_a_process_killed_after_its_result_has_answered():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller, \
            ProviderProcess(gateway, "sums") as process:
        future = caller.start_call("sums")
        process.hears('call {"n":1}')
        process.tell("all 12")
        process.hears("sent")
        process.kill()
        assert outcome(future).result == b"12"


# ---- it is paused ---------------------------------------------------------------------------

def test_a_process_that_is_paused_keeps_nobody_waiting_and_is_welcome_again():
    with Gateway(*SILENT) as gateway, Caller(gateway) as caller, \
            ProviderProcess(gateway, "sums", credits=1) as paused:
        running = caller.start_call("sums", idempotency_key="once", timeout_ms=10000)
        paused.hears('call {"n":1}')
        waiting = caller.start_call("sums", payload=b'{"n":2}')
        await_true(lambda: queued(caller) == 1, "the second call waits")
        with Provider(gateway, "sums") as other:
            paused.pause()
            call = other.next_call()
            assert call.attempt == 2 and call.payload == b'{"n":2}'
            other.answer(call, b"2")
            assert outcome(waiting).result == b"2"
            with fails_as("outcome_unknown", grpc.StatusCode.UNKNOWN) as told:
                outcome(running)
            assert told["error"].started == "true" and "deadline" in told["error"].message
            assert other.has_no_call()
        await_true(lambda: caller.health("sums").state == 2, "nobody is well")
        paused.tell("all 666")
        paused.go_on()
        paused.hears("sent")
        await_true(lambda: caller.health("sums").state == 1, "it is well again")
        with fails_as("outcome_unknown"):
            caller.call("sums", idempotency_key="once")
        future = caller.start_call("sums", payload=b'{"n":3}')
        paused.hears('call {"n":3}')
        paused.tell("all 3")
        paused.hears("sent")
        assert outcome(future).result == b"3"


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
