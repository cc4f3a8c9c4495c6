// SPDX-License-Identifier: Apache-2.0

// A provider over plain gRPC, with grpc-js and nothing of Pegboard but registry.proto. Copy it; tools.mjs shows its use.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, grpc, metadata } from "./registry.mjs";

const CHUNK_BYTES = 64 << 10; // of a result in one frame
const DELTAS = /[^]{1,16384}/gu; // characters of at most four bytes: 64 KiB
const { INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED, FAILED_PRECONDITION, UNIMPLEMENTED, OK } = grpc.status;
const REFUSED = [INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED, FAILED_PRECONDITION, UNIMPLEMENTED];

/** What a handler throws when the tool fails: a code for programs, and words. */
export class ToolError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const keyOf = ({ callId, attempt }) => `${callId} ${attempt}`;

export class Provider {
  constructor(address, registration, handlers, credits = 8) {
    Object.assign(this, { address, registration, handlers, credits });
    this.incarnation = randomUUID(); // of this run, however often it attaches
    this.nHellos = 0;
    this.calls = new Map(); // handed to us, and not acknowledged
    this.stream = null; // to the gateway; null before its Welcome
    this.lastStream = null;
    this.isDraining = false; // we leave
    this.isLeaving = false; // the gateway of this stream does
    this.isLastCallSeen = false; // of this stream
    this.wasWelcome = false; // ever
    this.delayMs = 500;
  }

  /** Until drain() was called and what ran then was answered or given up. Throws if the gateway refuses us. */
  async serve() {
    const client = connect(this.address);
    try {
      while (!this.isDraining || this.calls.size) {
        const ended = await this.attach(client);
        if (ended.code !== OK) console.error(`${this.registration.name}: ${ended.details}`);
        if (REFUSED.includes(ended.code) && !this.wasWelcome) throw new Error(ended.details); // asking again would not help
        if (this.isDraining && !this.calls.size) return;
        await sleep(this.delayMs * (0.5 + Math.random() / 2));
        this.delayMs = Math.min(2 * this.delayMs, 2000); // far below lease_ms: what we run is waited for
      }
    } finally {
      client.close();
    }
  }

  /** One stream, from Hello to its end. */
  attach(client) {
    const stream = this.lastStream = client.Attach(metadata());
    this.isLeaving = false;
    this.isLastCallSeen = false;
    this.nHellos += 1;
    // Every call without an Ack: what is not listed we never got, and another may run it.
    const running = [...this.calls.values()].map(({ frame: { callId, attempt, route, tool } }) =>
      ({ callId, attempt, route, tool }));
    stream.write({ hello: { toolset: this.registration.name, incarnation: this.incarnation, credits: this.credits,
      running, number: this.nHellos, registration: this.registration } });
    return new Promise((resolve) => {
      stream.on("data", (frame) => this.take(frame, stream));
      stream.on("error", () => {}); // "status" tells it, too
      stream.on("status", (status) => {
        this.stream = null;
        resolve(status);
      });
    });
  }

  take(frame, stream) {
    switch (frame.frame) {
      case "welcome": return this.begin(stream);
      case "ping": return this.say({ pong: { pingId: frame.ping.pingId } });
      case "call": return this.start(frame.call);
      case "cancel": return this.calls.get(keyOf(frame.cancel))?.abort.abort(); // its result is sent all the same
      case "ack":
        this.calls.delete(keyOf(frame.ack));
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

  begin(stream) {
    Object.assign(this, { stream, wasWelcome: true, delayMs: 500 });
    console.log(`${this.registration.name} is offered at ${this.address}`);
    for (const call of this.calls.values()) this.sendResult(call); // what ended meanwhile, or was not acknowledged
    if (this.isDraining) this.say({ drain: {} });
  }

  // ---- calls ----

  start(frame) {
    const known = this.calls.get(keyOf(frame));
    if (known) return this.sendResult(known); // never twice
    const { callId, attempt } = frame;
    if (this.isDraining || this.isLeaving) return this.say({ nak: { callId, attempt, reason: "REASON_DRAINING" } });
    const call = { frame, abort: new AbortController(), outcome: null };
    this.calls.set(keyOf(frame), call);
    this.run(call);
  }

  async run(call) {
    const { callId, attempt, tool, payload } = call.frame;
    const face = {
      frame: call.frame,
      signal: call.abort.signal, // aborted: nobody waits for the result any more
      say: (stream, text) => { // to those who listen while it runs
        for (const [delta] of text.matchAll(DELTAS)) this.say({ delta: { callId, attempt, stream, delta } });
      },
    };
    try {
      const result = await this.handlers[tool](JSON.parse(payload.toString() || "{}"), face);
      call.outcome = { text: Buffer.from(JSON.stringify(result)) };
    } catch (error) {
      const isOurs = error instanceof ToolError;
      if (!isOurs) console.error(error);
      call.outcome = { text: Buffer.alloc(0), error: isOurs ? { code: error.code, message: error.message }
        : { code: "internal", message: `the tool broke: ${error.name}` } };
    }
    this.sendResult(call);
  }

  /** In chunks. It is kept until the gateway has acknowledged it. */
  sendResult({ frame: { callId, attempt }, outcome }) {
    if (!outcome) return;
    const { text, error } = outcome;
    for (let at = 0; at < (text.length || 1); at += CHUNK_BYTES) {
      const more = at + CHUNK_BYTES < text.length;
      this.say({ result: { callId, attempt, chunk: text.subarray(at, at + CHUNK_BYTES), more,
        ...(error && !more ? { error } : {}) } });
    }
  }

  say(frame) {
    this.stream?.write(frame);
  }

  // ---- the end ----

  /** No new calls, please; serve() returns when those that run have been answered, or after so long. */
  drain(ms = 30000) {
    this.isDraining = true;
    this.say({ drain: {} }); // answered with "drained"
    setTimeout(() => this.giveUp(), ms).unref();
  }

  /** A tool does not end, or a gateway does not acknowledge: that must not keep us for ever. */
  giveUp() {
    if (this.calls.size) console.error(`${this.registration.name}: ${this.calls.size} calls are given up`);
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
