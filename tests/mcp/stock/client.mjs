// SPDX-License-Identifier: Apache-2.0
// A client of the official TypeScript SDK, of either line, at our server.
//
//   node client.mjs v1|v2-legacy|v2-modern FOLDER SERVER...
//
// Prints one JSON object: what it was answered.

import { existsSync } from "node:fs";
import { join } from "node:path";

const [line, folder, command, ...args] = process.argv.slice(2);
const seen = { progress: [], asked: [] };

async function connectV1() {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const client = new Client({ name: "stock", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(new StdioClientTransport({ command, args }));
  return client;
}

async function connectV2(mode) {
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client({ name: "stock", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", answer);
  await client.connect(new StdioClientTransport({ command, args }));
  return client;
}

async function answer(request) {
  seen.asked.push(request.params.message);
  return { action: "accept", content: { name: "Ada" } };
}

async function listAll(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined && names.length < 100);
  return names;
}

async function fails(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { code: error.code, message: String(error.message) };
  }
}

async function cancel(client) {
  const controller = new AbortController();
  const file = join(folder, `canceled-${line}`);
  const call = line === "v1"
    ? client.callTool({ name: "sleep", arguments: { file } }, undefined, { signal: controller.signal })
    : client.callTool({ name: "sleep", arguments: { file } }, { signal: controller.signal });
  const failed = fails(call);
  setTimeout(() => controller.abort("enough"), 200);
  await failed;
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
  return true;
}

const client = await (line === "v1" ? connectV1() : connectV2(line === "v2-legacy" ? "legacy" : "auto"));
const onprogress = (progress) => seen.progress.push(progress.progress);
const call = (name, argumentsOfTool = {}, options = {}) => (line === "v1"
  ? client.callTool({ name, arguments: argumentsOfTool }, undefined, options)
  : client.callTool({ name, arguments: argumentsOfTool }, options));
const said = {
  server: client.getServerVersion?.(),
  version: client.getNegotiatedProtocolVersion?.() ?? null,
  instructions: client.getInstructions(),
  tools: await listAll(client),
  sum: (await call("add", { a: 2, b: 3 })).structuredContent,
  wrong: await call("add", { a: 2 }),
  fail: await call("fail"),
  unknown: await fails(call("nothing")),
  picture: (await call("picture")).content,
  worked: (await call("progress", {}, { onprogress })).content,
  hello: (await call("ask")).content,
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
  note: (await client.readResource({ uri: "note:///by-id/7" })).contents.map((content) => content.text),
  missing: await fails(client.readResource({ uri: "note:///nothing" })),
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  prompt: (await client.getPrompt({ name: "greet", arguments: { who: "Ada" } })).messages[0].content.text,
  completed: (await client.complete({ ref: { type: "ref/prompt", name: "greet" },
    argument: { name: "who", value: "A" } })).completion.values,
  canceled: await cancel(client),
  again: (await call("add", { a: 1, b: 1 })).structuredContent,
  ...seen,
};
await client.close();
console.log(JSON.stringify(said));
