# SPDX-License-Identifier: Apache-2.0
"""The programs that take part: our server, peers from registries, and certificates for them."""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.append(os.path.join(ROOT, "tests"))

from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

PROTOS = [os.path.join(ROOT, "tests", "proto"), os.path.join(ROOT, "proto")]
BUILD_S = 600
RUN_S = 120
END_S = 20


class Skip(Exception):
    pass


def run(command, timeout=RUN_S, **more):
    return subprocess.run(command, check=False, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)


def direct():
    """The environment without proxies: all that is called is on this machine."""
    return {name: value for name, value in os.environ.items()
            if not name.lower().endswith("_proxy")}


def one_line(text):
    return " ".join(text.split())[-300:]


# ---- what comes from registries: built once, below the build folder --------------------

def stamp_of(*files, also=""):
    digest = hashlib.sha256(also.encode())
    for name in files:
        with open(os.path.join(HERE, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


@contextlib.contextmanager
def made_once(place, stamp):
    """Yields whether it is to be made; what was made is stamped if nothing was raised."""
    done = os.path.join(place, "made")
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            if file.read() == stamp:
                yield False
                return
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    yield True
    with open(done, "w", encoding="utf-8") as file:
        file.write(stamp)


def install_npm(build):
    """The folder with grpc-js and buf."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm: tools/setup --test installs them")
    place = os.path.join(build, "interop-npm")
    names = ("package.json", "package-lock.json")
    with made_once(place, stamp_of(*(os.path.join("js", name) for name in names))) as is_new:
        if not is_new:
            return place
        for name in names:
            shutil.copy(os.path.join(HERE, "js", name), place)
        try:
            npm = run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                       "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=10000"],
                      cwd=place, timeout=BUILD_S)
        except subprocess.TimeoutExpired:
            raise Skip("npm did not end in time: is there a network?") from None
        if npm.returncode:
            reason = re.search(r"npm (?:ERR!|error) (.*)", npm.stdout)
            raise Skip(f"npm could not install: {one_line(reason[1] if reason else npm.stdout)}")
    return place


GRPC_GO = ["google.golang.org/grpc/interop/client", "google.golang.org/grpc/interop/server"]


def build_go(build, module="go", programs=GRPC_GO):
    """The folder with programs of a module whose go.mod is here: grpc-go's own interop client and
    server, or h2spec."""
    if not shutil.which("go"):
        raise Skip("there is no go: tools/setup --test installs it")
    place = os.path.join(build, f"interop-{module}")
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    env.setdefault("HOME", build)
    more = {"cwd": os.path.join(HERE, module), "env": env, "timeout": BUILD_S}
    stamp = stamp_of(f"{module}/go.mod", f"{module}/go.sum",
                     also=run(["go", "version"], env=env).stdout)
    with made_once(place, stamp) as is_new:
        if not is_new:
            return place
        try:
            fetched = run(["go", "list", "-mod=readonly", "-deps", *programs], **more)
            if fetched.returncode:
                raise Skip(f"go could not fetch {programs[0]}: {one_line(fetched.stdout)}")
            built = run(["go", "build", "-mod=readonly", "-o", place + os.sep, *programs], **more)
        except subprocess.TimeoutExpired:
            raise Skip("go did not end in time") from None
        if built.returncode:
            raise AssertionError(f"go build: {built.stdout[-2000:]}")
    return place


def find_python():
    """Debian's python3 has grpcio; the one that runs this may be another."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or run([python, "-c", "import grpc, google.protobuf"]).returncode:
        raise Skip("/usr/bin/python3 has no grpcio: tools/setup --test installs it")
    return python


# ---- what is made on the spot ----------------------------------------------------------

def make_descriptors(path):
    protoc = run(["protoc", *(f"-I{folder}" for folder in PROTOS), "--include_imports",
                  f"--descriptor_set_out={path}", "grpc/testing/test.proto",
                  "grpc/health/v1/health.proto"])
    assert protoc.returncode == 0, protoc.stdout
    return path


def make_certificates(folder):
    """ca.pem, and server.pem, client.pem with their keys."""
    def path(name):
        return os.path.join(folder, name)

    def openssl(*args):
        done = run(["openssl", *args])
        assert done.returncode == 0, done.stdout

    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", path("ca.key"), "-out", path("ca.pem"),
            "-days", "2", "-subj", "/CN=interop test CA")
    for name, alternatives in (("server", "DNS:localhost,IP:127.0.0.1"),
                               ("client", "DNS:client.example")):
        with open(path(f"{name}.ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={alternatives}\n")
        openssl("req", *new_key, "-keyout", path(f"{name}.key"), "-out", path(f"{name}.csr"),
                "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", path(f"{name}.csr"), "-CA", path("ca.pem"),
                "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "2",
                "-extfile", path(f"{name}.ext"), "-out", path(f"{name}.pem"))
    return path


# ---- servers ---------------------------------------------------------------------------

class OurServer:
    """interop_server; leaving the context ends it, and `ended` tells how."""

    def __init__(self, program, *args):
        self.command, self.ended = [program, *args], None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("ready "), f"the server said {line!r}"
        self.address = line.split(None, 1)[1].strip()
        self.port = self.address.rpartition(":")[2]
        return self

    def stop(self):
        if self.ended is not None:
            return self.ended
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.ended = self.process.returncode
        return self.ended

    def __exit__(self, *_):
        self.stop()


class GoServer:
    """grpc-go's interop server, which cannot tell the port that it got."""

    def __init__(self, folder, *args):
        self.program, self.args = os.path.join(folder, "server"), args

    def __enter__(self):
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.rpartition(":")[2]
        self.process = subprocess.Popen([self.program, f"--port={port}", *self.args],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + END_S
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", int(port)), 1).close()
                return self
            time.sleep(0.02)
        self.__exit__()
        raise AssertionError("grpc-go's server did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
