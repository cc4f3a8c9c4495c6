#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MCP server over HTTP for tests of importing one: small, and as odd as its tools and arguments say.

    http_server.py ERA PORT [WORD...]

ERA is modern or legacy, PORT may be 0; the port that it got is its first line of output. WORDS:
  tools=N       N more tools, in one page
  picky         refuses the first request for its version, which it names
  no-stream     405 for GET, and no subscriptions
  slow-stream   GET is answered after a second
  late-stream   GET is answered when the list of tools has grown
  mode=MODE     answers every request with: redirect, html, silence, text (an error that is no JSON), auth, broken
Every request is checked for what the protocol asks of it; what is wrong goes to the tool `complaints`.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERA = sys.argv[1]
WORDS = dict((word.split("=", 1) + [""])[:2] for word in sys.argv[3:])
META = "io.modelcontextprotocol/"
QUESTION = {"method": "elicitation/create", "params": {
    "message": "your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}
lock = threading.Condition()
complaints = []
cancelled = []
answers = {}  # of the client, by the id of our question
extra = []
streams = []  # of those who listen
sessions = set()
counts = {"sessions": 0, "questions": 0, "resumed": 0, "restarted": 0, "deleted": 0}


def tool(name, properties=None, **more):
    return {"name": name, "description": name, "inputSchema": {"type": "object", "properties": properties or {}},
            **more}


def marked(name, **more):
    return {"type": "string", "x-mcp-header": name, **more}


def tools():
    names = ["stream", "ask", "ask_aside", "hang", "cut", "short", "resume", "restart", "expire", "html", "flood", "long",
             "redirect", "busy", "grow", "complaints", "cancelled", "counts", "die", "other", "late"]
    listed = [tool("echo", {"x": {"type": "integer"}}, annotations={"readOnlyHint": True})]
    listed += [tool(name) for name in names]
    listed += [tool("mark", {"a": marked("A"), "b": {"type": "object", "properties": {"c": marked("C", type="integer")}},
                             "d": marked("D", type="boolean")}),
               tool("marked_number", {"a": marked("A", type="number")}),
               tool("marked_twice", {"a": marked("A"), "b": marked("a")}),
               tool("marked_badly", {"a": marked("a b")}),
               tool("marked_below_items", {"a": {"type": "array", "items": marked("A")}})]
    return listed + [tool(f"tool_{i}") for i in range(int(WORDS.get("tools", 0)))] + [tool(name) for name in extra]


def text(words):
    return {"content": [{"type": "text", "text": words}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    # ---- answers ----

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, message, result, **headers):
        if ERA == "modern":
            result = {"resultType": "complete", **result}
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), **headers)

    def fail(self, status, code, words, id=None):
        error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}}
        self.reply(status, json.dumps(error).encode())

    def open_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message, head=""):
        self.wfile.write((head + "data: " + json.dumps({"jsonrpc": "2.0", **message}) + "\r\n\r\n").encode())
        self.wfile.flush()

    # ---- requests ----

    def check_headers(self, message):
        accept = self.headers.get("Accept", "")
        if "application/json" not in accept or "text/event-stream" not in accept:
            complaints.append("Accept")
        if self.headers.get("X-Team") != "tools":
            complaints.append("X-Team")
        method, params = message.get("method", ""), message.get("params", {})
        if ERA == "modern":
            wanted = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if method == "tools/call":
                wanted["Mcp-Name"] = params["name"]
            if "id" not in message or "method" not in message:
                complaints.append("a modern client sends requests only: " + method)
        else:
            wanted = {} if method in ("initialize", "server/discover") else {"MCP-Protocol-Version": "2025-11-25"}
        for name, value in wanted.items():
            if self.headers.get(name) != value:
                complaints.append(f"{name} of {method}: {self.headers.get(name)}")

    def has_session(self, message):
        if ERA == "modern" or message.get("method") == "initialize":
            return True
        session = self.headers.get("Mcp-Session-Id")
        if session in sessions:
            return True
        if session is None:
            self.fail(400, -32000, "Bad Request: Server not initialized")
        else:
            self.fail(404, -32001, "Session not found")
        return False

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mode = WORDS.get("mode")
        if mode == "redirect":
            self.reply(307, Location="http://127.0.0.1:1/elsewhere")
        elif mode == "html":
            self.reply(200, b"<html>welcome</html>", "text/html")
        elif mode == "text":
            self.reply(500, b"oops", "text/plain")
        elif mode == "auth":
            self.reply(401, b"who are you?", "text/plain", WWW_Authenticate="Bearer")
        elif mode == "broken":
            self.reply(200, b'{"jsonrpc": "2.0", "id"', "application/json")
        elif mode == "silence":
            threading.Event().wait()
        elif not self.has_session(message):
            return
        else:
            self.check_headers(message)
            self.handle_message(message)

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        if "no-stream" in WORDS and not last:
            self.reply(405)
        elif self.headers.get("Mcp-Session-Id") not in sessions:
            self.fail(404, -32001, "Session not found")
        elif last:
            self.resume(last)
        else:
            with lock:
                if "slow-stream" in WORDS:
                    lock.wait_for(lambda: False, 1)
                lock.wait_for(lambda: extra or "late-stream" not in WORDS)
                self.open_stream()
                self.listen({})

    def do_DELETE(self):
        with lock:
            sessions.discard(self.headers.get("Mcp-Session-Id"))
            counts["deleted"] += 1
        self.reply(200)

    def handle_message(self, message):
        method = message.get("method")
        if method is None:
            with lock:
                answers[message["id"]] = message
                lock.notify_all()
            self.reply(202)
        elif method == "notifications/cancelled":
            with lock:
                cancelled.append(message["params"]["requestId"])
                lock.notify_all()
            self.reply(202)
        elif "id" not in message:
            self.reply(202)
        elif method == "server/discover" and WORDS.pop("picky", None) is not None:
            error = {"code": -32022, "message": "?", "data": {"supported": ["2026-07-28"], "requested": "?"}}
            self.reply(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif method == "server/discover" and ERA == "modern":
            self.result(message, {"supportedVersions": ["2026-07-28"], "capabilities": {
                "tools": {"listChanged": "no-stream" not in WORDS}},
                "_meta": {META + "serverInfo": {"name": "over http", "version": "1"}}})
        elif method == "initialize" and ERA == "legacy":
            with lock:
                counts["sessions"] += 1
                session = f"session-{counts['sessions']}"
                sessions.add(session)
            self.result(message, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                                  "serverInfo": {"name": "over http", "version": "1"}}, Mcp_Session_Id=session)
        elif method == "ping":
            self.result(message, {})
        elif method == "tools/list":
            self.result(message, {"tools": tools()})
        elif method == "subscriptions/listen" and ERA == "modern":
            with lock:
                self.open_stream()
                self.event({"method": "notifications/subscriptions/acknowledged", "params": {}})
                self.listen(message)
        elif method == "tools/call":
            self.call(message, message["params"]["name"], message["params"].get("arguments", {}))
        else:
            self.fail(404 if ERA == "modern" else 200, -32601, "Method not found", message["id"])

    def listen(self, message):
        with lock:
            streams.append(self)
            while True:
                lock.wait(5)
                try:
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                except OSError:
                    streams.remove(self)
                    return

    # ---- tools ----

    def call(self, message, name, args):
        if name == "echo":
            self.result(message, text(json.dumps(args)))
        elif name == "mark":
            found = {key: value for key, value in self.headers.items() if key.lower().startswith("mcp-param-")}
            self.result(message, text(json.dumps(found, sort_keys=True)))
        elif name in ("complaints", "cancelled"):
            self.result(message, text(json.dumps(complaints if name == "complaints" else len(cancelled))))
        elif name == "counts":
            self.result(message, text(json.dumps(counts)))
        elif name == "html":
            self.reply(200, b"<html>welcome</html>", "text/html")
        elif name == "redirect":
            self.reply(302, Location="http://127.0.0.1:1/elsewhere")
        elif name == "busy":
            self.reply(503, b"later", "text/plain")
        elif name == "die":
            os._exit(3)
        elif name == "expire":
            sessions.clear()
            self.result(message, text("expired"))
        elif name == "grow":
            with lock:
                extra.append("grown")
                lock.notify_all()
                for stream in streams:
                    stream.event({"method": "notifications/tools/list_changed", "params": {}})
            self.result(message, text("grown"))
        elif name == "ask":
            self.ask(message)
        elif name == "ask_aside":
            self.ask_aside(message)
        elif name == "other":
            self.result({"id": 999999}, text("the answer to another question"))
        else:
            self.open_stream()
            self.call_with_stream(message, name)

    def call_with_stream(self, message, name):
        token = message["params"].get("_meta", {}).get("progressToken")
        answer = {"id": message["id"], "result": {"resultType": "complete", **text(name)}}
        if name == "stream":
            self.wfile.write(b": a comment\r\nevent: message\r\ndata:\r\n\r\n")
            if token is not None:
                self.event({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            self.event({"method": "notifications/message", "params": {"level": "info", "data": "a log line"}})
            self.event(answer)
        elif name == "cut":
            self.event({"method": "notifications/message", "params": {"level": "info", "data": "so far"}})
        elif name == "short":
            self.wfile.write(json.dumps(answer).join(["data: ", ""])[:40].encode())
        elif name == "late":
            self.wfile.write(("data: " + json.dumps({"jsonrpc": "2.0", **answer})).encode())
        elif name == "resume":
            self.wfile.write(b"id: first/%d\nretry: 20\ndata:\n\n" % message["id"])
            self.wfile.write(b'id: never\ndata: {"jsonrpc"')
        elif name == "restart":  # it has begun, and is forgotten with its session
            counts["restarted"] += 1
            self.wfile.write(b"id: first/%d\nretry: 20\ndata:\n\n" % message["id"])
            sessions.clear()
        elif name == "flood":
            while True:
                self.event({"method": "notifications/something", "params": {}})
        elif name == "long":
            while True:
                self.wfile.write(b"data: " + b"x" * 65536)
        else:  # hang
            while True:
                with lock:
                    lock.wait(0.2)
                self.wfile.write(b":\n\n")

    def resume(self, last):
        self.open_stream()
        with lock:
            counts["resumed"] += 1
        kind, _, number = last.partition("/")
        if kind == "first":
            self.wfile.write(b"id: second/%s\nretry: 10\ndata:\n\n" % number.encode())
        elif kind == "second":
            self.event({"id": int(number), "result": text("resumed")}, head="id: last\n")

    def ask(self, message):
        params = message["params"]
        if ERA == "modern":
            if "inputResponses" in params:
                self.result(message, text(json.dumps([params["inputResponses"].get("q"), params["requestState"]])))
            else:
                self.result(message, {"resultType": "input_required", "inputRequests": {"q": QUESTION},
                                      "requestState": "opaque"})
            return
        with lock:
            counts["questions"] += 1
            id = 1000 + counts["questions"]
        self.open_stream()
        self.event({"id": id, **QUESTION})
        with lock:
            lock.wait_for(lambda: id in answers, 60)
        self.event({"id": message["id"], "result": text(json.dumps([answers[id].get("result"), None]))})


    def ask_aside(self, message):
        """Asks on the stream of the server itself, as servers do that do not know which call they ask for."""
        with lock:
            counts["questions"] += 1
            id = 1000 + counts["questions"]
            if streams:
                streams[0].event({"id": id, **QUESTION})
                lock.wait_for(lambda: id in answers, 60)
            else:
                answers[id] = {"result": "nobody listens"}
        self.result(message, text(json.dumps(answers[id].get("result"))))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
