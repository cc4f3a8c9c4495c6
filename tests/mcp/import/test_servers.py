#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: MCP servers become toolsets of a gateway with `pegboard provide`, from a manifest or a command line: our own
scripted one, and the official ones as their authors publish them.

    test_servers.py PEGBOARD BUILD

The packages are installed below BUILD, once; without npm or a network what needs them is skipped.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "grpc", "interop")]

import peers  # noqa: E402
from gateways import MANIFEST, ask, gateway, running, until  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD = os.path.abspath(sys.argv[2])
INSTALL_S = 300
SCRIPTED = [sys.executable, os.path.join(HERE, "server.py")]


def install():
    """The folder of the packages' programs."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    place = os.path.join(BUILD, "mcp-servers")
    files = ["package.json", "package-lock.json"]
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retry-mintimeout=2000",
               "--fetch-retry-maxtimeout=10000"]
    os.makedirs(BUILD, exist_ok=True)
    with open(os.path.join(BUILD, "mcp-servers.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = peers.stamp_of(*(os.path.join(HERE, name) for name in files), also=" ".join(command))
        with peers.made_once(place, stamp) as is_new:
            if is_new:
                for name in files:
                    shutil.copy(os.path.join(HERE, name), place)
                try:
                    done = subprocess.run(command, cwd=place, check=False, text=True, timeout=INSTALL_S,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                except subprocess.TimeoutExpired:
                    raise Skip("npm did not end in time: is there a network?") from None
                if done.returncode:
                    raise Skip(f"npm could not install: {peers.one_line(done.stderr or done.stdout)}")
    return os.path.join(place, "node_modules", ".bin")


@contextlib.contextmanager
def provided(w, toolset, *arguments, env=None):
    with running(w, "provide", "--registry", w.at, *arguments, env=env, stderr=subprocess.DEVNULL) as providing:
        until(w, lambda a: a["health"]["state"] == "healthy", "get", toolset)
        yield providing


def manifest(w, toolset, command, **more):
    w.write(toolset + ".json", json.dumps({"toolset": toolset, "mcp": {"command": command, **more}}))
    return w.path(toolset + ".json")


def tools_of(w, toolset):
    return {tool["name"]: tool for tool in json.loads(ask(w, "get", toolset, "--json").exits(0).stdout)["tools"]}


def call(w, toolset, tool, args):
    return json.loads(ask(w, "call", toolset, tool, "--args", json.dumps(args)).exits(0).stdout)


# ---- our own --------------------------------------------------------------------------------


@scenario
def a_manifest_names_an_mcp_server(w):
    with gateway(w):
        path = manifest(w, "scripted", [*SCRIPTED, "modern"], tools={"include": ["e*", "sum", "fail"],
                                                                    "exclude": ["environment"]})
        with provided(w, "scripted", path) as providing:
            check(sorted(tools_of(w, "scripted")) == ["echo", "fail", "sum"], tools_of(w, "scripted"))
            check(call(w, "scripted", "sum", {"x": 1}) == {"sum": 2})
            ask(w, "call", "scripted", "echo", "--args", '{"x": "one"}').exits(1)
            failed = ask(w, "call", "scripted", "fail", "--args", "{}").exits(1)
            check("no luck today" in failed.stderr, failed.stderr)
            providing.process.send_signal(signal.SIGTERM)
            check(providing.process.wait(timeout=30) == 0)


@scenario
def a_command_line_is_an_mcp_server(w):
    with gateway(w):
        with provided(w, "scripted", "--mcp", "--", *SCRIPTED, "legacy"):
            check(call(w, "scripted", "echo", {"x": 3}) == '{"x": 3}')
        with provided(w, "other", "--mcp", "--toolset", "other", "--", *SCRIPTED, "modern"):
            check(call(w, "other", "sum", {"x": 3}) == {"sum": 4})


@scenario
def a_server_that_died_is_there_again(w):
    with gateway(w), provided(w, "scripted", "--mcp", "--", *SCRIPTED, "legacy"):
        lost = ask(w, "call", "scripted", "die", "--args", "{}").exits(1)
        check("It may have taken effect" in lost.stderr, lost.stderr)
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "scripted")
        for _ in range(200):
            ran = ask(w, "call", "scripted", "echo", "--args", "{}")
            if ran.status == 0:
                break
        check(ran.status == 0, ran.stderr)


@scenario
def a_server_that_cannot_start_is_named(w):
    ran = w.pegboard("provide", "--mcp", "--", "no-such-program")
    check(ran.status == 2 and "'no-such-program' cannot be started" in ran.stderr, ran.stderr)


# ---- over HTTP --------------------------------------------------------------------------------


@contextlib.contextmanager
def over_http(w, era, port=0):
    """A scripted server; yields the port that it has."""
    script = os.path.join(HERE, "http_server.py")
    with running(w, script, era, str(port), program=sys.executable) as serving:
        yield int(serving.line())


def is_away(answer):
    return answer["health"]["state"] != "healthy"


@scenario
def a_url_is_an_mcp_server(w):
    with gateway(w), over_http(w, "modern") as port:
        with provided(w, "over_http", "--mcp", f"http://127.0.0.1:{port}/mcp"):
            check(call(w, "over_http", "echo", {"x": 3}) == '{"x": 3}')
            ask(w, "call", "over_http", "echo", "--args", '{"x": "one"}').exits(1)


@scenario
def a_manifest_names_a_url_and_its_headers(w):
    w.write("team", "tools\n")
    with gateway(w), over_http(w, "legacy") as port:
        for header in ("tools", {"env": "TEAM"}, {"file": "team"}, {"env": "REST", "prefix": "to"}):
            w.write("far.json", json.dumps({"toolset": "far", "mcp": {
                "url": f"http://127.0.0.1:{port}/mcp", "headers": {"X-Team": header}, "tools": {"include": ["c*"]}}}))
            with provided(w, "far", w.path("far.json"), env={"TEAM": "tools", "REST": "ols"}):
                check("complaints" in tools_of(w, "far") and "echo" not in tools_of(w, "far"))
                check(call(w, "far", "complaints", {}) == "[]", call(w, "far", "complaints", {}))


@scenario
def manifests_of_urls_are_checked(w):
    for mcp, words in (({}, "'command' or 'url' is missing"),
                       ({"url": "http://a/", "command": ["b"]}, "keep one of them"),
                       ({"url": "http://a/", "env": ["B"]}, "it is for a 'command'"),
                       ({"command": ["b"], "headers": {"A": "b"}}, "they are for a 'url'"),
                       ({"url": "ftp://a/"}, "url"),
                       ({"url": "http://a/", "headers": {"A": {"prefix": "b"}}}, "name one of them"),
                       ({"url": "http://a/", "headers": {"A": "b\nc"}}, "one line"),
                       ({"url": "http://a/", "headers": {"A b": "c"}}, "A b")):
        w.write("bad.json", json.dumps({"toolset": "bad", "mcp": mcp}))
        ran = w.pegboard("provide", "--check", w.path("bad.json"))
        check(ran.status == 2 and words in ran.stderr, mcp, ran.stderr)
    for header, words in (({"env": "PEG_NOT_SET"}, "its variable is not set"), ({"file": "none"}, "cannot be opened")):
        w.write("bad.json", json.dumps({"toolset": "bad", "mcp": {"url": "http://127.0.0.1:1/", "headers": {"A": header}}}))
        ran = w.pegboard("provide", w.path("bad.json"))
        check(ran.status == 2 and words in ran.stderr, ran.stderr)
    ran = w.pegboard("provide", "--mcp", "http://127.0.0.1:1/", "more")
    check(ran.status == 2 and "unexpected argument 'more'" in ran.stderr, ran.stderr)


@scenario
def a_toolset_is_unhealthy_while_its_url_is_away(w):
    with gateway(w):
        with over_http(w, "legacy") as port:
            providing = contextlib.ExitStack()
            providing.enter_context(provided(w, "over_http", "--mcp", f"http://127.0.0.1:{port}/mcp"))
        with providing:
            until(w, is_away, "get", "over_http")
            with over_http(w, "modern", port):
                until(w, lambda answer: not is_away(answer), "get", "over_http")
                check(call(w, "over_http", "echo", {"x": 3}) == '{"x": 3}')


@scenario
def a_toolset_is_unhealthy_while_its_program_is_away(w):
    with gateway(w), provided(w, "scripted", "--mcp", "--", *SCRIPTED, "legacy", "die-once=" + w.path("died")):
        w.write("died.block", "")
        ask(w, "call", "scripted", "die", "--args", "{}").exits(1)
        until(w, is_away, "get", "scripted")
        os.remove(w.path("died.block"))
        until(w, lambda answer: not is_away(answer), "get", "scripted")
        check(call(w, "scripted", "echo", {"x": 3}) == '{"x": 3}')


@scenario
def the_toolset_of_a_gateway_is_an_mcp_server(w):
    w.write("near.yaml", MANIFEST)
    with gateway(w), provided(w, "weather", w.path("near.yaml")):
        with provided(w, "far", "--mcp", "--toolset", "far", f"http://{w.at}/mcp/weather"):
            check("Rome" in json.dumps(call(w, "far", "echo", {"city": "Rome"})))
            failed = ask(w, "call", "far", "fail", "--args", "{}").exits(1)
            check("out of rain" in failed.stderr, failed.stderr)


# ---- as their authors publish them -------------------------------------------------------------


@scenario
def the_server_everything_is_a_toolset(w):
    programs = install()
    with gateway(w):
        path = manifest(w, "everything", [os.path.join(programs, "mcp-server-everything"), "stdio"])
        with provided(w, "everything", path):
            tools = tools_of(w, "everything")
            check("echo" in tools and "get-sum" in tools, sorted(tools))
            check(call(w, "everything", "echo", {"message": "hello"}) == "Echo: hello")
            check("5" in call(w, "everything", "get-sum", {"a": 2, "b": 3}))
            media = call(w, "everything", "get-tiny-image", {})["media"]
            check(media[0]["kind"] == "image" and media[0]["base64"], media)
            ask(w, "call", "everything", "get-sum", "--args", '{"a": "two"}').exits(1)


@scenario
def the_server_everything_is_a_toolset_over_http(w):
    programs = install()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with gateway(w), running(w, "streamableHttp", program=os.path.join(programs, "mcp-server-everything"),
                             env={"PORT": str(port)}, stderr=subprocess.PIPE) as serving:
        while b"listening" not in serving.process.stderr.readline():
            check(serving.process.poll() is None)
        with provided(w, "everything", "--mcp", "--toolset", "everything", f"http://127.0.0.1:{port}/mcp"):
            check(call(w, "everything", "echo", {"message": "hello"}) == "Echo: hello")
            media = call(w, "everything", "get-tiny-image", {})["media"]
            check(media[0]["kind"] == "image" and media[0]["base64"], media)
            said = call(w, "everything", "trigger-long-running-operation", {"duration": 1, "steps": 2})
            check("completed" in said, said)


@scenario
def the_server_filesystem_is_a_toolset(w):
    programs = install()
    w.write("note.txt", "a note")
    with gateway(w), provided(w, "files", "--mcp", "--toolset", "files", "--",
                              os.path.join(programs, "mcp-server-filesystem"), w.directory):
        said = call(w, "files", "read_text_file", {"path": w.path("note.txt")})
        check("a note" in json.dumps(said), said)
        hidden = ask(w, "call", "files", "read_text_file", "--args", '{"path": "/etc/passwd"}').exits(1)
        check("denied" in hidden.stderr, hidden.stderr)


@scenario
def the_server_memory_is_a_toolset(w):
    programs = install()
    with gateway(w):
        path = manifest(w, "memory", [os.path.join(programs, "mcp-server-memory")],
                        env=["MEMORY_FILE_PATH=" + w.path("memory.jsonl")])
        with provided(w, "memory", path):
            entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
            call(w, "memory", "create_entities", {"entities": [entity]})
            graph = call(w, "memory", "read_graph", {})
            check("Ada" in json.dumps(graph), graph)


main()
