/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include "wire/wire.h"

#include "base/limits.h"
#include "base/text/str.h"

static char big[PEG_LIMIT_GATEWAY_CHUNK_BYTES * 2 + 100];

TEST(room_is_left_before_chunks_if_asked_for)
{
    struct wire_chunks chunks = {.n_before = 40};

    CHECK_STR(wire_chunks_view(&chunks), "");
    CHECK_INT(wire_chunks_add(&chunks, peg__str("a"), NULL), PEG_OK);
    CHECK_INT(wire_chunks_add(&chunks, peg__str("b"), NULL), PEG_OK);

    CHECK_STR(wire_chunks_view(&chunks), "ab");
    CHECK_INT(chunks.bytes.len, 42);
    wire_chunks_free(&chunks);
}

TEST(a_result_is_put_together_from_its_chunks)
{
    struct wire_chunks chunks = {0};

    CHECK_STR(wire_chunks_view(&chunks), "");
    CHECK_INT(wire_chunks_add(&chunks, peg__str("{\"a\""), NULL), PEG_OK);
    CHECK_INT(wire_chunks_add(&chunks, peg__str(""), NULL), PEG_OK);
    CHECK_INT(wire_chunks_add(&chunks, peg__str(":1}"), NULL), PEG_OK);

    CHECK_STR(wire_chunks_view(&chunks), "{\"a\":1}");
    wire_chunks_free(&chunks);
    CHECK_STR(wire_chunks_view(&chunks), "");
}

TEST(a_result_goes_through_chunks_and_back)
{
    struct wire_chunks chunks = {0};

    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < sizeof(big); i += PEG_LIMIT_GATEWAY_CHUNK_BYTES) {
        const size_t left = sizeof(big) - i;
        const size_t n =
            left < PEG_LIMIT_GATEWAY_CHUNK_BYTES ? left : PEG_LIMIT_GATEWAY_CHUNK_BYTES;

        CHECK_INT(wire_chunks_add(&chunks, peg__strn(big + i, n), NULL), PEG_OK);
    }
    CHECK(peg__str_eq(wire_chunks_view(&chunks), peg__strn(big, sizeof(big))));
    wire_chunks_free(&chunks);
}

TEST(a_chunk_that_is_too_large_ends_the_result)
{
    struct wire_chunks chunks = {0};
    peg_error error;

    CHECK_INT(wire_chunks_add(&chunks, peg__str("x"), NULL), PEG_OK);
    CHECK_INT(wire_chunks_add(&chunks, peg__strn(big, PEG_LIMIT_GATEWAY_CHUNK_BYTES + 1), &error),
              PEG_ELIMIT);
    CHECK(strstr(error.message, "in chunks of at most") != NULL);
    CHECK_INT(wire_chunks_add(&chunks, peg__str("x"), &error), PEG_ELIMIT);
    CHECK_STR(wire_chunks_view(&chunks), "");
    wire_chunks_free(&chunks);
}

TEST(a_result_that_is_too_large_is_given_back_at_once)
{
    struct wire_chunks chunks = {0};
    const peg_str full = {big, PEG_LIMIT_GATEWAY_CHUNK_BYTES};
    peg_error error;

    for (size_t n = 0; n < PEG_LIMIT_GATEWAY_RESULT_BYTES; n += full.len)
        CHECK_INT(wire_chunks_add(&chunks, full, NULL), PEG_OK);
    CHECK_INT(wire_chunks_view(&chunks).len, PEG_LIMIT_GATEWAY_RESULT_BYTES);

    CHECK_INT(wire_chunks_add(&chunks, peg__str("x"), &error), PEG_ELIMIT);

    CHECK(strstr(error.message, "a result has more than") != NULL);
    CHECK(chunks.bytes.ptr == NULL);
    wire_chunks_free(&chunks);
}

TORTURE(chunks_keep_what_they_have_when_memory_ends)
{
    struct wire_chunks chunks = {0};
    peg_status status = wire_chunks_add(&chunks, peg__str("first"), NULL);

    if (!status) {
        status = wire_chunks_add(&chunks, peg__strn(big, 5000), NULL);
        CHECK_INT(wire_chunks_view(&chunks).len, status ? 5 : 5005);
    }
    wire_chunks_free(&chunks);
    return status;
}
