#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the commands that docs/goa.md shows work as they stand: the gateway that takes the place of goa-ai's registry
serves its peers, and what the old one left is removed without touching them.

    test_page.py PEGBOARD
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile

from interop import G1, META, TESTS, TOOLSET, Redis, agent_of, await_healthy, await_true, needs_redis, serving

import tap
from goa.registry import Registry
from ports import free_port
from world import PEGBOARD, START_S, WAIT_S, is_listening

PAGE = os.path.join(os.path.dirname(TESTS), "docs", "goa.md")
PAYLOAD = {"text": "moved"}


def blocks():
    with open(PAGE, encoding="utf-8") as file:
        return re.findall(r"^```text\n(.*?)^```$", file.read(), re.M | re.S)


@contextlib.contextmanager
def gateway_of_the_page(redis):
    """The first block, with a port that is free and a Redis that is there."""
    port = free_port()
    line = blocks()[0].strip()
    assert line.count(":9090 ") == line.count("localhost:6379 ") == 1, line
    line = line.replace(":9090 ", f":{port} ").replace("localhost:6379", redis.address)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(PEGBOARD), os.path.join(folder, "pegboard"))
        env = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"], "XDG_DATA_HOME": folder,
               "XDG_STATE_HOME": folder}
        node = subprocess.Popen(["sh", "-c", "exec env " + line], env=env, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            await_true(lambda: is_listening(port), "the node listens", START_S)
            yield f"127.0.0.1:{port}"
        finally:
            node.kill()
            node.wait(WAIT_S)


def test_a_registry_of_goa_ai_is_replaced_as_the_page_says():
    with Redis() as redis:
        old = Registry(redis.pool())
        old.register(TOOLSET, "echoes its text", "1.0.0", ["bench"], [("echo.say", "", [], "{}", "{}")])
        old.stop()
        with gateway_of_the_page(redis) as address, G1(address) as service, serving(redis, service):
            service.register()
            await_healthy(address)
            for line in blocks()[1].splitlines():
                line = line.replace("redis-cli", f"redis-cli -p {redis.port}")
                subprocess.run(["sh", "-c", line], check=True, stdout=subprocess.DEVNULL)
            left = [key.decode() for key in redis.ask("KEYS", "*")]
            assert not [key for key in left if key.startswith(("map:registry:", "pulse:stream:registry:"))], left
            assert agent_of(redis, service).execute(TOOLSET, "echo.say", PAYLOAD, META).value == PAYLOAD


def test_the_options_that_the_page_names_exist():
    with open(PAGE, encoding="utf-8") as file:
        named = set(re.findall(r"`(--[a-z-]+)", file.read()))
    shown = subprocess.run([PEGBOARD, "serve", "--help"], check=True, capture_output=True, text=True).stdout
    assert named and not [option for option in named if option not in shown], named


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
