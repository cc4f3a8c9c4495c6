/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_CANCEL_H
#define PEG_CORE_CONTEXT_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "pegboard/cancel.h"

/*
 * A hook whose memory is the caller's, usually on its stack: nothing to allocate, so waiting
 * cannot fail. Set fn and user; the rest is the token's.
 */
struct peg__cancel_hook {
    void (*fn)(void *user);
    void *user;
    peg_cancel *cancel; /* NULL while it hangs nowhere */
    struct peg__cancel_hook *next;
    struct peg__cancel_hook *prev;
    bool is_linked;
};

/* cancel may be NULL: then nothing happens. Calls fn at once if the token has fired. */
void peg__cancel_hook(struct peg__cancel_hook *hook, peg_cancel *cancel);
/* When it returns, fn is not running (unless it is fn that unhooks) and will not be called. */
void peg__cancel_unhook(struct peg__cancel_hook *hook);

enum { PEG__CANCEL_REASON_BYTES = 160 };

/*
 * A token; other modules only embed it. A token is in its parent's list of children from its
 * making until it is fired or gone. `lock` guards children, hooks and the links of the children.
 * A thread holds one such lock at a time, so there is no order of locks.
 */
struct peg_cancel {
    atomic_uint n_refs;
    atomic_bool fired;
    bool is_linked;          /* under the parent's lock, as next and prev */
    void (*release)(void *); /* gives the memory back: called with `memory` */
    void *memory;            /* what the token is a part of, or the token itself */
    peg_cancel *parent;      /* or NULL; one reference */
    peg_cancel *next;        /* sibling; once fired, the next that the firing thread visits */
    peg_cancel *prev;
    pthread_mutex_t lock;
    peg_cancel *children;
    struct peg__cancel_hook *hooks; /* in the order in which they came */
    struct peg__cancel_hook *last_hook;
    struct peg__cancel_hook *running; /* the hook whose fn runs, on the thread `runner` */
    pthread_t runner;
    pthread_cond_t idle; /* a hook has run */
    const char *reason;  /* set before `fired`; its own or that of an ancestor */
    char own_reason[PEG__CANCEL_REASON_BYTES];
};

/* A token in memory of the caller's; `release` gets that memory when the last reference is gone. */
void peg__cancel_init(peg_cancel *cancel, peg_cancel *parent, void (*release)(void *),
                      void *memory);

#endif
