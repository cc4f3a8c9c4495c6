/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the turn becomes if an iteration is canceled, aborted or fails: the turn as the iteration
 * found it, and the calls that began with what became of them.
 *
 *   prepare, before a call -> begin, when its handler is about to run -> end, with its result
 *
 * Everything that can fail comes before the handler. A result that cannot be kept leaves its call
 * marked as begun, so that the next run does not repeat it (dispatch_calls.c).
 */

#include "base/error.h"
#include "turn/loop/loop.h"
#include "turn/turn.h"

/* ---- before a call ---------------------------------------------------------------- */

/* Providers want the thoughts that led to a call back with it. */
static peg_status keep_thoughts(peg_dispatch *dispatch, const peg_block *call, peg_error *reterr)
{
    struct peg__kept *kept = &dispatch->kept;
    peg_status status = PEG_OK;

    for (; kept->n_seen < peg_turn_len(dispatch->turn) && !status; kept->n_seen++) {
        peg_block *block = peg_turn_at(dispatch->turn, kept->n_seen);

        if (block == call)
            break;
        if (peg_block_kind_of(block) == PEG_BLOCK_REASONING &&
            !peg_turn_find(kept->turn, peg_block_id(block)))
            status = peg_turn_add(kept->turn, block, reterr);
    }
    return status;
}

/* Marks that cannot be read count for every call already. */
static peg_status make_mark(struct peg__kept *kept, const peg_block *call, peg_error *reterr)
{
    const peg_json *marks = NULL;
    peg_json_builder *b;

    if (peg_turn_get(kept->turn, &peg_key_calls_started, &marks, NULL)) {
        kept->marked = peg_bag_ref(peg_turn_metadata(kept->turn));
        return PEG_OK;
    }
    b = peg_json_builder_new();
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (marks, id) {
        if (!peg_turn_result_of(kept->turn, peg_json_str(id)))
            peg_json_add_copy(b, id);
    }
    peg_json_add_string(b, peg_block_id(call));
    peg_json_close(b);
    return peg_bag_with_built(peg_turn_metadata(kept->turn), &peg_key_calls_started, b,
                              &kept->marked, reterr);
}

peg_status peg__kept_prepare(peg_dispatch *dispatch, const peg_block *call, peg_error *reterr)
{
    struct peg__kept *kept = &dispatch->kept;
    peg_status status = PEG_OK;

    kept->marked = peg_bag_unref(kept->marked);
    if (!kept->turn)
        status = peg_turn_copy(dispatch->target, &kept->turn, reterr);
    if (!status)
        status = keep_thoughts(dispatch, call, reterr);
    if (!status)
        status = make_mark(kept, call, reterr);
    if (!status && peg__blocks_reserve(&kept->turn->blocks))
        status = peg__fail_nomem(reterr);
    return status;
}

/* ---- its life --------------------------------------------------------------------- */

void peg__kept_begin(peg_dispatch *dispatch, peg_block *call)
{
    struct peg__kept *kept = &dispatch->kept;

    if (!peg_turn_find(kept->turn, peg_block_id(call)))
        peg__blocks_append(kept->turn->blocks, call);
    peg_bag_unref(kept->turn->metadata);
    kept->turn->metadata = kept->marked;
    kept->marked = NULL;
    kept->has_begun = true;
    kept->n_open++;
}

void peg__kept_end(peg_dispatch *dispatch, peg_block *result)
{
    if (!peg_turn_add(dispatch->kept.turn, result, NULL))
        dispatch->kept.n_open--;
}

/* ---- the end of an iteration ------------------------------------------------------ */

void peg__kept_flush(peg_dispatch *dispatch)
{
    struct peg__kept *kept = &dispatch->kept;

    if (!kept->has_begun)
        return;
    if (!kept->n_open) { /* no mark of ours is needed */
        peg_bag_unref(kept->turn->metadata);
        kept->turn->metadata = peg_bag_ref(dispatch->target->metadata);
    }
    peg__turn_swap_in(dispatch->target, kept->turn);
}

void peg__kept_clear(peg_dispatch *dispatch)
{
    peg_turn_free(dispatch->kept.turn);
    peg_bag_unref(dispatch->kept.marked);
    dispatch->kept = (struct peg__kept){.turn = NULL};
}
