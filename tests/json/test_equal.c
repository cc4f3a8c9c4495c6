/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "pegboard/json.h"

/* ---- fixture ---------------------------------------------------------------------- */

static peg_json_doc *parsed(const char *text)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(text), &options, &doc, &error), PEG_OK, error);
    return doc;
}

/* Both ways round; equal values must have equal hashes, others differ for this seed. */
static bool equal(const char *a, const char *b)
{
    peg_json_doc *x = parsed(a);
    peg_json_doc *y = parsed(b);
    const bool verdict = peg_json_equal(peg_json_root(x), peg_json_root(y));

    CHECK_INT(peg_json_equal(peg_json_root(y), peg_json_root(x)), verdict);
    CHECK_INT(peg_json_hash(peg_json_root(x), 1) == peg_json_hash(peg_json_root(y), 1), verdict);
    peg_json_doc_free(x);
    peg_json_doc_free(y);
    return verdict;
}

/* ---- tests --------------------------------------------------------------------------- */

TEST(equal_compares_scalars_by_kind_and_value)
{
    CHECK(equal("null", "null"));
    CHECK(equal("true", "true"));
    CHECK(equal("\"a\\u0062\"", "\"ab\""));
    CHECK(!equal("true", "false"));
    CHECK(!equal("null", "false"));
    CHECK(!equal("0", "false"));
    CHECK(!equal("1", "\"1\""));
    CHECK(!equal("\"\"", "null"));
    CHECK(!equal("\"\"", "[]"));
    CHECK(!equal("[]", "{}"));
    CHECK(!equal("\"a\"", "\"a\\u0000\""));
}

TEST(equal_compares_numbers_by_value)
{
    CHECK(equal("[1, 1e2, 0]", "[1.0, 100, -0]"));
    CHECK(equal("12345678901234567890", "1234567890123456789e1"));
    CHECK(!equal("9007199254740993", "9007199254740992"));
}

TEST(equal_compares_arrays_in_order)
{
    CHECK(equal("[1,[2,[]],{}]", "[1,[2,[]],{}]"));
    CHECK(!equal("[1,2]", "[2,1]"));
    CHECK(!equal("[1,2]", "[1,2,3]"));
    CHECK(!equal("[[1],2]", "[[1,2]]"));
    CHECK(!equal("[[],[1]]", "[[1],[]]"));
}

TEST(equal_compares_members_in_any_order)
{
    CHECK(equal("{\"a\":1,\"b\":2}", "{\"b\":2.0,\"a\":1}"));
    CHECK(
        equal("[{\"a\":{\"x\":1,\"y\":[]},\"b\":2},7]", "[{\"b\":2,\"a\":{\"y\":[],\"x\":1}},7]"));
    CHECK(!equal("{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}"));
    CHECK(!equal("{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":1}"));
    CHECK(!equal("{\"a\":1}", "{\"a\":1,\"b\":2}"));
    CHECK(!equal("[{\"a\":1,\"b\":2},7]", "[{\"b\":2,\"a\":1},8]"));
    CHECK(!equal("{\"a\":{\"b\":1}}", "{\"b\":{\"a\":1}}"));
}

/* An object of n members whose names count up or down; one value may differ. */
static peg_json_doc *large_object(unsigned n, bool is_reversed, unsigned odd_one)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    char name[32];

    peg_json_open_object(b);
    for (unsigned i = 0; i < n; i++) {
        const unsigned k = is_reversed ? n - 1 - i : i;

        snprintf(name, sizeof(name), "member-%u", k);
        peg_json_add_key(b, peg__str(name));
        peg_json_add_integer(b, k == odd_one ? -1 : (int64_t)k);
    }
    peg_json_close(b);
    return peg_json_builder_finish(b, &doc, NULL) ? NULL : doc;
}

TEST(equal_and_hash_take_large_objects_in_any_order)
{
    peg_json_doc *up = large_object(20000, false, UINT32_MAX);
    peg_json_doc *down = large_object(20000, true, UINT32_MAX);
    peg_json_doc *other = large_object(20000, true, 12345);

    CHECK(up && down && other);
    CHECK(peg_json_equal(peg_json_root(up), peg_json_root(down)));
    CHECK(!peg_json_equal(peg_json_root(up), peg_json_root(other)));
    CHECK(peg_json_hash(peg_json_root(up), 3) == peg_json_hash(peg_json_root(down), 3));
    CHECK(peg_json_hash(peg_json_root(up), 3) != peg_json_hash(peg_json_root(other), 3));
    peg_json_doc_free(up);
    peg_json_doc_free(down);
    peg_json_doc_free(other);
}

TEST(equal_is_right_without_memory_too)
{
    peg_json_doc *up = large_object(40, false, UINT32_MAX);
    peg_json_doc *down = large_object(40, true, UINT32_MAX);
    peg_json_doc *other = large_object(40, true, 3);

    CHECK(up && down && other);
    peg__mem_fail_at(1);
    CHECK(peg_json_equal(peg_json_root(up), peg_json_root(down)));
    CHECK(!peg_json_equal(peg_json_root(up), peg_json_root(other)));
    peg__mem_fail_at(0);
    peg_json_doc_free(up);
    peg_json_doc_free(down);
    peg_json_doc_free(other);
}

TEST(equal_and_hash_go_down_4096_levels)
{
    struct peg__buf one = PEG__BUF(1 << 20);
    struct peg__buf two = PEG__BUF(1 << 20);
    const unsigned depth = 4096;

    for (unsigned i = 0; i < depth; i++) {
        peg__buf_puts(&one, "{\"x\":0,\"y\":");
        peg__buf_puts(&two, "{\"y\":");
    }
    peg__buf_puts(&one, "1");
    peg__buf_puts(&two, "1");
    for (unsigned i = 0; i < depth; i++) {
        peg__buf_puts(&one, "}");
        peg__buf_puts(&two, ",\"x\":0}");
    }

    CHECK(equal(one.ptr, two.ptr));
    two.ptr[strlen("{\"y\":") * depth] = '2';
    CHECK(!equal(one.ptr, two.ptr));
    peg__buf_free(&one);
    peg__buf_free(&two);
}

TEST(hash_depends_on_the_seed)
{
    peg_json_doc *doc = parsed("{\"a\":[1,\"x\",null,true]}");
    const peg_json *root = peg_json_root(doc);

    CHECK(peg_json_hash(root, 1) != peg_json_hash(root, 2));
    CHECK(peg_json_hash(root, 1) == peg_json_hash(root, 1));
    peg_json_doc_free(doc);
}

/* As a random function would: neither many collisions nor suspiciously few. */
TEST(hash_spreads_small_integers_and_short_strings)
{
    enum { N = 1 << 16, BITS = 1 << 20 };
    uint8_t *seen = peg__alloc_zero(BITS / 8, 1);
    unsigned n_collisions = 0;
    char name[16];

    CHECK(seen);
    for (unsigned i = 0; i < N; i++) {
        const peg_json number = {.kind = PEG_JSON_INTEGER, .u.number = i};
        const peg_json string = {.kind = PEG_JSON_STRING,
                                 .u.ptr = name,
                                 .len = (uint32_t)snprintf(name, sizeof(name), "k%u", i)};
        const uint64_t h = peg_json_hash(i % 2 ? &string : &number, 0) % BITS;

        n_collisions += seen[h / 8] >> (h % 8) & 1;
        seen[h / 8] |= (uint8_t)(1u << (h % 8));
    }
    /* N^2 / 2 / BITS = 2048 expected of a random function. */
    CHECK(n_collisions > 1700 && n_collisions < 2400);
    peg__free(seen);
}
