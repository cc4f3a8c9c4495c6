#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what the documents show is true. Every command in README.md, ARCHITECTURE.md,
CONTRIBUTING.md and docs/ is run, every output shown is compared, and every piece of C that a newcomer
reads stands in a file of examples/, all of which are compiled with pkg-config against an installation.
C in docs/modules/ stands in a file that a test compiles and runs; the limits that
docs/modules/net.md and docs/modules/grpc.md list are those of the sources, all of them (tools/check-errors does it for errors); so are the limits and the
names of errors in docs/reference/gateway.md, and the options of `pegboard serve` there. Code in docs/providers.md stands in
examples/ or clients/, where tests/gateway/stock/ runs it; tests/clients/ runs the programs of docs/python.md and docs/node.md.

    test_docs.py PEGBOARD BUILD_DIRECTORY SANITIZE COMPILER...

In a ```console block, `$ ` starts a command and the lines behind it are what it prints; a line `...`
stands for any lines. In a ```sh block every line is a command. Commands must succeed, unless the
next one is `echo $?`. A ```c block in README.md, docs/tutorial.md and docs/how-to/ stands below a line that ends with
the name of its file, as in "`examples/agent.c`:", one in docs/modules/ as in "`tests/grpc/example_server.c`:".
Commands run in a copy of examples/ and its neighbours, with `pegboard`, `cc` and
`pkg-config` as after an installation. What would start these tests again, or reach beyond this
machine, is looked at but not run (see `stand_in`).

A command that ends in ` &` goes on while the others of its block run; what it prints on standard output until
it is ready is compared. A gateway listens on a free port, which every output shows as 9090. A block that asks a
gateway and starts none finds one, and examples/demo/tools.yaml provided there. The model at port 11434 is
tests/engine/replay_server.py, which asks for the forecast and then answers. The contents of a document, and those of
examples/, are complete.
"""

import functools
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from scenario import ROOT, TIMEOUT_S, World, check, main, scenario

sys.path.insert(0, os.path.join(ROOT, "tests", "engine"))
from replay_server import ReplayServer  # noqa: E402
from terminal import Terminal

BUILD, SANITIZE = sys.argv[2:4]
HAS_REDIS = bool(shutil.which("redis-server"))
# By their paths, as in `ccache cc`: shims of the same names will come first, and would find themselves.
COMPILER = [shutil.which(word) or word for word in sys.argv[4:]]
DOCUMENTS = [path for path in (
    [os.path.join(ROOT, name) for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    + [os.path.join(ROOT, "examples", "README.md")]
    + sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)))
    if os.path.exists(path)]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
MODEL = "http://127.0.0.1:11434/v1"
MARK = "-- end of command --"
# What asks a gateway, and what the others find running.
ASKS = re.compile(r"\bpegboard (list|get|search|call|status|unregister)\b|\bpegboard mcp$|\bcurl\b", re.M)
RUNNING = ("pegboard serve", "pegboard provide examples/demo/tools.yaml")
# behind COMMAND: starts it, waits until it is ready, and prints what it has said on standard output.
PRELUDE = r"""
n_behind=0 pids=
behind() {
    n_behind=$((n_behind + 1)) said=.said-$n_behind
    sh -c "exec $1" >"$said" 2>"$said.log" &
    pids="$pids $!"
    until grep -qs 'listens on\|event=attached\|is offered' "$said" "$said.log"; do
        kill -0 $! || { cat "$said" "$said.log"; return 1; } # it has ended
        sleep 0.02
    done
    address=$(sed -n 's/.*the gateway listens on //p' "$said")
    [ -z "$address" ] || export PEGBOARD_REGISTRY="$address"
    cat "$said"
}
trap '[ -z "$pids" ] || kill -9 $pids' EXIT
"""
# A stand-in for curl, which is not everywhere, and knows the port.
CURL = """#!/usr/bin/env python3
import os, sys, urllib.request
url = sys.argv[-1].replace("127.0.0.1:9090", os.environ["PEGBOARD_REGISTRY"])
data = sys.argv[sys.argv.index("-d") + 1].encode() if "-d" in sys.argv else None
request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
print(urllib.request.urlopen(request, timeout=60).read().decode().removesuffix(chr(10)))
"""


@dataclass
class Command:
    place: str
    text: str
    output: list = field(default_factory=list)
    is_compared: bool = False


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blocks(path, language):
    text = read(path)
    for fence in FENCE.finditer(text):
        if fence[1] == language:
            yield text.count("\n", 0, fence.start()) + 2, fence[2]


def commands_of(path, line, block, is_console):
    """The commands of one block, lines that end in a backslash joined to the next."""
    found = []
    goes_on = False
    for n, text in enumerate(block.splitlines(), line):
        if goes_on:
            found[-1].text += "\n" + text
        elif not is_console and text.strip() and not text.startswith("#"):
            found.append(Command(f"{os.path.relpath(path, ROOT)}:{n}", text))
        elif is_console and text.startswith("$ "):
            found.append(Command(f"{os.path.relpath(path, ROOT)}:{n}", text[2:], [], True))
        elif is_console:
            check(found, f"{path}:{n}: output without a command")
            found[-1].output.append(text)
            continue
        goes_on = bool(found) and found[-1].text.endswith("\\")
    return found


def stand_in(text):
    """What to run in place of a command; None for those that only make sense outside."""
    words = shlex.split(text, comments=True)
    if words[:1] == ["sudo"]:
        words = words[1:]
    if words[:1] == ["make"]:  # the target exists
        return shlex.join(["make", "--no-print-directory", "-n", "-C", ROOT, *words[1:]]) + " >/dev/null"
    if words[:2] == ["git", "clone"] or words[:1] in (["cd"], ["meson"], ["systemctl"], ["journalctl"], ["docker"]):
        return None
    if words and words[0].startswith("build/"):
        return shlex.join(["test", "-x", os.path.join(BUILD, words[0][len("build/"):])])
    if words[:1] in (["tools/demo"], [".ci/run"], ["tools/setup"], ["bench/run"], ["tools/run-tests"],
                     ["tools/fuzz"], ["ninja"]):
        return shlex.join(["test", "-e", words[0]]) if "/" in words[0] else None
    return text


# ---- an installation in a temporary folder ------------------------------------------


class Installed(World):
    _root = None

    def __init__(self, directory):
        super().__init__(directory)
        if not Installed._root:
            Installed._root = tempfile.TemporaryDirectory()
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                            self._root.name], check=True, stdout=subprocess.DEVNULL)
        for name in ("examples", "include", "docs", "tools", "tests", "bench", ".ci", "README.md"):
            source = os.path.join(ROOT, name)
            if name == "examples":
                shutil.copytree(source, self.path(name))
            elif os.path.exists(source):
                os.symlink(source, self.path(name))

    @staticmethod
    @functools.cache
    def find(name):
        (found,) = glob.glob(os.path.join(Installed._root.name, "**", name), recursive=True)
        return found

    def environment(self):
        bin_dir = os.path.join(self._root.name, "test-bin")
        os.makedirs(bin_dir, exist_ok=True)
        for name in ("cc", "gcc"):  # the compiler of this build, with its sanitizer
            shim = os.path.join(bin_dir, name)
            with open(shim, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec {shlex.join(COMPILER)} {SANITIZE} "$@"\n')
            os.chmod(shim, 0o755)
        shim = os.path.join(bin_dir, "curl")
        with open(shim, "w", encoding="utf-8") as file:
            file.write(CURL)
        os.chmod(shim, 0o755)
        return {**os.environ,
                "REGISTRY_ADDR": "127.0.0.1:0",
                "XDG_STATE_HOME": self.path("state"),
                "PATH": os.pathsep.join([bin_dir, os.path.dirname(self.find("bin/pegboard")),
                                         os.environ["PATH"]]),
                "PKG_CONFIG_PATH": os.path.dirname(self.find("libpegboard.pc")),
                "PKG_CONFIG_SYSROOT_DIR": self._root.name,
                "LD_LIBRARY_PATH": os.path.dirname(self.find("libpegboard.so")),
                "OPENAI_API_KEY": "sk-test",  # the model that stands in wants one
                "NO_COLOR": "1"}

    def run_block(self, commands):
        """Runs a block in one shell; returns for each command its status and what it printed."""
        model = ReplayServer().start() if any(MODEL in command.text for command in commands) else None
        try:
            return self.run_script(commands, f"http://127.0.0.1:{model.port}/forecast+umbrella/v1" if model else "")
        finally:
            if model:
                model.stop()

    def run_script(self, commands, model):
        script = PRELUDE
        if any(ASKS.search(command.text) for command in commands) and not any(
                "pegboard serve" in command.text for command in commands):
            script += "".join(f"behind {shlex.quote(text)} >.started || cat .started\n" for text in RUNNING)
        for command in commands:
            text = stand_in(command.text)
            if text and model:
                text = text.replace(MODEL, model)
            if text and text.endswith(" &"):
                text = "behind " + shlex.quote(text.removesuffix(" &"))
            if text is not None:
                script += f"(exit $status)\n{text}\n"
            # $? survives the marker, so that a later `echo $?` tells the truth.
            script += f'status=$?; printf "%s %d\\n" "{MARK}" $status\n'
        done = subprocess.run(["sh", "-c", "status=0\n" + script], cwd=self.directory, text=True,
                              env=self.environment(), check=False, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        printed = re.sub(r"\b127\.0\.0\.1:\d+", "127.0.0.1:9090", done.stdout)
        parts = re.split(f"^{re.escape(MARK)} (\\d+)\n", printed, flags=re.M)
        check(len(parts) == 2 * len(commands) + 1, "the shell stopped early:", done.stdout)
        return [(int(parts[2 * i + 1]), parts[2 * i]) for i in range(len(commands))]


def fits(shown, printed):
    """Are these the lines shown, with `...` for any lines?"""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, printed)


def check_block(w, commands):
    results = w.run_block(commands)
    for i, (command, (status, printed)) in enumerate(zip(commands, results)):
        may_fail = i + 1 < len(commands) and commands[i + 1].text == "echo $?"
        check(status == 0 or may_fail, f"{command.place}: {command.text}: exit status {status}:\n"
              + printed)
        if command.is_compared and stand_in(command.text) == command.text:
            shown = "\n".join(command.output)
            check(fits(command.output, printed),
                  f"{command.place}: {command.text}\nshown:\n{shown}\nprinted:\n{printed}")


# ---- scenarios ------------------------------------------------------------------------


def add_document(path):
    def run(w):
        n = 0
        for language in ("console", "sh"):
            for line, block in blocks(path, language):
                commands = commands_of(path, line, block, language == "console")
                with tempfile.TemporaryDirectory() as directory:
                    check_block(Installed(directory), commands)
                n += len(commands)
        print(f"# {os.path.relpath(path, ROOT)}: {n} commands")

    run.__name__ = f"the_commands_in_{os.path.relpath(path, ROOT)}_do_what_they_show"
    scenario(run)


for document in DOCUMENTS:
    add_document(document)


NEWCOMERS = [os.path.join(ROOT, "README.md"), os.path.join(ROOT, "docs", "tutorial.md"),
             *sorted(glob.glob(os.path.join(ROOT, "docs", "how-to", "*.md"))),
             os.path.join(ROOT, "docs", "reference", "limits.md"), os.path.join(ROOT, "docs", "reference", "threads.md")]


@scenario
def the_first_programs_are_shown_whole_compiled_and_run(w):
    for page, name in (("README.md", "first_tool"), ("docs/tutorial.md", "first_tool"),
                       ("docs/how-to/json-and-schema.md", "first_check")):
        path = os.path.join(ROOT, page)
        source = read(os.path.join(ROOT, "examples", name + ".c"))
        check(source in [block for _, block in blocks(path, "c")], name, "is not shown in", path)
        for line in (f"$ cc examples/{name}.c $(pkg-config --cflags --libs libpegboard)",
                     f"$ ./{name}"):
            check(line in read(path), path, "lacks", line)


@scenario
def the_manifest_in_the_readme_can_be_used(w):
    manifests = [block for _, block in blocks(os.path.join(ROOT, "README.md"), "yaml")]
    check(len(manifests) == 1, len(manifests), "manifests in README.md")
    w.write("clock.yaml", manifests[0])
    w.pegboard("provide", "--check", "clock.yaml").exits(0)


@scenario
def c_in_the_documents_for_newcomers_stands_in_the_examples(w):
    n = 0
    for path in NEWCOMERS:
        lines = read(path).splitlines()
        for line, block in blocks(path, "c"):
            place = f"{os.path.relpath(path, ROOT)}:{line}:"
            above = next((text for text in reversed(lines[:line - 2]) if text.strip()), "")
            source = re.search(r"`(examples/\w+\.c)`:$", above)
            check(source, place, "the line above should end with `examples/...c`: but is", above)
            check("\n" + block in "\n" + read(os.path.join(ROOT, source[1])),
                  place, f"this is not in {source[1]}:\n{block}")
            n += 1
    check(n > 10, "only", n, "blocks of C")


# The headers that need more than libpegboard.
PACKAGES = {"engine.h": "libpegboard-engine",
            "client.h": "libpegboard-remote",
            "provider.h": "libpegboard-remote",
            "trace.h": "libpegboard-remote",
            "gateway.h": "libpegboard-gateway",
            "store.h": "libpegboard-gateway",
            "mcp.h": "libpegboard-mcp"}


@scenario
def the_examples_are_built_and_run_with_what_is_installed(w):
    installed = Installed(w.directory)
    os.mkdir(w.path("built"))
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.c"))):
        name = os.path.splitext(os.path.basename(path))[0]
        packages = " ".join(["libpegboard", *(package for header, package in PACKAGES.items()
                                              if f"<pegboard/{header}>" in read(path))])
        subprocess.run(f"cc -Wall -Wextra -Werror examples/{name}.c $(pkg-config --cflags --libs"
                       f" {packages}) -o built/{name}", shell=True, check=True,
                       env=installed.environment(), cwd=w.directory)
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "examples",
                                                        "test_examples.py"), w.path("built")],
                          env=installed.environment(), check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, done.stdout)


def public_headers():
    return {os.path.basename(path): read(path)
            for path in glob.glob(os.path.join(ROOT, "include", "pegboard", "*.h"))}


@scenario
def what_the_documents_for_newcomers_name_is_in_the_public_headers(w):
    headers = "".join(public_headers().values())
    sources = "".join(read(path) for path in
                      glob.glob(os.path.join(ROOT, "src", "**", "*.c"), recursive=True))
    for path in NEWCOMERS:
        place = os.path.relpath(path, ROOT)
        for name in re.findall(r"`((?:peg_|PEG_)\w+)", read(path)):
            check(re.search(rf"\b{name}\b", headers), place, "names", name, "which does not exist")
        for name in re.findall(r"`(E_\w+)`", read(path)):
            check(f'"{name}"' in sources, place, "names", name, "which no source has")


@scenario
def the_limits_of_the_library_are_those_of_the_headers(w):
    headers = "".join(public_headers().values())
    section = read(os.path.join(ROOT, "docs", "reference", "limits.md"))
    rows = re.findall(r"^\| `(\w+)` +\| ([^|]+?) +\|", section, re.M)
    check(len(rows) >= 8, "only", len(rows), "limits in docs/reference/limits.md")
    for name, default in rows:
        check(re.search(rf"\b{name};.*\[{re.escape(default)}\]", headers),
              f"no header says that {name} is {default} by default")


@scenario
def the_contents_of_the_documentation_are_its_pages(w):
    docs = os.path.join(ROOT, "docs")
    index = read(os.path.join(docs, "README.md"))
    for path in DOCUMENTS:
        page = os.path.relpath(path, docs)
        folder = page.split("/")[0]
        if not page.startswith("..") and page != "README.md":
            check(f"]({page})" in index or f"]({folder}/)" in index, "docs/README.md does not list", page)


def anchors(text):
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


@scenario
def links_between_the_pages_lead_somewhere(w):
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", read(path), flags=re.S)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            leads = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            check(os.path.exists(leads), os.path.relpath(path, ROOT), "leads to", target, "which is not there")
            check(not anchor or not leads.endswith(".md") or anchor in anchors(read(leads)),
                  os.path.relpath(path, ROOT), "leads to", target, "which has no such heading")


@scenario
def the_contents_of_examples_are_its_files(w):
    text = read(os.path.join(ROOT, "examples", "README.md"))
    for name in sorted(os.listdir(os.path.join(ROOT, "examples"))):
        if name not in ("README.md", "expected", "meson.build"):
            check(f"`{name}" in text, "examples/README.md does not list", name)


MODULES = sorted(glob.glob(os.path.join(ROOT, "docs", "modules", "*.md")))


@scenario
def code_in_the_pages_of_modules_stands_in_the_files_that_they_name(w):
    n = 0
    for path in MODULES:
        lines = read(path).splitlines()
        for line, block in (found for language in ("c", "proto") for found in blocks(path, language)):
            place = f"{os.path.relpath(path, ROOT)}:{line}:"
            above = next((text for text in reversed(lines[:line - 2]) if text.strip()), "")
            source = re.search(r"`(tests/[\w/]+\.(?:c|proto))`:$", above)
            check(source, place, "the line above should end with `tests/...c`: but is", above)
            check("\n" + block in "\n" + read(os.path.join(ROOT, source[1])),
                  place, f"this is not in {source[1]}:\n{block}")
            n += 1
    check(n > 5, "only", n, "blocks of code")


@scenario
def code_in_the_page_of_providers_stands_in_the_files_that_it_names(w):
    path = os.path.join(ROOT, "docs", "providers.md")
    lines = read(path).splitlines()
    n = 0
    for line, block in (found for language in ("c", "js", "python", "yaml") for found in blocks(path, language)):
        place = f"{os.path.relpath(path, ROOT)}:{line}:"
        above = next((text for text in reversed(lines[:line - 2]) if text.strip()), "")
        source = re.search(r"`((?:examples|clients)/[\w/]+\.\w+)`:$", above)
        check(source, place, "the line above should end with `examples/...` or `clients/...`: but is", above)
        check("\n" + block in "\n" + read(os.path.join(ROOT, source[1])), place, f"this is not in {source[1]}:\n{block}")
        n += 1
    check(n >= 10, "only", n, "blocks of code")


UNITS = {"": 1, " KiB": 1 << 10, " MiB": 1 << 20, " ms": 1}
# Page -> the limits of src/base/limits.h and limits/ that belong there.
LIMITS = {"modules/net.md": ("NET_", "TLS_"), "modules/grpc.md": ("GRPC_",), "reference/gateway.md": ("GATEWAY_", "BUS_", "QUOTA_")}


def limits_of_the_source():
    base = os.path.join(ROOT, "src", "base")
    text = "".join(read(path) for path in [os.path.join(base, "limits.h"), *glob.glob(os.path.join(base, "limits", "*.h"))])
    found = re.findall(r"^    PEG_LIMIT_(\w+) = ([\d *<]+),", text, re.M)
    return {name: eval(value) for name, value in found}  # numbers, shifts and products


@scenario
def the_limits_that_the_pages_of_the_network_list_are_those_of_the_source(w):
    limits = limits_of_the_source()
    for page, prefixes in LIMITS.items():
        section = re.search(r"^## Limits$.*?(?:^## |\Z)", read(os.path.join(ROOT, "docs", page)), re.M | re.S)[0]
        told = {name: int(number.replace(",", "")) * UNITS[unit] for name, number, unit in
                re.findall(r"^\| `PEG_LIMIT_(\w+)` \| ([\d,]+)( \w+)? \|", section, re.M)}
        wanted = {name: value for name, value in limits.items() if name.startswith(prefixes)}
        for name in sorted({*told, *wanted}):
            check(told.get(name) == wanted.get(name), f"{page}: PEG_LIMIT_{name} is", wanted.get(name), "but the page says",
                  told.get(name))


@scenario
def the_codes_of_errors_that_the_pages_of_modules_name_exist(w):
    sources = {path: read(path) for path in glob.glob(os.path.join(ROOT, "src", "**", "*.c"), recursive=True)}
    everywhere = "".join(sources.values())
    for path in MODULES:
        for code in re.findall(r"`(E_\w+)`", read(path)):
            check(f'"{code}"' in everywhere, os.path.relpath(path, ROOT), "names", code, "which no source has")


@scenario
def the_page_of_the_gateway_lists_every_error_option_and_rpc(w):
    page = read(os.path.join(ROOT, "docs", "reference", "gateway.md"))
    table = read(os.path.join(ROOT, "src", "wire", "error.c"))
    errors = re.findall(r'^    \[WIRE_\w+\] = \{PEG_LIT\("(\w+)"\), GRPC_(\w+)\}', table, re.M)
    rows = {name: code for names, code in re.findall(r"^\| (`[a-z_`, ]+) \| ([A-Z_]+) \|", page, re.M)
            for name in re.findall(r"`(\w+)`", names)}
    check(len(errors) > 15, "only", len(errors), "errors in src/wire/error.c")
    for name, code in errors:
        check(name == "ok" or rows.get(name) == code, f"{name} is {code}, but the page says", rows.get(name))
    options = re.findall(r'^    (?:\{\w+, 0, |SERVE_\w+\()"([\w-]+)"', read(os.path.join(ROOT, "src", "cli", "serve", "args.c")), re.M)
    check(len(options) > 15, "only", len(options), "options of serve")
    for option in options:
        check(re.search(rf"`--{option}\b", page), "the page does not tell of --" + option)
    for proto in ("registry", "admin"):
        text = read(os.path.join(ROOT, "proto", "pegboard", "v1", proto + ".proto"))
        for rpc in re.findall(r"^  rpc (\w+)\(", text, re.M):
            check(f"| `{rpc}` |" in page, "the page does not tell of the RPC", rpc)


def files_of_the_tree():
    """All but what builds have left, which is much."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(("build", ".git"))]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return found


@scenario
def files_and_functions_that_the_documents_name_exist(w):
    sources = {os.path.relpath(path, os.path.join(ROOT, "src")): read(path)
               for path in glob.glob(os.path.join(ROOT, "src", "**", "*.[ch]"), recursive=True)}
    headers = public_headers().values()
    words = {word for text in (*sources.values(), *headers) for word in re.findall(r"\w+", text)}
    files = files_of_the_tree()
    for path in DOCUMENTS:
        module = os.path.splitext(os.path.basename(path))[0]  # docs/modules/json.md is about json/
        if os.path.basename(path) != "ARCHITECTURE.md" and "/modules/" not in path and "/walks/" not in path:
            continue
        for name, function in re.findall(r"`([\w/]+\.[ch])(?:: (\w+))?`", read(path)):
            found = [f for f in sources if f == name or f == f"{module}/{name}" or f.endswith("/" + name)]
            found = found or [f for f in files if ("/" + f).endswith("/" + name)]
            check(found, os.path.relpath(path, ROOT), "names", name, "which does not exist")
            check(not function or any(re.search(rf"\b{function}\(", sources[f]) for f in found),
                  os.path.relpath(path, ROOT), "names", function, "which is not in", name)
        for name in re.findall(r"`((?:peg_|PEG_|[a-z]+_)\w+)(?:\(\))?`", read(path)):
            check(name in words, os.path.relpath(path, ROOT), "names", name, "which does not exist")


@scenario
def what_the_command_and_the_libraries_need_is_installed(w):
    installed = Installed(w.directory)
    for name in ("bin/pegboard", "man1/pegboard.1", "man1/pegboard-validate.1",
                 "man1/pegboard-turn.1", "man1/pegboard-definitions.1", "man1/pegboard-serve.1",
                 "man1/pegboard-provide.1", "man1/pegboard-call.1", "_pegboard",
                 "completions/pegboard", "pegboard.fish", "pegboard/schema.h",
                 "pegboard/client.h", "pegboard/gateway.h", "pegboard/store.h",
                 "man3/peg_gateway.3", "man3/peg_store.3", "libpegboard-engine.pc",
                 "libpegboard-remote.pc", "libpegboard-gateway.pc", "libpegboard-mcp.pc", "pegboard/mcp.h",
                 "man1/pegboard-mcp.1", "man3/peg_mcp.3", "system/pegboard.service",
                 "system/pegboard-provide@.service"):
        check(os.path.getsize(installed.find(name)) > 0, name)


@scenario
def the_installed_protos_are_enough_to_generate_stubs(w):
    protos = os.path.dirname(Installed(w.directory).find("proto/goapb"))
    for name in ("pegboard/v1/registry.proto", "pegboard/v1/admin.proto", "registry/registry.proto",
                 "goa_ai_registry/registry.proto", "goapb/goa.proto"):
        done = subprocess.run(["protoc", "-I", protos, "-I", os.path.join(ROOT, "proto"), "--descriptor_set_out", os.devnull, name],
                              check=False, text=True, capture_output=True)
        check(done.returncode == 0, name, done.stderr)


@scenario
def the_installed_units_start_the_installed_command(w):
    installed = Installed(w.directory)
    for name, starts in (("pegboard.service", "pegboard serve --data-dir"),
                         ("pegboard-provide@.service", "pegboard provide /etc/pegboard/%i.yaml")):
        unit = read(installed.find("system/" + name))
        check("Type=notify\n" in unit and "@" not in re.sub(r"#.*|provide@", "", unit), unit)
        program = re.search(r"^ExecStart=(\S+) ", unit, re.M)[1]
        check(starts in unit and installed.find("bin/pegboard").endswith(program), unit)


@scenario
def the_demo_waits_for_a_person_between_its_acts(w):
    demo = Terminal(w, os.path.join(ROOT, "tools", "demo"), BUILD)
    at, n_acts = 0, 0
    while demo.shows_either(b"Ctrl-C ends the demo -- ", b"city=Rome\r\n", after=at):
        at, n_acts = len(demo.seen), n_acts + 1
        demo.types(b"\r")
    check(demo.ends() == 0 and n_acts == (9 if HAS_REDIS else 8), n_acts, demo.seen)


@scenario
def the_demo_shows_what_it_promises(w):
    done = subprocess.run([os.path.join(ROOT, "tools", "demo"), BUILD], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=w.directory)
    check(done.returncode == 0, done.stdout)
    for part in ("good_call.json: valid\n(exit status 0)", "bad_call.json: invalid\n",
                 "(exit status 1)", "/properties/days/type", "/properties/unit/enum",
                 "$ agent\n" + read(os.path.join(ROOT, "examples", "expected", "agent.txt")),
                 "Three orders are open: A-17, A-21 and B-02.\n", "/properties/to/format described",
                 "$ resume\n" + read(os.path.join(ROOT, "examples", "expected", "resume.txt")),
                 "the gateway listens on 127.0.0.1:", "handy    1.0.0    healthy      5     1  demo, local",
                 "to=km\n42.1648128\n(exit status 0)", "(validation_error)\n(exit status 1)",
                 "kg is a mass and km is a length", "has no tool 'forecasts'", "(outcome_unknown)\n(exit status 4)",
                 '"attached":true', "measuring\n\"17 bytes for local\"\n", "(service_unavailable)\n(exit status 5)",
                 "pegboard call handy forecast city=Rome\n"):
        check(part in done.stdout, f"expected {part!r} in\n{done.stdout}")
    last = "It ran once; nothing was lost.\n$ pegboard call handy forecast" if HAS_REDIS else "(redis-server)"
    check(last in done.stdout, done.stdout)


if __name__ == "__main__":
    main()
