# SPDX-License-Identifier: Apache-2.0
"""What the clients of both kinds share: requests, and what comes of answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, NamedTuple, Union

from ._protos import v1
from ._schema import ServerData, to_json
from .errors import ServiceUnavailable, PegboardError, ToolError

TIMEOUT_S = 30.0
GRACE_S = 10.0  # beyond the timeout of a call: the gateway tells how it ended
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


def may_go_elsewhere(error: PegboardError) -> bool:
    """To another node: this one has not started anything."""
    return isinstance(error, ServiceUnavailable) and error.started is False
