#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a gateway on this machine, and every command that asks it, from a real process each; what
they print for people and for programs, and what they exit with."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

from gateways import (DEADLINE_S, MANIFEST, NOWHERE, ask, gateway, make_certificate, provided,
                      running, until)
from scenario import Skip, check, main, scenario
from shells import COMPLETIONS, fish_completes, zsh_completes


# ---- serve ---------------------------------------------------------------------------


@scenario
def a_gateway_says_where_it_listens_and_how_to_use_it(w):
    with gateway(w) as serving:
        check(re.fullmatch(r"127\.0\.0\.1:\d+", w.at), w.at)
        check(w.path("data/toolsets.db") in serving.line(), "where the toolsets are")
        serving.line_with(f"pegboard list --registry {w.at}")
        serving.line_with(f"pegboard provide FILE --registry {w.at}")
        serving.line_with("pegboard call TOOLSET TOOL key=value")
        check(serving.end() == 0, "SIGTERM")
    check(stat.S_IMODE(os.stat(w.path("data")).st_mode) == 0o700, "the folder is for its owner")


@scenario
def sigint_ends_a_gateway_too(w):
    with gateway(w) as serving:
        check(serving.end(signal.SIGINT) == 0, "SIGINT")


@scenario
def a_gateway_takes_as_many_connections_as_it_may_have_descriptors(w):
    with running(
            w, "-c", f'ulimit -Sn 256; exec "{w.executable}" serve --addr 127.0.0.1:0 --store memory',
            program="sh") as serving:
        serving.line()
        soft, hard = resource.prlimit(serving.process.pid, resource.RLIMIT_NOFILE)
        check(soft == hard, soft, "of", hard)


@scenario
def options_may_come_from_the_environment(w):
    # what else may come from there needs a provider: tests/gateway/promises/test_operator.py
    env = {"REGISTRY_ADDR": "127.0.0.1:0", "REGISTRY_NAME": "from-env",
           "XDG_STATE_HOME": w.path("state")}
    with running(w, "serve", "--log-file", "log", env=env) as serving:
        w.at = serving.line_with("listens on").split()[-1]
        check(os.path.exists(w.path("state/pegboard/toolsets.db")), "the store")
        check(json.loads(ask(w, "status", "--json").exits(0).stdout)["registry"] == "from-env",
              "its name")
        check(serving.end() == 0, "SIGTERM")


@scenario
def a_gateway_that_cannot_start_says_why_and_exits_with_2(w):
    data = ("--data-dir", w.path("other"), "--addr", "127.0.0.1:0")
    with gateway(w) as serving:
        w.pegboard("serve", "--addr", "127.0.0.1:0", "--data-dir", w.path("data")).exits(2) \
            .complains("is in use by process", str(serving.process.pid), "E_STORE_LOCKED")
        w.pegboard("serve", "--store", "memory", "--addr", w.at).exits(2).complains("pegboard: ")
    w.pegboard("serve", "--addr", "127.0.0.1:0", env={"REDIS_URL": "unix://" + w.path("no.sock")}).exits(2).complains(
        "there is no connection to Redis: check its address and that it runs", "E_REDIS_CONNECT")
    w.pegboard("serve", *data, env={"REDIS_PASSWORD": "x"}).exits(2).complains("redis_password: it needs redis")
    w.pegboard("serve", *data, env={"MONGO_URL": "mongodb://127.0.0.1:1"}).exits(2).complains("MongoDB", "E_STORE")
    w.pegboard("serve", *data, "--store", "mongo").exits(2).complains("--store mongo needs the URL", "MONGO_URL")
    w.pegboard("serve", *data, "--store", "memory", "--mongo", "mongodb://127.0.0.1:1").exits(2) \
        .complains("are for --store mongo")
    w.pegboard("serve", *data, "--mongo-database", "x").exits(2).complains("are for --store mongo")
    w.pegboard("serve", "--store", "memory", "--addr", ":0", env={"MONGO_URL": "x"}).exits(2) \
        .complains("E_LISTEN_INSECURE", "--insecure")
    w.pegboard("serve", *data, "--token-file", w.path("missing")).exits(2).complains("missing")
    w.pegboard("serve", env={"PING_INTERVAL": "soon"}).exits(2).prints("") \
        .complains("PING_INTERVAL is 'soon', but should be a time such as 10s")
    for name in ("a b", "a\nb", "{a}", "", "n" * 257):
        w.pegboard("serve", "--data-dir", w.path("unmade"), "--name", name).exits(2).prints("") \
            .complains("but should be 1 to 256 of the characters A-Z a-z 0-9 _ . : / -")
    w.pegboard("serve", *data, env={"REGISTRY_NAME": "a b"}).exits(2).complains(
        "REGISTRY_NAME is 'a b', but should be 1 to 256 of")
    check(not os.path.exists(w.path("unmade")), "a name of no use leaves no folder behind")
    os.mkdir(w.path("broken"))
    w.write("broken/toolsets.db", "this is no database " * 200)
    w.pegboard("serve", "--data-dir", w.path("broken"), "--addr", "127.0.0.1:0").exits(2) \
        .complains("is damaged", "restore it from a copy")


@scenario
def a_connection_that_is_silent_is_pinged(w):
    with gateway(w, "--keepalive", "100ms"):
        host, port = w.at.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as silent:  # half of the default
            silent.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            frames = silent.makefile("rb")
            kind = None
            while kind != 6:  # PING
                head = frames.read(9)
                frames.read(int.from_bytes(head[:3], "big"))
                kind = head[3]


@scenario
def a_gateway_may_listen_on_a_unix_socket(w):
    with running(w, "serve", "--store", "memory", "--addr", "unix:" + w.path("s"), "--log-file",
                 "log") as serving:
        serving.line_with("listens on unix:")
        w.pegboard("list", "--json", env={"PEGBOARD_REGISTRY": "unix:" + w.path("s")}).exits(0) \
            .prints('{"toolsets":[]}\n')
        check(serving.end() == 0, "SIGTERM")


@scenario
def sighup_opens_the_log_file_again(w):
    with gateway(w) as serving:
        os.rename(w.path("log"), w.path("log.1"))
        serving.send(signal.SIGHUP)
        end = time.monotonic() + DEADLINE_S
        while not os.path.exists(w.path("log")) and time.monotonic() < end:
            time.sleep(0.01)
        check(os.path.exists(w.path("log")), "a new log file")
        check(serving.end() == 0, "SIGTERM")


# ---- no gateway ------------------------------------------------------------------------


@scenario
def a_gateway_that_cannot_be_reached_is_exit_status_3(w):
    for arguments in (["list"], ["get", "x"], ["search", "x"], ["call", "x", "y"], ["status"],
                      ["unregister", "x"]):
        w.pegboard(*arguments, "--registry", NOWHERE).exits(3).prints("").complains(NOWHERE)
        w.pegboard(*arguments, env={"PEGBOARD_REGISTRY": NOWHERE}).exits(3).complains(NOWHERE)


@scenario
def an_address_or_a_file_that_is_none_is_exit_status_2(w):
    w.pegboard("list", "--registry", "not an address").exits(2).complains("pegboard: ")
    w.pegboard("list", "--token", w.path("missing"), "--registry", NOWHERE).exits(2) \
        .complains("missing")
    w.pegboard("list", "--tls-ca", w.path("missing"), "--registry", NOWHERE).exits(2) \
        .complains("missing")
    w.write("tools.yaml", "toolset: t\ntools:\n  - {name: a, description: A., command: [cat]}\n")
    for text, words in (("", "has no token"), ("two words", "is not a single token"),
                        ("a\x01", "printable"),
                        ("a" * 8193, "has more than 8192 bytes")):
        w.write("a.token", text)
        for arguments in (("list",), ("provide", "tools.yaml")):
            w.pegboard(*arguments, "--token", "a.token", "--registry", NOWHERE).exits(2) \
                .complains("the token file 'a.token' ").complains(words)


# ---- an empty gateway --------------------------------------------------------------------


@scenario
def nothing_is_there_at_first(w):
    with gateway(w):
        ask(w, "list").exits(0).prints("there are no toolsets yet; `pegboard provide FILE` offers "
                                     "one\n").is_silent()
        ask(w, "list", "--names").exits(0).prints("")
        ask(w, "list", "--json").exits(0).prints('{"toolsets":[]}\n')
        ask(w, "list", "--tag", "x").exits(0).prints("no toolset has these tags\n")
        ask(w, "search", "any", "thing").exits(1).prints("nothing found\n")
        ask(w, "search", "x", "--json").exits(1).prints('{"hits":[],"total":0}\n')
        ask(w, "get", "nowhere").exits(1).prints("").complains("nowhere", "not_found")
        ask(w, "call", "nowhere", "x").exits(1).prints("").complains("nowhere", "not_found")
        ask(w, "unregister", "nowhere").exits(1).prints("").complains("nowhere", "not_found")


@scenario
def the_status_is_printed_for_people_and_programs(w):
    with gateway(w, "--name", "tools"):
        ask(w, "status").exits(0).mentions("tools on ", "store sqlite", "toolsets 0 (0 healthy)")
        answer = json.loads(ask(w, "status", "--json").exits(0).stdout)
        check(answer["registry"] == "tools" and answer["store"] == "sqlite", answer)
        check(answer["toolsets"] == [] and answer["threads"] == 1, answer)
        check(not answer["draining"] and answer["memory_bytes"] > 0, answer)


# ---- toolsets ----------------------------------------------------------------------------


@scenario
def a_toolset_is_listed_found_and_shown(w):
    with gateway(w), provided(w):
        ask(w, "list").exits(0).is_silent().mentions(
            "TOOLSET", "weather  1.2.0    healthy", "demo, weather", "Sample weather of some cities")
        ask(w, "list", "--names").exits(0).prints("weather\n")
        ask(w, "list", "--tag", "demo", "--tag", "weather", "--names").exits(0).prints("weather\n")
        ask(w, "list", "--tag", "other", "--names").exits(0).prints("")
        (toolset,) = json.loads(ask(w, "list", "--json").exits(0).stdout)["toolsets"]
        check(toolset["name"] == "weather" and toolset["version"] == "1.2.0", toolset)
        check(toolset["tool_count"] == 4 and toolset["owner"] == "local", toolset)
        check(toolset["health"]["state"] == "healthy", toolset)
        check(toolset["health"]["providers"] == 1, toolset)

        ask(w, "search", "cities").exits(0).mentions("weather", "healthy")
        (hit,) = json.loads(ask(w, "search", "sunny", "city", "--json").exits(0).stdout)["hits"]
        check(hit["name"] == "weather" and hit["score"] > 0, hit)
        ask(w, "search", "dentist").exits(1)
        ask(w, "search", "what is the", "wether", "in some city").exits(0).mentions("SCORE", "weather")

        ask(w, "get", "weather").exits(0).mentions(
            "weather 1.2.0  healthy, 1 provider\n", "  tags: demo, weather\n", "by local",
            "    city (string, required): Which city\n", "    days (integer, 1 to 14)\n",
            "    tags (array of string, at least 1 item)\n")
        ask(w, "get", "weather", "--names").exits(0).prints("echo\nfail\nsay\nwait\n")
        ask(w, "get", "weather", "echo").exits(0).mentions("input schema", '"required"')
        tool = json.loads(ask(w, "get", "weather", "echo", "--json").exits(0).stdout)
        check(tool["input_schema"]["required"] == ["city"], tool)
        check(tool["output_schema"] is None and not tool["idempotent"], tool)
        whole = json.loads(ask(w, "get", "weather", "--json").exits(0).stdout)
        check([t["name"] for t in whole["tools"]] == ["echo", "fail", "say", "wait"], whole)
        ask(w, "get", "weather", "nope").exits(1).prints("").complains("has no tool 'nope'")


@contextlib.contextmanager
def offered(w, name):
    """The toolset of a manifest that is called as it is."""
    with running(w, "provide", name + ".yaml", "--registry", w.at, stderr=subprocess.DEVNULL):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", name)
        yield


@scenario
def of_equal_toolsets_healthy_ones_are_found_first(w):
    manifest = "toolset: {}\ntools:\n  - {{name: ship, description: Ships an order., command: [cat]}}\n"
    with gateway(w):
        for name in ("aa", "bb"):
            w.write(name + ".yaml", manifest.format(name))
        with offered(w, "aa"):
            pass
        with offered(w, "bb"):
            hits = json.loads(ask(w, "search", "orders", "--json").exits(0).stdout)["hits"]
            check([hit["name"] for hit in hits] == ["bb", "aa"], hits)
            check(hits[0]["score"] == hits[1]["score"] and hits[0]["tools"] == ["ship"], hits)


@scenario
def the_language_of_search_can_be_chosen(w):
    w.write("t.yaml", "toolset: t\ntools:\n  - {name: a, description: Katzen., command: [cat]}\n")
    with gateway(w, "--search-language", "german"), offered(w, "t"):
        ask(w, "search", "alle", "Katze").exits(0)
        ask(w, "search", "the").exits(1)
    w.pegboard("serve", "--search-language", "klingon").exits(2).complains("should be one of none, arabic")


@scenario
def a_tool_is_called_with_pairs_or_json(w):
    with gateway(w), provided(w):
        ran = ask(w, "call", "weather", "echo", "city=Rome", "days=3", "tags=a").exits(0).is_silent()
        check(json.loads(ran.stdout) == {"city": "Rome", "days": 3, "tags": ["a"]}, ran)
        ran = ask(w, "call", "weather", "echo", "--args", '{"city": "Rome"}').exits(0)
        check(json.loads(ran.stdout) == {"city": "Rome"}, ran)
        w.write("args.json", {"city": "Bern"})
        ran = ask(w, "call", "weather", "echo", "--args", "@args.json").exits(0)
        check(json.loads(ran.stdout) == {"city": "Bern"}, ran)
        ran = ask(w, "call", "weather", "echo", "city=@-", stdin="Oslo").exits(0)
        check(json.loads(ran.stdout) == {"city": "Oslo"}, ran)
        ask(w, "call", "weather", "echo", "city=@-", "tags=@-", stdin="Oslo").exits(2).prints("") \
            .complains("standard input can be read only once")
        ask(w, "call", "weather", "say").exits(0).prints('"sunny"\n')
        ask(w, "call", "weather", "say", "-r").exits(0).prints("sunny\n")


@scenario
def a_call_that_does_not_work_says_why(w):
    with gateway(w), provided(w):
        ask(w, "call", "weather", "fail").exits(1).prints("").complains("weather fail failed: ")
        ask(w, "call", "weather", "echo").exits(1).prints("").complains("was refused", "city",
                                                                      "validation_error")
        ask(w, "call", "weather", "echo", "city=x", "days=soon").exits(1).prints("") \
            .complains("days is 'soon', but the tool takes integer there")
        ask(w, "call", "weather", "nope").exits(1).prints("").complains("has no tool 'nope'")
        ask(w, "call", "weather", "echo", "--args", "{").exits(2).complains("--args")
        ask(w, "call", "weather", "echo", "city").exits(2).complains("key=value")


@scenario
def what_became_of_a_call_is_one_object_for_programs(w):
    with gateway(w), provided(w):
        ran = json.loads(ask(w, "call", "weather", "say", "--json").exits(0).stdout)
        check(ran["outcome"] == "result" and ran["result"] == "sunny", ran)
        check(ran["error"] is None and ran["call_id"] and ran["started"], ran)
        ran = json.loads(ask(w, "call", "weather", "fail", "--json").exits(1).stdout)
        check(ran["outcome"] == "error" and ran["result"] is None and ran["error"]["message"], ran)
        ran = json.loads(ask(w, "call", "weather", "echo", "--json").exits(1).stdout)
        check(ran["outcome"] == "refused" and ran["error"]["name"] == "validation_error", ran)
        lines = ask(w, "call", "weather", "say", "--json", "--stream").exits(0).objects()
        check(lines[-1]["event"] == "end" and lines[-1]["result"] == "sunny", lines)
        check(all(line["event"] == "output" for line in lines[:-1]), lines)


@scenario
def a_call_with_a_key_is_one_call(w):
    with gateway(w), provided(w):
        first = ask(w, "call", "weather", "say", "--idempotency-key", "k", "--json").exits(0)
        again = ask(w, "call", "weather", "say", "--idempotency-key", "k", "--json").exits(0)
        first, again = json.loads(first.stdout), json.loads(again.stdout)
        check(first["call_id"] == again["call_id"], first, again)
        check(again["attached"] and not first["attached"], first, again)


@scenario
def a_toolset_without_a_provider_is_exit_status_5(w):
    with gateway(w):
        with provided(w) as providing:
            check(providing.end() == 0, "the provider drains")
        until(w, lambda a: a["health"]["state"] != "healthy", "get", "weather")
        ask(w, "call", "weather", "say").exits(5).prints("").complains("weather say was refused",
                                                                     "service_unavailable")
        ask(w, "list").exits(0).mentions(" away since ")
        listed = json.loads(ask(w, "list", "--json").exits(0).stdout)["toolsets"][0]["health"]
        check(listed["state"] == "unhealthy" and listed["providers"] == 0, listed)
        check(listed["away_since_ms"] == listed["last_pong_ms"] > 0, listed)
        head = ask(w, "get", "weather").exits(0).stdout.splitlines()[0]
        check(re.fullmatch(r"weather \S+  away since [-:\d]+: no provider is attached \(last heard of [0-9smh ]+ ago\)",
                           head), head)
        reason = json.loads(ask(w, "get", "weather", "--json").exits(0).stdout)["health"]["reason"]
        check("staleness_threshold=" in reason, reason)


@scenario
def a_registration_outlives_the_gateway_that_is_killed(w):
    with gateway(w) as serving:
        with provided(w):
            serving.end(signal.SIGKILL)
    with gateway(w):
        ask(w, "list", "--names").exits(0).prints("weather\n")
        ask(w, "unregister", "weather").exits(0).prints("weather: unregistered\n")
        ask(w, "list", "--names").exits(0).prints("")
    with gateway(w):
        ask(w, "list", "--names").exits(0).prints("")


@scenario
def each_change_is_a_line(w):
    with gateway(w):
        with running(w, "watch", "--json", "--registry", w.at) as lines, \
                running(w, "watch", "--changes", "--registry", w.at) as words:
            check(json.loads(lines.line())["event"] == "ready", "the beginning")
            with provided(w) as providing:
                event = json.loads(lines.line_with('"registered"'))
                check(event["toolset"]["name"] == "weather", event)
                lines.line_with('"healthy"')
                providing.end()
                lines.line_with('"health"', '"unhealthy"')
            ask(w, "unregister", "weather").exits(0)
            lines.line_with('"unregistered"', '"weather"')
            words.line_with("unregistered  weather")
            check(lines.end() == 0 and words.end(signal.SIGINT) == 0, "how they end")


@scenario
def the_status_counts_calls(w):
    with gateway(w), provided(w):
        ask(w, "call", "weather", "say").exits(0)
        ask(w, "call", "weather", "fail").exits(1)
        answer = json.loads(ask(w, "status", "--json").exits(0).stdout)
        (toolset,) = answer["toolsets"]
        check(toolset["outcomes"]["result"] == 1 and toolset["outcomes"]["error"] == 1, toolset)
        check(answer["healthy"] == 1 and answer["providers"] == 1, answer)
        ask(w, "status", "--once").exits(0).mentions("weather", "healthy", "ok 1, failed 1")


# ---- calls that take their time ------------------------------------------------------------


def await_file(w, name):
    end = time.monotonic() + DEADLINE_S
    while not os.path.exists(w.path(name)):
        check(time.monotonic() < end, name, "is not there")
        time.sleep(0.01)


def until_draining(w):
    end = time.monotonic() + DEADLINE_S
    while "event=drain" not in open(w.path("log"), encoding="utf-8").read():
        check(time.monotonic() < end, "it does not drain")
        time.sleep(0.01)


@contextlib.contextmanager
def waiting(w, *arguments):
    """A call of `wait` that runs."""
    with running(w, "call", "weather", "wait", "--registry", w.at, *arguments) as calling:
        await_file(w, "runs")
        yield calling


@scenario
def a_gateway_that_is_stopped_finishes_what_runs(w):
    with gateway(w) as serving, provided(w), waiting(w) as calling:
        serving.send(signal.SIGTERM)
        until_draining(w)
        w.write("go", "")
        check(calling.line() == '"done"\n' and calling.wait() == 0, "the call")
        check(serving.wait() == 0, "the gateway")


@scenario
def a_gateway_that_is_stopped_twice_does_not_wait(w):
    with gateway(w) as serving, provided(w), waiting(w, "--timeout", "10m") as calling:
        serving.send(signal.SIGTERM)
        until_draining(w)
        serving.send(signal.SIGTERM)
        check(serving.wait() == 1, "something was given up")
        check(calling.wait() == 4, "nobody knows what became of the call")
        w.write("go", "")


def call_too_long(w, *arguments):
    """A call whose time is over while it runs. A slow machine needs more of it to start one."""
    for time_it_has in ("500ms", "5s", "25s"):
        ran = ask(w, "call", "weather", "wait", "--timeout", time_it_has, *arguments)
        if ran.status == 4:
            break
    return ran.exits(4)


@scenario
def a_call_that_takes_too_long_is_ended_by_its_tool_or_its_end_is_not_known(w):
    # The provider ends the command a little before the gateway gives up: on a slow machine either may be first.
    with gateway(w), provided(w):
        ran = call_too_long(w).prints("")
        check("E_TOOL_TIMEOUT" in ran.stderr or "outcome unknown" in ran.stderr, ran)
        ran = call_too_long(w, "--json")
        check(json.loads(ran.stdout)["outcome"] in ("error", "outcome_unknown"), ran)


@scenario
def output_of_a_running_tool_is_shown(w):
    with gateway(w), running(w, w.at, program=os.path.abspath(sys.argv[2])):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "talk")
        ran = ask(w, "call", "talk", "count", "n=2", "--stream").exits(0)
        check(ran.stdout == "2\n" and ran.stderr == "line 1\nline 2\n\\x1B[2J\n", ran)
        ask(w, "call", "talk", "count", "n=2").exits(0).prints("2\n").is_silent()
        *said, end = ask(w, "call", "talk", "count", "n=1", "--stream", "--json").exits(0).objects()
        check("".join(line["delta"] for line in said) == "line 1\n\x1b[2J\n", said)
        check({line["stream"] for line in said} == {"stdout"}, said)
        check(end["event"] == "end" and end["result"] == 1, end)
        check(end["server_data"] == [{"kind": "note", "audience": "ui", "data": {"n": 1}}], end)


# ---- who is calling ----------------------------------------------------------------------


@scenario
def a_token_goes_into_a_new_file_that_only_its_owner_reads(w):
    w.pegboard("token", "new", "--token-file", "tokens", "--out", "ci.token", "ci", umask=0) \
        .exits(0).prints("").complains("'ci.token'", "only you can read it")
    check(os.stat(w.path("ci.token")).st_mode & 0o777 == 0o600, os.stat(w.path("ci.token")))
    with open(w.path("ci.token"), encoding="utf-8") as file:
        token = file.read()
    check(token.startswith("peg_") and token.endswith("\n") and token.count("\n") == 1, token)
    with open(w.path("tokens"), encoding="utf-8") as file:
        hashes = file.read()

    w.pegboard("token", "new", "--token-file", "tokens", "--out", "ci.token", "ci") \
        .exits(2).prints("").complains("'ci.token' is there already", "E_FILE")
    w.pegboard("token", "new", "--token-file", "tokens", "--out", "nowhere/x", "ci").exits(2) \
        .complains("'nowhere/x' cannot be written")
    w.pegboard("token", "new", "--token-file", "tokens", "--out", "new.token", "two words").exits(2)
    check(not os.path.exists(w.path("new.token")), "a file without a token was left")
    with open(w.path("ci.token"), encoding="utf-8") as file:
        check(file.read() == token, "the token was written over")
    with open(w.path("tokens"), encoding="utf-8") as file:
        check(file.read() == hashes, "a token that nobody has was added")


@scenario
def tokens_are_listed_and_revoked(w):
    file = ("--token-file", "tokens")
    w.pegboard("token", "list", *file).exits(2).complains("E_TOKEN_FILE")
    w.pegboard("token", "revoke", *file, "ci").exits(2).complains("E_TOKEN_FILE")
    check(os.listdir(w.directory) == [], "a file was made")
    for name, more in (("ops", ["--admin"]), ("ci", []), ("bob", []), ("ci", [])):
        w.pegboard("token", "new", *file, *more, name).exits(0)
    listed = json.loads(w.pegboard("token", "list", *file, "--json").exits(0).stdout)["tokens"]
    check([(t["name"], t["admin"], t["line"]) for t in listed] ==
          [("bob", False, 3), ("ci", False, 2), ("ci", False, 4), ("ops", True, 1)], listed)
    lines = w.pegboard("token", "list", *file).exits(0).stdout.splitlines()
    check([line.split() for line in lines] == [
        ["NAME", "OPERATOR", "HASH"], ["bob", listed[0]["sha256"][:12]],
        ["ci", listed[1]["sha256"][:12]], ["ci", listed[2]["sha256"][:12]],
        ["ops", "yes", listed[3]["sha256"][:12]]], lines)
    w.pegboard("token", "revoke", *file, "nobody").exits(1).complains("no token of 'nobody'")
    w.pegboard("token", "revoke", *file, "--hash", listed[1]["sha256"][:12], "ci").exits(0) \
        .prints("ci: 1 token revoked\n").complains("SIGHUP")
    w.pegboard("token", "revoke", *file, "bob").exits(0)
    left = json.loads(w.pegboard("token", "list", *file, "--json").exits(0).stdout)["tokens"]
    check([t["sha256"] for t in left] == [listed[2]["sha256"], listed[3]["sha256"]], left)
    for name in ("ci", "ops"):
        w.pegboard("token", "revoke", *file, name).exits(0)
    w.pegboard("token", "list", *file).exits(0).mentions("there are no tokens in the file")


@scenario
def an_operator_unregisters_what_another_registered_and_others_do_not(w):
    for name, more in (("ci", []), ("bob", []), ("ops", ["--admin"])):
        w.pegboard("token", "new", "--token-file", "tokens", "--out", name + ".token", *more,
                   name).exits(0)
    with gateway(w, "--token-file", "tokens") as serving:
        w.write("weather.yaml", MANIFEST)
        with running(w, "provide", "weather.yaml", "--registry", w.at, "--token", "ci.token",
                     stderr=subprocess.DEVNULL):
            until(w, lambda a: a["health"]["state"] == "healthy", "get", "weather", "--token",
                  "ci.token")
        for more in ((), ("--operator",)):
            ask(w, "unregister", *more, "--token", "bob.token", "weather").exits(1) \
                .complains("permission_denied")
        ask(w, "status", "--token", "ci.token").exits(1).complains("token new --admin")
        ask(w, "unregister", "--token", "ops.token", "weather").exits(1)
        ask(w, "unregister", "--operator", "--token", "ops.token", "weather").exits(0) \
            .prints("weather: unregistered\n")
        ask(w, "list", "--token", "ci.token").exits(0).mentions("there are no toolsets yet")
        ask(w, "unregister", "--operator", "--token", "ops.token", "weather").exits(1) \
            .complains("not_found")
        check(serving.end() == 0, "SIGTERM")


def files_of_at_most(n_bytes):
    """For a child: to write more fails, as on a disk that is full."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    return limit


@scenario
def a_token_that_cannot_be_written_is_not_let_in_and_leaves_no_file(w):
    new = ("token", "new", "--token-file", "tokens", "--out", "ci.token", "ci")
    for n_bytes in (0, 20):  # nothing of it, a part of it
        w.pegboard(*new, preexec_fn=files_of_at_most(n_bytes)).exits(2).prints("") \
            .complains("'ci.token' cannot be written", "E_FILE")
        check(os.listdir(w.directory) == [], os.listdir(w.directory))
    # Room for the token, and not for its hash.
    w.pegboard(*new, preexec_fn=files_of_at_most(60)).exits(2).prints("") \
        .complains("'tokens' cannot be written", "E_TOKEN_FILE")
    check(os.listdir(w.directory) == ["tokens"], os.listdir(w.directory))
    check(os.stat(w.path("tokens")).st_size == 0, "a token that nobody has was added")
    w.pegboard(*new).exits(0)


@scenario
def a_token_that_cannot_be_printed_is_not_let_in(w):
    new = ("token", "new", "--token-file", "tokens")
    w.pegboard(*new, "ci").exits(0)
    with open(w.path("tokens"), encoding="utf-8") as file:
        hashes = file.read()
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = w.pegboard(*new, "bob", stdout=full).exits(2).complains(
            "the token of 'bob' could not be shown, and is not valid", "No space left on device")
    check("only time" not in ran.stderr, ran)
    # What is wrong with the file is found before anything is printed.
    w.pegboard(*new, "two words").exits(2).prints("").complains("E_TOKEN_NAME")
    w.pegboard("token", "new", "--token-file", "no/where", "bob").exits(2).prints("")
    with open(w.path("tokens"), encoding="utf-8") as file:
        check(file.read() == hashes, "a token that nobody has was added")


@scenario
def a_token_opens_a_gateway_and_sighup_reads_new_ones(w):
    first = w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    check(re.fullmatch(r"peg_[\w-]{43}\n", first.stdout), first)
    check(first.stdout.strip() not in open(w.path("tokens"), encoding="utf-8").read(), "its hash")
    check(stat.S_IMODE(os.stat(w.path("tokens")).st_mode) == 0o600, "for its owner alone")
    w.write("ci.token", first.stdout)
    with gateway(w, "--token-file", w.path("tokens")) as serving:
        ask(w, "list").exits(3).prints("").complains("unauthenticated")
        ask(w, "list", "--token", "ci.token").exits(0)
        ask(w, "list", env={"PEGBOARD_TOKEN": first.stdout.strip()}).exits(0)
        ask(w, "list", env={"PEGBOARD_TOKEN": "peg_" + "x" * 43}).exits(3)
        second = w.pegboard("token", "new", "--token-file", "tokens", "dev").exits(0).stdout.strip()
        ask(w, "list", env={"PEGBOARD_TOKEN": second}).exits(3)
        serving.send(signal.SIGHUP)
        end = time.monotonic() + DEADLINE_S
        while ask(w, "list", env={"PEGBOARD_TOKEN": second}).status != 0:
            check(time.monotonic() < end, "the new token is not known")
        check(serving.end() == 0, "SIGTERM")


@scenario
def closed_standard_streams_are_no_hindrance(w):
    """The log and what is printed do not go into sockets or files that got their numbers."""
    serving = subprocess.Popen(
        [w.executable, "serve", "--addr", "unix:s", "--data-dir", "data"], cwd=w.directory,
        preexec_fn=lambda: os.closerange(0, 3))
    try:
        w.at = "unix:" + w.path("s")
        until(w, lambda answer: answer == {"toolsets": []}, "list")
        for number in range(3):
            ran = ask(w, "list", "--json", preexec_fn=lambda: os.close(number))
            ran.exits(0 if number != 1 else 2)
        serving.send_signal(signal.SIGTERM)
        check(serving.wait(DEADLINE_S) == 0, "it ends well")
    finally:
        serving.kill()
        serving.wait()


@scenario
def a_toolset_belongs_to_its_registrant(w):
    tokens = {name: w.pegboard("token", "new", "--token-file", "tokens", name).exits(0).stdout.strip()
              for name in ("ours", "theirs")}
    w.write("weather.yaml", MANIFEST)
    with gateway(w, "--token-file", w.path("tokens")), \
            running(w, "provide", "weather.yaml", "--registry", w.at, stderr=subprocess.DEVNULL,
                    env={"PEGBOARD_TOKEN": tokens["ours"]}):
        theirs = {"PEGBOARD_TOKEN": tokens["theirs"]}
        end = time.monotonic() + DEADLINE_S
        while ask(w, "call", "weather", "say", env=theirs).status != 0:
            check(time.monotonic() < end, "it is not provided")
        toolset = json.loads(ask(w, "get", "weather", "--json", env=theirs).exits(0).stdout)
        check(toolset["owner"] == "token:ours", toolset)
        ask(w, "unregister", "weather", env=theirs).exits(1).complains("permission_denied")
        ask(w, "unregister", "weather", env={"PEGBOARD_TOKEN": tokens["ours"]}).exits(0)


@scenario
def a_token_needs_a_name_that_can_be_kept(w):
    w.pegboard("token", "new", "--token-file", "tokens", "two words").exits(2).prints("") \
        .complains("E_TOKEN_NAME")
    check(not os.path.exists(w.path("tokens")), "no file")


@scenario
def tls_is_spoken_with_a_certificate(w):
    with gateway(w, *make_certificate(w)):
        ask(w, "list", "--tls-ca", "cert.pem").exits(0)
        ask(w, "list", env={"PEGBOARD_TLS_CA": w.path("cert.pem")}).exits(0)
        ask(w, "list", "--tls").exits(3)


@scenario
def tokens_are_shown_over_tls(w):
    """As the example of pegboard-serve(1) and the unit of docs/operating.md have it."""
    w.pegboard("token", "new", "--token-file", "tokens", "--out", "ci.token", "ci").exits(0)
    with gateway(w, "--token-file", w.path("tokens"), *make_certificate(w)) as serving:
        ask(w, "list", "--tls-ca", "cert.pem", "--token", "ci.token").exits(0)
        ask(w, "list", "--tls-ca", "cert.pem").exits(3).complains("(unauthenticated)")
        ask(w, "list", "--token", "ci.token").exits(3)
        check(serving.end() == 0, "it ends well")


@scenario
def probes_and_metrics_are_read_over_tls_with_http2(w):
    """What curl and Prometheus choose when a server offers both."""
    token = w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0).stdout.strip()

    def read(path, *arguments):
        if not shutil.which("curl"):
            raise Skip("there is no curl")
        return subprocess.run(["curl", "-s", "--http2", "--cacert", w.path("cert.pem"), "-w",
                               "%{http_code} %{http_version}", *arguments, f"https://{w.at}{path}"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout

    with gateway(w, "--token-file", w.path("tokens"), *make_certificate(w)):
        check(read("/healthz") == "ok\n200 2", read("/healthz"))
        check(read("/metrics").endswith("\n401 2"), read("/metrics"))
        metrics = read("/metrics", "-H", "Authorization: Bearer " + token)
        check("\npegboard_toolsets 0\n" in metrics and metrics.endswith("\n200 2"), metrics)


# ---- completion -----------------------------------------------------------------------------


def patient_path(w):
    """Where completions find a `timeout` that waits longer than one second, which a slow machine may need."""
    folder = w.path("patient")
    os.makedirs(folder, exist_ok=True)
    w.write("patient/timeout", f'#!/bin/sh\nshift\nexec "{shutil.which("timeout")}" {DEADLINE_S} "$@"\n')
    os.chmod(w.path("patient/timeout"), 0o755)
    return folder + os.pathsep + os.environ["PATH"]


def complete(w, *words):
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pegboard; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(
        ["bash", "-c", script, "bash", os.path.join(COMPLETIONS, "pegboard.bash"), w.executable,
         *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
        cwd=w.directory, env={**os.environ, "PATH": patient_path(w), "PEGBOARD_REGISTRY": w.at})
    check(done.stderr == "", done.stderr)
    return done.stdout.split()


@scenario
def names_of_toolsets_and_tools_are_completed(w):
    with gateway(w), provided(w):
        check(complete(w, "call", "we") == ["weather"], "a toolset")
        check(complete(w, "call", "weather", "") == ["echo", "fail", "say", "wait"], "its tools")
        check(complete(w, "call", "--timeout", "3s", "weather", "f") == ["fail"], "behind options")
        check(complete(w, "get", "--json", "weather", "s") == ["say"], "a flag has no value")
        check(complete(w, "unregister", "") == ["weather"], "what may be unregistered")
        host, port = w.at.split(":")
        w.at = NOWHERE
        check(complete(w, "call", "--registry", host, ":", port, "w") == ["weather"], "an address")
        check(complete(w, "call", "w") == [], "nobody answers, and nothing is said")


def named(w):
    """Completions of other shells ask whoever is called pegboard."""
    return {"PATH": os.path.dirname(w.executable) + os.pathsep + patient_path(w),
            "PEGBOARD_REGISTRY": w.at}


@scenario
def names_of_toolsets_and_tools_are_completed_by_zsh(w):
    with gateway(w), provided(w):
        def complete(line):
            return zsh_completes(line, w.directory, named(w))

        check(complete("pegboard call we") == ["weather"], "a toolset")
        check(complete("pegboard call weather ") == ["echo", "fail", "say", "wait"], "its tools")
        check(complete("pegboard get --json weather s") == ["say"], "behind an option")
        at, w.at = w.at, NOWHERE
        check(complete(f"pegboard call --registry={at} w") == ["weather"], "an address")
        check(complete("pegboard call w") == [], "nobody answers, and nothing is said")


@scenario
def names_of_toolsets_are_completed_by_fish(w):
    with gateway(w), provided(w):
        check(fish_completes("pegboard call we", w.directory, named(w)) == ["weather"], "a toolset")


if __name__ == "__main__":
    main()
