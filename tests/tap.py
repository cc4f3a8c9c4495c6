# SPDX-License-Identifier: Apache-2.0
"""Runs the functions test_... of a module and says in TAP what came of them."""

import traceback


class Skip(Exception):
    """What a test raises that cannot run here: why."""


def run(module):
    """`module` is the globals() of the caller. Returns the exit code."""
    tests = [(name[5:], fn) for name, fn in module.items() if name.startswith("test_")]
    n_failed = 0

    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {i} - {name}")
        except Skip as reason:
            print(f"ok {i} - {name} # SKIP {reason}")
        except Exception:  # pylint: disable=broad-except
            n_failed += 1
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "))
            print(f"not ok {i} - {name}")
    return 1 if n_failed else 0
