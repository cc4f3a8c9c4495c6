#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MCP server for tests of importing one: small, and as odd as its arguments say.

    server.py ERA [WORD...]

ERA is modern, legacy (errors for what it does not know) or mute (legacy, silent until initialize). WORDS:
  tools=N       N more tools, in pages of 100
  endless       a list whose every page has a next one
  die-once=FILE the tool `die` and the start after it fail as long as there is no FILE, which the first death makes
  exit          ends at once
  noise         lines that are no messages, before each answer
Every message that it gets is checked for what the protocol asks of it; what is wrong goes to the tool `complaints`.
"""

import json
import os
import sys
import time

ERA = sys.argv[1]
WORDS = dict((word.split("=", 1) + [""])[:2] for word in sys.argv[2:])
META = "io.modelcontextprotocol/"
complaints = []
extra = []
next_id = 1000


def send(message):
    if "noise" in WORDS:
        sys.stdout.write("this is no message\n\n[1,2\n")
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    check(message)
    return message


def check(message):
    meta = message.get("params", {}).get("_meta", {})
    if message.get("jsonrpc") != "2.0":
        complaints.append("no jsonrpc")
    if ERA == "modern" and "method" in message and "id" in message and message["method"] != "initialize":
        if meta.get(META + "protocolVersion") != "2026-07-28" or META + "clientCapabilities" not in meta or \
                meta.get(META + "clientInfo", {}).get("name") != "pegboard":
            complaints.append("incomplete _meta of " + message["method"])
    if ERA != "modern" and any(key.startswith(META) for key in meta) and message["method"] != "server/discover":
        complaints.append("modern _meta of " + message["method"])


def answer(request, result):
    if ERA == "modern":
        result = {"resultType": "complete", **result}
    send({"id": request["id"], "result": result})


def fail(request, code, text, data=None):
    send({"id": request["id"], "error": {"code": code, "message": text, **({"data": data} if data else {})}})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def notify(method, params):
    send({"method": method, "params": params})


# ---- tools ----

def tool(name, description="", properties=None, **more):
    return {"name": name, "description": description or name,
            "inputSchema": {"type": "object", "properties": properties or {}}, **more}


def tools():
    listed = [
        tool("echo", "Says it again.", {"x": {"type": "integer"}}, annotations={"readOnlyHint": True, "title": "Echo"}),
        tool("sum", "Adds.", {"x": {"type": "integer"}}, outputSchema={
            "type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
             annotations={"idempotentHint": True, "destructiveHint": False},
             _meta={"pegboard/artifact-kind": "markdown"}),
        tool("picture"), tool("links"), tool("fail"), tool("refuse"), tool("ask"), tool("progress"), tool("hang"),
        tool("die"), tool("grow"), tool("complaints"), tool("cancelled"), tool("environment"), tool("flood"),
        tool("long"), tool("stderr"), tool("nothing"), tool("close"), tool("again"),
        {"name": "dialect", "inputSchema": {"$schema": "https://example.org/my-own-dialect", "type": "object"}},
        {"name": "elsewhere", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "https://127.0.0.1/x"}}}},
        {"name": "no schema"},
    ]
    return listed + [tool(f"tool_{i}") for i in range(int(WORDS.get("tools", 0)))] + [tool(name) for name in extra]


cancelled = []


def call(request):
    params = request["params"]
    name, args = params["name"], params.get("arguments", {})
    if name == "echo":
        answer(request, text(json.dumps(args)))
    elif name == "sum":
        value = args.get("x", 0) + 1
        answer(request, {**text("json"), "structuredContent": {"sum": "many" if value > 100 else value}})
    elif name == "picture":
        answer(request, {"content": [
            {"type": "text", "text": "a picture"},
            {"type": "image", "mimeType": "image/png", "data": "UE5H"},
            {"type": "resource", "resource": {"uri": "file:///a/b.bin", "blob": "//4A"}}]})
    elif name == "links":
        answer(request, {"content": [
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "inner"}}]})
    elif name == "fail":
        answer(request, {**text("no luck today"), "isError": True})
    elif name == "refuse":
        fail(request, -32000, "not now")
    elif name == "ask":
        ask(request)
    elif name == "again":
        answer(request, {"resultType": "input_required", "requestState": "s"})
    elif name == "progress":
        token = params.get("_meta", {}).get("progressToken")
        for i in (1, 2):
            if token is not None:
                notify("notifications/progress", {"progressToken": token, "progress": i, "total": 2, "message": "step"})
        notify("notifications/message", {"level": "info", "data": "a log line"})
        answer(request, text(f"token {token is not None}"))
    elif name == "hang":
        pass
    elif name == "die":
        die()
    elif name == "grow":
        extra.append("grown")
        notify("notifications/tools/list_changed", {})
        answer(request, text("grown"))
    elif name == "complaints":
        answer(request, text("; ".join(complaints)))
    elif name == "cancelled":
        answer(request, text(json.dumps(cancelled)))
    elif name == "environment":
        answer(request, text(json.dumps(sorted(os.environ))))
    elif name == "flood":
        while True:
            notify("notifications/something", {"n": 1})
    elif name == "long":
        while True:
            sys.stdout.write("x" * 65536)
    elif name == "stderr":
        for i in range(1000):
            print(f"line {i} \x1b[1m", file=sys.stderr)
        sys.stderr.flush()
        answer(request, text("written"))
    elif name == "nothing":
        answer(request, {})
    elif name == "close":
        os.close(1)
        time.sleep(60)
    else:
        fail(request, -32602, "Unknown tool")


def die():
    if WORDS.get("die-once"):
        open(WORDS["die-once"], "w").close()
    os._exit(3)


def ask(request):
    global next_id
    params = request["params"]
    question = {"method": "elicitation/create", "params": {
        "message": "your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}
    if ERA == "modern":
        if "inputResponses" in params:
            state = params.get("requestState")
            answer(request, text(json.dumps([params["inputResponses"].get("q"), state])))
        elif "elicitation" not in params["_meta"][META + "clientCapabilities"]:
            answer(request, text("cannot ask"))
        else:
            send({"id": request["id"], "result": {
                "resultType": "input_required", "inputRequests": {"q": question}, "requestState": "opaque"}})
        return
    next_id += 1
    send({"id": next_id, **question})
    reply = read()
    while reply.get("id") != next_id or "method" in reply:
        handle(reply)
        reply = read()
    answer(request, text(json.dumps([reply.get("result"), None])))


# ---- the rest ----

def list_tools(request):
    cursor = int(request["params"].get("cursor", 0))
    listed = tools()
    page = {"tools": listed[cursor:cursor + 100]}
    if "endless" in WORDS:
        page = {"tools": [], "nextCursor": "0"}
    elif cursor + 100 < len(listed):
        page["nextCursor"] = str(cursor + 100)
    answer(request, page)


def handle(message):
    method = message.get("method")
    if method == "server/discover" and ERA == "modern":
        answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}},
                         "_meta": {META + "serverInfo": {"name": "scripted", "version": "1"}}})
    elif method == "initialize" and ERA != "modern":
        if message["params"]["protocolVersion"] != "2025-11-25":
            complaints.append("protocolVersion")
        answer(message, {"protocolVersion": WORDS.get("version", "2025-11-25"),
                         "capabilities": {"tools": {"listChanged": True}},
                         "serverInfo": {"name": "scripted", "version": "1"}})
    elif method == "tools/list":
        list_tools(message)
    elif method == "tools/call":
        call(message)
    elif method == "notifications/cancelled":
        cancelled.append(message["params"])
    elif method == "subscriptions/listen" and ERA == "modern":
        pass
    elif method and "id" in message and ERA != "mute":
        fail(message, -32601, "Method not found")


if "exit" in WORDS or (WORDS.get("die-once") and os.path.exists(WORDS["die-once"] + ".block")):
    print("I cannot start", file=sys.stderr)
    sys.exit(4)
while True:
    handle(read())
