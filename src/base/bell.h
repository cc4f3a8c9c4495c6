/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_BELL_H
#define PEG_BASE_BELL_H

/*
 * A bell: whoever hangs on it is called each time it rings. It allocates nothing; the memory of
 * a hook is its owner's, usually on the stack of a thread that waits.
 *
 * fn is called outside the bell's lock, so it may take any lock that its owner holds while
 * hanging a hook up, but not one that its owner holds while taking it down.
 */

#include <pthread.h>
#include <stddef.h>

struct peg__bell_hook {
    void (*fn)(void *user);
    void *user;
    /* The rest is the bell's own. */
    struct peg__bell_hook *next;
    struct peg__bell_hook *prev;
    unsigned n_calls; /* that are running */
};

/* Any thread. A value; all zero is a bell that nobody hangs on (see PEG__BELL). */
struct peg__bell {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct peg__bell_hook *first;
    size_t n_hooks;
};

#define PEG__BELL                                                                                  \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER                        \
    }

void peg__bell_destroy(struct peg__bell *bell);
void peg__bell_hang(struct peg__bell *bell, struct peg__bell_hook *hook);
/* When it returns, fn is not running and will not be called. Not from fn. */
void peg__bell_take_down(struct peg__bell *bell, struct peg__bell_hook *hook);
/* Calls everybody who hung on it before it rang and still does. */
void peg__bell_ring(struct peg__bell *bell);
size_t peg__bell_len(struct peg__bell *bell);

#endif
