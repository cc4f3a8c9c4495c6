/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The best toolsets, by MaxScore. A toolset that is better than the worst of the best so far must
 * have one of the words that can make it so. The other words, those that together add too little,
 * needn't be looked for: they are only looked up in toolsets that have been found.
 *
 * Goes through each part in windows of some thousand texts. In a window the words that matter are
 * added up, one after the other; then each toolset that has some of them is completed, unless its
 * bound says that it won't be among the best.
 *
 * The first PEG_LIMIT_GATEWAY_PAGE toolsets are found by all words, so that small totals are exact.
 */

#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

enum { WINDOW = 4096 };

static const uint32_t NO_DOC = UINT32_MAX;

/* ---- the best so far: a heap with the worst at its root ---- */

struct best {
    struct gw_ranked *items;
    size_t n;
    size_t max;
};

static int compare_ranked(const void *x, const void *y)
{
    const struct gw_ranked *a = x;
    const struct gw_ranked *b = y;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->is_healthy != b->is_healthy)
        return a->is_healthy ? -1 : 1;
    if (a->part == b->part) /* which has them by name */
        return a->doc < b->doc ? -1 : a->doc > b->doc;
    return strcmp(a->toolset->name.ptr, b->toolset->name.ptr);
}

static void sift_down(struct best *best, struct gw_ranked item)
{
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < best->n && compare_ranked(&best->items[child + 1], &best->items[child]) > 0)
            child++;
        if (child >= best->n || compare_ranked(&best->items[child], &item) <= 0)
            break;
        best->items[i] = best->items[child];
        i = child;
    }
    best->items[i] = item;
}

static void sift_up(struct best *best, struct gw_ranked item)
{
    size_t i = best->n++;

    while (i > 0 && compare_ranked(&item, &best->items[(i - 1) / 2]) > 0) {
        best->items[i] = best->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    best->items[i] = item;
}

/* A toolset with less can't get in. */
static uint32_t threshold(const struct best *best)
{
    return best->n == best->max ? best->items[0].score : 0;
}

/* Asks for the health only where it may decide. */
static void offer(struct best *best, const struct gw_search_query *asked, struct gw_ranked item)
{
    if (best->max == 0 || item.score < threshold(best))
        return;
    item.is_healthy = true;
    if (best->n == best->max && compare_ranked(&item, &best->items[0]) >= 0)
        return;
    item.is_healthy = !asked->is_healthy || asked->is_healthy(asked->user, item.toolset->name);
    if (best->n < best->max)
        sift_up(best, item);
    else if (compare_ranked(&item, &best->items[0]) < 0)
        sift_down(best, item);
}

/* ---- one part ---- */

/* A word in a part. */
struct list {
    struct gw_postings postings;
    uint32_t at;     /* the next posting */
    uint32_t weight; /* of the word */
    uint32_t bound;  /* the most that it adds to one toolset */
    uint32_t sum;    /* of the bounds up to this one's */
};

struct scan {
    const struct gw_rank_input *input;
    struct best best;
    size_t total;
    const struct gw_part *part;
    const struct gw_segment *segment;
    unsigned part_number;
    struct list *lists; /* those with the smallest bounds first */
    unsigned n_lists;
    unsigned n_optional; /* so many of the first can't make a toolset one of the best */
    uint32_t next_literal;
    uint32_t base;    /* the first text of the window */
    uint32_t *scores; /* of the texts of the window */
    uint64_t *found;  /* texts of the window that have a score */
};

static int compare_lists(const void *x, const void *y)
{
    const struct list *a = x;
    const struct list *b = y;

    return a->bound < b->bound ? -1 : a->bound > b->bound;
}

static void begin_part(struct scan *s, unsigned p)
{
    const struct gw_query *query = s->input->query;
    uint32_t sum = 0;

    s->part = &s->input->index->parts[p];
    s->segment = s->part->segment;
    s->part_number = p;
    s->next_literal = 0;
    s->n_lists = 0;
    for (unsigned i = 0; i < query->n; i++) {
        const struct gw_query_word *word = &query->words[i];

        if (word->parts[p].n)
            s->lists[s->n_lists++] = (struct list){.postings = word->parts[p],
                                                   .weight = word->weight,
                                                   .bound = word->weight * word->parts[p].most};
    }
    qsort(s->lists, s->n_lists, sizeof(*s->lists), compare_lists);
    for (unsigned i = 0; i < s->n_lists; i++)
        s->lists[i].sum = sum += s->lists[i].bound;
}

/* Equal scores can still get in by their names: so "less", not "at most". */
static void choose_optional(struct scan *s)
{
    s->n_optional = 0;
    if (s->total < PEG_LIMIT_GATEWAY_PAGE)
        return;
    while (s->n_optional < s->n_lists && s->lists[s->n_optional].sum < threshold(&s->best))
        s->n_optional++;
}

uint32_t gw_postings_seek(const struct gw_postings *postings, uint32_t at, uint32_t text)
{
    uint32_t step = 1;
    uint32_t high;

    if (at >= postings->n || postings->texts[at] >= text)
        return at;
    while (at + step < postings->n && postings->texts[at + step] < text) {
        at += step;
        step *= 2;
    }
    high = at + step < postings->n ? at + step : postings->n;
    while (high - at > 1) {
        const uint32_t middle = at + (high - at) / 2;

        if (postings->texts[middle] < text)
            at = middle;
        else
            high = middle;
    }
    return high;
}

static void mark_found(struct scan *s, uint32_t i)
{
    s->found[i / 64] |= UINT64_C(1) << (i % 64);
}

static void add_list(struct scan *s, struct list *list, uint32_t end)
{
    uint32_t i = gw_postings_seek(&list->postings, list->at, s->base);

    for (; i < list->postings.n && list->postings.texts[i] < end; i++) {
        const uint32_t text = list->postings.texts[i] - s->base;

        s->scores[text] += list->weight * list->postings.weights[i];
        mark_found(s, text);
    }
    list->at = i;
}

/* A toolset that was found: its own score, and that of its best tool. */
struct candidate {
    uint32_t doc;
    uint32_t own;
    uint32_t best;
    uint32_t bonus;
};

static uint32_t score_of(const struct candidate *c)
{
    return c->own + c->best + c->bonus;
}

static uint32_t bound_of(const struct scan *s, const struct candidate *c)
{
    return score_of(c) + (s->n_optional ? s->lists[s->n_optional - 1].sum : 0);
}

static void add_optional(struct scan *s, struct list *list, struct candidate *c)
{
    const uint32_t first = s->segment->first_text[c->doc];
    const uint32_t end = s->segment->first_text[c->doc + 1];
    uint32_t i = gw_postings_seek(&list->postings, list->at, first);

    for (; i < list->postings.n && list->postings.texts[i] < end; i++) {
        uint32_t *score = &s->scores[list->postings.texts[i] - s->base];

        *score += list->weight * list->postings.weights[i];
        if (list->postings.texts[i] == first)
            c->own = *score;
        else
            c->best = *score > c->best ? *score : c->best;
    }
    list->at = i;
}

/* Where other rankings could be fused in: a score of theirs is added to the candidate's, and the
 * most that it can be to the bounds. */
static void complete_candidate(struct scan *s, struct candidate *c)
{
    const uint32_t least = threshold(&s->best);

    for (unsigned i = s->n_optional; i-- > 0;) {
        if (score_of(c) + s->lists[i].sum < least)
            return;
        add_optional(s, &s->lists[i], c);
    }
    offer(&s->best, s->input->asked,
          (struct gw_ranked){.toolset = s->segment->docs[c->doc],
                             .score = score_of(c),
                             .doc = c->doc,
                             .part = s->part_number});
}

/* Those of toolsets before this one are done with. */
static void skip_literals(struct scan *s, uint32_t doc)
{
    const struct gw_literals *literals = &s->input->literals[s->part_number];

    while (s->next_literal < literals->n && literals->items[s->next_literal].doc < doc)
        s->next_literal++;
}

static uint32_t find_bonus(struct scan *s, uint32_t doc)
{
    const struct gw_literals *literals = &s->input->literals[s->part_number];

    skip_literals(s, doc);
    if (s->next_literal == literals->n || literals->items[s->next_literal].doc != doc)
        return 0;
    return s->input->bonus(s->input, s->segment, literals->items[s->next_literal]);
}

static void visit(struct scan *s, struct candidate *c)
{
    const struct gw_search_query *asked = s->input->asked;

    c->bonus = find_bonus(s, c->doc);
    if ((s->total >= PEG_LIMIT_GATEWAY_PAGE && bound_of(s, c) < threshold(&s->best)) ||
        !gw_part_lives(s->part, c->doc) ||
        !gw_toolset_has_tags(s->segment->docs[c->doc], asked->tags, asked->n_tags))
        return;
    s->total++;
    complete_candidate(s, c);
}

/* A text that was found is one of the candidate's, or begins the next one. */
static void take_text(struct scan *s, struct candidate *c, uint32_t at)
{
    const uint32_t doc = s->segment->text_doc[s->base + at];
    const uint32_t score = s->scores[at];

    if (doc != c->doc) {
        if (c->doc != NO_DOC)
            visit(s, c);
        *c = (struct candidate){.doc = doc};
    }
    if (s->base + at == s->segment->first_text[doc])
        c->own = score;
    else
        c->best = score > c->best ? score : c->best;
}

/* The toolsets of the window that have been found. */
static void visit_found(struct scan *s, uint32_t n)
{
    struct candidate c = {.doc = NO_DOC};

    for (uint32_t i = 0; i < n; i += 64) {
        for (uint64_t bits = s->found[i / 64]; bits; bits &= bits - 1)
            take_text(s, &c, i + (uint32_t)__builtin_ctzll(bits));
    }
    if (c.doc != NO_DOC)
        visit(s, &c);
}

static void mark_literals(struct scan *s, uint32_t end)
{
    const struct gw_literals *literals = &s->input->literals[s->part_number];

    for (uint32_t i = s->next_literal; i < literals->n && literals->items[i].doc < end; i++)
        mark_found(s, s->segment->first_text[literals->items[i].doc] - s->base);
}

/* The toolset behind the window that begins with this one. */
static uint32_t window_end(const struct gw_segment *segment, uint32_t doc)
{
    const uint64_t last = (uint64_t)segment->first_text[doc] + WINDOW;
    uint32_t low = doc + 1;
    uint32_t high = segment->n_docs;

    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;

        if (segment->first_text[middle] <= last)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void scan_window(struct scan *s, uint32_t doc, uint32_t end_doc)
{
    const uint32_t end = s->segment->first_text[end_doc];
    uint32_t n;

    s->base = s->segment->first_text[doc];
    n = end - s->base;
    for (unsigned i = s->n_optional; i < s->n_lists; i++)
        add_list(s, &s->lists[i], end);
    mark_literals(s, end_doc);
    visit_found(s, n);
    skip_literals(s, end_doc);
    memset(s->scores, 0, n * sizeof(*s->scores));
    memset(s->found, 0, (n + 63) / 64 * sizeof(*s->found));
}

static void scan_part(struct scan *s, unsigned p)
{
    uint32_t end;

    begin_part(s, p);
    if (s->n_lists == 0 && s->input->literals[p].n == 0)
        return;
    for (uint32_t doc = 0; doc < s->segment->n_docs; doc = end) {
        choose_optional(s);
        if (s->n_optional == s->n_lists && s->next_literal == s->input->literals[p].n)
            break;
        end = window_end(s->segment, doc);
        scan_window(s, doc, end);
    }
}

/* ---- all parts ---- */

static uint32_t widest_window(const struct gw_search_index *index)
{
    uint32_t most = WINDOW;

    for (unsigned p = 0; p < index->n_parts; p++) {
        const struct gw_segment *segment = index->parts[p].segment;

        most = segment->max_texts > most ? segment->max_texts : most;
    }
    return most;
}

static size_t count_docs(const struct gw_search_index *index)
{
    size_t n = 0;

    for (unsigned p = 0; p < index->n_parts; p++)
        n += index->parts[p].segment->n_docs;
    return n;
}

bool gw_rank(const struct gw_rank_input *input, struct peg__arena *arena,
             struct gw_ranking *ret_ranking)
{
    const size_t n_docs = count_docs(input->index);
    const size_t n_texts = widest_window(input->index);
    struct scan s = {.input = input};

    s.best.max = input->asked->limit < n_docs ? input->asked->limit : n_docs;
    s.best.items = peg__arena_alloc(arena, (s.best.max + 1) * sizeof(*s.best.items));
    s.lists = peg__arena_alloc(arena, (input->query->n + 1) * sizeof(*s.lists));
    s.scores = peg__alloc_zero(n_texts, sizeof(*s.scores));
    s.found = peg__alloc_zero((n_texts + 63) / 64, sizeof(*s.found));
    if (s.best.items && s.lists && s.scores && s.found) {
        for (unsigned p = 0; p < input->index->n_parts; p++)
            scan_part(&s, p);
        qsort(s.best.items, s.best.n, sizeof(*s.best.items), compare_ranked);
        *ret_ranking = (struct gw_ranking){.items = s.best.items, .n = s.best.n, .total = s.total};
    }
    peg__free(s.scores);
    peg__free(s.found);
    return s.best.items && s.lists && s.scores && s.found;
}
