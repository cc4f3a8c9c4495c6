// SPDX-License-Identifier: Apache-2.0
// Do the providers' own SDKs accept what our server replays? They read every answer in wire/, whole
// and streamed, find in it what expected.json says, raise their own errors for errors, and hold
// conversations that the server's rules must let through.
//
//   node sdk_test.mjs PORT WIRE      prints {"name", "error"} a line; error is null if it went well

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI, ApiError } from "@google/genai";

const [port, wire] = process.argv.slice(2);
const expected = JSON.parse(fs.readFileSync(path.join(wire, "expected.json"), "utf8"));
const PROMPT = "What is the weather in Oslo?";
let sessions = 0;
let failures = 0;

const base = (steps) => `http://127.0.0.1:${port}/${steps}~sdk${++sessions}`;
// What helpers add for their caller is no part of the protocol.
const plain = (value) =>
  JSON.parse(JSON.stringify(value, (key, member) => (key.startsWith("parsed") ? undefined : member)));
const schema = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const TOOLS = [
  { name: "weather", description: "the weather in a city", schema: schema({ city: { type: "string" } }) },
  { name: "add", description: "adds", schema: schema({ a: { type: "number" }, b: { type: "number" } }) },
];

async function test(name, run) {
  let error = null;
  try {
    await run();
  } catch (caught) {
    error = String(caught?.stack ?? caught).slice(0, 4000);
    failures++;
  }
  console.log(JSON.stringify({ name, error }));
}

// ---- each provider: ask(steps, isStreaming) -> {text, thought, calls, stop, input, output} ----------

const chat = {
  name: "openai-chat",
  client: (steps, maxRetries = 0) => new OpenAI({ apiKey: "k", baseURL: `${base(steps)}/v1`, maxRetries }),
  params: (messages) => ({
    model: "gpt-4.1-mini",
    messages,
    tools: TOOLS.map((t) => ({
      type: "function",
      function: { name: t.name, description: t.description, parameters: t.schema },
    })),
  }),
  async get(client, params, isStreaming) {
    if (!isStreaming) return client.chat.completions.create(params);
    const stream = client.chat.completions.stream({ ...params, stream_options: { include_usage: true } });
    let thought = "";
    let refusal = "";
    for await (const chunk of stream) {
      thought += chunk.choices[0]?.delta.reasoning_content ?? "";
      refusal += chunk.choices[0]?.delta.refusal ?? "";
    }
    const completion = await stream.finalChatCompletion().catch((error) => {
      // The helper raises what a completion that was cut off is; the answer itself was accepted.
      if (error.constructor.name !== "LengthFinishReasonError") throw error;
      return stream.currentChatCompletionSnapshot;
    });
    completion.choices[0].message.reasoning_content = thought;
    completion.choices[0].message.refusal ??= refusal || null;
    return completion;
  },
  read(completion) {
    const { message, finish_reason } = completion.choices[0];
    return {
      text: message.content || message.refusal || "",
      thought: message.reasoning_content ?? "",
      calls: (message.tool_calls ?? []).map((c) => ({
        id: c.id,
        tool: c.function.name,
        args: JSON.parse(c.function.arguments),
      })),
      stop: finish_reason,
      input: completion.usage.prompt_tokens,
      output: completion.usage.completion_tokens,
      cached: completion.usage.prompt_tokens_details.cached_tokens,
    };
  },
  start: () => [{ role: "user", content: PROMPT }],
  goOn: (messages, completion) => [
    ...messages,
    plain(completion.choices[0].message),
    ...completion.choices[0].message.tool_calls.map((c) => ({
      role: "tool",
      tool_call_id: c.id,
      content: "it rains",
    })),
  ],
  errors: OpenAI,
};

const responses = {
  name: "openai-responses",
  client: chat.client,
  params: (input) => ({
    model: "gpt-5-mini",
    input,
    store: false,
    include: ["reasoning.encrypted_content"],
    tools: TOOLS.map((t) => ({
      type: "function",
      name: t.name,
      description: t.description,
      parameters: t.schema,
      strict: false,
    })),
  }),
  async get(client, params, isStreaming) {
    if (!isStreaming) return client.responses.create(params);
    const stream = client.responses.stream(params);
    let text = "";
    for await (const event of stream) {
      if (event.type === "response.output_text.delta" || event.type === "response.refusal.delta") text += event.delta;
    }
    const response = await stream.finalResponse();
    response.streamed_text = text;
    return response;
  },
  read(response) {
    const items = (type) => response.output.filter((item) => item.type === type);
    const text = items("message")
      .flatMap((item) => item.content.map((part) => part.text ?? part.refusal))
      .join("");
    if (response.streamed_text !== undefined) assert.equal(response.streamed_text, text);
    if (!items("message").some((item) => item.content[0].type === "refusal")) assert.equal(response.output_text, text);
    return {
      text,
      thought: items("reasoning").map((item) => item.summary[0].text).join(""),
      calls: items("function_call").map((item) => ({
        id: item.call_id,
        tool: item.name,
        args: JSON.parse(item.arguments),
      })),
      stop: response.incomplete_details?.reason ?? response.status,
      input: response.usage.input_tokens,
      output: response.usage.output_tokens,
      cached: response.usage.input_tokens_details.cached_tokens,
    };
  },
  start: () => [{ role: "user", content: PROMPT }],
  goOn: (input, response) => [
    ...input,
    ...plain(response.output),
    ...response.output
      .filter((item) => item.type === "function_call")
      .map((item) => ({ type: "function_call_output", call_id: item.call_id, output: "it rains" })),
  ],
  errors: OpenAI,
};

const anthropic = {
  name: "anthropic",
  client: (steps, maxRetries = 0) => new Anthropic({ apiKey: "k", baseURL: base(steps), maxRetries }),
  params: (messages) => ({
    model: "claude-sonnet-4-6",
    max_tokens: 1024,
    messages,
    tools: TOOLS.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema })),
  }),
  get: (client, params, isStreaming) =>
    isStreaming ? client.messages.stream(params).finalMessage() : client.messages.create(params),
  read(message) {
    const blocks = (type) => message.content.filter((block) => block.type === type);
    return {
      text: blocks("text").map((block) => block.text).join(""),
      thought: blocks("thinking").map((block) => block.thinking).join(""),
      signature: blocks("thinking")[0]?.signature,
      calls: blocks("tool_use").map((block) => ({ id: block.id, tool: block.name, args: block.input })),
      stop: message.stop_reason,
      input: message.usage.input_tokens,
      output: message.usage.output_tokens,
      cached: message.usage.cache_read_input_tokens,
    };
  },
  start: () => [{ role: "user", content: PROMPT }],
  goOn: (messages, message) => [
    ...messages,
    { role: "assistant", content: message.content },
    {
      role: "user",
      content: message.content
        .filter((block) => block.type === "tool_use")
        .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: "it rains" })),
    },
  ],
  errors: Anthropic,
};

const gemini = {
  name: "gemini",
  client: (steps, maxRetries = 0) =>
    new GoogleGenAI({
      apiKey: "k",
      httpOptions: {
        baseUrl: base(steps),
        retryOptions: { attempts: maxRetries + 1, initialDelay: 0.01, maxDelay: 0.02 },
      },
    }),
  params: (contents) => ({
    model: "gemini-3-pro-preview",
    contents,
    config: {
      tools: [
        {
          functionDeclarations: TOOLS.map((t) => ({
            name: t.name,
            description: t.description,
            parametersJsonSchema: t.schema,
          })),
        },
      ],
    },
  }),
  async get(client, params, isStreaming) {
    if (!isStreaming) return client.models.generateContent(params);
    const parts = [];
    let last;
    for await (const chunk of await client.models.generateContentStream(params)) {
      parts.push(...(chunk.candidates?.[0].content?.parts ?? []));
      last = chunk;
    }
    const { finishReason } = last.candidates[0];
    return { ...last, usageMetadata: last.usageMetadata, candidates: [{ finishReason, content: { role: "model", parts } }] };
  },
  read(response) {
    const parts = response.candidates[0].content?.parts ?? [];
    const usage = response.usageMetadata;
    return {
      text: parts.filter((p) => !p.thought).map((p) => p.text ?? "").join(""),
      thought: parts.filter((p) => p.thought).map((p) => p.text).join(""),
      signature: parts.find((p) => p.thoughtSignature)?.thoughtSignature,
      calls: parts.filter((p) => p.functionCall).map((p) => ({ tool: p.functionCall.name, args: p.functionCall.args ?? {} })),
      stop: response.candidates[0].finishReason,
      input: usage.promptTokenCount,
      output: usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0),
      cached: usage.cachedContentTokenCount ?? 0,
    };
  },
  start: () => [{ role: "user", parts: [{ text: PROMPT }] }],
  goOn: (contents, response) => [
    ...contents,
    response.candidates[0].content,
    {
      role: "user",
      parts: response.candidates[0].content.parts
        .filter((p) => p.functionCall)
        .map((p) => ({ functionResponse: { name: p.functionCall.name, response: { output: "it rains" } } })),
    },
  ],
};

// ---- what is checked ------------------------------------------------------------------------------

function compare(provider, name, got) {
  const want = expected[provider.name][name];
  assert.equal(got.text, want.text, "text");
  assert.equal(got.thought, want.thought, "thought");
  assert.deepEqual(got.calls, want.calls, "calls");
  // OpenAI stops as usual after a refusal; we say so.
  const stop = want.stop_reason === "refusal" ? want.wire_stop_reason ?? "refusal" : want.stop_reason;
  assert.equal(got.stop, stop, "stop reason");
  assert.equal(got.input, want.usage.input_tokens, "input tokens");
  assert.equal(got.output, want.usage.output_tokens, "output tokens");
  assert.equal(got.cached, want.usage.cached_tokens ?? want.usage.cache_read_input_tokens, "cached tokens");
  if (want.signature) assert.equal(got.signature, want.signature, "signature");
}

const CLASSES = {
  400: "BadRequestError",
  401: "AuthenticationError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  413: "APIError",
  429: "RateLimitError",
  500: "InternalServerError",
  503: "InternalServerError",
  529: "InternalServerError",
};

function checkError(provider, file, error) {
  const status = Number(file.slice(6, 9));
  const { message } = JSON.parse(fs.readFileSync(path.join(wire, provider.name, file), "utf8")).error;
  assert.equal(error.status, status);
  assert.ok(error.message.includes(message), `${error.message} does not say: ${message}`);
  if (provider === gemini) assert.ok(error instanceof ApiError, error.constructor.name);
  else assert.ok(error instanceof provider.errors[CLASSES[status]], error.constructor.name);
}

async function raised(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was raised");
}

async function checkAll(provider) {
  const ask = async (steps, isStreaming, conversation = provider.start(), client = provider.client(steps)) =>
    provider.get(client, provider.params(conversation), isStreaming);

  for (const isStreaming of [false, true]) {
    const how = `${provider.name} ${isStreaming ? "streamed" : "whole"}`;
    for (const name of Object.keys(expected[provider.name])) {
      await test(`${how}: ${name}`, async () => {
        compare(provider, name, provider.read(await ask(name, isStreaming)));
      });
    }
    for (const first of ["parallel", "reasoning_tool", "text_tool"]) {
      await test(`${how}: a conversation after ${first}`, async () => {
        const client = provider.client(`${first}+final`);
        const answer = await ask(null, isStreaming, provider.start(), client);
        const next = await ask(null, isStreaming, provider.goOn(provider.start(), answer), client);
        compare(provider, "final", provider.read(next));
      });
    }
    await test(`${how}: every error has its class`, async () => {
      const files = fs.readdirSync(path.join(wire, provider.name)).filter((file) => file.startsWith("error_"));
      assert.ok(files.length >= 7);
      for (const file of files) {
        checkError(provider, file, await raised(ask(file.slice(0, -5), isStreaming)));
      }
    });
    await test(`${how}: overload is tried again`, async () => {
      const steps = "error_429:after=0+error_500+text";
      compare(provider, "text", provider.read(await ask(null, isStreaming, provider.start(), provider.client(steps, 3))));
    });
  }

  await test(`${provider.name} streamed: an error in the middle is told`, async () => {
    // A response that failed is an answer to this SDK, and no error.
    const error = provider === responses ? (await ask("midstream_error", true)).error : await raised(ask("midstream_error", true));
    assert.match(error.message, /overloaded|error/i);
  });
}

// Side by side: retries wait for a while.
await Promise.all([chat, responses, anthropic, gemini].map(checkAll));
await test("anthropic streamed: interleaved calls", async () => {
  const message = await anthropic.get(anthropic.client("interleaved"), anthropic.params(anthropic.start()), true);
  compare(anthropic, "parallel", anthropic.read(message));
});
await test("openai-responses streamed: an error event is raised", async () => {
  const params = responses.params(responses.start());
  const error = await raised(responses.get(responses.client("midstream_error_event"), params, true));
  assert.match(error.message, /Rate limit reached/);
});
await test("gemini: a blocked prompt", async () => {
  for (const isStreaming of [false, true]) {
    const params = gemini.params(gemini.start());
    const client = gemini.client("blocked");
    const first = isStreaming
      ? (await (await client.models.generateContentStream(params)).next()).value
      : await client.models.generateContent(params);
    assert.equal(first.promptFeedback.blockReason, "PROHIBITED_CONTENT");
  }
});
process.exit(failures ? 1 : 0);
