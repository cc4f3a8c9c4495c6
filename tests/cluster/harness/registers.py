# SPDX-License-Identifier: Apache-2.0
"""Which registers of calls were written on Redis, as MONITOR shows it: the truth that every caller is
to be told. Redis shows each SET NX, also one that found a value, so the values are kept here, too, until their
time is over by the clock of Redis."""

import asyncio
import contextlib
import re

from processes import encode

LINE = re.compile(rb"^\+?(\d+\.\d+) \[[^\]]*\] (.*)$")
WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
KEY = re.compile(rb"^peg:registry:\{([0-9a-f]+)\}:([ckt])(\d*)$")


def unquote(text):
    return text if b"\\" not in text else text.decode("latin1").encode().decode("unicode_escape").encode("latin1")


class Registers:
    def __init__(self, on_written, on_repeated):
        self.on_written = on_written  # (id, letter, n, value, time by Redis)
        self.on_repeated = on_repeated  # (id, letter, n): a node asked for what it has
        self.current = {}  # key: (value, unix time in ms at which it ends)
        self.task = None

    async def watch(self, redis):
        """Back when no command can be missed any more. What the server has is taken for known."""
        if self.task:
            self.task.cancel()
        reader, writer = await asyncio.open_unix_connection(redis.socket, limit=1 << 26)
        writer.write(encode(["MONITOR"]))
        assert (await reader.readline()).startswith(b"+OK")
        await self.load(redis)
        self.task = asyncio.ensure_future(self.read(reader, writer))

    async def load(self, redis):
        keys = [key for key in await redis.ask("KEYS", "peg:registry:{*}:*") if KEY.match(key)]
        values = await redis.ask("MGET", *keys) if keys else []
        ends = await redis.ask_all([("PEXPIRETIME", key) for key in keys]) if keys else []
        now = await redis.ask("TIME")
        known, self.current = self.current, {}
        for key, value, end in zip(keys, values, ends):
            if value is None:
                continue
            self.current[key] = (value, end)
            if known.get(key, (None,))[0] != value:  # written, and shown to nobody
                self.note(key, value, float(now[0]))

    async def read(self, reader, writer):
        try:
            with contextlib.suppress(OSError, asyncio.LimitOverrunError):
                while line := await reader.readline():
                    if b"peg:registry:{" in line or b"FLUSHALL" in line:
                        self.take(line.rstrip(b"\r\n"))
        finally:
            writer.transport.abort()

    def take(self, line):
        match = LINE.match(line)
        if not match:
            return
        words = [unquote(word) for word in WORD.findall(match[2])]
        verb = words[0].upper()
        if verb == b"SET" and KEY.match(words[1]):
            self.put(words, float(match[1]))
        elif verb in (b"UNLINK", b"DEL"):
            for key in words[1:]:
                self.current.pop(key, None)
        elif verb == b"FLUSHALL":
            self.current.clear()

    def put(self, words, now):
        key, value = words[1:3]
        end_ms = int(words[[word.upper() for word in words].index(b"PXAT", 3) + 1])
        current, until_ms = self.current.get(key, (None, 0))
        if until_ms <= now * 1000:
            self.current[key] = (value, end_ms)
            self.note(key, value, now)
        elif current == value:
            call_id, letter, n = KEY.match(key).groups()
            self.on_repeated(call_id.decode(), letter.decode(), int(n or 0))

    def note(self, key, value, when):
        call_id, letter, n = KEY.match(key).groups()
        self.on_written(call_id.decode(), letter.decode(), int(n or 0), value, when)

    def stop(self):
        if self.task:
            self.task.cancel()
