/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"

static peg_status sort(const char *text, char **ret_text)
{
    peg_json_doc *doc = NULL;
    peg_json_doc *sorted = NULL;
    peg_json_builder *b;
    peg_status status = peg_json_parse(peg__str(text), NULL, &doc, NULL);

    if (status)
        return status;
    b = peg_json_builder_new();
    status = peg__json_add_sorted(b, peg_json_root(doc), NULL);
    if (status)
        peg_json_builder_free(b);
    else
        status = peg_json_builder_finish(b, &sorted, NULL);
    if (!status)
        status = peg_json_write(peg_json_root(sorted), PEG_JSON_COMPACT, ret_text, NULL, NULL);
    peg_json_doc_free(sorted);
    peg_json_doc_free(doc);
    return status;
}

static void check_sorted(const char *text, const char *expected)
{
    char *sorted = NULL;

    CHECK_INT(sort(text, &sorted), PEG_OK);
    CHECK_STR(peg__str(sorted), expected);
    peg_free(sorted);
}

TEST(members_are_sorted_at_every_level_by_the_bytes_of_their_names)
{
    check_sorted("{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}");
    check_sorted("[{\"b\":[{\"d\":1,\"c\":{}}],\"a\":[]},3]",
                 "[{\"a\":[],\"b\":[{\"c\":{},\"d\":1}]},3]");
    check_sorted("{\"ab\":1,\"a\":2,\"\":3,\"\xC3\xA4\":4,\"Z\":5}",
                 "{\"\":3,\"Z\":5,\"a\":2,\"ab\":1,\"\xC3\xA4\":4}");
    check_sorted("{\"a\":{\"x\":1},\"b\":1e400}", "{\"a\":{\"x\":1},\"b\":1e400}");
    check_sorted("7", "7");
    check_sorted("{}", "{}");
}

TEST(items_keep_their_order)
{
    check_sorted("{\"b\":[3,1,2],\"a\":0}", "{\"a\":0,\"b\":[3,1,2]}");
}

static char *nested(unsigned depth, bool is_sorted)
{
    struct peg__buf buf = PEG__BUF(1 << 20);
    char *text = NULL;

    for (unsigned i = 1; i < depth; i++)
        peg__buf_puts(&buf, "[");
    peg__buf_puts(&buf, is_sorted ? "[]" : "{\"b\":1,\"a\":2}");
    peg__buf_repeat(&buf, ']', depth - 1);
    CHECK_INT(peg__buf_take(&buf, &text, NULL, NULL), PEG_OK);
    return text;
}

TEST(values_that_nest_too_deep_are_refused)
{
    const peg_json_options deep = {PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_JSON_DEPTH + 1};
    char *text = nested(PEG_LIMIT_JSON_DEPTH + 1, false);
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_INT(peg_json_parse(peg__str(text), &deep, &doc, NULL), PEG_OK);
    CHECK_STATUS(peg__json_add_sorted(b, peg_json_root(doc), &error), PEG_ELIMIT, error);
    CHECK_STR(peg__str(error.code), "E_JSON_TOO_DEEP");
    CHECK(strstr(error.message, "nests deeper than 256"));
    peg_json_builder_free(b);
    peg_json_doc_free(doc);
    peg_free(text);
}

TEST(the_depth_of_a_value_counts_its_containers)
{
    static const struct {
        const char *text;
        unsigned depth;
    } cases[] = {{"1", 0},          {"[]", 1},        {"[[],[[1]],2]", 3},
                 {"{\"a\":[]}", 2}, {"[1,[2],3]", 2}, {"[[[[[[]]]]]]", 5}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peg_json_doc *doc = NULL;

        CHECK_INT(peg_json_parse(peg__str(cases[i].text), NULL, &doc, NULL), PEG_OK);
        CHECK_INT(peg__json_depth(peg_json_root(doc), 4), cases[i].depth);
        peg_json_doc_free(doc);
    }
}

TORTURE(sorting_survives_any_allocation_failure)
{
    char *text = NULL;
    const peg_status status = sort("[{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"y\":1,\"x\":2}]}]", &text);

    peg_free(text);
    return status;
}
