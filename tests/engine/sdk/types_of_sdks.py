# SPDX-License-Identifier: Apache-2.0
"""TypeScript in which the compiler compares values of ours with the types of the providers' SDKs.

Every value is a literal of a constant with a type, so that a member that the type does not have is
an error as much as one that is missing or wrong. What is checked against what:

    openai-chat       ChatCompletionCreateParams; ChatCompletion, ChatCompletionChunk
    openai-responses  ResponseCreateParams; Response (without output_text, which the SDK adds),
                      ResponseStreamEvent
    anthropic         MessageCreateParams; Message, RawMessageStreamEvent
    gemini            the SDK has no type of the body itself: it converts what it takes. The body is
                      made of types that it does have: Content, Tool, ToolConfig, GenerationConfig,
                      with enumerations as their words and int64 as number or string;
                      GenerateContentResponse's members
    errors            OpenAI.ErrorObject, Anthropic.ErrorResponse
"""

import copy
import json

HEADERS = {
    "openai-chat": """import OpenAI from "openai";
type Request = OpenAI.Chat.Completions.ChatCompletionCreateParams;
type Answer = OpenAI.Chat.Completions.ChatCompletion;
type Event = OpenAI.Chat.Completions.ChatCompletionChunk;
type Failure = { error: OpenAI.ErrorObject };
""",
    "openai-responses": """import OpenAI from "openai";
type Request = OpenAI.Responses.ResponseCreateParams;
type Answer = Omit<OpenAI.Responses.Response, "output_text">;
type Raw<T> = T extends { response: OpenAI.Responses.Response }
  ? { [K in keyof T]: K extends "response" ? Answer : T[K] }
  : T;
type Event = Raw<OpenAI.Responses.ResponseStreamEvent>;
type Failure = { error: OpenAI.ErrorObject };
""",
    "anthropic": """import Anthropic from "@anthropic-ai/sdk";
type Request = Anthropic.MessageCreateParams;
type Answer = Anthropic.Message;
type Event = Anthropic.RawMessageStreamEvent;
type Failure = Anthropic.ErrorResponse;
""",
    "gemini": """import type * as G from "@google/genai";
type Int64 = "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties";
type Wire<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends Array<infer U>
      ? Wire<U>[]
      : T extends object
        ? { [K in keyof T]: K extends Int64 ? T[K] | number : Wire<T[K]> }
        : T;
type Request = Wire<{
  contents: G.Content[];
  systemInstruction?: G.Content;
  tools?: G.Tool[];
  toolConfig?: G.ToolConfig;
  generationConfig?: G.GenerationConfig;
  safetySettings?: G.SafetySetting[];
  cachedContent?: string;
}>;
type Answer = Wire<
  Pick<G.GenerateContentResponse, "candidates" | "promptFeedback" | "usageMetadata" | "modelVersion" | "responseId">
>;
type Event = Answer;
type Failure = { error: { code: number; message: string; status: string; details?: object[] } };
""",
}

# Requests that the types must refuse, or the check would check nothing.
CONTROLS = {
    "openai-chat": [
        {"model": "m", "messages": [], "mood": "good"},
        {"model": "m", "messages": [{"role": "tool", "content": "x"}]},
        {"model": "m", "messages": [], "tools": [{"type": "function", "name": "f"}]},
    ],
    "openai-responses": [
        {"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "f"}]},
        {"model": "m", "input": [], "max_tokens": 1},
        {"model": "m", "input": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
    ],
    "anthropic": [
        {"model": "m", "messages": []},
        {"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "content": "x"}]},
        {"model": "m", "max_tokens": 1, "messages": [], "tools": [{"name": "f", "parameters": {}}]},
    ],
    "gemini": [
        {"contents": [], "messages": []},
        {"contents": [{"role": "user", "parts": [{"functionCall": {"arguments": {}}}]}]},
        {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": {
            "type": "object"}}]}]},
        {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": {
            "type": "OBJECT", "additionalProperties": False}}]}]},
    ],
}

TSCONFIG = {
    "compilerOptions": {
        "strict": True, "noEmit": True, "skipLibCheck": True, "target": "es2022",
        "module": "nodenext", "moduleResolution": "nodenext", "types": [],
    },
}


def constants(provider, kind, values):
    """A program with a constant of that type for each value: {"name": value}."""
    lines = [HEADERS[provider]]
    for i, (name, value) in enumerate(values.items()):
        lines.append(f"// {name}")
        lines.append(f"export const v{i}: {kind} = {json.dumps(value, indent=1)};")
    return "\n".join(lines) + "\nexport type Used = [Request, Answer, Event, Failure];\n"


def controls(provider):
    """A program that compiles only if every line is wrong."""
    lines = [HEADERS[provider]]
    for i, value in enumerate(CONTROLS[provider]):
        lines.append(f"// @ts-expect-error\nexport const v{i}: Request = {json.dumps(value)};")
    return "\n".join(lines) + "\nexport type Used = [Request, Answer, Event, Failure];\n"


def as_typed(provider, value):
    """A value without what an API takes and the types of its SDK do not say."""
    value = copy.deepcopy(value)
    if provider == "openai-chat":
        _without_thoughts(value)
    return value


def _without_thoughts(value):
    """Servers other than OpenAI's send thoughts and want them back."""
    choices = value.get("choices", [])
    places = [choice.get(where, {}) for choice in choices for where in ("message", "delta")]
    for place in [*value.get("messages", []), *places]:
        place.pop("reasoning_content", None)
