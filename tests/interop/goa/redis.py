# SPDX-License-Identifier: Apache-2.0
"""Connections to Redis as go-redis makes them: a pool of bounded size, and one connection for each subscription."""

import collections
import contextlib
import select
import socket
import threading
import time

# What go-redis waits for a connection of its pool: its read timeout and a second.
POOL_WAIT_S = 4.0
PING_S = 3.0


class RedisError(Exception):
    """An answer that is an error, or a pool that has no connection to give."""


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


class Connection:
    """RESP2, one question at a time, or several in one write."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.at = b"", 0
        self.name = "%s:%d" % self.socket.getsockname()

    def send(self, *words):
        self.socket.sendall(encode(words))

    def fill(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise ConnectionError("Redis closed the connection")
        self.buffer, self.at = self.buffer[self.at:] + more, 0

    def read_line(self):
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            self.fill()
        line, self.at = self.buffer[self.at:end], end + 2
        return line

    def read_bytes(self, n):
        while len(self.buffer) - self.at < n + 2:
            self.fill()
        found, self.at = self.buffer[self.at:self.at + n], self.at + n + 2
        return found

    def read(self):
        """The next answer: bytes, a number, a list, None, or a RedisError (returned, not raised)."""
        line = self.read_line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"-":
            return RedisError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.read_bytes(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise ConnectionError(f"not RESP: {line[:80]}")

    def finish(self):
        """The answer to what was sent, raised if it is an error."""
        answer = self.read()
        if isinstance(answer, RedisError):
            raise answer
        return answer

    def call(self, *words):
        self.send(*words)
        return self.finish()

    def call_many(self, commands):
        """The same commands in the same order, in one write: for Redis no different, for us less work."""
        self.socket.sendall(b"".join(encode(words) for words in commands))
        return [self.finish() for _ in commands]

    def has_answer(self, timeout_s=0.0):
        if self.at < len(self.buffer):
            return True
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        return bool(waiting.poll(max(0, int(timeout_s * 1000))))

    def close(self):
        self.socket.close()


class Pool:
    """Connections for commands. A blocked read keeps one; those of subscriptions are not counted."""

    def __init__(self, address, size=1024):
        self.address, self.size = address, size
        self.free, self.n_open = collections.deque(), 0
        self.names = set()
        self.changed = threading.Condition()

    def take(self):
        until = time.monotonic() + POOL_WAIT_S
        with self.changed:
            while not self.free and self.n_open >= self.size:
                if not self.changed.wait(until - time.monotonic()):
                    raise RedisError("redis: connection pool timeout")
            if self.free:
                return self.free.pop()
            self.n_open += 1
        return self.open()

    def open(self):
        connection = Connection(self.address)
        self.names.add(connection.name)
        return connection

    def give(self, connection):
        with self.changed:
            self.free.append(connection)
            self.changed.notify()

    def drop(self, connection):
        connection.close()
        with self.changed:
            self.n_open -= 1
            self.changed.notify()

    @contextlib.contextmanager
    def one(self):
        connection = self.take()
        try:
            yield connection
        except RedisError:
            self.give(connection)
            raise
        except BaseException:
            self.drop(connection)
            raise
        else:
            self.give(connection)

    def call(self, *words):
        with self.one() as connection:
            return connection.call(*words)

    def close(self):
        with self.changed:
            while self.free:
                self.drop_locked(self.free.pop())

    def drop_locked(self, connection):
        connection.close()
        self.n_open -= 1


class Subscription:
    """One channel, on a connection of its own, which asks after the server when nothing comes."""

    def __init__(self, pool, channel):
        self.channel = channel
        self.connection = pool.open()
        self.connection.call("SUBSCRIBE", channel)
        self.next_ping = time.monotonic() + PING_S

    def messages(self):
        """What has come since."""
        now = time.monotonic()
        if now >= self.next_ping:
            self.connection.send("PING")
            self.next_ping = now + PING_S
        while self.connection.has_answer():
            kind, *rest = self.connection.finish()
            if kind == b"message":
                yield rest[1]

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.send("UNSUBSCRIBE", self.channel)
            while self.connection.finish()[0] != b"unsubscribe":
                pass
        self.connection.close()
