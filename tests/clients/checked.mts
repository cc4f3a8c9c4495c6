// SPDX-License-Identifier: Apache-2.0

// What TypeScript is to see of the package: it is checked, and not run.

import { type Call, connect, Definitions, OutcomeUnknown, serve, tool, ToolError } from "pegboard";

const add = tool<{ a: number; b?: number }, number>({ name: "add" }, ({ a, b = 1 }, call: Call) => {
  call.say(`${a}\n`);
  if (call.signal.aborted) throw new ToolError("canceled", "stopped");
  return a + b;
});
const count = tool({ name: "count" }, async function* ({ to }: { to: number }) {
  for (let n = 1; n <= to; n++) yield `${n}\n`;
});
await serve("numbers", [add, count], { registry: ["a:9090", "b:9090"], drainMs: 1000 });

const client = connect();
const sum: number = await client.call<number>("numbers", "add", { a: 1 }, { timeoutMs: 1000, idempotencyKey: "k" });
for await (const event of client.stream("numbers", "count", { to: sum })) {
  if (event.type === "output") event.delta.toUpperCase();
}
const definitions: Definitions = await client.tools("gemini");
definitions.resolve("numbers__add")?.toolset.trim();
const started: boolean | null = new OutcomeUnknown("x").started;
// @ts-expect-error: there is no such vendor
await client.tools("nobody");
// @ts-expect-error: a tool has a name
tool({}, () => started);
