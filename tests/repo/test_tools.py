#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that judge others must be able to say no. Prints TAP."""

import importlib.machinery
import importlib.util
import sys
import tempfile
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent


def load(tool):
    name = tool.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / tool))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


layers = load("check-layers")
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
    expect_refused("src/gateway/a.c", '"remote/remote.h"', "gateway/ may not include remote/")
    expect_refused("src/tools/a.c", '"engine/engine.h"', "tools/ may not include engine/")


def test_layers_refuse_hidden_headers_of_others():
    expect_refused("src/schema/a.c", '"json/internal.h"', "hidden")
    expect_refused("src/schema/a.c", '"json/parse_internal.h"', "hidden")


def test_layers_refuse_third_party_headers_in_the_wrong_place():
    expect_refused("src/schema/a.c", "<openssl/sha.h>", "reserved for base/digest.c")
    expect_refused("src/base/a.c", "<yaml.h>", "reserved for json/")


def test_layers_refuse_third_party_headers_nobody_decided_on():
    expect_refused("src/base/a.c", "<zlib.h>", "in no table")


def test_layers_refuse_unclear_paths_and_unknown_directories():
    expect_refused("src/base/a.c", '"mem.h"', "directory/file.h")
    expect_refused("src/base/a.c", '"../json/json.h"', "directory/file.h")
    expect_refused("src/strange/a.c", '"base/mem.h"', "in no directory")


def test_layers_refuse_inner_headers_in_public_ones():
    expect_refused("include/pegboard/a.h", '"base/mem.h"', "public header")


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


def main():
    tests = [(name[5:], fn) for name, fn in globals().items() if name.startswith("test_")]
    n_failed = 0

    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {i} - {name}")
        except Exception:  # pylint: disable=broad-except
            n_failed += 1
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "))
            print(f"not ok {i} - {name}")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
