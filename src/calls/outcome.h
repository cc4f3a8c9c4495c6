/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_OUTCOME_H
#define PEG_CALLS_OUTCOME_H

/*
 * How a call ended: what its register RESULT holds, and what every caller gets. Written once.
 */

#include "base/blob.h"
#include "base/buf.h"
#include "pegboard/common.h"

enum calls_outcome_kind {
    CALLS_KIND_RESULT,
    CALLS_KIND_ERROR,
    CALLS_KIND_TIMEOUT,
    CALLS_KIND_CANCELED,
    CALLS_KIND_UNKNOWN,
    CALLS_KIND_REFUSED, /* never admitted */
    CALLS_N_KINDS,
};

/* Why a call, a provider or a result was not taken, or how a call ended that has no result. Where
 * RPCs are answered each has its error of the registry. */
enum calls_error {
    CALLS_OK,
    CALLS_NOT_FOUND,           /* no such toolset, tool or call */
    CALLS_VALIDATION,          /* the payload, or an identity that was used for another call */
    CALLS_UNDECIDED,           /* a check reached its limit before it had a verdict */
    CALLS_LIMIT,               /* the message names the limit */
    CALLS_OVERLOADED,          /* a queue is full, or there is no memory: try again later */
    CALLS_SERVICE_UNAVAILABLE, /* no healthy provider, or the node shuts down */
    CALLS_TIMEOUT,             /* it was never started, or a wait was over */
    CALLS_CANCELED,            /* it was never started */
    CALLS_OUTCOME_UNKNOWN,     /* it was started, its end is not known */
    CALLS_PERMISSION_DENIED,   /* another principal's */
    CALLS_UNAUTHENTICATED,     /* the principal is not known any more */
    CALLS_FAULT,               /* the gateway's own */
    CALLS_CONFLICT,            /* there is an answer already */
    CALLS_N_ERRORS,
};

/* Strings are borrowed: from the blob that it was read from, or from its maker. */
struct calls_outcome {
    enum calls_outcome_kind kind; /* not CALLS_KIND_REFUSED */
    /* For an end that the gateway made: which error, and its words. CALLS_OK: the tool's own. */
    enum calls_error error;
    peg_str message;
    bool was_started;       /* a provider was handed the call, or may have been */
    bool is_placeholder;    /* for an end that there was no room for: the messages have that */
    int64_t retry_after_ms; /* overloaded: a hint; else 0 */
    /* CALLS_KIND_RESULT and a tool's CALLS_KIND_ERROR: a packed pegboard.v1.CallToolResponse
     * without call_id. */
    peg_str response;
    struct peg__blob *blob; /* the one that it was read from, borrowed; else NULL */
};

struct peg__blob *calls_outcome_write(const struct calls_outcome *outcome);
/* Written in place of an outcome of `len` bytes that there is no room for: a caller that asks later
 * learns that there was one, and the call is not started again. NULL: no memory. */
struct peg__blob *calls_outcome_placeholder(uint32_t attempt, size_t len, bool has_quotas);
/* The same without copying a large result: its bytes begin with CALLS_OUTCOME_CAPACITY of no
 * meaning, then comes the result's JSON, then what else is in the response, packed. Takes their
 * memory; NULL: they were not whole. */
enum {
    CALLS_OUTCOME_RESULT = 5, /* where the JSON begins in its response */
    CALLS_OUTCOME_CAPACITY = PEG__BLOB_CAPACITY + 16 + CALLS_OUTCOME_RESULT,
};
struct peg__blob *calls_outcome_of_result(struct peg__buf *bytes, size_t result_len);
/* False: not one of ours, which a register that somebody else wrote may be. */
bool calls_outcome_read(const struct peg__blob *blob, struct calls_outcome *ret_outcome);

#endif
