/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_BLOCKING_H
#define PEG_GRPC_CLIENT_BLOCKING_H

/*
 * Calls for programs that wait: commands, tests. A channel on a loop that runs in its own thread,
 * used from any other.
 *
 *   grpc_channel_new_wait(loop, target, NULL, &channel, reterr);
 *   grpc_call_wait(channel, &method, &request, NULL, &answer, reterr);
 *   if (answer.status.code == GRPC_OK) ... answer.message ...
 *   grpc_answer_free(&answer);
 *   grpc_channel_free_wait(channel);
 *
 * All of them: any thread but the loop's own, which they would wait for in vain: PEG_ESTATE.
 */

#include "grpc/server/rpc.h"

/* Owned. */
struct grpc_answer {
    struct grpc_status status;
    /* What method->output describes, or a const peg_str * if that is NULL; NULL if none came. */
    const void *message;
    struct grpc_metadata headers;
    struct grpc_metadata trailers;
    struct peg__arena arena; /* in which all of it lies */
};

/* As grpc_channel_new(). */
peg_status grpc_channel_new_wait(struct net_loop *loop, peg_str target,
                                 const struct grpc_channel_options *options,
                                 struct grpc_channel **ret_channel, peg_error *reterr);
/* As grpc_channel_free(). */
struct grpc_channel *grpc_channel_free_wait(struct grpc_channel *channel);

/* One request, one answer. A call that fails is an answer with its status; a failure here is one
 * of the caller, as with grpc_rpc_unary(), or PEG_ENOMEM. options->parent must be NULL. */
peg_status grpc_call_wait(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          struct grpc_answer *ret_answer, peg_error *reterr);
void grpc_answer_free(struct grpc_answer *answer);

#endif
