#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a gateway's toolsets are MCP servers, over HTTP, for clients of both eras; a call is the one that gRPC makes; and
those who may not ask, or ask wrongly, are refused before anything is done.

    test_mcp.py PEGBOARD STREAMING_PROVIDER
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "cli"))

import gateways  # noqa: E402
from client import LEGACY, META, MODERN, client  # noqa: E402
from gateways import gateway, provided, running, until  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

STREAMING = os.path.abspath(sys.argv[2])
SLOW = """
toolset: slow
tools:
  - name: wait
    description: Waits
    input_schema: {type: object, properties: {file: {type: string}}}
    command: [sh, -c, "trap 'touch stopped; exit 0' TERM INT; touch runs; while [ ! -e go ]; do sleep 0.02; done; touch went; printf done"]
  - name: count
    description: Counts its calls
    input_schema: {type: object}
    command: [sh, -c, "echo x >> counted; wc -l < counted | tr -d '\\\\n'"]
"""


def wait_for(truth, what):
    end = time.monotonic() + gateways.DEADLINE_S
    while not truth():
        check(time.monotonic() < end, "still not:", what)
        time.sleep(0.02)


def exists(w, name):
    return lambda: os.path.exists(w.path(name))


def slow(w):
    w.write("slow.yaml", SLOW)
    return running(w, "provide", "slow.yaml", "--registry", w.at, stderr=subprocess.DEVNULL)


def is_healthy(w, toolset):
    until(w, lambda a: a["health"]["state"] == "healthy", "get", toolset)


# ---- both eras -------------------------------------------------------------------------


@scenario
def a_modern_client_discovers_lists_and_calls(w):
    with gateway(w), provided(w), client(w) as c:
        found = c.modern("server/discover").result
        check(found["supportedVersions"] == [MODERN] and found["capabilities"]["tools"]["listChanged"], found)
        check(found["_meta"][META + "serverInfo"]["name"] == "pegboard", found)
        tools = c.modern("tools/list").result
        check([tool["name"] for tool in tools["tools"]] == ["weather__echo", "weather__fail", "weather__say",
                                                            "weather__wait"], tools)
        check(tools["tools"][0]["title"] == "weather/echo" and tools["ttlMs"] > 0, tools)
        check(c.call("weather__say").said == "sunny")
        check(json.loads(c.call("weather__echo", {"city": "Oslo"}).said) == {"city": "Oslo"})


@scenario
def a_legacy_client_needs_no_session_but_may_have_one(w):
    with gateway(w), provided(w), client(w, "/mcp/weather") as c:
        check(c.legacy("ping").result == {})
        check(c.legacy("tools/call", {"name": "say"}).said == "sunny")
        said = c.initialize().result
        check(said["protocolVersion"] == LEGACY and "logging" not in said["capabilities"], said)
        check(c.session and len(c.session) == 32, c.session)
        check(c.notify("notifications/initialized").status == 202)
        names = [tool["name"] for tool in c.legacy("tools/list", MCP_Protocol_Version=LEGACY).result["tools"]]
        check(names == ["echo", "fail", "say", "wait"], names)
        check(c.legacy("logging/setLevel", {"level": "info"}).messages[-1]["error"]["code"] == -32601)
        check(c.initialize("2025-06-18").result["protocolVersion"] == "2025-06-18")
        check(c.initialize("2024-11-05").result["protocolVersion"] == LEGACY)


@scenario
def media_and_hints_of_a_handler_in_c_arrive_as_they_are(w):
    with gateway(w), running(w, w.at, program=STREAMING), client(w) as c:
        is_healthy(w, "talk")
        image, link = c.call("talk__draw").result["content"]
        check((image["type"], image["mimeType"]) == ("image", "image/png"), image)
        check(base64.b64decode(image["data"]) == bytes(i % 251 for i in range(100000)), "other bytes")
        check(link == {"type": "resource_link", "uri": "https://example.org/b.pdf", "name": "b.pdf",
                       "mimeType": "application/pdf"}, link)
        tool = c.modern("tools/list").result["tools"][1]
        check(tool["name"] == "talk__draw" and tool["title"] == "Draw it", tool)
        check(tool["annotations"]["readOnlyHint"] is True, tool)
        check(tool["_meta"] == {"pegboard/version": "2 beta", "pegboard/examples": [{}],
                                "pegboard/answer-ms": 600000}, tool)
        # A caller that takes no content gets what it always got.
        said = json.loads(gateways.ask(w, "call", "talk", "draw").exits(0).stdout)
        check(base64.b64decode(said["media"][0]["base64"])[-3:] == bytes(i % 251 for i in range(99997, 100000)), said)
        # Nor does the bridge of pegboard mcp lose anything.
        bridged = [json.loads(line) for line in gateways.ask(w, "mcp", "--toolset", "talk", stdin="\n".join(
            json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) for i, method, params in (
                (1, "tools/call", {"name": "draw"}), (2, "tools/list", {}))) + "\n").exits(0).stdout.splitlines()]
        said = {line["id"]: line["result"] for line in bridged}
        check(said[1]["content"] == [image, link], said[1]["content"][1])
        check(said[2]["tools"][1]["title"] == "Draw it" and
              said[2]["tools"][1]["annotations"]["readOnlyHint"] is True, said[2]["tools"][1])


@scenario
def annotations_of_an_mcp_server_cross_the_gateway(w):
    server = os.path.join(os.path.dirname(os.path.dirname(HERE)), "mcp", "import", "server.py")
    with gateway(w), running(w, "provide", "--mcp", "--toolset", "far", "--registry", w.at, "--", sys.executable, server,
                             "modern", stderr=subprocess.DEVNULL), client(w, "/mcp/far") as c:
        is_healthy(w, "far")
        tools = {tool["name"]: tool for tool in c.modern("tools/list").result["tools"]}
        check(tools["echo"]["annotations"]["readOnlyHint"] is True and tools["echo"]["title"] == "Echo", tools["echo"])
        check(tools["sum"]["annotations"] == {"idempotentHint": True, "destructiveHint": False}, tools["sum"])
        check(tools["sum"]["_meta"]["pegboard/artifact-kind"] == "markdown", tools["sum"])
        check(tools["fail"]["annotations"] == {"destructiveHint": True}, tools["fail"])
        content = c.call("picture").result["content"]
        check([item["type"] for item in content] == ["text", "image", "resource"], content)
        check(content[0]["text"] == "a picture" and content[1]["data"] == "UE5H", content)
        check(content[2]["resource"]["blob"] == "//4A", content)


@scenario
def headers_repeat_the_arguments_that_a_tool_names(w):
    w.write("heads.yaml", """
toolset: heads
tools:
  - name: say
    description: Says where
    input_schema: {type: object, properties: {region: {type: string, x-mcp-header: Region}, n: {type: integer}}}
    command: [echo, ["{region}"]]
  - name: odd
    description: Has a declaration that clients refuse
    input_schema: {type: object, properties: {region: {type: string, x-mcp-header: "a b"}}}
    command: [echo, ["{region}"]]
""")
    with gateway(w), running(w, "provide", "heads.yaml", "--registry", w.at, stderr=subprocess.DEVNULL), \
            client(w, "/mcp/heads") as c:
        is_healthy(w, "heads")
        tools = {tool["name"]: tool for tool in c.modern("tools/list").result["tools"]}
        check(tools["say"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region", tools["say"])
        check("Oslo" in c.call("say", {"region": "Oslo"}, Mcp_Param_Region="Oslo").said)
        encoded = "=?base64?" + base64.b64encode("Tromsø".encode()).decode() + "?="
        check("Tromsø" in c.call("say", {"region": "Tromsø"}, mcp_param_region=encoded, mcp_param_else="x").said)
        for headers in ({}, {"Mcp_Param_Region": "Bergen"}, {"Mcp_Param_Region": "=?base64?*?="}):
            c.call("say", {"region": "Oslo"}, **headers).fails(400, -32020)
        c.call("say", {"n": 1}, Mcp_Param_Region="Oslo").fails(400, -32020)
        check("Oslo" in c.call("odd", {"region": "Oslo"}).said)
        check("Oslo" in c.legacy("tools/call", {"name": "say", "arguments": {"region": "Oslo"}}).said)
    with gateway(w), running(w, "provide", "heads.yaml", "--registry", w.at, stderr=subprocess.DEVNULL), \
            client(w, "/mcp?tools=search") as c:
        is_healthy(w, "heads")
        check("Oslo" in c.call("call_tool", {"name": "heads__say", "arguments": {"region": "Oslo"}}).said)


@scenario
def errors_are_results_that_a_model_can_act_on(w):
    with gateway(w), provided(w) as providing, client(w) as c:
        wrong = c.call("weather__echo", {"days": 3}).result
        check(wrong["isError"] and "'city' is missing" in wrong["content"][0]["text"], wrong)
        check(wrong["_meta"]["pegboard/error"] == {"name": "validation_error", "started": False}, wrong)
        failed = c.call("weather__fail").result
        check(failed["isError"] and "out of rain" in failed["content"][0]["text"], failed)
        check("Unknown tool: weather__none" in c.call("weather__none").fails(400, -32602)["message"])
        check(c.legacy("tools/call", {"name": "none"}).fails(200, -32602))
        providing.end()
        down = c.call("weather__say").result
        check(down["isError"] and down["_meta"]["pegboard/error"]["name"] == "service_unavailable", down)
        check(len(c.modern("tools/list").result["tools"]) == 4, "a toolset that is down is not listed")


@scenario
def a_result_with_an_output_schema_is_structured(w):
    w.write("typed.yaml", {"toolset": "eu/typed", "tools": [
        {"name": "get", "description": "Gets", "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
         "command": ["printf", "{\"a\":\\n1}"]},
        {"name": "list.all", "description": "Lists", "input_schema": {"type": "object"}, "output_schema": {"type": "array"},
         "command": ["printf", "[1]"]}]})
    with gateway(w), running(w, "provide", "typed.yaml", "--registry", w.at, stderr=subprocess.DEVNULL):
        is_healthy(w, "eu/typed")
        with client(w, "/mcp/eu%2Ftyped") as c:
            check(c.call("get").result["structuredContent"] == {"a": 1})
            check(c.call("list.all").result["structuredContent"] == [1])
            check("structuredContent" not in c.legacy("tools/call", {"name": "list.all"}).result)
        with client(w) as c:
            tools = c.modern("tools/list").result["tools"]
            check([t["title"] for t in tools] == ["eu/typed/get", "eu/typed/list.all"], tools)
            for tool in tools:
                check(tool["name"].startswith("eu_typed__") and len(tool["name"]) <= 64, tool)
                check("structuredContent" in c.call(tool["name"]).result)


@scenario
def the_same_key_is_the_same_call(w):
    with gateway(w), slow(w), client(w, "/mcp/slow") as c:
        is_healthy(w, "slow")
        first = [c.call("count", meta={"pegboard/idempotency-key": "k1"}).said for _ in range(3)]
        check(first == ["1"] * 3, first)
        check(c.call("count", meta={"pegboard/idempotency-key": "k2"}).said == "2")
        check(c.call("count").said == "3")
        c.call("count", meta={"pegboard/idempotency-key": "a\nb"}).fails(400, -32602)


# ---- who may ask -----------------------------------------------------------------------


@scenario
def hosts_and_origins_are_checked_before_anything_is_read(w):
    # (Host, Origin, status); None: as it is, or none
    table = [
        (None, None, 200),
        ("localhost:9", None, 200),
        ("[::1]:9090", None, 200),
        ("10.1.2.3", None, 200),
        ("good.example:9090", None, 200),
        ("evil.example", None, 403),
        ("evil.example:9090", "http://evil.example:9090", 403),
        ("localhost.evil.example", None, 403),
        ("127.0.0.1.evil.example", None, 403),
        (None, "http://evil.example", 403),
        (None, "null", 403),
        (None, "http://localhost.evil.example", 403),
        (None, "http://localhost:6274", 200),
        (None, "https://good.example", 200),
        (None, "file://", 403),
    ]
    with gateway(w, "--mcp-hosts", "other.example,good.example"), client(w) as c:
        for host, origin, status in table:
            headers = {**({"Host": host} if host else {}), **({"Origin": origin} if origin else {})}
            answer = c.legacy("ping", **headers)
            check(answer.status == status, headers, answer)
            check("access-control-allow-origin" not in answer.headers, answer)
            if status == 403:
                broken = c.exchange(b"{", c.legacy_headers(**headers), False)
                check(broken.status == 403, headers, broken)
        for verb in ("PATCH", "PUT", "OPTIONS"):
            _, answer = c.send(verb, None, {})
            check(answer.status == 405, verb, answer.status)


@scenario
def a_token_is_asked_for_and_names_the_principal(w):
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    token = w.pegboard("token", "new", "--token-file", "tokens", "agent").exits(0).stdout.split()[0]
    with gateway(w, "--token-file", w.path("tokens")), client(w) as c:
        for authorization in (None, "Bearer peg_wrong", "Basic abc", "Bearer"):
            answer = c.legacy("ping", **({"Authorization": authorization} if authorization else {}))
            check(answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer", authorization, answer)
        check(c.legacy("ping", Authorization="Bearer " + token).result == {})
        # Credentials, not names, keep strangers out.
        check(c.legacy("ping", Authorization="Bearer " + token, Host="tools.example").result == {})
        check(c.legacy("ping", Authorization="Bearer " + token, Origin="http://evil.example").status == 403)
        listed = c.modern("tools/list", Authorization="Bearer " + token).result
        check(listed["cacheScope"] == "private", listed)


WELL_KNOWN = "/.well-known/oauth-protected-resource"


def fetch(c, path, **headers):
    c.path = path
    connection, answer = c.send("GET", None, headers)
    text = answer.read().decode()
    connection.close()
    return answer, text


@scenario
def metadata_name_the_authorization_server_if_there_is_one(w):
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    issuer = "https://login.example/tenant"
    for bad in ("login.example", "https://", "https:///x", "https://a?b", "https://a#b", "https://a b", 'https://a"b'):
        w.pegboard("serve", "--addr", "127.0.0.1:0", "--store", "memory", "--mcp-authorization-server", bad).exits(2)
    with gateway(w, "--token-file", w.path("tokens"), "--mcp-authorization-server", issuer), client(w) as c:
        for path in ("/mcp", "/mcp/weather"):
            c.path = path
            answer = c.legacy("ping")
            at = f"http://{w.at}{WELL_KNOWN}{path}"
            check(answer.status == 401, answer)
            check(answer.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{at}"', answer)
        for path in ("", "/mcp", "/mcp/weather"):
            for headers, origin in (({}, "http://" + w.at), ({"Host": "tools.example"}, "http://tools.example"),
                                    ({"X_Forwarded_Proto": "https"}, "https://" + w.at)):
                answer, text = fetch(c, WELL_KNOWN + path, **headers)
                check(answer.status == 200 and answer.headers.get_content_type() == "application/json", text)
                check(answer.headers["Cache-Control"] == "no-store", answer.headers)
                check(json.loads(text) == {"resource": origin + path, "authorization_servers": [issuer],
                                           "bearer_methods_supported": ["header"], "resource_name": "registry"}, text)
        answer, text = fetch(c, WELL_KNOWN + "/mcp", Host='a"b')
        check(answer.status == 400, answer.status, text)
        check(fetch(c, WELL_KNOWN + "/elsewhere")[0].status == 404)
    with gateway(w), client(w) as c:
        check(fetch(c, WELL_KNOWN)[0].status == 404 and fetch(c, WELL_KNOWN + "/mcp")[0].status == 404)


# ---- what is wrong ---------------------------------------------------------------------


@scenario
def headers_and_message_say_the_same(w):
    with gateway(w), provided(w), client(w) as c:
        def ask(**headers):
            return c.call("weather__say", **headers)

        check(ask().said == "sunny")
        check(ask(Mcp_Name=None, mcp_name="=?base64?d2VhdGhlcl9fc2F5?=").said == "sunny")
        for headers in ({"MCP-Protocol-Version": None}, {"Mcp-Method": None}, {"Mcp-Name": None},
                        {"MCP-Protocol-Version": LEGACY}, {"MCP-Protocol-Version": "2027-01-01"},
                        {"Mcp-Method": "tools/list"}, {"Mcp-Method": "Tools/Call"}, {"Mcp-Name": "weather__echo"},
                        {"Mcp-Method": "=?base64?dG9vbHMvY2FsbA==?="},
                        {"Mcp-Name": "=?base64?d2VhdGhlcl9fZWNobw==?="}, {"Mcp-Name": "=?base64?%%%?="}):
            ask(**headers).fails(400, -32020)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        c.exchange(body, c.modern_headers("tools/list", {}), True).fails(400, -32602)
        old = c.modern_message("tools/list", {})
        old["params"]["_meta"][META + "protocolVersion"] = "2026-01-01"
        error = c.exchange(old, c.modern_headers("tools/list", {}, **{"MCP-Protocol-Version": "2026-01-01"}), True)
        check(error.fails(400, -32022)["data"]["supported"] == [MODERN], error)
        check(c.legacy("ping", MCP_Protocol_Version="1999-01-01").status == 400)


@scenario
def requests_that_are_none_are_refused(w):
    deep = b"[" * 100000
    # (body, headers, status, code); code None: no JSON
    table = [
        (b"", {}, 400, -32700),
        (b"{", {}, 400, -32700),
        (deep, {}, 400, -32700),
        (b"[]", {}, 400, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', {}, 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', {}, 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', {}, 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', {}, 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', {}, 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', {}, 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', {}, 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"AAAA"}}', {}, 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":7}}', {}, 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', {}, 200, -32602),
        (b"{}", {"Content-Type": "text/plain"}, 415, None),
        (b"{}", {"Content-Type": None}, 415, None),
        (b"{}", {"Mcp-Session-Id": "guess"}, 404, None),
    ]
    with gateway(w), client(w) as c:
        for body, headers, status, code in table:
            answer = c.exchange(body, c.legacy_headers(**headers), False)
            check(answer.status == status, body[:80], headers, answer)
            got = answer.messages[-1]["error"]["code"] if answer.messages else None
            check(got == code, body[:80], answer)
        c.modern("no/such").fails(404, -32601)
        large = c.begin({"x": "y"}, {"Content-Type": "application/json"})
        large.close()
        connection, answer = c.send("POST", None, {**c.legacy_headers(), "Content-Length": str(9 << 20)})
        check(answer.status == 413, answer.status)
        connection.close()
        check(c.legacy("ping").result == {}, "it does not answer any more")


@scenario
def a_message_that_only_mentions_a_cancellation_is_no_cancellation(w):
    session = {"Mcp-Session-Id": "0" * 32}
    with gateway(w), provided(w), client(w) as c:
        for mention in ({"_meta": {"x": "notifications/cancelled"}}, {"x": "notifications/cancelled"}):
            check(len(c.legacy("tools/list", mention, **session).result["tools"]) == 4)
            check(c.legacy("tools/call", {"name": "weather__say", **mention}, **session).said == "sunny")
            check(c.notify("notifications/initialized", mention, **session).status == 202)
        check(c.legacy("ping").result == {}, "it does not answer any more")


@scenario
def a_toolset_that_is_not_there_is_not_found(w):
    with gateway(w), client(w, "/mcp/nothing") as c:
        check(c.initialize().status == 404)
        check(c.modern("tools/list").status == 404)


# ---- streams ---------------------------------------------------------------------------


@scenario
def output_becomes_progress_and_log_messages_for_those_who_ask(w):
    with gateway(w), running(w, w.at, program=STREAMING), client(w, "/mcp/talk") as c:
        is_healthy(w, "talk")
        plain = c.call("count", {"n": 3})
        check(plain.headers.get_content_type() == "application/json" and plain.said == "3", plain)
        loud = c.call("count", {"n": 3}, {"progressToken": "t", META + "logLevel": "debug"})
        check(loud.headers.get_content_type() == "text/event-stream" and loud.said == "3", loud)
        check(loud.headers["X-Accel-Buffering"] == "no", loud)
        progress = [m["params"] for m in loud.messages if m.get("method") == "notifications/progress"]
        logs = [m["params"] for m in loud.messages if m.get("method") == "notifications/message"]
        check([p["progress"] for p in progress] == [1, 2, 3, 4] and progress[0]["progressToken"] == "t", progress)
        check([(m["logger"], m["data"]) for m in logs][:3] == [("stdout", f"line {i}\n") for i in (1, 2, 3)], logs)
        check("ui" not in json.dumps(loud.messages), "server-data for a program reached a model")
        quiet = c.call("count", {"n": 3}, {"progressToken": 1}, Accept="application/json")
        check(quiet.headers.get_content_type() == "application/json" and quiet.said == "3", quiet)
        legacy = c.legacy("tools/call", {"name": "count", "arguments": {"n": 2}, "_meta": {"progressToken": 5}})
        check([m["params"]["progress"] for m in legacy.messages[:-1]] == [1, 2, 3] and legacy.said == "2", legacy)


@scenario
def a_modern_client_cancels_by_closing_its_stream(w):
    with gateway(w), slow(w), client(w, "/mcp/slow") as c:
        is_healthy(w, "slow")
        params = {"name": "wait", "arguments": {}}
        connection = c.begin(c.modern_message("tools/call", params), c.modern_headers("tools/call", params))
        wait_for(exists(w, "runs"), "the call runs")
        connection.close()
        wait_for(exists(w, "stopped"), "the call is canceled")


@scenario
def a_legacy_client_cancels_with_a_notification_and_not_by_leaving(w):
    with gateway(w, "--threads", "3"), slow(w), client(w, "/mcp/slow") as c, client(w, "/mcp/slow") as other:
        is_healthy(w, "slow")
        c.initialize()
        other.initialize()
        message = {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": {"name": "wait"}}
        connection = c.begin(message, c.legacy_headers())
        wait_for(exists(w, "runs"), "the call runs")
        connection.close()
        for _ in range(8):  # on whichever loop
            check(other.notify("notifications/cancelled", {"requestId": "long"}).status == 202)
            check(c.notify("notifications/cancelled", {"requestId": "short"}).status == 202)
        check(not os.path.exists(w.path("stopped")), "the call was canceled by somebody else")
        check(c.notify("notifications/cancelled", {"requestId": "long"}).status == 202)
        wait_for(exists(w, "stopped"), "the call is canceled")


def cancel_one(w, threads, reason):
    with gateway(w, "--threads", threads), slow(w), client(w, "/mcp/slow") as c:
        is_healthy(w, "slow")
        c.initialize()
        message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "wait"}}
        connection = c.begin(message, c.legacy_headers())
        wait_for(exists(w, "runs"), "the call runs")
        c.notify("notifications/cancelled", {"requestId": 77, "reason": reason})
        said = connection.recv(65536).decode()
        check("200 OK" in said and "text/event-stream" in said and "jsonrpc" not in said, said)
        connection.close()


@scenario
def a_request_that_was_canceled_ends_without_an_answer(w):
    cancel_one(w, "2", "no need")


@scenario
def a_cancellation_with_a_long_reason_ends_a_request_of_its_loop(w):
    cancel_one(w, "1", "no need " * 2000)


@scenario
def a_call_of_a_legacy_client_that_left_runs_to_its_end(w):
    with gateway(w), slow(w), client(w, "/mcp/slow") as c:
        is_healthy(w, "slow")
        connection = c.begin({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}},
                             c.legacy_headers())
        wait_for(exists(w, "runs"), "the call runs")
        connection.close()
        check(c.legacy("ping").result == {})
        w.write("go", "")
        wait_for(exists(w, "went"), "the call ends by itself")
        check(not os.path.exists(w.path("stopped")), "it was canceled")


@scenario
def clients_that_listen_hear_of_changes_at_most_once_a_second(w):
    with gateway(w, "--threads", "2") as serving, client(w) as c:
        modern = c.open("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        check(modern.until("notifications/subscriptions/acknowledged"))
        legacy = c.open_get()
        check(legacy.answer.status == 200, legacy.answer.status)
        with provided(w):
            for stream in (modern, legacy):
                stream.until("notifications/tools/list_changed")
            began = time.monotonic()
            for _ in range(5):
                w.write("slow.yaml", SLOW)
                with running(w, "provide", "slow.yaml", "--registry", w.at, stderr=subprocess.DEVNULL):
                    is_healthy(w, "slow")
                w.pegboard("unregister", "slow", "--registry", w.at)
            for stream in (modern, legacy):
                stream.until("notifications/tools/list_changed")
            took = time.monotonic() - began
            modern.close()
            heard = []
            reader = threading.Thread(target=lambda: heard.extend(iter(legacy.next, None)))
            reader.start()
            check(serving.end() == 0, "it did not stop in good order")  # and ends the stream
            reader.join(gateways.DEADLINE_S)
            check(not reader.is_alive() and len(heard) <= took + 1, heard, took)
        legacy.close()


# ---- many tools ------------------------------------------------------------------------


def offer_many(w, n):
    w.write("many.yaml", {"toolset": "many", "tools": [
        {"name": f"tool{i}", "description": f"Paints number {i}", "input_schema": {"type": "object"},
         "command": ["printf", str(i)]} for i in range(n)]})
    return running(w, "provide", "many.yaml", "--registry", w.at, stderr=subprocess.DEVNULL)


@scenario
def lists_come_in_pages_and_go_on_where_they_were(w):
    with gateway(w), provided(w), client(w) as c:
        with offer_many(w, 450):
            is_healthy(w, "many")
            names, cursor, n_pages = [], None, 0
            while True:
                page = c.modern("tools/list", {"cursor": cursor} if cursor else {}).result
                names += [tool["name"] for tool in page["tools"]]
                n_pages += 1
                cursor = page.get("nextCursor")
                if cursor is None:
                    break
                last = cursor
            check(n_pages == 3 and len(set(names)) == len(names) == 454, n_pages, len(names))
            check(names[0] == "many__tool0" and names[449] == "many__tool449" and names[-1] == "weather__wait", names)
        # A cursor of a catalog that is gone: the next tools in order.
        w.pegboard("unregister", "many", "--registry", w.at).exits(0)
        page = c.modern("tools/list", {"cursor": last}).result
        check([tool["name"] for tool in page["tools"]][0] == "weather__echo", page)


@scenario
def with_too_many_tools_a_client_searches(w):
    with gateway(w, "--mcp-search-above", "100"), provided(w), offer_many(w, 120):
        is_healthy(w, "many")
        with client(w, "/mcp?tools=all") as c:
            check(len(c.modern("tools/list").result["tools"]) == 124)
        with client(w, "/mcp/weather") as c:
            check(len(c.modern("tools/list").result["tools"]) == 4)
        for path, name in (("/mcp", "weather__say"), ("/mcp/weather?tools=search", "say")):
            with client(w, path) as c:
                tools = [tool["name"] for tool in c.modern("tools/list").result["tools"]]
                check(tools == ["search_tools", "describe_tool", "call_tool"], tools)
                found = json.loads(c.call("search_tools", {"query": "a word about weather", "limit": 3}).said)["tools"]
                check(name in [tool["name"] for tool in found] and len(found) <= 3, found)
                definition = json.loads(c.call("describe_tool", {"name": name}).said)
                check(definition["name"] == name and definition["inputSchema"]["type"] == "object", definition)
                check(c.call("call_tool", {"name": name, "arguments": {}}).said == "sunny")
                for tool, arguments in (("search_tools", {}), ("search_tools", {"query": "x", "limit": 51}),
                                        ("describe_tool", {"name": "none"}), ("call_tool", {"name": "none"}),
                                        ("call_tool", {"name": name, "arguments": []})):
                    check(c.call(tool, arguments).result["isError"], tool, arguments)
                c.call(name).fails(400, -32602)


# ---- a client that everybody has -------------------------------------------------------


@scenario
def curl_works_over_both_versions_of_http(w):
    if not shutil.which("curl"):
        raise Skip("there is no curl")
    with gateway(w), provided(w):
        for version in ("--http1.1", "--http2-prior-knowledge"):
            body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say"}}'
            said = subprocess.run(["curl", "-sS", version, f"http://{w.at}/mcp/weather", "-H",
                                   "content-type: application/json", "-d", body], check=True, text=True,
                                  timeout=60, stdout=subprocess.PIPE).stdout
            check(json.loads(said)["result"]["content"] == [{"type": "text", "text": "sunny"}], version, said)


main()
