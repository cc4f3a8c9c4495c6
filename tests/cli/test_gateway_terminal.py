#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: who asks a gateway from a terminal gets colour, a status that draws itself anew, and the
terminal back as it was, whatever happens."""

import os
import re
import select
import signal
import time

from gateways import NOWHERE, gateway, provided
from scenario import check, main, scenario
from terminal import Terminal

OPENS, CLOSES = b"\x1b[?1049h", b"\x1b[?1049l"


def status(w, at):
    return Terminal(w, w.executable, "status", "--interval", "100ms", "--registry", at,
                    errors=w.path("stderr"))


def status_in_shell(w, at, script):
    """As a job of a shell, which then does what the script says."""
    return Terminal(w, "bash", "-c", 'ulimit -c 0; set -m; "$@"; ' + script, "bash", w.executable,
                    "status", "--interval", "100ms", "--registry", at)


def hold(terminal):
    """Until the next key that is a signal; the status comes to where it waits for the terminal."""
    terminal.types(b"\x13")
    time.sleep(0.5)


def fill(terminal):
    """Nobody reads: until it takes nothing, and the status comes to where it waits for it."""
    with open(f"/proc/{terminal.pid}/fd/1", "wb", opener=lambda path, flags:
              os.open(path, os.O_WRONLY | os.O_NOCTTY)) as other:
        n_full = 0
        while n_full < 10:
            check(time.monotonic() < terminal.deadline, "it takes more and more")
            n_full = 0 if select.select([], [other], [], 0)[1] else n_full + 1
            time.sleep(0.05)


def on_terminal(w, *arguments):
    terminal = Terminal(w, w.executable, *arguments)
    code = terminal.ends()
    return terminal.seen, code


# ---- lists and results -------------------------------------------------------------------


@scenario
def a_terminal_gets_colour_and_a_result_that_can_be_read(w):
    with gateway(w), provided(w):
        seen, code = on_terminal(w, "list", "--registry", w.at)
        check(code == 0 and b"\x1b[32mhealthy\x1b[0m" in seen, seen)
        lines = re.sub(rb"\x1b\[\d+m", b"", seen).splitlines()
        check(max(map(len, lines)) <= 60 and lines[1].endswith(b"..."), lines)
        seen, code = on_terminal(w, "call", "weather", "echo", "city=\x1b[2J", "--registry", w.at)
        check(code == 0 and b'{\r\n  \x1b[1m"city"\x1b[0m: \x1b[32m"' in seen, seen)
        check(b"\x1b[2J" not in seen, seen)
        seen, code = on_terminal(w, "call", "weather", "say", "--registry", w.at)
        check(code == 0 and seen == b"sunny\r\n", seen)
        seen, code = on_terminal(w, "call", "weather", "echo", "city=x", "--color", "never",
                                 "--registry", w.at)
        check(code == 0 and seen == b'{\r\n  "city": "x"\r\n}\r\n', seen)


# ---- the status --------------------------------------------------------------------------


@scenario
def the_status_is_drawn_until_q(w):
    with gateway(w, "--name", "tools"):
        terminal = status(w, w.at)
        terminal.shows(b"q ends this")
        check(not terminal.echoes(), "keys are shown")
        terminal.types(b"q")
        check(terminal.ends() == 0, terminal.seen)
        seen = terminal.seen
        check(OPENS in seen and seen.rstrip().endswith(CLOSES) and b"tools" in seen, seen)
        check(terminal.complaints() == "", terminal.complaints())


@scenario
def an_error_at_the_start_is_reported_without_a_screen(w):
    terminal = status(w, NOWHERE)
    check(terminal.ends() == 3 and OPENS not in terminal.seen, terminal.seen)
    check(f"no gateway answers at {NOWHERE}: " in terminal.complaints()
          and "; start one with `pegboard serve`" in terminal.complaints(), terminal.complaints())
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    with gateway(w, "--token-file", w.path("tokens")):
        terminal = status(w, w.at)
        check(terminal.ends() == 3 and OPENS not in terminal.seen, terminal.seen)
        check("(unauthenticated)" in terminal.complaints(), terminal.complaints())


@scenario
def a_gateway_that_goes_away_is_awaited_and_reported_at_the_end(w):
    with gateway(w) as serving:
        terminal = status(w, w.at)
        terminal.shows(b"q ends this")
        serving.end(signal.SIGKILL)
        terminal.shows(b"name another with --registry")
        terminal.shows(b"(service_unavailable)")
        terminal.types(b"q")
        check(terminal.ends() == 3 and terminal.seen.rstrip().endswith(CLOSES), terminal.seen)
        check(w.at in terminal.complaints() and "(service_unavailable)" in terminal.complaints(),
              terminal.complaints())


def check_pause(w, is_held):
    terminal = status_in_shell(
        w, w.at, "echo paused $?; read -r line; fg >/dev/null; echo ended $?")
    terminal.shows(b"q ends this")
    if is_held:
        hold(terminal)
    terminal.types(b"\x1a")
    at = terminal.shows(b"paused %d" % (128 + signal.SIGTSTP))
    check(terminal.seen.rfind(CLOSES) > terminal.seen.rindex(OPENS), terminal.seen)
    check(terminal.echoes(), "the shell does not show what is typed")
    terminal.types(b"\n")
    at = terminal.shows(OPENS, at)
    terminal.shows(b"q ends this", at)
    check(not terminal.echoes(), "keys are shown")
    terminal.types(b"q")
    terminal.shows(b"ended 0")
    check(terminal.ends() == 0 and terminal.seen.rindex(CLOSES) > at, terminal.seen)


@scenario
def a_pause_gives_the_terminal_back_and_takes_it_again(w):
    with gateway(w, "--name", "tools"):
        check_pause(w, is_held=False)


@scenario
def a_pause_while_the_terminal_is_held_is_no_trouble(w):
    with gateway(w, "--name", "tools"):
        check_pause(w, is_held=True)


@scenario
def an_end_while_the_terminal_is_held_is_no_trouble(w):
    with gateway(w, "--name", "tools"):
        terminal = status(w, w.at)
        terminal.shows(b"q ends this")
        hold(terminal)
        terminal.types(b"\x03")
        check(terminal.ends() == 0, terminal.seen, terminal.complaints())
        check(terminal.complaints() == "", terminal.complaints())


@scenario
def one_signal_ends_it_where_the_terminal_takes_nothing(w):
    with gateway(w, "--name", "tools"):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            terminal = status(w, w.at)
            terminal.shows(b"q ends this")
            fill(terminal)
            terminal.kills(number)
            check(terminal.ends_unread() == 0, number, terminal.complaints())
            check(terminal.complaints() == "", number, terminal.complaints())
            check(terminal.seen.endswith(CLOSES), number, terminal.seen[-200:])


def check_end_by(w, send, code):
    """The terminal is as it was while the shell has it, after an end with that status."""
    with gateway(w, "--name", "tools"):
        terminal = status_in_shell(w, w.at, "echo ended $?; read -r line")
        terminal.shows(b"q ends this")
        send(terminal)
        terminal.shows(b"ended %d\r\n" % code)
        check(terminal.echoes(), "the shell does not show what is typed")
        terminal.types(b"\n")
        check(terminal.ends() == 0, terminal.seen)
        behind = terminal.seen[terminal.seen.rfind(CLOSES):]
        check(behind.startswith(CLOSES) and b"\x1b" not in behind[1:], terminal.seen)


@scenario
def quitting_gives_the_terminal_back(w):
    check_end_by(w, lambda terminal: terminal.types(b"\x1c"), 128 + signal.SIGQUIT)


@scenario
def a_hangup_gives_the_terminal_back(w):
    check_end_by(w, lambda terminal: terminal.kills(signal.SIGHUP), 0)


if __name__ == "__main__":
    main()
