# SPDX-License-Identifier: Apache-2.0
"""A gateway, a neighbour beside the attack, and what both cost.

Attackers would have processors of their own: here they get what gateway and neighbour leave of them. In the storm every
other call of the neighbour goes to a second gateway, which nobody attacks: what it waits for there the machine does,
which all share, and not the gateway.
"""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "promises")]

from world import Gateway, WAIT_S, stand_back, usual  # noqa: E402

IS_SANITIZED = len(sys.argv) > 2 and sys.argv[2] != "none"

# Long enough for figures that can be read; PEG_STORM_S=2 is for those that are to be told to others. With a sanitizer
# they say nothing.
STORM_S = 0 if IS_SANITIZED else float(os.environ.get("PEG_STORM_S", "1"))
CALM_S = 0.1 if IS_SANITIZED else STORM_S / 3
NEIGHBOUR_PAUSE_S = 0.01 if IS_SANITIZED else 0.0002
RATIOS = []


# ---- figures ----------------------------------------------------------------------------

def memory_mb(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    return 0.0


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


class Neighbour:
    def __init__(self, gateway, other, token=None):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            usual(sys.executable, os.path.join(HERE, "neighbour.py"), gateway.address, other.address, token or "-",
                  str(NEIGHBOUR_PAUSE_S)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", "the neighbour did not start"

    def begin(self, phase):
        self.process.stdin.write(phase + "\n")
        self.process.stdin.flush()

    def end(self):
        said, _ = self.process.communicate(timeout=2 * WAIT_S)
        return json.loads(said)


@contextlib.contextmanager
def battle(title, *arguments, extra_mb, gateway=None, token=None):
    """The block is the attack. The gateway lives, grows by `extra_mb` at most, and no call of the
    neighbour fails."""
    stand_back()
    own = Gateway(*arguments) if not gateway else contextlib.nullcontext(gateway)
    with own as gateway, Gateway() as other:
        gateway.token = token
        neighbour = Neighbour(gateway, other, token)
        neighbour.begin("calm")
        time.sleep(CALM_S)
        before = memory_mb(gateway.process.pid, "VmRSS")
        forget_peak(gateway.process.pid)
        neighbour.begin("stormy")
        began = time.monotonic()
        try:
            yield gateway
        finally:
            seconds = time.monotonic() - began
            neighbour.begin("calm")  # it is before and after
            time.sleep(CALM_S)
            told = neighbour.end()
        assert gateway.process.poll() is None, "the gateway died: " + gateway.said()[-2000:]
        peak = memory_mb(gateway.process.pid, "VmHWM")
        tell(title, seconds, before, peak, memory_mb(gateway.process.pid, "VmRSS"), told)
        # A sanitizer keeps what is freed for a while: then the figures say nothing.
        assert IS_SANITIZED or peak - before <= extra_mb, f"{peak - before:.0f} MB more, {extra_mb} are allowed"
        for phase, figures in told.items():
            assert not figures["failed"], f"{phase}: the neighbour's calls failed: " \
                                          f"{figures['failed']}"


def storm():
    """Again and again, so that there are enough calls beside it to tell."""
    until = time.monotonic() + STORM_S
    yield
    while time.monotonic() < until:
        yield


def tell(title, seconds, before, peak, after, told):
    calm = told["stormy"]["p99"] / max(told["calm"]["p99"], 0.001)
    fair = told["stormy"]["p99"] / max(told["calm"]["p99"], told["aside"]["p99"], 0.001)
    RATIOS.append((calm, fair))
    print(f"# {title}: {seconds:.1f} s; RSS {before:.1f} MB before, {peak:.1f} MB peak, "
          f"{after:.1f} MB after; neighbour p50/p99 ms: " +
          ", ".join(f"{phase} {told[phase]['p50']:.2f}/{told[phase]['p99']:.2f}"
                    for phase in ("calm", "stormy", "aside")) +
          f"; p99 stormy {calm:.1f} of calm, {fair:.1f} of the larger", flush=True)


def tell_ratios():
    if RATIOS:
        calm, fair = zip(*RATIOS)
        print(f"# the neighbour's p99 stayed within twice of calm in {sum(ratio <= 2 for ratio in calm)} of "
              f"{len(calm)} battles, at worst {max(calm):.1f} times; within twice of what it is calm or meanwhile at a "
              f"gateway that nobody attacks in {sum(ratio <= 2 for ratio in fair)}, at worst {max(fair):.1f} times",
              flush=True)


# ---- HTTP/2 by hand ---------------------------------------------------------------------

class Raw:
    """A client that says what it likes and need not read."""

    def __init__(self, gateway, window=0, token=None):
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), WAIT_S)
        self.token = token
        self.stream = -1
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                            frame(4, 0, 0, struct.pack(">HI", 4, window)))

    def headers(self, path):
        fields = [(":method", "POST"), (":scheme", "http"), (":path", path),
                  (":authority", "hostile"), ("te", "trailers"),
                  ("content-type", "application/grpc")]
        if self.token:
            fields.append(("authorization", "Bearer " + self.token))
        return b"".join(literal(name, value) for name, value in fields)

    def open(self, verb, message=None, is_last=True):
        self.stream += 2
        out = frame(1, 4, self.stream, self.headers("/pegboard.v1.Registry/" + verb))
        if message is not None:
            out += data_frames(self.stream, message, is_last)
        self.socket.sendall(out)
        return self.stream

    def send(self, stream, message, is_last=False):
        self.socket.sendall(data_frames(stream, message, is_last))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def frame(kind, flags, stream, body):
    return struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + \
        body


def literal(name, value):
    return b"\x00" + b"".join(bytes((len(part),)) + part if len(part) < 127 else
                              b"\x7f" + varint(len(part) - 127) + part
                              for part in (name.encode(), value.encode()))


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes((n,)))


def data_frames(stream, message, is_last):
    body = b"\x00" + struct.pack(">I", len(message)) + message
    parts = [body[at:at + 16384] for at in range(0, len(body), 16384)]
    return b"".join(frame(0, int(is_last and i == len(parts) - 1), stream, part)
                    for i, part in enumerate(parts))
