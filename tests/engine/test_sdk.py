#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what we replay is what the providers' own SDKs accept, and what our engines send is what
these SDKs would send by their types.

    test_sdk.py BUILD ENGINE_CLIENT RENDER_CLIENT

The packages are installed below BUILD, once; without npm or a network everything is skipped.
"""

import glob
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SDK = os.path.join(HERE, "sdk")
WIRE = os.path.join(HERE, "wire")
sys.path.insert(0, SDK)
sys.path.insert(0, HERE)

import rules  # noqa: E402
from replay_server import ReplayServer  # noqa: E402
from types_of_sdks import TSCONFIG, constants, controls, as_typed  # noqa: E402

BUILD, ENGINE_CLIENT, RENDER_CLIENT = (os.path.abspath(path) for path in sys.argv[1:4])
PLACE = os.path.join(BUILD, "engine-sdk")
PROVIDERS = {  # a model, a model that thinks, and what comes before the path
    "openai-chat": ("gpt-4.1-mini", "gpt-5-mini", "/v1"),
    "openai-responses": ("gpt-4.1-mini", "gpt-5-mini", "/v1"),
    "anthropic": ("claude-sonnet-4-6", "claude-sonnet-4-6", ""),
    "gemini": ("gemini-2.5-flash", "gemini-3-pro-preview", "/v1beta"),
}
CONVERSATIONS = ["text", "parallel+final", "reasoning_tool+final", "fail+unknown+final"]
TIMEOUT_S = 240


class Skip(Exception):
    pass


# ---- TAP -------------------------------------------------------------------------------

class Tap:
    def __init__(self):
        self.n, self.failed = 0, 0

    def say(self, name, error):
        self.n += 1
        if error:
            self.failed += 1
            for line in str(error).splitlines():
                print(f"# {line}")
        print(f"{'not ok' if error else 'ok'} {self.n} - {name}", flush=True)


# ---- the packages ----------------------------------------------------------------------

def run(command, **more):
    return subprocess.run(command, check=False, text=True, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)


def stamp():
    """Says which packages are wanted."""
    digest = hashlib.sha256()
    for name in ("package.json", "package-lock.json"):
        with open(os.path.join(SDK, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def install():
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    done = os.path.join(PLACE, "installed")
    if os.path.exists(done) and open(done, encoding="utf-8").read() == stamp():
        return
    shutil.rmtree(PLACE, ignore_errors=True)
    os.makedirs(PLACE)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(SDK, name), PLACE)
    try:
        npm = run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                   "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=10000"], cwd=PLACE)
    except subprocess.TimeoutExpired:
        raise Skip("npm did not end in time: is there a network?") from None
    if npm.returncode:
        reason = re.search(r"npm (?:ERR!|error) (.*)", npm.stdout)
        raise Skip(f"npm could not install the SDKs: {reason[1] if reason else npm.stdout[-200:]}")
    with open(done, "w", encoding="utf-8") as file:
        file.write(stamp())


# ---- the SDKs read what is replayed ----------------------------------------------------

def check_answers(tap, server):
    # Beside the packages: that is where node looks for them.
    shutil.copy(os.path.join(SDK, "sdk_test.mjs"), PLACE)
    done = run(["node", "sdk_test.mjs", str(server.port), WIRE], cwd=PLACE,
               env={**os.environ, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"})
    n_failed, n = 0, 0
    for line in done.stdout.splitlines():
        if line.startswith('{"name"'):
            told = json.loads(line)
            tap.say(f"sdk {told['name']}", told["error"])
            n, n_failed = n + 1, n_failed + bool(told["error"])
    if n < 100 or done.returncode != bool(n_failed):
        tap.say("sdk: all of them ran", f"exit status {done.returncode}\n{done.stdout[-2000:]}")


# ---- requests of ours ------------------------------------------------------------------

def engine_requests(server):
    """Bodies that the engines sent in conversations, accepted or not: {provider: {name: body}}."""
    for number, (provider, steps) in enumerate(itertools.product(PROVIDERS, CONVERSATIONS)):
        _, model, prefix = PROVIDERS[provider]
        for more in ([], ["--no-stream", "--strict", "--thinking", "2048"]):
            session = f"{steps}~types{number}{len(more)}"
            run([ENGINE_CLIENT, "--provider", provider, "--model", model, "--key", "k",
                 "--base-url", f"http://127.0.0.1:{server.port}/{session}{prefix}", *more])
    found = {provider: {} for provider in PROVIDERS}
    for i, record in enumerate(server.records):
        if "~types" in record["session"]:
            found[record["provider"]][f"request {i} of {record['session']}"] = record["body"]
    return found


WAYS = [[], ["--stream", "--strict"], ["--json-schema", "--plain"],
        ["--max-tokens", "100", "--temperature", "0.5", "--stop", "END"],
        ["--thinking", "2048", "--max-tokens", "4096"], ["--reasoning", "high", "--top-p", "0.9"]]


def rendered_requests(tap):
    """Requests for the turns in turns/, as text; what has no request is a failure."""
    found = {provider: {} for provider in PROVIDERS}
    for path in sorted(glob.glob(os.path.join(HERE, "turns", "*.yaml"))):
        name = os.path.basename(path)
        for provider, (plain, thinking, _) in PROVIDERS.items():
            errors = []
            for way in WAYS:
                model = thinking if {"--thinking", "--reasoning"} & set(way) else plain
                done = run([RENDER_CLIENT, "--provider", provider, "--model", model, *way, path])
                if done.returncode:
                    errors.append(f"{way}: {done.stdout}")
                    continue
                body = json.loads(done.stdout)
                found[provider][f"{name} {' '.join(way)}"] = body
                errors += complaint(provider, model, body, way)
            tap.say(f"{provider}: a request for {name} that the provider takes", "\n".join(errors))
    return found


def complaint(provider, model, body, way):
    headers = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01",
               "x-goog-api-key": "k", "model": model}
    try:
        rules.refuse(provider, body, headers, set())
    except rules.Refused as refused:
        return [f"{way}: {refused.message}\n{json.dumps(body)}"]
    return []


# ---- types -----------------------------------------------------------------------------

def sse_events(path):
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("data: {"):
                yield json.loads(line[6:])


def is_typed(event):
    """The SDKs have no type of a ping, and raise an error that comes in a stream."""
    return event.get("type") != "ping" and "error" not in event


def answers(provider):
    """What is replayed, by kind: {"Answer" | "Event" | "Failure": {name: value}}."""
    found = {"Answer": {}, "Event": {}, "Failure": {}}
    for path in sorted(glob.glob(os.path.join(WIRE, provider, "*"))):
        name = os.path.basename(path)
        if name.endswith(".sse"):
            for i, event in enumerate(filter(is_typed, sse_events(path))):
                found["Event"][f"{name} {i}"] = as_typed(provider, event)
            continue
        if (provider, name) == ("anthropic", "error_413.json"):
            continue  # its type is in Anthropic's documentation, but not in the SDK
        with open(path, encoding="utf-8") as file:
            kind = "Failure" if name.startswith("error_") else "Answer"
            found[kind][name] = as_typed(provider, json.load(file))
    return found


def write_programs(requests):
    """Returns {file name: what it shows}."""
    programs = {}
    for provider in PROVIDERS:
        values = {**{"Request": {name: as_typed(provider, body)
                                 for name, body in requests[provider].items()}},
                  **answers(provider)}
        for kind, named in values.items():
            programs[f"{provider}-{kind}.ts"] = (
                f"{provider}: {len(named)} values are of the SDK's type {kind}",
                constants(provider, kind, named))
        programs[f"{provider}-control.ts"] = (f"{provider}: the types refuse what is wrong",
                                              controls(provider))
    place = os.path.join(PLACE, "types")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    for name, (_, text) in programs.items():
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(place, "tsconfig.json"), "w", encoding="utf-8") as file:
        json.dump({**TSCONFIG, "files": sorted(programs)}, file)
    return {name: what for name, (what, _) in programs.items()}


def check_types(tap, requests):
    programs = write_programs(requests)
    done = run([os.path.join(PLACE, "node_modules", ".bin", "tsc"), "-p", "types", "--pretty",
                "false"], cwd=PLACE)
    complaints = {}
    for line in done.stdout.splitlines():
        name = os.path.basename(line.split("(")[0])
        complaints.setdefault(name if name in programs else None, []).append(line)
    for name, what in programs.items():
        tap.say(what, "\n".join(complaints.get(name, [])[:20]))
    # Lines that continue an error belong to no file; without any error they are one.
    if done.returncode and not set(complaints) & set(programs):
        tap.say("tsc ran", done.stdout[-2000:])


def main():
    tap = Tap()
    try:
        install()
    except Skip as why:
        print(f"1..0 # SKIP {why}")
        return 0
    server = ReplayServer().start()
    check_answers(tap, server)
    requests = rendered_requests(tap)
    for provider, bodies in engine_requests(server).items():
        tap.say(f"{provider}: engines sent requests", "" if len(bodies) >= 10 else "too few")
        requests[provider].update(bodies)
    check_types(tap, requests)
    server.stop()
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
