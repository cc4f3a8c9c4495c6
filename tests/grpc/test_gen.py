#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/grpc-gen makes of .proto files. Prints TAP."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402  pylint: disable=wrong-import-position
TOOL = ROOT / "tools" / "grpc-gen"


def load():
    loader = importlib.machinery.SourceFileLoader("grpc_gen", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("grpc_gen", loader))
    sys.modules["grpc_gen"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


gen = load()


def run(text, *options):
    """Runs the tool on a file a.proto of this text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.proto").write_text('syntax = "proto3";\n' + text)
        done = subprocess.run([TOOL, "--out", folder, "-I", folder, *options, "a.proto"],
                              capture_output=True, text=True, check=False)
        made = {path.name: path.read_text() for path in Path(folder).glob("a.*")}
        return done, made


def make(text):
    done, made = run(text)
    assert done.returncode == 0, done.stderr
    return made


def describe(root, name):
    """The files of a descriptor set of protoc's own, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set"
        subprocess.run(["protoc", f"-I{ROOT / root}", "--include_imports",
                        f"--descriptor_set_out={path}", name], check=True)
        return {file.name: file for file in gen.read_set(path.read_bytes())}


def bytes_in(source):
    array = re.search(r"descriptor\[\] = \{(.*?)\}", source, re.S)[1]
    return bytes(int(number, 16) for number in re.findall(r"0x[0-9a-f]{2}", array))


SERVICE = "service %s { %s }\nmessage M {}\n"


# ---- tables ----------------------------------------------------------------------

def test_descriptor_bytes_are_those_of_protoc():
    for root, name in (("proto", "grpc/health/v1/health.proto"),
                       ("proto", "grpc/reflection/v1/reflection.proto"),
                       ("tests/proto", "grpc/testing/test.proto")):
        for file in describe(root, name).values():
            assert bytes_in(gen.write_source(file)) == file.data
            assert file.data.find(file.name.encode()) == 2


def test_methods_have_paths_and_types():
    health = describe("proto", "grpc/health/v1/health.proto")["grpc/health/v1/health.proto"]
    source = re.sub(r"\s+", " ", gen.write_source(health))
    assert ('{"Check", "/grpc.health.v1.Health/Check", '
            "&grpc__health__v1__health_check_request__descriptor, "
            "&grpc__health__v1__health_check_response__descriptor, false, false}") in source
    assert ('{"Watch", "/grpc.health.v1.Health/Watch", '
            "&grpc__health__v1__health_check_request__descriptor, "
            "&grpc__health__v1__health_check_response__descriptor, false, true}") in source


def test_methods_know_who_streams():
    echo = describe("tests/proto", "pegboard/test/echo.proto")["pegboard/test/echo.proto"]
    kinds = {method.name: (method.client_streams, method.server_streams)
             for method in echo.services[0].methods}
    assert kinds == {"Echo": (False, False), "Repeat": (False, True), "Collect": (True, False),
                     "Chat": (True, True)}


def test_files_link_their_imports():
    file = describe("tests/proto", "grpc/testing/test.proto")["grpc/testing/test.proto"]
    source = gen.write_source(file)
    assert "&grpc_testing_empty_proto,\n    &grpc_testing_messages_proto,\n" in source
    assert '#include "grpc/testing/empty.grpc.h"' in source


def test_a_file_without_a_package_is_named_too():
    made = make(SERVICE % ("S", "rpc Call(M) returns (M);"))
    assert '"/S/Call"' in made["a.grpc.c"] and "extern const struct grpc_service s_service;" in \
        made["a.grpc.h"]


def test_a_file_without_services_is_a_constant():
    made = make("message M {}\n")
    assert "const struct grpc_file a_proto = {" in made["a.grpc.c"]
    assert "grpc_method" not in made["a.grpc.c"]


# ---- stubs -----------------------------------------------------------------------

def test_handlers_have_what_each_kind_of_method_needs():
    made = make(SERVICE % ("S", "rpc Unary(M) returns (M); rpc Out(M) returns (stream M);"
                                "rpc In(stream M) returns (M);"
                                "rpc Both(stream M) returns (stream M);"))["a.grpc.h"]
    struct = re.search(r"struct s_handlers \{(.*?)\n\};", made, re.S)[1]
    assert re.findall(r"\(\*(\w+)\)", struct) == [
        "unary", "unary_on_end",
        "out", "out_on_writable", "out_on_end",
        "in_on_start", "in_on_message", "in_on_half_close", "in_on_end",
        "both_on_start", "both_on_message", "both_on_half_close", "both_on_writable",
        "both_on_end"]


def test_answers_are_sent_or_replied():
    made = make(SERVICE % ("S", "rpc One(M) returns (M); rpc Many(M) returns (stream M);"))
    assert "s_one_reply(" in made["a.grpc.h"] and "s_many_send(" in made["a.grpc.h"]
    assert "s_one_send(" not in made["a.grpc.h"] and "s_many_reply(" not in made["a.grpc.h"]


def test_methods_named_like_keywords_of_c_get_a_line_below():
    made = make(SERVICE % ("S", "rpc Register(M) returns (M); rpc User(M) returns (M);"))
    assert "(*register_)(" in made["a.grpc.h"] and "(*register_on_end)(" in made["a.grpc.h"]
    assert "(*user_)(" in made["a.grpc.h"]


def test_protoc_c_does_not_see_services():
    made = make(SERVICE % ("S", "rpc Register(M) returns (M);"))
    assert "ProtobufCService" not in made["a.pb-c.h"] and "register" not in made["a.pb-c.h"]
    assert "ProtobufCMessageDescriptor m__descriptor" in made["a.pb-c.h"]


def test_initialisers_do_not_cast_const_away():
    made = make("message M { string text = 1; }\n")
    assert "(char *)" not in made["a.pb-c.h"]
    assert ", protobuf_c_empty_text }" in made["a.pb-c.h"]


def test_fields_have_their_numbers_by_name():
    made = make("package p.v1; message Outer { message InnerPart { string a_b = 7; }\n"
                "repeated InnerPart parts = 2; oneof kind { string text = 300; } }\nmessage E {}\n")
    assert re.findall(r"(\w+) = (\d+),", made["a.fields.h"]) == [
        ("P_V1_OUTER_PARTS_FIELD", "2"), ("P_V1_OUTER_TEXT_FIELD", "300"),
        ("P_V1_OUTER_INNER_PART_A_B_FIELD", "7")]


# ---- what is refused -------------------------------------------------------------

def test_methods_that_would_share_a_name_are_refused():
    done, made = run(SERVICE % ("S", "rpc GetAll(M) returns (M); rpc get_all(M) returns (M);"))
    assert done.returncode != 0 and set(made) == {"a.proto"}
    assert "two methods would both be 'get_all'" in done.stderr


def test_a_file_that_does_not_compile_is_refused():
    done, made = run("message M { Nothing n = 1; }\n")
    assert done.returncode != 0 and set(made) == {"a.proto"}
    assert '"Nothing" is not defined' in done.stderr


def test_what_was_read_is_listed_for_ninja():
    with tempfile.TemporaryDirectory() as folder:
        depfile = Path(folder) / "d"
        subprocess.run([TOOL, "--out", folder, "--depfile", depfile, "--target", "x/y",
                        "-I", ROOT / "tests/proto", "grpc/testing/test.proto"], check=True)
        target, _, read = depfile.read_text().partition(": ")
        assert target == "x/y"
        assert [Path(path).name for path in read.split()] == [
            "empty.proto", "messages.proto", "test.proto"]


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
