# SPDX-License-Identifier: Apache-2.0
"""A provider over plain gRPC, with grpcio and nothing of Pegboard but registry.proto. Copy it; tools.py shows its use."""

import concurrent.futures
import json
import queue
import random
import sys
import threading
import time
import traceback
import uuid

import grpc
from pegboard.v1 import registry_pb2 as pb

CHUNK_BYTES = 64 << 10  # of a result in one frame
DELTA_CHARS = 16 << 10  # 64 KiB, if each has four bytes
REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED,
           grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNIMPLEMENTED}
OPTIONS = [("grpc.keepalive_time_ms", 20000), ("grpc.keepalive_timeout_ms", 10000),
           ("grpc.http2.max_pings_without_data", 0), ("grpc.max_receive_message_length", 8 << 20),
           ("grpc.use_local_subchannel_pool", 1)]  # each attempt connects anew: serve() does the waiting


class ToolError(Exception):
    """What a handler raises when the tool fails: a code for programs, and words."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Call:
    """What a handler sees of its call."""

    def __init__(self, provider, frame):
        self.provider, self.frame = provider, frame
        self.canceled = threading.Event()  # nobody waits for the result any more
        self.outcome = None  # when it has ended: the result as JSON, and the error

    def say(self, stream, text):
        """To those who listen while it runs."""
        for at in range(0, len(text), DELTA_CHARS):
            self.provider.say(delta=pb.Delta(call_id=self.frame.call_id, attempt=self.frame.attempt, stream=stream,
                                             delta=text[at:at + DELTA_CHARS]))


class Provider:
    def __init__(self, address, registration, handlers, credits=8, token=None):
        self.address, self.registration, self.handlers, self.credits = address, registration, handlers, credits
        self.metadata = [("authorization", "Bearer " + token)] if token else []
        self.incarnation = uuid.uuid4().hex  # of this run, however often it attaches
        self.n_hellos = 0
        self.calls = {}  # (call_id, attempt) -> Call: handed to us, and not acknowledged
        self.pool = concurrent.futures.ThreadPoolExecutor(credits)
        self.lock = threading.RLock()  # for what is above and below
        self.out = None  # frames to the gateway; None before its Welcome
        self.stream = None  # the last one
        self.is_draining = False  # we leave
        self.is_leaving = False  # the gateway of this stream does
        self.is_last_call_seen = False  # of this stream
        self.was_welcome = False  # ever
        self.refusal = None  # why the gateway does not want us
        self.delay_s = 0.5

    def serve(self):
        """Until drain() was called and what ran then was answered or given up, or the gateway refuses us: `refusal`
        says why."""
        while not self.is_draining or self.calls:
            try:
                with grpc.insecure_channel(self.address, OPTIONS) as channel:
                    self.attach(channel)
            except grpc.RpcError as error:
                print(f"{self.registration.name}: {error.details()}", file=sys.stderr, flush=True)
                if error.code() in REFUSED and not self.was_welcome:  # asking again would not help
                    self.refusal = error.details()
                    return
            if not self.is_draining or self.calls:
                time.sleep(self.delay_s * random.uniform(0.5, 1))
                self.delay_s = min(2 * self.delay_s, 2)  # far below lease_ms: what we run is waited for

    def attach(self, channel):
        """One stream, from Hello to its end."""
        out = queue.SimpleQueue()
        self.is_leaving = self.is_last_call_seen = False
        self.n_hellos += 1
        with self.lock:  # every call without an Ack: what is not listed we never got, and another may run it
            running = [pb.RunningCall(call_id=call.frame.call_id, attempt=call.frame.attempt, route=call.frame.route,
                                      tool=call.frame.tool) for call in self.calls.values()]
        out.put(pb.AttachRequest(hello=pb.Hello(
            toolset=self.registration.name, incarnation=self.incarnation, credits=self.credits, running=running,
            number=self.n_hellos, registration=self.registration)))
        method = channel.stream_stream("/pegboard.v1.Registry/Attach",
                                       request_serializer=pb.AttachRequest.SerializeToString,
                                       response_deserializer=pb.AttachResponse.FromString)
        stream = self.stream = method(iter(out.get, None), metadata=self.metadata)
        try:
            for frame in stream:
                with self.lock:
                    self.take(frame, out)
        finally:
            with self.lock:
                self.out = None
            stream.cancel()  # it is read no more: only then comes the next Hello
            out.put(None)

    def take(self, frame, out):
        kind = frame.WhichOneof("frame")
        if kind == "welcome":
            self.begin(out)
        elif kind == "ping":
            self.say(pong=pb.ProviderPong(ping_id=frame.ping.ping_id))
        elif kind == "call":
            self.start(frame.call)
        elif kind == "cancel":
            call = self.calls.get((frame.cancel.call_id, frame.cancel.attempt))
            if call:
                call.canceled.set()  # its result is sent all the same
        elif kind == "ack":
            self.calls.pop((frame.ack.call_id, frame.ack.attempt), None)
            self.leave_if_idle()
        elif kind in ("drain", "drained"):
            self.is_leaving |= kind == "drain"  # it finishes what runs here, and serve() attaches again
            self.is_last_call_seen = True  # none comes behind either
            self.leave_if_idle()

    def begin(self, out):
        self.out, self.was_welcome, self.delay_s = out, True, 0.5
        print(f"{self.registration.name} is offered at {self.address}", flush=True)
        for call in self.calls.values():  # what ended meanwhile, or was not acknowledged
            self.send_result(call)
        if self.is_draining:
            self.say(drain=pb.ProviderDrain())

    # ---- calls ----

    def start(self, frame):
        key = (frame.call_id, frame.attempt)
        if key in self.calls:  # never twice
            self.send_result(self.calls[key])
        elif self.is_draining or self.is_leaving:
            self.say(nak=pb.Nak(call_id=frame.call_id, attempt=frame.attempt, reason=pb.Nak.REASON_DRAINING))
        else:
            call = self.calls[key] = Call(self, frame)
            self.pool.submit(self.run, call)

    def run(self, call):
        """On a thread of the pool."""
        try:
            result = self.handlers[call.frame.tool](json.loads(call.frame.payload or b"{}"), call)
            outcome = json.dumps(result).encode(), None
        except ToolError as error:
            outcome = b"", pb.ToolError(code=error.code, message=str(error))
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            outcome = b"", pb.ToolError(code="internal", message=f"the tool broke: {type(error).__name__}")
        with self.lock:
            call.outcome = outcome
            self.send_result(call)

    def send_result(self, call):
        """In chunks. It is kept until the gateway has acknowledged it."""
        if not call.outcome:
            return
        text, error = call.outcome
        for at in range(0, len(text) or 1, CHUNK_BYTES):
            more = at + CHUNK_BYTES < len(text)
            self.say(result=pb.Result(call_id=call.frame.call_id, attempt=call.frame.attempt,
                                      chunk=text[at:at + CHUNK_BYTES], more=more, error=None if more else error))

    def say(self, **frame):
        with self.lock:
            if self.out:
                self.out.put(pb.AttachRequest(**frame))

    # ---- the end ----

    def drain(self, seconds=30):
        """No new calls, please; serve() returns when those that run have been answered, or after so long."""
        with self.lock:
            self.is_draining = True
            self.say(drain=pb.ProviderDrain())  # answered with `drained`
        timer = threading.Timer(seconds, self.give_up)
        timer.daemon = True
        timer.start()

    def give_up(self):
        """A tool does not end, or a gateway does not acknowledge: that must not keep us for ever."""
        with self.lock:
            if self.calls:
                print(f"{self.registration.name}: {len(self.calls)} calls are given up", file=sys.stderr, flush=True)
            for call in self.calls.values():
                call.canceled.set()
            self.calls.clear()
            if self.stream:
                self.stream.cancel()

    def leave_if_idle(self):
        if self.out and not self.calls and self.is_last_call_seen:
            self.out.put(None)  # ends the stream in good order
            self.out = None
