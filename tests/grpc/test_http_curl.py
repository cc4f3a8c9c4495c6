#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: stock curl and the HTTP server understand each other over HTTP/1.1 and HTTP/2, with TLS and without. Prints TAP.

    test_http_curl.py SERVER
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

SERVER = sys.argv[1]
TIMEOUT_S = 60
N_EVENTS = 10000
TOKEN = "Authorization: Bearer open-sesame"


class World:
    """A server without TLS and one with it, and a folder with a certificate."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="peg-curl-")
        cert, key = self.file("cert.pem"), self.file("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, stderr=subprocess.DEVNULL)
        self.servers = [self.start(), self.start(cert, key)]
        plain, tls = (f"{server.stdout.readline().split()[-1]}" for server in self.servers)
        # What the flags choose, and how curl names the version.
        self.ways = [
            ("1.1", f"http://{plain}", ["--http1.1"]),
            ("2", f"http://{plain}", ["--http2-prior-knowledge"]),
            ("1.1", f"https://{tls}", ["--http1.1", "--cacert", cert]),
            ("2", f"https://{tls}", ["--cacert", cert]),  # by ALPN
        ]

    @staticmethod
    def start(*files):
        return subprocess.Popen([SERVER, "127.0.0.1:0", *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def file(self, name, size=None):
        path = os.path.join(self.folder, name)
        if size is not None:
            with open(path, "wb") as file:
                file.write(bytes(i % 251 for i in range(1000)) * (size // 1000))
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.stdin.close()
            assert server.wait(TIMEOUT_S) == 0
            server.stdout.close()
        shutil.rmtree(self.folder)


def curl(way, path, *arguments):
    """Status and body, after a look at the version."""
    version, base, flags = way
    done = subprocess.run(["curl", "-sS", "--max-time", str(TIMEOUT_S), *flags, *arguments, "-w", "\n%{http_version} %{http_code}", base + path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, f"{way} {path}: {done.stderr.decode()}"
    body, _, last = done.stdout.rpartition(b"\n")
    found, code = last.decode().split()
    assert found == version, f"{way}: HTTP/{found}"
    return int(code), body


def expect(found, wanted):
    assert found == wanted, f"expected {wanted!r}, but it is {found!r}"


def on_all_ways(check):
    with World() as w:
        for way in w.ways:
            check(w, way)


def test_a_body_is_echoed():
    def check(_, way):
        expect(curl(way, "/echo", "-d", '{"id":1}'), (200, b'{"id":1}'))
        expect(curl(way, "/echo", "-d", ""), (200, b""))
    on_all_ways(check)


def test_chunks_are_a_body_too():
    def check(_, way):
        expect(curl(way, "/echo", "-H", "Transfer-Encoding: chunked", "-d", "hello"), (200, b"hello"))
    on_all_ways(check)


def test_a_large_body_goes_and_comes():
    def check(w, way):
        path = w.file("large", 1000 * 1000)
        with open(path, "rb") as file:
            expect(curl(way, "/echo", "--data-binary", "@" + path), (200, file.read()))
        expect(curl(way, "/count", "-T", w.file("larger", 20 * 1000 * 1000), "-X", "POST"), (200, b"20000000 bytes\n"))
    on_all_ways(check)


def test_a_body_that_waits_to_be_asked_for_is_asked_for():
    def check(w, way):
        path = w.file("large", 1000 * 1000)
        expect(curl(way, "/count", "-H", "Expect: 100-continue", "--expect100-timeout", "50", "--data-binary", "@" + path),
               (200, b"1000000 bytes\n"))
    with World() as w:
        check(w, w.ways[0])
        check(w, w.ways[2])


def test_a_refused_body_has_its_answer():
    def check(w, way):
        expect(curl(way, "/guarded", "-d", "hello"), (401, b"send the token\n"))
        expect(curl(way, "/guarded", "-H", TOKEN, "-d", "hello"), (200, b"hello"))
        path = w.file("short", 50 * 1000)
        expect(curl(way, "/guarded", "--data-binary", "@" + path), (401, b"send the token\n"))
    on_all_ways(check)


def test_names_are_decoded_and_unknown_ones_refused():
    def check(_, way):
        expect(curl(way, "/v1/toolsets/a%2Fb%20c"), (200, b"the toolset a/b c\n"))
        expect(curl(way, "/v1/toolsets")[0], 404)
        status, head = curl(way, "/echo", "-i")
        expect(status, 405)
        assert b"\nallow: post" in head.lower(), head
    on_all_ways(check)


def test_head_has_no_body():
    def check(_, way):
        status, head = curl(way, "/v1/toolsets/abc", "-I")
        expect(status, 200)
        assert b"content-length: 16" in head.lower(), head
    on_all_ways(check)


def test_events_come_as_they_are_read():
    def check(_, way):
        status, text = curl(way, "/events", "-N", "--limit-rate", "2M")
        expect(status, 200)
        expect(text.count(b"event: tick\ndata: "), N_EVENTS)
        assert text.endswith(b'data: {"n":9999}\n\n'), text[-40:]
    on_all_ways(check)


def ways_that_reuse(w):
    """curl 7.88.1 fails at the second request on a connection with --http2-prior-knowledge, with any server (error 16; node's, too)."""
    return [way for way in w.ways if "--http2-prior-knowledge" not in way[2]]


def test_a_connection_is_used_again():
    with World() as w:
        for _, base, flags in ways_that_reuse(w):
            done = subprocess.run(["curl", "-sS", *flags, "-d", "x", "-w", "%{num_connects}\n", *[base + "/echo"] * 3],
                                  stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S)
            expect(done.stdout, b"x1\nx0\nx0\n")


def test_many_at_once():
    with World() as w:
        for _, base, flags in ways_that_reuse(w):
            done = subprocess.run(["curl", "-s", "--parallel", "--parallel-max", "50", *flags, "-d", "x", *[base + "/echo"] * 200],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S)
            expect(done.stdout, b"x" * 200)


if __name__ == "__main__":
    if not shutil.which("curl") or not shutil.which("openssl"):
        print("1..0 # SKIP curl or openssl is not installed")
        sys.exit(0)
    sys.exit(tap.run(globals()))
