# SPDX-License-Identifier: Apache-2.0
"""The official SDKs, installed below a build folder, once; without npm, pip or a network what needs them is skipped."""

import fcntl
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "grpc", "interop"))

import peers  # noqa: E402
from scenario import Skip  # noqa: E402

INSTALL_S = 300


def run(command, timeout, **more):
    return subprocess.run(command, check=False, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def install(build, name, files, command):
    """Runs a command in a folder with these files, of this one or by their paths, once for their contents."""
    place = os.path.join(build, name)
    os.makedirs(build, exist_ok=True)
    with open(os.path.join(build, "mcp.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = peers.stamp_of(*(os.path.join(HERE, file) for file in files), also=" ".join(command))
        with peers.made_once(place, stamp) as is_new:
            if not is_new:
                return place
            for file in files:
                shutil.copy(os.path.join(HERE, file), place)
            try:
                done = run(command, INSTALL_S, cwd=place)
            except subprocess.TimeoutExpired:
                raise Skip(f"{command[0]} did not end in time: is there a network?") from None
            if done.returncode:
                raise Skip(f"{command[0]} could not install: {peers.one_line(done.stderr or done.stdout)}")
    return place


def install_npm(build):
    """The folder that has node_modules."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    return install(build, "mcp-npm", ["package.json", "package-lock.json", "client.mjs"],
                   ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retry-mintimeout=2000",
                    "--fetch-retry-maxtimeout=10000"])


def install_python(build, version):
    """A Python that has the SDK."""
    script = f"'{sys.executable}' -m venv v && v/bin/pip install -q --disable-pip-version-check mcp=={version}"
    return os.path.join(install(build, f"mcp-{version}", [], ["sh", "-c", script]), "v", "bin", "python")
