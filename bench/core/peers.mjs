// SPDX-License-Identifier: Apache-2.0
// The same call in two tool runtimes of JavaScript: look up by name, parse the arguments, validate,
// run an empty handler, get the record that goes back to the model. One JSON object a line.
//
//   node peers.mjs SECONDS     run where the packages of package.json are installed

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const seconds = Number(process.argv[2] ?? 1);
const ARGS =
  '{"query":"weather in Rome tomorrow","limit":10,"tags":["travel","plan"],"exact":true,"from":{"day":14,"month":11}}';
const SIZES = [1, 1000];

async function schema() {
  const { z } = await load("zod");
  return {
    query: z.string().min(1).max(200),
    limit: z.number().int().min(1).max(100).optional(),
    tags: z.array(z.string()).max(8).optional(),
    exact: z.boolean().optional(),
    from: z.object({ day: z.number().int().optional(), month: z.number().int().optional() }).optional(),
  };
}

async function langchain(n) {
  const { tool } = await load("@langchain/core/tools");
  const { z } = await load("zod");
  const shape = z.object(await schema());
  const tools = new Map();
  for (let i = 0; i < n; i++) {
    const one = tool(async () => "ok", { name: `tool_${i}`, description: "finds", schema: shape });
    tools.set(one.name, one);
  }
  return async (name) => {
    const record = await tools.get(name).invoke({ type: "tool_call", id: "call_1", name, args: JSON.parse(ARGS) });
    if (record.content !== "ok") throw new Error(`langchain answered ${record.content}`);
  };
}

async function mcp(n) {
  const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { InMemoryTransport } = await load("@modelcontextprotocol/sdk/inMemory.js");
  const server = new McpServer({ name: "bench", version: "1" });
  const inputSchema = await schema();
  for (let i = 0; i < n; i++) {
    server.registerTool(`tool_${i}`, { description: "finds", inputSchema }, async () => ({
      content: [{ type: "text", text: "ok" }],
    }));
  }
  const [a, b] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "bench", version: "1" });
  await Promise.all([server.connect(a), client.connect(b)]);
  return async (name) => {
    const record = await client.callTool({ name, arguments: JSON.parse(ARGS) });
    if (record.content[0].text !== "ok") throw new Error("mcp answered something else");
  };
}

async function fastest(call, n) {
  const batch = 200;
  const end = performance.now() + seconds * 1000;
  let best = Infinity;
  let at = 0;
  do {
    const start = performance.now();
    for (let i = 0; i < batch; i++) {
      await call(`tool_${at}`);
      at = (at + 7919) % n;
    }
    best = Math.min(best, ((performance.now() - start) * 1e6) / batch);
  } while (performance.now() < end);
  return best;
}

for (const [peer, make] of [["LangChain.js tool.invoke", langchain], ["MCP TypeScript SDK, in memory", mcp]]) {
  for (const n of SIZES) {
    const value = await fastest(await make(n), n);
    console.log(JSON.stringify({ group: "peer", name: `${peer}, ${n} tools`, peer, tools: n, value, unit: "ns" }));
  }
}
process.exit(0);
