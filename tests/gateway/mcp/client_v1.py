# SPDX-License-Identifier: Apache-2.0
"""A client of the official Python SDK 1.x at a gateway, over HTTP or by a bridge on pipes.

    client_v1.py URL|BRIDGE...      prints one JSON object: what it was answered
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

progress = []


async def on_progress(step, _total, _message):
    progress.append(step)


async def fails(awaitable):
    try:
        await awaitable
    except McpError as error:
        return {"code": error.error.code, "message": error.error.message}
    return None


def content(result):
    return [item.model_dump(by_alias=True, exclude_none=True, mode="json") for item in result.content]


def whole(result):
    return {"isError": result.isError, "content": content(result)}


def connect(target, *args):
    if target.startswith("http"):
        return streamablehttp_client(target)
    return stdio_client(StdioServerParameters(command=target, args=args))


async def main():
    async with connect(*sys.argv[1:]) as (read, write, *_):
        async with ClientSession(read, write) as session:
            about = await session.initialize()
            said = {
                "server": {"name": about.serverInfo.name},
                "version": about.protocolVersion,
                "tools": [tool.name for tool in (await session.list_tools()).tools],
                "say": content(await session.call_tool("weather__say", {})),
                "wrong": whole(await session.call_tool("weather__echo", {"days": 3})),
                "fail": whole(await session.call_tool("weather__fail", {})),
                "unknown": await fails(session.call_tool("nothing", {})),
                "count": content(await session.call_tool("talk__count", {"n": 3}, progress_callback=on_progress)),
                "draw": content(await session.call_tool("talk__draw", {})),
                "hints": next([tool.annotations.model_dump(exclude_none=True), tool.title]
                              for tool in (await session.list_tools()).tools if tool.name == "talk__draw"),
                "again": content(await session.call_tool("weather__say", {})),
                "progress": progress,
            }
    print(json.dumps(said))


asyncio.run(main())
