// SPDX-License-Identifier: Apache-2.0

// A client for test_clients.py: reads requests, a line of JSON each, and prints what came of each. SIGINT ends the
// request, not the client. caller.py does the same.
//
//   caller.mjs ADDRESSES TOKEN

import { createInterface } from "node:readline";
import { connect, ToolError } from "pegboard";

const [addresses, token] = process.argv.slice(2);
const client = connect(addresses, { token });
let request;
process.on("SIGINT", () => request.abort());

function optionsOf({ timeout, idempotency_key: idempotencyKey, metadata }) {
  request = new AbortController();
  return { ...(timeout ? { timeoutMs: timeout * 1000 } : {}), idempotencyKey, metadata, signal: request.signal };
}

async function streamed(args, options, isLeft) {
  const events = [];
  for await (const { type, delta, value } of client.stream(...args, optionsOf(options))) {
    if (isLeft && type === "output") return delta;
    events.push({ type, ...(type === "output" ? { delta } : {}), ...(type === "result" ? { value } : {}) });
  }
  return events;
}

async function answer(verb, args, options) {
  switch (verb) {
    case "stream": return streamed(args, options, false);
    case "stream, and leave": return streamed(args, options, true);
    case "wait": return client.wait(...args);
    case "long": return client.wait(await client.start(...args));
    case "toolsets": return (await client.toolsets()).map(({ name }) => name);
    case "tools": return client.tools(...args);
    default: return client.call(...args, optionsOf(options));
  }
}

function failure(error) {
  const { code, message, started } = error;
  return { error: error instanceof ToolError ? { class: "ToolError", code, message }
    : { class: error.name, code, message, started } };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(...JSON.parse(line)).then((value) => ({ value }), failure)));
}
client.close();
