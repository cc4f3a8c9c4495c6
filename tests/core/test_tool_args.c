/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "core/tool/tool.h"

/* ---- fixture: a tool, arguments, and what became of them ------------------------------------- */

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
}

/* NULL when out of memory. */
static peg_tool *make_named(const char *name, const char *schema, const char *output)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,
                              .name = name,
                              .description = "Finds things.",
                              .input_schema = schema,
                              .output_schema = output,
                              .run = answer};
    peg_tool *tool = NULL;
    peg_error error;
    const peg_status status = peg_tool_new(&def, &tool, &error);

    if (status != PEG_ENOMEM)
        CHECK_STATUS(status, PEG_OK, error);
    return tool;
}

static peg_tool *make(const char *schema)
{
    return make_named("search", schema, NULL);
}

struct outcome {
    peg_status status;
    peg_error error;
    char filled[256];    /* the new document, "" if there was none */
    char sentence[2048]; /* for the model */
};

static void keep_filled(struct outcome *o, peg_json_doc *filled)
{
    char *text = NULL;

    if (filled && peg_json_write(peg_json_root(filled), PEG_JSON_COMPACT, &text, NULL, NULL))
        o->status = PEG_ENOMEM;
    if (text)
        snprintf(o->filled, sizeof(o->filled), "%s", text);
    peg_free(text);
    peg_json_doc_free(filled);
}

static struct outcome check_with(peg_tool *tool, const char *args)
{
    struct peg__buf sentence = PEG__BUF(2000);
    struct outcome o = {0};
    struct peg__scratch scratch;
    peg_json_doc *doc = NULL;
    peg_json_doc *filled = NULL;

    peg__scratch_open(tool, &scratch);
    o.status = peg_json_parse(peg__str(args), NULL, &doc, &o.error);
    if (o.status == PEG_OK)
        o.status =
            peg__tool_check_args(tool, &scratch, peg_json_root(doc), &filled, &sentence, &o.error);
    keep_filled(&o, filled);
    snprintf(o.sentence, sizeof(o.sentence), "%.*s", PEG_ARG(peg__buf_view(&sentence)));
    peg__buf_free(&sentence);
    peg_json_doc_free(doc);
    peg__scratch_close(tool, &scratch);
    return o;
}

static struct outcome check(const char *schema, const char *args)
{
    peg_tool *tool = make(schema);
    const struct outcome o = check_with(tool, args);

    peg_tool_unref(tool);
    return o;
}

static bool says(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

#define PLACE                                                                                      \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"                         \
    "\"days\":{\"type\":\"integer\",\"default\":3}},\"required\":[\"city\"]}"

/* ---- defaults -------------------------------------------------------------------------------- */

/* T13 */
TEST(args_get_what_has_a_default)
{
    const struct outcome o = check(PLACE, "{\"city\":\"Oslo\"}");

    CHECK_STATUS(o.status, PEG_OK, o.error);
    CHECK_STR(peg__str(o.filled), "{\"city\":\"Oslo\",\"days\":3}");
    CHECK_STR(peg__str(o.sentence), "");
}

TEST(args_that_lack_nothing_are_not_copied)
{
    const struct outcome o = check(PLACE, "{\"city\":\"Oslo\",\"days\":1}");

    CHECK_STATUS(o.status, PEG_OK, o.error);
    CHECK_STR(peg__str(o.filled), "");
}

TEST(args_get_their_defaults_before_required_is_checked)
{
    const struct outcome o = check("{\"type\":\"object\",\"properties\":{\"n\":{\"default\":1}},"
                                   "\"required\":[\"n\"]}",
                                   "{}");

    CHECK_STATUS(o.status, PEG_OK, o.error);
    CHECK_STR(peg__str(o.filled), "{\"n\":1}");
}

/* ---- what is rejected ------------------------------------------------------------------------ */

/* T14 */
TEST(args_are_not_converted)
{
    const struct outcome text = check(PLACE, "{\"city\":\"Oslo\",\"days\":\"2\"}");
    const struct outcome number = check(PLACE, "{\"city\":7}");

    CHECK_INT(text.status, PEG_ESCHEMA);
    CHECK_STR(peg__str(text.error.code), "E_INVALID_TOOL_ARGS");
    CHECK_STR(peg__str(text.error.where), "/days");
    CHECK_INT(number.status, PEG_ESCHEMA);
    CHECK_STR(peg__str(number.error.where), "/city");
}

/* T15 */
TEST(args_without_a_required_member_are_rejected_by_its_name)
{
    const struct outcome o = check(PLACE, "{}");

    CHECK_INT(o.status, PEG_ESCHEMA);
    CHECK_STR(peg__str(o.error.code), "E_INVALID_TOOL_ARGS");
    CHECK_STR(peg__str(o.error.message),
              "invalid arguments for 'search': the member 'city' is missing; add it");
    CHECK_STR(peg__str(o.sentence),
              "invalid arguments for 'search':\nthe member 'city' is missing; add it");
}

/* T16 */
TEST(args_with_two_bad_members_are_rejected_by_both_names)
{
    const struct outcome o = check(PLACE, "{\"city\":1,\"days\":\"x\"}");

    CHECK_INT(o.status, PEG_ESCHEMA);
    CHECK(says(o.error.message, "/city"));
    CHECK(says(o.error.message, "/days"));
    CHECK(says(o.sentence, "/city"));
    CHECK(says(o.sentence, "/days"));
}

/* T16 */
TEST(args_error_names_two_members_however_long_names_and_values_are)
{
    char name[257];
    char schema[1024];
    char args[1024];
    char first[120];
    char second[120];
    peg_tool *tool;
    struct outcome o;

    memset(name, 't', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(first, 'a', sizeof(first) - 1);
    memset(second, 'b', sizeof(second) - 1);
    first[sizeof(first) - 1] = second[sizeof(second) - 1] = '\0';
    snprintf(schema, sizeof(schema),
             "{\"type\":\"object\",\"properties\":{\"%s\":{\"type\":\"integer\"},"
             "\"%s\":{\"type\":\"integer\"}}}",
             first, second);
    snprintf(args, sizeof(args), "{\"%s\":\"%s\",\"%s\":\"%s\",\"c\":1}", first, second, second,
             first);
    tool = make_named(name, schema, NULL);
    o = check_with(tool, args);

    CHECK_INT(o.status, PEG_ESCHEMA);
    CHECK(says(o.error.message, "/aaaa"));
    CHECK(says(o.error.message, "/bbbb"));
    CHECK(says(o.error.message, "and 1 more"));
    CHECK(says(o.sentence, "'c'"));
    peg_tool_unref(tool);
}

TEST(args_with_many_bad_members_tell_how_many_more)
{
    const struct outcome o =
        check("{\"type\":\"object\"}",
              "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1}");

    CHECK_INT(o.status, PEG_ESCHEMA);
    CHECK(says(o.error.message, "'a'"));
    CHECK(says(o.error.message, " more"));
    CHECK(says(o.sentence, "'h'"));
    CHECK(!says(o.sentence, " more"));
}

/* T17 */
TEST(args_with_an_unknown_member_are_rejected_by_its_name)
{
    const struct outcome o = check(PLACE, "{\"city\":\"Oslo\",\"dayz\":1}");

    CHECK_INT(o.status, PEG_ESCHEMA);
    CHECK_STR(peg__str(o.error.code), "E_INVALID_TOOL_ARGS");
    CHECK(says(o.error.message, "'dayz'"));
}

/* T17 */
TEST(args_with_an_unknown_member_are_rejected_over_branches_too)
{
    static const char schema[] =
        "{\"$ref\":\"#/$defs/where\",\"properties\":{\"days\":{}},"
        "\"$defs\":{\"where\":{\"type\":\"object\",\"properties\":{\"city\":{}}}}}";
    const struct outcome good = check(schema, "{\"city\":\"Oslo\",\"days\":1}");
    const struct outcome bad = check(schema, "{\"city\":\"Oslo\",\"days\":1,\"dayz\":1}");

    CHECK_STATUS(good.status, PEG_OK, good.error);
    CHECK_INT(bad.status, PEG_ESCHEMA);
    CHECK(says(bad.error.message, "'dayz'"));
}

TEST(args_of_every_branch_that_applies_are_known)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{}},"
        "\"dependentSchemas\":{\"a\":{\"properties\":{\"b\":{}}}},"
        "\"dependencies\":{\"b\":{\"properties\":{\"c\":{}}}},"
        "\"if\":{\"required\":[\"a\"]},\"then\":{\"properties\":{\"d\":{}}},"
        "\"anyOf\":[{\"properties\":{\"e\":{}}}],\"oneOf\":[{\"properties\":{\"f\":{}}}]}";
    const struct outcome good = check(schema, "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1}");
    const struct outcome bad = check(schema, "{\"b\":1}");

    CHECK_STATUS(good.status, PEG_OK, good.error);
    CHECK_INT(bad.status, PEG_ESCHEMA);
}

TEST(args_of_a_tool_without_a_schema_are_none)
{
    const struct outcome good = check(NULL, "{}");
    const struct outcome bad = check(NULL, "{\"a\":1}");

    CHECK_STATUS(good.status, PEG_OK, good.error);
    CHECK_INT(bad.status, PEG_ESCHEMA);
}

/* An empty string is an ordinary string: DESIGN.md 4.2 decides against the reference. */
/* T18 */
TEST(args_may_be_an_empty_string_unless_the_schema_says_otherwise)
{
    static const char optional[] =
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"}}}";
    static const char filled[] =
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\",\"minLength\":1}}}";
    const struct outcome good = check(optional, "{\"s\":\"\"}");
    const struct outcome bad = check(filled, "{\"s\":\"\"}");

    CHECK_STATUS(good.status, PEG_OK, good.error);
    CHECK_INT(bad.status, PEG_ESCHEMA);
    CHECK_STR(peg__str(bad.error.where), "/s");
}

TEST(args_that_are_no_object_are_rejected_whatever_the_schema)
{
    static const char *const bad[] = {"[1]", "\"x\"", "3", "3.5", "null", "true"};
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,      .name = "open",         .description = "Takes anything.",
        .input_schema = "true", .open_arguments = true, .run = answer};
    peg_tool *tool = NULL;

    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const struct outcome o = check_with(tool, bad[i]);

        CHECK_INT(o.status, PEG_ESCHEMA);
        CHECK_STR(peg__str(o.error.code), "E_INVALID_TOOL_ARGS");
        CHECK(says(o.error.message, "'open'"));
        CHECK(says(o.error.message, "object"));
        CHECK(says(o.sentence, "send {...}"));
    }
    CHECK_INT(check_with(tool, "{\"x\":[1]}").status, PEG_OK);
    peg_tool_unref(tool);
}

TEST(args_that_name_the_machinery_of_a_language_are_ordinary)
{
    const struct outcome bad = check(PLACE, "{\"city\":\"x\",\"__proto__\":{\"a\":1}}");
    const struct outcome good =
        check("{\"type\":\"object\",\"properties\":{\"__proto__\":{},\"constructor\":{}}}",
              "{\"__proto__\":1,\"constructor\":2}");

    CHECK_INT(bad.status, PEG_ESCHEMA);
    CHECK(says(bad.error.message, "'__proto__'"));
    CHECK_STATUS(good.status, PEG_OK, good.error);
}

TEST(args_sentence_is_cut_where_its_room_ends)
{
    struct peg__buf sentence = PEG__BUF(40);
    peg_tool *tool = make(NULL);
    struct peg__scratch scratch;
    peg_json_doc *doc = NULL;
    peg_json_doc *filled = NULL;

    peg__scratch_open(tool, &scratch);
    CHECK_INT(peg_json_parse(peg__str("{\"\xC3\xA9\xC3\xA9\xC3\xA9\":1}"), NULL, &doc, NULL),
              PEG_OK);
    CHECK_INT(peg__tool_check_args(tool, &scratch, peg_json_root(doc), &filled, &sentence, NULL),
              PEG_ESCHEMA);

    CHECK_INT(sentence.status, PEG_OK);
    CHECK_STR(peg__buf_view(&sentence), "invalid arguments for 'search':\nthe memb");
    peg__buf_free(&sentence);
    peg_json_doc_free(doc);
    peg__scratch_close(tool, &scratch);
    peg_tool_unref(tool);
}

/* ---- what cannot be decided ------------------------------------------------------------------ */

TEST(args_that_cannot_be_decided_are_a_limit_and_no_verdict)
{
    /* Exponential for a backtracking matcher. */
    const struct outcome o = check("{\"type\":\"object\",\"properties\":{\"s\":{\"pattern\":"
                                   "\"^(?:(?:a+)+b|(a)\\\\1?)+$\"}}}",
                                   "{\"s\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\"}");

    CHECK_INT(o.status, PEG_ELIMIT);
    CHECK_STR(peg__str(o.error.code), "E_CHECK_UNDECIDED");
    CHECK(says(o.error.message, "match_limit"));
    CHECK_STR(peg__str(o.sentence), "");
}

TEST(args_too_deep_to_be_filled_are_a_limit)
{
    enum { DEPTH = 256 };
    struct peg__buf args = PEG__BUF(1 << 16);
    struct outcome o;

    for (int i = 1; i < DEPTH; i++)
        peg__buf_puts(&args, "{\"n\":");
    peg__buf_puts(&args, "{\"x\":1}");
    peg__buf_repeat(&args, '}', DEPTH - 1);
    o = check("{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#\"},"
              "\"x\":{\"default\":1}}}",
              args.ptr);
    peg__buf_free(&args);

    CHECK_INT(o.status, PEG_ELIMIT);
    CHECK_STR(peg__str(o.error.code), "E_CHECK_UNDECIDED");
    CHECK_STR(peg__str(o.error.cause), "E_SCHEMA_FILL_LIMIT");
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(result_is_checked_against_the_output_schema)
{
    peg_tool *tool = make_named("search", NULL,
                                "{\"type\":\"array\",\"items\":{\"type\":"
                                "\"integer\"}}");
    struct peg__buf sentence = PEG__BUF(2000);
    struct peg__scratch scratch;
    peg_json_doc *good = NULL;
    peg_json_doc *bad = NULL;
    peg_error error;

    peg__scratch_open(tool, &scratch);
    CHECK_INT(peg_json_parse(peg__str("[1,2]"), NULL, &good, NULL), PEG_OK);
    CHECK_INT(peg_json_parse(peg__str("[1,\"x\"]"), NULL, &bad, NULL), PEG_OK);

    CHECK_STATUS(peg__tool_check_output(tool, &scratch, peg_json_root(good), &sentence, &error),
                 PEG_OK, error);
    CHECK_INT(sentence.len, 0);
    CHECK_INT(peg__tool_check_output(tool, &scratch, peg_json_root(bad), &sentence, &error),
              PEG_ESCHEMA);
    CHECK_STR(peg__str(error.code), "E_TOOL_OUTPUT_INVALID");
    CHECK_STR(peg__str(error.where), "/1");
    CHECK(says(error.message, "invalid result of 'search'"));
    CHECK(says(peg__buf_view(&sentence).ptr, "at /1"));
    peg__buf_free(&sentence);
    peg_json_doc_free(good);
    peg_json_doc_free(bad);
    peg__scratch_close(tool, &scratch);
    peg_tool_unref(tool);
}

/* ---- the public way -------------------------------------------------------------------------- */

TEST(validate_checks_as_a_call_would)
{
    peg_tool *tool = make(PLACE);
    peg_json_doc *good = NULL;
    peg_json_doc *bad = NULL;
    peg_json_doc *filled = NULL;
    peg_error error;

    CHECK_INT(peg_json_parse(peg__str("{\"city\":\"Oslo\"}"), NULL, &good, NULL), PEG_OK);
    CHECK_INT(peg_json_parse(peg__str("{\"days\":1}"), NULL, &bad, NULL), PEG_OK);

    CHECK_STATUS(peg_tool_validate(tool, peg_json_root(good), &filled, &error), PEG_OK, error);
    CHECK_INT(peg_json_get(peg_json_root(filled), "days")->u.number, 3);
    CHECK_INT(peg_tool_validate(tool, peg_json_root(bad), &filled, &error), PEG_ESCHEMA);
    CHECK_STR(peg__str(error.code), "E_INVALID_TOOL_ARGS");
    peg_json_doc_free(filled);
    peg_json_doc_free(good);
    peg_json_doc_free(bad);
    peg_tool_unref(tool);
}

/* ---- scratch --------------------------------------------------------------------------------- */

TEST(scratch_leaves_with_the_tool_what_checks_allocated_and_nothing_else)
{
    peg_tool *plain = make(NULL);
    peg_tool *patterned =
        make("{\"type\":\"object\",\"properties\":{\"s\":{\"pattern\":\"^a.*b.*c$\"}}}");

    CHECK_INT(check_with(plain, "{}").status, PEG_OK);
    CHECK_INT(check_with(patterned, "{\"s\":\"a b c\"}").status, PEG_OK);

    CHECK(!atomic_load(&plain->idle));
    CHECK(atomic_load(&patterned->idle) != NULL);
    peg_tool_unref(plain);
    peg_tool_unref(patterned);
}

TEST(args_are_checked_without_memory_once_the_tool_is_warm)
{
    peg_tool *tool = make("{\"type\":\"object\",\"properties\":{\"s\":{\"pattern\":\"^a.*b$\"}},"
                          "\"allOf\":[{\"required\":[\"s\"]}]}");
    peg_json_doc *args = NULL;
    peg_json_doc *filled = NULL;
    peg_status cold;
    peg_status warm;

    CHECK_INT(peg_json_parse(peg__str("{\"s\":\"axb\"}"), NULL, &args, NULL), PEG_OK);
    cold = peg_tool_validate(tool, peg_json_root(args), &filled, NULL);

    peg__mem_fail_at(1);
    warm = peg_tool_validate(tool, peg_json_root(args), &filled, NULL);
    peg__mem_fail_at(0);

    CHECK_INT(cold, PEG_OK);
    CHECK_INT(warm, PEG_OK);
    peg_json_doc_free(args);
    peg_tool_unref(tool);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(args_survive_any_allocation_failure_when_they_are_filled)
{
    peg_tool *tool = make(PLACE);
    peg_status status = PEG_ENOMEM;

    if (tool)
        status = check_with(tool, "{\"city\":\"Oslo\"}").status;
    peg_tool_unref(tool);
    return status;
}

TORTURE(args_survive_any_allocation_failure_when_they_are_rejected)
{
    peg_tool *tool = make(PLACE);
    peg_status status = PEG_ENOMEM;

    if (tool)
        status = check_with(tool, "{\"dayz\":1}").status;
    peg_tool_unref(tool);
    return status == PEG_ESCHEMA ? PEG_OK : status;
}

TORTURE(args_survive_any_allocation_failure_when_they_are_no_object)
{
    peg_tool *tool = make(PLACE);
    peg_status status = PEG_ENOMEM;

    if (tool)
        status = check_with(tool, "[]").status;
    peg_tool_unref(tool);
    return status == PEG_ESCHEMA ? PEG_OK : status;
}
