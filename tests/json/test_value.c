/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/yaml.h"

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

/* ---- absent values ---------------------------------------------------------------- */

/* What is read of no string, no number, no container: NULL, and values of other kinds. */
static bool reads_as_nothing(const peg_json *value)
{
    int64_t number = 7;
    unsigned n_seen = 0;

    PEG_JSON_EACH_ITEM (value, item)
        n_seen++;
    PEG_JSON_EACH_MEMBER (value, key)
        n_seen++;
    return n_seen == 0 && peg_json_len(value) == 0 && !peg_json_is_true(value) &&
           !peg_json_is_number(value) && !peg_json_is_whole(value) && !peg_json_get(value, "x") &&
           !peg_json_get_str(value, peg__str("x")) && !peg_json_at(value, 0) &&
           !peg_json_int64(value, &number) && number == 7 && peg_json_double(value) == 0 &&
           peg_json_str(value).len == 0 && *peg_json_str(value).ptr == '\0';
}

static bool reads_as_the_fallback(const peg_json *value)
{
    return peg__str_eq(peg_json_str_or(value, "none"), peg__str("none")) &&
           peg_json_bool_or(value, true) && !peg_json_bool_or(value, false) &&
           peg_json_int64_or(value, -3) == -3 && peg_json_double_or(value, 0.5) == 0.5;
}

TEST(an_absent_value_reads_as_nothing)
{
    CHECK(reads_as_nothing(NULL));
    CHECK(reads_as_the_fallback(NULL));
    CHECK_INT(peg_json_kind_of(NULL), PEG_JSON_NULL);
    CHECK_INT(peg_json_extent(NULL), 0);
    CHECK(!peg_json_next(NULL));
    CHECK(!peg_json_root(NULL));
    CHECK_INT(peg_json_doc_bytes(NULL), 0);
}

TEST(a_value_of_another_kind_reads_as_nothing)
{
    peg_json_doc *doc = parsed("[null,false,\"\",[],{}]");

    PEG_JSON_EACH_ITEM (peg_json_root(doc), item)
        CHECK(reads_as_nothing(item));
    CHECK(reads_as_the_fallback(peg_json_root(doc)));
    CHECK(reads_as_the_fallback(peg_json_at(peg_json_root(doc), 0)));
    CHECK(reads_as_the_fallback(peg_json_at(peg_json_root(doc), 4)));
    peg_json_doc_free(doc);
}

/* Each with content that the wrong accessor must not take for its own. */
TEST(accessors_do_not_mistake_one_kind_for_another)
{
    peg_json_doc *doc = parsed("[true,7,\"text\",[7,8,9],{\"a\":1}]");
    const peg_json *root = peg_json_root(doc);

    PEG_JSON_EACH_ITEM (root, item) {
        const peg_json_kind kind = peg_json_kind_of(item);
        unsigned n_items = 0;
        unsigned n_members = 0;

        PEG_JSON_EACH_ITEM (item, inner)
            n_items++;
        PEG_JSON_EACH_MEMBER (item, key)
            n_members++;
        CHECK_INT(n_items, kind == PEG_JSON_ARRAY ? 3 : 0);
        CHECK_INT(n_members, kind == PEG_JSON_OBJECT ? 1 : 0);
        CHECK_STR(peg_json_str(item), kind == PEG_JSON_STRING ? "text" : "");
        CHECK_STR(peg_json_str_or(item, "none"), kind == PEG_JSON_STRING ? "text" : "none");
        CHECK_INT(peg_json_double(item), kind == PEG_JSON_INTEGER ? 7 : 0);
        CHECK_INT(peg_json_double_or(item, -1), kind == PEG_JSON_INTEGER ? 7 : -1);
        CHECK_INT(peg_json_int64_or(item, -1), kind == PEG_JSON_INTEGER ? 7 : -1);
        CHECK_INT(peg_json_bool_or(item, false), kind == PEG_JSON_BOOL);
        CHECK_INT(peg_json_compare_numbers(item, NULL), kind == PEG_JSON_INTEGER ? 1 : 0);
    }
    CHECK_INT(peg_json_int64_or(peg_json_at(root, 9), 12), 12);
    peg_json_doc_free(doc);
}

TEST(fractions_and_numbers_too_large_have_a_fallback)
{
    peg_json_doc *doc = parsed("[3.0,0.5,1e30]");
    const peg_json *root = peg_json_root(doc);

    CHECK_INT(peg_json_int64_or(peg_json_at(root, 0), -1), 3);
    CHECK_INT(peg_json_int64_or(peg_json_at(root, 1), -1), -1);
    CHECK_INT(peg_json_int64_or(peg_json_at(root, 2), -1), -1);
    CHECK(peg_json_double_or(peg_json_at(root, 1), -1) == 0.5);
    peg_json_doc_free(doc);
}

TEST(an_absent_value_is_compared_and_hashed_as_null)
{
    peg_json_doc *doc = parsed("[null,0]");
    const peg_json *root = peg_json_root(doc);

    CHECK(peg_json_equal(NULL, NULL));
    CHECK(peg_json_equal(NULL, peg_json_at(root, 0)) && peg_json_equal(peg_json_at(root, 0), NULL));
    CHECK(!peg_json_equal(NULL, peg_json_at(root, 1)) && !peg_json_equal(root, NULL));
    CHECK(peg_json_hash(NULL, 5) == peg_json_hash(peg_json_at(root, 0), 5));
    CHECK_INT(peg_json_compare_numbers(NULL, NULL), 0);
    peg_json_doc_free(doc);
}

typedef peg_status (*writer)(const peg_json *value, char **ret_text, peg_error *reterr);

static peg_status write_compact(const peg_json *value, char **ret_text, peg_error *reterr)
{
    return peg_json_write(value, PEG_JSON_COMPACT, ret_text, NULL, reterr);
}

static peg_status write_canonical(const peg_json *value, char **ret_text, peg_error *reterr)
{
    return peg_json_canonical(value, ret_text, NULL, reterr);
}

static peg_status write_yaml(const peg_json *value, char **ret_text, peg_error *reterr)
{
    return peg_yaml_write(value, ret_text, NULL, reterr);
}

static peg_status write_copy(const peg_json *value, char **ret_text, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status;

    peg_json_add_copy(b, value);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (!status)
        status = write_compact(peg_json_root(doc), ret_text, reterr);
    peg_json_doc_free(doc);
    return status;
}

TEST(an_absent_value_is_written_and_copied_as_null)
{
    const writer writers[] = {write_compact, write_canonical, write_yaml, write_copy};
    peg_json_doc *doc = parsed("null");
    char digests[2][65];
    peg_error error;

    for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
        char *text = NULL;

        CHECK_STATUS(writers[i](NULL, &text, &error), PEG_OK, error);
        CHECK(strncmp(text, "null", 4) == 0);
        peg_free(text);
    }
    CHECK_STATUS(peg_json_digest(NULL, digests[0], &error), PEG_OK, error);
    CHECK_STATUS(peg_json_digest(peg_json_root(doc), digests[1], &error), PEG_OK, error);
    CHECK_STR(peg__str(digests[0]), digests[1]);
    peg_json_doc_free(doc);
}

TEST(nothing_is_found_in_an_absent_value)
{
    peg_json_doc *doc = parsed("1");
    const peg_json *value = NULL;
    peg_json_path *path = NULL;
    peg_json_nodes nodes;
    char *pointer = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_pointer(NULL, peg__str(""), &value, &error), PEG_OK, error);
    CHECK_INT(peg_json_kind_of(value), PEG_JSON_NULL);
    CHECK_INT(peg_json_pointer(NULL, peg__str("/a"), &value, &error), PEG_ENOTFOUND);
    CHECK_INT(peg_json_pointer_to(NULL, peg_json_root(doc), &pointer, &error), PEG_EINVAL);
    CHECK_INT(peg_json_pointer_to(peg_json_root(doc), NULL, &pointer, &error), PEG_EINVAL);
    CHECK_INT(peg_json_pointer_to(NULL, NULL, &pointer, &error), PEG_EINVAL);
    CHECK_STATUS(peg_json_path_new(peg__str("$.a"), &path, &error), PEG_OK, error);
    CHECK_STATUS(peg_json_path_find(path, NULL, 0, 0, &nodes, &error), PEG_OK, error);
    CHECK_INT(nodes.len, 0);
    peg_free(nodes.items);
    peg_json_path_free(path);
    peg_json_doc_free(doc);
}
