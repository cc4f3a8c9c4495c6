/* SPDX-License-Identifier: Apache-2.0 */

/* The best of what matches: scores, the first few of them, and the tools that made them. */

#include "gateway/search.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/info.h"
#include "gateway/search_internal.h"

/* ---- scores ------------------------------------------------------------------------------------
 */

/* What containing the whole query is worth. `name` is folded. */
static double whole_score(const char *name, uint8_t where, peg_str query)
{
    double score = 0;

    if (where & IN_NAME) {
        score += 6;
        if (memcmp(name, query.ptr, query.len) == 0)
            score += name[query.len] == '\0' ? 14 : 2;
    }
    if (where & IN_TAG)
        score += 3;
    if (where & IN_DESCRIPTION)
        score += 1.5;
    return score;
}

/* One that has all the words counts twice as much as one with few of them. */
static double score_of(const struct gw_match *match, const char *name, uint32_t i)
{
    double score = whole_score(name, match->whole[i], match->query);

    if (match->n_matched[i])
        score +=
            match->score[i] * (0.5 + 0.5 * (double)match->n_matched[i] / (double)match->n_words);
    return score;
}

/* ---- the first few -----------------------------------------------------------------------------
 */

/* A heap whose root is the worst of the best. */
struct found {
    const struct gw_toolset *toolset;
    double score;
    uint32_t doc;
    unsigned part;
};

struct best {
    struct found *items;
    size_t n;
    size_t max;
    size_t total;
};

static int compare_found(const void *x, const void *y)
{
    const struct found *a = x;
    const struct found *b = y;

    if (a->score > b->score || a->score < b->score)
        return a->score > b->score ? -1 : 1;
    if (a->part == b->part) /* which has them by name */
        return a->doc < b->doc ? -1 : a->doc > b->doc;
    return strcmp(a->toolset->name.ptr, b->toolset->name.ptr);
}

static void sift_down(struct best *best, struct found item)
{
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < best->n && compare_found(&best->items[child + 1], &best->items[child]) > 0)
            child++;
        if (child >= best->n || compare_found(&best->items[child], &item) <= 0)
            break;
        best->items[i] = best->items[child];
        i = child;
    }
    best->items[i] = item;
}

static void sift_up(struct best *best, struct found item)
{
    size_t i = best->n++;

    while (i > 0 && compare_found(&item, &best->items[(i - 1) / 2]) > 0) {
        best->items[i] = best->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    best->items[i] = item;
}

static void offer(struct best *best, struct found item)
{
    best->total++;
    if (best->n < best->max)
        sift_up(best, item);
    else if (best->n > 0 && compare_found(&item, &best->items[0]) < 0)
        sift_down(best, item);
}

static void choose(const struct gw_match *match, const struct gw_search_query *query,
                   struct best *best)
{
    for (unsigned p = 0; p < match->index->n_parts; p++) {
        const struct gw_part *part = &match->index->parts[p];
        const struct gw_segment *segment = part->segment;

        for (uint32_t doc = 0; doc < segment->n_docs; doc++) {
            const uint32_t i = match->base[p] + doc;
            const struct gw_toolset *toolset = segment->docs[doc];

            if ((!match->whole[i] && !match->n_matched[i]) || !gw_part_lives(part, doc) ||
                !gw_info_has_tags(toolset, query->tags, query->n_tags))
                continue;
            offer(best,
                  (struct found){
                      toolset, score_of(match, segment->main_text + segment->main_text_at[doc], i),
                      i, p});
        }
    }
    qsort(best->items, best->n, sizeof(*best->items), compare_found);
}

/* ---- tools of the first few --------------------------------------------------------------------
 */

struct tools {
    const struct best *best;
    uint32_t *place; /* by number of toolset: its place among the best + 1 */
    size_t *first;   /* by place: of its tools in the arrays below */
    float *word;     /* what the word that is looked at found */
    double *score;
    double rarity;
};

static void note_tool(void *user, uint32_t doc, uint32_t tool, float value)
{
    struct tools *tools = user;
    const uint32_t place = tools->place[doc];
    float *word;

    if (!place)
        return;
    word = &tools->word[tools->first[place - 1] + tool];
    if (*word >= value)
        return;
    tools->score[tools->first[place - 1] + tool] += tools->rarity * (double)(value - *word);
    *word = value;
}

struct ranked_tool {
    size_t number;
    double score;
};

/* Keeps the best GW_SEARCH_TOOLS, those that stand first in the toolset before their equals. */
static void pick_tools(const double *scores, struct gw_search_hit *hit)
{
    struct ranked_tool ranked[GW_SEARCH_TOOLS + 1];
    unsigned n = 0;

    for (size_t i = 0; i < hit->toolset->n_tools; i++) {
        unsigned at = n;

        if (scores[i] <= 0 || (n == GW_SEARCH_TOOLS && scores[i] <= ranked[n - 1].score))
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

static bool find_tools(const struct gw_match *match, const struct best *best,
                       struct gw_search_hit *hits)
{
    const uint32_t n_docs = match->base[match->index->n_parts];
    struct tools tools = {.best = best};
    size_t n = 0;
    void *memory;

    for (size_t i = 0; i < best->n; i++)
        n += best->items[i].toolset->n_tools;
    memory = peg__alloc_zero(1, n * (sizeof(double) + sizeof(float)) + best->n * sizeof(size_t) +
                                    n_docs * sizeof(uint32_t) + sizeof(double));
    if (!memory)
        return false;
    tools.score = memory;
    tools.first = (size_t *)(void *)(tools.score + n);
    tools.place = (uint32_t *)(tools.first + best->n);
    tools.word = (float *)(void *)(tools.place + n_docs);
    n = 0;
    for (size_t i = 0; i < best->n; i++) {
        tools.place[best->items[i].doc] = (uint32_t)i + 1;
        tools.first[i] = n;
        n += best->items[i].toolset->n_tools;
    }
    for (unsigned w = 0; w < match->n_words; w++) {
        tools.rarity = match->words[w].rarity;
        memset(tools.word, 0, n * sizeof(*tools.word));
        gw_match_each_tool(match, &match->words[w], note_tool, &tools);
    }
    for (size_t i = 0; i < best->n; i++)
        pick_tools(tools.score + tools.first[i], &hits[i]);
    peg__free(memory);
    return true;
}

/* ---- searching ---------------------------------------------------------------------------------
 */

static bool find_best(struct gw_match *match, const struct gw_search_query *query,
                      struct peg__arena *arena, struct gw_search_result *ret_result)
{
    const uint32_t n_docs = match->base[match->index->n_parts];
    struct best best = {.max = query->limit < n_docs ? query->limit : n_docs};
    bool is_done;

    best.items = peg__alloc((best.max + 1) * sizeof(*best.items));
    if (!best.items)
        return false;
    choose(match, query, &best);
    *ret_result = (struct gw_search_result){.n = best.n, .total = best.total};
    ret_result->hits = peg__arena_alloc_zero(arena, (best.n + 1) * sizeof(*ret_result->hits));
    is_done = ret_result->hits != NULL;
    for (size_t i = 0; is_done && i < best.n; i++)
        ret_result->hits[i] =
            (struct gw_search_hit){.toolset = best.items[i].toolset, .score = best.items[i].score};
    is_done = is_done && find_tools(match, &best, ret_result->hits);
    peg__free(best.items);
    return is_done;
}

static bool search(const struct gw_search_index *index, const struct gw_snapshot *snapshot,
                   const struct gw_search_query *query, struct peg__arena *arena,
                   struct gw_search_result *ret_result)
{
    struct gw_match match = {.index = index};
    char *folded = peg__arena_alloc(arena, query->text.len + 1);
    bool is_done;

    if (!folded)
        return false;
    gw_match_read_query(&match, query->text, folded);
    is_done = gw_match_run(&match, snapshot->n) && find_best(&match, query, arena, ret_result);
    gw_match_free(&match);
    return is_done;
}

peg_status gw_search(const struct gw_snapshot *snapshot, const struct gw_search_query *query,
                     struct peg__arena *arena, struct gw_search_result *ret_result,
                     peg_error *reterr)
{
    const struct gw_toolsets none = {.n = 0};
    const struct gw_toolsets now = {.list = snapshot->toolsets, .n = snapshot->n};
    struct gw_search_index *index = gw_search_index_ref(snapshot->index);
    struct gw_search_result result = {.n = 0};
    bool is_done;

    if (query->text.len == 0) {
        *ret_result = result;
        return PEG_OK;
    }
    if (!index)
        index = gw_search_index_next(NULL, 0, none, now);
    is_done = index && search(index, snapshot, query, arena, &result);
    gw_search_index_unref(index);
    if (!is_done)
        return peg__fail_nomem(reterr);
    *ret_result = result;
    return PEG_OK;
}
