# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio: connect() gives a client whose methods are awaited, serve() runs handlers on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, AsyncIterator, Mapping, Sequence

import grpc
import grpc.aio

from . import _requests as requests
from ._definitions import Definitions
from ._link import Addresses, Link, make_link
from ._protos import method, v1
from ._requests import TIMEOUT_S, Arguments, Output, Reply, Result, Started, Toolset
from ._serve import SIGNALS, Background, make_provider
from ._tool import Tool

__all__ = ["Client", "connect", "serve"]


def connect(registry: Addresses = None, *, token: str | None = None, tls_ca: str | None = None,
            tls_cert: str | None = None, tls_key: str | None = None) -> Client:
    """As pegboard.connect(). Call it where the loop runs."""
    return Client(make_link(registry, token, tls_ca, tls_cert, tls_key))


class Client:
    """As pegboard.Client. A call is canceled when the task that awaits it is."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._channels = [link.channel(address, grpc.aio) for address in link.addresses]

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- calls ----

    async def call(self, toolset: str, tool: str, arguments: Arguments = None, *, timeout: float | None = TIMEOUT_S,
                   idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> Any:
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        return requests.value_of(await self._ask("CallTool", request, requests.deadline_of(timeout)))

    async def stream(self, toolset: str, tool: str, arguments: Arguments = None, *,
                     timeout: float | None = TIMEOUT_S, idempotency_key: str | None = None,
                     metadata: Mapping[str, str] | None = None) -> AsyncIterator[Started | Output | Result]:
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        attempts = requests.Attempts(self._link, "CallToolStream", request, requests.deadline_of(timeout))
        for channel in attempts.each(self._channels):
            responses = method(channel, "CallToolStream")(request, timeout=attempts.time_left(),
                                                          metadata=attempts.metadata())
            try:
                attempts.note(await responses.initial_metadata())
                async for response in responses:
                    event = attempts.event_of(response)
                    if event:
                        yield event
                    if isinstance(event, Result):
                        return
                return
            except grpc.RpcError as error:
                attempts.failed(error)
            finally:
                attempts.keep_epoch()
                responses.cancel()

    async def reply(self, request: Any, timeout: float | None) -> Reply:
        return requests.reply_of(await self._ask("CallTool", request, requests.deadline_of(timeout)))

    async def start(self, toolset: str, tool: str, arguments: Arguments = None, *, timeout: float | None = None,
                    idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> str:
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        return str((await self._ask("StartTool", request)).call_id)

    async def wait(self, call_id: str, *, timeout: float = TIMEOUT_S) -> Any:
        request = v1("AwaitToolRequest", call_id=call_id, timeout_ms=int(1000 * timeout))
        return requests.value_of(await self._ask("AwaitTool", request, requests.deadline_of(timeout)))

    async def cancel(self, call_id: str) -> None:
        await self._ask("CancelTool", v1("CancelToolRequest", call_id=call_id))

    # ---- the catalog ----

    async def toolsets(self, tags: Sequence[str] = ()) -> list[Toolset]:
        found: list[Toolset] = []
        token = ""
        while True:
            page = await self._ask("ListToolsets", v1("ListToolsetsRequest", tags=list(tags), page_token=token))
            found += [requests.toolset_of(info) for info in page.toolsets]
            token = page.next_page_token
            if not token:
                return found

    async def search(self, query: str, limit: int = 10) -> list[Toolset]:
        hits = (await self._ask("Search", v1("SearchRequest", query=query, limit=limit))).hits
        return [requests.toolset_of(hit.toolset) for hit in hits]

    async def tools(self, vendor: str, toolsets: Sequence[str] | None = None) -> Definitions:
        names = [toolset.name for toolset in await self.toolsets()] if toolsets is None else toolsets
        return Definitions(vendor, [await self._ask("GetToolset", v1("GetToolsetRequest", name=name))
                                    for name in names])

    async def call_definition(self, definitions: Definitions, name: str, arguments: Arguments = None, *,
                              timeout: float | None = TIMEOUT_S, idempotency_key: str | None = None) -> Any:
        toolset, tool = definitions.resolve(name)
        return await self.call(toolset, tool, arguments, timeout=timeout, idempotency_key=idempotency_key)

    async def _ask(self, verb: str, request: Any, timeout: float | None = TIMEOUT_S) -> Any:
        attempts = requests.Attempts(self._link, verb, request, timeout)
        for channel in attempts.each(self._channels):
            call = method(channel, verb)(request, timeout=attempts.time_left(), metadata=attempts.metadata())
            try:
                response = await call
                attempts.note(await call.initial_metadata())
                attempts.done()
                return response
            except grpc.RpcError as error:
                attempts.failed(error)
            finally:
                attempts.keep_epoch()
        raise AssertionError("there is an address")


async def serve(toolset: str, tools: Sequence[Tool[Any, Any]] | None = None, *, drain_seconds: float = 30,
                **options: Any) -> None:
    """As pegboard.serve(): async handlers run on this loop, others on threads. When its task is canceled it drains,
    too, and then raises CancelledError."""
    loop = asyncio.get_running_loop()
    provider = make_provider(toolset, tools, loop=loop, **options)
    background = Background(provider)
    ended = asyncio.Event()

    def run() -> None:
        background.run()
        loop.call_soon_threadsafe(ended.set)

    def stop(sign: int) -> None:
        loop.remove_signal_handler(sign)  # a second one ends it at once
        provider.drain(drain_seconds)

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):  # not on the main thread
            for sign in SIGNALS:
                loop.add_signal_handler(sign, stop, sign)
                stack.callback(loop.remove_signal_handler, sign)
        threading.Thread(target=run, daemon=True).start()
        try:
            await ended.wait()
        except asyncio.CancelledError:
            provider.drain(drain_seconds)
            await ended.wait()
            raise
    if background.error:
        raise background.error
