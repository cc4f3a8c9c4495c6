/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/internal.h"

struct entry {
    const peg_block *call;
    bool is_answered;
    struct entry *next; /* of the same call id */
};

/* All calls of one call id, in order. */
struct chain {
    struct entry *open; /* none before it is without an answer */
    struct entry *last;
};

static peg_status add_chain(struct peg__call_match *match, peg_str call_id, struct chain **ret)
{
    struct chain *chain = peg__map_get(&match->by_call_id, call_id);
    peg_status status;

    if (!chain) {
        chain = peg__arena_alloc_zero(&match->arena, sizeof(*chain));
        if (!chain)
            return PEG_ENOMEM;
        status = peg__map_add(&match->by_call_id, call_id, chain);
        if (status)
            return status;
    }
    *ret = chain;
    return PEG_OK;
}

peg_status peg__call_match_add(struct peg__call_match *match, const peg_block *call)
{
    struct entry *entry = peg__arena_alloc_zero(&match->arena, sizeof(*entry));
    struct chain *chain;
    peg_status status;

    if (!entry)
        return PEG_ENOMEM;
    entry->call = call;
    status = add_chain(match, peg_block_call_id(call), &chain);
    if (!status)
        status = peg__map_add(&match->by_block_id, peg_block_id(call), entry);
    if (status)
        return status;
    if (chain->last)
        chain->last->next = entry;
    else
        chain->open = entry;
    chain->last = entry;
    return PEG_OK;
}

const peg_block *peg__call_match_infer(struct peg__call_match *match, peg_str call_id)
{
    struct chain *chain = peg__map_get(&match->by_call_id, call_id);

    if (!chain || !chain->last)
        return NULL;
    while (chain->open->is_answered && chain->open->next)
        chain->open = chain->open->next;
    return chain->open->call;
}

const peg_block *peg__call_match_find(const struct peg__call_match *match, peg_str block_id)
{
    const struct entry *entry = peg__map_get(&match->by_block_id, block_id);

    return entry ? entry->call : NULL;
}

void peg__call_match_answer(struct peg__call_match *match, peg_str block_id)
{
    struct entry *entry = peg__map_get(&match->by_block_id, block_id);

    if (entry)
        entry->is_answered = true;
}

void peg__call_match_free(struct peg__call_match *match)
{
    peg__map_free(&match->by_call_id);
    peg__map_free(&match->by_block_id);
    peg__arena_free(&match->arena);
}
