// SPDX-License-Identifier: Apache-2.0

// A client for test_clients.py: reads requests, a line of JSON each, and prints what came of each. caller.py does the
// same.
//
//   caller.mjs ADDRESSES TOKEN

import { createInterface } from "node:readline";
import { connect, ToolError } from "pegboard";

const [addresses, token] = process.argv.slice(2);
const client = connect(addresses, { token });

function optionsOf({ timeout, idempotency_key: idempotencyKey, metadata }) {
  return { ...(timeout ? { timeoutMs: timeout * 1000 } : {}), idempotencyKey, metadata };
}

async function streamed(args, isLeft) {
  const events = [];
  for await (const { type, delta, value } of client.stream(...args)) {
    if (isLeft && type === "output") return delta;
    events.push({ type, ...(type === "output" ? { delta } : {}), ...(type === "result" ? { value } : {}) });
  }
  return events;
}

async function answer(verb, args, options) {
  switch (verb) {
    case "stream": return streamed(args, false);
    case "stream, and leave": return streamed(args, true);
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
