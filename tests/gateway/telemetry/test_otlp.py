#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: calls are spans of OpenTelemetry: one trace from a caller with OpenTelemetry's own SDK through the gateway to a
provider in C, as PyPI's opentelemetry-proto reads it; and a collector that is away costs no call and no memory.

    test_otlp.py PEGBOARD BUILD
"""

import contextlib
import http.client
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TESTS, "cli"))
sys.path.insert(0, os.path.join(TESTS, "grpc", "interop"))
sys.path.insert(0, TESTS)

import gateways  # noqa: E402
import peers  # noqa: E402
from gateways import gateway, provided  # noqa: E402
from ports import free_port  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD = os.path.abspath(sys.argv[2])
SDK = "1.30.0"
INSTALL_S = 300
TRACE = "0af7651916cd43dd8448eb211c80319c"


# ---- a collector -------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken(self.path, self.headers["Content-Type"], body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Collector(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, w, port=0, context=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.w, self.lock, self.bodies, self.n = w, threading.Lock(), [], 0
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://localhost:{self.server_port}"

    def taken(self, path, kind, body):
        check((path, kind) == ("/v1/traces", "application/x-protobuf"), path, kind)
        with self.lock:
            self.bodies.append(body)

    def handle_error(self, request, client_address):
        pass

    def has(self, part):
        with self.lock:
            return any(part in body for body in self.bodies)

    def spans(self, python):
        """Each once: a batch whose answer came too late is delivered again."""
        with self.lock:
            bodies = list(self.bodies)
        names = [f"body{i}" for i in range(len(bodies))]
        for name, body in zip(names, bodies):
            with open(self.w.path(name), "wb") as file:
                file.write(body)
        done = subprocess.run([python, os.path.join(HERE, "decode.py"), *(self.w.path(name) for name in names)],
                              check=True, text=True, stdout=subprocess.PIPE)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return list({span["id"]: span for span in found}.values())


@contextlib.contextmanager
def collector(w, **more):
    server = Collector(w, **more)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(truth, what):
    end = time.monotonic() + gateways.DEADLINE_S
    while True:
        found = truth()
        if found:
            return found
        check(time.monotonic() < end, "still not:", what)
        time.sleep(0.05)


# ---- asking ------------------------------------------------------------------------------


def connect(w):
    host, port = w.at.rsplit(":", 1)
    return http.client.HTTPConnection(host, int(port), timeout=gateways.DEADLINE_S)


def call(connection, tool, arguments, **headers):
    connection.request("POST", f"/v1/toolsets/weather/tools/{tool}/calls", json.dumps(arguments),
                       {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def counters(w):
    connection = connect(w)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("pegboard_otlp_")}


def lines_about_calls(w):
    with open(w.path("log"), encoding="utf-8") as file:
        return [line for line in file if "event=call " in line]


def sdk_python():
    """A Python with OpenTelemetry's SDK, made once."""
    place = os.path.join(BUILD, "otlp-" + SDK)
    script = (f"'{sys.executable}' -m venv v && v/bin/pip install -q --disable-pip-version-check "
              f"opentelemetry-sdk=={SDK} opentelemetry-exporter-otlp-proto-http=={SDK}")
    os.makedirs(BUILD, exist_ok=True)
    with peers.made_once(place, peers.stamp_of(also=script)) as is_new:
        if is_new:
            try:
                done = subprocess.run(["sh", "-c", script], cwd=place, check=False, text=True, timeout=INSTALL_S,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            except subprocess.TimeoutExpired:
                raise Skip("pip did not end in time: is there a network?") from None
            if done.returncode:
                raise Skip("pip could not install: " + peers.one_line(done.stdout))
    return os.path.join(place, "v", "bin", "python")


# ---- one trace ---------------------------------------------------------------------------


def children(spans, parent):
    return sorted((span for span in spans if span["parent"] == parent["id"]), key=lambda span: span["start"])


def check_children(parent, child, service, name, error):
    about = child["attributes"]
    check(child["trace"] == parent["trace"] and child["name"] == name, child)
    check(child["resource"]["service.name"] == service and child["scope"] == "pegboard", child)
    check(parent["start"] <= child["start"] <= child["end"] <= parent["end"], parent, child)
    check(about["gen_ai.operation.name"] == "execute_tool" and about["gen_ai.tool.name"] == name.split()[1], child)
    check(about["pegboard.toolset"] == "weather" and about.get("error.type") == error, child)
    check(child["status"] == ("STATUS_CODE_ERROR" if error else "STATUS_CODE_UNSET"), child)


@scenario
def a_trace_goes_from_a_python_caller_through_the_gateway_to_a_provider_in_c(w):
    python = sdk_python()
    with collector(w) as to, gateway(w, "--otlp-endpoint", to.url), provided(w, "--otlp-endpoint", to.url + "/"):
        ran = subprocess.run([python, os.path.join(HERE, "caller.py"), "http://" + w.at, to.url], check=True, text=True,
                             stdout=subprocess.PIPE, timeout=gateways.DEADLINE_S)
        check(json.loads(ran.stdout) == [200, 200, 422, 200, 400], ran.stdout)
        # The caller's, five of the gateway, four of the provider.
        spans = wait_for(lambda: (lambda found: found if len(found) == 10 else None)(to.spans(python)), "ten spans")
        root = next(span for span in spans if span["name"] == "agent")
        at_gateway = children(spans, root)
        check(len(at_gateway) == 5, at_gateway)
        for span, name, error in zip(at_gateway, ("execute_tool say", "tools/call say", "execute_tool fail",
                                                  "tools/call fail", "execute_tool echo"),
                                     (None, None, "E_COMMAND_EXIT", "tool_error", "validation_error")):
            check_children(root, span, "pegboard-gateway", name, error)
            check(span["kind"] == "SPAN_KIND_SERVER", span)
            check((span["attributes"].get("mcp.method.name") == "tools/call") == name.startswith("tools/call"), span)
            below = children(spans, span)
            check(len(below) == (0 if error == "validation_error" else 1), span, below)
            for one in below:
                check_children(span, one, "weather", "execute_tool " + name.split()[1], "E_COMMAND_EXIT" if error else None)
                check(one["attributes"]["pegboard.call.id"] == span["attributes"]["pegboard.call.id"], span, one)
        # What ended badly is in the log, with its trace.
        lines = wait_for(lambda: (lambda found: found if len(found) >= 3 else None)(lines_about_calls(w)), "three lines")
        check(len(lines) == 3 and all("trace_id=" + root["trace"] in line for line in lines), lines)


# ---- which calls -------------------------------------------------------------------------


@scenario
def a_call_is_sampled_as_its_caller_says_and_without_one_by_the_ratio(w):
    with collector(w) as to, gateway(w, "--otlp-endpoint", to.url + "/v1/traces", "--otlp-sample", "0"):
        connection = connect(w)
        for headers in ({}, {"traceparent": f"00-{TRACE}-b7ad6b7169203331-00"}, {"traceparent": "no such thing"},
                        {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}):
            check(call(connection, "say", {}, **headers) == 404)
        wait_for(lambda: to.has(bytes.fromhex(TRACE)), "the sampled one")
        connection.close()
        wait_for(lambda: counters(w)["pegboard_otlp_spans_exported_total"] == 1, "one that was taken")
        check(len(to.bodies) == 1 and to.bodies[0].count(b"not_found") == 1, to.bodies)


@scenario
def spans_go_over_tls_to_a_collector_whose_certificate_is_trusted(w):
    options = gateways.make_certificate(w)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options[1], options[3])
    context.set_alpn_protocols(["h2", "http/1.1"])  # as collectors do: it must not choose what is not spoken
    with collector(w, context=context) as to, gateway(w, "--otlp-endpoint", to.url, env={"SSL_CERT_FILE": options[1]}):
        connection = connect(w)
        check(call(connection, "say", {}) == 404)
        connection.close()
        wait_for(lambda: to.has(b"execute_tool say"), "its span")


@scenario
def a_certificate_that_is_not_trusted_gets_no_span(w):
    options = gateways.make_certificate(w)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options[1], options[3])
    with collector(w, context=context) as to, gateway(w, "--otlp-endpoint", to.url):
        connection = connect(w)
        check(call(connection, "say", {}) == 404)
        connection.close()
        wait_for(lambda: counters(w)["pegboard_otlp_failures_total"] >= 1, "a failure")
        check(not to.bodies, to.bodies)


# ---- a collector that is away ------------------------------------------------------------


@scenario
def a_collector_that_is_away_costs_no_call_and_gets_its_spans_when_it_is_back(w):
    port = free_port()
    with gateway(w, "--otlp-endpoint", f"http://127.0.0.1:{port}"), \
            provided(w, "--otlp-endpoint", f"http://127.0.0.1:{port}"):
        connection = connect(w)
        for _ in range(3):
            check(call(connection, "say", {}) == 200)
        wait_for(lambda: counters(w)["pegboard_otlp_failures_total"] >= 2, "failures")
        check(call(connection, "say", {}) == 200)
        connection.close()
        with collector(w, port=port) as to:
            wait_for(lambda: counters(w)["pegboard_otlp_spans_exported_total"] == 4, "all four")
            wait_for(lambda: to.has(b"pegboard-gateway") and to.has(b"service.instance.id"), "the gateway's")
        check(counters(w)["pegboard_otlp_spans_dropped_total"] == 0, counters(w))


@scenario
def a_gateway_ends_without_its_collector(w):
    # One that accepts connections, and never answers.
    silent = http.server.socketserver.socket.create_server(("127.0.0.1", 0))
    with silent, gateway(w, "--otlp-endpoint", f"http://127.0.0.1:{silent.getsockname()[1]}") as serving:
        connection = connect(w)
        check(call(connection, "say", {}) == 404)
        connection.close()
        began = time.monotonic()
        check(serving.end() == 0, "its exit status")
        took = time.monotonic() - began
        check(took < 9, "2 s are for the spans, and 10 s would be all of the request:", took)


@scenario
def an_endpoint_that_is_none_is_refused_at_the_start(w):
    for url in ("localhost:4318", "ftp://localhost", "http://", "http://a:b", "http://u@localhost", "http://localhost/?x"):
        w.pegboard("serve", "--addr", "127.0.0.1:0", "--store", "memory", "--otlp-endpoint", url).exits(2).complains(
            "OTLP endpoint", "E_OTLP")
    for ratio in ("2", "-1", "x", ""):
        w.pegboard("serve", "--otlp-endpoint", "http://localhost", "--otlp-sample", ratio).exits(2).complains("0 to 1")
    w.pegboard("serve", "--otlp-sample", "0.5").exits(2).complains("--otlp-endpoint")
    w.pegboard("provide", "none.yaml", "--otlp-sample", "0.5").exits(2).complains("--otlp-endpoint")


main()
