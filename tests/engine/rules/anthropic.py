# SPDX-License-Identifier: Apache-2.0
"""What Anthropic refuses."""

import re

from .common import (FUNCTION_NAME, Refused, check_json_schema, is_string, is_whole, known, need)

ANTHROPIC_MEMBERS = set("""model messages max_tokens container metadata output_config service_tier
stop_sequences stream system temperature thinking tool_choice tools top_k top_p""".split())
ANTHROPIC_PARTS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}
ANTHROPIC_PART_MEMBERS = {
    "text": {"type", "text", "citations", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "search_result": {"type", "source", "title", "content", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "caller", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_anthropic_part(part, role, where, issued):
    kind = part.get("type")
    need(kind in ANTHROPIC_PARTS[role], f"{where}: Input tag '{kind}' found using 'type' does not "
         f"match any of the expected tags: {sorted(ANTHROPIC_PARTS[role])}")
    known(part, ANTHROPIC_PART_MEMBERS[kind],
          lambda name: f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if kind == "text":
        need(is_string(part.get("text")) and part["text"],
             "messages: text content blocks must be non-empty")
        need(part["text"].strip(), "messages: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        need(ANTHROPIC_ID.fullmatch(str(part.get("id", ""))),
             f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        need(FUNCTION_NAME.fullmatch(str(part.get("name", ""))),
             f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        need(isinstance(part.get("input"), dict),
             f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        check_anthropic_result(part, where)
    elif kind == "thinking":
        need(part.get("signature") in issued,
             f"{where}: Invalid `signature` in `thinking` block")
    elif kind == "redacted_thinking":
        need(part.get("data") in issued, f"{where}: Invalid `data` in `redacted_thinking` block")


def check_anthropic_result(part, where):
    need(is_string(part.get("tool_use_id")), f"{where}.tool_result.tool_use_id: Field required")
    content = part.get("content", "")
    if is_string(content):
        return
    for inner in content:
        need(inner.get("type") in ("text", "image", "document", "search_result"),
             f"{where}.tool_result.content: Input tag '{inner.get('type')}' is not expected")
        need(inner["type"] == "text" or not part.get("is_error"),
             f"{where}.tool_result: all content must be type \"text\" if `is_error` is true")


def check_anthropic_message(message, i, issued):
    known(message, {"role", "content"},
          lambda name: f"messages.{i}.{name}: Extra inputs are not permitted")
    role, content = message.get("role"), message.get("content")
    need(role in ANTHROPIC_PARTS, f"messages.{i}.role: Input should be 'user' or 'assistant'")
    if is_string(content):
        need(content.strip(), f"messages.{i}: all messages must have non-empty content")
        return [{"type": "text", "text": content}]
    need(isinstance(content, list) and content,
         f"messages.{i}: all messages must have non-empty content")
    for k, part in enumerate(content):
        check_anthropic_part(part, role, f"messages.{i}.content.{k}", issued)
    return content


def check_anthropic_pairs(messages):
    """Each call is answered at the start of the next message, and nothing else is."""
    asked, seen = [], set()
    for i, (_, parts) in enumerate(messages):
        answered = [p["tool_use_id"] for p in parts if p["type"] == "tool_result"]
        for one in answered:
            need(one in asked, f"messages.{i}: unexpected `tool_use_id` found in `tool_result` "
                 f"blocks: {one}. Each `tool_result` block must have a corresponding `tool_use` "
                 "block in the previous message.")
        first = [p.get("tool_use_id") for p in parts[:len(asked)]]
        missing = [one for one in asked if one not in first]
        need(not missing, f"messages.{i - 1}: `tool_use` ids were found without `tool_result` "
             f"blocks immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
             "corresponding `tool_result` block in the next message.")
        need(len(answered) == len(asked), f"messages.{i}: each tool_use must have a single result.")
        asked = [p["id"] for p in parts if p["type"] == "tool_use"]
        for one in asked:
            need(one not in seen, f"messages.{i}: `tool_use` ids must be unique")
            seen.add(one)
    need(not asked, f"messages.{len(messages) - 1}: `tool_use` ids were found without "
         f"`tool_result` blocks immediately after: {', '.join(asked)}.")


def check_anthropic_messages(body, issued):
    messages = body.get("messages")
    need(isinstance(messages, list), "messages: Field required")
    need(messages, "messages: at least one message is required")
    read = []
    for i, message in enumerate(messages):
        parts = check_anthropic_message(message, i, issued)
        role = message["role"]
        need(i or role == "user", 'messages: first message must use the "user" role')
        need(not read or read[-1][0] != role, 'messages: roles must alternate between "user" and '
             f'"assistant", but found multiple "{role}" roles in a row')
        read.append((role, parts))
    check_anthropic_pairs(read)
    role, parts = read[-1]
    need(role == "user" or parts[-1].get("text", "x") == parts[-1].get("text", "x").rstrip(),
         "messages: final assistant content cannot end with trailing whitespace")
    return read


def check_anthropic_thinking(body, messages):
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    need(is_whole(budget) and budget >= 1024,
         "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    need(body["max_tokens"] > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    need(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is "
         "enabled.")
    need(body.get("tool_choice", {}).get("type", "auto") in ("auto", "none"),
         "Thinking may not be enabled when tool_choice forces tool use.")
    if messages[-1][1][0]["type"] == "tool_result":
        found = messages[-2][1][0]["type"]
        need(found in ("thinking", "redacted_thinking"), f"messages.{len(messages) - 2}.content.0."
             f"type: Expected `thinking` or `redacted_thinking`, but found `{found}`.")


def check_anthropic_tools(body):
    tools, choice = body.get("tools", []), body.get("tool_choice")
    need(choice is None or tools, "tool_choice: may only be specified while providing tools")
    for i, tool in enumerate(tools):
        known(tool, {"name", "description", "input_schema", "type", "cache_control", "strict",
                     "input_examples"},
              lambda name: f"tools.{i}.custom.{name}: Extra inputs are not permitted")
        need(FUNCTION_NAME.fullmatch(str(tool.get("name", ""))), f"tools.{i}.custom.name: String "
             "should match pattern '^[a-zA-Z0-9_-]{1,64}$'")
        need("input_schema" in tool, f"tools.{i}.custom.input_schema: Field required")
        check_json_schema(tool["input_schema"], f"tools.{i}.custom.input_schema")
    names = [tool["name"] for tool in tools]
    need(len(set(names)) == len(names), "tools: Tool names must be unique.")
    if choice is not None:
        need(choice.get("type") in ("auto", "any", "tool", "none"), "tool_choice: Input tag is not "
             "one of the expected tags")
        need(choice["type"] != "tool" or choice.get("name") in names,
             f"Tool '{choice.get('name')}' not found in provided tools")


def check_anthropic(body, headers, issued):
    if not headers.get("x-api-key"):
        raise Refused("x-api-key header is required", status=401)
    need(headers.get("anthropic-version") == "2023-06-01", "anthropic-version: header is required")
    known(body, ANTHROPIC_MEMBERS, lambda name: f"{name}: Extra inputs are not permitted")
    need(is_string(body.get("model")) and body["model"], "model: Field required")
    need("max_tokens" in body, "max_tokens: Field required")
    need(is_whole(body["max_tokens"]) and body["max_tokens"] > 0,
         "max_tokens: Input should be greater than or equal to 1")
    need(not ("temperature" in body and "top_p" in body), "`temperature` and `top_p` cannot both "
         "be specified for this model. Please use only one.")
    check_anthropic_tools(body)
    check_anthropic_thinking(body, check_anthropic_messages(body, issued))
