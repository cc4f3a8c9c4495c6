# SPDX-License-Identifier: Apache-2.0
"""redis-server and gateways as processes that end with the process that started them."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess

START_S = 20
END_S = 20


def spawn(command, log, env=None):
    """Killed by the kernel when its parent ends, however that ends."""
    with open(log, "ab") as out:
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command],  # pylint: disable=consider-using-with
                                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **(env or {})})


async def ended(process, seconds=END_S):
    """Its exit code; None: it has not ended in time."""
    for _ in range(int(seconds / 0.01)):
        if process.poll() is not None:
            return process.returncode
        await asyncio.sleep(0.01)
    return None


class Clock:
    """The wall clock of a process that is started with env(): off by a step, from now on."""

    def __init__(self, path, library):
        self.path, self.library, self.step_s = path, library, 0.0
        self.set(0.0)

    def set(self, step_s):
        self.step_s = step_s
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("=q", int(step_s * 1e9)))

    def env(self):
        return {"LD_PRELOAD": self.library, "CLOCK_STEP_FILE": self.path}


class Redis:
    """A redis-server on a unix socket."""

    def __init__(self, folder, name, clock, is_durable):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.socket = os.path.join(self.folder, "s")
        self.clock, self.is_durable = clock, is_durable
        self.process = None

    async def start(self):
        keep = ["--appendonly", "yes", "--appendfsync", "always"] if self.is_durable else ["--appendonly", "no"]
        self.process = spawn(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir",
                              self.folder, "--repl-diskless-sync-delay", "0", *keep],
                             os.path.join(self.folder, "log"), self.clock.env())
        for _ in range(START_S * 100):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
                if await self.ask("PING") == b"PONG":
                    return
            await asyncio.sleep(0.01)
        raise RuntimeError("redis-server does not answer: " + self.folder)

    async def ask(self, *words):
        """One command on a connection of its own."""
        return (await self.ask_all([words]))[0]

    async def ask_all(self, commands):
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=1 << 26)
        try:
            for words in commands:
                writer.write(encode(words))
            return [await read_reply(reader) for _ in commands]
        finally:
            writer.close()

    async def kill(self):
        self.process.kill()
        await ended(self.process)


def encode(words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


async def read_reply(reader):
    line = (await reader.readuntil(b"\r\n"))[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"$":
        return None if rest == b"-1" else (await reader.readexactly(int(rest) + 2))[:-2]
    if kind == b"*":
        return [await read_reply(reader) for _ in range(int(rest))]
    if kind == b"-":
        raise ValueError(rest.decode())
    return int(rest) if kind == b":" else rest


class Node:
    """`pegboard serve`, again and again at one address."""

    def __init__(self, number, folder, port, command, clock, env=None):
        self.number, self.port, self.command, self.clock = number, port, command, clock
        self.address = f"127.0.0.1:{port}"
        self.log = os.path.join(folder, f"node{number}.log")
        self.env = env or {}
        self.process = None
        self.is_stopped = False
        self.is_leaving = False
        self.is_taken = False  # something is about to happen to it
        self.downs = []  # [from, until]: it was not there, or about to go

    async def start(self):
        self.process = spawn([*self.command, "--addr", self.address], self.log, {**self.clock.env(), **self.env})
        for _ in range(START_S * 50):
            if self.process.poll() is not None:
                return False
            if is_listening(self.port):
                self.is_leaving = False
                return True
            await asyncio.sleep(0.02)
        return False

    def is_up(self):
        return self.process is not None and self.process.poll() is None and not self.is_stopped and not self.is_leaving

    def signal(self, sign):
        if self.process.poll() is None:
            self.process.send_signal(sign)

    def stop(self):
        self.is_stopped = True
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)
        self.is_stopped = False

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


def is_listening(port):
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), 0.5):
            return True
    return False
