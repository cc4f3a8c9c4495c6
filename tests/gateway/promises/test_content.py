#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Typed content of results: what a provider in any language sends is what a caller gets, by every way and as often as it
asks; callers that do not take it get JSON; and what is no content ends its own call, with words.

    test_content.py PEGBOARD
"""

import base64
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from world import Caller, Gateway, Provider, outcome, tool, v1  # noqa: E402

CHUNK = 64 << 10
BYTES = bytes(i * 7 % 256 for i in range(1 << 20))
ACCEPTS = {"accepts_content": True}


def image(data=BYTES, **fields):
    return v1("Content", media=v1("Media", **{"kind": "image", "mime_type": "image/png", "filename": "a.png",
                                              "trust_tier": "first-party", "hazard": "opaque-perceptual",
                                              "data": data, **fields}))


def text(words):
    return v1("Content", text=words)


def packed(*parts):
    return v1("ContentList", content=parts).SerializeToString()


def answer(provider, call, packed_list, **last):
    starts = range(0, max(1, len(packed_list)), CHUNK)
    for at in starts:
        is_last = at == starts[-1]
        provider.answer(call, packed_list[at:at + CHUNK], more=not is_last, is_content=True, **(last if is_last else {}))


def test_content_of_every_size_arrives_by_every_way():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        assert provider.welcome.takes_content
        for n_bytes in (0, 100, 8 << 10, CHUNK, 1 << 20):
            parts = [text("look"), image(BYTES[:n_bytes], is_empty=not n_bytes), v1("Content", json=b"[1]"),
                     v1("Content", bytes=b"\xff" + BYTES[:n_bytes])]
            key = {"idempotency_key": f"key-{n_bytes}"}
            request = v1("CallToolRequest", toolset="sums", tool="add", payload=b'{"n":1}', **ACCEPTS, **key)
            stream = caller.method("CallToolStream")(request, timeout=60)
            next(stream)
            answer(provider, provider.next_call(), packed(*parts),
                   server_data=[v1("ServerData", kind="k", audience="a", data=b"{}")])
            last = list(stream)[-1].result
            assert list(last.content) == parts and not last.result and last.server_data[0].kind == "k"
            again = caller.call("sums", **ACCEPTS, **key)
            assert list(again.content) == parts and again.attached
            awaited = caller.ask("AwaitTool", v1("AwaitToolRequest", call_id=last.call_id, **ACCEPTS))
            assert list(awaited.content) == parts
            # The same call, for a caller that knows nothing of content.
            flat = caller.call("sums", **key)
            said = json.loads(flat.result)["content"]
            assert not flat.content and flat.server_data[0].kind == "k" and said[0] == "look" and said[2] == [1]
            assert base64.b64decode(said[1]["base64"]) == BYTES[:n_bytes]
            assert base64.b64decode(said[3]["base64"]) == b"\xff" + BYTES[:n_bytes]


def test_a_result_by_another_connection_may_be_content():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums", **ACCEPTS)
        call = provider.next_call()
        caller.ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id, content=[image(b"x"), text("y")]))
        assert list(outcome(future).content) == [image(b"x"), text("y")]


def test_what_is_no_content_ends_its_own_call():
    forged = v1("CallToolResponse", call_id="0" * 32, attached=True).SerializeToString()
    wrong = [
        (b"", "no ContentList"),
        (b"\xff\xff", "no ContentList"),
        (forged, "no ContentList"),
        (packed(text("x")) + forged, "no ContentList"),
        (packed(*[text("x")] * 65), "no ContentList"),
        (packed(v1("Content")), "exactly one"),
        (b"\x3a\x03\x4a\x01x", "exactly one"),  # a kind that is not known
        (b"\x3a\x03\x0a\x01\xff", "not UTF-8"),
        (packed(v1("Content", json=b"{nope")), "content validation failed"),
        (packed(v1("Content", json=b'{"a":1,"a":2}')), "content validation failed"),
        (packed(image(mime_type="")), "mime_type"),
        (packed(image(mime_type="x/" + "y" * 300)), "mime_type"),
        (packed(image(mime_type="a/b\r\nHost: evil")), "mime_type"),
        (packed(image(mime_type="a/" + "b" * (1 << 20))), "4096"),
        (packed(image(kind="hologram")), "kind"),
        (packed(image(b"")), "no data"),
        (packed(image(filename="n" * 5000)), "4096"),
        (packed(image(notes=[v1("MediaNote", name=f"n{i}", text="t") for i in range(65)])), "64 notes"),
    ]
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        for list_of_parts, words in wrong:
            future = caller.start_call("sums", timeout=60, **ACCEPTS)
            answer(provider, provider.next_call(), list_of_parts)
            said = outcome(future)
            assert said.error.code == "malformed_result" and words in said.error.message, (list_of_parts[:40], said.error)
            assert not said.content and not said.attached
        future = caller.start_call("sums", **ACCEPTS)
        answer(provider, provider.next_call(), packed(text("fine")))
        assert list(outcome(future).content) == [text("fine")]


def test_a_tool_that_promises_json_returns_no_content():
    with Gateway() as gateway, Caller(gateway) as caller, \
            Provider(gateway, "sums", tool(output_schema=b'{"type":"object"}')) as provider:
        for part in (text("x"), image()):
            future = caller.start_call("sums", timeout=60, **ACCEPTS)
            answer(provider, provider.next_call(), packed(part))
            assert "output schema" in outcome(future).error.message


def test_content_has_the_size_of_any_result():
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums") as provider:
        future = caller.start_call("sums", timeout=60, **ACCEPTS)
        answer(provider, provider.next_call(), packed(v1("Content", bytes=b"\xff" * ((8 << 20) + 1))))
        assert "more than" in outcome(future).error.message


def test_hints_of_a_tool_are_listed_as_they_were_registered():
    said = tool(read_only=True, destructive=True, additive=True, title="Adds", version="9", examples=b"[{\"n\": 1}]",
                artifact_kind="markdown")
    with Gateway() as gateway, Caller(gateway) as caller, Provider(gateway, "sums", said):
        got = caller.ask("GetToolset", v1("GetToolsetRequest", name="sums")).tools[0]
        said.idempotent = True  # what only reads may be repeated
        assert got == said, got


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
