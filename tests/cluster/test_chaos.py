#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A few schedules of chaos.py, and that it finds what it is there to find.

    test_chaos.py BUILD
"""

import os
import random
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
sys.dont_write_bytecode = True

import tap  # noqa: E402

BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
CALL = "00112233445566778899aabbccddee%02x"


def chaos(*options):
    """Its exit code, and what it said."""
    done = subprocess.run([os.path.join(HERE, "chaos.py"), "--build", BUILD, *map(str, options)], capture_output=True,
                          text=True, check=False, timeout=560)
    return done.returncode, done.stdout + done.stderr


def keeps(*options):
    code, said = chaos(*options)
    assert code == 0, said


def finds(plant, kind, promises):
    """Within some schedules: which steps of two processes meet is not the seed's to decide."""
    for seed in range(1, 16, 3):
        code, said = chaos("--plant", plant, "--kind", kind, "--seed", seed, "--schedules", 3, "--jobs", 3)
        found = [promise for promise in promises if f"# {promise}: " in said]
        folders = [line.split("kept in ")[1] for line in said.splitlines() if "kept in " in line]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        if found:
            assert code == 1
            return
    raise AssertionError(f"not found: {said}")


def check(*lines):
    done = subprocess.run([os.path.join(BUILD, "tests", "cluster", "cluster_check_history")],
                          input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [line.split(" ")[1] for line in done.stdout.splitlines()]


# ---- what breaks a promise, to the simulator's checker --------------------------------------

def test_a_history_in_which_every_promise_is_kept_is_accepted():
    assert not check(f"call {CALL % 1} 0 0", "start 1 p", "produce 120131", "notify result - 1 120131", "end")


def test_two_starts_of_one_call_are_found():
    assert check(f"call {CALL % 1} 0 0", "start 1 p", "start 1 q", "end") == ["start"]
    assert not check(f"call {CALL % 1} 1 0", "start 1 p", "start 2 q", "end"), "it is idempotent"


def test_two_ends_of_one_call_are_found():
    assert check(f"call {CALL % 1} 0 0", "start 1 p", "produce 120131", "produce 120132", "notify result - 1 120131",
                 "notify result - 1 120132", "end") == ["once"]


def test_a_call_that_was_started_and_is_said_not_to_be_is_found():
    assert check(f"call {CALL % 1} 0 0", "start 1 p", "refused", "end") == ["unstarted"]


def test_a_result_that_no_provider_sent_is_found():
    assert check(f"call {CALL % 1} 0 0", "start 1 p", "produce 120131", "notify result - 1 120132",
                 "end") == ["result"]


# ---- processes ------------------------------------------------------------------------------

def test_every_promise_is_kept_in_schedules_that_were_chosen():
    keeps("--seed", 1001, "--schedules", 4, "--jobs", 4, "--seconds", 5)


def test_every_promise_is_kept_in_a_schedule_that_was_not():
    keeps("--seed", random.randrange(1 << 30), "--kind", "all", "--seconds", 5)


def test_a_rolling_restart_under_load_fails_no_call():
    keeps("--seed", 1, "--kind", "rolling")


def test_a_node_that_hands_calls_over_without_their_claim_is_found():
    finds("claim", "calm", ("unstarted", "start"))


def test_a_node_that_acts_on_what_it_knew_before_it_stood_still_is_found():
    finds("fence", "stops", ("fence",))


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
