/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_OBSERVERS_H
#define PEG_BASE_OBSERVERS_H

/*
 * Functions that are called each time something happens. Nothing is allocated: an observer lies in
 * its owner's memory, usually on the stack of a thread that waits.
 *
 * fn is called without the lock of the observers, so it may take any lock that its owner holds
 * while adding an observer, but not one that its owner holds while removing it.
 */

#include <pthread.h>
#include <stddef.h>

struct peg__observer {
    void (*fn)(void *user);
    void *user;
    /* the rest is of the observers */
    struct peg__observer *next;
    struct peg__observer *prev;
    unsigned n_calls; /* that are running */
};

/* Any thread. A value; all zero has no observers (see PEG__OBSERVERS). */
struct peg__observers {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct peg__observer *first;
    size_t n;
};

#define PEG__OBSERVERS                                                                             \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER                        \
    }

void peg__observers_destroy(struct peg__observers *observers);
void peg__observers_add(struct peg__observers *observers, struct peg__observer *observer);
/* When it returns, fn is not running and will not be called. Not from fn. */
void peg__observers_remove(struct peg__observers *observers, struct peg__observer *observer);
/* Calls each that was added before and is not removed yet. */
void peg__observers_notify(struct peg__observers *observers);
size_t peg__observers_len(struct peg__observers *observers);

#endif
