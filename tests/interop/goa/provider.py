# SPDX-License-Identifier: Apache-2.0
"""Serve: reads calls and pings of a toolset, runs a handler on a few threads, publishes, then acknowledges."""

import concurrent.futures
import contextlib
import json
import threading

from . import messages
from .redis import RedisError
from .sink import GRACE_S, Sink

MAX_RUNNING = 4
MAX_QUEUED = 64
PONG_S = 2.0


class Provider:
    """`handler(tool, payload, meta, say)` returns a value or a messages.Result, or raises a messages.Failure; say(stream,
    text) publishes output meanwhile. `pong(ping_id, timeout_s)` answers a ping. `emit(tool_use_id, answer)`, if given,
    takes results in place of the result stream: the way of generation 0."""

    def __init__(self, pool, toolset, handler, pong, generation=1, emit=None, grace_s=GRACE_S,
                 max_running=MAX_RUNNING, max_queued=MAX_QUEUED):
        self.pool, self.toolset, self.handler, self.pong = pool, toolset, handler, pong
        self.generation, self.emit = generation, emit
        self.max_at_once = max_running + max_queued
        self.n_taken, self.n_pings = 0, 0
        self.lock = threading.Lock()
        self.workers = concurrent.futures.ThreadPoolExecutor(max_running)
        self.pings = concurrent.futures.ThreadPoolExecutor(1)
        self.sink = Sink(pool, f"toolset:{toolset}:requests", "provider", "$", generation, grace_s)
        self.is_stopped = threading.Event()
        self.error = None
        self.thread = None

    def run(self):
        """Until stop(), or until publishing fails, which ends theirs too."""
        try:
            while not self.is_stopped.is_set() and not self.error:
                for entry in self.sink.poll(0.2):
                    self.take(entry)
        except (RedisError, OSError) as error:
            self.error = error
        self.workers.shutdown()
        self.pings.shutdown()
        self.sink.close()

    def take(self, entry):
        try:
            message = json.loads(entry.payload)
        except ValueError:
            message = {}
        kind = message.get("type")
        if kind == "ping":
            self.pings.submit(self.answer_ping, entry, message["ping_id"])
        elif kind != "call" or not message.get("tool_use_id") or not message.get("tool"):
            self.sink.ack(entry)  # not understood: dropped
        else:
            with self.lock:
                if self.n_taken >= self.max_at_once:
                    return  # it stays pending, and comes again after the grace
                self.n_taken += 1
            self.workers.submit(self.answer_call, entry, message)

    def answer_ping(self, entry, ping_id):
        with contextlib.suppress(Exception):  # a pong that fails is logged there
            self.pong(ping_id, PONG_S)
        self.n_pings += 1
        self.try_to(self.sink.ack, entry)

    def answer_call(self, entry, message):
        tool_use_id = message["tool_use_id"]
        stream = "result:" + tool_use_id

        def say(name, text):
            messages.add(self.pool, stream, "output_delta", messages.delta(tool_use_id, name, text))

        try:
            answer = self.handler(message["tool"], message.get("payload"), message.get("meta"), say)
        except messages.Failure as failure:
            answer = failure
        except Exception as error:  # pylint: disable=broad-except
            answer = messages.Failure("execution_failed", str(error))
        self.try_to(self.publish, stream, tool_use_id, answer)
        self.try_to(self.sink.ack, entry)
        with self.lock:
            self.n_taken -= 1

    def publish(self, stream, tool_use_id, answer):
        if self.emit:
            self.emit(tool_use_id, answer)
        else:
            messages.add(self.pool, stream, "result", messages.result(tool_use_id, answer, self.generation))

    def try_to(self, step, *arguments):
        if self.error:
            return
        try:
            step(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    # ---- in a thread ----

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.is_stopped.set()
        self.thread.join()

    def __exit__(self, *_):
        self.stop()
