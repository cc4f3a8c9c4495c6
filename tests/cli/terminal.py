# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal, for scenarios."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from gateways import DEADLINE_S
from scenario import check


class Terminal:
    """A command on a terminal of 60 columns; its standard error may go to a file."""

    def __init__(self, w, *command, errors=None):
        self.errors = errors
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(w.directory)
            for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore them
            os.environ.update(TERM="xterm", NO_COLOR="")
            if errors:
                os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
            os.execvp(command[0], command)
        self.seen = b""
        self.deadline = time.monotonic() + DEADLINE_S

    def _read(self):
        """False at the end."""
        left = self.deadline - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            os.kill(self.pid, signal.SIGKILL)
            raise AssertionError(f"time is over, and the terminal has {self.seen[-2000:]}")
        try:
            piece = os.read(self.fd, 65536)
        except OSError:  # its other end is closed
            return False
        self.seen += piece
        return bool(piece)

    def shows(self, words, after=0):
        """Reads until they are there, behind that place; returns where they end."""
        while self.seen.find(words, after) < 0:
            check(self._read(), "it ended without", words, self.seen)
        return self.seen.index(words, after) + len(words)

    def shows_either(self, words, others, after=0):
        """Reads until one of them is there; True if it is the first."""
        while words not in self.seen[after:]:
            if others in self.seen[after:]:
                return False
            check(self._read(), "it ended without", words, "and", others, self.seen)
        return True

    def types(self, keys):
        os.write(self.fd, keys)

    def kills(self, number):
        """The job in the foreground."""
        os.killpg(os.tcgetpgrp(self.fd), number)

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def ends(self):
        """Its exit status."""
        while self._read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def ends_unread(self):
        """The same, but nothing is read before that."""
        while not (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            if time.monotonic() > self.deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("time is over, and it waits for the terminal")
            time.sleep(0.02)
        while self._read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(found[1])

    def complaints(self):
        with open(self.errors, encoding="utf-8") as file:
            return file.read()
