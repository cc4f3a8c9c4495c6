#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: everything that a gateway offers over gRPC works with stock curl and JSON, over HTTP/1.1 and HTTP/2 alike: every
route of docs/http.md; errors are problem details; and a page of another origin can do nothing.

    test_http.py PEGBOARD MCP_FIXTURE
"""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "cli")]

import gateways  # noqa: E402
from curling import JSON, TIME_S, TOOLSET, VERSIONS, command, curl, problem, wait_for  # noqa: E402
from gateways import gateway, provided, running, until  # noqa: E402
from scenario import ROOT, check, main, scenario  # noqa: E402

FIXTURE = os.path.abspath(sys.argv[2])  # an MCP server, one of whose tools asks


def has(members):
    return lambda a: all(a.json.get(key) == value for key, value in members.items())


def body_is(value):
    return lambda a: a.json == value


def error(name):
    return lambda a: problem(a, a.status, name)


ECHO = "/v1/toolsets/weather/tools/echo"
CALL = ("-d", '{"city":"Oslo"}', *JSON)

# What is asked for, the status, and what the answer is. In this order.
ROUTES = [
    ("/v1/toolsets", (), 200, lambda a: [t["name"] for t in a.json["toolsets"]] == ["weather"] and a.json["total"] == 1),
    ("/v1/toolsets", ("-I",), 200, lambda a: a.text == ""),
    ("/v1/toolsets?tag=demo&tag=weather", (), 200, has({"total": 1})),
    ("/v1/toolsets?tag=demo&tag=other", (), 200, has({"total": 0, "toolsets": []})),
    ("/v1/toolsets?tag=demo&tag=%FF", (), 400, error("invalid_format")),
    ("/v1/toolsets?tag=%FF&tag=demo", (), 400, error("invalid_format")),
    ("/v1/search?q=weather&tag=%FF", (), 400, error("invalid_format")),
    ("/v1/toolsets?limit=x", (), 400, error("invalid_range")),
    ("/v1/toolsets?limit=100000", (), 400, error("invalid_range")),
    ("/v1/toolsets?page=%FF", (), 200, has({"total": 1})),
    ("/v1/toolsets/weather", (), 200, lambda a: a.json["health"]["state"] == "healthy" and len(a.json["tools"]) == 4),
    ("/v1/toolsets/nothing", (), 404, error("not_found")),
    ("/v1/toolsets/%20", (), 400, error("validation_error")),
    (ECHO, (), 200, lambda a: a.json["input_schema"]["required"] == ["city"]),
    ("/v1/toolsets/weather/tools/none", (), 404, error("not_found")),
    ("/v1/search?q=weather%20of%20cities", (), 200, lambda a: a.json["hits"][0]["toolset"]["name"] == "weather"),
    ("/v1/search", (), 400, error("invalid_length")),
    ("/v1/search?q=a&limit=-1", (), 400, error("invalid_range")),
    (ECHO + "/calls", CALL, 200, body_is({"city": "Oslo"})),
    (ECHO + "/calls", ("-d", '{"city":"Oslo"}', "-H", "content-type: application/merge-patch+json; charset=utf-8"), 200,
     body_is({"city": "Oslo"})),
    (ECHO + "/calls", ("-d", '{"city":3}', *JSON), 400, error("validation_error")),
    (ECHO + "/calls", ("-d", '{"city":', *JSON), 400, error("validation_error")),
    (ECHO + "/calls", ("-d", '{"city":"Oslo"}'), 415, error("invalid_format")),
    (ECHO + "/calls", ("-F", "city=Oslo"), 415, error("invalid_format")),
    (ECHO + "/calls", ("-d", '{"city":"Oslo"}', "-H", "content-type: text/plain"), 415, error("invalid_format")),
    (ECHO + "/calls", ("-d", '{"city":"Oslo"}', "-H", "content-type: application/jsonp"), 415, error("invalid_format")),
    ("/v1/toolsets/weather/tools/none/calls", ("-d", "{}", *JSON), 404, error("not_found")),
    ("/v1/toolsets/weather/tools/fail/calls", ("-d", "{}", *JSON), 422, has({"type": "tool_error", "code": "E_COMMAND_EXIT"})),
    ("/v1/toolsets/weather/tools/say/calls", ("-d", "", *JSON), 200, body_is("sunny")),
    ("/v1/calls", (), 200, lambda a: a.json["calls"][0]["tool"] == "say" and a.json["incomplete"] is False),
    ("/v1/calls", ("-I",), 200, lambda a: a.text == ""),
    ("/v1/calls?state=ended&toolset=weather&tool=fail&limit=1", (), 200,
     lambda a: [(c["outcome"], c["error"]) for c in a.json["calls"]] == [("error", "E_COMMAND_EXIT")]),
    ("/v1/calls?state=running", (), 200, has({"calls": [], "next_page_token": ""})),
    ("/v1/calls?tool=none", (), 200, has({"calls": []})),
    ("/v1/calls?state=Ended", (), 400, error("invalid_format")),
    ("/v1/calls?limit=x", (), 400, error("invalid_range")),
    ("/v1/calls?limit=1001", (), 400, error("invalid_range")),
    ("/v1/calls?toolset=%20", (), 400, error("validation_error")),
    ("/v1/calls?tool=" + 257 * "a", (), 400, error("validation_error")),
    ("/v1/calls?page=1", (), 400, error("validation_error")),
    ("/v1/calls?page=" + 48 * "g", (), 400, error("validation_error")),
    ("/v1/calls?page=" + 48 * "0", (), 200, has({"calls": []})),
    ("/v1/calls", ("-X", "DELETE"), 405, lambda a: a.headers["allow"] == "GET, HEAD"),
    ("/v1/calls/xyz", (), 400, error("validation_error")),
    ("/v1/calls/" + 32 * "0", (), 404, error("not_found")),
    ("/v1/calls/" + 64 * "0" + "?wait=never", (), 400, error("invalid_range")),
    ("/v1/calls/" + 64 * "0" + "?wait=25h", (), 400, error("invalid_range")),
    ("/v1/calls/" + 32 * "0", ("-X", "DELETE"), 404, error("not_found")),
    ("/v1/calls/" + 64 * "0" + "/answers", ("-d", '{"number":1,"refusal":"no"}', *JSON), 404, error("not_found")),
    ("/v1/calls/" + 64 * "0" + "/answers", ("-d", '{"number":1}', *JSON), 400, error("validation_error")),
    ("/v1/calls/" + 64 * "0" + "/answers", ("-d", '{"number":-1}', *JSON), 400, error("validation_error")),
    ("/v1/calls/" + 64 * "0" + "/answers", ("-d", "[]", *JSON), 400, error("validation_error")),
    ("/v1/calls/" + 64 * "0" + "/answers", ("-d", '{"number":1,"number":2,"refusal":"no"}', *JSON), 400,
     error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", TOOLSET, *JSON), 200, has({"stream_id": "toolset:by/hand:requests"})),
    ("/v1/toolsets/by%2Fhand", (), 200, has({"name": "by/hand", "tags": ["hand", "made"], "version": "1.0.0", "owner": "local"})),
    ("/v1/toolsets/by%2Fhand/tools/t", (), 200,
     has({"read_only": True, "timeout_ms": 5, "input_schema": {"type": "object", "properties": {"a": {"const": 1.5}}}})),
    ("/v1/toolsets/by%2Fhand/tools/t/calls", ("-d", "{}", *JSON), 503, error("service_unavailable")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"name":"other"}', *JSON), 400, error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"nam":"other"}', *JSON), 400, error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"tags":[1]}', *JSON), 400, error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"kind":"round"}', *JSON), 400, error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"description":"a\\u0000b"}', *JSON), 400, error("validation_error")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", '{"kind":"direct","tools":[]}', *JSON), 503, error("service_unavailable")),
    ("/v1/toolsets/by%2Fhand", ("-X", "PUT", "-d", TOOLSET), 415, error("invalid_format")),
    ("/v1/toolsets/by%2Fhand", ("-X", "DELETE"), 204, lambda a: a.text == ""),
    ("/v1/toolsets/by%2Fhand", ("-X", "DELETE"), 404, error("not_found")),
    ("/v1/status", (), 200, lambda a: a.json["toolsets"] == 1 and a.json["per_toolset"][0]["outcomes"]["result"] > 0),
    ("/openapi.json", (), 200, lambda a: a.json["openapi"] == "3.1.0"),
    ("/openapi.json?toolset=weather", (), 200, lambda a: len(a.json["paths"]) == 4),
    ("/openapi.json?toolset=none", (), 404, error("not_found")),
    ("/v1/toolsets", ("-X", "POST", "-d", "{}", *JSON), 405, lambda a: a.headers["allow"] == "GET, HEAD"),
    ("/v1/nothing", (), 404, lambda a: True),
]


@scenario
def every_route_answers_as_documented_in_both_versions_of_http(w):
    w.write("large", " " * (600 << 10))
    with gateway(w), provided(w):
        for version in VERSIONS:
            for path, arguments, status, is_right in ROUTES:
                answer = curl(w, path, *arguments, version=version)
                check(answer.status == status and is_right(answer) is not False, version, path, arguments, answer)
                if answer.type in ("application/json", "application/problem+json"):
                    check(answer.headers["x-content-type-options"] == "nosniff", answer)
        # Refused before it is sent. libcurl before 8 forgets such an answer over HTTP/2.
        large = curl(w, f"/v1/calls/{64 * '0'}/answers", "--data-binary", "@" + w.path("large"), *JSON, "-H",
                     "expect: 100-continue", "--expect100-timeout", str(TIME_S))
        check(large.status == 413, large)


@scenario
def every_route_of_the_gateway_is_in_the_table_above(w):
    with open(os.path.join(ROOT, "src", "gateway", "rpc", "http.c"), encoding="utf-8") as file:
        routes = re.findall(r'\{"([A-Z]+)", "(/v1[^"]*)"', file.read())
    check(len(routes) >= 12, routes)
    for method, path in routes:
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)) + r"(\?.*)?$")
        if path == "/v1/watch":
            continue  # it does not end: test_watch.py
        check(any(pattern.match(row[0]) and (method in row[1] or ("-d" in row[1] and method == "POST") or method == "GET")
                  for row in ROUTES), "no row for", method, path)


# ---- calls -----------------------------------------------------------------------------


@scenario
def a_call_tells_its_id_and_repeating_its_key_runs_it_once(w):
    with gateway(w), provided(w):
        key = ("-H", 'idempotency-key: "once-1"')
        first = curl(w, ECHO + "/calls", *CALL, *key)
        again = curl(w, ECHO + "/calls", *CALL, "-H", "idempotency-key: once-1", version=VERSIONS[1])
        other = curl(w, ECHO + "/calls", "-d", '{"city":"Rome"}', *JSON, *key)
        check(first.json == again.json == {"city": "Oslo"}, first, again)
        check(first.headers["pegboard-call-id"] == again.headers["pegboard-call-id"], first, again)
        problem(other, 400, "validation_error")
        failed = curl(w, "/v1/toolsets/weather/tools/fail/calls", "-d", "{}", *JSON, "-H", "idempotency-key: once-2")
        problem(failed, 422, "tool_error")
        epochs = {answer.headers["pegboard-epoch"] for answer in (first, again, other, failed)}
        check(len(epochs) == 1 and epochs != {""}, epochs)
        call = curl(w, "/v1/calls/" + first.headers["pegboard-call-id"])
        check(call.json["state"] == "ended" and call.json["outcome"] == "result", call)
        check(call.json["result"] == {"city": "Oslo"} and call.json["tool"] == "echo", call)


@scenario
def a_stream_has_started_output_and_result(w):
    with gateway(w), provided(w):
        for version in VERSIONS:
            answer = curl(w, ECHO + "/calls", *CALL, "-H", "accept: text/event-stream", version=version)
            check(answer.status == 200 and answer.type == "text/event-stream", answer)
            check([event for event, _ in answer.events] == ["started", "result"], answer)
            check(answer.events[1][1]["result"] == {"city": "Oslo"}, answer)
            check(answer.events[0][1]["call_id"] == answer.events[1][1]["call_id"], answer)
            refused = curl(w, ECHO + "/calls", "-d", "{}", *JSON, "-H", "accept: text/event-stream", version=version)
            problem(refused, 400, "validation_error")


@scenario
def a_call_that_is_not_waited_for_is_found_at_its_location(w):
    with gateway(w), provided(w):
        path = "/v1/toolsets/weather/tools/wait/calls"
        started = curl(w, path, "-d", "{}", *JSON, "-H", "prefer: respond-async, wait=50")
        check(started.status == 202 and started.headers["preference-applied"] == "respond-async", started)
        location = started.headers["location"]
        check(location == "/v1/calls/" + started.json["call_id"], started)
        wait_for(lambda: curl(w, location).json["state"] == "running", "it runs")
        w.write("go", "")
        ended = curl(w, location + "?wait=40s", version=VERSIONS[1])
        check(ended.json["state"] == "ended" and ended.json["result"] == "done", ended)
        check(curl(w, location).json["result"] == "done")


@scenario
def a_call_is_canceled_by_deleting_it(w):
    with gateway(w), provided(w):
        path = "/v1/toolsets/weather/tools/wait/calls"
        location = curl(w, path, "-d", "{}", *JSON, "-H", "prefer: respond-async").headers["location"]
        wait_for(lambda: os.path.exists(w.path("runs")), "it runs")
        check(curl(w, location, "-X", "DELETE").status in (204, 504))  # outcome_unknown: its command may not end in time
        ended = curl(w, location + "?wait=30")
        check(ended.json["state"] == "ended" and ended.json["outcome"] in ("canceled", "outcome_unknown", "error"), ended)
        check(ended.json["outcome"] != "error" or ended.json["error"] == "E_TOOL_CANCELED", ended)
        check("result" not in ended.json, ended)


@scenario
def a_deadline_is_a_problem_that_tells_whether_the_call_was_started(w):
    with gateway(w), provided(w):
        late = curl(w, "/v1/toolsets/weather/tools/wait/calls", "-d", "{}", *JSON, "-H", "prefer: wait=1")
        # The provider stops the tool at the same time: whoever is first tells the end.
        told = problem(late, *((422, "tool_error") if late.status == 422 else (504, "outcome_unknown")))
        check(told["started"] is True and told["call_id"] and told.get("code", "E_TOOL_TIMEOUT") == "E_TOOL_TIMEOUT", late)


@scenario
def a_client_that_goes_cancels_a_call_without_an_identity(w):
    with gateway(w), provided(w):
        line = command(w, "/v1/toolsets/weather/tools/wait/calls", "-d", "{}", *JSON)
        with subprocess.Popen(line, stdout=subprocess.DEVNULL) as going:
            wait_for(lambda: os.path.exists(w.path("runs")), "it runs")
            going.kill()
        wait_for(lambda: curl(w, "/v1/status").json["in_flight"] == 0, "no call is in flight")


def listed(w, query="", *arguments):
    answer = curl(w, "/v1/calls" + query, *arguments)
    check(answer.status == 200, answer)
    return answer.json["calls"]


@scenario
def calls_are_listed_while_they_run_and_when_they_have_ended(w):
    with gateway(w), provided(w):
        started = curl(w, "/v1/toolsets/weather/tools/wait/calls", "-d", "{}", *JSON, "-H", "prefer: respond-async, wait=50")
        call_id = started.json["call_id"]
        wait_for(lambda: os.path.exists(w.path("runs")), "it runs")
        (call,) = listed(w)
        check(call["call_id"] == call_id and call["state"] == "running" and call["outcome"] == "", call)
        check((call["toolset"], call["tool"], call["attempt"]) == ("weather", "wait", 1) and call["provider"], call)
        check(call["has_identity"] and call["deadline_unix_ms"] - call["admitted_unix_ms"] in range(45000, 50001), call)
        check(listed(w, "?state=running") and not listed(w, "?state=ended") and not listed(w, "?state=waiting"))
        before = listed(w)[0]["took_ms"]
        check(0 < call["took_ms"] <= before, call, before)

        curl(w, ECHO + "/calls", *CALL)
        check([c["tool"] for c in listed(w)] == ["echo", "wait"], "the newest is first")
        w.write("go", "")
        check(curl(w, f"/v1/calls/{call_id}?wait=40s").json["result"] == "done")
        wait_for(lambda: not listed(w, "?state=running"), "it has ended")
        echo, wait = listed(w)
        check([wait[key] for key in ("call_id", "state", "outcome", "error")] == [call_id, "ended", "result", ""], wait)
        check(wait["took_ms"] >= before and wait["took_ms"] == listed(w)[1]["took_ms"], wait, before)
        check(echo["outcome"] == "result" and echo["has_identity"] is False, echo)


@scenario
def pages_of_calls_have_each_call_of_all_loops_once(w):
    ids = []
    with gateway(w, "--threads", "3"), provided(w):
        for _ in range(15):
            ids.append(curl(w, ECHO + "/calls", *CALL).headers["pegboard-call-id"])  # each its own connection
        wait_for(lambda: len(listed(w)) == len(ids), "all have ended")
        for limit in (1, 4, 14, 15):
            seen, token = [], ""
            while True:
                page = curl(w, f"/v1/calls?limit={limit}&page={token}").json
                check(len(page["calls"]) <= limit, page)
                seen += [call["call_id"] for call in page["calls"]]
                token = page["next_page_token"]
                if not token:
                    break
                curl(w, "/v1/toolsets/weather/tools/say/calls", "-d", "{}", *JSON)  # newer: it moves nothing
            check([at for at in seen if at in ids] == ids[::-1], limit, seen, ids)
            check(len(set(seen)) == len(seen), seen)


@scenario
def calls_are_listed_to_their_principal_only(w):
    tokens = {name: w.pegboard("token", "new", name, "--token-file", "tokens", *more).exits(0).stdout.split()[-1]
              for name, more in (("ada", ()), ("bob", ()), ("root", ("--admin",)))}

    def shown(name):
        return "-H", "authorization: Bearer " + tokens[name]

    w.write("weather.yaml", gateways.MANIFEST)
    w.write("token", tokens["root"])
    with gateway(w, "--token-file", w.path("tokens")), \
            running(w, "provide", "weather.yaml", "--registry", w.at, "--token", "token", stderr=subprocess.DEVNULL):
        wait_for(lambda: curl(w, "/v1/toolsets/weather", *shown("ada")).json.get("health", {}).get("state") == "healthy",
                 "it is provided")
        mine = curl(w, ECHO + "/calls", *CALL, *shown("ada")).headers["pegboard-call-id"]
        long = curl(w, "/v1/toolsets/weather/tools/wait/calls", "-d", "{}", *JSON, "-H", "prefer: respond-async",
                    *shown("ada")).json["call_id"]
        check([c["call_id"] for c in listed(w, "", *shown("ada"))] == [long, mine])
        token = curl(w, "/v1/calls?limit=1", *shown("ada")).json["next_page_token"]
        for name in ("bob", "root"):
            for query in ("", "?state=running", "?state=ended", "?toolset=weather", "?page=" + token):
                check(listed(w, query, *shown(name)) == [], name, query)
        problem(curl(w, "/v1/calls"), 401, "unauthenticated")
        problem(curl(w, f"/v1/calls?access_token={tokens['ada']}"), 401, "unauthenticated")


ANSWER = json.dumps({"number": 1, "responses": {"gate-1": {"action": "accept", "content": {"name": "Ada"}}}})


def asking(w):
    return running(w, "provide", "--registry", w.at, "--toolset", "asks", "--mcp", "--", FIXTURE, stderr=subprocess.DEVNULL)


@scenario
def what_a_tool_asks_is_answered_while_it_runs(w):
    with gateway(w), asking(w):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "asks")
        path = "/v1/toolsets/asks/tools/ask/calls"
        started = curl(w, path + "?ask=true", "-d", "{}", *JSON, "-H", "prefer: respond-async")
        location = started.headers["location"]
        wait_for(lambda: "question" in curl(w, location).json, "it asks")
        asked = curl(w, location + "?wait=30s").json
        check(asked["state"] == "running" and asked["question"]["number"] == 1, asked)
        check(asked["question"]["requests"]["gate-1"]["params"]["message"] == "Who are you?", asked)
        check(curl(w, location + "/answers", "-d", ANSWER, *JSON, version=VERSIONS[1]).status == 204)
        ended = curl(w, location + "?wait=40s")
        check(ended.json["state"] == "ended" and ended.json["result"] == "hello Ada", ended)
        check(curl(w, location + "/answers", "-d", ANSWER, *JSON).status in (404, 409), "it has ended")

        lines = []
        line = command(w, path + "?ask=true", "-d", "{}", *JSON, "-H", "accept: text/event-stream")
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as calling:
            for text in iter(calling.stdout.readline, ""):
                lines.append(text)
                if text.startswith("data: ") and "event: input\n" in lines[-3:]:
                    call_id = json.loads(next(at for at in lines if '"call_id"' in at)[6:])["call_id"]
                    check(curl(w, f"/v1/calls/{call_id}/answers", "-d", ANSWER, *JSON).status == 204)
            check(calling.wait(TIME_S) == 0)
        check("event: result\n" in lines and '"result":"hello Ada"' in "".join(lines), lines)

        alone = curl(w, path, "-d", "{}", *JSON)
        check(alone.status == 422 and alone.json["type"] == "tool_error", alone)  # there is nobody to ask


# ---- who may ---------------------------------------------------------------------------


@scenario
def a_page_of_another_origin_can_do_nothing(w):
    with gateway(w), provided(w):
        port = w.at.rsplit(":", 1)[1]
        evil = f"http://evil.example:{port}"
        attacks = [
            # A name of the page's own that resolves to 127.0.0.1: the browser takes it for the same origin.
            ("-H", f"host: evil.example:{port}", "-H", f"origin: {evil}"),
            ("-H", f"host: evil.example:{port}", "-H", "sec-fetch-site: same-origin"),
            ("-H", "host: localhost.evil.example"),
            # fetch() and forms of a page elsewhere.
            ("-H", "origin: http://evil.example"),
            ("-H", "origin: null"),
            ("-H", f"origin: http://localhost.evil.example:{port}"),
            ("-H", "origin: http://127.0.0.1:1"),
            # no-cors requests without an Origin.
            ("-H", "sec-fetch-site: cross-site", "-H", "sec-fetch-mode: no-cors"),
            ("-H", "sec-fetch-site: same-site", "-H", "sec-fetch-mode: no-cors"),
        ]
        for version in VERSIONS:
            for attack in attacks:
                for path, arguments in [("/v1/toolsets", ()), (ECHO + "/calls", CALL), ("/v1/status", ()), ("/v1/calls", ()),
                                        ("/v1/toolsets/weather", ("-X", "DELETE")), ("/v1/watch", ())]:
                    answer = curl(w, path, *arguments, *attack, version=version)
                    problem(answer, 403, "permission_denied")
                    check("access-control-allow-origin" not in answer.headers, answer)
                asked = curl(w, ECHO + "/calls", "-X", "OPTIONS", "-H", "access-control-request-method: POST", *attack,
                             version=version)
                check(asked.status == 403 and not any(h.startswith("access-control") for h in asked.headers), asked)
            # What a form can send, from the same origin even.
            for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "text/plain"):
                answer = curl(w, ECHO + "/calls", "-d", '{"city":"Oslo"}', "-H", "content-type: " + kind, version=version)
                problem(answer, 415, "invalid_format")
        own = curl(w, ECHO + "/calls", *CALL, "-H", f"origin: http://{w.at}", "-H", "sec-fetch-site: same-origin")
        check(own.status == 200 and "access-control-allow-origin" not in own.headers, own)
        check(curl(w, "/v1/status").json["outcomes"]["result"] == 1, "only the last one was called")


@scenario
def only_origins_that_are_named_get_cors(w):
    with gateway(w, "--cors-origin", "https://app.example,http://other.example:8080"), provided(w):
        for version in VERSIONS:
            for origin in ("https://app.example", "http://other.example:8080"):
                page = ("-H", "origin: " + origin, "-H", "sec-fetch-site: cross-site")
                asked = curl(w, ECHO + "/calls", "-X", "OPTIONS", "-H", "access-control-request-method: POST", *page,
                             version=version)
                check(asked.status == 204 and asked.headers["access-control-allow-origin"] == origin, asked)
                check("idempotency-key" in asked.headers["access-control-allow-headers"], asked)
                check("access-control-allow-credentials" not in asked.headers, asked)
                answer = curl(w, ECHO + "/calls", *CALL, *page, version=version)
                check(answer.json == {"city": "Oslo"} and answer.headers["access-control-allow-origin"] == origin, answer)
                check(answer.headers["vary"] == "origin", answer)
            other = curl(w, ECHO + "/calls", *CALL, "-H", "origin: https://app.example.evil.example", version=version)
            problem(other, 403, "permission_denied")


@scenario
def tokens_are_asked_for_and_only_in_authorization(w):
    token = w.pegboard("token", "new", "ci", "--token-file", "tokens").exits(0).stdout.split()[-1]
    with gateway(w, "--token-file", w.path("tokens")):
        shown = ("-H", "authorization: Bearer " + token)
        for version in VERSIONS:
            for path, arguments in [("/v1/toolsets", ()), (ECHO + "/calls", CALL), ("/v1/watch", ()), ("/v1/status", ()),
                                    ("/v1/toolsets/a", ("-X", "DELETE")), (f"/v1/toolsets?access_token={token}", ()),
                                    ("/v1/toolsets", ("-b", f"token={token}")),
                                    ("/v1/toolsets", ("-H", "authorization: Bearer peg_wrong"))]:
                answer = curl(w, path, *arguments, version=version)
                problem(answer, 401, "unauthenticated")
                check(answer.headers["www-authenticate"] == "Bearer", answer)
            check(curl(w, "/v1/toolsets", *shown, version=version).json["total"] == 0)
            problem(curl(w, "/v1/status", *shown, version=version), 403, "permission_denied")
        check(curl(w, "/v1/toolsets/mine", "-X", "PUT", "-d", TOOLSET, *JSON, *shown).status == 200)
        check(curl(w, "/v1/toolsets/mine", *shown).json["owner"] == "token:ci")


main()
