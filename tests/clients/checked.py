# SPDX-License-Identifier: Apache-2.0
"""What mypy is to see of the package: it is checked, and not run."""

from pegboard import Call, connect, tool


@tool
def add(a: int, b: int = 1) -> int:
    return a + b


@tool(idempotent=True)
async def later(call: Call, text: str) -> str:
    call.say(text)
    return text


total: int = add(1, b=2)
with connect("127.0.0.1:9090", token="peg_x") as client:
    names: list[str] = [toolset.name for toolset in client.toolsets()]
    for definition in client.tools("openai"):
        print(definition["function"])
add("one")  # type: ignore[arg-type]
client.call("numbers")  # type: ignore[call-arg]
