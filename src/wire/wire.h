/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_WIRE_H
#define PEG_WIRE_WIRE_H

#include "base/arena.h"
#include "base/buf.h"
#include "grpc/status.h"
#include "pegboard/common.h"

/* ---- error --------------------------------------------------------------------------------- */

/* The errors of the registry: each has a name for programs, and a gRPC code. On the wire it is a
 * status with one detail, a goapb.ErrorResponse. */

enum wire_error {
    WIRE_OK,
    WIRE_NOT_FOUND,           /* not_found: no such toolset, tool or call */
    WIRE_VALIDATION,          /* validation_error: a payload, a schema, a name, a key used twice */
    WIRE_MISSING_FIELD,       /* missing_field */
    WIRE_INVALID_LENGTH,      /* invalid_length */
    WIRE_INVALID_PATTERN,     /* invalid_pattern */
    WIRE_INVALID_FORMAT,      /* invalid_format */
    WIRE_INVALID_RANGE,       /* invalid_range */
    WIRE_SERVICE_UNAVAILABLE, /* service_unavailable: no healthy provider; also: no Redis */
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

/* Fills the status and its detail from a message that lives as long as the arena. Both take at most
 * `max_bytes` when they are sent (grpc_call_max_status_bytes()): a message that does not fit is
 * cut, behind a line if it has several, and ends with "… and 7 more". Without memory the detail is
 * left out. */
void wire_error_status(enum wire_error error, peg_str message, size_t max_bytes,
                       struct peg__arena *arena, struct grpc_status *ret_status);
/* The error of any status: the name of its detail (borrowed from the arena), else one for its
 * code. */
enum wire_error wire_error_from_status(const struct grpc_status *status, struct peg__arena *arena,
                                       peg_str *ret_name);
/* The error for a status of our functions: PEG_ESCHEMA, PEG_EPARSE and PEG_EINVAL are validation
 * errors, PEG_ELIMIT a limit, PEG_ENOTFOUND not found, ... */
enum wire_error wire_error_of_status(peg_status status);

/* ---- any ----------------------------------------------------------------------------------- */

/* JSON in a google.protobuf.Any, as goa writes it: a google.protobuf.Value whose string_value is
 * the JSON text. `null` is an absent field. */

struct Google__Protobuf__Any;

#define WIRE_ANY_VALUE_TYPE "type.googleapis.com/google.protobuf.Value"

/* *ret_any lies in the arena, and is NULL for an empty text and for `null`. PEG_ENOMEM. */
peg_status wire_any_write(peg_str json, struct peg__arena *arena,
                          struct Google__Protobuf__Any **ret_any, peg_error *reterr);

/* The JSON text, in the arena and ended by NUL: the string_value unchecked; the text of a value of
 * numbers, lists and structs; else `null`, as goa reads it. PEG_ELIMIT (names
 * PEG_LIMIT_GATEWAY_RESULT_BYTES, or a limit of grpc/message.h), PEG_ENOMEM. */
peg_status wire_any_read(const struct Google__Protobuf__Any *any, struct peg__arena *arena,
                         peg_str *ret_json, peg_error *reterr);

/* ---- frames -------------------------------------------------------------------------------- */

/* A result in chunks, as the frames of Attach carry it: of at most PEG_LIMIT_GATEWAY_CHUNK_BYTES
 * each, and PEG_LIMIT_GATEWAY_RESULT_BYTES together. */

/* What has come so far. Owned; all zero is empty. */
struct wire_chunks {
    struct peg__buf bytes;
    size_t n_before;   /* of them, that are left free for something else: set before the first */
    bool is_too_large; /* the rest is counted and not kept */
};

/* PEG_ELIMIT (E_RESULT_TOO_LARGE; names the limit): all chunks are dropped, and every
 * later one fails too. PEG_ENOMEM keeps what there was. */
peg_status wire_chunks_add(struct wire_chunks *chunks, peg_str chunk, peg_error *reterr);
/* Borrowed until the next change. */
peg_str wire_chunks_view(const struct wire_chunks *chunks);
void wire_chunks_free(struct wire_chunks *chunks);

/* ---- name ---------------------------------------------------------------------------------- */

/* What comes from outside and becomes part of a key, a path or a line of a log. */

/* At most 64 bytes of unchecked text for a log: other than printable ASCII, a blank, a quote or a
 * backslash is '?'; a longer text ends in "...". */
enum { WIRE_PRINTABLE = 68 };
void wire_printable(peg_str text, char ret_text[WIRE_PRINTABLE]);

/* Names of toolsets and tools: [A-Za-z0-9_.:/-]{1,256}. PEG_EINVAL (E_NAME) names `what`, with at
 * most 64 printable bytes of the name. */
peg_status wire_check_name(peg_str name, const char *what, peg_error *reterr);
/* [A-Za-z0-9_-]{8,64}: incarnations. */
peg_status wire_check_incarnation(peg_str incarnation, peg_error *reterr);
/* Ids of others, such as run_id: 1 to 256 bytes of UTF-8 without control characters. */
peg_status wire_check_id(peg_str id, const char *what, peg_error *reterr);
/* ^v?\d+\.\d+\.\d+(-[a-zA-Z0-9.]+)?$, or empty. */
peg_status wire_check_version(peg_str version, peg_error *reterr);
/* Tags: 1 to 256 bytes of UTF-8 without control characters; at most PEG_LIMIT_GATEWAY_TAGS. */
peg_status wire_check_tags(const peg_str *tags, size_t n, peg_error *reterr);

/* ---- time ---------------------------------------------------------------------------------- */

/* Durations, "1m30s", are peg_duration_parse()'s and peg_duration_text()'s. */

enum { WIRE_TIME_TEXT = 32 };

/* RFC 3339 in UTC, "2026-02-22T09:30:00Z" and "2026-02-22T09:30:00.125Z", within the years 1970 to
 * 9999. */
void wire_time_print(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT]);
void wire_time_print_ms(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT]);

/* ---- mcp_name.c: what a tool is called where MCP clients see several toolsets ---- */

enum { WIRE_MCP_NAME = 65 };

/* Depends on the two alone, and no other two have it. False: there is no SHA-256. */
bool wire_mcp_name(peg_str toolset, peg_str tool, char ret_name[WIRE_MCP_NAME]);
/* Does it look like a name that ends with a digest? */
bool wire_mcp_name_has_digest(peg_str name);
/* Does the name begin as those of the toolset's tools do? */
bool wire_mcp_name_may_be_of(peg_str toolset, peg_str name);

#endif
