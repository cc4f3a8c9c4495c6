#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the command leaks nothing and reads nothing unset, on the good paths and on the bad ones."""

import shutil
import subprocess

from scenario import Skip, check, main, scenario

VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full",
            "--errors-for-leak-kinds=definite,indirect,possible"]


def under_valgrind(w, status, *arguments, stdin=""):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    with open(w.executable, "rb") as file:
        if b"__asan_init" in file.read():
            raise Skip("the address sanitizer does not go with valgrind")
    done = subprocess.run([*VALGRIND, w.executable, *arguments], cwd=w.directory, check=False, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    check(done.returncode == status, arguments, "exit status", done.returncode, done.stderr)


def with_files(w):
    w.write("schema.yaml", "$ref: https://example.com/a\nproperties: {x: {maximum: 3}}\n")
    w.write("a.json", {"$id": "https://example.com/a", "type": "object"})
    w.write("value.yaml", "x: 3\n")
    w.write("values.jsonl", '{"x":1}\n{"x":5}\n[]\n{oops\n')


@scenario
def checking_and_reporting_is_clean(w):
    with_files(w)
    under_valgrind(w, 0, "validate", "--ref", "a.json", "schema.yaml", "value.yaml")
    for option in ("--json", "--color=always"):
        under_valgrind(w, 2, "validate", option, "--ref", "a.json", "schema.yaml", "values.jsonl",
                       "missing.json")


@scenario
def giving_up_is_clean(w):
    with_files(w)
    under_valgrind(w, 2, "validate", "schema.yaml", "value.yaml")
    under_valgrind(w, 2, "validate", "--ref", "value.yaml", "schema.yaml", "value.yaml")
    under_valgrind(w, 2, "validate", "--no-such-option", "schema.yaml", "value.yaml")


@scenario
def turns_are_clean(w):
    w.write("turn.yaml", "blocks:\n"
            "  - {kind: user, payload: {text: hello, media: [{kind: image, media_type: image/png,"
            " filename: a.png, trust_tier: first-party, modality_hazard: opaque-perceptual,"
            " ref: {sha256: '" + "0" * 64 + "', bytes: 9}}]}}\n"
            "  - {kind: tool_call, payload: {id: c, name: t, args: {x: 1}}}\n"
            "  - {kind: tool_use, payload: {id: d, artifact: {kind: json, text: '[1]'}}}\n"
            "data: {pegboard.tool_definitions@v1: [{name: t, parameters: {type: strange}}]}\n"
            "metadata: {'No Key': 1, pegboard.calls_started@v1: [c]}\n")
    w.write("broken.json", '{"blocks":[{"kind":"user","payload":{"text":5}}]}')
    for option in ("--json", "--color=always", "--full"):
        under_valgrind(w, 2, "turn", "show", option, "turn.yaml", "broken.json", "none")
    for option in ("--json", "--strict"):
        under_valgrind(w, 1, "turn", "validate", option, "turn.yaml", "broken.json")
    under_valgrind(w, 0, "turn", "convert", "-o", "out.json", "turn.yaml")
    under_valgrind(w, 2, "turn", "convert", "-o", "none/out.json", "turn.yaml")


@scenario
def a_chat_is_clean(w):
    w.write("tools.yaml", "toolset: t\ntools:\n  - {name: say, description: Says, command: [echo, hello]}\n")
    w.write("script.yaml", "- calls: [{name: say}, {name: none}]\n- {text: Hello., stream: 2}\n")
    under_valgrind(w, 1, "chat", "--yes", "--system", "Be kind", "--script", "script.yaml", "tools.yaml",
                   stdin="Hi\n/tools\n/save chat.yaml\n/nothing\nMore")
    under_valgrind(w, 2, "chat", "--script", "script.yaml", "--resume", "chat.yaml", "none.yaml")


@scenario
def measuring_is_clean(w):
    with_files(w)
    under_valgrind(w, 2, "validate", "--benchmark", "--loop", "2", "--ref", "a.json", "schema.yaml",
                   "values.jsonl", "value.yaml")


if __name__ == "__main__":
    main()
