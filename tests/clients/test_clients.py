#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: tools are offered and called with the packages for Python and Node as they are built and installed: the programs
of docs/python.md and docs/node.md as they stand, each package with the other at a real gateway, and what happens when
the gateway is killed, a call is canceled, a tool fails, or a token is wrong. What docs/providers.md asks of a provider
besides is in tests/gateway/stock/test_providers.py.

    test_clients.py PEGBOARD BUILD
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "gateway", "stock")]
sys.dont_write_bytecode = True

import packages  # noqa: E402
from processes import BUILD, PEGBOARD, ROOT, Gateway, Process, run, same  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

FIRST_LINES = {"python": 12, "node": 15}
LANGUAGES = ("python", "node")
KINDS = ("python", "python for asyncio", "node")  # of providers, and of callers
at_the_end = contextlib.ExitStack()
found = {}  # what is made once


def once(make, *arguments):
    """What it returns, or the Skip that it raises, for all who ask."""
    key = (make.__name__, *arguments)
    if key not in found:
        try:
            found[key] = make(*arguments)
        except Skip as why:
            found[key] = why
    if isinstance(found[key], Skip):
        raise found[key]
    return found[key]


# ---- programs --------------------------------------------------------------------------


def folder():
    """With these programs, and the package for Node."""
    place = at_the_end.enter_context(tempfile.TemporaryDirectory(prefix="clients-"))
    for name in ("tools.py", "caller.py", "tools.mjs", "caller.mjs", "silent.py", "scripted.py", "checked.py",
                 "checked.mts", "tsconfig.json"):
        shutil.copy(os.path.join(HERE, name), place)
    return place


def interpreter(language):
    if language == "python":
        return [packages.install_python(BUILD), "-B"]
    os.symlink(os.path.join(packages.install_node(BUILD), "node_modules"), os.path.join(once(folder), "node_modules"))
    return ["node"]


def command(language, name, *arguments):
    """Of a program in the folder, its name without .py or .mjs."""
    file = os.path.join(once(folder), name + (".py" if language == "python" else ".mjs"))
    return [*once(interpreter, language), file, *arguments]


def command_of(kind, name, *arguments):
    """Of tools or caller."""
    more = {"python": ["WAITING"], "python for asyncio": ["AIO"]}.get(kind, [])
    return command(kind.split()[0], name, *more, *arguments)


class Caller(Process):
    """A client, which answers one request at a time."""

    def __init__(self, kind, addresses, token="", env=()):
        super().__init__(["env", *env, *command_of(kind, "caller", addresses, token)])

    def ask(self, verb, *arguments, **options):
        """{"value"} or {"error"}."""
        self.begin(verb, *arguments, **options)
        return self.answer()

    def begin(self, verb, *arguments, **options):
        self.write(json.dumps([verb, arguments, options]) + "\n")

    def answer(self):
        line = self.line()
        check(line is not None, "the client ended:", self)
        return json.loads(line)


def ask(caller, addresses, verb, *arguments, token="", **options):
    with Caller(caller, addresses, token) as client:
        return client.ask(verb, *arguments, **options)


class Provider(Process):
    def __init__(self, kind, addresses, *more, env=()):
        super().__init__(["env", *env, *command_of(kind, "tools", addresses, *(more or ["tools"]))])
        self.is_offered()

    def is_offered(self):
        return self.line_with(" is offered at ")


class Scripted(Process):
    """A gateway that answers as it is told."""

    def __init__(self, *answers):
        super().__init__(command("python", "scripted", *answers))
        self.address = self.line().strip()

    def asked(self, n):
        """The epochs that the next n requests name."""
        return [json.loads(self.line()) for _ in range(n)]


def world():
    return at_the_end.enter_context(Gateway())


def offered(kind):
    """The name of the toolset, at the gateway for those who only call."""
    name = "tools-" + kind.replace(" ", "-")
    at_the_end.enter_context(Provider(kind, once(world).address, name))
    return name


def for_each(*choices):
    def mark(function):
        for choice in choices:
            def check_one(_, choice=choice):
                function(choice)
            check_one.__name__ = f"{function.__name__}_{choice}".replace(" ", "_")
            scenario(check_one)
        return function
    return mark


# ---- what the documents show -----------------------------------------------------------


def blocks(language):
    """The programs of the page, and the text that stands behind each."""
    with open(os.path.join(ROOT, "docs", language + ".md"), encoding="utf-8") as file:
        text = file.read()
    kind = {"python": "python", "node": "js"}[language]
    return re.findall(rf"^```{kind}\n(.*?)^```$.*?^```text\n(.*?)^```$", text, re.M | re.S)


def write_program(language, name, text):
    with open(os.path.join(once(folder), name + (".py" if language == "python" else ".mjs")), "w",
              encoding="utf-8") as file:
        file.write(text)


@for_each(*LANGUAGES)
def the_programs_of_the_page_run_as_they_stand_in(language):
    (first, session), (client, output) = blocks(language)
    check(first.count("\n") <= FIRST_LINES[language], "the first tool has", first.count("\n"), "lines")
    write_program(language, "first", first)
    write_program(language, "client", client)
    wanted = session.splitlines()[-1]
    with Gateway() as gateway:
        with Process(["env", "PEGBOARD_REGISTRY=" + gateway.address, *command(language, "first")]) as provider:
            await_toolset(gateway, "numbers", provider)
            called = ["pegboard", "call", "--args", '{"numbers": [1, 2, 6]}', "numbers", "stats"]
            check("$ " + " ".join(called).replace('{"', "'{\"").replace("]}", "]}'") in session, session)
            run([PEGBOARD, called[1], "--registry", gateway.address, *called[2:]]).exits(0).prints(wanted + "\n")
            run(["env", "PEGBOARD_REGISTRY=" + gateway.address, *command(language, "client")]).exits(0).prints(output)
            same(provider.stop(), 0)


def await_toolset(gateway, name, provider):
    """It is offered; its provider tells that on standard error."""
    with Process([PEGBOARD, "watch", "--registry", gateway.address, "--json"]) as changes:
        while (line := changes.line()) is not None:
            told = json.loads(line).get("toolset") or {}
            if told.get("name") == name and (told.get("health") or {}).get("state") == "healthy":
                return
    raise AssertionError(f"the watch ended: {changes} {provider}")


# ---- types -----------------------------------------------------------------------------


@scenario
def types_of_python_become_schemas(_):
    ran = run([*once(interpreter, "python"), os.path.join(HERE, "schemas.py")])
    check(ran.status == 0 and "\nok 11 " in ran.stdout, ran)


@scenario
def mypy_accepts_the_package_and_its_use(_):
    if not shutil.which("mypy"):
        raise Skip("there is no mypy: tools/setup --test installs it")
    settings = os.path.join(ROOT, "clients", "python", "pyproject.toml")
    with tempfile.TemporaryDirectory() as cache:
        common = ["mypy", "--config-file", settings, "--cache-dir", cache, "--python-executable",
                  once(interpreter, "python")[0]]
        run([*common, "-p", "pegboard"]).exits(0)
        run([*common, "--warn-unused-ignores", os.path.join(once(folder), "checked.py")]).exits(0)


@scenario
def typescript_accepts_the_use_of_the_package(_):
    once(interpreter, "node")
    compiler = os.path.join(once(folder), "node_modules", "typescript", "bin", "tsc")
    run(["node", compiler, "--project", once(folder)]).exits(0)


# ---- names for models ------------------------------------------------------------------

NAMES = {
    "python": """
import json, sys
from types import SimpleNamespace as S
from pegboard import Definitions
sets = [S(toolset=S(name=t), tools=[S(name=n, description="", input_schema=b"")]) for t, n in json.loads(sys.argv[1])]
print(json.dumps([one["name"] for one in Definitions("anthropic", sets)]))
""",
    "node": """
import { Definitions } from "pegboard";
const sets = JSON.parse(process.argv[2]).map(([toolset, name]) =>
  ({ toolset: { name: toolset }, tools: [{ name, description: "", inputSchema: Buffer.alloc(0) }] }));
console.log(JSON.stringify(Definitions.make("anthropic", sets).map(({ name }) => name)));
"""}


@scenario
def both_packages_give_tools_the_same_names_and_none_twice(_):
    pairs = [("a", "b"), ("a", "_b"), ("a_", "b"), ("a__b", "c"), ("a", "b__c"), ("a.b", "c"), ("a/b", "c"),
             ("9", "x"), ("t" * 200, "x"), ("t" * 200, "y")]
    digest = hashlib.sha256(b"a.b\0c").hexdigest()[:8]
    pairs.insert(0, ("a_b", f"c_{digest}"))  # is what a.b's tool would be called
    named = []
    for language, program in NAMES.items():
        write_program(language, "names", program)
        named.append(json.loads(run(command(language, "names", json.dumps(pairs))).exits(0).stdout))
    same(named[0], named[1])
    same(named[0][:2], [f"a_b__c_{digest}", "a__b"])
    check(len(set(named[0])) == len(pairs), named[0])
    check(all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in named[0]), named[0])


# ---- each calls each -------------------------------------------------------------------


def case_of_a_result(ask_it, toolset):
    same(ask_it("call", toolset, "echo", {"value": "caf\u00e9"}, metadata={"note": "a"}, timeout=60)["value"],
         {"value": "caf\u00e9", "caller": "local", "note": "a"})


def case_of_a_result_in_chunks(ask_it, toolset):
    check(ask_it("call", toolset, "big", {"n": 200000}) == {"value": "x" * 200000}, "not 200,000 letters")


def case_of_a_stream(ask_it, toolset):
    deltas = [{"type": "output", "delta": word} for word in ("a ", "b")]
    same(ask_it("stream", toolset, "say", {"words": ["a ", "b"]})["value"],
         [{"type": "started"}, *deltas, {"type": "result", "value": 2}])
    same(ask_it("stream", toolset, "say_later", {"words": ["a ", "b"]})["value"],
         [{"type": "started"}, *deltas, {"type": "result", "value": "a b"}])


def case_of_a_tool_that_breaks(ask_it, toolset):
    error = ask_it("call", toolset, "fail", {})["error"]
    same((error["class"], error["code"]), ("ToolError", "internal"))
    check("secret" not in error["message"] and "Error" in error["message"], error)
    same(ask_it("call", toolset, "lie", {})["error"]["code"], "malformed_result")


def case_of_wrong_arguments(ask_it, toolset):
    error = ask_it("call", toolset, "echo", {"value": 1})["error"]
    same((error["class"], error["code"], error["started"]), ("ValidationError", "validation_error", False))
    check("/value" in error["message"], error)


def case_of_no_tool(ask_it, toolset):
    error = ask_it("call", toolset, "nothing", {})["error"]
    same((error["class"], error["code"], error["started"]), ("NotFound", "not_found", False))


def case_of_a_long_call(ask_it, toolset):
    same(ask_it("long", toolset, "say", {"words": ["a"]})["value"], 1)


def case_of_an_identity(ask_it, toolset):
    key = {"idempotency_key": f"{toolset}-{os.urandom(8).hex()}"}
    first = ask_it("call", toolset, "echo", {"value": "a"}, metadata={"note": "1"}, **key)["value"]
    same(ask_it("call", toolset, "echo", {"value": "a"}, metadata={"note": "2"}, **key)["value"], first)


def case_of_definitions(ask_it, toolset):
    for vendor, path in (("openai", ("function", "parameters")), ("anthropic", ("input_schema",)),
                         ("openai-responses", ("parameters",))):
        schema = ask_it("tools", vendor, [toolset])["value"][0]
        for name in path:
            schema = schema[name]
        same(schema["required"], ["value"])
    declared = ask_it("tools", "gemini", [toolset])["value"][0]["functionDeclarations"]
    same((declared[0]["name"], len(declared)), (f"{toolset}__echo", 9))


CASES = [case for name, case in list(globals().items()) if name.startswith("case_of_")]


@for_each(*[f"{caller} at {provider}" for caller in KINDS for provider in KINDS])
def each_calls_each(pair):
    caller, provider = pair.split(" at ")
    toolset = once(offered, provider)
    with Caller(caller, once(world).address) as client:
        for case in CASES:
            case(client.ask, toolset)


# ---- cancel ----------------------------------------------------------------------------


@for_each(*KINDS)
def a_call_is_canceled_for(kind):
    with Gateway() as gateway, Provider(kind, gateway.address) as provider:
        for caller, tool in (("python", "hang"), ("node", "hang_on_a_thread"), ("python for asyncio", "hang")):
            same(ask(caller, gateway.address, "stream, and leave", "tools", tool, {})["value"], "begun\n")
            provider.line_with("hang was canceled")


@for_each(*LANGUAGES)
def a_call_that_takes_too_long_has_a_name_in(language):
    with Gateway() as gateway, Provider(language, gateway.address) as provider:
        error = ask(language, gateway.address, "call", "tools", "hang", {}, timeout=1)["error"]
        if error["class"] == "CallTimeout":  # the machine was too slow to start it
            same((error["code"], error["started"]), ("timeout", False))
            return
        check(error["class"] in ("OutcomeUnknown", "ToolError"), error)  # the tool's, if it says so in time
        provider.line_with("hang was canceled")


# ---- gateways that go away -------------------------------------------------------------


@for_each(*LANGUAGES)
def a_provider_comes_back_after_its_gateway_was_killed_in(language):
    with Gateway() as gateway, Provider(language, gateway.address) as provider:
        with Process([PEGBOARD, "call", "--registry", gateway.address, "--stream", "--json", "--timeout", "10m", "tools",
                      "hang"]) as caller:
            caller.line_with("begun")  # so it runs, and is listed when the provider comes back
            gateway.stop(signal.SIGKILL)
            check(caller.wait() != 0, caller)
        with Gateway(address=gateway.address) as after:
            provider.is_offered()
            same(ask(language, after.address, "call", "tools", "say", {"words": ["a", "b"]})["value"], 2)
            same(provider.process.poll(), None)


@for_each(*LANGUAGES)
def a_provider_goes_to_the_next_of_several_addresses_in(language):
    with Gateway() as one, Gateway() as other, Provider(language, f"{one.address},{other.address}") as provider:
        one.stop(signal.SIGKILL)
        check(other.address in provider.is_offered(), provider)
        for caller in KINDS:  # the first cannot be reached
            with Caller(caller, f"{one.address},{other.address}") as client:
                same(client.ask("call", "tools", "say", {"words": []})["value"], 0)
                same(client.ask("stream", "tools", "say", {"words": []})["value"][-1]["value"], 0)
        same(provider.stop(), 0)


def begun(provider):
    """How often it has begun to wait for a file, when it has ended."""
    provider.stop()
    while provider.line() is not None:
        pass
    return provider.said.count("begun\n")


@for_each(*KINDS)
def only_a_call_with_an_identity_goes_on_at_the_next_node_for(kind):
    if not shutil.which("redis-server"):
        raise Skip("there is no redis-server: tools/setup --test installs it")
    path = os.path.join(once(folder), "go-on-" + kind)
    with tempfile.TemporaryDirectory() as place:
        redis = ["--redis", f"unix://{place}/s", "--lease", "2s"]
        with Process(["redis-server", "--port", "0", "--unixsocket", place + "/s", "--save", ""]) as server:
            server.line_with("ready to accept connections")
            with Gateway(*redis) as one, Gateway(*redis) as other, Provider("python", other.address) as provider, \
                    Caller(kind, f"{one.address},{other.address}") as client, \
                    Caller(kind, f"{one.address},{other.address}") as without:
                await_toolset(one, "tools", provider)
                for caller, key in (client, "k"), (without, None):
                    caller.begin("call", "tools", "wait_for_a_file", {"path": path}, idempotency_key=key)
                    provider.line_with("begun")
                one.stop(signal.SIGKILL)
                same(without.answer()["error"]["class"], "OutcomeUnknown")
                with open(path, "w", encoding="ascii"):
                    same(client.answer(), {"value": "found"})
                same(begun(provider), 2)


@for_each(*KINDS)
def a_call_that_a_gateway_has_forgotten_is_not_started_again_for(kind):
    call = ("call", "tools", "wait_for_a_file", {"path": os.path.join(once(folder), "never")})
    with Gateway() as gateway, Provider("python", gateway.address) as provider, Caller(kind, gateway.address) as client:
        client.ask("toolsets")  # so that it knows the epoch
        client.begin(*call, idempotency_key="k")
        provider.line_with("begun")
        gateway.stop(signal.SIGKILL)
        same(client.answer()["error"]["class"], "OutcomeUnknown")
        with Gateway(address=gateway.address) as after:
            provider.is_offered()
            await_toolset(after, "tools", provider)
            await_connection(client)  # and the other one
            same(client.ask(*call, idempotency_key="k", timeout=5)["error"]["class"], "OutcomeUnknown")
            provider.process.kill()
            same(begun(provider), 1)


def await_connection(client):
    """It connects again when its pause is over."""
    for _ in range(600):
        if "value" in client.ask("toolsets"):
            return
        time.sleep(0.1)
    raise AssertionError(f"it does not connect: {client}")


CALL = ("call", "tools", "any", {})
STREAM = ("stream", *CALL[1:])


@for_each(*KINDS)
def a_call_that_is_asked_for_again_names_the_epoch_under_which_it_was_first_for(kind):
    key = {"idempotency_key": "k"}
    with Scripted("lost", "lost") as server, Caller(kind, server.address) as client:
        same(client.ask(*CALL, **key)["error"]["class"], "OutcomeUnknown")
        same([client.ask(*CALL, **key) for _ in range(2)], [{"value": 1}] * 2)
        same(server.asked(4), [None, "unknown", "unknown", None])  # an end that is known is forgotten
    with Scripted("result", "lost", "lost", "lost", "tool error", "result", "lost") as server, \
            Caller(kind, server.address) as client:
        client.ask("toolsets")
        same(client.ask(*CALL, **key)["error"]["class"], "OutcomeUnknown")
        same(client.ask(*STREAM, **key)["error"]["class"], "ToolError")
        same(client.ask(*CALL, **key), {"value": 1})
        same(client.ask("wait", "0" * 32), {"value": 1})
        same(server.asked(8), [None, None, "1", "1", "1", None, "6", "6"])


@for_each(*KINDS)
def a_call_without_an_identity_is_asked_for_once_for(kind):
    with Scripted("lost", "lost") as server, Caller(kind, server.address) as client:
        same([client.ask(*request)["error"]["class"] for request in (CALL, STREAM)], ["OutcomeUnknown"] * 2)


@for_each(*KINDS)
def a_call_that_was_left_is_asked_for_again_under_its_epoch_for(kind):
    with Scripted("result", "hang", "result", "hang") as server, Caller(kind, server.address) as client:
        client.ask("toolsets")
        same(client.ask("stream, and leave", *CALL[1:], idempotency_key="a"), {"value": "begun\n"})
        same(client.ask(*CALL, idempotency_key="a"), {"value": 1})
        client.begin(*CALL, idempotency_key="b")
        same(server.asked(4), [None, None, "1", None])
        client.process.send_signal(signal.SIGINT)
        check("error" in client.answer(), client)
        same(client.ask(*CALL, idempotency_key="b"), {"value": 1})
        same(server.asked(1), ["3"])


@for_each(*KINDS)
def an_answer_after_a_lost_connection_counts_if_it_is_definite_for(kind):
    cases = [(CALL, "validation_error", "ValidationError"), (CALL, "timeout", "CallTimeout"),
             (CALL, "canceled", "Canceled"), (CALL, "not_found", "OutcomeUnknown"),
             (("toolsets",), "not_found", "NotFound"), (("toolsets",), "unauthenticated", "Unauthenticated")]
    with Scripted(*[answer for case in cases for answer in ("lost", case[1])]) as server, \
            Caller(kind, server.address) as client:
        for request, name, wanted in cases:
            key = {"idempotency_key": name} if request is CALL else {}
            same(client.ask(*request, **key)["error"]["class"], wanted)


@for_each(*KINDS)
def a_stream_ends_with_its_result_for(kind):
    with Scripted("result, and lost") as server, Caller(kind, server.address) as client:
        same(client.ask(*STREAM, idempotency_key="k"), {"value": [{"type": "result", "value": 1}]})


@scenario
def a_provider_passes_over_a_gateway_that_does_not_welcome_it(_):
    with Process(command("python", "silent")) as silent, Gateway() as gateway, contextlib.ExitStack() as providers:
        address = silent.line().strip()
        for provider in [providers.enter_context(Process(command_of(
                language, "tools", f"{address},{gateway.address}", "from-" + language))) for language in LANGUAGES]:
            check(address + " does not answer" in provider.line_with("does not answer"), provider)
            check(gateway.address in provider.line_with(" is offered at "), provider)


@for_each(*LANGUAGES)
def a_provider_goes_to_the_next_of_several_addresses_when_one_drains_in(language):
    with Gateway() as one, Gateway() as other, Provider(language, f"{one.address},{other.address}") as provider:
        same(one.stop(), 0)
        check(other.address in provider.is_offered(), provider)


@for_each(*KINDS)
def a_provider_finishes_what_runs_when_it_is_stopped_as(kind):
    with Gateway() as gateway, Provider(kind, gateway.address) as provider:
        with Process([PEGBOARD, "call", "--registry", gateway.address, "--stream", "--json", "--timeout", "10m", "tools",
                      "wait_for_a_file", "path=" + os.path.join(once(folder), kind)]) as caller:
            caller.line_with("begun")
            provider.process.send_signal(signal.SIGTERM)
            with open(os.path.join(once(folder), kind), "w", encoding="ascii"):
                caller.line_with('"found"')
        same(provider.wait(), 0)


@for_each(*KINDS)
def a_gateway_that_is_not_there_has_a_name_for(caller):
    with Gateway() as gateway:
        pass
    error = ask(caller, gateway.address, "call", "tools", "say", {"words": []})["error"]
    same((error["class"], error["code"], error["started"]), ("ServiceUnavailable", "service_unavailable", False))


# ---- tokens and certificates -----------------------------------------------------------


@for_each(*LANGUAGES)
def a_token_is_shown_by(language):
    with tempfile.TemporaryDirectory() as place:
        tokens = os.path.join(place, "tokens")
        token = run([PEGBOARD, "token", "new", "--token-file", tokens, "ci"]).exits(0).stdout.split()[-1]
        with Gateway("--token-file", tokens) as gateway:
            with Provider(language, gateway.address, "tools", token):
                value = ask(language, gateway.address, "call", "tools", "echo", {"value": "a"}, token=token)["value"]
                same(value["caller"], "token:ci")
                error = ask(language, gateway.address, "toolsets", token="peg_wrong")["error"]
                same((error["class"], error["code"]), ("Unauthenticated", "unauthenticated"))
            with Process(command_of(language, "tools", gateway.address, "tools", "peg_wrong")) as refused:
                same(refused.wait(), 1)  # and does not try again
                check("unauthenticated" in str(refused).lower(), refused)


@for_each(*KINDS)
def a_certificate_is_shown_by(kind):
    with tempfile.TemporaryDirectory() as place:
        path = packages.peers.make_certificates(place)
        env = [f"PEGBOARD_TLS_CA={path('ca.pem')}", f"PEGBOARD_TLS_CERT={path('client.pem')}",
               f"PEGBOARD_TLS_KEY={path('client.key')}"]
        with Gateway("--tls-cert", path("server.pem"), "--tls-key", path("server.key"), "--tls-client-ca",
                     path("ca.pem")) as gateway, Provider(kind, gateway.address, env=env):
            with Caller(kind, gateway.address, env=env) as client:
                value = client.ask("call", "tools", "echo", {"value": "a"})["value"]
                check(value["caller"].startswith("cert:client"), value)


if __name__ == "__main__":
    with at_the_end:
        main()
