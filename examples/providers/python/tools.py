#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three tools in Python, offered through a gateway until SIGTERM.

    python3 tools.py [ADDRESS [TOOLSET]]
"""

import sys
from typing import Annotated

from pegboard import Call, ToolError, serve, tool


@tool
def stats(numbers: list[float]) -> dict[str, float]:
    """Tells the mean of some numbers."""
    if not numbers:
        raise ToolError("no_numbers", "give at least one number")
    return {"n": len(numbers), "mean": sum(numbers) / len(numbers)}


@tool
def squares(n: Annotated[int, "how many", {"minimum": 0, "maximum": 100000}]) -> list[int]:
    """Lists the first n squares."""
    return [i * i for i in range(n)]


@tool
def count(to: Annotated[int, {"minimum": 1}], call: Call, pause_ms: Annotated[int, {"minimum": 0}] = 0) -> int:
    """Counts, and says each number."""
    for n in range(1, to + 1):
        call.say(f"{n}\n", "progress")
        if call.wait(pause_ms / 1000):
            raise ToolError("canceled", f"stopped at {n}")
    return to


def log(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    address, name = (sys.argv[1:] + ["127.0.0.1:9090", "numbers-python"][len(sys.argv) - 1:])[:2]
    serve(name, registry=address, version="1.0.0", tags=["math"], log=log,
          description="A few things to do with numbers")
