# SPDX-License-Identifier: Apache-2.0
"""Runs the function of a tool for one call, whatever kind of function it is."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from typing import Any, Callable, Iterator, NamedTuple

from . import _protos
from ._call import Call
from ._schema import Struct
from ._tool import Tool, encode_result
from .errors import ToolError

RESULT_BYTES_MAX = 8 << 20  # the gateway's limit


class Outcome(NamedTuple):
    """How a call ended."""

    result: bytes  # JSON
    error: Any = None  # a pegboard.v1.ToolError
    server_data: tuple[Any, ...] = ()  # pegboard.v1.ServerData

    @property
    def size(self) -> int:
        return len(self.result) + sum(len(one.data) for one in self.server_data)


def is_async(tool: Tool[Any, Any]) -> bool:
    return inspect.iscoroutinefunction(tool.function) or inspect.isasyncgenfunction(tool.function)


def run(tool: Tool[Any, Any], arguments: dict[str, Any], call: Call, log: Callable[[str], None]) -> Outcome:
    try:
        value = tool.function(**arguments)
        return _result(_drain(value, call) if inspect.isgenerator(value) else value)
    except BaseException as error:  # SystemExit, too: the call needs an answer  # pylint: disable=broad-except
        return failure(error, call, log)


async def run_async(tool: Tool[Any, Any], arguments: dict[str, Any], call: Call,
                    log: Callable[[str], None]) -> Outcome:
    """On the loop. It is canceled when the call is, and has an outcome all the same."""
    try:
        value = tool.function(**arguments)
        return _result(await (_drain_async(value, call) if inspect.isasyncgen(value) else value))
    except asyncio.CancelledError:
        return failure(ToolError("canceled", "the call was canceled"), call, log)
    except BaseException as error:  # SystemExit, too: the call needs an answer  # pylint: disable=broad-except
        return failure(error, call, log)


def _drain(generator: Any, call: Call) -> Any:
    """What it returns, or else all the text that it has yielded."""
    said = []
    while True:
        try:
            said.append(str(next(generator)))
        except StopIteration as end:
            return "".join(said) if end.value is None else end.value
        call.say(said[-1])
        if call.is_canceled:
            generator.close()
            raise ToolError("canceled", "the call was canceled")


async def _drain_async(generator: Any, call: Call) -> str:
    said = []
    async for text in generator:
        said.append(str(text))
        call.say(said[-1])
    return "".join(said)


def _result(value: Any) -> Outcome:
    text = encode_result(value)
    if len(text) > RESULT_BYTES_MAX:
        raise ToolError("limit_exceeded", f"the result has {len(text)} bytes, and {RESULT_BYTES_MAX} are allowed")
    return Outcome(text, None, tuple(_server_data_of(value)))


def _server_data_of(value: Any) -> Iterator[Any]:
    for one in value._server_data() if isinstance(value, Struct) else ():  # pylint: disable=protected-access
        yield _protos.v1("ServerData", kind=one.kind, audience=one.audience, data=encode_result(one.value))


def _clean(text: Any) -> str:
    """What protobuf takes: a string without halves of characters."""
    return str(text).encode(errors="replace").decode()


def failure(error: BaseException, call: Call, log: Callable[[str], None]) -> Outcome:
    if isinstance(error, ToolError):
        return Outcome(b"", _protos.v1("ToolError", code=_clean(error.code), message=_clean(error.message)))
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    log(f"{call.tool}: call {call.id} broke\n{trace.rstrip()}")
    # Not its message, which may have what callers must not see: raise a ToolError to tell them something.
    return Outcome(b"", _protos.v1("ToolError", code="internal", message=f"the tool broke: {type(error).__name__}"))
