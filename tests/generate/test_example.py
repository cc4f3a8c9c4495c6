#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: one declaration makes a service and its client. What examples/typed has is generated and built, served through a gateway, attached
and by streams on Redis, and called through typed calls; and a client is generated from the gateway itself.

    test_example.py PEGBOARD PROVIDER CLIENT"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from gateways import ask, gateway, running, until  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

PROVIDER, CLIENT = (os.path.abspath(path) for path in sys.argv[2:4])
PRINTS = """\
Rome:
  2026-11-18 68.0, no low
  2026-11-19 69.8, no low
  2 points of a chart, from LIRF
alert 1117
station Rome with 2 below
"""
REFUSED = r"refused: .*there is no city with so long a name\ndoes not fit: .*days.*\n"


def check_calls(w):
    until(w, lambda a: a["health"]["state"] == "healthy", "get", "weather")
    done = subprocess.run([CLIENT, w.at], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    check(done.returncode == 0 and re.fullmatch(re.escape(PRINTS) + REFUSED, done.stdout), done)


@scenario
def a_service_is_called_through_a_gateway(w):
    with gateway(w), running(w, w.at, program=PROVIDER):
        check_calls(w)
        ran = ask(w, "call", "weather", "get", "city=Rome").exits(0)
        ran.mentions('"high":20', '"low":null')


@scenario
def a_client_is_generated_from_a_gateway(w):
    with gateway(w), running(w, w.at, program=PROVIDER):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "weather")
        ask(w, "generate", "--toolset", "weather", "--client", "--flat", "--out", "gen").exits(0).mentions("gen/client.h")
        with open(w.path("gen/types.h"), encoding="utf-8") as file:
            text = file.read()
        check("weather_alert_args_to_tag tag;" in text and "weather_get_args_units units;" in text, text)
        compiler = shutil.which("cc")
        if compiler:
            done = subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I",
                                   os.path.join(ROOT, "include"), w.path("gen/types.c"), w.path("gen/client.c")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
            check(done.returncode == 0, done.stdout)
        ask(w, "generate", "--toolset", "wether", "--out", "gen").exits(1).complains("weather")


@scenario
def a_service_is_called_by_streams_on_redis(w):
    program = shutil.which("redis-server")
    if not program:
        raise Skip("there is no redis-server")
    socket = w.path("redis")
    with running(w, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", w.directory, program=program) as redis:
        redis.line_with("ready to accept connections")
        url = f"unix://{socket}"
        with gateway(w, "--redis", url), running(w, w.at, url, program=PROVIDER):
            check_calls(w)


main()
