#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a browser that watches a gateway sees each change, and misses none when it was cut off for a while.

    test_watch.py PEGBOARD
"""

import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "cli")]

from curling import JSON, TOOLSET, VERSIONS, command, curl, wait_for  # noqa: E402
from gateways import gateway, provided  # noqa: E402
from scenario import check, main, scenario  # noqa: E402


class Watch:
    """What a watch says, as (event, name, id), while it is open."""

    def __init__(self, w, *arguments, version="--http1.1", query=""):
        self.seen = []
        self.process = subprocess.Popen(command(w, "/v1/watch" + query, *arguments, version=version), stdout=subprocess.PIPE,
                                        text=True)
        self.reader = threading.Thread(target=self.read)

    def read(self):
        fields = {}
        for line in iter(self.process.stdout.readline, ""):
            name, _, value = line.rstrip("\r\n").partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                self.seen.append([fields["event"], json.loads(fields["data"]).get("name"), fields.get("id")])
            if not name:
                fields = {}

    def __enter__(self):
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.reader.join()
        self.process.wait()
        self.process.stdout.close()

    def until(self, event, name=None):
        wait_for(lambda: any(at[:2] == [event, name] for at in self.seen), (event, name))

    @property
    def events(self):
        """Without the health of what is provided, which may change on a slow machine."""
        return [at[:2] for at in self.seen if at[0] != "health"]

    @property
    def changes(self):
        return [at for at in self.events if at != ["ready", None]]

    @property
    def last_id(self):
        return [at[2] for at in self.seen if at[2]][-1]


def put(w, name, **more):
    check(curl(w, "/v1/toolsets/" + name, "-X", "PUT", "-d", json.dumps({**json.loads(TOOLSET), **more}), *JSON).status == 200)


@scenario
def a_watch_has_what_is_there_and_each_change(w):
    with gateway(w), provided(w):
        for version in VERSIONS:
            with Watch(w, version=version) as watch:
                watch.until("ready")
                check(["present", "weather"] in watch.events, watch.seen)
                put(w, "new")
                watch.until("registered", "new")
                check(curl(w, "/v1/toolsets/new", "-X", "DELETE").status == 204)
                watch.until("unregistered", "new")


@scenario
def a_watch_that_is_resumed_has_what_it_missed(w):
    with gateway(w), provided(w):
        for version in VERSIONS:
            with Watch(w, version=version) as first:
                first.until("ready")
                put(w, "before")
                first.until("registered", "before")
            for name in ("new", "short"):
                put(w, name)
            put(w, "new", description="Changed")
            check(curl(w, "/v1/toolsets/short", "-X", "DELETE").status == 204)
            check(curl(w, "/v1/toolsets/before", "-X", "DELETE").status == 204)
            with Watch(w, "-H", "last-event-id: " + first.last_id, version=version) as again:
                again.until("ready")
                again.until("unregistered", "before")
                check(again.changes == [["registered", "new"], ["changed", "new"], ["unregistered", "short"],
                                        ["unregistered", "before"]], again.seen)
                put(w, "after")
                again.until("registered", "after")
            # Nothing happened: nothing comes. What has other tags is gone for a watch by tag.
            with Watch(w, "-H", "last-event-id: " + again.last_id, version=version) as third:
                third.until("ready")
                check(third.changes == [], third.seen)
            with Watch(w, "-H", "last-event-id: " + first.last_id, version=version, query="?tag=none") as tagged:
                tagged.until("ready")
                tagged.until("unregistered", "new")
                check(["unregistered", "new"] in tagged.events and ["registered", "new"] not in tagged.events, tagged.seen)
            for name in ("new", "after"):
                check(curl(w, "/v1/toolsets/" + name, "-X", "DELETE").status == 204)


@scenario
def a_watch_is_resumed_on_any_loop(w):
    with gateway(w, "--threads", "3"), provided(w):
        with Watch(w) as first:
            first.until("ready")
        put(w, "new")
        for _ in range(6):  # each its own connection
            with Watch(w, "-H", "last-event-id: " + first.last_id) as again:
                again.until("ready")
                again.until("registered", "new")
                check("lost" not in [at[0] for at in again.seen] and "present" not in [at[0] for at in again.seen], again.seen)


@scenario
def a_watch_that_cannot_be_resumed_says_that_something_was_lost(w):
    with gateway(w), provided(w):
        for version in VERSIONS:
            for place in ("7", 16 * "0" + "-1", "x" * 3000):
                with Watch(w, "-H", "last-event-id: " + place, version=version) as watch:
                    watch.until("ready")
                    check(watch.events == [["lost", None], ["present", "weather"], ["ready", None]], watch.seen)
                    check([at[2] is None for at in watch.seen if at[0] != "health"] == [True, True, False], watch.seen)


main()
