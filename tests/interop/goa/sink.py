# SPDX-License-Identifier: Apache-2.0
"""A sink: a consumer group with a map of its consumers, a map that says when each was last alive, and a sweep that
takes over what others left. One thread drives it: poll() reads, sweeps and keeps alive as time goes by."""

import contextlib
import os
import time

from .maps import LEASE, SHA, Map
from .redis import RedisError

GRACE_S = 20.0
SWEEP_S = 0.5
LEASE_MS = 495
BLOCK_MS = 5000
ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def make_ulid():
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(ULID[number >> 5 * i & 31] for i in range(25, -1, -1))


class Entry:
    """What came from a stream."""

    __slots__ = ("id", "name", "payload")

    def __init__(self, raw):
        self.id = raw[0].decode()
        fields = dict(zip(raw[1][::2], raw[1][1::2]))
        self.name, self.payload = fields[b"n"].decode(), fields[b"p"]  # without them their reader crashes, too


class Sink:
    def __init__(self, pool, stream, name, start, generation=1, grace_s=GRACE_S):
        self.pool, self.stream, self.name, self.generation = pool, stream, name, generation
        self.key = "pulse:stream:" + stream
        self.grace_s, self.grace_ms = grace_s, int(grace_s * 1000)
        self.consumer = make_ulid()
        self.reader = pool.take()
        self.is_reading = False
        self.sinks = Map(pool, f"stream:{stream}:sinks", generation, self.reader, with_lease=True)
        self.alive = Map(pool, f"sink:{name}:keepalive", generation, self.reader)
        self.open_group(start)
        now = time.monotonic()
        self.next_sweep, self.next_alive = now + SWEEP_S, now + grace_s
        self.begin_read()

    def open_group(self, start):
        with contextlib.suppress(RedisError):  # BUSYGROUP
            self.reader.call("XGROUP", "create", self.key, self.name, start, "mkstream")
        self.reader.call("XINFO", "consumers", self.key, self.name)
        self.reader.call("XGROUP", "createconsumer", self.key, self.name, self.consumer)
        self.sinks.append(self.name, self.consumer, self.reader)
        self.alive.set(self.consumer, time.time_ns(), self.reader)

    def begin_read(self):
        self.reader.send("XREADGROUP", "group", self.name, self.consumer, "count", 1000, "block", BLOCK_MS,
                         "streams", self.key, ">")
        self.is_reading = True

    def finish_read(self):
        """Entries, and an error if the stream is gone; the next read is sent at once, as theirs is."""
        self.is_reading = False
        answer = self.reader.read()
        if isinstance(answer, RedisError):
            raise answer
        self.begin_read()
        return [Entry(raw) for raw in answer[0][1]] if answer else []

    def poll(self, timeout_s):
        """Entries that were read, or taken over from a consumer that left them; maybe none."""
        until = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            if now >= self.next_alive:
                self.next_alive = now + self.grace_s
                self.alive.set(self.consumer, time.time_ns())
            if now >= self.next_sweep:
                self.next_sweep = now + SWEEP_S
                if claimed := self.sweep():
                    return claimed
            if self.reader.has_answer(min(until, self.next_sweep) - time.monotonic()):
                return self.finish_read()
            if time.monotonic() >= until:
                return []

    # ---- what others left ----

    def sweep(self):
        self.sinks.refresh()
        self.alive.refresh()
        now_ms = int(time.time() * 1000)
        with self.pool.one() as connection:
            if not connection.call("EVALSHA", SHA[LEASE], 1, f"sink:{self.name}:stalelease", now_ms + LEASE_MS,
                                   now_ms, LEASE_MS):
                return []
            claimed = connection.call("XAUTOCLAIM", self.key, self.name, self.consumer, self.grace_ms, "0-0")[1]
            consumers = connection.call("XINFO", "consumers", self.key, self.name)
            for consumer in consumers:
                self.drop_if_stale(consumer[1].decode(), connection)
        return [Entry(raw) for raw in claimed if raw[1] is not None]

    def drop_if_stale(self, consumer, connection):
        """Twice the grace without a sign of life. What is pending for it goes, too."""
        last_ns = int(self.alive.content.get(consumer, 0))
        if consumer == self.consumer or time.time_ns() - last_ns < 2 * self.grace_s * 1e9:
            return
        connection.call("XGROUP", "delconsumer", self.key, self.name, consumer)
        self.sinks.remove(self.name, consumer)
        self.alive.delete(consumer)

    def ack(self, entry):
        self.pool.call("XACK", self.key, self.name, entry.id)

    def spin(self, n):
        """The reader of a stream that is gone asks again and again until somebody closes it."""
        for _ in range(n):
            if not self.is_reading:
                self.begin_read()
            if not self.reader.has_answer(0.05):
                break
            self.is_reading = False
            self.reader.read()

    def close(self):
        """Nothing is taken back: consumer, list and sign of life stay."""
        self.alive.close()
        self.sinks.close()
        if self.is_reading:
            self.pool.drop(self.reader)
        else:
            self.pool.give(self.reader)
