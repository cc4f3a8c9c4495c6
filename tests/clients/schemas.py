# SPDX-License-Identifier: Apache-2.0
"""Run with the installed package: what @tool makes of types, docstrings and values. Prints TAP."""

import dataclasses
import enum
import os
import sys
from typing import Annotated, Any, Generator, Iterator, Literal, NotRequired, Optional, TypedDict, Union

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import tap  # noqa: E402
from pegboard import Call, ToolError, tool  # noqa: E402
from pegboard import _protos, _run  # noqa: E402
from pegboard._schema import Mismatch  # noqa: E402


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.5


@dataclasses.dataclass
class Tree:
    name: str
    children: list["Tree"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Even:
    n: int

    def __post_init__(self):
        if self.n % 2:
            raise ValueError(f"{self.n} is odd")


class Options(TypedDict, total=False):
    depth: int


class Place(TypedDict):
    name: str
    zip: NotRequired[str]


POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.5}},
         "additionalProperties": False, "required": ["x"]}


def same(got, wanted):
    assert got == wanted, f"{got!r}, not {wanted!r}"


def schema_of(hint):
    def function(x):
        return x
    function.__annotations__ = {"x": hint}
    return tool(function).input_schema["properties"]["x"]


def read(hint, text):
    def function(x):
        return x
    function.__annotations__ = {"x": hint}
    return tool(function).arguments(b'{"x": ' + text + b"}")["x"]


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def test_types_have_schemas():
    for hint, schema in [
            (str, {"type": "string"}), (int, {"type": "integer"}), (float, {"type": "number"}),
            (bool, {"type": "boolean"}), (Any, {}), (list[int], {"type": "array", "items": {"type": "integer"}}),
            (list, {"type": "array"}), (dict, {"type": "object"}), (Optional[str], {"type": ["string", "null"]}),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (int | str, {"type": ["integer", "string"]}),
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}), (Literal["a", 1], {"enum": ["a", 1]}),
            (Color, {"type": "string", "enum": ["red", "blue"]}), (Point, POINT),
            (Union[Point, None], {"anyOf": [POINT, {"type": "null"}]}),
            (Options, {"type": "object", "properties": {"depth": {"type": "integer"}}, "additionalProperties": False}),
            (Place, {"type": "object", "properties": {"name": {"type": "string"}, "zip": {"type": "string"}},
                     "additionalProperties": False, "required": ["name"]}),
            (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
                               "items": False, "minItems": 2}),
            (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            (Annotated[int, "how many", {"minimum": 1}], {"type": "integer", "description": "how many", "minimum": 1})]:
        same(schema_of(hint), schema)


def test_a_type_that_contains_itself_is_a_definition():
    @tool
    def walk(tree: Tree) -> str:
        return tree.children[0].name

    same(walk.input_schema["properties"]["tree"], {"$ref": "#/$defs/Tree"})
    same(walk.input_schema["$defs"]["Tree"]["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})
    arguments = walk.arguments(b'{"tree": {"name": "a", "children": [{"name": "b"}]}}')
    same(walk(**arguments), "b")


def test_values_have_the_types_of_the_function():
    for hint, text, value in [
            (float, b"1", 1.0), (int, b"3.0", 3), (Color, b'"blue"', Color.BLUE), (Point, b'{"x": 1}', Point(1.0)),
            (list[Point], b'[{"x": 1, "y": 2}]', [Point(1.0, 2.0)]), (tuple[int, str], b'[1, "a"]', (1, "a")),
            (Point | str, b'"here"', "here"), (Point | str, b'{"x": 2}', Point(2.0)), (Optional[Color], b"null", None)]:
        got = read(hint, text)
        same((got, type(got)), (value, type(value)))


def test_values_of_another_schema_do_not_match():
    for hint, text in [(int, b'"1"'), (int, b"true"), (Color, b'"green"'), (Point, b"{}"), (Point, b'{"x": 1, "z": 1}'),
                       (Literal[1], b"true"), (list[int], b'{"a": 1}')]:
        raises(Mismatch, read, hint, text)


def test_a_class_that_does_not_take_its_values_is_an_error_of_the_tool():
    error = raises(ToolError, read, Even, b'{"n": 3}')
    same((error.code, error.message), ("invalid_arguments", "3 is odd"))


def test_parameters_have_defaults_and_descriptions():
    @tool
    def find(text: str, limit: int = 10, *, point: Point = Point(1, 2), color: Color = Color.RED) -> list[str]:
        """Finds things.

        In all places.

        Args:
            text: what to
                look for
            limit (int): how many
        Returns:
            text: nothing of this
        """
        return [text] * limit

    same(find.description, "Finds things.\n\nIn all places.")
    properties = find.input_schema["properties"]
    same(properties["text"], {"type": "string", "description": "what to look for"})
    same(properties["limit"], {"type": "integer", "description": "how many", "default": 10})
    same(properties["point"]["default"], {"x": 1, "y": 2})
    same(properties["color"]["default"], "red")
    same(find.input_schema["required"], ["text"])
    same(find.output_schema, {"type": "array", "items": {"type": "string"}})


def test_sphinx_describes_parameters_too():
    @tool
    def find(text):
        """Finds.

        :param str text: what to look for
        """
        return text

    same((find.description, find.input_schema["properties"]["text"]), ("Finds.", {"description": "what to look for"}))
    same(find.output_schema, None)


def test_the_call_is_no_argument():
    @tool
    def wait(call: Call, seconds: float):
        return call.wait(seconds)

    same((wait.call_parameter, list(wait.input_schema["properties"])), ("call", ["seconds"]))


def test_results_of_generators_are_what_they_return_or_text():
    @tool
    def text() -> Iterator[str]:
        yield "a"

    @tool
    def number() -> Generator[str, None, int]:
        yield "a"
        return 1

    same((text.output_schema, number.output_schema), ({"type": "string"}, {"type": "integer"}))


def test_what_has_no_schema_is_refused_by_name():
    def odd(x: complex):
        return x

    def many(*xs: int):
        return xs

    def keys(x: dict[int, str]):
        return x

    assert "parameter 'x' of 'odd'" in str(raises(TypeError, tool, odd))
    assert "parameter 'xs' of 'many'" in str(raises(TypeError, tool, many))
    assert "keys of a dict" in str(raises(TypeError, tool, keys))
    raises(ValueError, lambda: tool(name="no name")(odd))


def test_a_tool_is_still_the_function():
    @tool(name="plus", idempotent=True)
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    same((add(1, b=2), add.__name__, add.name, add.__doc__), (3, "add", "plus", "Adds."))


def test_a_call_has_an_answer_whatever_is_raised():
    call = Call(_protos.v1("Call", call_id="c", tool="t"), lambda text, stream: None)
    for error, code in ((SystemExit(3), "internal"), (RecursionError(), "internal"), (ToolError("odd", "half \ud800"), "odd")):
        @tool
        def leave() -> None:
            """Raises it."""
            raise error  # pylint: disable=cell-var-from-loop

        result, failed, _ = _run.run(leave, {}, call, lambda line: None)
        same((result, failed.code), (b"", code))


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
