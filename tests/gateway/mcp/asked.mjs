// SPDX-License-Identifier: Apache-2.0
// A client of the official TypeScript SDK 1.x that is asked by tools of a gateway.
//
//   node asked.mjs URL
//
// Prints one JSON object: what it was answered.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const asks = {
  sample: { method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 5 } },
  roots: { method: "roots/list" },
};
const logs = [];
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client({ name: "stock", version: "1" },
  { capabilities: { elicitation: {}, sampling: {}, roots: { listChanged: true } } });
client.setRequestHandler(ElicitRequestSchema, async (request) => (
  { action: "accept", content: { name: `Ada of ${request.params.message}` } }));
client.setRequestHandler(CreateMessageRequestSchema, async (request) => (
  { role: "assistant", model: "m", content: { type: "text", text: request.params.messages[0].content.text + "!" } }));
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///srv", name: "srv" }] }));
client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => { logs.push(message.params.data); });

await client.connect(transport);
await client.setLoggingLevel("info");
const call = async (name, argumentsOfTool) => (
  await client.callTool({ name, arguments: argumentsOfTool })).content[0].text;
const said = {
  names: [await call("asking__name", {}), await call("asking__name", {})],
  answers: JSON.parse(await call("asking__ask", { asks })),
  logs,
};
await transport.terminateSession();
said.ended = transport.sessionId === undefined;
await client.close();
console.log(JSON.stringify(said));
