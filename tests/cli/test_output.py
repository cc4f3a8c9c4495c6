#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what `pegboard validate` prints fits its reader: a program, a terminal, a pipe, nobody."""

import os
import pty
import signal
import subprocess
import threading

from scenario import check, main, scenario

MEMBERS = ["instance", "schema", "keyword", "expected", "got", "message"]


def with_files(w):
    w.write("schema.json", {"properties": {"days": {"maximum": 14}}})
    w.write("good.json", {"days": 3})
    w.write("bad.json", {"days": 30})
    w.write("calls.jsonl", '{"days":3}\n\n{"days":30}\n{"days":')


def on_terminal(w, *arguments, env=None, stdin=subprocess.DEVNULL, on_output=lambda shown: None):
    """Runs with stdout and stderr on one terminal; returns status and what it showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen([w.executable, *arguments], cwd=w.directory, stdin=stdin,
                               stdout=slave, stderr=slave,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **(env or {})})
    os.close(slave)
    shown = ""
    while True:
        try:
            some = os.read(master, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not some:
            break
        shown += some.decode(errors="replace")
        on_output(shown)
    os.close(master)
    return process.wait(), shown


# ---- for programs --------------------------------------------------------------


@scenario
def json_output_is_one_object_an_instance(w):
    with_files(w)
    ran = w.pegboard("validate", "--json", "schema.json", "good.json", "bad.json").exits(1)
    good, bad = ran.objects()
    check(good == {"file": "good.json", "line": None, "verdict": "valid", "valid": True,
                   "failures": [], "more": 0}, good)
    check(list(bad) == ["file", "line", "verdict", "valid", "failures", "more"], bad)
    check((bad["verdict"], bad["valid"], bad["more"]) == ("invalid", False, 0), bad)
    (failure,) = bad["failures"]
    check(list(failure) == MEMBERS, failure)
    check(failure["instance"] == "/days" and failure["keyword"] == "maximum", failure)
    check(failure["schema"] == "/properties/days/maximum" and failure["got"] == "30", failure)
    check("14" in failure["expected"] and "14" in failure["message"], failure)


@scenario
def json_output_reports_lines_and_what_was_unusable(w):
    with_files(w)
    ran = w.pegboard("validate", "--json", "schema.json", "calls.jsonl", "none.json").exits(2)
    seen = [(o["file"], o["line"], o["verdict"]) for o in ran.objects()]
    check(seen == [("calls.jsonl", 1, "valid"), ("calls.jsonl", 3, "invalid"),
                   ("calls.jsonl", 4, "unusable"), ("none.json", None, "unusable")], seen)
    error = ran.objects()[2]["error"]
    check(list(error) == ["code", "line", "column", "where", "message"], error)
    check((error["code"], error["line"], error["column"]) == ("E_JSON_SYNTAX", 4, 9), error)
    ran.is_silent()


@scenario
def json_output_reports_an_unusable_schema(w):
    with_files(w)
    w.write("schema.json", {"properties": {"days": {"maximum": "14"}}})
    ran = w.pegboard("validate", "--json", "schema.json", "good.json").exits(2)
    ran.complains("schema.json: unusable: at /properties/days")  # there is no instance to tell it
    (told,) = ran.objects()
    check(told["file"] == "schema.json" and told["verdict"] == "unusable", told)
    check(told["error"]["where"].startswith("/properties/days"), told)


@scenario
def a_file_name_that_is_no_utf8_still_gives_json(w):
    with_files(w)
    name = b"b\xff\nd.json"
    with open(os.path.join(os.fsencode(w.directory), name), "wb") as file:
        file.write(b'{"days":30}')
    (told,) = w.pegboard("validate", "--json", "schema.json", os.fsdecode(name)).exits(1).objects()
    check(told["file"] == "b\ufffd\nd.json", told)


@scenario
def quiet_prints_no_verdict_but_still_complains(w):
    with_files(w)
    w.pegboard("validate", "-q", "schema.json", "good.json").exits(0).prints("").is_silent()
    w.pegboard("validate", "--quiet", "schema.json", "bad.json").exits(1).prints("").is_silent()
    ran = w.pegboard("validate", "-q", "--json", "schema.json", "none.json").exits(2).prints("")
    ran.complains("none.json: unusable: ")


# ---- for people -----------------------------------------------------------------


@scenario
def a_pipe_gets_no_colour_and_a_terminal_does(w):
    with_files(w)
    ran = w.pegboard("validate", "schema.json", "bad.json").exits(1)
    check("\033" not in ran.stdout, ran)
    status, shown = on_terminal(w, "validate", "schema.json", "bad.json")
    check(status == 1 and "\033[31minvalid\033[0m" in shown, shown)
    check("\033[2mrule: /properties/days/maximum\033[0m" in shown, shown)


@scenario
def no_color_dumb_terminals_and_the_option_are_respected(w):
    with_files(w)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        status, shown = on_terminal(w, "validate", "schema.json", "bad.json", env=env)
        check(status == 1 and "\033" not in shown, shown)
    status, shown = on_terminal(w, "validate", "--color=never", "schema.json", "bad.json")
    check("\033" not in shown, shown)
    ran = w.pegboard("validate", "--color", "always", "schema.json", "bad.json",
                     env={"NO_COLOR": "1"})
    ran.exits(1).mentions("\033[31minvalid\033[0m")


@scenario
def text_from_outside_cannot_steer_the_terminal(w):
    w.write("schema.json", {"additionalProperties": False})
    w.write("bad.json", {"\033]0;owned\007\u009b31m\nfake.json: valid": 1})
    name = "\033[2Jx.json"
    w.write(name, {"a": 1})
    ran = w.pegboard("validate", "schema.json", "bad.json", name, "\007none.json").exits(2)
    check(not any(c in ran.stdout + ran.stderr for c in "\033\007\u009b"), ran)
    check("\nfake.json: valid" not in ran.stdout, ran)
    ran.mentions("\\x1B[2Jx.json: invalid\n").complains("\\x07none.json: unusable")


@scenario
def text_from_outside_cannot_look_like_other_text(w):
    w.write("schema.json", {"additionalProperties": False, "properties": {"a": {"const": 1}}})
    w.write("bad.json", '{"\u202ename": 1, "a": "\u2066value\u2069\u200f"}')
    name = "x\u202enosj.json"
    w.write(name, {"a": 1})
    ran = w.pegboard("validate", "schema.json", "bad.json", name).exits(1)
    check(not any(c in ran.stdout for c in "\u200e\u200f\u202e\u2066\u2069"), ran)
    ran.mentions("\\xE2\\x80\\xAEname", "\\xE2\\x81\\xA6value", "x\\xE2\\x80\\xAEnosj.json: valid\n")


@scenario
def a_long_file_shows_progress_on_a_terminal_and_leaves_no_trace(w):
    with_files(w)
    read_end, write_end = os.pipe()
    seen = threading.Event()

    def feed():  # for as long as there is nothing to see
        with open(write_end, "w", encoding="ascii") as lines:
            while not seen.is_set():
                lines.write('{"days":3}\n' * 64)

    feeder = threading.Thread(target=feed)
    feeder.start()
    status, shown = on_terminal(w, "validate", "--jsonl", "schema.json", "-", stdin=read_end,
                                on_output=lambda shown: " checked, " in shown and seen.set())
    seen.set()
    os.close(read_end)
    feeder.join()
    check(status == 0 and " checked, 0 invalid\033[K" in shown, shown)
    last = shown.split("\r\033[K")[-1]
    check(" valid" in last and "checked" not in last, shown)


@scenario
def a_full_disk_is_not_taken_for_an_answer(w):
    with_files(w)
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = w.pegboard("validate", "schema.json", "good.json", stdout=full).exits(2)
    ran.complains("could not be written: No space left on device")


def closed_pipe():
    """The end to write to; nobody reads."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    return write_end


def ignore_sigpipe():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@scenario
def what_could_not_be_written_keeps_its_reason_and_the_exit_status(w):
    with_files(w)
    w.write("many.jsonl", '{"days":30}\n' * 2000)  # more than what is held back
    with open("/dev/full", "w", encoding="utf-8") as full:
        for file in ("bad.json", "many.jsonl"):
            w.pegboard("validate", "schema.json", file, stdout=full).exits(1).complains(
                "could not be written: No space left on device")


@scenario
def a_reader_that_has_seen_enough_ends_the_command_silently(w):
    with_files(w)
    pipe = closed_pipe()
    w.pegboard("validate", "schema.json", "good.json", stdout=pipe).exits(-signal.SIGPIPE).is_silent()
    w.pegboard("validate", "schema.json", "good.json", stdout=pipe, preexec_fn=ignore_sigpipe) \
        .exits(2).complains("could not be written: Broken pipe")
    os.close(pipe)


@scenario
def a_closed_standard_stream_is_none_that_can_be_used(w):
    """As cron jobs and some supervisors leave them: its number goes to nothing that is opened."""
    with_files(w)

    def without(*numbers):
        return lambda: [os.close(number) for number in numbers]

    w.pegboard("validate", "schema.json", "good.json", preexec_fn=without(1)).exits(2).complains(
        "could not be written: Bad file descriptor")
    w.pegboard("validate", "schema.json", "-", preexec_fn=without(0)).exits(2).complains(
        "<stdin>: unusable: cannot be read (Bad file descriptor")
    w.pegboard("validate", "schema.json", "bad.json", preexec_fn=without(0, 2)).exits(1)


if __name__ == "__main__":
    main()
