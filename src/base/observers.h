/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_OBSERVERS_H
#define PEG_BASE_OBSERVERS_H

/*
 * A bell: whoever hangs on it is called each time it rings. It allocates nothing; the memory of
 * a hook is its owner's, usually on the stack of a thread that waits.
 *
 * fn is called outside the bell's lock, so it may take any lock that its owner holds while
 * hanging a hook up, but not one that its owner holds while taking it down.
 */

#include <pthread.h>
#include <stddef.h>

struct peg__observer {
    void (*fn)(void *user);
    void *user;
    /* The rest is the bell's own. */
    struct peg__observer *next;
    struct peg__observer *prev;
    unsigned n_calls; /* that are running */
};

/* Any thread. A value; all zero has no observers (see PEG__OBSERVERS). */
struct peg__observers {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct peg__observer *first;
    size_t n_hooks;
};

#define PEG__OBSERVERS                                                                             \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER                        \
    }

void peg__observers_destroy(struct peg__observers *bell);
void peg__observers_add(struct peg__observers *bell, struct peg__observer *hook);
/* When it returns, fn is not running and will not be called. Not from fn. */
void peg__observers_remove(struct peg__observers *bell, struct peg__observer *hook);
/* Calls everybody who hung on it before it rang and still does. */
void peg__observers_notify(struct peg__observers *bell);
size_t peg__observers_len(struct peg__observers *bell);

#endif
