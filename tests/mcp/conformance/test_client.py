#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a client in C on libpegboard-mcp, which imports a server over HTTP, passes what the official conformance suite
requires of clients in both revisions, but for OAuth, which there is none of.

    test_client.py BUILD CLIENT

The suite and the Node that it needs are installed below BUILD, once.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]

from suite import VERSIONS, install_suite, judge_client, main, read_requirements  # noqa: E402

BUILD, CLIENT = (os.path.abspath(path) for path in sys.argv[1:3])
NOT_THERE = "auth/"


def judge(suite, version, names):
    return {name: judge_client(suite, CLIENT, version, name) for name in names if not name.startswith(NOT_THERE)}


def body(tap):
    suite = install_suite(BUILD)
    for version in VERSIONS:
        required, others = read_requirements(suite, version, "client")
        tap.scored(version, judge(suite, version, required))
        tap.unscored(version, judge(suite, version, others), {})


main(body)
