// SPDX-License-Identifier: Apache-2.0
// The toolsets, live; and one of them with its tools.

import { get, toolsetUrl } from "./api.js";
import { catalog, refusal, statusOf } from "./catalog.js";
import { ago, announce, copyButton, count, duration, empty, failure, h, light, link, pill, rate, setText, sparkline, toolPath, toolsetPath } from "./dom.js";

const SHOWN = 200; // rows at once
const SEARCH_MS = 150; // after the last key

export function healthPill(toolset) {
  const health = toolset.health || {};
  const isHealthy = health.state === "healthy";
  return pill(isHealthy ? "good" : "bad", isHealthy ? "healthy" : "unhealthy", health.reason);
}

const providersText = (health) => `${count(health.providers, "provider")}${health.draining ? `, ${health.draining} draining` : ""}`;

// ---- a row ----

class Row {
  constructor(toolset) {
    this.name = link(toolsetPath(toolset.name), toolset.name);
    this.about = h("span", { class: "about" });
    this.found = h("span", { class: "found" });
    this.health = h("span", {});
    this.providers = h("span", { class: "dim" });
    const cell = (label, isNumber = true) => h("td", { class: isNumber ? "number" : undefined, "data-label": label });
    this.tools = cell("Tools");
    this.version = cell("Version", false);
    this.rate = cell("Calls/s");
    this.p50 = cell("p50");
    this.p99 = cell("p99");
    for (const one of [this.rate, this.p50, this.p99]) one.classList.add("of-status");
    this.element = h("tr", {},
      h("th", { scope: "row", class: "name" }, this.name, this.about, this.found),
      h("td", { "data-label": "Health" }, this.health, this.providers),
      this.tools, this.version, this.rate, this.p50, this.p99);
    this.update(toolset);
  }

  update(toolset) {
    const isOther = JSON.stringify([this.toolset?.health?.state, this.toolset?.health?.providers, this.toolset?.revision])
      !== JSON.stringify([toolset.health?.state, toolset.health?.providers, toolset.revision]);
    if (this.toolset && isOther) light(this.element);
    this.toolset = toolset;
    this.text = [toolset.name, toolset.description, ...(toolset.tags || [])].join("\n").toLowerCase();
    setText(this.about, toolset.description);
    this.health.replaceChildren(healthPill(toolset));
    setText(this.providers, providersText(toolset.health || { providers: 0 }));
    setText(this.tools, toolset.tool_count);
    setText(this.version, toolset.version || "–");
    this.updateStatus();
  }

  updateStatus() {
    const status = statusOf(this.toolset.name);
    if (!status) return;
    const values = catalog.rates.get(this.toolset.name) || [];
    this.rate.replaceChildren(sparkline(values), h("span", {}, rate(status.calls_per_s)));
    setText(this.p50, status.p50_ms ? duration(status.p50_ms) : "–");
    setText(this.p99, status.p99_ms ? duration(status.p99_ms) : "–");
  }

  showFound(tools) {
    this.found.replaceChildren(...tools.map((tool) => link(toolPath(this.toolset.name, tool), tool)));
  }
}

// ---- the list ----

export function toolsetsView() {
  const rows = new Map();
  let found = new Map(); // by toolset: the tools that match what is searched for
  let timer = 0;
  let wasReady = false;
  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter by name, or say what you need", "aria-label": "Filter toolsets",
    autocomplete: "off", spellcheck: "false", oninput: () => {
      show();
      clearTimeout(timer);
      timer = setTimeout(search, SEARCH_MS);
    } });
  const summary = h("p", { class: "dim", role: "status" });
  const body = h("tbody", {});
  const table = h("table", { class: "list" }, h("caption", { class: "unseen" }, "Toolsets"),
    h("thead", {}, h("tr", {}, [["Toolset"], ["Health"], ["Tools", "number"], ["Version"], ["Calls/s", "number of-status"], ["p50", "number of-status"],
      ["p99", "number of-status"]].map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body);
  const rest = h("div", {});
  const element = h("div", {}, h("div", { class: "head" }, h("h1", { tabindex: -1 }, "Toolsets"), filter), summary, table, rest);

  async function search() {
    const query = filter.value.trim();
    let hits = [];
    if (query) {
      try {
        hits = (await get(`/v1/search?limit=50&q=${encodeURIComponent(query.slice(0, 1000))}`)).hits;
      } catch {
        // The filter works without.
      }
    }
    if (query !== filter.value.trim()) return;
    found = new Map(hits.map((hit) => [hit.toolset.name, hit.tools]));
    show();
  }

  /** What was found, best first, then by name. */
  function matching(query) {
    const names = [...found.keys()];
    const rank = (row) => (found.has(row.toolset.name) ? names.indexOf(row.toolset.name) : names.length);
    return [...rows.values()].filter((row) => !query || row.text.includes(query) || found.has(row.toolset.name))
      .sort((a, b) => rank(a) - rank(b) || (a.toolset.name < b.toolset.name ? -1 : 1));
  }

  function show() {
    const query = filter.value.trim().toLowerCase();
    const list = matching(query);
    const healthy = list.filter((row) => row.toolset.health?.state === "healthy").length;
    const shown = list.slice(0, SHOWN).map((row) => row.element);
    for (const row of list) row.showFound(query ? found.get(row.toolset.name) || [] : []);
    // Rows that stay are not moved, so that what has the focus keeps it.
    if (shown.length !== body.childElementCount || shown.some((one, i) => body.children[i] !== one)) body.replaceChildren(...shown);
    table.hidden = !list.length;
    setText(summary, catalog.isReady && rows.size ? `${count(list.length, "toolset")}, ${healthy} healthy` : "");
    rest.replaceChildren(...remarks(list, query));
  }

  function remarks(list, query) {
    if (list.length > SHOWN) return [h("p", { class: "dim" }, `${list.length - SHOWN} more: type to find them.`)];
    if (list.length) return [];
    if (refusal()) return [failure(refusal())];
    if (!catalog.isReady) return [catalog.state === "refused" ? empty(h("p", {}, "This gateway wants to know who asks."), h("p", {}, "Sign in with one of its tokens."))
      : h("p", { class: "loading", role: "status" }, "Loading")];
    if (query) return [empty(h("p", {}, `Nothing matches “${query}”.`))];
    return [empty(h("p", {}, "No toolsets yet."), h("p", {}, "Offer some from a terminal, and they show up here:"),
      h("pre", { class: "block" }, `pegboard provide examples/demo/tools.yaml --registry ${location.host}`))];
  }

  function take(what, toolset, event) {
    if (what === "toolset") takeToolset(toolset, event);
    else if (what === "status") {
      table.classList.toggle("without-status", !catalog.status);
      for (const row of rows.values()) row.updateStatus();
    } else show();
  }

  function takeToolset(toolset, event) {
    const row = rows.get(toolset.name);
    if (event === "unregistered") rows.delete(toolset.name);
    else if (row) row.update(toolset);
    else {
      rows.set(toolset.name, new Row(toolset));
      if (wasReady) light(rows.get(toolset.name).element);
    }
    if (!catalog.isReady) return;
    if (event === "health") announce(`${toolset.name} is ${toolset.health.state}`);
    show();
  }

  for (const toolset of catalog.toolsets.values()) rows.set(toolset.name, new Row(toolset));
  wasReady = catalog.isReady;
  table.classList.toggle("without-status", !catalog.status);
  show();
  const leave = catalog.subscribe((...about) => {
    if (about[0] === "state" && catalog.state === "connecting") rows.clear();
    take(...about);
    wasReady = catalog.isReady;
  });
  return { title: "Toolsets", view: "toolsets", element, close: () => {
    clearTimeout(timer);
    leave();
  } };
}

// ---- one ----

export function badges(tool) {
  return [
    tool.read_only && pill("good", "read-only", "It changes nothing"),
    tool.destructive && pill("bad", "destructive", "It may remove or overwrite what was there"),
    tool.additive && pill("dim", "additive", "It changes something, but only adds"),
    tool.idempotent && pill("dim", "idempotent", "It may be started again"),
    ...(tool.tags || []).map((tag) => h("span", { class: "tag" }, tag)),
  ].filter(Boolean);
}

export const aboutToolset = (toolset) => [
  healthPill(toolset), h("span", {}, providersText(toolset.health || { providers: 0 })), toolset.version && h("span", {}, `version ${toolset.version}`),
  toolset.owner && h("span", {}, `owner ${toolset.owner}`), toolset.registered_at && h("span", {}, "registered ", ago(Date.parse(toolset.registered_at))),
  ...(toolset.tags || []).map((tag) => h("span", { class: "tag" }, tag))].filter(Boolean);

/** Keeps the line about a toolset true. */
export function followToolset(name, line) {
  const show = () => {
    const toolset = catalog.toolsets.get(name);
    if (toolset) line.replaceChildren(...aboutToolset(toolset));
    else if (catalog.isReady) line.replaceChildren(pill("bad", "gone"), h("span", {}, "It was unregistered."));
  };
  show();
  return catalog.subscribe((what, toolset) => {
    if (what === "ready" || (what === "toolset" && toolset.name === name)) show();
  });
}

export function toolsetView(name) {
  const aborter = new AbortController();
  const line = h("div", { class: "about-line" });
  const body = h("div", {}, h("p", { class: "loading", role: "status" }, "Loading"));
  const element = h("div", {}, h("p", { class: "crumbs" }, link("#/", "Toolsets")), h("h1", { tabindex: -1 }, name), line, body);

  function show(toolset) {
    const url = `${location.origin}/mcp/${encodeURIComponent(name)}`;
    body.replaceChildren(
      h("p", { class: "prewrap lead" }, toolset.description),
      h("h2", {}, count(toolset.tools.length, "tool")),
      toolset.tools.length ? h("ul", { class: "cards" }, toolset.tools.map((tool) => h("li", { class: "card" },
        h("h3", {}, link(toolPath(name, tool.name), tool.title || tool.name)),
        h("p", { class: "prewrap clamp" }, tool.description), h("p", { class: "badges" }, badges(tool)))))
        : empty(h("p", {}, "It has no tools.")),
      h("p", { class: "dim" }, "MCP clients find it at ", h("code", {}, url), " ", copyButton(url)));
  }

  async function load() {
    try {
      show(await get(toolsetUrl(name), { signal: aborter.signal }));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(failure(error, load));
    }
  }

  load();
  const leaves = [followToolset(name, line), catalog.subscribe((what, toolset, event) => {
    if (what === "toolset" && toolset.name === name && event !== "health" && event !== "unregistered") load();
  })];
  return { title: name, view: "toolsets", element, close: () => {
    aborter.abort();
    leaves.forEach((leave) => leave());
  } };
}
