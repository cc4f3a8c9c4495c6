#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the examples are what they promise to be. Each prints exactly what examples/expected/ has,
is shorter than 80 lines, and needs nothing but the public headers. Those that need something say so.

    test_examples.py DIRECTORY_OF_THE_BUILT_EXAMPLES
"""

import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "engine")]

from replay_server import ReplayServer  # noqa: E402
from scenario import ROOT, TIMEOUT_S, Ran, check, main, scenario  # noqa: E402

BUILT = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(ROOT, "examples")
EXAMPLES = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(FOLDER, "*.c")))
MAX_LINES = 79
HEADERS = re.compile(r"#include <(pegboard/\w+|pthread|semaphore|signal|stdio|stdlib|string|sys/wait|unistd)\.h>")

# Those that take arguments, or whose exit status says something.
ARGUMENTS = {"first_tool": ['{"city": "Oslo"}'],
             # A server gets no more of the environment than it is given: an installed one has to find our libraries.
             "mcp_import": ["forecast", '{"city": "Bergen", "days": 5}', "env",
                            "LD_LIBRARY_PATH=" + os.environ.get("LD_LIBRARY_PATH", ""),
                            os.path.join(BUILT, "mcp_server")]}
STATUS = {"first_check": 1}
# What they read from standard input.
INPUTS = {"mcp_server": """\
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"""}
# Those that run until SIGTERM, and before them what they need; here they listen and connect there.
SERVERS = {"embed_gateway": [], "provider": ["embed_gateway"]}
ADDRESS = "unix:gateway.sock"
# The command of this build, or the one that is installed.
PEGBOARD = next(path for path in (os.path.join(BUILT, "..", "src", "cli", "pegboard"), shutil.which("pegboard"))
                if path and os.path.exists(path))


def read(path):
    with open(os.path.join(FOLDER, path), encoding="utf-8") as file:
        return file.read()


def add_example(name):
    def run(w):
        command = [os.path.join(BUILT, name), *ARGUMENTS.get(name, [])]
        done = subprocess.run(command, cwd=w.directory, check=False, text=True, timeout=TIMEOUT_S,
                              input=INPUTS.get(name, ""), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        ran = Ran(command, done).exits(STATUS.get(name, 0)).is_silent()
        ran.prints(read(f"expected/{name}.txt"))

    run.__name__ = f"{name}_prints_what_is_expected"
    scenario(run)


class Server:
    """A program that says one line when it is there."""

    def __init__(self, w, name, *command):
        self.command = command or [os.path.join(BUILT, name), ADDRESS]
        self.process = subprocess.Popen(self.command, cwd=w.directory, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.first_line = self.process.stdout.readline()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            rest, complaints = self.process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return Ran(self.command, subprocess.CompletedProcess(
            self.command, self.process.returncode, self.first_line + rest, complaints))


def add_server(name):
    def run(w):
        servers = [Server(w, each) for each in [*SERVERS[name], name]]
        ended = [server.end() for server in reversed(servers)]
        for ran in ended:
            ran.exits(0).is_silent()
        ended[0].prints(read(f"expected/{name}.txt"))

    run.__name__ = f"{name}_serves_until_it_is_told_to_end"
    scenario(run)


for example in EXAMPLES:
    if example in SERVERS:
        add_server(example)
    elif example != "gateway_agent":
        add_example(example)


KEY = {"OPENAI_API_KEY": "sk-test"}  # without one this model refuses to speak


# ---- with a model --------------------------------------------------------------------


def ask_model(w, name, scenario_of_model, environment=None):
    """Runs an agent whose model answers in this way; what it did, and what the model was asked."""
    model = ReplayServer().start()
    try:
        command = [os.path.join(BUILT, name), f"http://127.0.0.1:{model.port}/{scenario_of_model}/v1", "MODEL",
                   "Do I need an umbrella in Bergen?"]
        done = subprocess.run(command, cwd=w.directory, check=False, text=True, timeout=TIMEOUT_S,
                              env={**os.environ, **KEY, **(environment or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Ran(command, done), [record["body"] for record in model.records]
    finally:
        model.stop()


@scenario
def gateway_agent_answers_with_the_tools_of_another_process(w):
    gateway = Server(w, "embed_gateway")
    provider = Server(w, None, PEGBOARD, "provide", os.path.join(FOLDER, "demo", "tools.yaml"), "--registry", ADDRESS)
    try:
        check("event=attached" in provider.process.stderr.readline(), "the provider is not attached")
        ran, (first, second) = ask_model(w, "gateway_agent", "forecast+umbrella", {"PEGBOARD_REGISTRY": ADDRESS})
        ran.exits(0).is_silent().prints(read("expected/gateway_agent.txt"))
        check({"forecast", "convert"} <= {tool["function"]["name"] for tool in first["tools"]}, first)
        check("heavy rain" in second["messages"][-1]["content"], second["messages"][-1])
    finally:
        provider.end()
        gateway.end()


@scenario
def gateway_agent_says_what_went_wrong(w):
    ran, _ = ask_model(w, "gateway_agent", "text", {"PEGBOARD_REGISTRY": "unix:nobody.sock"})
    ran.exits(1).complains("E_SERVICE_UNAVAILABLE")
    gateway = Server(w, "embed_gateway")
    try:
        ran, _ = ask_model(w, "gateway_agent", "text", {"PEGBOARD_REGISTRY": ADDRESS})
        ran.exits(1).complains("E_NOT_FOUND")
    finally:
        gateway.end()


@scenario
def agents_say_how_they_are_used(w):
    for name, arguments in (("live_agent", ["--help"]), ("live_agent", ["a", "b", "c", "d"]), ("gateway_agent", [])):
        command = [os.path.join(BUILT, name), *arguments]
        done = subprocess.run(command, check=False, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        Ran(command, done).exits(2).prints("").complains("usage: ", name, "URL MODEL")


@scenario
def live_agent_is_heard_while_it_works(w):
    model = ReplayServer().start()
    url = f"http://127.0.0.1:{model.port}/forecast+umbrella:odd:slow=600000/v1"
    agent = subprocess.Popen([os.path.join(BUILT, "live_agent"), url, "MODEL"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **KEY})
    try:  # its answer takes for ever, what it called is there already
        check(select.select([agent.stdout], [], [], TIMEOUT_S)[0], "nothing is heard")
        check(agent.stdout.readline() == b'[forecast {"city":"Bergen"}]\n')
        check(agent.poll() is None, "it has ended")
    finally:
        agent.kill()
        agent.communicate()
        model.stop()


# ---- all of them -----------------------------------------------------------------------


@scenario
def examples_fit_two_screens(w):
    for name in EXAMPLES:
        n_lines = read(f"{name}.c").count("\n")
        check(n_lines <= MAX_LINES, f"{name}.c has {n_lines} lines, more than {MAX_LINES}")


@scenario
def a_gateway_and_an_agent_with_remote_tools_fit_forty_lines_each(w):
    for name in ("embed_gateway.c", "gateway_agent.c"):
        check(read(name).count("\n") < 40, name, "is longer")


@scenario
def examples_do_not_ask_again_and_again(w):
    for name in EXAMPLES:
        spins = re.search(r"while \(peg_[^;{]*\)\n[ \t]*(continue)?;", read(f"{name}.c"))
        check(not spins, f"{name}.c spins: {spins and spins[0]}")


@scenario
def examples_use_public_headers_only(w):
    for name in EXAMPLES:
        for line in re.findall(r"^[ \t]*#[ \t]*include.*", read(f"{name}.c"), re.M):
            check(HEADERS.fullmatch(line), f"{name}.c: {line}")


@scenario
def nothing_is_expected_of_a_program_that_is_not_there(w):
    expected = sorted(os.path.basename(path)[:-4]
                      for path in glob.glob(os.path.join(FOLDER, "expected", "*")))
    check(expected == EXAMPLES, "expected are", expected, "but there are", EXAMPLES)


if __name__ == "__main__":
    main()
