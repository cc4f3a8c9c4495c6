#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One schedule: what a seed makes of nodes, Redis, providers, callers and faults. Started by chaos.py;
result.json in its folder has what came of it."""

import asyncio
import json
import os
import random
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.dont_write_bytecode = True

import grpc  # noqa: E402

import checks  # noqa: E402
import faults  # noqa: E402
from callers import Callers  # noqa: E402
from history import History  # noqa: E402
from messages import CHANNEL, method, v1  # noqa: E402
from ports import free_port  # noqa: E402
from processes import Clock, Node, Redis  # noqa: E402
from providers import Provider  # noqa: E402
from proxy import Proxy  # noqa: E402
from registers import Registers  # noqa: E402

TOOLSETS = ("first", "second")
READY_S = 20
LEFT_S = 20
KINDS = {
    "calm": ((), 2),
    "nodes": (faults.NODES, 16),
    "stops": (("stop",), 8),
    "providers": (faults.PROVIDERS, 8),
    "network": (faults.NETWORK, 12),
    "redis": (faults.REDIS, 12),
    "clocks": (faults.CLOCKS, 6),
    "kept": (faults.NODES + faults.PROVIDERS + faults.NETWORK + faults.CLOCKS, 18),
    "rolling": (("drain",), 3),
    "all": (faults.NODES + faults.PROVIDERS + faults.NETWORK + faults.REDIS + faults.CLOCKS, 18),
}


class Plan:
    """Everything that the seed decides before it begins."""

    def __init__(self, seed, kind=None, seconds=None):
        dice = random.Random(seed)
        self.seed = seed
        drawn = dice.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
        self.kind = kind or drawn
        self.faults = KINDS[self.kind][0]
        self.n_nodes = dice.choice((3, 3, 4, 5))
        self.threads = [dice.choice((1, 1, 2)) for _ in range(self.n_nodes)]
        self.is_durable = dice.random() < 0.5
        self.lease_s = dice.choice((1.5, 2.0, 3.0))
        self.n_providers = dice.choice((2, 3))  # of each toolset
        self.credits = dice.choice((4, 16, 64))
        self.nak = dice.choice((0.0, 0.0, 0.05))
        self.n_callers = dice.choice((40, 60, 80))
        self.pause_s = dice.choice((0.3, 0.7, 1.5))  # between faults
        drawn_seconds = dice.uniform(6, 9)
        self.seconds = seconds or drawn_seconds
        self.call_s, self.drain_s = 4.0, 5.0
        if self.kind == "rolling":  # nothing is to fail, so there is time and room for everything
            self.n_nodes, self.n_providers, self.credits, self.n_callers, self.nak = 3, 2, 64, 30, 0.0
            self.call_s, self.drain_s = 15.0, 30.0

    def describe(self):
        return (f"seed {self.seed}: {self.kind}, {self.n_nodes} nodes, threads {self.threads}, lease {self.lease_s} s, "
                f"{'AOF' if self.is_durable else 'nothing kept'}, {self.n_providers} providers of each toolset")


class World:
    def __init__(self, plan, folder, tools):
        self.plan, self.folder, self.tools = plan, folder, tools
        self.dice = random.Random(plan.seed * 7919 + 1)
        self.history = History()
        self.first_number = 1
        self.redis_clock = Clock(os.path.join(folder, "redis.clock"), tools["clock_step"])
        self.redis = Redis(folder, "r1", self.redis_clock, plan.is_durable)
        self.replica = self.replication = None
        if "failover" in plan.faults:
            self.replica = Redis(folder, "r2", self.redis_clock, plan.is_durable)
        self.registers = Registers(self.history.on_written, self.history.on_repeated)
        self.proxies = {}
        self.nodes = []
        self.providers = []
        self.callers = None
        self.until = float("inf")  # then callers ask no more
        self.tasks = []

    # ---- for callers, providers and faults ----

    def any_node(self):
        return self.dice.choice(self.nodes)

    def pick_node(self, provider):
        """Of a node for a provider. Where nodes are drained in turn those of a toolset are at different ones, as
        behind a load balancer: else all of them drain at once, and for a moment nobody runs its calls."""
        nodes = [node for node in self.nodes if node.is_up()] or self.nodes
        if self.plan.kind == "rolling":
            taken = [other.bound_for for other in self.providers if other.toolset == provider.toolset]
            nodes = [node for node in nodes if node.number not in taken] or nodes
        return self.dice.choice(nodes)

    @staticmethod
    def toolset_of(n):
        return TOOLSETS[n % len(TOOLSETS)]

    def cluster_now(self):
        return time.time() + self.redis_clock.step_s

    def make_provider(self, toolset):
        return Provider(self, toolset, self.plan.credits)

    def use_redis(self, redis):
        self.redis = redis
        for proxy in self.proxies.values():
            proxy.target = redis.socket

    # ---- from the first process to the last ----

    async def start(self):
        await self.redis.start()
        if self.replica:
            await self.start_replica()
        await self.registers.watch(self.redis)
        for number in range(self.plan.n_nodes):
            await self.add_node(number)
        for ok in await asyncio.gather(*(node.start() for node in self.nodes)):
            if not ok:
                raise RuntimeError("a node does not start: " + self.nodes[0].text()[-500:])
        self.providers = [self.make_provider(toolset) for toolset in TOOLSETS for _ in range(self.plan.n_providers)]
        self.callers = Callers(self)
        self.tasks.append(asyncio.ensure_future(self.watch_lag()))
        await self.await_service()

    async def start_replica(self):
        """Replication needs TCP, and goes by a proxy of its own."""
        await self.replica.start()
        ports = [free_port(), free_port()]
        await self.redis.ask("CONFIG", "SET", "port", ports[0])
        self.replication = Proxy(os.path.join(self.folder, "replication"))
        self.replication.target = self.redis.socket
        self.replication.open()
        self.replication.server = await asyncio.start_server(self.replication.take, "127.0.0.1", ports[1])
        await self.replica.ask("REPLICAOF", "127.0.0.1", ports[1])
        for _ in range(READY_S * 50):
            if b"master_link_status:up" in await self.replica.ask("INFO", "replication"):
                return
            await asyncio.sleep(0.02)
        raise RuntimeError("the replica does not connect")

    async def add_node(self, number):
        proxy = Proxy(os.path.join(self.folder, f"p{number}"))
        proxy.number, proxy.target = number, self.redis.socket
        await proxy.start()
        proxy.open()
        self.proxies[number] = proxy
        lease_ms = int(self.plan.lease_s * 1000)
        command = [self.tools["pegboard"], "serve", "--redis", "unix://" + proxy.path, "--lease", f"{lease_ms}ms",
                   "--threads", str(self.plan.threads[number]), "--drain-time", f"{int(self.plan.drain_s)}s",
                   "--ping-interval", "1s", "--result-mapping-ttl", "2m"]
        clock = Clock(os.path.join(self.folder, f"node{number}.clock"), self.tools["clock_step"])
        self.nodes.append(Node(number, self.folder, free_port(), command, clock, self.tools["env"]))

    async def watch_lag(self):
        """What this process notices late is nobody's fault."""
        while True:
            due = time.monotonic() + 0.05
            await asyncio.sleep(0.05)
            late = time.monotonic() - due
            if late > 0.02:
                self.history.lags.append((time.monotonic(), late))

    async def await_service(self):
        """Every node has every toolset, and answers."""
        until = time.monotonic() + READY_S
        for node in self.nodes:
            for toolset in TOOLSETS:
                while not await self.is_served(node, toolset):
                    if time.monotonic() > until:
                        raise RuntimeError(f"{toolset} is not served at node {node.number} when all is repaired")
                    await asyncio.sleep(0.1)

    async def is_served(self, node, toolset):
        try:
            channel = self.callers.channels[node.number][0]
            answer = await method(channel, "GetToolset")(v1("GetToolsetRequest", name=toolset), timeout=3)
            return answer.toolset.health.state == 1
        except grpc.RpcError:
            return False

    async def run(self):
        self.history.began = time.monotonic()
        callers = [asyncio.ensure_future(self.callers.work(0.12)) for _ in range(self.plan.n_callers)]
        chaos = asyncio.ensure_future(self.roll() if self.plan.kind == "rolling" else self.disturb())
        done, late = await asyncio.wait([chaos, *callers], timeout=self.plan.seconds + 90)
        for task in done:
            task.result()
        if late:
            raise RuntimeError(f"{len(late)} callers, or a fault, do not come to an end")
        await self.await_service()
        return await self.left()

    async def disturb(self):
        self.until = time.monotonic() + self.plan.seconds
        await faults.Faults(self).run(self.until)

    async def roll(self):
        """Every node is drained and started again, one after the other, for as long as that takes."""
        for node in self.nodes:
            await faults.Faults(self).drain(node)
            await self.await_service()
        self.until = time.monotonic() + 0.5

    async def left(self):
        """Calls that nodes still hold when every caller has its end."""
        until = time.monotonic() + LEFT_S
        while True:
            held = {}
            for node in self.nodes:
                channel = grpc.aio.insecure_channel(node.address, CHANNEL)
                status = await method(channel, "Status", "pegboard.v1.Admin")(v1("StatusRequest"), timeout=20,
                                                                              wait_for_ready=True)
                if status.in_flight or status.queued:
                    held[node.number] = (status.in_flight, status.queued)
                await channel.close()
            if not held or time.monotonic() > until:
                return held
            await asyncio.sleep(0.2)

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        for provider in self.providers:
            await provider.kill()
        if self.callers:
            await self.callers.close()
        self.registers.stop()
        processes = [node.process for node in self.nodes if node.process]
        processes += [redis.process for redis in (self.redis, self.replica) if redis and redis.process]
        for process in processes:
            process.kill()
            process.wait(10)
        for proxy in [*self.proxies.values(), *([self.replication] if self.replication else [])]:
            await proxy.stop()


async def main(arguments):
    plan = Plan(arguments["seed"], arguments.get("kind"), arguments.get("seconds"))
    print(plan.describe(), flush=True)
    world = World(plan, arguments["folder"], arguments["tools"])
    problems, counts = [], {}
    try:
        try:
            await world.start()
            left = await world.run()
            if left:
                kept = [(call_id, attempt, bool(entry[1]), provider.attached_at) for provider in world.providers
                        for (call_id, attempt), entry in provider.running.items()]
                problems.append(("leak", f"calls are left at the nodes (in flight, queued): {left}; at providers: {kept}"))
        except RuntimeError as error:
            problems.append(("harness", str(error)))
        except Exception:  # pylint: disable=broad-except
            problems.append(("harness", traceback.format_exc()))
    finally:
        await world.stop()
        world.history.write(os.path.join(arguments["folder"], "history.jsonl"))
    found, counts = checks.check(world, arguments["tools"]["check_history"])
    with open(os.path.join(arguments["folder"], "result.json"), "w", encoding="utf-8") as file:
        json.dump({"seed": plan.seed, "kind": plan.kind, "plan": plan.describe(), "problems": problems + found,
                   "counts": counts}, file)
    os._exit(0)  # gRPC has nothing to say any more, but says it


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
