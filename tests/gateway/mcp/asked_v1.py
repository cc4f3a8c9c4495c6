# SPDX-License-Identifier: Apache-2.0
"""A client of the official Python SDK 1.x that is asked by tools of a gateway: asked_v1.py URL prints one JSON object."""

import asyncio
import json
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

ASKS = {"sample": {"method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}},
    "roots": {"method": "roots/list"}}
logs = []


async def elicit(_context, params):
    return types.ElicitResult(action="accept", content={"name": f"Ada of {params.message}"})


async def sample(_context, params):
    return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(
        type="text", text=params.messages[0].content.text + "!"))


async def list_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///srv", name="srv")])


async def log(params):
    logs.append(params.data)


async def main():
    async with streamablehttp_client(sys.argv[1]) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=elicit, sampling_callback=sample,
                                 list_roots_callback=list_roots, logging_callback=log) as session:
            await session.initialize()
            await session.set_logging_level("info")

            async def call(name, arguments):
                return (await session.call_tool(name, arguments)).content[0].text

            said = {"names": [await call("asking__name", {}), await call("asking__name", {})],
                    "answers": json.loads(await call("asking__ask", {"asks": ASKS})), "logs": logs, "ended": True}
    print(json.dumps(said))


asyncio.run(main())
