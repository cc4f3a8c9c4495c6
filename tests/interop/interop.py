# SPDX-License-Identifier: Apache-2.0
"""A Redis on a port, where MONITOR tells its clients apart, gateways on it, and the three gRPC services with the
peers of goa-ai on top of them."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import grpc  # noqa: E402

from goa import messages  # noqa: E402
from goa.agent import Agent  # noqa: E402
from goa.provider import Provider as Serve  # noqa: E402
from goa.redis import Connection, Pool  # noqa: E402
from ports import free_port  # noqa: E402
from world import BRIEF, WAIT_S, Failed, Gateway, await_true, is_listening, protos, v1  # noqa: E402  pylint: disable=unused-import

CHANNEL = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
TOOLSET = "bench.echo"
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
TYPES = threading.Lock()  # two threads that ask for a type at once would get two
META = {"run_id": "run-1", "session_id": "session-1"}


class Redis:
    """A redis-server; stopped, by its pid, at the end of the block."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="interop-")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        self.names = set()  # of connections of the test itself

    def __enter__(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.folder,
             "--logfile", os.path.join(self.folder, "log")])
        await_true(lambda: is_listening(self.port), "Redis listens")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(WAIT_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self):
        connection = Connection(self.address)
        self.names.add(connection.name)
        return connection

    def pool(self, size=1024):
        return Pool(self.address, size)

    def node(self, *options):
        return Gateway("--redis", "redis://" + self.address, *BRIEF, *options)

    def ask(self, *words):
        connection = self.connect()
        try:
            return connection.call(*words)
        finally:
            connection.close()


@contextlib.contextmanager
def cluster(n, *options):
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        yield redis, [stack.enter_context(redis.node(*options)) for _ in range(n)]


# ---- services -------------------------------------------------------------------------------

class Service:
    """A client of one of the services at one node."""

    package = ""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, CHANNEL)
        self.methods = {}

    def make(self, kind, **fields):
        return protos().make(f"{self.package}.{kind}", **fields)

    def method(self, verb):
        """What asks, and the type of what it is asked with."""
        with TYPES:
            if verb not in self.methods:
                service = self.package + ".Registry"
                kind = protos().pool.FindMethodByName(f"{service}.{verb}").input_type
                self.methods[verb] = protos().method(self.channel, service, verb), protos().type_of(kind)
            return self.methods[verb]

    def ask(self, verb, timeout_s=WAIT_S, **fields):
        ask, request = self.method(verb)
        try:
            return ask(request(**fields), timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as error:
            raise Failed(error) from None

    def pong(self, toolset, ping_id, timeout_s=WAIT_S):
        self.ask("Pong", timeout_s, ping_id=ping_id, toolset=toolset)

    def pong_of(self, toolset):
        return lambda ping_id, timeout_s: self.pong(toolset, ping_id, timeout_s)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def goa_any(value):
    """As goa writes it: JSON text in a Value in an Any."""
    inner = protos().make("google.protobuf.Value", string_value=messages.go_json(value))
    return protos().make("google.protobuf.Any", type_url="type.googleapis.com/google.protobuf.Value",
                         value=inner.SerializeToString())


def from_any(wrapped):
    inner = protos().make("google.protobuf.Value")
    inner.ParseFromString(wrapped.value)
    return json.loads(inner.string_value)


class V1(Service):
    package = "pegboard.v1"

    def register(self, toolset=TOOLSET, tool="echo.say", **more):
        tools = [v1("Tool", name=tool, description="echoes its text", tags=["t"], input_schema=json.dumps(TEXT).encode())]
        more.setdefault("kind", 2)
        return self.ask("Register", name=toolset, description="echoes its text", version="1.0.0", tags=["bench"],
                        tools=tools, **more).stream_id

    def call(self, toolset, tool, payload, timeout_s=WAIT_S, **more):
        """The value; raises Failure, or Failed."""
        answer = self.ask("CallTool", timeout_s, toolset=toolset, tool=tool, payload=json.dumps(payload).encode(), **more)
        if answer.HasField("error"):
            raise messages.Failure(answer.error.code, answer.error.message)
        return json.loads(answer.result)

    def emit(self, tool_use_id, answer):
        if isinstance(answer, messages.Failure):
            error = v1("ToolError", code=answer.code, message=answer.message)
            self.ask("EmitToolResult", call_id=tool_use_id, error=error)
        else:
            self.ask("EmitToolResult", call_id=tool_use_id, result=messages.go_json(answer).encode())

    def health(self, toolset):
        return self.ask("GetToolset", name=toolset).toolset.health


class G0(Service):
    package = "registry"

    def register(self, toolset=TOOLSET, tool="echo.say"):
        tools = [self.make("ToolSchema", name=tool, description="echoes its text", input_schema=json.dumps(TEXT).encode())]
        return self.ask("Register", name=toolset, description="echoes its text", version="1.0.0", tags=["bench"],
                        tools=tools).stream_id

    def call(self, toolset, tool, payload, timeout_s=WAIT_S):
        answer = self.ask("CallTool", timeout_s, toolset=toolset, tool=tool, payload=goa_any(payload))
        if answer.HasField("error"):
            raise messages.Failure(answer.error.code, answer.error.message_)
        return from_any(answer.result)

    def emit(self, tool_use_id, answer):
        if isinstance(answer, messages.Failure):
            error = self.make("ToolError", code=answer.code, message_=answer.message)
            self.ask("EmitToolResult", tool_use_id=tool_use_id, error=error)
        else:
            self.ask("EmitToolResult", tool_use_id=tool_use_id, result=goa_any(answer))


class G1(Service):
    """Of generation 2, too: its answers have the date in the place of the stream, and no stream of results."""

    package = "goa_ai_registry"

    def __init__(self, address, generation=1):
        super().__init__(address)
        self.generation = generation

    def register(self, toolset=TOOLSET, tool="echo.say", result_schema=b"{}"):
        tools = [self.make("ToolSchema", name=tool, description="echoes its text", tags=["t"],
                           payload_schema=json.dumps(TEXT).encode(), result_schema=result_schema)]
        answer = self.ask("Register", name=toolset, description="echoes its text", version="1.0.0", tags=["bench"],
                          tools=tools)
        return answer.stream_id if self.generation == 1 else f"toolset:{toolset}:requests"

    def call(self, toolset, tool, payload, meta):
        answer = self.ask("CallTool", toolset=toolset, tool=tool, payload_json=messages.go_json(payload).encode(),
                          meta=meta)
        return answer.tool_use_id, answer.result_stream_id if self.generation == 1 else "result:" + answer.tool_use_id


def echo(tool, payload, meta, say):
    """The handler of the captures."""
    del tool, meta, say
    return payload


def talk(tool, payload, meta, say):
    """One that brings all that a call may bring."""
    del tool
    if payload["text"] == "fail":
        raise messages.Failure("too_sad", "not <today>")
    say("stdout", "one ")
    say("stdout", "two")
    return messages.Result({"run": meta["run_id"]}, [{"kind": "k", "audience": "internal", "data": {"a": 1}}])


@contextlib.contextmanager
def serving(redis, service, handler=echo, toolset=TOOLSET, **more):
    """A provider of theirs that pongs by `service`, in a thread; it is ready when its group reads."""
    pool = redis.pool()
    with Serve(pool, toolset, handler, service.pong_of(toolset), **more) as provider:
        yield provider
    pool.close()


def keys(redis, pattern):
    return {key.decode() for key in redis.ask("KEYS", pattern)}


def agent_of(redis, service, generation=1):
    return Agent(redis.pool(), service.call, generation)


def await_healthy(address, toolset=TOOLSET):
    """At a node: theirs have no word for it, so ours is asked."""
    with V1(address) as service:
        def is_healthy():
            try:
                return service.health(toolset).state == 1
            except Failed:
                return False
        await_true(is_healthy, f"{toolset} is healthy at {address}")


def needs_redis():
    """Prints that the program is skipped if there is no redis-server."""
    if shutil.which("redis-server"):
        return True
    print("1..0 # SKIP redis-server is not installed")
    return False
