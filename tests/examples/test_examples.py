#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the examples are what they promise to be. Each prints exactly what examples/expected/ has,
is shorter than 80 lines, and needs nothing but the public headers.

    test_examples.py DIRECTORY_OF_THE_BUILT_EXAMPLES
"""

import glob
import os
import re
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


for example in EXAMPLES:
    add_example(example)


@scenario
def examples_fit_two_screens(w):
    for name in EXAMPLES:
        n_lines = read(f"{name}.c").count("\n")
        check(n_lines <= MAX_LINES, f"{name}.c has {n_lines} lines, more than {MAX_LINES}")


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
