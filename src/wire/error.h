/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_ERROR_H
#define PEG_WIRE_ERROR_H

/*
 * The errors of the registry: each has a name, which programs look at, and the gRPC code it
 * travels with. On the wire it is a status with one detail, a goapb.ErrorResponse.
 */

#include "base/arena.h"
#include "grpc/status.h"
#include "pegboard/common.h"

enum wire_error {
    WIRE_OK,
    WIRE_NOT_FOUND,           /* not_found: no such toolset, tool or call */
    WIRE_VALIDATION,          /* validation_error: a payload, a schema, a name, a key used twice */
    WIRE_MISSING_FIELD,       /* missing_field */
    WIRE_INVALID_LENGTH,      /* invalid_length */
    WIRE_INVALID_PATTERN,     /* invalid_pattern */
    WIRE_INVALID_FORMAT,      /* invalid_format */
    WIRE_INVALID_RANGE,       /* invalid_range */
    WIRE_SERVICE_UNAVAILABLE, /* service_unavailable: nobody healthy provides it; also: no Redis */
    WIRE_OVERLOADED,          /* overloaded: a queue is full; a hint when to try again */
    WIRE_TIMEOUT,             /* timeout: it was never started, or a wait was over */
    WIRE_CANCELED,            /* canceled: it was never started */
    WIRE_OUTCOME_UNKNOWN,     /* outcome_unknown: it was started, its end is not known */
    WIRE_PERMISSION_DENIED,   /* permission_denied: another principal's */
    WIRE_UNAUTHENTICATED,     /* unauthenticated */
    WIRE_CONFLICT,            /* conflict: the other kind of toolset has live providers */
    WIRE_LIMIT,               /* limit_exceeded: names the limit */
    WIRE_FAULT,               /* fault: the gateway's own */
    WIRE_UNDECIDED,           /* undecided: a check reached its limit before it had a verdict */
    WIRE_N_ERRORS,
};

/* "validation_error"; static. */
const char *wire_error_name(enum wire_error error);
enum grpc_code wire_error_code(enum wire_error error);
/* By its name; WIRE_FAULT for one that is not in the table. */
enum wire_error wire_error_of(peg_str name);

/* Fills the status, with its detail, from words that live as long as the arena does. Message and
 * details take at most `max_bytes` when they are sent (grpc_call_max_status_bytes()): words that do
 * not fit are cut, behind a line if they have several, and end with "… and 7 more". The detail with
 * the name is always whole; if there is no memory for it, it is left out. */
void wire_error_status(enum wire_error error, peg_str message, size_t max_bytes,
                       struct peg__arena *arena, struct grpc_status *ret_status);
/* How many failures these lines of a report are: a line "and 7 more" counts for 7. */
size_t wire_error_count_more(peg_str lines);
/* What a status says, whoever sent it: the name of the detail if there is one (borrowed from the
 * arena), else one that stands for its code. */
enum wire_error wire_error_from_status(const struct grpc_status *status, struct peg__arena *arena,
                                       peg_str *ret_name);
/* The gateway's word for what a function of ours failed with: PEG_ESCHEMA, PEG_EPARSE and
 * PEG_EINVAL are validation errors, PEG_ELIMIT a limit, PEG_ENOTFOUND not found, ... */
enum wire_error wire_error_of_status(peg_status status);

#endif
