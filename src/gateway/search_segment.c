/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Making a segment: every word of every toolset gets a number when it is first seen, and postings
 * are gathered in the order of toolsets. Then the words are sorted, and the postings put in the
 * order of words, which keeps them in the order of toolsets within each.
 */

#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/str.h"
#include "gateway/search_internal.h"
#include "pegboard/json.h"

/* Enough for what a catalog can hold. */
enum { MAX_TERMS = 1 << 30, FOLD_BYTES = 4 * PEG_LIMIT_GATEWAY_DESCRIPTION + 1 };

/* A word, and the posting that it got last. */
struct term {
    uint32_t last_main; /* number of the toolset + 1 */
    uint32_t last_tool; /* number of the tool + 1 */
    uint32_t main_at;
    uint32_t tool_at;
    uint32_t n_mains;
    uint32_t n_tools;
    uint32_t rank; /* among all words, sorted */
};

struct posting {
    uint32_t term;
    uint32_t value;
};

struct postings {
    struct posting *items;
    size_t n;
    size_t capacity;
};

struct builder {
    struct peg__map words; /* to number + 1 */
    struct term *terms;
    size_t n_terms;
    size_t capacity;
    struct postings mains;
    struct postings tools;
    uint32_t doc;
    uint32_t tool;
    peg_json_doc *json;
    bool is_failed; /* no memory */
    char folded[FOLD_BYTES];
};

/* ---- gathering ---------------------------------------------------------------------------------
 */

static struct term *add_term(struct builder *b, peg_str word, uint32_t *ret_number)
{
    struct peg__map_entry *entry = peg__map_find(&b->words, word);
    struct term *terms;

    if (entry) {
        *ret_number = (uint32_t)((uintptr_t)entry->value - 1);
        return &b->terms[*ret_number];
    }
    if (b->n_terms == b->capacity) {
        terms = peg__grow(b->terms, sizeof(*terms), b->n_terms + 1, &b->capacity);
        if (!terms)
            return NULL;
        b->terms = terms;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map keeps it and never follows it */
    if (peg__map_add(&b->words, word, (void *)(uintptr_t)(b->n_terms + 1)))
        return NULL;
    *ret_number = (uint32_t)b->n_terms;
    b->terms[b->n_terms] = (struct term){0};
    return &b->terms[b->n_terms++];
}

static bool add_posting(struct postings *postings, uint32_t term, uint32_t value)
{
    struct posting *items = postings->items;

    if (postings->n == postings->capacity) {
        items = peg__grow(items, sizeof(*items), postings->n + 1, &postings->capacity);
        if (!items)
            return false;
        postings->items = items;
    }
    items[postings->n++] = (struct posting){.term = term, .value = value};
    return true;
}

/* One posting for each word of a toolset, whatever places it stands at. */
static void note_main(struct builder *b, peg_str word, unsigned where)
{
    uint32_t number;
    struct term *term = b->is_failed ? NULL : add_term(b, word, &number);

    if (!term) {
        b->is_failed = true;
        return;
    }
    if (term->last_main == b->doc + 1) {
        b->mains.items[term->main_at].value |= where;
        return;
    }
    term->last_main = b->doc + 1;
    term->main_at = (uint32_t)b->mains.n;
    term->n_mains++;
    b->is_failed = !add_posting(&b->mains, number, b->doc << MAIN_BITS | where);
}

static void note_tool(struct builder *b, peg_str word, unsigned where)
{
    uint32_t number;
    struct term *term = b->is_failed ? NULL : add_term(b, word, &number);

    if (!term) {
        b->is_failed = true;
        return;
    }
    if (term->last_tool == b->tool + 1) {
        b->tools.items[term->tool_at].value |= where;
        return;
    }
    term->last_tool = b->tool + 1;
    term->tool_at = (uint32_t)b->tools.n;
    term->n_tools++;
    b->is_failed = !add_posting(&b->tools, number, b->tool << TOOL_BITS | where);
}

/* The word is the pieces' parent; both are words. */
static void read_main(struct builder *b, peg_str text, unsigned where)
{
    peg_str word;

    while (gw_next_word(&text, &word)) {
        const size_t len = word.len < FOLD_BYTES ? word.len : FOLD_BYTES;
        peg_str rest = peg__strn(word.ptr, len);
        size_t at = 0;
        peg_str piece;

        gw_fold(rest, b->folded);
        note_main(b, peg__strn(b->folded, len), where | where << WHOLE_SHIFT);
        while (gw_next_piece(&rest, &piece)) {
            if (piece.len < len)
                note_main(b, peg__strn(b->folded + at, piece.len), where);
            at += piece.len;
        }
    }
}

static void read_tool(struct builder *b, peg_str text, unsigned where)
{
    peg_str word;

    while (gw_next_word(&text, &word)) {
        peg_str rest = gw_cut_word(word);
        const size_t len = rest.len;
        size_t at = 0;
        peg_str piece;

        gw_fold(rest, b->folded);
        note_tool(b, peg__strn(b->folded, len), where);
        while (gw_next_piece(&rest, &piece)) {
            if (piece.len < len)
                note_tool(b, peg__strn(b->folded + at, piece.len), where);
            at += piece.len;
        }
    }
}

static void read_arguments(struct builder *b, peg_str schema)
{
    const peg_json *properties;
    peg_status status = b->json ? peg_json_reparse(b->json, schema, NULL, NULL)
                                : peg_json_parse(schema, NULL, &b->json, NULL);

    if (status) {
        b->is_failed = b->is_failed || status == PEG_ENOMEM;
        return;
    }
    properties = peg_json_get(peg_json_root(b->json), "properties");
    if (!properties || properties->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (properties, key)
        read_tool(b, peg_json_str(key), IN_ARGUMENT);
}

static void read_toolset(struct builder *b, const struct gw_toolset *toolset)
{
    read_main(b, toolset->name, IN_NAME);
    read_main(b, toolset->description, IN_DESCRIPTION);
    for (size_t i = 0; i < toolset->n_tags; i++)
        read_main(b, toolset->tags[i], IN_TAG);
    for (size_t i = 0; i < toolset->n_tools && !b->is_failed; i++) {
        const struct gw_tool *tool = &toolset->tools[i];

        read_tool(b, tool->name, IN_TOOL_NAME);
        read_tool(b, tool->description, IN_TOOL_DESCRIPTION);
        for (size_t t = 0; t < tool->n_tags; t++)
            read_tool(b, tool->tags[t], IN_TOOL_TAG);
        read_arguments(b, tool->input_schema);
        b->tool++;
    }
}

/* ---- sorting -----------------------------------------------------------------------------------
 */

static int compare_names(const void *a, const void *b)
{
    const peg_str x = (*(struct peg__map_entry *const *)a)->name;
    const peg_str y = (*(struct peg__map_entry *const *)b)->name;
    const int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* The words, sorted, into the segment's text; their ranks into the terms. */
static bool sort_terms(struct builder *b, struct gw_segment *segment)
{
    struct peg__map_entry **sorted = peg__alloc((b->n_terms + 1) * sizeof(*sorted));
    size_t bytes = 0;
    size_t n = 0;

    if (!sorted)
        return false;
    PEG__MAP_EACH(&b->words, entry)
    {
        sorted[n++] = entry;
        bytes += entry->name.len + 1;
    }
    qsort(sorted, n, sizeof(*sorted), compare_names);
    segment->n_terms = (uint32_t)n;
    segment->text = peg__alloc(bytes + 1);
    segment->text_at = peg__alloc((n + 1) * sizeof(uint32_t));
    if (!segment->text || !segment->text_at) {
        peg__free(sorted);
        return false;
    }
    bytes = 0;
    for (size_t i = 0; i < n; i++) {
        b->terms[(uintptr_t)sorted[i]->value - 1].rank = (uint32_t)i;
        segment->text_at[i] = (uint32_t)bytes;
        memcpy(segment->text + bytes, sorted[i]->name.ptr, sorted[i]->name.len + 1);
        bytes += sorted[i]->name.len + 1;
    }
    segment->text_at[n] = (uint32_t)bytes;
    peg__free(sorted);
    return true;
}

/* Postings in the order of words. On the way, at[rank + 1] is where the next one of a word goes. */
static uint32_t *sort_postings(const struct builder *b, const struct postings *postings,
                               uint32_t *at, size_t n_terms)
{
    uint32_t *values = peg__alloc((postings->n + 1) * sizeof(*values));
    uint32_t sum = 0;

    if (!values)
        return NULL;
    at[0] = 0;
    for (size_t i = 0; i < n_terms; i++) {
        const uint32_t n = at[i + 1];

        at[i + 1] = sum;
        sum += n;
    }
    for (size_t i = 0; i < postings->n; i++)
        values[at[b->terms[postings->items[i].term].rank + 1]++] = postings->items[i].value;
    return values;
}

static bool arrange(struct builder *b, struct gw_segment *segment)
{
    const size_t n = b->n_terms;

    if (!sort_terms(b, segment))
        return false;
    segment->main_at = peg__alloc_zero(n + 1, sizeof(uint32_t));
    segment->tool_at = peg__alloc_zero(n + 1, sizeof(uint32_t));
    if (!segment->main_at || !segment->tool_at)
        return false;
    for (size_t i = 0; i < n; i++) {
        segment->main_at[b->terms[i].rank + 1] = b->terms[i].n_mains;
        segment->tool_at[b->terms[i].rank + 1] = b->terms[i].n_tools;
    }
    segment->mains = sort_postings(b, &b->mains, segment->main_at, n);
    segment->tools = sort_postings(b, &b->tools, segment->tool_at, n);
    return segment->mains && segment->tools;
}

/* ---- segments ----------------------------------------------------------------------------------
 */

static bool take_docs(struct gw_segment *segment, struct gw_toolset *const *docs, uint32_t n)
{
    size_t n_tools = 0;

    for (uint32_t i = 0; i < n; i++)
        n_tools += docs[i]->n_tools;
    segment->docs = peg__alloc((n + 1) * sizeof(*segment->docs));
    segment->first_tool = peg__alloc((n + 1) * sizeof(uint32_t));
    segment->tool_doc = peg__alloc((n_tools + 1) * sizeof(uint32_t));
    if (!segment->docs || !segment->first_tool || !segment->tool_doc)
        return false;
    n_tools = 0;
    for (uint32_t i = 0; i < n; i++) {
        segment->docs[i] = gw_toolset_ref(docs[i]);
        segment->n_docs = i + 1;
        segment->first_tool[i] = (uint32_t)n_tools;
        for (size_t t = 0; t < docs[i]->n_tools; t++)
            segment->tool_doc[n_tools++] = i;
    }
    segment->first_tool[n] = (uint32_t)n_tools;
    return true;
}

static size_t main_text_bytes(const struct gw_toolset *toolset)
{
    size_t bytes = toolset->name.len + toolset->description.len + 2;

    for (size_t i = 0; i < toolset->n_tags; i++)
        bytes += toolset->tags[i].len + 1;
    return bytes;
}

static char *put_text(char *at, peg_str text)
{
    gw_fold(text, at);
    at[text.len] = '\0';
    return at + text.len + 1;
}

static bool copy_texts(struct gw_segment *segment)
{
    size_t bytes = 0;
    char *at;

    for (uint32_t i = 0; i < segment->n_docs; i++)
        bytes += main_text_bytes(segment->docs[i]);
    segment->main_text = at = peg__alloc(bytes + 1);
    segment->main_text_at = peg__alloc((segment->n_docs + 1) * sizeof(uint32_t));
    if (!at || !segment->main_text_at || bytes > UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < segment->n_docs; i++) {
        const struct gw_toolset *toolset = segment->docs[i];

        segment->main_text_at[i] = (uint32_t)(at - segment->main_text);
        at = put_text(at, toolset->name);
        at = put_text(at, toolset->description);
        for (size_t t = 0; t < toolset->n_tags; t++)
            at = put_text(at, toolset->tags[t]);
    }
    segment->main_text_at[segment->n_docs] = (uint32_t)(at - segment->main_text);
    return true;
}

static void free_builder(struct builder *b)
{
    if (!b)
        return;
    peg__map_free(&b->words);
    peg__free(b->terms);
    peg__free(b->mains.items);
    peg__free(b->tools.items);
    peg_json_doc_free(b->json);
    peg__free(b);
}

struct gw_segment *gw_segment_new(struct gw_toolset *const *docs, uint32_t n)
{
    struct gw_segment *segment = peg__alloc_zero(1, sizeof(*segment));
    struct builder *b = peg__alloc_zero(1, sizeof(*b));
    bool is_made = segment && b;

    if (segment)
        atomic_init(&segment->n_refs, 1);
    if (b)
        b->words.max = MAX_TERMS;
    is_made = is_made && take_docs(segment, docs, n) && copy_texts(segment);
    for (uint32_t i = 0; is_made && i < n && !b->is_failed; i++) {
        b->doc = i;
        read_toolset(b, docs[i]);
    }
    is_made = is_made && !b->is_failed && arrange(b, segment);
    free_builder(b);
    return is_made ? segment : gw_segment_unref(segment);
}

struct gw_segment *gw_segment_ref(struct gw_segment *segment)
{
    peg__refs_take(&segment->n_refs);
    return segment;
}

struct gw_segment *gw_segment_unref(struct gw_segment *segment)
{
    if (!segment || !peg__refs_drop(&segment->n_refs))
        return NULL;
    for (uint32_t i = 0; i < segment->n_docs; i++)
        gw_toolset_unref(segment->docs[i]);
    peg__free(segment->docs);
    peg__free(segment->first_tool);
    peg__free(segment->tool_doc);
    peg__free(segment->main_text);
    peg__free(segment->main_text_at);
    peg__free(segment->text);
    peg__free(segment->text_at);
    peg__free(segment->main_at);
    peg__free(segment->tool_at);
    peg__free(segment->mains);
    peg__free(segment->tools);
    peg__free(segment);
    return NULL;
}

size_t gw_segment_bytes(const struct gw_segment *segment)
{
    const uint32_t n = segment->n_terms;

    return sizeof(*segment) + segment->n_docs * (sizeof(void *) + 2 * sizeof(uint32_t)) +
           segment->main_text_at[segment->n_docs] +
           segment->first_tool[segment->n_docs] * sizeof(uint32_t) + segment->text_at[n] +
           (3 * (size_t)n + segment->main_at[n] + segment->tool_at[n]) * sizeof(uint32_t);
}

uint32_t gw_segment_find(const struct gw_segment *segment, peg_str word)
{
    uint32_t low = 0;
    uint32_t high = segment->n_terms;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const peg_str term = gw_segment_term(segment, middle);
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
