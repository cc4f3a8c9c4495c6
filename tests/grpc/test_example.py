#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the service and the client that docs/modules/grpc.md shows do what it says. Prints TAP.

    test_example.py SERVER CLIENT
"""

import http.client
import os
import signal
import subprocess
import sys
import traceback

SERVER, CLIENT = sys.argv[1:3]
TOKEN = "Bearer open-sesame"
TIMEOUT_S = 60


class World:
    """A server that runs."""

    def __init__(self):
        self.server = subprocess.Popen([SERVER, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().split()[-1]

    def call(self, *arguments):
        done = subprocess.run([CLIENT, self.address, *arguments], stdout=subprocess.PIPE, text=True,
                              timeout=TIMEOUT_S, check=False)
        return done.returncode, done.stdout

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        return self.server.wait(TIMEOUT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait()
        self.server.stdout.close()


def expect(found, wanted):
    assert found == wanted, f"expected {wanted!r}, but it is {found!r}"


def a_call_is_answered(w):
    expect(w.call(TOKEN, "hello"), (0, "hello\n"))


def a_handler_that_fails_a_call_is_heard(w):
    expect(w.call(TOKEN, ""), (1, "INVALID_ARGUMENT: payload is empty: say something\n"))


def an_interceptor_refuses_whoever_has_no_token(w):
    expect(w.call("Bearer guess", "hello"),
           (1, "UNAUTHENTICATED: the metadata 'authorization' is not the token\n"))


def many_answers_all_arrive(w):
    expect(w.call(TOKEN, "x" * 1000, "5000"), (0, "heard it 5000 times\n"))


def a_probe_over_http1_is_answered_on_the_same_port(w):
    host, port = w.address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
    for path, wanted in (("/livez", (200, b"ok\n")), ("/nothing", (404, b"Not Found\n"))):
        connection.request("GET", path)
        answer = connection.getresponse()
        expect((answer.status, answer.read()), wanted)
    connection.close()


def it_ends_in_good_order(w):
    expect(w.call(TOKEN, "hello"), (0, "hello\n"))
    expect(w.stop(), 0)


SCENARIOS = [a_call_is_answered, a_handler_that_fails_a_call_is_heard,
             an_interceptor_refuses_whoever_has_no_token, many_answers_all_arrive,
             a_probe_over_http1_is_answered_on_the_same_port, it_ends_in_good_order]


def main():
    failed = False
    print(f"1..{len(SCENARIOS)}")
    for n, run in enumerate(SCENARIOS, 1):
        name = run.__name__
        try:
            with World() as w:
                run(w)
            print(f"ok {n} - {name}")
        except Exception:  # whatever it is, the others are told too
            failed = True
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()))
            print(f"not ok {n} - {name}")
        sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
