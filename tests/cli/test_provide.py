#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard provide` offers commands through a real gateway, says where a manifest is wrong,
comes back when the gateway does, and loses no call when it is stopped."""

import concurrent.futures
import contextlib
import fcntl
import os
import queue
import signal
import subprocess
import sys
import threading

from scenario import check, main, scenario

WAIT_S = 60

MANIFEST = """\
toolset: local
description: Tools of a test
version: 1.0.0
tools:
  - name: echo
    description: Says what it was told.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [cat]
  - name: hold
    description: Goes on when it is let.
    command: [./hold]
    timeout: 60s
  - name: fail
    description: Fails.
    shell: true
    command: echo broken >&2; exit 3
"""

# Says that it has begun, and waits until somebody writes into the other pipe.
HOLD = "#!/bin/sh\necho > begun\nread x < go\necho held\n"


class Process:
    """A command whose lines are read while it runs."""

    def __init__(self, w, *arguments, executable=None):
        self.lines = []
        self.arrived = queue.Queue()
        self.process = subprocess.Popen(
            [executable or w.executable, *arguments], cwd=w.directory, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            self.arrived.put(line)

    def awaits(self, words):
        while True:
            line = self.arrived.get(timeout=WAIT_S)
            if words in line:
                return line

    def signal(self, number):
        self.process.send_signal(number)

    def ends(self, status):
        found = self.process.wait(timeout=WAIT_S)
        self.reader.join(timeout=WAIT_S)
        check(found == status, f"expected exit status {status}, not {found}:", *self.lines)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.reader.join(timeout=WAIT_S)
        self.process.stdout.close()


@contextlib.contextmanager
def processes():
    started = []

    def start(*arguments, **more):
        started.append(Process(*arguments, **more))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            one.kill()


def serve(start, w, *more):
    gateway = start(w, "serve", "--addr", f"unix:{w.path('s')}", "--data-dir", w.path("data"), *more)
    gateway.awaits("the gateway listens")
    return gateway


def provide(start, w, *more):
    provider = start(w, "provide", "tools.yaml", "--registry", f"unix:{w.path('s')}", *more)
    provider.awaits("event=attached")
    return provider


def call(w, *arguments):
    return w.pegboard("call", "--registry", f"unix:{w.path('s')}", "local", *arguments)


def prepare(w):
    w.write("tools.yaml", MANIFEST)
    w.write("hold", HOLD)
    os.chmod(w.path("hold"), 0o755)
    os.mkfifo(w.path("begun"))
    os.mkfifo(w.path("go"))


def begin_hold(w):
    """A call of `hold` whose command has begun."""
    caller = subprocess.Popen(
        [w.executable, "call", "--registry", f"unix:{w.path('s')}", "local", "hold"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open(w.path("begun"), encoding="utf-8") as begun:
        begun.read()
    return caller


def let_go(w):
    with open(w.path("go"), "w", encoding="utf-8") as go:
        go.write("\n")


@scenario
def a_manifest_is_checked_without_a_gateway(w):
    prepare(w)
    w.pegboard("provide", "--check", "tools.yaml").exits(0).prints(
        "toolset local 1.0.0: 3 tools\n  echo  Says what it was told. (timeout 30s by default)\n"
        "  hold  Goes on when it is let. (timeout 1m0s)\n"
        "  fail  Fails. (timeout 30s by default)\n").is_silent()


@scenario
def what_is_not_there_is_warned_of_and_no_mistake(w):
    w.write("tools.yaml", """\
toolset: local
tools:
  - {name: program, description: d, command: [peg-no-such-program]}
  - {name: script, description: d, command: [./nope.sh]}
  - {name: folder, description: d, command: [sh], directory: /nope}
  - {name: variable, description: d, command: [sh], env: [PEG_TEST_UNSET]}
""")
    checked = w.pegboard("provide", "--check", "tools.yaml").exits(0).mentions("4 tools").complains(
        "pegboard: tools.yaml: warning: tool 'program': the command 'peg-no-such-program'",
        "tool 'script': the command './nope.sh'", "'/nope', which is no directory",
        "tool 'variable': the variable 'PEG_TEST_UNSET' of env is not set here")
    check(len(checked.stderr.splitlines()) == 4, checked)


@scenario
def a_mistake_in_a_manifest_is_reported_with_its_place(w):
    w.write("tools.yaml", MANIFEST.replace("command: [cat]", "comand: [cat]"))
    w.pegboard("provide", "tools.yaml").exits(2).complains(
        "tools.yaml:8:5: ", "'comand'", "did you mean 'command'?")
    w.pegboard("provide", "nowhere.yaml").exits(2).complains(
        "'nowhere.yaml' cannot be read (", "; check its name and permissions")
    w.write("tools.yaml", "toolset: [\n")
    w.pegboard("provide", "tools.yaml").exits(2).complains("tools.yaml:2:1: ")


@scenario
def commands_answer_calls_through_the_gateway_and_nothing_of_them_is_logged(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w)
        call(w, "echo", "text=secret words").exits(0).prints('{"text":"secret words"}\n')
        call(w, "echo", "text:=1").exits(1).complains("validation_error")
        call(w, "fail").exits(1).complains("broken", "E_COMMAND_EXIT")
        provider.awaits("code=E_COMMAND_EXIT")
        provider.signal(signal.SIGTERM)
        provider.ends(0)
        check(not any("secret" in line for line in provider.lines), *provider.lines)


TALKER = """\
toolset: local
tools:
  - name: build
    description: Says what it does, and goes on when it is let.
    shell: true
    command: echo compiling; echo warning >&2; read x < go; echo done
    timeout: 60s
  - name: value
    description: Answers JSON, and says what it does.
    shell: true
    command: "echo '{'; echo thinking >&2; read x < go; echo '\\"a\\":1}'"
    timeout: 60s
"""


def awaits_all(process, *words):
    """Each of them, in whatever order."""
    missing = set(words)
    while missing:
        line = process.arrived.get(timeout=WAIT_S)
        missing = {word for word in missing if word not in line}


@scenario
def output_of_a_command_arrives_before_it_ends(w):
    w.write("tools.yaml", TALKER)
    os.mkfifo(w.path("go"))
    address = f"unix:{w.path('s')}"
    with processes() as start:
        serve(start, w)
        provide(start, w)
        # The command ends only after its words were heard: they cannot have come with its result.
        caller = start(w, "call", "--stream", "--registry", address, "local", "build")
        awaits_all(caller, "compiling", "warning")
        let_go(w)
        caller.awaits('"compiling\\ndone\\n"')
        caller.ends(0)

        caller = start(w, "call", "--stream", "--json", "--registry", address, "local", "build")
        awaits_all(caller, '"stream":"stdout","delta":"compiling\\n"',
                   '"stream":"stderr","delta":"warning\\n"')
        let_go(w)
        check('"result":"compiling\\ndone\\n"' in caller.awaits('"event":"end"'), *caller.lines)
        caller.ends(0)

        caller = start(w, "call", "--stream", "--json", "--registry", address, "local", "value")
        caller.awaits('"stream":"stderr","delta":"thinking\\n"')
        let_go(w)
        check('"result":{"a":1}' in caller.awaits('"event":"end"'), *caller.lines)
        caller.ends(0)
        check(not any('"stdout"' in line for line in caller.lines), *caller.lines)


@scenario
def a_command_that_writes_more_than_is_read_is_not_blocked(w):
    """Nobody reads what the caller prints: the command ends all the same."""
    w.write("tools.yaml", """\
toolset: local
tools:
  - name: flood
    description: Says a lot.
    shell: true
    command: head -c 20000000 /dev/zero | tr '\\0' x >&2; echo > ended
    timeout: 60s
""")
    os.mkfifo(w.path("ended"))
    with processes() as start:
        serve(start, w)
        provide(start, w)
        caller = subprocess.Popen(
            [w.executable, "call", "--stream", "--registry", f"unix:{w.path('s')}", "local", "flood"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(w.path("ended"), encoding="utf-8") as ended:
            ended.read()
        out, _ = caller.communicate(timeout=WAIT_S)
        check(caller.returncode == 0 and out == b'""\n', caller.returncode, out)


@scenario
def stopping_finishes_what_runs(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w)
        caller = begin_hold(w)
        provider.signal(signal.SIGTERM)
        provider.awaits("event=drains")
        call(w, "echo", "text=x").exits(5)
        let_go(w)
        out, _ = caller.communicate(timeout=WAIT_S)
        check(caller.returncode == 0 and out == '"held\\n"\n', caller.returncode, out)
        provider.ends(0)


@scenario
def a_provider_does_not_wait_for_readers_of_its_log(w):
    def echoes(i):
        call(w, "echo", f"text={i}").exits(0).prints(f'{{"text":"{i}"}}\n')

    prepare(w)
    unread, said = os.pipe()
    fcntl.fcntl(said, fcntl.F_SETPIPE_SZ, 4096)
    with processes() as start:
        serve(start, w)
        provider = subprocess.Popen(
            [w.executable, "provide", "tools.yaml", "--registry", f"unix:{w.path('s')}"],
            cwd=w.directory, stdout=subprocess.DEVNULL, stderr=said)
        try:
            heard = b""
            while b"event=attached" not in heard:
                heard += os.read(unread, 4096)

            with concurrent.futures.ThreadPoolExecutor(4) as callers:
                try:
                    for _ in callers.map(echoes, range(100)):
                        pass
                finally:
                    callers.shutdown(cancel_futures=True)
            provider.send_signal(signal.SIGTERM)

            check(provider.wait(timeout=WAIT_S) == 0, "it was stopped, and ended otherwise")
        finally:
            provider.kill()
            provider.wait()
            os.close(unread)
            os.close(said)


@scenario
def stopping_twice_ends_what_runs(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w)
        caller = begin_hold(w)
        provider.signal(signal.SIGTERM)
        provider.awaits("event=drains")
        provider.signal(signal.SIGTERM)
        _, err = caller.communicate(timeout=WAIT_S)
        check(caller.returncode == 1 and "E_TOOL_CANCELED" in err, caller.returncode, err)
        provider.ends(0)


@scenario
def what_a_command_hides_in_a_session_of_its_own_ends_with_it(w):
    stay = "sh -c 'trap \"\" TERM; echo $$ > hidden; exec sleep 1000' >/dev/null 2>&1 </dev/null"
    for how in (f"setsid {stay} & wait", f"(setsid {stay} &); sleep 1000",
                f"(env -i setsid {stay} &); sleep 1000"):
        w.write("tools.yaml", f"""\
toolset: local
tools:
  - name: hold
    description: Starts what leaves its process group.
    shell: true
    command: |
      {how}
    timeout: 60s
    grace: 10ms
""")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(w.path("hidden"))
        os.mkfifo(w.path("hidden"))
        with processes() as start:
            gateway = serve(start, w)
            provider = provide(start, w)
            caller = subprocess.Popen(
                [w.executable, "call", "--registry", f"unix:{w.path('s')}", "local", "hold"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(w.path("hidden"), encoding="ascii") as file:
                hidden = int(file.read())
            check(os.path.exists(f"/proc/{hidden}"), "it runs")
            provider.signal(signal.SIGTERM)
            provider.awaits("event=drains")
            provider.signal(signal.SIGTERM)
            provider.ends(0)
            caller.wait(timeout=WAIT_S)
            check(not os.path.exists(f"/proc/{hidden}"), "it lives on after", how)
            gateway.kill()


@scenario
def abandoned_calls_are_reported_with_the_option_that_helps(w):
    w.write("tools.yaml", """\
toolset: local
tools:
  - name: hold
    description: Does not mind being told to end.
    shell: true
    command: trap '' TERM; echo > begun; while true; do sleep 0.1; done
    timeout: 60s
    grace: 3s
""")
    os.mkfifo(w.path("begun"))
    with processes() as start:
        serve(start, w)
        provider = provide(start, w)
        caller = begin_hold(w)
        provider.signal(signal.SIGINT)
        provider.awaits("event=drains")
        provider.signal(signal.SIGINT)
        provider.awaits("pegboard: 1 call was given up; --drain-time gives them longer")
        provider.ends(1)
        check(not any("drain_ms" in line for line in provider.lines), *provider.lines)
        caller.communicate(timeout=WAIT_S)


# ---- reading the manifest again ---------------------------------------------------------

OTHER = """\
toolset: local
description: Other tools
version: 2.0.0
tags: [later]
tools:
  - name: echo
    description: Says what it was told, in a sentence.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    shell: true
    command: echo other
  - name: more
    description: Is new.
    command: [echo, more]
"""


@scenario
def a_manifest_is_read_again_at_sighup(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w, "--no-watch")
        caller = begin_hold(w)

        w.write("tools.yaml", OTHER)
        provider.signal(signal.SIGHUP)
        line = provider.awaits("event=reloaded")
        check("toolset=local" in line and "tools=2" in line, line)
        while call(w, "more").status:  # until the gateway has heard of it
            provider.awaits("event=offered")
        call(w, "echo", "text=x").exits(0).prints('"other\\n"\n')
        call(w, "fail").exits(1).complains("(not_found)")
        got = w.pegboard("get", "--registry", f"unix:{w.path('s')}", "local").exits(0)
        got.mentions("local 2.0.0", "Other tools", "later")

        let_go(w)  # what ran when it was read again is finished
        check(caller.communicate(timeout=WAIT_S)[0] == '"held\\n"\n')
        provider.signal(signal.SIGTERM)
        provider.ends(0)
        check(sum("event=attached" in line for line in provider.lines) == 1, *provider.lines)


@scenario
def several_manifests_are_toolsets_of_one_process(w):
    prepare(w)
    w.write("second.yaml", OTHER.replace("toolset: local", "toolset: second"))
    w.pegboard("provide", "--check", "tools.yaml", "second.yaml").exits(0).mentions("toolset local", "toolset second")
    with processes() as start:
        serve(start, w)
        provider = provide(start, w, "second.yaml")
        provider.awaits("event=attached")  # the other one
        call(w, "echo", "text=x").exits(0)
        w.pegboard("call", "--registry", f"unix:{w.path('s')}", "second", "echo", "text=x").exits(0)

        with open(w.path("second.tmp"), "w", encoding="utf-8") as file:  # as an editor saves
            file.write(OTHER.replace("toolset: local", "toolset: second").replace("name: more", "name: less"))
        os.rename(w.path("second.tmp"), w.path("second.yaml"))
        check("toolset=second" in (line := provider.awaits("event=reloaded")), line)
        while w.pegboard("call", "--registry", f"unix:{w.path('s')}", "second", "less").status:
            provider.awaits("event=offered")  # until the gateway has heard of it
        provider.signal(signal.SIGTERM)
        provider.ends(0)
        check(sum("event=reloaded" in line for line in provider.lines) == 1, *provider.lines)


@scenario
def two_manifests_of_one_toolset_are_refused_with_both_places(w):
    prepare(w)
    w.write("second.yaml", "# the same\n" + MANIFEST)
    w.pegboard("provide", "--check", "tools.yaml", "second.yaml").exits(2).complains(
        "second.yaml:2:10: the toolset 'local' is also at tools.yaml:1:10: rename one of them (E_MANIFEST)")


@scenario
def a_toolset_that_the_gateway_takes_away_ends_the_others(w):
    prepare(w)
    w.write("second.yaml", OTHER.replace("toolset: local", "toolset: second"))
    with processes() as start:
        serve(start, w)
        provider = provide(start, w, "second.yaml")
        provider.awaits("event=attached")
        w.pegboard("unregister", "--registry", f"unix:{w.path('s')}", "second").exits(0)
        provider.ends(3)


@scenario
def a_manifest_that_cannot_be_used_at_sighup_leaves_the_one_before(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w, "--no-watch")
        for text, words in (("toolset: local\ntools: 7\n", "tools.yaml:2:8"),
                            (OTHER.replace("toolset: local", "toolset: foreign"), "foreign")):
            w.write("tools.yaml", text)
            provider.signal(signal.SIGHUP)
            check(words in (line := provider.awaits("event=reload_failed")), line)
        os.remove(w.path("tools.yaml"))
        provider.signal(signal.SIGHUP)
        check("tools.yaml" in (line := provider.awaits("event=reload_failed")), line)
        call(w, "echo", "text=x").exits(0)
        provider.signal(signal.SIGTERM)
        provider.ends(0)


@scenario
def a_provider_that_is_killed_leaves_an_outcome_that_is_not_known(w):
    prepare(w)
    with processes() as start:
        serve(start, w)
        provider = provide(start, w)
        caller = begin_hold(w)
        provider.signal(signal.SIGKILL)
        _, err = caller.communicate(timeout=WAIT_S)
        check(caller.returncode == 4, caller.returncode, err)
        let_go(w)


@scenario
def a_provider_comes_back_when_its_gateway_does(w):
    prepare(w)
    with processes() as start:
        gateway = serve(start, w)
        provider = provide(start, w)
        call(w, "echo", "text=before").exits(0)
        gateway.kill()
        provider.awaits("event=lost")
        serve(start, w)
        provider.awaits("event=attached")
        call(w, "echo", "text=after").exits(0).prints('{"text":"after"}\n')
        provider.signal(signal.SIGINT)
        provider.ends(0)


@scenario
def a_provider_without_the_right_token_is_refused(w):
    prepare(w)
    with processes() as start:
        w.pegboard("token", "new", "alice", "--token-file", "tokens").exits(0)
        serve(start, w, "--token-file", "tokens")
        w.write("wrong", "peg_wrong\n")
        w.pegboard("provide", "tools.yaml", "--registry", f"unix:{w.path('s')}", "--token",
                   "wrong").exits(3).complains("E_PROVIDER_REFUSED", "unauthenticated")


@scenario
def a_token_file_that_cannot_be_read_is_reported_at_once(w):
    prepare(w)
    w.pegboard("provide", "tools.yaml", "--registry", f"unix:{w.path('s')}", "--token",
               w.path("missing")).exits(2) \
        .complains("E_PROVIDER", "missing", "No such file or directory")


@scenario
def the_example_of_the_library_does_the_same_in_c(w):
    address = f"unix:{w.path('s')}"
    with processes() as start:
        serve(start, w)
        provider = start(w, address, executable=os.path.abspath(sys.argv[2]))
        provider.awaits(f"texts is offered at {address}")
        w.pegboard("call", "--registry", address, "texts", "measure", "text=a few words") \
            .exits(0).prints('"11 bytes for local"\n')
        w.pegboard("call", "--stream", "--registry", address, "texts", "measure", "text=a") \
            .exits(0).mentions('"1 bytes for local"')
        provider.signal(signal.SIGTERM)
        provider.ends(0)


if __name__ == "__main__":
    main()
