#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that judge others must be able to say no. Prints TAP."""

import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402  pylint: disable=wrong-import-position


def load(tool):
    name = tool.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / tool))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


behaviours = load("check-behaviours")
draw_states = load("draw-states")
layers = load("check-layers")
words = load("check-words")
run_tests = load("run-tests")


# ---- check-layers ----------------------------------------------------------------

def check(files):
    """What check-layers says about a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_text(text)
        return layers.check_tree(root)[1]


def expect_refused(path, include, words):
    found = check({path: f"/* x */\n#include {include}\n"})
    assert len(found) == 1, found
    assert words in found[0] and f"{path}:2:" in found[0], found


def test_layers_accept_this_tree():
    n_files, found = layers.check_tree(ROOT)
    assert n_files > 10 and not found, "\n".join(found)


def test_layers_accept_what_is_above_and_beside():
    assert not check({
        "src/json/a.c": '#include "json/b.h"\n#include "base/mem.h"\n#include <string.h>\n',
        "src/json/b.h": "#include <pegboard/json.h>\n#include <yaml.h>\n",
        "src/json/meta/c.c": '#include "json/internal.h"\n',
        "src/base/digest.c": "#include <openssl/sha.h>\n",
        "include/pegboard/json.h": "#include <pegboard/common.h>\n#include <stddef.h>\n",
    })


def test_layers_refuse_what_is_below():
    expect_refused("src/json/a.c", '"schema/schema.h"', "json/ may not include schema/")
    expect_refused("src/base/a.h", '  "json/json.h"', "base/ may not include json/")


def test_layers_refuse_the_forbidden_pairs():
    expect_refused("src/gateway/a.c", '"remote/client/remote.h"', "gateway/ may not include remote/")
    expect_refused("src/tools/a.c", '"engine/engine.h"', "tools/ may not include engine/")
    expect_refused("src/calls/provider/a.c", '"calls/caller/call.h"', "calls/provider may not include calls/caller")


def test_layers_let_calls_use_packed_messages_and_timers_only():
    found = check({"src/calls/a.c": '#include "wire/pack.h"\n#include "net/loop/loop.h"\n#include "pegboard/v1/registry.fields.h"\n'
                                    '#include "wire/wire.h"\n#include "net/stream/stream.h"\n#include "pegboard/v1/registry.pb-c.h"\n'})
    assert [line.split(":")[1] for line in found] == ["4", "5", "6"], found


def test_layers_keep_generated_headers_where_protobuf_is():
    assert not check({
        "src/wire/a.c": '#include "goapb/goa.pb-c.h"\n',
        "src/gateway/a.c": '#include "pegboard/v1/registry.grpc.h"\n',
    })
    expect_refused("src/core/a.c", '"pegboard/v1/registry.pb-c.h"', "is generated")
    expect_refused("src/bus/a.c", '"goapb/goa.pb-c.h"', "reserved for grpc/")


def test_layers_refuse_hidden_headers_of_others():
    expect_refused("src/schema/a.c", '"json/internal.h"', "hidden")
    expect_refused("src/schema/a.c", '"json/parse_internal.h"', "hidden")


def test_layers_refuse_third_party_headers_in_the_wrong_place():
    expect_refused("src/schema/a.c", "<openssl/sha.h>", "reserved for base/digest.c")
    expect_refused("src/base/a.c", "<yaml.h>", "reserved for json/")


def test_layers_refuse_third_party_headers_nobody_decided_on():
    expect_refused("src/base/a.c", "<lzma.h>", "in no table")


def test_layers_refuse_unclear_paths_and_unknown_directories():
    expect_refused("src/base/a.c", '"mem.h"', "directory/file.h")
    expect_refused("src/base/a.c", '"../json/json.h"', "directory/file.h")
    expect_refused("src/strange/a.c", '"base/mem.h"', "in no directory")


def test_layers_refuse_inner_headers_in_public_ones():
    expect_refused("include/pegboard/a.h", '"base/mem.h"', "public header")


def test_layers_keep_inner_rooms_in_their_order():
    known, layers.ROOMS = layers.ROOMS, {"json": ["number", "yaml"]}
    try:
        assert not check({"src/json/yaml/a.c": '#include "json/number/b.h"\n#include "json/c.h"\n'})
        expect_refused("src/json/number/a.c", '"json/yaml/b.h"', "json/number may not include json/yaml")
        assert not check({"src/json/a.c": '#include "json/yaml/b.h"\n'})
        expect_refused("src/json/yaml/a.c", '"json/number/internal.h"', "only json/number/ may include it")
        expect_refused("src/json/path/a.c", '"json/number/b.h"', "src/json/path is in no table")
    finally:
        layers.ROOMS = known


def ring(directory, n):
    """n files of which each calls the next one, and the last one the first"""
    return {f"src/{directory}/f{i}.c": f"int {directory}_f{i}(void)\n{{\n    return {directory}_f{(i + 1) % n}();\n}}\n" for i in range(n)}


def test_layers_refuse_files_that_call_each_other_in_a_large_circle():
    assert not check(ring("json", 4))
    found = check(ring("json", 5))
    assert len(found) == 1 and found[0].startswith("5 files call each other, at most 4 may: json/f0.c"), found


def test_layers_do_not_take_comments_and_statics_for_calls():
    files = ring("json", 5)
    files["src/json/f4.c"] = "/* json_f0() is called elsewhere */\nint json_f4(void)\n{\n    return 0;\n}\n"
    assert not check(files)


# ---- check-words ------------------------------------------------------------------

def check_words(line, files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_text(text)
        (Path(root) / "words.tsv").write_text(line)
        table = words.read_table(Path(root) / "words.tsv")
        return list(words.find_retired(root, table)), words.count_statics(root)


def test_words_refuse_a_retired_name_and_give_the_new_one():
    found, _ = check_words("gw_desk\tgw_calls\tsrc/old\n", {
        "src/a.c": "int x;\nstruct gw_desk *gw_desks;\n", "src/old/b.c": "struct gw_desk;\n"})
    assert found == ["src/a.c:2: 'gw_desk' is retired; write 'gw_calls'"], found


def test_words_refuse_a_retired_file_name():
    found, _ = check_words("desk.c\tcalls.c\t\n", {"src/desk.c": "", "src/desks.c": ""})
    assert found == ["src/desk.c: a file is not named 'desk.c' any more, but 'calls.c'"], found


def test_words_count_static_names_in_three_files():
    text = "static int run(void)\n{\n    return other();\n}\nstatic inline struct x *get_it(int i)\n{\n}\n"
    _, shared = check_words("", {"src/a.c": text, "src/b.c": text, "src/c.c": "static void run(void)\n"})
    assert shared == {"run": {"src/a.c", "src/b.c", "src/c.c"}}, shared


def test_words_refuse_a_damaged_table():
    for line in ("gw_desk gw_calls\n", "a\tb\t\na\tc\t\n"):
        try:
            check_words(line, {})
        except ValueError as error:
            assert "words.tsv:" in str(error)
        else:
            raise AssertionError("the table was accepted")


# ---- draw-states ------------------------------------------------------------------

def check_drawing(change=None, page=None):
    """What draw-states --check says about this tree's drawing when its table, or the page, is another."""
    with tempfile.TemporaryDirectory() as root:
        for path in (*draw_states.SOURCES.values(), draw_states.PAGE):
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_text((ROOT / path).read_text())
        if change:
            sources = [Path(root) / path for path in draw_states.SOURCES.values()]
            texts = [source.read_text() for source in sources]
            assert texts != [change(text) for text in texts], "the change changes nothing"
            for source, text in zip(sources, texts):
                source.write_text(change(text))
        if page:
            (Path(root) / draw_states.PAGE).write_text(page)
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "draw-states"), "--check", root], check=False, text=True, capture_output=True)
        return done.returncode, done.stdout


def replacing(old, new):
    return lambda text: text.replace(old, new)


def test_the_walk_of_a_call_shows_the_states_of_the_code():
    assert check_drawing() == (0, "")


def test_the_drawing_refuses_a_transition_that_the_page_lacks():
    status, said = check_drawing(replacing('"grace", GIVING_UP', '"grace", SENT | GIVING_UP'))
    assert status == 1 and "+    grace --> sent" in said and "run tools/draw-states" in said, said


def test_the_drawing_refuses_a_transition_that_the_code_lacks():
    status, said = check_drawing(replacing("REPORTED | ", ""))
    assert status == 1 and "-    running --> reported" in said, said


def test_the_drawing_refuses_another_meaning():
    status, said = check_drawing(replacing("/* asks for a provider */", "/* asks for a person */"))
    assert status == 1 and "asks for a person" in said, said


def test_the_drawing_refuses_a_table_that_cannot_be_true():
    for change, words in (
            (replacing('"queued", CLAIMING', '"queued", CLAIMED'), "expected states"),
            (replacing('"queued", CLAIMING', '"queued", OVER'), "each once"),
            (replacing("X(CLAIMING,", "X(QUEUED,"), "expected new states"),
            (replacing("/* asks for a provider */", ""), "its meaning"),
            (replacing('"returning", OVER', '"returning", 0'), "nothing leaves RETURNING"),
            (replacing('"over", 0', '"over", CHECKING'), "OVER is left"),
            (replacing("CALLS_ASSIGNMENT_STATES(X) ", "STATES(X) "), "is not there")):
        status, said = check_drawing(change)
        assert status == 1 and words in said, (words, said)


def test_the_drawing_refuses_a_page_without_its_markers():
    page = (ROOT / draw_states.PAGE).read_text()
    status, said = check_drawing(page=page.replace("<!-- end: assignment table -->", ""))
    assert status == 1 and "<!-- end: assignment table -->" in said, said


# ---- run-tests --------------------------------------------------------------------

def tally(stdout, result="OK", returncode=0, stderr=""):
    counted = run_tests.Tally()
    run_tests.judge({"name": "p:m / prog", "stdout": stdout, "result": result, "stderr": stderr,
                     "returncode": returncode}, counted)
    return counted


def test_counts_passed_failed_and_skipped_lines():
    counted = tally("ok 1 - a\n# t.c:3: expected x\nnot ok 2 - b # /odd/name\n"
                    "ok 3 - c # SKIP no suite\n1..3\n", "FAIL", 1)
    assert str(counted) == "1 passed, 1 failed, 1 skipped", counted
    assert counted.failed[0] == ("m / prog: b # /odd/name", ["# t.c:3: expected x"])
    assert counted.skipped[0] == ("m / prog: c", "no suite")


def test_a_failure_is_written_with_what_was_said_before_it():
    said = io.StringIO()
    run_tests.write_failures(tally("# t.c:3: expected x\nnot ok 1 - b\nok 2 - c\n1..2\n", "FAIL", 1).failed, said)
    assert said.getvalue() == "  m / prog: b\n      # t.c:3: expected x\n", said.getvalue()


def record(name, good, returncode=None, stderr=""):
    return {"name": f"p:m / {name}", "stdout": f"{'ok' if good else 'not ok'} 1 - a\n1..1\n", "stderr": stderr,
            "result": "OK" if good else "FAIL", "returncode": returncode if returncode is not None else int(not good)}


def again(first, second, most=3):
    """What counts after a second run, and what was asked of meson."""
    counted, asked = run_tests.Tally(), []
    known, run_tests.run_meson = run_tests.run_meson, lambda _, arguments: asked.append(arguments) or second
    try:
        for found in run_tests.run_again("build", ["--suite", "x"], first, most, counted):
            run_tests.judge(found, counted)
    finally:
        run_tests.run_meson = known
    return counted, asked


def test_a_second_run_alone_counts_and_the_first_is_told():
    counted, asked = again([record("a", True), record("b", False)], [record("b", True)])
    assert asked == [["--suite", "x", "--num-processes", "1", "b"]], asked
    assert counted.passed == 2 and not counted.failed, counted
    assert [name for name, _ in counted.repeated] == ["m / b: a"], counted.repeated


def test_a_second_run_that_fails_is_a_failure():
    counted, _ = again([record("b", False)], [record("b", False)])
    assert len(counted.failed) == 1 and len(counted.repeated) == 1, counted


def test_a_second_run_that_did_not_come_changes_nothing():
    counted, _ = again([record("b", False)], [])
    assert len(counted.failed) == 1 and not counted.repeated, counted


def test_memory_errors_crashes_and_many_failures_are_not_run_again():
    for first in ([record("b", False, 99)], [record("b", False, -11)],
                  [record("b", False, stderr="==1==ERROR: AddressSanitizer: heap-use-after-free")],
                  [record("b", False, stderr="x.c:1:2: runtime error: shift")],
                  [record("b", False, -6, "==7== Invalid read of size 1")],
                  [record("a", False), record("b", False, -11)],
                  [record(name, False) for name in "abcd"]):
        counted, asked = again(first, [record("b", True)])
        assert not asked and len(counted.failed) >= len(first), (first, counted)


def test_what_a_program_left_when_it_gave_up_is_no_memory_error():
    _, asked = again([record("b", False, -6, "==7== 288 bytes in 1 blocks are possibly lost")], [record("b", True)])
    assert len(asked) == 1


def test_counts_a_crash_as_a_failure():
    counted = tally("ok 1 - a\n", "FAIL", -11, "Segmentation fault\n")
    assert str(counted) == "1 passed, 1 failed, 0 skipped", counted
    assert "stopped before its plan" in counted.failed[0][0]
    assert "Segmentation fault" in counted.failed[0][1]


def test_counts_a_crash_after_a_failed_test_once_more():
    counted = tally("not ok 1 - a\n1..1\n", "FAIL", -6)
    assert str(counted) == "0 passed, 2 failed, 0 skipped", counted


def test_counts_a_bad_exit_of_a_program_whose_tests_pass():
    counted = tally("ok 1 - a\n1..1\n", "ERROR", 99, "12 bytes are definitely lost\n")
    assert str(counted) == "1 passed, 1 failed, 0 skipped", counted


def test_counts_a_timeout_as_a_failure():
    assert str(tally("ok 1 - a\n1..1\n", "TIMEOUT", 0)) == "1 passed, 1 failed, 0 skipped"
    assert str(tally("", "TIMEOUT", 0)) == "0 passed, 1 failed, 0 skipped"


def test_counts_a_plan_that_was_not_kept():
    assert str(tally("1..3\nok 1 - a\nok 2 - b\n", "ERROR", 0)) == "2 passed, 1 failed, 0 skipped"
    assert str(tally("Bail out! no suite\n1..0\n", "ERROR", 0)) == "0 passed, 1 failed, 0 skipped"


def test_counts_programs_without_tap_as_one():
    assert str(tally("hello\n")) == "1 passed, 0 failed, 0 skipped"
    assert str(tally("hello\n", "FAIL", 1)) == "0 passed, 1 failed, 0 skipped"
    assert str(tally("", "SKIP", 77)) == "0 passed, 0 failed, 1 skipped"


def test_counts_a_program_that_skips_itself():
    counted = tally("1..0 # SKIP no suite found\n", "SKIP")
    assert counted.skipped == [("m / prog", "no suite found")]


# ---- check-behaviours ---------------------------------------------------------------

TESTS = ("/* T1, T2 */\nTEST(one)\n{\n}\n\n/* T3 */\n/* Why. */\nTORTURE(two)\n{\n}\n\nTEST(bare)\n"
         "/* T5, G149: why */\nTEST(three)\n")
DESIGN = "## 3. X\n9. no\n\n## 4. Y\n\n1. **One.** Words that\n   go on.\n2. Two.\n\n**More.** Z\n"


def judge_table(rows, tests=TESTS, design=DESIGN):
    """Complaints about a table of {number: cells}; all other behaviours have a good row."""
    good = {n: "x | not applicable in C: y" for n in behaviours.NUMBERS}
    lines = [f"| {n} | {cells} |" for n, cells in {**good, **rows}.items() if cells]
    with tempfile.TemporaryDirectory() as top:
        root = Path(top) / "main"
        for path, text in {"docs/behaviours.md": "\n".join(["| T | a | b |", "|---|---|---|"] + lines),
                           "tests/core/test_x.c": tests, "../shared/DESIGN.md": design}.items():
            if text:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
        verdicts, other = behaviours.check_tree(root)
        return [sentence for _, _, found in verdicts for sentence in found] + other


def expect_row_refused(number, cell, words, **kwargs):
    found = judge_table({number: f"x | {cell}"}, **kwargs)
    assert len(found) == 1 and words in found[0] and number in found[0], found


def test_behaviours_accept_every_way_to_decide():
    assert not judge_table({
        "T1": "x | test: `tests/core/test_x.c:one`",
        "T2": 'x | design: 4.1 "Words that go on"; test: tests/core/test_x.c:one',
        "T3": "x | test: `tests/core/test_x.c:two`",
        "T4": "x | not applicable in C: enums; no such thing",
        "G149": "x | test: `tests/core/test_x.c:three`",
    })


def test_behaviours_accept_several_tests_of_one_number():
    assert not judge_table({"T3": "x | test: `tests/core/test_x.c:a`, `tests/core/test_x.c:b`"},
                           tests="/* T3 */\nTEST(a)\n/* T2, T3 */\nTEST(b)\n")


def test_behaviours_refuse_a_number_that_is_missing_or_double():
    assert judge_table({"T7": None}) == ["T7 has 0 rows instead of one"]
    assert judge_table({"T7": "x | not applicable in C: y |\n| T7 | x | not applicable in C: y"}) == [
        "T7 has 2 rows instead of one"]
    assert judge_table({"T158": "x | not applicable in C: y"}) == ["T158 is no behaviour"]
    assert judge_table({"G150": "x | not applicable in C: y"}) == ["G150 is no behaviour"]


def test_behaviours_refuse_a_test_that_is_not_there():
    expect_row_refused("T1", "test: `tests/core/test_y.c:one`", "there is no tests/core/test_y.c")
    expect_row_refused("T1", "test: `tests/core/test_x.c:none`", "has no TEST or TORTURE(none)")
    expect_row_refused("T1", "test: one", "is not written")


def test_behaviours_refuse_a_test_that_does_not_carry_the_number():
    expect_row_refused("T4", "test: `tests/core/test_x.c:one`", "does not have /* T4 */")
    expect_row_refused("T1", "test: `tests/core/test_x.c:bare`", "does not have /* T1 */")
    expect_row_refused("T1", "test: `tests/core/test_x.c:a`", "does not have /* T1 */",
                       tests="/* T1 */\n\nTEST(a)\n")


def test_behaviours_refuse_design_that_does_not_say_so():
    expect_row_refused("T1", 'design: 4.3 "Two"', "no point 4.3")
    expect_row_refused("T1", 'design: 4.2 "Words"', "does not say")
    expect_row_refused("T1", 'design: 4.2 "Z"', "does not say")
    expect_row_refused("T1", "design: 4.2", "is not written")


def test_behaviours_take_design_on_trust_where_there_is_none():
    assert not judge_table({"T1": 'x | design: 4.3 "Two"'}, design=None)


def test_behaviours_refuse_rows_that_decide_nothing():
    expect_row_refused("T1", "later", "is none of")
    expect_row_refused("T1", "not applicable in C:", "say why")
    expect_row_refused("T153", "next issue", "is none of")
    assert judge_table({"T1": " | not applicable in C: y"}) == [
        "T1: say in a few words what happens"]


def test_behaviours_refuse_numbers_in_tests_that_do_not_exist():
    assert judge_table({}, tests="/* T158 */\nTEST(a)\n") == [
        "tests/core/test_x.c:a carries T158, which is no behaviour"]


def test_behaviours_follow_a_test_that_moved():
    tree = {"tests/new.c": {"a": {1}, "b": {1}}, "tests/other.c": {"b": {1}, "c": {1}}}
    assert behaviours.follow("`tests/old.c:a`, `tests/old.c:b`, `tests/other.c:c`", tree) == (
        "`tests/new.c:a`, `tests/old.c:b`, `tests/other.c:c`")


# ---- make ------------------------------------------------------------------------

def make_install(*variables):
    """What `make install` would run in a tree that was set up before."""
    with tempfile.TemporaryDirectory() as build:
        (Path(build) / "build.ninja").touch()
        environment = {k: v for k, v in os.environ.items() if k not in ("PREFIX", "MAKEFLAGS")}
        return subprocess.run(["make", "-n", "install", "BUILD=" + build, *variables], cwd=ROOT,
                              env=environment, check=True, capture_output=True, text=True).stdout


def test_make_install_takes_a_prefix_that_is_given_later():
    told = make_install("PREFIX=/opt/other")
    assert told.index("--prefix=/opt/other") < told.index("ninja -C") < told.index("meson install")
    assert "--prefix" not in make_install()


def test_make_install_builds_only_what_it_installs():
    assert " product\n" in make_install()
    targets = subprocess.run(["make", "-n", "build", "BUILD=nowhere"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    assert "-Dtests=false" in targets and "--test" not in targets


def missing_for(*options):
    """What tools/setup would install where nothing is there."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("dpkg-query", "awk", "sort", "tr", "sed"):
            (Path(folder) / name).symlink_to(subprocess.run(
                ["which", name], check=True, capture_output=True, text=True).stdout.strip())
        (Path(folder) / "dpkg-query").unlink()
        (Path(folder) / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
        (Path(folder) / "dpkg-query").chmod(0o755)
        return subprocess.run(["/bin/sh", ROOT / "tools" / "setup", "--print", *options],
                              env={"PATH": folder}, check=False, capture_output=True,
                              text=True).stdout.split()


def test_the_demo_installs_nothing_that_only_tests_need():
    only_tests = {"golang-go", "nodejs", "npm", "python3-grpcio", "libnghttp2-dev"}
    assert not only_tests & set(missing_for())
    assert only_tests <= set(missing_for("--test")) & set(missing_for("--check"))


def installed(user, *variables):
    """What `make install` runs for a user, by name."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "build.ninja").touch()
        for name in ("meson", "ninja", "id", "ldconfig"):
            told = f"echo {user}" if name == "id" else f"echo {name} >> {folder}/log"
            (Path(folder) / name).write_text(f"#!/bin/sh\n{told}\n")
            (Path(folder) / name).chmod(0o755)
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("PREFIX", "DESTDIR", "MAKEFLAGS")}
        environment["PATH"] = folder + ":" + environment["PATH"]
        subprocess.run(["make", "-o", "setup", "install", "BUILD=" + folder, *variables], cwd=ROOT,
                       env=environment, check=True, stdout=subprocess.DEVNULL)
        return (Path(folder) / "log").read_text().split()


def test_make_install_lets_programs_find_the_libraries():
    assert installed(0) == ["ninja", "meson", "ldconfig"]
    assert installed(1000) == ["ninja", "meson"]
    assert installed(0, "DESTDIR=/nowhere") == ["ninja", "meson"]


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
