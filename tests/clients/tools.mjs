// SPDX-License-Identifier: Apache-2.0

// Tools that test_clients.py calls. tools.py has the same.
//
//   tools.mjs ADDRESSES TOOLSET [TOKEN]

import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { serve, tool, ToolError } from "pegboard";

const object = (properties) =>
  ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });
const words = { words: { type: "array", items: { type: "string" } } };

const echo = tool({ name: "echo", input: object({ value: { type: "string" } }) },
  async ({ value }, { caller, metadata }) => ({ value, caller, note: metadata.note ?? "" }));

const say = tool({ name: "say", input: object(words) }, function* ({ words: all }) {
  yield* all;
  return all.length;
});

const sayLater = tool({ name: "say_later", input: object(words) }, async function* ({ words: all }) {
  for (const word of all) {
    await sleep(0);
    yield word;
  }
});

const hang = tool({ name: "hang", input: object({}) }, async (_, call) => {
  call.say("begun\n");
  await sleep(600000, null, { signal: call.signal }).finally(() => console.log("hang was canceled"));
});

const hangOnAThread = tool({ name: "hang_on_a_thread", input: object({}) }, (_, call) => {
  call.say("begun\n");
  return new Promise((_resolve, reject) => {
    call.signal.addEventListener("abort", () => {
      console.log("hang was canceled");
      reject(new ToolError("canceled", "stopped"));
    });
  });
});

const waitForAFile = tool({ name: "wait_for_a_file", input: object({ path: { type: "string" } }) },
  async ({ path }, call) => {
    call.say("begun\n");
    while (!existsSync(path)) await sleep(20);
    return "found";
  });

const fail = tool({ name: "fail", input: object({}) }, () => {
  throw new RangeError("a secret");
});

const lie = tool({ name: "lie", input: object({}), output: { type: "integer" } }, () => "text");

const big = tool({ name: "big", input: object({ n: { type: "integer" } }) }, ({ n }) => "x".repeat(n));

const [registry, toolset, token] = process.argv.slice(2);
await serve(toolset, [echo, say, sayLater, hang, hangOnAThread, waitForAFile, fail, lie, big],
  { registry, token, log: console.log });
