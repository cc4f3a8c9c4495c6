/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/json.h"

/* ---- fixture ----------------------------------------------------------------------- */

static peg_json_doc *finished(peg_json_builder *b)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_builder_finish(b, &doc, &error), PEG_OK, error);
    return doc;
}

/* Finishes and checks the text of what was built. */
static void check_built(peg_json_builder *b, const char *expected)
{
    peg_json_doc *doc = finished(b);
    char *text = NULL;

    CHECK_INT(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(text), expected);
    peg_free(text);
    peg_json_doc_free(doc);
}

static peg_error check_fails(peg_json_builder *b, peg_status status, const char *code)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_INT(peg_json_builder_finish(b, &doc, &error), status);
    CHECK_STR(peg__str(error.code), code);
    CHECK_INT(error.status, status);
    CHECK(!doc);
    return error;
}

/* One code for all calls in the wrong order; the message tells them apart. */
static void check_misuse(peg_json_builder *b, const char *reason)
{
    const peg_error error = check_fails(b, PEG_EINVAL, "E_JSON_BUILD");

    CHECK(strstr(error.message, reason));
}

static void add_key(peg_json_builder *b, const char *name)
{
    peg_json_add_key(b, peg__str(name));
}

static peg_json_doc *parsed(const char *text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(text), NULL, &doc, &error), PEG_OK, error);
    return doc;
}

/* ---- values -------------------------------------------------------------------------- */

TEST(builder_makes_every_kind_of_value)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    add_key(b, "a");
    peg_json_open_array(b);
    peg_json_add_null(b);
    peg_json_add_bool(b, true);
    peg_json_add_bool(b, false);
    peg_json_add_integer(b, INT64_MIN);
    peg_json_add_double(b, 0.5);
    peg_json_add_number(b, peg__str("1.50"));
    peg_json_add_string(b, peg__strn("x\0\"", 3));
    peg_json_open_array(b);
    peg_json_close(b);
    peg_json_close(b);
    add_key(b, "");
    peg_json_open_object(b);
    peg_json_close(b);
    peg_json_close(b);

    check_built(b, "{\"a\":[null,true,false,-9223372036854775808,0.5,1.50,\"x\\u0000\\\"\",[]],"
                   "\"\":{}}");
}

TEST(builder_lays_out_as_the_parser_does)
{
    static const char text[] = "{\"a\":[1,[],{\"b\":\"c\"}],\"d\":1.5,\"e\":{}}";
    peg_json_doc *expected = parsed(text);
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    const peg_json *x;
    const peg_json *y;

    peg_json_add_copy(b, peg_json_root(expected));
    doc = finished(b);

    x = peg_json_root(expected);
    y = peg_json_root(doc);
    for (size_t i = 0; i < peg_json_extent(peg_json_root(expected)); i++) {
        CHECK_INT(y[i].kind, x[i].kind);
        if (x[i].kind >= PEG_JSON_STRING)
            CHECK_INT(y[i].len, x[i].len);
        CHECK_INT(peg_json_extent(&y[i]), peg_json_extent(&x[i]));
    }
    peg_json_doc_free(doc);
    peg_json_doc_free(expected);
}

TEST(builder_copies_strings_with_a_nul_and_padding)
{
    peg_json_builder *b = peg_json_builder_new();
    char text[] = "hello";
    char large[5000];
    peg_json_doc *doc;
    uint64_t sum = 0;

    memset(large, 'x', sizeof(large));
    peg_json_open_array(b);
    for (int i = 0; i < 100; i++)
        peg_json_add_string(b, peg__strn(text, 5));
    peg_json_add_string(b, peg__strn(large, sizeof(large)));
    peg_json_add_string(b, peg__strn(NULL, 0));
    peg_json_close(b);
    memset(text, '?', sizeof(text));
    doc = finished(b);

    CHECK_STR(peg_json_str(peg_json_at(peg_json_root(doc), 99)), "hello");
    PEG_JSON_EACH_ITEM (peg_json_root(doc), item) {
        CHECK_INT(item->u.ptr[item->len], 0);
        for (unsigned i = 0; i <= 16; i++) /* the sanitizer looks on */
            sum += (unsigned char)item->u.ptr[item->len + i];
    }
    CHECK(sum > 0);
    peg_json_doc_free(doc);
}

TEST(builder_takes_numbers_as_text_of_any_length)
{
    char text[] = "123456789012345678901234567890.5";
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_number(b, peg__str(text));
    memset(text, '9', 10);
    check_built(b, "123456789012345678901234567890.5");
}

static void check_double(double value, peg_json_kind kind, const char *expected)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    char *text = NULL;

    peg_json_add_double(b, value);
    doc = finished(b);
    CHECK_INT(peg_json_root(doc)->kind, kind);
    CHECK(peg_json_double(peg_json_root(doc)) == value);
    CHECK_INT(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(text), expected);
    peg_free(text);
    peg_json_doc_free(doc);
}

TEST(builder_writes_doubles_with_the_fewest_digits)
{
    check_double(0.1, PEG_JSON_DECIMAL, "0.1");
    check_double(-0.1 - 0.2, PEG_JSON_DECIMAL, "-0.30000000000000004");
    check_double(3, PEG_JSON_INTEGER, "3");
    check_double(-1500, PEG_JSON_INTEGER, "-1500");
    check_double(0, PEG_JSON_INTEGER, "0");
    check_double(-0.0, PEG_JSON_DECIMAL, "-0");
    check_double(1e300, PEG_JSON_DECIMAL, "1e300");
    check_double(5e-324, PEG_JSON_DECIMAL, "5e-324");
    check_double(9007199254740994.0, PEG_JSON_INTEGER, "9007199254740994");
}

TEST(builder_copies_whole_subtrees)
{
    peg_json_doc *from = parsed("{\"s\":\"text\",\"n\":[1.50,12345678901234567890123,{\"k\":[]}]}");
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_array(b);
    peg_json_add_copy(b, peg_json_root(from));
    peg_json_add_copy(b, peg_json_get(peg_json_root(from), "n"));
    peg_json_add_copy(b, peg_json_get(peg_json_root(from), "s"));
    peg_json_close(b);
    peg_json_doc_free(from);

    check_built(b, "[{\"s\":\"text\",\"n\":[1.50,12345678901234567890123,{\"k\":[]}]},"
                   "[1.50,12345678901234567890123,{\"k\":[]}],\"text\"]");
}

/* ---- names ----------------------------------------------------------------------------- */

/* An object with members 0 to n - 1 and then one more, after a closed object inside. */
static peg_json_builder *with_members(unsigned n, unsigned last)
{
    peg_json_builder *b = peg_json_builder_new();
    char name[16];

    peg_json_open_object(b);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%u", i);
        add_key(b, name);
        peg_json_open_object(b);
        add_key(b, name);
        peg_json_add_null(b);
        peg_json_close(b);
    }
    snprintf(name, sizeof(name), "%u", last);
    add_key(b, name);
    peg_json_add_null(b);
    peg_json_close(b);
    return b;
}

TEST(builder_refuses_a_name_given_twice_among_few_and_many)
{
    for (unsigned n = 1; n < 300; n = n * 3 / 2 + 1) {
        check_fails(with_members(n, 0), PEG_EEXISTS, "E_JSON_DUPLICATE_KEY");
        check_fails(with_members(n, n / 2), PEG_EEXISTS, "E_JSON_DUPLICATE_KEY");
        check_fails(with_members(n, n - 1), PEG_EEXISTS, "E_JSON_DUPLICATE_KEY");
        peg_json_doc_free(finished(with_members(n, n)));
    }
    check_fails(with_members(50000, 49999), PEG_EEXISTS, "E_JSON_DUPLICATE_KEY");
}

/* ---- misuse ------------------------------------------------------------------------------ */

TEST(builder_refuses_values_without_a_name_and_names_without_a_value)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    peg_json_add_null(b);
    check_misuse(b, "needs a name");

    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_key(b, "a");
    peg_json_close(b);
    check_misuse(b, "has no value");

    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_key(b, "a");
    add_key(b, "b");
    check_misuse(b, "a key stands only");

    b = peg_json_builder_new();
    peg_json_open_array(b);
    add_key(b, "a");
    check_misuse(b, "a key stands only");

    b = peg_json_builder_new();
    add_key(b, "a");
    check_misuse(b, "a key stands only");
}

TEST(builder_refuses_ends_too_many_and_too_few)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_array(b);
    peg_json_close(b);
    peg_json_close(b);
    check_misuse(b, "nothing is open");

    b = peg_json_builder_new();
    peg_json_open_array(b);
    check_misuse(b, "still open");
}

TEST(builder_wants_exactly_one_root)
{
    peg_json_builder *b = peg_json_builder_new();

    check_misuse(b, "nothing was added");

    b = peg_json_builder_new();
    peg_json_add_null(b);
    peg_json_add_null(b);
    check_misuse(b, "one root");
}

TEST(builder_refuses_bytes_that_are_no_utf8)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_string(b, peg__str("\xFF"));
    check_fails(b, PEG_EINVAL, "E_JSON_UTF8");

    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_key(b, "\xED\xA0\x80");
    check_fails(b, PEG_EINVAL, "E_JSON_UTF8");
}

TEST(builder_refuses_what_is_no_number)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_number(b, peg__str("1."));
    check_fails(b, PEG_EINVAL, "E_JSON_NUMBER");

    b = peg_json_builder_new();
    peg_json_add_number(b, peg__str("1e10001"));
    check_fails(b, PEG_ELIMIT, "E_JSON_TOO_LARGE");

    b = peg_json_builder_new();
    peg_json_add_double(b, (double)NAN);
    check_fails(b, PEG_EINVAL, "E_JSON_NUMBER");

    b = peg_json_builder_new();
    peg_json_add_double(b, -(double)INFINITY);
    check_fails(b, PEG_EINVAL, "E_JSON_NUMBER");
}

TEST(builder_keeps_the_first_failure)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_number(b, peg__str("x"));
    peg_json_close(b);
    peg_json_add_string(b, peg__str("\xFF"));
    peg_json_open_object(b);
    add_key(b, "a");

    check_fails(b, PEG_EINVAL, "E_JSON_NUMBER");
}

TEST(builder_accepts_null_and_says_out_of_memory)
{
    const peg_json value = {.kind = PEG_JSON_NULL};

    peg_json_add_null(NULL);
    peg_json_add_bool(NULL, true);
    peg_json_add_integer(NULL, 1);
    peg_json_add_double(NULL, 1);
    peg_json_add_number(NULL, peg__str("1"));
    peg_json_add_string(NULL, peg__str("1"));
    peg_json_open_array(NULL);
    peg_json_open_object(NULL);
    add_key(NULL, "a");
    peg_json_close(NULL);
    peg_json_add_copy(NULL, &value);
    CHECK(!peg_json_builder_free(NULL));
    check_fails(NULL, PEG_ENOMEM, "E_OUT_OF_MEMORY");
}

/* ---- depth -------------------------------------------------------------------------------- */

static peg_json_builder *with_depth(unsigned depth)
{
    peg_json_builder *b = peg_json_builder_new();

    for (unsigned i = 0; i < depth; i++)
        peg_json_open_array(b);
    for (unsigned i = 0; i < depth; i++)
        peg_json_close(b);
    return b;
}

TEST(builder_nests_as_deep_as_the_limit)
{
    peg_json_doc_free(finished(with_depth(PEG_LIMIT_JSON_DEPTH_MAX)));
    check_fails(with_depth(PEG_LIMIT_JSON_DEPTH_MAX + 1), PEG_ELIMIT, "E_JSON_TOO_DEEP");
}

TEST(builder_counts_the_depth_of_copies)
{
    peg_json_doc *deep = finished(with_depth(PEG_LIMIT_JSON_DEPTH_MAX - 1));
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_array(b);
    peg_json_add_copy(b, peg_json_root(deep));
    peg_json_close(b);
    peg_json_doc_free(finished(b));

    b = peg_json_builder_new();
    peg_json_open_array(b);
    peg_json_open_array(b);
    peg_json_add_copy(b, peg_json_root(deep));
    check_fails(b, PEG_ELIMIT, "E_JSON_TOO_DEEP");
    peg_json_doc_free(deep);
}

TEST(builder_can_be_given_up_at_any_time)
{
    peg_json_builder *b = with_members(100, 101);

    CHECK(!peg_json_builder_free(b));
    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_key(b, "a");
    CHECK(!peg_json_builder_free(b));
}

TORTURE(builder_survives_any_allocation_failure)
{
    peg_json_builder *b = with_members(100, 101);
    peg_json_doc *doc = NULL;
    peg_json_doc *copy = NULL;
    peg_status status = peg_json_builder_finish(b, &doc, NULL);

    if (!status) {
        b = peg_json_builder_new();
        peg_json_open_array(b);
        peg_json_add_copy(b, peg_json_root(doc));
        peg_json_close(b);
        status = peg_json_builder_finish(b, &copy, NULL);
    }
    peg_json_doc_free(doc);
    peg_json_doc_free(copy);
    return status;
}
