/* SPDX-License-Identifier: Apache-2.0 */

#include "corpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/json.h"

void bench_fail(const char *what, const char *why)
{
    fprintf(stderr, "search-bench: %s: %s\n", what, why);
    exit(1);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static char *copy_member(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    if (!value || value->kind != PEG_JSON_STRING)
        bench_fail(name, "a line has none");
    return strndup(peg_json_str(value).ptr, peg_json_str(value).len);
}

/* The text of "input_schema"; NULL: there is none. */
static char *copy_schema(const peg_json *object)
{
    const peg_json *value = peg_json_get(object, "input_schema");
    char *text = NULL;

    if (value && peg_json_write(value, PEG_JSON_COMPACT, &text, NULL, NULL))
        bench_fail("input_schema", "no memory");
    return text;
}

/* What a toolset may be called. */
static void clean_name(char *name)
{
    for (; *name; name++) {
        if (!isalnum((unsigned char)*name) && !strchr("_.:/-", *name))
            *name = '_';
    }
}

static struct bench_pair *read_pairs(const char *folder, const char *file,
                                     const char *const members[2], size_t *ret_n)
{
    struct bench_pair *pairs = NULL;
    char path[4096];
    char *line = NULL;
    size_t size = 0;
    size_t n = 0;
    ssize_t len;
    FILE *in;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    in = fopen(path, "r");
    if (!in)
        bench_fail(path, "can't be read");
    while ((len = getline(&line, &size, in)) > 0) {
        peg_json_doc *doc = NULL;
        peg_error error;

        if (peg_json_parse(peg__strn(line, (size_t)len), NULL, &doc, &error))
            bench_fail(path, error.message);
        pairs = realloc(pairs, (n + 1) * sizeof(*pairs));
        if (!pairs)
            bench_fail(path, "no memory");
        pairs[n].first = copy_member(peg_json_root(doc), members[0]);
        pairs[n].second = copy_member(peg_json_root(doc), members[1]);
        pairs[n++].schema = copy_schema(peg_json_root(doc));
        peg_json_doc_free(doc);
    }
    fclose(in);
    free(line);
    *ret_n = n;
    return pairs;
}

static void add_words(struct bench_corpus *corpus, const char *text)
{
    while (*text) {
        size_t len = 0;

        while (isalpha((unsigned char)text[len]))
            len++;
        if (len) {
            corpus->words = realloc(corpus->words, (corpus->n_words + 1) * sizeof(*corpus->words));
            if (!corpus->words)
                bench_fail("words", "no memory");
            corpus->words[corpus->n_words++] = strndup(text, len);
        }
        text += len ? len : 1;
    }
}

void bench_corpus_read(const char *folder, struct bench_corpus *ret_corpus)
{
    struct bench_corpus corpus = {.n_tools = 0};

    corpus.tools = read_pairs(folder, "tools.jsonl", (const char *const[]){"name", "description"},
                              &corpus.n_tools);
    corpus.questions = read_pairs(folder, "queries.jsonl", (const char *const[]){"query", "tool"},
                                  &corpus.n_questions);
    for (size_t i = 0; i < corpus.n_tools; i++) {
        clean_name(corpus.tools[i].first);
        add_words(&corpus, corpus.tools[i].second);
    }
    for (size_t i = 0; i < corpus.n_questions; i++) {
        char *question = corpus.questions[i].first;

        if (strlen(question) > PEG_LIMIT_GATEWAY_QUERY)
            question[peg__utf8_cut(question, PEG_LIMIT_GATEWAY_QUERY)] = '\0';
        clean_name(corpus.questions[i].second);
    }
    if (!corpus.n_words || !corpus.n_questions)
        bench_fail(folder, "it is empty");
    *ret_corpus = corpus;
}

/* ---- registrations -----------------------------------------------------------------------------
 */

static struct {
    Pegboard__V1__RegisterRequest request;
    Pegboard__V1__Tool tool;
    Pegboard__V1__Tool *tools[1];
    char name[256];
    char description[1024];
    char tool_name[256];
    char tool_description[1024];
    char schema[2048];
} made;

static const Pegboard__V1__RegisterRequest *finish(void)
{
    pegboard__v1__register_request__init(&made.request);
    pegboard__v1__tool__init(&made.tool);
    made.tools[0] = &made.tool;
    made.request.name = made.name;
    made.request.description = made.description;
    made.request.tools = made.tools;
    made.request.n_tools = 1;
    made.tool.name = made.tool_name;
    made.tool.description = made.tool_description;
    made.tool.input_schema.data = (uint8_t *)made.schema;
    made.tool.input_schema.len = strlen(made.schema);
    return &made.request;
}

const Pegboard__V1__RegisterRequest *bench_request_of(const struct bench_pair *tool)
{
    snprintf(made.name, sizeof(made.name), "%s", tool->first);
    snprintf(made.description, sizeof(made.description), "%s", tool->second);
    snprintf(made.tool_name, sizeof(made.tool_name), "%s", tool->first);
    snprintf(made.tool_description, sizeof(made.tool_description), "%s", tool->second);
    finish();
    made.tool.input_schema.data =
        (uint8_t *)(tool->schema ? tool->schema : peg__unconst("{\"type\":\"object\"}"));
    made.tool.input_schema.len = strlen((const char *)made.tool.input_schema.data);
    return &made.request;
}

static const char *draw_word(const struct bench_corpus *corpus, uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return corpus->words[(*state >> 20) % corpus->n_words];
}

static void draw_text(const struct bench_corpus *corpus, uint64_t *state, unsigned n, char *text,
                      size_t size)
{
    size_t len = 0;

    for (unsigned i = 0; i < n && len + 40 < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", i ? " " : "",
                                draw_word(corpus, state));
}

const Pegboard__V1__RegisterRequest *bench_request_made(const struct bench_corpus *corpus,
                                                        unsigned number)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (number + 1);
    char text[256];
    size_t len;

    snprintf(made.name, sizeof(made.name), "%s.%s-%05u", draw_word(corpus, &state),
             draw_word(corpus, &state), number);
    draw_text(corpus, &state, 12, made.description, sizeof(made.description));
    snprintf(made.tool_name, sizeof(made.tool_name), "%s_%s", draw_word(corpus, &state),
             draw_word(corpus, &state));
    draw_text(corpus, &state, 14, made.tool_description, sizeof(made.tool_description));
    len =
        (size_t)snprintf(made.schema, sizeof(made.schema), "{\"type\":\"object\",\"properties\":{");
    for (unsigned i = 0; i < 3; i++) {
        draw_text(corpus, &state, 6, text, sizeof(text));
        len += (size_t)snprintf(made.schema + len, sizeof(made.schema) - len,
                                "%s\"%s_%u\":{\"type\":\"string\",\"description\":\"%s\"}",
                                i ? "," : "", draw_word(corpus, &state), i, text);
    }
    snprintf(made.schema + len, sizeof(made.schema) - len, "}}");
    return finish();
}
