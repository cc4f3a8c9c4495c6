# SPDX-License-Identifier: Apache-2.0
"""Stock curl against the HTTP API of a gateway, in both versions of HTTP."""

import json
import subprocess
import time

import gateways
from scenario import check

VERSIONS = ("--http1.1", "--http2-prior-knowledge")
JSON = ("-H", "content-type: application/json")
TIME_S = 60


class Answer:
    def __init__(self, command, ran):
        check(ran.returncode == 0, command, ran.returncode, ran.stderr)
        head, _, self.text = ran.stdout.decode().partition("\r\n\r\n")
        while head.startswith("HTTP/1.1 100"):
            head, _, self.text = self.text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def type(self):
        return self.headers.get("content-type", "").split(";")[0]

    @property
    def events(self):
        """(event, data) of each."""
        found = []
        for block in self.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
            if fields:
                found.append((fields.get("event"), json.loads(fields["data"])))
        return found

    def __str__(self):
        return f"{self.status} {self.headers} {self.text}"


def command(w, path, *arguments, version="--http1.1"):
    return ["curl", "-sS", "-i", "-N", version, "-m", str(TIME_S), *arguments, f"http://{w.at}{path}"]


def curl(w, path, *arguments, version="--http1.1"):
    line = command(w, path, *arguments, version=version)
    return Answer(line, subprocess.run(line, capture_output=True, check=False))


def wait_for(truth, what):
    end = time.monotonic() + gateways.DEADLINE_S
    while not truth():
        check(time.monotonic() < end, "still not:", what)
        time.sleep(0.02)


def problem(answer, status, name):
    check(answer.status == status and answer.type == "application/problem+json", answer)
    check(answer.json["type"] == name and answer.json["status"] == status, answer)
    check(answer.json["title"] and answer.json["detail"], answer)
    return answer.json


TOOLSET = json.dumps({
    "description": "Made by hand", "version": "1.0.0", "tags": ["hand", "made"],
    "tools": [{"name": "t", "description": "d", "input_schema": {"type": "object", "properties": {"a": {"const": 1.50}}},
               "read_only": True, "timeout_ms": 5}]})
