#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: our server and our client speak gRPC with programs that are not ours.

    test_interop.py BUILD INTEROP_SERVER INTEROP_CLIENT

Our server hears our client, Debian's python3-grpcio, npm's grpc-js and buf, and grpc-go's own
interop client; our client talks to grpc-go's interop server. Peers are built below BUILD, once; a
peer that cannot be had is skipped, with the reason.
"""

import concurrent.futures
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peers  # noqa: E402
from peers import GoServer, OurServer, Skip, direct, run  # noqa: E402

BUILD, SERVER, CLIENT = (os.path.abspath(path) for path in sys.argv[1:4])
SERVICE = "grpc.testing.TestService"
SERVICES = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection", SERVICE]
FEW = ["empty_unary", "large_unary", "ping_pong", "custom_metadata", "cancel_after_first_response"]
# grpc-go's server neither looks at compression nor has CacheableUnaryCall.
NOT_IN_GO = {"cacheable_unary", "client_compressed_unary", "server_compressed_unary",
             "client_compressed_streaming", "server_compressed_streaming"}
GO_CASES = [
    "empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong",
    "empty_stream", "timeout_on_sleeping_server", "cancel_after_begin",
    "cancel_after_first_response", "status_code_and_message", "special_status_message",
    "custom_metadata", "unimplemented_method", "unimplemented_service", "pick_first_unary",
    "rpc_soak", "channel_soak",
]
SOAK = ["--soak_iterations=300", "--soak_per_iteration_max_acceptable_latency_ms=20000",
        "--soak_overall_timeout_seconds=100"]
MIN_CASES = 20  # of a script: fewer means that it stopped


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

    def skip(self, name, why):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {why}", flush=True)

    def check(self, name, case, *args):
        try:
            case(*args)
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.say(name, f"{type(error).__name__}: {error}")
        else:
            self.say(name, "")

    def stop(self, name, server):
        status = server.stop()
        self.say(f"our server, {name}, ended in good order",
                 f"exit status {status}" if status else "")


def expect_success(command, timeout=peers.RUN_S):
    done = run(command, env=direct(), timeout=timeout)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}"
    return done.stdout


def expect_failure(command):
    done = run(command, env=direct())
    assert done.returncode != 0, f"it should have been refused\n{done.stdout[-2000:]}"


# ---- our client ------------------------------------------------------------------------

def our_cases():
    return run([CLIENT, "--list"]).stdout.split()


def run_ours(tap, name, address, cases, *tls):
    for case in cases:
        tap.check(f"{name}: {case}", expect_success,
                  [CLIENT, "--addr", address, "--case", case, *tls])


# ---- clients that are scripts ----------------------------------------------------------

def run_script(tap, name, command):
    """They say themselves what they have run: a line of JSON for each case."""
    try:
        done = run(command, env=direct())
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, output = "none, it took too long", (late.stdout or b"").decode()
    n, n_failed = 0, 0
    for line in output.splitlines():
        if line.startswith('{"name"'):
            told = json.loads(line)
            tap.say(f"{name}: {told['name']}", told["error"])
            n, n_failed = n + 1, n_failed + bool(told["error"])
    if n < MIN_CASES or status != bool(n_failed):
        tap.say(f"{name}: all of them ran", f"exit status {status}\n{output[-2000:]}")


def python_command(python, descriptors, server, *tls):
    return [python, "-B", os.path.join(peers.HERE, "client.py"), server.address, descriptors, *tls]


def js_command(place, server, *tls):
    # Beside the packages: that is where node looks for them.
    shutil.copy(os.path.join(peers.HERE, "js", "client.mjs"), place)
    return ["node", os.path.join(place, "client.mjs"), server.address, ":".join(peers.PROTOS), *tls]


def check_drain(python, descriptors, server):
    output = expect_success([python, "-B", os.path.join(peers.HERE, "client.py"), "--drain",
                             str(server.process.pid), server.address, descriptors])
    told = json.loads(output)
    assert not told["error"], told["error"]


# ---- grpc-go ---------------------------------------------------------------------------

def go_command(place, server, case, *tls):
    soak = SOAK if case.endswith("_soak") else []
    return [os.path.join(place, "client"), "--server_host=127.0.0.1",
            f"--server_port={server.port}", f"--test_case={case}", *soak, *tls]


# ---- buf curl --------------------------------------------------------------------------

class Buf:
    def __init__(self, place, url, *options):
        self.program = os.path.join(place, "node_modules", ".bin", "buf")
        self.url, self.options = url, options
        self.env = {**direct(), "BUF_CACHE_DIR": os.path.join(place, "buf-cache")}

    def command(self, method, data, *more):
        return [self.program, "curl", "--protocol", "grpc", *self.options, *more,
                *(["--data", data] if data else []), f"{self.url}{method}"]

    def curl(self, method="", data="", *more):
        return run(self.command(method, data, *more), env=self.env)

    def lines(self, *more):
        done = self.curl("", "", *more)
        assert done.returncode == 0, done.stdout
        return done.stdout.split()

    def answers(self, method, data):
        done = self.curl(f"/{method}", data)
        assert done.returncode == 0, done.stdout
        return list(documents(done.stdout))


def documents(text):
    """JSON values that follow each other."""
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        yield value


def same(got, wanted):
    assert got == wanted, f"{got!r} should be {wanted!r}"


def payloads(*texts):
    return [{"payload": {"body": text}} for text in texts]


def buf_lists_services(buf, protocol):
    same(buf.lines("--reflect-protocol", protocol, "--list-services"), SERVICES)


def buf_lists_methods(buf, protocol):
    methods = buf.lines("--reflect-protocol", protocol, "--list-methods")
    assert set(methods) >= {f"{SERVICE}/UnaryCall", f"{SERVICE}/FullDuplexCall",
                            "grpc.health.v1.Health/Watch"}, methods


def buf_unary(buf):
    same(buf.answers(f"{SERVICE}/UnaryCall", '{"responseSize": 10}'), payloads("AAAAAAAAAAAAAA=="))


def buf_server_stream(buf):
    same(buf.answers(f"{SERVICE}/StreamingOutputCall",
                     '{"responseParameters": [{"size": 3}, {"size": 4}]}'),
         payloads("AAAA", "AAAAAA=="))


def buf_client_stream(buf):
    same(buf.answers(f"{SERVICE}/StreamingInputCall", '{"payload": {"body": "AAAA"}} ' * 3),
         [{"aggregatedPayloadSize": 9}])


def buf_two_streams(buf):
    same(buf.answers(f"{SERVICE}/FullDuplexCall",
                     '{"responseParameters": [{"size": 3}]} {"responseParameters": [{"size": 4}]}'),
         payloads("AAAA", "AAAAAA=="))


def buf_status(buf):
    unknown = 2
    done = buf.curl(f"/{SERVICE}/UnaryCall",
                    json.dumps({"responseStatus": {"code": unknown, "message": "why \u263a"}}))
    same(done.returncode, unknown << 3)
    same(json.loads(done.stdout), {"code": "unknown", "message": "why \u263a"})


def buf_unimplemented(buf):
    unimplemented = 12
    same(buf.curl(f"/{SERVICE}/UnimplementedCall").returncode, unimplemented << 3)


def buf_check(buf):
    not_found = 5
    same(buf.answers("grpc.health.v1.Health/Check", json.dumps({"service": SERVICE})),
         [{"status": "SERVING"}])
    same(buf.curl("/grpc.health.v1.Health/Check", '{"service": "nobody"}').returncode,
         not_found << 3)


def read_document(process):
    """The next JSON value that a program prints, which goes on running."""
    text = ""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], peers.END_S)
        assert ready, f"nothing came after {text!r}"
        piece = os.read(process.stdout.fileno(), 1)
        assert piece, f"it ended after {text!r}"
        text += piece.decode()
        if text.rstrip().endswith("}"):
            return json.loads(text)


def buf_watch(buf, server):
    """Hears that the service is there, then that the server goes."""
    unavailable = 14
    command = buf.command("/grpc.health.v1.Health/Watch", json.dumps({"service": SERVICE}))
    with subprocess.Popen(command, env=buf.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        try:
            same(read_document(process), {"status": "SERVING"})
            server.process.send_signal(signal.SIGTERM)
            same(read_document(process), {"status": "NOT_SERVING"})
            same(process.wait(peers.END_S), unavailable << 3)
        finally:
            process.kill()


def run_buf(tap, name, buf):
    for protocol in ("grpc-v1", "grpc-v1alpha"):
        tap.check(f"{name}: lists services by {protocol}", buf_lists_services, buf, protocol)
        tap.check(f"{name}: lists methods by {protocol}", buf_lists_methods, buf, protocol)
    for case in (buf_unary, buf_server_stream, buf_client_stream, buf_two_streams, buf_status,
                 buf_unimplemented, buf_check):
        tap.check(f"{name}: {case.__name__.replace('buf_', '')}", case, buf)


# ---- who meets whom --------------------------------------------------------------------

class Meeting:
    """The peers, and our servers that they find: plain, with TLS, with certificates for both."""

    def __init__(self, tap, folder):
        self.tap, self.folder = tap, folder
        pem = self.pem = peers.make_certificates(folder)
        self.descriptors = peers.make_descriptors(os.path.join(folder, "protos.pb"))
        cert = ["--tls-cert", pem("server.pem"), "--tls-key", pem("server.key")]
        self.servers = {
            "plain": OurServer(SERVER),
            "two threads": OurServer(SERVER, "--threads", "2", "--max-streams", "8"),
            "unix": OurServer(SERVER, "--addr", f"unix:{os.path.join(folder, 'sock')}"),
            "TLS": OurServer(SERVER, *cert),
            "mTLS": OurServer(SERVER, *cert, "--tls-ca", pem("ca.pem")),
        }
        self.tls = {"plain": [], "two threads": [], "unix": [], "TLS": ["ca.pem"],
                    "mTLS": ["ca.pem", "client.pem", "client.key"]}

    def files(self, way):
        return [self.pem(name) for name in self.tls[way]]

    def our_options(self, way):
        names = ("--tls-ca", "--tls-cert", "--tls-key")
        return [word for pair in zip(names, self.files(way)) for word in pair]

    def ours(self):
        for way, server in self.servers.items():
            cases = our_cases() if way in ("plain", "TLS") else FEW + ["many_calls"]
            run_ours(self.tap, f"our client, {way}", server.address, cases, *self.our_options(way))
        self.tap.check("our client, mTLS: refused without a certificate", expect_failure,
                       [CLIENT, "--addr", self.servers["mTLS"].address, "--case", "empty_unary",
                        *self.our_options("TLS")])
        self.tap.check("our client: refuses a server that nobody vouches for", expect_failure,
                       [CLIENT, "--addr", self.servers["TLS"].address, "--case", "empty_unary",
                        "--tls-ca", self.pem("client.pem")])

    def python(self, python):
        for way, server in self.servers.items():
            run_script(self.tap, f"grpcio, {way}",
                       python_command(python, self.descriptors, server, *self.files(way)))
        with OurServer(SERVER) as server:
            self.tap.check("grpcio: what runs goes on while the server drains", check_drain, python,
                           self.descriptors, server)
            self.tap.stop("drained", server)

    def js(self, place):
        for way in ("plain", "two threads", "TLS", "mTLS"):
            run_script(self.tap, f"grpc-js, {way}",
                       js_command(place, self.servers[way], *self.files(way)))

    def buf(self, place):
        plain, secret = self.servers["plain"], self.servers["TLS"]
        run_buf(self.tap, "buf curl, plain", Buf(place, f"http://{plain.address}"))
        run_buf(self.tap, "buf curl, TLS",
                Buf(place, f"https://{secret.address}", "--cacert", self.pem("ca.pem")))
        with OurServer(SERVER) as server:
            self.tap.check("buf curl: health Watch", buf_watch,
                           Buf(place, f"http://{server.address}"), server)
            self.tap.stop("watched", server)

    def go(self, place):
        tls = ["--use_tls", "--use_test_ca", f"--ca_file={self.pem('ca.pem')}"]
        for way, cases, more in (("plain", GO_CASES, []), ("two threads", GO_CASES, []),
                                 ("TLS", FEW, tls)):
            for case in cases:
                self.tap.check(f"grpc-go's client, {way}: {case}", expect_success,
                               go_command(place, self.servers[way], case, *more))
        with GoServer(place) as server:
            run_ours(self.tap, "our client at grpc-go's server", server.address,
                     [case for case in our_cases() if case not in NOT_IN_GO])
        with GoServer(place, "--use_tls", f"--tls_cert_file={self.pem('server.pem')}",
                      f"--tls_key_file={self.pem('server.key')}") as server:
            run_ours(self.tap, "our client at grpc-go's server, TLS", server.address, FEW,
                     *self.our_options("TLS"))

    def with_peer(self, name, ready, meet):
        """`ready` gives what the peer needs, or raises Skip."""
        try:
            found = ready()
        except Skip as why:
            self.tap.skip(name, why)
        except AssertionError as error:
            self.tap.say(f"{name} can be built", error)
        else:
            meet(found)

    def hold(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            npm = pool.submit(peers.install_npm, BUILD)
            go = pool.submit(peers.build_go, BUILD)
            self.ours()
            self.with_peer("grpcio", peers.find_python, self.python)
            self.with_peer("grpc-js", npm.result, self.js)
            self.with_peer("buf curl", npm.result, self.buf)
            self.with_peer("grpc-go", go.result, self.go)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="interop-") as folder:
        meeting = Meeting(tap, folder)
        started = []
        try:
            for way, server in meeting.servers.items():
                started.append((way, server.__enter__()))
            meeting.hold()
            for way, server in started:
                tap.stop(way, server)
        finally:
            for _, server in started:
                server.stop()
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
