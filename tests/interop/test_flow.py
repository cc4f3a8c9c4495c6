#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the brief's flow as it stands there, on three nodes. A provider registers at A, reads its calls from the stream
on Redis, answers pings with Pong and calls with EmitToolResult at B; a CallTool that waits at C returns the result. So
by pegboard.v1 and registry.Registry; by goa_ai_registry.Registry the agent reads the result from the stream. And what
else providers of goa-ai are promised.

The peers are those of goa-ai, imitated; test_imitation.py shows that the imitation is true.

    test_flow.py PEGBOARD
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

from interop import (G0, G1, META, TOOLSET, V1, Failed, agent_of, await_healthy, await_true, cluster, keys, needs_redis,
                     serving, talk)

import tap
from goa.messages import Failure
from world import PEGBOARD, SILENT, Provider as Attached, fails_as

PAYLOAD = {"text": "hello <world> & more"}
REQUESTS = f"toolset:{TOOLSET}:requests"


# ---- the brief's flow -----------------------------------------------------------------------

def check_flow(kind, generation):
    with cluster(3) as (redis, (a, b, c)), kind(a.address) as at_a, kind(b.address) as at_b, kind(c.address) as at_c:
        assert at_a.register() == REQUESTS
        with serving(redis, at_b, emit=at_b.emit, generation=generation) as provider:
            for node in (a, b, c):
                await_healthy(node.address)
            assert provider.n_pings >= 1
            for _ in range(20):
                assert at_c.call(TOOLSET, "echo.say", PAYLOAD) == PAYLOAD
        assert not provider.error, provider.error


def test_the_flow_of_the_brief_by_pegboard_v1():
    check_flow(V1, 1)


def test_the_flow_of_the_brief_by_registry_registry():
    check_flow(G0, 0)


def test_the_flow_of_the_brief_by_goa_ai_registry():
    with cluster(3) as (redis, (a, b, c)), G1(a.address) as at_a, G1(b.address) as at_b, G1(c.address) as at_c:
        assert at_a.register() == REQUESTS
        with serving(redis, at_b) as provider:
            for node in (a, b, c):
                await_healthy(node.address)
            agent = agent_of(redis, at_c)
            for _ in range(20):
                assert agent.execute(TOOLSET, "echo.say", PAYLOAD, META).value == PAYLOAD
        assert not provider.error, provider.error


def test_the_provider_may_answer_on_the_stream_whichever_service_asks():
    with cluster(2) as (redis, (a, b)), V1(a.address) as at_a, V1(b.address) as ours, G0(b.address) as older:
        at_a.register()
        with serving(redis, at_a):
            await_healthy(b.address)
            for service in (ours, older):
                assert service.call(TOOLSET, "echo.say", PAYLOAD) == PAYLOAD


def test_many_callers_of_a_fast_provider_lose_nothing_by_registry_registry():
    """There the result was lost if it came before the caller's group: 3 of 3 calls waited for 30 s."""
    with cluster(2) as (redis, (a, b)), G0(a.address) as at_a, G0(b.address) as at_b, V1(a.address) as ours:
        ours.register()
        with serving(redis, at_a, emit=at_a.emit), concurrent.futures.ThreadPoolExecutor(8) as pool:
            await_healthy(b.address)
            texts = [{"text": str(n)} for n in range(200)]
            assert list(pool.map(lambda text: at_b.call(TOOLSET, "echo.say", text), texts)) == texts


def test_output_errors_and_server_data_reach_a_caller_of_ours():
    with cluster(2) as (redis, (a, b)), V1(a.address) as service, V1(b.address) as ours:
        service.register()
        with serving(redis, service, talk):
            await_healthy(b.address)
            ask, request = ours.method("CallToolStream")
            meta = {"run_id": "run-7", "session_id": "s"}
            events = list(ask(request(toolset=TOOLSET, tool="echo.say", payload=json.dumps(PAYLOAD).encode(), meta=meta),
                              timeout=20))
            said = [(event.output.stream, event.output.delta) for event in events if event.WhichOneof("event") == "output"]
            assert said == [("stdout", "one "), ("stdout", "two")], said
            answer = events[-1].result
            assert json.loads(answer.result) == {"run": "run-7"}, answer
            assert json.loads(answer.server_data[0].data) == {"a": 1}, answer
            try:
                ours.call(TOOLSET, "echo.say", {"text": "fail"})
                raise AssertionError("it did not fail")
            except Failure as failure:
                assert (failure.code, failure.message) == ("too_sad", "not <today>"), failure


# ---- by MCP ---------------------------------------------------------------------------------

def call_by_mcp(node, arguments, meta=None):
    """Of the tool by its own name; the messages of the answer, whose last one is the result."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo.say", "arguments": arguments, "_meta": meta or {}}}
    connection.request("POST", "/mcp/" + TOOLSET, json.dumps(body), {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 200, (answer.status, text)
    if answer.headers.get_content_type() == "application/json":
        return [json.loads(text)]
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


def test_mcp_clients_call_direct_toolsets_at_any_node():
    with cluster(2) as (redis, (a, b)), V1(a.address) as service:
        service.register()
        with serving(redis, service, talk):
            for node in (a, b):
                await_healthy(node.address)
                (message,) = call_by_mcp(node, PAYLOAD)
                assert not message["result"].get("isError"), message
                assert "run" in json.loads(message["result"]["content"][0]["text"]), message
            *reports, message = call_by_mcp(b, PAYLOAD, {"progressToken": 7})
            told = [report["params"]["progress"] for report in reports if report["method"] == "notifications/progress"]
            assert told and told == sorted(told), reports
            assert "server_data" not in json.dumps(message) and '"a"' not in json.dumps(message), message
            (message,) = call_by_mcp(a, {"text": "fail"})
            assert message["result"]["isError"] and "not <today>" in message["result"]["content"][0]["text"], message
            (message,) = call_by_mcp(a, {"text": 5})
            assert message["result"]["_meta"]["pegboard/error"]["name"] == "validation_error", message


def test_an_mcp_call_of_a_direct_toolset_that_nobody_serves_says_so():
    with cluster(1) as (_, (node,)), V1(node.address) as service:
        service.register()
        (message,) = call_by_mcp(node, PAYLOAD)
        assert message["result"]["isError"], message
        assert message["result"]["_meta"]["pegboard/error"]["name"] == "service_unavailable", message


# ---- health and kinds -----------------------------------------------------------------------

def test_a_toolset_is_healthy_as_soon_as_its_provider_serves():
    """The ping of Register waits in a group that the gateway has made; theirs comes after an interval, of 10 s here."""
    with cluster(1, "--ping-interval", "10s") as (redis, (node,)), V1(node.address) as service:
        service.register()
        with fails_as("service_unavailable"):
            service.call(TOOLSET, "echo.say", PAYLOAD)
        began = time.monotonic()
        with serving(redis, service):
            await_healthy(node.address)
            assert time.monotonic() - began < 8, "not before the next ping"


def metric(node, name):
    with urllib.request.urlopen(f"http://{node.address}/metrics", timeout=30) as page:
        (line,) = (line for line in page.read().decode().splitlines() if line.startswith(name + " "))
    return float(line.split()[1])


def test_the_node_that_leads_counts_what_it_does_for_direct_toolsets():
    with cluster(2, *SILENT) as (redis, nodes), V1(nodes[0].address) as service:
        service.register()
        with serving(redis, service):
            for name in ("pings", "trims"):
                await_true(lambda n=f"pegboard_direct_{name}_total": sum(metric(node, n) for node in nodes) >= 2,
                           f"{name} are counted")
            redis.ask("XADD", "pulse:stream:result:left-behind", "*", "n", "init")
            await_true(lambda: sum(metric(node, "pegboard_direct_expiries_total") for node in nodes) >= 1,
                       "what was left behind gets an expiry")


def test_a_pong_of_a_toolset_that_is_not_there_changes_nothing():
    with cluster(1) as (redis, (node,)), G1(node.address) as service, G0(node.address) as older:
        before = keys(redis, "*")
        for one in (service, older):
            one.pong("nobody", "no-ping")
        assert {key for key in keys(redis, "*") - before if "lease" not in key} == set()


def test_a_provider_that_stops_makes_its_toolset_unhealthy():
    with cluster(2, *SILENT) as (redis, (a, b)), V1(a.address) as service, V1(b.address) as other:
        service.register()
        with serving(redis, service):
            await_healthy(b.address)

        await_true(lambda: other.health(TOOLSET).state != 1, "it is unhealthy")
        with fails_as("service_unavailable"):
            other.call(TOOLSET, "echo.say", PAYLOAD)


def test_what_is_unregistered_is_pinged_no_more_and_its_stream_stays():
    with cluster(1, *SILENT) as (redis, (node,)), V1(node.address) as service:
        service.register()
        with serving(redis, service) as provider:
            await_healthy(node.address)
            service.ask("Unregister", name=TOOLSET)
            with fails_as("not_found"):
                service.call(TOOLSET, "echo.say", PAYLOAD)
            seen = provider.n_pings
            time.sleep(2.5)  # two intervals
            assert provider.n_pings <= seen + 1, "one may have been on its way"
        assert redis.ask("EXISTS", "pulse:stream:" + REQUESTS) == 1


MANIFEST = """toolset: bench.echo
description: echoes its text
version: 1.0.0
tags: [bench]
tools:
  - name: echo.say
    description: echoes its text
    tags: [t]
    input_schema: {type: object, required: [text], properties: {text: {type: string}}}
    command: [cat]
"""


@contextlib.contextmanager
def our_provider(redis, node):
    """`pegboard provide --direct`, which registers the toolset itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tools.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        process = subprocess.Popen([PEGBOARD, "provide", "--direct", "redis://" + redis.address, "--registry",
                                    node.address, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def consumers(redis):
    found = redis.ask("XINFO", "CONSUMERS", "pulse:stream:" + REQUESTS, "provider")
    return {dict(zip(item[::2], item[1::2]))[b"name"] for item in found}


def test_a_provider_of_theirs_and_one_of_ours_share_a_toolset():
    """Each removes consumers that gave no sign of life for two graces: ours gives it as theirs does."""
    grace_s, counted = 8.0, []

    def count(tool, payload, meta, say):
        counted.append(payload)
        return payload

    with cluster(1) as (redis, (node,)), V1(node.address) as service, our_provider(redis, node):
        await_healthy(node.address)
        with serving(redis, service, count, grace_s=grace_s):
            both, n_calls = consumers(redis), 0
            until = time.monotonic() + 3 * grace_s
            while time.monotonic() < until:
                assert service.call(TOOLSET, "echo.say", PAYLOAD) == PAYLOAD
                n_calls += 1
                time.sleep(0.05)
            assert len(both) == 2 and both <= consumers(redis), (both, consumers(redis))
            assert 0 < len(counted) < n_calls, (len(counted), n_calls)


def test_a_toolset_changes_its_kind_only_when_nobody_provides_the_other():
    with cluster(2) as (redis, (a, b)), V1(b.address) as service:
        with Attached(a, TOOLSET):
            await_healthy(b.address)
            with fails_as_any() as holder:
                service.register()
            assert "attached" in holder["error"].message, holder["error"].message
        await_true(lambda: try_to_register(service), "it may become direct when its provider has gone")
        with serving(redis, service):
            await_healthy(a.address)
            with fails_as_any() as holder:
                with Attached(a, TOOLSET):
                    pass
            assert "direct" in holder["error"].message, holder["error"].message


@contextlib.contextmanager
def fails_as_any():
    try:
        yield (holder := {})
    except Failed as error:
        holder["error"] = error
        return
    raise AssertionError("it did not fail")


def try_to_register(service):
    try:
        return service.register()
    except Failed:
        return None


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
