/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints random values of the types that `pegboard generate` has for the results of tools, as far
 * as their schemas accept them:
 *
 *   values FILE SEED N      N tries for each tool; lines "TOOL<tab>JSON"
 *
 * The document is taken with --raw. Types, not schemas, decide what a value looks like, so that
 * each construct of the model is reached; the validator has the last word.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "generate/declaration.h"
#include "pegboard/schema.h"

enum { MAX_DEPTH = 6 };

static uint64_t state;

/* xorshift64*: the same values everywhere for a seed. */
static uint64_t draw(uint64_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 2685821657736338717ULL >> 33) % below;
}

static void add_value(peg_json_builder *b, const struct gen_type *type, unsigned depth);

/* ---- scalars ---- */

static void add_integer(peg_json_builder *b)
{
    static const int64_t edges[] = {0, 1, -1, 2, 3, 7, 10, 100, INT64_MAX, INT64_MIN};

    if (draw(2))
        peg_json_add_integer(b, edges[draw(sizeof(edges) / sizeof(edges[0]))]);
    else
        peg_json_add_integer(b, (int64_t)draw(1000) - 200);
}

static void add_number(peg_json_builder *b)
{
    static const double edges[] = {0, 0.5, -0.1, 1e300, 5e-324, 1.7976931348623157e308, 90, 1e15};

    if (draw(3) == 0)
        peg_json_add_double(b, edges[draw(sizeof(edges) / sizeof(edges[0]))]);
    else
        peg_json_add_double(b, ((double)draw(2000000) - 1000000) / (double)(1 + draw(999)));
}

static peg_str draw_string(void)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "b",
                                        "foo",
                                        "bar",
                                        "baz",
                                        "\"\\",
                                        "\xc3\xbc\xf0\x9f\x8e\x88",
                                        "x y",
                                        "2026-11-18",
                                        "abc-1",
                                        "https://a.example/b",
                                        "a@b.example",
                                        "0123456789"};

    return peg__str(texts[draw(sizeof(texts) / sizeof(texts[0]))]);
}

static void add_raw(peg_json_builder *b, unsigned depth)
{
    switch (draw(depth > MAX_DEPTH ? 5 : 7)) {
    case 0:
        peg_json_add_null(b);
        break;
    case 1:
        peg_json_add_bool(b, draw(2));
        break;
    case 2:
        add_integer(b);
        break;
    case 3:
        add_number(b);
        break;
    case 4:
        peg_json_add_string(b, draw_string());
        break;
    case 5:
        peg_json_open_array(b);
        for (uint64_t n = draw(3); n; n--)
            add_raw(b, depth + 1);
        peg_json_close(b);
        break;
    default:
        peg_json_open_object(b);
        peg_json_add_key(b, draw_string());
        add_raw(b, depth + 1);
        peg_json_close(b);
    }
}

/* ---- containers ---- */

static void add_others(peg_json_builder *b, const struct gen_type *item, unsigned depth)
{
    for (uint64_t i = draw(depth > MAX_DEPTH ? 1 : 3); i; i--) {
        char name[32];

        snprintf(name, sizeof(name), "%s%" PRIu64, draw(2) ? "x-" : "other", i);
        peg_json_add_key(b, peg__str(name));
        add_value(b, item, depth + 1);
    }
}

static void add_struct(peg_json_builder *b, const struct gen_type *type, unsigned depth)
{
    peg_json_open_object(b);
    for (size_t i = 0; i < type->n_members; i++) {
        const bool is_wanted = depth > MAX_DEPTH ? false : draw(3) > 0;

        if (!type->members[i].is_required && !is_wanted)
            continue;
        peg_json_add_key(b, type->members[i].name);
        add_value(b, type->members[i].slot.type, depth + 1);
    }
    if (type->others)
        add_others(b, type->others, depth);
    peg_json_close(b);
}

static void add_value(peg_json_builder *b, const struct gen_type *type, unsigned depth)
{
    if (depth > 40) { /* required members without end */
        peg_json_add_null(b);
        return;
    }
    switch (type->kind) {
    case GEN_BOOL:
        peg_json_add_bool(b, draw(2));
        return;
    case GEN_INTEGER:
        add_integer(b);
        return;
    case GEN_NUMBER:
        add_number(b);
        return;
    case GEN_STRING:
        peg_json_add_string(b, draw_string());
        return;
    case GEN_NULL:
        peg_json_add_null(b);
        return;
    case GEN_RAW:
        add_raw(b, depth);
        return;
    case GEN_ENUM:
        peg_json_add_string(b, type->values[draw(type->n_values)]);
        return;
    case GEN_NULLABLE:
        if (depth > MAX_DEPTH || draw(3) == 0)
            peg_json_add_null(b);
        else
            add_value(b, type->item.type, depth + 1);
        return;
    case GEN_ARRAY:
        peg_json_open_array(b);
        for (uint64_t n = draw(depth > MAX_DEPTH ? 1 : 4); n; n--)
            add_value(b, type->item.type, depth + 1);
        peg_json_close(b);
        return;
    case GEN_MAP:
        peg_json_open_object(b);
        add_others(b, type->item.type, depth);
        peg_json_close(b);
        return;
    case GEN_STRUCT:
        if (type->is_wrapper)
            add_value(b, type->members[0].slot.type, depth);
        else
            add_struct(b, type, depth);
        return;
    case GEN_UNION:
        add_value(b, type->branches[draw(type->n_branches)].slot.type, depth + 1);
        return;
    }
}

/* ---- tools ---- */

static void print_value(const struct gen_tool *tool, const peg_schema *schema, peg_checker *checker)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    char *text = NULL;

    add_value(b, tool->result, 0);
    if (!peg_json_builder_finish(b, &doc, NULL) &&
        peg_schema_check(schema, checker, peg_json_root(doc)) == PEG_VALID &&
        !peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL))
        printf("%s\t%s\n", tool->name.ptr, text);
    peg_free(text);
    peg_json_doc_free(doc);
}

static int print_values(const struct gen_service *service, unsigned long n)
{
    peg_checker *checker = NULL;

    if (peg_checker_new(NULL, &checker, NULL))
        return 1;
    for (size_t i = 0; i < service->toolsets[0].n_tools; i++) {
        const struct gen_tool *tool = &service->toolsets[0].tools[i];
        peg_schema *schema = NULL;

        if (!tool->output_schema ||
            peg_schema_compile_value(tool->output_schema, NULL, &schema, NULL))
            continue;
        for (unsigned long k = 0; k < n; k++)
            print_value(tool, schema, checker);
        peg_schema_unref(schema);
    }
    peg_checker_free(checker);
    return 0;
}

int main(int argc, char **argv)
{
    const struct gen_names names = {.service = NULL};
    const struct gen_options options = {.raw = true};
    struct peg__buf text = PEG__BUF(64 << 20);
    struct peg__arena arena = {.held = 0};
    struct gen_service service;
    peg_json_doc *doc = NULL;
    peg_error error;
    int answer = 1;

    if (argc != 4)
        return 2;
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    if (!cli_read_file(argv[1], &text, &error) &&
        !peg_json_parse(peg__buf_view(&text), NULL, &doc, &error) &&
        !gen_declaration_read(peg_json_root(doc), &names, &arena, &service, &error) &&
        !gen_type_service(&service, peg_json_root(doc), &options, &arena, &error))
        answer = print_values(&service, strtoul(argv[3], NULL, 10));
    else
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    peg_json_doc_free(doc);
    peg__arena_free(&arena);
    peg__buf_free(&text);
    return answer;
}
