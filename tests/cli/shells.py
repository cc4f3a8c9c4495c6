# SPDX-License-Identifier: Apache-2.0
"""What shells complete a line with, by their own completion and ours."""

import os
import shutil
import subprocess

from scenario import ROOT, Skip, check

COMPLETIONS = os.path.join(ROOT, "src", "cli", "completions")
HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE_S = 60


def ask(command, directory, env):
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    done = subprocess.run(
        command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False,
        env={**os.environ, "HOME": directory, **(env or {})})
    check(done.returncode == 0 and done.stderr == "", done.stderr)
    return done.stdout.splitlines()


def zsh_completes(line, directory, env=None):
    script = os.path.join(HERE, "complete.zsh")
    return [match.strip() for match in ask(["zsh", "-f", script, COMPLETIONS, line], directory, env)
            if match.strip()]


def fish_completes(line, directory, env=None):
    """Without what fish says about each."""
    script = "source $argv[1]; complete --do-complete $argv[2]"
    file = os.path.join(COMPLETIONS, "pegboard.fish")
    return [match.split("\t")[0]
            for match in ask(["fish", "--no-config", "-c", script, file, line], directory, env)]
