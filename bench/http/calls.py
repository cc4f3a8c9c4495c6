# SPDX-License-Identifier: Apache-2.0
"""Calls of one tool: over HTTP and over gRPC through a gateway, and as a service of Express and of FastAPI; measure.py calls it."""

import json
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request

import peers
import servers

CONNECTIONS = [1, 32]
SIZES = [("100 bytes", 100), ("10 KB", 10000)]
SENTENCE = 'The tool said "yes", and went on.\n'
WARM_CALLS, WARM_S, WARM_TIMES = 20000, 2, 5
WIRE_CALLS, WIRE_CALLS_BEFORE = 300, 100
LOAD_S = 120
BUSY = 0.9  # of a core: a load that needs more is what was measured


class Failed(Exception):
    """A server that does not do what is asked, which has no figures then."""


def arguments_of(size):
    """So many bytes of JSON, with escapes as text has them; a server that writes it again writes the same."""
    room, text = size - len('{"text":""}'), ""
    while len(json.dumps(text + SENTENCE)) - 2 <= room:
        text += SENTENCE
    text += "x" * (room + 2 - len(json.dumps(text)))
    return json.dumps({"text": text}, separators=(",", ":")).encode()


# ---- what is asked must be done ------------------------------------------------------------


def post(way, body):
    """Status and body of the answer, by a client in Python."""
    request = urllib.request.Request(f"http://{way.address}{way.path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError as error:
        raise Failed(f"{way.name}: {error}") from error


def check(way):
    """Good arguments come back, and bad ones are refused: what is measured includes the check."""
    arguments = arguments_of(100)
    status, body = post(way, arguments)
    if status != 200 or json.loads(body) != json.loads(arguments):
        raise Failed(f"{way.name}: the answer is {status} {body[:200]}")
    for bad in (b'{"text":1}', b"{}", b'{"text":"x","more":1}'):
        status, body = post(way, bad)
        if status not in (400, 422):
            raise Failed(f"{way.name}: {bad.decode()} was not refused: {status} {body[:200]}")


# ---- load ----------------------------------------------------------------------------------


def one_line(said):
    return " ".join(said.split())[-300:]


def cpu_seconds(process):
    """Of the process, all threads: its clock, whose number the kernel makes of its pid."""
    return time.clock_gettime(~process.pid << 3 | 2)


def own_load_seconds():
    """CPU of the loads that have ended; servers still run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_h2load(way, arguments, folder, *more, address=None):
    """What it says, and the bytes of bodies; every request must have had its whole arguments back."""
    path = folder / "body"
    path.write_bytes(way.body(arguments))
    command = ["h2load", "-t", "1", "-m", "1", "-d", str(path), *way.options(), *more, f"http://{address or way.address}{way.path}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_S).stdout
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{way.name}: h2load did not end within {LOAD_S} s") from error
    counts = re.search(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
    data = re.search(r"traffic: .*\((\d+)\) data", said)
    if not counts or not data or not int(counts[1]) or any(int(counts[i]) for i in (2, 3, 4)):
        raise Failed(f"{way.name}: requests failed: {one_line(said)}")
    # gRPC says 200 also of a call that failed, whose answer has no result.
    if int(data[1]) < int(counts[1]) * (len(arguments) + way.frame_len):
        raise Failed(f"{way.name}: {counts[1]} answers have {data[1]} bytes, which is too few for all arguments")
    return said, int(data[1])


def load(way, arguments, conns, seconds, folder):
    log = folder / "log"
    log.unlink(missing_ok=True)
    before, own_before, began = [cpu_seconds(one) for one in way.processes], own_load_seconds(), time.monotonic()
    said, _ = run_h2load(way, arguments, folder, "-c", str(conns), f"--duration={seconds}", "--log-file", str(log))
    took, own = time.monotonic() - began, own_load_seconds() - own_before
    cpu = [cpu_seconds(one) - was for one, was in zip(way.processes, before)]
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    times = sorted(int(line[2]) for line in lines if line[1] == "200")
    if len(times) < 10 or len(times) < len(lines):
        raise Failed(f"{way.name}: {len(lines) - len(times)} of {len(lines)} requests failed: {one_line(said)}")
    return {"p50_us": times[len(times) // 2], "p99_us": times[len(times) * 99 // 100], "per_s": len(times) / seconds,
            "cpu_us": cpu[0] / len(times) * 1e6, "all_cpu_us": sum(cpu) / len(times) * 1e6, "load_cores": own / took}


def warm(options, way, folder):
    """By calls, not by time: servers in JavaScript are compiled meanwhile."""
    n_calls = n_times = 0
    while n_times == 0 or (not options.quick and n_calls < WARM_CALLS and n_times < WARM_TIMES):
        seconds = 1 if options.quick else WARM_S
        n_calls += seconds * load(way, arguments_of(100), 8, seconds, folder)["per_s"]
        n_times += 1


# ---- bytes ---------------------------------------------------------------------------------


class Relay:
    """Passes one connection on to a server, and counts the bytes of both directions."""

    def __init__(self, address):
        self.sent = self.received = 0
        host, _, port = address.rpartition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as near, socket.create_connection(self.target) as far:
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=self.pass_on, args=(far, near, "received"), daemon=True)
            back.start()
            self.pass_on(near, far, "sent")
            back.join()

    def pass_on(self, source, target, count):
        try:
            while data := source.recv(1 << 16):
                setattr(self, count, getattr(self, count) + len(data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the client has left, and what it did not wait for is of no call


def count_bytes(way, arguments, n_calls, folder):
    relay = Relay(way.address)
    run_h2load(way, arguments, folder, "-c", "1", "-n", str(n_calls), address=relay.address)
    relay.thread.join(30)
    return relay.sent, relay.received


def bytes_per_call(way, arguments, folder):
    """Of TCP's payload, on a connection that is there: what more calls add."""
    before, after = (count_bytes(way, arguments, n, folder) for n in (WIRE_CALLS_BEFORE, WIRE_CALLS))
    sent, received = ((more - less) / (WIRE_CALLS - WIRE_CALLS_BEFORE) for less, more in zip(before, after))
    return {"sent": sent, "received": received}


# ---- the bench -----------------------------------------------------------------------------


def is_ours(way):
    return way.name.startswith("pegboard")


def try_way(way, left_out, fn, *more):
    """None: a peer has failed, and has no figures then. Ours may not."""
    try:
        return fn(*more)
    except Failed as error:
        if is_ours(way):
            raise
        if str(error) not in left_out:
            left_out.append(str(error))
        return None


def prepare(options, way, folder):
    if not way.is_grpc:
        check(way)
    _, n_bytes = run_h2load(way, arguments_of(100), folder, "-c", "1", "-n", "1")
    way.frame_len = n_bytes - 100
    warm(options, way, folder)
    return True


def median_row(rounds, ours):
    row = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    row["p50_ratio"] = statistics.median(one["p50_us"] / mine["p50_us"] for one, mine in zip(rounds, ours))
    row["per_s_ratio"] = statistics.median(one["per_s"] / mine["per_s"] for one, mine in zip(rounds, ours))
    return row


def measure_cell(options, ways, size, conns, folder, left_out):
    """Ways take turns; one that has failed once has no row."""
    label, n_bytes = size
    arguments = arguments_of(n_bytes)
    rounds = [[try_way(way, left_out, load, way, arguments, conns, options.seconds, folder) for way in ways]
              for _ in range(options.rounds)]
    rows = []
    for i, way in enumerate(ways):
        if all(one[i] for one in rounds):
            row = {"arguments": label, "connections": conns, "way": way.name}
            rows.append(row | median_row([one[i] for one in rounds], [one[0] for one in rounds]))
            print(f"  {label}, {conns} connections, {way.name}: p50 {rows[-1]['p50_us']:.0f} us, {rows[-1]['per_s']:,.0f} calls/s", flush=True)
    return rows


def measure(options, program, folder, left_out):
    rows = []
    with servers.Stack(pathlib.Path(folder)) as stack:
        ways = peers.start_all(stack, options.build, program, left_out)
        ways = [way for way in ways if try_way(way, left_out, prepare, options, way, folder)]
        for size in SIZES:
            wire = {way.name: try_way(way, left_out, bytes_per_call, way, arguments_of(size[1]), folder) for way in ways}
            for conns in CONNECTIONS:
                rows += [row | (wire[row["way"]] or {}) for row in measure_cell(options, ways, size, conns, folder, left_out)]
    return rows


# ---- table ---------------------------------------------------------------------------------


def table(rows):
    lines = ["## HTTP: a call of a tool", "",
             "| arguments | connections | way | p50 µs | p99 µs | calls/s | p50, times ours | calls/s, times ours | CPU µs of the server "
             "| with the provider's | bytes sent | bytes received | cores of the load |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        wire = [f"{row[key]:,.0f}" if key in row else "" for key in ("sent", "received")]
        busy = " (busy)" if row["load_cores"] > BUSY else ""
        lines.append(f"| {row['arguments']} | {row['connections']} | {row['way']} | {row['p50_us']:,.0f} | {row['p99_us']:,.0f} | {row['per_s']:,.0f} "
                     f"| {row['p50_ratio']:.2f} | {row['per_s_ratio']:.2f} | {row['cpu_us']:.1f} | {row['all_cpu_us']:.1f} | {wire[0]} | {wire[1]} "
                     f"| {row['load_cores']:.2f}{busy} |")
    return lines + ["", f"Ours is \"{peers.OURS}\"."]
