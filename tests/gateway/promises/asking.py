# SPDX-License-Identifier: Apache-2.0
"""Callers that can be asked, and what providers ask them."""

import http.client
import json
import queue
import threading

import grpc

from world import WAIT_S, Failed, v1

REQUESTS = {"gate-1": {"method": "elicitation/create",
                       "params": {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}}}
RESPONSES = {"gate-1": {"action": "accept", "content": {}}}


def packed(value):
    return json.dumps(value).encode()


class Stream:
    """CallToolStream, read by a thread of its own."""

    def __init__(self, caller, **more):
        self.events = queue.Queue()
        self.call_id = ""
        more.setdefault("can_be_asked", True)
        self.rpc = caller.method("CallToolStream")(
            v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', **more),
            timeout=60, metadata=caller.metadata)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for event in self.rpc:
                if event.WhichOneof("event") == "started":
                    self.call_id = event.started.call_id
                self.events.put(event)
        except grpc.RpcError as error:
            self.events.put(Failed(error))

    def next(self, kind):
        """The next event of a kind; output and the start are passed over."""
        while True:
            event = self.events.get(timeout=WAIT_S)
            if isinstance(event, Failed):
                raise event
            found = event.WhichOneof("event")
            if found == kind:
                return getattr(event, kind)
            assert found in ("started", "output"), f"{found}, not {kind}"

    def question(self):
        return self.next("question")

    def result(self):
        return self.next("result").result


def ask(provider, call, number=1, requests=REQUESTS, **more):
    provider.say(input=v1("Input", call_id=call.call_id, attempt=call.attempt, number=number,
                          requests=packed(requests), **more))


def reply(caller, call_id, number=1, responses=RESPONSES, **more):
    if responses is not None:
        more["responses"] = packed(responses)
    return caller.ask("AnswerCall", v1("AnswerCallRequest", call_id=call_id, number=number, **more))


def answered(provider):
    return provider.answers.get(timeout=WAIT_S)


def finish(provider, call, stream):
    provider.answer(call, b"5")
    assert stream.result() == b"5"


# ---- MCP --------------------------------------------------------------------------------

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
CAN_FORM = {"elicitation": {"form": {}}}


def post(gateway, capabilities, token=None, n=1, **params):
    """tools/call by a modern client, on a connection of its own: the status, and the last message."""
    host, port = gateway.address.rsplit(":", 1)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "add", "arguments": {"n": n}, **params,
        "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities,
                  META + "clientInfo": {"name": "test", "version": "1"}}}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "add"}
    if token:
        headers["Authorization"] = "Bearer " + token
    connection = http.client.HTTPConnection(host, int(port), timeout=WAIT_S)
    connection.request("POST", "/mcp/sums", json.dumps(message), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if text.startswith("{"):
        return answer.status, json.loads(text)
    lines = [line for line in text.splitlines() if line.startswith("data:")]
    return answer.status, json.loads(lines[-1][5:]) if lines else text


class Post(threading.Thread):
    def __init__(self, *args, **more):
        super().__init__(daemon=True)
        self.args, self.more, self.said = args, more, None
        self.start()

    def run(self):
        self.said = post(*self.args, **self.more)

    def answer(self):
        self.join(WAIT_S)
        return self.said


def input_required(said):
    status, message = said
    assert status == 200 and message["result"]["resultType"] == "input_required", said
    return message["result"]


class Session:
    """A legacy client, each of whose messages may go to another node."""

    def __init__(self, gateway, capabilities=None, token=None):
        self.token, self.id = token, None
        answer, connection = self.send(gateway, "initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}} if capabilities is None else capabilities,
            "clientInfo": {"name": "test", "version": "1"}}, 0)
        assert answer.status == 200, answer.read()
        answer.read()
        connection.close()
        self.id = answer.headers["Mcp-Session-Id"]

    def exchange(self, gateway, verb, message=None):
        host, port = gateway.address.rsplit(":", 1)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.id:
            headers["Mcp-Session-Id"] = self.id
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        connection = http.client.HTTPConnection(host, int(port), timeout=WAIT_S)
        connection.request(verb, "/mcp/sums", json.dumps(message) if message else None, headers)
        return connection.getresponse(), connection

    def send(self, gateway, method, params, number):
        return self.exchange(gateway, "POST", {"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def status(self, gateway, verb="POST", **message):
        """Of a message whose answer does not matter."""
        answer, connection = self.exchange(gateway, verb, {"jsonrpc": "2.0", **message} if message else None)
        answer.read()
        connection.close()
        return answer.status

    def ping(self, gateway):
        return self.status(gateway, id=99, method="ping")

    def answer(self, gateway, question, result):
        return self.status(gateway, id=question["id"], result=result)

    def cancel(self, gateway, number):
        return self.status(gateway, method="notifications/cancelled", params={"requestId": number})

    def call(self, gateway, number):
        """Its answer, as it comes: messages, then None."""
        found = queue.Queue()
        threading.Thread(target=self.read, args=(gateway, number, found), daemon=True).start()
        return found

    def read(self, gateway, number, found):
        answer, connection = self.send(gateway, "tools/call", {"name": "add", "arguments": {"n": 1}}, number)
        for line in answer:
            if line.startswith(b"data:") or line.startswith(b"{"):
                found.put(json.loads(line.removeprefix(b"data:")))
        connection.close()
        found.put(None)
