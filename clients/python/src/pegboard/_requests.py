# SPDX-License-Identifier: Apache-2.0
"""What the clients of both kinds share: requests, and what comes of answers."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, NamedTuple, Sequence, Union

import grpc

from . import errors
from ._link import Link
from ._protos import v1
from ._schema import ServerData, to_json
from .errors import Canceled, CallTimeout, PegboardError, ServiceUnavailable, ToolError, ValidationError

TIMEOUT_S = 30.0
GRACE_S = 10.0  # beyond the timeout of a call: the gateway tells how it ended
MAX_ASKED = 1000  # calls of which an epoch is kept
STARTING = ("CallTool", "CallToolStream", "StartTool")
DEFINITE = (ValidationError, CallTimeout, Canceled)  # of a call that was not started: it is not elsewhere, either
Arguments = Union[Mapping[str, Any], str, bytes, None]


@dataclass(frozen=True)
class Started:
    """The first event of a stream."""

    call_id: str


@dataclass(frozen=True)
class Output:
    """What the tool says while it runs."""

    stream: str
    delta: str


@dataclass(frozen=True)
class Result:
    """The last event of a stream. `attached`: the call had been asked for before."""

    value: Any
    call_id: str
    attached: bool


@dataclass(frozen=True)
class Toolset:
    name: str
    description: str
    version: str
    tags: tuple[str, ...]
    is_healthy: bool
    tool_count: int


class Reply(NamedTuple):
    """What a tool returned, with its server-data."""

    value: Any
    server_data: list[ServerData]


def call_request(toolset: str, tool: str, arguments: Arguments, timeout: float | None, idempotency_key: str | None,
                 metadata: Mapping[str, str] | None) -> Any:
    return v1("CallToolRequest", toolset=toolset, tool=tool, payload=payload_of(arguments),
              idempotency_key=idempotency_key or "", timeout_ms=int(1000 * timeout) if timeout else 0,
              metadata=[v1("MetadataEntry", key=key, value=value) for key, value in (metadata or {}).items()])


def payload_of(arguments: Arguments) -> bytes:
    """Text is taken as JSON: models hand arguments over like that."""
    if arguments is None:
        return b"{}"
    if isinstance(arguments, bytes):
        return arguments
    return (arguments if isinstance(arguments, str) else json.dumps(to_json(dict(arguments)))).encode()


def text_of(arguments: Any) -> bytes:
    """Of a value that has JSON. ValueError: a number is none of JSON's."""
    return json.dumps(to_json(arguments), ensure_ascii=False, allow_nan=False).encode()


def deadline_of(timeout: float | None) -> float | None:
    """Of the RPC. None: the tool's own time counts, which the gateway knows."""
    return timeout + GRACE_S if timeout else None


def value_of(response: Any) -> Any:
    if response.HasField("error"):
        raise ToolError(response.error.code, response.error.message)
    return json.loads(response.result) if response.result else None


def reply_of(response: Any) -> Reply:
    return Reply(value_of(response), [ServerData(one.kind, one.audience, json.loads(one.data or b"null"))
                                      for one in response.server_data])


def event_of(response: Any) -> Started | Output | Result | None:
    """None: of a later version."""
    if response.HasField("started"):
        return Started(response.started.call_id)
    if response.HasField("output"):
        return Output(response.output.stream, response.output.delta)
    if response.HasField("result"):
        return Result(value_of(response.result), response.result.call_id, response.result.attached)
    return None


def toolset_of(info: Any) -> Toolset:
    return Toolset(info.name, info.description, info.version, tuple(info.tags), info.health.state == 1,
                   info.tool_count)


class Attempts:
    """The nodes that a request is sent to, one after the other. The next one is asked if the last has not started
    anything; if the connection broke, so that nothing is known, only for what may be asked again: calls that have an
    identity, and what starts none. A call that is asked for again, here or by the program, names the epoch under which
    it was first sent: a registry that has forgotten it answers outcome_unknown, and does not start it again."""

    def __init__(self, link: Link, verb: str, request: Any, timeout: float | None) -> None:
        self._link = link
        self._until = time.monotonic() + timeout if timeout else None
        self._identity = identity_of(request) if verb in STARTING else None
        self._may_be_repeated = verb not in STARTING or self._identity is not None
        self._epoch = link.epoch or "unknown"
        self._asked = link.asked.get(self._identity) if self._identity else None  # the epoch to be named
        if verb == "AwaitTool":  # what waits has been started: a registry with another memory has forgotten it
            self._asked = link.epoch
        self._may_run = False  # the last attempt
        self._lost: PegboardError | None = None  # the first connection that broke
        self._n_nodes = 0
        self._left = 0
        self._has_started = False

    def each(self, channels: Sequence[Any]) -> Iterator[Any]:
        self._n_nodes = self._left = len(channels)
        for channel in itertools.cycle(channels):
            self._left -= 1
            self._may_run = True
            yield channel

    def metadata(self) -> list[tuple[str, str]]:
        return self._link.metadata + ([("pegboard-asked-epoch", self._asked)] if self._asked else [])

    def time_left(self) -> float | None:
        return max(self._until - time.monotonic(), 0) if self._until else None

    def note(self, headers: Any) -> None:
        for key, value in headers or ():
            if key == "pegboard-epoch":
                self._link.epoch = value

    def event_of(self, response: Any) -> Started | Output | Result | None:
        """None: of a later version, or the stream was begun again."""
        if response.HasField("result"):
            self.done()
        event = event_of(response)
        was_started = self._has_started
        self._has_started |= isinstance(event, Started)
        return None if was_started and isinstance(event, Started) else event

    def done(self) -> None:
        """Its end is known."""
        self._may_run = False
        if self._identity:
            self._link.asked.pop(self._identity, None)

    def failed(self, error: grpc.RpcError) -> None:
        """Raises what the request ends with, unless another node is to be asked."""
        self.note(error.initial_metadata())
        self.note(error.trailing_metadata())
        failure = errors.from_rpc(error)
        self._may_run = failure.started is not False
        if self._identity and self._asked and not self._may_run:
            failure.started = None  # not now; but perhaps when it was asked for first
        if errors.is_lost(error) and self._may_be_repeated:
            if not self._lost:
                self._lost, self._left = failure, self._n_nodes
        elif self._may_run or not self._is_in_doubt(failure):
            raise failure from None
        if self._left == 0 or self.time_left() == 0:
            raise self._lost or failure from None

    def _is_in_doubt(self, refusal: PegboardError) -> bool:
        """Does another node have to be asked? A refusal does not show what became of a call whose connection broke."""
        if isinstance(refusal, ServiceUnavailable):
            return True
        return self._lost is not None and self._identity is not None and not isinstance(refusal, DEFINITE)

    def keep_epoch(self) -> None:
        """At the end of every attempt, also if it was canceled: what may run may be asked for again."""
        if not self._may_run or not self._identity:
            return
        self._asked = self._asked or self._epoch
        self._link.asked[self._identity] = self._asked
        with contextlib.suppress(KeyError):  # another thread knows its end
            self._link.asked.move_to_end(self._identity)
        if len(self._link.asked) > MAX_ASKED:
            self._link.asked.popitem(last=False)


def identity_of(request: Any) -> tuple[str, ...] | None:
    if request.idempotency_key:
        return (request.toolset, request.idempotency_key)
    if request.meta.run_id and request.meta.tool_call_id:
        return (request.toolset, request.meta.run_id, request.meta.tool_call_id)
    return None
