// SPDX-License-Identifier: Apache-2.0
// A tool: what it does, a form to call it, and what comes of that.

import { get, toolsetUrl } from "./api.js";
import { RunningCall } from "./call.js";
import { duration, failure, h, link, newId, pill, toolsetPath } from "./dom.js";
import { Form } from "./form.js";
import { schemaTree } from "./schema.js";
import { snippets } from "./snippets.js";
import { badges, followToolset } from "./toolsets.js";

/** The form with its buttons, and below it the call that runs. */
class Caller {
  constructor(toolset, tool, place) {
    Object.assign(this, { toolset, tool, place, call: null, isSure: false });
    this.elsewhere = h("details", { class: "more", ontoggle: () => this.showElsewhere() }, h("summary", {}, "Call it from elsewhere"), h("div", {}));
    this.form = new Form(tool.input_schema, { onchange: () => {
      this.beUnsure();
      this.showElsewhere();
    } });
    this.run = h("button", { type: "submit", class: "primary" }, "Run");
    this.warning = h("p", { class: "warning", role: "alert", hidden: true }, "This tool may remove or overwrite what was there. Press again to run it.");
    const id = newId("deadline");
    this.deadline = h("input", { type: "text", inputmode: "numeric", id, class: "tiny",
      placeholder: String(Math.round((tool.timeout_ms > 0 ? tool.timeout_ms : 30000) / 1000)) });
    this.element = h("form", { class: "card", "aria-label": `Call ${tool.name}`, novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        this.submit();
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          this.submit();
        }
      } },
    h("div", { class: "form-top" }, h("h2", {}, "Call it"), this.examples(), this.form.mode), this.form.element, this.warning,
    h("div", { class: "actions" }, h("label", { for: id, class: "inline" }, "Deadline, s ", this.deadline), this.run));
  }

  examples() {
    const list = Array.isArray(this.tool.examples) ? this.tool.examples : [];
    return list.slice(0, 8).map((value, i) => h("button", { type: "button", class: "quiet small", onclick: () => this.form.set(value) }, `Example ${i + 1}`));
  }

  beUnsure() {
    this.isSure = false;
    this.warning.hidden = true;
  }

  showElsewhere() {
    if (this.elsewhere.open) this.elsewhere.lastChild.replaceChildren(snippets(this.toolset, this.tool.name, () => this.form.text()));
  }

  submit() {
    let text;
    if (this.call) return;
    this.form.clear();
    try {
      text = this.form.text();
    } catch (error) {
      this.form.fail(`This is no JSON: ${error.message}`);
      return;
    }
    if (this.tool.destructive && !this.isSure) {
      this.isSure = true;
      this.warning.hidden = false;
      return;
    }
    this.beUnsure();
    this.run.disabled = true;
    this.call = new RunningCall(this.toolset, this.tool.name, {
      text, waitSeconds: /^\d+$/.test(this.deadline.value) ? this.deadline.value : "",
      onrefused: (problem) => {
        if (problem.type !== "validation_error") return false;
        this.form.showReport(problem.detail);
        this.place.replaceChildren(h("p", { class: "notice bad" }, "The gateway refused the arguments. It did not start the tool."));
        return true;
      },
      onended: () => {
        this.run.disabled = false;
        this.call = null;
      },
    });
    this.place.replaceChildren(this.call.element);
  }

  leave() { if (this.call) this.call.leave(); }
}

export function toolView(toolset, name) {
  const aborter = new AbortController();
  const line = h("div", { class: "about-line" });
  const body = h("div", {}, h("p", { class: "loading", role: "status" }, "Loading"));
  const title = h("h1", { tabindex: -1 }, name);
  const element = h("div", {}, h("p", { class: "crumbs" }, link("#/", "Toolsets"), " / ", link(toolsetPath(toolset), toolset)), title, line, body);
  let caller = null;

  function show(tool) {
    const place = h("div", { class: "outcome" }, h("p", { class: "empty" }, "What the tool answers is shown here."));
    caller = new Caller(toolset, tool, place);
    if (tool.title) title.replaceChildren(tool.title, " ", h("code", { class: "dim" }, name));
    body.replaceChildren(
      h("p", { class: "prewrap lead" }, tool.description),
      h("p", { class: "badges" }, badges(tool), tool.timeout_ms > 0 && pill("dim", `deadline ${duration(tool.timeout_ms)}`)),
      h("div", { class: "columns" }, caller.element, place),
      h("details", { class: "more" }, h("summary", {}, "Schema"), h("h3", {}, "Arguments"), schemaTree(tool.input_schema),
        tool.output_schema && h("h3", {}, "Result"), tool.output_schema && schemaTree(tool.output_schema)),
      caller.elsewhere);
  }

  async function load() {
    try {
      show(await get(`${toolsetUrl(toolset)}/tools/${encodeURIComponent(name)}`, { signal: aborter.signal }));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(failure(error, load));
    }
  }

  load();
  const leave = followToolset(toolset, line);
  return { title: `${name} · ${toolset}`, view: "toolsets", element, close: () => {
    aborter.abort();
    leave();
    if (caller) caller.leave();
  } };
}
