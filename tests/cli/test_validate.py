#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard validate` answers right, by its exit status and in words, for every kind of input."""

import os
import re

from scenario import check, main, scenario

SCHEMA = {
    "type": "object",
    "required": ["city", "days"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "maximum": 14},
    },
}
GOOD = {"city": "Oslo", "days": 3}
BAD = {"city": "Oslo", "days": 30}


def with_schema(w):
    w.write("schema.json", SCHEMA)
    w.write("good.json", GOOD)
    w.write("bad.json", BAD)


# ---- verdicts ----------------------------------------------------------------


@scenario
def valid_instances_exit_with_0(w):
    with_schema(w)
    ran = w.pegboard("validate", "schema.json", "good.json", "good.json")
    ran.exits(0).prints("good.json: valid\ngood.json: valid\n").is_silent()


@scenario
def an_invalid_instance_exits_with_1_and_is_explained(w):
    with_schema(w)
    ran = w.pegboard("validate", "schema.json", "bad.json").exits(1).is_silent()
    ran.mentions("bad.json: invalid\n  /days: ", "14", "rule: /properties/days/maximum\n")


@scenario
def a_member_one_edit_from_a_keyword_is_warned_of(w):
    w.write("schema.json", {"properties": {"a": {"requird": ["b"]}}, "title": "t"})
    w.write("good.json", {})
    ran = w.pegboard("validate", "schema.json", "good.json").exits(0).prints("good.json: valid\n")
    check(ran.stderr == "pegboard: schema.json: warning: at /properties/a/requird: this is no keyword "
          "and is ignored; did you mean 'required'?\n", ran.stderr)
    w.pegboard("validate", "--quiet", "schema.json", "good.json").exits(0).is_silent()


@scenario
def every_failure_of_an_instance_is_reported(w):
    with_schema(w)
    w.write("bad.json", {"days": "three", "when": 1})
    ran = w.pegboard("validate", "schema.json", "bad.json").exits(1)
    ran.mentions("/required\n", "/properties/days/type\n", "/additionalProperties\n")


@scenario
def a_report_is_cut_at_32_failures_and_says_how_many_more(w):
    w.write("schema.json", {"items": {"type": "string"}})
    w.write("bad.json", list(range(40)))
    ran = w.pegboard("validate", "schema.json", "bad.json").exits(1).mentions("  and 8 more\n")
    check(ran.stdout.count("rule:") == 32, ran)


@scenario
def every_file_is_checked_and_unusable_wins_over_invalid(w):
    with_schema(w)
    ran = w.pegboard("validate", "schema.json", "missing.json", "bad.json", "good.json").exits(2)
    ran.complains("missing.json: unusable: cannot be opened (No such file or directory)")
    ran.mentions("bad.json: invalid", "good.json: valid")


@scenario
def a_limit_that_is_reached_makes_an_instance_undecided(w):
    w.write("schema.json", {"allOf": [{"$ref": "#"}]})
    w.write("value.json", 1)
    ran = w.pegboard("validate", "schema.json", "value.json").exits(2)
    ran.complains("value.json: undecided: the limit max_depth was reached", "(E_CHECK_UNDECIDED)")
    (told,) = w.pegboard("validate", "--json", "schema.json", "value.json").exits(2).objects()
    check((told["verdict"], told["valid"], told["limit"]) == ("undecided", False, "max_depth"), told)


@scenario
def bombs_are_refused_or_bounded_with_a_named_error(w):
    twice = {f"a{i}": {"allOf": 2 * [{"$ref": f"#/$defs/a{i + 1}"}]} for i in range(100)}
    w.write("fine.json", {"type": "string"})
    w.write("value.json", '"%s!"' % ("a" * 1000))
    w.write("deep.json", '{"not":' * 10000 + "{}" + "}" * 10000)
    w.write("many.json", {"anyOf": [{"minLength": i} for i in range(30000)]})
    w.write("pattern.json", {"pattern": "^(?=(([a-z])+.)+[A-Z]([a-z])+$)"})
    w.write("wide.json", {"pattern": "((a{1000}){1000}){1000}"})
    w.write("twice.json", {"$defs": {**twice, "a100": {"not": {}}}, "anyOf": [{"$ref": "#/$defs/a0"}]})
    w.write("large.json", b"")
    os.truncate(w.path("large.json"), 100 << 20)
    w.pegboard("validate", "deep.json", "value.json").exits(2).complains("(E_")
    w.pegboard("validate", "many.json", "value.json").exits(2).complains("(E_SCHEMA_TOO_LARGE)")
    w.pegboard("validate", "wide.json", "value.json").exits(2).complains("(E_SCHEMA_TOO_LARGE)")
    w.pegboard("validate", "pattern.json", "value.json").exits(2).complains("the limit match_limit")
    w.pegboard("validate", "fine.json", "large.json").exits(2).complains("(E_FILE_TOO_LARGE)")
    w.pegboard("validate", "large.json", "value.json").exits(2).complains("(E_FILE_TOO_LARGE)")
    ran = w.pegboard("validate", "twice.json", "value.json")
    check(ran.status in (1, 2), ran)  # it ends, which is the point


# ---- schemas -----------------------------------------------------------------


@scenario
def a_schema_may_be_yaml(w):
    with_schema(w)
    w.write("schema.yaml", "type: object\nrequired: [city]\nproperties:\n  days: {maximum: 14}\n")
    w.pegboard("validate", "schema.yaml", "good.json").exits(0)
    w.pegboard("validate", "schema.yaml", "bad.json").exits(1).mentions("/properties/days/maximum")


@scenario
def a_malformed_schema_is_reported_with_its_place(w):
    with_schema(w)
    w.write("schema.json", '{"type":\n  objekt}')
    ran = w.pegboard("validate", "schema.json", "good.json").exits(2).prints("")
    ran.complains("schema.json:2:3: unusable: ", "(E_JSON_SYNTAX)")


@scenario
def a_wrong_schema_is_reported_with_a_pointer_and_nothing_is_checked(w):
    with_schema(w)
    w.write("schema.json", {"properties": {"days": {"type": "integre"}}})
    ran = w.pegboard("validate", "schema.json", "good.json").exits(2).prints("")
    ran.complains("schema.json: unusable: at /properties/days", "E_SCHEMA")


@scenario
def a_missing_schema_is_unusable(w):
    with_schema(w)
    w.pegboard("validate", "nope.json", "good.json").exits(2).complains("nope.json: unusable: ")


@scenario
def the_draft_option_is_the_dialect_of_schemas_without_one(w):
    w.write("schema.json", {"prefixItems": [{"type": "string"}]})
    w.write("value.json", [1])
    w.pegboard("validate", "schema.json", "value.json").exits(1)
    w.pegboard("validate", "--draft", "2020-12", "schema.json", "value.json").exits(1)
    for draft in ("4", "6", "7", "2019-09"):
        w.pegboard("validate", "--draft", draft, "schema.json", "value.json").exits(0)
    w.write("schema.json", {"$schema": "https://json-schema.org/draft/2020-12/schema",
                            "prefixItems": [{"type": "string"}]})
    w.pegboard("validate", "--draft=7", "schema.json", "value.json").exits(1)


@scenario
def the_old_drafts_have_their_long_names_too(w):
    w.write("schema.json", {"exclusiveMinimum": True, "minimum": 3})  # draft 4 only
    w.write("value.json", 3)
    for draft in ("4", "draft4", "draft-04"):
        w.pegboard("validate", "--draft", draft, "schema.json", "value.json").exits(1)
    for draft in ("draft6", "draft-06", "draft7", "draft-07"):
        ran = w.pegboard("validate", "--draft", draft, "schema.json", "value.json").exits(2)
        ran.complains("schema.json: unusable: at /exclusiveMinimum")
    w.write("schema.json", {"if": {}, "then": False})  # since draft 7
    w.pegboard("validate", "--draft", "draft-06", "schema.json", "value.json").exits(0)
    w.pegboard("validate", "--draft", "draft-07", "schema.json", "value.json").exits(1)
    w.pegboard("validate", "--draft", "draft-7", "schema.json", "value.json").exits(2)


@scenario
def a_false_schema_is_a_rule_at_the_root(w):
    w.write("schema.json", "false")
    w.write("value.json", 1)
    w.pegboard("validate", "schema.json", "value.json").exits(1).mentions("rule: (root)\n")


@scenario
def format_is_asserted_up_to_draft_7_or_on_request(w):
    w.write("schema.json", {"format": "ipv4"})
    w.write("value.json", '"1.2.3.456"')
    w.pegboard("validate", "schema.json", "value.json").exits(0)
    w.pegboard("validate", "--assert-format", "schema.json", "value.json").exits(1)
    w.pegboard("validate", "--draft", "7", "schema.json", "value.json").exits(1)
    w.pegboard("validate", "--draft", "7", "--no-assert-format", "schema.json",
               "value.json").exits(0)


# ---- references ---------------------------------------------------------------


@scenario
def a_reference_to_an_unknown_document_is_refused(w):
    w.write("schema.json", {"$ref": "https://example.com/unit"})
    w.write("value.json", 1)
    ran = w.pegboard("validate", "schema.json", "value.json").exits(2)
    ran.complains("schema.json: unusable: ", "https://example.com/unit", "(E_SCHEMA_REF)")


@scenario
def a_document_is_registered_by_its_id(w):
    w.write("schema.json", {"$ref": "https://example.com/unit"})
    w.write("unit.json", {"$id": "https://example.com/unit", "enum": ["C", "F"]})
    w.write("value.jsonl", '"C"\n"K"\n')
    ran = w.pegboard("validate", "--ref", "unit.json", "schema.json", "value.jsonl").exits(1)
    ran.mentions("value.jsonl:2: invalid", "value.jsonl: 1 of 2 valid")


@scenario
def a_document_is_registered_by_a_name_and_may_be_yaml(w):
    w.write("schema.json", {"$ref": "https://example.com/unit?v=1"})
    w.write("value.json", '"K"')
    w.write("no=uri.json", {"$id": "https://example.com/unit?v=1", "const": "K"})
    by_name = "https://example.com/unit?v=1=unit.yml"
    w.write("unit.yml", "enum: [C, F]\n")
    w.pegboard("validate", "--ref", by_name, "schema.json", "value.json").exits(1)
    w.pegboard("validate", "--ref", "no=uri.json", "schema.json", "value.json").exits(0)


@scenario
def files_refer_to_each_other_by_where_they_stand(w):
    os.makedirs(w.path("a/sub dir"))
    w.write("a/schema.json", {"properties": {"x": {"$ref": "sub%20dir/x.yaml"}, "n": {"maximum": 1}}})
    w.write("a/sub dir/x.yaml", "$ref: ../y.json#/$defs/unit\n")
    w.write("a/y.json", {"$defs": {"unit": {"enum": ["C", "F"]}, "all": {"$ref": "schema.json"}}})
    w.write("bad.json", {"x": "K", "n": 2})
    for schema, refs in (("a/schema.json", ["a/sub dir/x.yaml", "a/sub dir/..//./y.json"]),
                         (w.path("a/schema.json"), ["./a/sub dir/x.yaml", w.path("a//y.json")])):
        refs = [f"--ref={ref}" for ref in refs]
        ran = w.pegboard("validate", *refs, schema, "bad.json").exits(1)
        ran.mentions("rule: /properties/n/maximum\n", "/a/y.json#/$defs/unit/enum\n")
        w.pegboard("validate", *refs[:1], schema, "bad.json").exits(2).complains("(E_SCHEMA_REF)")
    w.write("a/schema.json", {"$ref": "y.json#/$defs/all", "type": "array"})
    ran = w.pegboard("validate", "--ref", "a/y.json", "a/schema.json", "bad.json").exits(1)
    ran.mentions("rule: /type\n")


@scenario
def a_document_with_an_id_is_known_by_where_it_stands_too(w):
    w.write("unit.json", {"$id": "https://example.com/unit", "enum": ["C", "F"]})
    w.write("near.json", {"$id": "other.json", "enum": ["C", "F"]})
    w.write("value.json", '"K"')
    for reference in ("https://example.com/unit", "unit.json", "other.json", "near.json"):
        w.write("schema.json", {"$ref": reference})
        w.pegboard("validate", "--ref", "unit.json", "--ref", "near.json", "schema.json",
                   "value.json").exits(1)
    w.write("near.json", {"$id": "https://example.com/unit"})
    ran = w.pegboard("validate", "--ref", "unit.json", "--ref", "near.json", "schema.json",
                     "value.json").exits(2)
    ran.complains("near.json: unusable: ", "(E_SCHEMA_URI_TAKEN)")


@scenario
def a_relative_name_of_a_document_is_resolved_against_the_schema(w):
    os.mkdir(w.path("a"))
    w.write("a/schema.json", {"$ref": "lib/unit.json"})
    w.write("unit.json", {"enum": ["C", "F"]})
    w.write("value.json", '"K"')
    ran = w.pegboard("validate", "--ref", "lib/unit.json=unit.json", "a/schema.json", "value.json")
    ran.exits(1).mentions("/a/lib/unit.json#/enum\n")
    w.pegboard("validate", "--ref", "unit.json=unit.json", "a/schema.json", "value.json").exits(2)


@scenario
def a_schema_on_standard_input_stands_in_the_current_directory(w):
    w.write("unit.json", {"enum": ["C", "F"]})
    w.write("value.json", '"K"')
    ran = w.pegboard("validate", "--ref", "unit.json", "-", "value.json", stdin='{"$ref":"unit.json"}')
    ran.exits(1).mentions("/unit.json#/enum\n")


# ---- instances -----------------------------------------------------------------


@scenario
def a_malformed_instance_is_reported_with_line_and_column(w):
    with_schema(w)
    w.write("broken.json", '{\n  "city": "Oslo",\n  "days": ]\n}')
    ran = w.pegboard("validate", "schema.json", "broken.json").exits(2)
    check(re.match(r"broken\.json:3:11: unusable: .* \(E_JSON_SYNTAX\)\n$", ran.stderr), ran)


@scenario
def yaml_instances_are_read_by_name_or_on_request(w):
    with_schema(w)
    w.write("good.yaml", "city: Oslo\ndays: 3\n")
    w.write("bad.yml", "city: Oslo\ndays: 30\n")
    w.pegboard("validate", "schema.json", "good.yaml").exits(0).prints("good.yaml: valid\n")
    w.pegboard("validate", "schema.json", "bad.yml").exits(1).mentions("  /days: ")
    w.pegboard("validate", "--yaml", "schema.json", "-", stdin="city: Oslo\ndays: 3").exits(0)
    w.pegboard("validate", "--yaml", "schema.json", "-", stdin="city: [").exits(2).complains(
        "<stdin>:", "(E_YAML_SYNTAX)")


@scenario
def standard_input_is_json(w):
    with_schema(w)
    ran = w.pegboard("validate", "schema.json", "-", stdin='{"city":"Oslo","days":3}')
    ran.exits(0).prints("<stdin>: valid\n")
    w.pegboard("validate", "schema.json", "-", stdin="").exits(2).complains("<stdin>:1:1: unusable: ")


@scenario
def yaml_that_is_read_as_json_is_reported_with_a_hint(w):
    with_schema(w)
    for text in ("city: Oslo\ndays: 3\n", "---\ncity: Oslo\n", "- 1\n"):
        ran = w.pegboard("validate", "schema.json", "-", stdin=text).exits(2)
        ran.complains("; if this is YAML, try --yaml (E_JSON_SYNTAX)")
    for text in ("", '{"city": "Oslo",}'):
        ran = w.pegboard("validate", "schema.json", "-", stdin=text).exits(2)
        check("--yaml" not in ran.stderr, ran)
    ran = w.pegboard("validate", "--jsonl", "schema.json", "-", stdin="city: Oslo").exits(2)
    check("--yaml" not in ran.stderr, ran)


@scenario
def a_byte_order_mark_is_reported_with_a_hint(w):
    with_schema(w)
    for name in ("mark.json", "mark.jsonl"):
        w.write(name, b"\xef\xbb\xbf{}")
    hint = "; the text starts with a byte order mark: remove it (E_JSON_SYNTAX)"
    w.pegboard("validate", "schema.json", "mark.json").exits(2).complains("mark.json:1:1: ", hint)
    w.pegboard("validate", "schema.json", "mark.jsonl").exits(2).complains("mark.jsonl:1:1: ", hint)
    w.pegboard("validate", "mark.json", "good.json").exits(2).complains("mark.json:1:1: ", hint)
    ran = w.pegboard("validate", "--ref", "mark.json", "schema.json", "good.json").exits(2)
    ran.complains("mark.json:1:1: ", hint)


@scenario
def the_schema_may_come_from_standard_input_but_not_both(w):
    with_schema(w)
    w.pegboard("validate", "-", "good.json", stdin='{"type":"object"}').exits(0)
    w.pegboard("validate", "-", "-", stdin="{}").exits(2).complains("only once")
    w.write("refers.json", {"$ref": "urn:other"})
    other = ("validate", "refers.json", "--ref", "urn:other=-")
    w.pegboard(*other, "good.json", stdin='{"type":"object"}').exits(0)
    w.pegboard(*other, "-", stdin='{"type":"object"}').exits(2).complains("only once")
    w.pegboard("validate", "-", "good.json", "--ref", "-", stdin="{}").exits(2).complains("only once")


@scenario
def lines_are_instances_and_blank_lines_are_skipped(w):
    with_schema(w)
    text = '{"city":"Oslo","days":3}\n\n \t\r\n{"city":1,"days":3}\r\n{oops\n{"city":"B","days":1}'
    w.write("calls.jsonl", text)
    w.write("calls.ndjson", text)
    for name in ("calls.jsonl", "calls.ndjson"):
        ran = w.pegboard("validate", "schema.json", name).exits(2)
        ran.mentions(f"{name}:4: invalid\n  /city: ", f"{name}: 2 of 4 valid\n")
        ran.complains(f"{name}:5:2: unusable: ")
    ran = w.pegboard("validate", "--jsonl", "schema.json", "-", stdin=text).exits(2)
    ran.mentions("<stdin>:4: invalid", "<stdin>: 2 of 4 valid\n")


@scenario
def a_file_of_lines_without_lines_is_valid(w):
    with_schema(w)
    w.write("empty.jsonl", "")
    w.pegboard("validate", "schema.json", "empty.jsonl").exits(0).prints("empty.jsonl: 0 of 0 valid\n")


@scenario
def lines_longer_than_any_buffer_are_read_whole(w):
    w.write("schema.json", {"type": "string", "maxLength": 1000000})
    lines = ['"%s"' % ("x" * n) for n in (3, 65533, 65534, 65535, 131070, 999999, 1000001, 5)]
    w.write("long.jsonl", "\n".join(lines))
    ran = w.pegboard("validate", "schema.json", "long.jsonl").exits(1)
    ran.mentions("long.jsonl:7: invalid", "long.jsonl: 7 of 8 valid\n")


@scenario
def a_line_beyond_the_maximum_is_skipped_and_the_rest_is_checked(w):
    w.write("schema.json", {"type": "string"})
    w.write("long.jsonl", '"%s"\n"ok"\n"%s"\n"%s"' % ("x" * 9, "x" * 300000, "y" * 8))
    ran = w.pegboard("validate", "--max-bytes", "10", "schema.json", "long.jsonl").exits(2)
    ran.complains("long.jsonl:1: unusable: ", "long.jsonl:3: unusable: ", "--max-bytes",
                  "(E_FILE_TOO_LARGE)")
    ran.mentions("long.jsonl: 2 of 4 valid\n")


@scenario
def a_file_beyond_the_maximum_is_refused_and_one_that_just_fits_is_not(w):
    w.write("schema.json", {})
    w.write("ten.json", '"12345678"')
    w.pegboard("validate", "--max-bytes", "10", "schema.json", "ten.json").exits(0)
    w.pegboard("validate", "--max-bytes", "10", "schema.json", "-", stdin='"12345678"').exits(0)
    for name, stdin in (("ten.json", ""), ("-", '"12345678"')):
        ran = w.pegboard("validate", "--max-bytes", "9", "schema.json", name, stdin=stdin).exits(2)
        ran.complains("larger than max-bytes = 9", "(E_FILE_TOO_LARGE)")


@scenario
def nesting_beyond_the_maximum_is_refused(w):
    w.write("schema.json", {})
    w.write("deep.json", "[" * 300 + "]" * 300)
    w.pegboard("validate", "schema.json", "deep.json").exits(2).complains("(E_JSON_TOO_DEEP)")
    w.pegboard("validate", "--max-depth", "300", "schema.json", "deep.json").exits(0)


@scenario
def a_directory_is_unusable(w):
    w.write("schema.json", {})
    w.pegboard("validate", "schema.json", ".").exits(2).complains(".: unusable: cannot be read")


if __name__ == "__main__":
    main()
