/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Firing has two passes. The first marks the whole tree below the token, the second runs the
 * hooks, so that a hook sees everything below it fired. The tokens to visit are chained through
 * their own links: the thread that takes a token out of its parent's list, under the parent's lock,
 * owns these links from then on and holds a reference. Nothing recurses, nothing is allocated.
 *
 * A child does not count as a reference of its parent. One whose count has fallen to zero may
 * still be in the list, on its way out: it waits there for the parent's lock and is left alone.
 */

#include "core/context/context.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"

/* ---- making and dropping ------------------------------------------------------ */

static void link_child(peg_cancel *parent, peg_cancel *child)
{
    child->next = parent->children;
    if (child->next)
        child->next->prev = child;
    parent->children = child;
    child->is_linked = true;
}

static void unlink_child(peg_cancel *parent, peg_cancel *child)
{
    if (child->prev)
        child->prev->next = child->next;
    else
        parent->children = child->next;
    if (child->next)
        child->next->prev = child->prev;
    child->next = NULL;
    child->prev = NULL;
    child->is_linked = false;
}

static bool try_ref(peg_cancel *cancel)
{
    unsigned n = atomic_load_explicit(&cancel->n_refs, memory_order_relaxed);

    while (n > 0) {
        if (atomic_compare_exchange_weak_explicit(&cancel->n_refs, &n, n + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* A late child of a fired parent starts fired. */
static void join_parent(peg_cancel *child, peg_cancel *parent)
{
    child->parent = peg_cancel_ref(parent);
    pthread_mutex_lock(&parent->lock);
    if (atomic_load_explicit(&parent->fired, memory_order_relaxed)) {
        child->reason = parent->reason;
        atomic_init(&child->fired, true);
    } else {
        link_child(parent, child);
    }
    pthread_mutex_unlock(&parent->lock);
}

void peg__cancel_init(peg_cancel *cancel, peg_cancel *parent, void (*release)(void *), void *memory)
{
    /* All but the reason's memory, which is not looked at before it is written. */
    memset(cancel, 0, offsetof(peg_cancel, own_reason));
    atomic_init(&cancel->n_refs, 1);
    cancel->release = release;
    cancel->memory = memory;
    cancel->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    cancel->idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    cancel->reason = "";
    if (parent)
        join_parent(cancel, parent);
}

peg_status peg_cancel_new(peg_cancel *parent, peg_cancel **ret_cancel, peg_error *reterr)
{
    peg_cancel *cancel = peg__alloc(sizeof(*cancel));

    if (!cancel)
        return peg__fail_nomem(reterr);
    peg__cancel_init(cancel, parent, peg__free, cancel);
    *ret_cancel = cancel;
    return PEG_OK;
}

PEG__DEFINE_REF(peg_cancel)

/* Lock and condition were made without the system and have nothing to give back; all
 * that use them hold a reference. A token is made and dropped for each call, so this counts. */
static void destroy(peg_cancel *cancel)
{
    if (cancel->parent) {
        pthread_mutex_lock(&cancel->parent->lock);
        if (cancel->is_linked)
            unlink_child(cancel->parent, cancel);
        pthread_mutex_unlock(&cancel->parent->lock);
    }
    cancel->release(cancel->memory);
}

/* A loop, not a recursion: the last reference to a leaf may take a long branch with it. */
peg_cancel *peg_cancel_unref(peg_cancel *cancel)
{
    while (cancel && atomic_fetch_sub_explicit(&cancel->n_refs, 1, memory_order_acq_rel) == 1) {
        peg_cancel *parent = cancel->parent;

        destroy(cancel);
        cancel = parent;
    }
    return NULL;
}

/* ---- firing --------------------------------------------------------------------- */

struct visits {
    peg_cancel *first;
    peg_cancel *last;
};

/* With the parent's lock: takes its children out, those on their way out excepted. */
static void take_children(peg_cancel *parent, struct visits *visits)
{
    peg_cancel *next;

    for (peg_cancel *child = parent->children; child; child = next) {
        next = child->next;
        if (!try_ref(child))
            continue;
        unlink_child(parent, child);
        if (visits->last)
            visits->last->next = child;
        else
            visits->first = child;
        visits->last = child;
    }
}

/* `reason` is the ancestor's that is fired, which lives as long as anything below it. */
static void mark(peg_cancel *cancel, const char *reason, struct visits *visits)
{
    pthread_mutex_lock(&cancel->lock);
    if (!atomic_load_explicit(&cancel->fired, memory_order_relaxed)) {
        cancel->reason = reason;
        atomic_store_explicit(&cancel->fired, true, memory_order_release);
    }
    take_children(cancel, visits);
    pthread_mutex_unlock(&cancel->lock);
}

static void link_hook(peg_cancel *cancel, struct peg__cancel_hook *hook)
{
    hook->next = NULL;
    hook->prev = cancel->last_hook;
    if (hook->prev)
        hook->prev->next = hook;
    else
        cancel->hooks = hook;
    cancel->last_hook = hook;
    hook->is_linked = true;
}

static void unlink_hook(peg_cancel *cancel, struct peg__cancel_hook *hook)
{
    if (hook->prev)
        hook->prev->next = hook->next;
    else
        cancel->hooks = hook->next;
    if (hook->next)
        hook->next->prev = hook->prev;
    else
        cancel->last_hook = hook->prev;
    hook->is_linked = false;
}

/* One thread runs the hooks of a token; a second one leaves them to it. A hook may unhook itself
 * and be gone when its fn returns, so it is not looked at after that. */
static void run_hooks(peg_cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    while (cancel->hooks && !cancel->running) {
        struct peg__cancel_hook *hook = cancel->hooks;

        unlink_hook(cancel, hook);
        cancel->running = hook;
        cancel->runner = pthread_self();
        pthread_mutex_unlock(&cancel->lock);
        hook->fn(hook->user);
        pthread_mutex_lock(&cancel->lock);
        cancel->running = NULL;
        pthread_cond_broadcast(&cancel->idle);
    }
    pthread_mutex_unlock(&cancel->lock);
}

/* False if somebody was faster: then the reason is theirs. */
static bool mark_first(peg_cancel *cancel, const char *reason, struct visits *visits)
{
    const char *text = reason ? reason : "canceled";
    size_t len = strnlen(text, PEG__CANCEL_REASON_BYTES);
    bool is_first;

    if (len == PEG__CANCEL_REASON_BYTES)
        len = peg__utf8_cut(text, len - 1);
    pthread_mutex_lock(&cancel->lock);
    is_first = !atomic_load_explicit(&cancel->fired, memory_order_relaxed);
    if (is_first) {
        memcpy(cancel->own_reason, text, len);
        cancel->own_reason[len] = '\0';
        cancel->reason = cancel->own_reason;
        atomic_store_explicit(&cancel->fired, true, memory_order_release);
        take_children(cancel, visits);
    }
    pthread_mutex_unlock(&cancel->lock);
    return is_first;
}

void peg_cancel_fire(peg_cancel *cancel, const char *reason)
{
    struct visits visits = {NULL, NULL};
    peg_cancel *next;

    if (!mark_first(cancel, reason, &visits))
        return;
    /* A hook may drop the caller's reference. */
    peg_cancel_ref(cancel);
    for (peg_cancel *child = visits.first; child; child = child->next)
        mark(child, cancel->reason, &visits);
    run_hooks(cancel);
    for (peg_cancel *child = visits.first; child; child = next) {
        next = child->next;
        run_hooks(child);
        peg_cancel_unref(child);
    }
    peg_cancel_unref(cancel);
}

bool peg_cancel_fired(const peg_cancel *cancel)
{
    return atomic_load_explicit(&cancel->fired, memory_order_acquire);
}

const char *peg_cancel_reason(const peg_cancel *cancel)
{
    return peg_cancel_fired(cancel) ? cancel->reason : "";
}

/* ---- hooks ------------------------------------------------------------------------- */

void peg__cancel_hook(struct peg__cancel_hook *hook, peg_cancel *cancel)
{
    bool is_late;

    hook->cancel = NULL;
    hook->is_linked = false;
    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    is_late = atomic_load_explicit(&cancel->fired, memory_order_relaxed);
    if (!is_late) {
        hook->cancel = peg_cancel_ref(cancel);
        link_hook(cancel, hook);
    }
    pthread_mutex_unlock(&cancel->lock);
    if (is_late)
        hook->fn(hook->user);
}

void peg__cancel_unhook(struct peg__cancel_hook *hook)
{
    peg_cancel *cancel = hook->cancel;

    if (!cancel)
        return;
    hook->cancel = NULL;
    pthread_mutex_lock(&cancel->lock);
    if (hook->is_linked)
        unlink_hook(cancel, hook);
    while (cancel->running == hook && !pthread_equal(cancel->runner, pthread_self()))
        pthread_cond_wait(&cancel->idle, &cancel->lock);
    pthread_mutex_unlock(&cancel->lock);
    peg_cancel_unref(cancel);
}

struct peg_cancel_hook {
    struct peg__cancel_hook hook;
};

peg_status peg_cancel_on_fire(peg_cancel *cancel, void (*fn)(void *user), void *user,
                              peg_cancel_hook **ret_hook, peg_error *reterr)
{
    peg_cancel_hook *hook = peg__alloc(sizeof(*hook));

    if (!hook)
        return peg__fail_nomem(reterr);
    hook->hook = (struct peg__cancel_hook){.fn = fn, .user = user};
    /* Before fn can run: it may want to unhook. */
    *ret_hook = hook;
    peg__cancel_hook(&hook->hook, cancel);
    return PEG_OK;
}

peg_cancel_hook *peg_cancel_unhook(peg_cancel_hook *hook)
{
    if (!hook)
        return NULL;
    peg__cancel_unhook(&hook->hook);
    peg__free(hook);
    return NULL;
}
