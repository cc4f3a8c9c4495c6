/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the words of toolsets. Every word gets a number when it is first seen, and postings are
 * gathered in the order of places. Then the words are sorted, and the postings put in the order of
 * words, which keeps them in the order of places within each.
 *
 * What a stem says about a text is the part of BM25F that depends on that text alone: how often the
 * stem stands in each field, by the field's weight and length, saturated. Lengths are compared with
 * what is usual for a field and not with the mean of the catalog: so a weight never changes, a byte
 * holds it, and the most that a stem can add to a score is known beforehand. What depends on the
 * catalog is a stem's rarity, which query.c counts.
 */

#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"
#include "pegboard/json.h"

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

static struct gw_terms_builder *gw_terms_builder_new(void)
{
    struct gw_terms_builder *b = peg__alloc_zero(1, sizeof(*b));

    if (b)
        b->words.max = MAX_TERMS;
    return b;
}

static struct gw_terms_builder *gw_terms_builder_free(struct gw_terms_builder *b)
{
    if (!b)
        return NULL;
    peg__map_free(&b->words);
    peg__free(b->terms);
    peg__free(b->postings);
    peg__free(b);
    return NULL;
}

static size_t gw_terms_count(const struct gw_terms_builder *b)
{
    return b->n_terms;
}

/* The number of a word. False: no memory. */
static bool gw_terms_add(struct gw_terms_builder *b, peg_str word, uint32_t *ret_number)
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

/* Places of a word come in ascending order; the weights of equal ones are or-ed. */
static bool gw_terms_post(struct gw_terms_builder *b, uint32_t number, uint32_t place,
                          uint8_t weight)
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

static bool gw_terms_finish(struct gw_terms_builder *b, struct gw_terms *ret_terms)
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

enum {
    MAX_FORMS = 1 << 30,
    FOLD_BYTES = 4 * PEG_LIMIT_GATEWAY_DESCRIPTION + 1,
    MAX_DEPTH = 4, /* of arguments inside of arguments */
    NO_STEM = 1,   /* a stop word: numbers of stems come after it */
};

enum field { NAME, TAGS, DESCRIPTION, ARGUMENTS, ARGUMENT_TEXTS, N_FIELDS };

/* How much a word counts there, and how many words are usual. */
static const struct {
    float weight;
    float length;
} fields[N_FIELDS] = {
    [NAME] = {3.0F, 3.0F},
    [TAGS] = {2.0F, 3.0F},
    [DESCRIPTION] = {1.0F, 10.0F},
    [ARGUMENTS] = {0.5F, 5.0F},
    [ARGUMENT_TEXTS] = {0.5F, 20.0F},
};

/* BM25's: how slowly repetition saturates, and how much length matters. */
static const float k1 = 1.5F;
static const float length_share = 0.4F;
/* A toolset's own text counts half as much as that of its tool. */
static const float main_share = 0.5F;

struct builder {
    struct gw_terms_builder *stems;
    struct gw_terms_builder *words;
    struct gw_stemmer *stemmer;
    struct peg__map forms; /* folded words to NO_STEM, or to the number of their stem + 2 */
    uint32_t *keywords;    /* stems of the field that is read */
    size_t n_keywords;
    size_t keywords_capacity;
    float *sums; /* by stem: its weight in the text that is read; 0: not seen */
    size_t n_sums;
    size_t sums_capacity;
    uint32_t *seen; /* stems of the text that is read */
    size_t n_seen;
    size_t seen_capacity;
    peg_json_doc *json;
    bool is_failed; /* no memory */
    char folded[FOLD_BYTES];
};

/* ---- words ---- */

static bool push_number(uint32_t **list, size_t *n, size_t *capacity, uint32_t number)
{
    if (!PEG__RESERVE(*list, *n + 1, *capacity))
        return false;
    (*list)[(*n)++] = number;
    return true;
}

/* NO_STEM, or the number of the word's stem + 2; 0: no memory. */
static uintptr_t add_form(struct builder *b, peg_str folded)
{
    const struct peg__map_entry *entry = peg__map_find(&b->forms, folded);
    uintptr_t form = NO_STEM;
    uint32_t number;
    peg_str stem;

    if (entry)
        return (uintptr_t)entry->value;
    stem = gw_stemmer_stem(b->stemmer, folded);
    if (!stem.ptr)
        return 0;
    if (stem.len) {
        if (!gw_terms_add(b->stems, stem, &number))
            return 0;
        form = (uintptr_t)number + 2;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map keeps it and never follows it */
    return peg__map_add(&b->forms, folded, (void *)form) ? 0 : form;
}

static void add_keyword(struct builder *b, peg_str folded)
{
    const uintptr_t form = b->is_failed ? 0 : add_form(b, folded);

    if (!form || (form != NO_STEM && !push_number(&b->keywords, &b->n_keywords,
                                                  &b->keywords_capacity, (uint32_t)(form - 2))))
        b->is_failed = true;
}

static void index_text(struct builder *b, peg_str text)
{
    struct gw_keywords keywords = {.rest = text};
    peg_str keyword;

    while (gw_next_keyword(&keywords, &keyword))
        add_keyword(b, keyword);
}

static bool grow_sums(struct builder *b)
{
    const size_t n = gw_terms_count(b->stems);

    if (!PEG__RESERVE(b->sums, n, b->sums_capacity))
        return false;
    for (; b->n_sums < n; b->n_sums++)
        b->sums[b->n_sums] = 0;
    return true;
}

/* The keywords so far are all of a field. */
static void end_field(struct builder *b, enum field field)
{
    const float norm =
        1 - length_share + length_share * (float)b->n_keywords / fields[field].length;
    const float weight = fields[field].weight / norm;

    b->is_failed = b->is_failed || !grow_sums(b);
    for (size_t i = 0; i < b->n_keywords && !b->is_failed; i++) {
        const uint32_t stem = b->keywords[i];

        if (b->sums[stem] == 0 && !push_number(&b->seen, &b->n_seen, &b->seen_capacity, stem))
            b->is_failed = true;
        b->sums[stem] += weight;
    }
    b->n_keywords = 0;
}

/* The fields so far are all of a text. */
static void end_text(struct builder *b, uint32_t text, float share)
{
    for (size_t i = 0; i < b->n_seen && !b->is_failed; i++) {
        const float sum = b->sums[b->seen[i]];
        const unsigned weight = (unsigned)(share * GW_WEIGHT_UNIT * sum / (k1 + sum) + 0.5F);

        b->sums[b->seen[i]] = 0;
        b->is_failed = !gw_terms_post(b->stems, b->seen[i], text, weight ? (uint8_t)weight : 1);
    }
    b->n_seen = 0;
}

/* ---- toolsets ---- */

static void index_literal(struct builder *b, peg_str text, uint32_t doc, uint8_t where)
{
    uint32_t number;
    peg_str word;

    while (gw_next_word(&text, &word) && !b->is_failed) {
        const size_t len = word.len < FOLD_BYTES ? word.len : FOLD_BYTES;

        gw_fold(peg__strn(word.ptr, len), b->folded);
        b->is_failed = !gw_terms_add(b->words, peg__strn(b->folded, len), &number) ||
                       !gw_terms_post(b->words, number, doc, where);
    }
}

/* Names of arguments, or their descriptions; also of arguments inside of arguments. */
/* NOLINTNEXTLINE(misc-no-recursion): to MAX_DEPTH */
static void read_arguments(struct builder *b, const peg_json *schema, enum field field,
                           unsigned depth)
{
    const peg_json *properties = peg_json_get(schema, "properties");

    if (depth == MAX_DEPTH || !properties || properties->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (properties, key) {
        const peg_json *argument = key + 1;
        const peg_json *text;

        if (field == ARGUMENTS)
            index_text(b, peg_json_str(key));
        if (argument->kind != PEG_JSON_OBJECT)
            continue;
        text = peg_json_get(argument, "description");
        if (field == ARGUMENT_TEXTS && text && text->kind == PEG_JSON_STRING)
            index_text(b, peg_json_str(text));
        read_arguments(b, argument, field, depth + 1);
        text = peg_json_get(argument, "items");
        if (text && text->kind == PEG_JSON_OBJECT)
            read_arguments(b, text, field, depth + 1);
    }
}

static void read_schema(struct builder *b, peg_str schema)
{
    const peg_status status = b->json ? peg_json_reparse(b->json, schema, NULL, NULL)
                                      : peg_json_parse(schema, NULL, &b->json, NULL);
    const peg_json *root;

    if (status) {
        b->is_failed = b->is_failed || status == PEG_ENOMEM;
        return;
    }
    root = peg_json_root(b->json);
    if (root->kind != PEG_JSON_OBJECT)
        return;
    read_arguments(b, root, ARGUMENTS, 0);
    end_field(b, ARGUMENTS);
    read_arguments(b, root, ARGUMENT_TEXTS, 0);
    end_field(b, ARGUMENT_TEXTS);
}

static void read_tags(struct builder *b, const peg_str *tags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        index_text(b, tags[i]);
    end_field(b, TAGS);
}

static void read_main(struct builder *b, const struct gw_toolset *toolset, uint32_t doc)
{
    index_literal(b, toolset->name, doc, IN_NAME);
    index_literal(b, toolset->description, doc, IN_DESCRIPTION);
    for (size_t i = 0; i < toolset->n_tags; i++)
        index_literal(b, toolset->tags[i], doc, IN_TAG);
    index_text(b, toolset->name);
    end_field(b, NAME);
    index_text(b, toolset->description);
    end_field(b, DESCRIPTION);
    read_tags(b, toolset->tags, toolset->n_tags);
}

static void read_tool(struct builder *b, const struct gw_tool *tool)
{
    index_text(b, tool->name);
    end_field(b, NAME);
    index_text(b, tool->description);
    end_field(b, DESCRIPTION);
    read_tags(b, tool->tags, tool->n_tags);
    read_schema(b, tool->input_schema);
}

static void read_docs(struct builder *b, const struct gw_segment *segment)
{
    uint32_t text = 0;

    for (uint32_t doc = 0; doc < segment->n_docs && !b->is_failed; doc++) {
        const struct gw_toolset *toolset = segment->docs[doc];

        read_main(b, toolset, doc);
        end_text(b, text++, main_share);
        for (size_t i = 0; i < toolset->n_tools && !b->is_failed; i++) {
            read_tool(b, &toolset->tools[i]);
            end_text(b, text++, 1);
        }
    }
}

/* ---- segments ---- */

static bool take_docs(struct gw_segment *segment, struct gw_toolset *const *docs, uint32_t n)
{
    size_t n_texts = n;

    for (uint32_t i = 0; i < n; i++)
        n_texts += docs[i]->n_tools;
    segment->docs = peg__alloc((n + 1) * sizeof(*segment->docs));
    segment->first_text = peg__alloc((n + 1) * sizeof(uint32_t));
    segment->text_doc = peg__alloc((n_texts + 1) * sizeof(uint32_t));
    if (!segment->docs || !segment->first_text || !segment->text_doc || n_texts > UINT32_MAX)
        return false;
    n_texts = 0;
    for (uint32_t i = 0; i < n; i++) {
        segment->docs[i] = gw_toolset_ref(docs[i]);
        segment->n_docs = i + 1;
        segment->first_text[i] = (uint32_t)n_texts;
        for (size_t t = 0; t <= docs[i]->n_tools; t++)
            segment->text_doc[n_texts++] = i;
        if (segment->max_texts <= docs[i]->n_tools)
            segment->max_texts = (uint32_t)docs[i]->n_tools + 1;
    }
    segment->first_text[n] = (uint32_t)n_texts;
    return true;
}

static size_t main_text_bytes(const struct gw_toolset *toolset)
{
    size_t bytes = toolset->name.len + toolset->description.len + 2;

    for (size_t i = 0; i < toolset->n_tags; i++)
        bytes += toolset->tags[i].len + 1;
    return bytes;
}

static char *put_folded(char *at, peg_str text)
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
        at = put_folded(at, toolset->name);
        at = put_folded(at, toolset->description);
        for (size_t t = 0; t < toolset->n_tags; t++)
            at = put_folded(at, toolset->tags[t]);
    }
    segment->main_text_at[segment->n_docs] = (uint32_t)(at - segment->main_text);
    return true;
}

/* The weight of a toolset's own text, plus that of its best tool. */
static uint16_t most_of(const struct gw_segment *segment, uint32_t stem)
{
    const struct gw_terms *stems = &segment->stems;
    unsigned most = 0;

    for (uint32_t i = stems->at[stem]; i < stems->at[stem + 1];) {
        const uint32_t doc = segment->text_doc[stems->places[i]];
        unsigned own = 0;
        unsigned best = 0;

        if (stems->places[i] == segment->first_text[doc])
            own = stems->weights[i++];
        for (; i < stems->at[stem + 1] && stems->places[i] < segment->first_text[doc + 1]; i++)
            best = stems->weights[i] > best ? stems->weights[i] : best;
        most = own + best > most ? own + best : most;
    }
    return (uint16_t)most;
}

static bool find_most(struct gw_segment *segment)
{
    segment->most = peg__alloc((segment->stems.n + 1) * sizeof(*segment->most));
    for (uint32_t i = 0; segment->most && i < segment->stems.n; i++)
        segment->most[i] = most_of(segment, i);
    return segment->most != NULL;
}

static struct builder *free_builder(struct builder *b)
{
    if (!b)
        return NULL;
    gw_terms_builder_free(b->stems);
    gw_terms_builder_free(b->words);
    gw_stemmer_free(b->stemmer);
    peg__map_free(&b->forms);
    peg__free(b->keywords);
    peg__free(b->sums);
    peg__free(b->seen);
    peg_json_doc_free(b->json);
    peg__free(b);
    return NULL;
}

static struct builder *new_builder(struct gw_language language)
{
    struct builder *b = peg__alloc_zero(1, sizeof(*b));

    if (!b)
        return NULL;
    b->forms.max = MAX_FORMS;
    b->stems = gw_terms_builder_new();
    b->words = gw_terms_builder_new();
    b->stemmer = gw_stemmer_new(language);
    return b->stems && b->words && b->stemmer ? b : free_builder(b);
}

struct gw_segment *gw_segment_new(struct gw_toolset *const *docs, uint32_t n,
                                  struct gw_language language)
{
    struct gw_segment *segment = peg__alloc_zero(1, sizeof(*segment));
    struct builder *b = new_builder(language);
    bool is_made = segment && b;

    if (segment)
        atomic_init(&segment->n_refs, 1);
    is_made = is_made && take_docs(segment, docs, n) && copy_texts(segment);
    if (is_made)
        read_docs(b, segment);
    is_made = is_made && !b->is_failed && gw_terms_finish(b->stems, &segment->stems) &&
              gw_terms_finish(b->words, &segment->words) && find_most(segment);
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
    peg__free(segment->first_text);
    peg__free(segment->text_doc);
    gw_terms_free(&segment->stems);
    gw_terms_free(&segment->words);
    peg__free(segment->most);
    peg__free(segment->main_text);
    peg__free(segment->main_text_at);
    peg__free(segment);
    return NULL;
}

size_t gw_segment_bytes(const struct gw_segment *segment)
{
    return sizeof(*segment) + segment->n_docs * (sizeof(void *) + 2 * sizeof(uint32_t)) +
           segment->main_text_at[segment->n_docs] +
           segment->first_text[segment->n_docs] * sizeof(uint32_t) +
           gw_terms_bytes(&segment->stems) + segment->stems.n * sizeof(uint16_t) +
           gw_terms_bytes(&segment->words);
}
