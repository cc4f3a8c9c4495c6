#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard provide --direct` is a provider like those of goa-ai: it serves whichever service asks at whichever
node, beside one of theirs, and a call that it was killed in ends once, at another one.

    test_provide.py PEGBOARD
"""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from interop import G0, TOOLSET, V1, await_healthy, await_true, cluster, needs_redis, serving

import tap
from world import PEGBOARD, WAIT_S

MANIFEST = """\
toolset: %s
tools:
  - name: echo.say
    description: Says what it was told.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [cat]
  - name: once.only
    description: Never ends the first time.
    shell: true
    command: if mkdir begun 2>/dev/null; then echo $$ > pid; exec sleep 1000; else echo '{"again":true}'; fi
    timeout: 60s
""" % TOOLSET
PAYLOAD = {"text": "hello <world>"}
REQUESTS = f"pulse:stream:toolset:{TOOLSET}:requests"


class Provide:
    """The command, in a folder of its own or a given one; stopped, by its pid, at the end of the block."""

    def __init__(self, redis, node, folder=None):
        self.redis, self.node = redis, node
        self.folder = folder or tempfile.mkdtemp(prefix="provide-")
        self.is_own = folder is None
        self.lines, self.process, self.reader = [], None, None

    def __enter__(self):
        path = os.path.join(self.folder, "tools.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [PEGBOARD, "provide", "--direct", "redis://" + self.redis.address, "--registry", self.node.address,
             "--no-watch", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        await_true(lambda: self.said("event=attached"), "it has joined")
        return self

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def said(self, words):
        return [line for line in self.lines if words in line]

    def stop(self, sign=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sign)
        return self.process.wait(WAIT_S)

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)
        self.reader.join(WAIT_S)
        self.process.stdout.close()
        if self.is_own:
            shutil.rmtree(self.folder, ignore_errors=True)


def pending(redis):
    return redis.ask("XPENDING", REQUESTS, "provider")[0]


def test_it_serves_whichever_service_asks_at_whichever_node():
    with cluster(3) as (redis, (a, b, c)), V1(b.address) as ours, G0(c.address) as older, Provide(redis, a) as provide:
        for node in (a, b, c):
            await_healthy(node.address)
        for service in (ours, older):
            for _ in range(5):
                assert service.call(TOOLSET, "echo.say", PAYLOAD) == PAYLOAD
        await_true(lambda: len(provide.said("event=end")) == 10, "ten calls have ended")
        await_true(lambda: pending(redis) == 0, "all are acknowledged")
        assert len(provide.said("event=start")) == 10, provide.lines


def test_it_leaves_nothing_behind_when_it_is_stopped():
    with cluster(1) as (redis, (a,)), V1(a.address) as ours, Provide(redis, a) as provide:
        await_healthy(a.address)
        assert ours.call(TOOLSET, "echo.say", PAYLOAD) == PAYLOAD
        await_true(lambda: pending(redis) == 0, "the call is acknowledged")
        assert provide.stop() == 0, provide.lines
        assert redis.ask("XINFO", "CONSUMERS", REQUESTS, "provider") == []
        fields = set(redis.ask("HKEYS", "map:sink:provider:keepalive:content"))
        assert fields <= {b"=rev", b"=kind"}, fields


def test_it_shares_a_toolset_with_a_provider_of_goa_ai():
    taken = []

    def echo_and_note(tool, payload, meta, say):
        del tool, meta, say
        taken.append(payload)
        return payload

    with cluster(2) as (redis, (a, b)), V1(a.address) as at_a, V1(b.address) as at_b, Provide(redis, a) as provide:
        with serving(redis, at_a, echo_and_note) as theirs, concurrent.futures.ThreadPoolExecutor(16) as pool:
            await_healthy(b.address)
            texts = [{"text": str(n)} for n in range(200)]
            assert list(pool.map(lambda text: at_b.call(TOOLSET, "echo.say", text), texts)) == texts
            await_true(lambda: pending(redis) == 0, "all are acknowledged")
            n_ours = len(provide.said("event=start"))
            assert n_ours + len(taken) == 200, (n_ours, len(taken))
            assert n_ours and taken, (n_ours, len(taken))
            consumers = redis.ask("XINFO", "CONSUMERS", REQUESTS, "provider")
            assert len(consumers) == 2, consumers
        assert not theirs.error, theirs.error


def test_a_call_that_it_is_killed_in_ends_once_at_another_one():
    """After the grace of 20 s that the peers have, within the 30 s of the call."""
    with contextlib.ExitStack() as stack:
        redis, (a, b) = stack.enter_context(cluster(2))
        ours = stack.enter_context(V1(b.address))
        first = stack.enter_context(Provide(redis, a))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        await_healthy(b.address)
        waits = pool.submit(ours.call, TOOLSET, "once.only", {}, 60)
        pid_file = os.path.join(first.folder, "pid")
        await_true(lambda: os.path.exists(pid_file) and os.path.getsize(pid_file) > 0, "the command runs")
        stack.enter_context(Provide(redis, a, first.folder))
        first.process.kill()
        try:
            assert waits.result(WAIT_S) == {"again": True}
            await_true(lambda: pending(redis) == 0, "the call is acknowledged")
        finally:
            with open(pid_file, encoding="utf-8") as file, contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read()), signal.SIGKILL)


def test_a_redis_that_cannot_be_named_is_refused_without_its_password():
    done = subprocess.run([PEGBOARD, "provide", "--direct", "redis://:secret@", os.devnull], capture_output=True,
                          text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 2 and "secret" not in done.stderr, done


if __name__ == "__main__":
    if not needs_redis():
        sys.exit(0)
    sys.exit(tap.run(globals()))
