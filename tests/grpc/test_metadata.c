/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "grpc/status.h"
#include "t.h"

/* Metadata with the arena that it lies in. */
struct held {
    struct peg__arena arena;
    struct grpc_metadata metadata;
    peg_error error;
};

static peg_status add(struct held *held, const char *key, const char *value)
{
    return grpc_metadata_add(&held->metadata, &held->arena, peg__str(key), peg__str(value),
                             &held->error);
}

static peg_status add_wire(struct held *held, const char *key, const char *value)
{
    return grpc_metadata_add_wire(&held->metadata, &held->arena, peg__str(key), peg__str(value),
                                  &held->error);
}

static void check_refused(const char *key, const char *value)
{
    struct held held = {0};
    const peg_status status = add(&held, key, value);

    if (status != PEG_EINVAL)
        T_FAIL("'%s: %s' gives %d", key, value, (int)status);
    CHECK_STR(peg__str(held.error.code), "E_METADATA");
    CHECK_INT(held.metadata.n, 0);
    CHECK_INT(held.metadata.bytes, 0);
    peg__arena_free(&held.arena);
}

static void check_value(const struct held *held, size_t i, const char *key, const char *value)
{
    CHECK(i < held->metadata.n);
    CHECK_STR(held->metadata.entries[i].key, key);
    CHECK_STR(held->metadata.entries[i].value, value);
}

/* ---- from a program ------------------------------------------------------------------------- */

TEST(entries_keep_their_order_and_may_repeat)
{
    struct held held = {0};

    CHECK_STATUS(add(&held, "a", "1"), PEG_OK, held.error);
    CHECK_STATUS(add(&held, "b", "2"), PEG_OK, held.error);
    CHECK_STATUS(add(&held, "a", "3"), PEG_OK, held.error);
    CHECK_INT(held.metadata.n, 3);
    check_value(&held, 0, "a", "1");
    check_value(&held, 1, "b", "2");
    check_value(&held, 2, "a", "3");
    CHECK_STR(grpc_metadata_get(&held.metadata, "a"), "1");
    CHECK_INT(held.metadata.bytes, 3 * 34);
    peg__arena_free(&held.arena);
}

TEST(a_key_that_is_not_there_has_no_value)
{
    struct held held = {0};

    CHECK(!grpc_metadata_get(&held.metadata, "a").ptr);
    CHECK_STATUS(add(&held, "ab", "1"), PEG_OK, held.error);
    CHECK(!grpc_metadata_get(&held.metadata, "a").ptr);
    CHECK(!grpc_metadata_get(&held.metadata, "abc").ptr);
    peg__arena_free(&held.arena);
}

TEST(key_and_value_are_copies_that_end_with_nul)
{
    struct held held = {0};
    char key[] = "X-Key_1.z";
    char value[] = "some value";

    CHECK_STATUS(add(&held, key, value), PEG_OK, held.error);
    memset(key, '?', sizeof(key) - 1);
    memset(value, '?', sizeof(value) - 1);
    check_value(&held, 0, "x-key_1.z", "some value");
    CHECK_INT(strlen(held.metadata.entries[0].key.ptr), 9);
    CHECK_INT(strlen(held.metadata.entries[0].value.ptr), 10);
    peg__arena_free(&held.arena);
}

TEST(spaces_around_a_text_are_left_out)
{
    struct held held = {0};

    CHECK_STATUS(add(&held, "a", "  b c "), PEG_OK, held.error);
    CHECK_STATUS(add(&held, "b", "   "), PEG_OK, held.error);
    CHECK_STATUS(add(&held, "c-bin", " x "), PEG_OK, held.error);
    check_value(&held, 0, "a", "b c");
    check_value(&held, 1, "b", "");
    check_value(&held, 2, "c-bin", " x ");
    peg__arena_free(&held.arena);
}

TEST(a_binary_value_may_have_any_bytes)
{
    struct held held = {0};
    const peg_str bytes = {"\0\xFF\n,", 4};

    CHECK_STATUS(
        grpc_metadata_add(&held.metadata, &held.arena, peg__str("Trace-Bin"), bytes, &held.error),
        PEG_OK, held.error);
    CHECK(peg__str_eq(grpc_metadata_get(&held.metadata, "trace-bin"), bytes));
    peg__arena_free(&held.arena);
}

TEST(a_key_with_other_characters_is_refused)
{
    char long_key[257];

    check_refused("", "x");
    check_refused(":path", "x");
    check_refused("a b", "x");
    check_refused("a\n", "x");
    check_refused("sch\xC3\xB6n", "x");
    check_refused("a:b", "x");
    memset(long_key, 'a', 256);
    long_key[256] = '\0';
    check_refused(long_key, "x");
}

TEST(a_key_of_the_protocol_is_refused)
{
    static const char *const keys[] = {
        "grpc-status",
        "grpc-timeout",
        "GRPC-anything",
        "grpc-",
        "te",
        "TE",
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "content-type",
        "User-Agent",
        "content-length",
        "transfer-encoding",
        "grpc-status-details-bin",
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        check_refused(keys[i], "x");
}

TEST(keys_that_only_look_like_the_protocols_are_a_programs)
{
    static const char *const keys[] = {
        "tea",           "ho",   "grpc",          "grpcx",         "content-types", "x-grpc-test",
        "authorization", "date", "grpc-tags-bin", "grpc-trace-bin"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK(grpc_metadata_is_ours(peg__str(keys[i])));
}

TEST(a_text_that_is_not_printable_is_refused)
{
    check_refused("a", "b\n");
    check_refused("a", "b\tc");
    check_refused("a", "\x7F");
    check_refused("a", "\xC3\xB6");
    check_refused("bin", "\x01");
}

TEST(metadata_ends_at_its_limit)
{
    struct held held = {0};
    static char value[PEG_LIMIT_GRPC_METADATA_BYTES];
    const peg_str key = {"a", 1};

    memset(value, 'v', sizeof(value));
    CHECK_STATUS(grpc_metadata_add(&held.metadata, &held.arena, key,
                                   peg__strn(value, sizeof(value) - 32), &held.error),
                 PEG_ELIMIT, held.error);
    CHECK_STR(peg__str(held.error.code), "E_METADATA");
    CHECK(strstr(held.error.message, "more than"));
    CHECK_INT(held.metadata.n, 0);
    CHECK_STATUS(grpc_metadata_add(&held.metadata, &held.arena, key,
                                   peg__strn(value, sizeof(value) - 33), &held.error),
                 PEG_OK, held.error);
    CHECK_STATUS(add(&held, "b", ""), PEG_ELIMIT, held.error);
    peg__arena_free(&held.arena);
}

TEST(a_hundred_thousand_small_entries_end_at_the_limit)
{
    struct held held = {0};
    peg_status status = PEG_OK;

    for (int i = 0; i < 100000 && !status; i++)
        status = add(&held, "k", "");
    CHECK_STATUS(status, PEG_ELIMIT, held.error);
    CHECK_INT(held.metadata.n, PEG_LIMIT_GRPC_METADATA_BYTES / 33);
    CHECK(held.arena.held < 512 << 10);
    peg__arena_free(&held.arena);
}

/* ---- from the wire -------------------------------------------------------------------------- */

TEST(a_text_from_the_wire_is_taken_as_it_is)
{
    struct held held = {0};

    CHECK_STATUS(add_wire(&held, "x-a", "one, two"), PEG_OK, held.error);
    CHECK_STATUS(add_wire(&held, "x-b", ""), PEG_OK, held.error);
    check_value(&held, 0, "x-a", "one, two");
    check_value(&held, 1, "x-b", "");
    peg__arena_free(&held.arena);
}

TEST(a_text_from_the_wire_that_is_not_printable_is_left_out)
{
    struct held held = {0};

    CHECK_STATUS(add_wire(&held, "x-a", "caf\xE9"), PEG_OK, held.error);
    CHECK_STATUS(add_wire(&held, "x-b", "a\tb"), PEG_OK, held.error);
    CHECK_INT(held.metadata.n, 0);
    peg__arena_free(&held.arena);
}

TEST(a_binary_value_is_read_with_padding_and_without)
{
    struct held held = {0};

    CHECK_STATUS(add_wire(&held, "a-bin", "YWI="), PEG_OK, held.error);
    CHECK_STATUS(add_wire(&held, "b-bin", "YWI"), PEG_OK, held.error);
    CHECK_STATUS(add_wire(&held, "c-bin", ""), PEG_OK, held.error);
    check_value(&held, 0, "a-bin", "ab");
    check_value(&held, 1, "b-bin", "ab");
    check_value(&held, 2, "c-bin", "");
    CHECK_INT(held.metadata.bytes, 3 * 37 + 4);
    peg__arena_free(&held.arena);
}

TEST(binary_values_joined_by_commas_are_several_entries)
{
    struct held held = {0};

    CHECK_STATUS(add_wire(&held, "a-bin", "YQ==,YmI, ,Y2Nj"), PEG_OK, held.error);
    CHECK_INT(held.metadata.n, 4);
    check_value(&held, 0, "a-bin", "a");
    check_value(&held, 1, "a-bin", "bb");
    check_value(&held, 2, "a-bin", "");
    check_value(&held, 3, "a-bin", "ccc");
    peg__arena_free(&held.arena);
}

TEST(a_binary_value_that_is_not_base_64_adds_nothing)
{
    struct held held = {0};

    CHECK_STATUS(add_wire(&held, "a-bin", "YQ,YW*"), PEG_EPARSE, held.error);
    CHECK_STR(peg__str(held.error.code), "E_METADATA");
    CHECK(strstr(held.error.message, "a-bin"));
    CHECK_STATUS(add_wire(&held, "a-bin", "Y"), PEG_EPARSE, held.error);
    CHECK_STATUS(add_wire(&held, "a-bin",
                          "YQ=="
                          "YQ=="),
                 PEG_EPARSE, held.error);
    CHECK_INT(held.metadata.n, 0);
    CHECK_INT(held.metadata.bytes, 0);
    peg__arena_free(&held.arena);
}

TEST(values_joined_by_commas_count_as_the_fields_they_are)
{
    CHECK_INT(grpc_metadata_wire_bytes(peg__str("a-bin"), peg__str("YQ,YQ")), 2 * 37 + 5);
    CHECK_INT(grpc_metadata_wire_bytes(peg__str("a"), peg__str("1,2")), 33 + 3);
}

TEST(bytes_are_encoded_without_padding_and_read_again)
{
    for (size_t len = 0; len < 40; len++) {
        struct held held = {0};
        char bytes[40];
        char text[64];
        size_t text_len;

        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(i * 37 + len);
        text_len = grpc_metadata_encode_bin(peg__strn(bytes, len), text);
        CHECK_INT(text_len, (len * 4 + 2) / 3);
        CHECK(!memchr(text, '=', text_len));
        CHECK_STATUS(add_wire(&held, "a-bin", text), PEG_OK, held.error);
        CHECK(peg__str_eq(held.metadata.entries[0].value, peg__strn(bytes, len)));
        peg__arena_free(&held.arena);
    }
}

TORTURE(adding_survives_any_allocation_failure)
{
    struct held held = {0};
    peg_status status = PEG_OK;

    for (int i = 0; i < 40 && !status; i++) {
        const struct grpc_metadata before = held.metadata;

        status = i % 3 == 0   ? add(&held, "a-key", "a value of some bytes that fill the arena")
                 : i % 3 == 1 ? add_wire(&held, "b-key", "a value of some bytes that fill it")
                              : add_wire(&held, "c-bin", "YWFhYWFhYWFhYWFh,YWFhYWFhYWFhYWFh");
        if (status) {
            CHECK_INT(held.metadata.n, before.n);
            CHECK_INT(held.metadata.bytes, before.bytes);
        }
    }
    peg__arena_free(&held.arena);
    return status;
}
