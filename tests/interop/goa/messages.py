# SPDX-License-Identifier: Apache-2.0
"""What entries hold: JSON as Go writes it."""

import json

ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def go_json(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(ESCAPED)


def call(tool_use_id, tool, payload, meta=None, trace=None):
    """`meta` is left out by generation 0."""
    message = {"type": "call", "tool_use_id": tool_use_id, "tool": tool, "payload": payload}
    if meta is not None:
        message["meta"] = meta
    return go_json(message | (trace or {}))


def ping(ping_id):
    return go_json({"type": "ping", "ping_id": ping_id})


class Failure(Exception):
    """An error of a tool: what a handler raises, and what execute() raises."""

    def __init__(self, code, message, issues=None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.issues = code, message, issues


class Result:
    """What a handler returns if there is more than a value."""

    def __init__(self, value, server_data=None, bounds=None):
        self.value, self.server_data, self.bounds = value, server_data, bounds


def result(tool_use_id, answer, generation=1):
    """`answer` is a value, a Result or a Failure. Generation 0 says `result`, later ones `result_json`."""
    message = {"tool_use_id": tool_use_id}
    if isinstance(answer, Failure):
        message["error"] = {"code": answer.code, "message": answer.message}
        if answer.issues:
            message["error"]["issues"] = answer.issues
        return go_json(message)
    answer = answer if isinstance(answer, Result) else Result(answer)
    message["result_json" if generation else "result"] = answer.value
    if answer.server_data:
        message["server_data"] = answer.server_data
    if answer.bounds and generation >= 2:
        message["bounds"] = answer.bounds
    return go_json(message)


def delta(tool_use_id, stream, text):
    return go_json({"tool_use_id": tool_use_id, "stream": stream, "delta": text})


def add(connection, stream, name, payload):
    """An entry of a stream, by a pool or a connection."""
    return connection.call("XADD", "pulse:stream:" + stream, "maxlen", "~", 1000, "*", "n", name, "p", payload)
