#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A provider and a gateway that leave as they should: nothing that was taken on is lost.

    test_drain.py PEGBOARD
"""

import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import (Caller, Echo, Failed, Gateway, Provider, await_true, fails_as,  # noqa: E402
                   outcome, queued, v1)


def is_refused(caller):
    try:
        caller.call("sums", timeout=0.2)
    except Failed as error:
        return error.name == "service_unavailable"
    return False


def test_a_provider_that_drains_under_load_fails_no_call():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", credits=8) as staying:
        going = Provider(gateway, "sums", credits=8).ready()
        echoes = Echo(staying, 0.002), Echo(going, 0.002)
        futures = [caller.start_call("sums", payload=b'{"n":%d}' % i) for i in range(200)]
        going.say(drain=v1("ProviderDrain"))
        futures += [caller.start_call("sums", payload=b'{"n":%d}' % i) for i in range(200, 400)]
        results = [outcome(future).result for future in futures]
        assert results == [b"%d" % i for i in range(400)]
        going.leave()
        assert not going.error, going.error
        assert caller.health("sums").providers == 1
        assert sum(echo.n for echo in echoes) == 400


def test_a_gateway_that_drains_finishes_what_runs():
    with Gateway() as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums").ready()
        future = caller.start_call("sums")
        call = provider.next_call()
        gateway.process.send_signal(signal.SIGTERM)
        provider.drains.get(timeout=30)
        with fails_as("service_unavailable"):
            caller.call("sums", payload=b'{"n":2}')
        provider.answer(call, b"8")
        assert outcome(future).result == b"8"
        assert gateway.process.wait(30) == 0


def test_a_gateway_that_drains_finishes_what_waits_before_its_providers_leave():
    with Gateway() as gateway, Caller(gateway) as caller:
        provider = Provider(gateway, "sums", credits=1).ready()
        futures = [caller.start_call("sums")]
        call = provider.next_call()
        futures.append(caller.start_call("sums", payload=b'{"n":2}'))
        await_true(lambda: queued(caller) == 1, "the second call waits")
        gateway.process.send_signal(signal.SIGTERM)
        await_true(lambda: is_refused(caller), "new calls are refused")
        time.sleep(0.2)
        # Whoever was told to leave gives back what it is handed.
        assert provider.drains.empty(), "it was told to leave while a call waited for it"
        provider.answer(call, b"1")
        call = provider.next_call()
        assert call.attempt == 1
        provider.drains.get(timeout=30)
        provider.answer(call, b"2")
        assert [outcome(future).result for future in futures] == [b"1", b"2"]
        assert gateway.process.wait(30) == 0


class Busy(threading.Thread):
    """Calls with numbers of its own, one after the other, until the gateway is gone."""

    def __init__(self, gateway, first):
        super().__init__(daemon=True)
        self.caller = Caller(gateway)
        self.n = self.first = first
        self.answered, self.refused, self.broken, self.wrong = [], [], [], []
        self.start()

    def run(self):
        while not self.broken:
            self.call()
            self.n += 1
        self.caller.close()

    def call(self):
        try:
            answer = outcome(self.caller.start_call("sums", payload=b'{"n":%d}' % self.n))
            (self.answered if answer.result == b"%d" % self.n else self.wrong).append(self.n)
        except Failed as error:
            # one without a name comes from the caller's own library: there is no connection
            (self.refused if error.name else self.broken).append((self.n, error))
            time.sleep(0.001)


class Counting(Echo):
    """Remembers what it was asked to run."""

    def __init__(self, provider, seconds):
        self.seen = []
        take = provider.calls.put
        provider.calls.put = lambda call: (self.seen.append(int(call.payload[5:-1])), take(call))
        super().__init__(provider, seconds)


def test_a_gateway_that_drains_under_load_loses_nothing_that_it_took_on():
    with Gateway() as gateway, Provider(gateway, "sums", credits=4) as provider, \
            Provider(gateway, "long") as patient, Caller(gateway) as caller:
        echo = Counting(provider, 0.005)
        future = caller.start_call("long")
        call = patient.next_call()
        callers = [Busy(gateway, 10000 * i) for i in range(1, 9)]  # four wait, and four run
        await_true(lambda: all(len(busy.answered) > 5 for busy in callers), "all are at work")
        gateway.process.send_signal(signal.SIGTERM)
        # It stays until that call has ended, so that others come and hear that it goes.
        await_true(lambda: any(busy.refused for busy in callers), "somebody is told that it goes")
        patient.answer(call, b"8")
        assert outcome(future).result == b"8"
        for busy in callers:
            busy.join(30)
            assert not busy.is_alive() and not busy.wrong, busy.wrong
        assert gateway.process.wait(30) == 0, "it gave something up"
        refused = [error for busy in callers for _, error in busy.refused]
        for error in refused:
            assert error.name == "service_unavailable" and error.started == "false", error
            assert "this node is shutting down" in error.message, error.message
            assert int(error.trailers["pegboard-retry-after-ms"]) > 0
        # Each call that began has ended with its result, and none began twice.
        assert sorted(echo.seen) == sorted(n for busy in callers for n in busy.answered)


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
