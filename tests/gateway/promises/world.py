# SPDX-License-Identifier: Apache-2.0
"""A real gateway, providers that do as they are told, and callers: all over loopback."""

import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.append(os.path.join(ROOT, "tests"))

from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

WAIT_S = 30
START_S = 60

# Who is lost is given up soon, and who is silent is unhealthy after four seconds; but not for a moment in
# which a machine has no time for a process.
BRIEF = ("--lease", "3s")
SILENT = ("--ping-interval", "1s", "--missed-ping-threshold", "3")

# With two loops every other connection lies on another one: most calls go from loop to loop.
THREADS = ["--threads", os.environ["PEG_TEST_THREADS"]] if "PEG_TEST_THREADS" in os.environ else []

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


# ---- messages ---------------------------------------------------------------------------

class Protos:
    """Messages and methods from what protoc reads: no code is generated."""

    def __init__(self):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["protoc", "-I", os.path.join(ROOT, "proto"), "--include_imports",
                            "--descriptor_set_out=" + out.name, "pegboard/v1/registry.proto",
                            "pegboard/v1/admin.proto", "registry/registry.proto",
                            "goa_ai_registry/registry.proto", "goapb/goa.proto",
                            "google/rpc/status.proto", "google/protobuf/struct.proto"], check=True)
            files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
        self.pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self.pool.Add(file)
        self.factory = message_factory.MessageFactory(self.pool)

    def type_of(self, descriptor):
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return self.factory.GetPrototype(descriptor)

    def make(self, kind, /, **fields):
        return self.type_of(self.pool.FindMessageTypeByName(kind))(**fields)

    def method(self, channel, service, verb):
        method = self.pool.FindMethodByName(f"{service}.{verb}")
        kind = ("stream" if method.client_streaming else "unary") + "_" + \
               ("stream" if method.server_streaming else "unary")
        return getattr(channel, kind)(
            f"/{service}/{verb}",
            request_serializer=self.type_of(method.input_type).SerializeToString,
            response_deserializer=self.type_of(method.output_type).FromString)


PROTOS = None


def protos():
    global PROTOS  # pylint: disable=global-statement
    if not PROTOS:
        PROTOS = Protos()
    return PROTOS


def v1(kind, /, **fields):
    return protos().make("pegboard.v1." + kind, **fields)


def tool(name="add", **fields):
    fields.setdefault("input_schema", json.dumps(SCHEMA).encode())
    return v1("Tool", name=name, description="adds", **fields)


def toolset(name, *tools, **fields):
    return v1("RegisterRequest", name=name, tools=tools or [tool()], **fields)


# ---- the gateway ------------------------------------------------------------------------

def stand_back():
    """From here on this process has what others leave of the processors. In CI that may be nothing
    for a minute, as other tests run beside it."""
    if "CI" not in os.environ:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def as_usual():
    """From here on this thread, and those that it starts, do not stand back."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def usual(*command):
    """A command that does not stand back, whoever starts it. (Not by preexec_fn: that forks with the threads of gRPC,
    which it does not always survive.)"""
    stands_back = os.sched_getscheduler(0) == os.SCHED_IDLE
    return ("chrt", "--other", "0", *command) if stands_back else command


class Gateway:
    """`pegboard serve` in a folder of its own; stopped, by its pid, at the end of the block."""

    def __init__(self, *arguments, folder=None, port=None, env=None):
        self.folder = folder or tempfile.mkdtemp(prefix="promises-")
        self.is_own = folder is None
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = os.path.join(self.folder, "gateway.log")
        self.arguments = arguments
        self.env = env or {}
        self.process = None

    def start(self):
        log = open(self.log, "a", encoding="utf-8")  # pylint: disable=consider-using-with
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("REGISTRY_", "REDIS_", "MONGO_", "PEGBOARD_", "PING_"))}
        environment.update(self.env)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            usual(PEGBOARD, "serve", "--addr", self.address, "--data-dir",
                  os.path.join(self.folder, "data"), *THREADS, *self.arguments),
            stdout=log, stderr=log, env=environment)
        log.close()
        await_true(lambda: self.process.poll() is not None or all(map(is_listening, self.ports())),
                   "the gateway listens", START_S)
        if self.process.poll() is not None:
            raise AssertionError("the gateway did not start: " + self.said()[-500:])
        return self

    def ports(self):
        """--admin-addr is the last at which it listens."""
        named = [address for option, address in zip(self.arguments, self.arguments[1:])
                 if option == "--admin-addr"]
        return [self.port] + [int(address.rpartition(":")[2]) for address in named
                              if not address.endswith(":0")]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        if self.is_own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, sign=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sign)
            if sign == signal.SIGTERM:  # a second one does not wait for what a test has left
                try:
                    self.process.wait(1)
                except subprocess.TimeoutExpired:
                    self.process.send_signal(sign)
        code = self.process.wait(WAIT_S)
        said = self.said()
        if "Sanitizer:" in said:  # also of what happens when it ends, and nobody asks it any more
            raise AssertionError(said[max(0, said.index("Sanitizer:") - 200):][:4000])
        return code

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


def is_listening(port):
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    return False


def await_true(condition, what, seconds=WAIT_S):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"not in {seconds} s: {what}")


def token_file(gateway):
    return os.path.join(gateway.folder, "tokens")


def make_token(gateway, name, *options):
    made = subprocess.run([PEGBOARD, "token", "new", "--token-file", token_file(gateway), *options,
                           name],
                          check=True, capture_output=True, text=True)
    return made.stdout.split()[-1]


# ---- callers ----------------------------------------------------------------------------

class Failed(Exception):
    """An RPC that failed: its name, code, words and trailers."""

    def __init__(self, error):
        super().__init__(f"{error.code()} {error.details()}")
        self.code = error.code()
        self.message = error.details()
        self.trailers = dict(error.trailing_metadata() or ())
        self.name = ""
        details = self.trailers.get("grpc-status-details-bin")
        if details:
            status = protos().make("google.rpc.Status")
            status.ParseFromString(details)
            detail = protos().make("goapb.ErrorResponse")
            detail.ParseFromString(status.details[0].value)
            self.name = detail.name
            assert len(status.details) == 1, "one detail, no more"

    @property
    def started(self):
        return self.trailers.get("pegboard-started")


class Caller:
    def __init__(self, gateway, token=None, service="pegboard.v1.Registry", credentials=None):
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
                   ("grpc.max_receive_message_length", -1)]
        if credentials:
            self.channel = grpc.secure_channel(gateway.address, credentials, options)
        else:
            self.channel = grpc.insecure_channel(gateway.address, options)
        self.service = service
        self.metadata = (("authorization", "Bearer " + token),) if token else ()

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def method(self, verb, service=None):
        return protos().method(self.channel, service or self.service, verb)

    def ask(self, verb, request, timeout=WAIT_S, metadata=(), service=None):
        try:
            return self.method(verb, service)(request, timeout=timeout,
                                              metadata=self.metadata + tuple(metadata),
                                              wait_for_ready=True)
        except grpc.RpcError as error:
            raise Failed(error) from None

    def begin(self, verb, request, timeout=WAIT_S, metadata=()):
        """A future."""
        return self.method(verb).future(request, timeout=timeout,
                                        metadata=self.metadata + tuple(metadata))

    def call(self, name, tool_name="add", payload=b'{"n":1}', timeout=WAIT_S, metadata=(), **more):
        return self.ask("CallTool", v1("CallToolRequest", toolset=name, tool=tool_name,
                                       payload=payload, **more), timeout, metadata)

    def start_call(self, name, tool_name="add", payload=b'{"n":1}', timeout=WAIT_S, **more):
        return self.begin("CallTool", v1("CallToolRequest", toolset=name, tool=tool_name,
                                         payload=payload, **more), timeout)

    def health(self, name):
        return self.ask("GetToolset", v1("GetToolsetRequest", name=name)).toolset.health


def queued(caller):
    """How many calls wait for a provider."""
    status = caller.ask("Status", v1("StatusRequest"), service="pegboard.v1.Admin")
    return status.queued


def outcome(future):
    try:
        return future.result(WAIT_S)
    except grpc.RpcError as error:
        raise Failed(error) from None


def failure(future):
    try:
        raise AssertionError(f"it did not fail: {outcome(future)}")
    except Failed as error:
        return error


@contextlib.contextmanager
def fails_as(name, code=None):
    try:
        yield (holder := {})
    except Failed as error:
        holder["error"] = error
        assert error.name == name, f"{error.name} {error.message}, not {name}"
        assert code is None or error.code == code, f"{error.code}, not {code}"
        return
    raise AssertionError(f"it did not fail with {name}")


# ---- providers --------------------------------------------------------------------------

class Provider:
    """A raw Attach stream: what comes is put aside, what goes is what the test says."""

    def __init__(self, gateway, name, *tools, credits=4, incarnation=None, running=(),
                 registers=True, token=None, answers_pings=True, number=1, caller=None):
        self.caller = caller or Caller(gateway, token)
        self.name = name
        self.incarnation = incarnation or "test-" + uuid.uuid4().hex
        self.answers_pings = answers_pings
        self.out = queue.Queue()
        self.calls = queue.Queue()
        self.cancels = queue.Queue()
        self.acks = queue.Queue()
        self.answers = queue.Queue()
        self.drains = queue.Queue()
        self.offereds = queue.Queue()
        self.welcome = None
        self.last_ping = ""
        self.welcomed = threading.Event()
        self.ended = threading.Event()
        self.error = None
        hello = v1("Hello", toolset=name, incarnation=self.incarnation, credits=credits,
                   running=running, number=number)
        if registers:
            hello.registration.CopyFrom(toolset(name, *tools))
        self.say(hello=hello)
        self.stream = self.caller.method("Attach")(self.frames(), metadata=self.caller.metadata)
        threading.Thread(target=self.read, daemon=True).start()

    def frames(self):
        """What goes, until it is None."""
        yield from iter(self.out.get, None)

    def read(self):
        try:
            for frame in self.stream:
                self.take(frame)
        except grpc.RpcError as error:
            self.error = Failed(error)
        self.ended.set()
        self.welcomed.set()

    def take(self, frame):
        kind = frame.WhichOneof("frame")
        if kind == "welcome":
            self.welcome = frame.welcome
            self.welcomed.set()
        elif kind == "ping":
            self.last_ping = frame.ping.ping_id
            if self.answers_pings:
                self.say(pong=v1("ProviderPong", ping_id=frame.ping.ping_id))
        elif kind in ("call", "cancel", "ack", "answer", "drain", "offered"):
            getattr(self, kind + "s").put(getattr(frame, kind))

    def say(self, **frame):
        self.out.put(v1("AttachRequest", **frame))

    def ready(self):
        assert self.welcomed.wait(WAIT_S), "no Welcome"
        if self.error:
            raise self.error
        return self

    def offer(self, *tools):
        """Other tools, which are registered and served when it returns."""
        self.say(offer=v1("Offer", registration=toolset(self.name, *tools)))
        offered = self.offereds.get(timeout=WAIT_S)
        assert offered.revision, f"{offered.error}: {offered.message}"

    def next_call(self):
        return self.calls.get(timeout=WAIT_S)

    def has_no_call(self, seconds=0.3):
        try:
            return self.calls.get(timeout=seconds) is None
        except queue.Empty:
            return True

    def answer(self, call, result=b"1", **more):
        self.say(result=v1("Result", call_id=call.call_id, attempt=call.attempt, chunk=result,
                           **more))

    def fail(self, call, code, message):
        self.answer(call, b"", error=v1("ToolError", code=code, message=message))

    def listed(self, call):
        return v1("RunningCall", call_id=call.call_id, attempt=call.attempt, route=call.route,
                  tool=call.tool)

    def cut(self):
        """As a program that gives up: its stream is reset, its connection closed. Without a word
        go those whose Wire is cut, and a ProviderProcess that is killed."""
        self.stream.cancel()
        self.caller.close()

    def leave(self):
        self.out.put(None)
        self.ended.wait(WAIT_S)
        self.caller.close()

    def __enter__(self):
        return self.ready()

    def __exit__(self, *_):
        self.cut()


class Echo(threading.Thread):
    """Answers every call of a provider with its number until it is stopped."""

    def __init__(self, provider, seconds=0.0):
        super().__init__(daemon=True)
        self.provider, self.seconds, self.n = provider, seconds, 0
        self.is_stopped = False
        self.start()

    def run(self):
        while not self.is_stopped:
            with contextlib.suppress(queue.Empty):
                call = self.provider.calls.get(timeout=0.1)
                if self.seconds:
                    time.sleep(self.seconds)
                self.n += 1
                self.provider.answer(call, json.dumps(json.loads(call.payload)["n"]).encode())


PEGBOARD = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PEGBOARD", "pegboard")
