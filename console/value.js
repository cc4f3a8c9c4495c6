// SPDX-License-Identifier: Apache-2.0
// JSON without loss: a number that JavaScript would round stays the text that it was.

import { copyButton, h, tabs } from "./dom.js";

export class ExactNumber {
  constructor(text) { this.text = text; }
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A number of text that a person typed; undefined: it is none. */
export function numberOf(text) {
  if (!NUMBER.test(text)) return undefined;
  return String(Number(text)) === text ? Number(text) : new ExactNumber(text);
}

/** Browsers that do not tell a number's source read it as JavaScript does. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context && context.source ? numberOf(context.source) : value);
}

export function write(value, indent = 0, at = "") {
  if (value instanceof ExactNumber) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value === undefined ? null : value);
  const isArray = Array.isArray(value);
  const items = isArray ? value.map((item) => write(item, indent, at + " ".repeat(indent)))
    : Object.entries(value).map(([key, item]) =>
      `${JSON.stringify(key)}:${indent ? " " : ""}${write(item, indent, at + " ".repeat(indent))}`);
  const [open, close] = isArray ? "[]" : "{}";
  if (!items.length) return open + close;
  if (!indent) return open + items.join(",") + close;
  const inner = at + " ".repeat(indent);
  return `${open}\n${inner}${items.join(`,\n${inner}`)}\n${at}${close}`;
}

export const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array"
  : value instanceof ExactNumber ? "number" : typeof value);

// ---- a tree ----

const SHOWN = 200; // members at once; the rest on demand

function leaf(value) {
  return h("span", { class: `json-${kindOf(value)}` }, write(value));
}

function branch(value, depth) {
  const entries = Object.entries(value);
  const list = h("ul", {});
  const show = (from) => {
    list.append(...entries.slice(from, from + SHOWN).map(([key, item]) =>
      h("li", {}, node(item, depth + 1, Array.isArray(value) ? undefined : key))));
    if (from + SHOWN < entries.length) {
      const more = h("li", {}, h("button", { type: "button", class: "quiet small", onclick: () => {
        more.remove();
        show(from + SHOWN);
      } }, `${entries.length - from - SHOWN} more`));
      list.append(more);
    }
  };
  return [list, () => list.childElementCount || show(0)];
}

function node(value, depth, key) {
  const name = key === undefined ? null : [h("span", { class: "json-key" }, key), ": "];
  if (value === null || typeof value !== "object" || value instanceof ExactNumber) return h("span", { class: "json-leaf" }, name, leaf(value));
  const n = Object.keys(value).length;
  if (!n) return h("span", { class: "json-leaf" }, name, Array.isArray(value) ? "[]" : "{}");
  const [list, open] = branch(value, depth);
  const details = h("details", { ontoggle: () => details.open && open() },
    h("summary", {}, name, h("span", { class: "json-size" }, Array.isArray(value) ? `[${n}]` : `{${n}}`)), list);
  if (depth < 3 && n <= 50) {
    details.open = true;
    open();
  }
  return details;
}

export const tree = (value) => h("div", { class: "json-tree" }, node(value, 0));

// ---- a result ----

const IMAGE = /^image\/(png|jpeg|gif|webp|avif)$/;

function pictures(value) {
  const media = value && Array.isArray(value.media) ? value.media : [];
  return media.filter((item) => item && IMAGE.test(item.mimeType) && typeof item.base64 === "string")
    .map((item) => h("figure", {},
      h("img", { src: `data:${item.mimeType};base64,${item.base64}`, alt: item.filename || "A picture that the tool made" }),
      h("figcaption", {}, item.filename || item.mimeType)));
}

export function resultView(value) {
  const text = write(value, 2);
  const drawn = pictures(value);
  const list = [];
  if (drawn.length) list.push(["Picture", h("div", {}, drawn)]);
  if (typeof value === "string") list.push(["Text", h("pre", { class: "block" }, value)]);
  else if (value !== null && typeof value === "object") list.push(["Tree", tree(value)]);
  list.push(["JSON", () => h("pre", { class: "block" }, text)]);
  return h("div", { class: "result" }, tabs("Ways to see the result", list),
    copyButton(typeof value === "string" ? value : text, "Copy result"));
}
