#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed load on a gateway: is any call lost, and does its memory grow?

    soak.py PEGBOARD [SECONDS]

Callers call, stream, cancel, run into deadlines, ask twice under one identity and send what is
invalid; providers answer, fail, are cut off, come back and are replaced; toolsets come and go;
somebody watches. Every call must end once, and in a way that fits what was asked. Prints the
gateway's memory each few seconds and its slope by least squares over the second half, in per cent
an hour; runs of an hour and more fail if that is above one.
"""

import os
import random
import sys
import threading
import time

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

from world import Caller, Failed, Gateway, Provider, outcome, tool, toolset, v1  # noqa: E402

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
FAST = ("--ping-interval", "1s", "--missed-ping-threshold", "2", "--lease", "2s",
        "--result-mapping-ttl", "10s")
# What may become of a call that was asked for in good order while providers come and go.
HONEST = {"outcome_unknown", "service_unavailable", "overloaded", "timeout", "canceled"}


class Soak:
    def __init__(self, gateway):
        self.gateway = gateway
        self.until = time.monotonic() + SECONDS
        self.lock = threading.Lock()
        self.counts = {}
        self.wrong = []
        self.memory = []

    def is_over(self):
        return time.monotonic() >= self.until

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def complain(self, what):
        with self.lock:
            self.wrong.append(what)

    # ---- providers ----

    def provide(self, seed):
        dice = random.Random(seed)
        while not self.is_over():
            provider = Provider(self.gateway, "sums", tool(), tool("safe", idempotent=True),
                                credits=32)
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
                provider.cut()
            self.count("providers")

    def serve(self, provider, call, dice):
        roll = dice.random()
        n = int(call.payload[5:-1])
        if roll < 0.01:
            return  # it forgets
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

    def call(self, seed):
        dice = random.Random(seed)
        caller = Caller(self.gateway)
        while not self.is_over():
            n = dice.randrange(1000000)
            try:
                self.one(caller, dice, n)
            except Failed as error:
                if error.name not in HONEST and error.code not in (
                        grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
                    self.complain(f"call: {error.name} {error}")
                self.count(error.name or str(error.code))
        caller.close()

    def one(self, caller, dice, n):
        roll = dice.random()
        payload = b'{"n":%d}' % n
        if roll < 0.6:
            self.check(caller.call("sums", payload=payload, timeout=5), n)
        elif roll < 0.7:
            self.twice(caller, payload, n)
        elif roll < 0.8:
            future = caller.start_call("sums", payload=payload, timeout=5)
            time.sleep(dice.random() / 1000)
            if future.cancel():
                self.count("dropped")
            else:
                self.check(outcome(future), n)
        elif roll < 0.85:
            self.check(caller.call("sums", "safe", payload, timeout=0.05), n)
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

    def stream(self, caller, payload):
        try:
            return list(caller.method("CallToolStream")(
                v1("CallToolRequest", toolset="sums", tool="add", payload=payload), timeout=5))
        except grpc.RpcError as error:
            raise Failed(error) from None

    def twice(self, caller, payload, n):
        key = {"idempotency_key": os.urandom(8).hex()}
        futures = [caller.start_call("sums", payload=payload, timeout=5, **key) for _ in range(2)]
        ends = []
        for future in futures:
            try:
                answer = outcome(future)
                self.check(answer, n)
                ends.append("error" if answer.error.code else "result")
            except Failed as error:
                ends.append(error.name or "late")
                self.count(error.name or "late")
        told = [end for end in ends if end not in ("late", "timeout", "overloaded",
                                                   "service_unavailable")]
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
                                             payload=payload, timeout_ms=5000))
        self.check(caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=started.call_id,
                                              timeout_ms=8000)), n)

    # ---- the catalog ----

    def change(self, seed):
        dice = random.Random(seed)
        caller = Caller(self.gateway)
        while not self.is_over():
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
            time.sleep(0.02)
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

    def look(self):
        began = time.monotonic()
        every = max(0.5, min(10.0, SECONDS / 60))
        while not self.is_over():
            with open(f"/proc/{self.gateway.process.pid}/statm", encoding="ascii") as file:
                pages = int(file.read().split()[1])
            self.memory.append((time.monotonic() - began, pages * os.sysconf("SC_PAGE_SIZE")))
            time.sleep(every)

    # ---- all of it ----

    def run(self):
        threads = [threading.Thread(target=self.provide, args=(seed,)) for seed in range(3)]
        threads += [threading.Thread(target=self.call, args=(100 + seed,)) for seed in range(4)]
        threads += [threading.Thread(target=self.change, args=(7,)),
                    threading.Thread(target=self.watch), threading.Thread(target=self.look)]
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


def slope_per_hour(memory):
    """Per cent of the mean, over the second half."""
    half = memory[len(memory) // 2:]
    n = len(half)
    mean_t = sum(t for t, _ in half) / n
    mean_b = sum(b for _, b in half) / n
    over = sum((t - mean_t) ** 2 for t, _ in half) or 1.0
    return sum((t - mean_t) * (b - mean_b) for t, b in half) / over * 3600 / mean_b * 100


def main():
    with Gateway(*FAST) as gateway:
        soak = Soak(gateway)
        soak.run()
        n_left = soak.left()
        slope = slope_per_hour(soak.memory)
        first, last = soak.memory[len(soak.memory) // 2][1], soak.memory[-1][1]
        print(f"# {SECONDS:.0f} s: {dict(sorted(soak.counts.items()))}")
        print(f"# memory: {first / 1e6:.2f} MB at half time, {last / 1e6:.2f} MB at the end, "
              f"{slope:+.2f} % an hour over the second half")
        for what in soak.wrong[:20]:
            print("# " + what)
        results = [("every_call_ends_once_and_as_it_should", not soak.wrong),
                   ("nothing_is_left_behind", n_left == 0)]
        if SECONDS >= 3600:
            results.append(("memory_grows_by_less_than_a_hundredth_an_hour", slope < 1))
        print(f"1..{len(results)}")
        for i, (name, is_good) in enumerate(results, 1):
            print(f"{'ok' if is_good else 'not ok'} {i} - {name}")
        return 0 if all(is_good for _, is_good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
