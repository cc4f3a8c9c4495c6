#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a service manager knows when the gateway or a provider is ready, reloads and stops."""

import contextlib
import signal
import socket
import subprocess

from gateways import DEADLINE_S, MANIFEST, gateway, running
from scenario import check, main, scenario


class Manager:
    """What a service manager receives."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(DEADLINE_S)

    def receives(self, *lines):
        got = self.socket.recv(4096).decode().split("\n")
        check(len(got) == len(lines) and all(g.startswith(l) for g, l in zip(got, lines)), got, lines)


@contextlib.contextmanager
def manager(address):
    told = Manager(address)
    try:
        yield told
    finally:
        told.socket.close()


def serve_reports_its_states(w, address, name):
    with manager(address) as told, gateway(w, env={"NOTIFY_SOCKET": name}) as serving:
        told.receives("READY=1")
        serving.send(signal.SIGHUP)
        told.receives("RELOADING=1", "MONOTONIC_USEC=")
        told.receives("READY=1")
        serving.send(signal.SIGTERM)
        told.receives("STOPPING=1")
        check(serving.wait() == 0)


@scenario
def serve_reports_a_manager_at_a_path(w):
    serve_reports_its_states(w, w.path("notify"), w.path("notify"))


@scenario
def serve_reports_a_manager_that_has_no_file(w):
    name = "pegboard-test-" + w.path("")[-12:].strip("/")
    serve_reports_its_states(w, "\0" + name, "@" + name)


@scenario
def serve_runs_where_the_manager_is_gone(w):
    with gateway(w, env={"NOTIFY_SOCKET": w.path("nowhere")}) as serving:
        check(serving.end() == 0)
    with gateway(w, env={"NOTIFY_SOCKET": "relative"}) as serving:
        check(serving.end() == 0)


@scenario
def provide_is_ready_also_while_it_waits_for_its_gateway(w):
    w.write("weather.yaml", MANIFEST)
    with manager(w.path("notify")) as told, \
            running(w, "provide", "weather.yaml", "--registry", "127.0.0.1:1",
                    env={"NOTIFY_SOCKET": w.path("notify")}, stderr=subprocess.DEVNULL) as providing:
        told.receives("READY=1")
        providing.end()


if __name__ == "__main__":
    main()
