# SPDX-License-Identifier: Apache-2.0
"""A client of MCP over HTTP that says exactly what a test wants, and judges every answer by the protocol's schemas."""

import contextlib
import http.client
import json
import os
import socket

from scenario import ROOT, check

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
DEADLINE_S = 60
RESULTS = {"initialize": "InitializeResult", "server/discover": "DiscoverResult", "tools/list": "ListToolsResult",
           "tools/call": "CallToolResult", "subscriptions/listen": "SubscriptionsListenResult"}
SAID = {"notifications/progress": "ProgressNotification",
                 "notifications/message": "LoggingMessageNotification",
                 "notifications/tools/list_changed": "ToolListChangedNotification",
                 "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
                 "elicitation/create": "ElicitRequest", "sampling/createMessage": "CreateMessageRequest",
                 "roots/list": "ListRootsRequest"}
ERRORS = {-32022: "UnsupportedProtocolVersionError", -32020: "HeaderMismatchError"}


def find_schemas():
    for place in (os.environ.get("PEG_MCP_DATA"), os.path.join(os.path.dirname(ROOT), "shared", "data", "mcp")):
        if place and os.path.isdir(place):
            return place
    return None


class Judge:
    """Collects messages, and has `pegboard validate` judge them at the end."""

    def __init__(self, w):
        self.w, self.seen = w, {}

    def add(self, is_modern, method, message):
        if "error" in message:
            definition = ERRORS.get(message["error"]["code"]) if is_modern else None
            definition = definition or "JSONRPCErrorResponse"
        elif "method" in message:
            definition = SAID[message["method"]]
        else:
            definition = "JSONRPCMessage"
            self.put(is_modern, RESULTS.get(method, "EmptyResult"), message["result"])
        self.put(is_modern, definition, message)

    def put(self, is_modern, definition, value):
        self.seen.setdefault((MODERN if is_modern else LEGACY, definition), []).append(json.dumps(value))

    def check(self):
        place = find_schemas()
        for (version, definition), values in self.seen.items() if place else ():
            self.w.write("mcp-schema.json", {"$ref": f"mcp:{version}#/$defs/{definition}"})
            self.w.write("mcp-said.jsonl", "\n".join(values) + "\n")
            self.w.pegboard("validate", "--ref", f"mcp:{version}={place}/{version}/schema.json", "mcp-schema.json",
                            "mcp-said.jsonl").exits(0)


class Answer:
    def __init__(self, status, headers, messages, text):
        self.status, self.headers, self.messages, self.text = status, headers, messages, text

    def __str__(self):
        return f"{self.status} {self.headers}: {self.text[:2000]!r}"

    @property
    def result(self):
        check(self.status == 200 and "result" in self.messages[-1], "no result:", self)
        return self.messages[-1]["result"]

    def fails(self, status, code):
        check(self.status == status and self.messages and self.messages[-1].get("error", {}).get("code") == code,
              f"not {status}/{code}:", self)
        return self.messages[-1]["error"]

    @property
    def said(self):
        return "".join(item.get("text", "") for item in self.result["content"])


def events(lines):
    """The data of each event of a stream."""
    data = []
    for line in lines:
        line = line.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].lstrip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


class Stream:
    """An answer that is read event by event."""

    def __init__(self, client, connection, answer, is_modern, method):
        self.client, self.connection, self.answer = client, connection, answer
        self.is_modern, self.method = is_modern, method
        self.rest = events(iter(answer.readline, b""))

    def next(self):
        """None at the end."""
        message = next(self.rest, None)
        if message:
            self.client.judge.add(self.is_modern, self.method, message)
        return message

    def until(self, method):
        while True:
            message = self.next()
            check(message, "the stream ended without", method)
            if message.get("method") == method:
                return message

    def close(self):
        self.answer.close()
        self.connection.close()


class Client:
    def __init__(self, w, path="/mcp", **headers):
        self.w, self.path, self.headers = w, path, headers
        self.judge, self.n = Judge(w), 0
        self.session = None

    def send(self, verb, body, headers):
        host, port = self.w.at.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE_S)
        connection.putrequest(verb, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": self.w.at, **headers}.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection, connection.getresponse()

    def exchange(self, body, headers, is_modern, method=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection, answer = self.send("POST", body, headers)
        text = answer.read().decode()
        connection.close()
        messages = []
        if answer.headers.get_content_type() == "text/event-stream":
            messages = list(events(line.encode() for line in text.splitlines(keepends=True)))
        elif answer.headers.get_content_type() == "application/json":
            messages = [json.loads(text)]
        for message in messages:
            self.judge.add(is_modern, method, message)
        return Answer(answer.status, answer.headers, messages, text)

    # ---- modern ----

    def modern_message(self, method, params, capabilities=None, **meta):
        self.n += 1
        return {"jsonrpc": "2.0", "id": self.n, "method": method, "params": {
            **params, "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities or {},
                                META + "clientInfo": {"name": "test", "version": "1"}, **meta}}}

    def modern_headers(self, method, params, **headers):
        name = {"Mcp-Name": params["name"]} if "name" in params else {}
        return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **name, **self.headers, **headers}

    def modern(self, method, params=None, meta=None, **headers):
        params = params or {}
        return self.exchange(self.modern_message(method, params, **(meta or {})),
                             self.modern_headers(method, params, **headers), True, method)

    def call(self, tool, arguments=None, meta=None, **headers):
        return self.modern("tools/call", {"name": tool, "arguments": arguments or {}}, meta, **headers)

    def open(self, method, params, meta=None, **headers):
        """A request whose answer is read as it comes."""
        body = json.dumps(self.modern_message(method, params, **(meta or {}))).encode()
        connection, answer = self.send("POST", body, self.modern_headers(method, params, **headers))
        check(answer.status == 200, "no stream:", answer.status, answer.headers)
        return Stream(self, connection, answer, True, method)

    # ---- legacy ----

    def legacy_headers(self, **headers):
        session = {"Mcp-Session-Id": self.session} if self.session else {}
        return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                **session, **self.headers, **headers}

    def legacy(self, method, params=None, **headers):
        self.n += 1
        message = {"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}}
        return self.exchange(message, self.legacy_headers(**headers), False, method)

    def notify(self, method, params=None, **headers):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        return self.exchange(message, self.legacy_headers(**headers), False, method)

    def say(self, message, **headers):
        return self.exchange(message, self.legacy_headers(**headers), False)

    def answer(self, question, result, **headers):
        """To what the server asked."""
        return self.say({"jsonrpc": "2.0", "id": question["id"], "result": result}, **headers)

    def delete(self, **headers):
        connection, answer = self.send("DELETE", None, self.legacy_headers(**headers))
        text = answer.read().decode()
        connection.close()
        return Answer(answer.status, answer.headers, [], text)

    def open_legacy(self, method, params, id=None, **headers):  # pylint: disable=redefined-builtin
        """A request whose answer is read as it comes."""
        self.n += 1
        message = {"jsonrpc": "2.0", "id": id or self.n, "method": method, "params": params}
        connection, answer = self.send("POST", json.dumps(message).encode(), self.legacy_headers(**headers))
        check(answer.status == 200, "no stream:", answer.status, answer.headers)
        return Stream(self, connection, answer, False, method)

    def initialize(self, version=LEGACY, capabilities=None, **headers):
        self.session = None
        answer = self.legacy("initialize", {"protocolVersion": version, "capabilities": capabilities or {},
                                            "clientInfo": {"name": "test", "version": "1"}}, **headers)
        self.session = answer.headers.get("Mcp-Session-Id")
        return answer

    def open_get(self, **headers):
        connection, answer = self.send("GET", None, {**self.legacy_headers(), "Content-Type": None,
                                                     "Accept": "text/event-stream", **headers})
        return Stream(self, connection, answer, False, None)

    def begun(self, message, headers):
        """A request as bytes."""
        body = json.dumps(message)
        lines = [f"POST {self.path} HTTP/1.1", f"Host: {self.w.at}", f"Content-Length: {len(body)}",
                 *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()

    def begin(self, message, headers):
        """Sends a request and does not wait for its answer; returns the socket."""
        host, port = self.w.at.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=DEADLINE_S)
        connection.sendall(self.begun(message, headers))
        return connection


@contextlib.contextmanager
def client(w, path="/mcp", **headers):
    """Whatever it was answered is judged at the end."""
    own = Client(w, path, **headers)
    yield own
    own.judge.check()
