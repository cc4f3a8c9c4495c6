// SPDX-License-Identifier: Apache-2.0
// The node that answers, and the others of its registry.

import { bytes, count, duration, empty, failure, h, pill, rate, sparkline } from "./dom.js";
import { catalog, refusal } from "./catalog.js";

const STATES = { serving: "good", starting: "busy", draining: "warn", lost: "bad" };

function fact(name, ...value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
}

function numbers(status) {
  const { outcomes } = status;
  const badly = outcomes.error + outcomes.timeout + outcomes.outcome_unknown;
  const tile = (name, value, more) => h("div", { class: "tile" }, h("span", { class: "tile-name" }, name), h("span", { class: "tile-value" }, value), more || "");
  return h("div", { class: "tiles" },
    tile("Calls a second", rate(status.calls_per_s), sparkline(catalog.rates.get("") || [], { width: 160, height: 36, label: "Calls a second, of late" })),
    tile("In flight", String(status.in_flight), h("span", { class: "dim" }, `${status.queued} queued`)),
    tile("Ended well", String(outcomes.result), h("span", { class: "dim" }, `${badly} not, ${outcomes.canceled} canceled, ${outcomes.refused} refused`)),
    tile("Toolsets", String(status.toolsets), h("span", { class: "dim" }, `${status.healthy} healthy, ${count(status.providers, "provider")}`)),
    tile("Memory", bytes(status.memory_bytes), h("span", { class: "dim" }, count(Number(status.connections), "connection"))));
}

function nodeCard(node) {
  return h("section", { class: "card", "aria-label": `Node ${node.id}` },
    h("div", { class: "call-head" }, h("h2", {}, h("code", {}, node.id)), pill(STATES[node.state] || "dim", node.state),
      node.answers && pill("dim", "answers here"), node.pings && pill("dim", "pings", "It is the one that pings direct toolsets")),
    h("dl", { class: "facts" },
      fact("Address", h("code", {}, node.address)), fact("Version", node.version),
      fact("Up for", duration(Date.now() - node.started_unix_ms)), fact("Registry", node.registry),
      fact("Bus", node.bus, node.round_trip_us ? `, ${duration(node.round_trip_us / 1000)} away` : ""), fact("Toolsets kept in", node.store),
      fact("Event loops", String(node.threads)), fact("Providers", String(node.providers)),
      fact("In flight", `${node.in_flight}, ${node.queued} queued`), fact("Calls a second", rate(node.calls_per_s)),
      fact("Settled", `${node.settled}, ${node.outcome_unknown} of them unknown`)));
}

export function nodesView() {
  const body = h("div", {});
  const element = h("div", {}, h("h1", { tabindex: -1 }, "Nodes"), body);

  function show() {
    const { status, statusProblem } = catalog;
    if (status) body.replaceChildren(numbers(status), ...status.nodes.map(nodeCard));
    else if (refusal()) body.replaceChildren(failure(refusal()));
    else if (statusProblem && statusProblem.status === 403) body.replaceChildren(empty(h("p", {}, "Only operators see this."), h("p", {}, "Sign in with a token that ", h("code", {}, "pegboard token new --admin"), " made.")));
    else if (statusProblem) body.replaceChildren(failure(statusProblem));
    else body.replaceChildren(h("p", { class: "loading", role: "status" }, "Loading"));
  }

  show();
  return { title: "Nodes", view: "nodes", element, close: catalog.subscribe((what) => (what === "status" || what === "state") && show()) };
}
