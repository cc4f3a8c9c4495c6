#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: replay_server.py refuses what the providers refuse, so that a request that it accepted says
something.
"""

import itertools
import json
import os
import sys
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
sys.path.insert(0, HERE)

from replay_server import ReplayServer  # noqa: E402
from scenario import TIMEOUT_S, check, main, scenario  # noqa: E402

with open(os.path.join(HERE, "wire", "expected.json"), encoding="utf-8") as _file:
    EXPECTED = json.load(_file)
server = ReplayServer()
_numbers = itertools.count(1)


def ask(provider, body, headers=None):
    """What the server answers to a request of ours: (status, body)."""
    path = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses",
            "anthropic": "/v1/messages",
            "gemini": "/v1beta/models/gemini-3-pro-preview:generateContent"}[provider]
    keys = {"Authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01",
            "x-goog-api-key": "k", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/text~{next(_numbers)}{path}",
        json.dumps(body).encode(), {**keys, **(headers or {})})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def refused(provider, body, *words):
    status, answer = ask(provider, body)
    check(status == 400, f"{provider} accepted {body}: {answer}")
    for word in words:
        check(word in answer["error"]["message"], f"no {word!r} in {answer}")


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER = {"role": "user", "content": "x"}


@scenario
def the_server_refuses_what_openai_chat_refuses(_):
    def chat(*messages, **more):
        return {"model": "gpt-4.1-mini", "messages": [USER, *messages], **more}

    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "y"}
    check(ask("openai-chat", chat(call, answer))[0] == 200, "a good request is refused")
    refused("openai-chat", chat(answer), "must be a response to a preceding message")
    refused("openai-chat", chat(call), "must be followed by tool messages")
    refused("openai-chat", chat(call, USER, answer), "must be followed by tool messages")
    refused("openai-chat", chat(call, {**answer, "tool_call_id": "c2"}), "not found")
    refused("openai-chat", chat(mood="good"), "Unrecognized request argument")
    refused("openai-chat", chat(tools=[]), "too short")
    refused("openai-chat", chat(tool_choice="auto"), "only allowed when 'tools'")
    refused("openai-chat", chat(tools=[{"type": "function", "function": {"name": "fs.read"}}]),
            "does not match pattern")
    refused("openai-chat", chat(tools=[{"type": "function", "function": {
        "name": "f", "parameters": {"type": "string"}}}]), "must be a JSON Schema")
    refused("openai-chat", chat(tools=[{"type": "function", "function": {
        "name": "f", "strict": True, "parameters": {
            "type": "object", "properties": {"a": {}}, "additionalProperties": False}}}]),
        "including every key")
    check(ask("openai-chat", chat(), {"Authorization": ""})[0] == 401, "no key is accepted")


@scenario
def the_server_refuses_what_openai_responses_refuses(_):
    def items(*more):
        return {"model": "gpt-5-mini", "input": [USER, *more]}

    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "c1", "output": "y"}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    check(ask("openai-responses", items(thought, call, answer))[0] == 200,
          "a good request is refused")
    refused("openai-responses", items(answer), "No tool call found")
    refused("openai-responses", items(call), "No tool output found")
    refused("openai-responses", items(thought), "without its required following item")
    refused("openai-responses", items({**call, "id": "call_1"}, answer), "begins with 'fc'")
    refused("openai-responses", items({**thought, "encrypted_content": "mine"}, call, answer),
            "could not be verified")
    refused("openai-responses", items({"role": "assistant", "content": [
        {"type": "input_text", "text": "x"}]}), "Supported values are: output_text")


@scenario
def the_server_refuses_what_anthropic_refuses(_):
    def messages(*more, **members):
        return {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [USER, *more],
                **members}

    def says(role, *parts):
        return {"role": role, "content": list(parts)}

    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "y"}
    text = {"type": "text", "text": "y"}
    check(ask("anthropic", messages(says("assistant", text, call), says("user", answer, text)))[0]
          == 200, "a good request is refused")
    refused("anthropic", messages(says("assistant", call), says("user", text, answer)),
            "without `tool_result` blocks immediately after")
    refused("anthropic", messages(says("assistant", call)), "without `tool_result`")
    refused("anthropic", messages(says("assistant", text), says("user", answer)),
            "unexpected `tool_use_id`")
    refused("anthropic", messages(USER), "roles must alternate")
    refused("anthropic", messages(says("assistant", {**text, "text": " "}), USER), "non-whitespace")
    refused("anthropic", messages(says("assistant", {**call, "input": "{}"}), says("user", answer)),
            "valid dictionary")
    refused("anthropic", messages(says("assistant", {
        "type": "thinking", "thinking": "x", "signature": "mine"}, text), USER), "signature")
    refused("anthropic", messages(mood="good"), "Extra inputs")
    refused("anthropic", {"model": "m", "messages": [USER]}, "max_tokens: Field required")


@scenario
def the_server_refuses_what_gemini_refuses(_):
    def contents(*more, **members):
        return {"contents": [{"role": "user", "parts": [{"text": "x"}]}, *more], **members}

    def says(role, *parts):
        return {"role": role, "parts": list(parts)}

    def tool(schema):
        return {"tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}

    seal = EXPECTED["gemini"]["tool"]["signature"]
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": seal}
    answer = {"functionResponse": {"name": "f", "response": {}}}
    check(ask("gemini", contents(says("model", call), says("user", answer)))[0] == 200,
          "a good request is refused")
    refused("gemini", contents(says("model", call, call), says("user", answer)),
            "number of function response parts")
    refused("gemini", contents(says("model", {"functionCall": call["functionCall"]}),
                               says("user", answer)), "missing a thought_signature")
    refused("gemini", contents(says("model", call), says("user", {
        "functionResponse": {"name": "f", "response": "text"}})), "Struct")
    refused("gemini", contents(says("assistant", {"text": "x"})), "valid role")
    refused("gemini", contents(**tool({"type": "OBJECT", "additionalProperties": False})),
            'Unknown name "additionalProperties"')
    refused("gemini", contents(**tool({"type": "OBJECT", "properties": {
        "a": {"type": "ARRAY"}}})), "items: missing field")
    refused("gemini", contents(**tool({"type": "object", "properties": {"a": {}}})), "type")
    refused("gemini", contents(**tool({"type": "OBJECT", "properties": {}})), "non-empty")


if __name__ == "__main__":
    sys.argv.append("no executable")  # scenario.py wants one
    server.start()
    main()
