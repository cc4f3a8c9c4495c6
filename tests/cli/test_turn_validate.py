#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard turn validate` says of a file whether it is a turn, and finds what will hurt whoever
goes on with it, each thing with its place."""

import os

from scenario import check, main, scenario
from turns import EXAMPLE, REFERENCE, TURN, call, result, spool, turn, user


def validate(w, *arguments, **more):
    return w.pegboard("turn", "validate", *arguments, **more)


def findings(w, content, *options, name="t.json"):
    """What is found: level, code and place of each."""
    w.write(name, content)
    (told,) = validate(w, "--json", *options, name).is_silent().objects()
    return [(f["level"], f["code"], f["where"]) for f in told["findings"]]


# ---- verdicts -------------------------------------------------------------------------------


@scenario
def a_turn_without_a_fault_is_valid(w):
    w.write("turn.json", TURN)
    validate(w, "turn.json", EXAMPLE).exits(0).is_silent().prints(
        f"turn.json: valid\n{EXAMPLE}: valid\n")
    validate(w, "--strict", "-", stdin="blocks: []\n").exits(0).prints("<stdin>: valid\n")


@scenario
def what_is_no_turn_is_invalid_with_its_place(w):
    w.write("t.yaml", "id: t\nblocks:\n  - kind: user\n    payload: {text: [1]}\n")
    w.write("list.json", "[]")
    validate(w, "t.yaml", "list.json").exits(1).is_silent().mentions(
        "t.yaml: invalid, 1 error\n  t.yaml:4:21: error: at /blocks/0/payload/text: ",
        "list.json: invalid, 1 error\n  list.json:1:1: error: ", " (E_TURN_FORMAT)\n")


@scenario
def what_is_neither_json_nor_yaml_is_unusable(w):
    w.write("t.json", TURN)
    w.write("broken.json", '{"blocks": [}')
    ran = validate(w, "broken.json", "none.json", "t.json").exits(2).prints("t.json: valid\n")
    ran.complains("broken.json:1:13: unusable: ", "(E_JSON_SYNTAX)\n",
                  "none.json: unusable: cannot be opened")


@scenario
def quiet_prints_no_verdict_but_still_complains(w):
    w.write("t.json", TURN)
    w.write("list.json", "[]")
    validate(w, "-q", "t.json").exits(0).prints("").is_silent()
    validate(w, "--quiet", "list.json", "t.json").exits(1).prints("").is_silent()
    validate(w, "-q", "--json", "none.json").exits(2).prints("").complains("none.json: unusable: ")


@scenario
def programs_get_one_object_a_file(w):
    w.write("t.json", turn(call("c1", name="a")))
    w.write("list.json", "[]")
    good, no_turn, none = validate(w, "--json", "t.json", "list.json", "none.json").exits(2).objects()
    check(list(good) == ["file", "verdict", "valid", "blocks", "errors", "warnings", "findings",
                         "rewrite"], good)
    check((good["verdict"], good["valid"], good["blocks"]) == ("valid", True, 1), good)
    check((good["errors"], good["warnings"], good["rewrite"]) == (0, 1, "layout"), good)
    check(list(good["findings"][0]) == ["level", "code", "where", "line", "column", "message"], good)
    check((no_turn["verdict"], no_turn["errors"], no_turn["blocks"]) == ("invalid", 1, None), no_turn)
    check((none["verdict"], none["error"]["code"]) == ("unusable", "E_FILE"), none)


@scenario
def warnings_are_errors_where_that_is_asked_for(w):
    w.write("t.json", turn(call("c1")))
    validate(w, "t.json").exits(0).mentions("t.json: valid, 1 warning\n")
    validate(w, "--strict", "t.json").exits(1).mentions("t.json: invalid, 1 error\n", ": error: at ")


# ---- calls and results ------------------------------------------------------------------------


@scenario
def calls_without_results_are_listed(w):
    w.write("t.yaml", "blocks:\n  - {kind: tool_call, payload: {id: c1, name: mail}}\n"
            "  - {kind: tool_call, payload: {id: c2, name: mail}}\n"
            "metadata: {pegboard.calls_started@v1: [c2]}\n")
    validate(w, "t.yaml").exits(0).mentions(
        "t.yaml: valid, 2 warnings\n"
        "  t.yaml:2:5: warning: at /blocks/0: the call 'c1' of 'mail' has no result: "
        "resuming the turn runs it (E_CALL_PENDING)\n"
        "  t.yaml:3:5: warning: at /blocks/1: the call 'c2' of 'mail' had begun and has no result: "
        "its outcome is unknown (E_CALL_BEGUN)\n")


@scenario
def results_without_calls_are_errors(w):
    orphan = [("error", "E_RESULT_WITHOUT_CALL", "/blocks/0")]
    check(findings(w, turn(result("c9", result="x"))) == orphan, "none")
    late = turn({**result("c1", result="x", call="c1"), "id": "r"}, call("c1"))
    check(findings(w, late)[:1] == orphan, "a result before its call")


@scenario
def duplicates_are_reported(w):
    blocks = [call("c1"), result("c1", result="x"), result("c1", result="y")]
    check(findings(w, turn(*blocks)) == [("warning", "E_RESULT_TAKEN", "/blocks/2")], "results")
    blocks = [call("c1"), {**call("c1"), "id": "other"}, result("c1", result="x"),
              result("c1", result="y")]
    check(findings(w, turn(*blocks)) == [("warning", "E_CALL_ID_TAKEN", "/blocks/1")], "call ids")
    blocks = [user("a"), user("b")]
    check(findings(w, turn(*blocks)) == [("warning", "E_TURN_FORMAT", "/blocks/1/id")], "block ids")


# ---- tools ----------------------------------------------------------------------------------------


@scenario
def schemas_that_do_not_compile_are_errors(w):
    tools = [{"name": "good", "parameters": {"type": "object"}},
             {"name": "bad", "parameters": {"properties": {"x": {"type": "strange"}}},
              "output": {"minimum": "3"}}]
    for key in ("pegboard.tool_definitions@v1", "geppetto.tool_definitions@v1"):
        found = findings(w, turn(data={key: tools}))
        errors = [f for f in found if f[0] == "error"]
        check(errors == [
            ("error", "E_DEFINITION_SCHEMA", f"/data/{key}/1/parameters/properties/x/type"),
            ("error", "E_DEFINITION_SCHEMA", f"/data/{key}/1/output/minimum")], found)


@scenario
def definitions_and_settings_that_are_none_are_errors(w):
    for key, value, code, where in (
        ("pegboard.tool_definitions@v1", {"a": 1}, "E_KEY_VALUE", ""),
        ("pegboard.tool_definitions@v1", [{"x": 1}], "E_KEY_VALUE", ""),
        ("pegboard.tool_definitions@v1", [{"name": "t", "parameters": 3}], "E_DEFINITIONS",
         "/0/parameters"),
        ("pegboard.tool_config@v1", {"tool_choice": "maybe"}, "E_TOOL_CONFIG", "/tool_choice"),
        ("geppetto.tool_config@v1", {"retry_config": {"backoff_base": "soon"}}, "E_TOOL_CONFIG",
         "/retry_config/backoff_base"),
        ("pegboard.tool_config@v1", 5, "E_KEY_VALUE", ""),
    ):
        found = findings(w, turn(data={key: value}))
        check([f for f in found if f[0] == "error"] == [("error", code, f"/data/{key}{where}")],
              key, value, found)


# ---- keys -------------------------------------------------------------------------------------------


@scenario
def keys_that_are_none_older_or_of_another_version_are_reported(w):
    found = findings(w, turn(
        {**user("x"), "metadata": {"No Key": 1, "geppetto.middleware@v1": "m"}},
        metadata={"geppetto.session_id@v1": "s", "pegboard.inference_id@v2": "i", "app.own@v3": 1},
        data={"short": 1}))
    check(sorted(found) == [
        ("warning", "E_KEY", "/blocks/0/metadata/No Key"),
        ("warning", "E_KEY", "/data/short"),
        ("warning", "E_KEY_OLD", "/blocks/0/metadata/geppetto.middleware@v1"),
        ("warning", "E_KEY_OLD", "/metadata/geppetto.session_id@v1"),
        ("warning", "E_KEY_VERSION", "/metadata/pegboard.inference_id@v2"),
    ], found)
    check(("warning", "E_KEY", "/data/a~1b") in findings(w, turn(data={"a/b": 1})), "a JSON Pointer")


@scenario
def values_of_our_keys_are_checked(w):
    found = findings(w, turn(metadata={"pegboard.session_id@v1": 5,
                                       "pegboard.calls_started@v1": ["a", 1]}))
    check(found == [("error", "E_KEY_VALUE", "/metadata/pegboard.session_id@v1"),
                    ("error", "E_KEY_VALUE", "/metadata/pegboard.calls_started@v1")], found)


# ---- bytes --------------------------------------------------------------------------------------------


@scenario
def bytes_that_are_elsewhere_are_reported(w):
    ref = {"sha256": "0" * 64, "bytes": 12345}
    blocks = [call("c1"), result("c1", artifact={"kind": "json", "ref": ref})]
    check(findings(w, turn(*blocks)) == [("warning", "E_REFERENCE_MISSING", "/blocks/1")], "nowhere")
    validate(w, "t.json").exits(0).mentions("say with --bytes where they are")
    os.mkdir(w.path("t.bytes"), 0o700)
    found = findings(w, turn(*blocks), "--bytes", "t.bytes")
    check(found == [("error", "E_REFERENCE_MISSING", "/blocks/1")], found)


@scenario
def bytes_beside_the_file_are_compared_with_their_digest(w):
    blocks = [call("c1"), result("c1", artifact={"kind": "text", "ref": spool(w, b"hello")})]
    check(findings(w, turn(*blocks), "--bytes", "t.bytes") == [], "the right ones")
    spool(w, b"hello", kept=b"jello")
    found = findings(w, turn(*blocks), "--bytes", "t.bytes")
    check(found == [("error", "E_REFERENCE_WRONG", "/blocks/1")], found)


# ---- the file as a whole ------------------------------------------------------------------------------


@scenario
def an_unknown_member_is_a_warning(w):
    for content, where in ((turn(more=1), "/more"),
                           (turn({"kind": "memory", "payload": {}}), "/blocks/0/kind"),
                           (turn(user("x", colour="red")), "/blocks/0/colour")):
        check(findings(w, content) == [("warning", "E_TURN_FORMAT", where)], where)


@scenario
def a_note_says_what_rewriting_changes(w):
    w.write("t.json", turn(*TURN["blocks"][:3], {"kind": "llm_text", "payload": {"text": "x"}}))
    validate(w, "t.json").exits(0).prints(
        "t.json: valid\n  note: re-writing changes more than the layout, first at /blocks/3\n")
    for form in ("json", "yaml"):
        w.pegboard("turn", "convert", "--to", form, "-o", "out." + form, "t.json").exits(0)
        (told,) = validate(w, "--json", "out." + form).exits(0).objects()
        check(told["rewrite"] == "same", told)
    w.pegboard("turn", "convert", "--pretty", "-o", "out.json", "t.json").exits(0)
    (told,) = validate(w, "--json", "out.json").exits(0).objects()
    check(told["rewrite"] == "same", "pretty JSON is ours too", told)


@scenario
def the_form_of_geppetto_is_valid_with_warnings(w):
    w.write("ref.yaml", REFERENCE)
    (told,) = validate(w, "--json", "ref.yaml").exits(0).objects()
    codes = [f["code"] for f in told["findings"]]
    check(codes == ["E_TURN_FORMAT"] + ["E_KEY_OLD"] * 5 and told["rewrite"] == "content", told)
    check([f["line"] for f in told["findings"]] == sorted(f["line"] for f in told["findings"]), told)


@scenario
def places_in_a_wrapped_turn_are_places_of_the_file(w):
    found = findings(w, {"version": 1, "turn": turn(call("c1"))})
    check(("warning", "E_CALL_PENDING", "/turn/blocks/0") in found, found)


@scenario
def no_more_than_32_findings_are_reported(w):
    w.write("t.json", turn(*[call(f"c{i}") for i in range(1000)]))
    ran = validate(w, "t.json").exits(0).mentions("t.json: valid, 1000 warnings\n", "\n  and 968 more\n")
    check(ran.stdout.count("warning: ") == 32, ran)


@scenario
def text_from_a_file_cannot_steer_the_terminal(w):
    evil = "\033[2J\u202e\nfake.json: valid"
    w.write("t.json", turn(call(evil, name=evil), metadata={evil: 1}, **{evil: 2}))
    ran = validate(w, "t.json").exits(0)
    check(not any(c in ran.stdout for c in "\033\u202e") and "\nfake.json" not in ran.stdout, ran)
    check(len(validate(w, "--json", "t.json").objects()) == 1, "one line")


@scenario
def a_terminal_gets_colour_only_where_it_is_asked_for(w):
    w.write("t.json", turn(result("c", result="x")))
    check("\033" not in validate(w, "t.json").exits(1).stdout, "a pipe")
    validate(w, "--color=always", "t.json").exits(1).mentions("\033[31minvalid\033[0m",
                                                             "\033[31merror\033[0m")


if __name__ == "__main__":
    main()
