# SPDX-License-Identifier: Apache-2.0
"""What a handler sees of its call, if it has a parameter of this type."""

from __future__ import annotations

import threading
from typing import Any, Callable

DELTA_CHARS = 16 << 10  # 64 KiB, if each has four bytes


class Call:
    """One running call. Its methods may be used from any thread."""

    def __init__(self, frame: Any, send_delta: Callable[[str, str], None]) -> None:
        self._send_delta = send_delta
        self._canceled = threading.Event()
        self._stop: Callable[[], None] | None = None
        self.frame = frame  # pegboard.v1.Call, as it came
        self.id: str = frame.call_id
        self.attempt: int = frame.attempt
        self.tool: str = frame.tool
        self.caller: str = frame.caller  # the principal
        self.deadline: float = frame.deadline_unix_ms / 1000  # as time.time() counts
        self.metadata: dict[str, str] = {entry.key: entry.value for entry in frame.metadata}

    @property
    def is_canceled(self) -> bool:
        """No caller waits any more: stop early."""
        return self._canceled.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps; returns True at once when the call is canceled."""
        return self._canceled.wait(seconds)

    def say(self, text: str, stream: str = "output") -> None:
        """To callers who stream. Nothing waits for them: what they do not take in time is left out."""
        for at in range(0, len(text), DELTA_CHARS):
            self._send_delta(stream, text[at:at + DELTA_CHARS])

    # ---- for the provider ----

    def _on_cancel(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self._canceled.is_set():
            stop()

    def _cancel(self) -> None:
        if self._canceled.is_set():
            return
        self._canceled.set()
        if self._stop:
            self._stop()
