# SPDX-License-Identifier: Apache-2.0
"""The registry, without its gRPC: what it does on Redis when it starts, registers, pings, calls, unregisters and stops.
Generations 1 and 2: that of generation 0 loses results of fast providers, and is nothing to compare with.

Time is the caller's: ping() is called when its ticker would be due."""

import base64
import time
import uuid

from . import messages
from .maps import Map
from .messages import go_json
from .sink import Sink, make_ulid

MAPS_FIRST = ("health", "toolsets", "shutdown", "node-keepalive")
MAPS_LATER = ("workers", "jobs", "job-payloads", "worker-keepalive", "tickers", "cleanup", "pending-jobs")
MAPS_LEFT = ("node-keepalive", "shutdown", "workers", "worker-keepalive", "cleanup", "jobs", "pending-jobs",
             "job-payloads", "tickers")
INTERVAL_S = 10
RESULT_TTL_S = 900


def as_base64(text):
    return base64.b64encode(text.encode()).decode()


class Registry:
    def __init__(self, pool, generation=1, name="registry"):
        self.pool, self.generation, self.name = pool, generation, name
        self.node = make_ulid()
        self.maps, self.tokens, self.due = {}, {}, {}
        pool.call("PING")
        for item in MAPS_FIRST:
            self.join(item)
        self.maps["node-keepalive"].set(self.node, time.time_ns())
        for item in MAPS_LATER:
            self.join(item)
        self.events = Sink(pool, name + ":pool", "events", "$", generation)
        self.node_stream = f"{name}:node:{self.node}"
        self.open_node_stream()

    def join(self, item):
        self.maps[item] = Map(self.pool, f"{self.name}:{item}", self.generation)

    def open_node_stream(self):
        self.reader = self.pool.take()
        messages.add(self.reader, self.node_stream, "i", self.node)
        first = self.read_node("0")[0][1][0][0].decode()
        self.reader.send("XREAD", "count", 1000, "block", 5000, "streams", "pulse:stream:" + self.node_stream, first)

    def read_node(self, after):
        return self.reader.call("XREAD", "count", 1000, "block", 5000, "streams", "pulse:stream:" + self.node_stream,
                                after)

    # ---- what its RPCs do ----

    def register(self, toolset, description, version, tags, tools):
        """`tools` are (name, description, tags, payload schema, result schema)."""
        stream_id = f"toolset:{toolset}:requests"
        record = {"Name": toolset, "Description": description, "Version": version, "Tags": tags,
                  "Tools": [{"Name": name, "Description": words, "Tags": of_tool, "PayloadSchema": as_base64(takes),
                             "ResultSchema": as_base64(gives), "SidecarSchema": None}
                            for name, words, of_tool, takes, gives in tools]}
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.generation == 1:
            record |= {"StreamID": stream_id, "RegisteredAt": date}
        else:
            self.tokens[toolset] = str(uuid.uuid4())
            record = {"toolset": record | {"RegisteredAt": date}, "registration_token": self.tokens[toolset]}
        self.maps["toolsets"].set("registry:toolset:" + toolset, go_json(record))
        if self.generation == 1:
            self.maps["toolsets"].set("registry:toolsets:" + toolset, time.time_ns())
        self.due[toolset] = f"{time.time_ns() // 1000 + INTERVAL_S * 1000000}|{INTERVAL_S}s"
        self.maps["tickers"].set(self.ticker(toolset), self.due[toolset])
        return stream_id

    def ticker(self, toolset):
        return f"{self.name}:registry:ping:{toolset}"

    def ping(self, toolset):
        before, after = self.due[toolset], int(self.due[toolset].split("|")[0]) + INTERVAL_S * 1000000
        self.due[toolset] = f"{after}|{INTERVAL_S}s"
        self.maps["tickers"].run("test_and_set", self.ticker(toolset), before, self.due[toolset])
        ping_id = str(uuid.uuid4())
        if self.generation == 2:
            ping_id = self.tokens[toolset] + "/" + ping_id
        messages.add(self.pool, f"toolset:{toolset}:requests", "ping", messages.ping(ping_id))

    def pong(self, toolset):
        value = time.time_ns()
        if self.generation == 2:
            if toolset not in self.tokens:
                return
            value = go_json({"registration_token": self.tokens[toolset], "last_pong_unix_nano": value})
        self.maps["health"].set("registry:health:" + toolset, value)

    def call(self, toolset, tool, payload, meta):
        tool_use_id = str(uuid.uuid4())
        stream = "result:" + tool_use_id
        messages.add(self.pool, stream, "init", "{}")
        self.pool.call("EXPIRE", "pulse:stream:" + stream, RESULT_TTL_S, "NX")
        messages.add(self.pool, f"toolset:{toolset}:requests", "call",
                     messages.call(tool_use_id, tool, payload, meta))
        return tool_use_id, stream

    def unregister(self, toolset):
        fields = {"toolset": ("toolsets", "registry:toolset:" + toolset),
                  "index": ("toolsets", "registry:toolsets:" + toolset),
                  "ticker": ("tickers", self.ticker(toolset)), "health": ("health", "registry:health:" + toolset)}
        order = ("toolset", "index", "ticker", "health") if self.generation == 1 else ("toolset", "health", "ticker")
        for step in order:
            item, field = fields[step]
            self.maps[item].delete(field)

    def stop(self):
        self.events.close()
        for item in MAPS_LEFT:
            self.maps[item].close()
        self.pool.call("DEL", "pulse:stream:" + self.node_stream)
        name = f"stream:{self.node_stream}:sinks"
        if self.generation == 1:
            self.pool.call("DEL", f"map:{name}:content")
            self.pool.call("PUBLISH", f"map:{name}:updates", "reset:*")
        else:
            self.pool.call("EXISTS", f"map:{name}:content")
        for item in MAPS_FIRST[:2]:
            self.maps[item].close()
        self.pool.drop(self.reader)
