#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the command explains itself, refuses wrong use in one sentence, and its help, its man page
and its completions know the same options."""

import os
import re
import shutil
import subprocess

from scenario import ROOT, Skip, check, main, scenario
from shells import COMPLETIONS, fish_completes, zsh_completes

MAN = os.path.join(ROOT, "man")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


COMMANDS = ("call", "chat", "definitions", "generate", "get", "list", "mcp", "mcp config", "provide", "search", "serve", "status", "token new",
            "token list", "token revoke", "turn show", "turn convert", "turn validate", "unregister", "validate", "watch")


def options_of_help(w, command):
    text = w.pegboard(*command.split(), "--help").exits(0).stdout
    return set(re.findall(r"^  (?:-\w,|   ) --([a-z-]+)", text, re.M))


@scenario
def the_overview_is_shown_without_a_command(w):
    overview = w.pegboard().exits(0).mentions("usage: pegboard COMMAND", "  validate ").stdout
    w.pegboard("help").exits(0).prints(overview)
    check([line for line in overview.splitlines() if line.endswith(":")] == [
        "run a gateway:", "offer tools:", "find and call tools:", "work on files:"], overview)
    w.pegboard("--help").exits(0).prints(overview)


@scenario
def a_command_is_explained_in_three_ways_alike(w):
    for command in COMMANDS:
        words = command.split()
        text = w.pegboard("help", *words).exits(0).stdout
        w.pegboard(*words, "--help").exits(0).prints(text)
        w.pegboard(*words, "nothing", "-h", "--nonsense").exits(0).prints(text)
        check("exit status:" in text and "examples:" in text, text)
        check(max(map(len, text.splitlines())) <= 84, "the help is too wide")


@scenario
def the_version_is_printed(w):
    version = re.search(r"version: '([^']+)'", read(ROOT, "meson.build"))[1]
    w.pegboard("--version").exits(0).prints(f"pegboard {version}\n")


@scenario
def wrong_use_is_one_sentence_with_a_hint_and_exit_status_2(w):
    for arguments, words in (
        (["frobnicate"], "there is no command 'frobnicate'"),
        (["help", "frobnicate"], "there is no command 'frobnicate'"),
        (["help", "turn", "frobnicate"], "there is no command 'turn frobnicate'"),
        (["turn"], "one of its commands is needed: show, convert or validate"),
        (["turn", "frobnicate"], "there is no command 'turn frobnicate'"),
        (["turn", "--frob"], "there is no option --frob"),
        (["token"], "one of its commands is needed: new, list or revoke"),
        (["token", "frobnicate"], "there is no command 'token frobnicate'"),
        (["token", "new", "ci"], "--token-file is needed"),
        (["token", "new", "--token-file", "f"], "a name for the token is needed"),
        (["token", "list"], "--token-file is needed"),
        (["token", "list", "--token-file", "f", "x"], "unexpected argument 'x'"),
        (["token", "revoke", "ci"], "--token-file is needed"),
        (["token", "revoke", "--token-file", "f"], "the name whose tokens end is needed"),
        (["token", "revoke", "--token-file", "f", "--hash", "", "ci"], "--hash is empty"),
        (["unregister"], "the name of a toolset is needed"),
        (["serve", "--admin-names", "anna"], "--admin-names needs --tls-client-ca"),
        (["serve", "x"], "unexpected argument 'x'"),
        (["serve", "--ping-interval", "10"], "--ping-interval is '10', but should be a time"),
        (["serve", "--drain-time", "-1s"], "--drain-time is '-1s', but should be a time"),
        (["serve", "--store", "paper"], "--store is 'paper', but should be sqlite, mongo or memory"),
        (["serve", "--threads", "0"], "--threads is '0', but should be a number"),
        (["serve", "--log-level", "loud"], "--log-level is 'loud', but should be info"),
        (["serve", "--tls-cert", "c.pem"], "--tls-cert and --tls-key are needed together"),
        (["serve", "--tls-client-ca", "c.pem"], "--tls-client-ca needs --tls-cert and --tls-key"),
        (["serve", "--lease", "1ms"], "--lease is '1ms', but should be at least 100ms"),
        (["serve", "--keepalive", "1ms"], "--keepalive is '1ms', but should be at least 100ms"),
        (["serve", "--max-held", "100KiB"], "--max-held is '100KiB', but should be 1MiB to 1024GiB"),
        (["serve", "--max-held", "1TiB"], "--max-held is '1TiB', but should be 1MiB to 1024GiB"),
        (["serve", "--max-payload", "5MiB"], "--max-payload is '5MiB', but should be 1KiB to 4MiB"),
        (["serve", "--max-payload", "100"], "--max-payload is '100', but should be 1KiB to 4MiB"),
        (["serve", "--max-connections", "0"],
         "--max-connections is '0', but should be a number from 1 to 1000000"),
        (["serve", "--drain-time", "0s"], "--drain-time is '0s', but should be at least 1ms"),
        (["serve", "--ping-interval", "2h"], "--ping-interval is '2h', but should be at most 1h"),
        (["serve", "--ping-interval", "10"], "--ping-interval is '10', but should be a time such"),
        (["list", "x"], "unexpected argument 'x'"),
        (["provide"], "a file is needed"),
        (["provide", *(["a"] * 64), "b"], "unexpected argument 'b'"),
        (["mcp", "config"], "a client is needed"),
        (["mcp", "config", "emacs", "a"], "there is no client 'emacs'"),
        (["provide", "--concurrency", "0", "a"], "--concurrency is '0', but should be a number"),
        (["provide", "--drain-time", "2h", "a"], "--drain-time is '2h', but should be a time"),
        (["list", "--registry", ""], "--registry is '', but should be HOST[:PORT], :PORT on this"),
        (["list", "--color", "red"], "--color is 'red', but should be auto,"),
        (["list", "--tls-cert", "c.pem"], "--tls-cert and --tls-key are needed together"),
        (["get"], "the name of a toolset is needed"),
        (["get", "a", "b", "c"], "unexpected argument 'c'"),
        (["search"], "something to search for is needed"),
        (["search", ""], "something to search for is needed"),
        (["search", "--token", "/nowhere/token", ""], "something to search for is needed"),
        (["search", "--tls-ca", "/nowhere/ca.pem", "x" * 5000], "more than 4096 bytes"),
        (["search", "--limit", "0", "x"], "--limit is '0', but should be a number"),
        (["call", "a"], "the names of a toolset and a tool are needed"),
        (["call", "a", "b", "x=1", "--args", "{}"], "--args or as key=value, not both"),
        (["call", "a", "b", "--timeout", "soon"], "--timeout is 'soon', but should be a time"),
        (["call", "a", "b", "--timeout", "48h"],
         "--timeout is '48h', but should be at least 1ms and at most 24h"),
        (["call", "a", "b", "--meta", "x"], "--meta is 'x', but should be KEY=VALUE"),
        (["call", "a", "b", "--idempotency-key", ""], "--idempotency-key is '', but should be a"),
        (["chat"], "--model is needed, or a --script in its place"),
        (["chat", "--model", "m", "--script", "s"], "--model and --script are one or the other"),
        (["chat", "--vendor", "neutral"], "--vendor is 'neutral', but should be openai-chat"),
        (["watch", "x"], "unexpected argument 'x'"),
        (["status", "x"], "unexpected argument 'x'"),
        (["status", "--interval", "1us"], "--interval is '1us', but should be a time"),
        (["unregister"], "the name of a toolset is needed"),
        (["validate"], "a schema and at least one file are needed"),
        (["validate", "a"], "a schema and at least one file are needed"),
        (["validate", "--frob", "a", "b"], "there is no option --frob; see `pegboard validate --help`"),
        (["serve", "--adr", "x"], "there is no option --adr, but there is --addr; see `pegboard"),
        (["serve", "--adr=x"], "there is no option --adr, but there is --addr; see `pegboard"),
        (["serve", "--hlp"], "there is no option --hlp, but there is --help; see `pegboard"),
        (["serve", "--" + "x" * 99], "there is no option --" + "x" * 99 + "; see `pegboard"),
        (["validate", "--frob=1", "a", "b"], "there is no option --frob"),
        (["validate", "-x", "a", "b"], "there is no option -x"),
        (["validate", "-qx", "a", "b"], "there is no option -qx"),
        (["validate", "a", "b", "--loop"], "--loop needs a value"),
        (["validate", "--quiet=yes", "a", "b"], "--quiet takes no value"),
        (["validate", "--draft", "5", "a", "b"], "--draft is '5', but should be 4, 6, 7,"),
        (["validate", "--color", "red", "a", "b"], "--color is 'red', but should be auto,"),
        (["validate", "--loop", "0", "a", "b"], "--loop is '0', but should be a number"),
        (["validate", "--loop", "-1", "a", "b"], "--loop is '-1', but should be a number"),
        (["validate", "--max-bytes", "4G", "a", "b"], "--max-bytes is '4G', but should be"),
        (["validate", "--max-bytes", "1x", "a", "b"], "--max-bytes is '1x', but should be"),
        (["validate", "--max-bytes", "99999999999999999999999", "a", "b"], "should be a size"),
        (["validate", "--max-depth", "5000", "a", "b"], "--max-depth is '5000', but should be"),
    ):
        ran = w.pegboard(*arguments).exits(2).prints("").complains(words, "`pegboard ")
        check(ran.stderr.count("\n") == 1, ran)


@scenario
def options_may_stand_anywhere_and_two_dashes_end_them(w):
    w.write("s.json", {})
    w.write("--quiet", "1")
    w.pegboard("validate", "s.json", "s.json", "--quiet").exits(0).prints("")
    w.pegboard("validate", "s.json", "--", "--quiet").exits(0).prints("--quiet: valid\n")
    w.pegboard("validate", "--max-bytes=1K", "s.json", "s.json").exits(0)


# ---- what must not drift apart -------------------------------------------------------


@scenario
def the_man_page_knows_exactly_the_options_of_the_help(w):
    for command in COMMANDS:
        name, *part = command.split()
        page = read(MAN, f"pegboard-{name}.1")
        page = page[page.index(f".Sh {part[0].upper()}\n"):] if part else page
        start = page.index("The options:")
        body = page[start:page.index("\n.Sh ", start)]
        found = set(re.findall(r"^\.It (?:Fl \w , )?Fl -([a-z-]+)", body, re.M))
        wanted = options_of_help(w, command)
        check(found == wanted, command, "man page and help differ in", found ^ wanted)


def function_of(script, command):
    start = script.index(f"_pegboard_{command}() {{")
    return script[start:script.index("\n}\n", start)]


@scenario
def the_completions_know_exactly_the_options_of_the_help(w):
    for command in COMMANDS:
        wanted = options_of_help(w, command)
        command = command.replace(" ", "_")
        bash = function_of(read(COMPLETIONS, "pegboard.bash"), command)
        bash = set(re.findall(r"--([a-z-]+)", re.search(r"words '(--[^']*--help)'", bash)[1]))
        zsh = function_of(read(COMPLETIONS, "_pegboard"), command)
        zsh = set(re.findall(r"--([a-z-]+)(?:=?\[|=?\}'\[)", zsh))
        fish = set(re.findall(rf"^complete -c pegboard -n \$in_{command} .*-l ([a-z-]+)",
                              read(COMPLETIONS, "pegboard.fish"), re.M)) | {"help"}
        for name, found in (("bash", bash), ("zsh", zsh), ("fish", fish)):
            check(found == wanted, command, name, "differs from the help in", found ^ wanted)


@scenario
def bash_completes_commands_options_and_values(w):
    def complete(*words):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pegboard; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(
            ["bash", "-c", script, "bash", os.path.join(COMPLETIONS, "pegboard.bash"), *words],
            stdout=subprocess.PIPE, text=True, check=True, cwd=w.directory)
        return done.stdout.split()

    w.write("schema.json", "{}")
    check(complete("pegboard", "va") == ["validate"], "the command")
    check(complete("pegboard", "validate", "--assert") == ["--assert-format"], "an option")
    check(complete("pegboard", "validate", "--draft", "20") == ["2019-09", "2020-12"], "a value")
    check(complete("pegboard", "validate", "--color", "=", "n") == ["never"], "a value behind =")
    check(complete("pegboard", "definitions", "--provider", "g") == ["gemini"], "a provider")
    check(complete("pegboard", "validate", "sch") == ["schema.json"], "a file")
    check(complete("pegboard", "turn", "") == ["show", "convert", "validate", "--help"], "a part")
    check(complete("pegboard", "turn", "convert", "--to", "y") == ["yaml"], "a value of a part")
    check(complete("pegboard", "turn", "show", "sch") == ["schema.json"], "a file of a part")
    check(complete("pegboard", "help", "t") == ["token", "turn"], "a command to explain")
    check(complete("pegboard", "serve", "--store", "me") == ["memory"], "a kind of store")
    check(complete("pegboard", "token", "new", "--tok") == ["--token-file"], "an option of a part")
    check(complete("pegboard", "mcp", "config", "cu") == ["cursor"], "a client")


@scenario
def zsh_completes_commands_options_and_values(w):
    def complete(line):
        return zsh_completes(line, w.directory)

    w.write("schema.json", "{}")
    check(complete("pegboard va") == ["validate"], "the command")
    check(complete("pegboard validate --assert") == ["--assert-format"], "an option")
    check(complete("pegboard validate --draft=20") == ["2019-09", "2020-12"], "a value")
    check(complete("pegboard definitions --provider=g") == ["gemini"], "a provider")
    check(complete("pegboard validate sch") == ["schema.json"], "a file")
    check(complete("pegboard turn ") == ["show", "convert", "validate"], "a part")
    check(complete("pegboard turn convert --to=y") == ["yaml"], "a value of a part")
    check(complete("pegboard help t") == ["token", "turn"], "a command to explain")
    check(complete("pegboard token new --tok") == ["--token-file"], "an option of a part")
    check(complete("pegboard mcp config cu") == ["cursor"], "a client")
    check(complete("pegboard frobnicate --") == [], "a command that there is not")


@scenario
def fish_completes_commands_options_and_values(w):
    def complete(line):
        return fish_completes(line, w.directory)

    w.write("schema.json", "{}")
    check(complete("pegboard va") == ["validate"], "the command")
    check(complete("pegboard validate --assert") == ["--assert-format"], "an option")
    check(complete("pegboard validate --draft 20") == ["2019-09", "2020-12"], "a value")
    check(complete("pegboard validate sch") == ["schema.json"], "a file")
    check(complete("pegboard turn convert --to y") == ["yaml"], "a value of a part")
    check(complete("pegboard help tu") == ["turn"], "a command to explain")
    check(complete("pegboard status --on") == ["--once"], "a command of the gateway")


@scenario
def the_other_shells_can_read_their_completions(w):
    ran = 0
    for command, file in ((["zsh", "-n"], "_pegboard"), (["fish", "--no-execute"], "pegboard.fish")):
        if shutil.which(command[0]):
            subprocess.run([*command, os.path.join(COMPLETIONS, file)], check=True,
                           env={**os.environ, "HOME": w.directory})
            ran += 1
    if not ran:
        raise Skip("neither zsh nor fish is installed")


@scenario
def the_man_pages_are_clean(w):
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    pages = [os.path.join(MAN, name) for name in sorted(os.listdir(MAN)) if name.endswith(".1")]
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=w.directory)
    check(len(pages) >= 2 and done.returncode == 0 and not done.stdout, done.stdout)


@scenario
def examples_of_the_man_pages_keep_their_quotes(w):
    """A macro takes the quotes of its arguments away, and mandoc does not mind."""
    for name in sorted(os.listdir(MAN)):
        with open(os.path.join(MAN, name), encoding="utf-8") as page:
            for n, line in enumerate(page, 1):
                check(not (line.startswith(".Dl") and '"' in line), f"{name}:{n}: write \\(dq for a quote:",
                      line)


@scenario
def the_first_man_page_knows_every_command(w):
    with open(os.path.join(MAN, "pegboard.1"), encoding="utf-8") as page:
        text = page.read()
    see_also = text[text.index(".Sh SEE ALSO"):]
    for command in sorted({command.split()[0] for command in COMMANDS}):
        check(f".It Cm {command}\n" in text, f"pegboard(1) does not list {command}")
        check(f".Xr pegboard-{command} 1" in see_also, f"SEE ALSO of pegboard(1) does not name {command}")


if __name__ == "__main__":
    main()
