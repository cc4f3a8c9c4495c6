#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the MCP Inspector in its command-line mode, as its authors publish it, works with our server on stdio and with a
gateway over HTTP.

    test_inspector.py PEGBOARD BUILD FIXTURE
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TESTS, "cli"), os.path.join(TESTS, "mcp", "stock")]

from gateways import gateway, provided  # noqa: E402
from packages import install, run  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD, FIXTURE = (os.path.abspath(path) for path in sys.argv[2:4])
CLIENT_S = 240


def inspect(target, method, *more):
    """The result that the Inspector printed; a tool that failed is one, too."""
    files = [os.path.join(HERE, name) for name in ("package.json", "package-lock.json")]
    # Not `npm ci`: it wants the packages for other systems, which npm leaves out of the lock.
    place = install(BUILD, "mcp-inspector", files, ["npm", "install", "--no-save", "--omit=dev", "--no-audit", "--no-fund"])
    modules = os.path.join(place, "node_modules")
    node = os.path.join(modules, ".bin", "node")
    if not os.path.exists(node):
        raise Skip("npm installed no Node 22")
    launcher = os.path.join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
    done = run([node, launcher, "--cli", *target, "--method", method, *more], CLIENT_S,
               env={**os.environ, "HOME": place, "PATH": os.path.dirname(node) + ":" + os.environ["PATH"]})
    check(done.returncode == 0 or done.stdout.startswith("{"), f"the Inspector failed:\n{done.stderr}")
    return json.loads(done.stdout)


@scenario
def the_inspector_works_on_stdio(_):
    listed = inspect([FIXTURE], "tools/list")
    check({"add", "fail"} <= {tool["name"] for tool in listed["tools"]}, listed)
    said = inspect([FIXTURE], "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3")
    check(said["structuredContent"] == {"sum": 5}, said)
    said = inspect([FIXTURE], "tools/call", "--tool-name", "add", "--tool-arg", "a=2")
    check(said["isError"] and "'b' is missing" in said["content"][0]["text"], said)


@scenario
def the_inspector_works_with_a_gateway(w):
    with gateway(w), provided(w):
        for path, prefix in (("mcp", "weather__"), ("mcp/weather", "")):
            target = [f"http://{w.at}/{path}", "--transport", "http"]
            listed = inspect(target, "tools/list")
            check(prefix + "echo" in [tool["name"] for tool in listed["tools"]], listed)
            said = inspect(target, "tools/call", "--tool-name", prefix + "echo", "--tool-arg", "city=Paris")
            check(json.loads(said["content"][0]["text"]) == {"city": "Paris"}, said)
            said = inspect(target, "tools/call", "--tool-name", prefix + "fail")
            check(said["isError"] and "out of rain" in said["content"][0]["text"], said)


main()
