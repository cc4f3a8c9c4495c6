/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a language, then a line "name|description|tag" for each toolset, an empty line, and a
 * query. Tokens are short, folded and never empty; every toolset that contains the query is found;
 * a smaller limit finds the first of the same.
 */

#include "base/arena.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "gateway/search/internal.h"
#include "pegboard/v1/registry.pb-c.h"

enum { MAX_TOOLSETS = 16, LIMIT = 3 };

struct shelf {
    struct gw_toolset *list[MAX_TOOLSETS];
    size_t n;
    struct gw_search_index *index;
};

static char *take_field(peg_str *line, char text[static 256])
{
    const char *end = line->len ? memchr(line->ptr, '|', line->len) : NULL;
    const size_t len = end ? (size_t)(end - line->ptr) : line->len;

    snprintf(text, 256, "%.*s", (int)len, line->len ? line->ptr : "");
    *line = peg__str_from(*line, end ? len + 1 : len);
    return text;
}

static bool is_new(const struct shelf *shelf, const struct gw_toolset *toolset)
{
    for (size_t i = 0; i < shelf->n; i++) {
        if (peg__str_eq(shelf->list[i]->name, toolset->name))
            return false;
    }
    return true;
}

/* The name of the toolset is that of its tool, too, and the description that of its argument. */
static void add_toolset(struct shelf *shelf, peg_str line)
{
    const struct gw_toolset_dates dates = {.owner = PEG_LIT("local"), .revision = 1};
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    Pegboard__V1__Tool tool = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool *tools[] = {&tool};
    char text[3][256];
    char *tags[] = {text[2]};
    struct gw_toolset *toolset = NULL;

    request.name = tool.name = take_field(&line, text[0]);
    request.description = tool.description = take_field(&line, text[1]);
    take_field(&line, text[2]);
    request.tags = tags;
    request.n_tags = text[2][0] != '\0';
    request.tools = tools;
    request.n_tools = 1;
    tool.input_schema.data = (uint8_t *)peg__unconst("{\"properties\":{\"someWord2\":{}}}");
    tool.input_schema.len = strlen((const char *)tool.input_schema.data);
    if (gw_toolset_make(&request, &dates, &toolset, NULL))
        return;
    if (shelf->n < MAX_TOOLSETS && is_new(shelf, toolset))
        shelf->list[shelf->n++] = toolset;
    else
        gw_toolset_unref(toolset);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct gw_toolset *const *)a)->name.ptr,
                  (*(struct gw_toolset *const *)b)->name.ptr);
}

static void check_tokens(peg_str text)
{
    struct gw_keywords tokens = {.rest = text};
    char folded[GW_WORD_BYTES];
    peg_str token;

    while (gw_next_keyword(&tokens, &token)) {
        REQUIRE(token.len > 0 && token.len <= GW_WORD_BYTES, "%zu bytes", token.len);
        gw_fold(token, folded);
        REQUIRE(memcmp(folded, token.ptr, token.len) == 0, "folded: %.*s", PEG_ARG(token));
    }
}

static bool contains(peg_str text, peg_str folded_query)
{
    char *folded = peg__alloc(text.len + 1);
    bool is_in;

    if (!folded)
        abort();
    gw_fold(text, folded);
    is_in = memmem(folded, text.len, folded_query.ptr, folded_query.len) != NULL;
    peg__free(folded);
    return is_in;
}

static bool is_found(const struct gw_search_result *result, const struct gw_toolset *toolset)
{
    for (size_t i = 0; i < result->n; i++) {
        if (result->hits[i].toolset == toolset)
            return true;
    }
    return false;
}

static void check_literals(const struct shelf *shelf, peg_str query,
                           const struct gw_search_result *result)
{
    char *folded = peg__alloc(query.len + 1);

    if (!folded)
        abort();
    gw_fold(query, folded);
    for (size_t i = 0; i < shelf->n; i++) {
        const struct gw_toolset *toolset = shelf->list[i];
        const peg_str text = peg__strn(folded, query.len);

        if (contains(toolset->name, text) || contains(toolset->description, text) ||
            (toolset->n_tags && contains(toolset->tags[0], text)))
            REQUIRE(is_found(result, toolset), "%s contains the query", toolset->name.ptr);
    }
    peg__free(folded);
}

static void check_search(const struct shelf *shelf, peg_str text)
{
    const struct gw_snapshot snapshot = {
        .toolsets = shelf->list, .n = shelf->n, .index = shelf->index};
    struct gw_search_query query = {.text = text, .limit = MAX_TOOLSETS};
    struct gw_search_result all;
    struct gw_search_result few;
    struct peg__arena arena = {0};

    if (gw_search(&snapshot, &query, &arena, &all, NULL))
        abort();
    query.limit = LIMIT;
    if (gw_search(&snapshot, &query, &arena, &few, NULL))
        abort();
    REQUIRE(all.n == all.total && few.total == all.total, "%zu of %zu", few.total, all.total);
    REQUIRE(few.n == (all.n < LIMIT ? all.n : LIMIT), "%zu of %zu", few.n, all.n);
    for (size_t i = 0; i < all.n; i++) {
        REQUIRE(all.hits[i].score > 0, "%f", all.hits[i].score);
        REQUIRE(i == 0 || all.hits[i - 1].score >= all.hits[i].score, "hit %zu", i);
        REQUIRE(i >= few.n || few.hits[i].toolset == all.hits[i].toolset, "hit %zu", i);
    }
    check_literals(shelf, text, &all);
    peg__arena_free(&arena);
}

static void publish(struct shelf *shelf, struct gw_language language)
{
    struct gw_search_index *empty = gw_search_index_new(language);
    struct gw_search_index *first;
    const size_t half = shelf->n / 2;

    qsort(shelf->list, shelf->n, sizeof(struct gw_toolset *), compare_names);
    first = gw_search_index_next(empty, 0, (struct gw_toolsets){.n = 0},
                                 (struct gw_toolsets){shelf->list, half});
    shelf->index = gw_search_index_next(first, 1, (struct gw_toolsets){shelf->list, half},
                                        (struct gw_toolsets){shelf->list, shelf->n});
    if (!shelf->index)
        abort();
    gw_search_index_unref(empty);
    gw_search_index_unref(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str text = fuzz_input(data, size);
    struct shelf shelf = {.n = 0};
    struct gw_language language;
    char name[256];
    peg_str line = fuzz_line(&text);

    if (!peg__utf8_is_valid(text) || memchr(data, 0, size) || size > 8192)
        return 0;
    if (!gw_language_find(take_field(&line, name), &language))
        return 0;
    while (text.len && (line = fuzz_line(&text)).len)
        add_toolset(&shelf, line);
    check_tokens(text);
    publish(&shelf, language);
    if (text.len && text.len <= 4096)
        check_search(&shelf, text);
    gw_search_index_unref(shelf.index);
    for (size_t i = 0; i < shelf.n; i++)
        gw_toolset_unref(shelf.list[i]);
    return 0;
}
