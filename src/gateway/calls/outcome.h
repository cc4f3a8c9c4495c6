/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_OUTCOME_H
#define PEG_GATEWAY_CALLS_OUTCOME_H

/*
 * How a call ended: what the register `t` holds, and what every caller is told. Written once.
 */

#include "base/arena.h"
#include "base/blob.h"
#include "gateway/telemetry/metrics.h"
#include "wire/wire.h"

struct Pegboard__V1__CallToolResponse;
struct Pegboard__V1__Result;

/* Strings are borrowed: from the blob that it was read from, or from whoever made it. */
struct gw_outcome {
    enum gw_outcome_kind outcome; /* not GW_REFUSED */
    /* For an end that the gateway made: which error, and its words. WIRE_OK: the tool's own. */
    enum wire_error error;
    peg_str message;
    bool was_started;       /* a provider was handed the call, or may have been */
    bool is_stand_in;       /* for an end that there was no room for: the letters have that */
    int64_t retry_after_ms; /* overloaded: a hint; else 0 */
    /* GW_RESULT and a tool's GW_ERROR: a packed pegboard.v1.CallToolResponse without call_id. */
    peg_str response;
    struct peg__blob *blob; /* the one that it was read from, borrowed; else NULL */
};

struct peg__blob *gw_outcome_write(const struct gw_outcome *terminal);
/* The same without copying a large result: its bytes begin with GW_OUTCOME_CAPACITY of no meaning,
 * then comes the result's JSON, then what else is in the response, packed. Takes their memory;
 * NULL: they were not whole. */
enum {
    GW_OUTCOME_RESULT = 5, /* where the JSON begins in its response */
    GW_OUTCOME_CAPACITY = PEG__BLOB_CAPACITY + 16 + GW_OUTCOME_RESULT,
};
struct peg__blob *gw_outcome_of_result(struct peg__buf *bytes, size_t result_len);
/* False: not one of ours, which a register that somebody else wrote may be. */
bool gw_outcome_read(const struct peg__blob *blob, struct gw_outcome *ret_terminal);

#endif
