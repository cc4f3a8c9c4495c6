# SPDX-License-Identifier: Apache-2.0
"""A client of the official Python SDK 1.x at our server.

    client_v1.py FOLDER SERVER...      prints one JSON object: what it was answered
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

FOLDER, COMMAND, *ARGS = sys.argv[1:]
seen = {"progress": [], "asked": []}


async def answer(_context, params):
    seen["asked"].append(params.message)
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def on_progress(progress, _total, _message):
    seen["progress"].append(progress)


async def list_all(session):
    names, cursor = [], None
    while True:
        page = await session.list_tools(cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.nextCursor
        if cursor is None:
            return names


async def fails(awaitable):
    try:
        await awaitable
    except McpError as error:
        return {"code": error.error.code, "message": error.error.message}
    return None


def content(result):
    return [item.model_dump(by_alias=True, exclude_none=True) for item in result.content]


async def main():
    async with stdio_client(StdioServerParameters(command=COMMAND, args=ARGS)) as (read, write):
        async with ClientSession(read, write, elicitation_callback=answer) as session:
            about = await session.initialize()
            wrong = await session.call_tool("add", {"a": 2})
            fail = await session.call_tool("fail", {})
            said = {
                "server": {"name": about.serverInfo.name, "version": about.serverInfo.version},
                "version": about.protocolVersion,
                "instructions": about.instructions,
                "tools": await list_all(session),
                "sum": (await session.call_tool("add", {"a": 2, "b": 3})).structuredContent,
                "wrong": {"isError": wrong.isError, "content": content(wrong)},
                "fail": {"isError": fail.isError, "content": content(fail)},
                "unknown": await fails(session.call_tool("nothing", {})),
                "picture": content(await session.call_tool("picture", {})),
                "worked": content(await session.call_tool("progress", {}, progress_callback=on_progress)),
                "hello": content(await session.call_tool("ask", {})),
                "resources": [str(resource.uri) for resource in (await session.list_resources()).resources],
                "templates": [template.uriTemplate for template in
                              (await session.list_resource_templates()).resourceTemplates],
                "note": [content.text for content in (await session.read_resource("note:///by-id/7")).contents],
                "missing": await fails(session.read_resource("note:///nothing")),
                "prompts": [prompt.name for prompt in (await session.list_prompts()).prompts],
                "prompt": (await session.get_prompt("greet", {"who": "Ada"})).messages[0].content.text,
                "completed": (await session.complete(types.PromptReference(type="ref/prompt", name="greet"),
                                                     {"name": "who", "value": "A"})).completion.values,
                "again": (await session.call_tool("add", {"a": 1, "b": 1})).structuredContent,
                **seen,
            }
            await session.send_ping()
    print(json.dumps(said))


asyncio.run(main())
