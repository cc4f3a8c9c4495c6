#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls a tool: its result goes to standard output, what it says meanwhile and what is wrong to standard error.

    python3 call.py ADDRESS TOOLSET TOOL ARGUMENTS
"""

import json
import sys

from pegboard import Output, PegboardError, Result, ToolError, connect


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit("usage: python3 call.py ADDRESS TOOLSET TOOL ARGUMENTS")
    address, toolset, tool, arguments = sys.argv[1:]
    with connect(address) as client:
        try:
            for event in client.stream(toolset, tool, arguments):
                if isinstance(event, Output):
                    sys.stderr.write(event.delta)
                elif isinstance(event, Result):
                    print(json.dumps(event.value))
        except ToolError as error:  # the tool ran and failed
            sys.exit(f"{error.code}: {error}")
        except PegboardError as error:  # the gateway's: error.started tells whether the tool may have run
            sys.exit(f"{error.name}: {error}")


if __name__ == "__main__":
    main()
