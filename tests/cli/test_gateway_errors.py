#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: who uses the command for the first time and gets something wrong is told what, in words of
the command, and what to do: no field of the C library, no address said three times."""

import contextlib
import socket
import subprocess
import threading

from gateways import NOWHERE, ask, gateway
from scenario import check, main, scenario


def make_certificate(w, name="localhost", names="DNS:localhost,IP:127.0.0.1"):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", w.path("key.pem"), "-out",
                    w.path("cert.pem"), "-days", "2", "-subj", "/CN=" + name, "-addext",
                    "subjectAltName=" + names],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "--tls-cert", w.path("cert.pem"), "--tls-key", w.path("key.pem")


@contextlib.contextmanager
def listener(answer):
    """A server on this machine that is no gateway; `answer` gets each connection."""
    def serve(server):
        with contextlib.suppress(OSError):
            while True:
                answer(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


# ---- nobody answers ----------------------------------------------------------------------


@scenario
def where_nobody_listens_a_gateway_can_be_started_or_another_be_named(w):
    ran = w.pegboard("list", "--registry", NOWHERE).exits(3).complains(
        f"pegboard: no gateway answers at {NOWHERE}: connection refused; start one with `pegboard "
        "serve`, or name another with --registry or PEGBOARD_REGISTRY (")
    check(ran.stderr.count(NOWHERE) == 1, ran)
    path = "unix:" + w.path("nope")
    ran = w.pegboard("list", "--registry", path).exits(3).complains(
        f"no gateway answers at {path}: no such file or directory; start one")
    check("localhost" not in ran.stderr, ran)


@scenario
def who_ends_the_connection_at_once_may_speak_tls(w):
    with gateway(w, *make_certificate(w)):
        ask(w, "list").exits(3).complains(
            f"something listens at {w.at}, but ended the connection at once: if it speaks TLS, add "
            "--tls or --tls-ca FILE")
    with listener(lambda connection: connection.close()) as at:
        w.pegboard("list", "--registry", at).exits(3).complains(f"something listens at {at}")


@scenario
def who_speaks_no_tls_is_told_from_nobody(w):
    with gateway(w):
        ask(w, "list", "--tls").exits(3).complains(f"{w.at} does not speak TLS: leave out --tls (")
        make_certificate(w)
        ask(w, "list", "--tls-ca", "cert.pem").exits(3).complains(
            f"{w.at} does not speak TLS: leave out --tls-ca, and unset PEGBOARD_TLS_CA")


@scenario
def a_certificate_that_is_not_accepted_says_which_option_helps(w):
    with gateway(w, *make_certificate(w, "other.example", "DNS:other.example")):
        ask(w, "list", "--tls").exits(3).complains(
            f"the certificate of {w.at} is not accepted: self", "trust it with --tls-ca FILE")
        ask(w, "list", "--tls-ca", "cert.pem").exits(3).complains(
            f"the certificate of {w.at} is not accepted: IP address mismatch; give --registry a name")


@scenario
def who_speaks_something_else_is_no_gateway(w):
    def speak_http1(connection):
        connection.recv(9)  # what was not read would end it with a reset
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        connection.recv(65536)
        connection.shutdown(socket.SHUT_WR)

    with listener(speak_http1) as at:
        w.pegboard("list", "--registry", at).exits(3).complains(
            f"what listens at {at} is no gateway: this is no HTTP/2", "--registry")


if __name__ == "__main__":
    main()
