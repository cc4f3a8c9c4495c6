#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard mcp` serves manifests to a client that starts it: several files at once, read again when they
change or on SIGHUP; it ends as it should when it is stopped, or left, in the middle of a call; without a file it is
a bridge to a gateway; and what `pegboard mcp config` prints is a configuration that starts such a server."""

import contextlib
import errno
import json
import os
import queue
import re
import signal
import subprocess
import threading
import tomllib

from scenario import check, main, scenario

WAIT_S = 60

# Says that it has begun, and waits until somebody writes into the other pipe.
HOLD = "#!/bin/sh\necho > begun\nread x < go\necho held\n"


def manifest(toolset, *tools):
    text = f"toolset: {toolset}\ndescription: Tools of {toolset}\ntools:\n"
    for name in tools:
        command = "[./hold]" if name == "hold" else f"[echo, {name}]"
        text += f"  - name: {name}\n    description: Does it.\n    command: {command}\n    timeout: 60s\n"
    return text


class Server:
    """A server, and the client that started it: the messages that come, and what it says on standard error."""

    def __init__(self, w, *arguments, command=None):
        self.process = subprocess.Popen(
            command or [w.executable, "mcp", *arguments], cwd=w.directory, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.messages, self.lines = queue.Queue(), queue.Queue()
        self.n = 0
        for stream, to in ((self.process.stdout, self.messages), (self.process.stderr, self.lines)):
            threading.Thread(target=self.read, args=(stream, to), daemon=True).start()

    @staticmethod
    def read(stream, to):
        for line in stream:
            to.put(line)
        to.put(None)

    def sends(self, method, params=None, is_request=True):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if is_request:
            self.n += 1
            message["id"] = self.n
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self.n

    def awaits(self, is_it):
        """The next message that is it; None: there will be no more."""
        while True:
            line = self.messages.get(timeout=WAIT_S)
            if line is None or is_it(json.loads(line)):
                return line and json.loads(line)

    def answers(self, method, params=None):
        number = self.sends(method, params)
        return self.awaits(lambda message: message.get("id") == number)["result"]

    def begins(self):
        said = self.answers("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                           "clientInfo": {"name": "test", "version": "1"}})
        self.sends("notifications/initialized", is_request=False)
        return said

    def tools(self):
        return [tool["name"] for tool in self.answers("tools/list")["tools"]]

    def calls(self, name):
        return self.answers("tools/call", {"name": name, "arguments": {}})["content"][0]["text"]

    def awaits_change(self):
        check(self.awaits(lambda m: m.get("method") == "notifications/tools/list_changed"), "no notification came")

    def says(self, words):
        while True:
            line = self.lines.get(timeout=WAIT_S)
            check(line is not None, f"it ended without saying {words!r}")
            if words in line:
                return line

    def ends(self, status):
        found = self.process.wait(timeout=WAIT_S)
        check(found == status, f"expected exit status {status}, not {found}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def replace(w, name, content):
    """As an editor saves: another file takes its place."""
    w.write(name + ".tmp", content)
    os.rename(w.path(name + ".tmp"), w.path(name))


def make_hold(w):
    w.write("hold", HOLD)
    os.chmod(w.path("hold"), 0o755)
    for name in ("begun", "go"):
        os.mkfifo(w.path(name))


def await_begun(w):
    with open(w.path("begun"), encoding="ascii") as pipe:
        pipe.read()


@contextlib.contextmanager
def in_a_call(w, *options):
    """A server whose one call has begun and waits, and the number of that call."""
    make_hold(w)
    w.write("a.yaml", manifest("a", "hold"))
    with Server(w, *options, "a.yaml") as server:
        server.begins()
        number = server.sends("tools/call", {"name": "hold", "arguments": {}})
        await_begun(w)
        yield server, number


def let_it_end(w, server, number):
    with open(w.path("go"), "w", encoding="ascii") as pipe:
        pipe.write("\n")
    answer = server.awaits(lambda message: message.get("id") == number)
    check(answer["result"]["content"][0]["text"] == "held\n", answer)


def terminate_until_it_ends(server, every_s):
    """A signal that comes while the one before it is pending is merged with it, so one more may be needed."""
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(timeout=every_s)
    server.ends(0)


# ---- several files -------------------------------------------------------------------------


@scenario
def several_manifests_are_one_server(w):
    w.write("a.yaml", manifest("a", "one", "two"))
    w.write("b.yaml", manifest("b", "three"))
    with Server(w, "a.yaml", "b.yaml") as server:
        said = server.begins()
        check(said["serverInfo"]["name"] == "pegboard", said)
        check(said["instructions"] == "a: Tools of a\nb: Tools of b", said)
        check(server.tools() == ["one", "two", "three"], "the tools of both, in order")
        check(server.calls("three") == "three\n", "its command runs")


@scenario
def two_tools_of_one_name_are_refused_with_both_places(w):
    w.write("a.yaml", manifest("a", "one", "two"))
    w.write("b.yaml", manifest("b", "two"))
    w.pegboard("mcp", "a.yaml", "b.yaml").exits(2).complains(
        "b.yaml:4:11: the tool 'two' is also at a.yaml:8:11: rename one of them (E_MANIFEST)")


@scenario
def every_manifest_that_is_wrong_is_named(w):
    w.write("a.yaml", "toolset: a\n")
    w.write("b.yaml", manifest("b", "two"))
    w.pegboard("mcp", "a.yaml", "b.yaml", "none.yaml").exits(2).complains("a.yaml:1:1: ", "'none.yaml' cannot be read")


# ---- reading them again ----------------------------------------------------------------------


@scenario
def a_file_that_is_written_is_read_again(w):
    w.write("a.yaml", manifest("a", "one"))
    w.write("b.yaml", manifest("b", "other"))
    with Server(w, "a.yaml", "b.yaml") as server:
        server.begins()
        check(server.tools() == ["one", "other"], "before")
        w.write("a.yaml", manifest("a", "one", "two"))
        server.says("a.yaml was read again: 2 tools")
        server.awaits_change()
        check(server.tools() == ["one", "two", "other"], "after")


@scenario
def a_file_that_is_replaced_is_read_again(w):
    w.write("a.yaml", manifest("a", "one"))
    with Server(w, "a.yaml") as server:
        server.begins()
        replace(w, "a.yaml", manifest("a", "two"))
        server.awaits_change()
        check(server.tools() == ["two"], "after the first")
        replace(w, "a.yaml", manifest("a", "three"))
        server.awaits_change()
        check(server.tools() == ["three"], "after the second: the folder is watched, not the file")


@scenario
def a_file_behind_a_link_is_read_again(w):
    os.mkdir(w.path("real"))
    w.write("real/a.yaml", manifest("a", "one"))
    os.symlink("real/a.yaml", w.path("a.yaml"))
    with Server(w, "a.yaml") as server:
        server.begins()
        replace(w, "real/a.yaml", manifest("a", "two"))
        server.awaits_change()
        check(server.tools() == ["two"], "after")


@scenario
def a_file_that_cannot_be_used_changes_nothing(w):
    w.write("a.yaml", manifest("a", "one"))
    w.write("b.yaml", manifest("b", "other"))
    with Server(w, "a.yaml", "b.yaml") as server:
        server.begins()
        replace(w, "a.yaml", "toolset: a\nspools: []\n")
        server.says("a.yaml:2:1: ")
        check(server.tools() == ["one", "other"], "the last good one stays")
        replace(w, "a.yaml", manifest("a", "other"))
        server.says("the tool 'other' is also at")
        check(server.tools() == ["one", "other"], "and after a clash, too")
        replace(w, "a.yaml", manifest("a", "new"))
        server.says("a.yaml was read again: 1 tool")
        check(server.tools() == ["new", "other"], "until it can be used again")


@scenario
def sighup_reads_all_files_again(w):
    w.write("a.yaml", manifest("a", "one"))
    with Server(w, "--no-watch", "a.yaml") as server:
        server.begins()
        replace(w, "a.yaml", manifest("a", "two"))
        check(server.tools() == ["one"], "nobody looks")
        server.process.send_signal(signal.SIGHUP)
        server.awaits_change()
        check(server.tools() == ["two"], "after SIGHUP")
        server.process.stdin.close()
        server.ends(0)


# ---- in the middle of a call -----------------------------------------------------------------


@scenario
def sigterm_lets_a_call_finish(w):
    with in_a_call(w, "--drain-time", "60s") as (server, number):
        server.process.send_signal(signal.SIGTERM)
        let_it_end(w, server, number)
        server.ends(0)


@scenario
def sigterm_twice_ends_a_call_at_once(w):
    with in_a_call(w, "--drain-time", "10m") as (server, _):
        server.process.send_signal(signal.SIGTERM)
        terminate_until_it_ends(server, 0.1)


@scenario
def sigterm_after_the_end_of_input_ends_a_call_at_once(w):
    with in_a_call(w, "--drain-time", "10m") as (server, _):
        server.process.stdin.close()
        # One that comes before the end of input is read would only make it drain.
        terminate_until_it_ends(server, 0.5)


@scenario
def a_client_that_leaves_in_a_call_ends_the_command(w):
    with in_a_call(w, "--drain-time", "1ms") as (server, _):
        server.process.stdin.close()
        server.ends(0)
        # The command is gone, too: a pipe without a reader takes no writer that does not wait.
        try:
            os.close(os.open(w.path("go"), os.O_WRONLY | os.O_NONBLOCK))
            check(False, "the command still reads")
        except OSError as error:
            check(error.errno == errno.ENXIO, error)


@scenario
def a_call_goes_on_with_its_command_when_the_file_changes(w):
    with in_a_call(w) as (server, number):
        replace(w, "a.yaml", manifest("a", "other"))
        server.says("a.yaml was read again")
        let_it_end(w, server, number)
        check(server.tools() == ["other"], "and the new list counts")


# ---- a gateway behind it ---------------------------------------------------------------------


class Started:
    """A command in the background, whose lines are read."""

    def __init__(self, w, *arguments):
        self.process = subprocess.Popen([w.executable, *arguments], cwd=w.directory, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = queue.Queue()
        threading.Thread(target=Server.read, args=(self.process.stdout, self.lines), daemon=True).start()

    def awaits(self, words):
        while words not in (line := self.lines.get(timeout=WAIT_S)):
            pass
        return line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def address(w):
    return f"unix:{w.path('s')}"


def serve(w):
    gateway = Started(w, "serve", "--addr", address(w), "--store", "memory")
    gateway.awaits("the gateway listens")
    return gateway


def provide(w, *files):
    provider = Started(w, "provide", "--registry", address(w), *files)
    for _ in files:
        provider.awaits("event=attached")
    return provider


@scenario
def the_tools_of_a_gateway_are_offered_under_names_of_their_own(w):
    w.write("a.yaml", manifest("a", "one", "two"))
    w.write("b.yaml", manifest("eu/b", "one"))
    with serve(w), provide(w, "a.yaml", "b.yaml"), Server(w, "--registry", address(w)) as server:
        check(server.begins()["serverInfo"]["name"] == "pegboard", "its name")
        names = server.tools()
        check(names[:2] == ["a__one", "a__two"] and len(names) == 3, names)
        check(re.fullmatch("eu_b__one_[0-9a-f]{16}", names[2]), names)
        for name, said in zip(names, ("one", "two", "one")):
            check(server.calls(name) == f"{said}\n", name)


@scenario
def one_toolset_of_a_gateway_keeps_its_names(w):
    w.write("a.yaml", manifest("a", "one", "two"))
    w.write("b.yaml", manifest("b", "one"))
    with serve(w), provide(w, "a.yaml", "b.yaml"):
        with Server(w, "--registry", address(w), "--toolset", "a") as server:
            check(server.begins()["serverInfo"]["name"] == "a", "its name")
            check(server.tools() == ["one", "two"], "its tools")
        with Server(w, "--registry", address(w), "--toolset", "b", "--toolset", "a") as server:
            server.begins()
            check(server.tools() == ["b__one", "a__one", "a__two"], "those of two")


@scenario
def a_bridge_follows_its_gateway(w):
    w.write("a.yaml", manifest("a", "one"))
    w.write("b.yaml", manifest("b", "other"))
    with serve(w), provide(w, "a.yaml"), Server(w, "--registry", address(w)) as server:
        server.begins()
        check(server.tools() == ["a__one"], "before")
        with provide(w, "b.yaml"):
            while server.tools() != ["a__one", "b__other"]:
                server.awaits_change()
            check(server.calls("b__other") == "other\n", "the new one")
            replace(w, "a.yaml", manifest("a", "two"))
            while server.tools() != ["a__two", "b__other"]:
                server.awaits_change()
        w.pegboard("unregister", "--registry", address(w), "b").exits(0)
        while server.tools() != ["a__two"]:
            server.awaits_change()


@scenario
def progress_and_cancellation_cross_a_bridge(w):
    make_hold(w)
    w.write("a.yaml", manifest("a", "hold").replace("[./hold]", "[./talk]"))
    w.write("talk", "#!/bin/sh\necho working >&2\n" + HOLD[HOLD.index("\n") + 1:])
    os.chmod(w.path("talk"), 0o755)
    with serve(w), provide(w, "a.yaml") as provider, Server(w, "--registry", address(w)) as server:
        server.begins()
        number = server.sends("tools/call", {"name": "a__hold", "arguments": {}, "_meta": {"progressToken": "p"}})
        await_begun(w)
        told = server.awaits(lambda m: m.get("method") == "notifications/progress")
        check("working" in told["params"]["message"], told)
        server.sends("notifications/cancelled", {"requestId": number}, is_request=False)
        check("code=" in (line := provider.awaits("event=end")), line)


@scenario
def without_its_gateway_a_bridge_says_so(w):
    w.pegboard("mcp", "--registry", address(w)).exits(3).complains("(service_unavailable)")
    w.write("a.yaml", manifest("a", "one"))
    with serve(w) as gateway, provide(w, "a.yaml"), Server(w, "--registry", address(w)) as server:
        server.begins()
        gateway.process.kill()
        gateway.process.wait()
        answer = server.answers("tools/call", {"name": "a__one", "arguments": {}})
        check(answer["isError"] and server.tools() == ["a__one"], answer)
        server.process.send_signal(signal.SIGTERM)
        server.ends(0)


@scenario
def a_toolset_and_a_file_do_not_go_together(w):
    w.pegboard("mcp", "--toolset", "a", "a.yaml").exits(2).complains("--toolset is about a gateway")
    w.pegboard("mcp", "a.yaml", "--registry", "127.0.0.1:1").exits(2).complains("--registry is about a gateway")


# ---- configurations ----------------------------------------------------------------------------

SERVERS = {"claude-code": "mcpServers", "claude-desktop": "mcpServers", "codex": "mcp_servers",
           "cursor": "mcpServers", "vscode": "servers", "windsurf": "mcpServers", "zed": "context_servers"}


def read_config(client, text):
    config = tomllib.loads(text) if client == "codex" else json.loads(text)
    check(list(config) == [SERVERS[client]], config)
    return config[SERVERS[client]]


@scenario
def a_configuration_starts_a_server(w):
    os.mkdir(w.path("my tools"))
    w.write("my tools/a.yaml", manifest("team/a.b", "one"))
    for client in SERVERS:
        ran = w.pegboard("mcp", "config", client, "my tools/a.yaml").exits(0).complains("pegboard: for ")
        entry = read_config(client, ran.stdout)["team_a_b"]
        check(entry["args"] == ["mcp", os.path.realpath(w.path("my tools/a.yaml"))], entry)
        check(entry.get("type", "stdio") == "stdio", entry)
        with Server(w, command=[entry["command"], *entry["args"]]) as server:
            check(server.begins()["serverInfo"]["name"] == "team/a.b", client)
            check(server.tools() == ["one"], client)


@scenario
def a_configuration_has_a_url_where_a_client_takes_one(w):
    url = "http://127.0.0.1:9090/mcp"
    members = {"claude-code": {"type": "http", "url": url}, "codex": {"url": url}, "cursor": {"url": url},
               "vscode": {"type": "http", "url": url}, "windsurf": {"serverUrl": url}, "zed": {"url": url}}
    for client, entry in members.items():
        ran = w.pegboard("mcp", "config", client, "--url", url).exits(0)
        check(read_config(client, ran.stdout) == {"pegboard": entry}, ran)
    w.pegboard("mcp", "config", "claude-desktop", "--url", url).exits(2).complains("and no URL")


@scenario
def a_configuration_starts_a_bridge(w):
    w.write("a.yaml", manifest("a", "one"))
    ran = w.pegboard("mcp", "config", "claude-desktop", "--registry", address(w)).exits(0)
    entry = read_config("claude-desktop", ran.stdout)["pegboard"]
    with serve(w), provide(w, "a.yaml"), Server(w, command=[entry["command"], *entry["args"]]) as server:
        server.begins()
        check(server.tools() == ["a__one"], entry)


@scenario
def what_is_wrong_with_a_configuration_is_named(w):
    w.write("a.yaml", manifest("a", "one"))
    w.pegboard("mcp", "config", "cursr", "a.yaml").exits(2).complains(
        "there is no client 'cursr'", "did you mean 'cursor'?",
        "claude-code, claude-desktop, codex, cursor, vscode, windsurf, zed")
    w.pegboard("mcp", "config", "cursor").exits(2).complains("one of these is needed: manifests, --url or --registry")
    w.pegboard("mcp", "config", "cursor", "a.yaml", "--url", "http://x/mcp").exits(2).complains("one of these is needed")
    w.pegboard("mcp", "config", "cursor", "none.yaml").exits(2).complains("'none.yaml' cannot be read")
    w.pegboard("mcp", "config").exits(2).complains("a client is needed")


main()
