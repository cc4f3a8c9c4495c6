#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of MCP, and servers of MCP behind a gateway, who mean harm or do not know what they do.

    test_hostile_mcp.py PEGBOARD

As in test_hostile.py: what is refused is told why, the gateway's memory stays within what the test says, and no call of a
neighbour fails meanwhile.
"""

import contextlib
import http.client
import json
import os
import signal
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, TESTS, os.path.join(os.path.dirname(HERE), "promises")]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from battle import IS_SANITIZED, Raw, battle, frame, literal, memory_mb, tell_ratios  # noqa: E402
from world import (Caller, Gateway, PEGBOARD, Provider, WAIT_S, await_true, make_token, token_file, tool,  # noqa: E402
                   toolset, usual, v1)

META = "io.modelcontextprotocol/"
MODERN = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {},
          META + "clientInfo": {"name": "hostile", "version": "1"}}
PER_CONNECTION = 1000  # streams, which is what a connection may have
SERVER = os.path.join(TESTS, "mcp", "import", "server.py")
OK = 0x88  # HPACK's first byte of a block that begins with the status 200


# ---- clients ----------------------------------------------------------------------------


def message(method, params, is_modern=True):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | ({"_meta": MODERN} if is_modern else {})}


class Client(Raw):
    """Many streams of HTTP/2 on one connection, whose answers are read only if a test asks for it."""

    def __init__(self, gateway, window=65535, token=None):
        super().__init__(gateway, window, token)
        self.at = f"127.0.0.1:{gateway.port}"
        self.read = b""
        if window:  # the connection's own is small until it is told otherwise
            self.socket.sendall(frame(8, 0, 0, struct.pack(">I", 1 << 30)))

    def fields(self, verb, path, more):
        fields = {":method": verb, ":scheme": "http", ":path": path, ":authority": self.at,
                  "accept": "application/json, text/event-stream"} | more
        if self.token:
            fields["authorization"] = "Bearer " + self.token
        return b"".join(literal(name, value) for name, value in fields.items())

    def get(self, path="/mcp"):
        self.stream += 2
        return frame(1, 5, self.stream, self.fields("GET", path, {}))

    def post(self, method, params, path="/mcp"):
        self.stream += 2
        more = {"content-type": "application/json", "mcp-protocol-version": "2026-07-28", "mcp-method": method}
        more |= {"mcp-name": params["name"]} if "name" in params else {}
        return frame(1, 4, self.stream, self.fields("POST", path, more)) + \
            frame(0, 1, self.stream, json.dumps(message(method, params)).encode())

    def frames(self):
        """As they come: kind, stream, body."""
        while True:
            while len(self.read) < 9 or len(self.read) < 9 + int.from_bytes(self.read[:3], "big"):
                piece = self.socket.recv(1 << 20)
                if not piece:
                    raise EOFError("the gateway has closed the connection")
                self.read += piece
            end = 9 + int.from_bytes(self.read[:3], "big")
            head, body, self.read = self.read[:9], self.read[9:end], self.read[end:]
            yield head[3], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, body

    def initialize(self):
        """Of a legacy client that can be asked, which gets a session for it."""
        self.stream += 2
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                  "clientInfo": {"name": "hostile", "version": "1"}}
        return frame(1, 4, self.stream, self.fields("POST", "/mcp", {"content-type": "application/json"})) + \
            frame(0, 1, self.stream, json.dumps(message("initialize", params, False)).encode())

    def open_streams(self, n):
        """Streams that wait for changes, of both eras in turn."""
        listen = {"notifications": {"toolsListChanged": True}}
        return self.take([self.post("subscriptions/listen", listen) if i % 2 else self.get() for i in range(n)])

    def open_sessions(self, n):
        return self.take([self.initialize() for _ in range(n)])

    def take(self, requests):
        """How many of these were taken, and what the others were told."""
        self.socket.sendall(b"".join(requests))
        heads, said, n = {}, {}, len(requests)
        for kind, stream, body in self.frames():
            if kind == 1 and stream not in heads:
                heads[stream] = body[0] == OK
            elif kind == 0 and not heads.get(stream, True):  # of an earlier one its body may still come
                said[stream] = said.get(stream, b"") + body
            if len(heads) == n and len(said) == sum(not is_taken for is_taken in heads.values()):
                return sum(heads.values()), {text.decode().strip() for text in said.values()}
        return 0, set()

    def ask_for_lists(self, n):
        """Waits until each answer has begun; of a window of 0 bytes no more than that can come."""
        self.socket.sendall(b"".join(self.post("tools/list", {}) for _ in range(n)))
        for kind, _, _ in self.frames():
            n -= kind == 1
            if n == 0:
                return

    def hear_change(self, n):
        """Waits until so many streams were told of a change."""
        told = set()
        for kind, stream, body in self.frames():
            if kind == 0 and b"notifications/tools/list_changed" in body:
                told.add(stream)
            if len(told) >= n:
                return


def call(gateway, toolset_name, name, arguments=None, token=None, timeout=WAIT_S):
    """A call of a tool by a modern client: the result, or the error."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout)
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
               "Mcp-Name": name}
    if token:
        headers["Authorization"] = "Bearer " + token
    connection.request("POST", "/mcp/" + toolset_name,
                       json.dumps(message("tools/call", {"name": name, "arguments": arguments or {}})), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    said = json.loads(text) if answer.headers.get_content_type() == "application/json" else {"error": {"message": text}}
    return said.get("result") or said["error"]


def list_all(gateway, path):
    names, cursor = [], None
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=WAIT_S)
        connection.request("POST", path, json.dumps(message("tools/list", {"cursor": cursor} if cursor else {}, False)),
                           {"Content-Type": "application/json"})
        page = json.loads(connection.getresponse().read())["result"]
        connection.close()
        names += [one["name"] for one in page["tools"]]
        cursor = page.get("nextCursor")
        if not cursor:
            return names


# ---- idle streams -----------------------------------------------------------------------


def open_many(stack, gateway, n, token=None):
    taken, reasons = 0, set()
    for _ in range(0, n, PER_CONNECTION):
        client = stack.enter_context(Client(gateway, token=token))
        some, told = client.open_streams(PER_CONNECTION)
        taken, reasons = taken + some, reasons | told
    return taken, reasons


def test_ten_thousand_idle_streams_are_taken_and_no_more():
    with battle("idle streams", "--threads", "1", extra_mb=128) as gateway, contextlib.ExitStack() as stack:
        taken, reasons = open_many(stack, gateway, 11000)
        assert taken == 10000, taken
        assert reasons == {"too many streams are open on this node: close some, or ask another one"}, reasons
        with Caller(gateway) as caller:  # each of them is told, and the neighbour's calls go on
            caller.ask("Register", toolset("one-more"))
        stack.pop_all().close()

        def has_room():
            with Client(gateway) as client:
                return client.open_streams(2)[0] == 2

        await_true(has_room, "closed streams leave their room to others")


def test_idle_streams_of_one_principal_leave_room_to_others():
    gateway = Gateway("--threads", "1")
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    gateway.arguments += ("--token-file", token_file(gateway))
    with gateway, battle("idle streams of one", extra_mb=128, gateway=gateway, token=ben), contextlib.ExitStack() as stack:
        taken, reasons = open_many(stack, gateway, 9000, anna)
        assert taken == 7500, taken
        assert reasons == {"this principal has its share of the streams that a node keeps open: close some"}, reasons
        with Client(gateway, token=ben) as client, Caller(gateway, ben) as caller:
            assert client.open_streams(500) == (500, set())
            caller.ask("Register", toolset("one-more"))
            client.hear_change(500)


def test_sessions_of_one_principal_leave_room_to_others():
    gateway = Gateway("--threads", "1")
    anna, ben = make_token(gateway, "anna"), make_token(gateway, "ben")
    gateway.arguments += ("--token-file", token_file(gateway))
    with gateway, battle("sessions of one", extra_mb=64, gateway=gateway, token=ben), Client(gateway, token=anna) as client, \
            Client(gateway, token=ben) as other:
        found = [client.open_sessions(500) for _ in range(16)]
        taken, reasons = sum(some for some, _ in found), set().union(*(told for _, told in found))
        assert taken == 7500, taken
        assert len(reasons) == 1 and "sessions" in reasons.pop(), reasons
        assert other.open_sessions(100) == (100, set())


# ---- clients that do not read -----------------------------------------------------------


def test_lists_that_nobody_reads_are_bounded():
    tools = [tool(f"tool{i}") for i in range(10000)]
    with battle("lists unread", "--store", "memory", extra_mb=512) as gateway, Caller(gateway) as caller:
        caller.ask("Register", toolset("many", *tools))
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                client = stack.enter_context(Client(gateway, window=0))
                with contextlib.suppress(OSError, EOFError):  # one that holds most is cut
                    client.ask_for_lists(PER_CONNECTION)
            assert len(list_all(gateway, "/mcp/many")) == 10000


def test_output_that_nobody_reads_is_dropped_and_the_call_ends():
    n_calls, n_deltas = 10, 100
    with battle("output unread", extra_mb=24) as gateway, Provider(gateway, "loud", credits=n_calls) as provider, \
            Client(gateway, window=0) as client:
        params = {"name": "add", "arguments": {"n": 1}}
        for _ in range(n_calls):
            text = client.post("tools/call", params, "/mcp/loud")
            text = text.replace(b'"_meta": {', b'"_meta": {"progressToken": 1, "' + META.encode() + b'logLevel": "debug", ')
            head_len = 9 + int.from_bytes(text[:3], "big")
            client.socket.sendall(text[:head_len] + frame(0, 1, client.stream, text[head_len + 9:]))
        calls = [provider.next_call() for _ in range(n_calls)]
        for one in calls:
            for _ in range(n_deltas):
                provider.say(delta=v1("Delta", call_id=one.call_id, attempt=one.attempt, stream="stdout", delta="x" * 40000))
        for one in calls:
            provider.answer(one)
        for _ in calls:
            provider.acks.get(timeout=WAIT_S)


# ---- servers behind the gateway ---------------------------------------------------------


@contextlib.contextmanager
def provided(gateway, name, *words):
    """`pegboard provide --mcp` of a server on pipes; stopped by its pid."""
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        usual(PEGBOARD, "provide", "--mcp", "--toolset", name, "--registry", gateway.address, "--", sys.executable, SERVER,
              *words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=WAIT_S)


def text_of(result):
    return result.get("content", [{}])[0].get("text")


def echoes(gateway, name):
    """True once it does."""
    return lambda: text_of(call(gateway, name, "echo", {"x": 1})) == '{"x": 1}'


def test_a_server_that_dies_floods_or_hangs_costs_its_own_callers():
    with battle("bad servers", extra_mb=32) as gateway, provided(gateway, "far", "legacy") as process, \
            provided(gateway, "good", "modern"):
        for name in ("far", "good"):
            await_true(echoes(gateway, name), f"{name} answers")
        for name in ("die", "flood", "close"):
            failed = call(gateway, "far", name)
            assert failed.get("isError"), failed
            assert "MCP server" in text_of(failed), failed
            assert echoes(gateway, "good")()
            await_true(echoes(gateway, "far"), f"the server answers again after {name}")
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=WAIT_S)
        connection.request("POST", "/mcp/far", json.dumps(message("tools/call", {"name": "hang", "arguments": {}})), {
            "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
            "Mcp-Name": "hang"})
        assert echoes(gateway, "far")(), "a call that hangs holds others up"
        connection.close()
        assert process.poll() is None
        assert IS_SANITIZED or memory_mb(process.pid, "VmRSS") < 200


def test_a_server_with_ten_thousand_tools_is_taken_and_one_with_more_is_named():
    with battle("many tools", extra_mb=96) as gateway:
        with provided(gateway, "many", "modern", "tools=9970"):
            await_true(echoes(gateway, "many"), "it is there")
            assert len(list_all(gateway, "/mcp/many")) >= 9970
        with provided(gateway, "more", "modern", "tools=10001") as process:
            _, said = process.communicate(timeout=4 * WAIT_S)
            assert process.returncode and "10,000" in said.replace("10000", "10,000"), said


if __name__ == "__main__":
    code = tap.run(globals())
    tell_ratios()
    sys.stdout.flush()
    sys.exit(code)
