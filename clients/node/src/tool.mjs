// SPDX-License-Identifier: Apache-2.0

const NAME = /^[A-Za-z0-9_.:/-]{1,256}$/;
const ANY_OBJECT = { type: "object" };

const textOf = (json) => (typeof json === "string" ? json : JSON.stringify(json));

/** A tool that can be offered. */
export class Tool {
  #inputText; // as it was given: a number of JSON may have more digits than one of JavaScript
  #outputText;

  constructor({ name, description = "", input = ANY_OBJECT, output = null, tags = [], idempotent = false,
    readOnly = false, destructive = false, additive = false, timeoutMs = 0, version = "", examples = null }, handler) {
    if (!NAME.test(name ?? "")) throw new TypeError(`'${name}' is no name of a tool: 1 to 256 of A-Z a-z 0-9 _ . : / -`);
    if (typeof handler !== "function") throw new TypeError(`the tool '${name}' has no handler`);
    this.#inputText = textOf(input);
    this.#outputText = output === null ? "" : textOf(output);
    Object.assign(this, { name, description, input: JSON.parse(this.#inputText),
      output: output === null ? null : JSON.parse(this.#outputText), tags, idempotent, readOnly, destructive, additive,
      timeoutMs, version, examples, handler });
  }

  /** As it is registered. */
  message() {
    const { name, description, tags, idempotent, readOnly, destructive, additive, timeoutMs, version } = this;
    return { name, description, tags, idempotent, readOnly, destructive, additive, timeoutMs, version,
      inputSchema: Buffer.from(this.#inputText), outputSchema: Buffer.from(this.#outputText),
      examples: Buffer.from(this.examples === null ? "" : textOf(this.examples)) };
  }
}

export function tool(definition, handler) {
  return new Tool(definition, handler);
}
