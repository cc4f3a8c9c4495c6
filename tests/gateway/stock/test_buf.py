#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `buf curl`, which knows nothing of us but what reflection tells it, can use everything that a gateway offers.
It calls every RPC of pegboard.v1, Attach as well, and watches health.

    test_buf.py PEGBOARD BUILD
"""

import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import processes  # noqa: E402
from processes import ROOT, Gateway, Process, run, same  # noqa: E402
from scenario import check, main, scenario  # noqa: E402

REGISTRY, ADMIN, HEALTH = "pegboard.v1.Registry", "pegboard.v1.Admin", "grpc.health.v1.Health"
NOT_FOUND, INVALID_ARGUMENT, UNAVAILABLE = 5, 3, 14
called = set()


def b64(value):
    return base64.b64encode(json.dumps(value).encode()).decode()


def text_of(answer):
    return json.loads(base64.b64decode(answer["result"]))


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def toolset(name):
    return {"name": name, "description": "Sums of all kinds", "version": "1.0.0", "tags": ["math"],
            "tools": [{"name": "double", "description": "Doubles n", "inputSchema": b64(SCHEMA)}]}


class Buf:
    def __init__(self, gateway):
        self.gateway = gateway
        self.program = os.path.join(processes.install_npm(), "node_modules", ".bin", "buf")

    def command(self, method, *options):
        if method.startswith("pegboard"):
            called.add(method)
        return [self.program, "curl", "--protocol", "grpc", "--http2-prior-knowledge", *options,
                f"http://{self.gateway.address}/{method}"]

    def ask(self, method, request):
        """The answer, a JSON value."""
        return json.loads(run(self.command(method, "--data", json.dumps(request))).exits(0).stdout)

    def fails(self, method, request, code):
        """What it is told, behind the name of the error, the first field of its detail."""
        ran = run(self.command(method, "--data", json.dumps(request))).exits(code << 3)
        told = json.loads(ran.stderr)
        same([detail["type"] for detail in told["details"]], ["goapb.ErrorResponse"])
        detail = base64.b64decode(told["details"][0]["value"] + "==")
        return f"{detail[2:2 + detail[1]].decode()}: {told['message']}"

    def open(self, method, request=None):
        """A stream: what is written to it is sent, message by message."""
        if request is None:
            return Stream(self.command(method, "--data", "@-"))
        return Stream(self.command(method, "--data", json.dumps(request)))


class Stream(Process):
    def message(self):
        """The next that came, a JSON value; None at the end."""
        text = ""
        while (line := self.line()) is not None:
            text += line
            if line == "}\n" or (text.startswith("{") and text.endswith("}\n") and line == text):
                return json.loads(text)
        check(not text.strip(), "half a message:", text)
        return None

    def message_with(self, part):
        while (found := self.message()) is not None:
            if part in found:
                return found[part]
        raise AssertionError(f"it ended without {part}: {self}")

    def say(self, **frame):
        self.write(json.dumps(frame) + "\n")


class Provider(Stream):
    """buf curl as a provider: the test is its handler."""

    def __init__(self, buf, name, credits=4):
        super().__init__(buf.command(f"{REGISTRY}/Attach", "--data", "@-"))
        self.say(hello={"toolset": name, "incarnation": f"buf-{name}-{os.getpid()}", "credits": credits,
                        "registration": toolset(name)})
        check("leaseMs" in self.message_with("welcome"), self)
        ping = self.message_with("ping")
        self.say(pong={"pingId": ping["pingId"]})

    def call(self):
        return self.message_with("call")

    def answer(self, call, value):
        self.say(result={"callId": call["callId"], "attempt": call["attempt"], "chunk": b64(value)})
        same(self.message_with("ack"), {"callId": call["callId"], "attempt": call["attempt"]})


def ask_for(name, n, **more):
    return {"toolset": name, "tool": "double", "payload": b64({"n": n}), **more}


# ---- the catalog ------------------------------------------------------------------------


@scenario
def toolsets_are_registered_found_and_unregistered(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        registered = buf.ask(f"{REGISTRY}/Register", toolset("sums"))
        check(registered["streamId"] and registered["registeredAt"].endswith("Z"), registered)
        listed = buf.ask(f"{REGISTRY}/ListToolsets", {"tags": ["math"]})
        same([(t["name"], t["toolCount"], t["health"]["state"]) for t in listed["toolsets"]],
             [("sums", 1, "STATE_UNHEALTHY")])
        found = buf.ask(f"{REGISTRY}/Search", {"query": "doubles"})
        same([(hit["toolset"]["name"], hit["tools"]) for hit in found["hits"]], [("sums", ["double"])])
        got = buf.ask(f"{REGISTRY}/GetToolset", {"name": "sums"})
        same(json.loads(base64.b64decode(got["tools"][0]["inputSchema"])), SCHEMA)
        same(buf.ask(f"{REGISTRY}/Unregister", {"name": "sums"}), {})
        told = buf.fails(f"{REGISTRY}/GetToolset", {"name": "sums"}, NOT_FOUND)
        check(told.startswith("not_found: ") and "sums" in told, "the names are told:", told)


@scenario
def a_watch_tells_what_is_there_and_what_changes(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        buf.ask(f"{REGISTRY}/Register", toolset("sums"))
        with buf.open(f"{REGISTRY}/Watch", {}) as watch:
            told = watch.message()
            same((told["kind"], told["toolset"]["name"]), ("KIND_PRESENT", "sums"))
            ready = watch.message()
            same({**ready, "eventId": ""}, {"kind": "KIND_READY", "eventId": ""})
            with Provider(buf, "sums"):
                told = watch.message()
                same((told["kind"], told["toolset"]["health"]["state"]), ("KIND_HEALTH", "STATE_HEALTHY"))
            told = watch.message()
            same((told["kind"], told["toolset"]["health"]["state"]), ("KIND_HEALTH", "STATE_UNHEALTHY"))
        with buf.open(f"{REGISTRY}/Watch", {"resumeAfter": ready["eventId"]}) as watch:
            same(watch.message()["kind"], "KIND_HEALTH")


@scenario
def reflection_explains_the_details_of_errors(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        for symbol, file in (("goapb.ErrorResponse", "goapb/goa.proto"),
                             ("google.rpc.Status", "google/rpc/status.proto")):
            told = buf.ask("grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           {"fileContainingSymbol": symbol})
            files = [base64.b64decode(one)
                     for one in told["fileDescriptorResponse"]["fileDescriptorProto"]]
            check(file.encode() in files[0], symbol, files)


# ---- calls ------------------------------------------------------------------------------


@scenario
def buf_provides_a_toolset_and_buf_calls_it(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        with Provider(buf, "sums") as provider, buf.open(f"{REGISTRY}/CallTool", ask_for("sums", 21)) as caller:
            call = provider.call()
            same((call["tool"], call["caller"], call["payload"]), ("double", "local", b64({"n": 21})))
            provider.answer(call, 42)
            same(text_of(caller.message()), 42)
            same(caller.wait(), 0)


@scenario
def a_caller_hears_what_the_tool_says_meanwhile(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        with Provider(buf, "sums") as provider, \
                buf.open(f"{REGISTRY}/CallToolStream", ask_for("sums", 2)) as caller:
            call = provider.call()
            same(caller.message(), {"started": {"callId": call["callId"]}})
            provider.say(delta={"callId": call["callId"], "attempt": 1, "stream": "log", "delta": "well\n"})
            same(caller.message(), {"output": {"stream": "log", "delta": "well\n"}})
            provider.answer(call, 4)
            same(text_of(caller.message()["result"]), 4)


@scenario
def a_long_call_is_started_awaited_and_canceled(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        with Provider(buf, "sums") as provider:
            first, second = (buf.ask(f"{REGISTRY}/StartTool", ask_for("sums", n)) for n in (1, 2))
            calls = [provider.call(), provider.call()]
            same([call["callId"] for call in calls], [first["callId"], second["callId"]])
            provider.answer(calls[0], 2)
            same(text_of(buf.ask(f"{REGISTRY}/AwaitTool", {"callId": first["callId"]})), 2)
            same(buf.ask(f"{REGISTRY}/CancelTool", {"callId": second["callId"]}), {})
            same(provider.message_with("cancel"), {"callId": second["callId"], "attempt": 1, "reason": "canceled"})


@scenario
def a_caller_answers_what_a_running_tool_asks(_):
    asked = {"name": {"method": "elicitation/create", "params": {"message": "Whose?"}}}
    answered = {"name": {"action": "accept", "content": {"name": "Ada"}}}
    with Gateway() as gateway:
        buf = Buf(gateway)
        with Provider(buf, "sums") as provider, \
                buf.open(f"{REGISTRY}/CallToolStream", ask_for("sums", 2, canBeAsked=True)) as caller:
            call = provider.call()
            same(caller.message(), {"started": {"callId": call["callId"]}})
            same(buf.ask(f"{REGISTRY}/DescribeCall", {"callId": call["callId"]})["state"], "STATE_RUNNING")
            same([at["callId"] for at in buf.ask(f"{REGISTRY}/ListCalls", {"state": "STATE_RUNNING"})["calls"]], [call["callId"]])
            provider.say(input={"callId": call["callId"], "attempt": 1, "number": 1, "requests": b64(asked)})
            same(caller.message(), {"question": {"number": 1, "requests": b64(asked)}})
            same(buf.ask(f"{REGISTRY}/AnswerCall",
                         {"callId": call["callId"], "number": 1, "responses": b64(answered)}), {})
            same(json.loads(base64.b64decode(provider.message_with("answer")["responses"])), answered)
            provider.answer(call, 4)
            same(text_of(caller.message()["result"]), 4)


@scenario
def a_result_and_a_pong_may_come_beside_the_stream(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        with Provider(buf, "sums") as provider, buf.open(f"{REGISTRY}/CallTool", ask_for("sums", 4)) as caller:
            call = provider.call()
            same(buf.ask(f"{REGISTRY}/EmitToolResult",
                         {"callId": call["callId"], "attempt": call["attempt"], "result": b64(8)}), {})
            same(text_of(caller.message()), 8)
            same(buf.ask(f"{REGISTRY}/Pong", {"pingId": "of-nobody", "toolset": "sums"}), {})


@scenario
def what_is_wrong_with_a_call_is_told(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        buf.ask(f"{REGISTRY}/Register", toolset("sums"))
        check("must be an integer" in buf.fails(f"{REGISTRY}/CallTool", ask_for("sums", "two"), INVALID_ARGUMENT),
              "not what is wrong")
        check("sums" in buf.fails(f"{REGISTRY}/CallTool", ask_for("sums", 2), UNAVAILABLE), "not whose fault it is")


# ---- those who run it -------------------------------------------------------------------


@scenario
def health_is_watched_while_an_admin_drains_the_node(_):
    with Gateway() as gateway:
        buf = Buf(gateway)
        same(buf.ask(f"{HEALTH}/Check", {}), {"status": "SERVING"})
        status = buf.ask(f"{ADMIN}/Status", {"withToolsets": True})
        (node,) = buf.ask(f"{ADMIN}/Nodes", {})["nodes"]
        same((node["id"], node["bus"], node["store"]), (status["node"]["id"], "local", "memory"))
        buf.ask(f"{REGISTRY}/Register", {"name": "sums", "tools": [
            {"name": "add", "inputSchema": b64({})}]})
        same(buf.ask(f"{ADMIN}/Unregister", {"toolset": "sums"}), {})
        same(buf.ask(f"{REGISTRY}/ListToolsets", {}), {})
        with buf.open(f"{HEALTH}/Watch", {}) as watch:
            same(watch.message(), {"status": "SERVING"})
            same(buf.ask(f"{ADMIN}/DrainNode", {"nodeId": node["id"], "drainMs": "1000"}), {})
            same(watch.message(), {"status": "NOT_SERVING"})
        same(gateway.wait(), 0)


@scenario
def every_rpc_of_ours_was_called(_):
    """The last one."""
    wanted = set()
    for service, name in ((REGISTRY, "registry"), (ADMIN, "admin")):
        with open(os.path.join(ROOT, "proto", "pegboard", "v1", name + ".proto"), encoding="utf-8") as file:
            wanted |= {f"{service}/{rpc}" for rpc in re.findall(r"^  rpc (\w+)\(", file.read(), re.M)}
    check(len(wanted) > 15, wanted)
    processes.install_npm()  # or this is skipped, as the others were
    same(called, wanted)


if __name__ == "__main__":
    main()
