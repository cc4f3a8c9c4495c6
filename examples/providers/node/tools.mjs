// SPDX-License-Identifier: Apache-2.0

// Three tools in JavaScript, offered through a gateway until SIGTERM.
//
//   node tools.mjs [ADDRESS [TOOLSET]]

import { setTimeout as sleep } from "node:timers/promises";
import { Provider, ToolError } from "./provider.mjs";

function stats({ numbers }) {
  if (!numbers.length) throw new ToolError("no_numbers", "give at least one number");
  return { n: numbers.length, mean: numbers.reduce((sum, n) => sum + n) / numbers.length };
}

function squares({ n }) {
  return Array.from({ length: n }, (_, i) => i * i);
}

async function count({ to, pause_ms: pause = 0 }, { say, signal }) {
  for (let n = 1; n <= to; n++) {
    say("progress", `${n}\n`);
    await sleep(pause, null, { signal }).catch(() => {
      throw new ToolError("canceled", `stopped at ${n}`);
    });
  }
  return to;
}

function tool(name, description, required, properties) {
  const schema = { type: "object", properties, required, additionalProperties: false };
  return { name, description, inputSchema: Buffer.from(JSON.stringify(schema)) };
}

const [address = "127.0.0.1:9090", name = "numbers-node"] = process.argv.slice(2);
const registration = {
  name,
  version: "1.0.0",
  tags: ["math"],
  description: "A few things to do with numbers",
  tools: [
    tool("stats", "Tells the mean of some numbers.", ["numbers"],
      { numbers: { type: "array", items: { type: "number" } } }),
    tool("squares", "Lists the first n squares.", ["n"], { n: { type: "integer", minimum: 0, maximum: 100000 } }),
    tool("count", "Counts, and says each number.", ["to"],
      { to: { type: "integer", minimum: 1 }, pause_ms: { type: "integer", minimum: 0 } }),
  ],
};
const provider = new Provider(address, registration, { stats, squares, count });

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => provider.drain()); // a second one ends it at once
await provider.serve();
