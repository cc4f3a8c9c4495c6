#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several gateways on one Redis are one registry: what is registered, healthy, asked and answered at
one node is so at all of them, and any of them may die.

    test_cluster.py PEGBOARD
"""

import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from ports import free_port  # noqa: E402
from world import (BRIEF, PEGBOARD, WAIT_S, Caller, Failed, Gateway, Provider, await_true, failure,  # noqa: E402
                   fails_as, outcome, v1)


class Redis:
    """A redis-server on a unix socket of its own; stopped, by its pid, at the end of the block."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="cluster-")
        self.socket = os.path.join(self.folder, "redis.sock")
        self.options = options
        self.process = None

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--dir", self.folder, "--logfile", os.path.join(self.folder, "log"), *self.options])
        await_true(lambda: self.command("ping") == "PONG", "Redis answers")
        return self

    def command(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def stop(self):
        self.process.kill()
        self.process.wait(WAIT_S)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def node(self):
        return Gateway("--redis", "unix://" + self.socket, *BRIEF)


@contextlib.contextmanager
def cluster(n, *options):
    """A Redis, n nodes, and a caller of each."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis(*options))
        nodes = [stack.enter_context(redis.node()) for _ in range(n)]
        callers = [stack.enter_context(Caller(node)) for node in nodes]
        yield redis, nodes, callers


def is_healthy(caller, name):
    try:
        return caller.health(name).state == 1
    except Failed:
        return False


def await_health(nodes, name="sums"):
    """At every loop of every node: connections that are open at once lie on all of them."""
    for node in nodes:
        with contextlib.ExitStack() as stack:
            for caller in [stack.enter_context(Caller(node)) for _ in range(6)]:
                await_true(lambda caller=caller: is_healthy(caller, name), "every node sees the toolset healthy")


# ---- one registry ---------------------------------------------------------------------------

def test_what_is_registered_at_one_node_is_healthy_at_all():
    with cluster(3) as (_, nodes, callers), Provider(nodes[0], "sums"):
        await_health(nodes)
        names = [[item.name for item in caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets]
                 for caller in callers]
        assert names == [["sums"]] * 3, names


def test_a_call_is_begun_at_one_node_and_run_at_another():
    with cluster(2) as (redis, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        for caller in callers:
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"42")
            assert outcome(future).result == b"42"
        await_true(lambda: "{" not in redis.command("keys", "*"), "nothing is kept of calls without an identity")


def test_an_identity_runs_once_whichever_node_is_asked():
    with cluster(2) as (_, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        first = callers[1].start_call("sums", idempotency_key="once")
        call = provider.next_call()
        second = callers[0].start_call("sums", idempotency_key="once")
        assert provider.has_no_call(1)
        provider.answer(call, b"7")
        assert outcome(first).result == outcome(second).result == b"7"
        again = [caller.call("sums", idempotency_key="once") for caller in callers]
        assert all(answer.result == b"7" and answer.attached for answer in again)
        assert provider.has_no_call()
        with fails_as("validation_error"):
            callers[0].call("sums", payload=b'{"n":2}', idempotency_key="once")


def test_a_toolset_without_a_provider_fails_at_once_at_every_node():
    with cluster(2) as (_, nodes, callers):
        with Provider(nodes[0], "sums") as provider:
            await_health(nodes)
            provider.leave()
        for caller in callers:
            await_true(lambda caller=caller: not is_healthy(caller, "sums"), "it is unhealthy")
            with fails_as("service_unavailable"):
                caller.call("sums")


def test_what_is_unregistered_at_one_node_is_gone_at_all():
    with cluster(2) as (_, nodes, callers), Provider(nodes[0], "sums"):
        await_health(nodes)
        callers[1].ask("Unregister", v1("UnregisterRequest", name="sums"))
        for caller in callers:
            with fails_as("not_found"):
                await_true(lambda caller=caller: caller.health("sums") is None, "never")


# ---- any of them may die --------------------------------------------------------------------

def test_a_provider_whose_node_was_killed_finishes_its_call_at_another():
    with cluster(2) as (_, nodes, callers):
        provider = Provider(nodes[0], "sums").ready()
        await_health(nodes)
        future = callers[1].start_call("sums", idempotency_key="once")
        call = provider.next_call()
        nodes[0].process.kill()
        assert provider.ended.wait(WAIT_S)
        with Provider(nodes[1], "sums", incarnation=provider.incarnation, number=2,
                      running=[provider.listed(call)]) as back:
            back.answer(call, b"9")
            assert outcome(future).result == b"9"


def test_the_providers_of_a_killed_node_are_unhealthy_when_its_lease_is_over():
    with cluster(2) as (_, nodes, callers), Provider(nodes[0], "sums"):
        await_health(nodes)
        nodes[0].process.kill()
        await_true(lambda: not is_healthy(callers[1], "sums"), "not after missed pings: after its lease", 15)
        with fails_as("service_unavailable"):
            callers[1].call("sums")


def test_a_call_whose_coordinator_was_killed_is_answered_at_another_node():
    with cluster(2) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        lost = callers[0].start_call("sums", idempotency_key="once")  # kept: gRPC cancels what nobody holds
        call = provider.next_call()
        nodes[0].process.kill()
        assert lost.exception(WAIT_S), "its connection is gone"
        again = callers[1].start_call("sums", idempotency_key="once")
        provider.answer(call, b"5")
        assert outcome(again).result == b"5"
        assert provider.has_no_call()


# ---- Redis may, too -------------------------------------------------------------------------

def call_until_taken(caller, provider):
    """While nodes connect again calls are refused, and none is lost: each is answered or fails by name."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        future = caller.start_call("sums")
        with contextlib.suppress(queue.Empty):
            provider.answer(provider.calls.get(timeout=3), b"3")
            return outcome(future).result
        error = failure(future)
        assert error.name in ("service_unavailable", "outcome_unknown", "timeout"), error.message
    raise AssertionError("no call was taken")


def test_a_redis_that_lost_everything_is_filled_again_by_its_nodes():
    with cluster(2) as (redis, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        redis.stop()
        redis.start()
        for key in ("toolsets", "providers"):
            await_true(lambda key=key: redis.command("hlen", "peg:registry:map:" + key) == "1", key + " are there again")
        assert call_until_taken(callers[1], provider) == b"3"


def test_a_redis_that_would_evict_keys_is_refused():
    with Redis("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as redis:
        try:
            redis.node().start().stop()
        except AssertionError as error:
            assert "noeviction" in str(error), error
            return
        raise AssertionError("it started")


# ---- the page -------------------------------------------------------------------------------

def test_the_quick_start_of_the_page_works_as_it_stands():
    with open(os.path.join(os.path.dirname(TESTS), "docs", "cluster.md"), encoding="utf-8") as file:
        block = re.search(r"^```text\n(.*?)^```$", file.read(), re.M | re.S)[1]
    lines = block.splitlines()
    assert len(lines) == 5 and all(line.endswith(" &") for line in lines[:4])
    for port in ("6379", "9091", "9092"):
        block = block.replace(port, str(free_port()))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.symlink(os.path.abspath(PEGBOARD), os.path.join(folder, "pegboard"))
        env = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
        for line in block.splitlines()[:4]:
            process = subprocess.Popen(["sh", "-c", "exec " + line[:-2]], cwd=os.path.dirname(TESTS), env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            time.sleep(1)  # as a person who types it
        call = block.splitlines()[4]
        await_true(lambda: "Bergen" in subprocess.run(
            ["sh", "-c", call], cwd=os.path.dirname(TESTS), env=env, capture_output=True, text=True,
            check=False).stdout, "the call is answered")


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
