# SPDX-License-Identifier: Apache-2.0
"""A gateway for scenarios: processes that go on, what is provided to it, and how it is asked."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time

from scenario import check

DEADLINE_S = 60
NOWHERE = "127.0.0.1:1"  # nobody listens there

MANIFEST = """
toolset: weather
description: Sample weather of some cities
version: 1.2.0
tags: [demo, weather]
tools:
  - name: echo
    description: Says what it was told
    input_schema:
      type: object
      properties:
        city: {type: string, description: Which city}
        days: {type: integer, minimum: 1, maximum: 14}
        tags: {type: array, items: {type: string, maxLength: 20}, minItems: 1}
      required: [city]
    command: [cat]
  - name: fail
    description: Never works
    input_schema: {type: object}
    command: [sh, -c, "echo out of rain >&2; exit 3"]
  - name: say
    description: Says a word
    input_schema: {type: object}
    command: [printf, sunny]
  - name: wait
    description: Says that it runs, and waits for a file
    input_schema: {type: object}
    command: [sh, -c, "touch runs; while [ -e runs ] && [ ! -e go ]; do sleep 0.02; done; printf done"]
"""


# ---- processes -----------------------------------------------------------------------


class Process:
    """A command that goes on; its standard output is read line by line."""

    def __init__(self, w, *arguments, program=None, env=None, stderr=None, pass_fds=()):
        self.command = [program or w.executable, *arguments]
        self.process = subprocess.Popen(
            self.command, cwd=w.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=stderr, bufsize=0, env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        self.read = b""  # and not yet handed out

    def line(self):
        """The next line; "" at the end."""
        while b"\n" not in self.read:
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
            check(ready, self.command, "said nothing but", self.read)
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return ""
            self.read += piece
        line, self.read = self.read.split(b"\n", 1)
        return line.decode() + "\n"

    def line_with(self, *parts):
        """The next line that has all of these."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            line = self.line()
            check(line, self.command, "ended without a line with", parts)
            if all(part in line for part in parts):
                return line
        raise AssertionError(f"{self.command}: no line with {parts}")

    def send(self, number):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait(DEADLINE_S)

    def end(self, number=signal.SIGTERM):
        """Stops it and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if self.process.stderr:
            self.process.stderr.close()


@contextlib.contextmanager
def running(w, *arguments, **more):
    process = Process(w, *arguments, **more)
    try:
        yield process
    finally:
        process.close()


@contextlib.contextmanager
def gateway(w, *arguments, **more):
    """A gateway on a free port, whose log is in `log`; w.at is its address."""
    with running(w, "serve", "--addr", "127.0.0.1:0", "--data-dir", w.path("data"),
                 "--log-file", w.path("log"), *arguments, **more) as serving:
        first = serving.line()
        found = re.search(r"listens on (\S+)\n", first)
        check(found, "it did not say where it listens but", first)
        w.at = found[1]
        yield serving


def make_certificate(w, name="localhost", names="DNS:localhost,IP:127.0.0.1"):
    """The options with which a gateway shows it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", w.path("key.pem"), "-out",
                    w.path("cert.pem"), "-days", "2", "-subj", "/CN=" + name, "-addext",
                    "subjectAltName=" + names],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "--tls-cert", w.path("cert.pem"), "--tls-key", w.path("key.pem")


def ask(w, *arguments, **more):
    return w.pegboard(*arguments, "--registry", w.at, **more)


def until(w, truth, *arguments):
    """Asks again and again until the JSON answer is what it should be."""
    end = time.monotonic() + DEADLINE_S
    answer = None
    while time.monotonic() < end:
        ran = ask(w, *arguments, "--json")
        answer = json.loads(ran.stdout) if ran.status == 0 else None
        if answer is not None and truth(answer):
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{arguments}: still {answer}")


@contextlib.contextmanager
def provided(w, *arguments):
    """The toolset of MANIFEST, provided to w.at."""
    w.write("weather.yaml", MANIFEST)
    with running(w, "provide", "weather.yaml", "--registry", w.at, *arguments,
                 stderr=subprocess.DEVNULL) as providing:
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "weather")
        yield providing
