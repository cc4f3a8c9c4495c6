# SPDX-License-Identifier: Apache-2.0
"""Providers over stock gRPC: each runs its tools, comes back with what it runs when its stream breaks,
and goes to another node when its node drains."""

import asyncio
import contextlib
import json
import time
import uuid

import grpc

from messages import CHANNEL, method, v1

SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}).encode()
# name: (idempotent, seconds it takes at least and at most, does as it is told when canceled)
TOOLS = {
    "quick": (False, 0.0, 0.02, True),
    "slow": (False, 0.05, 1.2, True),
    "stubborn": (False, 0.1, 3.0, False),
    "safe": (True, 0.0, 1.0, True),
    "fails": (False, 0.0, 0.1, True),
    "talks": (False, 0.05, 0.4, True),
}
WELCOME_S = 10


class Stream:
    def __init__(self, node):
        self.node = node
        self.out = asyncio.Queue()
        self.is_leaving = False


class Provider:
    def __init__(self, world, toolset, credits):
        self.world, self.toolset, self.credits = world, toolset, credits
        self.incarnation = "chaos-" + uuid.uuid4().hex[:20]
        self.n_hellos = 0
        self.running = {}  # (call id, attempt): [frame, result frame or None, stream or None]
        self.tasks = set()
        self.rpcs = set()
        self.is_dead = False
        self.attached_at = self.bound_for = self.current = None
        self.task = asyncio.ensure_future(self.live())

    # ---- streams ----

    async def live(self):
        while not self.is_dead:
            self.bound_for = None
            node = self.world.pick_node(self)
            self.bound_for = node.number
            stream = Stream(node.number)
            drained = asyncio.Event()
            task = self.keep(asyncio.ensure_future(self.attach(node, stream, drained)))
            waits = self.keep(asyncio.ensure_future(drained.wait()))
            await asyncio.wait([task, waits], return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()
            if not drained.is_set():
                await asyncio.sleep(self.world.dice.uniform(0.0, 0.1))

    async def attach(self, node, stream, drained):
        """Until the stream ends."""
        channel = grpc.aio.insecure_channel(node.address, CHANNEL)
        self.n_hellos += 1
        listed = [v1("RunningCall", call_id=call_id, attempt=attempt, route=entry[0].route, tool=entry[0].tool)
                  for (call_id, attempt), entry in self.running.items()]
        hello = v1("Hello", toolset=self.toolset, incarnation=self.incarnation, credits=self.credits,
                   number=self.n_hellos, running=listed, registration=registration(self.toolset))
        stream.out.put_nowait(v1("AttachRequest", hello=hello))
        rpc = method(channel, "Attach")(self.frames(stream))
        self.rpcs.add(rpc)
        try:
            await self.read(rpc, stream, node, drained)
        except (grpc.RpcError, asyncio.CancelledError, asyncio.TimeoutError):
            pass
        finally:
            self.rpcs.discard(rpc)
            rpc.cancel()
            if self.current is stream:
                self.current = self.attached_at = None
            for entry in self.running.values():
                if entry[2] is stream:
                    entry[2] = None
            with contextlib.suppress(Exception):
                await channel.close()
        self.resend()

    @staticmethod
    async def frames(stream):
        while (frame := await stream.out.get()) is not None:
            yield frame

    async def read(self, rpc, stream, node, drained):
        first = await asyncio.wait_for(rpc.read(), WELCOME_S)
        if first is grpc.aio.EOF or first.WhichOneof("frame") != "welcome":
            return
        self.attached_at = node.number
        self.current = stream
        self.resend()
        while (frame := await rpc.read()) is not grpc.aio.EOF and not self.is_dead:
            kind = frame.WhichOneof("frame")
            if kind == "call":
                self.take(frame.call, stream)
            elif kind == "cancel":
                self.cancel(frame.cancel)
            elif kind == "ping":
                self.say(stream, pong=v1("ProviderPong", ping_id=frame.ping.ping_id))
            elif kind == "ack":
                entry = self.running.get((frame.ack.call_id, frame.ack.attempt))
                if entry and entry[1]:
                    del self.running[frame.ack.call_id, frame.ack.attempt]
            elif kind == "drain":
                stream.is_leaving = True
                drained.set()

    @staticmethod
    def say(stream, **frame):
        stream.out.put_nowait(v1("AttachRequest", **frame))

    def resend(self):
        """What has no stream any more goes by the newest."""
        stream = self.current
        if not stream or stream.is_leaving:
            return
        for entry in self.running.values():
            if entry[2] is None:
                entry[2] = stream
                if entry[1]:
                    self.say(stream, result=entry[1])

    def keep(self, task):
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    # ---- calls ----

    def take(self, call, stream):
        history, world = self.world.history, self.world
        if stream.is_leaving:
            self.say(stream, nak=v1("Nak", call_id=call.call_id, attempt=call.attempt, reason=2))
            return
        if world.dice.random() < world.plan.nak:
            self.say(stream, nak=v1("Nak", call_id=call.call_id, attempt=call.attempt, reason=1))
            return
        record = history.call(call.call_id)
        record.n, record.tool = json.loads(call.payload)["n"], call.tool
        record.starts.append((time.monotonic(), call.attempt, self.incarnation, call.deadline_unix_ms / 1000,
                              world.cluster_now(), stream.node))
        entry = [call, None, stream]
        self.running[call.call_id, call.attempt] = entry
        entry.append(self.keep(asyncio.ensure_future(self.run(call, entry, record))))

    async def run(self, call, entry, record):
        _, least, most, _ = TOOLS[call.tool]
        world = self.world
        k = len(record.starts)
        if call.tool == "talks":
            self.talk(call, entry, record, k)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(world.dice.uniform(least, most))
        if self.is_dead:
            return
        self.answer(call, entry, record, k)

    def talk(self, call, entry, record, k):
        text = f"{record.n}-{k}"
        record.produced.append(text.encode().hex())
        if entry[2]:
            self.say(entry[2], delta=v1("Delta", call_id=call.call_id, attempt=call.attempt, stream="stdout",
                                        delta=text))

    def answer(self, call, entry, record, k):
        fields = {"error": v1("ToolError", code="no", message=str(record.n))} if call.tool == "fails" else {}
        chunk = b"" if fields else b"%d" % (record.n * 1000 + k)
        record.produced.append(v1("CallToolResponse", result=chunk, **fields).SerializeToString().hex())
        record.answered.append((time.monotonic(), self.incarnation))
        entry[1] = v1("Result", call_id=call.call_id, attempt=call.attempt, chunk=chunk, **fields)
        if entry[2]:
            self.say(entry[2], result=entry[1])

    def cancel(self, frame):
        entry = self.running.get((frame.call_id, frame.attempt))
        if entry and not entry[1] and TOOLS[entry[0].tool][3]:
            entry[3].cancel()

    # ---- accidents ----

    def cut(self):
        """Its connections break; it comes back."""
        for rpc in list(self.rpcs):
            rpc.cancel()

    async def kill(self):
        """It is gone with all that it runs."""
        self.is_dead = True
        self.cut()
        for task in [self.task, *self.tasks]:
            task.cancel()
        await asyncio.gather(self.task, *self.tasks, return_exceptions=True)


def registration(toolset):
    return v1("RegisterRequest", name=toolset, tools=[
        v1("Tool", name=name, description=name, input_schema=SCHEMA, idempotent=kind[0])
        for name, kind in TOOLS.items()])
