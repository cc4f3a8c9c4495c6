# SPDX-License-Identifier: Apache-2.0
"""Scenario tests of the real command, in TAP.

A file states its goal, defines functions marked @scenario whose names are sentences, and ends in
main(). Each scenario gets a World: a temporary directory and the command to run in it.

    @scenario
    def a_valid_instance_exits_with_0(w):
        w.write("call.json", "{}")
        w.pegboard("validate", "schema.json", "call.json").exits(0).prints("call.json: valid\\n")

The first argument of the program is the path of the pegboard executable.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT_S = 120
_scenarios = []


class Skip(Exception):
    pass


def scenario(function):
    _scenarios.append(function)
    return function


def check(truth, *about):
    if not truth:
        raise AssertionError(" ".join(str(a) for a in about))


class Ran:
    """What a command did."""

    def __init__(self, command, done):
        self.command, self.status = command, done.returncode
        self.stdout, self.stderr = done.stdout, done.stderr

    def __str__(self):
        return f"{self.command}\nexit status {self.status}\nstdout: {self.stdout!r}\nstderr: {self.stderr!r}"

    def exits(self, status):
        check(self.status == status, f"expected exit status {status}:", self)
        return self

    def prints(self, stdout):
        check(self.stdout == stdout, f"expected stdout {stdout!r}:", self)
        return self

    def mentions(self, *parts):
        for part in parts:
            check(part in self.stdout, f"expected {part!r} on stdout:", self)
        return self

    def complains(self, *parts):
        for part in parts:
            check(part in self.stderr, f"expected {part!r} on stderr:", self)
        return self

    def is_silent(self):
        check(self.stderr == "", "expected nothing on stderr:", self)
        return self

    def objects(self):
        return [json.loads(line) for line in self.stdout.splitlines()]


class World:
    def __init__(self, directory):
        self.directory = directory
        self.executable = os.path.abspath(sys.argv[1])

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        """Text, bytes, or anything else as JSON."""
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        if isinstance(content, str):
            content = content.encode()
        with open(self.path(name), "wb") as file:
            file.write(content)

    def pegboard(self, *arguments, stdin="", env=None, **more):
        command = [self.executable, *arguments]
        done = subprocess.run(
            command, input=stdin, cwd=self.directory, timeout=TIMEOUT_S, check=False, text=True,
            errors="surrogateescape", env={**os.environ, **(env or {})},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})
        return Ran(command, done)


def main():
    failed = 0
    print(f"1..{len(_scenarios)}")
    for n, function in enumerate(_scenarios, 1):
        name = function.__name__.replace("_", " ")
        try:
            with tempfile.TemporaryDirectory() as directory:
                function(World(directory))
            print(f"ok {n} - {name}", flush=True)
        except Skip as why:
            print(f"ok {n} - {name} # SKIP {why}", flush=True)
        except Exception:  # whatever it is, the next scenario still runs
            failed += 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            print(f"not ok {n} - {name}", flush=True)
    sys.exit(1 if failed else 0)
