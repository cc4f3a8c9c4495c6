/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/dialects.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

static void check(const char *schema, const char *args, const char *expected)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_json_doc *parameters = NULL;
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg__str(schema), NULL, &parameters, NULL), PEG_OK);
    CHECK_INT(peg_json_parse(peg__str(args), NULL, &doc, NULL), PEG_OK);
    peg__strict_args(peg_json_root(parameters), peg_json_root(doc), &out);
    CHECK_STR(peg__buf_view(&out), expected);
    peg__buf_free(&out);
    peg_json_doc_free(doc);
    peg_json_doc_free(parameters);
}

TEST(a_null_that_stands_for_a_missing_member_goes)
{
    check("{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"enum\":[1,2]},\"c\":{\"anyOf\":[{"
          "\"type\":\"string\"},{\"type\":\"integer\"}]}}}",
          "{\"a\":null,\"b\":null,\"c\":null,\"d\":1}", "{\"d\":1}");
}

TEST(a_null_that_the_schema_takes_stays)
{
    static const char *const args = "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":null}";

    check(
        "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]},\"b\":{\"enum\":[1,null]},\"c\":{"
        "\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},\"d\":{}}}",
        args, args);
}

TEST(a_required_null_stays_for_the_validator_to_refuse)
{
    check("{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}", "{\"a\":null}",
          "{\"a\":null}");
}

TEST(nulls_go_at_every_depth_and_behind_references)
{
    check("{\"properties\":{\"o\":{\"$ref\":\"#/$defs/o\"},\"l\":{\"type\":\"array\",\"items\":{"
          "\"$ref\":\"#/$defs/o\"}},\"u\":{\"anyOf\":[{\"type\":\"string\"},{\"$ref\":"
          "\"#/$defs/o\"}]}},\"$defs\":{\"o\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":"
          "\"integer\"},\"y\":{\"$ref\":\"#/$defs/o\"}}}}}",
          "{\"o\":{\"x\":null,\"y\":{\"x\":null,\"y\":null}},\"l\":[{\"x\":null},{\"x\":1}],\"u\":{"
          "\"x\":null}}",
          "{\"o\":{\"y\":{}},\"l\":[{},{\"x\":1}],\"u\":{}}");
}

TEST(what_is_not_described_is_written_as_it_is)
{
    check("{}", "{\"a\":null,\"b\":[null]}", "{\"a\":null,\"b\":[null]}");
    check("{\"$ref\":\"#\"}", "{\"a\":null}", "{\"a\":null}");
    check("{\"$ref\":\"elsewhere\"}", "{\"a\":null}", "{\"a\":null}");
    check("{\"properties\":[],\"required\":1,\"anyOf\":{}}", "{\"a\":null}", "{\"a\":null}");
}

TEST(without_parameters_arguments_stay_as_they_are)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg__str("{\"a\":null}"), NULL, &doc, NULL), PEG_OK);
    peg__strict_args(NULL, peg_json_root(doc), &out);
    CHECK_STR(peg__buf_view(&out), "{\"a\":null}");
    peg__buf_free(&out);
    peg_json_doc_free(doc);
}

TORTURE(arguments_survive_any_allocation_failure)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(peg__str("{\"properties\":{\"a\":{\"type\":\"string\"}}}"),
                                       NULL, &doc, NULL);

    if (!status)
        peg__strict_args(peg_json_root(doc), peg_json_root(doc), &out);
    status = status ? status : out.status;
    peg__buf_free(&out);
    peg_json_doc_free(doc);
    return status;
}
