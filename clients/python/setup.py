# SPDX-License-Identifier: Apache-2.0
"""Puts the messages of the registry into the package, as protoc reads them from proto/ of the repository. A source
distribution has them already."""

import os
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "..", "..", "proto")
FILES = ["pegboard/v1/registry.proto", "goapb/goa.proto", "google/rpc/status.proto"]
MADE = os.path.join("pegboard", "registry.binpb")


def write_messages(path):
    """A FileDescriptorSet and no generated code: that would fit one version of protobuf only."""
    packed = os.path.join(HERE, "src", MADE)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.isdir(PROTO):
        if os.path.abspath(path) != packed:
            shutil.copyfile(packed, path)
        return
    if not shutil.which("protoc"):
        raise SystemExit("pegboard: there is no protoc: install protobuf-compiler")
    subprocess.run(["protoc", "-I", PROTO, "--include_imports", f"--descriptor_set_out={path}", *FILES], check=True)


class BuildWithMessages(build_py):
    def run(self):
        super().run()
        write_messages(os.path.join(self.build_lib, MADE))


class SourceWithMessages(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_messages(os.path.join(base_dir, "src", MADE))


setup(cmdclass={"build_py": BuildWithMessages, "sdist": SourceWithMessages})
