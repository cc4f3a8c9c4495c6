# SPDX-License-Identifier: Apache-2.0
"""Servers that speak MongoDB's protocol, fetched and built once, below the build folder.

FerretDB on SQLite keeps what it has acknowledged when it is killed, but its commands are not atomic: of two conditional
replacements of one document at the same time both may succeed, and the first one's document stay. mongo-java-server is
in memory, and atomic, as MongoDB is. PEG_TEST_MONGO_URI names another server, such as a mongod, for what does not have
to start and kill one.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
JAVA = os.path.join(HERE, "java")
sys.path.append(TESTS)

from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from tap import Skip  # noqa: E402  pylint: disable=wrong-import-position

MODULE = "github.com/FerretDB/FerretDB"
VERSION = "v1.24.0"
SUM = "h1:7WJmezL48Bj9bYWnhT/bEJgX5gjT5s7LFdHTqkN25rA="
FETCH_S = 300
BUILD_S = 900
START_S = 60


def one_line(text):
    return " ".join(text.split())[-300:]


def run(command, timeout, **more):
    try:
        return subprocess.run(command, check=False, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    except subprocess.TimeoutExpired:
        raise Skip(f"{command[0]} {command[1]} did not end in {timeout} s") from None


def fetch(env):
    """Its source, where go keeps it."""
    got = run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], FETCH_S, env=env, cwd=tempfile.gettempdir())
    if got.returncode:
        raise Skip(f"go could not fetch FerretDB: {one_line(got.stdout + got.stderr)}")
    module = json.loads(got.stdout)
    if module["Sum"] != SUM:
        raise AssertionError(f"FerretDB {VERSION} is {module['Sum']}, not {SUM}")
    return module["Dir"]


def build_server(build):
    """The program, built once."""
    if not shutil.which("go"):
        raise Skip("there is no go: tools/setup --test installs it")
    place = os.path.join(os.path.abspath(build), "ferretdb-" + VERSION)
    with open(place + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if not os.path.exists(place):
            build_at(place)
    return place


def build_at(place):
    build = os.path.dirname(place)
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    env.setdefault("HOME", build)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(place)) as work:
        source = os.path.join(work, "source")
        shutil.copytree(fetch(env), source, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(source):
            os.chmod(folder, 0o755)  # go keeps its own without the right to write
        # The version is generated before a release, and is not in the module.
        with open(os.path.join(source, "build", "version", "version.txt"), "w", encoding="utf-8") as file:
            file.write(VERSION + "\n")
        made = os.path.join(work, "ferretdb")
        built = run(["go", "build", "-o", made, "./cmd/ferretdb"], BUILD_S, env=env, cwd=source)
        if built.returncode:
            raise Skip(f"go could not build FerretDB: {one_line(built.stderr)}")
        os.rename(made, place)


def build_java_server(build):
    """The path of its classes."""
    for program in ("mvn", "javac"):
        if not shutil.which(program):
            raise Skip(f"there is no {program}: Debian's packages maven and default-jdk-headless have it")
    place = os.path.join(os.path.abspath(build), "mongo-java-server")
    with open(place + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(place):
            with tempfile.TemporaryDirectory(dir=os.path.dirname(place)) as work:
                build_java_at(work)
                os.rename(os.path.join(work, "jars"), place)
    return place + os.sep + "*" + os.pathsep + place


def build_java_at(work):
    jars = os.path.join(work, "jars")
    got = run(["mvn", "-q", "-B", "-f", os.path.join(JAVA, "pom.xml"), "dependency:copy-dependencies",
               "-DoutputDirectory=" + jars], FETCH_S)
    if got.returncode:
        raise Skip(f"mvn could not fetch mongo-java-server: {one_line(got.stdout + got.stderr)}")
    built = run(["javac", "-cp", jars + os.sep + "*", "-d", jars, os.path.join(JAVA, "Server.java")], BUILD_S)
    if built.returncode:
        raise AssertionError("javac: " + built.stderr)


class Server:
    """With a folder and a port of its own, which it keeps when it is started again."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mongo-")
        self.port = free_port()
        self.url = f"mongodb://127.0.0.1:{self.port}/"
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until = time.monotonic() + START_S
        while not self.is_listening():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError("the server did not start: " + self.said()[-500:])
            time.sleep(0.02)
        return self

    def is_listening(self):
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        return False

    def said(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self, sign=signal.SIGKILL):
        self.process.send_signal(sign)
        self.process.wait(START_S)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Mongo(Server):
    """FerretDB."""

    def __init__(self, build, *options):
        self.program = build_server(build)
        super().__init__()
        self.options = options or ("--listen-addr=ADDRESS",)

    def command(self):
        return [self.program, "--handler=sqlite", f"--sqlite-url=file:{self.folder}/", f"--state-dir={self.folder}",
                "--debug-addr=-", "--telemetry=disable",
                *(option.replace("ADDRESS", f"127.0.0.1:{self.port}") for option in self.options)]


class JavaServer(Server):
    def __init__(self, build):
        self.classes = build_java_server(build)
        super().__init__()

    def command(self):
        return ["java", "-Xmx256m", "-cp", self.classes, "Server", str(self.port)]
