// SPDX-License-Identifier: Apache-2.0
// A form made from a schema, which can be written as JSON at any time; and which field an error belongs to.

import { h, newId } from "./dom.js";
import { makeField } from "./field.js";
import { resolve, unescape } from "./schema.js";
import { parse, write } from "./value.js";

const MISSING = /^the member '((?:[^'\\]|\\.)*)' is missing/;

/** "at /days: must be at most 7": the field, and the message. A name may contain ": ", too. */
function placeOf(field, line) {
  if (!line.startsWith("at ")) return [field, line];
  for (let i = line.indexOf(": "); i >= 0; i = line.indexOf(": ", i + 1)) {
    const pointer = line.slice(3, i);
    if (pointer !== "" && !pointer.startsWith("/")) continue;
    const found = field.find(unescape(pointer));
    if (found !== field || pointer === "") return [found, line.slice(i + 2)];
  }
  return [field, line];
}

export class Form {
  /** `onchange` is called when the arguments may have changed. */
  constructor(schema, { onchange = () => {} } = {}) {
    const root = typeof schema === "object" && schema !== null ? schema : {};
    this.root = root;
    this.onchange = onchange;
    this.isText = false;
    this.makeFields();
    this.area = h("textarea", { rows: 10, class: "code", spellcheck: "false", id: newId("json"), "aria-label": "Arguments as JSON" });
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.mode = h("button", { type: "button", class: "quiet small", "aria-pressed": "false", onclick: () => this.toggle() }, "Edit as JSON");
    this.body = h("div", {}, this.field.element);
    this.element = h("div", { class: "form", oninput: onchange, onchange },
      this.problem, this.body);
  }

  makeFields() {
    const at = { root: this.root, name: "Arguments", isRequired: true, depth: 0 };
    this.field = makeField(resolve(this.root, this.root), at);
  }

  /** JSON text. Throws a SyntaxError if what was typed as JSON is none. */
  text() {
    if (!this.isText) return write(this.field.value());
    const text = this.area.value.trim() || "{}";
    parse(text);
    return text;
  }

  set(value) {
    if (this.isText) {
      this.area.value = write(value, 2);
    } else {
      this.makeFields();
      this.field.set(value);
      this.body.replaceChildren(this.field.element);
    }
    this.clear();
    this.onchange();
  }

  toggle() {
    let value;
    this.clear();
    try {
      value = parse(this.text());
    } catch (error) {
      this.fail(`This is no JSON: ${error.message}`);
      this.area.focus();
      return;
    }
    this.isText = !this.isText;
    this.mode.textContent = this.isText ? "Edit as a form" : "Edit as JSON";
    this.mode.setAttribute("aria-pressed", String(this.isText));
    if (this.isText) this.body.replaceChildren(this.area);
    this.set(value);
  }

  clear() {
    this.problem.hidden = true;
    this.problem.textContent = "";
    this.field.clear();
  }

  fail(message) {
    this.problem.textContent = this.problem.textContent ? `${this.problem.textContent}\n${message}` : message;
    this.problem.hidden = false;
  }

  /** Shows each line of what a check said at its field, and goes to the first. */
  showReport(report) {
    const lines = report.replace(/^payload validation failed: /, "").split("\n").filter(Boolean);
    let first = null;
    this.clear();
    for (const line of lines) {
      let [field, message] = this.isText ? [this.field, line] : placeOf(this.field, line);
      const missing = MISSING.exec(message);
      if (missing && !this.isText) {
        const part = field.find([missing[1]]);
        if (part !== field) [field, message] = [part, "This is missing."];
      }
      if (field === this.field) {
        this.fail(message);
      } else {
        field.fail(message);
        first = first || field;
      }
    }
    if (first) first.focus();
  }
}
