# SPDX-License-Identifier: Apache-2.0
"""`@tool`: a typed function becomes a schema and a handler."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import json
import re
import typing
from typing import Any, Callable, Generic, ParamSpec, TypeVar, overload

from . import _protos
from ._call import Call
from ._schema import Mismatch, Schema, Shape, Shapes, object_schema, to_json, with_default
from .errors import ToolError

P = ParamSpec("P")
R = TypeVar("R")
SECTION = re.compile(r"^\s*(args|arguments|parameters|returns?|yields?|raises|examples?)\s*:\s*$", re.I)
NAME = re.compile(r"^[A-Za-z0-9_.:/-]{1,256}$")
MADE: list["Tool[Any, Any]"] = []  # by @tool, for a serve() without a list


class Tool(Generic[P, R]):
    """A function that can be offered. It is called as the function is."""

    def __init__(self, function: Callable[P, R], *, name: str | None = None, description: str | None = None,
                 tags: typing.Sequence[str] = (), idempotent: bool = False, read_only: bool = False,
                 destructive: bool = False, timeout: float | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = check_name(name or function.__name__)
        text, notes = read_docstring(inspect.getdoc(function) or "")
        self.description = description if description is not None else text
        self.options = {"tags": list(tags), "idempotent": idempotent, "read_only": read_only,
                        "destructive": destructive, "timeout_ms": int(1000 * (timeout or 0))}
        hints = typing.get_type_hints(function, include_extras=True)
        self.call_parameter: str | None = None
        self._shapes: dict[str, Shape] = {}
        shapes = Shapes()
        properties: dict[str, Schema] = {}
        required = []
        for parameter in inspect.signature(function).parameters.values():
            hint = hints.get(parameter.name, Any)
            if hint is Call:
                self.call_parameter = parameter.name
                continue
            properties[parameter.name] = self._read_parameter(parameter, hint, shapes, notes)
            if parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
        self.input_schema = shapes.finish(object_schema(properties, required))
        self.output_schema = self._read_result(hints)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def arguments(self, payload: bytes) -> dict[str, Any]:
        """What the function gets for the payload of a call. Mismatch: that is for another schema than ours. ToolError:
        a class among the types does not take its values."""
        members = json.loads(payload or b"{}")
        if not isinstance(members, dict) or not set(members) <= set(self._shapes):
            raise Mismatch
        try:
            return {name: self._shapes[name].read(value) for name, value in members.items()}
        except Mismatch:
            raise
        except (TypeError, ValueError) as error:
            raise ToolError("invalid_arguments", str(error)) from None

    def message(self) -> Any:
        """As it is registered."""
        output = json.dumps(self.output_schema).encode() if self.output_schema else b""
        return _protos.v1("Tool", name=self.name, description=self.description,
                          input_schema=json.dumps(self.input_schema).encode(), output_schema=output, **self.options)

    # ---- reading the function ----

    def _read_parameter(self, parameter: inspect.Parameter, hint: Any, shapes: Shapes,
                        notes: dict[str, str]) -> Schema:
        where = f"parameter '{parameter.name}' of '{self.name}'"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{where}: arguments come by name, so *{parameter.name} and those before / cannot be given")
        try:
            shape = shapes.of(hint)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
        self._shapes[parameter.name] = shape
        schema = shape.schema
        if parameter.name in notes and "description" not in schema:
            schema = {**schema, "description": notes[parameter.name]}
        if parameter.default is not inspect.Parameter.empty:
            schema = with_default(schema, parameter.default)
        return schema

    def _read_result(self, hints: dict[str, Any]) -> Schema | None:
        """None: results are not checked."""
        if "return" not in hints:
            return None
        hint = hints["return"]
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            hint = _returned_by_generator(hint)
        shapes = Shapes()
        try:
            return shapes.finish(shapes.of(hint).schema) or None
        except TypeError as error:
            raise TypeError(f"the result of '{self.name}': {error}") from None


def _returned_by_generator(hint: Any) -> Any:
    """What it yields is text, and the result if it returns nothing."""
    members = typing.get_args(hint)
    is_whole = typing.get_origin(hint) is collections.abc.Generator and len(members) == 3
    return members[2] if is_whole and members[2] not in (None, type(None)) else str


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(*, name: str | None = ..., description: str | None = ..., tags: typing.Sequence[str] = ...,
         idempotent: bool = ..., read_only: bool = ..., destructive: bool = ...,
         timeout: float | None = ...) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a tool of a typed function: `@tool`, or `@tool(name="...", idempotent=True)`.

    The schema comes from the type hints, the description from the docstring, and descriptions of parameters from its
    "Args:" section or from `Annotated[int, "how many", {"minimum": 1}]`. A parameter of the type Call gets the running
    call. The function may be async, and may yield text: that goes to callers who stream, and the result is what it
    returns, or all of the text. TypeError: a type has no JSON Schema.
    """
    if function is None:
        return lambda later: _make(later, options)
    return _make(function, options)


def _make(function: Any, options: dict[str, Any]) -> Tool[Any, Any]:
    made: Tool[Any, Any] = Tool(function, **options)
    MADE.append(made)
    return made


def check_name(name: str) -> str:
    if not NAME.match(name):
        raise ValueError(f"'{name}' is no name of a tool: 1 to 256 of A-Z a-z 0-9 _ . : / -")
    return name


def encode_result(value: Any) -> bytes:
    return json.dumps(to_json(value), ensure_ascii=False, allow_nan=False).encode()


# ---- docstrings ----


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Its text before the first section, and what it says of parameters: Google's "Args:" or Sphinx's ":param x:"."""
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if SECTION.match(line) or line.lstrip().startswith(":param")),
               len(lines))
    notes = {found[1]: found[2].strip() for found in re.finditer(r"^\s*:param (?:\S+ )?(\w+):(.*)$", text, re.M)}
    notes.update(_google_notes(lines[end:]))
    return "\n".join(lines[:end]).strip(), notes


def _google_notes(lines: list[str]) -> dict[str, str]:
    notes: dict[str, str] = {}
    last, depth, is_inside = "", 0, False
    for line in lines:
        section = SECTION.match(line)
        if section:
            is_inside = section[1].lower() in ("args", "arguments", "parameters")
            depth = 0
            continue
        found = re.match(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$", line)
        if is_inside and found and (not depth or len(found[1]) <= depth):
            last, depth = found[2], len(found[1])
            notes[last] = found[3].strip()
        elif is_inside and last and line.strip():
            notes[last] += " " + line.strip()
    return notes
