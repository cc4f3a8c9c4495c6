# SPDX-License-Identifier: Apache-2.0
"""The servers that the grpc bench measures: how each is built and started."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Server:
    name: str
    command: list = None  # None: it is left out, `reason` says why
    cwd: str = None
    env: dict = dataclasses.field(default_factory=dict)
    version: str = ""
    reason: str = ""


def last_words(run):
    return (run.stderr or run.stdout).strip()[-400:]


def ours(program):
    return Server("pegboard", [str(program("grpc-echo-server")), "--threads", "1"])


def core(program):
    path = program("grpc-core-server")
    if not path:
        return Server("gRPC core", reason="pkg-config knows no 'grpc' (apt-get install libgrpc-dev)")
    found = subprocess.run(["pkg-config", "--modversion", "gpr"], capture_output=True, text=True)
    packed = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", "libgrpc-dev"], capture_output=True,
                            text=True)
    return Server("gRPC core", [str(path)], version=(packed.stdout or found.stdout).strip())


def go(build):
    """On one thread, as the others; with its default it took more CPU for a request when we tried both."""
    if not shutil.which("go"):
        return Server("grpc-go", reason="there is no go on the PATH")
    path = build / "grpc-go-server"
    made = subprocess.run(["go", "build", "-o", str(path), "."], cwd=SOURCE / "go", capture_output=True, text=True)
    if made.returncode:
        return Server("grpc-go", reason="go build failed: " + last_words(made))
    version = re.search(r"google.golang.org/grpc v(\S+)", (SOURCE / "go" / "go.mod").read_text()).group(1)
    return Server("grpc-go", [str(path)], env={"GOMAXPROCS": "1"}, version=version)


def js(build):
    if not shutil.which("npm") or not shutil.which("node"):
        return Server("grpc-js", reason="node and npm are not here (apt-get install nodejs npm)")
    where = build / "js"
    package = json.loads((SOURCE / "js" / "package.json").read_text())
    version = package["dependencies"]["@grpc/grpc-js"]
    installed = where / "node_modules" / "@grpc" / "grpc-js" / "package.json"
    if not installed.exists() or json.loads(installed.read_text())["version"] != version:
        where.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / "js" / "package.json", where / "package.json")
        made = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=where,
                              capture_output=True, text=True)
        if made.returncode:
            return Server("grpc-js", reason="npm install failed: " + last_words(made))
    return Server("grpc-js", ["node", str(SOURCE / "js" / "server.mjs")], cwd=str(where), version=version)


def tonic(build):
    if not shutil.which("cargo"):
        return Server("tonic", reason="there is no cargo on the PATH")
    made = subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=SOURCE / "tonic", capture_output=True,
                          text=True, env=os.environ | {"CARGO_TARGET_DIR": str(build / "tonic")})
    if made.returncode:
        return Server("tonic", reason="cargo build failed: " + last_words(made))
    version = re.search(r'^tonic = .*"=([0-9.]+)"', (SOURCE / "tonic" / "Cargo.toml").read_text(), re.M).group(1)
    return Server("tonic", [str(build / "tonic" / "release" / "grpc-bench-tonic")], version=version)


def make(build, program, only):
    """All servers, ours first; those that cannot be had say why. `program` finds what meson built."""
    build = pathlib.Path(build).resolve()
    build.mkdir(parents=True, exist_ok=True)
    makers = {"pegboard": lambda: ours(program), "core": lambda: core(program), "go": lambda: go(build),
              "tonic": lambda: tonic(build), "js": lambda: js(build)}
    return [maker() for name, maker in makers.items() if not only or name in only]
