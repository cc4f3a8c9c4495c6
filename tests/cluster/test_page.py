#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the commands and the configuration that docs/cluster.md shows work as they stand. (The quick start is in
test_cluster.py.)

    test_page.py PEGBOARD
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
sys.path[:0] = [HERE, os.path.join(TESTS, "gateway", "promises"), TESTS]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from ports import free_port  # noqa: E402
from test_addresses import Tools, begin, run  # noqa: E402
from test_cluster import await_health, cluster  # noqa: E402
from world import PEGBOARD, START_S, WAIT_S, await_true, is_listening  # noqa: E402

BALANCER = os.path.join(ROOT, "examples", "cluster", "haproxy.cfg")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@contextlib.contextmanager
def commands_of_the_page():
    """The three commands of the brief, with ports that are free and a Redis that is there."""
    block = re.search(r"^```text\n(REGISTRY_NAME=prod.*?)^```$", read(os.path.join(ROOT, "docs", "cluster.md")),
                      re.M | re.S)[1]
    port = free_port()
    ports = [free_port() for _ in range(3)]
    assert block.count("REDIS_URL=redis:6379 ") == 3
    block = block.replace("redis:6379", f"localhost:{port}")
    for number, other in enumerate(ports):
        block = block.replace(f"REGISTRY_ADDR=:{9090 + number} ", f"REGISTRY_ADDR=:{other} ")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.symlink(os.path.abspath(PEGBOARD), os.path.join(folder, "pegboard"))
        env = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"], "XDG_DATA_HOME": folder}
        redis = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", folder],
                                 stdout=subprocess.DEVNULL)
        stack.callback(redis.wait)
        stack.callback(redis.kill)
        await_true(lambda: is_listening(port), "Redis listens")
        yield block.splitlines(), ports, env, stack


def test_the_three_nodes_of_the_brief_refuse_to_be_open_to_all():
    with commands_of_the_page() as (lines, _, env, _):
        for line in lines:
            done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=START_S,
                                  check=False)
            assert done.returncode == 2, done
            assert "--insecure (E_LISTEN_INSECURE)" in done.stderr, done.stderr


def test_the_three_nodes_of_the_brief_are_one_registry_if_that_is_wanted():
    with commands_of_the_page() as (lines, ports, env, stack):
        for line, port in zip(lines, ports):
            node = subprocess.Popen(["sh", "-c", line.replace("REGISTRY", "exec env REGISTRY", 1) + " --insecure"],
                                    env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(node.wait)
            stack.callback(node.kill)
            await_true(lambda port=port: is_listening(port), "the node listens", START_S)
        tools = stack.enter_context(Tools(f"127.0.0.1:{ports[0]}"))
        tools.release()
        for port in ports:
            await_true(lambda port=port: "noted" in run("call", "handy", "note", "--registry",
                                                        f"127.0.0.1:{port}").stdout, "any node answers")


def test_the_page_shows_the_balancer_as_it_is():
    shown = re.search(r"^```\n(frontend registry.*?)^```$", read(os.path.join(ROOT, "docs", "cluster.md")), re.M | re.S)[1]
    config = read(BALANCER)
    for line in shown.splitlines():
        assert line in config, line


@contextlib.contextmanager
def balanced(n):
    """So many nodes behind the balancer of the page; its address and the nodes."""
    if not shutil.which("haproxy"):
        raise tap.Skip("haproxy is not installed")
    with cluster(n) as (_, nodes, _), tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        config = read(BALANCER)
        port = free_port()
        for number, address in enumerate([f"127.0.0.1:{port}"] + [node.address for node in nodes]):
            config = config.replace(f"127.0.0.1:{9090 + number}", address)
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        balancer = subprocess.Popen(["haproxy", "-db", "-q", "-f", path])
        stack.callback(balancer.wait)
        stack.callback(balancer.kill)
        await_true(lambda: is_listening(port), "the balancer listens")
        yield f"127.0.0.1:{port}", nodes


def test_calls_go_on_behind_a_balancer_when_a_node_is_killed():
    with balanced(3) as (address, nodes), Tools(address) as tools:
        await_health(nodes, "handy")
        tools.release()
        for victim in nodes[:2]:
            assert "noted" in run("call", "handy", "note", "--registry", address).stdout
            victim.process.kill()
            victim.process.wait(WAIT_S)
            await_true(lambda: "noted" in run("call", "handy", "note", "--registry", address).stdout, "calls go on")


def test_calls_end_behind_a_balancer_at_nodes_that_drain():
    """All nodes drain, so that of the call does too: the balancer sends no more calls, and cuts none that runs."""
    with balanced(3) as (address, nodes), Tools(address) as tools:
        await_health(nodes, "handy")
        last = begin("call", "handy", "note", "--registry", address)
        await_true(lambda: tools.notes() == 1, "the call runs")
        for node in nodes:
            node.process.send_signal(signal.SIGTERM)
        await_true(lambda: "503" in run("call", "handy", "note", "--registry", address).stderr, "all are marked down")
        assert last.poll() is None
        tools.release()
        assert "noted" in last.communicate(timeout=WAIT_S)[0]
        assert tools.notes() == 1


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
