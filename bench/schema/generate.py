#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the schemas and instances of the schema bench: generate.py OUTPUT_DIRECTORY.

The same bytes every time: each case has its own seed. One instance in twelve is damaged (a
member dropped, a value replaced, a stranger added), so that the refusing paths are measured
too; whether the damage makes it invalid is for the validators to say, and they must agree.
"""

import json
import pathlib
import shutil
import sys

import big
import shapes_config as config
import shapes_tool as tool
import uniform
from words import Dice

# name, maker of an instance, how many, schema (None: the file of that name), formats asserted
CASES = [
    ("tool-search", tool.search, 300, None, False),
    ("tool-edit", tool.edit, 200, None, False),
    ("tool-calendar", tool.calendar, 200, None, True),
    ("tool-sql", tool.sql, 300, None, False),
    ("tool-http", tool.http, 300, None, False),
    ("tool-order", tool.order, 200, None, False),
    ("tool-patterns", tool.patterns, 200, None, False),
    ("tool-actions", big.actions, 200, big.actions_schema, False),
    ("unevaluated", tool.unevaluated, 300, None, False),
    ("ci-workflow", config.ci_workflow, 60, None, False),
    ("compose", config.compose, 60, None, False),
    ("manifest", config.manifest, 100, None, False),
    ("geojson", config.geojson, 60, None, False),
    ("openapi", config.openapi, 60, None, False),
    ("tree", config.tree, 100, None, False),
    ("kubernetes", big.kubernetes, 100, big.kubernetes_schema, False),
    ("enum", big.enum, 300, big.enum_schema, False),
    ("unique", config.unique, 50, None, False),
    ("map-of-strings", uniform.labels, 300, uniform.labels_schema, False),
    ("list-of-strings", uniform.tags, 300, uniform.tags_schema, False),
    ("list-of-records", uniform.points, 300, uniform.points_schema, False),
    ("list-of-bounded", uniform.lines, 300, uniform.lines_schema, False),
]
DAMAGED = 12  # one in so many


def containers(value, found):
    if isinstance(value, dict):
        found.append(value)
        value = list(value.values())
    elif isinstance(value, list) and value:
        found.append(value)
    else:
        return found
    for child in value:
        containers(child, found)
    return found


def damage(dice, instance):
    place = dice.choice([c for c in containers(instance, []) if c])
    key = dice.choice(sorted(place)) if isinstance(place, dict) else dice.randrange(len(place))
    throw = dice.random()
    if throw < 0.35 and isinstance(place, dict):
        del place[key]
    elif throw < 0.5 and isinstance(place, dict):
        place["unexpected_" + dice.word()] = dice.randint(0, 9)
    else:
        place[key] = dice.choice([None, -1, "", [], {}, 3.25, True])


def instances(name, make, count):
    dice = Dice("pegboard bench " + name)
    for i in range(count):
        instance = make(dice)
        if i % DAMAGED == DAMAGED - 1:
            damage(dice, instance)
        yield instance


def write_case(out, source, case):
    name, make, count, schema, formats = case
    schema_file = out / f"{name}.json"
    if schema:
        schema_file.write_text(json.dumps(schema(), separators=(",", ":")) + "\n", encoding="utf-8")
    else:
        shutil.copyfile(source / f"{name}.json", schema_file)
    lines = [json.dumps(i, ensure_ascii=False, separators=(",", ":")) for i in instances(name, make, count)]
    (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"name": name, "schema_bytes": schema_file.stat().st_size, "instances": count, "assert_format": formats,
            "instance_bytes": sum(len(line.encode()) for line in lines)}


def main():
    out = pathlib.Path(sys.argv[1])
    source = pathlib.Path(__file__).resolve().parent / "schemas"
    out.mkdir(parents=True, exist_ok=True)
    cases = [write_case(out, source, case) for case in CASES]
    (out / "cases.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
