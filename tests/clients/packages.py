# SPDX-License-Identifier: Apache-2.0
"""The packages of clients/, built and installed below a build folder as a user does: a wheel into a venv, a tarball into
a folder. Once for their contents; two tests may want them at once."""

import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "grpc", "interop")]

import peers  # noqa: E402
from scenario import Skip  # noqa: E402

STEP_S = 300
LEFT_OUT = shutil.ignore_patterns("node_modules", "proto", "build", "dist", "*.egg-info", "__pycache__", "*.tgz")


def run(*command, cwd):
    """A step that has to succeed."""
    try:
        done = subprocess.run(command, check=False, text=True, timeout=STEP_S, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{command} did not end in time") from None
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout[-2000:]}")


@contextlib.contextmanager
def made(build, name, *sources):
    """The folder of that name, and whether it is to be filled."""
    os.makedirs(build, exist_ok=True)
    with open(os.path.join(build, name + ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = sorted(file for source in sources for file in glob.glob(os.path.join(ROOT, source), recursive=True)
                       if os.path.isfile(file) and "__pycache__" not in file)
        place = os.path.join(build, name)
        with peers.made_once(place, peers.stamp_of(*files)) as is_new:
            yield place, is_new


def copy_sources(name, place):
    """The package beside proto/, as in the repository, so that nothing is written there."""
    shutil.copytree(os.path.join(ROOT, "clients", name), os.path.join(place, "clients", name), ignore=LEFT_OUT)
    shutil.copytree(os.path.join(ROOT, "proto"), os.path.join(place, "proto"))
    return os.path.join(place, "clients", name)


def install_python(build):
    """A Python of a venv that has the wheel. Its grpcio is Debian's: no network is needed."""
    try:
        python = peers.find_python()
    except peers.Skip as why:
        raise Skip(str(why)) from None
    look = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    if subprocess.run([python, "-c", look, "pip", "setuptools", "wheel"], check=False).returncode:
        raise Skip("/usr/bin/python3 has no pip, setuptools or wheel: tools/setup --test installs them")
    with made(build, "python", "clients/python/**/*", "proto/**/*.proto") as (place, is_new):
        if is_new:
            sources = copy_sources("python", place)
            run(python, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
                "--wheel-dir", place, ".", cwd=sources)
            # Without a pip of its own, which takes longer than all the rest.
            run(python, "-m", "venv", "--system-site-packages", "--without-pip", "venv", cwd=place)
            run(python, "-m", "pip", "--python", "venv/bin/python", "install", "--quiet", "--no-index",
                *glob.glob(os.path.join(place, "*.whl")), cwd=place)
    return os.path.join(place, "venv", "bin", "python")


def install_node(build):
    """A folder whose node_modules has the tarball."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    with made(build, "node", "clients/node/**/*", "proto/**/*.proto", "tests/clients/package*.json") as (place, is_new):
        if is_new:
            for file in glob.glob(os.path.join(HERE, "package*.json")):
                shutil.copy(file, place)
            quiet = ["--no-audit", "--no-fund", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=10000"]
            try:
                run("npm", "ci", "--ignore-scripts", *quiet, cwd=place)
            except AssertionError as error:
                raise Skip(f"npm could not install: {peers.one_line(str(error))}") from None
            run("npm", "pack", "--pack-destination", place, cwd=copy_sources("node", place))
            run("npm", "install", "--no-save", "--offline", *quiet, *glob.glob(os.path.join(place, "*.tgz")), cwd=place)
    return place
