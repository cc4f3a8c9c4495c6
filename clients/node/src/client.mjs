// SPDX-License-Identifier: Apache-2.0

import { Attempts } from "./attempts.mjs";
import { Definitions } from "./definitions.mjs";
import { ToolError } from "./errors.mjs";
import { Link } from "./link.mjs";

const TIMEOUT_MS = 30000;
const GRACE_MS = 10000; // beyond the timeout of a call: the gateway tells how it ended

/** A client of the gateway at `registry`; of several, the first that can be reached. It connects when it is first used. */
export function connect(registry, options = {}) {
  return new Client(new Link({ ...options, registry }));
}

export class Client {
  #link;
  #clients;

  constructor(link) {
    this.#link = link;
    this.#clients = link.addresses.map((address) => link.open(address));
  }

  close() {
    for (const client of this.#clients) client.close();
  }

  // ---- calls ----

  async call(toolset, tool, args, options = {}) {
    return valueOf(await this.#call(toolset, tool, args, options));
  }

  /** The result, and what the tool sent beside it for the program that calls. */
  async callWithServerData(toolset, tool, args, options = {}) {
    const response = await this.#call(toolset, tool, args, options);
    return { value: valueOf(response), serverData: response.serverData.map(({ kind, audience, data }) =>
      ({ kind, audience, data: JSON.parse(data.toString()) })) };
  }

  /** {type: "started"}, {type: "output"}..., {type: "result"}. The call is canceled when the loop over it is left. */
  async* stream(toolset, tool, args, options = {}) {
    const { timeoutMs = TIMEOUT_MS, signal } = options;
    const request = callRequest(toolset, tool, args, { ...options, timeoutMs });
    const attempts = new Attempts(this.#link, "CallToolStream", request, deadlineOf(timeoutMs));
    let hasStarted = false;
    for (const client of attempts.each(this.#clients)) {
      const stream = client.CallToolStream(request, attempts.metadata(), attempts.deadline());
      const release = cancelWith(signal, stream);
      stream.on("metadata", (metadata) => attempts.note(metadata));
      try {
        for await (const event of stream) {
          if (event.event === "result") attempts.done();
          const made = eventOf(event);
          if (!made || (made.type === "started" && hasStarted)) continue; // the stream was begun again
          hasStarted ||= made.type === "started";
          yield made;
          if (made.type === "result") return;
        }
        return;
      } catch (error) {
        if (error instanceof ToolError) throw error;
        attempts.failed(error);
      } finally {
        attempts.keepEpoch();
        release();
        stream.cancel();
      }
    }
  }

  /** For long calls: the id, for wait(). */
  async start(toolset, tool, args, options = {}) {
    return (await this.#ask("StartTool", callRequest(toolset, tool, args, options))).callId;
  }

  async wait(callId, { timeoutMs = TIMEOUT_MS, signal } = {}) {
    return valueOf(await this.#ask("AwaitTool", { callId, timeoutMs }, { timeoutMs: deadlineOf(timeoutMs), signal }));
  }

  async cancel(callId) {
    await this.#ask("CancelTool", { callId });
  }

  // ---- the catalog ----

  async toolsets(tags = []) {
    const found = [];
    for (let pageToken = ""; ;) {
      const page = await this.#ask("ListToolsets", { tags, pageToken });
      found.push(...page.toolsets.map(toolsetOf));
      pageToken = page.nextPageToken;
      if (!pageToken) return found;
    }
  }

  async search(query, limit = 10) {
    return (await this.#ask("Search", { query, limit })).hits.map(({ toolset }) => toolsetOf(toolset));
  }

  /** Definitions of tools, of all toolsets if none are listed. */
  async tools(vendor, toolsets) {
    const names = toolsets ?? (await this.toolsets()).map(({ name }) => name);
    return Definitions.make(vendor, await Promise.all(names.map((name) => this.#ask("GetToolset", { name }))));
  }

  /** Calls the tool that a model has called by its name in the definitions. */
  async callDefinition(definitions, name, args, options) {
    const found = definitions.resolve(name);
    if (!found) throw new RangeError(`there is no tool '${name}' in the definitions`);
    return this.call(found.toolset, found.tool, args, options);
  }

  #call(toolset, tool, args, options) {
    const { timeoutMs = TIMEOUT_MS, signal } = options;
    return this.#ask("CallTool", callRequest(toolset, tool, args, { ...options, timeoutMs }),
      { timeoutMs: deadlineOf(timeoutMs), signal });
  }

  async #ask(verb, request, { timeoutMs = TIMEOUT_MS, signal } = {}) {
    const attempts = new Attempts(this.#link, verb, request, timeoutMs);
    for (const client of attempts.each(this.#clients)) {
      try {
        const response = await unary(client, verb, request, attempts, signal);
        attempts.done();
        return response;
      } catch (error) {
        attempts.failed(error);
      } finally {
        attempts.keepEpoch();
      }
    }
  }
}

function unary(client, verb, request, attempts, signal) {
  return new Promise((resolve, reject) => {
    let release = () => {};
    const call = client[verb](request, attempts.metadata(), attempts.deadline(), (error, response) => {
      release();
      if (error) reject(error);
      else resolve(response);
    });
    call.on("metadata", (metadata) => attempts.note(metadata));
    release = cancelWith(signal, call);
  });
}

/** Returns what ends the watch. */
function cancelWith(signal, call) {
  const cancel = () => call.cancel();
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  return () => signal?.removeEventListener("abort", cancel);
}

/** Of the RPC. 0: the tool's own time counts, which the gateway knows. */
const deadlineOf = (timeoutMs) => (timeoutMs ? timeoutMs + GRACE_MS : 0);

function callRequest(toolset, tool, args, { timeoutMs = 0, idempotencyKey = "", metadata = {} }) {
  // Text is taken as JSON: models hand arguments over like that.
  const text = typeof args === "string" ? args : JSON.stringify(args ?? {});
  return { toolset, tool, payload: Buffer.from(text), timeoutMs, idempotencyKey,
    metadata: Object.entries(metadata).map(([key, value]) => ({ key, value })) };
}

function valueOf({ error, result }) {
  if (error) throw new ToolError(error.code, error.message);
  return result.length ? JSON.parse(result.toString()) : null;
}

/** Undefined: of a later version. */
function eventOf({ event, started, output, result }) {
  switch (event) {
    case "started": return { type: "started", callId: started.callId };
    case "output": return { type: "output", stream: output.stream, delta: output.delta };
    case "result":
      return { type: "result", value: valueOf(result), callId: result.callId, attached: result.attached };
    default: return undefined;
  }
}

function toolsetOf({ name, description, version, tags, toolCount, health }) {
  return { name, description, version, tags, toolCount, isHealthy: health?.state === "STATE_HEALTHY" };
}
