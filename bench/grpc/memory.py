#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a connection and a call cost our server in memory while they do nothing.

    bench/grpc/memory.py build-bench/bench/grpc/grpc-echo-server [--connections N]

Starts the server (one thread) for each line, has it serve one connection and one call, and notes its
private memory (RssAnon of /proc/PID/status). Then it opens N connections, each of which has exchanged
SETTINGS, or so many calls of Chat on connections of 1,000 each, each of which has sent 500 bytes and has
got them back, and does not end. What the memory has grown by, divided by N, is printed. What the kernel
holds for the sockets is not in it.
"""

import argparse
import pathlib
import socket
import ssl
import struct
import subprocess
import tempfile

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
ACK, END_HEADERS = 1, 4
CALLS_ON_A_CONNECTION = 1000
PAYLOAD = bytes(500)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    """A literal of HPACK that no table remembers."""
    return b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


CHAT = b"".join(field(*pair) for pair in (
    (":method", "POST"), (":scheme", "http"), (":path", "/pegboard.test.Echo/Chat"), (":authority", "localhost"),
    ("content-type", "application/grpc"), ("te", "trailers")))


class Client:
    """One connection, blocking; says no more of HTTP/2 than it needs."""

    def __init__(self, port, tls):
        self.socket = socket.create_connection(("127.0.0.1", port))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
        window = struct.pack(">I", (1 << 31) - 1 - 65535)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0) + frame(WINDOW_UPDATE, 0, 0, window))
        while self.read()[:2] != (SETTINGS, ACK):
            pass

    def take(self, n):
        got = b""
        while len(got) < n:
            part = self.socket.recv(n - len(got))
            if not part:
                raise EOFError("the server ended the connection")
            got += part
        return got

    def read(self):
        head = self.take(9)
        payload = self.take(int.from_bytes(head[:3], "big"))
        return head[3], head[4], payload

    def open_calls(self, n):
        message = b"\0" + struct.pack(">I", len(PAYLOAD)) + PAYLOAD
        for i in range(n):
            self.socket.sendall(frame(HEADERS, END_HEADERS, 2 * i + 1, CHAT) + frame(DATA, 0, 2 * i + 1, message))
            left = len(message)
            while left > 0:
                kind, _, payload = self.read()
                left -= len(payload) if kind == DATA else 0


class Server:
    def __init__(self, program, tls):
        command = [program, "--addr", "127.0.0.1:0"]
        if tls:
            command += ["--tls-cert", str(tls / "cert.pem"), "--tls-key", str(tls / "key.pem")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.tls = tls

    def connect(self):
        return Client(self.port, self.tls)

    def private_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def cost_of(program, tls, n, make):
    """KiB for each of n, and for the server that has served one."""
    with Server(program, tls) as server:
        warm = server.connect()
        warm.open_calls(1)
        before = server.private_kib()
        kept = make(server, n)
        after = server.private_kib()
        del kept
        return (after - before) / n, before


def make_connections(server, n):
    return [server.connect() for _ in range(n)]


def make_calls(server, n):
    kept = []
    for _ in range(n // CALLS_ON_A_CONNECTION):
        kept.append(server.connect())
        kept[-1].open_calls(CALLS_ON_A_CONNECTION)
    return kept


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout", str(folder / "key.pem"), "-out",
                    str(folder / "cert.pem")], check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--connections", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        for words, tls, n, make in (("idle connections, plain", None, options.connections, make_connections),
                                    ("idle connections, TLS", folder, options.connections, make_connections),
                                    ("open calls, plain", None, 10 * CALLS_ON_A_CONNECTION, make_calls)):
            each, before = cost_of(options.program, tls, n, make)
            print(f"{n:6} {words:24} {each:6.2f} KiB each; the server itself {before} KiB")


if __name__ == "__main__":
    main()
