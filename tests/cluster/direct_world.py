# SPDX-License-Identifier: Apache-2.0
"""Direct toolsets: nodes on one Redis, and a provider that reads its calls there and does as it is told."""

import contextlib
import json
import os
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

from test_cluster import Redis, is_healthy  # noqa: E402
from world import WAIT_S, Caller, Gateway, await_true, tool, v1  # noqa: E402

DIRECT = 2
FAST = ("--lease", "3s", "--ping-interval", "1s", "--missed-ping-threshold", "3")


class Stream:
    """A connection of RESP2, which waits for each answer."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            raw = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
        self.socket.sendall(b"".join(parts))
        return self.read()

    def read(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest.decode()


class DirectProvider:
    """Reads `toolset:<name>:requests` in the group `provider`, and answers pings at a node of its choice. Calls wait
    until the test takes them."""

    def __init__(self, redis, gateway, name="sums", consumer="me"):
        self.caller = Caller(gateway)
        self.name = name
        self.consumer = consumer
        self.key = f"pulse:stream:toolset:{name}:requests"
        self.redis = Stream(redis.socket)
        self.out = Stream(redis.socket)
        self.calls = []
        self.pings = []
        self.answers_pings = True
        self.is_over = False
        self.thread = threading.Thread(target=self.read, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(WAIT_S)
        self.redis.close()
        self.out.close()
        self.caller.close()

    def read(self):
        while not self.is_over:
            found = self.redis.ask("XREADGROUP", "GROUP", "provider", self.consumer, "COUNT", 10, "BLOCK", 50,
                                   "STREAMS", self.key, ">")
            if isinstance(found, str):  # its group is not there
                time.sleep(0.01)
                continue
            for entry, fields in (found[0][1] if found else ()):
                self.take(entry, dict(zip(fields[::2], fields[1::2])))

    def take(self, entry, fields):
        message = json.loads(fields["p"])
        assert message["type"] == fields["n"], fields
        if fields["n"] == "call":
            self.calls.append((entry, message))
            return
        self.pings.append(message["ping_id"])
        if self.answers_pings:
            self.caller.ask("Pong", v1("PongRequest", ping_id=message["ping_id"], toolset=self.name))
        self.redis.ask("XACK", self.key, "provider", entry)

    def next_call(self):
        await_true(lambda: self.calls, "the provider gets a call")
        entry, message = self.calls.pop(0)
        message["entry"] = entry
        return message

    def publish(self, call, event="result", **members):
        text = json.dumps({"tool_use_id": call["tool_use_id"], **members})
        return self.out.ask("XADD", f"pulse:stream:result:{call['tool_use_id']}", "*", "n", event, "p", text)

    def emit(self, call, caller=None, result=b"", **members):
        (caller or self.caller).ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call["tool_use_id"],
                                                         result=result, **members))

    def acknowledge(self, call):
        assert self.out.ask("XACK", self.key, "provider", call["entry"]) == 1


@contextlib.contextmanager
def nodes(n, *options):
    """A Redis, n nodes, a caller of each."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        gateways = [stack.enter_context(Gateway("--redis", "unix://" + redis.socket, *FAST, *options))
                    for _ in range(n)]
        yield redis, gateways, [stack.enter_context(Caller(gateway)) for gateway in gateways]


def register(caller, name="sums", *tools, **fields):
    return caller.ask("Register", v1("RegisterRequest", name=name, tools=tools or [tool()], kind=DIRECT, **fields))


def await_healthy(callers, name="sums"):
    for caller in callers:
        await_true(lambda caller=caller: is_healthy(caller, name), "every node sees the toolset healthy")


@contextlib.contextmanager
def world(n, *tools, options=()):
    """The same with a toolset, registered at the first node, whose provider answers pings at the last."""
    with nodes(n, *options) as (redis, gateways, callers):
        register(callers[0], "sums", *tools)
        with DirectProvider(redis, gateways[-1]) as provider:
            await_healthy(callers)
            yield redis, gateways, callers, provider
