#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: callers, providers and commands that have the addresses of several nodes of one registry go on at another
one when theirs is killed or drains, and what runs meanwhile runs once.

    test_addresses.py PEGBOARD
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from ports import free_port  # noqa: E402
from test_cluster import Redis, await_health, cluster  # noqa: E402
from world import PEGBOARD, WAIT_S, Caller, Provider, await_true, outcome  # noqa: E402

# Each call is a line in a file, and ends when the test makes another one.
TOOLS = """
toolset: handy
tools:
  - name: note
    description: Notes that it runs
    input_schema: {{type: object}}
    command: [sh, -c, 'echo x >> {folder}/notes; until [ -e {folder}/go ]; do sleep 0.05; done; echo noted']
    timeout: 60s
"""


def run(*words, timeout=WAIT_S):
    return subprocess.run([PEGBOARD, *words], capture_output=True, text=True, timeout=timeout, check=False)


def begin(*words):
    return subprocess.Popen([PEGBOARD, *words], stdout=subprocess.PIPE,  # pylint: disable=consider-using-with
                            stderr=subprocess.PIPE, text=True)


def listed(*nodes):
    return ",".join(node.address for node in nodes)


class Tools:
    """`pegboard provide` of a manifest that notes each call; stopped, by its pid, at the end of the block."""

    def __init__(self, addresses):
        self.folder = tempfile.mkdtemp(prefix="addresses-")
        self.addresses = addresses
        self.process = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        with open(self.path("tools.yaml"), "w", encoding="utf-8") as file:
            file.write(TOOLS.format(folder=self.folder))
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [PEGBOARD, "provide", self.path("tools.yaml"), "--registry", self.addresses], stdout=log,
                stderr=log)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(WAIT_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _lines(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(self.path(name), encoding="utf-8") as file:
                return file.read().splitlines()
        return []

    def notes(self):
        return len(self._lines("notes"))

    def release(self):
        with open(self.path("go"), "w", encoding="utf-8"):
            pass

    def attached(self):
        """The addresses that it has attached to, in order."""
        return [line.split("gateway=")[1].split()[0] for line in self._lines("log") if "event=attached" in line]

    def home(self, nodes):
        """The node that it attached to last, then the others."""
        await_true(self.attached, "the provider is attached")
        here = [node for node in nodes if node.address == self.attached()[-1]]
        return here + [node for node in nodes if node not in here]


def test_commands_pass_over_an_address_at_which_no_node_listens():
    with cluster(1) as (_, nodes, _), Provider(nodes[0], "sums"):
        addresses = f"127.0.0.1:{free_port()},{nodes[0].address}"
        await_health(nodes)
        for words in (["list"], ["get", "sums"], ["search", "adds"], ["status"]):
            done = run(*words, "--registry", addresses)
            assert done.returncode == 0, (words, done.stderr)
        env = {**os.environ, "PEGBOARD_REGISTRY": addresses}
        done = subprocess.run([PEGBOARD, "list", "--names"], env=env, capture_output=True, text=True, check=False)
        assert done.stdout == "sums\n", done


def test_commands_go_on_when_the_preferred_node_is_killed():
    with cluster(2) as (_, nodes, _), Provider(nodes[1], "sums") as provider:
        await_health(nodes)
        for round_number in range(2):
            call = begin("call", "sums", "add", "n=1", "--registry", listed(*nodes))
            provider.answer(provider.next_call(), b"4")
            assert call.communicate(timeout=WAIT_S)[0].strip() == "4"
            if round_number == 0:
                nodes[0].process.kill()
                nodes[0].process.wait(WAIT_S)


def test_a_provider_whose_node_is_killed_finishes_its_call_at_another():
    with cluster(2) as (_, nodes, _), Tools(listed(*nodes)) as tools:
        here, there = tools.home(nodes)
        await_health(nodes, "handy")
        call = begin("call", "handy", "note", "--idempotency-key", "once", "--registry", listed(there, here))
        await_true(lambda: tools.notes() == 1, "the call runs")
        here.process.kill()
        await_true(lambda: len(tools.attached()) == 2, "the provider is attached again")
        assert tools.attached() == [here.address, there.address], tools.attached()
        tools.release()
        said, complaint = call.communicate(timeout=WAIT_S)
        assert "noted" in said, complaint
        assert tools.notes() == 1


def test_a_call_with_an_identity_whose_node_is_killed_ends_once():
    """The caller and the provider lose the same node: the one that coordinates the call and has the stream."""
    with cluster(2) as (_, nodes, _), Tools(listed(*nodes)) as tools:
        here, there = tools.home(nodes)
        await_health(nodes, "handy")
        call = begin("call", "handy", "note", "--idempotency-key", "once", "--json", "--registry", listed(here, there))
        await_true(lambda: tools.notes() == 1, "the call runs")
        here.process.kill()
        await_true(lambda: len(tools.attached()) == 2, "the provider is attached again")
        tools.release()
        said, complaint = call.communicate(timeout=2 * WAIT_S)
        assert json.loads(said)["outcome"] == "result", said + complaint
        again = run("call", "handy", "note", "--idempotency-key", "once", "--json", "--registry", there.address)
        assert json.loads(again.stdout)["outcome"] == "result", again
        assert tools.notes() == 1


def test_a_call_without_an_identity_whose_node_is_killed_has_an_unknown_outcome():
    with cluster(2) as (_, nodes, _), Tools(nodes[1].address) as tools:
        await_health(nodes, "handy")
        call = begin("call", "handy", "note", "--json", "--registry", listed(*nodes))
        await_true(lambda: tools.notes() == 1, "the call runs")
        nodes[0].process.kill()
        said, complaint = call.communicate(timeout=WAIT_S)
        assert json.loads(said)["outcome"] == "outcome_unknown", said + complaint
        assert call.returncode == 4
        tools.release()
        assert tools.notes() == 1


def test_a_watcher_goes_on_at_another_node():
    with cluster(2) as (_, nodes, _), Provider(nodes[1], "sums"):
        await_health(nodes)
        watcher = begin("watch", "--json", "--registry", listed(*nodes))
        try:
            while "sums" not in watcher.stdout.readline():
                pass
            nodes[0].process.kill()
            with Provider(nodes[1], "later"):
                while "later" not in watcher.stdout.readline():
                    assert watcher.poll() is None
        finally:
            watcher.kill()
            watcher.communicate()


def test_calls_and_providers_leave_a_node_that_drains():
    """It drains for as long as a call of its own runs; new ones go to the other node."""
    with cluster(2) as (_, nodes, callers), Tools(nodes[1].address) as tools, Provider(nodes[0], "sums") as provider:
        await_health(nodes)
        await_health(nodes, "handy")
        tools.release()
        last = callers[0].start_call("sums")
        call = provider.next_call()
        nodes[0].process.send_signal(signal.SIGTERM)
        await_true(lambda: '"draining":true' in run("status", "--json", "--registry", nodes[0].address).stdout
                   .replace(" ", ""), "the node drains")
        for words in ((), ("--idempotency-key", "once")):
            done = run("call", "handy", "note", *words, "--registry", listed(*nodes))
            assert "noted" in done.stdout, done
        refused = run("call", "handy", "note", "--registry", nodes[0].address)
        assert refused.returncode != 0 and "shutting down" in refused.stderr, refused
        provider.answer(call, b"1")
        assert outcome(last).result == b"1"
        assert nodes[0].process.wait(WAIT_S) == 0


def test_a_node_to_which_a_provider_came_with_its_calls_drains_as_soon_as_these_have_ended():
    """The provider answers them at the node that it left, so this one has to look for their ends."""
    with cluster(3) as (_, nodes, _), Tools(listed(*nodes)) as tools:
        await_health(nodes, "handy")
        left, asked, _ = tools.home(nodes)
        calls = [begin("call", "handy", "note", *words, "--registry", asked.address)
                 for words in ((), ("--idempotency-key", "once"))]
        await_true(lambda: tools.notes() == 2, "the calls run")
        left.process.send_signal(signal.SIGTERM)
        await_true(lambda: tools.attached()[-1] != left.address, "the provider has come elsewhere")
        tools.release()
        assert ["noted" in call.communicate(timeout=WAIT_S)[0] for call in calls] == [True, True]
        came = tools.home(nodes)[0]
        came.process.send_signal(signal.SIGTERM)
        assert came.process.wait(12) == 0  # without looking: after ten seconds at least, and mostly twenty
        assert left.process.wait(WAIT_S) == 0


def test_a_provider_waits_for_the_first_node_that_comes():
    with Redis() as redis, redis.node() as node, Caller(node) as caller:
        with Tools(f"127.0.0.1:{free_port()},127.0.0.1:{node.port},127.0.0.1:{free_port()}") as tools:
            await_health([node], "handy")
            tools.release()
            assert b"noted" in caller.call("handy", "note", b"{}").result


def test_a_bad_address_is_named_by_its_place():
    done = run("list", "--registry", "a:1,b:1,c:d")
    assert done.returncode == 2
    assert done.stderr.startswith("pegboard: --registry: the 3rd address: 'c:d' is not an address: "), done.stderr


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
