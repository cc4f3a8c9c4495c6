// SPDX-License-Identifier: Apache-2.0
// The fields of a form, one kind for each kind of value. A field has
//
//   element          what is shown
//   value()          the JSON value; undefined: it is left out
//   set(value)
//   find(tokens)     the field that a JSON Pointer leads to, as far as there is one
//   fail(message)    shows what is wrong with it; clear() takes that back
//
// Nothing is judged here but whether text is JSON: the gateway tells what is wrong, and where.

import { h, newId } from "./dom.js";
import { alternatives, limitsOf, resolve, titleOf, typeOf } from "./schema.js";
import { kindOf, numberOf, parse, write } from "./value.js";

const LONG_TEXT = /text|body|content|message|prompt|code|script|sql|html|markdown|query|description/i;
const OPEN_DEPTH = 3; // deeper objects are closed at first, so that a schema that contains itself ends

class Field {
  constructor(schema, at) {
    this.schema = schema;
    this.at = at; // {name, isRequired, depth, root}
    this.id = newId("field");
    this.error = h("p", { class: "error", id: `${this.id}-error`, hidden: true });
  }

  get label() {
    const { name, isRequired } = this.at;
    return [h("span", { class: "field-name" }, this.schema.title || name),
      isRequired && h("span", { class: "required", title: "required" }, " required")];
  }

  get hint() {
    const limits = limitsOf(this.schema).join(" · ");
    const text = [this.schema.description, limits].filter(Boolean);
    return text.length ? h("p", { class: "hint", id: `${this.id}-hint` }, text.map((part) => h("span", {}, part))) : null;
  }

  /** A labelled control. */
  wrap(control) {
    const hint = this.hint;
    this.control = control;
    control.id = this.id;
    control.setAttribute("aria-describedby", [hint && hint.id, this.error.id].filter(Boolean).join(" "));
    if (this.at.isRequired) control.setAttribute("aria-required", "true");
    this.element = h("div", { class: "field" }, h("label", { for: this.id }, this.label), hint, control, this.error);
    if (this.schema.default !== undefined) this.set(this.schema.default);
    return this;
  }

  find() { return this; }

  fail(message) {
    this.error.textContent = this.error.textContent ? `${this.error.textContent}\n${message}` : message;
    this.error.hidden = false;
    (this.control || this.element).setAttribute("aria-invalid", "true");
    for (let at = this.element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  }

  clear() {
    this.error.textContent = "";
    this.error.hidden = true;
    (this.control || this.element).removeAttribute("aria-invalid");
  }

  focus() { (this.control || this.element.querySelector("input, select, textarea, button, summary") || this.element).focus(); }
}

// ---- values without parts ----

function placeholderOf(schema) {
  const example = Array.isArray(schema.examples) ? schema.examples[0] : undefined;
  if (example === undefined) return undefined;
  return `such as ${typeof example === "string" ? example : write(example)}`;
}

class TextField extends Field {
  constructor(schema, at) {
    super(schema, at);
    const isLong = schema.contentMediaType || schema.maxLength > 200 || (!schema.maxLength && !schema.format && LONG_TEXT.test(at.name));
    const attributes = { spellcheck: "false", autocomplete: "off", placeholder: placeholderOf(schema) };
    this.wrap(isLong ? h("textarea", { rows: 3, ...attributes }) : h("input", { type: "text", ...attributes }));
  }

  value() { return this.control.value === "" ? undefined : this.control.value; }

  set(value) { this.control.value = value === undefined ? "" : typeof value === "string" ? value : write(value); }
}

class NumberField extends Field {
  constructor(schema, at) {
    super(schema, at);
    this.wrap(h("input", { type: "text", inputmode: typeOf(schema) === "integer" ? "numeric" : "decimal", autocomplete: "off",
      class: "short", placeholder: placeholderOf(schema) }));
  }

  /** Text that is no number goes to the gateway as text, which says so. */
  value() {
    const text = this.control.value.trim();
    const number = numberOf(text);
    return text === "" ? undefined : number === undefined ? text : number;
  }

  set(value) { this.control.value = value === undefined ? "" : typeof value === "string" ? value : write(value); }
}

class ChoiceOfValues extends Field {
  constructor(schema, at, values) {
    super(schema, at);
    this.values = values;
    this.wrap(h("select", { class: "short" },
      h("option", { value: "" }, at.isRequired ? "Choose" : "Not set"),
      values.map((value, i) => h("option", { value: String(i) }, typeof value === "string" ? value : write(value)))));
    if (at.isRequired && values.length === 1) this.control.value = "0";
  }

  value() { return this.control.value === "" ? undefined : this.values[Number(this.control.value)]; }

  set(value) {
    const i = this.values.findIndex((one) => write(one) === write(value));
    this.control.value = value === undefined || i < 0 ? "" : String(i);
  }
}

class JsonField extends Field {
  constructor(schema, at) {
    super(schema, at);
    this.wrap(h("textarea", { rows: 2, class: "code", spellcheck: "false", placeholder: "JSON, or text" }));
  }

  value() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    try {
      return parse(text);
    } catch {
      return text;
    }
  }

  set(value) { this.control.value = value === undefined ? "" : write(value, 2); }
}

// ---- values with parts ----

/** Parts are made when they are first seen. */
class Group extends Field {
  group() {
    const { depth, isRequired, name } = this.at;
    this.body = h("div", { class: "group-body" });
    if (depth === 0) {
      this.element = h("div", { class: "group-root" }, this.error, this.body);
      this.build();
      return this;
    }
    this.element = h("details", { class: "group", ontoggle: () => this.element.open && this.build() },
      h("summary", {}, h("span", { class: "field-name" }, this.schema.title || name),
        isRequired && h("span", { class: "required" }, " required")),
      this.hint, this.error, this.body);
    if (isRequired && depth < OPEN_DEPTH) {
      this.build();
      this.element.open = true;
    }
    if (this.schema.default !== undefined) this.set(this.schema.default);
    return this;
  }

  build() {
    if (this.isBuilt) return;
    this.isBuilt = true;
    this.fillBody();
  }

  part(schema, name, isRequired) {
    const { root, depth } = this.at;
    return makeField(resolve(schema, root), { root, name, isRequired, depth: depth + 1 });
  }

  find(tokens) {
    if (!tokens.length) return this;
    this.build();
    const part = this.partAt(tokens[0]);
    return part ? part.find(tokens.slice(1)) : this;
  }

  clear() {
    super.clear();
    for (const part of this.parts()) part.clear();
  }
}

class ObjectField extends Group {
  constructor(schema, at) {
    super(schema, at);
    this.members = new Map();
    this.extra = []; // {key, field, element}: members that the schema does not name
    this.group();
  }

  get takesOthers() {
    const { additionalProperties, properties } = this.schema;
    return additionalProperties !== false && (additionalProperties !== undefined || !Object.keys(properties || {}).length);
  }

  fillBody() {
    const { properties = {}, required = [] } = this.schema;
    const names = Object.keys(properties);
    for (const name of [...names.filter((one) => required.includes(one)), ...names.filter((one) => !required.includes(one))]) {
      const field = this.part(properties[name], name, required.includes(name));
      this.members.set(name, field);
      this.body.append(field.element);
    }
    if (this.takesOthers) {
      this.rows = h("div", {});
      this.body.append(this.rows, h("button", { type: "button", class: "quiet small", onclick: () => this.addOther("").key.focus() }, "Add a member"));
    } else if (!names.length) {
      this.body.append(h("p", { class: "dim" }, "It takes no arguments."));
    }
  }

  addOther(name) {
    const field = this.part(this.schema.additionalProperties, "Value", false);
    const key = h("input", { type: "text", class: "short", value: name, "aria-label": "Name of the member", placeholder: "name" });
    const row = { key, field };
    row.element = h("div", { class: "row" }, key, field.element, h("button", { type: "button", class: "quiet small", onclick: () => {
      row.element.remove();
      this.extra.splice(this.extra.indexOf(row), 1);
    } }, "Remove"));
    this.extra.push(row);
    this.rows.append(row.element);
    return row;
  }

  parts() { return [...this.members.values(), ...this.extra.map((row) => row.field)]; }

  partAt(token) { return this.members.get(token) || this.extra.find((row) => row.key.value === token)?.field; }

  value() {
    const all = [...this.members, ...this.extra.map((row) => [row.key.value, row.field])];
    const told = all.map(([name, field]) => [name, field.value()]).filter(([name, value]) => value !== undefined && name !== "");
    return told.length || this.at.isRequired ? Object.fromEntries(told) : undefined;
  }

  set(value) {
    if (kindOf(value) !== "object") return;
    this.build();
    for (const row of [...this.extra]) row.element.remove();
    this.extra = [];
    for (const [name, field] of this.members) field.set(value[name]);
    for (const [name, item] of Object.entries(value)) {
      if (!this.members.has(name) && this.takesOthers) this.addOther(name).field.set(item);
    }
    if (this.element.tagName === "DETAILS") this.element.open = true;
  }
}

class ArrayField extends Group {
  constructor(schema, at) {
    super(schema, at);
    this.items = [];
    this.group();
  }

  fillBody() {
    this.rows = h("div", {});
    this.body.append(this.rows, h("button", { type: "button", class: "quiet small", onclick: () => this.add().focus() }, "Add an item"));
    const least = Math.min(this.schema.minItems || 0, 10);
    for (let i = 0; this.at.isRequired && i < least; i++) this.add();
  }

  add() {
    const i = this.items.length;
    const schema = this.schema.prefixItems?.[i] || this.schema.items || {};
    const field = this.part(schema, `Item ${i + 1}`, false);
    field.row = h("div", { class: "row" }, field.element, h("button", { type: "button", class: "quiet small", "aria-label": `Remove item ${i + 1}`, onclick: () => {
      const rest = this.items.filter((one) => one !== field).map((one) => one.value());
      this.set(rest.filter((value) => value !== undefined));
      this.body.querySelector(":scope > button").focus();
    } }, "Remove"));
    this.items.push(field);
    this.rows.append(field.row);
    return field;
  }

  parts() { return this.items; }

  partAt(token) { return this.items.filter((one) => one.value() !== undefined)[Number(token)]; }

  value() {
    const told = this.items.map((field) => field.value()).filter((value) => value !== undefined);
    return told.length || this.at.isRequired ? told : undefined;
  }

  set(value) {
    if (!Array.isArray(value)) value = [];
    this.build();
    this.rows.replaceChildren();
    this.items = [];
    for (const item of value) this.add().set(item);
    if (this.element.tagName === "DETAILS" && value.length) this.element.open = true;
  }
}

/** oneOf, anyOf, several types: first which, then what. */
class AlternativeField extends Field {
  constructor(schema, at, list) {
    super(schema, at);
    this.list = list;
    this.inner = h("div", { class: "group-body" });
    this.wrap(h("select", { class: "short", onchange: () => this.choose(this.control.value) },
      h("option", { value: "" }, at.isRequired ? "Choose" : "Not set"),
      list.map((one, i) => h("option", { value: String(i) }, titleOf(one, at.root)))));
    this.element.append(this.inner);
  }

  choose(i) {
    this.control.value = i;
    this.field = null;
    this.inner.replaceChildren();
    if (i === "") return;
    const { title, description, ...schema } = this.list[Number(i)];
    this.field = makeField(schema, { ...this.at, name: title || "Value", isRequired: true, depth: this.at.depth + 1 });
    if (typeOf(schema) !== "null") this.inner.append(this.field.element);
  }

  value() { return this.field ? this.field.value() : undefined; }

  fits(one, value) {
    const type = typeOf(one);
    if (type === "const") return write(one.const) === write(value);
    if (type === "enum") return one.enum.some((item) => write(item) === write(value));
    if (type === "object" && kindOf(value) === "object") {
      return Object.entries(one.properties || {}).every(([name, part]) => {
        const inner = resolve(part, this.at.root);
        return !("const" in inner) || write(inner.const) === write(value[name]);
      }) && (one.required || []).every((name) => name in value);
    }
    return type === "any" || type === kindOf(value) || (type === "integer" && kindOf(value) === "number");
  }

  set(value) {
    const i = value === undefined ? -1 : this.list.findIndex((one) => this.fits(one, value));
    this.choose(i < 0 ? "" : String(i));
    if (this.field) this.field.set(value);
  }

  find(tokens) { return this.field && tokens.length ? this.field.find(tokens) : this; }

  clear() {
    super.clear();
    if (this.field) this.field.clear();
  }
}

export function makeField(schema, at) {
  const choice = alternatives(schema, at.root);
  if (choice) return new AlternativeField(schema, at, choice);
  switch (typeOf(schema)) {
    case "const": return new ChoiceOfValues(schema, at, [schema.const]);
    case "enum": return new ChoiceOfValues(schema, at, schema.enum);
    case "boolean": return new ChoiceOfValues(schema, at, [true, false]);
    case "null": return new ChoiceOfValues(schema, at, [null]);
    case "integer":
    case "number": return new NumberField(schema, at);
    case "string": return new TextField(schema, at);
    case "array": return new ArrayField(schema, at);
    case "object": return new ObjectField(schema, at);
    default: return new JsonField(schema, at);
  }
}
