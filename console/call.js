// SPDX-License-Identifier: Apache-2.0
// A call that runs, as it happens; and the page of a call that was made before.

import { ask, callsUrl, events, get, newKey, Problem } from "./api.js";
import { ago, announce, duration, failure, h, link, pill, setText, toolPath, toolsetPath } from "./dom.js";
import { questionForm } from "./question.js";
import { resultView } from "./value.js";

const OUTPUT_CHARS = 256 * 1024; // of a stream that are kept
const TICK_MS = 100;
const AGAIN_MS = 1000;

const OUTCOMES = { result: "good", error: "bad", timeout: "bad", canceled: "dim", outcome_unknown: "warn", refused: "bad" };
export const outcomePill = (outcome) => pill(OUTCOMES[outcome] || "dim", String(outcome).replaceAll("_", " "));

export async function cancel(callId) {
  try {
    await ask("DELETE", `/v1/calls/${callId}`);
  } catch (error) {
    // It may have ended meanwhile, or its tool may not stop in time: its outcome tells.
    if (error.status === 404) throw new Problem(404, { ...error, title: "This call can't be canceled by its id" });
    if (error.status !== 409 && error.status !== 504) throw error;
  }
}

function problemView(problem) {
  const hint = problem.started === true ? "It was started, or may have been." : problem.started === false ? "It was not started." : "";
  return h("div", { class: "notice bad", role: "alert" },
    h("p", {}, h("strong", {}, problem.type === "tool_error" ? "The tool failed" : problem.title || "That did not work"), " ",
      h("code", {}, problem.code || problem.type)),
    h("p", { class: "prewrap" }, problem.detail),
    hint && h("p", { class: "dim" }, hint));
}

/** What a tool writes while it runs. */
class OutputView {
  constructor() {
    this.pre = h("pre", { class: "block output", tabindex: 0, "aria-label": "Output" });
    this.element = h("section", { hidden: true }, h("h3", {}, "Output"), this.pre);
    this.n = 0;
    this.waiting = [];
  }

  /** Each layout costs as much as all that is kept: not one for each event. */
  add(part) {
    this.waiting.push(part);
    this.timer ||= setTimeout(() => this.flush(), TICK_MS);
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.waiting.length) return;
    const isAtEnd = this.pre.scrollHeight - this.pre.scrollTop - this.pre.clientHeight < 40;
    this.element.hidden = false;
    for (const { stream, delta } of this.waiting.splice(0)) {
      this.pre.append(h("span", { class: stream === "stderr" ? "stderr" : undefined }, delta));
      this.n += delta.length;
    }
    while (this.n > OUTPUT_CHARS && this.pre.childElementCount > 1) {
      this.n -= this.pre.firstChild.textContent.length;
      this.pre.firstChild.remove();
    }
    if (isAtEnd) this.pre.scrollTop = this.pre.scrollHeight;
  }
}

/** Calls a tool, and shows what happens. `onended` is called once. */
export class RunningCall {
  constructor(toolset, tool, { text, waitSeconds, onrefused, onended }) {
    this.aborter = new AbortController();
    this.startedAt = performance.now();
    this.callId = null;
    this.state = h("span", {}, pill("busy", "running"));
    this.time = h("span", { class: "dim number" });
    this.where = h("span", {});
    this.stop = h("button", { type: "button", class: "small", onclick: () => this.cancel() }, "Cancel");
    this.output = new OutputView();
    this.asked = h("div", {});
    this.end = h("div", { class: "call-end" });
    this.element = h("section", { class: "call", "aria-label": "The call" },
      h("div", { class: "call-head" }, this.state, this.time, this.where, this.stop), this.asked, this.end, this.output.element);
    this.timer = setInterval(() => this.tick(), TICK_MS);
    this.tick();
    this.run(toolset, tool, { text, waitSeconds }).catch((error) => {
      if (this.isLeft) return;
      if (error.name === "AbortError") this.finish(outcomePill("canceled"), null);
      else if (error.status === 400 && onrefused && onrefused(error)) this.finish(pill("bad", "refused"), null);
      else this.finish(error.type === "tool_error" ? outcomePill("error") : pill("bad", error.type || "failed"), problemView(error));
    }).finally(onended);
  }

  tick() { setText(this.time, duration(performance.now() - this.startedAt)); }

  async run(toolset, tool, { text, waitSeconds }) {
    const headers = { "idempotency-key": newKey() };
    if (waitSeconds) headers.prefer = `wait=${waitSeconds}`;
    for await (const { event, data } of events("POST", `${callsUrl(toolset, tool)}?ask=true`, { body: text, headers, signal: this.aborter.signal })) {
      this.take(event, data);
      if (event === "result" || event === "error") return;
    }
    throw new Problem(0, { title: "The connection was lost", detail: "The call goes on: look for it below Calls." });
  }

  take(event, data) {
    if (event === "started") {
      this.callId = data.call_id;
      this.where.replaceChildren(link(`#/calls/${data.call_id}`, data.call_id.slice(0, 12)));
    } else if (event === "output") {
      this.output.add(data);
    } else if (event === "input") {
      announce("The tool asks something");
      const form = questionForm(this.callId, data, () => this.asked.replaceChildren());
      this.asked.replaceChildren(form);
      form.querySelector("input, select, textarea, button").focus();
    } else if (event === "error") {
      throw new Problem(data.status, data);
    } else if (event === "result") {
      this.takeResult(data);
    }
  }

  takeResult(data) {
    if (data.error) throw new Problem(422, { type: "tool_error", title: "The tool failed", detail: data.error.message, code: data.error.code });
    this.finish(outcomePill("result"), resultView(data.result === undefined ? null : data.result));
  }

  finish(state, view) {
    this.output.flush();
    clearInterval(this.timer);
    this.tick();
    this.state.replaceChildren(state);
    this.asked.replaceChildren();
    this.stop.remove();
    if (view) this.end.replaceChildren(view);
    announce(`The call has ended: ${state.textContent}`);
  }

  async cancel() {
    this.stop.disabled = true;
    if (!this.callId) {
      this.aborter.abort();
      return;
    }
    try {
      await cancel(this.callId);
    } catch (error) {
      this.end.replaceChildren(failure(error));
      this.stop.disabled = false;
    }
  }

  /** The call goes on without this page. */
  leave() {
    this.isLeft = true;
    clearInterval(this.timer);
    this.aborter.abort();
  }
}

// ---- the page of a call ----

function facts(call) {
  const rows = [
    ["Tool", call.tool ? h("span", {}, link(toolsetPath(call.toolset), call.toolset), " / ", link(toolPath(call.toolset, call.tool), call.tool)) : "not known"],
    ["Admitted", ago(call.admitted_unix_ms)],
    ["Caller", call.principal],
    ["Coordinator", [call.coordinator_id, call.coordinator_address].filter(Boolean).join(" at ")],
    ["Attempts", (call.attempts || []).map((one) => `${one.number}: ${one.state}${one.provider ? ` by ${one.provider}` : ""}`).join("; ")],
  ];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Only a call with an identity is kept, and only such a one is found by its id to be canceled. */
function cancelPart(call, problem) {
  if (call.state === "ended") return null;
  if (!(call.kept_until_unix_ms > 0)) return h("span", { class: "dim" }, "This call can't be canceled by its id: it ends when its client leaves.");
  return h("button", { type: "button", class: "small", onclick: async (event) => {
    const button = event.target;
    button.disabled = true;
    problem.replaceChildren();
    try {
      await cancel(call.call_id);
    } catch (error) {
      problem.replaceChildren(failure(error));
      button.disabled = false;
    }
  } }, "Cancel");
}

function endOf(call) {
  if (call.state !== "ended") return null;
  if (call.outcome === "result") return "result" in call ? resultView(call.result) : h("p", { class: "dim" }, "Its result is not kept.");
  return problemView({ type: call.outcome === "error" ? "tool_error" : call.outcome, title: "The call did not end well",
    code: call.error, detail: call.message || "", started: call.started });
}

export function callView(callId) {
  const aborter = new AbortController();
  const body = h("div", {}, h("p", { class: "loading", role: "status" }, "Loading"));
  const element = h("div", {}, h("p", { class: "crumbs" }, link("#/calls", "Calls")), h("h1", { tabindex: -1 }, "Call ", h("code", {}, callId.slice(0, 12))), body);
  let shown = ""; // what is there is not made again: somebody may be typing

  function show(call) {
    const question = call.question && call.question.requests ? call.question : null;
    const text = JSON.stringify([call.state, question && question.number]);
    if (text === shown) return;
    shown = text;
    const problem = h("div", {});
    body.replaceChildren(
      h("div", { class: "call-head" }, call.state === "ended" ? outcomePill(call.outcome) : pill(question ? "warn" : "busy", question ? "waits for an answer" : call.state),
        cancelPart(call, problem)),
      problem, facts(call), question ? questionForm(callId, question, () => {}) : "", endOf(call) || "");
  }

  async function follow() {
    for (;;) {
      const call = await get(`/v1/calls/${encodeURIComponent(callId)}${shown ? "?wait=20s" : ""}`, { signal: aborter.signal });
      show(call);
      if (call.state === "ended") return;
      await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
    }
  }

  follow().catch((error) => { if (error.name !== "AbortError") body.replaceChildren(failure(error)); });
  return { title: "Call", view: "calls", element, close: () => aborter.abort() };
}
