# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of Python's types, and values of these types from JSON and back.

A type is read once, when a tool is made, into a Shape: its schema, and a function that makes a value of it from JSON
that fits the schema. The gateway has checked the arguments by then; the functions only decide between the members of
a union, for which they raise Mismatch.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any, Callable, NamedTuple, Union

Schema = dict[str, Any]
Reader = Callable[[Any], Any]
ANY: Schema = {}
SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
LISTS = (list, tuple, set, frozenset)


class Mismatch(ValueError):
    """A value is none of the type."""


@dataclasses.dataclass
class Shape:
    schema: Schema
    read: Reader


class Shapes:
    """Reads the types of one schema. A type that contains itself is a definition in `defs`; others stand where they
    are used."""

    def __init__(self) -> None:
        self.defs: dict[str, Schema] = {}
        self._open: list[Any] = []  # those that are being read, outermost first
        self._recursive: dict[Any, str] = {}
        self._readers: dict[Any, Reader] = {}

    def of(self, hint: Any) -> Shape:
        if hint is Any or hint is object:
            return Shape(ANY, lambda value: value)
        if hint is None:
            hint = type(None)
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:  # which cannot be hashed with a dict among its notes
            return self._annotated(hint)
        if hint in SIMPLE:
            return _simple(hint)
        if origin is typing.Literal:
            return _choice(list(typing.get_args(hint)), lambda value: value)
        if origin in (Union, types.UnionType):
            return self._union(typing.get_args(hint))
        if hint in LISTS or origin in LISTS or _is_abstract(origin or hint, "Sequence", "Iterable", "Collection"):
            return self._list(origin or hint, typing.get_args(hint))
        if hint is dict or origin is dict or _is_abstract(origin or hint, "Mapping", "MutableMapping"):
            return self._map(typing.get_args(hint))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return _choice([member.value for member in hint], hint)
        if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
            return self._object(hint)
        raise TypeError(f"{hint!r} has no JSON Schema: use str, int, float, bool, None, list, dict, Optional, Union, "
                        "Literal, an Enum, a dataclass or a TypedDict")

    def finish(self, schema: Schema) -> Schema:
        return {**schema, "$defs": self.defs} if self.defs else schema

    # ---- types with types in them ----

    def _annotated(self, hint: Any) -> Shape:
        inner, *notes = typing.get_args(hint)
        shape = self.of(inner)
        more: Schema = {}
        for note in notes:
            if isinstance(note, str):
                more["description"] = note
            elif isinstance(note, dict):  # keywords of JSON Schema
                more.update(note)
        return Shape({**shape.schema, **more}, shape.read)

    def _union(self, members: tuple[Any, ...]) -> Shape:
        shapes = [self.of(member) for member in members]
        names = [shape.schema.get("type") for shape in shapes]
        schema: Schema = {"anyOf": [shape.schema for shape in shapes]}
        if all(isinstance(name, str) and set(shape.schema) == {"type"} for name, shape in zip(names, shapes)):
            schema = {"type": names}

        def read(value: Any) -> Any:
            for shape in shapes:
                try:
                    return shape.read(value)
                except Mismatch:
                    continue
            raise Mismatch

        return Shape(schema, read)

    def _list(self, kind: Any, members: tuple[Any, ...]) -> Shape:
        if kind is tuple and members and members[-1] is not Ellipsis:
            return self._tuple(members)
        item = self.of(members[0]) if members else Shape(ANY, lambda value: value)
        make = kind if kind in LISTS else list
        schema: Schema = {"type": "array", "items": item.schema} if item.schema else {"type": "array"}
        if kind in (set, frozenset):
            schema["uniqueItems"] = True

        def read(value: Any) -> Any:
            return make(item.read(one) for one in _need(value, list))

        return Shape(schema, read)

    def _tuple(self, members: tuple[Any, ...]) -> Shape:
        shapes = [self.of(member) for member in members]

        def read(value: Any) -> Any:
            if len(_need(value, list)) != len(shapes):
                raise Mismatch
            return tuple(shape.read(one) for shape, one in zip(shapes, value))

        return Shape({"type": "array", "prefixItems": [shape.schema for shape in shapes], "items": False,
                      "minItems": len(shapes)}, read)

    def _map(self, members: tuple[Any, ...]) -> Shape:
        if members and members[0] not in (str, Any):
            raise TypeError(f"the keys of a dict are str in JSON, not {members[0]!r}")
        item = self.of(members[1]) if members else Shape(ANY, lambda value: value)

        def read(value: Any) -> Any:
            return {name: item.read(one) for name, one in _need(value, dict).items()}

        schema: Schema = {"type": "object"}
        return Shape({**schema, "additionalProperties": item.schema} if item.schema else schema, read)

    # ---- objects ----

    def _object(self, kind: Any) -> Shape:
        def late(value: Any) -> Any:
            return self._readers[kind](value)

        if kind in self._open:
            name = self._recursive.setdefault(kind, kind.__name__)
            return Shape({"$ref": f"#/$defs/{name}"}, late)
        self._open.append(kind)
        try:
            shape = self._dataclass(kind) if dataclasses.is_dataclass(kind) else self._typed_dict(kind)
        finally:
            self._open.pop()
        self._readers[kind] = shape.read
        if kind in self._recursive:
            self.defs[self._recursive[kind]] = shape.schema
            return Shape({"$ref": f"#/$defs/{self._recursive[kind]}"}, late)
        return shape

    def _dataclass(self, kind: Any) -> Shape:
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = [one for one in dataclasses.fields(kind) if one.init]
        shapes = {one.name: self.of(hints[one.name]) for one in fields}
        properties: dict[str, Schema] = {}
        required = []
        for one in fields:
            properties[one.name] = shapes[one.name].schema
            if one.default is not dataclasses.MISSING:
                properties[one.name] = with_default(properties[one.name], one.default)
            elif one.default_factory is dataclasses.MISSING:
                required.append(one.name)

        def read(value: Any) -> Any:
            return kind(**_members(value, shapes, required))

        return Shape(object_schema(properties, required), read)

    def _typed_dict(self, kind: Any) -> Shape:
        hints = typing.get_type_hints(kind, include_extras=True)
        shapes = {name: self.of(_unwrapped(hint)) for name, hint in hints.items()}
        required = [name for name in hints if name in kind.__required_keys__]

        def read(value: Any) -> Any:
            return _members(value, shapes, required)

        return Shape(object_schema({name: shape.schema for name, shape in shapes.items()}, required), read)


def object_schema(properties: dict[str, Schema], required: list[str]) -> Schema:
    """Closed: what a model sends and the function does not take is an error that it reads."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def with_default(schema: Schema, default: Any) -> Schema:
    try:
        return {**schema, "default": to_json(default)}
    except TypeError:  # a value that JSON has not: the function knows it
        return schema


class ServerData(NamedTuple):
    """Goes beside a result to the caller's program, never to a model."""

    kind: str
    audience: str
    value: Any


class Struct:
    """A class that `pegboard generate` wrote: its attributes are members of JSON, perhaps by other names."""

    __slots__ = ()

    def _encode(self) -> Any:
        raise NotImplementedError

    def _server_data(self) -> list[ServerData]:
        return []


def to_json(value: Any) -> Any:
    """What json.dumps takes. TypeError: there is no JSON for it."""
    if isinstance(value, Struct):
        return to_json(value._encode())  # pylint: disable=protected-access
    if value is None or isinstance(value, (str, int, float, bool)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {_key(name): to_json(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(one) for one in value]
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _key(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise TypeError(f"the keys of a dict are str in JSON, not {type(name).__name__}")


# ---- simple ones ----


def _simple(kind: Any) -> Shape:
    def read(value: Any) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # 3.0 is an integer in JSON Schema
        if isinstance(value, bool) and kind is not bool:
            raise Mismatch
        return _need(value, kind)

    return Shape({"type": SIMPLE[kind]}, read)


def _choice(values: list[Any], make: Reader) -> Shape:
    def read(value: Any) -> Any:
        if not any(value == one and type(value) is type(one) for one in values):
            raise Mismatch
        return make(value)

    for one in values:
        if type(one) not in SIMPLE:
            raise TypeError(f"{one!r} is no choice in JSON: use str, int, float, bool or None")
    kinds = {SIMPLE[type(one)] for one in values}
    return Shape({"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}, read)


def _need(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise Mismatch
    return value


def _members(value: Any, shapes: dict[str, Shape], required: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or not set(required) <= set(value) <= set(shapes):
        raise Mismatch
    return {name: shapes[name].read(one) for name, one in value.items()}


def _unwrapped(hint: Any) -> Any:
    """Without Required and NotRequired, which __required_keys__ tells."""
    name = getattr(typing.get_origin(hint), "_name", "")
    return typing.get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def _is_abstract(kind: Any, *names: str) -> bool:
    return getattr(kind, "__module__", "") == "collections.abc" and getattr(kind, "__name__", "") in names
