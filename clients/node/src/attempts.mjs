// SPDX-License-Identifier: Apache-2.0

import { Canceled, CallTimeout, fromStatus, isLost, ServiceUnavailable, ValidationError } from "./errors.mjs";

const STARTING = ["CallTool", "CallToolStream", "StartTool"];
// Of a call that was not started: it is not elsewhere, either.
const DEFINITE = [ValidationError, CallTimeout, Canceled];
const MAX_ASKED = 1000; // calls of which an epoch is kept

/**
 * The nodes that a request is sent to, one after the other. The next one is asked if the last has not started anything;
 * if the connection broke, so that nothing is known, only for what may be asked again: calls that have an identity, and
 * what starts none. A call that is asked for again, here or by the program, names the epoch under which it was first
 * sent: a registry that has forgotten it answers outcome_unknown, and does not start it again.
 */
export class Attempts {
  #link;
  #until;
  #identity; // of a call; null if it has none
  #mayBeRepeated;
  #epoch;
  #asked; // the epoch to be named
  #mayRun = false; // the last attempt
  #lost = null; // the first connection that broke
  #nodes = 0;
  #left = 0;

  constructor(link, verb, request, timeoutMs) {
    const starts = STARTING.includes(verb);
    this.#link = link;
    this.#until = timeoutMs ? Date.now() + timeoutMs : 0;
    this.#identity = starts && request.idempotencyKey ? JSON.stringify([request.toolset, request.idempotencyKey]) : null;
    this.#mayBeRepeated = !starts || this.#identity !== null;
    this.#epoch = link.epoch || "unknown";
    this.#asked = link.asked.get(this.#identity);
    // What waits has been started: a registry with another memory has forgotten it.
    if (verb === "AwaitTool") this.#asked = link.epoch;
  }

  * each(clients) {
    this.#nodes = this.#left = clients.length;
    for (let i = 0; ; i++) {
      this.#left--;
      this.#mayRun = true;
      yield clients[i % clients.length];
    }
  }

  metadata() {
    const made = this.#link.metadata();
    if (this.#asked) made.set("pegboard-asked-epoch", this.#asked);
    return made;
  }

  /** Options of a call of gRPC. */
  deadline() {
    return this.#until ? { deadline: this.#until } : {};
  }

  /** The headers of an answer. */
  note(metadata) {
    const epoch = metadata?.get("pegboard-epoch")[0];
    if (epoch) this.#link.epoch = epoch;
  }

  /** Its end is known. */
  done() {
    this.#mayRun = false;
    this.#link.asked.delete(this.#identity);
  }

  /** Throws what the request ends with, unless another node is to be asked. */
  failed(status) {
    this.note(status.metadata);
    const failure = fromStatus(status);
    this.#mayRun = failure.started !== false;
    // Not now; but perhaps when it was asked for first.
    if (this.#identity && this.#asked && !this.#mayRun) failure.started = null;
    if (isLost(status) && this.#mayBeRepeated) {
      if (!this.#lost) [this.#lost, this.#left] = [failure, this.#nodes];
    } else if (this.#mayRun || !this.#isInDoubt(failure)) {
      throw failure;
    }
    if (this.#left === 0 || (this.#until && Date.now() >= this.#until)) throw this.#lost ?? failure;
  }

  /** At the end of every attempt, also if its loop was left: what may run may be asked for again. */
  keepEpoch() {
    if (!this.#mayRun || !this.#identity) return;
    const { asked } = this.#link;
    this.#asked ??= this.#epoch;
    asked.delete(this.#identity); // to be the last again
    asked.set(this.#identity, this.#asked);
    if (asked.size > MAX_ASKED) asked.delete(asked.keys().next().value);
  }

  /** Does another node have to be asked? A refusal does not show what became of a call whose connection broke. */
  #isInDoubt(refusal) {
    if (refusal instanceof ServiceUnavailable) return true;
    return this.#lost && this.#identity && !DEFINITE.some((kind) => refusal instanceof kind);
  }
}
