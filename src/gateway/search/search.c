/* SPDX-License-Identifier: Apache-2.0 */

/* A query from its text to its hits. */

#include "gateway/search/search.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

/* BM25's factor of saturated weights: k1 + 1. */
static const double score_factor = 2.5;

/* ---- literal matches ---- */

/* In quarters of what the rarest word is worth in a text about nothing else. */
enum {
    IS_NAME = 64, /* always first */
    BEGINS_NAME = 6,
    INSIDE_NAME = 4,
    INSIDE_TAG = 2,
    INSIDE_DESCRIPTION = 1,
};

static uint32_t literal_bonus(const struct gw_rank_input *input, const struct gw_segment *segment,
                              struct gw_literal literal)
{
    const char *name = segment->main_text + segment->main_text_at[literal.doc];
    const peg_str query = input->folded;
    unsigned quarters = 0;

    if (literal.where & IN_NAME) {
        quarters += INSIDE_NAME;
        if (memcmp(name, query.ptr, query.len) == 0)
            quarters += name[query.len] == '\0' ? IS_NAME : BEGINS_NAME - INSIDE_NAME;
    }
    quarters += literal.where & IN_TAG ? INSIDE_TAG : 0;
    quarters += literal.where & IN_DESCRIPTION ? INSIDE_DESCRIPTION : 0;
    return quarters * (input->query->rarest * GW_WEIGHT_UNIT / 4);
}

/* ---- tools of the hits ---- */

/* Goes through the hits in the order of the index. */
struct tool_scan {
    const struct gw_search_index *index;
    const struct gw_query *query;
    uint32_t *at;     /* by word: the next posting */
    uint32_t *scores; /* by tool of a toolset */
};

struct ranked_tool {
    size_t number;
    uint32_t score;
};

/* Keeps the best GW_SEARCH_TOOLS, those that stand first in the toolset before their equals. */
static void pick_tools(const uint32_t *scores, struct gw_search_hit *hit)
{
    struct ranked_tool ranked[GW_SEARCH_TOOLS + 1];
    unsigned n = 0;

    for (size_t i = 0; i < hit->toolset->n_tools; i++) {
        unsigned at = n;

        if (scores[i] == 0 || (n == GW_SEARCH_TOOLS && scores[i] <= ranked[n - 1].score))
            continue;
        for (; at > 0 && ranked[at - 1].score < scores[i]; at--)
            ranked[at] = ranked[at - 1];
        ranked[at] = (struct ranked_tool){i, scores[i]};
        n = n < GW_SEARCH_TOOLS ? n + 1 : n;
    }
    hit->n_tools = n;
    for (unsigned i = 0; i < n; i++)
        hit->tools[i] = &hit->toolset->tools[ranked[i].number];
}

static void score_tools(struct tool_scan *scan, const struct gw_ranked *ranked)
{
    const struct gw_segment *segment = scan->index->parts[ranked->part].segment;
    const uint32_t first = segment->first_text[ranked->doc] + 1; /* behind the toolset's own */
    const uint32_t end = segment->first_text[ranked->doc + 1];

    memset(scan->scores, 0, (end - first) * sizeof(*scan->scores));
    for (unsigned w = 0; w < scan->query->n; w++) {
        const struct gw_query_word *word = &scan->query->words[w];
        const struct gw_postings *postings = &word->parts[ranked->part];
        uint32_t i = gw_postings_seek(postings, scan->at[w], first);

        for (; i < postings->n && postings->texts[i] < end; i++)
            scan->scores[postings->texts[i] - first] += word->weight * postings->weights[i];
        scan->at[w] = i;
    }
}

static int compare_hit_places(const void *x, const void *y)
{
    const struct gw_ranked *a = *(const struct gw_ranked *const *)x;
    const struct gw_ranked *b = *(const struct gw_ranked *const *)y;

    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return a->doc < b->doc ? -1 : a->doc > b->doc;
}

static size_t most_tools(const struct gw_ranking *ranking)
{
    size_t most = 0;

    for (size_t i = 0; i < ranking->n; i++) {
        const size_t n = ranking->items[i].toolset->n_tools;

        most = n > most ? n : most;
    }
    return most;
}

static bool find_tools(struct tool_scan *scan, const struct gw_ranking *ranking,
                       struct peg__arena *arena, struct gw_search_hit *hits)
{
    const struct gw_ranked **places = peg__arena_alloc(arena, (ranking->n + 1) * sizeof(*places));
    const size_t at_bytes = (scan->query->n + 1) * sizeof(*scan->at);

    scan->at = peg__arena_alloc_zero(arena, at_bytes);
    scan->scores = peg__arena_alloc(arena, (most_tools(ranking) + 1) * sizeof(*scan->scores));
    if (!places || !scan->at || !scan->scores)
        return false;
    for (size_t i = 0; i < ranking->n; i++)
        places[i] = &ranking->items[i];
    qsort(places, ranking->n, sizeof(struct gw_ranked *), compare_hit_places);
    for (size_t i = 0; i < ranking->n; i++) {
        if (i > 0 && places[i]->part != places[i - 1]->part)
            memset(scan->at, 0, at_bytes);
        score_tools(scan, places[i]);
        pick_tools(scan->scores, &hits[places[i] - ranking->items]);
    }
    return true;
}

/* ---- searching ---- */

static bool make_hits(const struct gw_rank_input *input, const struct gw_ranking *ranking,
                      struct peg__arena *arena, struct gw_search_result *ret_result)
{
    struct tool_scan scan = {.index = input->index, .query = input->query};
    struct gw_search_hit *hits = peg__arena_alloc_zero(arena, (ranking->n + 1) * sizeof(*hits));

    if (!hits)
        return false;
    for (size_t i = 0; i < ranking->n; i++) {
        hits[i].toolset = ranking->items[i].toolset;
        hits[i].score = (double)ranking->items[i].score * score_factor /
                        ((double)GW_WEIGHT_UNIT * GW_RARITY_UNIT);
    }
    *ret_result = (struct gw_search_result){.hits = hits, .n = ranking->n, .total = ranking->total};
    return find_tools(&scan, ranking, arena, hits);
}

static bool find_literals(const struct gw_search_index *index, peg_str folded,
                          struct peg__arena *arena, struct gw_literals **ret_literals)
{
    struct gw_literals *literals =
        peg__arena_alloc(arena, (index->n_parts + 1) * sizeof(*literals));

    for (unsigned p = 0; literals && p < index->n_parts; p++) {
        if (!gw_literals_find(&index->parts[p], folded, arena, &literals[p]))
            return false;
    }
    *ret_literals = literals;
    return literals != NULL;
}

static bool search_index(const struct gw_search_index *index, const struct gw_search_query *asked,
                         struct peg__arena *arena, struct gw_search_result *ret_result)
{
    char *folded = peg__arena_alloc(arena, asked->text.len + 1);
    struct gw_rank_input input = {.index = index, .asked = asked, .bonus = literal_bonus};
    struct gw_literals *literals;
    struct gw_ranking ranking;
    struct gw_query query;

    if (!folded)
        return false;
    gw_fold(asked->text, folded);
    input.folded = peg__strn(folded, asked->text.len);
    if (!find_literals(index, input.folded, arena, &literals) ||
        !gw_query_read(index, asked->text, arena, &query))
        return false;
    input.query = &query;
    input.literals = literals;
    return gw_rank(&input, arena, &ranking) && make_hits(&input, &ranking, arena, ret_result);
}

peg_status gw_search(const struct gw_snapshot *snapshot, const struct gw_search_query *query,
                     struct peg__arena *arena, struct gw_search_result *ret_result,
                     peg_error *reterr)
{
    struct gw_search_result result = {.n = 0};

    if (query->text.len > 0 && !search_index(snapshot->index, query, arena, &result))
        return peg__fail_nomem(reterr);
    *ret_result = result;
    return PEG_OK;
}
