#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what `pegboard generate --lang python` writes is right for schemas of all kinds: it compiles, mypy --strict accepts it, black
leaves it alone, and any value of its types comes back from decoding and encoding as it was; no text of a declaration becomes code; what
breaks a handler is an error of mypy. test_languages.py runs examples/typed.

    test_python.py PEGBOARD BUILD VALUES"""

import ast
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLE = os.path.join(ROOT, "examples", "typed")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "clients")]
import packages  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD, VALUES = (os.path.abspath(path) for path in sys.argv[2:4])
del sys.argv[2:]
SUITE = os.environ.get("PEG_JSON_SCHEMA_SUITE", os.path.join(os.path.dirname(ROOT), "shared", "data", "json-schema-test-suite"))
KEYWORDS = ("type", "enum", "const", "properties", "required", "items", "additionalProperties", "patternProperties", "allOf", "anyOf",
            "oneOf", "ref", "defs")
STEP_S = 250
BLACK = "black==26.10.1"

def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=STEP_S,
                          check=False, **more)


def interpreter():
    return packages.install_python(BUILD)


def environment(*folders):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"}


def judge(w, *arguments, folders=()):
    """What mypy says."""
    if not shutil.which("mypy"):
        raise Skip("there is no mypy: tools/setup --test installs it")
    return run("mypy", "--strict", "--config-file", os.devnull, "--cache-dir", os.path.join(BUILD, "mypy"), "--python-executable",
               interpreter(), *arguments, cwd=w.directory, env={**os.environ, "MYPYPATH": os.pathsep.join(folders)})


def generate(w, tools, *more):
    """To the package gen."""
    w.write("tools.json", tools)
    w.pegboard("generate", "tools.json", "--lang", "python", "--flat", "--quiet", "--client", "--provider", "--out", "gen", *more).exits(0)


# ---- there and back --------------------------------------------------------------------------------------

HARNESS = """
import json, sys
from gen import types
from pegboard import typed

def canonical(value):
    if isinstance(value, dict):
        return {name: canonical(one) for name, one in value.items()}
    if isinstance(value, list):
        return [canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

n = 0
for line in sys.stdin:
    tool, text = line.rstrip("\\n").split("\\t", 1)
    value = json.loads(text)
    back = typed.encode(getattr(types, f"decode_{tool}_result")(value))
    before, after = (json.dumps(canonical(one), sort_keys=True) for one in (value, back))
    assert before == after, f"{tool}: {before} became {after}"
    n += 1
print(n)
"""


def check_round_trips(w, schemas, n_tries, least):
    """Each schema is the result of a tool."""
    tools = {"toolset": "p", "tools": [{"name": f"t{i}", "description": "d", "output_schema": schema} for i, schema in enumerate(schemas)]}
    generate(w, tools, "--raw")
    for path in glob.glob(os.path.join(w.directory, "gen", "*.py")):
        with open(path, encoding="utf-8") as file:
            compile(file.read(), path, "exec")
    done = judge(w, "-p", "gen")
    check(done.returncode == 0, done.stdout[-3000:])
    with open(os.path.join(w.directory, "values"), "w+", encoding="utf-8") as file:
        made = subprocess.run([VALUES, os.path.join(w.directory, "tools.json"), "1", str(n_tries)], stdout=file, timeout=STEP_S, check=False)
        check(made.returncode == 0, "values could not be made")
        file.seek(0)
        done = subprocess.run([interpreter(), "-c", HARNESS], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=STEP_S, check=False, cwd=w.directory, env=environment(w.directory))
    check(done.returncode == 0, done.stdout[-2000:])
    check(int(done.stdout) >= least, done.stdout, "values are few")
    print(f"# {len(schemas)} schemas, {done.stdout.strip()} values")


@scenario
def values_of_the_schemas_of_the_benchmark_come_back(w):
    schemas = []
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "schema", "schemas", "*.json"))):
        with open(path, encoding="utf-8") as file:
            schemas.append(json.load(file))
    check(len(schemas) > 10, "there are schemas")
    check_round_trips(w, schemas, 200, 300)


@scenario
def values_of_the_schemas_of_the_test_suite_come_back(w):
    schemas = []
    for keyword in KEYWORDS:
        path = os.path.join(SUITE, "tests", "draft2020-12", keyword + ".json")
        if not os.path.exists(path):
            raise Skip(f"there is no JSON-Schema-Test-Suite at {SUITE}")
        with open(path, encoding="utf-8") as file:
            for group in json.load(file):
                text = json.dumps(group["schema"])
                # References to other documents are not compiled without them.
                if not any(word in text for word in ('"$id"', "localhost", '"$ref": "http')):
                    schemas.append(group["schema"])
    check(len(schemas) > 50, len(schemas))
    check_round_trips(w, schemas, 60, 1000)


CONSTRUCTS = r"""
import json
from gen import types
from pegboard import typed

GOOD = {
    "scalars": [{"text": "a", "whole": 1}, {"text": "", "whole": -3, "number": 0.5, "truth": False, "nothing": None, "any": None,
                 "choice": "", "maybe": None}, {"text": "ü", "whole": 2 ** 80, "number": 2 ** 80 + 1, "any": [1], "maybe": 4}],
    "containers": [{}, {"strings": [], "grid": [[1, 0.5], []], "maybe": [None, "a"], "counts": {"a/b": 1}, "open": {"x": [None]},
                    "pairs": [{"k": "v", "other": True}]}],
    "unions": [{}, {"shape": {"kind": "circle", "r": 1}}, {"shape": {"kind": "cube"}}, {"shape": "text"}, {"mixed": True}, {"mixed": 1},
               {"mixed": ["a", None]}, {"nullable": None}, {"nullable": {"kind": "box", "w": 3}},
               {"tree": {"value": 1, "left": {"value": 2}, "children": [{"value": 3, "children": []}]}}],
    "wide": [{}, {"items": [{}, {"a": {"b": {"c": "d"}}}]}],
    "names": [{"int": 1, "2d": "a", "a-b": "b", "a_b": "c", 'quote"\\': "d", "": True, "class": False, "others": "e", "more": "f"}],
}
for name, values in GOOD.items():
    for value in values:
        back = typed.encode(getattr(types, f"decode_{name}_args")(value))
        assert back == value and json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True), (name, value, back)

shape = types.decode_unions_args({"shape": {"kind": "box"}}).shape
assert isinstance(shape, types.UnionsArgsShapeBox) and shape.w is None, shape
assert types.decode_scalars_args({"text": "a", "whole": 3.0}).whole == 3
assert types.decode_scalars_args({"text": "a", "whole": 3}).maybe is typed.MISSING

BAD = [
    ("scalars", {"text": "a"}, "", "the member 'whole' is missing"),
    ("scalars", {"text": 1, "whole": 1}, "/text", "a string is needed, not an integer"),
    ("scalars", {"text": "a", "whole": True}, "/whole", "a whole number is needed, not a boolean"),
    ("scalars", {"text": "a", "whole": 1, "choice": "three"}, "/choice", "it is none of the values that the schema lists"),
    ("scalars", {"text": "a", "whole": 1, "nothing": 0}, "/nothing", "null is needed, not an integer"),
    ("containers", {"grid": [[1], ["x"]]}, "/grid/1/0", "a number is needed, not a string"),
    ("containers", {"counts": {"a/b~": None}}, "/counts/a~1b~0", "a whole number is needed, not null"),
    ("unions", {"shape": {"kind": "line"}}, "/shape", "it is none of the alternatives"),
    ("unions", {"tree": []}, "/tree", "an object is needed, not an array"),
]
for name, value, at, message in BAD:
    try:
        getattr(types, f"decode_{name}_args")(value)
    except typed.DecodeError as error:
        assert (error.at, error.message) == (at, message), (value, error.at, error.message)
    else:
        raise AssertionError(f"{value} was decoded")
for text in '{"text": "a", "whole": 1, "number": 1e999}', '{"text": "a", "whole": -1e999}':
    try:
        types.decode_scalars_args(json.loads(text))
    except typed.RangeError as error:
        assert error.at in ("/number", "/whole"), error.at
    else:
        raise AssertionError(f"{text} was decoded")

without = typed.TypedTool("none", lambda args, call: None, typed.anything, description="d")
assert json.loads(without.message().input_schema) == {"type": "object", "additionalProperties": False}
"""


@scenario
def each_construct_has_its_type_and_what_does_not_fit_is_told_with_its_place(w):
    w.pegboard("generate", os.path.join(HERE, "constructs.yaml"), "--lang", "python", "--flat", "--quiet", "--client", "--provider", "--out",
               "gen").exits(0)
    done = judge(w, "-p", "gen")
    check(done.returncode == 0, done.stdout[-3000:])
    done = run(interpreter(), "-c", CONSTRUCTS, cwd=w.directory, env=environment(w.directory))
    check(done.returncode == 0, done.stdout[-2000:])


# ---- what is written -------------------------------------------------------------------------------------

ESCAPES = ('"""\nimport evil\n"""', "'''\nimport evil\n'''", '\\"""\nimport evil #', '"', '\\', '""', 'a\r\nimport evil\r', "\n\nimport evil\n",
           '\x0cimport evil', '\x01"""', "\u2028import evil\u2029", 'ends in a quote"', 'ends in a backslash\\', "#\nimport evil",
           "\u202eimport evil\u2066")


def hostile(text):
    schema = {"type": "object", "description": text, "required": [text], "additionalProperties": {"description": text, "type": "string"},
              "properties": {text: {"description": text, "enum": [text, "b" + text]}, "u": {"description": text, "oneOf": [
                  {"type": "object", "required": [text], "properties": {text: {"const": text}}},
                  {"type": "object", "required": [text], "properties": {text: {"const": "b" + text}}}]}}}
    return {"service": "s", "toolsets": [{"name": "t", "description": text, "tags": [text], "tools": [{
        "name": "get", "description": "d " + text, "input_schema": schema, "output_schema": schema, "examples": [{text: text}], "server_data": [
            {"kind": "k" + text, "audience": "a", "description": text, "schema": schema}]}]}]}


@scenario
def no_text_of_a_declaration_becomes_code(w):
    shape = None
    for text in ESCAPES:
        generate(w, hostile(text))
        found = {}
        for name in ("__init__.py", "types.py", "provider.py", "client.py"):
            with open(os.path.join(w.directory, "gen", name), encoding="utf-8", newline="") as file:
                tree = ast.parse(file.read())
            check("evil" not in {getattr(node, "id", "") for node in ast.walk(tree)}, text, "became code in", name)
            found[name] = [type(node).__name__ for node in tree.body]
        check(shape in (None, found), text, "changed what the files are made of:", found)
        shape = found
        check_description(w, text)


def check_description(w, text):
    """The toolset's, as Python has it: not a character is lost."""
    with open(os.path.join(w.directory, "gen", "provider.py"), encoding="utf-8", newline="") as file:
        tree = ast.parse(file.read())
    value = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "DESCRIPTION")
    check(ast.literal_eval(value) == text, ast.literal_eval(value), text)


@scenario
def names_are_safe_and_distinct(w):
    words = ["class", "None", "self", "str", "list", "field", "typed", "types", "a-b", "a_b", "2d", "", "__init__", "GetArgs", "match", "others"]
    schema = {"type": "object", "properties": {word: {"type": "array", "items": {"type": "string"}} for word in words},
              "additionalProperties": {"type": "integer"}}
    tools = [{"name": name, "description": "d", "input_schema": schema, "output_schema": schema, "server_data": [{"kind": "a", "audience": "b"}]}
             for name in ("get", "GET", "class", "types", "serve", "2d", "get_args", "get_server_data", "self", "Tools")]
    generate(w, {"toolset": "import", "tools": tools})
    done = judge(w, "-p", "gen")
    check(done.returncode == 0, done.stdout[-3000:])
    done = run(interpreter(), "-c", "from gen import client, provider, types\n"
               f"value = {{word: ['x'] for word in {words!r}}} | {{'more': 1}}\n"
               "from pegboard import typed\nassert typed.encode(types.decode_GET_args(value)) == value", cwd=w.directory, env=environment(w.directory))
    check(done.returncode == 0, done.stdout[-2000:])
    w.pegboard("generate", "tools.json", "--lang", "python", "--service", "2", "--out", "folders").exits(0).mentions(
        "folders/_2/toolsets/import_/types.py")


def changed(**properties):
    return {"toolset": "weather", "tools": [{
        "name": "get", "description": "Gets it.", "input_schema": {"type": "object", "required": list(properties), "properties": properties},
        "output_schema": {"type": "object", "required": ["high"], "properties": {"high": {"type": "number"}}, "additionalProperties": False}}]}


HANDLER = """
from __future__ import annotations
import pegboard
from gen import provider, types

class Weather:
    def get(self, args: types.GetArgs, call: pegboard.Call) -> types.GetResult:
        return types.GetResult(high=float(len(args.city.split())))

provider.make_tools(Weather())
"""


@scenario
def a_schema_that_breaks_the_handler_is_an_error_of_mypy(w):
    w.write("handler.py", HANDLER)
    for city, words in (({"type": "string"}, ""), ({"type": "integer"}, '"int" has no attribute "split"'), (None, 'no attribute "city"'),
                        ({"type": ["string", "null"]}, 'has no attribute "split"')):
        generate(w, changed(**({"city": city} if city else {"town": {"type": "string"}})))
        done = judge(w, "handler.py")
        check((done.returncode == 0) == (not words) and words in done.stdout, city, done.stdout)
    w.write("handler.py", HANDLER.replace("def get(", "def got("))
    generate(w, changed(city={"type": "string"}))
    done = judge(w, "handler.py")
    check(done.returncode == 1 and 'expected "Tools"' in done.stdout, done.stdout)


@scenario
def the_same_schemas_give_the_same_files_and_leave_them_alone(w):
    arguments = ("generate", "tools.json", "--lang", "python", "--out", "gen")
    w.write("tools.json", changed(city={"type": "string"}))
    first = w.pegboard(*arguments).exits(0).stdout
    check(first.splitlines() == [f"gen/weather/toolsets/weather/{name}" for name in ("__init__.py", "types.py", "provider.py")], first)
    w.pegboard(*arguments).exits(0).prints("")
    w.write("tools.json", changed(city={"type": "string", "minLength": 1}))
    w.pegboard(*arguments).exits(0).prints("gen/weather/toolsets/weather/provider.py\n")


@scenario
def a_file_that_a_person_wrote_is_not_replaced(w):
    w.write("tools.json", changed(city={"type": "string"}))
    for language, name in (("c", "types.h"), ("python", "provider.py"), ("ts", "types.ts")):
        arguments = ("generate", "tools.json", "--lang", language, "--flat", "--quiet", "--out", language)
        os.makedirs(os.path.join(w.directory, language))
        w.write(f"{language}/{name}", "# mine\n")
        w.pegboard(*arguments).exits(2).complains(f"{language}/{name} exists, and `pegboard generate` did not write it")
        with open(os.path.join(w.directory, language, name), "r+", encoding="utf-8") as file:
            check(file.read() == "# mine\n", name, "was replaced")
            file.truncate(0)
        w.pegboard(*arguments).exits(0)
        with open(os.path.join(w.directory, language, name), "a", encoding="utf-8") as file:
            file.write("\n")
        w.pegboard(*arguments).exits(0)  # generated, and changed since


def black():
    with packages.made(BUILD, "black") as (place, is_new):
        if is_new:
            done = run("sh", "-c", f"'{sys.executable}' -m venv v && v/bin/pip install -q --disable-pip-version-check {BLACK}", cwd=place)
            if done.returncode:
                raise Skip(f"pip could not install {BLACK}: {done.stdout.strip().splitlines()[-1:]}")
    return os.path.join(place, "v", "bin", "black")


@scenario
def what_is_written_is_formatted(w):
    for path in (os.path.join(EXAMPLE, "forecast.yaml"), os.path.join(HERE, "constructs.yaml")):
        w.pegboard("generate", path, "--lang", "python", "--client", "--provider", "--quiet", "--out", "gen").exits(0)
    done = run(black(), "--check", "--diff", os.path.join(w.directory, "gen"))
    check(done.returncode == 0 and "8 files would be left unchanged" in done.stdout, done.stdout[-3000:])


# ---- the example -----------------------------------------------------------------------------------------


@scenario
def mypy_accepts_the_example(w):
    w.pegboard("generate", os.path.join(EXAMPLE, "forecast.yaml"), "--lang", "python", "--client", "--provider", "--quiet", "--out", "gen").exits(0)
    for name in ("provider.py", "client.py"):
        shutil.copy(os.path.join(EXAMPLE, "python", name), os.path.join(w.directory, "example_" + name))
        done = judge(w, "example_" + name, folders=["gen"])
        check(done.returncode == 0, done.stdout[-3000:])


main()
