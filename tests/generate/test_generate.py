#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what `pegboard generate` writes is right for schemas of all kinds: it compiles without a warning at the strictest flags of two
compilers, and any value of its types comes back from decoding and encoding as it was, under sanitizers; and what breaks a handler does
not compile.

    test_generate.py PEGBOARD BUILD VALUES SANITIZE COMPILER..."""

import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from scenario import Skip, check, main, scenario  # noqa: E402

BUILD, VALUES, SANITIZE, COMPILER = sys.argv[2], sys.argv[3], sys.argv[4].split(), sys.argv[5:]
del sys.argv[2:]
SUITE = os.environ.get("PEG_JSON_SCHEMA_SUITE", os.path.join(os.path.dirname(ROOT), "shared", "data", "json-schema-test-suite"))
KEYWORDS = ("type", "enum", "const", "properties", "required", "items", "additionalProperties", "patternProperties", "allOf", "anyOf",
            "oneOf", "ref", "defs", "anchor", "prefixItems", "if-then-else", "boolean_schema", "not", "dependentSchemas")
STRICT = ("-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wcast-align -Wstrict-prototypes "
          "-Wmissing-prototypes -Wundef -Wpointer-arith -Wwrite-strings -Wformat=2 -Wvla -Werror").split()
EVERYTHING = ("-Weverything -Wno-padded -Wno-declaration-after-statement -Wno-unknown-warning-option -Wno-unsafe-buffer-usage").split()


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250, check=False, **more)


def compile_strictly(folder, *names):
    """With each compiler there is."""
    compilers = [c for c in ("gcc", "clang-14", "clang") if shutil.which(c)][:2]
    for compiler in compilers:
        flags = STRICT + (EVERYTHING if "clang" in compiler else ["-Wlogical-op", "-Wduplicated-cond"])
        for name in names:
            done = run(compiler, *flags, "-isystem", os.path.join(ROOT, "include"), "-fsyntax-only", os.path.join(folder, name))
            check(done.returncode == 0, done.stdout[:3000])


def link(folder, program, *sources, flags=()):
    libraries = os.path.join(BUILD, "src")
    command = [*COMPILER, "-O0", *flags, "-I", os.path.join(ROOT, "include"), "-I", folder, *sources, "-L", libraries, "-lpegboard",
               f"-Wl,-rpath,{libraries}", "-o", program]
    done = run(*command)
    check(done.returncode == 0, done.stdout[:3000])


# ---- there and back --------------------------------------------------------------------------------------

HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "types.h"

static void differ(const char *line, const char *why, const char *got)
{
    printf("%s\n  %s: %s\n", line, why, got);
    exit(1);
}

#define TRIP(type)                                                                                 \
    do {                                                                                           \
        type result_;                                                                              \
        if (type##_decode(value, arena, &result_, &error))                                         \
            differ(line, error.where, error.message);                                              \
        type##_encode(&result_, encoder);                                                          \
    } while (0)

static void encode_line(const char *line, const peg_json *value, peg_arena *arena, peg_encoder *encoder)
{
    peg_error error;

    switch (atoi(line + 1)) {
@CASES@
    }
}

int main(void)
{
    static char line[1 << 20];
    peg_encoder *encoder = peg_encoder_new();
    unsigned n = 0;

    while (fgets(line, sizeof(line), stdin)) {
        peg_arena *arena = peg_arena_new();
        const peg_json *value, *back;
        char *before = NULL, *after = NULL;
        peg_error error;
        peg_str text;

        line[strcspn(line, "\n")] = 0;
        if (peg_arena_parse(arena, peg_cstr(strchr(line, '\t') + 1), &value, &error))
            differ(line, "input", error.message);
        encode_line(line, value, arena, encoder);
        if (peg_encoder_text(encoder, &text, &error) || peg_arena_parse(arena, text, &back, &error))
            differ(line, "encoding", error.message);
        if (peg_json_canonical(value, &before, NULL, &error) || peg_json_canonical(back, &after, NULL, &error))
            differ(line, "canonical", error.message);
        if (strcmp(before, after) != 0)
            differ(line, "became", after);
        peg_free(before);
        peg_free(after);
        peg_encoder_clear(encoder);
        peg_arena_free(arena);
        n++;
    }
    peg_encoder_free(encoder);
    printf("%u values\n", n);
    return 0;
}
"""


def make_values(w, path, n_tries):
    """Random values of the types in tools.json, as "t<number of the tool>, tab, JSON"."""
    with open(path, "w", encoding="utf-8") as file:
        made = subprocess.run([VALUES, os.path.join(w.directory, "tools.json"), "1", str(n_tries)], stdout=file, timeout=250, check=False)
    check(made.returncode == 0, "values could not be made")


def check_round_trips(w, schemas, least, make):
    """Each schema is the result of a tool; `make` writes values to a file. As many come back at least."""
    tools = [{"name": f"t{i}", "description": "d", "output_schema": schema} for i, schema in enumerate(schemas)]
    w.write("tools.json", {"toolset": "p", "tools": tools})
    w.pegboard("generate", "tools.json", "--flat", "--raw", "--quiet", "--out", "gen").exits(0).is_silent()
    folder = os.path.join(w.directory, "gen")
    compile_strictly(folder, "types.c")
    cases = "\n".join(f"    case {i}: TRIP(p_t{i}_result); break;" for i in range(len(schemas)))
    w.write("harness.c", HARNESS.replace("@CASES@", cases))
    program = os.path.join(w.directory, "harness")
    flags = SANITIZE or ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    link(folder, program, os.path.join(w.directory, "harness.c"), os.path.join(folder, "types.c"), flags=flags)
    make(os.path.join(w.directory, "values"))
    with open(os.path.join(w.directory, "values"), encoding="utf-8") as file:
        done = run(program, stdin=file, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    check(done.returncode == 0, done.stdout[-2000:])
    check(int(done.stdout.split()[0]) >= least, done.stdout, "values are few")
    print(f"# {len(schemas)} schemas,", done.stdout.strip())


@scenario
def values_of_the_schemas_of_the_benchmark_come_back(w):
    schemas = []
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "schema", "schemas", "*.json"))):
        with open(path, encoding="utf-8") as file:
            schemas.append(json.load(file))
    check(len(schemas) > 10, "there are schemas")
    check_round_trips(w, schemas, 300, lambda path: make_values(w, path, 300))


def groups_of_suite(keyword):
    path = os.path.join(SUITE, "tests", "draft2020-12", keyword + ".json")
    if not os.path.exists(path):
        raise Skip(f"there is no JSON-Schema-Test-Suite at {SUITE}")
    with open(path, encoding="utf-8") as file:
        # References to other documents are not compiled without them.
        return [group for group in json.load(file)
                if not any(word in json.dumps(group["schema"]) for word in ('"$id"', "localhost", '"$ref": "http'))]


@scenario
def values_of_the_schemas_of_the_test_suite_come_back(w):
    schemas = [group["schema"] for keyword in KEYWORDS for group in groups_of_suite(keyword)]
    check(len(schemas) > 100, len(schemas))
    check_round_trips(w, schemas, 3000, lambda path: make_values(w, path, 60))


KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


def with_kind(schema, kind):
    """The schema for values of one kind, which keeps members that it does not name."""
    kind = {} if "type" in schema else {"type": kind}
    is_silent = not {"additionalProperties", "unevaluatedProperties"} & set(schema)
    return {**schema, **kind, **({"additionalProperties": True} if is_silent else {})}


@scenario
def valid_instances_of_the_test_suite_come_back(w):
    schemas, lines = [], []
    for keyword in KEYWORDS:
        for group in groups_of_suite(keyword):
            by_kind = {}
            if not isinstance(group["schema"], dict) or '"$ref": "#"' in json.dumps(group["schema"]):
                continue  # the kind of the root would be that of all it contains
            for test in group["tests"]:
                if test["valid"]:
                    by_kind.setdefault(KINDS[type(test["data"])], []).append(test["data"])
            for kind, values in by_kind.items():
                lines += [f"t{len(schemas)}\t{json.dumps(value)}\n" for value in values]
                schemas.append(with_kind(group["schema"], kind))

    def write_instances(path):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)

    check_round_trips(w, schemas, 200, write_instances)


# ---- what is written -------------------------------------------------------------------------------------

TOOL = {"name": "get", "description": "Gets it.", "input_schema": {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}}}, "output_schema": {"type": "object", "properties": {"high": {"type": "number"}}}}

HANDLER = """
#include "provider.h"

int weather_get_run(const weather_get_args *args, weather_get_result *result, peg_call *call, void *user)
{
    (void)call;
    (void)user;
    result->has_high = true;
    result->high = (double)args->city.len;
    return 0;
}
"""


def changed(**properties):
    tool = json.loads(json.dumps(TOOL))
    tool["input_schema"]["properties"] = properties
    return {"toolset": "weather", "tools": [tool]}


@scenario
def a_schema_that_breaks_the_handler_does_not_compile(w):
    w.write("handler.c", HANDLER)
    for city, fits in (({"type": "string"}, True), ({"type": "integer"}, False), ({"enum": ["a", "b"]}, False), (None, False)):
        w.write("tools.json", changed(**({"city": city} if city else {"town": {"type": "string"}})))
        w.pegboard("generate", "tools.json", "--flat", "--quiet", "--out", "gen").exits(0)
        done = run(*COMPILER, "-fsyntax-only", "-I", os.path.join(ROOT, "include"), "-I", os.path.join(w.directory, "gen"),
                   os.path.join(w.directory, "handler.c"))
        check((done.returncode == 0) == fits, city, done.stdout)


@scenario
def the_same_schemas_give_the_same_files_and_leave_them_alone(w):
    w.write("tools.json", changed(city={"type": "string"}))
    first = w.pegboard("generate", "tools.json", "--out", "gen").exits(0).stdout
    check(first.splitlines() == [f"gen/weather/toolsets/weather/{name}" for name in ("types.h", "types.c", "provider.h", "provider.c")], first)
    w.pegboard("generate", "tools.json", "--out", "gen").exits(0).prints("")
    w.write("tools.json", changed(city={"type": "string", "minLength": 1}))
    w.pegboard("generate", "tools.json", "--out", "gen").exits(0).prints("gen/weather/toolsets/weather/provider.c\n")


@scenario
def what_has_no_type_is_refused_with_its_place_or_kept_as_it_is(w):
    w.write("tools.json", changed(city={"type": "array", "prefixItems": [{"type": "string"}]}))
    w.pegboard("generate", "tools.json", "--out", "gen").exits(1).complains(
        "/tools/0/input_schema/properties/city/prefixItems", "tool 'get': an array whose items differ by their place has no type")
    check(not os.path.exists(os.path.join(w.directory, "gen")), "nothing is written")
    w.pegboard("generate", "tools.json", "--raw", "--flat", "--out", "gen").exits(0)
    with open(os.path.join(w.directory, "gen", "types.h"), encoding="utf-8") as file:
        check("const peg_json *city;" in file.read(), "raw JSON")


@scenario
def names_that_meet_in_c_are_told_apart_or_refused(w):
    tools = [{"name": name, "description": "d", "input_schema": {"type": "object"},
              "output_schema": {"type": "object", "properties": {"x": {"type": "string"}}}} for name in ("job", "job_result")]
    w.write("tools.json", {"toolset": "a.b", "tools": tools})
    w.pegboard("generate", "tools.json", "--client", "--flat", "--out", "gen").exits(0)
    compile_strictly(os.path.join(w.directory, "gen"), "client.c")
    w.write("tools.json", {"toolsets": [{"toolset": name, "tools": tools} for name in ("a.b", "a-b")]})
    w.pegboard("generate", "tools.json", "--out", "both").exits(2).complains("'a_b'", "rename one of them")
    check(not os.path.exists(os.path.join(w.directory, "both")), "nothing is written")


@scenario
def definitions_and_turns_are_taken_too(w):
    w.write("definitions.json", [{"type": "function", "function": {"name": "get", "description": "d", "parameters": {"type": "object"}}}])
    w.pegboard("generate", "definitions.json", "--name", "weather", "--service", "sky", "--out", "gen").exits(0).mentions(
        "gen/sky/toolsets/weather/types.h")
    w.write("turn.yaml", "id: t\nblocks: []\ndata:\n  pegboard.tool_definitions@v1:\n  - {name: get, description: d, inputSchema: {type: object}}\n")
    w.pegboard("generate", "turn.yaml", "--client", "--out", "gen").exits(0).mentions("gen/tools/toolsets/tools/client.h")


@scenario
def wrong_use_is_explained(w):
    w.write("tools.json", changed(city={"type": "string"}))
    w.write("empty.json", {})
    w.write("silent.json", {"toolset": "a", "tools": [{"name": "b"}]})
    for arguments, words in ((["tools.json"], "--out is needed"), (["--out", "gen"], "a file or --toolset"),
                             (["--out", "gen", "--toolset", "a", "tools.json"], "not both"), (["--out", "gen", "no.json"], "no.json"),
                             (["--out", "gen", "empty.json"], "there are no tools here"), (["--out", "tools.json/a", "tools.json"], "cannot be made"),
                             (["--out", "gen", "silent.json"], "no description"),
                             (["--out", "gen", "--lang", "cobol", "tools.json"], "'cobol' is no language of --lang")):
        w.pegboard("generate", *arguments).exits(2).complains(words)


@scenario
def what_is_written_is_formatted(w):
    program = shutil.which("clang-format-14")
    if not program:
        raise Skip("there is no clang-format-14")
    w.pegboard("generate", os.path.join(ROOT, "examples", "typed", "forecast.yaml"), "--client", "--provider", "--flat", "--out", "gen").exits(0)
    for path in glob.glob(os.path.join(w.directory, "gen", "*")):
        done = run(program, f"--style=file:{os.path.join(ROOT, '.clang-format')}", path)
        with open(path, encoding="utf-8") as file:
            check(done.stdout == file.read(), os.path.basename(path), "would be formatted otherwise")
    compile_strictly(os.path.join(w.directory, "gen"), "types.c", "provider.c", "client.c")


main()
