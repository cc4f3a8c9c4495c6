# SPDX-License-Identifier: Apache-2.0
"""What lies between a node and its Redis: it passes bytes on, late, not at all, or to another server."""

import asyncio
import contextlib
import os


class Proxy:
    def __init__(self, path):
        self.path = path
        self.target = None  # the socket of a server
        self.delay_s = 0.0
        self.is_open = False
        self.flows = asyncio.Event()
        self.flows.set()
        self.tasks = set()
        self.server = None

    async def start(self):
        self.server = await asyncio.start_unix_server(self.take, self.path)

    def open(self):
        self.is_open = True

    def close(self):
        """Both ends see that connections have ended; others are not made."""
        self.is_open = False
        self.cut()

    def cut(self):
        for task in self.tasks:
            task.cancel()

    def hold(self):
        """Nobody gets anything, and nobody learns why."""
        self.flows.clear()

    def go_on(self):
        self.flows.set()

    async def take(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        far = None
        try:
            if self.is_open:
                far_reader, far = await asyncio.open_unix_connection(self.target)
                ways = [asyncio.ensure_future(self.flow(reader, far)),
                        asyncio.ensure_future(self.flow(far_reader, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            for end in (writer, far):
                if end:
                    end.transport.abort()

    async def flow(self, reader, writer):
        queue = asyncio.Queue()
        sender = asyncio.ensure_future(self.send(queue, writer))
        try:
            loop = asyncio.get_running_loop()
            with contextlib.suppress(OSError):
                while piece := await reader.read(65536):
                    queue.put_nowait((loop.time() + self.delay_s, piece))
        finally:
            sender.cancel()

    async def send(self, queue, writer):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while True:
                due, piece = await queue.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await self.flows.wait()
                writer.write(piece)

    async def stop(self):
        self.close()
        self.server.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
