/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The words of a query: their stems, the postings of each in every part of the index, and how much
 * each counts.
 *
 * A word that no living toolset has is widened: to the stems that begin with it, else to those one
 * edit away or a few letters shorter. All of them together become one list of postings, and count
 * half.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

enum {
    MIN_PREFIX = 3,      /* letters of a word that may begin others */
    MIN_EDIT = 5,        /* letters of a word that may have a typo */
    MAX_SHORTER = 3,     /* letters that a stem may lack */
    MAX_TEXTS = 1 << 18, /* postings of all words together: half a millisecond */
};

/* ---- rarity ---- */

/* The natural logarithm of (n_texts + 1) / (n_found + 1/2), which is BM25's. Without libm, so that
 * it is the same everywhere: halved until the series of atanh takes a few terms. */
uint32_t gw_rarity(uint64_t n_texts, uint64_t n_found)
{
    const double ln2 = 0.69314718055994530942;
    double x = ((double)n_texts + 1) / ((double)n_found + 0.5);
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
    return result * GW_RARITY_UNIT < 1 ? 1 : (uint32_t)(result * GW_RARITY_UNIT);
}

/* ---- postings ---- */

static struct gw_postings find_postings(const struct gw_segment *segment, peg_str stem)
{
    const struct gw_terms *stems = &segment->stems;
    const uint32_t term = gw_terms_find(stems, stem);

    if (term == stems->n || !peg__str_eq(gw_terms_word(stems, term), stem))
        return (struct gw_postings){.n = 0};
    return (struct gw_postings){.texts = stems->places + stems->at[term],
                                .weights = stems->weights + stems->at[term],
                                .n = stems->at[term + 1] - stems->at[term],
                                .most = segment->most[term]};
}

static uint32_t count_living(const struct gw_part *part, const struct gw_postings *postings)
{
    uint32_t n = postings->n;

    for (uint32_t i = 0; part->dead && i < postings->n; i++)
        n -= !gw_part_lives(part, part->segment->text_doc[postings->texts[i]]);
    return n;
}

static uint64_t count_texts(const struct gw_search_index *index)
{
    uint64_t n = 0;

    for (unsigned p = 0; p < index->n_parts; p++) {
        const struct gw_part *part = &index->parts[p];

        n += part->segment->first_text[part->segment->n_docs] - part->n_dead_texts;
    }
    return n;
}

/* ---- widening ---- */

enum widening { BY_PREFIX, BY_EDIT };

/* Gathers the postings of several stems of a part. */
struct gather {
    const struct gw_part *part;
    uint8_t *best; /* by text: the greatest weight; all 0 in between */
    uint32_t n;    /* texts that have one */
};

static void gather_stem(struct gather *g, uint32_t stem)
{
    const struct gw_terms *stems = &g->part->segment->stems;

    for (uint32_t i = stems->at[stem]; i < stems->at[stem + 1]; i++) {
        uint8_t *best = &g->best[stems->places[i]];

        g->n += *best == 0;
        *best = stems->weights[i] > *best ? stems->weights[i] : *best;
    }
}

static void gather_prefix(struct gather *g, peg_str prefix)
{
    const struct gw_terms *stems = &g->part->segment->stems;

    for (uint32_t i = gw_terms_find(stems, prefix);
         i < stems->n && peg__str_starts(gw_terms_word(stems, i), prefix); i++)
        gather_stem(g, i);
}

/* Is one of them the other with a letter added, left out or replaced, or two swapped? */
static bool is_one_edit(peg_str a, peg_str b)
{
    const size_t shorter = a.len < b.len ? a.len : b.len;
    size_t i = 0;
    peg_str x;
    peg_str y;

    while (i < shorter && a.ptr[i] == b.ptr[i])
        i++;
    x = peg__str_from(a, i);
    y = peg__str_from(b, i);
    if (x.len == 0 || y.len == 0)
        return x.len + y.len == 1;
    if (peg__str_eq(peg__str_from(x, x.len >= y.len), peg__str_from(y, y.len >= x.len)))
        return true;
    return x.len == y.len && x.len >= 2 && x.ptr[0] == y.ptr[1] && x.ptr[1] == y.ptr[0] &&
           peg__str_eq(peg__str_from(x, 2), peg__str_from(y, 2));
}

/* The first letter is taken to be right, as nearly always: others needn't be looked at. */
static void gather_edits(struct gather *g, peg_str stem)
{
    const struct gw_terms *stems = &g->part->segment->stems;
    const char after = (char)(stem.ptr[0] + 1);
    const uint32_t end = gw_terms_find(stems, peg__strn(&after, 1));

    for (uint32_t i = gw_terms_find(stems, peg__strn(stem.ptr, 1)); i < end; i++) {
        const size_t len = stems->text_at[i + 1] - stems->text_at[i] - 1;

        if (len + 1 >= stem.len && len <= stem.len + 1 && len + 1 >= MIN_EDIT &&
            is_one_edit(gw_terms_word(stems, i), stem))
            gather_stem(g, i);
    }
    for (size_t cut = 2; cut <= MAX_SHORTER && stem.len - cut >= MIN_EDIT; cut++) {
        const peg_str shorter = peg__strn(stem.ptr, stem.len - cut);
        const uint32_t i = gw_terms_find(stems, shorter);

        if (i < stems->n && peg__str_eq(gw_terms_word(stems, i), shorter))
            gather_stem(g, i);
    }
}

/* The list of what was gathered, which is forgotten. Its lists lie in the arena. */
static bool finish_gather(struct gather *g, struct peg__arena *arena, struct gw_postings *ret_list)
{
    const struct gw_segment *segment = g->part->segment;
    uint32_t *texts = peg__arena_alloc(arena, (g->n + 1) * sizeof(*texts));
    uint8_t *weights = peg__arena_alloc(arena, g->n + 1);
    uint8_t *best = g->best;
    uint32_t most_own = 0;
    uint32_t most_best = 0;
    uint32_t n = 0;

    if (!texts || !weights)
        return false;
    for (uint32_t text = 0; n < g->n; text++) {
        uint32_t *most;

        if (!best[text])
            continue;
        most = segment->first_text[segment->text_doc[text]] == text ? &most_own : &most_best;
        *most = best[text] > *most ? best[text] : *most;
        texts[n] = text;
        weights[n++] = best[text];
        best[text] = 0;
    }
    g->n = 0;
    *ret_list = (struct gw_postings){texts, weights, n, most_own + most_best};
    return true;
}

static bool widen_in(const struct gw_part *part, struct gw_query_word *word, enum widening how,
                     struct peg__arena *arena, struct gw_postings *ret_list)
{
    struct gather g = {.part = part};
    bool is_done;

    g.best = peg__alloc_zero(part->segment->first_text[part->segment->n_docs] + 1, 1);
    if (!g.best)
        return false;
    if (how == BY_PREFIX)
        gather_prefix(&g, word->stem);
    else
        gather_edits(&g, word->stem);
    is_done = g.n == 0 || finish_gather(&g, arena, ret_list);
    peg__free(g.best);
    return is_done;
}

static bool widen(const struct gw_search_index *index, struct gw_query_word *word,
                  enum widening how, struct peg__arena *arena)
{
    for (unsigned p = 0; p < index->n_parts; p++) {
        if (!widen_in(&index->parts[p], word, how, arena, &word->parts[p]))
            return false;
        word->n_texts += count_living(&index->parts[p], &word->parts[p]);
    }
    return true;
}

/* False: no memory. */
static bool find_similar(const struct gw_search_index *index, struct gw_query_word *word,
                         struct peg__arena *arena)
{
    if (word->stem.ptr[0] >= '0' && word->stem.ptr[0] <= '9')
        return true; /* another number is no better than any other */
    if (word->stem.len >= MIN_PREFIX && !widen(index, word, BY_PREFIX, arena))
        return false;
    return word->n_texts || word->stem.len < MIN_EDIT || widen(index, word, BY_EDIT, arena);
}

/* ---- words ---- */

struct reader {
    const struct gw_search_index *index;
    struct gw_stemmer *stemmer;
    struct peg__arena *arena;
    struct gw_query *query;
};

static bool has_stem(const struct gw_query *query, peg_str stem)
{
    for (unsigned i = 0; i < query->n; i++) {
        if (peg__str_eq(query->words[i].stem, stem))
            return true;
    }
    return false;
}

static bool add_word(struct reader *r, peg_str folded)
{
    const peg_str stem = gw_stemmer_stem(r->stemmer, folded);
    struct gw_query_word *word = &r->query->words[r->query->n];
    char *copy;

    if (!stem.ptr)
        return false;
    if (stem.len == 0 || r->query->n == PEG_LIMIT_GATEWAY_QUERY_WORDS || has_stem(r->query, stem))
        return true;
    copy = peg__arena_copy(r->arena, stem);
    *word = (struct gw_query_word){.stem = {copy, stem.len}};
    word->parts = peg__arena_alloc_zero(r->arena, (r->index->n_parts + 1) * sizeof(*word->parts));
    if (!copy || !word->parts)
        return false;
    r->query->n++;
    return true;
}

static bool read_query_words(struct reader *r, peg_str text)
{
    struct gw_keywords keywords = {.rest = text};
    peg_str keyword;

    while (gw_next_keyword(&keywords, &keyword)) {
        if (!add_word(r, keyword))
            return false;
    }
    return true;
}

/* Rarest first, equals in their order. */
static void sort_words(struct gw_query *query)
{
    for (unsigned i = 1; i < query->n; i++) {
        const struct gw_query_word word = query->words[i];
        unsigned at = i;

        for (; at > 0 && query->words[at - 1].weight < word.weight; at--)
            query->words[at] = query->words[at - 1];
        query->words[at] = word;
    }
}

/* The most frequent words say the least: they go where all together would take too long. */
static void drop_words(struct gw_query *query)
{
    uint64_t n_texts = 0;
    unsigned n = 0;

    while (n < query->n && query->words[n].weight) {
        n_texts += query->words[n].n_texts;
        if (n > 0 && n_texts > MAX_TEXTS)
            break;
        n++;
    }
    query->n = n;
}

static bool find_words(struct reader *r)
{
    const uint64_t n_texts = count_texts(r->index);
    unsigned n_widened = 0;

    r->query->rarest = gw_rarity(n_texts, 1);
    for (unsigned i = 0; i < r->query->n; i++) {
        struct gw_query_word *word = &r->query->words[i];
        unsigned share = 1;

        for (unsigned p = 0; p < r->index->n_parts; p++) {
            word->parts[p] = find_postings(r->index->parts[p].segment, word->stem);
            word->n_texts += count_living(&r->index->parts[p], &word->parts[p]);
        }
        if (!word->n_texts && n_widened < PEG_LIMIT_GATEWAY_QUERY_WIDENED) {
            if (!find_similar(r->index, word, r->arena))
                return false;
            n_widened++;
            share = 2;
        }
        word->weight = word->n_texts ? gw_rarity(n_texts, word->n_texts) / share : 0;
    }
    sort_words(r->query);
    drop_words(r->query);
    return true;
}

bool gw_query_read(const struct gw_search_index *index, peg_str text, struct peg__arena *arena,
                   struct gw_query *ret_query)
{
    struct gw_query query = {.n = 0};
    struct reader r = {.index = index,
                       .stemmer = gw_stemmer_new(index->language),
                       .arena = arena,
                       .query = &query};
    bool is_read = r.stemmer != NULL;

    query.words =
        peg__arena_alloc(arena, (PEG_LIMIT_GATEWAY_QUERY_WORDS + 1) * sizeof(*query.words));
    is_read = is_read && query.words && read_query_words(&r, text) && find_words(&r);
    gw_stemmer_free(r.stemmer);
    if (is_read)
        *ret_query = query;
    return is_read;
}
