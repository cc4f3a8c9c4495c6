#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several gateways on one Redis are one registry: what is registered, healthy, asked and answered at
one node is so at all of them, and any of them may die.

    test_cluster.py PEGBOARD
"""

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
import tasking  # noqa: E402
from asking import (CAN_FORM, REQUESTS, RESPONSES, Post, Session, Stream, answered, ask, finish,  # noqa: E402
                    input_required, reply)
from certificates import Certificates  # noqa: E402
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


# ---- over TLS -------------------------------------------------------------------------------

def test_nodes_meet_on_a_redis_that_asks_for_a_certificate_of_theirs():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        made = Certificates(folder).make_ca().sign_server().sign("node")
        stack.enter_context(Redis(
            "--tls-port", str(port), "--tls-cert-file", made.path("server.pem"), "--tls-key-file",
            made.path("server.key"), "--tls-ca-cert-file", made.path("ca.pem")))
        url = ("--redis", f"rediss://localhost:{port}/3", "--redis-ca", made.path("ca.pem"))
        refused = subprocess.run([PEGBOARD, "serve", "--addr", "127.0.0.1:0", *url], capture_output=True, text=True,
                                 check=False, timeout=WAIT_S)
        assert refused.returncode == 2 and "E_REDIS_CONNECT" in refused.stderr, refused
        url += ("--redis-cert", made.path("node.pem"), "--redis-key", made.path("node.key"))
        first, second = [stack.enter_context(Gateway(*url)) for _ in range(2)]
        provider = stack.enter_context(Provider(second, "sums"))
        await_health([first, second])
        with Caller(first) as caller:
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"1")
            assert outcome(future).result == b"1"


# ---- one registry ---------------------------------------------------------------------------

def test_what_is_registered_at_one_node_is_healthy_at_all():
    with cluster(3) as (_, nodes, callers), Provider(nodes[0], "sums"):
        await_health(nodes)
        names = [[item.name for item in caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets]
                 for caller in callers]
        assert names == [["sums"]] * 3, names


def test_a_provider_is_welcomed_when_its_node_knows_of_it():
    """Goal: its entry is on Redis, and read by every loop of its node, before it is welcomed."""
    with cluster(1) as (redis, nodes, callers), Caller(nodes[0]) as other:
        Provider(nodes[0], "sums").ready().cut()
        await_true(lambda: not is_healthy(callers[0], "sums"), "it has gone")
        assert redis.command("client", "pause", "400", "write") == "OK"
        with Provider(nodes[0], "sums", registers=False) as provider:
            provider.ready()
            futures = [caller.start_call("sums") for caller in (*callers, other)]
            for _ in futures:
                provider.answer(provider.next_call(), b"1")
            assert [outcome(future).result for future in futures] == [b"1", b"1"]


def test_a_provider_is_welcomed_also_if_redis_does_not_answer():
    with cluster(1) as (redis, nodes, callers):
        Provider(nodes[0], "sums").ready().cut()
        await_true(lambda: not is_healthy(callers[0], "sums"), "it has gone")
        assert redis.command("client", "pause", str(3 * WAIT_S * 1000), "write") == "OK"
        with Provider(nodes[0], "sums", registers=False) as provider:
            provider.ready()
            redis.command("client", "unpause")
            await_health(nodes)


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


# ---- questions of running calls -------------------------------------------------------------

def test_a_question_is_asked_and_answered_at_any_node():
    with cluster(3) as (_, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        stream = Stream(callers[1], idempotency_key="once")
        call = provider.next_call()
        ask(provider, call)
        assert stream.question().number == 1
        assert Stream(callers[2], idempotency_key="once").question().number == 1
        awaited = callers[0].ask("AwaitTool", v1("AwaitToolRequest", call_id=call.call_id, can_be_asked=True))
        assert awaited.question.number == 1
        reply(callers[2], call.call_id)
        answered(provider)
        for caller in callers:
            with fails_as("conflict"):
                reply(caller, call.call_id, responses={"another": 1})
        finish(provider, call, stream)


def test_the_retry_of_an_mcp_client_finds_its_call_at_any_node():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        first = Post(nodes[1], CAN_FORM)
        call = provider.next_call()
        ask(provider, call)
        state = input_required(first.answer())["requestState"]
        nodes[1].process.kill()
        second = Post(nodes[2], CAN_FORM, requestState=state, inputResponses=RESPONSES)
        assert answered(provider).number == 1
        provider.answer(call, b"5")
        assert second.answer()[1]["result"]["content"][0]["text"] == "5"


def waiters(node, call):
    with Caller(node) as caller:
        return caller.ask("DescribeCall", v1("DescribeCallRequest", call_id=call.call_id)).waiters


def test_the_retry_of_an_mcp_client_cancels_its_call_at_any_node():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        first = Post(nodes[1], CAN_FORM)
        call = provider.next_call()
        ask(provider, call)
        retry = {"requestState": input_required(first.answer())["requestState"], "inputResponses": RESPONSES}
        connection = tasking.begin(nodes[2], "tools/call", {"name": "add", "arguments": {"n": 1}, **retry}, CAN_FORM)
        assert answered(provider).number == 1
        await_true(lambda: waiters(nodes[2], call) > 0, "the retry waits for the call")
        connection.close()
        assert provider.cancels.get(timeout=WAIT_S).call_id == call.call_id


def test_a_task_of_an_mcp_client_lives_on_at_any_node():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        running, task = tasking.make_task(nodes[1], provider)
        assert tasking.get(nodes[2], task)["createdAt"] == task["createdAt"]
        nodes[1].process.kill()
        ask(provider, running)
        assert tasking.until(nodes[2], task, "input_required")["inputRequests"] == REQUESTS
        tasking.update(nodes[0], task, RESPONSES)
        assert answered(provider).number == 1
        assert tasking.get(nodes[2], task)["status"] == "working"
        provider.answer(running, b"5")
        for node in (nodes[2], nodes[0]):
            done = tasking.until(node, task, "completed")
            assert done["result"]["content"][0]["text"] == "5", done
        canceled, other = tasking.make_task(nodes[2], provider)
        tasking.cancel(nodes[0], other)
        assert provider.cancels.get(timeout=WAIT_S).call_id == canceled.call_id
        provider.fail(canceled, "E_CANCELED", "stopped")
        tasking.until(nodes[0], other, "cancelled")
    tasking.judge()


def test_a_coordinator_that_is_killed_between_question_and_answer_costs_neither():
    with cluster(2) as (_, nodes, callers), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        stream = Stream(callers[0], idempotency_key="once")
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        nodes[0].process.kill()
        again = Stream(callers[1], idempotency_key="once")
        assert again.question().number == 1
        reply(callers[1], call.call_id)
        answered(provider)
        finish(provider, call, again)


def test_a_provider_whose_node_is_killed_gets_its_answer_at_another():
    with cluster(2) as (_, nodes, callers):
        provider = Provider(nodes[0], "sums").ready()
        await_health(nodes)
        stream = Stream(callers[1])
        call = provider.next_call()
        ask(provider, call)
        stream.question()
        nodes[0].process.kill()
        reply(callers[1], call.call_id)
        with Provider(nodes[1], "sums", incarnation=provider.incarnation,
                      running=[provider.listed(call)]) as again:
            ask(again, call)
            assert answered(again).number == 1
            finish(again, call, stream)


# ---- Redis may, too -------------------------------------------------------------------------

def call_until_taken(caller, provider):
    """While nodes connect again calls are refused, and none is lost: each is answered or fails by name."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        future = caller.start_call("sums")
        while not future.done():  # a slow machine hands it over late, so it's waited for as long as it lives
            with contextlib.suppress(queue.Empty):
                provider.answer(provider.calls.get(timeout=0.1), b"3")
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


def epoch_at(caller):
    _, call = caller.method("ListToolsets").with_call(v1("ListToolsetsRequest"), timeout=WAIT_S)
    return dict(call.initial_metadata())["pegboard-epoch"]


def await_one_epoch(nodes):
    """At every loop of every node, as await_health()."""
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(node)) for node in nodes for _ in range(6)]
        await_true(lambda: len({epoch_at(caller) for caller in callers}) == 1, "all know of the loss")


def test_a_node_that_starts_on_a_flushed_redis_derives_the_same_ids_as_the_others():
    """Goal: it writes a secret of its own, as the others are halted; they take it over."""
    with cluster(2) as (redis, nodes, callers), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        for node in nodes:
            node.process.send_signal(signal.SIGSTOP)
        redis.command("flushall")
        with redis.node() as newcomer, Caller(newcomer) as late:
            for node in nodes:
                node.process.send_signal(signal.SIGCONT)
            await_health([*nodes, newcomer])
            await_one_epoch([*nodes, newcomer])
            futures = [caller.start_call("sums", idempotency_key="once") for caller in (*callers, late)]
            provider.answer(provider.next_call(), b"4")
            assert [outcome(future).result for future in futures] == [b"4"] * 3
            assert provider.has_no_call()


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


# ---- sessions of legacy MCP clients ------------------------------------------------------------

def test_a_session_is_known_and_its_answers_are_taken_at_any_node():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        session = Session(nodes[0])
        assert [session.ping(node) for node in nodes] == [200, 200, 200]
        said = session.call(nodes[1], 1)  # neither the owner's node nor the answer's
        call = provider.next_call()
        assert call.can_be_asked
        ask(provider, call)
        question = said.get(timeout=WAIT_S)
        assert question["method"] == "elicitation/create", question
        assert session.answer(nodes[2], question, RESPONSES["gate-1"]) == 202
        assert json.loads(answered(provider).responses) == RESPONSES
        provider.answer(call, b"5")
        assert said.get(timeout=WAIT_S)["result"]["content"][0]["text"] == "5"


def test_a_session_cancels_at_any_node():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        session, other = Session(nodes[0]), Session(nodes[0])
        said = session.call(nodes[1], 7)
        call = provider.next_call()
        assert [other.cancel(node, 7) for node in nodes] == [202, 202, 202]
        assert session.cancel(nodes[2], 7) == 202
        assert provider.cancels.get(timeout=WAIT_S).call_id == call.call_id
        assert said.get(timeout=WAIT_S) is None


def test_a_session_ends_at_any_node_and_with_its_owner():
    with cluster(3) as (_, nodes, _), Provider(nodes[0], "sums"):
        await_health(nodes)
        ended, lost, kept = Session(nodes[0]), Session(nodes[1]), Session(nodes[0])
        assert ended.status(nodes[2], "DELETE") == 204
        assert [ended.ping(node) for node in nodes] == [404, 404, 404]
        assert lost.ping(nodes[2]) == 200
        nodes[1].process.kill()
        nodes[1].process.wait(WAIT_S)
        await_true(lambda: lost.ping(nodes[2]) == 404, "the session of a node that was killed is gone")
        assert kept.ping(nodes[2]) == 200


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
