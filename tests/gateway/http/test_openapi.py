#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: what a gateway tells of its API, and of each toolset, is OpenAPI 3.1 by the official schema, and a stock generator
makes a client of it that calls a tool.

    test_openapi.py PEGBOARD BUILD

The packages are installed below BUILD, once; without pip or a network what needs them is skipped.
"""

import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "cli"))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "mcp", "stock"))

import packages  # noqa: E402
from gateways import gateway, provided  # noqa: E402
from scenario import ROOT, check, main, scenario  # noqa: E402

BUILD = os.path.abspath(sys.argv[2])
VALIDATOR = ("openapi-spec-validator==0.9.0", "openapi-python-client==0.29.1")
MOVED = {
    "description": "Schemas with references",
    "tools": [{
        "name": "a/b:c", "description": "d",
        "input_schema": {"$defs": {"city": {"type": "string"}}, "type": "object",
                         "properties": {"at": {"$ref": "#/$defs/city"}, "again": {"$ref": "#"}, "$ref": {"type": "string"}}},
        "output_schema": {"type": "object"}}, {"name": "a_b_c", "description": "", "input_schema": {"type": "object"}}]}


def get(w, path):
    with urllib.request.urlopen(f"http://{w.at}{path}", timeout=60) as answer:
        return json.load(answer)


def python_with_packages():
    script = f"'{sys.executable}' -m venv v && v/bin/pip install -q --disable-pip-version-check {' '.join(VALIDATOR)}"
    return os.path.join(packages.install(BUILD, "openapi", [], ["sh", "-c", script]), "v", "bin", "python")


def register(w, name, toolset):
    request = urllib.request.Request(f"http://{w.at}/v1/toolsets/{urllib.parse.quote(name, safe='')}",
                                     json.dumps(toolset).encode(), {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        check(answer.status == 200)


@scenario
def the_document_has_every_route_of_the_gateway(w):
    with open(os.path.join(ROOT, "src", "gateway", "rpc", "http.c"), encoding="utf-8") as file:
        routes = re.findall(r'\{"([A-Z]+)", "(/v1[^"]*)"', file.read())
    with gateway(w):
        paths = get(w, "/openapi.json")["paths"]
        told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        check(told == set(routes), told ^ set(routes))


@scenario
def references_of_a_tool_lead_into_its_own_schema(w):
    with gateway(w):
        register(w, "x/y", MOVED)
        told = get(w, "/openapi.json?toolset=x%2Fy")
        path = "/v1/toolsets/x%2Fy/tools/a%2Fb:c/calls"
        check(path in told["paths"] and len(told["paths"]) == 2, told)
        call = told["paths"][path]["post"]
        name = call["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        schema = told["components"]["schemas"][name]
        check(schema["properties"]["at"] == {"$ref": f"#/components/schemas/{name}/$defs/city"}, schema)
        check(schema["properties"]["again"] == {"$ref": f"#/components/schemas/{name}"}, schema)
        check(schema["properties"]["$ref"] == {"type": "string"}, schema)


@scenario
def the_official_schema_takes_both_documents(w):
    python = python_with_packages()
    judge = "import json, sys, openapi_spec_validator as v; v.validate(json.load(sys.stdin), cls=v.OpenAPIV31SpecValidator)"
    with gateway(w), provided(w):
        register(w, "x/y", MOVED)
        for path in ("/openapi.json", "/openapi.json?toolset=weather", "/openapi.json?toolset=x/y"):
            ran = subprocess.run([python, "-c", judge], input=json.dumps(get(w, path)), text=True, capture_output=True,
                                 check=False, timeout=120)
            check(ran.returncode == 0, path, ran.stderr)


@scenario
def a_generated_client_calls_a_tool(w):
    python = python_with_packages()
    use = f"""
from made import Client
from made.api.default import weather_echo
from made.models import WeatherEchoInput
from made.api import default
client = Client(base_url="http://ADDRESS")
answer = weather_echo.sync_detailed(client=client, body=WeatherEchoInput(city="Oslo"))
print(answer.status_code.value, answer.content.decode())
answer = weather_echo.sync_detailed(client=client, body=WeatherEchoInput(city="Oslo", days=99))
print(answer.status_code.value, answer.parsed.type_)
"""
    with gateway(w), provided(w):
        for path, place in (("/openapi.json?toolset=weather", "made"), ("/openapi.json", "whole")):
            w.write(place + ".json", json.dumps(get(w, path)))
            made = subprocess.run([python, "-m", "openapi_python_client", "generate", "--path", w.path(place + ".json"),
                                   "--meta", "none", "--output-path", w.path(place), "--fail-on-warning"],
                                  text=True, capture_output=True, check=False, timeout=300,
                                  env={**os.environ, "PATH": os.path.dirname(python) + ":" + os.environ["PATH"]})
            check(made.returncode == 0, made.stdout, made.stderr)
        ran = subprocess.run([python, "-c", use.replace("ADDRESS", w.at)], cwd=w.directory, text=True, capture_output=True,
                             check=False, timeout=120)
        check(ran.stdout == '200 {"city":"Oslo"}\n400 validation_error\n', ran.stdout, ran.stderr)
        use = ("from whole import Client; from whole.api.default import list_toolsets; "
               f"print(list_toolsets.sync(client=Client(base_url='http://{w.at}')).toolsets[0].name)")
        ran = subprocess.run([python, "-c", use], cwd=w.directory, text=True, capture_output=True, check=False, timeout=120)
        check(ran.stdout == "weather\n", ran.stdout, ran.stderr)


main()
