// SPDX-License-Identifier: Apache-2.0
// A gateway with toolsets, a browser, and scenarios in TAP. Everything here waits for what it waits for, for as long as
// a slow machine may need.

import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
export const WAIT_MS = Number(process.env.PEG_CONSOLE_WAIT_MS || 60000);

export function check(truth, ...about) {
  if (!truth) throw new Error(about.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" "));
}

export async function until(truth, what) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const found = await truth();
    if (found) return found;
    check(Date.now() < end, "still not:", what);
    await new Promise((resolve) => { setTimeout(resolve, 30); });
  }
}

// ---- processes ----

const children = new Set();

function run(program, args, cwd) {
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "ignore"] });
  children.add(child);
  child.on("exit", () => children.delete(child));
  child.said = "";
  child.stdout.on("data", (data) => { child.said += data; });
  return child;
}

export function stop(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.on("exit", resolve);
    child.kill(signal);
  });
}

export async function stopAll() {
  await Promise.all([...children].map((child) => stop(child, "SIGKILL")));
}

// ---- a gateway ----

const MANIFEST = `
toolset: workshop
description: Tools that do odd things, one by one
version: 2.1.0
tags: [test]
tools:
  - name: order
    description: Says what it was told
    input_schema:
      type: object
      properties:
        name: {type: string, minLength: 2, description: Who orders}
        amount: {type: integer, minimum: 1, maximum: 9, default: 2}
        express: {type: boolean}
        address:
          type: object
          properties: {street: {type: string}, zip: {type: string, pattern: "^[0-9]{4}$"}}
          required: [street, zip]
        notes: {type: array, items: {type: string, maxLength: 5}}
        pay:
          oneOf:
            - {title: By card, type: object, properties: {card: {type: string}}, required: [card], additionalProperties: false}
            - {title: Later, const: later}
      required: [name, address]
    command: [cat]
  - name: fail
    description: Never works
    input_schema: {type: object}
    command: [sh, -c, "echo out of wood >&2; exit 3"]
  - name: saw
    description: Writes while it runs, until there is a file
    input_schema: {type: object}
    output: text
    command: [sh, -c, "echo first cut; while [ ! -e go ]; do sleep 0.05; done; echo last cut"]
    timeout: 120s
  - name: wait
    description: Waits until there is a file
    input_schema: {type: object}
    command: [sh, -c, "while [ ! -e never ]; do sleep 0.05; done"]
    timeout: 300s
  - name: mark
    description: Leaves a file
    input_schema: {type: object}
    destructive: true
    command: [sh, -c, "touch marked; echo marked"]
`;

export const BAD = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"'>&lt;b&gt;`;

const HOSTILE = {
  description: BAD, version: "1.0.0", tags: [BAD.slice(0, 60)],
  tools: [{
    name: "trap", title: BAD, description: BAD, tags: [BAD.slice(0, 60)], read_only: true, examples: [{ [BAD]: BAD }],
    input_schema: {
      type: "object", title: BAD, properties: {
        [BAD]: { type: "string", title: BAD, description: BAD, default: BAD, examples: [BAD] },
        pick: { enum: [BAD, "b"], description: BAD }, one: { oneOf: [{ const: BAD }, { type: "object", title: BAD, properties: { [BAD]: {} } }] },
      },
    },
    output_schema: { type: "object", properties: { [BAD]: { description: BAD } } },
  }],
};

export class World {
  constructor(pegboard, fixture) {
    this.pegboard = pegboard;
    this.fixture = fixture;
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "pegboard-console-"));
  }

  path(name) { return path.join(this.folder, name); }

  has(name) { return fs.existsSync(this.path(name)); }

  async serve(...more) {
    this.gateway = run(this.pegboard, ["serve", "--addr", this.address || "127.0.0.1:0", "--store", "memory", "--data-dir", this.path("data"),
      "--log-file", this.path("log"), ...more], this.folder);
    const found = await until(() => /listens on (\S+)\n/.exec(this.gateway.said), "the gateway listens");
    this.address = found[1];
    this.origin = `http://${this.address}`;
  }

  provide(...args) {
    return run(this.pegboard, ["provide", "--registry", this.address, ...args], this.folder);
  }

  async start() {
    fs.writeFileSync(this.path("workshop.yaml"), MANIFEST);
    await this.serve();
    this.handy = this.provide(path.join(ROOT, "examples", "demo", "tools.yaml"));
    this.workshop = this.provide(this.path("workshop.yaml"));
    this.asks = this.provide("--toolset", "asks", "--mcp", "--", this.fixture);
    const put = await this.ask("PUT", "/v1/toolsets/hostile", HOSTILE);
    check(put.status === 200, put.status, await put.text());
    for (const name of ["handy", "workshop", "asks"]) await this.isHealthy(name);
  }

  ask(method, at, body, headers = {}) {
    return fetch(this.origin + at, { method, headers: { ...headers, ...(body ? { "content-type": "application/json" } : {}) },
      body: body && JSON.stringify(body) });
  }

  async get(at) { return (await this.ask("GET", at)).json(); }

  isHealthy(name) {
    return until(async () => (await this.get(`/v1/toolsets/${name}`)).health?.state === "healthy", `${name} is healthy`);
  }

  async end() {
    await stopAll();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What stands between the page and the gateway, and can be cut: {origin, cut(), mend(), close()}. */
export async function makeWire(to) {
  const { hostname, port } = new URL(to);
  const open = new Set();
  let isCut = false;
  const server = net.createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = net.connect(Number(port), hostname);
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const destroyAll = () => open.forEach((one) => one.destroy());
  return { origin: `http://127.0.0.1:${server.address().port}`, cut: () => { isCut = true; destroyAll(); }, mend: () => { isCut = false; },
    close: () => { server.close(); destroyAll(); } };
}

// ---- TAP ----

export async function runAll(scenarios) {
  let failed = 0;
  console.log(`1..${scenarios.length}`);
  for (const [i, [name, scenario]] of scenarios.entries()) {
    const began = Date.now();
    try {
      await scenario();
      console.log(`ok ${i + 1} - ${name}`);
    } catch (error) {
      failed++;
      console.log(`# ${String(error.stack || error).replaceAll("\n", "\n# ")}`);
      console.log(`not ok ${i + 1} - ${name}`);
    }
    console.log(`# ${Date.now() - began} ms`);
  }
  return failed;
}
