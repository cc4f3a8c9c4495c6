# SPDX-License-Identifier: Apache-2.0
"""What a call can fail with. A ToolError is the tool's own; every other error is the gateway's, and has a class for
its name (docs/reference/gateway.md lists them)."""

from __future__ import annotations

from typing import Any

import grpc

from . import _protos

NOT_CONNECTED = ("failed to connect", "connections to all backends failing", "name resolution")


class ToolError(Exception):
    """The tool ran and failed: a code for programs, and a message that a model can act on. Raise it in a handler;
    Client.call() raises it again where the tool was called."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PegboardError(Exception):
    """The gateway's error. `started` is False if the tool was not started, so that repeating the call is harmless,
    True if it was or may have been, and None if that is not known."""

    name = "fault"

    def __init__(self, message: str, name: str = "", call_id: str = "", started: bool | None = None,
                 retry_after_ms: int = 0) -> None:
        super().__init__(message)
        self.name = name or type(self).name
        self.message = message
        self.call_id = call_id
        self.started = started
        self.retry_after_ms = retry_after_ms


class NotFound(PegboardError):
    name = "not_found"


class ValidationError(PegboardError):
    """The arguments do not fit the tool's schema, or the request is wrong otherwise."""

    name = "validation_error"


class ServiceUnavailable(PegboardError):
    name = "service_unavailable"


class Overloaded(PegboardError):
    name = "overloaded"


class CallTimeout(PegboardError):
    name = "timeout"


class Canceled(PegboardError):
    name = "canceled"


class OutcomeUnknown(PegboardError):
    """The tool was started, or may have been, and its end is not known: check its effect before you retry."""

    name = "outcome_unknown"


class PermissionDenied(PegboardError):
    name = "permission_denied"


class Unauthenticated(PegboardError):
    name = "unauthenticated"


class Conflict(PegboardError):
    name = "conflict"


class LimitExceeded(PegboardError):
    name = "limit_exceeded"


class Undecided(PegboardError):
    name = "undecided"


_CLASSES: dict[str, type[PegboardError]] = {kind.name: kind for kind in (
    NotFound, ValidationError, ServiceUnavailable, Overloaded, CallTimeout, Canceled, OutcomeUnknown, PermissionDenied,
    Unauthenticated, Conflict, LimitExceeded, Undecided)}
_CLASSES.update((name, ValidationError) for name in (
    "missing_field", "invalid_length", "invalid_pattern", "invalid_format", "invalid_range"))
# Of a status without a name: not the gateway said so, but gRPC on either side, or something between them.
_BY_CODE = {"DEADLINE_EXCEEDED": CallTimeout, "CANCELLED": Canceled, "UNAUTHENTICATED": Unauthenticated,
            "PERMISSION_DENIED": PermissionDenied, "UNAVAILABLE": OutcomeUnknown, "INTERNAL": OutcomeUnknown}


def from_rpc(error: grpc.RpcError) -> PegboardError:
    # Not dict(): grpc.aio's has keys, and iterates over pairs.
    trailers: dict[str, Any] = {key: value for key, value in error.trailing_metadata() or ()}
    message = error.details() or ""
    name = _name_of(trailers.get("grpc-status-details-bin", b""))
    started = {"true": True, "false": False}.get(trailers.get("pegboard-started", ""))
    if name:
        kind = _CLASSES.get(name, PegboardError)
        if started is None and kind not in (OutcomeUnknown, CallTimeout, Canceled, PegboardError):
            started = False  # it was refused
    elif error.code() == grpc.StatusCode.UNAVAILABLE and any(part in message.lower() for part in NOT_CONNECTED):
        kind, started = ServiceUnavailable, False
    else:
        kind = _BY_CODE.get(error.code().name, PegboardError)
    return kind(message, name, trailers.get("pegboard-call-id", ""), started,
                int(trailers.get("pegboard-retry-after-ms", 0)))


def is_lost(error: grpc.RpcError) -> bool:
    """The connection broke, so that nothing is known of the call."""
    return error.code() == grpc.StatusCode.UNAVAILABLE and type(from_rpc(error)) is OutcomeUnknown


def _name_of(details: bytes) -> str:
    for detail in _protos.message("google.rpc.Status").FromString(details).details:
        return str(_protos.message("goapb.ErrorResponse").FromString(detail.value).name)
    return ""
