#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed load on a gateway: is any call lost, and does its memory grow?

    soak.py PEGBOARD [SECONDS [TTL]]

Callers call, stream, cancel, run into deadlines, ask twice under one identity and send what is
invalid; providers answer, fail, are cut off, come back and are replaced; toolsets come and go;
somebody watches. Every call must end once, and in a way that fits what was asked: the gateway says
so itself, long before the caller loses patience, and knows the outcome of what a provider answered.

Once it is warm the gateway's memory may grow to what GROWTH says, and by the results that it keeps.
A sanitizer's memory is not looked at.

Runs of an hour and more fail if resident memory grows by one per cent of it an hour or more once
WARM_UP_S are over. Until then there is a storm: each thread of the gateway keeps some hundred pieces
that it freed, and without one they come together over hours. Under load memory goes up and down by
what is kept just then, a tenth of it all, and a line through that has a slope of some per cent by
chance. So the load rests once in a ROUND_S, for as long as anything is kept, and what is left then
is to be the same each time: the middle one of the slopes between any two rests counts, so that one
in which nothing was given back yet does not. Printed as well: lines of least squares through that,
under load and at rest, and through the heap in use, as /metrics tells it, with what threads keep.

TTL is how long ends of calls with an identity are kept (10s); "default" is the gateway's own. That
is minutes, so a short run keeps all of them: its memory grows by them until the end, and has no
slope that says anything. What it must not do is grow by more.

PEG_TEST_THREADS=2: with two loops.
"""

import http.client
import itertools
import os
import random
import re
import statistics
import sys
import threading
import time

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

from world import (PEGBOARD, Caller, Failed, Gateway, Provider, outcome, tool,  # noqa: E402
                   toolset, v1)

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
TTL = sys.argv[3] if len(sys.argv) > 3 else "10s"
FAST = ["--ping-interval", "1s", "--missed-ping-threshold", "2", "--lease", "2s"]
if TTL != "default":
    FAST += ["--result-mapping-ttl", TTL]
# The time of a call, and what its caller waits: the gateway ends it, however slow the machine is.
CALL_MS = 5000
PATIENCE_S = 25
# A result takes less than this, also on a machine that has other things to do.
ON_ITS_WAY_S = 2
# Everything has been used once by then, and memory may grow to so many times what it is. A hundred
# calls a second that leaked a page or two each would double it in the shortest run.
WARM_S = 3
GROWTH = 1.5
# What was asked for last in a round is forgotten after half of the rest (a deadline and the TTL), and
# within ten seconds more the gateway gives back what it does not use any more. Then it is looked at.
WARM_UP_S = 600
ROUND_S = 100
REST_S = 30
LOOK_S = 4
STORM_CALLERS = 40
# What may become of a call that was asked for in good order while providers come and go.
HONEST = {"outcome_unknown", "service_unavailable", "overloaded", "timeout", "canceled"}


class Soak:
    def __init__(self, gateway):
        self.gateway = gateway
        self.began = time.monotonic()
        self.until = self.began + SECONDS
        self.storm_until = self.began + (WARM_UP_S if SECONDS >= 3600 else 0)
        self.lock = threading.Lock()
        self.counts = {}
        self.wrong = []
        self.memory = []  # under load: when, bytes
        self.at_rest = []
        self.heap_at_rest = []  # none: the C library, or a sanitizer, does not tell
        self.kept = 0  # bytes of results that may be asked for again
        self.numbers = itertools.count(1)
        self.answered = {}  # number of a call: when, by whom

    def is_over(self):
        return time.monotonic() >= self.until

    def rest(self):
        """Waits for the next round if it is time to rest."""
        while not self.is_over() and self.until_round_ends() <= REST_S:
            time.sleep(0.1)

    def until_round_ends(self):
        return ROUND_S - (time.monotonic() - self.began) % ROUND_S

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def complain(self, what):
        with self.lock:
            self.wrong.append(what)

    # ---- providers ----

    def note_answer(self, n, provider):
        now = time.monotonic()
        with self.lock:
            self.answered[n] = (now, provider)
            while self.answered:
                first = next(iter(self.answered))
                if self.answered[first][0] > now - PATIENCE_S:
                    break
                del self.answered[first]

    def must_know(self, n):
        """A provider answered, and was not cut off while the answer was on its way."""
        with self.lock:
            when, provider = self.answered.get(n, (None, None))
        now = time.monotonic()
        return when is not None and now - when > ON_ITS_WAY_S and not (
            provider.cut_at and provider.cut_at - when < ON_ITS_WAY_S)

    def provide(self, seed):
        dice = random.Random(seed)
        while not self.is_over():
            provider = Provider(self.gateway, "sums", tool(), tool("safe", idempotent=True),
                                credits=32)
            provider.cut_at = None
            provider.welcomed.wait(30)
            if provider.error:
                self.complain(f"attach: {provider.error}")
                return
            until = min(self.until, time.monotonic() + dice.uniform(2, 8))
            while time.monotonic() < until:
                try:
                    call = provider.calls.get(timeout=0.1)
                except Exception:  # pylint: disable=broad-except
                    continue
                self.serve(provider, call, dice)
            if dice.random() < 0.5:
                provider.say(drain=v1("ProviderDrain"))
                self.finish(provider, dice)
                provider.leave()
            else:
                provider.cut_at = time.monotonic()
                provider.cut()
            self.count("providers")

    def serve(self, provider, call, dice):
        roll = dice.random()
        n = int(call.payload[5:-1])
        if roll < 0.01:
            return  # it forgets
        if roll < 0.10 or roll >= 0.12:
            self.note_answer(n, provider)
        if roll < 0.05:
            provider.fail(call, "refused", "not today")
        elif roll < 0.10:
            provider.say(delta=v1("Delta", call_id=call.call_id, attempt=call.attempt,
                                  stream="stdout", delta="working"))
            provider.answer(call, b"%d" % n)
        elif roll < 0.12:
            provider.say(nak=v1("Nak", call_id=call.call_id, attempt=call.attempt))
        elif roll < 0.14:
            text = b"%d" % n + b" " * 200000
            for at in range(0, len(text), 65536):
                provider.answer(call, text[at:at + 65536], more=at + 65536 < len(text))
        else:
            provider.answer(call, b"%d" % n)

    def finish(self, provider, dice):
        time.sleep(0.1)
        while not provider.calls.empty():
            self.serve(provider, provider.calls.get(), dice)

    # ---- callers ----

    def call(self, seed, until):
        dice = random.Random(seed)
        caller = Caller(self.gateway)
        while time.monotonic() < until:
            self.rest()
            n = next(self.numbers)
            try:
                self.one(caller, dice, n)
            except Failed as error:
                self.failed(error, n)
        caller.close()

    def failed(self, error, n):
        """What has no name the gateway did not say: nobody has ended the call."""
        if error.name not in HONEST:
            self.complain(f"call {n}: {error.name} {error}")
        elif error.name == "outcome_unknown" and self.must_know(n):
            self.complain(f"call {n} was answered, and its outcome is unknown")
        self.count(error.name or str(error.code))

    def one(self, caller, dice, n):
        roll = dice.random()
        payload = b'{"n":%d}' % n
        ask = {"payload": payload, "timeout_ms": CALL_MS, "timeout": PATIENCE_S}
        if roll < 0.6:
            self.check(caller.call("sums", **ask), n)
        elif roll < 0.7:
            self.twice(caller, ask, n)
        elif roll < 0.8:
            future = caller.start_call("sums", **ask)
            time.sleep(dice.random() / 1000)
            if future.cancel():
                self.count("dropped")
            else:
                self.check(outcome(future), n)
        elif roll < 0.85:
            self.brief(caller, payload, n)
        elif roll < 0.9:
            self.check(self.stream(caller, payload)[-1].result, n)
        elif roll < 0.95:
            self.invalid(caller)
        else:
            self.start_and_await(caller, payload, n)

    def check(self, answer, n):
        if answer.error.code:
            self.count("failed")
        elif int(answer.result) != n:
            self.complain(f"asked for {n}, got {answer.result[:40]}")
        else:
            self.count("result")

    def brief(self, caller, payload, n):
        """So little time that the caller's own clock may be first."""
        try:
            self.check(caller.call("sums", "safe", payload, timeout=0.05), n)
        except Failed as error:
            if error.name or error.code != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            self.count("late")

    def stream(self, caller, payload):
        try:
            return list(caller.method("CallToolStream")(
                v1("CallToolRequest", toolset="sums", tool="add", payload=payload,
                   timeout_ms=CALL_MS), timeout=PATIENCE_S))
        except grpc.RpcError as error:
            raise Failed(error) from None

    def keep(self, answer):
        with self.lock:
            self.kept += len(answer.result) + 1000

    def twice(self, caller, ask, n):
        key = {"idempotency_key": os.urandom(8).hex()}
        futures = [caller.start_call("sums", **ask, **key) for _ in range(2)]
        ends = []
        for future in futures:
            try:
                answer = outcome(future)
                self.check(answer, n)
                self.keep(answer)
                ends.append("error" if answer.error.code else "result")
            except Failed as error:
                self.failed(error, n)
                ends.append(error.name)
        told = [end for end in ends if end not in ("timeout", "overloaded", "service_unavailable")]
        if len(set(told)) > 1:
            self.complain(f"one identity, two ends: {ends}")

    def invalid(self, caller):
        try:
            caller.call("sums", payload=b'{"n":"x"}')
            self.complain("an invalid call was taken")
        except Failed as error:
            if error.name != "validation_error":
                self.complain(f"invalid, but {error.name}")
            self.count("invalid")

    def start_and_await(self, caller, payload, n):
        started = caller.ask("StartTool", v1("CallToolRequest", toolset="sums", tool="add",
                                             payload=payload, timeout_ms=CALL_MS))
        answer = caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id,
                                            timeout_ms=2 * CALL_MS), PATIENCE_S)
        self.keep(answer)
        self.check(answer, n)

    # ---- the catalog ----

    def change(self, seed):
        dice = random.Random(seed)
        caller = Caller(self.gateway)
        while not self.is_over():
            self.rest()
            name = f"other.{dice.randrange(50)}"
            try:
                caller.ask("Register", toolset(name, version=f"1.0.{dice.randrange(100)}"))
                caller.ask("Search", v1("SearchRequest", query="adds"))
                if dice.random() < 0.3:
                    caller.ask("Unregister", v1("UnregisterRequest", name=name))
                self.count("changes")
            except Failed as error:
                if error.name != "not_found":
                    self.complain(f"catalog: {error.name} {error}")
            time.sleep(0.02 if time.monotonic() > self.storm_until else 0)
        caller.close()

    def watch(self):
        caller = Caller(self.gateway)
        while not self.is_over():
            stream = caller.method("Watch")(v1("WatchRequest"), timeout=5)
            try:
                for _ in stream:
                    self.count("told")
            except grpc.RpcError:
                pass
        caller.close()

    def resident(self):
        with open(f"/proc/{self.gateway.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def heap(self):
        """What is allocated and not freed; None: it is not told."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=30)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        told = re.search(r"^pegboard_heap_used_bytes (\d+)$", text, re.MULTILINE)
        return int(told.group(1)) if told else None

    def age(self):
        return time.monotonic() - self.began

    def look_at_rest(self):
        """The lowest of some: providers come and go meanwhile."""
        lowest = self.resident()
        while 1 < self.until_round_ends() <= LOOK_S:
            time.sleep(0.2)
            lowest = min(lowest, self.resident())
        self.at_rest.append((self.age(), lowest))
        heap = self.heap()
        if heap is not None:
            self.heap_at_rest.append((self.age(), heap))
        time.sleep(max(0, min(LOOK_S, self.until_round_ends() + 0.1)))

    def look(self):
        every = max(0.5, min(10.0, SECONDS / 60))
        while not self.is_over():
            left = self.until_round_ends()
            if left <= LOOK_S:
                self.look_at_rest()
            else:
                if left > REST_S:
                    self.memory.append((self.age(), self.resident()))
                time.sleep(min(every, left - LOOK_S / 2))

    # ---- all of it ----

    def thread(self, do, *args):
        """One that fails says so: what it would have seen nobody sees."""
        def run():
            try:
                do(*args)
            except Exception as error:  # pylint: disable=broad-except
                self.complain(f"{do.__name__}{args}: {error!r}")
        return threading.Thread(target=run)

    def run(self):
        threads = [self.thread(self.provide, seed) for seed in range(3)]
        threads += [self.thread(self.call, 100 + seed, self.until) for seed in range(4)]
        threads += [self.thread(self.call, 200 + seed, self.storm_until)
                    for seed in range(STORM_CALLERS)]
        threads += [self.thread(self.change, 7), self.thread(self.watch), self.thread(self.look)]
        with Caller(self.gateway) as caller:
            caller.ask("Register", toolset("sums", tool(), tool("safe", idempotent=True)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS + 120)
            if thread.is_alive():
                self.complain("a thread waits for something that never comes")

    def left(self):
        """Calls that the gateway still holds when everybody is gone."""
        with Caller(self.gateway) as caller:
            until = time.monotonic() + 15
            while time.monotonic() < until:
                status = caller.ask("Status", v1("StatusRequest"), service="pegboard.v1.Admin")
                if not status.in_flight and not status.queued:
                    return 0
                time.sleep(0.2)
            return status.in_flight + status.queued


def slope_per_hour(memory, whole):
    """In per cent of the whole, with its standard error."""
    n = len(memory)
    if n < 3:
        return float("inf"), float("inf")
    mean_t = sum(t for t, _ in memory) / n
    mean_b = sum(b for _, b in memory) / n
    over = sum((t - mean_t) ** 2 for t, _ in memory)
    slope = sum((t - mean_t) * (b - mean_b) for t, b in memory) / over
    rest = sum((b - mean_b - slope * (t - mean_t)) ** 2 for t, b in memory)
    error = (rest / (n - 2) / over) ** 0.5
    return slope * 3600 / whole * 100, error * 3600 / whole * 100


def middle_slope_per_hour(memory, whole):
    """In per cent of the whole, whatever single points say (Theil and Sen)."""
    slopes = [(b2 - b1) / (t2 - t1) for (t1, b1), (t2, b2) in itertools.combinations(memory, 2)]
    return statistics.median(slopes) * 3600 / whole * 100 if slopes else float("inf")


def when_warm(memory):
    return [(t, b) for t, b in memory if t >= WARM_UP_S]


def say_slope(what, memory, whole):
    warm = when_warm(memory)
    slope, error = slope_per_hour(warm, whole)
    if warm:
        low, high = min(b for _, b in warm), max(b for _, b in warm)
        print(f"# {what}: {low / 1e6:.2f} to {high / 1e6:.2f} MB, "
              f"{slope:+.2f} % an hour, +- {error:.2f}")
        if len(warm) < 100:
            print("#   " + " ".join(f"{b / 1e6:.2f}" for _, b in warm))


def memory_at(memory, seconds):
    return next((b for t, b in memory if t >= seconds), memory[-1][1])


def is_sanitized():
    with open(PEGBOARD, "rb") as file:
        text = file.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def main():
    with Gateway(*FAST) as gateway:
        soak = Soak(gateway)
        soak.run()
        n_left = soak.left()
        warm, last = memory_at(soak.memory, WARM_S), soak.memory[-1][1]
        most = GROWTH * warm + soak.kept
        print(f"# {SECONDS:.0f} s: {dict(sorted(soak.counts.items()))}")
        print(f"# memory: {warm / 1e6:.2f} MB when warm, {last / 1e6:.2f} MB at the end, at most "
              f"{most / 1e6:.2f} MB")
        say_slope("under load", soak.memory, last)
        say_slope("at rest", soak.at_rest, last)
        say_slope("heap in use at rest", soak.heap_at_rest, last)
        slope = middle_slope_per_hour(when_warm(soak.at_rest), last)
        if when_warm(soak.at_rest):
            print(f"# at rest, the middle one of all slopes: {slope:+.2f} % an hour")
        for what in soak.wrong[:20]:
            print("# " + what)
        results = [("every_call_ends_once_and_as_it_should", not soak.wrong),
                   ("nothing_is_left_behind", n_left == 0)]
        if not is_sanitized():
            results.append(("memory_grows_by_little_but_what_is_kept", last <= most))
        if SECONDS >= 3600 and TTL != "default":
            results.append(("memory_grows_by_less_than_a_hundredth_an_hour", slope < 1))
        print(f"1..{len(results)}")
        for i, (name, is_good) in enumerate(results, 1):
            print(f"{'ok' if is_good else 'not ok'} {i} - {name}")
        return 0 if all(is_good for _, is_good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
