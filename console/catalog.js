// SPDX-License-Identifier: Apache-2.0
// What the gateway has now: toolsets by a watch that goes on for as long as the page is open, and their rates by
// asking for the status again and again while the page can be seen.

import { events, get } from "./api.js";

const STATUS_MS = 2000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8000;
const KEPT = 60; // values of a chart

const readers = new Set();
const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Until then, or restart(). Who was refused waits for another token, however long that takes. */
let wake = () => {};
function pause(ms) {
  return new Promise((resolve) => {
    wake = resolve;
    if (catalog.state !== "refused") setTimeout(resolve, ms);
  });
}

export const catalog = {
  toolsets: new Map(),
  isReady: false,
  status: null, // of the node; null: not known, or not for this caller
  statusProblem: null,
  rates: new Map(), // by toolset, and "" for the node: the last values of calls_per_s
  state: "connecting", // "live", "lost", "refused"
  problem: null, // why it is lost or refused
  /** fn(what, toolset, event); what is "toolset", "ready", "status" or "state". Returns the function that ends it. */
  subscribe(fn) {
    readers.add(fn);
    return () => readers.delete(fn);
  },
};

function tell(...about) {
  for (const reader of [...readers]) reader(...about);
}

function setState(state) {
  if (catalog.state === state) return;
  catalog.state = state;
  tell("state");
}

// ---- the watch ----

/** Toolsets that went while the watch was cut off have not been told again. */
function forgetOthers(told) {
  for (const name of [...catalog.toolsets.keys()]) {
    if (!told.has(name)) take("unregistered", { name });
  }
}

function take(event, toolset) {
  if (event === "unregistered") catalog.toolsets.delete(toolset.name);
  else catalog.toolsets.set(toolset.name, toolset);
  tell("toolset", toolset, event);
}

let retryMs = FIRST_RETRY_MS;

async function watchOnce(signal) {
  let told = new Set();
  for await (const { event, data } of events("GET", "/v1/watch", { signal })) {
    if (event === "lost") {
      told = new Set();
    } else if (event === "ready") {
      forgetOthers(told);
      catalog.isReady = true;
      retryMs = FIRST_RETRY_MS;
      setState("live");
      tell("ready");
    } else if (data.name !== undefined) {
      told.add(data.name);
      take(event, data);
    }
  }
}

let aborter = new AbortController();

async function watch() {
  for (;;) {
    try {
      await watchOnce(aborter.signal);
    } catch (error) {
      if (error.name === "AbortError") {
        aborter = new AbortController();
        retryMs = FIRST_RETRY_MS;
        continue;
      }
      catalog.problem = error;
      setState(error.status === 401 || error.status === 403 ? "refused" : "lost");
    }
    if (catalog.state === "live") setState("lost");
    await pause(retryMs);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

// ---- the status ----

function note(name, value) {
  const values = catalog.rates.get(name) || [];
  values.push(value);
  if (values.length > KEPT) values.shift();
  catalog.rates.set(name, values);
}

async function readStatus() {
  try {
    const status = await get("/v1/status");
    catalog.status = status;
    catalog.statusProblem = null;
    note("", status.calls_per_s);
    for (const one of status.per_toolset) note(one.toolset.name, one.calls_per_s);
  } catch (error) {
    catalog.statusProblem = error;
    if (error.status) catalog.status = null;
  }
  tell("status");
}

async function followStatus() {
  for (;;) {
    if (!document.hidden && catalog.state !== "refused") await readStatus();
    await wait(STATUS_MS);
  }
}

export function statusOf(name) {
  return catalog.status && catalog.status.per_toolset.find((one) => one.toolset.name === name);
}

export function start() {
  watch();
  followStatus();
}

/** Why nothing is told to anyone who comes like this, such as by a name that is not the gateway's; null: a token may help. */
export function refusal() {
  return catalog.state === "refused" && catalog.problem.status === 403 ? catalog.problem : null;
}

/** Asks again, as another caller. */
export function restart() {
  catalog.toolsets.clear();
  catalog.isReady = false;
  setState("connecting");
  aborter.abort();
  wake();
  readStatus();
}
