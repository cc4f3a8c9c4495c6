#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: one schema is one service in each language. What `pegboard generate --lang ts` writes passes the TypeScript compiler at its strictest
for schemas of all kinds, and a schema that breaks a handler does not; and the providers and clients of examples/typed, which are written in
each language, serve and call each other through one gateway with the same results.

    test_languages.py PEGBOARD BUILD PROVIDER CLIENT"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), *place) for place in (("clients",), ("gateway", "stock"))]
sys.dont_write_bytecode = True

import packages  # noqa: E402
from processes import BUILD, PEGBOARD, ROOT, Gateway, Process, environment, run, same  # noqa: E402
from scenario import Skip, check, main, scenario  # noqa: E402

TYPED_PROVIDER, TYPED_CLIENT = (os.path.abspath(path) for path in sys.argv[3:5])
EXAMPLE = os.path.join(ROOT, "examples", "typed")
SUITE = os.environ.get("PEG_JSON_SCHEMA_SUITE", os.path.join(os.path.dirname(ROOT), "shared", "data", "json-schema-test-suite"))
KEYWORDS = ("type", "enum", "const", "properties", "required", "items", "additionalProperties", "patternProperties", "allOf", "anyOf",
            "oneOf", "ref", "defs")
# What would end a comment, begin a directive of the compiler, or show code in another order.
HOSTILE = "@ts-nocheck */ export const x: = 1; /* // @ts-ignore \u202e*\u202c/ \u2028 ${a} ` \\"
COMPILE_S = 300
STRICT = {"strict": True, "noUncheckedIndexedAccess": True, "exactOptionalPropertyTypes": True, "noUnusedLocals": True,
          "noUnusedParameters": True, "verbatimModuleSyntax": True, "erasableSyntaxOnly": True, "isolatedModules": True,
          "noPropertyAccessFromIndexSignature": True, "skipLibCheck": True, "target": "es2022", "module": "nodenext", "lib": ["es2022"],
          "types": ["node"], "outDir": "dist"}
found = {}  # what is made once
with open(os.path.join(ROOT, "docs", "typed-tools.md"), encoding="utf-8") as page:
    PAGE = page.read()


def generate(place, file, *options):
    run([PEGBOARD, "generate", file, "--lang", "ts", "--quiet", "--flat", "--out", place, *options]).exits(0).prints("")


# ---- one run of the TypeScript compiler for all of it -----------------------------------------------------


def schemas():
    """Of the bench and the test suite."""
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "schema", "schemas", "*.json"))):
        with open(path, encoding="utf-8") as file:
            yield json.load(file)
    for keyword in KEYWORDS:
        path = os.path.join(SUITE, "tests", "draft2020-12", keyword + ".json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                groups = json.load(file)
            # References to other documents are not compiled without them.
            yield from (group["schema"] for group in groups
                        if not re.search(r'"\$id"|localhost|"\$ref": "http', json.dumps(group["schema"])))


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def make_schemas(place):
    """The types of each schema; of what is made for tools of hostile names and descriptions, all files."""
    tools = [{"name": f"t{i}", "description": HOSTILE, "output_schema": schema} for i, schema in enumerate(schemas())]
    check(len(tools) > 10, "there are schemas")
    file = os.path.join(place, "schemas.json")
    write_json(file, {"toolset": "schemas", "tools": tools})
    generate(os.path.join(place, "schemas"), file, "--raw")
    os.remove(os.path.join(place, "schemas", "provider.ts"))
    names = ["then", "constructor", "delete", "2d", "new", "job", "job_result", "jobResult", "toString", "call_options", "promise"]
    hostile = [{"name": name, "description": HOSTILE, "server_data": [{"kind": kind, "audience": HOSTILE, "description": HOSTILE}
                                                                      for kind in ("server.data", "a-b", "a.b", HOSTILE)],
                "input_schema": {"type": "object", "description": HOSTILE, "properties": {
                    member: {"type": "string", "description": HOSTILE, "enum": [HOSTILE, "b"]} for member in (HOSTILE, "__proto__", "a b")}}}
               for name in names]
    write_json(file, {"toolset": "2.hostile", "description": HOSTILE, "tools": hostile})
    generate(os.path.join(place, "hostile"), file, "--client", "--provider")


HANDLER = """
import { serve } from "./gen/provider.js";

await serve({ get: ({ city, days }) => ({ high: city.length + (days ?? 0) }) });
"""
BREAKS = {"fits": {"city": {"type": "string"}, "days": {"type": "integer"}},
          "number": {"city": {"type": "integer"}, "days": {"type": "integer"}},
          "renamed": {"town": {"type": "string"}, "days": {"type": "integer"}},
          "nullable": {"city": {"type": ["string", "null"]}, "days": {"type": "integer"}},
          "enum": {"city": {"type": "string"}, "days": {"enum": ["one", "two"]}}}


def make_handlers(place):
    """One handler, and schemas that it fits or does not fit."""
    for name, properties in BREAKS.items():
        folder = os.path.join(place, "handlers", name)
        os.makedirs(folder)
        write_json(os.path.join(folder, "tools.json"), {"toolset": "weather", "tools": [
            {"name": "get", "description": "Gets it.",
             "input_schema": {"type": "object", "required": list(properties)[:1], "properties": properties},
             "output_schema": {"type": "object", "required": ["high"], "properties": {"high": {"type": "number"}}}}]})
        generate(os.path.join(folder, "gen"), os.path.join(folder, "tools.json"))
        with open(os.path.join(folder, "handler.ts"), "w", encoding="utf-8") as file:
            file.write(HANDLER)


def compile_all():
    """The folder, and what the compiler says about each file in it."""
    modules = os.path.join(packages.install_node(BUILD), "node_modules")
    place = tempfile.TemporaryDirectory(prefix="languages-")
    found["folder"] = place  # removed at the end
    shutil.copytree(os.path.join(EXAMPLE, "ts"), os.path.join(place.name, "ts"))
    os.symlink(modules, os.path.join(place.name, "node_modules"))
    generate(os.path.join(place.name, "ts", "gen"), os.path.join(EXAMPLE, "forecast.yaml"), "--client", "--provider")
    generate(os.path.join(place.name, "constructs"), os.path.join(HERE, "constructs.yaml"), "--client", "--provider")
    for i, program_of_page in enumerate(re.findall(r"^```ts\n(.*?)^```$", PAGE, re.M | re.S)):
        with open(os.path.join(place.name, "ts", f"page{i}.ts"), "w", encoding="utf-8") as file:
            file.write(program_of_page)
    shutil.copytree(os.path.join(EXAMPLE, "python"), os.path.join(place.name, "python"))
    run([PEGBOARD, "generate", os.path.join(EXAMPLE, "forecast.yaml"), "--lang", "python", "--client", "--provider", "--quiet", "--out",
         os.path.join(place.name, "python")]).exits(0)
    make_schemas(place.name)
    make_handlers(place.name)
    write_json(os.path.join(place.name, "package.json"), {"type": "module"})
    write_json(os.path.join(place.name, "tsconfig.json"), {"compilerOptions": {**STRICT, "rootDir": "."}, "include": ["**/*.ts"]})
    done = subprocess.run(["node", os.path.join(modules, "typescript", "bin", "tsc"), "--pretty", "false", "--project", place.name],
                          cwd=place.name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=COMPILE_S, check=False)
    errors = {}
    for line in done.stdout.splitlines():
        file = re.match(r"(\S+\.ts)\(", line)
        check(file or line.startswith(" "), "the compiler:", line)
        if file:
            errors.setdefault(file[1], []).append(line)
    return place.name, errors


def compiled():
    if "compiled" not in found:
        try:
            found["compiled"] = compile_all()
        except Skip as why:
            found["compiled"] = why
    if isinstance(found["compiled"], Skip):
        raise found["compiled"]
    return found["compiled"]


@scenario
def typescript_accepts_what_is_written_for_schemas_of_all_kinds(_):
    place, errors = compiled()
    for folder in ("ts", "constructs", "schemas", "hostile"):
        same([line for file in errors for line in errors[file] if file.startswith(folder + "/")], [])
    for name in ("hostile/provider", "ts/page1"):
        check(os.path.exists(os.path.join(place, "dist", name + ".js")), name, "was not compiled")


@scenario
def a_schema_that_breaks_the_handler_is_an_error_of_typescript(_):
    _, errors = compiled()
    broken = {file.split("/")[1] for file in errors if file.endswith("/handler.ts")}
    same(sorted(broken), sorted(set(BREAKS) - {"fits"}))
    same([file for file in errors if file.startswith("handlers/") and "/gen/" in file], [])


@scenario
def the_same_schemas_give_the_same_typescript_and_leave_it_alone(w):
    first = w.pegboard("generate", os.path.join(EXAMPLE, "forecast.yaml"), "--lang", "ts", "--out", "gen").exits(0).stdout
    same(first.splitlines(), [f"gen/forecast/toolsets/weather/{name}.ts" for name in ("types", "provider")])
    w.pegboard("generate", os.path.join(EXAMPLE, "forecast.yaml"), "--lang", "ts", "--client", "--out", "gen").exits(0).prints(
        "gen/forecast/toolsets/weather/client.ts\n")


# ---- each calls each --------------------------------------------------------------------------------------

PRINTS = re.search(r"^\$ node dist/client.js\n(.*?)^\.\.\.\n```$", PAGE, re.M | re.S)[1]
REFUSED = r"refused: (.*)there is no city with so long a name\ndoes not fit: .*/days.* 7.*\n"
CALLS = [("get", {"city": "Rome"}), ("get", {"city": "Ωmega", "days": 3, "units": "fahrenheit"}),
         ("alert", {"to": {"kind": "mail", "address": "a@b.example"}, "labels": {"a": "1", "b": "2"}}),
         ("alert", {"to": {"kind": "hook", "url": "https://a.example", "headers": {"x": [1, None]}}}), ("stations", {})]
WRONG = [("get", {"city": "Rome", "days": 9}), ("get", {}), ("alert", {"to": {"kind": "pigeon"}}), ("get", {"city": 1})]
LANGUAGES = ("c", "ts", "python")


def program(language, name):
    if language == "c":
        return [{"provider": TYPED_PROVIDER, "client": TYPED_CLIENT}[name]]
    if language == "python":
        return [packages.install_python(BUILD), "-B", os.path.join(compiled()[0], "python", name + ".py")]
    return ["node", os.path.join(compiled()[0], "dist", "ts", name + ".js")]


def outcome(gateway, tool, args):
    ran = run([PEGBOARD, "call", "--registry", gateway.address, "--json", "--args", json.dumps(args), "weather", tool])
    answer = json.loads(ran.stdout)
    return {name: answer[name] for name in ("outcome", "result", "server_data", "started")}, answer["error"]


def check_calls(gateway):
    """Results and server-data as a caller gets them, to be compared between providers."""
    results = [outcome(gateway, *call)[0] for call in CALLS]
    for result in results:
        same(result["outcome"], "result")
    for call in WRONG:
        refused, error = outcome(gateway, *call)
        same((refused["outcome"], refused["started"], error["name"]), ("refused", False, "validation_error"))
    failed, error = outcome(gateway, "get", {"city": "Llanfairpwllgwyngyllgogerychwyrndrobwll"})
    same((failed["outcome"], failed["server_data"]), ("error", []))
    check(error["message"].endswith("there is no city with so long a name"), error)
    return results


def check_clients(gateway):
    """At once: each prints the same."""
    clients = {language: subprocess.Popen([*program(language, "client"), gateway.address], env=environment(), text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for language in LANGUAGES}
    for language, client in clients.items():
        printed, _ = client.communicate(timeout=COMPILE_S)
        check(client.returncode == 0 and re.fullmatch(re.escape(PRINTS) + REFUSED, printed), language, client.returncode, printed)


@scenario
def each_language_calls_each_through_one_gateway(_):
    compiled()
    results = {}
    with Gateway() as gateway:
        for language in LANGUAGES:
            with Process([*program(language, "provider"), gateway.address]) as provider:
                provider.line_with("weather is offered at")
                check_clients(gateway)
                results[language] = check_calls(gateway)
                same(provider.stop(), 0)
    for language in LANGUAGES:
        same(results[language], results["c"])


main()
