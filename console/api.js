// SPDX-License-Identifier: Apache-2.0
// The HTTP API of the gateway that this page came from (docs/http.md), and nothing else.

import { parse } from "./value.js";

const TOKEN = "pegboard-token";

export const session = {
  get token() { return sessionStorage.getItem(TOKEN); },
  set token(value) {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  },
  /** Called when the gateway wants a token, or another one. */
  onUnauthenticated: () => {},
};

/** An answer that is not what was asked for: RFC 9457, or what the browser says. */
export class Problem extends Error {
  constructor(status, members) {
    super(members.detail || members.title || `status ${status}`);
    Object.assign(this, { title: "That did not work", detail: this.message, type: "" }, members, { status });
  }
}

async function problemOf(response) {
  const text = await response.text();
  try {
    return new Problem(response.status, parse(text));
  } catch {
    return new Problem(response.status, { title: response.statusText, detail: text.trim() });
  }
}

async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { ...headers };
  const { token } = session;
  if (token) all.authorization = `Bearer ${token}`;
  if (body !== undefined) all["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, body, headers: all, signal, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The gateway does not answer", detail: "It may have been stopped, or the network is down." });
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401 && token === session.token) session.onUnauthenticated(problem);
  throw problem;
}

/** The answer as JSON; null if it has none. `body` is JSON text. */
export async function ask(method, path, options) {
  const text = await (await send(method, path, options)).text();
  return text ? parse(text) : null;
}

export const get = (path, options) => ask("GET", path, options);

// ---- server-sent events ----

/** The lines of an event, as an object. */
function eventOf(lines) {
  const event = { event: "message", data: "" };
  const data = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("data:")) data.push(value);
    else if (line.startsWith("event:")) event.event = value;
  }
  return data.length ? { ...event, data: parse(data.join("\n")) } : null;
}

/** Yields {event, data}. Not EventSource, which sends no token and no arguments. */
export async function* events(method, path, options = {}) {
  const response = await send(method, path, { ...options, headers: { ...options.headers, accept: "text/event-stream" } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = eventOf(block.split("\n"));
        if (event) yield event;
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The connection was lost", detail: "The gateway was stopped, or the network is down." });
  } finally {
    reader.cancel().catch(() => {});
  }
}

export const toolsetUrl = (toolset) => `/v1/toolsets/${encodeURIComponent(toolset)}`;
export const callsUrl = (toolset, tool) => `${toolsetUrl(toolset)}/tools/${encodeURIComponent(tool)}/calls`;

/** An identity for a call. */
export function newKey() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
