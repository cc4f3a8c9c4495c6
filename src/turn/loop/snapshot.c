/* SPDX-License-Identifier: Apache-2.0 */

/* Calls the snapshot function at each phase: that of the loop, else that of the context. */

#include "base/error.h"
#include "base/mem.h"
#include "turn/loop/loop.h"
#include "turn/turn.h"

static const char *const names[] = {
    [PEG_PHASE_PRE_INFERENCE] = "pre_inference", [PEG_PHASE_POST_INFERENCE] = "post_inference",
    [PEG_PHASE_PRE_CALL] = "pre_call",           [PEG_PHASE_POST_CALL] = "post_call",
    [PEG_PHASE_POST_TOOLS] = "post_tools",       [PEG_PHASE_FINAL] = "final",
};

const char *peg_phase_name(peg_phase phase)
{
    return (unsigned)phase < PEG_N_PHASES ? names[phase] : "unknown";
}

/* Under the address of this, a context has its function. */
static const char key;

struct listener {
    peg_snapshot_fn fn;
    void *user;
};

peg_status peg_ctx_with_snapshots(peg_ctx *parent, peg_snapshot_fn fn, void *user,
                                  peg_ctx **ret_ctx, peg_error *reterr)
{
    struct listener *listener = peg__alloc(sizeof(*listener));
    peg_status status;

    if (!listener)
        return peg__fail_nomem(reterr);
    *listener = (struct listener){fn, user};
    status = peg_ctx_with_value(parent, &key, listener, peg__free, ret_ctx, reterr);
    if (status)
        peg__free(listener);
    return status;
}

bool peg__snapshot_is_wanted(const peg_ctx *ctx, const peg_dispatch_options *loop)
{
    return loop->snapshot || peg_ctx_value(ctx, &key);
}

peg_status peg__snapshot(peg_ctx *ctx, const peg_dispatch_options *loop, const peg_turn *turn,
                         peg_phase phase, peg_error *reterr)
{
    const struct listener own = {loop->snapshot, loop->snapshot_user};
    const struct listener *listener = own.fn ? &own : peg_ctx_value(ctx, &key);
    peg_error why = PEG__HOST_ERROR;
    peg_status status;

    if (!listener || !listener->fn)
        return PEG_OK;
    status = listener->fn(ctx, turn, phase, listener->user, &why);
    if (!status)
        return PEG_OK;
    peg__host_failed(status, &why, "E_SNAPSHOT", "the snapshot function", &why);
    return peg__fail_because(reterr, status, "E_SNAPSHOT", &why,
                             "the turn could not be kept at '%s'", peg_phase_name(phase));
}
