#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: through a gateway (`/mcp/TOOLSET` of `pegboard serve`), with a provider in C attached, what the official
conformance suite requires of servers passes as far as it concerns tools and the endpoint, in both revisions.

    test_gateway.py PEGBOARD BUILD FIXTURE

The suite and the Node that it needs are installed below BUILD, once.
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]

from suite import VERSIONS, install_suite, judge, main, read_requirements  # noqa: E402

from gateways import gateway, running, until  # noqa: E402
from scenario import World  # noqa: E402

BUILD, FIXTURE = (os.path.abspath(path) for path in sys.argv[2:4])
# Resources, prompts and completion are not what a gateway has.
ELSEWHERE = ("resources-", "prompts-", "completion-", "sep-2164-", "input-required-result-non-tool-request")
# Scenarios that are not scored, and how many of their checks fail:
UNSCORED = {
    # A call becomes a task after two seconds at a gateway, and the tools of these take less.
    "tasks-lifecycle": 6,  # or 3: one of its tools takes two seconds
    "tasks-capability-negotiation": 1,
    "tasks-wire-fields": 3,
    "tasks-mrtr-input": 3,
    "tasks-dispatch-and-envelope": 1,
    "tasks-mrtr-composition": 1,
    # No tool insists on tasks: clients without them get the answer when it is there.
    "tasks-required-task-error": 1,
}


def judge_version(tap, suite, w, version):
    required, others = read_requirements(suite, version)
    scored = [name for name in required if not name.startswith(ELSEWHERE)]
    with gateway(w, "--threads", "2"), \
            running(w, w.at, program=FIXTURE, stderr=subprocess.DEVNULL):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "fixture")
        results = judge(suite, f"http://{w.at}/mcp/fixture", version, scored + others, UNSCORED)
    tap.scored(version, {name: results[name] for name in scored})
    tap.unscored(version, {name: results[name] for name in others}, UNSCORED)


def body(tap):
    suite = install_suite(BUILD)
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as directory:
            judge_version(tap, suite, World(directory), version)


main(body)
