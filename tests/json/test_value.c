/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/str.h"
#include "pegboard/json.h"

static peg_json_doc *parsed(const char *text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(text), NULL, &doc, &error), PEG_OK, error);
    return doc;
}

TEST(kind_names_are_those_of_json_schema)
{
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_NULL)), "null");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_BOOL)), "boolean");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_INTEGER)), "integer");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_DECIMAL)), "number");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_STRING)), "string");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_ARRAY)), "array");
    CHECK_STR(peg__str(peg_json_kind_name(PEG_JSON_OBJECT)), "object");
}

TEST(get_finds_a_member_behind_nested_ones)
{
    peg_json_doc *doc = parsed("{\"a\":{\"x\":1},\"ab\":[[2],3],\"\":4,\"b\":5}");
    const peg_json *root = peg_json_root(doc);

    CHECK_INT(peg_json_get(root, "b")->u.number, 5);
    CHECK_INT(peg_json_get(root, "")->u.number, 4);
    CHECK_INT(peg_json_get_str(root, peg__strn("abc", 2))->kind, PEG_JSON_ARRAY);
    CHECK(!peg_json_get(root, "x"));
    CHECK(!peg_json_get(peg_json_get(root, "ab"), "x"));
    peg_json_doc_free(doc);
}

TEST(at_finds_items_of_flat_and_nested_arrays)
{
    peg_json_doc *doc = parsed("[[10,20,30],[40,[50],60],[]]");
    const peg_json *root = peg_json_root(doc);

    CHECK_INT(peg_json_at(peg_json_at(root, 0), 2)->u.number, 30);
    CHECK_INT(peg_json_at(peg_json_at(root, 1), 2)->u.number, 60);
    CHECK(!peg_json_at(root, 3));
    CHECK(!peg_json_at(peg_json_at(root, 0), 3));
    CHECK(!peg_json_at(peg_json_at(root, 2), 0));
    CHECK(!peg_json_at(peg_json_at(peg_json_at(root, 0), 0), 0));
    peg_json_doc_free(doc);
}
