// SPDX-License-Identifier: Apache-2.0

// What a call can fail with. A ToolError is the tool's own; every other error is the gateway's, and has a class for its
// name (docs/reference/gateway.md lists them).

import { grpc, protos } from "./link.mjs";

export class ToolError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ToolError";
    this.code = code;
  }
}

export class PegboardError extends Error {
  constructor(message, { code = "fault", callId = "", started = null, retryAfterMs = 0 } = {}) {
    super(message);
    this.name = new.target.name;
    Object.assign(this, { code, callId, started, retryAfterMs });
  }
}

export class NotFound extends PegboardError {}
export class ValidationError extends PegboardError {}
export class ServiceUnavailable extends PegboardError {}
export class Overloaded extends PegboardError {}
export class CallTimeout extends PegboardError {}
export class Canceled extends PegboardError {}
export class OutcomeUnknown extends PegboardError {}
export class PermissionDenied extends PegboardError {}
export class Unauthenticated extends PegboardError {}
export class Conflict extends PegboardError {}
export class LimitExceeded extends PegboardError {}
export class Undecided extends PegboardError {}

const CLASSES = {
  not_found: NotFound, validation_error: ValidationError, missing_field: ValidationError,
  invalid_length: ValidationError, invalid_pattern: ValidationError, invalid_format: ValidationError,
  invalid_range: ValidationError, service_unavailable: ServiceUnavailable, overloaded: Overloaded,
  timeout: CallTimeout, canceled: Canceled, outcome_unknown: OutcomeUnknown, permission_denied: PermissionDenied,
  unauthenticated: Unauthenticated, conflict: Conflict, limit_exceeded: LimitExceeded, undecided: Undecided,
};
const { DEADLINE_EXCEEDED, CANCELLED, UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE, INTERNAL } = grpc.status;
// Of a status without a name: not the gateway said so, but gRPC on either side, or something between them.
const BY_CODE = {
  [DEADLINE_EXCEEDED]: "timeout", [CANCELLED]: "canceled", [UNAUTHENTICATED]: "unauthenticated",
  [PERMISSION_DENIED]: "permission_denied", [UNAVAILABLE]: "outcome_unknown", [INTERNAL]: "outcome_unknown",
};
const NOT_CONNECTED = /no connection established|failed to connect|name resolution/i;
const MAY_HAVE_STARTED = [OutcomeUnknown, CallTimeout, Canceled, PegboardError];

/** Of a status of gRPC. */
export function fromStatus(status) {
  const trailer = (name) => status.metadata?.get(name)[0];
  const given = nameOf(trailer("grpc-status-details-bin"));
  const isUnreachable = !given && status.code === UNAVAILABLE && NOT_CONNECTED.test(status.details);
  const code = given || (isUnreachable ? "service_unavailable" : BY_CODE[status.code] ?? "fault");
  const Kind = CLASSES[code] ?? PegboardError;
  let started = { true: true, false: false }[trailer("pegboard-started")] ?? null;
  if (isUnreachable || (given && started === null && !MAY_HAVE_STARTED.includes(Kind))) started = false;
  return new Kind(status.details, { code, callId: trailer("pegboard-call-id") ?? "", started,
    retryAfterMs: Number(trailer("pegboard-retry-after-ms") ?? 0) });
}

/** The connection broke, so that nothing is known of the call. */
export function isLost(status) {
  return status.code === UNAVAILABLE && fromStatus(status) instanceof OutcomeUnknown;
}

function nameOf(details) {
  if (!details) return "";
  const [detail] = protos.google.rpc.Status.deserialize(details).details;
  return detail ? protos.goapb.ErrorResponse.deserialize(detail.value).name : "";
}
