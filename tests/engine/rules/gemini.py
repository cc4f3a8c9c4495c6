# SPDX-License-Identifier: Apache-2.0
"""What Gemini refuses."""

import base64
import binascii
import re

from .common import Refused, is_string, need

def _message(**fields):
    return fields


ANY = object()  # a value of any shape
SCHEMA = _message()
SCHEMA.update(type=ANY, format=ANY, title=ANY, description=ANY, nullable=ANY, default=ANY,
              items=SCHEMA, minItems=ANY, maxItems=ANY, enum=ANY, properties={"*": SCHEMA},
              propertyOrdering=ANY, required=ANY, minProperties=ANY, maxProperties=ANY,
              minLength=ANY, maxLength=ANY, pattern=ANY, example=ANY, anyOf=[SCHEMA], minimum=ANY,
              maximum=ANY)
BLOB = _message(mimeType=ANY, data=ANY)
FILE = _message(mimeType=ANY, fileUri=ANY)
PART = _message(
    text=ANY, thought=ANY, thoughtSignature=ANY, inlineData=BLOB, fileData=FILE,
    functionCall=_message(id=ANY, name=ANY, args=ANY),
    functionResponse=_message(id=ANY, name=ANY, response=ANY, willContinue=ANY, scheduling=ANY,
                              parts=[_message(inlineData=BLOB, fileData=FILE)]),
    videoMetadata=ANY, mediaResolution=ANY)
CONTENT = _message(role=ANY, parts=[PART])
REQUEST = _message(
    model=ANY, contents=[CONTENT], systemInstruction=CONTENT, cachedContent=ANY,
    safetySettings=[_message(category=ANY, threshold=ANY)],
    tools=[_message(functionDeclarations=[_message(
        name=ANY, description=ANY, parameters=SCHEMA, parametersJsonSchema=ANY, response=SCHEMA,
        responseJsonSchema=ANY, behavior=ANY)], googleSearch=ANY, codeExecution=ANY,
        urlContext=ANY)],
    toolConfig=_message(functionCallingConfig=_message(mode=ANY, allowedFunctionNames=ANY),
                        retrievalConfig=ANY),
    generationConfig=_message(
        stopSequences=ANY, responseMimeType=ANY, responseSchema=SCHEMA, responseJsonSchema=ANY,
        candidateCount=ANY, maxOutputTokens=ANY, temperature=ANY, topP=ANY, topK=ANY, seed=ANY,
        presencePenalty=ANY, frequencyPenalty=ANY, responseLogprobs=ANY, logprobs=ANY,
        thinkingConfig=_message(includeThoughts=ANY, thinkingBudget=ANY, thinkingLevel=ANY),
        responseModalities=ANY, speechConfig=ANY, mediaResolution=ANY))
GEMINI_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
GEMINI_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")


def check_fields(value, shape, where):
    """As a parser of protocol buffers does: a name that the message lacks is an error."""
    if shape is ANY:
        return
    if isinstance(shape, list):
        need(isinstance(value, list), f"Invalid value at '{where}'")
        for i, one in enumerate(value):
            check_fields(one, shape[0], f"{where}[{i}]")
        return
    need(isinstance(value, dict), f"Invalid value at '{where}'")
    for name, member in value.items():
        inner = shape.get("*", shape.get(name))
        need(inner is not None, f"Invalid JSON payload received. Unknown name \"{name}\" at "
             f"'{where}': Cannot find field.")
        check_fields(member, inner, f"{where}.{name}" if where else name)


def check_gemini_schema(schema, where, is_root=False):
    kind = schema.get("type")
    need(kind is None or kind in GEMINI_TYPES, f"Invalid value at '{where}.type', \"{kind}\"")
    need(kind or "anyOf" in schema, f"{where}.type: must be specified")
    need("enum" not in schema or kind in ("STRING", None),
         f"{where}.enum: only allowed for STRING type")
    need(all(is_string(e) and e for e in schema.get("enum", [])), f"{where}.enum: cannot be empty")
    need(kind != "ARRAY" or "items" in schema, f"{where}.items: missing field.")
    need(kind != "OBJECT" or schema.get("properties") or not is_root,
         f"{where}.properties: should be non-empty for OBJECT type")
    for name in schema.get("required", []):
        need(name in schema.get("properties", {}), f"{where}.required[{name}]: property is not "
             "defined")
    for name, sub in schema.get("properties", {}).items():
        check_gemini_schema(sub, f"{where}.properties[{name}]")
    for i, sub in enumerate(schema.get("anyOf", [])):
        check_gemini_schema(sub, f"{where}.any_of[{i}]")
    if "items" in schema:
        check_gemini_schema(schema["items"], f"{where}.items")


def check_gemini_tools(body):
    names = []
    for t, tool in enumerate(body.get("tools", [])):
        for d, declared in enumerate(tool.get("functionDeclarations", [])):
            where = f"GenerateContentRequest.tools[{t}].function_declarations[{d}]"
            name = declared.get("name", "")
            need(GEMINI_NAME.fullmatch(name), f"{where}.name: Invalid function name. Must start "
                 "with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
                 "underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 64.")
            need(name not in names, f"Duplicate function declaration found: {name}")
            need(not ("parameters" in declared and "parametersJsonSchema" in declared),
                 f"{where}: parameters and parameters_json_schema cannot both be set.")
            names.append(name)
            if "parameters" in declared:
                check_gemini_schema(declared["parameters"], f"{where}.parameters", True)
    config = body.get("toolConfig", {}).get("functionCallingConfig")
    if config is not None:
        need(config.get("mode", "AUTO") in ("AUTO", "ANY", "NONE", "VALIDATED"),
             f"Invalid value at 'tool_config.function_calling_config.mode', \"{config['mode']}\"")
        need(names, "Function calling config is set without function_declarations.")
        for name in config.get("allowedFunctionNames", []):
            need(name in names, f"Allowed function name {name} is not declared.")


def check_signature(signature, where, issued):
    try:
        base64.b64decode(str(signature).translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except binascii.Error:
        raise Refused(f"Invalid value at '{where}' (TYPE_BYTES)") from None
    # The documented word for calls that another model made.
    need(signature in issued or signature == "skip_thought_signature_validator",
         "Thought signature is not valid.")


def check_gemini_part(part, where, issued):
    kinds = [k for k in ("text", "inlineData", "fileData", "functionCall", "functionResponse")
             if k in part]
    need(len(kinds) == 1, f"{where}.data: required oneof field 'data' must have one initialized "
         "field")
    if "thoughtSignature" in part:
        check_signature(part["thoughtSignature"], f"{where}.thought_signature", issued)
    for kind, body in (("functionCall", "args"), ("functionResponse", "response")):
        if kind in part:
            need(part[kind].get("name"), f"{where}.{kind}.name: Name cannot be empty.")
            need(GEMINI_NAME.fullmatch(part[kind]["name"]), f"{where}.{kind}.name: Invalid name.")
            need(isinstance(part[kind].get(body, {}), dict),
                 f"Invalid value at '{where}.{kind}.{body}' (type.googleapis.com/"
                 "google.protobuf.Struct)")


def check_gemini_turns(contents, wants_signatures, issued):
    need(contents, "* GenerateContentRequest.contents: contents is not specified")
    asked, last_user = [], max([i for i, c in enumerate(contents) if c.get("role", "user") == "user"
                                and any("text" in p for p in c.get("parts", []))] or [0])
    for i, content in enumerate(contents):
        where = f"GenerateContentRequest.contents[{i}]"
        need(content.get("role", "user") in ("user", "model"),
             "Please use a valid role: user, model.")
        parts = content.get("parts", [])
        need(parts, f"* {where}.parts: contents.parts must not be empty.")
        for k, part in enumerate(parts):
            check_gemini_part(part, f"{where}.parts[{k}]", issued)
        answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
        need(len(answers) == len(asked), "Please ensure that the number of function response parts "
             "is equal to the number of function call parts of the function call turn.")
        for answer, call in zip(answers, asked):
            need(answer["name"] == call["name"] and answer.get("id") == call.get("id"),
                 f"{where}: function response {answer['name']} does not answer {call['name']}.")
        calls = [p for p in parts if "functionCall" in p]
        need(not calls or (content.get("role") == "model" and i > 0),
             "Please ensure that function call turn comes immediately after a user turn or after a "
             "function response turn.")
        if calls and wants_signatures and i > last_user:
            need("thoughtSignature" in calls[0], "Function call is missing a thought_signature in "
                 f"functionCall parts. Additional data, function call `default_api:"
                 f"{calls[0]['functionCall']['name']}`, position {i + 1}.")
        asked = [p["functionCall"] for p in calls]
    need(not asked, "Please ensure that function call turn is followed by its function responses.")
    need(contents[-1].get("role", "user") == "user", "Please ensure that a request ends with a "
         "user role.")


def check_gemini(body, headers, issued):
    if not headers.get("x-goog-api-key"):
        raise Refused("Method doesn't allow unregistered callers (callers without established "
                      "identity).", status=403)
    check_fields(body, REQUEST, "")
    check_gemini_tools(body)
    check_gemini_turns(body.get("contents", []), headers["model"].startswith("gemini-3"), issued)
