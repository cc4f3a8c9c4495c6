// SPDX-License-Identifier: Apache-2.0

// Calls a tool: its result goes to standard output, what it says meanwhile and what is wrong to standard error.
//
//   node call.mjs ADDRESS TOOLSET TOOL ARGUMENTS

import { connect } from "pegboard";

if (process.argv.length !== 6) {
  console.error("usage: node call.mjs ADDRESS TOOLSET TOOL ARGUMENTS");
  process.exit(1);
}
const [address, toolset, tool, args] = process.argv.slice(2);
const client = connect(address);
try {
  for await (const event of client.stream(toolset, tool, args)) {
    if (event.type === "output") process.stderr.write(event.delta);
    else if (event.type === "result") console.log(JSON.stringify(event.value));
  }
} catch (error) { // a ToolError: the tool ran and failed; else the gateway's, and error.started tells whether it may have
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  client.close();
}
