# SPDX-License-Identifier: Apache-2.0
"""A client of the official Python SDK 2.x at a gateway, over HTTP or by a bridge on pipes.

    client_v2.py auto|legacy URL|BRIDGE...      prints one JSON object: what it was answered
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters, stdio_client

progress = []


async def on_progress(step, _total, _message):
    progress.append(step)


async def fails(awaitable):
    try:
        await awaitable
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}
    return None


def content(result):
    return [item.model_dump(by_alias=True, exclude_none=True, mode="json") for item in result.content]


def whole(result):
    return {"isError": result.is_error, "content": content(result)}


def connect(mode, target, *args):
    is_url = target.startswith("http")
    return Client(target if is_url else stdio_client(StdioServerParameters(command=target, args=list(args))), mode=mode)


async def main():
    async with connect(*sys.argv[1:]) as client:
        said = {
            "server": {"name": client.server_info.name},
            "version": client.protocol_version,
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "say": content(await client.call_tool("weather__say", {})),
            "wrong": whole(await client.call_tool("weather__echo", {"days": 3})),
            "fail": whole(await client.call_tool("weather__fail", {})),
            "unknown": await fails(client.call_tool("nothing", {})),
            "count": content(await client.call_tool("talk__count", {"n": 3}, progress_callback=on_progress)),
            "draw": content(await client.call_tool("talk__draw", {})),
            "hints": next([tool.annotations.model_dump(by_alias=True, exclude_none=True), tool.title]
                          for tool in (await client.list_tools()).tools if tool.name == "talk__draw"),
            "again": content(await client.call_tool("weather__say", {})),
            "progress": progress,
        }
    print(json.dumps(said))


asyncio.run(main())
