// SPDX-License-Identifier: Apache-2.0

// Three tools in JavaScript, offered through a gateway until SIGTERM.
//
//   node tools.mjs [ADDRESS [TOOLSET]]

import { setTimeout as sleep } from "node:timers/promises";
import { serve, tool, ToolError } from "pegboard";

const object = (required, properties) => ({ type: "object", properties, required, additionalProperties: false });

const stats = tool({
  name: "stats",
  description: "Tells the mean of some numbers.",
  input: object(["numbers"], { numbers: { type: "array", items: { type: "number" } } }),
}, ({ numbers }) => {
  if (!numbers.length) throw new ToolError("no_numbers", "give at least one number");
  return { n: numbers.length, mean: numbers.reduce((sum, n) => sum + n) / numbers.length };
});

const squares = tool({
  name: "squares",
  description: "Lists the first n squares.",
  input: object(["n"], { n: { type: "integer", minimum: 0, maximum: 100000 } }),
}, ({ n }) => Array.from({ length: n }, (_, i) => i * i));

const count = tool({
  name: "count",
  description: "Counts, and says each number.",
  input: object(["to"], { to: { type: "integer", minimum: 1 }, pause_ms: { type: "integer", minimum: 0 } }),
}, async ({ to, pause_ms: pause = 0 }, { say, signal }) => {
  for (let n = 1; n <= to; n++) {
    say(`${n}\n`, "progress");
    await sleep(pause, null, { signal }).catch(() => {
      throw new ToolError("canceled", `stopped at ${n}`);
    });
  }
  return to;
});

const [registry = "127.0.0.1:9090", name = "numbers-node"] = process.argv.slice(2);
await serve(name, [stats, squares, count],
  { registry, version: "1.0.0", tags: ["math"], description: "A few things to do with numbers", log: console.log });
