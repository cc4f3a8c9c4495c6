#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What operators of several gateways on one Redis see and do, at any of them: which nodes there are, which one pings,
how one is ended, what became of a call.

    test_operating.py PEGBOARD
"""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True

from test_cluster import Redis, await_health  # noqa: E402  (it says where the rest is)
from world import (PEGBOARD, WAIT_S, Caller, Gateway, Provider, await_true, outcome)  # noqa: E402
import tap  # noqa: E402

LEASE_S = 2
INTERVAL_S = 2


def node(redis, *options):
    return Gateway("--redis", "unix://" + redis.socket, "--lease", f"{LEASE_S}s", "--ping-interval", f"{INTERVAL_S}s",
                   *options)


@contextlib.contextmanager
def cluster(n):
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        yield redis, [stack.enter_context(node(redis)) for _ in range(n)]


def run(gateway, command, *arguments):
    return subprocess.run([PEGBOARD, command, "--registry", gateway.address, *arguments], capture_output=True, text=True,
                          check=False, timeout=WAIT_S)


def nodes_at(gateway):
    done = run(gateway, "cluster", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["nodes"]


def await_nodes(gateway, count, **wanted):
    """As soon as so many are listed, with these members."""
    def look():
        found = [item for item in nodes_at(gateway) if all(item[name] == value for name, value in wanted.items())]
        return found if len(found) == count else None
    return await_true(look, f"{count} nodes are listed with {wanted}")


# ---- which nodes there are --------------------------------------------------------------------

def test_every_node_lists_all_nodes():
    with cluster(3) as (_, gateways):
        for gateway in gateways:
            listed = await_nodes(gateway, 3, state="serving")
            assert {item["address"] for item in listed} == {item.address for item in gateways}
            assert [item["id"] for item in listed] == sorted(item["id"] for item in listed)
            assert [item["address"] for item in listed if item["answers"]] == [gateway.address]
            assert len({item["version"] for item in listed}) == 1 and {item["protocol"] for item in listed} == {1}
            assert all(0 < item["lease_left_ms"] <= LEASE_S * 1000 for item in listed), listed
            assert await_true(lambda gateway=gateway: all(item["round_trip_us"] > 0 for item in nodes_at(gateway)),
                              "each has measured its way to Redis")


def test_the_table_has_a_line_for_each_node():
    with cluster(2) as (_, gateways):
        listed = await_nodes(gateways[0], 2, state="serving")
        lines = run(gateways[0], "cluster").stdout.splitlines()
        assert lines[0].split()[:6] == ["NODE", "ADDRESS", "VERSION", "STATE", "PINGS", "LEASE"], lines
        assert [line.split()[0] for line in lines[1:]] == [item["id"] for item in listed], lines


def test_what_a_node_does_is_seen_at_the_others():
    with cluster(2) as (_, gateways), Provider(gateways[1], "sums") as provider, Caller(gateways[1]) as caller:
        await_health(gateways)
        future = caller.start_call("sums")
        call = provider.next_call()
        await_true(lambda: [(item["providers"], item["in_flight"]) for item in nodes_at(gateways[0])
                            if item["address"] == gateways[1].address] == [(1, 1)], "its provider and its call")
        provider.answer(call, b"1")
        assert outcome(future).result == b"1"
        await_true(lambda: [(item["settled"], item["in_flight"]) for item in nodes_at(gateways[0])
                            if item["address"] == gateways[1].address] == [(1, 0)], "the end of its call")


def status_at(gateway):
    done = run(gateway, "status", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def call_at(gateway, provider, count):
    with Caller(gateway) as caller:
        for _ in range(count):
            future = caller.start_call("sums")
            provider.answer(provider.next_call(), b"1")
            assert outcome(future).result == b"1"


def test_the_status_at_any_node_is_that_of_the_registry():
    with cluster(3) as (_, gateways), Provider(gateways[0], "sums") as provider:
        await_health(gateways)
        call_at(gateways[0], provider, 2)
        call_at(gateways[1], provider, 3)
        with Caller(gateways[1]) as caller:
            future = caller.start_call("sums")
            call = provider.next_call()
            nodes = {gateways[0].address: (2, 0, 1), gateways[1].address: (3, 1, 0), gateways[2].address: (0, 0, 0)}
            for gateway in gateways:
                def sees_all(gateway=gateway):
                    told = status_at(gateway)
                    return {item["address"]: (item["outcomes"]["result"], item["in_flight"], item["providers"])
                            for item in told["nodes"]} == nodes and told
                told = await_true(sees_all, "it has heard of all calls and providers")
                assert told["totals"]["outcomes"]["result"] == 5 and told["totals"]["in_flight"] == 1, told
                assert told["totals"]["nodes"] == 3 and told["totals"]["calls_per_s"] >= 0, told
                assert told["toolset_count"] == 1 and told["healthy"] == 1 and told["providers"] == 1, told
                assert [item["health"]["state"] for item in told["toolsets"]] == ["healthy"], told
            assert status_at(gateways[2])["outcomes"]["result"] == 0, "its own"
            words = run(gateways[2], "status").stdout
            assert "all 3 nodes: in flight 1, queued 0" in words and "; ok 5, " in words, words
            provider.answer(call, b"1")
            outcome(future)


def test_one_node_alone_shows_no_table_of_nodes():
    with Gateway("--store", "memory") as gateway:
        told = status_at(gateway)
        assert told["totals"]["nodes"] == 1 and len(told["nodes"]) == 1, told
        assert "all 1 nodes" not in run(gateway, "status").stdout


def test_list_and_watch_at_any_node_show_what_happens_at_the_others():
    with cluster(2) as (_, gateways):
        with subprocess.Popen([PEGBOARD, "watch", "--json", "--registry", gateways[1].address], stdout=subprocess.PIPE,
                              text=True) as watch:
            overdue = threading.Timer(3 * WAIT_S, watch.kill)
            try:
                def next_event(kind, state=None):
                    for line in watch.stdout:
                        event = json.loads(line)
                        if event["event"] == kind and (state is None or event["toolset"]["health"]["state"] == state):
                            return event
                    raise AssertionError(f"the watch ended before {kind}")
                overdue.start()
                next_event("ready")
                with Provider(gateways[0], "sums"):
                    registered = next_event("registered")
                    if registered["toolset"]["health"]["state"] != "healthy":  # both may come at once
                        next_event("health", "healthy")
                    for gateway in gateways:
                        (item,) = await_true(lambda gateway=gateway: [
                            item for item in json.loads(run(gateway, "list", "--json").stdout)["toolsets"]
                            if item["health"]["state"] == "healthy"], "it is listed")
                        assert item["name"] == "sums" and item["health"]["providers"] == 1, item
                next_event("health", "unhealthy")
                assert run(gateways[0], "unregister", "sums").returncode == 0
                next_event("unregistered")
            finally:
                overdue.cancel()
                watch.kill()


def test_a_node_that_ends_in_order_is_gone_at_once():
    with cluster(2) as (_, gateways):
        await_nodes(gateways[0], 2, state="serving")
        gateways[1].stop()
        assert len(nodes_at(gateways[0])) == 1


def test_a_node_that_is_killed_is_gone_after_its_lease():
    with cluster(2) as (redis, gateways):
        await_nodes(gateways[0], 2, state="serving")
        gateways[1].process.kill()
        began = time.monotonic()
        await_nodes(gateways[0], 1)
        assert time.monotonic() - began < 3 * LEASE_S
        assert redis.command("hlen", "peg:registry:map:nodes") == "1"


def test_nodes_are_listed_again_when_redis_has_lost_everything():
    with cluster(2) as (redis, gateways):
        await_nodes(gateways[0], 2, state="serving")
        redis.stop()
        redis.start()
        await_true(lambda: redis.command("hlen", "peg:registry:map:nodes") == "2", "both have written themselves")
        await_nodes(gateways[0], 2, state="serving")


def test_one_node_alone_lists_itself():
    with Gateway("--store", "memory") as gateway:
        (item,) = nodes_at(gateway)
        assert item["state"] == "serving" and item["answers"] and item["round_trip_us"] == 0
        assert item["address"] == gateway.address


# ---- versions of the protocol -----------------------------------------------------------------

def plant_node(redis, protocol, age_ms=0):
    """A node of another version, as it would have announced itself."""
    seconds, micros = redis.command("time").split()
    now = int(seconds) * 1000 + int(micros) // 1000
    entry = {"protocol": protocol, "version": "9.9.9", "address": "10.1.2.3:9090", "written_ms": now - age_ms,
             "lease_ms": 60000, "whatever": [1]}
    redis.command("hset", "peg:registry:map:nodes", "00000000deadbeef", f"{now}:" + json.dumps(entry))
    redis.command("zadd", "peg:registry:map:nodes:index", str(now), "k00000000deadbeef", str(now), "r")


def test_a_node_refuses_to_join_live_nodes_of_another_protocol():
    with Redis() as redis:
        plant_node(redis, 2)
        try:
            node(redis).start().stop()
        except AssertionError as error:
            for words in ("E_PROTOCOL_VERSION", "00000000deadbeef", "10.1.2.3:9090", "9.9.9", "version 2", "version 1",
                          "--name"):
                assert words in str(error), error
        else:
            raise AssertionError("it started")
        await_true(lambda: redis.command("hkeys", "peg:registry:map:nodes") == "00000000deadbeef", "it left nothing")
        with node(redis, "--name", "other") as gateway:
            assert len(nodes_at(gateway)) == 1


def test_a_dead_node_of_another_protocol_keeps_nobody_out():
    with Redis() as redis:
        plant_node(redis, 2, age_ms=61000)
        with node(redis) as gateway:
            await_nodes(gateway, 1)


# ---- which one pings --------------------------------------------------------------------------

def pinger(gateway):
    return [item["address"] for item in nodes_at(gateway) if item["pings"]]


def test_one_node_pings_and_another_takes_over_within_an_interval():
    with cluster(3) as (redis, gateways):
        await_true(lambda: len({tuple(pinger(item)) for item in gateways}) == 1 and pinger(gateways[0]),
                   "all nodes know the same one")
        (first,) = pinger(gateways[0])
        holder = redis.command("get", "peg:registry:lease:role:ping")
        (dies,) = [item for item in gateways if item.address == first]
        rest = [item for item in gateways if item is not dies]
        dies.process.kill()
        began = time.monotonic()
        await_true(lambda: redis.command("get", "peg:registry:lease:role:ping") not in ("", holder), "another has it")
        took = time.monotonic() - began
        assert took < INTERVAL_S, took
        await_true(lambda: all(len(pinger(item)) == 1 and pinger(item) != [first] for item in rest), "all know it")


def test_a_node_that_drains_hands_the_pings_on():
    with cluster(2) as (_, gateways):
        await_true(lambda: pinger(gateways[0]) and pinger(gateways[0]) == pinger(gateways[1]), "one pings")
        (ends,) = [item for item in gateways if [item.address] == pinger(gateways[0])]
        (stays,) = [item for item in gateways if item is not ends]
        ends.stop()
        await_true(lambda: pinger(stays) == [stays.address], "the other one does", INTERVAL_S)


# ---- metrics of Redis -------------------------------------------------------------------------

def metrics(gateway):
    with urllib.request.urlopen(f"http://{gateway.address}/metrics", timeout=WAIT_S) as answer:
        lines = answer.read().decode().splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("pegboard_redis_")}


def test_metrics_tell_of_round_trips_and_of_time_without_redis():
    with cluster(1) as (redis, gateways):
        await_true(lambda: metrics(gateways[0])["pegboard_redis_round_trip_seconds_count"] > 2, "round trips are counted")
        before = metrics(gateways[0])
        assert before["pegboard_redis_commands_total"] >= before["pegboard_redis_pipelines_total"] > 0
        assert before["pegboard_redis_sent_bytes_total"] > 0 < before["pegboard_redis_received_bytes_total"]
        assert before["pegboard_redis_fenced_seconds_total"] == 0
        redis.process.send_signal(signal.SIGSTOP)
        await_true(lambda: metrics(gateways[0])["pegboard_redis_fenced_seconds_total"] > 0.5, "it is fenced")
        redis.process.send_signal(signal.SIGCONT)
        redis.stop()
        redis.start()
        await_true(lambda: metrics(gateways[0])["pegboard_redis_connects_total"] >
                   before["pegboard_redis_connects_total"], "it has connected again")
        assert metrics(gateways[0])["pegboard_redis_epochs_total"] > before["pegboard_redis_epochs_total"]


# ---- what Redis keeps -------------------------------------------------------------------------

def persistence_warnings(*options, acl=()):
    with Redis(*options) as redis:
        if acl:
            redis.command("acl", "setuser", "node", "on", ">secret", "~peg:*", "&peg:*", "+@all", *acl)
        with Gateway("--redis", "unix://" + ("node:secret@" if acl else "") + redis.socket) as gateway:
            await_nodes(gateway, 1, state="serving")
            return [line for line in gateway.said().splitlines() if "E_REDIS_PERSISTENCE" in line]


def test_a_redis_that_forgets_calls_is_warned_of_once():
    (line,) = persistence_warnings()
    assert "appendonly is no" in line and "appendonly to yes" in line and "run twice" in line, line
    (line,) = persistence_warnings("--appendonly", "yes", "--appendfsync", "no")
    assert "appendfsync is no" in line and "appendfsync to everysec" in line, line
    for sync in ("everysec", "always"):
        assert persistence_warnings("--appendonly", "yes", "--appendfsync", sync) == []


def test_a_node_that_may_not_read_settings_looks_at_info():
    (line,) = persistence_warnings(acl=["-config"])
    assert "appendonly is no" in line, line
    assert persistence_warnings("--appendonly", "yes", acl=["-config"]) == []


# ---- ending a node ----------------------------------------------------------------------------

def id_of(gateway):
    (item,) = [item for item in nodes_at(gateway) if item["answers"]]
    return item["id"]


def test_any_node_ends_any_other_when_its_calls_have_ended():
    with cluster(2) as (_, gateways), Provider(gateways[1], "sums") as provider, Caller(gateways[1]) as caller:
        await_health(gateways)
        name = id_of(gateways[1])
        future = caller.start_call("sums")
        call = provider.next_call()
        done = run(gateways[0], "drain", name)
        assert (done.returncode, done.stdout) == (0, f"{name}: draining\n"), done.stderr
        await_nodes(gateways[0], 1, state="draining")
        assert gateways[1].process.poll() is None, "it waits for its call"
        provider.answer(call, b"1")
        assert outcome(future).result == b"1"
        assert gateways[1].process.wait(WAIT_S) == 0
        assert len(nodes_at(gateways[0])) == 1
        assert "event=drain via=node" in gateways[1].said()
        assert f"node={name}" in gateways[0].said()


def test_drain_waits_until_the_node_has_ended_by_its_address_or_the_beginning_of_its_id():
    with cluster(3) as (_, gateways):
        await_nodes(gateways[0], 3, state="serving")
        done = run(gateways[0], "drain", "--wait", gateways[1].address)
        assert done.returncode == 0 and done.stdout.endswith(": ended\n"), done
        assert gateways[1].process.wait(WAIT_S) == 0
        done = run(gateways[0], "drain", "--wait", id_of(gateways[2])[:12])
        assert done.returncode == 0 and done.stdout.endswith(": ended\n"), done
        assert gateways[2].process.wait(WAIT_S) == 0


def test_a_node_ends_itself():
    with Gateway("--store", "memory") as gateway:
        done = run(gateway, "drain", "--wait", id_of(gateway))
        assert done.returncode == 0 and done.stdout.endswith(": ended\n"), done
        assert gateway.process.wait(WAIT_S) == 0


def test_nodes_and_providers_live_on_while_redis_is_full():
    with Redis() as redis, contextlib.ExitStack() as stack:
        gateways = [stack.enter_context(node(redis, "--missed-ping-threshold", "1")) for _ in range(2)]
        provider = stack.enter_context(Provider(gateways[0], "sums"))
        caller = stack.enter_context(Caller(gateways[0]))
        await_health(gateways)
        redis.command("config", "set", "maxmemory", "1")
        assert "OOM" in redis.command("set", "a", "b")
        redis.command("client", "kill", "type", "pubsub")
        time.sleep(3 * INTERVAL_S)  # a provider that does not answer a ping, and its neighbour, is gone
        await_health(gateways)
        await_nodes(gateways[1], 2)
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b"1")
        assert outcome(future).result == b"1"


def test_a_node_that_is_not_there_is_not_drained():
    with cluster(1) as (_, gateways):
        done = run(gateways[0], "drain", "0123456789abcdef")
        assert done.returncode == 1 and "pegboard cluster" in done.stderr, done
        assert gateways[0].process.poll() is None


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
