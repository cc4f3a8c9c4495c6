/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/on_loop.h"

#include <pthread.h>

struct errand {
    struct net_message message; /* the first member */
    void (*fn)(void *user);
    void *user;
    bool is_done;
    pthread_mutex_t lock;
    pthread_cond_t done;
};

/* The errand is the waiter's, and may be gone as soon as the lock is. */
static void run(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn(errand->user);
    pthread_mutex_lock(&errand->lock);
    errand->is_done = true;
    pthread_cond_signal(&errand->done);
    pthread_mutex_unlock(&errand->lock);
}

void gw_on_loop(struct net_loop *loop, void (*fn)(void *user), void *user)
{
    struct errand errand = {
        .message.fn = run,
        .fn = fn,
        .user = user,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .done = PTHREAD_COND_INITIALIZER,
    };

    net_loop_post(loop, &errand.message);
    pthread_mutex_lock(&errand.lock);
    while (!errand.is_done)
        pthread_cond_wait(&errand.done, &errand.lock);
    pthread_mutex_unlock(&errand.lock);
    pthread_cond_destroy(&errand.done);
    pthread_mutex_destroy(&errand.lock);
}
