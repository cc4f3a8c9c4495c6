# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a schedule: each is a coroutine that does it, waits, and repairs it."""

import asyncio
import signal
import time

from processes import ended


class Faults:
    """Drawn by the seed of the schedule from those that its plan has."""

    def __init__(self, world):
        self.world, self.dice, self.history, self.plan = world, world.dice, world.history, world.plan
        self.tasks = set()
        self.redis_lock = asyncio.Lock()  # one thing at a time

    def pick(self):
        """A node that something may happen to, one thing at a time: one node is left alone."""
        nodes = [node for node in self.world.nodes if node.is_up() and not node.is_taken]
        n_up = sum(node.is_up() for node in self.world.nodes)
        return self.dice.choice(nodes) if nodes and n_up > 1 else None

    def spread(self, lease_parts_least, lease_parts_most):
        return self.dice.uniform(lease_parts_least, lease_parts_most) * self.plan.lease_s

    async def run(self, until):
        while time.monotonic() < until and self.plan.faults:
            await asyncio.sleep(self.dice.uniform(0.1, 2 * self.plan.pause_s))
            if time.monotonic() < until:
                task = asyncio.ensure_future(getattr(self, self.dice.choice(self.plan.faults))())
                self.tasks.add(task)
        await self.done()

    async def done(self):
        """All that was begun is repaired."""
        for result in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    # ---- nodes ----

    async def kill(self):
        node = self.pick()
        if not node:
            return
        fault = self.history.fault("kill", node=node.number)
        down = [time.monotonic(), None]
        node.downs.append(down)
        node.is_leaving = True
        node.signal(signal.SIGKILL)
        await ended(node.process)  # until then it listens, and would be taken for the next one
        await asyncio.sleep(self.dice.choice((self.dice.uniform(0, 0.3), self.spread(0.5, 2))))
        await self.again(node, fault, down)

    async def again(self, node, fault, down):
        for _ in range(20):  # Redis may be away
            if await node.start():
                break
            await asyncio.sleep(0.3)
        else:
            raise RuntimeError(f"node {node.number} does not start again: {node.text()[-500:]}")
        down[1] = fault["until"] = time.monotonic()

    async def stop(self):
        node = self.pick()
        if not node:
            return
        delay = self.dice.choice((0, 0.1))
        fault = self.history.fault("stop", node=node.number, delay=delay)
        proxy = self.world.proxies[node.number]
        node.is_taken = True
        if delay:  # so that replies are on their way
            proxy.delay_s = delay
            await asyncio.sleep(3 * delay)
        node.stop()
        fault["stopped"] = time.monotonic()
        await asyncio.sleep(self.spread(0.5, 2.5))
        node.go_on()
        node.is_taken = False
        proxy.delay_s = 0.0
        fault["until"] = time.monotonic()

    async def drain(self, node=None):
        node = node or self.pick()
        if not node:
            return
        fault = self.history.fault("drain", node=node.number)
        down = [time.monotonic(), None]
        node.downs.append(down)
        node.is_leaving = True
        node.signal(signal.SIGTERM)
        for _ in range(int((self.plan.drain_s + 10) / 0.02)):
            if node.process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        else:
            raise RuntimeError(f"node {node.number} does not end: {node.text()[-500:]}")
        await self.again(node, fault, down)

    # ---- providers ----

    async def kill_provider(self):
        fault = self.history.fault("kill_provider")
        i = self.dice.randrange(len(self.world.providers))
        old = self.world.providers[i]
        fault["provider"] = old.incarnation
        if old.is_dead:
            fault["until"] = time.monotonic()
            return
        await old.kill()
        await asyncio.sleep(self.dice.uniform(0, 1))
        self.world.providers[i] = self.world.make_provider(old.toolset)
        fault["until"] = time.monotonic()

    async def cut_provider(self):
        fault = self.history.fault("cut_provider")
        provider = self.dice.choice(self.world.providers)
        fault["provider"] = provider.incarnation
        provider.cut()
        fault["until"] = time.monotonic()

    # ---- the way to Redis ----

    async def cut(self):
        """Connections break, of some nodes or of all; for a moment, or for longer than a lease."""
        proxies = self.some_proxies()
        fault = self.history.fault("cut", nodes=[proxy.number for proxy in proxies])
        wait_s = self.dice.choice((0, 0, self.dice.uniform(0, 0.5), self.spread(0.5, 2)))
        async with self.redis_lock:
            for proxy in proxies:
                if wait_s:
                    proxy.close()
                else:
                    proxy.cut()
            await asyncio.sleep(wait_s)
            for proxy in proxies:
                proxy.open()
        fault["until"] = time.monotonic()

    async def hold(self):
        """Nothing arrives, and nobody learns why; then all of it does."""
        proxies = self.some_proxies()
        fault = self.history.fault("hold", nodes=[proxy.number for proxy in proxies])
        for proxy in proxies:
            proxy.hold()
        await asyncio.sleep(self.spread(0.1, 2))
        for proxy in proxies:
            proxy.go_on()
        fault["until"] = time.monotonic()

    async def delay(self):
        proxies = self.some_proxies()
        fault = self.history.fault("delay", nodes=[proxy.number for proxy in proxies])
        for proxy in proxies:
            proxy.delay_s = self.dice.choice((0.01, 0.05, 0.2))
        await asyncio.sleep(self.spread(0.5, 2))
        for proxy in proxies:
            proxy.delay_s = 0.0
        fault["until"] = time.monotonic()

    def some_proxies(self):
        proxies = list(self.world.proxies.values())
        return proxies if self.dice.random() < 0.3 else [self.dice.choice(proxies)]

    # ---- Redis ----

    def open_all(self):
        for proxy in self.world.proxies.values():
            proxy.open()

    def close_all(self):
        for proxy in self.world.proxies.values():
            proxy.close()

    async def restart(self):
        async with self.redis_lock:
            redis = self.world.redis
            fault = self.history.fault("restart", durable=redis.is_durable)
            epoch = self.begin_epoch(is_lossy=not redis.is_durable)
            await redis.kill()
            self.close_all()
            await asyncio.sleep(self.dice.choice((0, self.dice.uniform(0, 1), self.spread(0.5, 1.5))))
            await redis.start()
            await self.world.registers.watch(redis)
            self.open_all()
            self.end_epoch(fault, epoch, not redis.is_durable)

    async def flush(self):
        async with self.redis_lock:
            fault = self.history.fault("flush")
            epoch = self.begin_epoch(is_lossy=True)
            await self.world.redis.ask("FLUSHALL")
            self.end_epoch(fault, epoch, True)

    async def failover(self):
        """To the replica, which may lack what the primary has acknowledged; the proxies lead there."""
        async with self.redis_lock:
            old, new = self.world.redis, self.world.replica
            if not new:
                return
            self.world.replica = None
            lag_s = self.dice.choice((0, 0.05, 0.3))
            fault = self.history.fault("failover", lag=lag_s)
            epoch = self.begin_epoch(is_lossy=True)
            if lag_s:
                self.world.replication.hold()
                await asyncio.sleep(lag_s)
            self.close_all()
            await asyncio.sleep(0.05)  # for what MONITOR still shows
            self.world.replication.close()
            await new.ask("REPLICAOF", "NO", "ONE")
            self.world.use_redis(new)
            await self.world.registers.watch(new)
            self.open_all()
            await old.kill()
            self.end_epoch(fault, epoch, True)

    def begin_epoch(self, is_lossy):
        epoch = [time.monotonic(), float("inf")]
        self.history.epochs.append(epoch)
        if is_lossy:
            self.history.losses.append(time.monotonic())
        return epoch

    def end_epoch(self, fault, epoch, is_lossy):
        """Nodes learn of it within a second, or when they connect again."""
        fault["until"] = time.monotonic()
        epoch[1] = time.monotonic() + 6.0
        if is_lossy:
            self.history.losses.append(time.monotonic())

    # ---- clocks ----

    async def step_redis(self):
        async with self.redis_lock:
            fault = self.history.fault("step_redis")
            epoch = self.begin_epoch(is_lossy=False)
            self.history.steps.append(time.monotonic())
            self.world.redis_clock.set(self.step())
            seconds, microseconds = await self.world.redis.ask("TIME")
            if abs(int(seconds) + int(microseconds) / 1e6 - self.world.cluster_now()) > 0.2:
                raise RuntimeError("the clock of Redis was set, and it has another time")
            self.end_epoch(fault, epoch, False)

    async def step_node(self):
        node = self.dice.choice(self.world.nodes)
        fault = self.history.fault("step_node", node=node.number)
        node.clock.set(self.step())
        fault["until"] = time.monotonic()

    def step(self):
        return self.dice.choice((-1, 1)) * self.dice.choice((0.3, 1.0, 5.0, 20.0)) * self.dice.random()


NODES = ("kill", "stop", "drain")
PROVIDERS = ("kill_provider", "cut_provider")
NETWORK = ("cut", "hold", "delay")
REDIS = ("restart", "flush", "failover")
CLOCKS = ("step_redis", "step_node")
