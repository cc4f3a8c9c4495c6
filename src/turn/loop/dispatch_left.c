/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that an earlier run left without a result. Some of them may have had their effect: those
 * that are marked as begun (dispatch_calls.c). They are not run twice, unless they may be.
 */

#include "base/error.h"
#include "base/map.h"
#include "base/text/str.h"
#include "turn/loop/dispatch.h"

struct left {
    struct peg__map begun;      /* ids of blocks */
    bool is_unreadable;         /* the marks are damaged: any call may have begun */
    bool is_everything_pending; /* or only what is marked */
};

static peg_status read_marks(const peg_json *marks, struct left *left, peg_error *reterr)
{
    PEG_JSON_EACH_ITEM (marks, item) {
        const peg_status status = peg__map_add(&left->begun, peg_json_str(item), NULL);

        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        if (status == PEG_ELIMIT)
            left->is_unreadable = true;
    }
    return PEG_OK;
}

/* May it run again? Nobody knows whether it ran. */
static bool is_repeatable(peg_dispatch *dispatch, peg_str name)
{
    peg_tool *tool = peg_registry_get(dispatch->registry, name);
    const bool is = tool && (peg_tool_is_idempotent(tool) || peg_tool_is_read_only(tool));

    peg_tool_unref(tool);
    return is;
}

static bool must_not_run(peg_dispatch *dispatch, const peg_block *call, void *user)
{
    const struct left *left = user;
    const bool has_begun =
        left->is_unreadable || peg__map_find(&left->begun, peg_block_id(call)) != NULL;

    switch (dispatch->loop->pending) {
    case PEG_PENDING_RUN:
        return false;
    case PEG_PENDING_UNKNOWN:
        return has_begun || left->is_everything_pending;
    case PEG_PENDING_SAFE:
        break;
    }
    return has_begun && !is_repeatable(dispatch, peg_block_tool(call));
}

static peg_status close_those(peg_dispatch *dispatch, struct left *left, peg_error *reterr)
{
    const peg_json *marks = NULL;
    peg_error why;
    peg_status status = PEG_OK;

    if (peg_turn_get(dispatch->turn, &peg_key_calls_started, &marks, NULL))
        left->is_unreadable = true;
    if (!marks && !left->is_unreadable && !left->is_everything_pending)
        return PEG_OK;
    peg__fail(&why, PEG_ESTATE, "E_OUTCOME_UNKNOWN",
              "it is not known whether this call was carried out: the run that began it did not "
              "come to its end. It was not repeated; find out what is the case before you call "
              "it again");
    if (marks)
        status = read_marks(marks, left, reterr);
    if (!status)
        status = peg__dispatch_refuse_those(dispatch, &why, must_not_run, left, reterr);
    if (!status)
        status = peg_turn_unset(dispatch->turn, &peg_key_calls_started, reterr);
    peg__map_free(&left->begun);
    return status;
}

peg_status peg__dispatch_close_left(peg_dispatch *dispatch, peg_error *reterr)
{
    struct left left = {.begun = PEG__MAP(PEG_LIMIT_TURN_BLOCKS), .is_everything_pending = true};

    return close_those(dispatch, &left, reterr);
}

peg_status peg__dispatch_close_begun(peg_dispatch *dispatch, peg_error *reterr)
{
    struct left left = {.begun = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)};

    return close_those(dispatch, &left, reterr);
}
