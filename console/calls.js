// SPDX-License-Identifier: Apache-2.0
// Calls of this principal: what is in flight, and what ended lately.

import { get } from "./api.js";
import { cancel, outcomePill } from "./call.js";
import { ago, duration, empty, failure, h, link, pill, toolPath } from "./dom.js";

const AGAIN_MS = 1500;
const LIMIT = 100;
const LOOKED_AT = 20; // calls that run and may ask something

/** The ids of those that wait for an answer: the list does not tell. */
async function findAsking(calls, signal) {
  const running = calls.filter((call) => call.state !== "ended" && call.has_identity).slice(0, LOOKED_AT);
  const told = await Promise.all(running.map((call) => get(`/v1/calls/${call.call_id}`, { signal }).catch(() => ({}))));
  return new Set(told.filter((call) => call.question && call.question.requests).map((call) => call.call_id));
}

function stateOf(call, isAsking) {
  if (call.state === "ended") return outcomePill(call.outcome);
  return isAsking ? pill("warn", "waits for an answer") : pill(call.state === "running" ? "busy" : "dim", call.state);
}

function row(call, isAsking, oncancel) {
  const isOver = call.state === "ended";
  const page = `#/calls/${call.call_id}`;
  return h("tr", {},
    h("td", { class: "name" }, isOver && !call.has_identity ? h("span", {}, call.call_id.slice(0, 12)) : link(page, call.call_id.slice(0, 12))),
    h("td", {}, link(toolPath(call.toolset, call.tool), `${call.toolset} / ${call.tool}`)),
    h("td", { "data-label": "State" }, stateOf(call, isAsking), call.error && h("code", { class: "reason" }, call.error)),
    h("td", { class: "number", "data-label": "Took" }, duration(call.took_ms)),
    h("td", { class: "number", "data-label": "Attempt" }, call.attempt ? String(call.attempt) : "–"),
    h("td", { "data-label": "Began" }, ago(call.admitted_unix_ms)),
    h("td", {}, isAsking ? h("a", { class: "button small", href: page }, "Answer")
      : !isOver && call.has_identity && h("button", { type: "button", class: "small", "aria-label": `Cancel ${call.call_id.slice(0, 12)}`, onclick: (event) => {
        event.target.disabled = true;
        oncancel(call.call_id);
      } }, "Cancel")));
}

function table(label, calls, asking, oncancel) {
  return h("table", { class: "list" }, h("caption", { class: "unseen" }, label),
    h("thead", {}, h("tr", {}, ["Call", "Tool", "State", "Took", "Attempt", "Began"].map((name, i) =>
      h("th", { scope: "col", class: i === 3 || i === 4 ? "number" : undefined }, name)), h("td", {}))),
    h("tbody", {}, calls.map((call) => row(call, asking.has(call.call_id), oncancel))));
}

function sections(list, asking, oncancel) {
  const open = list.calls.filter((call) => call.state !== "ended");
  const over = list.calls.filter((call) => call.state === "ended");
  if (!list.calls.length) return [empty(h("p", {}, "No calls yet."), h("p", {}, "Run a tool, here or from anywhere else: what you call shows up here while it runs, and for a while after it has ended."))];
  return [
    h("h2", {}, `In flight (${open.length})`), open.length ? table("Calls in flight", open, asking, oncancel) : h("p", { class: "dim" }, "Nothing runs now."),
    h("h2", {}, "Ended lately"), over.length ? table("Calls that ended lately", over, asking, oncancel) : h("p", { class: "dim" }, "Nothing has ended yet."),
    (list.incomplete || list.next_page_token) && h("p", { class: "dim" }, "There are more than these."),
  ].filter(Boolean);
}

export function callsView() {
  const aborter = new AbortController();
  const body = h("div", {}, h("p", { class: "loading", role: "status" }, "Loading"));
  const problem = h("div", {}); // of what was to be canceled: the list is made again and again
  const element = h("div", {}, h("h1", { tabindex: -1 }, "Calls"), problem, body);
  let timer = 0;

  async function load() {
    clearTimeout(timer);
    try {
      const list = await get(`/v1/calls?limit=${LIMIT}`, { signal: aborter.signal });
      const asking = await findAsking(list.calls, aborter.signal);
      // A button that somebody is on keeps the focus.
      if (!body.contains(document.activeElement) || document.activeElement.disabled) body.replaceChildren(...sections(list, asking, stop));
    } catch (error) {
      if (error.name === "AbortError") return;
      body.replaceChildren(failure(error, load));
    }
    schedule();
  }
  async function stop(callId) {
    problem.replaceChildren();
    try {
      await cancel(callId);
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
    if (!aborter.signal.aborted) load();
  }
  function schedule() {
    if (!aborter.signal.aborted) timer = setTimeout(document.hidden ? schedule : load, AGAIN_MS);
  }

  load();
  return { title: "Calls", view: "calls", element, close: () => {
    aborter.abort();
    clearTimeout(timer);
  } };
}
