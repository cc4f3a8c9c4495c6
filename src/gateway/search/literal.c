/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Toolsets whose name, description or tags contain the whole query.
 *
 * A query that is one word or a part of one is looked for in the list of words. With several words
 * a toolset must have those in between, one that ends with the first, and one that begins with the
 * last: those that have them all are read. Whole words are checked first, as most sentences end
 * there.
 */

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

enum { MAX_STAGES = 8 };

/* ---- words ---- */

/* How a word of a toolset has to be related to one of the query. */
enum relation { CONTAINS, ENDS, BEGINS, IS };

static bool is_related(peg_str term, peg_str word, enum relation relation)
{
    if (term.len < word.len || (relation == IS && term.len != word.len))
        return false;
    if (relation == ENDS)
        return memcmp(term.ptr + term.len - word.len, word.ptr, word.len) == 0;
    return relation == CONTAINS || memcmp(term.ptr, word.ptr, word.len) == 0;
}

/* The next term from `from` on that contains the word, or n. */
static uint32_t next_containing(const struct gw_terms *words, peg_str word, uint32_t from)
{
    const uint32_t start = words->text_at[from];
    const char *found =
        memmem(words->text + start, words->text_at[words->n] - start, word.ptr, word.len);
    uint32_t low = from;
    uint32_t high = words->n;
    uint32_t step = 1;

    if (!found)
        return words->n;
    /* Matches are often near to each other. */
    while (low + step < high && words->text_at[low + step] <= (uint32_t)(found - words->text)) {
        low += step;
        step *= 2;
    }
    high = low + step < high ? low + step : high;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (words->text_at[middle] <= (uint32_t)(found - words->text))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The next term from `from` on that is related to the word, or n. */
static uint32_t next_related(const struct gw_terms *words, peg_str word, enum relation relation,
                             uint32_t from)
{
    if (relation == BEGINS || relation == IS) {
        const uint32_t first = gw_terms_find(words, word);
        const uint32_t term = from > first ? from : first;

        return term < words->n && is_related(gw_terms_word(words, term), word, relation) ? term
                                                                                         : words->n;
    }
    while (from < words->n) {
        from = next_containing(words, word, from);
        if (from == words->n || is_related(gw_terms_word(words, from), word, relation))
            return from;
        from++;
    }
    return words->n;
}

/* ---- the query ---- */

/* The query as words with separators before, between and behind them. */
struct shape {
    peg_str words[MAX_STAGES];
    enum relation relations[MAX_STAGES];
    unsigned n; /* a filter only: words beyond are left to reading */
    bool is_one_word;
};

static struct shape shape_of(peg_str query)
{
    struct shape shape = {.n = 0};
    bool is_open_before = false;
    bool is_open_behind = false;
    peg_str rest = query;
    peg_str word;

    while (shape.n < MAX_STAGES && gw_next_word(&rest, &word)) {
        is_open_before = is_open_before || word.ptr == query.ptr;
        is_open_behind = word.ptr + word.len == query.ptr + query.len;
        shape.relations[shape.n] = IS;
        shape.words[shape.n++] = word;
    }
    if (shape.n && is_open_behind)
        shape.relations[shape.n - 1] = BEGINS;
    if (shape.n && is_open_before)
        shape.relations[0] = shape.relations[0] == BEGINS ? CONTAINS : ENDS;
    shape.is_one_word = shape.n == 1 && shape.words[0].len == query.len;
    return shape;
}

/* What is found so far, by toolset. */
struct found {
    const struct gw_part *part;
    uint8_t *docs;
};

/* The list of words has all there is to know. */
static void find_word(struct found *found, peg_str word)
{
    const struct gw_terms *words = &found->part->segment->words;

    for (uint32_t term = next_containing(words, word, 0); term < words->n;
         term = next_containing(words, word, term + 1)) {
        for (uint32_t i = words->at[term]; i < words->at[term + 1]; i++)
            found->docs[words->places[i]] |= words->weights[i];
    }
}

/* Counts up the toolsets of a word that have passed all stages before this one. */
static bool pass_docs(struct found *found, uint32_t term, uint8_t stage)
{
    const struct gw_terms *words = &found->part->segment->words;
    bool is_any = false;

    for (uint32_t i = words->at[term]; i < words->at[term + 1]; i++) {
        uint8_t *doc = &found->docs[words->places[i]];

        if (*doc == stage) {
            *doc = (uint8_t)(stage + 1);
            is_any = true;
        }
    }
    return is_any;
}

/* False: no toolset has passed this one, too. */
static bool pass_stage(struct found *found, const struct shape *shape, unsigned word, uint8_t stage)
{
    const struct gw_terms *words = &found->part->segment->words;
    const enum relation relation = shape->relations[word];
    bool is_any = false;

    for (uint32_t term = next_related(words, shape->words[word], relation, 0); term < words->n;
         term = next_related(words, shape->words[word], relation, term + 1))
        is_any = pass_docs(found, term, stage) || is_any;
    return is_any;
}

static bool pass_stages(struct found *found, const struct shape *shape)
{
    uint8_t stage = 0;

    for (unsigned is_whole = 2; is_whole-- > 0;) {
        for (unsigned i = 0; i < shape->n; i++) {
            if ((shape->relations[i] == IS) == is_whole && !pass_stage(found, shape, i, stage++))
                return false;
        }
    }
    return true;
}

static uint8_t read_doc(const struct gw_segment *segment, uint32_t doc,
                        const struct gw_needle *needle)
{
    const char *start = segment->main_text + segment->main_text_at[doc];
    const size_t len = segment->main_text_at[doc + 1] - segment->main_text_at[doc];
    const peg_str name = peg__str(start);
    const peg_str description = peg__str(start + name.len + 1);
    const peg_str tags = peg__str_from(peg__strn(start, len), name.len + description.len + 2);

    return (uint8_t)((gw_needle_is_in(needle, name) ? IN_NAME : 0) |
                     (gw_needle_is_in(needle, description) ? IN_DESCRIPTION : 0) |
                     (gw_needle_is_in(needle, tags) ? IN_TAG : 0));
}

static void read_passed(struct found *found, const struct shape *shape, peg_str query)
{
    const struct gw_segment *segment = found->part->segment;
    const struct gw_needle needle = gw_needle_of(query);

    for (uint32_t doc = 0; doc < segment->n_docs; doc++)
        found->docs[doc] = found->docs[doc] == shape->n ? read_doc(segment, doc, &needle) : 0;
}

static bool collect_literals(const struct found *found, struct peg__arena *arena,
                             struct gw_literals *ret_literals)
{
    const uint32_t n_docs = found->part->segment->n_docs;
    struct gw_literals literals = {.n = 0};
    uint32_t n = 0;

    for (uint32_t doc = 0; doc < n_docs; doc++)
        n += found->docs[doc] && gw_part_lives(found->part, doc);
    literals.items = peg__arena_alloc(arena, (n + 1) * sizeof(*literals.items));
    if (!literals.items)
        return false;
    for (uint32_t doc = 0; doc < n_docs && literals.n < n; doc++) {
        if (found->docs[doc] && gw_part_lives(found->part, doc))
            literals.items[literals.n++] =
                (struct gw_literal){.doc = doc, .where = found->docs[doc]};
    }
    *ret_literals = literals;
    return true;
}

bool gw_literals_find(const struct gw_part *part, peg_str folded, struct peg__arena *arena,
                      struct gw_literals *ret_literals)
{
    const struct shape shape = shape_of(folded);
    struct found found = {.part = part};
    bool is_done;

    found.docs = peg__alloc_zero(part->segment->n_docs + 1, 1);
    if (!found.docs)
        return false;
    *ret_literals = (struct gw_literals){.n = 0};
    if (shape.is_one_word) {
        find_word(&found, shape.words[0]);
        is_done = collect_literals(&found, arena, ret_literals);
    } else if (pass_stages(&found, &shape)) {
        read_passed(&found, &shape, folded);
        is_done = collect_literals(&found, arena, ret_literals);
    } else {
        is_done = true;
    }
    peg__free(found.docs);
    return is_done;
}
