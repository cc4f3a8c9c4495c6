/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which toolsets a query matches, and how well.
 *
 * By words: all terms that can match a word stand together in the sorted list, behind what its stem
 * begins with. Of all terms that match, the best counts, once for the toolset itself and once for
 * its tools.
 *
 * By containing the whole query: a query that is one word or part of one is looked for in the list
 * of terms. Of one with several words, a toolset must have a word that ends with the first, those
 * in between, and one that begins with the last: what has them all is read.
 */

#include "base/mem.h"
#include "base/str.h"
#include "gateway/search_internal.h"

enum { MAX_STAGES = 8 };

/* ---- the query ---------------------------------------------------------------------------------
 */

static bool is_known(const struct gw_match *match, peg_str word)
{
    for (unsigned i = 0; i < match->n_words; i++) {
        if (peg__str_eq(match->words[i].word, word))
            return true;
    }
    return false;
}

static void add_word(struct gw_match *match, peg_str folded)
{
    struct gw_query_word *word = &match->words[match->n_words];

    if (match->n_words == GW_QUERY_WORDS || is_known(match, folded))
        return;
    word->word = folded;
    word->stem_len = gw_stem(folded, word->stem);
    match->n_words++;
}

void gw_match_read_query(struct gw_match *match, peg_str text, char *folded)
{
    peg_str rest = text;
    peg_str word;
    peg_str piece;

    gw_fold(text, folded);
    match->query = peg__strn(folded, text.len);
    match->n_words = 0;
    while (gw_next_word(&rest, &word)) {
        while (gw_next_piece(&word, &piece))
            add_word(match, peg__strn(folded + (piece.ptr - text.ptr), piece.len));
    }
}

/* ---- words -------------------------------------------------------------------------------------
 */

/* How well a term matches a word of the query; 0: it does not. */
static float quality_of(const struct gw_query_word *word, peg_str term)
{
    char stem[GW_WORD_BYTES];

    if (peg__str_eq(term, word->word))
        return 1.0F;
    if (peg__str_eq(peg__strn(stem, gw_stem(term, stem)), peg__strn(word->stem, word->stem_len)))
        return 0.85F;
    if (word->word.len >= 2 && peg__str_starts(term, word->word))
        return 0.4F + 0.4F * (float)word->word.len / (float)term.len;
    return 0.0F;
}

static float main_weight(uint32_t where)
{
    return (where & IN_NAME ? 8.0F : 0.0F) + (where & IN_TAG ? 5.0F : 0.0F) +
           (where & IN_DESCRIPTION ? 2.0F : 0.0F);
}

static float tool_weight(uint32_t where)
{
    return (where & IN_TOOL_NAME ? 4.0F : 0.0F) + (where & IN_TOOL_TAG ? 3.0F : 0.0F) +
           (where & IN_TOOL_DESCRIPTION ? 1.5F : 0.0F) + (where & IN_ARGUMENT ? 1.0F : 0.0F);
}

/* Goes through the terms of a segment that match a word. */
struct walk {
    const struct gw_segment *segment;
    const struct gw_query_word *word;
    peg_str prefix;
    uint32_t next;
    uint32_t term;
    float quality;
};

static struct walk begin_walk(const struct gw_segment *segment, const struct gw_query_word *word)
{
    const size_t n = gw_stem_prefix(peg__strn(word->stem, word->stem_len));
    /* A single letter is looked for as it is: nothing else has it as its stem. */
    const peg_str prefix = word->word.len < 2 ? word->word : peg__strn(word->stem, n);

    return (struct walk){.segment = segment,
                         .word = word,
                         .prefix = prefix,
                         .next = gw_segment_find(segment, prefix)};
}

static bool walk_on(struct walk *walk)
{
    while (walk->next < walk->segment->n_terms) {
        const peg_str term = gw_segment_term(walk->segment, walk->next);

        if (!peg__str_starts(term, walk->prefix) || (walk->word->word.len < 2 && term.len > 1))
            return false;
        walk->term = walk->next++;
        walk->quality = quality_of(walk->word, term);
        if (walk->quality > 0)
            return true;
    }
    return false;
}

static void raise(float *value, float to)
{
    if (*value < to)
        *value = to;
}

static void match_term(struct gw_match *match, unsigned p, const struct walk *walk)
{
    const struct gw_part *part = &match->index->parts[p];
    const struct gw_segment *segment = part->segment;
    float *main = match->main + match->base[p];
    float *tool = match->tool + match->base[p];

    for (uint32_t i = segment->main_at[walk->term]; i < segment->main_at[walk->term + 1]; i++)
        raise(&main[segment->mains[i] >> MAIN_BITS],
              walk->quality * main_weight(segment->mains[i]));
    for (uint32_t i = segment->tool_at[walk->term]; i < segment->tool_at[walk->term + 1]; i++)
        raise(&tool[segment->tool_doc[segment->tools[i] >> TOOL_BITS]],
              walk->quality * tool_weight(segment->tools[i]));
}

/* The natural logarithm of 1 + n_living / n_found, without libm: halved until the series of atanh
 * takes a few terms. */
double gw_rarity(size_t n_living, size_t n_found)
{
    const double ln2 = 0.69314718055994530942;
    double x = 1 + (double)n_living / (double)n_found;
    double result = 0;
    double power;
    double y;

    while (x > 1.5) {
        x /= 2;
        result += ln2;
    }
    y = (x - 1) / (x + 1);
    power = y;
    for (unsigned i = 1; i < 30; i += 2) {
        result += 2 * power / i;
        power *= y * y;
    }
    return result;
}

/* Adds what one word has found, and forgets it. */
static void add_up(struct gw_match *match, struct gw_query_word *word, size_t n_living)
{
    const uint32_t n = match->base[match->index->n_parts];
    size_t n_found = 0;

    for (unsigned p = 0; p < match->index->n_parts; p++) {
        const struct gw_part *part = &match->index->parts[p];

        for (uint32_t i = match->base[p]; i < match->base[p + 1]; i++)
            n_found += (match->main[i] > 0 || match->tool[i] > 0) &&
                       gw_part_lives(part, i - match->base[p]);
    }
    word->rarity = n_found ? gw_rarity(n_living, n_found) : 0;
    for (uint32_t i = 0; n_found && i < n; i++) {
        const float value = match->main[i] + match->tool[i];

        if (value > 0) {
            match->score[i] += word->rarity * (double)value;
            match->n_matched[i]++;
        }
        match->main[i] = match->tool[i] = 0;
    }
}

static void match_word(struct gw_match *match, struct gw_query_word *word, size_t n_living)
{
    for (unsigned p = 0; p < match->index->n_parts; p++) {
        struct walk walk = begin_walk(match->index->parts[p].segment, word);

        while (walk_on(&walk))
            match_term(match, p, &walk);
    }
    add_up(match, word, n_living);
}

static void tell_tools(const struct walk *walk, uint32_t base, gw_tool_match_fn fn, void *user)
{
    const struct gw_segment *segment = walk->segment;

    for (uint32_t i = segment->tool_at[walk->term]; i < segment->tool_at[walk->term + 1]; i++) {
        const uint32_t tool = segment->tools[i] >> TOOL_BITS;
        const uint32_t doc = segment->tool_doc[tool];

        fn(user, base + doc, tool - segment->first_tool[doc],
           walk->quality * tool_weight(segment->tools[i]));
    }
}

void gw_match_each_tool(const struct gw_match *match, const struct gw_query_word *word,
                        gw_tool_match_fn fn, void *user)
{
    for (unsigned p = 0; p < match->index->n_parts; p++) {
        struct walk walk = begin_walk(match->index->parts[p].segment, word);

        while (walk_on(&walk))
            tell_tools(&walk, match->base[p], fn, user);
    }
}

/* ---- the whole query ---------------------------------------------------------------------------
 */

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

/* The next term from `from` on that contains the word, or n_terms. */
static uint32_t next_containing(const struct gw_segment *segment, peg_str word, uint32_t from)
{
    const uint32_t start = segment->text_at[from];
    const char *found = memmem(segment->text + start, segment->text_at[segment->n_terms] - start,
                               word.ptr, word.len);
    uint32_t low = from;
    uint32_t high = segment->n_terms;
    uint32_t step = 1;

    if (!found)
        return segment->n_terms;
    /* Matches are often near to each other. */
    while (low + step < high && segment->text_at[low + step] <= (uint32_t)(found - segment->text)) {
        low += step;
        step *= 2;
    }
    high = low + step < high ? low + step : high;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (segment->text_at[middle] <= (uint32_t)(found - segment->text))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The next term from `from` on that is related to the word, or n_terms. */
static uint32_t next_related(const struct gw_segment *segment, peg_str word, enum relation relation,
                             uint32_t from)
{
    if (relation == BEGINS || relation == IS) {
        const uint32_t first = gw_segment_find(segment, word);
        const uint32_t term = from > first ? from : first;

        return term < segment->n_terms && is_related(gw_segment_term(segment, term), word, relation)
                   ? term
                   : segment->n_terms;
    }
    while (from < segment->n_terms) {
        from = next_containing(segment, word, from);
        if (from == segment->n_terms || is_related(gw_segment_term(segment, from), word, relation))
            return from;
        from++;
    }
    return segment->n_terms;
}

/* The query as words with separators before, between and behind them. */
struct shape {
    peg_str words[MAX_STAGES];
    unsigned n; /* a filter only: words beyond are left to reading */
    bool begins_with_word;
    bool ends_with_word;
    bool has_more;
};

static struct shape shape_of(peg_str query)
{
    struct shape shape = {.begins_with_word = gw_is_word_byte(query.ptr[0]),
                          .ends_with_word = gw_is_word_byte(query.ptr[query.len - 1])};
    peg_str rest = query;
    peg_str word;

    while (gw_next_word(&rest, &word)) {
        if (shape.n == MAX_STAGES) {
            shape.has_more = true;
            break;
        }
        shape.words[shape.n++] = word;
    }
    return shape;
}

static enum relation relation_of(const struct shape *shape, unsigned i)
{
    const bool is_open_before = i == 0 && shape->begins_with_word;
    const bool is_open_behind = i + 1 == shape->n && shape->ends_with_word && !shape->has_more;

    if (is_open_before)
        return is_open_behind ? CONTAINS : ENDS;
    return is_open_behind ? BEGINS : IS;
}

/* One word that lies inside of a word of the toolset: the terms tell all there is to know. */
static void match_inside(struct gw_match *match, unsigned p, peg_str word)
{
    const struct gw_segment *segment = match->index->parts[p].segment;
    uint8_t *whole = match->whole + match->base[p];

    for (uint32_t term = next_containing(segment, word, 0); term < segment->n_terms;
         term = next_containing(segment, word, term + 1)) {
        for (uint32_t i = segment->main_at[term]; i < segment->main_at[term + 1]; i++)
            whole[segment->mains[i] >> MAIN_BITS] |=
                (uint8_t)(segment->mains[i] >> WHOLE_SHIFT & (IN_NAME | IN_TAG | IN_DESCRIPTION));
    }
}

/* Counts up those toolsets that have had all words before this one, and have it. */
static void pass_stage(const struct gw_segment *segment, const struct shape *shape, unsigned stage,
                       uint8_t *passed)
{
    const enum relation relation = relation_of(shape, stage);
    const peg_str word = shape->words[stage];

    for (uint32_t term = next_related(segment, word, relation, 0); term < segment->n_terms;
         term = next_related(segment, word, relation, term + 1)) {
        for (uint32_t i = segment->main_at[term]; i < segment->main_at[term + 1]; i++) {
            uint8_t *doc = &passed[segment->mains[i] >> MAIN_BITS];

            if (*doc == stage)
                *doc = (uint8_t)(stage + 1);
        }
    }
}

static uint8_t read_whole(const struct gw_segment *segment, uint32_t doc,
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

static void match_by_reading(struct gw_match *match, unsigned p, const struct shape *shape)
{
    const struct gw_part *part = &match->index->parts[p];
    const struct gw_needle needle = gw_needle_of(match->query);
    uint8_t *whole = match->whole + match->base[p]; /* counts stages first */

    for (unsigned stage = 0; stage < shape->n; stage++)
        pass_stage(part->segment, shape, stage, whole);
    for (uint32_t doc = 0; doc < part->segment->n_docs; doc++)
        whole[doc] = whole[doc] == shape->n && gw_part_lives(part, doc)
                         ? read_whole(part->segment, doc, &needle)
                         : 0;
}

static void match_whole(struct gw_match *match)
{
    const struct shape shape = shape_of(match->query);
    const bool is_inside =
        shape.n == 1 && shape.begins_with_word && shape.ends_with_word && !shape.has_more;

    for (unsigned p = 0; p < match->index->n_parts; p++) {
        if (is_inside)
            match_inside(match, p, shape.words[0]);
        else
            match_by_reading(match, p, &shape);
    }
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

bool gw_match_run(struct gw_match *match, size_t n_living)
{
    uint32_t n = 0;

    for (unsigned p = 0; p < match->index->n_parts; p++) {
        match->base[p] = n;
        n += match->index->parts[p].segment->n_docs;
    }
    match->base[match->index->n_parts] = n;
    match->memory =
        peg__alloc_zero(n + 1, sizeof(double) + 2 * sizeof(float) + 2 * sizeof(uint8_t));
    if (!match->memory)
        return false;
    match->score = match->memory;
    match->main = (float *)(match->score + n);
    match->tool = match->main + n;
    match->n_matched = (uint8_t *)(match->tool + n);
    match->whole = match->n_matched + n;
    match_whole(match);
    for (unsigned i = 0; i < match->n_words; i++)
        match_word(match, &match->words[i], n_living);
    return true;
}

void gw_match_free(struct gw_match *match)
{
    peg__free(match->memory);
}
