#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: each engine understands what its provider really sends, streamed or not, errors included,
and sends nothing that the provider refuses.

    test_replay.py ENGINE_CLIENT

The provider is replay_server.py; wire/expected.json says what each of its answers means.
"""

import itertools
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
sys.path.insert(0, HERE)

from replay_server import ReplayServer  # noqa: E402
from scenario import TIMEOUT_S, check, main, scenario  # noqa: E402

PROVIDERS = {  # the model we ask for, and what comes before the path
    "openai-chat": ("gpt-4.1-mini", "/v1"),
    "openai-responses": ("gpt-5-mini", "/v1"),
    "anthropic": ("claude-sonnet-4-6", ""),
    "gemini": ("gemini-3-pro-preview", "/v1beta"),
}
MODES = {"streamed": [], "whole": ["--no-stream"]}
TOOLS = ["weather", "add", "broken"]
RESULTS = {"weather": "it rains in {city}", "add": "42.5", "broken": "it is broken",
           "no_such_tool": "no_such_tool"}
FAILING = ("broken", "no_such_tool")
PROMPT = "What is the weather in Oslo? Скажи 🌦"
with open(os.path.join(HERE, "wire", "expected.json"), encoding="utf-8") as _file:
    EXPECTED = json.load(_file)

server = ReplayServer()
_numbers = itertools.count(1)


class Talk:
    """One turn of our engine with the server."""

    def __init__(self, provider, steps, *options):
        model, prefix = PROVIDERS[provider]
        self.provider, self.session = provider, f"{steps}~{next(_numbers)}"
        command = [os.path.abspath(sys.argv[1]), "--provider", provider, "--model", model,
                   "--base-url", f"http://127.0.0.1:{server.port}/{self.session}{prefix}",
                   "--key", "test-key", "--backoff-ms", "1", *options, PROMPT]
        done = subprocess.run(command, check=False, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "no_proxy": "127.0.0.1"})
        self.what = "\n".join([" ".join(command), f"exit status {done.returncode}", done.stdout,
                               done.stderr])
        check(done.returncode in (0, 1) and not done.stderr, self.what)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.outcome = lines[-1]
        self.blocks = [line for line in lines if "block" in line][1:]  # without the prompt
        self.events = [line for line in lines if "event" in line]
        self.requests = [r for r in server.records if r["session"] == self.session]

    def check(self, truth, *about):
        check(truth, *about, "\n", self.what)

    def equal(self, got, expected, about):
        self.check(got == expected, f"{about}: expected {expected!r}, got {got!r}")

    def ends_well(self, n_requests):
        self.equal(self.outcome["outcome"], "ack", "outcome")
        self.equal([r["refused"] for r in self.requests], [None] * n_requests, "refusals")
        return self

    def fails(self, cause, *words):
        self.equal((self.outcome["outcome"], self.outcome["cause"]), ("nack", cause), "outcome")
        for word in words:
            self.check(word in self.outcome["message"], f"no {word!r} in the message")
        self.equal([b for b in self.blocks if b["block"] == "call"], [], "calls on the turn")
        return self

    def told(self, kind):
        """What the events of a kind add up to."""
        return "".join(e["delta"] for e in self.events if e["event"] == kind)

    def results_of_inference(self):
        return [e["result"] for e in self.events if e["event"] == "inference_end"]

    def results(self):
        return [b for b in self.blocks if b["block"] == "result"]


def sent_tools(provider, body):
    tools = body["tools"]
    if provider == "gemini":
        return [d["name"] for d in tools[0]["functionDeclarations"]]
    return [t["function"]["name"] if provider == "openai-chat" else t["name"] for t in tools]


def sent_results(provider, body):
    """(id, content, is_error) of each tool result in a request; Gemini has no ids."""
    if provider == "openai-chat":
        return [(m["tool_call_id"], m["content"], None) for m in body["messages"]
                if m["role"] == "tool"]
    if provider == "openai-responses":
        return [(i["call_id"], i["output"], None) for i in body["input"]
                if i.get("type") == "function_call_output"]
    if provider == "anthropic":
        return [(p["tool_use_id"], p["content"], p.get("is_error", False))
                for m in body["messages"] if isinstance(m["content"], list)
                for p in m["content"] if p["type"] == "tool_result"]
    return [(None, json.dumps(p["functionResponse"]["response"], ensure_ascii=False), None)
            for c in body["contents"] for p in c["parts"] if "functionResponse" in p]


# ---- what an answer means ---------------------------------------------------------------

def has_thought(expected):
    """A thought may be sealed without a word."""
    return bool(expected["thought"] or expected.get("sealed"))


def check_blocks(talk, blocks, expected):
    """The blocks that one answer left, and their payload."""
    kinds = (["reasoning"] * has_thought(expected) + ["assistant"] * bool(expected["text"])
             + ["call"] * len(expected["calls"]))
    talk.equal([b["block"] for b in blocks], kinds, "blocks")
    for block in blocks:
        if block["block"] == "reasoning":
            talk.equal(block["text"], expected["thought"], "thought")
        if block["block"] == "assistant":
            talk.equal(block["text"], expected["text"], "text")
    calls = [b for b in blocks if b["block"] == "call"]
    talk.equal([(b["tool"], json.loads(b["args"] or "{}")) for b in calls],
               [(c["tool"], c["args"]) for c in expected["calls"]], "calls")
    if talk.provider != "gemini":
        talk.equal([b["call_id"] for b in calls], [c["id"] for c in expected["calls"]], "call ids")
    talk.check(len({b["call_id"] for b in calls}) == len(calls), "call ids are not unique")


def check_result(talk, result, expected, name):
    """pegboard.inference_result@v1 of an answer."""
    for key in ("model", "stop_reason", "response_id"):
        talk.equal(result[key], expected[key], key)
    for key, count in expected["usage"].items():
        talk.equal(result["usage"].get(key, 0), count, f"usage.{key}")
    talk.check(result["request_id"].startswith("req_"), "no request_id")
    talk.equal(result["truncated"], name == "max_tokens", "truncated")
    finish = "tool_calls_pending" if expected["calls"] else None
    finish = finish or {"max_tokens": "max_tokens", "refusal": "refused"}.get(name, "completed")
    talk.equal(result["finish_class"], finish, "finish_class")


def check_args_events(talk, expected):
    """The arguments of each call were told while they came, also where they were interleaved."""
    told = {}
    for event in talk.events:
        if event["event"] == "tool_args":
            told.setdefault(event["id"], []).append(event["delta"])
            talk.equal(event["full"], "".join(told[event["id"]]), "arguments so far")
    for call in expected["calls"]:
        if talk.provider != "gemini" and call["args"]:
            talk.equal(json.loads("".join(told[call["id"]])), call["args"], "arguments told")


def check_request(talk, request, mode):
    body = request["body"]
    talk.equal(sent_tools(talk.provider, body), TOOLS, "tools that were offered")
    talk.check("🌦" in json.dumps(body, ensure_ascii=False), "the prompt is not in the request")
    if talk.provider == "gemini":
        talk.equal(":streamGenerateContent" in request["path"], mode == "streamed", "streaming")
    else:
        talk.equal(body.get("stream", False), mode == "streamed", "streaming")


def check_conversation(talk, names, mode):
    """A turn of several answers: blocks, results, events and requests."""
    talk.ends_well(len(names))
    answers = [EXPECTED[talk.provider][name] for name in names]
    blocks, n_results = talk.blocks, 0
    for i, (name, answer) in enumerate(zip(names, answers)):
        n = has_thought(answer) + bool(answer["text"]) + len(answer["calls"])
        check_blocks(talk, blocks[:n], answer)
        check_results(talk, blocks[n:n + len(answer["calls"])], answer["calls"])
        blocks = blocks[n + len(answer["calls"]):]
        check_result(talk, talk.results_of_inference()[i], answer, name)
        check_args_events(talk, answer)
        check_request(talk, talk.requests[i], mode)
        check_sent_results(talk, talk.requests[i]["body"], n_results)
        n_results += len(answer["calls"])
    talk.equal(blocks, [], "blocks that nobody expects")
    talk.equal(talk.told("message"), "".join(a["text"] for a in answers), "told as text")
    talk.equal(talk.told("thought"), "".join(a["thought"] for a in answers), "told as thoughts")


def check_results(talk, blocks, calls):
    for block, call in zip(blocks, calls):
        talk.equal((block["block"], block["tool"]), ("result", call["tool"]), "result")
        talk.equal(block["is_error"], call["tool"] in FAILING, f"is_error of {call['tool']}")
        words = RESULTS[call["tool"]].format(**call["args"])
        talk.check(call["tool"] in FAILING or words in block["result"], f"no {words!r} in", block)


def check_sent_results(talk, body, n_results):
    """A request has the results of all calls before it, in their order."""
    sent = sent_results(talk.provider, body)
    answered = talk.results()[:n_results]
    talk.equal(len(sent), n_results, "number of results sent")
    for (call_id, content, is_error), block in zip(sent, answered):
        if call_id is not None:
            talk.equal(call_id, block["call_id"], "id of a result")
        call = next(b for b in talk.blocks
                    if b["block"] == "call" and b["call_id"] == block["call_id"])
        words = RESULTS[block["tool"]].format(**json.loads(call["args"] or "{}"))
        talk.check(words in content, f"no {words!r} in what was sent: {content}")
        if is_error is not None:
            talk.equal(is_error, block["is_error"], "is_error as sent")


CONVERSATIONS = [
    "text", "unicode", "cached", "reasoning", "refusal", "max_tokens", "tool+final",
    "parallel+final", "text_tool+final", "reasoning_tool+final", "fail+final", "unknown+final",
    "tool+parallel+final", "reasoning_tool+fail+reasoning",
]
# How the same bytes may arrive: in one, split anywhere, with other ends of lines.
WAYS = ["parallel:byte+final:odd", "unicode:byte", "unicode:odd", "reasoning_tool:odd+final:byte",
        "parallel:crlf+final:lf", "reasoning_tool:cr+final:cr", "tool:chop+final:chop",
        "parallel:lf:odd+unicode:crlf:byte"]


def add_conversation(provider, mode, steps):
    names = [step.split(":")[0] for step in steps.split("+")]

    def run(_):
        check_conversation(Talk(provider, steps, *MODES[mode]), names, mode)

    run.__name__ = f"{provider} {mode}: {steps}"
    scenario(run)


for _provider in PROVIDERS:
    for _mode in MODES:
        for _steps in CONVERSATIONS:
            add_conversation(_provider, _mode, _steps)
    for _steps in WAYS:
        add_conversation(_provider, "streamed", _steps)


for _mode in MODES:
    add_conversation("anthropic", _mode, "redacted+final")


def each(function):
    """A scenario for each provider and mode: function(provider, options)."""
    for provider, (mode, options) in itertools.product(PROVIDERS, MODES.items()):
        def run(_, provider=provider, options=options):
            function(provider, options)

        run.__name__ = f"{provider} {mode}: {function.__name__}"
        scenario(run)
    return function


def each_stream(function):
    for provider in PROVIDERS:
        def run(_, provider=provider):
            function(provider)

        run.__name__ = f"{provider} streamed: {function.__name__}"
        scenario(run)
    return function


# ---- streams ----------------------------------------------------------------------------

@each_stream
def text_is_told_as_it_comes(provider):
    talk = Talk(provider, "text").ends_well(1)
    deltas = [e["delta"] for e in talk.events if e["event"] == "message" and e["delta"]]
    talk.equal(deltas, ["Oslo", " has 14", " degrees and", " a light wind."], "deltas")
    talk.equal([e["complete"] for e in talk.events if e["event"] == "message"][-1], True, "the end")


@scenario
def anthropic_streamed_calls_that_are_interleaved_are_told_apart(_):
    talk = Talk("anthropic", "interleaved+final").ends_well(2)
    check_blocks(talk, talk.blocks[:3], EXPECTED["anthropic"]["parallel"])


@each_stream
def a_stream_that_just_ends_is_an_error_and_is_not_asked_for_again(provider):
    talk = Talk(provider, "broken+text").fails("E_ENGINE_TRANSPORT", "ended before")
    talk.equal(len(talk.requests), 1, "requests")
    talk.equal(talk.told("message"), "Half an ans", "what was told until then")


@each_stream
def a_connection_that_breaks_in_the_middle_is_an_error(provider):
    talk = Talk(provider, "text:cut=-60+text").fails("E_ENGINE_TRANSPORT")
    talk.equal(len(talk.requests), 1, "requests")


@each_stream
def a_connection_that_breaks_before_a_word_is_tried_again(provider):
    talk = Talk(provider, "text:cut=20+text").ends_well(2)
    talk.equal(talk.told("message"), EXPECTED[provider]["text"]["text"], "text")


@each_stream
def an_error_in_the_middle_of_a_stream_is_told_in_the_providers_words(provider):
    cause = {"anthropic": "E_ENGINE_OVERLOADED", "gemini": "E_ENGINE_OVERLOADED"}
    words = {"openai-chat": "while it worked on your request",
             "openai-responses": "The model stopped with an error", "anthropic": "Overloaded",
             "gemini": "The model is overloaded"}
    talk = Talk(provider, "midstream_error+text")
    talk.fails(cause.get(provider, "E_ENGINE_FAILED"), words[provider])
    talk.equal(len(talk.requests), 1, "requests")


@scenario
def openai_responses_streamed_an_error_event_is_told_in_the_providers_words(_):
    Talk("openai-responses", "midstream_error_event").fails("E_ENGINE_RATE_LIMITED", "in 2s")


@scenario
def calls_that_break_off_are_not_run(_):
    for provider in ("openai-chat", "openai-responses", "anthropic"):
        talk = Talk(provider, "broken_call").fails("E_ENGINE_TRANSPORT")
        talk.check(not any(e["event"] == "tool_call" for e in talk.events), "a call ran")


@scenario
def arguments_that_are_cut_off_are_a_failure_that_the_model_hears_of(_):
    for provider, options in (("openai-chat", []), ("openai-chat", ["--no-stream"]),
                              ("anthropic", [])):
        talk = Talk(provider, "cut_call+final", *options).ends_well(2)
        talk.equal([b["is_error"] for b in talk.results()], [True], "the result is an error")
        talk.equal(talk.results_of_inference()[0]["truncated"], True, "truncated")
        talk.equal(len(sent_results(provider, talk.requests[1]["body"])), 1, "results sent")


# ---- errors ------------------------------------------------------------------------------

ERRORS = {"error_400": "E_ENGINE_REQUEST", "error_401": "E_ENGINE_AUTH",
          "error_403": "E_ENGINE_AUTH", "error_404": "E_ENGINE_REQUEST",
          "error_429": "E_ENGINE_RATE_LIMITED", "error_500": "E_ENGINE_FAILED",
          "error_503": "E_ENGINE_OVERLOADED", "error_529": "E_ENGINE_OVERLOADED"}


def fixture_exists(provider, name):
    return os.path.exists(os.path.join(HERE, "wire", provider, name + ".json"))


@each
def an_error_comes_with_the_providers_words(provider, options):
    for name, cause in ERRORS.items():
        if not fixture_exists(provider, name):
            continue
        with open(os.path.join(HERE, "wire", provider, name + ".json"), encoding="utf-8") as file:
            words = json.load(file)["error"]["message"]
        talk = Talk(provider, name, "--tries", "1", *options)
        talk.fails(cause, words, f"HTTP {name[6:9]}")
        talk.equal(len(talk.requests), 1, "requests")


@scenario
def a_quota_that_is_used_up_is_not_tried_again(_):
    for options in MODES.values():
        talk = Talk("openai-chat", "error_429_quota+final", *options)
        talk.equal(talk.outcome.get("cause"), "E_ENGINE_QUOTA", "cause")
        talk.equal(len(talk.requests), 1, "requests")


@each
def overload_is_tried_again(provider, options):
    last = "error_529" if provider == "anthropic" else "error_503"
    talk = Talk(provider, f"error_429:after=0+{last}:after=0+tool+error_500+final", *options)
    talk.ends_well(5)
    retries = [e for e in talk.events if e["event"] == "log" and e["kind"] == "engine.retry"]
    talk.equal(len(retries), 3, "retries told")
    check_blocks(talk, talk.blocks[:1], EXPECTED[provider]["tool"])


@each
def tries_end(provider, options):
    talk = Talk(provider, "error_500+error_500+error_500", "--tries", "2", *options)
    talk.fails("E_ENGINE_FAILED")
    talk.equal(len(talk.requests), 2, "requests")


@scenario
def retry_after_is_waited_for_or_given_up(_):
    for provider in ("openai-chat", "anthropic"):
        talk = Talk(provider, "error_429:after=1+text").ends_well(2)
        talk.check(any("again in 1000 ms" in e.get("message", "") for e in talk.events),
                   "Retry-After was not heard")
        talk = Talk(provider, "error_429:after=3600+text").fails("E_ENGINE_RATE_LIMITED")
        talk.equal(len(talk.requests), 1, "requests")


@each
def a_wrong_request_is_not_tried_again(provider, options):
    for name in ("error_400", "error_401", "error_403", "error_404"):
        talk = Talk(provider, f"{name}+text", *options)
        talk.equal((talk.outcome["outcome"], len(talk.requests)), ("nack", 1), name)


@scenario
def the_key_goes_where_the_provider_looks_for_it(_):
    for provider, (name, value) in {
            "openai-chat": ("authorization", "Bearer test-key"),
            "openai-responses": ("authorization", "Bearer test-key"),
            "anthropic": ("x-api-key", "test-key"),
            "gemini": ("x-goog-api-key", "test-key")}.items():
        talk = Talk(provider, "text").ends_well(1)
        talk.equal(talk.requests[0]["headers"].get(name), value, name)
        talk.check("test-key" not in talk.requests[0]["path"], "the key is in the URL")


@scenario
def gemini_a_key_that_is_none_is_told_so(_):
    for options in MODES.values():
        talk = Talk("gemini", "error_400_key", *options)
        talk.equal(talk.outcome.get("cause"), "E_ENGINE_AUTH", "cause")
        talk.check("API key not valid" in talk.outcome["message"], "the words are not there")


@scenario
def gemini_a_prompt_that_is_blocked_is_an_error_with_the_reason(_):
    for options in MODES.values():
        Talk("gemini", "blocked", *options).fails("E_ENGINE_REQUEST", "PROHIBITED_CONTENT")


# ---- thoughts that must go back -------------------------------------------------------------

@each
def sealed_thoughts_go_back_as_they_came(provider, options):
    talk = Talk(provider, "reasoning_tool+final", *options).ends_well(2)
    body = json.dumps(talk.requests[1]["body"], ensure_ascii=False)
    seals = {"openai-chat": "The user wants the weather",
             "openai-responses": '"encrypted_content": "gAAAA', "anthropic": '"signature": "EqQ',
             "gemini": '"thoughtSignature": "CiQ'}
    talk.check(seals[provider] in body, f"no {seals[provider]} in {body}")


@each
def thinking_can_be_asked_for(provider, options):
    talk = Talk(provider, "reasoning_tool+final", "--thinking", "2048", *options).ends_well(2)
    body = talk.requests[0]["body"]
    if provider == "anthropic":
        talk.equal(body["thinking"], {"type": "enabled", "budget_tokens": 2048}, "thinking")
    if provider == "gemini":
        talk.equal(body["generationConfig"]["thinkingConfig"]["thinkingBudget"], 2048, "thinking")


@each
def strict_definitions_are_accepted(provider, options):
    talk = Talk(provider, "parallel+final", "--strict", *options).ends_well(2)
    check_blocks(talk, talk.blocks[:3], EXPECTED[provider]["parallel"])


@each
def without_tools_none_are_sent(provider, options):
    talk = Talk(provider, "text", "--no-tools", *options).ends_well(1)
    talk.check("tools" not in talk.requests[0]["body"], "there are tools")


@scenario
def the_server_refuses_one_request_too_many(_):
    talk = Talk("openai-chat", "tool")
    talk.equal(talk.outcome["outcome"], "nack", "outcome")
    talk.check("has only 1 answers" in talk.outcome["message"], "no such words")


if __name__ == "__main__":
    server.start()
    main()
