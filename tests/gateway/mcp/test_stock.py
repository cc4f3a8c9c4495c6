#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: MCP clients that are not ours, as their authors publish them, work with the toolsets of a gateway, over HTTP and by
the bridge `pegboard mcp` on pipes: the official TypeScript SDK of both lines and the official Python SDK of both lines, each in the
eras that it speaks.

    test_stock.py PEGBOARD BUILD STREAMING_PROVIDER ASKING_PROVIDER

The packages are those of tests/mcp/stock.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TESTS, "cli"), os.path.join(TESTS, "mcp", "stock")]

from gateways import gateway, provided, running, until  # noqa: E402
from packages import install_npm, install_python, run  # noqa: E402
from scenario import check, main, scenario  # noqa: E402

BUILD, STREAMING, ASKING = (os.path.abspath(path) for path in sys.argv[2:5])
CLIENT_S = 240
SLOW = {"toolset": "slow", "tools": [
    {"name": "wait", "description": "Waits until it is stopped", "input_schema": {"type": "object"},
     "command": ["sh", "-c", "trap 'touch stopped; exit 0' TERM INT; touch runs; while :; do sleep 0.02; done"]}]}
TOOLS = ["slow__wait", "talk__count", "talk__draw", "weather__echo", "weather__fail", "weather__say", "weather__wait"]


@contextlib.contextmanager
def tools_of_three(w):
    """A gateway on two loops: the connections of a client are not on one."""
    w.write("slow.yaml", SLOW)
    with gateway(w, "--threads", "2"), provided(w), running(w, w.at, program=STREAMING), \
            running(w, "provide", "slow.yaml", "--registry", w.at, stderr=subprocess.DEVNULL):
        for toolset in ("talk", "slow"):
            until(w, lambda a: a["health"]["state"] == "healthy", "get", toolset)
        yield


def ask(w, *command, bridge=False):
    with tools_of_three(w):
        target = [w.executable, "mcp", "--registry", w.at] if bridge else [f"http://{w.at}/mcp"]
        done = run([*command, *target], CLIENT_S, cwd=w.directory)
    check(done.returncode == 0, f"the client failed:\n{done.stderr}")
    return json.loads(done.stdout)


def judge(said, version, may_lose_progress=False):
    def is_text(content, text):
        check([(item["type"], item["text"]) for item in content] == [("text", text)], content)

    check(said["server"]["name"] == "pegboard", said["server"])
    check(said["version"] in (version, None), said["version"])  # one line of SDKs does not tell
    check(said["tools"] == TOOLS, said["tools"])
    is_text(said["say"], "sunny")
    is_text(said["again"], "sunny")
    check(said["wrong"]["isError"] and "'city' is missing" in said["wrong"]["content"][0]["text"], said["wrong"])
    check(said["fail"]["isError"] and "out of rain" in said["fail"]["content"][0]["text"], said["fail"])
    check(said["unknown"]["code"] == -32602 and "Unknown tool: nothing" in said["unknown"]["message"], said["unknown"])
    is_text(said["count"], "3")
    image, link = said["draw"]
    check((image["type"], image["mimeType"]) == ("image", "image/png"), image["type"], image["mimeType"])
    check(base64.b64decode(image["data"]) == bytes(i % 251 for i in range(100000)), "other bytes")
    check((link["type"], link["uri"], link["name"]) == ("resource_link", "https://example.org/b.pdf", "b.pdf"), link)
    hints, title = said["hints"]
    check(hints["readOnlyHint"] is True and "destructiveHint" not in hints and title == "Draw it", said["hints"])
    told = [1, 2, 3, 4]
    check(said["progress"] == (told[:len(said["progress"])] if may_lose_progress else told), said["progress"])


def ask_node(w, line, version, bridge=False):
    place = install_npm(BUILD)
    shutil.copy(os.path.join(HERE, "client.mjs"), os.path.join(place, "gateway-client.mjs"))
    said = ask(w, "node", os.path.join(place, "gateway-client.mjs"), line, bridge=bridge)
    judge(said, version, may_lose_progress=bridge)  # on pipes it forgets what it reads together with the answer
    check(said["canceled"], "the call was not canceled")


@scenario
def typescript_sdk_1_works(w):
    ask_node(w, "v1", "2025-11-25")


@scenario
def typescript_sdk_2_works_by_initialize(w):
    ask_node(w, "v2-legacy", "2025-11-25")


@scenario
def typescript_sdk_2_works_by_discover(w):
    ask_node(w, "v2-modern", "2026-07-28")


@scenario
def python_sdk_1_works(w):
    judge(ask(w, install_python(BUILD, "1.30.0"), os.path.join(HERE, "client_v1.py")), "2025-11-25")


@scenario
def python_sdk_2_works_by_initialize(w):
    judge(ask(w, install_python(BUILD, "2.3.0"), os.path.join(HERE, "client_v2.py"), "legacy"), "2025-11-25")


# ---- those that can be asked -----------------------------------------------------------


def ask_back(w, *command):
    """Tools in C ask the client, which has a session for that."""
    with gateway(w, "--threads", "2"), running(w, w.at, program=ASKING):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "asking")
        done = run([*command, f"http://{w.at}/mcp"], CLIENT_S, cwd=w.directory)
    check(done.returncode == 0, f"the client failed:\n{done.stderr}")
    said = json.loads(done.stdout)
    check(said["names"] == ["hello Ada of Who are you?"] * 2, said)
    answers = said["answers"]
    check(answers["sample"]["content"] == {"type": "text", "text": "Hi!"}, answers)
    check(answers["roots"]["roots"] == [{"uri": "file:///srv", "name": "srv"}], answers)
    check(said["logs"][:2] == ["before\n", "after\n"], said["logs"])
    check(said["ended"], "the session was not ended")


@scenario
def typescript_sdk_1_answers_what_a_tool_asks(w):
    place = install_npm(BUILD)
    shutil.copy(os.path.join(HERE, "asked.mjs"), os.path.join(place, "gateway-asked.mjs"))
    ask_back(w, "node", os.path.join(place, "gateway-asked.mjs"))


@scenario
def python_sdk_1_answers_what_a_tool_asks(w):
    ask_back(w, install_python(BUILD, "1.30.0"), os.path.join(HERE, "asked_v1.py"))


@scenario
def python_sdk_2_works_by_discover(w):
    judge(ask(w, install_python(BUILD, "2.3.0"), os.path.join(HERE, "client_v2.py"), "auto"), "2026-07-28")


@scenario
def typescript_sdk_1_works_by_the_bridge(w):
    ask_node(w, "v1", "2025-11-25", bridge=True)


@scenario
def python_sdk_2_works_by_the_bridge(w):
    judge(ask(w, install_python(BUILD, "2.3.0"), os.path.join(HERE, "client_v2.py"), "auto", bridge=True), "2026-07-28")


main()
