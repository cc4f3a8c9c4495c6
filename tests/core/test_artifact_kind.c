/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"

/* ---- fixture: a kind that parses, and one made from it ------------------------------------- */

static peg_status parse_nothing(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    (void)artifact, (void)ret_parsed, (void)reterr;
    return PEG_OK;
}

static const peg_artifact_kind parsing = {.name = "parsing", .parse = parse_nothing};
static const peg_artifact_kind derived = {.name = "derived", .base = &parsing};

/* ---- tests ------------------------------------------------------------------------------ */

TEST(kind_is_itself_and_all_it_is_made_from)
{
    CHECK(peg_artifact_kind_is(&derived, &derived));
    CHECK(peg_artifact_kind_is(&derived, &parsing));
    CHECK(peg_artifact_kind_is(&derived, &peg_artifact_text));
    CHECK(peg_artifact_kind_is(&parsing, &peg_artifact_text));
    CHECK(peg_artifact_kind_is(&peg_artifact_json, &peg_artifact_text));
    CHECK(peg_artifact_kind_is(&peg_artifact_text, &peg_artifact_text));
    CHECK(!peg_artifact_kind_is(&peg_artifact_text, &peg_artifact_json));
    CHECK(!peg_artifact_kind_is(&parsing, &derived));
    CHECK(!peg_artifact_kind_is(NULL, &peg_artifact_text));
}

static void answer(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    (void)call, (void)artifact, (void)args;
}

static peg_artifact_query right_query(void)
{
    return (peg_artifact_query){.name = "artifact_rows",
                                .description = "Rows of the table.",
                                .properties = "{\"n\":{\"type\":\"integer\"},\"all\":true}",
                                .required = "[\"n\"]",
                                .run = answer};
}

static void check_kind_refused(const peg_artifact_kind *kind, const char *where)
{
    peg_error error;

    CHECK_STATUS(peg_artifact_kind_check(kind, &error), PEG_EINVAL, error);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_STR(peg__str(error.where), where);
    CHECK_INT(peg_artifact_kind_check(kind, NULL), PEG_EINVAL);
}

/* A kind with one query that is changed by the caller. */
static void check_query_refused(peg_artifact_query query, const char *where)
{
    const peg_artifact_kind kind = {.name = "table", .queries = &query, .n_queries = 1};

    check_kind_refused(&kind, where);
}

TEST(kind_that_can_work_is_accepted)
{
    peg_artifact_query queries[] = {right_query(), right_query()};
    peg_artifact_kind kind = {.name = "my.table-2_", .queries = queries, .n_queries = 2};
    peg_artifact_kind above = {.name = "above", .base = &kind};
    peg_error error;

    queries[1].name = "table:columns/all";
    queries[1].properties = NULL;
    queries[1].required = NULL;

    CHECK_STATUS(peg_artifact_kind_check(&kind, &error), PEG_OK, error);
    CHECK_STATUS(peg_artifact_kind_check(&above, &error), PEG_OK, error);
    kind.base = &peg_artifact_json;
    CHECK_STATUS(peg_artifact_kind_check(&kind, &error), PEG_OK, error);
}

/* Copies, because those at their own place are not looked at. */
TEST(kinds_that_are_built_in_would_be_accepted_if_they_were_a_hosts)
{
    const peg_artifact_kind *const ours[] = {&peg_artifact_json, &peg_artifact_markdown};
    peg_artifact_query queries[PEG_LIMIT_KIND_QUERIES];
    char names[PEG_LIMIT_KIND_QUERIES][8];
    const peg_artifact_kind text = {
        .name = "copy", .queries = queries, .n_queries = peg_artifact_text.n_queries};
    peg_error error;

    CHECK_INT(text.n_queries, 7);
    for (size_t i = 0; i < text.n_queries; i++) {
        snprintf(names[i], sizeof(names[i]), "q%zu", i); /* text is the base of the copy */
        queries[i] = peg_artifact_text.queries[i];
        queries[i].name = names[i];
    }
    CHECK_STATUS(peg_artifact_kind_check(&text, &error), PEG_OK, error);
    CHECK_STATUS(peg_artifact_kind_check(&peg_artifact_text, &error), PEG_OK, error);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        const peg_artifact_kind copy = *ours[i];

        CHECK_STATUS(peg_artifact_kind_check(&copy, &error), PEG_OK, error);
        CHECK_STATUS(peg_artifact_kind_check(ours[i], &error), PEG_OK, error);
    }
}

TEST(kind_without_a_name_is_refused)
{
    static char name[66];
    peg_artifact_kind kind = {.name = NULL};
    const peg_artifact_kind above = {.name = "above", .base = &kind};
    peg_error error;

    CHECK_INT(peg_artifact_kind_check(NULL, &error), PEG_EINVAL);
    check_kind_refused(&kind, "/name");
    kind.name = "";
    check_kind_refused(&kind, "/name");
    kind.name = "two words";
    check_kind_refused(&kind, "/name");
    check_kind_refused(&above, "/base/name");
    memset(name, 'a', 65);
    kind.name = name;
    check_kind_refused(&kind, "/name");
    name[64] = '\0';
    CHECK_INT(peg_artifact_kind_check(&kind, NULL), PEG_OK);
}

TEST(kind_whose_queries_cannot_be_tools_is_refused)
{
    peg_artifact_query query = right_query();

    query.name = NULL;
    check_query_refused(query, "/queries/0/name");
    query.name = "no spaces";
    check_query_refused(query, "/queries/0/name");
    query = right_query();
    query.description = NULL;
    check_query_refused(query, "/queries/0/description");
    query.description = "";
    check_query_refused(query, "/queries/0/description");
    query.description = "\xFF";
    check_query_refused(query, "/queries/0/description");
    query = right_query();
    query.run = NULL;
    check_query_refused(query, "/queries/0/run");
}

TEST(kind_whose_arguments_are_no_schemas_is_refused)
{
    static const char *const properties[] = {
        "",
        "{",
        "[]",
        "{\"n\":1}",
        "{\"n\":{},\"n\":{}}",
        "{\"callId\":{\"type\":\"string\"}}",
        "{\"n\":{\"type\":\"integre\"}}",
        "{\"n\":{\"pattern\":\"(\"}}",
    };
    peg_artifact_query query = right_query();

    query.required = NULL;
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        query.properties = properties[i];
        check_query_refused(query, "/queries/0/properties");
    }
}

TEST(kind_whose_required_arguments_are_not_there_is_refused)
{
    static const char *const required[] = {"", "{}", "[1]", "[\"m\"]", "[\"n\",\"m\"]"};
    peg_artifact_query query = right_query();

    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        query.required = required[i];
        check_query_refused(query, "/queries/0/required");
    }
    query.properties = NULL;
    query.required = "[\"n\"]";
    check_query_refused(query, "/queries/0/required");
}

TEST(kind_that_has_a_query_twice_is_refused)
{
    peg_artifact_query queries[] = {right_query(), right_query()};
    peg_artifact_kind kind = {.name = "table", .queries = queries, .n_queries = 2};
    peg_artifact_kind above = {.name = "above", .base = &kind, .queries = queries, .n_queries = 1};

    check_kind_refused(&kind, "/queries/1/name");
    kind.n_queries = 1;
    check_kind_refused(&above, "/queries/0/name");
    queries[0].name = "artifact_head"; /* text has it */
    check_kind_refused(&kind, "/queries/0/name");
    queries[0].name = "artifact_json_keys";
    CHECK_INT(peg_artifact_kind_check(&kind, NULL), PEG_OK);
    kind.base = &peg_artifact_json;
    check_kind_refused(&kind, "/queries/0/name");
    queries[0].name = "artifact_tail";
    check_kind_refused(&kind, "/queries/0/name");
    kind.base = NULL;
    above.n_queries = 0;
    check_kind_refused(&above, "/base/queries/0/name");
}

TEST(kind_with_more_queries_than_its_limit_or_none_where_some_are_promised_is_refused)
{
    static peg_artifact_query queries[PEG_LIMIT_KIND_QUERIES + 1];
    static char names[PEG_LIMIT_KIND_QUERIES + 1][8];
    peg_artifact_kind kind = {.name = "table", .n_queries = 1};

    check_kind_refused(&kind, "/queries");
    for (size_t i = 0; i <= PEG_LIMIT_KIND_QUERIES; i++) {
        snprintf(names[i], sizeof(names[i]), "q%zu", i);
        queries[i] = right_query();
        queries[i].name = names[i];
    }
    kind.queries = queries;
    kind.n_queries = PEG_LIMIT_KIND_QUERIES + 1;
    check_kind_refused(&kind, "/queries");
    kind.n_queries--;
    CHECK_INT(peg_artifact_kind_check(&kind, NULL), PEG_OK);
}

TEST(kind_that_goes_in_a_circle_or_too_deep_is_refused)
{
    peg_artifact_kind kinds[PEG_LIMIT_KIND_DEPTH];
    peg_artifact *artifact = NULL;
    peg_reader *reader = NULL;

    for (size_t i = 0; i < PEG_LIMIT_KIND_DEPTH; i++)
        kinds[i] = (peg_artifact_kind){.name = "k", .base = i ? &kinds[i - 1] : NULL};

    /* Text is the last of the sixteen. */
    CHECK_INT(peg_artifact_kind_check(&kinds[PEG_LIMIT_KIND_DEPTH - 2], NULL), PEG_OK);
    check_kind_refused(&kinds[PEG_LIMIT_KIND_DEPTH - 1], "/base");
    kinds[0].base = &kinds[1];
    check_kind_refused(&kinds[0], "/base");
    CHECK(!peg_artifact_kind_is(&kinds[0], &peg_artifact_text));
    CHECK_INT(peg_reader_from_bytes(peg__str("x"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(&kinds[0], reader, &artifact, NULL), PEG_EINVAL);
    peg_reader_unref(reader);
}

TEST(kind_whose_base_has_a_parse_cannot_have_another)
{
    const peg_artifact_kind kind = {.name = "table", .base = &parsing, .parse = parse_nothing};
    const peg_artifact_kind above = {.name = "above", .base = &kind};

    check_kind_refused(&kind, "/parse");
    check_kind_refused(&above, "/base/parse");
}

TORTURE(kind_check_survives_any_allocation_failure)
{
    const peg_artifact_query query = right_query();
    const peg_artifact_kind kind = {.name = "table", .queries = &query, .n_queries = 1};

    return peg_artifact_kind_check(&kind, NULL);
}
