# SPDX-License-Identifier: Apache-2.0
"""What happened in a schedule, from every side: callers, providers, registers, and faults. It is a list
of events with times, kept as lines of JSON; checks.py holds it against the promises."""

import json
import time


class Call:
    """One call of the gateway, by its id."""

    def __init__(self, call_id):
        self.id = call_id
        self.n = None  # the number in its payload
        self.tool = None
        self.puts = []  # (when, letter, n, value in hex, time by Redis)
        self.claims = []  # (when, attempt): that was asked for again
        self.starts = []  # (when, attempt, provider, deadline by cluster time, cluster time, node)
        self.produced = []  # hex
        self.answered = []  # (when, provider)
        self.outputs = []  # hex, that callers got


class Ask:
    """One caller's question, until its end."""

    def __init__(self, n, tool, key, node, verb):
        self.n, self.tool, self.key, self.node, self.verb = n, tool, key, node, verb
        self.asked = time.monotonic()
        self.ended = None
        self.end = None  # result, error, left, cut, lost, or the name of an error
        self.started = None  # as the caller was told
        self.is_refused = False  # never admitted: no outcome of the call
        self.call_id = None
        self.response = "-"
        self.message = ""
        self.timeout_s = 0.0
        self.is_patient = False  # asks again when it is refused, or cut off

    def __repr__(self):
        return (f"{self.verb} {self.n} ({self.tool}, key {self.key}) at node {self.node}: {self.end} "
                f"started={self.started} {self.message!r} after {(self.ended or 0) - self.asked:.2f} s")


class History:
    def __init__(self):
        self.began = time.monotonic()
        self.calls = {}
        self.asks = []
        self.faults = []  # {"what", "from", "until", "node", ...}
        self.losses = []  # times at which registers were, or may have been lost
        self.epochs = []  # [from, until]: it changes
        self.steps = []  # times at which clocks of Redis or of nodes were set
        self.lags = []  # (when, seconds): this process was late

    def call(self, call_id):
        if call_id not in self.calls:
            self.calls[call_id] = Call(call_id)
        return self.calls[call_id]

    def on_written(self, call_id, letter, n, value, when):
        self.call(call_id).puts.append((time.monotonic(), letter, n, value.hex() or "-", when))

    def on_repeated(self, call_id, letter, n):
        if letter == "k":
            self.call(call_id).claims.append((time.monotonic(), n))

    def fault(self, what, **more):
        """Goes on until its "until" is set."""
        fault = {"what": what, "from": time.monotonic(), "until": None, **more}
        self.faults.append(fault)
        return fault

    def disturbed(self, begin, end, seconds, kinds=None):
        """Something was wrong at that time, or less than so long before."""
        return any(fault["from"] <= end and begin <= (fault["until"] or end) + seconds for fault in self.faults
                   if kinds is None or fault["what"] in kinds)

    def lost_between(self, begin, end):
        return any(begin <= when <= end for when in self.losses)

    def epoch_changed(self, begin, end):
        return any(start <= end and begin <= until for start, until in self.epochs)

    def lag(self, when):
        return max((lag for at, lag in self.lags if abs(at - when) < 3), default=0.0)

    def write(self, path):
        def at(when):
            return None if when is None else round(when - self.began, 4)

        lines = []
        for ask in self.asks:
            lines.append((ask.asked, {**ask.__dict__, "event": "asked", "asked": at(ask.asked), "ended": at(ask.ended)}))
        for call in self.calls.values():
            for when, letter, n, value, redis_time in call.puts:
                lines.append((when, {"event": "put", "id": call.id, "register": f"{letter}{n}", "value": value,
                                     "redis": redis_time}))
            for when, attempt, provider, deadline, now, node in call.starts:
                lines.append((when, {"event": "started", "id": call.id, "n": call.n, "attempt": attempt,
                                     "provider": provider, "deadline": deadline, "cluster": now, "node": node}))
            for when, provider in call.answered:
                lines.append((when, {"event": "answered", "id": call.id, "n": call.n, "provider": provider}))
        for fault in self.faults:
            lines.append((fault["from"], {**fault, "event": "fault", "from": at(fault["from"]),
                                          "until": at(fault["until"])}))
        with open(path, "w", encoding="utf-8") as file:
            for when, line in sorted(lines, key=lambda pair: pair[0]):
                file.write(json.dumps({"at": at(when), **line}) + "\n")
