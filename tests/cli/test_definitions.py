#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard definitions` shows what a provider would be sent for the tools in a file of any of
its shapes, and tells what is lost, to people and to programs."""

import json
import os
import pty

from scenario import check, main, scenario

WEATHER = {
    "name": "weather",
    "description": "Tells it.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "format": "city-name"}},
        "required": ["city"],
    },
}
CHAT = [{"type": "function", "function": WEATHER}]


def definitions(w, *arguments, **more):
    return w.pegboard("definitions", *arguments, **more)


# ---- shapes of files --------------------------------------------------------------------


@scenario
def an_array_of_definitions_is_shown_as_the_provider_takes_it(w):
    w.write("tools.json", [WEATHER])
    ran = definitions(w, "--provider", "openai-chat", "tools.json").exits(0).is_silent()
    check(json.loads(ran.stdout) == CHAT, ran)
    check(ran.stdout.count("\n") == 1, "compact, for programs")


@scenario
def each_provider_has_its_own_shape(w):
    w.write("tools.json", [WEATHER])
    for provider, words in (
        ("neutral", '[{"name":"weather"'),
        ("openai-chat", '[{"type":"function","function":{"name"'),
        ("openai-responses", '"strict":false'),
        ("anthropic", '"input_schema":{"type":"object"'),
        ("gemini", '[{"functionDeclarations":[{"name":"weather"'),
    ):
        definitions(w, "-p", provider, "tools.json").exits(0).mentions(words)


@scenario
def an_object_with_tools_and_the_names_of_others_are_understood(w):
    schema = WEATHER["parameters"]
    for name in ("inputSchema", "input_schema", "parameters"):
        w.write("t.json", {"tools": [{"name": "weather", "description": "Tells it.", name: schema}]})
        ran = definitions(w, "-p", "openai-chat", "t.json").exits(0)
        check(json.loads(ran.stdout) == CHAT, name, ran)
    w.write("t.json", {"tools": CHAT})
    check(json.loads(definitions(w, "-p", "openai-chat", "t.json").exits(0).stdout) == CHAT, "openai")


@scenario
def yaml_is_understood_by_its_name_and_on_standard_input(w):
    text = "- name: weather\n  description: Tells it.\n  parameters:\n    type: object\n" \
           "    properties: {city: {type: string, format: city-name}}\n    required: [city]\n"
    w.write("tools.yaml", text)
    for ran in (definitions(w, "-p", "openai-chat", "tools.yaml"),
                definitions(w, "-p", "openai-chat", "-", stdin=text),
                definitions(w, "-p", "openai-chat", "-", stdin=json.dumps([WEATHER]))):
        check(json.loads(ran.exits(0).stdout) == CHAT, ran)


@scenario
def a_turn_shows_the_definitions_that_it_holds(w):
    for key in ("pegboard.tool_definitions@v1", "geppetto.tool_definitions@v1"):
        w.write("turn.json", {"id": "t1", "blocks": [], "data": {key: [WEATHER]}})
        ran = definitions(w, "-p", "openai-chat", "turn.json").exits(0).is_silent()
        check(json.loads(ran.stdout) == CHAT, ran)


@scenario
def a_turn_without_definitions_sends_no_tools(w):
    w.write("turn.json", {"id": "t1", "blocks": []})
    definitions(w, "-p", "anthropic", "turn.json").exits(0).prints("[]\n").complains(
        "turn.json: the turn holds no definitions")


# ---- what is lost --------------------------------------------------------------------------


@scenario
def the_report_goes_to_people_beside_the_tools(w):
    w.write("tools.json", [WEATHER])
    ran = definitions(w, "-p", "gemini", "tools.json").exits(0)
    check(ran.stderr == "weather: /properties/city/format described: "
          "Gemini's parameters do not know this format\n", ran)
    check(json.loads(ran.stdout)[0]["functionDeclarations"][0]["name"] == "weather", ran)
    definitions(w, "-p", "gemini", "--quiet", "tools.json").exits(0).is_silent().prints(ran.stdout)
    definitions(w, "-p", "gemini", "--losses", "tools.json").exits(0).is_silent().prints(ran.stderr)


@scenario
def programs_get_tools_and_losses_in_one_object(w):
    w.write("tools.json", [WEATHER, {"name": "fs.read"}])
    ran = definitions(w, "-p", "openai-responses", "--strict", "--json", "tools.json").exits(0)
    ran.is_silent()
    told = json.loads(ran.stdout)
    check(told["provider"] == "openai-responses", told)
    check([tool["name"] for tool in told["tools"]] == ["weather", "fs_read"], told)
    check(all(tool["strict"] is True for tool in told["tools"]), told)
    check({loss["keyword"] for loss in told["losses"]} == {"format", "additionalProperties", "name"},
          told)
    check(set(told["losses"][0]) == {"tool", "where", "keyword", "what", "note"}, told)


@scenario
def a_loss_can_be_a_failure(w):
    w.write("tools.json", [WEATHER])
    definitions(w, "-p", "gemini", "--fail-on-loss", "tools.json").exits(1).mentions("weather")
    definitions(w, "-p", "anthropic", "--fail-on-loss", "tools.json").exits(0)
    definitions(w, "-p", "gemini", "--fail-on-loss", "--json-schema", "tools.json").exits(0).mentions(
        "parametersJsonSchema")


@scenario
def a_schema_that_does_not_compile_is_reported(w):
    w.write("tools.json", [{"name": "t", "parameters": {
        "type": "object", "properties": {"x": {"type": "strange"}}}}])
    definitions(w, "-p", "anthropic", "tools.json").exits(0).mentions("strange").complains(
        "t: its schema does not compile: /properties/x")


@scenario
def names_from_a_file_cannot_steer_the_terminal(w):
    w.write("tools.json", [{"name": "a\x1b[2J", "parameters": {"$comment": "c"}}])
    ran = definitions(w, "-p", "anthropic", "--losses", "--color=always", "tools.json").exits(0)
    check("\x1b[2J" not in ran.stdout and "\\x1B[2J" in ran.stdout, ran)


@scenario
def people_get_line_ends_on_a_terminal(w):
    w.write("tools.json", [{"name": "t"}])
    main_end, other_end = pty.openpty()
    definitions(w, "-p", "anthropic", "tools.json", stdout=other_end).exits(0)
    os.close(other_end)
    check(b'[\r\n  {\r\n    "name": "t",' in os.read(main_end, 4096), "pretty")
    os.close(main_end)


# ---- what cannot be used -----------------------------------------------------------------------


@scenario
def what_cannot_be_used_is_reported_with_its_place(w):
    w.write("broken.json", '[{"name": ]')
    w.write("none.json", "{}")
    w.write("nameless.json", [{"description": "x"}])
    w.write("string.json", [{"name": "s", "parameters": {"type": "string"}}])
    w.write("many.json", [{"name": f"t{i}"} for i in range(129)])
    for file, *words in (
        ("missing.json", "missing.json: "),
        ("broken.json", "broken.json:1:11: "),
        ("none.json", "there are no definitions here"),
        ("nameless.json", "nameless.json: /0/name: "),
        ("string.json", "/0/parameters/type: "),
        ("many.json", "there are 129 tools", "at most 128"),
    ):
        ran = definitions(w, "-p", "openai-chat", file).exits(2).prints("").complains(*words)
        check(ran.stderr.count("\n") == 1, ran)
    definitions(w, "-p", "openai-chat", "--max-tools", "200", "many.json").exits(0)


@scenario
def wrong_use_is_reported_in_one_sentence(w):
    w.write("t.json", "[]")
    for arguments, words in (
        ([], "one file is needed"),
        (["-p", "gemini", "t.json", "t.json"], "unexpected argument 't.json'"),
        (["t.json"], "--provider is needed: neutral,"),
        (["-p", "claude", "t.json"], "--provider is 'claude', but should be neutral,"),
        (["-p", "gemini", "--strict", "t.json"], "--strict is for openai-chat"),
        (["-p", "anthropic", "--json-schema", "t.json"], "--json-schema is for gemini"),
        (["-p", "gemini", "--max-tools", "0", "t.json"], "--max-tools is '0', but should be"),
    ):
        ran = definitions(w, *arguments).exits(2).prints("").complains(words, "`pegboard definitions")
        check(ran.stderr.count("\n") == 1, ran)


if __name__ == "__main__":
    main()
