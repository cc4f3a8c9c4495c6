#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that answers as OpenAI, Anthropic and Gemini do, with the answers in wire/.

    replay_server.py [--record FILE]      prints its port, ends when its standard input does

A base URL names a scenario: http://127.0.0.1:PORT/SCENARIO/v1 (Gemini: /v1beta). A scenario is the
sequence of answers, `~` and anything makes it a conversation of its own:

    tool+final~7              a call first, then the answer
    error_429:after=0+text    an error that asks to be tried again, then text

A step is the name of a file in wire/PROVIDER, .sse if a stream was asked for, else .json, and what
is done to it on the way:

    byte       every byte in a chunk of its own        crlf, cr, lf   lines end like that
    odd        chunks of odd lengths                   chop           without the last line's end
    slow=MS    a pause between chunks                  after=S        Retry-After
    cut=N      closed after N bytes, -N: before the last N

A request that the provider would refuse is answered as the provider answers it (rules/). Every
request is recorded as a line of JSON: session, provider, method, path, headers, body, refused.
"""

import argparse
import glob
import http.server
import json
import os
import re
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import rules  # noqa: E402

WIRE = os.path.join(HERE, "wire")
ROUTES = [
    (re.compile(r"/v1/chat/completions"), "openai-chat"),
    (re.compile(r"/v1/responses"), "openai-responses"),
    (re.compile(r"/v1/messages"), "anthropic"),
    (re.compile(r"/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)"), "gemini"),
]
ODD = (1, 3, 7, 2, 11, 1, 29, 5, 61, 13)
RETRY_AFTER = {429: "1", 503: "1", 529: "1"}
OPAQUE = re.compile(r'"(?:signature|encrypted_content|thoughtSignature|data)": "([^"]+)"')
MAX_BODY = 64 << 20


class Step:
    """One answer of a scenario."""

    def __init__(self, text):
        self.name, *options = text.split(":")
        self.options = dict((o.split("=") + [""])[:2] for o in options)
        match = re.match(r"error_(\d+)", self.name)
        self.status = int(match[1]) if match else 200

    def load(self, provider, is_streaming):
        suffix = ".sse" if is_streaming and self.status == 200 else ".json"
        with open(os.path.join(WIRE, provider, self.name + suffix), "rb") as file:
            content = file.read()
        for option, ending in (("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
            if option in self.options:
                content = content.replace(b"\r\n", b"\n").replace(b"\n", ending)
        return content.rstrip(b"\r\n") if "chop" in self.options else content

    def pieces(self, content):
        if "byte" in self.options:
            return [content[i:i + 1] for i in range(len(content))]
        if "odd" not in self.options:
            return [content] if content else []
        pieces, at, n = [], 0, 0
        while at < len(content):
            pieces.append(content[at:at + ODD[n % len(ODD)]])
            at, n = at + ODD[n % len(ODD)], n + 1
        return pieces

    def cut(self, content):
        """How many bytes are sent before the connection is closed, or None."""
        at = self.options.get("cut")
        return None if at is None else min(int(at) % (len(content) or 1), len(content))


def issued_strings():
    """What a provider has sealed, and takes back only unchanged."""
    found = set()
    for path in glob.glob(os.path.join(WIRE, "*", "*.json")):
        with open(path, encoding="utf-8") as file:
            found.update(OPAQUE.findall(file.read()))
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002  the name is the library's
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(min(length, MAX_BODY))
        session, _, path = self.path[1:].partition("/")
        path, _, query = ("/" + path).partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        for route, provider in ROUTES:
            if match := route.fullmatch(path):
                break
        else:
            self.refuse("openai-chat", rules.Refused(f"Invalid URL (POST {path})", status=404))
            return
        if provider == "gemini":
            headers["model"] = match[1]
        self.answer(session, provider, raw, headers, query)

    def answer(self, session, provider, raw, headers, query):
        record = {"session": session, "provider": provider, "method": "POST", "path": self.path,
                  "headers": headers, "body": None, "refused": None}
        try:
            record["body"] = json.loads(raw)
            is_streaming = self.is_streaming(provider, record["body"], query)
            rules.refuse(provider, record["body"], headers, self.server.issued)
            self.check_content_type(headers)
            step = self.server.next_step(session)
            content = step.load(provider, is_streaming)
        except FileNotFoundError as error:
            refused = rules.Refused(f"There is no answer {error.filename}.")
        except ValueError:
            refused = rules.Refused("We could not parse the JSON body of your request.")
        except rules.Refused as error:
            refused = error
        else:
            refused = None
        if refused:
            record["refused"] = refused.message
        self.server.record(record)
        if refused:
            self.refuse(provider, refused)
        else:
            self.send_step(provider, step, content, is_streaming)

    @staticmethod
    def check_content_type(headers):
        if not headers.get("content-type", "").startswith("application/json"):
            raise rules.Refused("Content-Type must be application/json")

    def is_streaming(self, provider, body, query):
        if provider != "gemini":
            return isinstance(body, dict) and body.get("stream") is True
        is_streaming = ":streamGenerateContent" in self.path
        if is_streaming != ("alt=sse" in query.split("&")):
            raise rules.Refused("This server streams as events only: ?alt=sse")
        return is_streaming

    def refuse(self, provider, refused):
        self.send_body(refused.status, json.dumps(rules.error_body(provider, refused)).encode(), {})

    def send_body(self, status, content, headers, cut=None):
        self.start(status, {"Content-Type": "application/json", **headers,
                            "Content-Length": str(len(content))})
        self.wfile.write(content[:cut])
        if cut is not None:
            self.hang_up()

    def start(self, status, headers):
        self.send_response(status)
        request_id = f"req_{self.server.count():04d}"
        for name, value in {**headers, "x-request-id": request_id,
                            "request-id": request_id}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_step(self, provider, step, content, is_streaming):
        headers = {}
        after = step.options.get("after", RETRY_AFTER.get(step.status))
        if after and provider != "gemini":  # which tells it in the body
            headers["Retry-After"] = after
        if is_streaming and step.status == 200:
            self.send_stream(step, content, headers)
        else:
            self.send_body(step.status, content, headers, step.cut(content))

    def send_stream(self, step, content, headers):
        cut = step.cut(content)
        self.start(200, {"Content-Type": "text/event-stream; charset=utf-8",
                         "Cache-Control": "no-cache", "Transfer-Encoding": "chunked", **headers})
        for piece in step.pieces(content[:cut]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if "slow" in step.options:
                time.sleep(int(step.options["slow"]) / 1000)
        if cut is not None:
            self.hang_up()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client was faster


class ReplayServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, record_to=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.issued = issued_strings()
        self.records = []
        self._file = open(record_to, "w", encoding="utf-8") if record_to else None
        self._asked, self._n, self._lock = {}, 0, threading.Lock()

    @property
    def port(self):
        return self.server_address[1]

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)

    def next_step(self, session):
        steps = session.split("~")[0].split("+")
        with self._lock:
            n = self._asked.get(session, 0)
            self._asked[session] = n + 1
        if n >= len(steps):
            raise rules.Refused(f"The scenario {session} has only {len(steps)} answers.")
        return Step(steps[n])

    def record(self, record):
        with self._lock:
            self.records.append(record)
            if self._file:
                self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
                self._file.flush()

    def count(self):
        with self._lock:
            self._n += 1
            return self._n

    def start(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        return self

    def stop(self):
        self.shutdown()
        self.server_close()
        if self._file:
            self._file.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--record")
    server = ReplayServer(parser.parse_args().record).start()
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
