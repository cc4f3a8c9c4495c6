// SPDX-License-Identifier: Apache-2.0
// Elements, and how times and sizes are written. Text becomes text nodes only: nothing that a provider wrote
// can become an element.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** h("p", {class: "empty", onclick: f}, "text", element, [more]) */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let lastId = 0;
export const newId = (prefix) => `${prefix}-${++lastId}`;

/** Sets the text of an element; true if it was another. */
export function setText(element, text) {
  if (element.textContent === String(text)) return false;
  element.textContent = text;
  return true;
}

/** Shows for a moment that something has changed. */
export function light(element) {
  element.classList.remove("changed");
  void element.offsetWidth; // begins the animation anew
  element.classList.add("changed");
}

/** For readers that do not see the page. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// ---- what is written ----

const trim = (number, digits) => String(Number(number.toFixed(digits)));

export function duration(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${trim(ms, ms < 10 ? 1 : 0)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${trim(s, 1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${trim(n, n < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

export const rate = (n) => (n > 0 && n < 0.1 ? "<0.1" : trim(n, n < 10 ? 1 : 0));
export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** A time element that tells how long ago it was. */
export function ago(unixMs) {
  if (!unixMs) return h("span", {}, "");
  const when = new Date(unixMs);
  const passed = Date.now() - unixMs;
  return h("time", { datetime: when.toISOString(), title: when.toLocaleString() },
    passed < 1500 ? "just now" : `${duration(Math.floor(passed / 1000) * 1000)} ago`);
}

// ---- parts ----

export const link = (href, ...children) => h("a", { href }, ...children);
export const toolsetPath = (toolset) => `#/toolsets/${encodeURIComponent(toolset)}`;
export const toolPath = (toolset, tool) => `${toolsetPath(toolset)}/${encodeURIComponent(tool)}`;

export function pill(kind, text, title) {
  return h("span", { class: `pill ${kind}`, title }, text);
}

export function copyButton(text, label = "Copy") {
  const button = h("button", {
    type: "button", class: "quiet small", onclick: async () => {
      try {
        await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed here";
      }
      setTimeout(() => { button.textContent = label; }, 1500);
    },
  }, label);
  return button;
}

/** What is there instead of a view that failed. */
export function failure(error, again) {
  return h("div", { class: "notice bad", role: "alert" },
    h("p", {}, h("strong", {}, error.title || "That did not work")),
    h("p", { class: "prewrap" }, error.detail || error.message || String(error)),
    again && h("button", { type: "button", onclick: again }, "Try again"));
}

export const empty = (...children) => h("div", { class: "empty" }, ...children);

/** Tabs by the pattern of WAI-ARIA. `tabs` is [[name, element or function that makes it], ...]. */
export function tabs(label, list, first = 0) {
  const id = newId("tabs");
  const panel = h("div", { role: "tabpanel", id: `${id}-panel`, tabindex: 0, class: "tab-panel" });
  const buttons = list.map(([name], i) => h("button", {
    type: "button", role: "tab", id: `${id}-${i}`, "aria-controls": panel.id, onclick: () => choose(i, true),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) choose((i + step + list.length) % list.length, true);
    },
  }, name));

  function choose(chosen, isAsked) {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === chosen));
      button.tabIndex = i === chosen ? 0 : -1;
    });
    const content = list[chosen][1];
    panel.replaceChildren(typeof content === "function" ? content() : content);
    panel.setAttribute("aria-labelledby", buttons[chosen].id);
    if (isAsked) buttons[chosen].focus();
  }
  choose(first, false);
  return h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": label }, buttons), panel);
}

/** A line of the last values, as a picture. */
export function sparkline(values, { width = 90, height = 22, label = "" } = {}) {
  const most = Math.max(...values, 1e-9);
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`);
  const picture = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
    role: label ? "img" : undefined, "aria-label": label || undefined, "aria-hidden": label ? undefined : "true" });
  if (points.length > 1) {
    picture.append(
      svg("polygon", { points: `0,${height} ${points.join(" ")} ${width},${height}` }),
      svg("polyline", { points: points.join(" ") }));
  }
  return picture;
}
