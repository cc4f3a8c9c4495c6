#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: whoever speaks gRPC can provide tools and call them. The providers and callers of examples/providers/ (with the
packages for Python and Node, over Debian's grpcio and grpc-js; commands of a manifest), one with our library, and
`pegboard call`: each calls each. Then what docs/providers.md asks of a provider, of those two that do it by themselves:
they cancel, answer pings, come back with what they run, and leave in good order.

    test_providers.py PEGBOARD BUILD PROVIDER_EXAMPLE BUILD_OF_PACKAGES
"""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "clients")]
sys.dont_write_bytecode = True

import packages  # noqa: E402
from processes import PEGBOARD, ROOT, WAIT_S, Gateway, Process, run, same  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

LIBRARY, PACKAGES = (os.path.abspath(path) for path in sys.argv[3:5])
INVALID = "validation_error"
at_the_end = contextlib.ExitStack()
found = {}  # what is made once
offered = set()  # toolsets that each calls


def once(make):
    """What `make` returns, or the Skip that it raises, for all who ask."""
    if make.__name__ not in found:
        try:
            found[make.__name__] = make()
        except Skip as why:
            found[make.__name__] = why
    if isinstance(found[make.__name__], Skip):
        raise found[make.__name__]
    return found[make.__name__]


# ---- the examples, as a reader of docs/providers.md has them -----------------------------


def folder():
    """A copy of examples/providers/."""
    place = at_the_end.enter_context(tempfile.TemporaryDirectory(prefix="stock-"))
    shutil.copytree(os.path.join(ROOT, "examples", "providers"), os.path.join(place, "examples", "providers"),
                    ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    return place


def example(*names):
    return os.path.join(once(folder), "examples", "providers", *names)


def python():
    return packages.install_python(PACKAGES)


def node():
    os.symlink(os.path.join(packages.install_node(PACKAGES), "node_modules"),
               os.path.join(once(folder), "node_modules"))
    return "node"


# ---- who provides, and who calls ---------------------------------------------------------


def provider_command(who, address, name):
    if who == "python":
        return [once(python), "-B", example("python", "tools.py"), address, name]
    if who == "node":
        return [once(node), example("node", "tools.mjs"), address, name]
    if who == "manifest":
        return [PEGBOARD, "provide", "--registry", address, example("manifest", "numbers.yaml")]
    return [LIBRARY, address]


def call_command(who, address, name, tool, arguments):
    if who == "python":
        return [once(python), "-B", example("python", "call.py"), address, name, tool, arguments]
    if who == "node":
        return [once(node), example("node", "call.mjs"), address, name, tool, arguments]
    return [PEGBOARD, "call", "--registry", address, "--stream", "--args", arguments, name, tool]


class Provider(Process):
    def __init__(self, who, address, name="numbers"):
        super().__init__(provider_command(who, address, name))
        self.is_offered()

    def is_offered(self):
        return self.line_with(" is offered at ")


def world():
    """One gateway for those who only call."""
    return at_the_end.enter_context(Gateway())


def offer(who):
    """The name of the toolset; the provider lives until the end."""
    name = {"manifest": "numbers", "library": "texts"}.get(who, "numbers-" + who)
    if name not in offered:
        gateway = once(world)
        provider = at_the_end.enter_context(Process(provider_command(who, gateway.address, name)))
        await_healthy(gateway, name, provider)
        offered.add(name)
    return name


def await_healthy(gateway, name, provider):
    watch = [PEGBOARD, "watch", "--registry", gateway.address, "--json"]
    with Process(watch) as changes:
        while True:
            line = changes.line()
            check(line is not None, "the watch ended:", changes, "and", provider)
            told = json.loads(line).get("toolset") or {}
            if told.get("name") == name and "unhealthy" not in line.lower() and "healthy" in line.lower():
                return


# ---- each calls each ---------------------------------------------------------------------

BIG = 20000  # squares: 180 KB, three chunks
FAILS = {"manifest": "E_COMMAND_EXIT"}


def case_of_a_result(ask, name, _):
    same(json.loads(ask(name, "stats", {"numbers": [1, 2, 6]}).exits(0).stdout), {"n": 3, "mean": 3})


def case_of_a_result_in_chunks(ask, name, _):
    got = json.loads(ask(name, "squares", {"n": BIG}).exits(0).stdout)
    check(got == [n * n for n in range(BIG)], "not the squares, but", str(got)[:200])


def case_of_a_tool_that_fails(ask, name, who):
    ran = ask(name, "stats", {"numbers": []}).exits(1).prints("")
    ran.complains(FAILS.get(who, "no_numbers"), "give at least one number")


def case_of_wrong_arguments(ask, name, _):
    ask(name, "stats", {"numbers": "many"}).exits(1).prints("").complains(INVALID, "/numbers")


def case_of_many_wrong_arguments(ask, name, _):
    """Stock clients lose the status if its headers are too long: the report is cut."""
    texts = [f"{chr(0xe4) * 100} number {n}" for n in range(64)]
    ask(name, "stats", {"numbers": texts}).exits(1).prints("").complains(INVALID, "/numbers/0", " more")


def case_of_output(ask, name, who):
    ran = ask(name, "count", {"to": 3}).exits(0)
    same(json.loads(ran.stdout), 3)
    same(ran.stderr, "" if who == "manifest" else "1\n2\n3\n")


def case_of_the_library(ask, name, _):
    ran = ask(name, "measure", {"text": "caf\u00e9"}).exits(0)
    same((json.loads(ran.stdout), ran.stderr), ("5 bytes for local", "measuring\n"))


def case_of_the_library_and_wrong_arguments(ask, name, _):
    ask(name, "measure", {}).exits(1).prints("").complains(INVALID, "'text'")


CASES = [case_of_a_result, case_of_a_result_in_chunks, case_of_a_tool_that_fails, case_of_wrong_arguments,
         case_of_many_wrong_arguments,
         case_of_output]
LIBRARY_CASES = [case_of_the_library, case_of_the_library_and_wrong_arguments]


def add_meeting(caller, who):
    def meet(_):
        name = offer(who)
        address = once(world).address

        def ask(name, tool, arguments):
            return run(call_command(caller, address, name, tool, json.dumps(arguments)))

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(case, ask, name, who) for case in (LIBRARY_CASES if who == "library" else CASES)]:
                done.result()

    meet.__name__ = f"{caller}_calls_{who}"
    scenario(meet)


for one in ("pegboard", "python", "node"):
    for other in ("manifest", "library", "python", "node"):
        add_meeting(one, other)


# ---- what is asked of a provider ---------------------------------------------------------


class Wire:
    """Stands between a provider and its gateway, and can be cut."""

    def __init__(self, port):
        self.to, self.sockets, self.lock, self.is_cut = port, [], threading.Lock(), False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:  # closed, at the end
                return
            with self.lock:
                if self.is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.to))
                self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(a, b), daemon=True).start()

    @staticmethod
    def _carry(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                b.sendall(data)
        hang_up(a, b)

    def cut(self):
        with self.lock:
            self.is_cut = True
            hang_up(*self.sockets)
            self.sockets = []

    def mend(self):
        with self.lock:
            self.is_cut = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self.listener.close()


def hang_up(*ends):
    """They are closed when nobody uses them any more."""
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Caller(Process):
    """`pegboard call`, whose events are read as they come."""

    def __init__(self, gateway, tool, *arguments, options=()):
        super().__init__([PEGBOARD, "call", "--registry", gateway.address, "--stream", "--json", *options,
                          "numbers", tool, *arguments])

    def prints(self, part):
        return self.line_with(part)

    def result(self):
        return json.loads(self.prints('"outcome"'))


def for_each_language(function):
    for who in ("python", "node"):
        def check_one(_, who=who):
            function(who)
        check_one.__name__ = function.__name__.replace("a_provider", f"a_provider_in_{who}")
        scenario(check_one)
    return function


@for_each_language
def a_provider_answers_more_calls_than_it_has_credits_for(who):
    with Gateway() as gateway, Provider(who, gateway.address), contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(gateway, "count", "to=2", "pause_ms=50")) for _ in range(20)]
        same([caller.result()["result"] for caller in callers], [2] * 20)


@for_each_language
def a_provider_answers_pings(who):
    with Gateway("--ping-interval", "100ms", "--missed-ping-threshold", "1") as gateway, Provider(who, gateway.address):
        heard = set()
        while len(heard) < 4:  # each look sees a later pong
            got = json.loads(run([PEGBOARD, "list", "--registry", gateway.address, "--json"]).exits(0).stdout)
            heard.add(got["toolsets"][0]["health"]["last_pong_ms"])


def status_of(gateway):
    return json.loads(run([PEGBOARD, "status", "--json", "--registry", gateway.address]).exits(0).stdout)


@for_each_language
def a_provider_hears_that_a_call_was_canceled(who):
    with Gateway() as gateway, Provider(who, gateway.address):
        with Caller(gateway, "count", "to=100000", "pause_ms=20", options=["--timeout", "60s"]) as caller:
            caller.prints("1\\n")
            caller.stop(signal.SIGINT)
        # Its thread is free again: as many calls as it has are answered.
        with contextlib.ExitStack() as stack:
            callers = [stack.enter_context(Caller(gateway, "count", "to=1")) for _ in range(8)]
            same([one.result()["result"] for one in callers], [1] * 8)
        until = time.monotonic() + WAIT_S
        while (status := status_of(gateway))["in_flight"] and time.monotonic() < until:
            pass  # it says so after those eight, if it has a thread for each
        same((status["outcomes"]["outcome_unknown"], status["in_flight"]), (0, 0))


@for_each_language
def a_provider_comes_back_with_a_call_that_still_runs(who):
    with Gateway() as gateway, Wire(gateway.port) as wire, Provider(who, wire.address) as provider:
        with Caller(gateway, "count", "to=30", "pause_ms=100") as caller:
            caller.prints("1\\n")
            wire.cut()
            wire.mend()
            provider.is_offered()
            caller.prints("30\\n")  # what it says is heard again
            same(caller.result()["result"], 30)
            same(sum('"1\\n"' in line for line in caller.said), 1)  # it was not started twice


@for_each_language
def a_provider_comes_back_with_a_result_that_nobody_has_heard(who):
    with Gateway() as gateway, Wire(gateway.port) as wire, Provider(who, wire.address) as provider:
        with Caller(gateway, "count", "to=4", "pause_ms=50") as caller:
            caller.prints("1\\n")
            wire.cut()
            time.sleep(0.5)  # longer than the call takes; if not, this is the test above
            wire.mend()
            provider.is_offered()
            same(caller.result()["result"], 4)


@for_each_language
def a_provider_finishes_at_a_gateway_that_drains_and_attaches_to_the_next(who):
    with Gateway() as gateway, Provider(who, gateway.address) as provider:
        with Caller(gateway, "count", "to=10", "pause_ms=100") as caller:
            caller.prints("1\\n")
            gateway.process.send_signal(signal.SIGTERM)
            same(caller.result()["result"], 10)
        same(gateway.wait(), 0)
        with Gateway(address=gateway.address) as after:
            await_healthy(after, "numbers", provider)
            with Caller(after, "count", "to=1") as caller:
                same(caller.result()["result"], 1)


@for_each_language
def a_provider_that_is_stopped_finishes_what_it_runs(who):
    with Gateway() as gateway, Provider(who, gateway.address) as provider:
        with Caller(gateway, "count", "to=20", "pause_ms=100") as caller:
            caller.prints("1\\n")
            provider.process.send_signal(signal.SIGTERM)
            refused = 5
            while run([PEGBOARD, "call", "--registry", gateway.address, "numbers", "count", "to=1"]).status != refused:
                pass  # until the gateway has heard of it
            same(caller.result()["result"], 20)
        same(provider.wait(), 0)


def lose_gateway(who, stack):
    """A provider that runs a call of a gateway that will not come back, and is told to end."""
    gateway = stack.enter_context(Gateway())
    provider = stack.enter_context(Provider(who, gateway.address))
    caller = stack.enter_context(Caller(gateway, "count", "to=100000", "pause_ms=100", options=["--timeout", "10m"]))
    caller.prints("1\\n")
    gateway.stop(signal.SIGKILL)
    provider.process.send_signal(signal.SIGTERM)
    return provider


@scenario
def providers_that_are_stopped_do_not_wait_for_ever(_):
    providers = []
    with contextlib.ExitStack() as stack:
        for who in ("python", "node"):  # at once, as it takes half a minute
            with contextlib.suppress(Skip):
                providers.append(lose_gateway(who, stack))
        if not providers:
            raise Skip("neither is here")
        for provider in providers:
            provider.line_with("1 calls are given up")
            same(provider.wait(), 0)


@for_each_language
def a_provider_that_is_refused_says_why_and_ends(who):
    with Gateway() as gateway, Process(provider_command(who, gateway.address, "no name")) as provider:
        same(provider.wait(), 1)
        check("no name" in str(provider), provider)


if __name__ == "__main__":
    with at_the_end:
        main()
