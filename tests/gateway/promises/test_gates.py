#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A running call asks, and its caller answers: what is promised about that, each with a test that tries to break it.

    test_gates.py PEGBOARD [SANITIZERS]
"""

import json
import os
import pty
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from asking import (CAN_FORM, REQUESTS, RESPONSES, Post, Stream, answered, ask, finish, input_required,  # noqa: E402
                    packed, post, reply)
from tasking import begin  # noqa: E402
from world import (BRIEF, PEGBOARD, WAIT_S, Caller, Gateway, Provider, await_true, fails_as, make_token,  # noqa: E402
                   token_file, v1)

# ---- asked and answered -----------------------------------------------------------------

def test_a_question_reaches_the_caller_and_its_answer_the_provider():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        assert provider.welcome.takes_input
        stream = Stream(caller)
        call = provider.next_call()
        assert call.can_be_asked
        ask(provider, call)
        question = stream.question()
        assert question.number == 1 and json.loads(question.requests) == REQUESTS
        reply(caller, stream.call_id)
        answer = answered(provider)
        assert (answer.call_id, answer.attempt, answer.number) == (call.call_id, 1, 1)
        assert json.loads(answer.responses) == RESPONSES and not answer.refusal
        finish(provider, call, stream)


def test_questions_follow_each_other():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        for number in (1, 2, 3):
            ask(provider, call, number)
            assert stream.question().number == number
            reply(caller, stream.call_id, number, {"n": number})
            assert json.loads(answered(provider).responses) == {"n": number}
        finish(provider, call, stream)


def test_a_refusal_is_an_answer():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        reply(caller, stream.call_id, responses=None, refusal="nobody is here")
        answer = answered(provider)
        assert answer.refusal == "nobody is here" and not answer.responses
        finish(provider, call, stream)


def test_who_asks_again_or_awaits_gets_the_question_too():
    with Gateway() as gateway, Caller(gateway) as caller, Caller(gateway) as other, \
            Provider(gateway, "sums") as provider:
        first = Stream(caller, idempotency_key="k")
        call = provider.next_call()
        ask(provider, call)
        first.question()
        second = Stream(other, idempotency_key="k")
        assert second.question().number == 1
        awaited = other.ask("AwaitTool", v1("AwaitToolRequest", call_id=call.call_id, can_be_asked=True))
        assert awaited.question.number == 1 and not awaited.result
        reply(other, call.call_id)
        answered(provider)
        provider.answer(call, b"5")
        assert first.result() == second.result() == b"5"
        awaited = other.ask("AwaitTool", v1("AwaitToolRequest", call_id=call.call_id, can_be_asked=True))
        assert awaited.result == b"5" and not awaited.HasField("question")


def test_a_call_that_was_started_is_asked_when_somebody_awaits_it():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        started = caller.ask("StartTool", v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}',
                                             can_be_asked=True))
        call = provider.next_call()
        ask(provider, call)
        wait = v1("AwaitToolRequest", call_id=started.call_id, can_be_asked=True)
        assert caller.ask("AwaitTool", wait).question.number == 1
        reply(caller, started.call_id)
        answered(provider)
        provider.answer(call, b"5")
        assert caller.ask("AwaitTool", wait).result == b"5"


def test_a_question_that_was_answered_is_not_asked_again():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller, idempotency_key="k")
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        reply(caller, call.call_id)
        answered(provider)
        late = Stream(caller, idempotency_key="k")
        provider.answer(call, b"5")
        assert late.result() == b"5"


# ---- who cannot be asked ----------------------------------------------------------------

def test_a_caller_that_does_not_say_so_cannot_be_asked():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums", can_be_asked=True)  # unary: there is no way to ask
        call = provider.next_call()
        assert not call.can_be_asked
        ask(provider, call)
        assert "cannot be asked" in answered(provider).refusal
        provider.answer(call, b"5")
        assert future.result(WAIT_S).result == b"5"
        stream = Stream(caller, can_be_asked=False)
        call = provider.next_call()
        assert not call.can_be_asked
        ask(provider, call)
        assert "cannot be asked" in answered(provider).refusal
        finish(provider, call, stream)


def test_what_is_no_question_is_refused_at_once():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        for requests, words in ((b"[1]", "no JSON object"), (b"{", "no JSON object"),
                                (packed({"a": "x" * (64 << 10)}), "64 KiB")):
            provider.say(input=v1("Input", call_id=call.call_id, attempt=1, number=1, requests=requests))
            assert words in answered(provider).refusal
        finish(provider, call, stream)


def test_a_call_asks_a_bounded_number_of_questions():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        for number in range(1, 33):
            ask(provider, call, number)
            stream.question()
            reply(caller, stream.call_id, number)
            assert not answered(provider).refusal
        ask(provider, call, 33)
        assert "too often" in answered(provider).refusal
        finish(provider, call, stream)


# ---- one answer -------------------------------------------------------------------------

def test_the_first_answer_counts_and_a_second_is_refused():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        reply(caller, call.call_id, responses={"first": 1})
        for second in ({"second": 2}, {"first": 1}):
            with fails_as("conflict"):
                reply(caller, call.call_id, responses=second)
        assert json.loads(answered(provider).responses) == {"first": 1}
        finish(provider, call, stream)
        assert provider.answers.empty()


def test_of_many_answers_at_once_one_is_taken():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        futures = [caller.begin("AnswerCall", v1("AnswerCallRequest", call_id=call.call_id, number=1,
                                                 responses=packed({"n": n}))) for n in range(16)]
        taken = [n for n, future in enumerate(futures) if not future.exception(WAIT_S)]
        assert len(taken) == 1, taken
        assert json.loads(answered(provider).responses) == {"n": taken[0]}
        finish(provider, call, stream)


def test_another_principal_can_neither_answer_nor_see_the_question():
    with Gateway() as gateway:
        ours, theirs = make_token(gateway, "ours"), make_token(gateway, "theirs")
        gateway.stop()
        gateway.arguments = ("--token-file", token_file(gateway))
        gateway.start()
        with Caller(gateway, ours) as caller, Caller(gateway, theirs) as other, \
                Provider(gateway, "sums", token=ours) as provider:
            stream = Stream(caller)
            call = provider.next_call()
            ask(provider, call)
            stream.question()
            with fails_as("not_found"):
                reply(other, call.call_id)
            with fails_as("not_found"):
                other.ask("AwaitTool", v1("AwaitToolRequest", call_id=call.call_id, can_be_asked=True))
            reply(caller, call.call_id)
            answered(provider)
            finish(provider, call, stream)


def test_an_answer_to_nothing_is_refused():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        with fails_as("not_found"):
            reply(caller, call.call_id)
        with fails_as("not_found"):
            reply(caller, "ab" * 32)
        with fails_as("not_found"):
            reply(caller, "ab" * 16)
        for bad in ({"number": 0}, {"number": 33}, {"responses": None}, {"refusal": "both"}, {"responses": [1]}):
            with fails_as("validation_error"):
                reply(caller, call.call_id, **bad)
        ask(provider, call)
        stream.question()
        finish(provider, call, stream)
        with fails_as("not_found"):
            reply(caller, call.call_id)


def test_a_question_that_was_withdrawn_cannot_be_answered():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        ask(provider, call, withdrawn=True)
        ask(provider, call, 2)
        assert stream.question().number == 2
        with fails_as("conflict") as told:
            reply(caller, call.call_id, 1)
        assert "does not wait" in told["error"].message
        reply(caller, call.call_id, 2)
        assert answered(provider).number == 2
        finish(provider, call, stream)


# ---- who goes meanwhile -----------------------------------------------------------------

def test_a_provider_that_comes_back_asks_again_and_gets_the_answer():
    with Gateway() as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        provider.cut()
        await_true(lambda: caller.health("sums").providers == 0, "the stream is gone")
        reply(caller, call.call_id)
        with Provider(gateway, "sums", incarnation=provider.incarnation,
                      running=[provider.listed(call)]) as again:
            ask(again, call)
            assert json.loads(answered(again).responses) == RESPONSES
            finish(again, call, stream)


def test_a_provider_that_is_lost_while_it_waits_ends_the_call():
    with Gateway(*BRIEF) as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        provider.cut()
        with fails_as("outcome_unknown"):
            stream.result()
        with fails_as("not_found"):
            reply(caller, call.call_id)


def test_a_caller_that_gives_up_cancels_the_call_that_asks():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        stream = Stream(caller)
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        stream.rpc.cancel()
        assert provider.cancels.get(timeout=WAIT_S).call_id == call.call_id


def test_a_call_that_may_ask_has_time_for_people():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        before_ms = time.time() * 1000
        started = caller.ask("StartTool", v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}',
                                             can_be_asked=True))
        assert 620e3 < started.deadline_unix_ms - before_ms < 700e3
        provider.answer(provider.next_call(), b"5")
        started = caller.ask("StartTool", v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}',
                                             can_be_asked=True, timeout_ms=5000))
        assert started.deadline_unix_ms - before_ms < 60e3
        provider.answer(provider.next_call(), b"5")


# ---- the command ------------------------------------------------------------------------

FORM = {"gate-1": {"method": "elicitation/create", "params": {
    "message": "Really\x1b[2J?", "requestedSchema": {
        "type": "object", "required": ["sure"],
        "properties": {"sure": {"type": "boolean"}, "why": {"type": "string", "description": "a reason"},
                       "n": {"type": "integer"}}}}}}


def begin_call(gateway, *options, **more):
    return subprocess.Popen([PEGBOARD, "call", "--registry", gateway.address, *options, "sums", "add", "n=1"],
                            stdout=subprocess.PIPE, text=True, **more)


def test_the_command_answers_with_what_it_was_given():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        with begin_call(gateway, "--answer", '{"sure":true}', "--answer", '{"sure":false}',
                        stdin=subprocess.DEVNULL) as command:
            call = provider.next_call()
            for number, content in ((1, {"sure": True}), (2, {"sure": False})):
                ask(provider, call, number, FORM)
                assert json.loads(answered(provider).responses) == {
                    "gate-1": {"action": "accept", "content": content}}
            ask(provider, call, 3, FORM)
            assert "more than --answer" in answered(provider).refusal
            ask(provider, call, 4, {"r": {"method": "roots/list"}})
            assert "forms only" in answered(provider).refusal
            provider.answer(call, b"5")
            assert command.communicate(timeout=WAIT_S)[0] == "5\n" and command.returncode == 0


def test_the_command_asks_at_the_terminal():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        ours, theirs = pty.openpty()
        with begin_call(gateway, stdin=theirs, stderr=theirs) as command:
            os.close(theirs)
            call = provider.next_call()
            assert call.can_be_asked
            ask(provider, call, 1, FORM)
            seen = b""
            while not seen.endswith(b"sure (boolean): "):
                seen += os.read(ours, 4096)
            assert b"Really" in seen and b"\x1b[2J" not in seen, seen
            os.write(ours, b"true\n@/etc/passwd\n\n")
            assert json.loads(answered(provider).responses) == {
                "gate-1": {"action": "accept", "content": {"sure": True, "why": "@/etc/passwd"}}}
            ask(provider, call, 2)
            while not seen.endswith(b"accept? [y/N] "):
                seen += os.read(ours, 4096)
            os.write(ours, b"n\n")
            assert json.loads(answered(provider).responses) == {"gate-1": {"action": "decline"}}
            ask(provider, call, 3)
            while seen.count(b"accept? [y/N] ") < 2:
                seen += os.read(ours, 4096)
            os.write(ours, b"\x04")
            assert "ended the input" in answered(provider).refusal
            provider.answer(call, b"5")
            assert command.communicate(timeout=WAIT_S)[0] == "5\n" and command.returncode == 0
        os.close(ours)


def test_the_command_without_terminal_and_answer_cannot_be_asked():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        with begin_call(gateway, stdin=subprocess.DEVNULL) as command:
            call = provider.next_call()
            assert not call.can_be_asked
            provider.answer(call, b"5")
            assert command.communicate(timeout=WAIT_S)[0] == "5\n"
        with begin_call(gateway, "--answer", "{", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            command.communicate(timeout=WAIT_S)
            assert command.returncode == 2


# ---- MCP --------------------------------------------------------------------------------

def test_a_modern_client_is_asked_and_its_retry_finds_the_call():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        first = Post(gateway, CAN_FORM)
        call = provider.next_call()
        ask(provider, call, 1, FORM)
        asked = input_required(first.answer())
        assert asked["inputRequests"] == FORM
        responses = {"gate-1": {"action": "accept", "content": {"sure": True}}}
        second = Post(gateway, CAN_FORM, requestState=asked["requestState"], inputResponses=responses)
        assert json.loads(answered(provider).responses) == responses
        ask(provider, call, 2)
        asked = input_required(second.answer())
        third = Post(gateway, CAN_FORM, requestState=asked["requestState"], inputResponses=RESPONSES)
        assert answered(provider).number == 2
        provider.answer(call, b"5")
        status, message = third.answer()
        assert status == 200 and message["result"]["content"][0]["text"] == "5", message
        assert provider.has_no_call()


def test_a_retry_without_answers_is_asked_again_and_a_second_answer_is_none():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        first = Post(gateway, CAN_FORM)
        call = provider.next_call()
        ask(provider, call, 1, FORM)
        state = input_required(first.answer())["requestState"]
        assert input_required(post(gateway, CAN_FORM, requestState=state))["inputRequests"] == FORM
        posts = [Post(gateway, CAN_FORM, requestState=state, inputResponses={"gate-1": {"n": n}}) for n in range(2)]
        answered(provider)
        provider.answer(call, b"5")
        assert [one.answer()[1]["result"]["content"][0]["text"] for one in posts] == ["5", "5"]
        assert provider.answers.empty() and provider.has_no_call()


def test_a_retry_whose_stream_is_closed_cancels_the_call():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        first = Post(gateway, CAN_FORM)
        call = provider.next_call()
        ask(provider, call)
        retry = {"requestState": input_required(first.answer())["requestState"], "inputResponses": RESPONSES}
        connection = begin(gateway, "tools/call", {"name": "add", "arguments": {"n": 1}, **retry}, CAN_FORM,
                           meta={"progressToken": 1})
        assert answered(provider).number == 1

        def has_begun():  # the retry waits for the call once it reports what that does
            provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt, stream="out", delta="x"))
            return select.select([connection.sock], [], [], 0.05)[0]
        await_true(has_begun, "the retry reports output")
        connection.close()
        assert provider.cancels.get(timeout=WAIT_S).call_id == call.call_id


def test_a_state_fits_no_other_request_and_nobody_else():
    with Gateway() as gateway:
        ours, theirs = make_token(gateway, "ours"), make_token(gateway, "theirs")
        gateway.stop()
        gateway.arguments = ("--token-file", token_file(gateway))
        gateway.start()
        with Provider(gateway, "sums", token=ours) as provider:
            first = Post(gateway, CAN_FORM, token=ours)
            call = provider.next_call()
            ask(provider, call, 1, FORM)
            state = input_required(first.answer())["requestState"]
            tampered = state[:20] + ("A" if state[20] != "A" else "B") + state[21:]
            for more in ({"token": theirs, "requestState": state}, {"token": ours, "requestState": state, "n": 2},
                         {"token": ours, "requestState": tampered}, {"token": ours, "requestState": "x"}):
                status, message = post(gateway, CAN_FORM, inputResponses=RESPONSES, **more)
                assert status == 400 and message["error"]["code"] == -32602, message
            assert provider.answers.empty()


def test_a_modern_client_that_cannot_be_asked_is_told_what_it_lacks():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        first = Post(gateway, {"roots": {}})
        call = provider.next_call()
        assert call.can_be_asked
        ask(provider, call, 1, FORM)
        status, message = first.answer()
        assert status == 400 and message["error"]["code"] == -32021, message
        assert message["error"]["data"]["requiredCapabilities"] == CAN_FORM
        assert provider.cancels.get(timeout=WAIT_S).call_id == call.call_id
        second = Post(gateway, {})
        call = provider.next_call()
        assert not call.can_be_asked
        provider.fail(call, "E_GATE_UNSUPPORTED", "nobody can be asked")
        status, message = second.answer()
        assert status == 400 and message["error"]["code"] == -32021, message
        assert message["error"]["data"]["requiredCapabilities"] == CAN_FORM


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
