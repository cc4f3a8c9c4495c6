#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: agents of goa-ai, imitated, get from our gateway what they get from goa-ai's registry, and sooner: results of
direct and of attached toolsets, output, errors; refusals by the same names and codes, in the same order. What they
leave on Redis goes.

    test_agents.py PEGBOARD
"""

import concurrent.futures
import sys
import time

from interop import (G1, META, TOOLSET, agent_of, await_healthy, await_true, cluster, keys, needs_redis, serving, talk)

import grpc
import tap
from goa import messages
from goa.agent import Agent
from goa.messages import Failure
from world import SILENT, Provider as Attached, fails_as

PAYLOAD = {"text": "hello <world> & more"}


def test_output_errors_and_server_data_reach_an_agent():
    with cluster(1) as (redis, (node,)), G1(node.address) as service:
        service.register()
        with serving(redis, service, talk):
            await_healthy(node.address)
            agent, said = agent_of(redis, service), []
            answer = agent.execute(TOOLSET, "echo.say", PAYLOAD, META,
                                   on_delta=lambda stream, delta: said.append((stream, delta)))
            assert answer.value == {"run": "run-1"} and answer.server_data[0]["data"] == {"a": 1}
            assert said == [("stdout", "one "), ("stdout", "two")], said
            try:
                agent.execute(TOOLSET, "echo.say", {"text": "fail"}, META)
                raise AssertionError("it did not fail")
            except Failure as failure:
                assert (failure.code, failure.message) == ("too_sad", "not <today>"), failure


def test_an_agent_gets_the_result_of_an_attached_toolset_on_its_stream():
    with cluster(2) as (redis, (a, b)), G1(b.address) as service, Attached(a, "sums") as provider:
        await_healthy(b.address, "sums")
        agent = agent_of(redis, service)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for drops in (False, True):
                began = time.monotonic()
                waiting = pool.submit(agent.execute, "sums", "add", {"n": 1}, META, 20.0, drops_result=drops)
                provider.answer(provider.next_call(), b'{"sum":1}')
                assert waiting.result(20).value == {"sum": 1}
                assert time.monotonic() - began < 5, "not at once"
        await_true(lambda: not keys(redis, "pulse:stream:result:*"), "nothing is left of the streams")


def test_an_agent_that_drops_its_result_has_it_soon():
    """Without a remedy it takes the 20 s of the agent's grace."""
    with cluster(1) as (redis, (node,)), G1(node.address) as service:
        service.register()
        with serving(redis, service):
            await_healthy(node.address)
            agent = agent_of(redis, service)
            for _ in range(5):
                began = time.monotonic()
                answer = agent.execute(TOOLSET, "echo.say", PAYLOAD, META, drops_result=True)
                assert answer.value == PAYLOAD and time.monotonic() - began < 5, time.monotonic() - began
            await_true(lambda: not keys(redis, "pulse:stream:result:*"), "nothing is left of the streams")


def test_a_late_agent_that_drops_two_results_at_once_has_a_third():
    """A busy one, that opens its sink when the result is there for the second time."""
    with cluster(1) as (redis, (node,)), G1(node.address) as service, Attached(node, "sums") as attached:
        service.register()

        def call_and_dawdle(*asked):
            tool_use_id, stream = service.call(*asked)
            if asked[0] == "sums":
                attached.answer(attached.next_call(), b'"x"')
            await_true(lambda: redis.ask("XLEN", "pulse:stream:" + stream) >= 3, "its result is there twice")
            return tool_use_id, stream

        with serving(redis, service, lambda *_: "x"):
            await_healthy(node.address)
            agent = Agent(redis.pool(), call_and_dawdle)
            for toolset, tool, payload in ((TOOLSET, "echo.say", PAYLOAD), ("sums", "add", {"n": 1})):
                began = time.monotonic()
                assert agent.execute(toolset, tool, payload, META, drops_result=True).value == "x"
                assert time.monotonic() - began < 10, time.monotonic() - began
            await_true(lambda: not keys(redis, "pulse:stream:result:*"), "nothing is left of the streams")


def without_expiry(redis, pattern):
    return {key for key in keys(redis, pattern) if redis.ask("TTL", key) == -1}


def test_what_agents_leave_behind_goes():
    """A hash for each call of generation 2, a stream that a late result made anew, a sign of life for each call."""
    with cluster(2, *SILENT) as (redis, (a, b)), G1(a.address) as service, G1(b.address) as other:
        service.register()
        with serving(redis, service):
            await_healthy(b.address)
            agent = Agent(redis.pool(), lambda *asked: as_generation_2(other.call(*asked)), 2)
            for _ in range(10):
                assert agent.execute(TOOLSET, "echo.say", PAYLOAD, META).value == PAYLOAD
            messages.add(agent.pool, "result:late", "result", messages.result("late", 1))
            old = time.time_ns() - 60 * 10**9
            redis.ask("HSET", "map:sink:agent:keepalive:content", "01OLD", str(old))
            for pattern in ("map:stream:result:*", "pulse:stream:result:*"):
                await_true(lambda pattern=pattern: not without_expiry(redis, pattern), pattern + " has an expiry")
            await_true(lambda: not redis.ask("HEXISTS", "map:sink:agent:keepalive:content", "01OLD"), "the old one goes")
            assert redis.ask("HLEN", "map:sink:agent:keepalive:content") >= 10, "those of agents that may live stay"


def as_generation_2(asked):
    """It knows the stream by the id."""
    return asked[0], "result:" + asked[0]


def test_the_order_of_checks_and_the_codes_are_theirs():
    with cluster(1) as (redis, (node,)), G1(node.address) as service:
        service.register()
        bad, good = {"text": 7}, PAYLOAD
        for toolset, tool, payload, name, code in (
                ("nope", "echo.say", bad, "not_found", "NOT_FOUND"),
                (TOOLSET, "nope", bad, "not_found", "NOT_FOUND"),
                (TOOLSET, "echo.say", bad, "validation_error", "INVALID_ARGUMENT"),
                (TOOLSET, "echo.say", good, "service_unavailable", "UNAVAILABLE")):
            with fails_as(name, getattr(grpc.StatusCode, code)):
                service.call(toolset, tool, payload, META)
        with fails_as("missing_field", grpc.StatusCode.INVALID_ARGUMENT):
            service.ask("CallTool", toolset=TOOLSET, tool="echo.say", payload_json=b"{}")
        with fails_as("missing_field", grpc.StatusCode.INVALID_ARGUMENT):
            service.ask("Register", name="empty")
        with fails_as("invalid_length", grpc.StatusCode.INVALID_ARGUMENT):
            service.ask("CallTool", toolset=TOOLSET, tool="echo.say", payload_json=b"", meta=META)
        assert not keys(redis, "pulse:stream:result:*"), "what is refused leaves nothing"


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
