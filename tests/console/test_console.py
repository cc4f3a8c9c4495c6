#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the console does in a browser what docs/console.md says, for the mouse, the keyboard, a phone and a reader of
screens; and pages of other origins, and what providers write, can do nothing. The scenarios are in scenarios.mjs.

    test_console.py PEGBOARD BUILD MCP_FIXTURE

PEG_CONSOLE_PICTURES=FOLDER keeps the pictures of docs/images/ there. Without Chromium, node, or a network for npm it is
skipped. PEG_CONSOLE_BROWSER names another Chromium.
"""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TESTS, "cli"), os.path.join(TESTS, "mcp", "stock")]

import packages  # noqa: E402
from scenario import Skip  # noqa: E402

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=10000"]


def find_browser():
    named = os.environ.get("PEG_CONSOLE_BROWSER")
    found = [path for path in map(shutil.which, [named] if named else BROWSERS) if path]
    if not found:
        raise Skip("there is no Chromium: tools/setup --test installs it")
    return found[0]


def main():
    pegboard, build, fixture = (os.path.abspath(path) for path in sys.argv[1:4])
    try:
        if not shutil.which("node") or not shutil.which("npm"):
            raise Skip("there is no node or no npm: tools/setup --test installs them")
        browser = find_browser()
        place = packages.install(build, "console-npm", [os.path.join(HERE, name) for name in ("package.json", "package-lock.json")],
                                 NPM)
    except Skip as why:
        print(f"1..0 # SKIP {why}")
        return
    sys.stdout.flush()
    modules = os.path.join(place, "node_modules")
    os.execvp("node", ["node", os.path.join(HERE, "scenarios.mjs"), pegboard, fixture, browser, modules])


main()
