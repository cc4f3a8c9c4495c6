# SPDX-License-Identifier: Apache-2.0
"""Tools that test_clients.py calls. tools.mjs has the same.

    tools.py WAITING|AIO ADDRESSES TOOLSET [TOKEN]
"""

import asyncio
import os
import sys
from typing import AsyncIterator, Generator

from pegboard import Call, ToolError, aio, serve, tool


@tool
async def echo(value: str, call: Call) -> dict[str, str]:
    """Returns what it got, and of whom."""
    return {"value": value, "caller": call.caller, "note": call.metadata.get("note", "")}


@tool
def say(words: list[str]) -> Generator[str, None, int]:
    """Yields words, and returns how many."""
    yield from words
    return len(words)


@tool
async def say_later(words: list[str]) -> AsyncIterator[str]:
    """Yields words, and returns nothing."""
    for word in words:
        await asyncio.sleep(0)
        yield word


@tool
async def hang(call: Call) -> None:
    """Says that it has begun, and waits until it is canceled."""
    call.say("begun\n")
    try:
        await asyncio.sleep(600)
    finally:
        print("hang was canceled", flush=True)


@tool
def hang_on_a_thread(call: Call) -> None:
    """The same."""
    call.say("begun\n")
    if call.wait(600):
        print("hang was canceled", flush=True)
        raise ToolError("canceled", "stopped")


@tool
async def wait_for_a_file(path: str, call: Call) -> str:
    """Says that it has begun, and waits until there is a file."""
    call.say("begun\n")
    print("begun", flush=True)
    while not os.path.exists(path):
        await asyncio.sleep(0.02)
    return "found"


@tool
def fail() -> None:
    """Breaks."""
    raise RuntimeError("a secret")


@tool
def lie() -> int:
    """Returns something else than it says."""
    return "text"  # type: ignore[return-value]


@tool
def big(n: int) -> str:
    """Returns n letters."""
    return "x" * n


def log(line: str) -> None:
    print(line, flush=True)


kind, addresses, toolset, *token = sys.argv[1:]
if kind == "AIO":
    asyncio.run(aio.serve(toolset, registry=addresses, token=(token or [None])[0], log=log))
else:
    serve(toolset, registry=addresses, token=(token or [None])[0], log=log)
