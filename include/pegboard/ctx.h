/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CTX_H
#define PEGBOARD_CTX_H

/*
 * The context: what everything below a call shares without passing it by hand.
 * An immutable chain: each function below makes a new context that differs from its
 * parent in one thing. Nothing live is ever stored in a turn; it is here.
 *
 * Shared, reference counted; a context may be used from any thread.
 */

#include <pegboard/cancel.h>
#include <pegboard/clock.h>
#include <pegboard/event.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The system's clock, nothing to cancel it, no deadline, no sink, no registry, no gates. */
PEG_API PEG_MUST_USE peg_status peg_ctx_new(peg_ctx **ret_ctx, peg_error *reterr);
PEG_API peg_ctx *peg_ctx_ref(peg_ctx *ctx);
PEG_API peg_ctx *peg_ctx_unref(peg_ctx *ctx);

/* ---- one thing more: parent may always be NULL, which stands for peg_ctx_new()'s ---- */

/* A token below the parent's, so that either cancels. ret_cancel may be NULL; else one reference.
 */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_cancel(peg_ctx *parent, peg_ctx **ret_ctx,
                                                    peg_cancel **ret_cancel, peg_error *reterr);
/* From now, on the context's clock; the parent's deadline holds if it is earlier. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_deadline(peg_ctx *parent, int64_t ms,
                                                      peg_ctx **ret_ctx, peg_error *reterr);
/* Set it before a deadline: a deadline is a moment of the clock it was made with. PEG_ESTATE
 * (E_WRONG_STATE) otherwise. The clock is borrowed and outlives the context. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_clock(peg_ctx *parent, const peg_clock *clock,
                                                   peg_ctx **ret_ctx, peg_error *reterr);
/* One more listener; those of the parent still hear, after it. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_events(peg_ctx *parent, peg_event_fn sink, void *user,
                                                    peg_ctx **ret_ctx, peg_error *reterr);
/* Answers gates, see gate.h; NULL: they cannot be answered. */
typedef void (*peg_gate_fn)(peg_gate *gate, void *user);
PEG_API PEG_MUST_USE peg_status peg_ctx_with_gates(peg_ctx *parent, peg_gate_fn listener,
                                                   void *user, peg_ctx **ret_ctx,
                                                   peg_error *reterr);
/* Takes a reference. NULL hides the parent's registry. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_registry(peg_ctx *parent, peg_registry *registry,
                                                      peg_ctx **ret_ctx, peg_error *reterr);
/* The strings are copied; NULL and iteration -1 keep the parent's, but a new turn is in no dispatch
 * yet, and a new dispatch in no iteration. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_ids(peg_ctx *parent, const peg_ids *ids,
                                                 peg_ctx **ret_ctx, peg_error *reterr);
/* A thing of the host's under a key of the host's, usually the address of a static variable.
 * On failure value_free is not called. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_value(peg_ctx *parent, const void *key, void *value,
                                                   void (*value_free)(void *), peg_ctx **ret_ctx,
                                                   peg_error *reterr);

/* ---- what it holds: all borrowed from the context ---------------------------- */

PEG_API peg_registry *peg_ctx_registry(const peg_ctx *ctx); /* or NULL */
PEG_API const peg_clock *peg_ctx_clock(const peg_ctx *ctx);
PEG_API peg_cancel *peg_ctx_cancel(const peg_ctx *ctx); /* or NULL: nothing can cancel it */
PEG_API const peg_ids *peg_ctx_ids(const peg_ctx *ctx);
PEG_API void *peg_ctx_value(const peg_ctx *ctx, const void *key); /* the nearest, or NULL */
/* On the context's clock, monotonic; INT64_MAX if there is none. */
PEG_API int64_t peg_ctx_deadline_ns(const peg_ctx *ctx);

/* ---- going on, waiting, telling ----------------------------------------------- */

/* PEG_OK, or why to stop: PEG_ECANCELED (E_CANCELED, the reason in its message), PEG_ETIMEOUT
 * (E_DEADLINE_EXCEEDED). Two loads and, with a deadline, a look at the clock. */
PEG_API peg_status peg_ctx_check(const peg_ctx *ctx, peg_error *reterr);
/* Waits: PEG_OK when ms have passed, else as peg_ctx_check() as soon as that says stop. */
PEG_API peg_status peg_ctx_wait(peg_ctx *ctx, int64_t ms, peg_error *reterr);
/* Hands an event to every sink. Fills in ids and at_ms. */
PEG_API void peg_ctx_emit(const peg_ctx *ctx, peg_event *event);

#ifdef __cplusplus
}
#endif
#endif
