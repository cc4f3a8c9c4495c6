#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: MCP clients that are not ours, as their authors publish them, work with our server on stdio: the official
TypeScript SDK of both lines and the official Python SDK of both lines, each in the eras that it speaks.

    test_stock.py PEGBOARD BUILD FIXTURE

The packages are installed below BUILD, once; without npm, pip or a network what needs them is skipped.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "grpc", "interop")]

import peers  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD, FIXTURE = (os.path.abspath(path) for path in sys.argv[2:4])
INSTALL_S, CLIENT_S = 300, 120
TOOLS = ["add", "fail", "picture", "progress", "sleep", "ask"]


def run(command, timeout, **more):
    return subprocess.run(command, check=False, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


# ---- the packages ------------------------------------------------------------------------


def install(place, files, command):
    """Runs a command in a folder with these files, once for their contents."""
    os.makedirs(BUILD, exist_ok=True)
    with open(os.path.join(BUILD, "mcp.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = peers.stamp_of(*(os.path.join(HERE, name) for name in files), also=" ".join(command))
        with peers.made_once(place, stamp) as is_new:
            if not is_new:
                return place
            for name in files:
                shutil.copy(os.path.join(HERE, name), place)
            try:
                done = run(command, INSTALL_S, cwd=place)
            except subprocess.TimeoutExpired:
                raise Skip(f"{command[0]} did not end in time: is there a network?") from None
            if done.returncode:
                raise Skip(f"{command[0]} could not install: {peers.one_line(done.stderr or done.stdout)}")
    return place


def install_npm():
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    return install(os.path.join(BUILD, "mcp-npm"), ["package.json", "package-lock.json", "client.mjs"],
                   ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retry-mintimeout=2000",
                    "--fetch-retry-maxtimeout=10000"])


def install_python(version):
    place = os.path.join(BUILD, f"mcp-{version}")
    script = f"'{sys.executable}' -m venv v && v/bin/pip install -q --disable-pip-version-check mcp=={version}"
    return os.path.join(install(place, [], ["sh", "-c", script]), "v", "bin", "python")


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
    place = install_npm()
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
    judge(ask(install_python("1.30.0"), os.path.join(HERE, "client_v1.py"), w.directory), "2025-11-25")


@scenario
def python_sdk_2_works_by_initialize(w):
    judge(ask(install_python("2.3.0"), os.path.join(HERE, "client_v2.py"), "legacy", w.directory), "2025-11-25")


@scenario
def python_sdk_2_works_by_discover(w):
    judge(ask(install_python("2.3.0"), os.path.join(HERE, "client_v2.py"), "auto", w.directory), "2026-07-28")


main()
