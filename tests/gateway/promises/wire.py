# SPDX-License-Identifier: Apache-2.0
"""What lies between a provider and its gateway when the network is to blame, and a provider that is
a process of its own."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

from world import HERE, WAIT_S, await_true

TAIL_BYTES = 4096


class Wire:
    """Passes the bytes of one connection on, until it is told not to. HTTP/2 never hears of it."""

    def __init__(self, gateway):
        self.to = ("127.0.0.1", gateway.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.tail = b""  # of what the gateway was sent
        self.is_mute = False
        self.flows = threading.Event()
        self.flows.set()
        self.ends = ()
        threading.Thread(target=self.connect, daemon=True).start()

    def connect(self):
        with contextlib.suppress(OSError):
            near, _ = self.listener.accept()
            self.listener.close()
            far = socket.create_connection(self.to)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is passed has arrived
            self.ends = (near, far)
            threading.Thread(target=self.pass_down, args=self.ends, daemon=True).start()
            while piece := near.recv(65536):
                far.sendall(piece)
                self.tail = (self.tail + piece)[-TAIL_BYTES:]
            self.cut()

    def pass_down(self, near, far):
        with contextlib.suppress(OSError):
            while piece := far.recv(65536):
                self.flows.wait()
                if not self.is_mute:
                    near.sendall(piece)
            self.cut()

    def mute(self):
        """What the gateway says is lost from here on."""
        self.is_mute = True

    def hold(self):
        """Nobody reads what the gateway says, for a while."""
        self.flows.clear()

    def go_on(self):
        self.flows.set()

    def await_passed(self, words):
        await_true(lambda: words in self.tail, f"the gateway was sent {words}")

    def cut(self):
        """Both see that the connection has ended, and nothing else."""
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def reset(self):
        """The gateway hears that there is no such connection, as from a machine that was restarted.
        What has arrived there before is not unsaid."""
        near, far = self.ends
        self.ends = (near,)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.shutdown(socket.SHUT_RD)  # who reads it lets go of it
        far.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self.listener.close()
        for end in self.ends:
            end.close()


class ProviderProcess:
    """provider_process.py: it says what it gets, and does what it is told."""

    def __init__(self, gateway, name, credits=4):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, os.path.join(HERE, "provider_process.py"), gateway.address, name,
             str(credits)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hears("ready")

    def hears(self, words):
        line = self.process.stdout.readline()
        assert line == words + "\n", f"it said {line!r}, not {words!r}"

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_S)

    def pause(self):
        """Back when it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()  # one that is paused, too
        self.process.stdin.close()
        self.process.stdout.close()
