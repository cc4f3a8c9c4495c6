// SPDX-License-Identifier: Apache-2.0
// A client of the official TypeScript SDK, of either line, at a gateway: over HTTP, or by a bridge on pipes.
//
//   node client.mjs v1|v2-legacy|v2-modern URL|BRIDGE...
//
// Prints one JSON object: what it was answered. It cancels the tool slow__wait when that runs.

import { existsSync } from "node:fs";

const [line, target, ...args] = process.argv.slice(2);
const isBridge = !target.startsWith("http");
const progress = [];

async function connectV1() {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "stock", version: "1" });
  await client.connect(isBridge ? new StdioClientTransport({ command: target, args })
    : new StreamableHTTPClientTransport(new URL(target)));
  return client;
}

async function connectV2(mode) {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client({ name: "stock", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(isBridge ? new StdioClientTransport({ command: target, args })
    : new StreamableHTTPClientTransport(new URL(target)));
  return client;
}

async function fails(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { code: error.code, message: String(error.message) };
  }
}

const client = await (line === "v1" ? connectV1() : connectV2(line === "v2-legacy" ? "legacy" : "auto"));
const call = (name, argumentsOfTool = {}, options = {}) => (line === "v1"
  ? client.callTool({ name, arguments: argumentsOfTool }, undefined, options)
  : client.callTool({ name, arguments: argumentsOfTool }, options));

async function cancel() {
  const controller = new AbortController();
  const failed = fails(call("slow__wait", {}, { signal: controller.signal }));
  while (!existsSync("runs")) await new Promise((resolve) => setTimeout(resolve, 20));
  controller.abort("enough");
  await failed;
  while (!existsSync("stopped")) await new Promise((resolve) => setTimeout(resolve, 20));
  return true;
}

const said = {
  server: client.getServerVersion?.(),
  version: client.getNegotiatedProtocolVersion?.() ?? null,
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  say: (await call("weather__say")).content,
  wrong: await call("weather__echo", { days: 3 }),
  fail: await call("weather__fail"),
  unknown: await fails(call("nothing")),
  count: (await call("talk__count", { n: 3 }, { onprogress: (step) => progress.push(step.progress) })).content,
  draw: (await call("talk__draw")).content,
  hints: (await client.listTools()).tools.filter((tool) => tool.name === "talk__draw")
    .flatMap((tool) => [tool.annotations, tool.title]),
  canceled: await cancel(),
  again: (await call("weather__say")).content,
  progress,
};
await client.close();
console.log(JSON.stringify(said));
