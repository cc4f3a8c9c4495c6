#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gateways that keep their toolsets in MongoDB: what was acknowledged outlives kill -9 of either, a database that is
away stops registrations and nothing else, and nodes of a cluster share it.

    test_mongo.py PEGBOARD BUILD
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), os.path.join(TESTS, "cluster"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from certificates import Certificates  # noqa: E402
from mongo_server import JavaServer, Mongo, build_server  # noqa: E402
from test_cluster import Redis  # noqa: E402
from world import (BRIEF, PEGBOARD, WAIT_S, Caller, Failed, Gateway, Provider, await_true, fails_as,  # noqa: E402
                   outcome, toolset, v1)

BUILD = sys.argv[2]
N_KILLS = 12


def node(mongo, *options, **more):
    return Gateway("--store", "mongo", *options, env={"MONGO_URL": mongo.url}, **more)


def register(caller, name, **fields):
    return caller.ask("Register", toolset(name, **fields))


def names(caller):
    return sorted(item.name for item in caller.ask("ListToolsets", v1("ListToolsetsRequest", page_size=1000)).toolsets)


# ---- what is kept -----------------------------------------------------------------------

def test_toolsets_outlive_gateway_and_database():
    with Mongo(BUILD) as mongo:
        with node(mongo) as gateway, Caller(gateway) as caller:
            register(caller, "sums", description="adds")
            register(caller, "gone")
            caller.ask("Unregister", v1("UnregisterRequest", name="gone"))
            gateway.stop(signal.SIGKILL)
        mongo.stop()
        mongo.start()
        with node(mongo) as gateway, Caller(gateway) as caller:
            assert names(caller) == ["sums"], names(caller)
            found = caller.ask("GetToolset", v1("GetToolsetRequest", name="sums")).toolset
            assert found.description == "adds"
            await_true(lambda: "toolsets are kept in MongoDB, registry.toolsets\n" in gateway.said(), "it says so")


def test_other_databases_and_collections_are_other_stores():
    with Mongo(BUILD) as mongo:
        for options in ((), ("--mongo-database", "other"), ("--mongo-collection", "more")):
            with node(mongo, *options) as gateway, Caller(gateway) as caller:
                assert names(caller) == []
                register(caller, "sums")


def test_a_url_in_the_environment_is_enough():
    with Mongo(BUILD) as mongo, Gateway(env={"MONGO_URL": mongo.url}) as gateway:
        await_true(lambda: "toolsets are kept in MongoDB" in gateway.said(), "it says where they are")
        assert not os.path.exists(os.path.join(gateway.folder, "data")), "no folder is made"


# ---- a database that is away ------------------------------------------------------------

def test_a_database_that_is_away_stops_registrations_and_nothing_else():
    with Mongo(BUILD) as mongo, node(mongo) as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        mongo.stop()
        with fails_as("service_unavailable") as failed:
            register(caller, "late")
        assert "is as it was" in failed["error"].message, failed["error"].message
        await_true(lambda: "does not answer" in gateway.said() and "code=store_failed" in gateway.said(),
                   "it says so")
        began = time.monotonic()
        with fails_as("service_unavailable"):
            register(caller, "later")
        assert time.monotonic() - began < 4, "one that is known to be away is not waited for again"
        future = caller.start_call("sums")
        provider.answer(provider.next_call(), b"42")
        assert outcome(future).result == b"42"
        assert names(caller) == ["sums"]
        mongo.start()
        register(caller, "late")
        assert names(caller) == ["late", "sums"]


def test_a_registration_waits_for_a_database_that_is_restarted():
    with Mongo(BUILD) as mongo, node(mongo) as gateway, Caller(gateway) as caller:
        register(caller, "first")
        mongo.stop()
        mongo.start()
        register(caller, "second")  # on a connection that was lost
        mongo.stop()
        waiting = caller.begin("Register", toolset("third"))
        time.sleep(0.5)  # it is being tried: any moment is right
        assert not waiting.done()
        mongo.start()
        outcome(waiting)
        assert names(caller) == ["first", "second", "third"]
        assert "store_failed" not in gateway.said(), gateway.said()


# ---- killed in the middle of registrations ----------------------------------------------

class Registrar(threading.Thread):
    """Registers one toolset after the other, changes every third, unregisters every fifth; knows what was acknowledged,
    and what was asked for and not answered."""

    def __init__(self, caller, prefix):
        super().__init__(daemon=True)
        self.caller, self.prefix = caller, prefix
        self.standing, self.unsure = set(), set()
        self.n_acknowledged = 0

    def step(self, name, verb, request):
        self.unsure.add(name)
        self.caller.ask(verb, request)
        self.unsure.discard(name)
        self.n_acknowledged += 1

    def register_all(self):
        for i in range(100000):
            name = f"{self.prefix}-{i:05}"
            self.step(name, "Register", toolset(name))
            self.standing.add(name)
            if i % 3 == 0:
                self.step(name, "Register", toolset(name, description="changed"))
            if i % 5 == 0:
                self.step(name, "Unregister", v1("UnregisterRequest", name=name))
                self.standing.discard(name)

    def run(self):
        with contextlib.suppress(Failed):
            self.register_all()


def kill_in_the_middle(gateway, mongo, who, number, seed):
    """What is registered while it is killed: what has to stand afterwards, and what may."""
    caller = Caller(gateway)
    registrar = Registrar(caller, f"round-{number}")
    registrar.start()
    await_true(lambda: registrar.n_acknowledged >= 3, "some were acknowledged")
    time.sleep(seed.random() * 0.1)  # the moment is to be by chance
    if "mongo" in who:
        mongo.stop(signal.SIGKILL)
    if "gateway" in who:
        gateway.stop(signal.SIGKILL)
        caller.close()
    registrar.join(WAIT_S)
    assert not registrar.is_alive()
    caller.close()
    return registrar


def restart(gateway, mongo, who):
    if "mongo" in who:
        mongo.start()
    if "gateway" in who:
        gateway.start()


def check_kept(gateway, standing, unsure):
    """Every acknowledged change and nothing else, but for those that were not answered. While the gateway lives, what it
    answered with a failure is not there; the database may have it."""
    with Caller(gateway) as caller:
        found = set(names(caller))
    assert standing - unsure <= found, f"lost: {sorted(standing - unsure - found)}"
    assert found <= standing | unsure, f"came back: {sorted(found - standing - unsure)}"


def test_no_acknowledged_registration_is_lost_by_kill_9_of_either_or_both():
    seed = random.Random(4711)
    with Mongo(BUILD) as mongo, node(mongo) as gateway:
        standing, unsure = set(), set()
        n_acknowledged = 0
        for number in range(N_KILLS):
            who = (("gateway",), ("mongo",), ("mongo", "gateway"))[number % 3]
            registrar = kill_in_the_middle(gateway, mongo, who, number, seed)
            restart(gateway, mongo, who)
            standing |= registrar.standing
            unsure |= registrar.unsure
            check_kept(gateway, standing, unsure)
            n_acknowledged += registrar.n_acknowledged
        gateway.stop(signal.SIGKILL)
        gateway.start()
        check_kept(gateway, standing, unsure)
        assert len(unsure) <= N_KILLS, unsure
        print(f"# {n_acknowledged} acknowledged changes, {N_KILLS} kills")


# ---- a cluster --------------------------------------------------------------------------

@contextlib.contextmanager
def nodes_of(redis, mongo, n):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(node(mongo, "--redis", "unix://" + redis.socket, *BRIEF)) for _ in range(n)]


def test_nodes_share_a_database_that_fills_a_redis_which_lost_everything():
    with Mongo(BUILD) as mongo, Redis() as redis:
        with nodes_of(redis, mongo, 2) as nodes, contextlib.ExitStack() as stack:
            callers = [stack.enter_context(Caller(node)) for node in nodes]
            for i in range(10):
                register(callers[i % 2], f"t{i}")
            callers[1].ask("Unregister", v1("UnregisterRequest", name="t0"))
            expected = [f"t{i}" for i in range(1, 10)]
            for caller in callers:
                await_true(lambda caller=caller: names(caller) == expected, "both see them")
            # While they run: they write the map again themselves.
            redis.stop()
            redis.start()
            await_true(lambda: redis.command("hlen", "peg:registry:map:toolsets") == "10", "the map is whole, tombstone too")
            for each in nodes:
                assert "store_failed" not in each.said(), each.said()
                each.stop(signal.SIGKILL)
        # Nobody remembers but the database.
        redis.stop()
        redis.start()
        with nodes_of(redis, mongo, 2) as nodes, contextlib.ExitStack() as stack:
            callers = [stack.enter_context(Caller(node)) for node in nodes]
            for caller in callers:
                await_true(lambda caller=caller: names(caller) == expected, "they are there again")
            register(callers[0], "new")
            await_true(lambda: "new" in names(callers[1]), "and others")


def test_nodes_that_change_one_toolset_at_the_same_time_agree_with_the_database():
    with JavaServer(BUILD) as mongo, Redis() as redis:  # it is atomic
        with nodes_of(redis, mongo, 2) as nodes, contextlib.ExitStack() as stack:
            callers = [stack.enter_context(Caller(node)) for node in nodes]
            for i in range(50):
                futures = [caller.begin("Register", toolset("sums", description=f"{i} of {number}"))
                           for number, caller in enumerate(callers)]
                for future in futures:
                    outcome(future)
            await_true(lambda: description_at(callers[0]) == description_at(callers[1]), "they agree")
            agreed = description_at(callers[0])
            for each in nodes:
                each.stop(signal.SIGKILL)
        with node(mongo) as gateway, Caller(gateway) as caller:
            assert description_at(caller) == agreed, (description_at(caller), agreed)


def description_at(caller):
    return caller.ask("GetToolset", v1("GetToolsetRequest", name="sums")).toolset.description


# ---- users and TLS, by the URL ----------------------------------------------------------

def register_at(url):
    with Gateway(env={"MONGO_URL": url}) as gateway, Caller(gateway) as caller:
        register(caller, "sums")


def test_a_user_is_named_in_the_url_and_others_are_denied():
    with Mongo(BUILD, "--listen-addr=ADDRESS", "--test-enable-new-auth", "--setup-database=admin",
               "--setup-username=peg", "--setup-password=s@cret") as mongo:
        host = f"127.0.0.1:{mongo.port}/?authSource=admin"
        register_at(f"mongodb://peg:s%40cret@{host}")
        for user in ("peg:wrong@", "nobody:s%40cret@", ""):
            said = start_and_fail(MONGO_URL=f"mongodb://{user}{host}")
            assert "MongoDB denies access to registry.toolsets: check user, password" in said, said
            assert "wrong" not in said and "cret" not in said, said


def test_a_server_with_tls_shows_a_certificate_that_the_ca_of_the_url_has_signed():
    with tempfile.TemporaryDirectory() as folder:
        made = Certificates(folder)
        for ca in ("ca", "other"):
            made.make_ca(ca)
        made.sign("server", alternatives="IP:127.0.0.1")
        with Mongo(BUILD, "--listen-addr=", "--listen-tls=ADDRESS", "--listen-tls-cert-file=" + made.path("server.pem"),
                   "--listen-tls-key-file=" + made.path("server.key")) as mongo:
            url = f"mongodb://127.0.0.1:{mongo.port}/?tls=true&tlsCAFile="
            register_at(url + made.path("ca.pem"))
            said = start_and_fail(MONGO_URL=url + made.path("other.pem"))
            assert "does not answer" in said and "TLS handshake failed" in said, said


# ---- what stops the start ---------------------------------------------------------------

def start_and_fail(*arguments, **env):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PEGBOARD, "serve", "--addr", "127.0.0.1:0", "--data-dir", folder, *arguments],
                              env={**os.environ, **env}, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr


def test_a_module_that_cannot_be_loaded_is_named_with_the_package_to_install():
    with tempfile.TemporaryDirectory() as folder:
        def fails_without(library):
            path = os.path.join(folder, library)
            with open(path, "w", encoding="utf-8"):
                pass  # the linker finds it, and finds no library in it
            said = start_and_fail("--store", "mongo", MONGO_URL="mongodb://127.0.0.1:1", LD_LIBRARY_PATH=folder)
            os.unlink(path)
            return said

        said = fails_without("libpegboard-mongo.so.0")
        assert "E_STORE_MODULE" in said and "libmongoc-dev" in said, said
        said = fails_without("libmongoc-1.0.so.0")
        assert "E_STORE_MODULE" in said and "install the package libmongoc-1.0-0" in said, said


def test_a_database_that_is_not_there_is_named_without_the_password():
    said = start_and_fail(MONGO_URL="mongodb://user:secret@127.0.0.1:1/?authSource=admin")
    assert "registry.toolsets does not answer" in said and "E_STORE" in said, said
    assert "secret" not in said
    said = start_and_fail("--store", "mongo", MONGO_URL="mongo://user:secret@host")
    assert "the URL is none of MongoDB" in said and "secret" not in said, said


if __name__ == "__main__":
    try:
        if not shutil.which("redis-server"):
            raise tap.Skip("redis-server is not installed")
        build_server(BUILD)
    except tap.Skip as reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    sys.exit(tap.run(globals()))
