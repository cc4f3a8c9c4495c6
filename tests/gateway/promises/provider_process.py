#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A provider that can be killed and paused.

    provider_process.py ADDRESS TOOLSET CREDITS

It says `ready`, then `call PAYLOAD` for each call that it gets, and `sent` when an answer has left
it. It is told, about the call that it got last, `half RESULT` (more would follow) or `all RESULT`.
"""

import os
import sys
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.dont_write_bytecode = True

from world import Provider  # noqa: E402

LOCK = threading.Lock()


def say(words):
    with LOCK:
        print(words, flush=True)


class Talking(Provider):
    """Whoever asks for the next frame has written the one before."""

    last = None

    def frames(self):
        for frame in super().frames():
            yield frame
            if frame.WhichOneof("frame") == "result":
                say("sent")

    def take(self, frame):
        if frame.WhichOneof("frame") == "call":
            self.last = frame.call
            say("call " + frame.call.payload.decode())
        else:
            super().take(frame)


def main():
    address, name, credits = sys.argv[1:]
    provider = Talking(types.SimpleNamespace(address=address), name, credits=int(credits)).ready()
    say("ready")
    for line in sys.stdin:
        how, result = line.split()
        provider.answer(provider.last, result.encode(), more=how == "half")


main()
