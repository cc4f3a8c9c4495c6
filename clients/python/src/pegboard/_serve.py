# SPDX-License-Identifier: Apache-2.0
"""serve(): offers tools until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any, Sequence

from . import _tool
from ._link import Addresses, make_link
from ._protos import v1
from ._provider import Log, Provider, log_to_stderr
from ._tool import Tool

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def make_provider(toolset: str, tools: Sequence[Tool[Any, Any]] | None = None, *, registry: Addresses = None,
                  token: str | None = None, tls_ca: str | None = None, tls_cert: str | None = None,
                  tls_key: str | None = None, description: str = "", version: str = "", tags: Sequence[str] = (),
                  concurrency: int = 8, log: Log = log_to_stderr,
                  loop: asyncio.AbstractEventLoop | None = None) -> Provider:
    """A Provider for programs that have their own way to stop: serve() blocks, drain() ends it from any thread."""
    chosen = list(_tool.MADE if tools is None else tools)
    names = [tool.name for tool in chosen]
    if not chosen:
        raise ValueError("there is no tool to offer: mark a function with @tool")
    if len(set(names)) != len(names):
        raise ValueError("two tools have the same name: " + ", ".join(sorted({n for n in names if names.count(n) > 1})))
    registration = v1("RegisterRequest", name=toolset, description=description, version=version, tags=list(tags),
                      tools=[tool.message() for tool in chosen])
    return Provider(make_link(registry, token, tls_ca, tls_cert, tls_key), registration, chosen,
                    concurrency=concurrency, log=log, loop=loop)


def serve(toolset: str, tools: Sequence[Tool[Any, Any]] | None = None, *, drain_seconds: float = 30,
          **options: Any) -> None:
    """Offers tools, all that @tool has made if none are listed, until SIGTERM or SIGINT; then it finishes what runs,
    for `drain_seconds` at most. (Signals only reach the main thread: elsewhere use make_provider().)

    `registry` is the address of a gateway, or several of one registry; [PEGBOARD_REGISTRY, or 127.0.0.1:9090].
    `concurrency` is how many calls run at once. PegboardError: the gateway refuses us.
    """
    provider = make_provider(toolset, tools, **options)
    background = Background(provider)

    def stop(sign: int, _: Any) -> None:
        signal.signal(sign, previous[sign])  # a second one ends it at once
        provider.drain(drain_seconds)

    is_main = threading.current_thread() is threading.main_thread()
    previous: dict[int, Any] = {sign: signal.signal(sign, stop) for sign in SIGNALS} if is_main else {}
    try:
        background.start()
        background.join()
    finally:
        for sign, handler in previous.items():
            signal.signal(sign, handler)
    if background.error:
        raise background.error


class Background(threading.Thread):
    """Runs a provider, so that no signal meets it in the middle of something."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(daemon=True)
        self.provider = provider
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.provider.serve()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
