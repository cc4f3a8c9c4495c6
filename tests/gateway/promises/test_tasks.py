#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A call that takes long is a task for MCP clients that take tasks: what is promised about that.

    test_tasks.py PEGBOARD [SANITIZERS]
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
import tasking  # noqa: E402
from asking import CAN_FORM, REQUESTS, RESPONSES, answered, ask  # noqa: E402
from tasking import CAN_ALL, TAKES_TASKS, TASKS, cancel, get, is_unknown, make_task, until, update  # noqa: E402
from world import (WAIT_S, Caller, Gateway, Provider, await_true, make_token, token_file, v1)  # noqa: E402

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


def test_a_call_that_takes_long_becomes_a_task_and_its_result_is_kept():
    with Gateway() as gateway, Provider(gateway, "sums") as provider, Caller(gateway) as caller:
        found = tasking.result(tasking.ask(gateway, "server/discover", {}))
        assert TASKS in found["capabilities"]["extensions"], found
        running, task = make_task(gateway, provider)
        assert get(gateway, task)["status"] == "working"
        assert get(gateway, task)["createdAt"] == task["createdAt"]
        provider.answer(running, b"5")
        for _ in range(2):
            done = until(gateway, task, "completed")
            assert done["result"]["content"] == [{"type": "text", "text": "5"}], done
        assert caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=task["taskId"])).result == b"5"
        assert provider.has_no_call()
    tasking.judge()


def test_a_call_that_is_fast_or_whose_client_takes_no_tasks_is_answered():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        def is_answered():
            connection = tasking.begin(gateway, "tools/call", {"name": "add", "arguments": {"n": 1}})
            provider.answer(provider.next_call(), b"5")
            said = connection.getresponse().read()
            connection.close()
            return b'"resultType":"complete"' in said
        await_true(is_answered, "a call is faster than a task")
        plain = tasking.begin(gateway, "tools/call", {"name": "add", "arguments": {"n": 1}}, {})
        waiting = provider.next_call()
        running, task = make_task(gateway, provider)  # as long as a task takes
        provider.answer(waiting, b"6")
        assert b'"resultType":"complete"' in plain.getresponse().read()
        plain.close()
        for method in METHODS:
            status, message = tasking.ask(gateway, method, {"taskId": task["taskId"], "inputResponses": {}}, {})
            assert status == 400 and message["error"]["code"] == -32021, message
            assert message["error"]["data"]["requiredCapabilities"] == TAKES_TASKS
        provider.answer(running, b"5")
    tasking.judge()


def test_a_tool_that_fails_completes_its_task():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        running, task = make_task(gateway, provider)
        provider.fail(running, "E_SUMS", "no such sum")
        done = until(gateway, task, "completed")
        assert done["result"]["isError"] and done["result"]["content"][0]["text"] == "no such sum", done
    tasking.judge()


def test_a_task_is_canceled_and_stays_so():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        running, task = make_task(gateway, provider)
        cancel(gateway, task)
        assert provider.cancels.get(timeout=WAIT_S).call_id == running.call_id
        provider.fail(running, "E_CANCELED", "stopped by the caller")
        assert until(gateway, task, "cancelled")["statusMessage"] == "stopped by the caller"
        cancel(gateway, task)
        assert get(gateway, task)["status"] == "cancelled"
    tasking.judge()


def test_a_task_asks_and_is_answered():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        running, task = make_task(gateway, provider)
        ask(provider, running, 1)
        asked = until(gateway, task, "input_required")
        assert asked["inputRequests"] == REQUESTS, asked
        update(gateway, task, {"other": {"action": "accept"}})
        assert provider.answers.empty()
        update(gateway, task, {**RESPONSES, "other": {"action": "accept"}})
        answer = answered(provider)
        assert tasking.json.loads(answer.responses) == RESPONSES and answer.number == 1, answer
        assert get(gateway, task)["status"] == "working"
        update(gateway, task, RESPONSES)
        second = {"gate-2": REQUESTS["gate-1"]}
        ask(provider, running, 2, second)
        assert until(gateway, task, "input_required")["inputRequests"] == second
        update(gateway, task, {"gate-2": {"action": "decline"}})
        assert answered(provider).number == 2 and provider.answers.empty()
        both = {"gate-3": REQUESTS["gate-1"], "gate-4": REQUESTS["gate-1"]}
        ask(provider, running, 3, both)
        until(gateway, task, "input_required")
        status, message = tasking.ask(gateway, "tasks/update", {"taskId": task["taskId"], "inputResponses": {
            "gate-3": {"action": "decline"}}})
        assert status == 400 and "at once" in message["error"]["message"], message
        assert get(gateway, task)["inputRequests"] == both
        answers = {key: {"action": "decline"} for key in both}
        update(gateway, task, answers)
        assert tasking.json.loads(answered(provider).responses) == answers
        provider.answer(running, b"5")
        until(gateway, task, "completed")
        update(gateway, task, RESPONSES)
    tasking.judge()


def test_a_task_that_asks_what_its_client_cannot_answer_is_refused_that():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        running, task = make_task(gateway, provider)
        ask(provider, running, 1, {"r": {"method": "roots/list"}})
        await_true(lambda: get(gateway, task) and not provider.answers.empty(), "the question is refused")
        assert "cannot be asked" in answered(provider).refusal
        assert get(gateway, task)["status"] == "working"
        optional = {"r": {"method": "roots/list", "optional": True}}
        ask(provider, running, 2, {**REQUESTS, **optional})
        assert until(gateway, task, "input_required")["inputRequests"] == REQUESTS
        update(gateway, task, RESPONSES)
        assert answered(provider).number == 2
        ask(provider, running, 3, optional)
        await_true(lambda: get(gateway, task) and not provider.answers.empty(), "nothing is asked")
        assert answered(provider).responses == b"{}"
        provider.answer(running, b"5")
        until(gateway, task, "completed")
    tasking.judge()


def test_a_retry_that_takes_long_becomes_a_task():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        params = {"name": "add", "arguments": {"n": 1}}
        connection = tasking.begin(gateway, "tools/call", params, CAN_FORM)
        running = provider.next_call()
        ask(provider, running, 1)
        asked = tasking.json.loads(connection.getresponse().read())["result"]
        connection.close()
        assert asked["resultType"] == "input_required", asked
        task = tasking.result(tasking.ask(gateway, "tools/call", {
            **params, "requestState": asked["requestState"], "inputResponses": RESPONSES}))
        assert task["resultType"] == "task" and task["taskId"] == running.call_id, task
        assert answered(provider).number == 1
        provider.answer(running, b"5")
        until(gateway, task, "completed")
    tasking.judge()


def test_a_task_of_another_principal_is_as_unknown_as_none():
    with Gateway() as gateway:
        ours, theirs = make_token(gateway, "ours"), make_token(gateway, "theirs")
        gateway.stop()
        gateway.arguments = ("--token-file", token_file(gateway))
        gateway.start()
        with Provider(gateway, "sums", token=ours) as provider:
            running, task = make_task(gateway, provider, token=ours)
            for method in METHODS:
                assert is_unknown(gateway, method, task["taskId"], token=theirs)
                for other in ("ab" * 32, "ab" * 16, "x", ""):
                    assert is_unknown(gateway, method, other, token=ours)
            assert get(gateway, task, token=ours)["status"] == "working" and provider.cancels.empty()
            provider.answer(running, b"5")
            until(gateway, task, "completed", token=ours)
            assert is_unknown(gateway, "tasks/get", task["taskId"], token=theirs)
    tasking.judge()


def test_a_task_expires():
    with Gateway("--result-mapping-ttl", "1s") as gateway, \
            Provider(gateway, "sums", v1("Tool", name="add", description="adds", timeout_ms=6000,
                                         input_schema=b'{"type":"object"}')) as provider:
        _, task = make_task(gateway, provider, TAKES_TASKS)
        assert 6500 <= task["ttlMs"] <= 7500, task
        await_true(lambda: is_unknown(gateway, "tasks/get", task["taskId"]), "the task has expired")
    tasking.judge()


def test_headers_name_the_task():
    with Gateway() as gateway, Provider(gateway, "sums") as provider:
        running, task = make_task(gateway, provider, CAN_ALL)
        for name in (None, "ab" * 32):
            status, message = tasking.ask(gateway, "tasks/get", {"taskId": task["taskId"]}, **{"Mcp-Name": name})
            assert status == 400 and message["error"]["code"] == -32020, message
        provider.answer(running, b"5")
    tasking.judge()


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
