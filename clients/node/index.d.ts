// SPDX-License-Identifier: Apache-2.0

/** A JSON Schema. */
export type Schema = Record<string, unknown>;

// ---- tools ----

/** What a handler sees of its call. */
export interface Call {
  readonly id: string;
  readonly attempt: number;
  readonly tool: string;
  /** The principal. */
  readonly caller: string;
  readonly deadline: Date;
  readonly metadata: Record<string, string>;
  /** Aborted: no caller waits any more. Stop early. */
  readonly signal: AbortSignal;
  /** To callers who stream. Nothing waits for them: what they do not take in time is left out. */
  say(text: string, stream?: string): void;
  /** Sends JSON beside the result, to the caller's program and never to a model. Nothing of it is sent if the call fails. */
  addServerData(kind: string, audience: string, data: unknown): void;
}

export interface ToolDefinition {
  /** 1 to 256 of A-Z a-z 0-9 _ . : / - */
  name: string;
  description?: string;
  /** Of the arguments, an object. Text is JSON, and registered as it is: its numbers keep all of their digits. */
  input?: Schema | string;
  /** Without it results are not checked. */
  output?: Schema | string;
  tags?: string[];
  /** May be started again if it is not known whether it ran. */
  idempotent?: boolean;
  /** Changes nothing; may be started again, too. */
  readOnly?: boolean;
  /** May remove or overwrite what was there. */
  destructive?: boolean;
  /** Changes something, but only adds. */
  additive?: boolean;
  /** Of one call, if the caller sets none. */
  timeoutMs?: number;
  /** Of the tool; the toolset's without it. */
  version?: string;
  /** Arguments, as an array or the JSON of one. */
  examples?: unknown[] | string;
}

/**
 * Returns the result. A generator yields text for callers who stream, and its result is what it returns, or else all
 * of the text. Throw a ToolError to tell the caller what is wrong.
 */
export type Handler<Arguments, Result> = (args: Arguments, call: Call) =>
  Result | Promise<Result> | Generator<string, Result | void, undefined> | AsyncGenerator<string, Result | void, undefined>;

export class Tool<Arguments = any, Result = any> {
  constructor(definition: ToolDefinition, handler: Handler<Arguments, Result>);
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly output: Schema | null;
  readonly handler: Handler<Arguments, Result>;
}

export function tool<Arguments = any, Result = any>(
  definition: ToolDefinition, handler: Handler<Arguments, Result>): Tool<Arguments, Result>;

// ---- offering them ----

export interface LinkOptions {
  /** Shown to the gateway. [PEGBOARD_TOKEN] */
  token?: string;
  /** Paths of PEM files. [PEGBOARD_TLS_CA, PEGBOARD_TLS_CERT, PEGBOARD_TLS_KEY; none: without TLS] */
  tlsCa?: string;
  tlsCert?: string;
  tlsKey?: string;
}

export interface ProviderOptions extends LinkOptions {
  /** Where the gateway is, or several of one registry. [PEGBOARD_REGISTRY, or 127.0.0.1:9090] */
  registry?: string | string[];
  description?: string;
  version?: string;
  tags?: string[];
  /** Calls at once. [8] */
  concurrency?: number;
  /** Gets a line when the toolset is offered, and what goes wrong. [console.error] */
  log?: (line: string) => void;
}

export interface ServeOptions extends ProviderOptions {
  /** How long to wait for what runs, at the end. [30000] */
  drainMs?: number;
  /** Ends it as SIGTERM does. */
  signal?: AbortSignal;
}

/** Offers tools until SIGTERM or SIGINT, then finishes what runs. Throws a PegboardError if the gateway refuses it. */
export function serve(toolset: string, tools: Tool[], options?: ServeOptions): Promise<void>;

/** For programs that have their own way to stop. */
export function makeProvider(toolset: string, tools: Tool[], options?: ProviderOptions): Provider;

export class Provider {
  private constructor();
  serve(): Promise<void>;
  drain(ms?: number): void;
}

// ---- calling them ----

export interface WaitOptions {
  /** [30000]; 0: the tool's own. */
  timeoutMs?: number;
  /** Cancels the call. */
  signal?: AbortSignal;
}

export interface StartOptions {
  timeoutMs?: number;
  /** Asking again with the same key is attaching to what was started. */
  idempotencyKey?: string;
  /** Handed to the provider as it is. */
  metadata?: Record<string, string>;
}

export type CallOptions = WaitOptions & StartOptions;
/** Text is taken as JSON: models hand arguments over like that. */
export type CallArguments = object | string | null | undefined;

/** What a tool sent beside its result, for the program that called it. */
export interface ServerData {
  kind: string;
  audience: string;
  data: unknown;
}

export type StreamEvent =
  | { type: "started"; callId: string }
  | { type: "output"; stream: string; delta: string }
  | { type: "result"; value: any; callId: string; attached: boolean };

export interface Toolset {
  name: string;
  description: string;
  version: string;
  tags: string[];
  toolCount: number;
  isHealthy: boolean;
}

export type Vendor = "openai" | "openai-responses" | "anthropic" | "gemini";

/** What goes under "tools" of a request to a model. */
export class Definitions extends Array<any> {
  /** Which tool the model means by a name; undefined: it has made it up. */
  resolve(name: string): { toolset: string; tool: string } | undefined;
}

/** A client of the gateway at `registry`; of several, the first that can be reached. */
export function connect(registry?: string | string[], options?: LinkOptions): Client;

/** Every method may throw a PegboardError. */
export class Client {
  private constructor();
  close(): void;
  /** Throws a ToolError if the tool ran and failed. */
  call<Result = any>(toolset: string, tool: string, args?: CallArguments, options?: CallOptions): Promise<Result>;
  /** The same, with what the tool sent beside the result. */
  callWithServerData<Result = any>(toolset: string, tool: string, args?: CallArguments, options?: CallOptions):
    Promise<{ value: Result; serverData: ServerData[] }>;
  /** The call is canceled when the loop over it is left. */
  stream(toolset: string, tool: string, args?: CallArguments, options?: CallOptions):
    AsyncGenerator<StreamEvent, void, undefined>;
  /** For long calls: the id, for wait(). */
  start(toolset: string, tool: string, args?: CallArguments, options?: StartOptions): Promise<string>;
  /** Throws a CallTimeout if it goes on. */
  wait<Result = any>(callId: string, options?: WaitOptions): Promise<Result>;
  cancel(callId: string): Promise<void>;
  /** Those that have all of the tags, by name. */
  toolsets(tags?: string[]): Promise<Toolset[]>;
  /** Best first. */
  search(query: string, limit?: number): Promise<Toolset[]>;
  /** Definitions of tools, of all toolsets if none are listed. */
  tools(vendor: Vendor, toolsets?: string[]): Promise<Definitions>;
  /** Calls the tool that a model has called by its name in the definitions. */
  callDefinition<Result = any>(definitions: Definitions, name: string, args?: CallArguments, options?: CallOptions):
    Promise<Result>;
}

// ---- errors ----

/** The tool ran and failed: a code for programs, and a message that a model can act on. */
export class ToolError extends Error {
  constructor(code: string, message: string);
  code: string;
}

/** The gateway's: `code` is its name in docs/reference/gateway.md. */
export class PegboardError extends Error {
  code: string;
  callId: string;
  /** False: the tool was not started. True: it was, or may have been. Null: that is not known. */
  started: boolean | null;
  retryAfterMs: number;
}

export class NotFound extends PegboardError {}
export class ValidationError extends PegboardError {}
export class ServiceUnavailable extends PegboardError {}
export class Overloaded extends PegboardError {}
export class CallTimeout extends PegboardError {}
export class Canceled extends PegboardError {}
/** The tool was started, or may have been, and its end is not known: check its effect before you retry. */
export class OutcomeUnknown extends PegboardError {}
export class PermissionDenied extends PegboardError {}
export class Unauthenticated extends PegboardError {}
export class Conflict extends PegboardError {}
export class LimitExceeded extends PegboardError {}
export class Undecided extends PegboardError {}
