# SPDX-License-Identifier: Apache-2.0
"""A client for test_clients.py: reads requests, a line of JSON each, and prints what came of each. SIGINT ends the
request, not the client. caller.mjs does the same.

    caller.py WAITING|AIO ADDRESSES TOKEN
"""

import asyncio
import json
import signal
import sys

import pegboard
from pegboard import aio

KIND, ADDRESSES, TOKEN = sys.argv[1:4]
FAILURES = (pegboard.ToolError, pegboard.PegboardError, KeyboardInterrupt, asyncio.CancelledError)


def failure(error):
    if isinstance(error, pegboard.ToolError):
        return {"error": {"class": "ToolError", "code": error.code, "message": str(error)}}
    if not isinstance(error, pegboard.PegboardError):
        return {"error": {"class": type(error).__name__}}
    return {"error": {"class": type(error).__name__, "code": error.name, "message": str(error),
                      "started": error.started}}


def event_of(event):
    if isinstance(event, pegboard.Output):
        return {"type": "output", "delta": event.delta}
    return {"type": "result", "value": event.value} if isinstance(event, pegboard.Result) else {"type": "started"}


def answer(client, verb, arguments, options):
    if verb == "stream":
        return [event_of(event) for event in client.stream(*arguments, **options)]
    if verb == "stream, and leave":
        for event in client.stream(*arguments, **options):
            if isinstance(event, pegboard.Output):
                return event.delta
    if verb == "long":
        return client.wait(client.start(*arguments))
    if verb == "toolsets":
        return [one.name for one in client.toolsets()]
    return getattr(client, verb)(*arguments, **options)


async def answer_later(client, verb, arguments, options):
    if verb == "stream":
        return [event_of(event) async for event in client.stream(*arguments, **options)]
    if verb == "stream, and leave":
        async for event in client.stream(*arguments, **options):
            if isinstance(event, pegboard.Output):
                return event.delta
    if verb == "long":
        return await client.wait(await client.start(*arguments))
    if verb == "toolsets":
        return [one.name for one in await client.toolsets()]
    return await getattr(client, verb)(*arguments, **options)


def waiting():
    with pegboard.connect(ADDRESSES, token=TOKEN) as client:
        for line in sys.stdin:
            try:
                said = {"value": answer(client, *json.loads(line))}
            except FAILURES as error:
                said = failure(error)
            print(json.dumps(said), flush=True)


async def not_waiting():
    async with aio.connect(ADDRESSES, token=TOKEN) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            task = asyncio.create_task(answer_later(client, *json.loads(line)))
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
            try:
                said = {"value": await task}
            except FAILURES as error:
                said = failure(error)
            print(json.dumps(said), flush=True)


if KIND == "AIO":
    asyncio.run(not_waiting())
else:
    waiting()
