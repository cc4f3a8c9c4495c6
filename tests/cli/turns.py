# SPDX-License-Identifier: Apache-2.0
"""Turns that the tests of `pegboard turn` share."""

import copy
import hashlib
import os

from scenario import ROOT

EXAMPLE = os.path.join(ROOT, "examples", "turn.yaml")

TURN = {
    "id": "t-1",
    "blocks": [
        {"id": "b1", "kind": "user", "role": "user", "payload": {"text": "how many open orders?"}},
        {"id": "call_7", "kind": "tool_call",
         "payload": {"args": {"sql": "SELECT 1"}, "id": "call_7", "name": "query_orders"}},
        {"id": "b3", "kind": "tool_use",
         "payload": {"error": "", "id": "call_7", "nonce": "0" * 32, "result": '{"n":3}'}},
        {"id": "b4", "kind": "llm_text", "role": "assistant", "payload": {"text": "Three."}},
    ],
}

# In the form of geppetto: no ids where they can be had otherwise, its keys, a member of its own.
REFERENCE = """\
version: 1
id: t-9
blocks:
  - id: u
    kind: user
    role: user
    payload: {text: "what does a rye loaf cost?"}
  - kind: tool_call
    payload:
      id: call_a
      name: price_of
      args: {item: rye, exact: 12345678901234567890}
      correlation: {run_id: inf-4, tool_call_id: call_a}
    metadata:
      geppetto.inference_result@v1: {provider: openai, model: m, finish_class: tool_calls_pending}
  - kind: tool_use
    payload: {id: call_a, result: '{"price":"4.20"}', error: ""}
  - kind: llm_text
    payload: {text: "4.20 a loaf."}
metadata:
  geppetto.session_id@v1: s-4
  geppetto.inference_result@v1: {provider: openai, model: m, stop_reason: stop, finish_class: completed}
data:
  geppetto.tool_config@v1: {enabled: true, execution_timeout: 30s, max_parallel_tools: 3}
  geppetto.tool_definitions@v1:
    - name: price_of
      description: Tells a price.
      parameters: {type: object, properties: {item: {type: string}}, required: [item]}
"""


def turn(*blocks, **members):
    """The turn above with other blocks, if any, and further members."""
    made = {**copy.deepcopy(TURN), **members}
    if blocks:
        made["blocks"] = list(blocks)
    return made


def user(text, **members):
    return {"id": "u", "kind": "user", "role": "user", "payload": {"text": text}, **members}


def call(call_id, name="t", args=None, **members):
    return {"id": call_id, "kind": "tool_call",
            "payload": {"id": call_id, "name": name, "args": args or {}}, **members}


def result(call_id, **payload):
    return {"kind": "tool_use", "payload": {"id": call_id, **payload}}


def spool(w, content, kept=None):
    """Keeps bytes in t.bytes as a spool store in files does; returns the reference to them."""
    digest = hashlib.sha256(content).hexdigest()
    if not os.path.exists(w.path("t.bytes")):
        os.mkdir(w.path("t.bytes"), 0o700)
    w.write("t.bytes/" + hashlib.sha256(b"sha256-" + digest.encode()).hexdigest(), kept or content)
    return {"sha256": digest, "bytes": len(content)}
