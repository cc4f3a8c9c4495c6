# SPDX-License-Identifier: Apache-2.0
"""Callers over stock gRPC, at all nodes: with and without an identity, with little time, of streams, and
some that leave or cancel. Each question and its end is an Ask of the history."""

import asyncio
import itertools
import time

import grpc

from history import Ask
from messages import CHANNEL, error_of, method, v1

# The gateway ends a call long before: at its deadline, or once a node that stood still goes on.
PATIENCE_S = 40.0
# One that asks again while it is refused or cut off: longer than any fault.
RETRY_S = 15.0
CHANNELS = 2  # of each node: with several loops they lie on several
TOOLS = (("quick", 50), ("slow", 18), ("stubborn", 8), ("safe", 12), ("fails", 6), ("talks", 6))


class Callers:
    def __init__(self, world):
        self.world, self.dice, self.history = world, world.dice, world.history
        self.numbers = itertools.count(world.first_number)
        self.channels = {node.number: [grpc.aio.insecure_channel(node.address, CHANNEL) for _ in range(CHANNELS)]
                         for node in world.nodes}
        self.pending = set()

    async def close(self):
        for channels in self.channels.values():
            for channel in channels:
                await channel.close()

    # ---- one question ----

    def begin(self, verb, node, request, timeout_s):
        channel = self.dice.choice(self.channels[node.number])
        return method(channel, verb)(request, timeout=timeout_s)

    def request(self, n, tool, key, timeout_s):
        return v1("CallToolRequest", toolset=self.world.toolset_of(n), tool=tool, payload=b'{"n":%d}' % n,
                  idempotency_key=key or "", timeout_ms=int(timeout_s * 1000))

    async def ask(self, verb, node, n, tool, key, timeout_s=None, leaves_after=None, is_patient=False):
        ask = Ask(n, tool, key, node.number, verb)
        ask.is_patient = is_patient
        timeout_s = ask.timeout_s = timeout_s or self.world.plan.call_s
        self.history.asks.append(ask)
        rpc = self.begin(verb, node, self.request(n, tool, key, timeout_s), PATIENCE_S)
        if leaves_after is not None:
            asyncio.get_running_loop().call_later(leaves_after, rpc.cancel)
        await self.finish(ask, self.read_stream(rpc, ask) if verb == "CallToolStream" else rpc)
        return ask

    async def read_stream(self, rpc, ask):
        answer = None
        async for event in rpc:
            kind = event.WhichOneof("event")
            if kind == "started":
                ask.call_id = event.started.call_id
            elif kind == "output":
                self.history.call(ask.call_id).outputs.append(event.output.delta.encode().hex())
            else:
                answer = event.result
        return answer

    async def finish(self, ask, awaited):
        try:
            self.take_answer(ask, await awaited)
        except grpc.RpcError as error:
            self.take_error(ask, error)
        except asyncio.CancelledError:
            ask.end = "left"
        ask.ended = time.monotonic()

    @staticmethod
    def take_answer(ask, answer):
        ask.call_id, ask.started, ask.is_refused, ask.message = answer.call_id, True, False, ""
        ask.end = "error" if answer.error.code else "result"
        bare = v1("CallToolResponse")
        bare.CopyFrom(answer)
        bare.call_id = ""
        bare.attached = False
        ask.response = bare.SerializeToString().hex()

    @staticmethod
    def take_error(ask, error):
        name, trailers = error_of(error)
        ask.message = error.details() or ""
        ask.started = trailers.get("pegboard-started") == "true"
        ask.call_id = trailers.get("pegboard-call-id", ask.call_id)
        if name:
            ask.end = name
            ask.is_refused = "pegboard-call-id" not in trailers or (name == "timeout" and ask.started)
        elif error.code() == grpc.StatusCode.UNAVAILABLE:
            ask.end = "cut"
        elif error.code() == grpc.StatusCode.CANCELLED:
            ask.end = "left"
        else:
            ask.end, ask.message = "lost", f"{error.code()} {ask.message}"

    # ---- callers of each kind ----

    async def until_taken(self, verb, n, tool, key, node=None, **more):
        """Asks again, elsewhere, while it is cut off or refused and nothing was started."""
        until = time.monotonic() + RETRY_S
        while True:
            ask = await self.ask(verb, node or self.world.any_node(), n, tool, key, is_patient=True, **more)
            is_again = ask.end == "cut" or (ask.is_refused and not ask.started and
                                            ask.end in ("service_unavailable", "overloaded", "timeout"))
            if not is_again or time.monotonic() > until:
                return ask
            node = None
            await asyncio.sleep(self.dice.uniform(0.05, 0.3))

    async def keyed(self, n, tool):
        """The same identity at several nodes, at once and later."""
        key = f"key-{n}"
        first = asyncio.ensure_future(self.until_taken("CallTool", n, tool, key))
        others = [asyncio.ensure_future(self.later(n, tool, key)) for _ in range(self.dice.choice((0, 1, 1, 2, 3)))]
        await asyncio.gather(first, *others)

    async def later(self, n, tool, key):
        await asyncio.sleep(self.dice.choice((0.0, self.dice.uniform(0, 0.1), self.dice.uniform(0, 3.0))))
        leaves = self.dice.random() < 0.1 and self.world.plan.kind != "rolling"  # the last one to leave cancels
        leaves_after = self.dice.uniform(0, 0.5) if leaves else None
        verb = "CallToolStream" if self.dice.random() < 0.2 else "CallTool"
        await self.until_taken(verb, n, tool, key, leaves_after=leaves_after)

    async def started_and_awaited(self, n, tool):
        """Asked for at one node, awaited at another, and sometimes canceled at a third."""
        key = f"key-{n}"
        ask = Ask(n, tool, key, -1, "AwaitTool")
        ask.timeout_s, ask.is_patient = self.world.plan.call_s, True
        self.history.asks.append(ask)
        request = self.request(n, tool, key, ask.timeout_s)
        started = await self.named("StartTool", request, ask)
        if not started:
            return
        ask.call_id = started.call_id
        if self.dice.random() < 0.2:
            await asyncio.sleep(self.dice.uniform(0, 0.3))
            await self.named("CancelTool", v1("CancelToolRequest", call_id=started.call_id), None)
        await self.named("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id, timeout_ms=20000), ask)

    async def named(self, verb, request, ask):
        until = time.monotonic() + RETRY_S
        while True:
            node = self.world.any_node()
            rpc = self.begin(verb, node, request, PATIENCE_S)
            try:
                answer = await rpc
                if verb == "AwaitTool":
                    self.take_answer(ask, answer)
                    ask.ended = time.monotonic()
                return answer
            except grpc.RpcError as error:
                probe = ask or Ask(0, "", "", node.number, verb)
                self.take_error(probe, error)
                probe.node, probe.ended = node.number, time.monotonic()
                is_again = probe.end == "cut" or (probe.is_refused and probe.end in (
                    "service_unavailable", "overloaded", "timeout"))
                if not is_again or time.monotonic() > until:
                    return None
            except asyncio.CancelledError:
                if ask:
                    ask.end, ask.ended = "left", time.monotonic()
                return None
            await asyncio.sleep(self.dice.uniform(0.05, 0.3))

    def tool(self):
        return self.dice.choices([name for name, _ in TOOLS], [share for _, share in TOOLS])[0]

    async def unkeyed(self, verb, n, tool):
        """One that moves on when its node goes, as ours does; else each question stands for itself."""
        if self.world.plan.kind == "rolling":
            await self.until_taken(verb, n, tool, None)
        else:
            await self.ask(verb, self.world.any_node(), n, tool, None)

    async def one(self):
        n, tool, roll = next(self.numbers), self.tool(), self.dice.random()
        if roll < 0.42:
            await self.unkeyed("CallTool", n, tool)
        elif roll < 0.70:
            await self.keyed(n, tool)
        elif roll < 0.78:
            await self.ask("CallTool", self.world.any_node(), n, tool, None,
                           leaves_after=self.dice.choice((0.002, 0.02, 0.2)) * self.dice.random())
        elif roll < 0.88:
            key = f"key-{n}" if self.dice.random() < 0.4 else None
            await self.ask("CallTool", self.world.any_node(), n, tool, key, self.dice.choice((0.02, 0.1, 0.4, 1.0)))
        elif roll < 0.94:
            await self.unkeyed("CallToolStream", n, tool)
        else:
            await self.started_and_awaited(n, tool)

    async def work(self, pause_s):
        while time.monotonic() < self.world.until:
            await self.one()
            await asyncio.sleep(self.dice.uniform(0, 2 * pause_s))
