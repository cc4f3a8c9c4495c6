# SPDX-License-Identifier: Apache-2.0
"""What the parser bench needs beside its own texts: yyjson, which Debian 12 does not have, and
real-shaped corpora. Everything is fetched or made in the build directory, at bench time; what can't
be had is left out, and the reason is told."""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile

YYJSON = "yyjson==4.0.6"  # PyPI's binding; its source package has yyjson.c
OPENAPI = "@octokit/openapi@23.0.2"
SOURCE = pathlib.Path(__file__).resolve().parent
MAX_MANIFESTS = 400
MAX_OPENAPI = 300


def say(what, why):
    print(f"bench/run: {what} left out: {why}", file=sys.stderr)


def run(command, where):
    """Its output; None with a reason on stderr if it can't be run."""
    if not shutil.which(command[0]):
        return None
    made = subprocess.run(command, cwd=where, capture_output=True, text=True)
    return made.stdout if made.returncode == 0 else None


# ---- yyjson ---------------------------------------------------------------------------------


def fetch_yyjson(directory):
    """The folder with yyjson.c, or None."""
    found = next(directory.glob("yyjson-*/yyjson/yyjson.c"), None)
    if found:
        return found.parent
    directory.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", YYJSON], directory)
    package = next(directory.glob("yyjson-*.tar.gz"), None)
    if package:
        with tarfile.open(package) as archive:
            archive.extractall(directory)
    found = next(directory.glob("yyjson-*/yyjson/yyjson.c"), None)
    return found.parent if found else None


def build_peers(build):
    """Libraries for --peer: yyjson, or none."""
    source = fetch_yyjson(build / "yyjson")
    if not source:
        say("yyjson is", f"pip could not download the source package {YYJSON}")
        return []
    library = build / "yyjson" / "peer-yyjson.so"
    # -O3, as simdjson beside it.
    made = subprocess.run(["cc", "-O3", "-DNDEBUG", "-shared", "-fPIC", f"-I{source}", f"-I{SOURCE}", "-o", str(library),
                           str(SOURCE / "parser_yyjson.c"), str(source / "yyjson.c")], capture_output=True, text=True)
    if made.returncode:
        say("yyjson is", "it could not be compiled:\n" + made.stderr[-800:])
        return []
    return [library]


# ---- corpora ----------------------------------------------------------------------------------


def save(directory, texts):
    """Writes one file a text; the folder."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for i, text in enumerate(texts):
        (directory / f"{i:04}.json").write_bytes(text)
    return directory


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def manifests(build):
    """Every package.json of npm itself and of what the benches have installed."""
    root = run(["npm", "root", "-g"], build)
    places = ([pathlib.Path(root.strip())] if root else []) + [build / "peers", build / "core-peers"]
    found = {}
    for place in places:
        for path in sorted(place.rglob("package.json")):
            text = path.read_bytes()
            if len(text) > 200 and is_json(text):  # smaller ones only say "type"
                found.setdefault(text, path)
    return list(found)[:MAX_MANIFESTS]


def locks(build):
    """What npm resolves the packages of our benches and tests to, and the lock files of our tests."""
    top = SOURCE.parent.parent
    texts = [path.read_bytes() for path in sorted(top.glob("tests/*/**/package-lock.json"))]
    for package in sorted(top.glob("bench/*/package.json")) + sorted(top.glob("bench/*/*/package.json")):
        directory = build / "locks" / package.parent.name
        lock = directory / "package-lock.json"
        if not lock.exists():
            directory.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package, directory / "package.json")
            run(["npm", "install", "--package-lock-only", "--no-audit", "--no-fund"], directory)
        if lock.exists():
            texts.append(lock.read_bytes())
    return texts


def openapi(build):
    """GitHub's API, one OpenAPI document for each of its first paths, indented as it comes."""
    directory = build / "openapi"
    whole = directory / "package" / "generated" / "api.github.com.json"
    if not whole.exists():
        directory.mkdir(parents=True, exist_ok=True)
        name = (run(["npm", "pack", "--silent", OPENAPI], directory) or "").strip()
        if not name:
            return []
        with tarfile.open(directory / name) as archive:
            archive.extract("package/generated/api.github.com.json", directory)
        (directory / name).unlink()
    api = json.loads(whole.read_bytes())
    texts = []
    for path, item in list(api["paths"].items())[:MAX_OPENAPI]:
        part = {"openapi": api["openapi"], "info": api["info"], "servers": api.get("servers", []), "paths": {path: item}}
        texts.append(json.dumps(part, indent=2, ensure_ascii=False).encode())
    return texts


# ---- tool calls, made -----------------------------------------------------------------------------

WORDS = ("weather report invoice customer search the latest files in project folder update status of order summary meeting "
         "notes for Zürich café 東京 budget draft review error while reading line please find all messages from last week "
         "translate this sentence into French and keep “quotes” as they are").split()


def sentence(dice, n):
    return " ".join(dice.choice(WORDS) for _ in range(n))


def code(dice):
    lines = [f"    {dice.choice(WORDS)} = call(\"{sentence(dice, 2)}\", {dice.randrange(10000)})" for _ in range(dice.randrange(2, 9))]
    return "def main():\n" + "\n".join(lines) + "\n"


def arguments(dice):
    kind = dice.randrange(5)
    if kind == 0:
        return {"query": sentence(dice, dice.randrange(2, 12)), "limit": dice.randrange(1, 100), "exact": dice.random() < 0.5}
    if kind == 1:
        return {"path": f"src/{dice.choice(WORDS)}/{dice.choice(WORDS)}.py", "content": code(dice), "mode": "overwrite"}
    if kind == 2:
        return {"latitude": round(dice.uniform(-90, 90), 4), "longitude": round(dice.uniform(-180, 180), 4),
                "days": dice.randrange(1, 14), "units": dice.choice(["metric", "imperial"]), "hourly": None}
    if kind == 3:
        items = [{"sku": f"SKU-{dice.randrange(10**6):06}", "quantity": dice.randrange(1, 20), "price": round(dice.uniform(1, 900), 2)}
                 for _ in range(dice.randrange(1, 8))]
        return {"customer_id": dice.randrange(10**9), "items": items, "note": sentence(dice, dice.randrange(0, 14)), "gift": False}
    filters = [{"field": dice.choice(WORDS), "op": dice.choice(["=", "<", ">=", "in"]), "value": dice.choice([dice.randrange(1000), sentence(dice, 2)])}
               for _ in range(dice.randrange(1, 6))]
    return {"table": dice.choice(WORDS), "filters": filters, "order_by": [{"field": "created_at", "desc": True}], "page": dice.randrange(50)}


def tool_call(dice):
    """As they come over the wire: arguments as an object, or as text with every quote escaped."""
    args, ident = arguments(dice), f"call_{dice.getrandbits(96):024x}"
    kind = dice.randrange(4)
    if kind == 0:
        return args
    if kind == 1:
        return {"jsonrpc": "2.0", "id": dice.randrange(10000), "method": "tools/call", "params": {"name": "fs.search", "arguments": args}}
    if kind == 2:
        return {"id": f"msg_{dice.getrandbits(96):024x}", "type": "message", "role": "assistant", "model": "a-model",
                "content": [{"type": "text", "text": sentence(dice, 9)}, {"type": "tool_use", "id": ident, "name": "search", "input": args}],
                "stop_reason": "tool_use", "usage": {"input_tokens": dice.randrange(9000), "output_tokens": dice.randrange(900)}}
    call = {"id": ident, "type": "function", "function": {"name": "search", "arguments": json.dumps(args, ensure_ascii=False)}}
    return {"id": f"chatcmpl-{dice.getrandbits(64):016x}", "object": "chat.completion", "created": 1760000000 + dice.randrange(10**7),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": dice.randrange(9000), "completion_tokens": dice.randrange(900)}}


def tool_calls():
    dice = random.Random(17)
    return [json.dumps(tool_call(dice), ensure_ascii=False, separators=(",", ":")).encode() for _ in range(500)]


def gather(build):
    """Folders for --corpus."""
    sets = {"tool calls": tool_calls(), "package manifests": manifests(build), "lock files": locks(build), "OpenAPI": openapi(build)}
    for name, texts in sets.items():
        if not texts:
            say(f"{name} are", "npm is not here, or could not download them")
    return [save(build / "corpora" / name, texts) for name, texts in sets.items() if texts]
