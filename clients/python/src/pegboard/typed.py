# SPDX-License-Identifier: Apache-2.0
"""What `pegboard generate --lang python` writes code for: classes of values, functions that make them of JSON, tools of
typed methods, and typed calls. docs/typed-tools.md has the rest.

A decoder takes a value of JSON and its place, a JSON Pointer, and returns what it is for Python, or raises a
DecodeError. It checks kinds and required members; the gateway has checked the schema.
"""

from __future__ import annotations

import asyncio
import enum
import inspect
import json
import math
from typing import (TYPE_CHECKING, Any, Awaitable, Callable, Collection, Literal, Mapping, Sequence,
                    TypeVar, Union)

from . import _protos, _requests as requests
from ._call import Call
from ._requests import TIMEOUT_S, Reply
from ._schema import Mismatch, ServerData, Struct, to_json
from ._tool import Tool, check_name
from .errors import ToolError

if TYPE_CHECKING:
    from . import aio
    from ._client import Client

__all__ = ["Answer", "DecodeError", "Decoder", "Kind", "MISSING", "Missing", "RangeError", "Reply", "ServerData",
           "ServerDataList", "Struct", "TIMEOUT_S", "TypedTool", "add_server_data", "anything", "array_of", "boolean", "by_kind", "call",
           "call_async", "choice", "encode", "integer", "is_tagged", "kind_of", "map_of", "members", "null", "nullable",
           "number", "optional", "others", "possible", "required", "string"]

T = TypeVar("T")
A = TypeVar("A")
Answer = Union[T, Awaitable[T]]  # of a method that is async or not
Decoder = Callable[[object, str], T]
Kind = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
ServerDataList = Sequence[ServerData]
NO_ARGUMENTS = '{"type":"object","additionalProperties":false}'


class Missing(enum.Enum):
    """What an attribute is that JSON does not have, where None is null."""

    MISSING = 0


MISSING = Missing.MISSING


class DecodeError(Mismatch):
    """A value is not of its type. `at` is its JSON Pointer."""

    def __init__(self, at: str, message: str) -> None:
        super().__init__(f"{at or 'the value'}: {message}")
        self.at = at
        self.message = message


class RangeError(ValueError):
    """A number is too large for its type. `at` is its JSON Pointer."""

    def __init__(self, at: str) -> None:
        super().__init__(f"{at or 'the value'}: the number is too large")
        self.at = at


def encode(value: Any) -> Any:
    """What json.dumps takes. TypeError: there is no JSON for it."""
    return to_json(value)


# ---- scalars ----


def kind_of(value: object) -> Kind:
    """Of a value of JSON. 3.0 is an integer, as in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or isinstance(value, float) and value.is_integer():
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def string(value: object, at: str) -> str:
    if isinstance(value, str):
        return value
    raise DecodeError(at, f"a string is needed, not {_name(value)}")


def boolean(value: object, at: str) -> bool:
    if isinstance(value, bool):
        return value
    raise DecodeError(at, f"true or false is needed, not {_name(value)}")


def integer(value: object, at: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isinf(value):
        raise RangeError(at)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise DecodeError(at, f"a whole number is needed, not {_name(value)}")


def number(value: object, at: str) -> float:
    """A whole number stays one, so that it loses nothing."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and math.isinf(value):
            raise RangeError(at)
        return value
    raise DecodeError(at, f"a number is needed, not {_name(value)}")


def _null(value: object, at: str) -> None:
    if value is not None:
        raise DecodeError(at, f"null is needed, not {_name(value)}")


def _same(decode: Decoder[T]) -> Decoder[T]:
    return decode


null = _same(_null)  # mypy lets no one use the result of a function that is known to return None


def anything(value: object, _: str) -> Any:
    return value


def choice(value: object, at: str, values: Sequence[T]) -> T:
    for one in values:
        if one == value:
            return one
    raise DecodeError(at, "it is none of the values that the schema lists")


def _name(value: object) -> str:
    kind = kind_of(value)
    return kind if kind == "null" else f"an {kind}" if kind[0] in "aio" else f"a {kind}"


# ---- what holds others ----


def nullable(decode: Decoder[T]) -> Decoder[T | None]:
    return lambda value, at: None if value is None else decode(value, at)


def array_of(decode: Decoder[T]) -> Decoder[list[T]]:
    def read(value: object, at: str) -> list[T]:
        if not isinstance(value, list):
            raise DecodeError(at, f"an array is needed, not {_name(value)}")
        return [decode(one, f"{at}/{n}") for n, one in enumerate(value)]

    return read


def map_of(decode: Decoder[T]) -> Decoder[dict[str, T]]:
    return lambda value, at: {name: decode(one, below(at, name)) for name, one in members(value, at).items()}


def members(value: object, at: str) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise DecodeError(at, f"an object is needed, not {_name(value)}")


def below(at: str, name: str) -> str:
    """The pointer of a member."""
    return f"{at}/{name.replace('~', '~0').replace('/', '~1')}"


def required(of: Mapping[str, object], name: str, at: str, decode: Decoder[T]) -> T:
    if name not in of:
        raise DecodeError(at, f"the member '{name}' is missing")
    return decode(of[name], below(at, name))


def optional(of: Mapping[str, object], name: str, at: str, decode: Decoder[T]) -> T | None:
    """None: there is no such member. The type does not take null."""
    return decode(of[name], below(at, name)) if name in of else None


def possible(of: Mapping[str, object], name: str, at: str, decode: Decoder[T]) -> T | Missing:
    """The same where null is a value."""
    return decode(of[name], below(at, name)) if name in of else MISSING


def others(of: Mapping[str, object], at: str, names: Collection[str], decode: Decoder[T]) -> dict[str, T]:
    """The members that are none of these."""
    return {name: decode(one, below(at, name)) for name, one in of.items() if name not in names}


def is_tagged(value: object, tag: str, *values: str) -> bool:
    """Is it an object whose member `tag` is one of the values?"""
    return isinstance(value, dict) and value.get(tag) in values


def add_server_data(data: list[ServerData], kind: str, audience: str, value: Any) -> None:
    data.append(ServerData(kind, audience, value))


def by_kind(data: ServerDataList) -> dict[str, object]:
    """The first of each kind."""
    return {one.kind: one.value for one in reversed(data)}


# ---- tools ----


class TypedTool(Tool[Any, Any]):
    """A tool whose schema is given, and whose function takes what `decode` makes of the arguments, and the call.
    Schemas and examples are JSON texts; "": there is none."""

    def __init__(self, name: str, run: Callable[[A, Call], Answer[Any]],  # pylint: disable=super-init-not-called
                 decode: Decoder[A], *, description: str, input_schema: str = "", output_schema: str = "",
                 examples: str = "", version: str = "", tags: Sequence[str] = (), timeout_ms: int = 0,
                 idempotent: bool = False, read_only: bool = False, destructive: bool = False,
                 additive: bool = False) -> None:
        self.name = check_name(name)
        self.function = _function_of(run)
        self.call_parameter = "call"
        self._decode = decode
        self._fields = {
            "description": description, "input_schema": (input_schema or NO_ARGUMENTS).encode(),
            "output_schema": output_schema.encode(), "examples": examples.encode(), "version": version,
            "tags": list(tags), "timeout_ms": timeout_ms, "idempotent": idempotent, "read_only": read_only,
            "destructive": destructive, "additive": additive}

    def arguments(self, payload: bytes) -> dict[str, Any]:
        try:
            return {"args": self._decode(json.loads(payload or b"{}"), "")}
        except RangeError as error:
            raise ToolError("invalid_arguments", str(error)) from None

    def message(self) -> Any:
        return _protos.v1("Tool", name=self.name, **self._fields)


def _function_of(run: Callable[[A, Call], Answer[Any]]) -> Callable[..., Any]:
    """It is called with names, which the method may have chosen otherwise."""
    if inspect.iscoroutinefunction(run):
        async def function_async(args: A, call: Call) -> Any:
            return await _awaited(run(args, call))

        return function_async

    def function(args: A, call: Call) -> Any:
        value = run(args, call)
        return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value

    return function


async def _awaited(value: Any) -> Any:
    return await value


# ---- calls ----


def call(client: Client, toolset: str, tool: str, args: Struct, *, timeout: float | None = TIMEOUT_S,
         idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> Reply:
    """What the tool returns, undecoded, with its server-data; as Client.call() otherwise."""
    request = requests.call_request(toolset, tool, requests.text_of(args), timeout, idempotency_key, metadata)
    return client.reply(request, timeout)


async def call_async(client: aio.Client, toolset: str, tool: str, args: Struct, *, timeout: float | None = TIMEOUT_S,
                     idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> Reply:
    """The same for asyncio."""
    request = requests.call_request(toolset, tool, requests.text_of(args), timeout, idempotency_key, metadata)
    return await client.reply(request, timeout)
