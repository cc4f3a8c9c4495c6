// SPDX-License-Identifier: Apache-2.0
// The tool `echo` with the MCP TypeScript SDK 1, over HTTP: a session for each client, as its own examples have it, and answers as
// JSON. Run where the packages are installed: sdk1.mjs [MORE_TOOLS]. Prints where it listens.

import { randomUUID } from "node:crypto";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = await load("zod");
const transports = new Map();
const nMore = Number(process.argv[2] ?? 0);
const nouns = ["weather", "orders", "tickets", "files", "customers", "prices", "routes", "models", "sensors", "invoices"];

// As gateway-catalog makes them: some 450 bytes of schema.
function addTools(server) {
  for (let i = 0; i < nMore; i++) {
    const noun = nouns[i % 10];
    const inputSchema = z.strictObject({
      [`${noun}_${i}`]: z.string().min(1).max(200).describe(`which one of the ${noun} is meant`),
      limit: z.number().int().min(1).max(10 + i).optional(),
      order: z.enum(["asc", "desc"]).optional(),
      filter: z.object({ since: z.string().optional(), until: z.string().optional() }).optional(),
    });
    server.registerTool(`find_${i}`, { description: `find the ${noun} of region ${i}`, inputSchema }, async () => ({ content: [] }));
  }
}

async function openSession() {
  const server = new McpServer({ name: "bench", version: "1" });
  server.registerTool("echo", { description: "answers with its own arguments", inputSchema: z.strictObject({ text: z.string() }) },
    async (args) => ({ content: [{ type: "text", text: JSON.stringify(args) }] }));
  addTools(server);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  transport.onclose = () => transports.delete(transport.sessionId);
  await server.connect(transport);
  return transport;
}

const server = http.createServer(async (request, response) => {
  const transport = transports.get(request.headers["mcp-session-id"]) ?? (await openSession());
  await transport.handleRequest(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
