#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: in every captured scene our gateway sends to Redis what goa-ai's registry sent: the same keys, fields and values,
or a difference that differences.py lists with its reason. The provider and the agent of the scene are imitated.

    test_replay.py PEGBOARD
"""

import collections
import contextlib
import re
import sys

from interop import (G1, META, TOOLSET, Failed, Redis, TESTS, agent_of, await_healthy, await_true, needs_redis,
                     serving)

import grpc
import os
import tap
from commands import Monitor, read_capture, split_periodic
from differences import DIFFERENCES
from world import Gateway, BRIEF, SILENT, fails_as

VERSIONS = {"v0.46.0": 1, "v0.56.2": 2}
OPTIONS = {1: (), 2: ("--goa-generation", "2")}
PAYLOAD = {"text": "xx.."}
THEIR_KEYS = re.compile(r"(^| )(pulse:stream:|map:|sink:|registry:)")
PAGE = os.path.join(os.path.dirname(TESTS), "docs", "goa.md")


class Replay:
    """One run of all scenes against a gateway."""

    def __init__(self, redis, generation):
        self.redis, self.generation = redis, generation
        self.pools, self.ids = [], []
        self.monitor = Monitor(redis.connect, self.role_of)
        self.gateway = Gateway("--redis", "redis://" + redis.address, *BRIEF, *SILENT, *OPTIONS[generation])
        self.service = self.provider = None

    def role_of(self, name):
        is_peer = name in self.redis.names or any(name in pool.names for pool in self.pools)
        return "peer" if is_peer else "gateway"

    def play(self):
        with contextlib.ExitStack() as stack:
            for scene, step in (("registry starts", self.start), ("provider: Register, Serve", self.serve),
                                ("call before first pong", self.pong_nobody),
                                ("idle until after the first ping", self.await_ping),
                                ("agent: one call", self.call), ("agent: second call", self.call),
                                ("discover", self.discover), ("unregister", self.unregister),
                                ("provider stops", self.stop_provider), ("registry stops", self.stop_gateway)):
                self.monitor.mark(scene)
                step(stack)
        return [command for command in self.monitor.of("gateway") if THEIR_KEYS.search(command.text())]

    def start(self, stack):
        stack.enter_context(self.gateway)
        self.service = stack.enter_context(G1(self.gateway.address, self.generation))

    def serve(self, stack):
        self.service.register()
        with fails_as("service_unavailable", grpc.StatusCode.UNAVAILABLE):
            self.service.call(TOOLSET, "echo.say", PAYLOAD, META)
        self.provider = stack.enter_context(contextlib.ExitStack())
        serve = self.provider.enter_context(serving(self.redis, self.service, generation=self.generation))
        self.pools.append(serve.pool)
        self.serving = serve

    def pong_nobody(self, _):
        self.service.pong("nobody", "x")

    def await_ping(self, _):
        seen = self.serving.n_pings
        await_true(lambda: self.serving.n_pings > seen + 1, "pings come at the interval")
        await_healthy(self.gateway.address)

    def call(self, _):
        agent = agent_of(self.redis, self.service, self.generation)
        self.pools.append(agent.pool)
        ask = agent.call

        def call_and_note(*arguments):
            tool_use_id, stream = ask(*arguments)
            self.ids.append(tool_use_id)
            return tool_use_id, stream
        agent.call = call_and_note
        assert agent.execute(TOOLSET, "echo.say", PAYLOAD, META, drops_result=len(self.ids) == 1).value == PAYLOAD

    def discover(self, _):
        assert [item.name for item in self.service.ask("ListToolsets").toolsets] == [TOOLSET]
        toolset = self.service.ask("GetToolset", name=TOOLSET)
        dates = toolset.registered_at if self.generation == 1 else toolset.stream_id
        assert re.match(r"\d{4}-\d\d-\d\dT", dates), toolset
        assert self.generation == 2 or toolset.stream_id == f"toolset:{TOOLSET}:requests"
        tool_use_id, stream = self.service.call(TOOLSET, "echo.say", PAYLOAD, {"run_id": "r", "session_id": "s"})
        self.ids.append(tool_use_id)
        await_true(lambda: self.redis.ask("XLEN", "pulse:stream:" + stream) >= 2, "its result is there")
        left_s = self.redis.ask("TTL", "pulse:stream:" + stream)
        assert 800 < left_s <= 960, left_s
        self.service.pong("nobody", "x")

    def unregister(self, _):
        self.service.ask("Unregister", name=TOOLSET)

    def stop_provider(self, _):
        self.provider.close()

    def stop_gateway(self, _):
        self.gateway.stop()


def by_scenes(commands, ids=()):
    scenes = collections.defaultdict(list)
    for command in commands:
        scenes[command.scene].append(command)
    return {scene: collections.Counter(split_periodic(of_scene, ids)[0]) for scene, of_scene in scenes.items()}


def explain(text, kind):
    """Whether a difference is listed for it."""
    for difference in DIFFERENCES:
        if difference.kind == kind and difference.pattern.search(text):
            difference.n_seen += 1
            return True
    return False


def change(text):
    for difference in DIFFERENCES:
        if difference.kind == "changed" and difference.pattern.search(text):
            difference.n_seen += 1
            text = difference.pattern.sub(difference.becomes, text)
    return text


def differences_between(captured, ours, ids):
    captured = by_scenes([command for command in captured if command.role == "registry"])
    ours = by_scenes(ours, ids)
    found = []
    for scene in captured.keys() | ours.keys():
        theirs = collections.Counter()
        for text, n in captured.get(scene, {}).items():
            theirs[change(text)] += n
        mine = ours.get(scene, collections.Counter())
        found += [f"{scene}: not sent: {text}" for text in theirs - mine if not explain(text, "not sent")]
        found += [f"{scene}: sent: {text}" for text in mine - theirs if not explain(text, "sent")]
    return found


def replay(version):
    captured = read_capture(version)
    with Redis() as redis:
        run = Replay(redis, VERSIONS[version])
        ours = run.play()
        run.monitor.close()
    found = differences_between(captured, ours, run.ids)
    assert not found, "\n" + "\n".join(sorted(found))


def test_every_scene_of_v0_46_0_is_replayed():
    replay("v0.46.0")


def test_every_scene_of_v0_56_2_is_replayed():
    replay("v0.56.2")


def test_each_listed_difference_is_seen_and_stands_in_the_page():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    rows = re.findall(r"^\| (not sent|sent|changed) \| (.*?) \| (.*?) \|$", page, re.M)
    assert rows == [(item.kind, item.what, item.why) for item in DIFFERENCES], "docs/goa.md has another list"
    read_capture("v0.46.0")  # without it nothing was replayed
    unseen = [item.what for item in DIFFERENCES if not item.n_seen]
    assert not unseen, unseen


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
