/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_POOL_H
#define PEGBOARD_POOL_H

/*
 * Threads for handlers, so that a deadline can be enforced: at the deadline the caller goes on and
 * the thread is abandoned with its call still referenced; what it answers later is dropped. An
 * abandoned thread is replaced, and given back when its handler returns after all. With
 * max_abandoned of them the pool refuses calls (E_POOL_ABANDONED). There are never more than
 * n_threads + max_abandoned threads, and those whose handlers wait for calls of their own. An
 * abandoned handler still has its context: sinks, gate listener, clock and values of that must be
 * there until it returns.
 *
 * The first thread is started with the pool, the others when they are needed. They block all
 * signals but those that a fault of their own raises (SIGSEGV and its kind), so that the host's
 * handlers run on the host's threads.
 *
 * A handler may run calls on the pool that it runs on (two pools whose handlers wait for each other
 * are freed by their timeouts alone): while it waits for them it takes no thread from others,
 * so that agents below agents do not wait for each other for ever.
 *
 * Shared, reference counted; any thread.
 */

#include <pegboard/common.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default, told here in brackets. */
typedef struct peg_pool_options {
    size_t size;            /* set by PEG_POOL_OPTIONS_INIT */
    unsigned n_threads;     /* running handlers at once [4]; at most 256 */
    unsigned max_abandoned; /* threads whose handler did not return [4]; at most 256 */
    unsigned max_queued;    /* calls waiting for a thread [1,024]; at most 1,000,000 */
    size_t stack_bytes;     /* of each thread [1 MiB]; at least 512 KiB */
} peg_pool_options;
#define PEG_POOL_OPTIONS_INIT .size = sizeof(peg_pool_options)

/* options may be NULL. PEG_EINVAL (E_INVALID_ARGUMENT, `where` names the option), PEG_EIO
 * (E_POOL_THREAD: the system refused the first thread), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_pool_new(const peg_pool_options *options, peg_pool **ret_pool,
                                             peg_error *reterr);
PEG_API peg_pool *peg_pool_ref(peg_pool *pool);
/* The last one waits for threads that run; abandoned threads it leaves behind, with a warning in
 * the log that says how many (E_POOL_ABANDONED): what they need stays until they are through. From
 * one of the pool's own threads it does not wait, as that would be for itself. */
PEG_API peg_pool *peg_pool_unref(peg_pool *pool);

typedef struct peg_pool_state {
    unsigned n_threads; /* alive, abandoned ones not counted */
    unsigned n_running; /* handlers that have begun, abandoned ones not counted */
    unsigned n_queued;
    unsigned n_abandoned;     /* now */
    uint64_t total_abandoned; /* ever */
} peg_pool_state;

PEG_API peg_pool_state peg_pool_info(peg_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
