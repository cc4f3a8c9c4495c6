# SPDX-License-Identifier: Apache-2.0
"""The provider's side of Attach: docs/providers.md has the protocol."""

from __future__ import annotations

import asyncio
import queue
import random
import sys
import threading
import time
import uuid
from typing import Any, Callable, Sequence

import grpc

from . import _run, errors
from ._call import Call
from ._link import Link
from ._protos import method, v1
from ._schema import Mismatch
from ._tool import Tool

CHUNK_BYTES = 64 << 10  # of a result in one frame
KEPT_BYTES_MAX = 64 << 20  # of results that a gateway does not acknowledge
FRAMES_MAX = 256  # that wait for the stream: deltas beyond them are left out
FIRST_DELAY_S = 0.5
WELCOME_S = 20.0  # a gateway that has not welcomed us by then is passed over
LAST_DELAY_S = 2.0  # far below lease_ms: what we run is waited for
FINAL = {"validation_error", "limit_exceeded", "permission_denied", "unauthenticated", "conflict"}
UNREGISTERED = {"not_found", "permission_denied"}
Log = Callable[[str], None]


def log_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Handed:
    """A call that was handed to us, until its Ack."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.outcome: _run.Outcome | None = None  # when it has ended


class Provider:
    """Offers tools until drain(). serve() does the reading, each handler has a thread, or is a task on `loop`."""

    def __init__(self, link: Link, registration: Any, tools: Sequence[Tool[Any, Any]], *, concurrency: int = 8,
                 log: Log = log_to_stderr, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.link, self.registration, self.credits, self.log = link, registration, concurrency, log
        self.tools = {tool.name: tool for tool in tools}
        self.incarnation = uuid.uuid4().hex  # of this run, however often it attaches
        self.n_hellos = 0
        self.delay_s = FIRST_DELAY_S
        self.calls: dict[tuple[str, int], Handed] = {}  # without an Ack
        self.kept_bytes = 0  # of their results
        self.lock = threading.RLock()  # for what is above and below
        self.out: queue.SimpleQueue[Any] | None = None  # frames to the gateway; None before its Welcome
        self.stream: Any = None  # the last one
        self.wakes = threading.Event()  # a pause is over when it is set
        self.is_draining = False  # we leave
        self.is_welcome = False  # on this stream
        self.is_leaving = False  # the gateway of this stream does
        self.is_last_call_seen = False  # of this stream
        self._loop = loop

    def serve(self) -> None:
        """Until drain() was called and what ran then was answered or given up. PegboardError: the gateway refuses us,
        and would do so again."""
        while not self.is_draining or self.calls:
            address = self.link.addresses[self.n_hellos % len(self.link.addresses)]
            with self.link.channel(address) as channel:
                self._attach_once(channel, address)
            if self.is_draining and not self.calls:
                return
            if self.n_hellos % len(self.link.addresses) == 0:  # all have been tried
                self._pause()

    def _pause(self) -> None:
        seconds = self.delay_s * random.uniform(0.5, 1)
        self.delay_s = min(2 * self.delay_s, LAST_DELAY_S)
        if self.is_draining:
            time.sleep(seconds)
        else:
            self.wakes.wait(seconds)

    def _attach_once(self, channel: Any, address: str) -> None:
        try:
            self._attach(channel, address)
        except grpc.RpcError as error:
            failed = errors.from_rpc(error)
            if self.is_draining and not self.calls:
                return
            self.log(f"{self.registration.name}: {failed.message} ({failed.name})")
            if failed.name in (UNREGISTERED if self.is_welcome else FINAL) or \
                    error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise failed from None

    def _attach(self, channel: Any, address: str) -> None:
        """One stream, from Hello to its end."""
        out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.is_welcome = self.is_leaving = self.is_last_call_seen = False
        self.n_hellos += 1
        with self.lock:  # every call without an Ack: what is not listed we never got, and another may run it
            running = [v1("RunningCall", call_id=call.id, attempt=call.attempt, route=call.frame.route, tool=call.tool)
                       for call in (handed.call for handed in self.calls.values())]
        out.put(v1("AttachRequest", hello=v1(
            "Hello", toolset=self.registration.name, incarnation=self.incarnation, credits=self.credits,
            running=running, number=self.n_hellos, registration=self.registration)))
        stream = self.stream = method(channel, "Attach")(iter(out.get, None), metadata=self.link.metadata)
        patience = threading.Timer(WELCOME_S, self._pass_over, [stream, address])
        patience.daemon = True
        patience.start()
        try:
            for frame in stream:
                with self.lock:
                    self._take(frame, out, address)
                if self.is_leaving and len(self.link.addresses) > 1:
                    return  # the next one gets a list that is true, and the results
        finally:
            patience.cancel()
            with self.lock:
                self.out = None
            stream.cancel()  # it is read no more: only then comes the next Hello
            out.put(None)

    def _pass_over(self, stream: Any, address: str) -> None:
        with self.lock:
            if stream is self.stream and not self.is_welcome:
                self.log(f"{self.registration.name}: {address} does not answer")
                stream.cancel()

    def _take(self, frame: Any, out: queue.SimpleQueue[Any], address: str) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "welcome":
            self._begin(out, address)
        elif kind == "ping":
            self._send(pong=v1("ProviderPong", ping_id=frame.ping.ping_id))
        elif kind == "call":
            self._start(frame.call)
        elif kind == "cancel":
            handed = self.calls.get((frame.cancel.call_id, frame.cancel.attempt))
            if handed:
                handed.call._cancel()  # pylint: disable=protected-access  # its result is sent all the same
        elif kind == "ack":
            self._forget((frame.ack.call_id, frame.ack.attempt))
            self._leave_if_idle()
        elif kind in ("drain", "drained"):
            self.is_leaving |= kind == "drain"  # it finishes what runs here, and serve() attaches again
            self.is_last_call_seen = True  # none comes behind either
            self._leave_if_idle()

    def _begin(self, out: queue.SimpleQueue[Any], address: str) -> None:
        self.out, self.is_welcome, self.delay_s = out, True, FIRST_DELAY_S
        self.log(f"{self.registration.name} is offered at {address}")
        for handed in self.calls.values():  # what ended meanwhile, or was not acknowledged
            self._send_result(handed)
        if self.is_draining:
            self._send(drain=v1("ProviderDrain"))

    # ---- calls ----

    def _start(self, frame: Any) -> None:
        key = (frame.call_id, frame.attempt)
        if key in self.calls:  # never twice
            self._send_result(self.calls[key])
        elif self.is_draining or self.is_leaving:
            self._send_nak(frame, "REASON_DRAINING")
        elif self.kept_bytes > KEPT_BYTES_MAX:
            self._send_nak(frame, "REASON_OVERLOADED")
        elif frame.tool not in self.tools:
            self._send_nak(frame, "REASON_OUTDATED")
        else:
            handed = self.calls[key] = Handed(Call(frame, lambda stream, text: self._send_delta(frame, stream, text)))
            self._start_handler(handed)

    def _start_handler(self, handed: Handed) -> None:
        """On a thread that does not keep the process, or on the loop."""
        if _run.is_async(self.tools[handed.call.tool]):
            loop = self._loop = self._loop or _loop_of_a_thread()
            loop.call_soon_threadsafe(self._start_task, loop, handed)
        else:
            threading.Thread(target=self._work, args=(handed,), daemon=True).start()

    def _work(self, handed: Handed) -> None:
        arguments = self._arguments(handed)
        if arguments is not None:
            self._end(handed, _run.run(self.tools[handed.call.tool], arguments, handed.call, self.log))

    def _start_task(self, loop: asyncio.AbstractEventLoop, handed: Handed) -> None:
        arguments = self._arguments(handed)
        if arguments is None:
            return
        task = loop.create_task(_run.run_async(self.tools[handed.call.tool], arguments, handed.call, self.log))
        task.add_done_callback(lambda done: self._end(handed, done.result() if not done.cancelled() else _run.Outcome(
            b"", v1("ToolError", code="canceled", message="the call was canceled"))))
        handed.call._on_cancel(  # pylint: disable=protected-access
            lambda: None if loop.is_closed() else _ignore(loop.call_soon_threadsafe(task.cancel)))

    def _arguments(self, handed: Handed) -> dict[str, Any] | None:
        """None: the call has had its answer."""
        call = handed.call
        tool = self.tools[call.tool]
        try:
            arguments = tool.arguments(call.frame.payload)
        except Mismatch:  # somebody has registered another version of this tool
            with self.lock:
                self._forget((call.id, call.attempt))
                self._send_nak(call.frame, "REASON_OUTDATED")
            return None
        except Exception as error:  # a class of arguments may raise anything  # pylint: disable=broad-except
            self._end(handed, _run.failure(error, call, self.log))
            return None
        return {**arguments, tool.call_parameter: call} if tool.call_parameter else arguments

    def _end(self, handed: Handed, outcome: _run.Outcome) -> None:
        with self.lock:
            handed.outcome = outcome
            if (handed.call.id, handed.call.attempt) in self.calls:  # not given up
                self.kept_bytes += outcome.size
                self._send_result(handed)

    def _forget(self, key: tuple[str, int]) -> None:
        handed = self.calls.pop(key, None)
        if handed and handed.outcome:
            self.kept_bytes -= handed.outcome.size

    # ---- frames ----

    def _send_result(self, handed: Handed) -> None:
        """In chunks. It is kept until the gateway has acknowledged it."""
        if not handed.outcome:
            return
        text, error, server_data = handed.outcome
        for at in range(0, len(text) or 1, CHUNK_BYTES):
            more = at + CHUNK_BYTES < len(text)
            self._send(result=v1("Result", call_id=handed.call.id, attempt=handed.call.attempt,
                                 chunk=text[at:at + CHUNK_BYTES], more=more, error=None if more else error,
                                 server_data=() if more else server_data))

    def _send_delta(self, frame: Any, stream: str, text: str) -> None:
        with self.lock:
            if self.out and self.out.qsize() < FRAMES_MAX:
                self._send(delta=v1("Delta", call_id=frame.call_id, attempt=frame.attempt, stream=stream, delta=text))

    def _send_nak(self, frame: Any, reason: str) -> None:
        self._send(nak=v1("Nak", call_id=frame.call_id, attempt=frame.attempt, reason=reason))

    def _send(self, **frame: Any) -> None:
        with self.lock:
            if self.out:
                self.out.put(v1("AttachRequest", **frame))

    # ---- the end ----

    def drain(self, seconds: float = 30) -> None:
        """No new calls, please; serve() returns when those that run have been answered, or after so long."""
        with self.lock:
            self.is_draining = True
            self._send(drain=v1("ProviderDrain"))  # answered with `drained`
            if not self.out and not self.calls and self.stream:
                self.stream.cancel()  # it waits for a Welcome
        self.wakes.set()
        timer = threading.Timer(seconds, self._give_up)
        timer.daemon = True
        timer.start()

    def _give_up(self) -> None:
        """A tool does not end, or a gateway does not acknowledge: that must not keep us for ever."""
        with self.lock:
            if self.calls:
                self.log(f"{self.registration.name}: {len(self.calls)} calls are given up")
            for handed in self.calls.values():
                handed.call._cancel()  # pylint: disable=protected-access
            self.calls.clear()
            if self.stream:
                self.stream.cancel()

    def _leave_if_idle(self) -> None:
        if self.out and not self.calls and self.is_last_call_seen:
            self.out.put(None)  # ends the stream in good order
            self.out = None


def _ignore(_: Any) -> None:
    pass


def _loop_of_a_thread() -> asyncio.AbstractEventLoop:
    """For async handlers of a program that has no loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop
