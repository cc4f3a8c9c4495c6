#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What those who run a gateway see of it: --admin-addr, /metrics, the log, and that settings from
the environment do what they say.

    test_operator.py PEGBOARD
"""

import http.client
import os
import platform
import queue
import re
import shutil
import signal
import subprocess
import sys

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from ports import free_port  # noqa: E402
from world import (PEGBOARD, WAIT_S, Caller, Echo, Failed, Gateway, Provider,  # noqa: E402
                   await_true, fails_as, make_token, outcome, queued, token_file, toolset, v1)

IS_SANITIZED = len(sys.argv) > 2 and sys.argv[2] != "none"


class Place:
    """An address for HTTP and RPCs."""

    def __init__(self, port):
        self.port, self.address = port, f"127.0.0.1:{port}"

    def get(self, path):
        """The status and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self):
        """The values by name and labels."""
        status, text = self.get("/metrics")
        assert status == 200, text
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}


# ---- --admin-addr -------------------------------------------------------------------------

def test_the_admin_address_shows_and_asks_nobody_and_takes_no_rpcs():
    admin = Place(free_port())
    with Gateway("--admin-addr", admin.address) as gateway:
        make_token(gateway, "anna")
        gateway.stop()
        gateway.arguments += ("--token-file", token_file(gateway))
        gateway.start()
        main = Place(gateway.port)
        assert main.get("/metrics")[0] == 401 and "--admin-addr" in main.get("/metrics")[1]
        assert admin.metrics()["pegboard_draining"] == 0
        assert admin.get("/healthz") == main.get("/healthz") == (200, "ok\n")
        assert admin.get("/readyz") == (200, "ready\n")
        assert admin.get("/")[0] == 404
        with Caller(admin) as caller:
            for verb, request, service in (
                    ("ListToolsets", v1("ListToolsetsRequest"), "pegboard.v1.Registry"),
                    ("Status", v1("StatusRequest"), "pegboard.v1.Admin")):
                try:
                    caller.ask(verb, request, service=service)
                    raise AssertionError(f"{verb} is answered there")
                except Failed as error:
                    assert error.code == grpc.StatusCode.UNIMPLEMENTED, error


def test_the_admin_address_is_not_for_other_machines():
    with Gateway("--admin-addr", "0.0.0.0:0", "--insecure") as gateway:
        make_token(gateway, "anna")
        for more in ((), ("--token-file", token_file(gateway))):
            done = subprocess.run(
                [PEGBOARD, "serve", "--store", "memory", "--addr", "127.0.0.1:0", "--admin-addr",
                 ":0", *more], capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 2 and "(E_LISTEN_INSECURE)" in done.stderr, done
            assert "--admin-addr ':0'" in done.stderr and "or set --insecure" in done.stderr
            # it would change nothing there, so it is no advice
            assert "--token-file" not in done.stderr, done.stderr


def test_the_admin_address_says_that_the_gateway_drains_until_it_is_gone():
    admin = Place(free_port())
    with Gateway("--admin-addr", admin.address) as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        call = provider.next_call()
        gateway.process.send_signal(signal.SIGTERM)
        await_true(lambda: admin.get("/healthz") == (503, "draining\n"), "it says that it drains")
        assert admin.get("/readyz") == (503, "draining\n")
        shown = admin.metrics()
        assert shown["pegboard_draining"] == 1
        assert shown['pegboard_calls_in_flight{toolset="sums"}'] == 1
        provider.answer(call, b"8")
        assert outcome(future).result == b"8"
        assert gateway.process.wait(30) == 0


# ---- /metrics and the log ----------------------------------------------------------------

def test_metrics_tell_the_memory_that_is_in_use():
    if platform.libc_ver()[0] != "glibc" or IS_SANITIZED:
        return  # there it is left out
    text = b'"' + b"x" * (4 << 20) + b'"'
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        heap = "pegboard_heap_used_bytes"
        before = Place(gateway.port).metrics()
        assert 100_000 < before[heap] < 1 << 30, before[heap]
        future = caller.start_call("sums", idempotency_key="kept")
        call = provider.next_call()
        for at in range(0, len(text), 65536):
            provider.answer(call, text[at:at + 65536], more=at + 65536 < len(text))
        assert outcome(future).result == text
        # It is measured now and then only.
        await_true(lambda: Place(gateway.port).metrics()[heap] >= before[heap] + len(text),
                   "the heap has what is kept")
        after = Place(gateway.port).metrics()
        assert after["process_resident_memory_bytes"] > len(text)


def test_metrics_of_many_toolsets_are_the_same_on_http1_and_http2():
    n_toolsets, n_told = 1010, 1000
    with Gateway() as gateway, Caller(gateway) as caller:
        asked = [caller.begin("Register", toolset(f"t{i:04}")) for i in range(n_toolsets)]
        for future in asked:
            future.result(WAIT_S)
        with fails_as("validation_error"):
            caller.call("t1005", payload=b"{}")
        place = Place(gateway.port)
        await_true(lambda: place.metrics()["pegboard_toolsets"] == n_toolsets, "all are told")
        shown = place.metrics()
        healthy = [name for name in shown if name.startswith("pegboard_toolset_healthy{")]
        assert len(healthy) == n_told, len(healthy)
        assert shown["pegboard_toolsets_left_out"] == n_toolsets - n_told
        await_true(lambda: place.metrics()[
            'pegboard_calls_total{toolset="(other)",outcome="refused"}'] == 1, "the call is counted")
        if not shutil.which("curl"):
            return

        def on_http2():
            return subprocess.run(
                ["curl", "-s", "--http2-prior-knowledge", f"http://{place.address}/metrics"],
                capture_output=True, text=True, timeout=WAIT_S, check=True).stdout

        # One text, with the moment when it was made, for all who ask in its second.
        await_true(lambda: on_http2() == place.get("/metrics")[1], "both get the same text")


def shown_of(place, names, labels='toolset="sums"'):
    shown = place.metrics()
    return [shown.get(f"pegboard_{name}{{{labels}}}") for name in names]


def health_lines(gateway):
    """What the log says of health: state, providers, draining."""
    return re.findall(r"event=health toolset=sums state=(\w+) providers=(\d) draining=(\d)",
                      gateway.said())


def test_metrics_and_log_follow_a_toolset():
    with Gateway() as gateway, Caller(gateway) as caller:
        place = Place(gateway.port)
        now = ("toolset_healthy", "calls_in_flight", "queue_depth")
        with Provider(gateway, "sums", credits=1) as provider:
            futures = [caller.start_call("sums")]
            call = provider.next_call()
            futures.append(caller.start_call("sums"))
            await_true(lambda: queued(caller) == 1, "the second call waits")
            # in flight is what has not ended: the one that waits, too
            await_true(lambda: shown_of(place, now) == [1, 2, 1], "both are in flight")
            assert shown_of(place, ("toolset_last_pong_age_seconds",))[0] >= 0
            provider.answer(call)
            provider.fail(provider.next_call(), "tired", "not today")
            assert outcome(futures[0]).result == b"1"
            assert outcome(futures[1]).error.code == "tired"
            with fails_as("validation_error"):
                caller.call("sums", payload=b"{}")
            await_true(lambda: shown_of(place, now) == [1, 0, 0], "nothing runs or waits")
            shown = place.metrics()
            ended = {re.search('outcome="(.*)"', name)[1]: value for name, value in shown.items()
                     if name.startswith('pegboard_calls_total{toolset="sums"') and value}
            assert ended == {"result": 1, "error": 1, "refused": 1}, ended
            histogram = "pegboard_call_duration_seconds_"
            assert shown[histogram + 'count{toolset="sums"}'] == 2
            assert shown[histogram + 'bucket{toolset="sums",le="+Inf"}'] == 2
            assert shown['pegboard_node_calls_total{outcome="result"}'] == 1
        await_true(lambda: shown_of(place, now) == [0, 0, 0], "nobody is there")


def test_each_change_of_health_is_one_line_of_the_log():
    with Gateway() as gateway, Caller(gateway) as caller:
        place = Place(gateway.port)
        first, second = Provider(gateway, "sums").ready(), Provider(gateway, "sums").ready()
        await_true(lambda: caller.health("sums").providers == 2, "both are there")
        Echo(first)
        Echo(second)
        for _ in range(20):  # which change nothing
            assert caller.call("sums").result == b"1"
        second.cut()
        await_true(lambda: caller.health("sums").providers == 1, "one has gone")
        first.say(drain=v1("ProviderDrain"))
        await_true(lambda: caller.health("sums").draining == 1, "it drains")
        first.leave()
        await_true(lambda: caller.health("sums").providers == 0, "both have gone")
        assert shown_of(place, ("toolset_healthy",)) == [0]
        gateway.stop()
        assert health_lines(gateway) == [
            ("healthy", "1", "0"), ("healthy", "2", "0"), ("healthy", "1", "0"),
            ("unhealthy", "1", "1"), ("unhealthy", "0", "0")], health_lines(gateway)


# ---- settings from the environment -------------------------------------------------------

def test_settings_from_the_environment_do_what_they_say():
    env = {"PING_INTERVAL": "1500ms", "MISSED_PING_THRESHOLD": "2",
           "RESULT_STREAM_MAPPING_TTL": "50ms"}
    with Gateway(env=env) as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums") as provider:
        assert provider.welcome.ping_interval_ms == 1500
        echo = Echo(provider)
        asked = {"idempotency_key": "once", "timeout_ms": 3000}
        assert not caller.call("sums", **asked).attached
        await_true(lambda: not caller.call("sums", **asked).attached, "it is forgotten")
        assert echo.n == 2
        provider.answers_pings = False
        await_true(lambda: caller.health("sums").state == 2, "unhealthy")
        assert "staleness_threshold=4.5s" in caller.health("sums").reason  # (2 + 1) * 1500 ms
        silent = ("unhealthy", "1", "0")
        await_true(lambda: silent in health_lines(gateway), "the log tells of its silence")
        lines = health_lines(gateway)
        assert lines[-2:] == [("healthy", "1", "0"), silent], lines


# ---- tokens that are taken out ------------------------------------------------------------

def take_out(gateway, name):
    """All lines of the name, and a SIGHUP that was heard."""
    with open(token_file(gateway), encoding="ascii") as file:
        lines = [line for line in file if line.split()[0] != name]
    with open(token_file(gateway), "w", encoding="ascii") as file:
        file.writelines(lines)
    n_before = gateway.said().count("event=reload result=ok")
    gateway.process.send_signal(signal.SIGHUP)
    await_true(lambda: gateway.said().count("event=reload result=ok") > n_before, "it was read")


def with_tokens(gateway, *names):
    """Started again, with a token file; the tokens."""
    tokens = [make_token(gateway, name) for name in names]
    gateway.stop()
    gateway.arguments += ("--token-file", token_file(gateway))
    gateway.start()
    return tokens


def test_a_token_that_is_taken_out_ends_the_streams_that_it_began():
    """Else whoever has a stolen token is handed the calls of its toolset for as long as it stays."""
    with Gateway() as gateway:
        anna, ben = with_tokens(gateway, "anna", "ben")
        with Caller(gateway, anna) as caller, Caller(gateway, ben) as other, \
                Provider(gateway, "of-anna", token=anna) as provider, \
                Provider(gateway, "of-ben", token=ben) as neighbour:
            watch = caller.method("Watch")(v1("WatchRequest"), WAIT_S, caller.metadata)
            others_watch = other.method("Watch")(v1("WatchRequest"), WAIT_S, other.metadata)
            next(watch)
            next(others_watch)
            running = other.start_call("of-anna")
            call = provider.next_call()

            take_out(gateway, "anna")

            with fails_as("service_unavailable"):
                other.call("of-anna")
            assert not provider.ended.is_set(), "what it runs it may finish"
            provider.answer(call)
            assert outcome(running).result == b"1"
            assert provider.ended.wait(WAIT_S), "its stream is there for ever"
            assert provider.error.name == "unauthenticated", provider.error
            assert ends_as(watch) == "unauthenticated"
            Echo(neighbour)
            assert other.call("of-ben").result == b"1"
            assert others_watch.is_active()


def ends_as(stream):
    try:
        for _ in stream:
            pass
    except grpc.RpcError as error:
        return Failed(error).name
    return "ok"


def test_a_stream_that_was_opened_before_its_token_was_taken_out_says_hello_too_late():
    with Gateway() as gateway:
        anna, = with_tokens(gateway, "anna")
        with Caller(gateway, anna) as caller:
            frames = queue.Queue()
            stream = caller.method("Attach")(iter(frames.get, None), WAIT_S, caller.metadata)
            await_true(lambda: caller.ask("ListToolsets", v1("ListToolsetsRequest")) is not None,
                       "the stream, which was opened before, is there")

            take_out(gateway, "anna")

            hello = v1("Hello", toolset="of-anna", incarnation="test-of-anna", credits=1,
                       registration=toolset("of-anna"))
            frames.put(v1("AttachRequest", hello=hello))
            assert ends_as(stream) == "unauthenticated"


def test_a_name_that_keeps_another_token_keeps_its_streams():
    with Gateway() as gateway:
        first, _ = with_tokens(gateway, "anna", "anna")
        with Provider(gateway, "of-anna", token=first) as provider, Caller(gateway, first) as caller:
            Echo(provider)
            with open(token_file(gateway), encoding="ascii") as file:
                lines = file.readlines()
            with open(token_file(gateway), "w", encoding="ascii") as file:
                file.writelines(lines[1:])
            take_out(gateway, "nobody")

            with fails_as("unauthenticated"):
                caller.call("of-anna")
            assert not provider.ended.wait(0.2)


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
