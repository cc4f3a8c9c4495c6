/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_CTX_H
#define PEG_CORE_CONTEXT_CTX_H

/*
 * What a context has beyond its public face: the time that one call may take. It stands still
 * while the call waits at a gate, so it is not a deadline of the immutable chain but a value
 * that the call's context owns and those below it point to.
 */

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

/* The budget that holds for ctx, or NULL; borrowed. */
struct peg__budget *peg__ctx_budget(const peg_ctx *ctx);

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

#endif
