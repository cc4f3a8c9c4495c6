#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: MCP clients that are not ours, as their authors publish them, work with our server on stdio: the official
TypeScript SDK of both lines and the official Python SDK of both lines, each in the eras that it speaks.

    test_stock.py PEGBOARD BUILD FIXTURE

The packages are installed below BUILD, once; without npm, pip or a network what needs them is skipped.
"""

import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), HERE]

from packages import install_npm, install_python, run  # noqa: E402
from scenario import check, main, scenario  # noqa: E402

BUILD, FIXTURE = (os.path.abspath(path) for path in sys.argv[2:4])
CLIENT_S = 120
TOOLS = ["add", "fail", "picture", "progress", "sleep", "ask"]


# ---- what a client was answered -----------------------------------------------------------


def ask(*command):
    done = run([*command, FIXTURE], CLIENT_S)
    check(done.returncode == 0, f"the client failed:\n{done.stderr}")
    return json.loads(done.stdout)


def judge(said, version):
    def is_text(content, text):
        check([(item["type"], item["text"]) for item in content] == [("text", text)], content)

    check(said["server"]["name"] == "fixture" and said["server"]["version"] == "1.0", said["server"])
    check(said["version"] in (version, None), said["version"])  # one line of SDKs does not tell
    check(said["instructions"] == "Use it in tests", said)
    check(said["tools"] == TOOLS, said["tools"])
    check(said["sum"] == {"sum": 5} and said["again"] == {"sum": 2}, said)
    check(said["wrong"]["isError"] and "'b' is missing" in said["wrong"]["content"][0]["text"], said["wrong"])
    check(said["fail"]["isError"] and "no luck today" in said["fail"]["content"][0]["text"], said["fail"])
    check(said["unknown"]["code"] == -32602 and "Unknown tool: nothing" in said["unknown"]["message"], said["unknown"])
    check(said["picture"] == [{"type": "image", "data": "UE5H", "mimeType": "image/png"}], said["picture"])
    is_text(said["worked"], "worked")
    check(said["progress"] == [1, 2, 3], said["progress"])
    is_text(said["hello"], "hello Ada")
    check(said["resources"] == ["note:///one"] and said["templates"] == ["note:///by-id/{id}"], said)
    check(said["note"] == ["note 7"], said["note"])
    check(said["missing"]["code"] in (-32602, -32002), said["missing"])  # one SDK shows the new code for the old
    check(said["prompts"] == ["greet"] and said["prompt"] == "Greet Ada", said)
    check(said["completed"] == ["Ada", "Alan"], said["completed"])
    check(said["asked"] == ["Who are you?"], said["asked"])


def ask_node(w, line, version):
    place = install_npm(BUILD)
    shutil.copy(os.path.join(HERE, "client.mjs"), place)
    said = ask("node", os.path.join(place, "client.mjs"), line, w.directory)
    judge(said, version)
    check(said["canceled"], "the handler was not canceled")


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
    judge(ask(install_python(BUILD, "1.30.0"), os.path.join(HERE, "client_v1.py"), w.directory), "2025-11-25")


@scenario
def python_sdk_2_works_by_initialize(w):
    judge(ask(install_python(BUILD, "2.3.0"), os.path.join(HERE, "client_v2.py"), "legacy", w.directory), "2025-11-25")


@scenario
def python_sdk_2_works_by_discover(w):
    judge(ask(install_python(BUILD, "2.3.0"), os.path.join(HERE, "client_v2.py"), "auto", w.directory), "2026-07-28")


main()
