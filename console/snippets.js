// SPDX-License-Identifier: Apache-2.0
// The same call from elsewhere.

import { callsUrl, session } from "./api.js";
import { copyButton, h, tabs } from "./dom.js";
import { ExactNumber, parse, write } from "./value.js";

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function python(value) {
  if (value instanceof ExactNumber) return value.text;
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = Array.isArray(value) ? value.map((item) => python(item))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`);
  return Array.isArray(value) ? `[${inner.join(", ")}]` : `{${inner.join(", ")}}`;
}

function texts(toolset, tool, json) {
  const { origin, host } = location;
  const auth = session.token ? ` \\\n  -H 'Authorization: Bearer TOKEN'` : "";
  const token = session.token ? ", token=\"TOKEN\"" : "";
  const server = { type: "http", url: `${origin}/mcp/${encodeURIComponent(toolset)}` };
  if (session.token) server.headers = { Authorization: "Bearer TOKEN" };
  return {
    curl: `curl ${shell(origin + callsUrl(toolset, tool))} \\\n  -H 'Content-Type: application/json'${auth} \\\n  -d ${shell(json)}`,
    pegboard: `pegboard call --registry ${host} ${shell(toolset)} ${shell(tool)} \\\n  --args ${shell(json)}`,
    Python: `from pegboard import connect\n\nwith connect("${host}"${token}) as client:\n    print(client.call(${JSON.stringify(toolset)}, ${JSON.stringify(tool)}, ${python(parse(json))}))`,
    MCP: write({ mcpServers: { [toolset]: server } }, 2),
  };
}

let last = 0; // the tab that was looked at

/** `argumentsNow` returns JSON text, or throws. */
export function snippets(toolset, tool, argumentsNow) {
  let json = "{}";
  try {
    json = argumentsNow();
  } catch {
    // It is being typed.
  }
  return tabs("The same call from elsewhere", Object.entries(texts(toolset, tool, json)).map(([kind, text], i) => [kind, () => {
    last = i;
    return h("div", { class: "snippet" }, h("pre", { class: "block" }, text), copyButton(text));
  }]), last);
}
