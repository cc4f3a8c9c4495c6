#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: h2spec finds nothing at our server that RFC 9113 demands.

    test_h2spec.py BUILD INTEROP_SERVER

h2spec tests against RFC 7540; NOT_DEMANDED lists the cases that no longer hold, each with its
reason. It is built below BUILD, once; if it cannot be had, the test is skipped with the reason.
"""

import os
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peers  # noqa: E402
from peers import OurServer, Skip, direct, run  # noqa: E402

BUILD, SERVER = (os.path.abspath(path) for path in sys.argv[1:3])
MODULE = "github.com/summerwind/h2spec/cmd/h2spec"
N_CASES = 146  # 145, and the one that only --strict runs
RUN_S = 400

# (section, what h2spec does) -> why our server need not do what h2spec expects.
NOT_DEMANDED = {
    ("http2/5.3.1", "Sends HEADERS frame that depend on itself"):
        "RFC 9113, 5.3.2: priorities are deprecated, their fields are ignored",
    ("http2/5.3.1", "Sends PRIORITY frame that depend on itself"):
        "RFC 9113, 5.3.2: priorities are deprecated, their fields are ignored",
    ("http2/5.1", "idle: Sends a RST_STREAM frame"):
        "gRPC's C core does so when a call is canceled early, and its other calls must not end (decision 52)",
    ("http2/6.4", "Sends a RST_STREAM frame on a idle stream"):
        "gRPC's C core does so when a call is canceled early, and its other calls must not end (decision 52)",
}
# Where TLS has not settled the protocol.
NOT_DEMANDED_PLAIN = {
    ("http2/3.5", "Sends invalid connection preface"):
        "the port speaks HTTP/1.1, too: what is not the preface of HTTP/2 gets its answer, 400, "
        "and the connection ends; h2spec takes the answer for a frame",
}


def read_cases(report):
    """((section, case), what h2spec expected and got) for each case; None: it was skipped."""
    for case in xml.parse(report).getroot().iter("testcase"):
        problem = case.find("error")
        if problem is None:
            problem = case.find("failure")
        text = "" if problem is None else problem.text or "failed"
        if case.find("skipped") is not None:
            text = None
        yield (case.get("package"), case.get("classname")), text


def run_h2spec(program, server, report, *more):
    done = run([program, "--host", "127.0.0.1", "--port", server.port, "--strict", "--path",
                "/page", "--timeout", "5", "--junit-report", report, *more],
               env=direct(), timeout=RUN_S)
    assert os.path.exists(report), done.stdout[-2000:]
    return dict(read_cases(report))


class Tap:
    def __init__(self):
        self.n, self.failed = 0, 0

    def say(self, name, error):
        self.n += 1
        self.failed += bool(error)
        for line in (error or "").splitlines():
            print(f"# {line}")
        print(f"{'not ok' if error else 'ok'} {self.n} - {name}", flush=True)

    def judge(self, way, cases, not_demanded):
        for (section, case), text in cases.items():
            name = f"h2spec, {way}: {section}: {case}"
            reason = not_demanded.get((section, case))
            if reason:
                self.n += 1
                print(f"ok {self.n} - {name} # SKIP {reason}")
            else:
                self.say(name, "h2spec skipped it" if text is None else text)
        self.say(f"h2spec, {way}: all cases ran",
                 "" if len(cases) == N_CASES else f"{len(cases)} of {N_CASES}")
        unknown = [what for what in not_demanded if what not in cases]
        self.say(f"h2spec, {way}: what is not demanded exists", f"{unknown}" if unknown else "")


def meet(tap, program, folder):
    pem = peers.make_certificates(folder)
    tls = ["--tls-cert", pem("server.pem"), "--tls-key", pem("server.key")]
    for way, options, more, not_demanded in (
            ("plain", [], [], {**NOT_DEMANDED, **NOT_DEMANDED_PLAIN}),
            ("TLS", tls, ["--tls", "--insecure"], NOT_DEMANDED)):
        with OurServer(SERVER, *options) as server:
            report = os.path.join(folder, f"{way}.xml")
            tap.judge(way, run_h2spec(program, server, report, *more), not_demanded)
            status = server.stop()
            tap.say(f"h2spec, {way}: our server ended in good order",
                    f"exit status {status}" if status else "")


def main():
    tap = Tap()
    try:
        place = peers.build_go(BUILD, "h2spec", [MODULE])
    except Skip as why:
        print(f"1..0 # SKIP {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="h2spec-") as folder:
        meet(tap, os.path.join(place, "h2spec"), folder)
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
