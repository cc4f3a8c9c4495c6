# SPDX-License-Identifier: Apache-2.0
"""What OpenAI refuses: Chat Completions and Responses."""

import re

from .common import FUNCTION_NAME, Refused, check_json_schema, is_string, known, need

REASONING_MODEL = re.compile(r"(o[134]|gpt-5)")


def check_openai_function(function, where, allowed):
    known(function, allowed, lambda name: f"Unknown parameter: '{where}.{name}'.")
    need(is_string(function.get("name")), f"Missing required parameter: '{where}.name'.", where)
    need(FUNCTION_NAME.fullmatch(function["name"]),
         f"Invalid '{where}.name': string does not match pattern. Expected a string that matches "
         "the pattern '^[a-zA-Z0-9_-]+$'.", f"{where}.name", "invalid_value")
    need(is_string(function.get("description", "")), f"Invalid type for '{where}.description'.")
    if function.get("parameters") is not None:
        check_json_schema(function["parameters"], f"function '{function['name']}'",
                          function.get("strict") is True)


def check_openai_tools(body, function_of):
    """The list of tools; function_of(tool, where) checks one and returns its name."""
    if "tools" not in body:
        for name in ("tool_choice", "parallel_tool_calls"):
            need(name not in body, f"'{name}' is only allowed when 'tools' are specified.", name)
        return
    tools = body["tools"]
    need(isinstance(tools, list) and tools, "[] is too short - 'tools'", "tools")
    need(len(tools) <= 128, f"Invalid 'tools': array too long. Expected an array with maximum "
         f"length 128, but got an array with length {len(tools)} instead.", "tools",
         "array_above_max_length")
    names = [function_of(tool, f"tools[{i}]") for i, tool in enumerate(tools)]
    need(len(set(names)) == len(names), "Function names must be unique.", "tools")
    choice = body.get("tool_choice", "auto")
    if is_string(choice):
        need(choice in ("auto", "none", "required"), f"Invalid value: '{choice}'.", "tool_choice")
    else:
        name = choice.get("name") or choice.get("function", {}).get("name")
        need(name in names, f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")


# ---- Chat Completions ---------------------------------------------------------------

CHAT_MEMBERS = set("""messages model audio frequency_penalty logit_bias logprobs
max_completion_tokens max_tokens metadata modalities n parallel_tool_calls prediction
presence_penalty prompt_cache_key reasoning_effort response_format safety_identifier seed
service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user
verbosity web_search_options""".split())
CHAT_PARTS = {"user": {"text", "image_url", "input_audio", "file"}, "system": {"text"},
              "developer": {"text"}, "assistant": {"text", "refusal"}, "tool": {"text"}}
# DeepSeek and others; OpenAI itself passes over it.
CHAT_THOUGHTS = ("reasoning_content", "reasoning")
CHAT_MESSAGE = {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "annotations",
                "audio", *CHAT_THOUGHTS}


def check_chat_content(message, where):
    role, content = message["role"], message.get("content")
    if content is None:
        need(role == "assistant" and message.get("tool_calls"),
             f"Invalid value for 'content': expected a string, got null. ({where})",
             f"{where}.content")
    elif isinstance(content, list):
        need(content, f"Invalid '{where}.content': empty array.", f"{where}.content")
        for part in content:
            need(part.get("type") in CHAT_PARTS[role],
                 f"Invalid value: '{part.get('type')}'. Supported values are: "
                 f"{sorted(CHAT_PARTS[role])}.", f"{where}.content")
    else:
        need(is_string(content), f"Invalid type for '{where}.content'.", f"{where}.content")


def check_chat_calls(message, where):
    calls = message["tool_calls"]
    need(message["role"] == "assistant", f"'{where}.tool_calls' is only for the assistant.")
    need(isinstance(calls, list) and calls, f"Invalid '{where}.tool_calls': empty array. Expected "
         "an array with minimum length 1, but got an empty array instead.", f"{where}.tool_calls",
         "empty_array")
    for i, call in enumerate(calls):
        at = f"{where}.tool_calls[{i}]"
        known(call, {"id", "type", "function"}, lambda name: f"Unknown parameter: '{at}.{name}'.")
        need(is_string(call.get("id")) and call["id"], f"Missing required parameter: '{at}.id'.")
        need(len(call["id"]) <= 64, f"Invalid '{at}.id': string too long.", at,
             "string_above_max_length")
        need(call.get("type") == "function", f"Missing required parameter: '{at}.type'.")
        check_openai_function(call.get("function", {}), f"{at}.function", {"name", "arguments"})
        need(is_string(call["function"].get("arguments")),
             f"Missing required parameter: '{at}.function.arguments'.")
    ids = [call["id"] for call in calls]
    need(len(set(ids)) == len(ids), f"Duplicate ids in '{where}.tool_calls'.")
    return ids


def check_chat_messages(messages):
    need(isinstance(messages, list) and messages, "[] is too short - 'messages'", "messages")
    waiting = []
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        known(message, CHAT_MESSAGE, lambda name: f"Unknown parameter: '{where}.{name}'.")
        need(message.get("role") in CHAT_PARTS, f"Invalid value: '{message.get('role')}'.", where)
        check_chat_content(message, where)
        if message["role"] == "tool":
            need(waiting, "Invalid parameter: messages with role 'tool' must be a response to a "
                 "preceding message with 'tool_calls'.", f"{where}.role")
            need(message.get("tool_call_id") in waiting,
                 f"Invalid parameter: 'tool_call_id' of '{message.get('tool_call_id')}' not found "
                 "in 'tool_calls' of previous message.", f"{where}.tool_call_id")
            waiting.remove(message["tool_call_id"])
            continue
        need(not waiting, "An assistant message with 'tool_calls' must be followed by tool "
             "messages responding to each 'tool_call_id'. The following tool_call_ids did not "
             f"have response messages: {', '.join(waiting)}", f"messages.[{i}].role")
        if "tool_calls" in message:
            waiting = check_chat_calls(message, where)
    need(not waiting, "An assistant message with 'tool_calls' must be followed by tool messages "
         "responding to each 'tool_call_id'. The following tool_call_ids did not have response "
         f"messages: {', '.join(waiting)}", "messages")


def check_chat(body, headers, issued):
    del issued
    check_bearer(headers)
    known(body, CHAT_MEMBERS, lambda name: f"Unrecognized request argument supplied: {name}")
    need(is_string(body.get("model")) and body["model"], "you must provide a model parameter")
    check_chat_messages(body.get("messages"))
    need("stream_options" not in body or body.get("stream"),
         "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
         "stream_options")
    if REASONING_MODEL.match(body["model"]):
        for name in ("max_tokens", "temperature", "top_p", "stop"):
            need(name not in body, f"Unsupported parameter: '{name}' is not supported with this "
                 "model.", name, "unsupported_parameter")
    else:
        need("reasoning_effort" not in body,
             "Unrecognized request argument supplied: reasoning_effort")

    def function_of(tool, where):
        known(tool, {"type", "function"}, lambda name: f"Unknown parameter: '{where}.{name}'.")
        need(tool.get("type") == "function", f"Missing required parameter: '{where}.type'.")
        check_openai_function(tool.get("function"), f"{where}.function",
                              {"name", "description", "parameters", "strict"})
        return tool["function"]["name"]

    check_openai_tools(body, function_of)


def check_bearer(headers):
    if not re.fullmatch(r"Bearer \S+", headers.get("authorization", "")):
        raise Refused("You didn't provide an API key. You need to provide your API key in an "
                      "Authorization header using Bearer auth.", status=401)


# ---- Responses ----------------------------------------------------------------------

RESPONSES_MEMBERS = set("""background conversation include input instructions max_output_tokens
max_tool_calls metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key
reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice
tools top_logprobs top_p truncation user""".split())
ITEM_MEMBERS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}
ITEM_IDS = {"message": "msg", "function_call": "fc", "function_call_output": "fco",
            "reasoning": "rs"}


def check_message_item(item, where):
    role = item.get("role")
    need(role in ("user", "assistant", "system", "developer"), f"Invalid value: '{role}'.",
         f"{where}.role")
    content = item.get("content")
    if is_string(content):
        return
    need(isinstance(content, list) and content, f"Missing required parameter: '{where}.content'.")
    allowed = (("output_text", "refusal") if role == "assistant"
               else ("input_text", "input_image", "input_file", "input_audio"))
    for i, part in enumerate(content):
        need(part.get("type") in allowed, f"Invalid value: '{part.get('type')}'. Supported values "
             f"are: {', '.join(allowed)}.", f"{where}.content[{i}]", "invalid_value")


def check_item(item, where, issued):
    kind = item.get("type", "message")
    need(kind in ITEM_MEMBERS, f"Invalid value: '{kind}'.", f"{where}.type", "invalid_value")
    known(item, ITEM_MEMBERS[kind], lambda name: f"Unknown parameter: '{where}.{name}'.")
    if "id" in item:
        need(str(item["id"]).startswith(ITEM_IDS[kind] + "_"),
             f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with "
             f"'{ITEM_IDS[kind]}'.", f"{where}.id", "invalid_value")
    if kind == "message":
        check_message_item(item, where)
    elif kind == "reasoning":
        need(isinstance(item.get("summary"), list),
             f"Missing required parameter: '{where}.summary'.", f"{where}.summary")
        sealed = item.get("encrypted_content")
        need(sealed is None or sealed in issued, "The encrypted content could not be verified.",
             None, "invalid_encrypted_content")
    else:
        for name in ("call_id", "name", "arguments") if kind == "function_call" else ("call_id",):
            need(is_string(item.get(name)) and item[name],
                 f"Missing required parameter: '{where}.{name}'.", f"{where}.{name}")
        need(len(item["call_id"]) <= 64, f"Invalid '{where}.call_id': string too long.",
             f"{where}.call_id", "string_above_max_length")
    if kind == "function_call":
        need(FUNCTION_NAME.fullmatch(item["name"]), f"Invalid '{where}.name': string does not match "
             "pattern.", f"{where}.name", "invalid_value")
    if kind == "function_call_output":
        need(isinstance(item.get("output"), (str, list)),
             f"Missing required parameter: '{where}.output'.", f"{where}.output")
    return kind


def check_items(items, issued):
    need(isinstance(items, list) and items, "Missing required parameter: 'input'.", "input")
    kinds = [check_item(item, f"input[{i}]", issued) for i, item in enumerate(items)]
    calls, answered = [], []
    for i, (item, kind) in enumerate(zip(items, kinds)):
        if kind == "reasoning":
            follower = items[i + 1] if i + 1 < len(items) else {}
            need(follower.get("type") in ("function_call", "reasoning")
                 or follower.get("role") == "assistant",
                 f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                 "following item.", "input")
        elif kind == "function_call":
            need(item["call_id"] not in calls, f"Duplicate call_id {item['call_id']}.", "input")
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            need(item["call_id"] in calls, "No tool call found for function call output with "
                 f"call_id {item['call_id']}.", "input")
            answered.append(item["call_id"])
    for call in calls:
        need(call in answered, f"No tool output found for function call {call}.", "input")


def check_responses(body, headers, issued):
    check_bearer(headers)
    known(body, RESPONSES_MEMBERS, lambda name: f"Unknown parameter: '{name}'.")
    need(is_string(body.get("model")) and body["model"], "Missing required parameter: 'model'.")
    if not is_string(body.get("input")):
        check_items(body.get("input"), issued)
    need(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': integer below "
         "minimum value. Expected a value >= 16.", "max_output_tokens", "integer_below_min_value")
    if REASONING_MODEL.match(body["model"]):
        for name in ("temperature", "top_p"):
            need(name not in body, f"Unsupported parameter: '{name}' is not supported with this "
                 "model.", name, "unsupported_parameter")

    def function_of(tool, where):
        need(tool.get("type") == "function", f"Missing required parameter: '{where}.type'.")
        check_openai_function(tool, where, {"type", "name", "description", "parameters", "strict"})
        return tool["name"]

    check_openai_tools(body, function_of)
