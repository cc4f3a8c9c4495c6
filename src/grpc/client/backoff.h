/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_BACKOFF_H
#define PEG_GRPC_CLIENT_BACKOFF_H

/* How long to wait between attempts to connect: longer after each failure, and never the same for
 * all clients of a server that has come back. Knows no clock. A value. */

#include "pegboard/common.h"

struct grpc_backoff {
    int64_t first_ms;
    int64_t max_ms;
    int64_t next_ms; /* without jitter */
    uint64_t random; /* its state */
};

/* 0 means PEG_LIMIT_GRPC_BACKOFF_MS and PEG_LIMIT_GRPC_BACKOFF_MAX_MS. The same seed gives the
 * same waits. */
void grpc_backoff_init(struct grpc_backoff *backoff, int64_t first_ms, int64_t max_ms,
                       uint64_t seed);
/* The wait after one more failure: the first, then 1.6 times the one before, at most max_ms; up
 * to 20 % more or less than that. */
int64_t grpc_backoff_take_ms(struct grpc_backoff *backoff);
/* The same, with another greatest wait this time. */
int64_t grpc_backoff_take_below_ms(struct grpc_backoff *backoff, int64_t max_ms);
/* A success: the next wait is the first again. */
void grpc_backoff_reset(struct grpc_backoff *backoff);

#endif
