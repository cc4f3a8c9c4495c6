#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of tests with a server that speaks MongoDB's protocol, named in PEG_TEST_MONGO_URI. If that is set, the
program runs with it as it is, and the server is taken for atomic.

    with_mongo.py ferretdb|java BUILD PROGRAM [ARGUMENT...]
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from mongo_server import JavaServer, Mongo  # noqa: E402  pylint: disable=wrong-import-position
from tap import Skip  # noqa: E402  pylint: disable=wrong-import-position

SERVERS = {"ferretdb": Mongo, "java": JavaServer}


def run(program, **env):
    return subprocess.run(program, check=False, env={**os.environ, **env}).returncode


def main(kind, build, *program):
    if "PEG_TEST_MONGO_URI" in os.environ:
        return run(program, PEG_TEST_MONGO_ATOMIC="1")
    atomic = {"PEG_TEST_MONGO_ATOMIC": "1"} if kind == "java" else {}
    with SERVERS[kind](build) as server:
        return run(program, PEG_TEST_MONGO_URI=server.url, **atomic)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Skip as reason:
        print(f"1..0 # SKIP {reason}")
