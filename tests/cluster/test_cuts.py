#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The connection of a node to Redis is cut behind the first, second, third... command of a call between two nodes: the
call ends with its result all the same, and its tool is started once.

    test_cuts.py PEGBOARD
"""

import contextlib
import os
import shutil
import socket
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from test_cluster import Redis, await_health  # noqa: E402
from world import WAIT_S, Caller, Gateway, Provider, await_true, outcome  # noqa: E402

# Commands of one node in a call are at most ten: registers, epochs, messages, waiters. Those beyond meet what nodes do
# anyway: renewals, the search for lost loops.
N_CUTS = 12


class Commands:
    """Where commands end in the bytes of a client."""

    def __init__(self):
        self.rest = b""

    def feed(self, data):
        """The whole commands that there are now."""
        self.rest += data
        found = []
        while (end := self.end_of_first()) is not None:
            found.append(self.rest[:end])
            self.rest = self.rest[end:]
        return found

    def line(self, at):
        end = self.rest.find(b"\r\n", at)
        return (int(self.rest[at + 1:end]), end + 2) if end >= 0 else None

    def end_of_first(self):
        if not (head := self.line(0)):
            return None
        n, at = head
        for _ in range(n):
            if not (argument := self.line(at)):
                return None
            at = argument[1] + argument[0] + 2
        return at if at <= len(self.rest) else None


class Proxy:
    """Stands between a node and Redis, command by command, and cuts behind the one that it is told."""

    def __init__(self, redis, name):
        self.redis = redis
        self.path = os.path.join(redis.folder, name)
        self.lock = threading.Lock()
        self.left = None  # commands until the cut; None: there is none
        self.cuts = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.redis.socket)
                threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self.return_replies, args=(server, client), daemon=True).start()

    def forward(self, client, server):
        commands = Commands()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                for command in commands.feed(data):
                    server.sendall(command)
                    if self.is_last():
                        self.end(client, server)
                        return
        self.end(client, server)

    @staticmethod
    def return_replies(server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        Proxy.end(client, server)

    @staticmethod
    def end(*ends):
        for one in ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def is_last(self):
        with self.lock:
            if self.left is None:
                return False
            self.left -= 1
            if self.left > 0:
                return False
            self.left = None
            self.cuts += 1
            return True

    def cut_behind(self, n):
        with self.lock:
            self.left = n

    def heal(self):
        """No cut any more, if it has not come."""
        with self.lock:
            self.left = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def node(self):
        return Gateway("--redis", "unix://" + self.path)


@contextlib.contextmanager
def cut_cluster():
    """Node A with the caller, node B with the provider, each behind a proxy."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        proxies = [stack.enter_context(Proxy(redis, name)) for name in ("a.sock", "b.sock")]
        nodes = [stack.enter_context(proxy.node()) for proxy in proxies]
        caller = stack.enter_context(Caller(nodes[0]))
        provider = stack.enter_context(Provider(nodes[1], "sums", credits=8))
        await_health(nodes)
        yield proxies, nodes, caller, provider


class Answers(threading.Thread):
    """Answers calls, and counts how often each was started."""

    def __init__(self, provider):
        super().__init__(daemon=True)
        self.provider, self.starts = provider, {}
        self.start()

    def run(self):
        while True:
            call = self.provider.calls.get()
            if call is None:
                return
            self.starts[call.payload] = self.starts.get(call.payload, 0) + 1
            self.provider.answer(call, call.payload)


def call_through_cut(proxy, caller, answers, number, **more):
    """Returns whether the connection was cut while it ran."""
    payload = b'{"n":%d}' % number
    before = proxy.cuts
    future = caller.start_call("sums", payload=payload, timeout=WAIT_S, **more)
    assert outcome(future).result == payload
    was_cut = proxy.cuts > before
    proxy.heal()
    assert answers.starts[payload] == 1, f"call {number} was started {answers.starts[payload]} times"
    return was_cut


def cut_everywhere(**more):
    with cut_cluster() as (proxies, _, caller, provider):
        answers = Answers(provider)
        number, n_cut = 0, 0
        for proxy in proxies:
            for n in range(1, N_CUTS + 1):
                number += 1
                await_true(lambda: is_connected(caller, answers), "both nodes are connected again")
                proxy.cut_behind(n)
                n_cut += call_through_cut(proxy, caller, answers, number,
                                          **{name: f"{value}-{number}" for name, value in more.items()})
        provider.calls.put(None)
        answers.join()
        return n_cut


def is_connected(caller, answers):
    """A call that needs both."""
    number = 10**6 + len(answers.starts)
    with contextlib.suppress(Exception):
        return caller.call("sums", payload=b'{"n":%d}' % number, timeout=5).result == b'{"n":%d}' % number
    return False


def test_a_call_with_an_identity_survives_a_cut_behind_any_command():
    assert cut_everywhere(idempotency_key="cut") >= 8, "too few cuts came while a call ran"


def test_a_call_without_an_identity_survives_a_cut_behind_any_command():
    assert cut_everywhere() >= 6, "too few cuts came while a call ran"


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
