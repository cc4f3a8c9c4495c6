/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_WAIT_H
#define PEG_CORE_CONTEXT_WAIT_H

/*
 * A place where threads wait: for something to become true, for a moment of the context's clock, or
 * for the context to say stop. Waiting allocates nothing and cannot fail.
 *
 *   pthread_mutex_lock(&wait.lock);
 *   woke = peg__wait_for(&wait, ctx, INT64_MAX, is_settled, gate);
 *   pthread_mutex_unlock(&wait.lock);
 *
 * Whoever makes it true holds the lock while doing so and calls peg__wait_wake().
 */

#include <pthread.h>

#include "pegboard/ctx.h"

struct peg__wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

enum peg__woke {
    PEG__WOKE_DONE, /* is_done() said so: it comes first if several are true */
    PEG__WOKE_STOP, /* peg_ctx_check() would fail: canceled, past its deadline or over its budget */
    PEG__WOKE_TIME, /* until_ns has come */
};

void peg__wait_init(struct peg__wait *wait);
void peg__wait_destroy(struct peg__wait *wait);
void peg__wait_wake(struct peg__wait *wait);

/* Called, and is_done is called, with the lock held; it is given up while waiting. ctx may be NULL:
 * the system's clock, and nothing that says stop. */
enum peg__woke peg__wait_for(struct peg__wait *wait, peg_ctx *ctx, int64_t until_ns,
                             bool (*is_done)(void *user), void *user);

#endif
