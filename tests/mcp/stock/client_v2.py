# SPDX-License-Identifier: Apache-2.0
"""A client of the official Python SDK 2.x at our server.

    client_v2.py auto|legacy FOLDER SERVER...      prints one JSON object: what it was answered
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp import types

MODE, FOLDER, COMMAND, *ARGS = sys.argv[1:]
seen = {"progress": [], "asked": []}


async def answer(_context, params):
    seen["asked"].append(params.message)
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def on_progress(progress, _total, _message):
    seen["progress"].append(progress)


async def list_all(client):
    names, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


async def fails(awaitable):
    try:
        await awaitable
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}
    return None


def content(result):
    return [item.model_dump(by_alias=True, exclude_none=True, mode="json") for item in result.content]


async def main():
    server = stdio_client(StdioServerParameters(command=COMMAND, args=ARGS))
    async with Client(server, mode=MODE, elicitation_callback=answer) as client:
        wrong = await client.call_tool("add", {"a": 2})
        fail = await client.call_tool("fail", {})
        said = {
            "server": {"name": client.server_info.name, "version": client.server_info.version},
            "version": client.protocol_version,
            "instructions": client.instructions,
            "tools": await list_all(client),
            "sum": (await client.call_tool("add", {"a": 2, "b": 3})).structured_content,
            "wrong": {"isError": wrong.is_error, "content": content(wrong)},
            "fail": {"isError": fail.is_error, "content": content(fail)},
            "unknown": await fails(client.call_tool("nothing", {})),
            "picture": content(await client.call_tool("picture", {})),
            "worked": content(await client.call_tool("progress", {}, progress_callback=on_progress)),
            "hello": content(await client.call_tool("ask", {})),
            "resources": [str(resource.uri) for resource in (await client.list_resources()).resources],
            "templates": [template.uri_template for template in
                          (await client.list_resource_templates()).resource_templates],
            "note": [content.text for content in (await client.read_resource("note:///by-id/7")).contents],
            "missing": await fails(client.read_resource("note:///nothing")),
            "prompts": [prompt.name for prompt in (await client.list_prompts()).prompts],
            "prompt": (await client.get_prompt("greet", {"who": "Ada"})).messages[0].content.text,
            "completed": (await client.complete(types.PromptReference(type="ref/prompt", name="greet"),
                                                {"name": "who", "value": "A"})).completion.values,
            "again": (await client.call_tool("add", {"a": 1, "b": 1})).structured_content,
            **seen,
        }
    print(json.dumps(said))


asyncio.run(main())
