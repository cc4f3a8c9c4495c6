// SPDX-License-Identifier: Apache-2.0

// The provider's side of Attach: docs/providers.md has the protocol.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fromStatus } from "./errors.mjs";
import { grpc } from "./link.mjs";
import { run } from "./run.mjs";

const CHUNK_BYTES = 64 << 10; // of a result in one frame
const KEPT_BYTES_MAX = 64 << 20; // of results that a gateway does not acknowledge
const DELTAS = /[^]{1,16384}/gu; // characters of at most four bytes: 64 KiB
const FIRST_DELAY_MS = 500;
const WELCOME_MS = 20_000; // a gateway that has not welcomed us by then is passed over
const LAST_DELAY_MS = 2000; // far below lease_ms: what we run is waited for
const FINAL = ["validation_error", "limit_exceeded", "permission_denied", "unauthenticated", "conflict"];
const UNREGISTERED = ["not_found", "permission_denied"];

const keyOf = ({ callId, attempt }) => `${callId} ${attempt}`;

export class Provider {
  constructor(link, registration, tools, { concurrency = 8, log = console.error } = {}) {
    Object.assign(this, { link, registration, log, credits: concurrency });
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.incarnation = randomUUID(); // of this run, however often it attaches
    this.nHellos = 0;
    this.delayMs = FIRST_DELAY_MS;
    this.calls = new Map(); // handed to us, and without an Ack
    this.keptBytes = 0; // of their results
    this.stream = null; // to the gateway; null before its Welcome
    this.lastStream = null;
    this.wakes = new AbortController(); // a pause is over when it is aborted
    this.isDraining = false; // we leave
    this.isWelcome = false; // on this stream
    this.isLeaving = false; // the gateway of this stream does
    this.isLastCallSeen = false; // of this stream
  }

  /** Until drain() was called and what ran then was answered or given up. Throws a PegboardError if the gateway refuses
   * us, and would do so again. */
  async serve() {
    const { addresses } = this.link;
    while (!this.isDraining || this.calls.size) {
      const address = addresses[this.nHellos % addresses.length];
      const client = this.link.open(address);
      const status = await this.attach(client, address);
      client.close();
      if (this.isDraining && !this.calls.size) return;
      if (status.code !== grpc.status.OK && !this.isLeaving) this.judge(status);
      if (this.nHellos % addresses.length === 0) await this.pause(); // all have been tried
    }
  }

  judge(status) {
    const error = fromStatus(status);
    this.log(`${this.registration.name}: ${error.message} (${error.code})`);
    if ((this.isWelcome ? UNREGISTERED : FINAL).includes(error.code)) throw error;
    if (status.code === grpc.status.UNIMPLEMENTED) throw error;
  }

  async pause() {
    const ms = this.delayMs * (0.5 + Math.random() / 2);
    this.delayMs = Math.min(2 * this.delayMs, LAST_DELAY_MS);
    await sleep(ms, null, this.isDraining ? {} : { signal: this.wakes.signal }).catch(() => {});
  }

  /** One stream, from Hello to its end. */
  attach(client, address) {
    const stream = this.lastStream = client.Attach(this.link.metadata());
    this.isWelcome = false;
    this.isLeaving = false;
    this.isLastCallSeen = false;
    this.nHellos += 1;
    // Every call without an Ack: what is not listed we never got, and another may run it.
    const running = [...this.calls.values()].map(({ frame: { callId, attempt, route, tool } }) =>
      ({ callId, attempt, route, tool }));
    stream.write({ hello: { toolset: this.registration.name, incarnation: this.incarnation, credits: this.credits,
      running, number: this.nHellos, registration: this.registration } });
    const patience = setTimeout(() => {
      if (this.isWelcome) return;
      this.log(`${this.registration.name}: ${address} does not answer`);
      stream.cancel();
    }, WELCOME_MS);
    return new Promise((resolve) => {
      let isOver = false;
      const end = (status) => { // it is read no more: only then comes the next Hello
        isOver = true;
        clearTimeout(patience);
        this.stream = null;
        resolve(status);
      };
      stream.on("data", (frame) => {
        if (isOver) return;
        this.take(frame, stream, address);
        if (this.isLeaving && this.link.addresses.length > 1) {
          stream.cancel(); // the next one gets a list that is true, and the results
          end({ code: grpc.status.OK });
        }
      });
      stream.on("error", () => {}); // "status" tells it, too
      stream.on("status", end);
    });
  }

  take(frame, stream, address) {
    switch (frame.frame) {
      case "welcome": return this.begin(stream, address);
      case "ping": return this.send({ pong: { pingId: frame.ping.pingId } });
      case "call": return this.start(frame.call);
      case "cancel": return this.calls.get(keyOf(frame.cancel))?.abort.abort(); // its result is sent all the same
      case "ack":
        this.forget(keyOf(frame.ack));
        return this.leaveIfIdle();
      case "drain":
        this.isLeaving = true; // it finishes what runs here, and serve() attaches again
      // falls through: no call comes behind either
      case "drained":
        this.isLastCallSeen = true;
        return this.leaveIfIdle();
      default: // of a later version
    }
  }

  begin(stream, address) {
    Object.assign(this, { stream, isWelcome: true, delayMs: FIRST_DELAY_MS });
    this.log(`${this.registration.name} is offered at ${address}`);
    for (const call of this.calls.values()) this.sendResult(call); // what ended meanwhile, or was not acknowledged
    if (this.isDraining) this.send({ drain: {} });
  }

  // ---- calls ----

  start(frame) {
    const { callId, attempt } = frame;
    const known = this.calls.get(keyOf(frame));
    if (known) return this.sendResult(known); // never twice
    const reason = this.reasonAgainst(frame);
    if (reason) return this.send({ nak: { callId, attempt, reason } });
    const call = { frame, abort: new AbortController(), outcome: null, serverData: [] };
    this.calls.set(keyOf(frame), call);
    this.run(call);
  }

  reasonAgainst({ tool }) {
    if (this.isDraining || this.isLeaving) return "REASON_DRAINING";
    if (this.keptBytes > KEPT_BYTES_MAX) return "REASON_OVERLOADED";
    return this.tools.has(tool) ? null : "REASON_OUTDATED";
  }

  async run(call) {
    const { frame } = call;
    call.outcome = await run(this.tools.get(frame.tool), frame.payload, this.faceOf(call), this.log);
    if (this.calls.get(keyOf(frame)) !== call) return; // given up
    this.keptBytes += call.outcome.text.length;
    this.sendResult(call);
  }

  /** What a handler sees. */
  faceOf({ frame, abort, serverData }) {
    const { callId, attempt, tool, caller, deadlineUnixMs } = frame;
    return {
      id: callId,
      attempt,
      tool,
      caller, // the principal
      frame,
      deadline: new Date(deadlineUnixMs),
      metadata: Object.fromEntries(frame.metadata.map(({ key, value }) => [key, value])),
      signal: abort.signal, // aborted: no caller waits for the result any more
      say: (text, stream = "output") => { // to callers who stream; what they do not take in time is left out
        for (const [delta] of text.matchAll(DELTAS)) {
          if (!this.stream?.writableNeedDrain) this.send({ delta: { callId, attempt, stream, delta } });
        }
      },
      addServerData: (kind, audience, data) => { // to the caller's program, beside the result
        serverData.push({ kind, audience, data: Buffer.from(JSON.stringify(data ?? null)) });
      },
    };
  }

  forget(key) {
    this.keptBytes -= this.calls.get(key)?.outcome?.text.length ?? 0;
    this.calls.delete(key);
  }

  /** In chunks. It is kept until the gateway has acknowledged it. */
  sendResult({ frame: { callId, attempt }, outcome, serverData }) {
    if (!outcome) return;
    const { text, error } = outcome;
    for (let at = 0; at < (text.length || 1); at += CHUNK_BYTES) {
      const more = at + CHUNK_BYTES < text.length;
      this.send({ result: { callId, attempt, chunk: text.subarray(at, at + CHUNK_BYTES), more,
        ...(more ? {} : error ? { error } : { serverData }) } });
    }
  }

  send(frame) {
    this.stream?.write(frame);
  }

  // ---- the end ----

  /** No new calls, please; serve() returns when those that run have been answered, or after so long. */
  drain(ms = 30000) {
    if (this.isDraining) return;
    this.isDraining = true;
    this.send({ drain: {} }); // answered with "drained"
    if (!this.stream && !this.calls.size) this.lastStream?.cancel(); // it waits for a Welcome
    this.wakes.abort();
    setTimeout(() => this.giveUp(), ms).unref();
  }

  /** A tool does not end, or a gateway does not acknowledge: that must not keep us for ever. */
  giveUp() {
    if (this.calls.size) this.log(`${this.registration.name}: ${this.calls.size} calls are given up`);
    for (const call of this.calls.values()) call.abort.abort();
    this.calls.clear();
    this.lastStream?.cancel();
  }

  leaveIfIdle() {
    const { stream } = this;
    if (!stream || this.calls.size || !this.isLastCallSeen) return;
    this.stream = null;
    stream.end(); // in good order
  }
}
