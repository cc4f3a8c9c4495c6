# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite of MCP, installed below a build folder, once, and its words on servers and clients."""

import contextlib
import os
import re
import select
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TESTS, "cli"), os.path.join(TESTS, "mcp", "stock")]

from packages import install, run  # noqa: E402
from scenario import Skip  # noqa: E402

SUITE_S = 600
START_S = 60
CLIENT_MS = "120000"
ATTEMPTS = 3  # the suite gives a server 500 ms for some answers, and a loaded machine takes longer
VERSIONS = ("2026-07-28", "2025-11-25")
COLORS = re.compile(r"\x1b\[[0-9;]*m")
LINE = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed$", re.M)


def install_suite(build):
    """The command of the suite, with the Node that it needs."""
    files = [os.path.join(HERE, name) for name in ("package.json", "package-lock.json")]
    place = install(build, "mcp-conformance", files, ["npm", "ci", "--no-audit", "--no-fund"])
    node = os.path.join(place, "node_modules", ".bin", "node")
    if not os.path.exists(node):
        raise Skip("npm installed no Node 22")
    return [node, os.path.join(place, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")]


def read_requirements(suite, version, side="server"):
    """The scenarios for servers, or clients, that a revision requires, and those that are run beside them."""
    path = os.path.join(os.path.dirname(os.path.dirname(suite[1])), "requirements", version + ".yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    required = re.search(rf"^{side}:\n((?:  - \S+\n)+)", text, re.M)[1]
    others = re.findall(rf"- scenario: (\S+)\n\s+leg: {side}\n", text)
    return re.findall(r"- (\S+)", required), others


@contextlib.contextmanager
def fixture(program):
    """The fixture over HTTP; its URL."""
    with subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready, _, _ = select.select([process.stdout], [], [], START_S)
            yield process.stdout.readline().strip() if ready else ""
        finally:
            process.kill()


# ---- a run -------------------------------------------------------------------------------


def ask_suite(suite, *arguments):
    """What the suite printed."""
    with tempfile.TemporaryDirectory() as directory:
        done = run([*suite, *arguments], SUITE_S, cwd=directory)
    return COLORS.sub("", done.stdout + done.stderr)


def judge_all(suite, url, version):
    """Each scenario of a revision: {name: (passed, failed, what was printed)}."""
    text = ask_suite(suite, "server", "--url", url, "--requirements", version)
    return {name: (int(passed), int(failed), "") for name, passed, failed in LINE.findall(text)}


def judge_one(suite, url, version, name):
    text = ask_suite(suite, "server", "--url", url, "--scenario", name, "--spec-version", version, "--force")
    return read_counts(text)


def read_counts(text):
    counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", text)
    return (int(counts[1]), int(counts[3]), text) if counts else (0, 1, text)


def judge_client(suite, program, version, name):
    """A scenario of clients. One that took too long, or ended badly, has failed, whatever it passed before."""
    for _ in range(ATTEMPTS):
        text = ask_suite(suite, "client", "--command", program, "--scenario", name, "--spec-version", version,
                         "--force", "--timeout", CLIENT_MS)
        passed, failed, text = read_counts(text)
        if "OVERALL: PASSED" in text:
            break
        failed = failed or 1
        print(f"# {version} {name} failed: {passed} checks passed, {failed} failed", flush=True)
    return passed, failed, text


def judge(suite, url, version, names, known):
    """The scenarios of these names; one with more failures than are known is asked again, alone."""
    results = judge_all(suite, url, version)
    for name in names:
        for _ in range(ATTEMPTS):
            if name not in results or results[name][1] > known.get(name, 0):
                print(f"# {version} {name} failed, and is asked again: {results.get(name)}", flush=True)
                results[name] = judge_one(suite, url, version, name)
    return {name: results[name] for name in names}


# ---- TAP -----------------------------------------------------------------------------------


class Tap:
    """A line for each scenario."""

    def __init__(self):
        self.n = 0
        self.has_failed = False

    def line(self, truth, name, text=""):
        self.n += 1
        if not truth:
            self.has_failed = True
            print("".join(f"# {line}\n" for line in text.splitlines()), end="")
        print(f"{'ok' if truth else 'not ok'} {self.n} - {name}", flush=True)

    def scored(self, version, results):
        for name, (passed, failed, text) in results.items():
            self.line(passed > 0 and not failed, f"{version} {name}: {passed} checks", text)

    def unscored(self, version, results, known):
        """No more checks fail than are known to. A scenario that finds nothing to judge has passed nothing."""
        for name, (passed, failed, text) in results.items():
            said = f"{passed} checks, {failed} fail" if passed or failed else "nothing was judged"
            self.line(failed <= known.get(name, 0), f"{version} {name}, not scored: {said}", text)

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.has_failed else 0)


def main(body):
    """Runs it with a Tap; what is missing skips all of it."""
    tap = Tap()
    try:
        body(tap)
    except Skip as why:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
    tap.end()
