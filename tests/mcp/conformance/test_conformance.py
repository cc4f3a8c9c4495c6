#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a server in C on libpegboard-mcp, over HTTP, passes what the official conformance suite requires of servers, in
both revisions, whole. What is not scored is run as well, and what fails of it is listed here.

    test_conformance.py BUILD FIXTURE

The suite and the Node that it needs are installed below BUILD, once.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]

from suite import VERSIONS, fixture, install_suite, judge, main, read_requirements  # noqa: E402

BUILD, FIXTURE = (os.path.abspath(path) for path in sys.argv[1:3])

# Scenarios that are not scored, and how many of their checks fail:
UNSCORED = {
    # A handler that fails is a result for the model, never an error of the protocol.
    "tasks-lifecycle": 1,
    # No tool insists on tasks: clients without them get the answer when it is there.
    "tasks-required-task-error": 1,
}


def body(tap):
    suite = install_suite(BUILD)
    for version in VERSIONS:
        required, others = read_requirements(suite, version)
        with fixture(FIXTURE) as url:
            results = judge(suite, url, version, required + others, UNSCORED)
        tap.scored(version, {name: results[name] for name in required})
        tap.unscored(version, {name: results[name] for name in others}, UNSCORED)


main(body)
