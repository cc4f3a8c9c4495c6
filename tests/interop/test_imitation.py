#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: our imitation of goa-ai's peers does on Redis what was captured of them, command for command: so that what a
gateway is tested with here is what it will meet. No gateway takes part.

    test_imitation.py
"""

import contextlib
import difflib
import re
import sys
import time

from interop import META, TOOLSET, Redis, await_true, echo, needs_redis

import tap
from commands import Monitor, read_capture, split_periodic
from goa.agent import Agent, Lost
from goa.messages import Failure, Result
from goa.provider import Provider
from goa.registry import Registry

VERSIONS = {"v0.46.0": 1, "v0.56.2": 2}
TOOL = ("echo.say", "echoes its text", ["t"],
        '{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}', '{"type":"object"}')
PAYLOAD = {"text": "xx.."}
# The captured calls took some milliseconds. One that takes half a second, on a busy machine, sweeps as a provider does.
OF_A_SLOW_AGENT = re.compile(r"^PING$|sink:agent:stalelease|^(XAUTOCLAIM|XINFO CONSUMERS) pulse:stream:result:")


class Peers:
    """A registry, a provider and an agent, each with connections of its own."""

    def __init__(self, redis, generation, handler=echo, **of_provider):
        self.redis, self.generation, self.handler, self.of_provider = redis, generation, handler, of_provider
        self.pools = {role: redis.pool() for role in ("registry", "provider", "agent")}
        self.registry = self.provider = None

    def role_of(self, name):
        return next((role for role, pool in self.pools.items() if name in pool.names), "test")

    def start(self):
        self.registry = Registry(self.pools["registry"], self.generation)

    def serve(self):
        self.registry.register(TOOLSET, "echoes its text", "1.0.0", ["bench"], [TOOL])
        self.provider = Provider(self.pools["provider"], TOOLSET, self.handler,
                                 lambda *_: self.registry.pong(TOOLSET), self.generation, **self.of_provider)
        self.provider.__enter__()

    def await_acks(self):
        def nothing_is_pending():
            group = self.redis.ask("XINFO", "GROUPS", f"pulse:stream:toolset:{TOOLSET}:requests")[0]
            fields = dict(zip(group[::2], group[1::2]))
            return not fields[b"pending"] and not fields[b"lag"]
        await_true(nothing_is_pending, "the provider has acknowledged all")

    def call(self, payload=None, meta=None, **more):
        agent = Agent(self.pools["agent"], self.call_when_answered, self.generation)
        return agent.execute(TOOLSET, "echo.say", payload or PAYLOAD, meta or META, **more)

    def call_when_answered(self, *arguments):
        """As in the captures, where the result was there before the agent asked for it."""
        asked = self.registry.call(*arguments)
        self.await_acks()
        return asked

    def stop(self):
        if self.provider:
            self.provider.stop()
        self.registry.stop()


def play(monitor, peers):
    """The scenes of the captures."""
    monitor.mark("registry starts")
    peers.start()
    monitor.mark("provider: Register, Serve")
    peers.serve()
    monitor.mark("call before first pong")
    peers.registry.pong("nobody")
    monitor.mark("idle until after the first ping")
    peers.registry.ping(TOOLSET)
    peers.await_acks()
    monitor.mark("agent: one call")
    peers.call(n_spins=0)
    monitor.mark("agent: second call")
    peers.call(n_spins=29)
    monitor.mark("discover")
    peers.registry.call(TOOLSET, "echo.say", PAYLOAD, {"run_id": "r", "session_id": "s"})
    peers.await_acks()
    peers.registry.pong("nobody")
    monitor.mark("unregister")
    peers.registry.unregister(TOOLSET)
    monitor.mark("provider stops")
    peers.provider.stop()
    monitor.mark("registry stops")
    peers.registry.stop()


def by_scenes(commands):
    scenes = {}
    for command in commands:
        scenes.setdefault(command.scene, []).append(command)
    return scenes


def compare(captured, ours):
    """Scene by scene the same commands in the same order; of what comes again and again nothing else."""
    captured, ours = by_scenes(captured), by_scenes(ours)
    seen, again = set(), set()
    for scene in captured:
        theirs_once, theirs_again = split_periodic(captured[scene])
        ours_once, ours_again = split_periodic(ours.get(scene, []))
        difference = list(difflib.unified_diff(theirs_once, ours_once, "captured", "imitated", lineterm=""))
        assert not difference, scene + "\n" + "\n".join(difference)
        seen |= theirs_again
        again |= ours_again
    strange = {text for text in again - seen if not OF_A_SLOW_AGENT.search(text)}
    assert not strange, strange


def check_role(role):
    for version, generation in VERSIONS.items():
        captured = read_capture(version)
        with Redis() as redis:
            peers = Peers(redis, generation)
            monitor = Monitor(redis.connect, peers.role_of)
            play(monitor, peers)
            ours = monitor.of(role)
            monitor.close()
        compare([command for command in captured if command.role == role], ours)


def test_the_provider_does_what_was_captured():
    check_role("provider")


def test_the_agent_does_what_was_captured():
    check_role("agent")


def test_the_registry_does_what_was_captured():
    check_role("registry")


@contextlib.contextmanager
def peers_that_serve(generation=1, handler=echo, **of_provider):
    with Redis() as redis:
        peers = Peers(redis, generation, handler, **of_provider)
        peers.start()
        peers.serve()
        yield redis, peers
        peers.stop()


def test_an_agent_that_drops_its_result_has_it_after_the_grace_of_its_sink():
    """The loss that a gateway is to remedy: nothing else in this world does."""
    with peers_that_serve() as (_, peers):
        began = time.monotonic()
        assert peers.call(drops_result=True, timeout_s=40).value == PAYLOAD
        assert 19 < time.monotonic() - began < 30, time.monotonic() - began


def test_an_agent_gives_up_when_its_time_is_over():
    with peers_that_serve() as (_, peers):
        try:
            peers.call(drops_result=True, timeout_s=0.3)
            raise AssertionError("it has a result")
        except Lost:
            pass


def test_output_errors_and_server_data_arrive():
    def talk(tool, payload, meta, say):
        del tool
        if payload["text"] == "fail":
            raise Failure("too_sad", "not <today>", [{"Field": "text", "Constraint": "enum"}])
        if payload["text"] == "crash":
            raise ValueError("boom")
        say("stdout", "one ")
        say("stdout", "two")
        return Result(meta["run_id"], [{"kind": "k", "audience": "internal", "data": {"a": 1}}])

    with peers_that_serve(handler=talk) as (_, peers):
        said = []
        answer = peers.call(on_delta=lambda stream, delta: said.append((stream, delta)))
        assert answer.value == "run-1" and answer.server_data[0]["data"] == {"a": 1}
        assert said == [("stdout", "one "), ("stdout", "two")]
        for text, code, message in (("fail", "too_sad", "not <today>"), ("crash", "execution_failed", "boom")):
            try:
                peers.call({"text": text})
                raise AssertionError("it did not fail")
            except Failure as failure:
                assert (failure.code, failure.message) == (code, message), failure


def test_a_provider_takes_over_what_a_dead_one_left_and_removes_it():
    with peers_that_serve(grace_s=1.0) as (redis, peers):
        key = f"pulse:stream:toolset:{TOOLSET}:requests"
        redis.ask("XGROUP", "CREATECONSUMER", key, "provider", "the-dead")
        peers.provider.sink.alive.set("the-dead", time.time_ns())
        peers.provider.stop()  # so that the dead one reads it
        tool_use_id, stream = peers.registry.call(TOOLSET, "echo.say", PAYLOAD, META)
        redis.ask("XREADGROUP", "GROUP", "provider", "the-dead", "STREAMS", key, ">")
        peers.provider = Provider(peers.pools["provider"], TOOLSET, echo, lambda *_: None, 1, grace_s=1.0)
        with peers.provider:
            await_true(lambda: redis.ask("XLEN", "pulse:stream:" + stream) == 2, "the call was run")
            await_true(lambda: b"the-dead" not in repr(redis.ask("XINFO", "CONSUMERS", key, "provider")).encode(),
                       "the dead one is gone")
        assert tool_use_id.encode() in redis.ask("XRANGE", "pulse:stream:" + stream, "-", "+")[1][1][3]


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
