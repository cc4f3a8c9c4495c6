// SPDX-License-Identifier: Apache-2.0
// How soon the console shows something in a browser, and how much it loads:
//
//   console.mjs ORIGIN TOOLSET BROWSER N
//
// Run where node_modules is. N times: in a context without a cache (cold), then on another page of it (warm). Prints a
// line of JSON for each. Times are those of the page itself, since its navigation began.

import { createRequire } from "node:module";
import path from "node:path";

const [origin, toolset, executablePath, n] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.cwd(), "package.json"))("playwright-core");
const WAIT_MS = 60000;

const browser = await chromium.launch({ executablePath, timeout: WAIT_MS,
  args: process.getuid() === 0 ? ["--no-sandbox"] : [] });

/** Notes when the name of the toolset is first on the page: what a person came for. Runs in the page. */
function noteList(name) {
  const look = () => {
    const main = document.querySelector("main");
    if (window.listMs || !main || !main.textContent.includes(name)) return;
    window.listMs = performance.now();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
}

/** Bytes as they came over the network, heads too: of the console's files, and of what it asks the API, but for the stream
 * of changes, which does not end. `pending` has the paths that are still loaded. */
async function countBytes(page) {
  const client = await page.context().newCDPSession(page);
  const pending = new Map();
  const bytes = { files: 0, api: 0, n_files: 0 };
  client.on("Network.requestWillBeSent", (event) => {
    const { pathname } = new URL(event.request.url);
    if (pathname !== "/v1/watch") pending.set(event.requestId, pathname);
  });
  client.on("Network.loadingFinished", (event) => {
    const pathname = pending.get(event.requestId);
    if (!pathname) return;
    const isApi = pathname.startsWith("/v1/");
    bytes[isApi ? "api" : "files"] += event.encodedDataLength;
    bytes.n_files += isApi ? 0 : 1;
    pending.delete(event.requestId);
  });
  await client.send("Network.enable");
  return { bytes, pending };
}

const readTimes = () => ({ list_ms: window.listMs,
  paint_ms: performance.getEntriesByName("first-paint")[0]?.startTime,
  content_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime });

/** One visit, from the navigation to the list of toolsets. The page notes its times itself, so it is asked seldom. */
async function visit(context, kind) {
  const page = await context.newPage();
  const { bytes, pending } = await countBytes(page);
  await page.addInitScript(noteList, toolset);
  await page.goto(origin, { waitUntil: "load", timeout: WAIT_MS });
  const end = Date.now() + WAIT_MS;
  let times;
  do {
    if (Date.now() > end) throw new Error(`the console is not there: ${JSON.stringify([times, ...pending.values()])}`);
    await new Promise((resolve) => { setTimeout(resolve, 200); });
    times = await page.evaluate(readTimes);
  } while (!times.list_ms || !times.paint_ms || !times.content_ms || pending.size > 0);
  await page.close();
  console.log(JSON.stringify({ kind, ...times, ...bytes }));
}

// The first page of a browser pays for its start.
await (await browser.newPage()).goto("about:blank");
for (let i = 0; i < Number(n); i++) {
  const context = await browser.newContext();
  await visit(context, "cold");
  await visit(context, "warm");
  await context.close();
}
await browser.close();
