#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: legacy clients of a gateway that can be asked have sessions: a tool in C asks them on the stream of its call, they
answer, cancel and set levels from any connection, and nobody else can.

    test_sessions.py PEGBOARD ASKING_PROVIDER STREAMING_PROVIDER
"""

import contextlib
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "cli"))

from client import LEGACY, client  # noqa: E402
from gateways import gateway, running, until  # noqa: E402
from scenario import check, main, scenario  # noqa: E402

ASKING, STREAMING = (os.path.abspath(path) for path in sys.argv[2:4])
CAN_ALL = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
SAMPLE = {"method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Ho"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///srv", "name": "srv"}]}


@contextlib.contextmanager
def asking(w, *options):
    """A gateway on three loops: connections of one client are on several."""
    with gateway(w, "--threads", "3", *options), running(w, w.at, program=ASKING):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "asking")
        yield


def initialized(c, capabilities=None, **headers):
    answer = c.initialize(capabilities=CAN_ALL if capabilities is None else capabilities, **headers)
    check(answer.status == 200, answer)
    check(c.notify("notifications/initialized", **headers).status == 202)
    return answer.result


def accept(c, question, **content):
    return c.answer(question, {"action": "accept", "content": content})


def text_of(message):
    check(message and "result" in message, message)
    return message["result"]["content"][0]["text"]


# ---- asked and answered ----------------------------------------------------------------


@scenario
def a_handler_in_c_asks_a_person_through_a_legacy_client(w):
    with asking(w), client(w, "/mcp/asking") as c:
        said = initialized(c, {"elicitation": {}})
        check(said["protocolVersion"] == LEGACY and said["capabilities"]["logging"] == {}, said)
        for i in range(6):  # answers come to whichever loop
            stream = c.open_legacy("tools/call", {"name": "name"})
            question = stream.until("elicitation/create")
            check(question["params"]["message"] == "Who are you?", question)
            check(question["params"]["requestedSchema"]["properties"]["name"] == {"type": "string"}, question)
            check(accept(c, question, name=f"Ada {i}").status == 202)
            check(text_of(stream.next()) == f"hello Ada {i}")
            check(stream.next() is None, "it goes on after the answer")
            stream.close()


@scenario
def forms_samples_and_roots_are_asked_for_at_once(w):
    asks = {"a": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {
        "type": "object", "properties": {"x": {"type": "integer"}}}}}, "b": SAMPLE, "c": {"method": "roots/list"}}
    with asking(w), client(w, "/mcp/asking") as c:
        initialized(c)
        stream = c.open_legacy("tools/call", {"name": "ask", "arguments": {"asks": asks}})
        questions = {question["method"]: question for question in (stream.next() for _ in range(3))}
        c.answer(questions["roots/list"], ROOTS)
        c.answer(questions["sampling/createMessage"], SAMPLED)
        accept(c, questions["elicitation/create"], x=1)
        check(json.loads(text_of(stream.next())) == {
            "a": {"action": "accept", "content": {"x": 1}}, "b": SAMPLED, "c": ROOTS})
        stream.close()


@scenario
def a_refusal_and_an_error_end_the_question(w):
    with asking(w), client(w, "/mcp/asking") as c:
        initialized(c)
        for answer in ({"result": {"action": "decline"}}, {"error": {"code": -1, "message": "no"}}):
            stream = c.open_legacy("tools/call", {"name": "name"})
            question = stream.until("elicitation/create")
            check(c.say({"jsonrpc": "2.0", "id": question["id"], **answer}).status == 202)
            check(stream.next()["result"]["isError"], answer)
            stream.close()


@scenario
def a_client_is_asked_only_for_what_it_declares(w):
    with asking(w), client(w, "/mcp/asking") as c:
        for capabilities in ({"roots": {}}, {"sampling": {}}):
            initialized(c, capabilities)
            check("isError" in c.legacy("tools/call", {"name": "name"}).result, capabilities)
        c.session = None
        check(c.initialize().headers["Mcp-Session-Id"])
        check(len(c.session) == 32, "it needs no session", c.session)
        check(c.legacy("tools/call", {"name": "name"}).result["isError"])
        initialized(c)
        blind = c.legacy("tools/call", {"name": "name"}, Accept="application/json")
        check(blind.result["isError"], blind)


@scenario
def a_modern_client_learns_what_it_lacks(w):
    url = {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://example.org"}}
    form = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object",
                                                                                          "properties": {}}}}
    tools = {"method": "sampling/createMessage", "params": {**SAMPLE["params"], "tools": []}}
    with asking(w), client(w, "/mcp/asking") as c:
        for asks, lacks in (({"a": SAMPLE}, {"sampling": {}}), ({"a": {"method": "roots/list"}}, {"roots": {}}),
                            ({"a": url}, {"elicitation": {"url": {}}}), ({"a": form}, {"elicitation": {"form": {}}}),
                            ({"a": tools, "b": form}, {"elicitation": {"form": {}}, "sampling": {"tools": {}}})):
            error = c.call("ask", {"asks": asks}).fails(400, -32021)
            check(error["data"]["requiredCapabilities"] == lacks, error, lacks)
        error = c.call("name").fails(400, -32021)
        check(error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}, error)


# ---- while it waits --------------------------------------------------------------------


@scenario
def a_call_that_asks_is_canceled_by_its_client_alone(w):
    with asking(w), client(w, "/mcp/asking") as c, client(w, "/mcp/asking") as other:
        initialized(c)
        initialized(other)
        stream = c.open_legacy("tools/call", {"name": "name"}, id="mine")
        question = stream.until("elicitation/create")
        for _ in range(4):
            check(other.notify("notifications/cancelled", {"requestId": "mine"}).status == 202)
            check(accept(other, question, name="Eve").status == 202)
        check(c.notify("notifications/cancelled", {"requestId": "mine"}).status == 202)
        check(stream.next() is None, "a canceled request has an answer")
        stream.close()


@scenario
def a_stream_that_breaks_neither_cancels_nor_loses_the_answer(w):
    with asking(w), client(w, "/mcp/asking") as c:
        initialized(c)
        stream = c.open_legacy("tools/call", {"name": "name", "_meta": {"pegboard/idempotency-key": "once"}})
        question = stream.until("elicitation/create")
        stream.close()
        check(accept(c, question, name="Ada").status == 202)
        again = c.legacy("tools/call", {"name": "name", "_meta": {"pegboard/idempotency-key": "once"}})
        check(again.said == "hello Ada", again)


@scenario
def log_messages_come_at_the_level_that_the_session_has_set(w):
    with asking(w), running(w, w.at, program=STREAMING), client(w, "/mcp") as c:
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "talk")
        initialized(c)
        count = {"name": "talk__count", "arguments": {"n": 2}}
        check(len(c.legacy("tools/call", count).messages) == 1)
        check(c.legacy("logging/setLevel", {"level": "nothing"}).messages[-1]["error"]["code"] == -32602)
        for level, n in (("info", 3), ("warning", 0), ("debug", 3)):
            check(c.legacy("logging/setLevel", {"level": level}).result == {}, level)
            for _ in range(3):  # on whichever loop
                logs = [m["params"] for m in c.legacy("tools/call", count).messages[:-1]]
                check([log["level"] for log in logs] == ["info"] * n, level, logs)


# ---- whose, and how long ---------------------------------------------------------------


@scenario
def a_session_that_was_ended_or_never_was_is_404(w):
    with asking(w), client(w, "/mcp/asking") as c:
        initialized(c)
        stream = c.open_legacy("tools/call", {"name": "name"})
        question = stream.until("elicitation/create")
        listening = c.open_get()
        check(listening.answer.status == 200, listening.answer.status)
        check(c.delete().status == 204)
        check(stream.next()["result"]["isError"], "the question is open")
        check(listening.next() is None, "the stream goes on")
        stream.close()
        listening.close()
        for answer in (c.legacy("ping"), c.delete(), accept(c, question, name="Ada"),
                       c.notify("notifications/cancelled", {"requestId": 1})):
            check(answer.status == 404, answer)
        session = c.session
        for c.session in ("A" * 76, session[:30] + ("A" if session[30] != "A" else "B") + session[31:], "x"):
            check(c.legacy("ping").status == 404, c.session)
        c.session = None
        check(c.delete().status == 400)
        check(c.legacy("ping").result == {}, "no session is needed")


@scenario
def a_session_belongs_to_its_principal(w):
    tokens = [w.pegboard("token", "new", "--token-file", "tokens", name).exits(0).stdout.split()[0]
              for name in ("ours", "theirs")]
    w.write("token", tokens[0])
    with gateway(w, "--token-file", w.path("tokens"), "--threads", "2"), \
            running(w, w.at, w.path("token"), program=ASKING), client(w, "/mcp/asking") as c:
        ours, theirs = ({"Authorization": "Bearer " + token} for token in tokens)
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "asking", "--token", w.path("token"))
        initialized(c, **ours)
        stream = c.open_legacy("tools/call", {"name": "name"}, id=1, **ours)
        question = stream.until("elicitation/create")
        for _ in range(4):
            for answer in (c.legacy("ping", **theirs), c.delete(**theirs),
                           c.answer(question, {"action": "accept", "content": {"name": "Eve"}}, **theirs),
                           c.notify("notifications/cancelled", {"requestId": 1}, **theirs)):
                check(answer.status == 404, answer)
        check(c.answer(question, {"action": "accept", "content": {"name": "Ada"}}, **ours).status == 202)
        check(text_of(stream.next()) == "hello Ada")
        stream.close()


def initialize_often(c, n):
    """Pipelined on one connection: how many were answered with 200, and the text of the other answers."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"}}}
    with c.begin(message, c.legacy_headers()) as connection:
        whole = c.begun(message, c.legacy_headers())
        threading.Thread(target=lambda: [connection.sendall(whole) for _ in range(n - 1)], daemon=True).start()
        said = b""
        while said.count(b"HTTP/1.1 ") < n or not said.endswith((b"}", b"\n")):
            piece = connection.recv(1 << 20)
            check(piece, "the connection ended after", said[-1000:])
            said += piece
    return said.count(b"HTTP/1.1 200"), said[said.find(b"HTTP/1.1 429"):].decode()


@scenario
def a_node_has_so_many_sessions_and_an_end_makes_room(w):
    with gateway(w, "--threads", "2"), client(w) as c:
        initialized(c)
        n, refused = initialize_often(c, 10010)
        check(n == 9999 and "PEG_LIMIT_GATEWAY_MCP_SESSIONS" in refused, n, refused[:500])
        check(c.legacy("ping").result == {}, "those that are there go on")
        check(c.delete().status == 204)
        check(initialized(c))


main()
