/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_CLIENT_CALL_H
#define PEG_REMOTE_CLIENT_CALL_H

/* One call of a client, while it is made. */

#include "remote/client/remote.h"

/* A CallToolRequest and what it points to: the request of the caller, and the arena. */
struct remote__sending {
    Pegboard__V1__CallToolRequest message;
    Pegboard__V1__CallMeta meta;
    Pegboard__V1__MetadataEntry *entries;
    Pegboard__V1__MetadataEntry **entry_pointers;
    bool has_identity; /* asking again attaches to it */
    struct peg__arena arena;
};

/* `outlives_ctx`: the deadline of the context is not the call's. PEG_EINVAL, PEG_ELIMIT (E_CLIENT,
 * E_NAME), PEG_ENOMEM. The arena is the caller's to free, whatever this returns. */
peg_status remote__sending_fill(struct remote__sending *sending, const peg_remote_request *request,
                                peg_ctx *ctx, bool outlives_ctx, peg_error *reterr);

/* When a context stops before there is an answer: not started if nothing was sent, else unknown. */
peg_status remote__result_stopped(const struct remote__ask *ask, const peg_error *why,
                                  bool was_sent, peg_remote_result **ret_result, peg_error *reterr);

#endif
