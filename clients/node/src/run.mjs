// SPDX-License-Identifier: Apache-2.0

// Runs the handler of a tool for one call, whatever kind of function it is.

import { ToolError } from "./errors.mjs";

const RESULT_BYTES_MAX = 8 << 20; // the gateway's limit

/** The outcome: {text} or {text, error}, the result as JSON in bytes. Never throws. */
export async function run({ handler }, payload, call, log) {
  try {
    const value = handler(JSON.parse(payload.toString() || "{}"), call);
    return encode(isGenerator(value) ? await drain(value, call) : await value);
  } catch (error) {
    return failure(error, call, log);
  }
}

function isGenerator(value) {
  return typeof value?.next === "function" && Boolean(value[Symbol.asyncIterator] ?? value[Symbol.iterator]);
}

/** What it returns, or else all the text that it has yielded. */
async function drain(generator, call) {
  let said = "";
  for (;;) {
    const { value, done } = await generator.next();
    if (done) return value === undefined ? said : value;
    said += value;
    call.say(String(value));
    if (call.signal.aborted) {
      await generator.return();
      throw new ToolError("canceled", "the call was canceled");
    }
  }
}

function encode(value) {
  const text = Buffer.from(JSON.stringify(value ?? null));
  if (text.length > RESULT_BYTES_MAX) {
    throw new ToolError("limit_exceeded", `the result has ${text.length} bytes, and ${RESULT_BYTES_MAX} are allowed`);
  }
  return { text };
}

function failure(error, call, log) {
  const text = Buffer.alloc(0);
  if (error instanceof ToolError) return { text, error: { code: error.code, message: error.message } };
  if (call.signal.aborted && error?.name === "AbortError") {
    return { text, error: { code: "canceled", message: "the call was canceled" } };
  }
  log(`${call.tool}: call ${call.id} broke\n${error?.stack ?? error}`);
  // Not its message, which may have what callers must not see: throw a ToolError to tell them something.
  return { text, error: { code: "internal", message: `the tool broke: ${error?.name ?? typeof error}` } };
}
