# SPDX-License-Identifier: Apache-2.0
"""A gateway, and programs that go on while a test talks with them. Each is ended by its pid."""

import contextlib
import fcntl
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "grpc", "interop")]

import peers  # noqa: E402
import scenario  # noqa: E402
from scenario import Skip, check  # noqa: E402

PEGBOARD, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
WAIT_S = 60


def environment(**more):
    """Ours without proxies, for all that is called is on this machine, and without a gateway's settings."""
    return {**{name: value for name, value in peers.direct().items()
               if not name.startswith(("REGISTRY_", "REDIS_", "PEGBOARD_", "PING_"))}, **more}


def install_npm():
    """The folder with buf and grpc-js; two tests may want it at once."""
    os.makedirs(BUILD, exist_ok=True)
    with open(os.path.join(BUILD, "npm.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return peers.install_npm(BUILD)
        except peers.Skip as why:
            raise Skip(str(why)) from None


class Process:
    """A program whose lines are read as they come."""

    def __init__(self, command, **more):
        self.command = command
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
                                        text=True, env=environment(), **more)
        self.lines = queue.Queue()
        self.said = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self):
        """The next line, or None at the end."""
        try:
            found = self.lines.get(timeout=WAIT_S)
        except queue.Empty:
            raise AssertionError(f"{self.command} said nothing more: {self}") from None
        self.said.append(found or "")
        return found

    def line_with(self, part):
        while (found := self.line()) is not None:
            if part in found:
                return found
        raise AssertionError(f"{self.command} ended without {part!r}: {self}")

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def stop(self, sign=signal.SIGTERM):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command} did not end: {self}") from None

    def __str__(self):
        self.stderr.seek(0)
        return "".join(self.said)[-2000:] + self.stderr.read().decode(errors="replace")[-2000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):  # what was not read by one that is gone
            self.process.stdin.close()
        self.stderr.close()


class Gateway(Process):
    """`pegboard serve` on a free port, which forgets its toolsets at the end."""

    def __init__(self, *options, address="127.0.0.1:0"):
        super().__init__([PEGBOARD, "serve", "--store", "memory", "--addr", address, *options])
        self.address = self.line_with("the gateway listens on ").split()[-1]
        self.port = int(self.address.rpartition(":")[2])


def run(command):
    done = subprocess.run(command, check=False, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    return scenario.Ran(command, done)


def same(got, wanted):
    check(got == wanted, repr(got), "should be", repr(wanted))
