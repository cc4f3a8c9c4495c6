// SPDX-License-Identifier: Apache-2.0

// Calls a tool: its result goes to standard output, what it says meanwhile and what is wrong to standard error.
//
//   node call.mjs ADDRESS TOOLSET TOOL ARGUMENTS

import { connect, metadata, nameOf } from "./registry.mjs";

if (process.argv.length !== 6) {
  console.error("usage: node call.mjs ADDRESS TOOLSET TOOL ARGUMENTS");
  process.exit(1);
}
const DEADLINE_MS = 30000;
const [address, toolset, tool, args] = process.argv.slice(2);
const client = connect(address);
const stream = client.CallToolStream({ toolset, tool, payload: Buffer.from(args) }, metadata(),
  { deadline: Date.now() + DEADLINE_MS });

function fail(words) {
  console.error(words);
  process.exitCode = 1;
}

stream.on("data", ({ output, result }) => {
  if (output) process.stderr.write(output.delta);
  else if (result?.error) fail(`${result.error.code}: ${result.error.message}`); // the tool ran and failed
  else if (result) console.log(result.result.toString());
});
// The gateway's: the tool did not run, or nobody knows how it ended.
stream.on("error", (error) => fail(`${nameOf(error)}: ${error.details}`));
stream.on("status", () => client.close());
