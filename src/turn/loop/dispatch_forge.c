/* SPDX-License-Identifier: Apache-2.0 */

/* Before each iteration the artifacts of the turn get their queries; core/artifact/artifact.h does
 * nothing where nothing changed since the last time. */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "turn/loop/dispatch.h"

/* Answers of queries are text and have none; results of failures are text too. */
static bool has_artifact(const peg_block *block, struct peg__forge_item *ret_item)
{
    const peg_record *record = peg_block_record(block);

    ret_item->artifact = peg_block_artifact(block);
    ret_item->handle = record ? peg_record_handle(record) : peg_block_id(block);
    return ret_item->artifact != NULL;
}

/* A result that is shown whole needs no queries: each of them is a tool that the model has to read
 * about. */
static bool is_shown_whole(const peg_block *block, peg_artifact *artifact, int64_t query_from)
{
    const peg_record *record = peg_block_record(block);
    int64_t length;

    if (!record || query_from < 0)
        return false;
    if (peg_record_is_inline(record))
        return true;
    length = peg_artifact_byte_length(artifact);
    return length >= 0 && length < (query_from ? query_from : PEG_LIMIT_INLINE_BELOW);
}

static size_t collect(const peg_turn *turn, int64_t query_from, struct peg__forge_item *items)
{
    const unsigned kinds = PEG_BLOCKS(PEG_BLOCK_RESULT) | PEG_BLOCKS(PEG_BLOCK_OTHER);
    struct peg__forge_item item;
    size_t n = 0;

    for (size_t i = peg_turn_next(turn, kinds, 0); i < peg_turn_len(turn);
         i = peg_turn_next(turn, kinds, i + 1)) {
        if (!has_artifact(peg_turn_at(turn, i), &item) ||
            is_shown_whole(peg_turn_at(turn, i), item.artifact, query_from))
            continue;
        if (items)
            items[n] = item;
        n++;
    }
    return n;
}

static void warn_about_shadowed(peg_dispatch *dispatch, size_t n)
{
    peg_error error;
    peg_event event = {.kind = PEG_EVENT_WARNING, .error = &error};

    peg__fail(&error, PEG_EEXISTS, "E_QUERY_SHADOWED",
              "%zu queries of artifacts are not offered because tools of the host have their "
              "names; rename those tools",
              n);
    peg_ctx_emit(dispatch->ctx, &event);
}

peg_status peg__dispatch_forge(peg_dispatch *dispatch, peg_error *reterr)
{
    const int64_t query_from = dispatch->loop->query_from;
    const size_t n = collect(dispatch->turn, query_from, NULL);
    struct peg__forge_item *items = NULL;
    size_t n_shadowed = 0;
    peg_status status;

    if (n) {
        items = peg__alloc(n * sizeof(*items));
        if (!items)
            return peg__fail_nomem(reterr);
        collect(dispatch->turn, query_from, items);
    }
    status = peg__forge(dispatch->registry, items, n, &n_shadowed, reterr);
    peg__free(items);
    if (!status && n_shadowed && !dispatch->has_warned) {
        dispatch->has_warned = true;
        warn_about_shadowed(dispatch, n_shadowed);
    }
    return status;
}
