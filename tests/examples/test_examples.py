#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the examples are what they promise to be. Each prints exactly what examples/expected/ has,
is shorter than 80 lines, and needs nothing but the public headers.

    test_examples.py DIRECTORY_OF_THE_BUILT_EXAMPLES
"""

import glob
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from scenario import ROOT, TIMEOUT_S, Ran, check, main, scenario  # noqa: E402

BUILT = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(ROOT, "examples")
EXAMPLES = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(FOLDER, "*.c")))
MAX_LINES = 79
HEADERS = re.compile(r"#include <(pegboard/\w+|pthread|semaphore|signal|stdio|stdlib|string|sys/wait|unistd)\.h>")

# Those that take arguments, or whose exit status says something.
ARGUMENTS = {"first_tool": ['{"city": "Oslo"}']}
STATUS = {"first_check": 1}
# Those that run until SIGTERM, and before them what they need; here they listen and connect there.
SERVERS = {"embed_gateway": [], "provider": ["embed_gateway"]}
ADDRESS = "unix:gateway.sock"


def read(path):
    with open(os.path.join(FOLDER, path), encoding="utf-8") as file:
        return file.read()


def add_example(name):
    def run(w):
        command = [os.path.join(BUILT, name), *ARGUMENTS.get(name, [])]
        done = subprocess.run(command, cwd=w.directory, check=False, text=True, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        ran = Ran(command, done).exits(STATUS.get(name, 0)).is_silent()
        ran.says(read(f"expected/{name}.txt"))

    run.__name__ = f"{name}_prints_what_is_expected"
    scenario(run)


class Server:
    """A program that says one line when it is there."""

    def __init__(self, w, name):
        self.command = [os.path.join(BUILT, name), ADDRESS]
        self.process = subprocess.Popen(self.command, cwd=w.directory, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.first_line = self.process.stdout.readline()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            rest, complaints = self.process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return Ran(self.command, subprocess.CompletedProcess(
            self.command, self.process.returncode, self.first_line + rest, complaints))


def add_server(name):
    def run(w):
        servers = [Server(w, each) for each in [*SERVERS[name], name]]
        ended = [server.end() for server in reversed(servers)]
        for ran in ended:
            ran.exits(0).is_silent()
        ended[0].says(read(f"expected/{name}.txt"))

    run.__name__ = f"{name}_serves_until_it_is_told_to_end"
    scenario(run)


for example in EXAMPLES:
    if example in SERVERS:
        add_server(example)
    else:
        add_example(example)


@scenario
def examples_fit_two_screens(w):
    for name in EXAMPLES:
        n_lines = read(f"{name}.c").count("\n")
        check(n_lines <= MAX_LINES, f"{name}.c has {n_lines} lines, more than {MAX_LINES}")


@scenario
def a_gateway_fits_forty_lines(w):
    check(read("embed_gateway.c").count("\n") < 40, "embed_gateway.c is longer")


@scenario
def examples_use_public_headers_only(w):
    for name in EXAMPLES:
        for line in re.findall(r"^[ \t]*#[ \t]*include.*", read(f"{name}.c"), re.M):
            check(HEADERS.fullmatch(line), f"{name}.c: {line}")


@scenario
def nothing_is_expected_of_a_program_that_is_not_there(w):
    expected = sorted(os.path.basename(path)[:-4]
                      for path in glob.glob(os.path.join(FOLDER, "expected", "*")))
    check(expected == EXAMPLES, "expected are", expected, "but there are", EXAMPLES)


if __name__ == "__main__":
    main()
