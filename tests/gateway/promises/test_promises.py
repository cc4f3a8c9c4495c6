#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What DESIGN 5.4 promises about a call, each promise with a test that tries to break it.

    test_promises.py PEGBOARD [SANITIZERS]
"""

import contextlib
import itertools
import os
import signal
import sys
import threading
import time

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import (BRIEF, SILENT, WAIT_S, Caller, Echo, Failed, Gateway, Provider,  # noqa: E402
                   await_true, fails_as, failure, make_token, outcome, queued, token_file, tool, toolset, v1)

IS_SANITIZED = len(sys.argv) > 2 and sys.argv[2] != "none"
A_DAY_MS = 24 * 60 * 60 * 1000


# ---- a provider dies --------------------------------------------------------------------

def test_a_provider_lost_before_the_claim_costs_nothing_another_runs_the_call():
    with Gateway() as gateway, Caller(gateway) as caller:
        first = Provider(gateway, "sums", credits=1).ready()
        running = caller.start_call("sums")
        first.next_call()
        waiting = caller.start_call("sums", payload=b'{"n":2}')
        await_true(lambda: queued(caller) == 1, "the second call waits")
        with Provider(gateway, "sums") as second:
            first.cut()
            call = second.next_call()
            assert call.attempt == 2 and call.payload == b'{"n":2}'
            second.answer(call, b"2")
            assert outcome(waiting).result == b"2"
        running.cancel()


def test_a_provider_lost_after_the_hand_over_leaves_the_outcome_unknown():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        provider.next_call()
        provider.cut()
        with fails_as("outcome_unknown", grpc.StatusCode.UNKNOWN) as told:
            outcome(future)
        assert told["error"].started == "true"


def test_a_provider_lost_in_the_middle_of_a_result_leaves_the_outcome_unknown():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b'"half', more=True)
        time.sleep(0.1)
        provider.cut()
        with fails_as("outcome_unknown"):
            outcome(future)


def test_a_provider_lost_after_its_ack_has_answered():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b"7")
        provider.acks.get(timeout=30)
        provider.cut()
        assert outcome(future).result == b"7"


def test_a_provider_that_comes_back_with_the_call_finishes_it():
    with Gateway() as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        call = provider.next_call()
        provider.cut()
        await_true(lambda: caller.health("sums").providers == 0, "the stream is gone")
        with Provider(gateway, "sums", incarnation=provider.incarnation,
                      running=[provider.listed(call)]) as again:
            again.answer(call, b"9")
            assert outcome(future).result == b"9"
            again.acks.get(timeout=30)


def test_a_provider_that_comes_back_without_the_call_never_had_it():
    with Gateway() as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        call = provider.next_call()
        provider.stream.cancel()  # its connection stays, and so does the loop that handed the call
        await_true(lambda: caller.health("sums").providers == 0, "the stream is gone")
        with Provider(gateway, "sums", incarnation=provider.incarnation, number=2,
                      caller=provider.caller) as back:
            again = back.next_call()
            assert again.attempt == 2 and again.call_id == call.call_id
            back.answer(again, b"3")
            assert outcome(future).result == b"3"


def test_an_idempotent_tool_is_started_again_when_its_provider_is_lost():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        safe = tool(idempotent=True)
        provider = Provider(gateway, "sums", safe).ready()
        future = caller.start_call("sums")
        provider.next_call()
        with Provider(gateway, "sums", safe) as other:
            provider.cut()
            other.answer(other.next_call(), b"4")
            assert outcome(future).result == b"4"


def test_a_provider_that_is_silent_is_unhealthy_and_fails_calls_at_once():
    with Gateway(*SILENT) as gateway, Caller(gateway) as caller:
        with Provider(gateway, "sums", answers_pings=False) as provider:
            await_true(lambda: caller.health("sums").state == 2, "unhealthy")
            with fails_as("service_unavailable", grpc.StatusCode.UNAVAILABLE) as told:
                caller.call("sums", timeout_ms=600000)
            assert 'no healthy providers for toolset "sums"' in told["error"].message
            provider.answers_pings = True
            await_true(lambda: caller.health("sums").state == 1, "healthy again")
            future = caller.start_call("sums", payload=b'{"n":2}')
            call = provider.next_call()
            assert call.payload == b'{"n":2}', "it was never asked for the one before"
            provider.answer(call, b"2")
            assert outcome(future).result == b"2"


# ---- the gateway dies -------------------------------------------------------------------

def test_a_gateway_that_is_killed_keeps_its_registrations_and_callers_are_told():
    with Gateway() as gateway:
        with Caller(gateway) as caller:
            provider = Provider(gateway, "sums").ready()
            caller.ask("Register", toolset("other", version="1.2.3"))
            future = caller.start_call("sums")
            provider.next_call()
            gateway.stop(signal.SIGKILL)
            try:
                outcome(future)
                raise AssertionError("the caller was not told")
            except Failed as error:
                assert error.code == grpc.StatusCode.UNAVAILABLE
        gateway.start()
        with Caller(gateway) as caller:
            names = [info.name for info in
                     caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets]
            assert names == ["other", "sums"], names
            with Provider(gateway, "sums", registers=False) as back:
                Echo(back)
                assert caller.call("sums").result == b"1"


def epoch_of(caller):
    """What the gateway calls its memory of calls."""
    _, call = caller.method("GetToolset").with_call(v1("GetToolsetRequest", name="sums"))
    return dict(call.initial_metadata())["pegboard-epoch"]


def test_a_gateway_that_was_killed_does_not_start_again_what_it_may_have_started():
    tools = (tool(), tool("peek", idempotent=True))
    with Gateway() as gateway:
        with Caller(gateway) as caller:
            provider = Provider(gateway, "sums", *tools).ready()
            asked = (("pegboard-asked-epoch", epoch_of(caller)),)
            future = caller.start_call("sums", idempotency_key="key-1")
            provider.next_call()
            gateway.stop(signal.SIGKILL)
            try:
                outcome(future)
                raise AssertionError("the caller was not told")
            except Failed as error:
                assert error.code == grpc.StatusCode.UNAVAILABLE
        gateway.start()
        with Caller(gateway) as caller, Provider(gateway, "sums", *tools) as back:
            assert epoch_of(caller) != asked[0][1]
            for again in (asked, (("pegboard-asked-epoch", "unknown"),)):
                with fails_as("outcome_unknown") as told:
                    caller.call("sums", metadata=again, idempotency_key="key-1")
                assert "restarted" in told["error"].message
                assert told["error"].started == "true"
            assert back.has_no_call()
            Echo(back)
            assert caller.call("sums", "peek", metadata=asked,
                               idempotency_key="key-2").result == b"1"


def test_a_gateway_that_never_heard_the_first_ask_starts_with_the_second():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        Echo(provider)
        asked = (("pegboard-asked-epoch", epoch_of(caller)),)
        assert caller.call("sums", metadata=asked, idempotency_key="key-1").result == b"1"
        lost = (("pegboard-asked-epoch", "unknown"),)
        assert caller.call("sums", metadata=lost, idempotency_key="key-1").attached


# ---- callers ----------------------------------------------------------------------------

def test_a_cancellation_reaches_the_provider():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        call = provider.next_call()
        future.cancel()
        cancel = provider.cancels.get(timeout=30)
        assert cancel.call_id == call.call_id and cancel.reason == "canceled"


def test_a_call_canceled_before_its_start_is_never_started():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=1) as provider:
        running = caller.start_call("sums")
        first = provider.next_call()
        waiting = caller.start_call("sums", payload=b'{"n":2}')
        await_true(lambda: queued(caller) == 1, "the second call waits")
        waiting.cancel()
        await_true(lambda: queued(caller) == 0, "it waits no more")
        provider.answer(first)
        assert outcome(running).result == b"1"
        assert provider.has_no_call()


def test_a_deadline_reaches_the_provider_and_has_a_name():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        # Of these seconds the gateway leaves a twentieth for its answer to arrive. A slow machine needs more.
        for seconds in (4, 20, 60):
            future = caller.start_call("sums", timeout=seconds)
            call = provider.next_call()
            assert 0 < call.timeout_ms <= seconds * 1000
            reason = provider.cancels.get(timeout=seconds + WAIT_S).reason
            error = failure(future)
            if error.code != grpc.StatusCode.DEADLINE_EXCEEDED:  # by which a caller gives up itself
                break
        assert reason == "deadline"
        assert (error.name, error.code) == ("outcome_unknown", grpc.StatusCode.UNKNOWN), error
        assert error.started == "true"
        assert "the deadline passed while the tool was running" in error.message


def test_a_deadline_in_the_queue_is_a_timeout_that_never_started():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=1) as provider:
        running = caller.start_call("sums")
        first = provider.next_call()
        with fails_as("timeout", grpc.StatusCode.DEADLINE_EXCEEDED) as told:
            caller.call("sums", timeout_ms=200)
        assert told["error"].started == "false"
        provider.answer(first)
        outcome(running)
        assert provider.has_no_call()


def test_a_time_beyond_its_limit_is_refused_wherever_it_is_named():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        started = caller.ask("StartTool", v1("CallToolRequest", toolset="sums", tool="add",
                                             payload=b'{"n":1}', timeout_ms=A_DAY_MS))
        call = provider.next_call()
        for bad in (-5, A_DAY_MS + 1, 10 ** 13, 2 ** 63 - 1):
            named = {"toolset": "sums", "tool": "add", "payload": b'{"n":1}', "timeout_ms": bad}
            for verb, request in (
                    ("Register", toolset("others", tool(timeout_ms=bad))),
                    ("CallTool", v1("CallToolRequest", **named)),
                    ("StartTool", v1("CallToolRequest", **named)),
                    ("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id,
                                     timeout_ms=bad))):
                with fails_as("invalid_range", grpc.StatusCode.INVALID_ARGUMENT) as told:
                    caller.ask(verb, request)
                assert "timeout_ms is " in told["error"].message, (verb, bad)
        provider.answer(call, b"6")
        assert caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id,
                                          timeout_ms=A_DAY_MS)).result == b"6"
        assert provider.has_no_call()


def test_the_same_identity_attaches_to_the_first_call():
    for identity in ({"meta": v1("CallMeta", run_id="r", tool_call_id="c")},
                     {"idempotency_key": "k"}):
        with Gateway() as gateway, Caller(gateway) as caller, Caller(gateway) as other, \
                Provider(gateway, "sums") as provider:
            first = caller.start_call("sums", **identity)
            call = provider.next_call()
            second = other.start_call("sums", **identity)
            time.sleep(0.2)
            provider.answer(call, b"5")
            answers = outcome(first), outcome(second)
            assert [answer.result for answer in answers] == [b"5", b"5"]
            assert [answer.attached for answer in answers] == [False, True]
            for same in (b'{"n":1}', b'{ "n": 1 }', b'{\n\t"n": 1\n}\n'):
                assert caller.call("sums", payload=same, **identity).result == b"5"
            assert provider.has_no_call()
            with fails_as("validation_error"):
                caller.call("sums", payload=b'{"n":2}', **identity)


def test_a_long_call_is_started_awaited_and_canceled_by_its_id():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}')
        started = caller.ask("StartTool", request)
        call = provider.next_call()
        with fails_as("timeout"):
            caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id,
                                       timeout_ms=100))
        provider.answer(call, b"6")
        for _ in range(2):
            assert caller.ask("AwaitTool", v1("AwaitToolRequest",
                                              call_id=started.call_id)).result == b"6"
        started = caller.ask("StartTool", request)
        call = provider.next_call()
        caller.ask("CancelTool", v1("CancelToolRequest", call_id=started.call_id))
        assert provider.cancels.get(timeout=30).call_id == call.call_id
        provider.fail(call, "canceled", "as you wish")
        ended = caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))
        assert ended.error.code == "canceled"
        with fails_as("not_found"):
            caller.ask("AwaitTool", v1("AwaitToolRequest", call_id="0" * 64))


# ---- order of checks --------------------------------------------------------------------

def test_a_call_both_invalid_and_unhealthy_is_invalid():
    with Gateway() as gateway, Caller(gateway) as caller:
        caller.ask("Register", toolset("sums"))
        with fails_as("validation_error", grpc.StatusCode.INVALID_ARGUMENT) as told:
            caller.call("sums", payload=b'{"n":"one"}')
        assert told["error"].message.startswith("payload validation failed: ")
        with fails_as("service_unavailable"):
            caller.call("sums")
        with fails_as("not_found"):
            caller.call("sums", "subtract", b"nonsense")


def test_a_schema_that_does_not_compile_leaves_no_trace():
    with Gateway() as gateway, Caller(gateway) as caller:
        with fails_as("validation_error", grpc.StatusCode.INVALID_ARGUMENT) as told:
            caller.ask("Register", toolset("sums", tool(), tool("bad",
                                                                input_schema=b'{"type":7}')))
        assert 'invalid tool schema: tool "bad"' in told["error"].message
        assert not caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets
        caller.ask("Register", toolset("good"))
        gateway.stop()
        gateway.start()
        with Caller(gateway) as later:
            kept = later.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets
            assert [info.name for info in kept] == ["good"], kept
            with fails_as("not_found"):
                later.ask("GetToolset", v1("GetToolsetRequest", name="sums"))


# ---- bounds -----------------------------------------------------------------------------

def test_a_full_queue_is_overloaded_with_a_hint():
    with Gateway("--max-queue", "2") as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=1) as provider:
        futures = [caller.start_call("sums")]
        call = provider.next_call()
        futures += [caller.start_call("sums") for _ in range(2)]
        await_true(lambda: queued(caller) == 2, "two calls wait")
        with fails_as("overloaded", grpc.StatusCode.RESOURCE_EXHAUSTED) as told:
            caller.call("sums")
        assert int(told["error"].trailers["pegboard-retry-after-ms"]) > 0
        provider.answer(call)
        Echo(provider)
        assert all(outcome(future).result == b"1" for future in futures)


def test_ten_thousand_calls_are_in_flight_at_once():
    with Gateway() as gateway, Provider(gateway, "sums", credits=10000) as provider:
        callers = [Caller(gateway) for _ in range(16)]
        futures = [callers[i % 16].start_call("sums", payload=b'{"n":%d}' % i, timeout=120)
                   for i in range(10000)]
        calls = [provider.calls.get(timeout=60) for _ in range(10000)]
        for call in calls:
            provider.answer(call, call.payload[5:-1])
        assert [outcome(future).result for future in futures] == [b"%d" % i for i in range(10000)]
        for caller in callers:
            caller.close()


# ---- providers that misbehave -----------------------------------------------------------

def test_of_two_answers_the_first_counts():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        call = provider.next_call()
        provider.answer(call, b"1")
        provider.answer(call, b"2")
        assert outcome(future).result == b"1"
        Echo(provider)
        assert caller.call("sums", payload=b'{"n":3}').result == b"3"


def test_nobody_answers_for_the_call_of_another():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider, \
            Provider(gateway, "other") as thief:
        future = caller.start_call("sums")
        call = provider.next_call()
        thief.answer(call, b"666")
        thief.say(nak=v1("Nak", call_id=call.call_id, attempt=call.attempt))
        time.sleep(0.2)
        assert not future.done()
        provider.answer(call, b"1")
        assert outcome(future).result == b"1"


def test_a_result_that_violates_its_schema_is_an_error_of_the_tool():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(output_schema=b'{"type":"integer"}')) as provider:
        for wrong in (b'"many"', b"{", b"1 2"):
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), wrong)
            assert outcome(future).error.code == "malformed_result"


def test_malformed_server_data_void_the_result():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        good = v1("ServerData", kind="trace", audience="observer", data=b'{"ms":3}')
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b"1", server_data=[good])
        assert outcome(future).server_data[0].data == b'{"ms":3}'
        for bad in (v1("ServerData", kind="trace", data=b"{"), v1("ServerData", data=b"1")):
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"1", server_data=[bad])
            assert outcome(future).error.code == "malformed_result"


def resident_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


# 100 calls of 100 kB are 10 MB, and the gateway has them as they came, as they go, and in buffers.
# Twice as much as that is a gateway that keeps for a deaf provider what it should not.
DEAF_MB = 64


def test_a_provider_that_stops_reading_holds_up_nobody_else():
    pings = ("--ping-interval", "1s", "--missed-ping-threshold", "20")  # which the deaf one does not hear either
    with Gateway(*pings) as gateway, Caller(gateway) as caller, Provider(gateway, "good") as good:
        Echo(good)
        before_mb = resident_mb(gateway.process.pid)
        deaf = Provider(gateway, "deaf", tool(input_schema=b'{"type":"string"}'), credits=1000,
                        answers_pings=False).ready()
        deaf.take = lambda frame: time.sleep(60)  # the next frame is never taken
        text = b'"' + b"z" * 100000 + b'"'
        futures = [caller.start_call("deaf", payload=text, timeout_ms=5000) for _ in range(100)]
        n = grown_mb = 0
        while not all(future.done() for future in futures):
            n += 1
            assert caller.call("good", payload=b'{"n":%d}' % n).result == b"%d" % n
            grown_mb = max(grown_mb, resident_mb(gateway.process.pid) - before_mb)
        failures = [failure(future) for future in futures]
        # It is the gateway that tells each of them, and not a caller that has waited for too long.
        named = {(error.name, error.started) for error in failures}
        assert ("outcome_unknown", "true") in named, "none was handed over"
        assert named <= {("outcome_unknown", "true"), ("timeout", "false"),
                         ("service_unavailable", "false")}, named
        assert IS_SANITIZED or grown_mb < DEAF_MB, f"{grown_mb:.0f} MB more"
        deaf.cut()


# ---- what is carried through ------------------------------------------------------------

def test_meta_metadata_and_trace_context_reach_the_provider():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        future = caller.start_call(
            "sums", meta=v1("CallMeta", run_id="r", session_id="s", turn_id="t",
                            parent_tool_call_id="p"),
            metadata=[v1("MetadataEntry", key="tenant", value="acme")], traceparent=trace)
        call = provider.next_call()
        assert (call.meta.run_id, call.meta.session_id, call.meta.turn_id) == ("r", "s", "t")
        assert call.meta.parent_tool_call_id == "p"
        assert [(entry.key, entry.value) for entry in call.metadata] == [("tenant", "acme")]
        assert call.traceparent == trace and call.caller == "local"
        provider.answer(call)
        outcome(future)
        future = caller.begin("CallTool", v1("CallToolRequest", toolset="sums", tool="add",
                                             payload=b'{"n":1}'),
                              metadata=[("traceparent", trace), ("tracestate", "a=b")])
        call = provider.next_call()
        assert (call.traceparent, call.tracestate) == (trace, "a=b")
        provider.answer(call)
        outcome(future)


def test_outputs_come_before_the_result():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = caller.method("CallToolStream")(
            v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}'), timeout=30)
        call = provider.next_call()
        for text in ("one", "two"):
            provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt,
                                  stream="stdout", delta=text))
        provider.answer(call, b"3")
        events = list(stream)
        assert [event.WhichOneof("event") for event in events] == \
            ["started", "output", "output", "result"]
        assert [event.output.delta for event in events[1:3]] == ["one", "two"]
        assert events[0].started.call_id == events[3].result.call_id == call.call_id
        assert events[3].result.result == b"3"


def shared_streams(callers, key):
    """One call that each of them has begun or joined, as each has heard."""
    request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', idempotency_key=key)
    streams = [caller.method("CallToolStream")(request, timeout=WAIT_S) for caller in callers]
    for stream in streams:
        assert next(stream).WhichOneof("event") == "started"
    return streams


class Listener(threading.Thread):
    """Remembers what comes on a stream."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.events = stream, []
        self.start()

    def run(self):
        for event in self.stream:
            self.events.append(event)


def test_who_joins_on_another_loop_hears_output_too():
    with Gateway("--threads", "4") as gateway, Provider(gateway, "sums") as provider:
        callers = [Caller(gateway) for _ in range(8)]
        listeners = [Listener(stream) for stream in shared_streams(callers, "shared")]
        call = provider.next_call()
        numbers = itertools.count(1)

        def all_hear():  # outputs are hints: some come before their driver knows who listens
            provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt, stream="stdout",
                                  delta=str(next(numbers))))
            return all(listener.events for listener in listeners)

        await_true(all_hear, "each hears something before the end")
        provider.answer(call, b"3")
        for listener in listeners:
            listener.join(WAIT_S)
            *outputs, last = listener.events
            assert last.result.result == b"3", listener.events
            heard = [int(event.output.delta) for event in outputs]
            assert heard and heard == sorted(set(heard)), "each once, in order"
        assert provider.has_no_call()
        for caller in callers:
            caller.close()


def test_the_last_who_goes_on_any_loop_cancels_the_call():
    with Gateway("--threads", "4") as gateway, Provider(gateway, "sums") as provider:
        callers = [Caller(gateway) for _ in range(8)]
        for rounds in range(2):
            streams = shared_streams(callers, f"shared-{rounds}")
            provider.next_call()
            for stream in streams[1:] if rounds else streams[:-1]:
                stream.cancel()
            time.sleep(0.3)
            assert provider.cancels.empty(), "somebody waited"
            streams[0 if rounds else -1].cancel()
            assert provider.cancels.get(timeout=WAIT_S).reason == "canceled"
        for caller in callers:
            caller.close()


def test_a_result_may_come_by_emit_tool_result():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        call = provider.next_call()
        request = v1("EmitToolResultRequest", call_id=call.call_id, attempt=call.attempt,
                     result=b"11")
        caller.ask("EmitToolResult", request)
        assert outcome(future).result == b"11"
        with fails_as("not_found"):
            caller.ask("EmitToolResult", request)


def test_a_result_without_an_attempt_is_of_the_attempt_that_runs():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums")
        call = provider.next_call()
        provider.say(nak=v1("Nak", call_id=call.call_id, attempt=call.attempt, reason=1))
        call = provider.next_call()
        assert call.attempt == 2
        request = v1("EmitToolResultRequest", call_id=call.call_id, result=b"12")
        caller.ask("EmitToolResult", request)
        assert outcome(future).result == b"12"
        with fails_as("not_found"):
            caller.ask("EmitToolResult", request)


# ---- whose it is ------------------------------------------------------------------------

def test_another_principal_cannot_touch_a_toolset_or_a_call():
    with Gateway() as gateway:
        tokens = {name: make_token(gateway, name) for name in ("anna", "ben")}
        gateway.stop()
        gateway.arguments = ("--token-file", token_file(gateway))
        gateway.start()
        with Caller(gateway, tokens["anna"]) as anna, Caller(gateway, tokens["ben"]) as ben, \
                Provider(gateway, "sums", token=tokens["anna"]) as provider:
            with Caller(gateway) as nobody, fails_as("unauthenticated"):
                nobody.call("sums")
            with Caller(gateway, "peg_" + "A" * 43) as wrong, fails_as("unauthenticated"):
                wrong.call("sums")
            with fails_as("permission_denied"):
                ben.ask("Register", toolset("sums", version="9.9.9"))
            with fails_as("permission_denied"):
                ben.ask("Unregister", v1("UnregisterRequest", name="sums"))
            for registers in (True, False):
                intruder = Provider(gateway, "sums", token=tokens["ben"], registers=registers)
                with fails_as("permission_denied"):
                    intruder.ready()
                intruder.cut()
            thief = Provider(gateway, "other", token=tokens["ben"],
                             incarnation=provider.incarnation)
            thief.welcomed.wait(30)
            request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}',
                         idempotency_key="mine")
            started = anna.ask("StartTool", request)
            call = provider.next_call()
            with fails_as("not_found"):
                ben.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id))
            with fails_as("not_found"):
                ben.ask("CancelTool", v1("CancelToolRequest", call_id=started.call_id))
            with fails_as("not_found"):
                ben.ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id,
                                             result=b"666"))
            own = ben.start_call("sums", idempotency_key="mine")
            bens = provider.next_call()
            assert bens.call_id != call.call_id and bens.caller != call.caller
            provider.answer(bens, b"2")
            provider.answer(call, b"1")
            assert outcome(own).result == b"2"
            assert anna.ask("AwaitTool", v1("AwaitToolRequest",
                                            call_id=started.call_id)).result == b"1"
            thief.cut()



# ---- several loops ----------------------------------------------------------------------

def test_a_provider_is_known_at_every_loop_when_it_is_welcomed():
    """Goal: nobody who has heard of the Welcome is told that there is no provider, whichever loop it calls at."""
    with Gateway("--store", "memory", "--threads", "4") as gateway, contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(gateway)) for _ in range(8)]
        for caller in callers:
            caller.ask("ListToolsets", v1("ListToolsetsRequest"))
        for i in range(60):
            name = f"sums{i}"
            provider = stack.enter_context(Provider(gateway, name, credits=8)).ready()
            futures = [caller.start_call(name) for caller in callers]
            for _ in futures:
                provider.answer(provider.next_call(), b"1")
            assert [outcome(future).result for future in futures] == [b"1"] * len(callers), name


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
