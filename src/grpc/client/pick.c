/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

peg_status grpc_pick_reserve(struct grpc_pick *pick, size_t n)
{
    return PEG__RESERVE(pick->entries, n, pick->capacity) ? PEG_OK : PEG_ENOMEM;
}

void grpc_pick_free(struct grpc_pick *pick)
{
    peg__free(pick->entries);
    *pick = (struct grpc_pick){0};
}

void grpc_pick_add(struct grpc_pick *pick, struct grpc_pick_entry *entry)
{
    if (entry->is_in || pick->n == pick->capacity)
        return;
    entry->is_in = true;
    entry->at = pick->n;
    pick->entries[pick->n++] = entry;
}

/* The last one takes its place: whose turn it is may change by that, which does no harm. */
void grpc_pick_remove(struct grpc_pick *pick, struct grpc_pick_entry *entry)
{
    struct grpc_pick_entry *last;

    if (!entry->is_in)
        return;
    last = pick->entries[--pick->n];
    last->at = entry->at;
    pick->entries[entry->at] = last;
    entry->is_in = false;
    if (pick->next >= pick->n)
        pick->next = 0;
}

struct grpc_pick_entry *grpc_pick_next(struct grpc_pick *pick)
{
    for (size_t i = 0; i < pick->n; i++) {
        struct grpc_pick_entry *entry = pick->entries[pick->next];

        pick->next = pick->next + 1 < pick->n ? pick->next + 1 : 0;
        if (entry->n_streams < entry->max_streams)
            return entry;
    }
    return NULL;
}
