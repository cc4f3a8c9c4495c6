# SPDX-License-Identifier: Apache-2.0
"""The executor: CallTool, then a sink on the result stream until a result is there, which is destroyed."""

import contextlib
import json
import time

from . import messages
from .maps import destroy_stream
from .redis import RedisError
from .sink import Sink


class Lost(Exception):
    """No result in the time of the caller's context."""


class Agent:
    """`call(toolset, tool, payload, meta)` is CallTool of the registry and returns the id and the result stream."""

    def __init__(self, pool, call, generation=1):
        self.pool, self.call, self.generation = pool, call, generation

    def execute(self, toolset, tool, payload, meta, timeout_s=60.0, on_delta=None, drops_result=False, n_spins=0):
        """A messages.Result; raises Failure and Lost.

        Theirs starts to read before anybody listens, so what comes at once may be dropped: one call in some hundreds.
        `drops_result` does it on purpose. `n_spins` is how often the reader asks for the destroyed stream."""
        tool_use_id, stream = self.call(toolset, tool, payload, meta)
        until = time.monotonic() + timeout_s
        sink = Sink(self.pool, stream, "agent", "0", self.generation)
        try:
            while drops_result and not any(entry.name == "result" for entry in self.read(sink, until)):
                if time.monotonic() >= until:
                    raise Lost(f"no result of {tool_use_id} to drop")
            answer = self.wait(sink, tool_use_id, until, on_delta)
            destroy_stream(self.pool, stream, self.generation)
            sink.spin(n_spins)
        finally:
            sink.close()
        return answer_of(answer)

    def wait(self, sink, tool_use_id, until, on_delta):
        while time.monotonic() < until:
            for entry in self.read(sink, until):
                sink.ack(entry)
                message = json.loads(entry.payload)
                if message.get("tool_use_id") != tool_use_id:
                    continue
                if entry.name == "output_delta" and on_delta:
                    on_delta(message["stream"], message["delta"])
                elif entry.name == "result":
                    return message
        raise Lost(f"no result of {tool_use_id} in time")

    @staticmethod
    def read(sink, until):
        with contextlib.suppress(RedisError):  # theirs logs it and reads on
            return sink.poll(max(0.0, until - time.monotonic()))
        sink.begin_read()
        time.sleep(0.01)
        return []


def answer_of(message):
    if "error" in message:
        error = message["error"]
        raise messages.Failure(error["code"], error["message"], error.get("issues"))
    return messages.Result(message.get("result_json"), message.get("server_data"), message.get("bounds"))
