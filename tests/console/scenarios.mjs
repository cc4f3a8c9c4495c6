// SPDX-License-Identifier: Apache-2.0
// The console in Chromium, headless: scenarios.mjs PEGBOARD MCP_FIXTURE BROWSER NODE_MODULES

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { BAD, check, makeWire, ROOT, runAll, stop, until, WAIT_MS, World } from "./world.mjs";

const [pegboard, fixture, executablePath, modules] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(path.join(modules, "playwright-core", "index.mjs")));
const AXE = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");
const PICTURES = process.env.PEG_CONSOLE_PICTURES;

const world = new World(pegboard, fixture);
const scenarios = [];
const scenario = (name, fn) => scenarios.push([name, fn]);
// evil.test is a name of the attacker's own that leads to this machine.
const browser = await chromium.launch({ executablePath, timeout: WAIT_MS,
  args: [...(process.getuid() === 0 ? ["--no-sandbox"] : []), "--host-resolver-rules=MAP evil.test 127.0.0.1"] });

// ---- pages ----

/** A page whose requests and complaints are noted: fn(page). */
async function withPage(options, fn) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.setDefaultTimeout(WAIT_MS);
  page.requests = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  // What the browser says of an answer that is not 2xx is no complaint: such answers are shown.
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.on("request", (request) => page.requests.push(request.url()));
  page.on("dialog", (dialog) => complaints.push(`a dialog: ${dialog.message()}`) && dialog.dismiss());
  try {
    await fn(page);
    if (!options.mayComplain) check(!complaints.length, "the page complained:", complaints);
    const elsewhere = page.requests.filter((url) => !url.startsWith(`${world.origin}/`) && !url.startsWith("data:"));
    if (!options.mayComplain) check(!elsewhere.length, "requests to others:", elsewhere);
  } finally {
    await context.close();
  }
}

const open = async (page, at = "") => {
  await page.goto(`${world.origin}/#/${at}`);
  await page.waitForSelector("#main h1");
};
const toolAt = (toolset, tool) => `toolsets/${toolset}/${tool}`;
async function openTool(page, toolset, tool) {
  await open(page, toolAt(toolset, tool));
  await page.waitForSelector("#main form");
}
const field = (page, label) => page.getByLabel(label, { exact: false }).first();
const run = (page) => page.getByRole("button", { name: "Run", exact: true }).click();
/** What an MCP server does not call harmless counts as destructive. */
const runSurely = async (page) => {
  await run(page);
  await page.getByText("Press again to run it").waitFor();
  await run(page);
};
const ended = (page, text) => page.locator(".call-head .pill", { hasText: text }).waitFor();

// ---- views ----

scenario("toolsets are listed, found by words, and lead to their tools", () => withPage({}, async (page) => {
  await open(page);
  for (const name of ["asks", "handy", "hostile", "workshop"]) await page.getByRole("link", { name, exact: true }).waitFor();
  await page.getByText("4 toolsets, 3 healthy").waitFor();
  await page.fill("#filter", "weather of a city");
  await page.locator("tbody tr", { hasText: "handy" }).getByRole("link", { name: "forecast" }).waitFor();
  check(await page.locator("tbody tr").count() === 1, "others are filtered out");
  await page.fill("#filter", "xyzzy");
  await page.getByText("Nothing matches").waitFor();
  await page.fill("#filter", "");
  await page.getByRole("link", { name: "handy", exact: true }).click();
  await page.getByRole("heading", { name: "5 tools" }).waitFor();
  await page.getByRole("link", { name: "forecast" }).click();
  await page.getByRole("heading", { name: "forecast" }).waitFor();
  check(await page.title() === "forecast · handy · Pegboard", await page.title());
  await page.goBack();
  await page.getByRole("heading", { name: "5 tools" }).waitFor();
}));

scenario("a tool is called by its form, and its result is shown", () => withPage({}, async (page) => {
  await openTool(page, "handy", "forecast");
  check(await field(page, "days").inputValue() === "3", "the default is there");
  await field(page, "city").fill("Bergen");
  await field(page, "unit").selectOption("fahrenheit");
  await run(page);
  await ended(page, "result");
  await page.locator(".json-tree", { hasText: '"Bergen"' }).waitFor();
  await page.getByRole("tab", { name: "JSON" }).click();
  const shown = JSON.parse(await page.locator(".result pre").textContent());
  check(shown.city === "Bergen" && shown.unit === "fahrenheit" && shown.days.length === 3, shown);
  await page.getByText("Call it from elsewhere").click();
  const snippet = await page.locator(".snippet pre").textContent();
  check(snippet.startsWith(`curl '${world.origin}/v1/toolsets/handy/tools/forecast/calls'`) && snippet.includes('"city":"Bergen"'), snippet);
  await page.getByText("Schema", { exact: true }).click();
  await page.locator(".schema li", { hasText: "city" }).getByText("required").first().waitFor();
}));

scenario("errors stand at the fields they belong to, also in parts of parts", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "order");
  await field(page, "amount").fill("12");
  await field(page, "zip").fill("abc");
  await page.locator("form summary", { hasText: "notes" }).click();
  await page.getByRole("button", { name: "Add an item" }).click();
  await field(page, "Item 1").fill("too long");
  await run(page);
  const errorOf = (label) => page.locator(".field", { has: page.getByLabel(label, { exact: false }) }).last().locator("> .error");
  await errorOf("amount").getByText("must be at most 9").waitFor();
  check(await errorOf("name").textContent() === "This is missing.", "a member that is missing");
  check(await errorOf("street").textContent() === "This is missing.", "a member of a member");
  check((await errorOf("zip").textContent()).includes("^[0-9]{4}$"), "a pattern");
  check((await errorOf("Item 1").textContent()).includes("5"), "an item");
  check(await field(page, "amount").getAttribute("aria-invalid") === "true");
  check(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")) === "true", "the first has the focus");
  await page.getByText("It did not start the tool").waitFor();

  await field(page, "name").fill("Ada");
  await field(page, "amount").fill("seven");
  await field(page, "street").fill("Main");
  await field(page, "zip").fill("1234");
  await field(page, "Item 1").fill("soon");
  await field(page, "pay").selectOption("By card");
  await field(page, "card").fill("42");
  await run(page);
  await errorOf("amount").getByText("integer").waitFor();
  check(await errorOf("name").isHidden(), "what is right has no error");
  await field(page, "amount").fill("7");
  await run(page);
  await ended(page, "result");
  await page.getByRole("tab", { name: "JSON" }).click();
  const told = JSON.parse(await page.locator(".result pre").textContent());
  const expected = { name: "Ada", address: { street: "Main", zip: "1234" }, amount: 7, notes: ["soon"], pay: { card: "42" } };
  check(JSON.stringify(Object.entries(told).sort()) === JSON.stringify(Object.entries(expected).sort()), told);
}));

scenario("an error stands at its item, also behind one that is empty and not sent", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "order");
  await page.locator("form summary", { hasText: "notes" }).click();
  for (let i = 0; i < 2; i++) await page.getByRole("button", { name: "Add an item" }).click();
  await field(page, "Item 2").fill("too long");
  await run(page);
  await page.locator("[aria-invalid=true]").first().waitFor();
  check(await field(page, "Item 2").getAttribute("aria-invalid") === "true", "the second");
  check(await field(page, "Item 1").getAttribute("aria-invalid") !== "true", "the first");
}));

scenario("a tool whose schema contains itself is shown, and its parts open one by one", () => withPage({}, async (page) => {
  const more = { $ref: "#/$defs/more" };
  const $defs = { list: { type: "array", items: { $ref: "#/$defs/list" } }, more: { anyOf: [more, { type: "array", items: more }] },
    both: { allOf: [{ $ref: "#/$defs/both" }, { $ref: "#/$defs/both" }] } };
  const properties = { next: { $ref: "#" }, list: { $ref: "#/$defs/list" }, more, both: { $ref: "#/$defs/both" } };
  const input_schema = { type: "object", properties, required: ["next"], $defs };
  const put = await world.ask("PUT", "/v1/toolsets/circles", { tools: [{ name: "turn", description: "Turns", input_schema }] });
  check(put.status === 200, await put.text());
  try {
    await openTool(page, "circles", "turn");
    await page.getByText("Schema", { exact: true }).click();
    await page.locator(".schema summary", { hasText: "next" }).first().click();
    await page.locator(".schema .schema li", { hasText: "array of array" }).first().waitFor();
  } finally {
    await world.ask("DELETE", "/v1/toolsets/circles");
  }
}));

scenario("arguments can be written as JSON at any time, and numbers keep their digits", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "order");
  await field(page, "name").fill("Ada");
  await page.getByRole("button", { name: "Edit as JSON" }).click();
  const area = page.getByLabel("Arguments as JSON");
  check(JSON.parse(await area.inputValue()).name === "Ada");
  await area.fill("{");
  await run(page);
  await page.getByText("This is no JSON").waitFor();
  await area.fill('{"name":"Ada","address":{"street":"A","zip":"1"},"amount":12345678901234567890}');
  await run(page);
  await page.locator(".form > .error", { hasText: "but is 12345678901234567890" }).waitFor();
  await page.getByRole("button", { name: "Edit as a form" }).click();
  check(await field(page, "amount").inputValue() === "12345678901234567890");
  check(await field(page, "zip").inputValue() === "1", "what is optional is filled, too");
}));

scenario("a tool that fails says why", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "fail");
  await run(page);
  await ended(page, "error");
  await page.locator(".notice.bad", { hasText: "out of wood" }).getByText("E_COMMAND_EXIT").waitFor();
}));

scenario("output is there while the tool runs", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "saw");
  await run(page);
  await page.locator(".output", { hasText: "first cut" }).waitFor();
  await page.locator(".call-head .pill", { hasText: "running" }).waitFor();
  fs.writeFileSync(world.path("go"), "");
  await ended(page, "result");
  check((await page.locator(".output").textContent()).includes("last cut"));
}));

scenario("a destructive tool is run when one is sure", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "mark");
  await run(page);
  await page.getByText("Press again to run it").waitFor();
  check(!world.has("marked"), "it ran at once");
  await run(page);
  await ended(page, "result");
  check(world.has("marked"));
  fs.rmSync(world.path("marked"));
}));

scenario("what a tool asks is answered where it was called", () => withPage({}, async (page) => {
  await openTool(page, "asks", "ask");
  await runSurely(page);
  await page.getByText("Who are you?").waitFor();
  await page.locator(".question").getByLabel("name").fill("Ada");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await ended(page, "result");
  await page.locator(".result", { hasText: "hello Ada" }).waitFor();
}));

scenario("a gate of a call made elsewhere is found below Calls, and answered", () => withPage({}, async (page) => {
  const made = await world.ask("POST", "/v1/toolsets/asks/tools/ask/calls?ask=true", {}, { prefer: "respond-async, wait=120", "idempotency-key": "gate-1" });
  const id = (await made.json()).call_id;
  await open(page, "calls");
  await page.locator("tr", { hasText: id.slice(0, 12) }).getByRole("link", { name: "Answer" }).click();
  await page.getByText("Who are you?").waitFor();
  await page.locator(".question").getByLabel("name").fill("Grace");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.locator(".result", { hasText: "hello Grace" }).waitFor();
}));

scenario("calls are listed while they run and when they have ended, and can be canceled", () => withPage({}, async (page) => {
  await openTool(page, "workshop", "wait");
  await run(page);
  const id = await page.locator(".call-head a").textContent();
  await page.locator("nav").getByRole("link", { name: "Calls" }).click();
  const row = page.locator("tr", { hasText: id });
  await row.getByText("running").waitFor();
  await row.getByRole("button", { name: "Cancel" }).click();
  await until(async () => /canceled|error|outcome unknown/.test(await row.textContent()), "it has ended");
  await row.getByRole("link").first().click();
  await page.getByRole("heading", { name: `Call ${id}` }).waitFor();
  await page.locator(".facts", { hasText: "workshop" }).waitFor();
}));

scenario("a call without an identity offers no Cancel, and its page asks about once a second", () => withPage({}, async (page) => {
  const client = new AbortController();
  const made = fetch(`${world.origin}/v1/toolsets/workshop/tools/wait/calls`, { method: "POST", body: "{}", signal: client.signal,
    headers: { "content-type": "application/json" } }).catch(() => {});
  try {
    await open(page, "calls");
    const row = page.locator("tr", { hasText: "workshop / wait" }).filter({ hasText: "running" });
    await row.waitFor();
    check(await row.getByRole("button").count() === 0, "it can be canceled in the list");
    await row.getByRole("link").first().click();
    await page.getByText("can't be canceled by its id").waitFor();
    check(await page.getByRole("button", { name: "Cancel", exact: true }).filter({ visible: true }).count() === 0, "it can be canceled on its page");
    const begun = () => page.evaluate(() => performance.getEntriesByType("resource").filter((one) => one.name.includes("?wait=")).map((one) => one.startTime));
    const times = await until(async () => (await begun()).length > 2 && begun(), "it asked three times");
    check(times[2] - times[0] > 1900, "it asks too often:", times);
  } finally {
    client.abort();
    await made;
  }
}));

scenario("a node tells about itself", () => withPage({}, async (page) => {
  await open(page, "nodes");
  await page.locator(".card", { hasText: world.address }).getByText("serving").waitFor();
  await page.locator(".tile", { hasText: "Toolsets" }).getByText("4", { exact: true }).waitFor();
  await page.locator(".tile svg polyline").waitFor({ state: "attached" });
}));

scenario("changes show by themselves", () => withPage({}, async (page) => {
  await open(page);
  const row = page.locator("tbody tr", { has: page.getByRole("link", { name: "handy", exact: true }) });
  await row.getByText("healthy", { exact: true }).waitFor();
  await stop(world.handy);
  await row.getByText("unhealthy").waitFor();
  await page.waitForSelector("tr.changed");
  world.handy = world.provide(path.join(ROOT, "examples", "demo", "tools.yaml"));
  await row.getByText("healthy", { exact: true }).waitFor();
  await world.ask("PUT", "/v1/toolsets/passing", { tools: [{ name: "t", description: "", input_schema: { type: "object" } }] });
  await page.getByRole("link", { name: "passing" }).waitFor();
  await world.ask("DELETE", "/v1/toolsets/passing");
  await page.getByRole("link", { name: "passing" }).waitFor({ state: "detached" });
}));

scenario("a page that lost the gateway says so, and catches up by itself", async () => {
  const wire = await makeWire(world.origin);
  try {
    await withPage({ mayComplain: true }, async (page) => {
      await page.goto(wire.origin);
      await page.locator("#link-state", { hasText: "Live" }).waitFor();
      wire.cut();
      await page.locator("#link-state", { hasText: "Reconnecting" }).waitFor();
      await world.ask("PUT", "/v1/toolsets/meanwhile", { tools: [{ name: "t", description: "", input_schema: { type: "object" } }] });
      wire.mend();
      await page.getByRole("link", { name: "meanwhile" }).waitFor();
      await page.locator("#link-state", { hasText: "Live" }).waitFor();
      wire.cut();
      await page.locator("#link-state", { hasText: "Reconnecting" }).waitFor();
      await world.ask("DELETE", "/v1/toolsets/meanwhile");
      wire.mend();
      await page.getByRole("link", { name: "meanwhile" }).waitFor({ state: "detached" });
    });
  } finally {
    wire.close();
  }
});

// ---- ways to use it ----

scenario("everything works with the keyboard alone", () => withPage({}, async (page) => {
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  await open(page);
  await page.getByRole("link", { name: "handy", exact: true }).waitFor();
  await press("?");
  await page.getByRole("dialog").getByText("Filter toolsets").waitFor();
  await press("Escape", "/");
  await until(() => page.evaluate(() => document.activeElement.id === "filter"), "the filter has the focus");
  await page.keyboard.type("handy");
  await until(async () => await page.locator("tbody tr").count() === 1, "only one is left");
  await press("Tab", "Enter");
  await page.getByRole("heading", { name: "5 tools" }).waitFor();
  await until(() => page.evaluate(() => document.activeElement.tagName === "H1"), "the title has the focus");
  await press("Tab", "Enter");
  await page.waitForSelector("#main form");
  const focused = () => page.evaluate(() => document.querySelector(`label[for="${document.activeElement.id}"]`)?.textContent || "");
  for (let i = 0; i < 20 && !(await focused()).startsWith("city"); i++) await press("Tab");
  await page.keyboard.type("Oslo");
  await press("Tab");
  check((await focused()).startsWith("days"), await focused());
  await press("Control+a");
  await page.keyboard.type("1");
  await press("Control+Enter");
  await ended(page, "result");
  await press("Escape", "g", "c"); // out of the field
  await page.getByRole("heading", { name: "Calls", exact: true }).waitFor();
  await press("g", "n");
  await page.getByRole("heading", { name: "Nodes" }).waitFor();
  await page.locator(".skip").focus();
  await press("Enter");
  await until(() => page.evaluate(() => document.activeElement.id === "main" && location.hash === "#/nodes"), "the view stays and has the focus");
}));

const VIEWS = [["", "tbody tr"], ["toolsets/handy", ".cards"], [toolAt("handy", "forecast"), "form.card"], [toolAt("workshop", "order"), "form.card"],
  [toolAt("hostile", "trap"), "form.card"], ["calls", "table, .empty"], ["nodes", ".tiles"], ["nothing", "h1"]];

scenario("no view scrolls sideways on a phone", () => withPage({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }, async (page) => {
  for (const [view, sign] of VIEWS) {
    await open(page, view);
    await page.waitForSelector(sign);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= 360, view, "is wide:", width);
  }
  await openTool(page, "handy", "forecast");
  await field(page, "city").fill("Lima");
  await run(page);
  await ended(page, "result");
}));

// What differs in the dark is the contrast.
for (const [colorScheme, rules] of [["light", ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]], ["dark", ["color-contrast"]]]) {
  scenario(`axe finds nothing serious in the ${colorScheme}`, () => withPage({ colorScheme, bypassCSP: true }, async (page) => {
    const findings = [];
    await page.addInitScript(AXE);
    for (const [view, sign] of VIEWS) {
      await open(page, view);
      await page.waitForSelector(sign);
      for (const more of await page.locator("main details.more").all()) await more.evaluate((one) => { one.open = true; });
      const result = await page.evaluate((runOnly) => window.axe.run({ runOnly }), rules);
      for (const one of result.violations) {
        if (["serious", "critical"].includes(one.impact)) findings.push([view, one.id, one.nodes.map((node) => node.html.slice(0, 200))]);
      }
    }
    check(!findings.length, findings);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
    check(colorScheme === "dark" ? Math.max(...background) < 60 : Math.min(...background) > 200, "the page is", background);
  }));
}

scenario("a gateway with tokens asks for one, and keeps it for the tab only", async () => {
  const other = new World(pegboard, fixture);
  const token = execFileSync(pegboard, ["token", "new", "--token-file", other.path("tokens"), "--admin", "ada"]).toString().trim().split("\n").pop();
  await other.serve("--token-file", other.path("tokens"));
  try {
    await withPage({ mayComplain: true }, async (page) => {
      await page.goto(other.origin);
      await page.getByRole("dialog").waitFor();
      await page.locator("#link-state", { hasText: "Signed out" }).waitFor();
      await page.keyboard.press("Escape");
      await page.locator("nav").getByRole("link", { name: "Calls" }).click();
      await until(() => page.requests.filter((url) => url.includes("/v1/calls")).length > 2, "the view asks again and is refused");
      check(await page.getByRole("dialog").count() === 0, "the dialog came back by itself");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByLabel("Token").fill("wrong");
      await page.keyboard.press("Enter");
      await page.getByText("does not know this token").waitFor();
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
      await page.locator("nav").getByRole("link", { name: "Toolsets" }).click();
      await page.getByText("No toolsets yet").waitFor();
      await page.reload();
      await page.getByText("No toolsets yet").waitFor();
      const second = await page.context().newPage();
      await second.goto(other.origin);
      await second.getByRole("dialog").waitFor({ timeout: WAIT_MS });
      check(!page.requests.some((url) => url.includes(token)), "the token is in a URL");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("dialog").waitFor();
    });
  } finally {
    await stop(other.gateway, "SIGKILL");
    fs.rmSync(other.folder, { recursive: true, force: true });
  }
});

// ---- attacks ----

scenario("what a provider wrote stays text everywhere", () => withPage({}, async (page) => {
  await open(page);
  await page.locator(".about", { hasText: BAD }).waitFor();
  await open(page, "toolsets/hostile");
  await page.locator(".card p", { hasText: BAD }).waitFor();
  await openTool(page, "hostile", "trap");
  await page.locator("h1", { hasText: BAD }).waitFor();
  check(await page.locator("form input, form textarea").first().inputValue() === BAD, "the default");
  for (const more of await page.locator("details").all()) await more.evaluate((one) => { one.open = true; });
  await page.getByRole("button", { name: "Example 1" }).click();
  for (const tab of await page.getByRole("tab").all()) await tab.click();
  await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 100); })); // a handler would have run by now
  const strange = await page.evaluate(() => document.querySelectorAll("main img, main script, main b, main iframe, [onerror]").length);
  check(strange === 0, "elements of a provider's:", strange);
  check(!(await page.title()).includes("owned"), await page.title());
}));

scenario("not even code of the page can make elements of text", () => withPage({ mayComplain: true }, async (page) => {
  await open(page);
  const refused = await page.evaluate(() => {
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
      return false;
    } catch {
      return true;
    }
  });
  check(refused, "trusted types are not enforced");
}));

const ATTACK = (target) => `<!doctype html><title>evil</title><iframe name="f"></iframe><iframe id="framed" src="${target}/"></iframe>
<form id="form" method="post" action="${target}/v1/toolsets/workshop/tools/mark/calls" enctype="text/plain" target="f"><input name='{"a' value='":1}'></form>
<script>
const call = "${target}/v1/toolsets/workshop/tools/mark/calls";
async function attack() {
  const seen = {};
  const attempt = async (name, fn) => { try { seen[name] = await fn(); } catch (error) { seen[name] = "refused: " + error.name; } };
  await attempt("no-cors", async () => (await fetch(call, { method: "POST", mode: "no-cors", body: "{}" })).type);
  await attempt("text", async () => (await fetch(call, { method: "POST", mode: "no-cors", body: new Blob(["{}"], { type: "text/plain" }) })).type);
  await attempt("json", async () => (await fetch(call, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).status);
  await attempt("read", async () => (await fetch("${target}/v1/toolsets")).status);
  await attempt("beacon", async () => navigator.sendBeacon(call, new Blob(["{}"], { type: "text/plain" })));
  await attempt("delete", async () => (await fetch("${target}/v1/toolsets/workshop", { method: "DELETE" })).status);
  await attempt("events", () => new Promise((resolve) => {
    const source = new EventSource("${target}/v1/watch");
    source.onmessage = source.onopen = () => resolve("open");
    source.onerror = () => resolve("refused");
  }));
  document.getElementById("form").submit();
  return seen;
}
</script>`;

scenario("a page of another origin can call nothing and read nothing", async () => {
  const server = http.createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(ATTACK(world.origin));
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const before = (await world.get("/v1/status")).outcomes;
  try {
    // Another port of the same machine, and another name: the browser takes them for another origin, and another site.
    for (const host of ["127.0.0.1", "localhost", "evil.test"]) {
      await withPage({ mayComplain: true }, async (page) => {
        await page.goto(`http://${host}:${server.address().port}/`);
        const posted = page.waitForResponse((one) => one.url().includes("/mark/calls") && one.frame().name() === "f");
        const seen = await page.evaluate("attack()");
        for (const name of ["json", "read", "delete", "events"]) check(String(seen[name]).startsWith("refused"), host, name, seen);
        check((await posted).status() === 403, host, "the form");
        check(!page.frames().some((frame) => frame.url() === `${world.origin}/`), host, "the console is in a frame");
      });
    }
  } finally {
    server.close();
  }
  check(!world.has("marked"), "the tool ran");
  check((await world.get("/v1/status")).outcomes.result === before.result, "a call was made");
  await world.isHealthy("workshop");
});

scenario("a name that leads here does not make a page this gateway's own (DNS rebinding)", () => withPage({ mayComplain: true }, async (page) => {
  await page.goto(`http://evil.test:${new URL(world.origin).port}/`);
  await page.locator("#link-state", { hasText: "Refused" }).waitFor();
  await page.locator(".notice", { hasText: "Host" }).waitFor();
  const seen = await page.evaluate(async () => {
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    return [(await fetch("/v1/toolsets/workshop/tools/mark/calls", json)).status, (await fetch("/v1/toolsets")).status,
      (await fetch("/v1/toolsets/workshop", { method: "DELETE" })).status];
  });
  check(seen.every((status) => status === 403), seen);
  check(!world.has("marked"), "the tool ran");
}));

// ---- how much, how soon ----

scenario("it is small, and a second visit costs next to nothing", () => withPage({}, async (page) => {
  await open(page);
  await page.getByRole("link", { name: "handy", exact: true }).waitFor();
  const loaded = await page.evaluate(() => {
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter((one) => !one.name.includes("/v1/"));
    return { n: files.length, sent: files.reduce((sum, one) => sum + one.transferSize, 0), whole: files.reduce((sum, one) => sum + one.decodedBodySize, 0),
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime };
  });
  console.log(`# first visit: ${loaded.n} files, ${loaded.sent} bytes sent, ${loaded.whole} unpacked; first paint after ${Math.round(loaded.paint)} ms`);
  check(loaded.n >= 15 && loaded.sent < 100_000 && loaded.whole < 110_000, loaded);
  await page.reload();
  await page.getByRole("link", { name: "handy", exact: true }).waitFor();
  const again = await page.evaluate(() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    sent: performance.getEntriesByType("resource").filter((one) => one.name.includes("/console/")).reduce((sum, one) => sum + one.transferSize, 0) }));
  console.log(`# second visit: ${again.sent} bytes sent; first paint after ${Math.round(again.paint)} ms`);
  check(again.sent < loaded.sent / 3, again, loaded);
}));

// ---- pictures for the documentation ----

async function keep(page, name) {
  const folder = PICTURES || world.path("pictures");
  fs.mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, name) });
  check(fs.statSync(path.join(folder, name)).size > 5000, name, "is empty");
}

scenario("pictures of each view are made for the documentation", () => withPage({ viewport: { width: 1100, height: 700 } }, async (page) => {
  await world.ask("DELETE", "/v1/toolsets/hostile");
  await open(page);
  await page.getByText("3 toolsets, 3 healthy").waitFor();
  await keep(page, "console-toolsets.png");
  await openTool(page, "handy", "forecast");
  await field(page, "city").fill("Bergen");
  await run(page);
  await ended(page, "result");
  await keep(page, "console-tool.png");
  await openTool(page, "asks", "ask");
  await runSurely(page);
  await page.getByText("Who are you?").waitFor();
  await keep(page, "console-gate.png");
  await open(page, "calls");
  await page.waitForSelector("tbody tr");
  await keep(page, "console-calls.png");
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page, "nodes");
  await page.locator(".tile svg polyline").waitFor({ state: "attached" });
  await keep(page, "console-nodes-dark.png");
}));

let failed = 1;
try {
  await world.start();
  const only = process.env.PEG_CONSOLE_ONLY; // a part of a name, while working on one
  failed = await runAll(scenarios.filter(([name]) => !only || name.includes(only)));
} finally {
  await browser.close();
  await world.end();
}
process.exit(failed ? 1 : 0);
