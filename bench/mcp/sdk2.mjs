// SPDX-License-Identifier: Apache-2.0
// The tool `echo` with the MCP TypeScript SDK 2, over HTTP, for modern clients: its own handler, which makes a server for each
// request. Run where the packages are installed. Prints where it listens.

import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server");
const { toNodeHandler } = await load("@modelcontextprotocol/node");
const { z } = await load("zod");
const inputSchema = z.strictObject({ text: z.string() });

function makeServer() {
  const server = new McpServer({ name: "bench", version: "1" });
  server.registerTool("echo", { description: "answers with its own arguments", inputSchema },
    async (args) => ({ content: [{ type: "text", text: JSON.stringify(args) }] }));
  return server;
}

const handle = toNodeHandler(createMcpHandler(makeServer));
const server = http.createServer((request, response) => handle(request, response));
server.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
