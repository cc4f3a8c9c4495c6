#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: `pegboard turn show` makes a conversation readable, for people and for programs, and
`pegboard turn convert` takes it from one format to the other without losing anything."""

import fcntl
import json
import os
import pty
import stat
import struct
import subprocess
import termios

from scenario import check, main, scenario
from turns import EXAMPLE, REFERENCE, TURN, call, result, spool, turn, user

TRANSCRIPT = """\
turn t-1 (turn.json)
  blocks   4

1 user
  how many open orders?

2 call query_orders  call_7
  {"sql":"SELECT 1"}

3 result query_orders  call_7
  {"n":3}

4 assistant
  Three.
"""


def show(w, *arguments, **more):
    return w.pegboard("turn", "show", *arguments, **more)


def convert(w, *arguments, **more):
    return w.pegboard("turn", "convert", *arguments, **more)


def on_terminal(w, *arguments, width=80, env=None):
    """Runs with stdout on a terminal of a width; returns what it showed."""
    main_end, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen([w.executable, *arguments], cwd=w.directory, stdout=other_end,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **(env or {})})
    os.close(other_end)
    shown = b""
    while True:
        try:
            some = os.read(main_end, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not some:
            break
        shown += some
    os.close(main_end)
    check(process.wait() == 0, arguments, shown)
    return shown.decode().replace("\r\n", "\n")


# ---- show: for people ---------------------------------------------------------------------


@scenario
def a_turn_is_shown_block_by_block(w):
    w.write("turn.json", TURN)
    show(w, "turn.json").exits(0).is_silent().prints(TRANSCRIPT)


@scenario
def the_example_shows_all_that_a_head_has(w):
    ran = show(w, EXAMPLE).exits(0).is_silent()
    head, *blocks = ran.stdout.split("\n\n")
    check(head == f"""\
turn turn-orders-1 ({EXAMPLE})
  session  session-bakery
  blocks   6
  tools    query_orders, send_mail
  model    example-model of openai
  usage    1,240 tokens in, 32 out, 1,024 cached
  stopped  stop (completed)""", head)
    check(len(blocks) == 6, blocks)
    check(blocks[1] == "2 user  2025-11-15 09:00:00 UTC\n  How many orders are still open?", blocks)
    check(blocks[4].startswith("5 result query_orders  call_7  12 ms  2025-"), blocks)


@scenario
def standard_input_and_several_files_are_shown(w):
    w.write("turn.json", TURN)
    w.write("empty.yaml", "{}\n")
    both = show(w, "-", "empty.yaml", stdin=json.dumps(TURN)).exits(0).stdout
    check(both == TRANSCRIPT.replace("turn.json", "<stdin>") + "\nturn (empty.yaml)\n  blocks   0\n",
          both)


@scenario
def the_form_of_geppetto_is_shown_alike(w):
    w.write("ref.yaml", REFERENCE)
    show(w, "ref.yaml").exits(0).is_silent().prints("""\
turn t-9 (ref.yaml)
  session  s-4
  blocks   4
  tools    price_of
  model    m of openai
  stopped  stop (completed)

1 user
  what does a rye loaf cost?

2 call price_of  call_a
  {"item":"rye","exact":12345678901234567890}

3 result price_of  call_a
  {"price":"4.20"}

4 assistant
  4.20 a loaf.
""")


@scenario
def a_fixture_that_wraps_a_turn_is_unwrapped(w):
    w.write("turn.json", {"version": 1, "turn": TURN, "followups": []})
    show(w, "turn.json").exits(0).prints(TRANSCRIPT)


@scenario
def calls_without_a_result_are_marked(w):
    w.write("t.json", turn(call("c1"), call("c2"), call("c3"), result("c1", result="x"),
                           metadata={"pegboard.calls_started@v1": ["c2"]}))
    shown = show(w, "t.json").exits(0).stdout
    check("  pending  2 calls, 1 begun\n" in shown, shown)
    for line in ("1 call t  c1\n", "2 call t  c2  begun, outcome unknown\n", "3 call t  c3  pending\n"):
        check(line in shown, line, shown)


@scenario
def failures_and_results_of_no_call_are_reported(w):
    w.write("t.json", turn(call("c1"), result("c1", error="too slow", code="E_TOOL_TIMEOUT"),
                           result("c9", result="x")))
    show(w, "t.json").exits(0).mentions("2 result t  c1  E_TOOL_TIMEOUT\n  too slow\n",
                                        "  c9  without a call\n")


@scenario
def artifacts_show_kind_length_and_text(w):
    missing = {"kind": "text", "ref": {"sha256": "0" * 64, "bytes": 12345}}
    w.write("t.json", turn(
        call("c1"), result("c1", artifact={"kind": "json", "text": '{"n":3}'}),
        call("c2"), result("c2", artifact=missing),
        call("c3"), result("c3", artifact={"kind": "text", "base64": "/wA="})))
    show(w, "t.json").exits(0).mentions(
        "c1\n  artifact json, 7 bytes\n  {\"n\":3}\n",
        "c2\n  artifact text, 12,345 bytes, not in the file\n\n",
        "c3\n  artifact text, 2 bytes\n")


@scenario
def media_are_shown_in_a_line_each(w):
    media = [{"id": "m1", "kind": "image", "media_type": "image/png", "filename": "a\x1b.png",
              "trust_tier": "first-party", "modality_hazard": "opaque-perceptual", "base64": "AAEC"},
             {"id": "m2", "kind": "document", "media_type": "application/pdf", "filename": "b.pdf",
              "trust_tier": "first-party", "modality_hazard": "extractable",
              "uri": "https://example.com/b.pdf"}]
    w.write("t.json", turn({"kind": "user", "payload": {"text": "look", "media": media}}))
    show(w, "t.json").exits(0).mentions(
        "  look\n  image a\\x1B.png (image/png), 3 bytes\n"
        "  document b.pdf (application/pdf), https://example.com/b.pdf\n")


@scenario
def arguments_and_results_are_cut_unless_all_is_asked_for(w):
    w.write("t.json", turn(user("m" * 5000), call("c1", args={"x": "a" * 5000}),
                           result("c1", result="r" * 5000)))
    shown = show(w, "t.json").exits(0).stdout
    check("m" * 5000 in shown, "messages are not cut")
    check("a" * 401 not in shown and "... (4,608 more bytes; --full shows them)\n" in shown, shown)
    check("r" * 1201 not in shown and "... (3,800 more bytes; --full shows them)\n" in shown, shown)
    shown = show(w, "--full", "t.json").exits(0).stdout
    check("a" * 5000 in shown and "r" * 5000 in shown and "..." not in shown, shown)


@scenario
def what_is_cut_is_cut_at_a_character(w):
    w.write("t.json", turn(call("c1", args={"x": "\u00e4" * 400})))
    check("\ufffd" not in show(w, "t.json").exits(0).stdout, "half a character")


@scenario
def kinds_and_the_last_blocks_can_be_chosen(w):
    w.write("turn.json", TURN)

    def heads(*options):
        text = show(w, *options, "turn.json").exits(0).stdout
        return [block.split()[0] for block in text.split("\n\n")[1:]]

    check(heads("--kinds", "user,assistant") == ["1", "4"], "by name")
    check(heads("--kinds", "tool_call,tool_use,llm_text") == ["2", "3", "4"], "as files call them")
    check(heads("--last", "2") == ["3", "4"], "the last")
    check(heads("--kinds=call,user", "--last=1") == ["2"], "the last of these")
    check(heads("--last", "100") == ["1", "2", "3", "4"], "more than there are")
    check(heads("--kinds", "system") == [], "none")


@scenario
def unknown_blocks_are_shown_as_they_are(w):
    w.write("t.json", turn({"kind": "memory", "payload": {"facts": [1, 2]}},
                           {"kind": "reasoning", "payload": {"encrypted_content": "xyz"}}))
    show(w, "t.json").exits(0).mentions('1 other memory  third-party-public\n  {"facts":[1,2]}\n',
                                        "2 reasoning\n  (no words; encrypted_content)\n")


# ---- show: on a terminal ----------------------------------------------------------------------


@scenario
def a_pipe_gets_no_colour_and_a_terminal_does(w):
    w.write("t.json", turn({"kind": "reasoning", "payload": {"text": "hm\nhm"}}, call("c1")))
    check("\033" not in show(w, "t.json").exits(0).stdout, "colour in a pipe")
    shown = on_terminal(w, "turn", "show", "t.json")
    for part in ("\033[1mturn t-1\033[0m (t.json)\n", "\033[1m1 reasoning\033[0m\n",
                 "  \033[2mhm\033[0m\n  \033[2mhm\033[0m\n", "\033[31mpending\033[0m"):
        check(part in shown, repr(part), repr(shown))
    check("\033" not in on_terminal(w, "turn", "show", "t.json", env={"NO_COLOR": "1"}), "NO_COLOR")
    check("\033" in show(w, "--color=always", "t.json").exits(0).stdout, "--color")


@scenario
def lines_fit_the_terminal(w):
    text = "The quick brown fox jumps over the lazy dog, and over " + "x" * 60 + " too."
    w.write("t.json", turn(user(text + "\n\n    indented\tby a tab")))
    shown = on_terminal(w, "turn", "show", "--color=never", "t.json", width=40)
    check(shown.split("\n\n", 1)[1] == """\
1 user
  The quick brown fox jumps over the
  lazy dog, and over
  """ + "x" * 38 + """
  """ + "x" * 22 + """ too.

      indented    by a tab
""", shown)
    wide = on_terminal(w, "turn", "show", "--color=never", "t.json", width=200)
    check(text in wide, wide)
    check(text in show(w, "t.json").exits(0).stdout, "a pipe is not wrapped")


@scenario
def wide_characters_take_two_columns(w):
    w.write("t.json", turn(user("\u6f22" * 30 + " e\u0301" * 20)))
    shown = on_terminal(w, "turn", "show", "--color=never", "t.json", width=42)
    lines = shown.splitlines()
    check("  " + "\u6f22" * 20 in lines and "  " + "\u6f22" * 10 + " e\u0301" * 10 in lines, lines)


@scenario
def text_from_a_file_cannot_steer_the_terminal(w):
    evil = "\033[2J\u009b31m\u202eabc\007\r\b"
    w.write("t.json", turn(
        user(evil), call(evil, name=evil, args={evil: evil}), result(evil, result=evil),
        {"kind": evil, "payload": {"text": evil}},
        {"kind": "reasoning", "payload": {evil: evil}},
        id=evil, metadata={"pegboard.session_id@v1": evil},
        data={"pegboard.tool_definitions@v1": [{"name": evil}]}))
    for option in ("--full", "--json"):
        ran = show(w, option, "t.json").exits(0)
        bad = "\033\007\b\r\u009b\u202e" if option == "--full" else "\033\007\b\r"
        check(not any(c in ran.stdout for c in bad), option, ran)
    show(w, "t.json").mentions("  \\x1B[2J\\xC2\\x9B31m\\xE2\\x80\\xAEabc\\x07\\x0D\\x08\n")


@scenario
def line_ends_of_other_systems_are_line_ends(w):
    w.write("t.json", turn(user("one\r\ntwo\r")))
    show(w, "t.json").exits(0).mentions("  one\n  two\\x0D\n")


# ---- show: for programs ------------------------------------------------------------------------


@scenario
def json_lines_have_the_turn_first_and_then_its_blocks(w):
    w.write("t.json", turn(*TURN["blocks"], call("c2"), call("c3"), metadata={
        "pegboard.session_id@v1": "s-1", "pegboard.calls_started@v1": ["c3"],
        "pegboard.inference_result@v1": {"model": "m"}},
        data={"pegboard.tool_definitions@v1": [{"name": "t"}]}))
    head, *blocks = show(w, "--json", "t.json").exits(0).is_silent().objects()
    check(head == {"type": "turn", "file": "t.json", "id": "t-1", "session_id": "s-1", "blocks": 6,
                   "tools": ["t"], "inference_result": {"model": "m"}, "pending": ["c2", "c3"]}, head)
    check([b["index"] for b in blocks] == list(range(6)), blocks)
    check([b.get("state") for b in blocks] == [None, "answered", None, None, "pending", "begun"],
          blocks)
    check(blocks[0]["block"] == TURN["blocks"][0], blocks[0])
    check(blocks[2]["block"]["payload"]["name"] == "query_orders", "a result can be read alone")


@scenario
def json_lines_can_be_chosen_too(w):
    w.write("turn.json", TURN)
    head, block = show(w, "--json", "--kinds", "result", "turn.json").exits(0).objects()
    check(head["blocks"] == 4 and head["session_id"] is None and block["index"] == 2, head, block)


# ---- convert -------------------------------------------------------------------------------------


@scenario
def the_default_is_the_other_format(w):
    w.write("turn.json", TURN)
    yaml = convert(w, "turn.json").exits(0).is_silent().stdout
    check(yaml.startswith("id: t-1\nblocks:\n  - id: b1\n    kind: user\n"), yaml)
    w.write("turn.yaml", yaml)
    text = convert(w, "turn.yaml").exits(0).is_silent().stdout
    check(text == json.dumps(TURN, separators=(",", ":")) + "\n", text)
    convert(w, "-", stdin=yaml).exits(0).prints(text)
    convert(w, "-", stdin=text).exits(0).prints(yaml)


@scenario
def converting_twice_gives_the_same_bytes(w):
    for name, content in (("ref.yaml", REFERENCE), ("turn.json", json.dumps(TURN))):
        w.write(name, content)
        for form in ("json", "yaml"):
            once = convert(w, "--to", form, name).exits(0).stdout
            w.write("once." + form, once)
            convert(w, "--to", form, "once." + form).exits(0).prints(once)
    convert(w, "--to", "json", "once.yaml").exits(0).prints(
        convert(w, "--to", "json", "turn.json").stdout)


@scenario
def unknown_members_survive_both_ways(w):
    w.write("ref.yaml", REFERENCE)
    w.write("a.json", convert(w, "ref.yaml").exits(0).stdout)
    w.write("b.yaml", convert(w, "a.json").exits(0).stdout)
    back = json.loads(convert(w, "b.yaml").exits(0).stdout)
    check(back["version"] == 1, back)
    check(back["blocks"][1]["payload"]["correlation"] == {"run_id": "inf-4", "tool_call_id": "call_a"},
          back)
    check(back["blocks"][1]["payload"]["args"]["exact"] == 12345678901234567890, back)
    check(back["metadata"]["geppetto.session_id@v1"] == "s-4", back)
    check(back["data"]["geppetto.tool_config@v1"]["execution_timeout"] == "30s", back)


@scenario
def the_options_shape_the_text(w):
    w.write("turn.json", turn(data={"app.x@v1": 1}))
    pretty = convert(w, "--pretty", "turn.json").exits(0).stdout
    check(pretty.startswith('{\n  "id": "t-1",\n'), pretty)
    check(json.loads(pretty)["data"] == {"app.x@v1": 1}, pretty)
    check("data" not in json.loads(convert(w, "--omit-data", "--to=json", "turn.json").stdout), "data")


@scenario
def references_stay_references_and_large_bytes_stay_in_the_text(w):
    ref = {"sha256": "0" * 64, "bytes": 12345}
    w.write("t.json", turn(call("c1"), result("c1", artifact={"kind": "json", "ref": ref}),
                           call("c2"), result("c2", artifact={"kind": "text", "text": "x" * 9000000})))
    w.write("t.yaml", convert(w, "t.json").exits(0).is_silent().stdout)
    blocks = json.loads(convert(w, "t.yaml").exits(0).stdout)["blocks"]
    check(blocks[1]["payload"]["artifact"]["ref"] == ref, blocks[1])
    check("ref" not in blocks[3]["payload"]["artifact"], "bytes must not get lost")
    check("x" * 9000000 in json.dumps(blocks[3]), "all of them")


@scenario
def bytes_beside_the_file_can_be_written_into_it(w):
    artifact = {"kind": "text", "ref": spool(w, b"hello")}
    w.write("t.json", turn(call("c1"), result("c1", artifact=artifact)))
    before = os.listdir(w.path("t.bytes"))
    show(w, "--bytes", "t.bytes", "t.json").exits(0).mentions("  artifact text, 5 bytes\n  hello\n")
    convert(w, "--bytes=t.bytes", "-o", "whole.json", "t.json").exits(0)
    show(w, "whole.json").exits(0).mentions("  artifact text, 5 bytes\n  hello\n")
    check(os.listdir(w.path("t.bytes")) == before, "the directory is only read")
    show(w, "--bytes", "none", "t.json").exits(2).complains("--bytes cannot be opened")
    check(not os.path.exists(w.path("none")), "reading makes no directory")


@scenario
def the_output_takes_its_format_from_its_name(w):
    w.write("turn.json", TURN)
    convert(w, "-o", "out.yaml", "turn.json").exits(0).prints("").is_silent()
    convert(w, "--output", "out.json", "turn.json").exits(0).prints("")
    convert(w, "-o", "out", "turn.json").exits(0).prints("")
    with open(w.path("out.json"), encoding="utf-8") as file:
        check(json.load(file) == TURN, "JSON")
    with open(w.path("out.yaml"), encoding="utf-8") as file, open(w.path("out"), encoding="utf-8") as o:
        check(file.read().startswith("id: t-1\n") and o.read().startswith("id: t-1\n"), "YAML")
    convert(w, "-o", "-", "--to", "yaml", "turn.json").exits(0).mentions("id: t-1\n")


@scenario
def a_file_is_replaced_whole_or_not_at_all(w):
    w.write("turn.json", TURN)
    w.write("bad.json", '{"blocks": [')
    w.write("out.yaml", "old")
    os.chmod(w.path("out.yaml"), 0o640)
    convert(w, "-o", "out.yaml", "bad.json").exits(2).complains("bad.json:1:13: unusable: ")
    with open(w.path("out.yaml"), encoding="utf-8") as file:
        check(file.read() == "old", "a file that cannot be read changes nothing")
    os.symlink("out.yaml", w.path("link.yaml"))
    convert(w, "-o", "link.yaml", "turn.json").exits(0)
    check(os.path.islink(w.path("link.yaml")), "the link stays")
    with open(w.path("out.yaml"), encoding="utf-8") as file:
        check(file.read().startswith("id: t-1\n"), "replaced")
    check(stat.S_IMODE(os.stat(w.path("out.yaml")).st_mode) == 0o640, "with its permissions")
    convert(w, "-o", "turn.json", "--pretty", "turn.json").exits(0)
    convert(w, "-o", "none/out.yaml", "turn.json").exits(2).complains("none/out.yaml: unusable: cannot")
    check(sorted(os.listdir(w.directory)) == ["bad.json", "link.yaml", "out.yaml", "turn.json"],
          os.listdir(w.directory))


@scenario
def a_full_disk_is_not_taken_for_an_answer(w):
    w.write("turn.json", TURN)
    convert(w, "-o", "/dev/full", "turn.json").exits(2).complains("/dev/full: unusable: cannot be")
    with open("/dev/full", "w", encoding="utf-8") as full:
        convert(w, "turn.json", stdout=full).exits(2).complains("could not be written")


# ---- what cannot be used -------------------------------------------------------------------------


@scenario
def what_cannot_be_used_is_reported_with_its_place_and_the_rest_is_shown(w):
    w.write("good.json", TURN)
    w.write("broken.json", '{\n "blocks": [}')
    w.write("wrong.yaml", "id: t\nblocks:\n  - kind: user\n    payload: {text: [1]}\n")
    w.write("list.json", "[]")
    w.write("big.json", turn(user("x" * 5000)))
    ran = show(w, "--max-bytes", "4K", "broken.json", "wrong.yaml", "list.json", "missing.json",
               "big.json", "good.json").exits(2).mentions("turn t-1 (good.json)\n")
    ran.complains("broken.json:2:13: unusable: ", "(E_JSON_SYNTAX)\n",
                  "wrong.yaml:4:21: unusable: at /blocks/0/payload/text: ", "(E_TURN_FORMAT)\n",
                  "list.json:1:1: unusable: ", "missing.json: unusable: cannot be opened",
                  "big.json: unusable: the file is larger than max-bytes = 4096; raise it with")
    check(ran.stderr.count("\n") == 5, ran)


@scenario
def hostile_files_end_in_one_complaint(w):
    for name, content in (
        ("binary.json", bytes(range(256)) * 50),
        ("binary", bytes(range(255, -1, -1)) * 50),
        ("deep.json", '{"blocks":' + "[" * 100000),
        ("deep.yaml", "blocks: " + "[" * 5000),
        ("nested.json", '{"blocks":[],"data":{"a.b@v1":' + "[" * 300 + "]" * 300 + "}}"),
        ("bomb.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join(["*" + chr(97 + i)] * 9) + "]\n"
            for i in range(9)) + "blocks: []\n"),
        ("twice.json", '{"blocks":[],"blocks":[]}'),
        ("empty.json", ""),
        ("nul.yaml", b"id: \0\nblocks: []\n"),
    ):
        w.write(name, content)
        for command in ("show", "convert", "validate"):
            ran = w.pegboard("turn", command, name).exits(2).prints("")
            check(ran.stderr.count("\n") == 1 and ran.stderr.startswith(name + ":"), ran)


@scenario
def a_long_turn_is_shown_quickly(w):
    blocks = [call(f"c{i}") for i in range(20000)]
    w.write("t.json", turn(*blocks, metadata={
        "pegboard.calls_started@v1": [f"c{i}" for i in range(20000)]}))
    show(w, "--last", "1", "t.json").exits(0).mentions("  pending  20000 calls, 20000 begun\n",
                                                       "20000 call t  c19999  begun")


@scenario
def wrong_use_is_reported_in_one_sentence(w):
    w.write("t.json", TURN)
    for arguments, words in (
        (["show"], "at least one file is needed; see `pegboard turn show --help`"),
        (["show", "-", "-"], "standard input can be read only once"),
        (["show", "--kinds", "user,none", "t.json"], "--kinds is 'user,none', but should be some of"),
        (["show", "--kinds", "", "t.json"], "--kinds is '', but should be some of"),
        (["show", "--last", "0", "t.json"], "--last is '0', but should be a number"),
        (["show", "--max-bytes", "x", "t.json"], "--max-bytes is 'x', but should be a size"),
        (["show", "--color", "red", "t.json"], "--color is 'red', but should be auto,"),
        (["convert"], "one file is needed"),
        (["convert", "t.json", "t.json"], "unexpected argument 't.json'"),
        (["convert", "--to", "xml", "t.json"], "--to is 'xml', but should be json or yaml"),
        (["convert", "--to", "yaml", "--pretty", "t.json"], "--pretty is for JSON"),
        (["validate"], "at least one file is needed"),
        (["validate", "-", "-"], "standard input can be read only once"),
    ):
        ran = w.pegboard("turn", *arguments).exits(2).prints("").complains(words, "`pegboard turn ")
        check(ran.stderr.count("\n") == 1, ran)


if __name__ == "__main__":
    main()
