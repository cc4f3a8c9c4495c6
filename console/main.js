// SPDX-License-Identifier: Apache-2.0
// The frame of the page: which view is shown, keys, signing in. Files call those to their right:
//
//   main  toolsets tool calls nodes  call  question snippets  form  field  schema  catalog  api  value  dom

import { session } from "./api.js";
import { callView } from "./call.js";
import { callsView } from "./calls.js";
import { catalog, refusal, restart, start } from "./catalog.js";
import { empty, h, link } from "./dom.js";
import { nodesView } from "./nodes.js";
import { toolView } from "./tool.js";
import { toolsetsView, toolsetView } from "./toolsets.js";

const byId = (id) => document.getElementById(id);
const main = byId("main");

// ---- views ----

const ROUTES = [
  [/^$/, toolsetsView],
  [/^toolsets\/([^/]+)$/, toolsetView],
  [/^toolsets\/([^/]+)\/([^/]+)$/, toolView],
  [/^calls$/, callsView],
  [/^calls\/([^/]+)$/, callView],
  [/^nodes$/, nodesView],
];

let current = null;

function viewOf(path) {
  for (const [pattern, make] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return make(...match.slice(1).map(decodeURIComponent));
  }
  return { title: "Not found", view: "", element: empty(h("h1", { tabindex: -1 }, "There is no such page"), link("#/", "Toolsets")), close() {} };
}

function show(isFirst) {
  const path = location.hash.replace(/^#\/?/, "");
  if (current) current.close();
  try {
    current = viewOf(path);
  } catch {
    current = viewOf("no such page");
  }
  main.replaceChildren(current.element);
  document.title = `${current.title} · Pegboard`;
  for (const one of document.querySelectorAll("nav a")) {
    if (one.dataset.view === current.view) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  if (isFirst) return;
  window.scrollTo(0, 0);
  main.querySelector("h1")?.focus();
}

// ---- the state of the connection ----

const STATES = { connecting: "Connecting", live: "Live", lost: "Reconnecting", refused: "Signed out" };

function showState() {
  const place = byId("link-state");
  place.dataset.state = catalog.state;
  place.textContent = refusal() ? "Refused" : STATES[catalog.state];
  byId("sign-button").textContent = session.token ? "Sign out" : "Sign in";
}

// ---- signing in ----

const dialog = byId("sign-dialog");

function openSignIn(why) {
  byId("sign-error").textContent = why;
  byId("token").value = "";
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
}

dialog.addEventListener("close", () => {
  if (dialog.returnValue !== "ok" || !byId("token").value.trim()) return;
  session.token = byId("token").value.trim();
  byId("token").value = "";
  restart();
  showState();
  show(true);
});

byId("sign-cancel").addEventListener("click", () => dialog.close(""));

byId("sign-button").addEventListener("click", () => {
  if (!session.token) {
    openSignIn("");
    return;
  }
  session.token = null;
  restart();
  showState();
  show(true);
});

session.onUnauthenticated = () => {
  const had = session.token;
  session.token = null;
  if (had || (!dialog.open && catalog.state !== "refused")) openSignIn(had ? "The gateway does not know this token." : "");
  showState();
};

// ---- keys ----

const GO = { t: "#/", c: "#/calls", n: "#/nodes" };
let wasG = false;

function isTyping(target) {
  return target.matches?.("input, textarea, select") || document.querySelector("dialog[open]");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches?.("main input, main textarea, main select")) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const go = wasG && GO[event.key];
  wasG = event.key === "g";
  if (go) {
    location.hash = go;
  } else if (event.key === "/") {
    event.preventDefault();
    if (!byId("filter")) location.hash = "#/";
    requestAnimationFrame(() => byId("filter")?.focus());
  } else if (event.key === "?") {
    byId("keys-dialog").showModal();
  }
});

byId("keys-button").addEventListener("click", () => byId("keys-dialog").showModal());

// ---- all of it ----

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash is the view's
  main.focus();
});

window.addEventListener("hashchange", () => show(false));
catalog.subscribe((what) => what === "state" && showState());
showState();
show(true);
start();
