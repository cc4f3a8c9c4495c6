// SPDX-License-Identifier: Apache-2.0

export { Client, connect } from "./client.mjs";
export { Definitions } from "./definitions.mjs";
export {
  CallTimeout, Canceled, Conflict, LimitExceeded, NotFound, OutcomeUnknown, Overloaded, PegboardError, PermissionDenied,
  ServiceUnavailable, ToolError, Unauthenticated, Undecided, ValidationError,
} from "./errors.mjs";
export { Provider } from "./provider.mjs";
export { makeProvider, serve } from "./serve.mjs";
export { Tool, tool } from "./tool.mjs";
