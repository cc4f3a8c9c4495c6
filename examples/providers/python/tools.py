#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three tools in Python, offered through a gateway until SIGTERM.

    python3 tools.py [ADDRESS [TOOLSET]]
"""

import json
import os
import signal
import sys
import threading

import needs  # noqa: F401  says what is missing
from pegboard.v1 import registry_pb2 as pb
from provider import Provider, ToolError

STOP = {signal.SIGTERM, signal.SIGINT}


def stats(args, _call):
    numbers = args["numbers"]
    if not numbers:
        raise ToolError("no_numbers", "give at least one number")
    return {"n": len(numbers), "mean": sum(numbers) / len(numbers)}


def squares(args, _call):
    return [n * n for n in range(args["n"])]


def count(args, call):
    for n in range(1, args["to"] + 1):
        call.say("progress", f"{n}\n")
        if call.canceled.wait(args.get("pause_ms", 0) / 1000):
            raise ToolError("canceled", f"stopped at {n}")
    return args["to"]


def tool(name, description, required, **properties):
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return pb.Tool(name=name, description=description, input_schema=json.dumps(schema).encode())


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9090"
    registration = pb.RegisterRequest(
        name=sys.argv[2] if len(sys.argv) > 2 else "numbers-python", version="1.0.0", tags=["math"],
        description="A few things to do with numbers",
        tools=[tool("stats", "Tells the mean of some numbers.", ["numbers"],
                    numbers={"type": "array", "items": {"type": "number"}}),
               tool("squares", "Lists the first n squares.", ["n"],
                    n={"type": "integer", "minimum": 0, "maximum": 100000}),
               tool("count", "Counts, and says each number.", ["to"],
                    to={"type": "integer", "minimum": 1}, pause_ms={"type": "integer", "minimum": 0})])
    provider = Provider(address, registration, {"stats": stats, "squares": squares, "count": count},
                        token=os.environ.get("PEGBOARD_TOKEN"))

    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)  # before there are threads: this one waits for them
    server = threading.Thread(target=provider.serve, daemon=True)
    server.start()
    while server.is_alive() and not signal.sigtimedwait(STOP, 1):
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)  # a second one ends it at once
    provider.drain()
    server.join()
    return 1 if provider.refusal else 0


if __name__ == "__main__":
    sys.exit(main())
