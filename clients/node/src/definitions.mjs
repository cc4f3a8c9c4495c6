// SPDX-License-Identifier: Apache-2.0

// Tools of a registry as the vendors of models want them described.

import { createHash } from "node:crypto";

const NAME_MAX = 64;
const DIGEST_DIGITS = 8;
const MAKE = {
  openai: (common, parameters) => ({ type: "function", function: { ...common, parameters } }),
  "openai-responses": (common, parameters) => ({ type: "function", ...common, parameters, strict: false }),
  anthropic: (common, schema) => ({ ...common, input_schema: schema }),
  gemini: (common, parametersJsonSchema) => ({ ...common, parametersJsonSchema }),
};

/** What goes under "tools" of a request. The vendors allow fewer names than a registry has: `resolve` tells which
 * toolset and tool the model means by one. */
export class Definitions extends Array {
  #tools = new Map();

  static get [Symbol.species]() {
    return Array;
  }

  static make(vendor, toolsets) {
    const make = MAKE[vendor];
    if (!make) throw new TypeError(`there is no vendor '${vendor}': it is ${Object.keys(MAKE).join(", ")}`);
    const all = new Definitions();
    const made = toolsets.flatMap(({ toolset, tools }) => tools.map((tool) => {
      const name = all.#add(toolset.name, tool.name);
      return make({ name, description: tool.description }, JSON.parse(tool.inputSchema.toString() || '{"type":"object"}'));
    }));
    if (vendor === "gemini" && made.length) all.push({ functionDeclarations: made });
    else all.push(...made);
    return all;
  }

  #add(toolset, tool) {
    const isTaken = (name) => {
      const other = this.#tools.get(name);
      return other && (other.toolset !== toolset || other.tool !== tool);
    };
    let name = nameOf(toolset, tool);
    for (let digits = DIGEST_DIGITS; isTaken(name); digits++) name = digestName(toolset, tool, digits); // on purpose
    this.#tools.set(name, { toolset, tool });
    return name;
  }

  /** Undefined: the model has made it up. */
  resolve(name) {
    return this.#tools.get(name);
  }
}

/** Both in one; if it has to change, or could be read as another one's, with a digest. */
function nameOf(toolset, tool) {
  const whole = `${toolset}__${tool}`;
  const isPlain = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(whole) && !toolset.includes("__") && !toolset.endsWith("_")
    && !tool.startsWith("_");
  return isPlain ? whole : digestName(toolset, tool, DIGEST_DIGITS);
}

function digestName(toolset, tool, digits) {
  let name = `${toolset}__${tool}`.replace(/[^A-Za-z0-9_-]/g, "_");
  if (!/^[A-Za-z_]/.test(name)) name = `_${name}`;
  const digest = createHash("sha256").update(`${toolset}\0${tool}`).digest("hex").slice(0, digits);
  return `${name.slice(0, NAME_MAX - 1 - digest.length)}_${digest}`;
}
