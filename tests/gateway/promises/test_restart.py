#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway that is killed and started anew has lost what it knew of calls; those who live on are let go.

    test_restart.py PEGBOARD
"""

import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import (PEGBOARD, WAIT_S, Caller, Failed, Gateway, Provider, await_true, failure, fails_as,  # noqa: E402
                   usual, v1)

IDENTITIES = ({"idempotency_key": "key-1"}, {"meta": v1("CallMeta", run_id="r", tool_call_id="c")}, {})


def kill_and_restart(gateway):
    gateway.stop(signal.SIGKILL)
    gateway.start()


# ---- results that nobody awaits any more ------------------------------------------------

def test_a_result_for_a_gateway_that_was_restarted_is_acknowledged():
    for identity in IDENTITIES:
        with Gateway() as gateway:
            with Caller(gateway) as caller:
                provider = Provider(gateway, "sums").ready()
                future = caller.start_call("sums", **identity)
                call = provider.next_call()
                kill_and_restart(gateway)
                failure(future)
            with Provider(gateway, "sums", incarnation=provider.incarnation, number=2,
                          running=[provider.listed(call)]) as back:
                back.answer(call, b"7")
                ack = back.acks.get(timeout=WAIT_S)
                assert (ack.call_id, ack.attempt) == (call.call_id, call.attempt)
                assert back.has_no_call()


MANIFEST = """\
toolset: local
tools:
  - name: hold
    description: Says that it runs, and waits for a file.
    shell: true
    command: touch begun; until [ -e go ]; do sleep 0.02; done; echo 7
    timeout: 10m
"""


def provide(gateway, log):
    with open(os.path.join(gateway.folder, "tools.yaml"), "w", encoding="utf-8") as file:
        file.write(MANIFEST)
    command = usual(os.path.abspath(PEGBOARD), "provide", "--registry", gateway.address, "tools.yaml")
    return subprocess.Popen(command, cwd=gateway.folder, stdout=log, stderr=log)


def is_provided(caller):
    return caller.ask("ListToolsets", v1("ListToolsetsRequest")).toolsets and caller.health("local").state == 1


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def drain_after_restart(gateway, provider):
    """What a call with an identity runs for outlives the gateway, and is then finished."""
    begun, go = (os.path.join(gateway.folder, name) for name in ("begun", "go"))
    with Caller(gateway) as caller:
        await_true(lambda: is_provided(caller), "it is provided")
        caller.ask("StartTool", v1("CallToolRequest", toolset="local", tool="hold", payload=b"{}"))
        await_true(lambda: os.path.exists(begun), "the tool runs")
        kill_and_restart(gateway)
    with Caller(gateway) as caller:
        await_true(lambda: is_provided(caller), "it has come back")
    touch(go)
    provider.send_signal(signal.SIGTERM)
    return provider.wait(2 * WAIT_S)


def test_a_provider_drains_though_the_gateway_of_its_call_was_restarted():
    with Gateway() as gateway, open(os.path.join(gateway.folder, "provide.log"), "w+", encoding="utf-8") as log:
        provider = provide(gateway, log)
        try:
            code = drain_after_restart(gateway, provider)
        finally:
            provider.kill()
            provider.wait(WAIT_S)
        log.seek(0)
        said = log.read()
        assert code == 0 and "given up" not in said, f"{code}: {said}"


# ---- calls that are asked for by their ids ----------------------------------------------

def start(caller, **more):
    """Its id, and the name of the memory that it is in."""
    response, call = caller.method("StartTool").with_call(
        v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', **more), timeout=WAIT_S)
    return response.call_id, (("pegboard-asked-epoch", dict(call.initial_metadata())["pegboard-epoch"]),)


def ways(call_id):
    return (("AwaitTool", v1("AwaitToolRequest", call_id=call_id)),
            ("CancelTool", v1("CancelToolRequest", call_id=call_id)))


def is_forgotten(caller, call_id):
    """Nobody is told that a call did not run which did."""
    try:
        caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=call_id))
    except Failed as error:
        assert (error.name, error.started) == ("not_found", "true"), (error, error.started)
        return True
    return False


def test_a_call_that_a_restart_has_lost_is_not_said_not_to_have_run():
    with Gateway() as gateway:
        with Caller(gateway) as caller:
            provider = Provider(gateway, "sums").ready()
            call_id, asked = start(caller)
            call = provider.next_call()
            kill_and_restart(gateway)
        with Caller(gateway) as caller, \
                Provider(gateway, "sums", incarnation=provider.incarnation, number=2,
                         running=[provider.listed(call)]):  # which runs it still
            for verb, request in ways(call_id):
                with fails_as("not_found") as told:
                    caller.ask(verb, request)
                assert "restarted" in told["error"].message and told["error"].started == "true"
                with fails_as("outcome_unknown") as told:
                    caller.ask(verb, request, metadata=asked)
                assert "restarted" in told["error"].message and told["error"].started == "true"


def test_a_call_that_ended_long_ago_is_not_said_not_to_have_run():
    with Gateway("--result-mapping-ttl", "1s") as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums") as provider:
        call_id, asked = start(caller, timeout_ms=1000)
        provider.answer(provider.next_call())
        await_true(lambda: is_forgotten(caller, call_id), "its end is forgotten")
        for verb, request in ways(call_id):
            with fails_as("not_found") as told:  # the gateway is the same
                caller.ask(verb, request, metadata=asked)
            assert told["error"].started == "true"


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
