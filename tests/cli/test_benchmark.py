#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard validate --benchmark` ends with one JSON line about every instance that could be measured."""

import json

from scenario import check, main, scenario

FIGURES = ["instances", "valid", "ns_per_instance", "parse_and_validate_mb_per_s", "compile_us"]


def figures(ran):
    told = json.loads(ran.stdout.splitlines()[-1])
    check(list(told) == FIGURES, told)
    return told


@scenario
def the_last_line_has_the_figures_of_all_files(w):
    w.write("schema.json", {"type": "object", "required": ["a"]})
    w.write("one.json", {"a": 1})
    w.write("two.jsonl", '{"a":1}\n\n{"b":1}\n')
    w.write("three.yaml", "a: 1\n")
    ran = w.pegboard("validate", "--benchmark", "--loop", "20", "schema.json", "one.json",
                     "two.jsonl", "three.yaml").exits(1).is_silent()
    told = figures(ran)
    check(ran.stdout.count("\n") == 1, ran)
    check((told["instances"], told["valid"]) == (4, 3), told)
    for name in FIGURES[2:]:
        check(0 < told[name] < 1e7, told)


@scenario
def unusable_instances_are_reported_and_the_others_measured(w):
    w.write("schema.json", {})
    w.write("mixed.jsonl", "1\n{\n2\n")
    ran = w.pegboard("validate", "--benchmark", "--loop", "1", "schema.json", "mixed.jsonl").exits(2)
    ran.complains("mixed.jsonl:2:2: unusable: ")
    check(figures(ran)["instances"] == 2, ran)


@scenario
def nothing_to_measure_is_unusable(w):
    w.write("schema.json", {})
    w.write("empty.jsonl", "\n")
    ran = w.pegboard("validate", "--benchmark", "schema.json", "empty.jsonl").exits(2).prints("")
    ran.complains("no instance to measure")


if __name__ == "__main__":
    main()
