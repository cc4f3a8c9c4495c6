/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_CONTEXT_H
#define PEG_CORE_CONTEXT_CONTEXT_H

/*
 * What a context has beyond its public face: the time that one call may take. It stands still
 * while the call waits at a gate, so it is not a deadline of the immutable chain but a value
 * that the call's context owns and those below it point to.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/observers.h"
#include "pegboard/call.h"
#include "pegboard/cancel.h"
#include "pegboard/ctx.h"

/* Below parent, with a token of its own and, unless timeout_ms is negative, a budget. One node. */
peg_status peg__ctx_for_call(peg_ctx *parent, int64_t timeout_ms, peg_ctx **ret_ctx,
                             peg_error *reterr);
/* The same with the time, on the parent's clock, that it is now. */
peg_status peg__ctx_for_call_at(peg_ctx *parent, int64_t timeout_ms, int64_t now_ns,
                                peg_ctx **ret_ctx, peg_error *reterr);

/* How many calls are around this context, one made by the handler of the other. */
unsigned peg__ctx_call_depth(const peg_ctx *ctx);

/* Time stands still for the budget of the call that ctx belongs to, if any; pauses nest. */
void peg__ctx_pause_budget(peg_ctx *ctx);
void peg__ctx_resume_budget(peg_ctx *ctx);

/* The earliest of deadline and budget, on the context's clock; INT64_MAX if there is none or the
 * budget stands still. */
int64_t peg__ctx_stop_ns(const peg_ctx *ctx);
/* As peg_ctx_check(), which counts both; tells them apart: true if it is the call's own budget. */
bool peg__ctx_is_over_budget(const peg_ctx *ctx);

/* Does anybody hear events? Worth asking before one is put together. */
bool peg__ctx_has_sink(const peg_ctx *ctx);
/* Is this one of those who hear? */
bool peg__ctx_notifies(const peg_ctx *ctx, peg_event_fn sink, void *user);
/* For something that was stopped: as peg_ctx_check(), with words also if that would let it go on by
 * now, because a budget stands still. */
void peg__ctx_why_stopped(const peg_ctx *ctx, peg_error *ret_why);
/* The gate listener, or NULL; *ret_user is what it is called with. */
peg_gate_fn peg__ctx_gate_listener(const peg_ctx *ctx, void **ret_user);

/* ---- cancellation ---------------------------------------------------------- */

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

/* ---- waiting --------------------------------------------------------------- */

/*
 * A place where threads wait: for something to become true, for a moment of the context's clock, or
 * for the context to say stop. Waiting allocates nothing and cannot fail.
 *
 *   pthread_mutex_lock(&wait.lock);
 *   woke = peg__wait_for(&wait, ctx, INT64_MAX, is_settled, gate);
 *   pthread_mutex_unlock(&wait.lock);
 *
 * The thread that makes it true holds the lock while doing so and calls peg__wait_wake().
 */

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

/* ---- budgets --------------------------------------------------------------- */

/*
 * The time that one call may take; it stands still while the call waits for a person. A call made
 * by a handler has its own budget inside that of the handler's call: both hold, and a pause stops
 * both.
 */

/* Any thread. Part of a context, outlived by the budget around it. */
struct peg__budget {
    struct peg__budget *outer; /* or NULL */
    int64_t timeout_ms;        /* as it was given */
    _Atomic int64_t end_ns;    /* INT64_MAX while it stands still */
    pthread_mutex_t lock;
    unsigned n_pauses;
    bool is_still;   /* under lock: there is something to go on from when the last pause ends */
    int64_t left_ns; /* under lock: while it stands still */
    struct peg__budget *outermost; /* whose bell rings for all: one hook hears every resumption */
    struct peg__observers resumed;
};

/* There is nothing to destroy: see destroy() of cancel.c. */
void peg__budget_init(struct peg__budget *budget, struct peg__budget *outer, int64_t now_ns,
                      int64_t timeout_ms);

/* All of these accept NULL: no budget. Pausing one that is used up already changes nothing. */
void peg__budget_pause(struct peg__budget *budget, const peg_clock *clock);
void peg__budget_resume(struct peg__budget *budget, const peg_clock *clock);
/* Of this one and of those around it, the earliest. */
int64_t peg__budget_end_ns(const struct peg__budget *budget);

/* Not NULL. */
static inline int64_t peg__budget_own_end_ns(const struct peg__budget *budget)
{
    return atomic_load_explicit(&budget->end_ns, memory_order_acquire);
}

/* ---- observers ------------------------------------------------------------- */

/*
 * The listener of a handler's output while it works. A provider, which can pass it on, puts itself
 * into the context; handlers of ours that have something to say (commands) look for it there, so
 * that neither need know the other.
 */

/* Static. */
struct peg__listener {
    /* As peg_provider_delta(): UTF-8 without NUL. Does not block, and results do not depend on it:
     * PEG_ELIMIT if too much waits already, and then the text is gone. */
    peg_status (*say)(peg_call *call, const char *stream, peg_str text);
};

peg_status peg__ctx_with_listener(peg_ctx *parent, const struct peg__listener *listener,
                                  peg_ctx **ret_ctx, peg_error *reterr);
/* NULL: no listener. */
const struct peg__listener *peg__ctx_listener(const peg_ctx *ctx);

#endif
