// SPDX-License-Identifier: Apache-2.0
// What a running tool asks (a gate), as a form to answer.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { Form } from "./form.js";
import { parse, write } from "./value.js";

/** One request of a question, as MCP writes them: a form for a person, or anything else as JSON. */
class Request {
  constructor(key, request) {
    const params = request.params || {};
    this.key = key;
    this.isForm = request.method === "elicitation/create" && params.requestedSchema;
    if (this.isForm) {
      this.form = new Form(params.requestedSchema);
    } else {
      this.form = new Form({});
      this.form.field.set({ action: "accept" });
    }
    this.element = h("div", {},
      h("p", { class: "question-text prewrap" }, params.message || `The tool asks: ${request.method}`),
      params.url && h("p", {}, "It asks you to visit ", h("code", {}, params.url)),
      !this.isForm && !params.message && h("pre", { class: "block" }, write(params, 2)),
      this.form.element);
  }

  accept() {
    const content = parse(this.form.text());
    return this.isForm ? { action: "accept", content } : content;
  }
}

/** `onanswered` is called when the gateway has taken an answer. */
export function questionForm(callId, question, onanswered) {
  const requests = Object.entries(question.requests || {}).map(([key, request]) => new Request(key, request));
  const problem = h("p", { class: "error", role: "alert" });
  const buttons = [
    h("button", { type: "submit", class: "primary" }, "Send the answer"),
    h("button", { type: "button", onclick: () => send((request) => ({ [request.key]: { action: "decline" } })) }, "Decline"),
  ];
  const element = h("form", { class: "question", "aria-label": "The tool asks", onsubmit: (event) => {
    event.preventDefault();
    send((request) => ({ [request.key]: request.accept() }));
  } }, h("h3", {}, "The tool asks"), requests.map((request) => request.element), problem, h("div", { class: "actions" }, buttons));

  async function send(answerOf) {
    problem.textContent = "";
    buttons.forEach((button) => { button.disabled = true; });
    try {
      const responses = Object.assign({}, ...requests.map(answerOf));
      await ask("POST", `/v1/calls/${callId}/answers`, { body: write({ number: question.number, responses }) });
      onanswered();
    } catch (error) {
      if (error.status === 400 && requests.length === 1) requests[0].form.showReport(error.detail);
      problem.textContent = error.detail || error.message;
      buttons.forEach((button) => { button.disabled = false; });
    }
  }
  return element;
}
