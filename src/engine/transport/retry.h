/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_RETRY_H
#define PEG_ENGINE_TRANSPORT_RETRY_H

/* When a request is tried again, and how long to wait before. Pure: no clock, no randomness. */

#include "engine/transport/http.h"

struct peg__retry {
    int max_tries;
    int64_t backoff_ms;
    int64_t backoff_max_ms;
    uint64_t seed; /* of the +-10 %, so that clients that failed together do not return together */
};

/* A try that failed. */
struct peg__try {
    int n; /* from 1 */
    const struct peg__http_answer *answer;
    const char *code; /* of its error; "": only the HTTP status tells */
    bool was_heard;   /* something of the answer was: it is not tried again */
};

/* Milliseconds, or -1: give up. */
int64_t peg__retry_wait_ms(const struct peg__retry *retry, const struct peg__try *failed);

#endif
