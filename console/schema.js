// SPDX-License-Identifier: Apache-2.0
// JSON Schema for people: what a form needs to know of it, and a tree to read. The gateway alone decides what is valid.

import { h } from "./dom.js";
import { write } from "./value.js";

const MAX_REFS = 32; // a circle of references ends here
const MAX_STEPS = 1000; // and one that branches

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export const unescape = (pointer) => pointer.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));

function follow(ref, root) {
  if (!ref.startsWith("#")) return {};
  let at = root;
  for (const token of unescape(decodeURIComponent(ref.slice(1)))) at = at?.[token];
  return isObject(at) ? at : {};
}

function merge(a, b) {
  const all = { ...a, ...b };
  if (a.properties && b.properties) all.properties = { ...a.properties, ...b.properties };
  if (a.required && b.required) all.required = [...new Set([...a.required, ...b.required])];
  return all;
}

let steps = 0;
/** The schema with what its references and allOf add. */
export function resolve(schema, root, n = 0) {
  steps = n ? steps + 1 : 0;
  if (!isObject(schema) || steps > MAX_STEPS) return {};
  let { $ref, allOf, ...own } = schema;
  if (typeof $ref === "string" && n < MAX_REFS) own = merge(resolve(follow($ref, root), root, n + 1), own);
  if (Array.isArray(allOf) && n < MAX_REFS) {
    for (const part of allOf) own = merge(resolve(part, root, n + 1), own);
  }
  return own;
}

const SAYS_SOMETHING = ["type", "properties", "enum", "const", "items", "$ref", "allOf", "anyOf", "oneOf"];

/** The schemas of which one is to be chosen; null: there is no choice. */
export function alternatives(schema, root) {
  const list = schema.oneOf || schema.anyOf;
  if (Array.isArray(list) && list.length > 1 && list.every((one) => isObject(one) && SAYS_SOMETHING.some((key) => key in one))) {
    const { oneOf, anyOf, title, description, default: _, ...base } = schema;
    return list.map((one) => merge(base, resolve(one, root)));
  }
  if (Array.isArray(schema.type) && schema.type.length > 1 && !schema.enum) return schema.type.map((type) => ({ ...schema, type }));
  return null;
}

export function typeOf(schema) {
  if ("const" in schema) return "const";
  if (Array.isArray(schema.enum)) return "enum";
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type) return type;
  if (schema.properties || schema.required) return "object";
  if (schema.items || schema.prefixItems) return "array";
  return "any";
}

/** A short name for one of several alternatives. */
export function titleOf(schema, root) {
  if (schema.title) return schema.title;
  const type = typeOf(schema);
  if (type === "const") return write(schema.const);
  if (type === "enum") return schema.enum.map((value) => write(value)).join(" | ");
  for (const [name, part] of Object.entries(schema.properties || {})) {
    const inner = resolve(part, root);
    if ("const" in inner) return `${name}: ${write(inner.const)}`;
  }
  if (type === "object" && schema.required?.length) return `object with ${schema.required.join(", ")}`;
  return type;
}

function range(schema, least, most, unit) {
  const low = schema[least];
  const high = schema[most];
  if (low === undefined && high === undefined) return null;
  const s = (n) => (unit ? ` ${unit}${n === 1 ? "" : "s"}` : "");
  if (low === undefined) return `at most ${write(high)}${s(high)}`;
  if (high === undefined) return `at least ${write(low)}${s(low)}`;
  return `${write(low)} to ${write(high)}${s(high)}`;
}

/** What holds for a value, in words. */
export function limitsOf(schema) {
  return [
    range(schema, "minimum", "maximum"), range(schema, "minLength", "maxLength", "character"),
    range(schema, "minItems", "maxItems", "item"), range(schema, "minProperties", "maxProperties", "member"),
    schema.exclusiveMinimum !== undefined && `above ${write(schema.exclusiveMinimum)}`,
    schema.exclusiveMaximum !== undefined && `below ${write(schema.exclusiveMaximum)}`,
    schema.multipleOf !== undefined && `a multiple of ${write(schema.multipleOf)}`,
    schema.uniqueItems && "no item twice", schema.format, schema.pattern && `matches ${schema.pattern}`,
  ].filter(Boolean);
}

// ---- a tree ----

function typeText(schema, root, n = 0) {
  const choice = alternatives(schema, root);
  if (choice) return choice.map((one) => titleOf(one, root)).join(" | ");
  const type = typeOf(schema);
  if (type === "const") return write(schema.const);
  if (type === "enum") return schema.enum.map((value) => write(value)).join(" | ");
  if (type === "array" && schema.items && n < 3) return `array of ${typeText(resolve(schema.items, root), root, n + 1)}`;
  return type;
}

function childrenOf(schema, root, n = 0) {
  const choice = alternatives(schema, root);
  if (choice) return choice.map((one) => [titleOf(one, root), one, false]).filter(([, one]) => n < 3 && childrenOf(one, root, n + 1).length);
  const of = typeOf(schema) === "array" && isObject(schema.items) ? resolve(schema.items, root) : schema;
  return Object.entries(of.properties || {}).map(([name, part]) => [name, resolve(part, root), (of.required || []).includes(name)]);
}

function list(children, root) {
  return h("ul", { class: "schema" }, children.map(([name, schema, isRequired]) => {
    const about = [
      h("code", { class: "json-key" }, name), " ", h("span", { class: "schema-type" }, typeText(schema, root)),
      isRequired && h("span", { class: "schema-required" }, " required"),
      limitsOf(schema).length > 0 && h("span", { class: "dim" }, ` · ${limitsOf(schema).join(" · ")}`),
      schema.default !== undefined && h("span", { class: "dim" }, ` · default ${write(schema.default)}`),
      schema.description && h("span", { class: "schema-about" }, schema.description),
    ];
    const inner = childrenOf(schema, root);
    if (!inner.length) return h("li", {}, about);
    const details = h("details", { ontoggle: () => {
      if (details.open && details.childElementCount === 1) details.append(list(inner, root));
    } }, h("summary", {}, about));
    return h("li", {}, details);
  }));
}

export function schemaTree(schema) {
  const root = isObject(schema) ? schema : {};
  const children = childrenOf(resolve(root, root), root);
  return children.length ? list(children, root)
    : h("p", { class: "dim" }, `Any ${typeOf(root) === "any" ? "value" : typeText(resolve(root, root), root)}.`);
}
