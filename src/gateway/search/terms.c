/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every word gets a number when it is first seen, and postings are gathered in the order of places.
 * Then the words are sorted, and the postings put in the order of words, which keeps them in the
 * order of places within each.
 */

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

/* More than a catalog can hold. */
enum { MAX_TERMS = 1 << 30 };

struct term {
    uint32_t last; /* its last posting + 1 */
    uint32_t n;    /* postings */
    uint32_t rank; /* among all words, sorted */
};

struct posting {
    uint32_t term;
    uint32_t place;
    uint8_t weight;
};

struct gw_terms_builder {
    struct peg__map words; /* to number + 1 */
    struct term *terms;
    size_t n_terms;
    size_t capacity;
    struct posting *postings;
    size_t n_postings;
    size_t postings_capacity;
};

struct gw_terms_builder *gw_terms_builder_new(void)
{
    struct gw_terms_builder *b = peg__alloc_zero(1, sizeof(*b));

    if (b)
        b->words.max = MAX_TERMS;
    return b;
}

struct gw_terms_builder *gw_terms_builder_free(struct gw_terms_builder *b)
{
    if (!b)
        return NULL;
    peg__map_free(&b->words);
    peg__free(b->terms);
    peg__free(b->postings);
    peg__free(b);
    return NULL;
}

size_t gw_terms_count(const struct gw_terms_builder *b)
{
    return b->n_terms;
}

bool gw_terms_add(struct gw_terms_builder *b, peg_str word, uint32_t *ret_number)
{
    const struct peg__map_entry *entry = peg__map_find(&b->words, word);

    if (entry) {
        *ret_number = (uint32_t)((uintptr_t)entry->value - 1);
        return true;
    }
    if (!PEG__RESERVE(b->terms, b->n_terms + 1, b->capacity))
        return false;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map keeps it and never follows it */
    if (peg__map_add(&b->words, word, (void *)(uintptr_t)(b->n_terms + 1)))
        return false;
    b->terms[b->n_terms] = (struct term){0};
    *ret_number = (uint32_t)b->n_terms++;
    return true;
}

bool gw_terms_post(struct gw_terms_builder *b, uint32_t number, uint32_t place, uint8_t weight)
{
    struct term *term = &b->terms[number];

    if (term->last && b->postings[term->last - 1].place == place) {
        b->postings[term->last - 1].weight |= weight;
        return true;
    }
    if (!PEG__RESERVE(b->postings, b->n_postings + 1, b->postings_capacity))
        return false;
    b->postings[b->n_postings++] = (struct posting){number, place, weight};
    term->last = (uint32_t)b->n_postings;
    term->n++;
    return true;
}

/* ---- sorting ---- */

static int compare_words(const void *a, const void *b)
{
    const peg_str x = (*(struct peg__map_entry *const *)a)->name;
    const peg_str y = (*(struct peg__map_entry *const *)b)->name;
    const int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static void copy_sorted(struct gw_terms_builder *b, struct peg__map_entry *const *sorted,
                        struct gw_terms *terms)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < terms->n; i++) {
        b->terms[(uintptr_t)sorted[i]->value - 1].rank = i;
        terms->text_at[i] = (uint32_t)bytes;
        memcpy(terms->text + bytes, sorted[i]->name.ptr, sorted[i]->name.len + 1);
        bytes += sorted[i]->name.len + 1;
    }
    terms->text_at[terms->n] = (uint32_t)bytes;
}

static bool sort_words(struct gw_terms_builder *b, struct gw_terms *terms)
{
    struct peg__map_entry **sorted = peg__alloc((b->n_terms + 1) * sizeof(*sorted));
    size_t bytes = 0;

    if (!sorted)
        return false;
    PEG__MAP_EACH(&b->words, entry)
    {
        sorted[terms->n++] = entry;
        bytes += entry->name.len + 1;
    }
    qsort(sorted, terms->n, sizeof(struct peg__map_entry *), compare_words);
    terms->text = peg__alloc(bytes + 1);
    terms->text_at = peg__alloc((terms->n + 1) * sizeof(uint32_t));
    if (terms->text && terms->text_at)
        copy_sorted(b, sorted, terms);
    peg__free(sorted);
    return terms->text && terms->text_at;
}

/* On the way, at[rank + 1] is where the next posting of a word goes. */
static bool sort_postings(const struct gw_terms_builder *b, struct gw_terms *terms)
{
    uint32_t sum = 0;

    terms->at = peg__alloc((terms->n + 1) * sizeof(uint32_t));
    terms->places = peg__alloc((b->n_postings + 1) * sizeof(uint32_t));
    terms->weights = peg__alloc(b->n_postings + 1);
    if (!terms->at || !terms->places || !terms->weights)
        return false;
    terms->at[0] = 0;
    for (size_t i = 0; i < b->n_terms; i++)
        terms->at[b->terms[i].rank + 1] = b->terms[i].n;
    for (uint32_t i = 0; i < terms->n; i++) {
        const uint32_t n = terms->at[i + 1];

        terms->at[i + 1] = sum;
        sum += n;
    }
    for (size_t i = 0; i < b->n_postings; i++) {
        const struct posting *posting = &b->postings[i];
        const uint32_t to = terms->at[b->terms[posting->term].rank + 1]++;

        terms->places[to] = posting->place;
        terms->weights[to] = posting->weight;
    }
    return true;
}

bool gw_terms_finish(struct gw_terms_builder *b, struct gw_terms *ret_terms)
{
    struct gw_terms terms = {.n = 0};

    if (!sort_words(b, &terms) || !sort_postings(b, &terms)) {
        gw_terms_free(&terms);
        return false;
    }
    *ret_terms = terms;
    return true;
}

/* ---- terms ---- */

void gw_terms_free(struct gw_terms *terms)
{
    peg__free(terms->text);
    peg__free(terms->text_at);
    peg__free(terms->at);
    peg__free(terms->places);
    peg__free(terms->weights);
}

size_t gw_terms_bytes(const struct gw_terms *terms)
{
    return terms->text_at[terms->n] + 2 * (size_t)terms->n * sizeof(uint32_t) +
           terms->at[terms->n] * (sizeof(uint32_t) + 1);
}

uint32_t gw_terms_find(const struct gw_terms *terms, peg_str word)
{
    uint32_t low = 0;
    uint32_t high = terms->n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const peg_str term = gw_terms_word(terms, middle);
        int order = memcmp(term.ptr, word.ptr, term.len < word.len ? term.len : word.len);

        if (order == 0)
            order = (term.len > word.len) - (term.len < word.len);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
