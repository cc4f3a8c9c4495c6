/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "t.h"

/* "hello" as gzip -n writes it. */
static const char hello[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00"
                            "\x86\xa6\x10\x36\x05\x00\x00\x00";

enum { NO_LIMIT = 1 << 30, LARGE = 1 << 20 };

static peg_str hello_bytes(void)
{
    return peg__strn(hello, sizeof(hello) - 1);
}

static void pack(peg_str bytes, struct peg__buf *out)
{
    peg_error error;

    *out = (struct peg__buf)PEG__BUF(NO_LIMIT);
    CHECK_STATUS(grpc_gzip(bytes, out, &error), PEG_OK, error);
}

/* All of it in one piece; a failure leaves `out` as it was. */
static peg_status gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr)
{
    const size_t len = out->len;
    struct grpc_inflater *inflater = grpc_inflater_new(max < out->max - len ? max : out->max - len);
    peg_status status;

    if (!inflater)
        return peg__fail_nomem(reterr);
    status = grpc_inflater_feed(inflater, bytes, true, out, reterr);
    grpc_inflater_free(inflater);
    if (status) {
        out->len = len;
        out->status = PEG_OK;
        if (out->ptr)
            out->ptr[len] = '\0';
    }
    return status;
}

static void check_there_and_back(peg_str bytes)
{
    struct peg__buf packed;
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    pack(bytes, &packed);
    CHECK_STATUS(gunzip(peg__buf_view(&packed), bytes.len, &out, &error), PEG_OK, error);
    CHECK(peg__str_eq(peg__buf_view(&out), bytes));
    peg__buf_free(&packed);
    peg__buf_free(&out);
}

static void check_refused(peg_str bytes)
{
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    CHECK_STATUS(gunzip(bytes, NO_LIMIT, &out, &error), PEG_EPARSE, error);
    CHECK_STR(peg__str(error.code), "E_GRPC_FRAME");
    CHECK_INT(out.len, 0);
    CHECK_INT(out.status, PEG_OK);
    peg__buf_free(&out);
}

/* Bytes that do not compress, the same each time. */
static char *noise(size_t len)
{
    char *bytes = malloc(len);
    uint32_t state = 1;

    for (size_t i = 0; i < len; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (char)(state >> 24);
    }
    return bytes;
}

TEST(what_gzip_wrote_is_unpacked)
{
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    CHECK_STATUS(gunzip(hello_bytes(), 5, &out, &error), PEG_OK, error);
    CHECK_STR(peg__buf_view(&out), "hello");
    peg__buf_free(&out);
}

TEST(messages_of_any_length_come_back_as_they_were)
{
    static const size_t lengths[] = {0,    1,    2,     255,   256,   257,    511,    512,
                                     1000, 4096, 32767, 32768, 32769, 100000, 300000, LARGE};
    char *bytes = noise(LARGE);

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        check_there_and_back(peg__strn(bytes, lengths[i]));
    free(bytes);
}

TEST(what_compresses_well_comes_back_as_it_was)
{
    char *bytes = calloc(1, LARGE);

    for (size_t len = 1; len <= LARGE; len *= 4)
        check_there_and_back(peg__strn(bytes, len));
    free(bytes);
}

TEST(repetition_becomes_shorter)
{
    char text[4096];
    struct peg__buf packed;

    memset(text, 'a', sizeof(text));
    pack(peg__strn(text, sizeof(text)), &packed);
    CHECK(packed.len < 100);
    peg__buf_free(&packed);
}

TEST(both_append_to_what_is_there)
{
    struct peg__buf packed = PEG__BUF(NO_LIMIT);
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    peg__buf_puts(&packed, "12345");
    peg__buf_puts(&out, "before ");
    CHECK_STATUS(grpc_gzip(peg__str("after"), &packed, &error), PEG_OK, error);
    CHECK(memcmp(packed.ptr, "12345\x1f\x8b", 7) == 0);
    CHECK_STATUS(gunzip(peg__str_from(peg__buf_view(&packed), 5), 5, &out, &error), PEG_OK, error);
    CHECK_STR(peg__buf_view(&out), "before after");
    CHECK_INT(strlen(out.ptr), out.len);
    peg__buf_free(&packed);
    peg__buf_free(&out);
}

TEST(what_is_cut_off_anywhere_is_refused)
{
    for (size_t len = 0; len < sizeof(hello) - 1; len++)
        check_refused(peg__strn(hello, len));
    check_refused((peg_str){NULL, 0});
}

TEST(a_wrong_checksum_or_length_is_refused)
{
    for (size_t i = sizeof(hello) - 9; i < sizeof(hello) - 1; i++) {
        char damaged[sizeof(hello)];

        memcpy(damaged, hello, sizeof(hello));
        damaged[i] ^= 1;
        check_refused(peg__strn(damaged, sizeof(hello) - 1));
    }
}

TEST(other_formats_are_refused)
{
    check_refused(peg__str("hello, this is no gzip"));
    check_refused(peg__strn("\x78\x9c\x4b\x04\x00\x00\x62\x00\x62", 9)); /* zlib's own */
}

TEST(bytes_behind_the_member_are_refused)
{
    char twice[2 * (sizeof(hello) - 1)];

    memcpy(twice, hello, sizeof(hello) - 1);
    memcpy(twice + sizeof(hello) - 1, hello, sizeof(hello) - 1);
    check_refused(peg__strn(twice, sizeof(hello)));
    check_refused(peg__strn(twice, sizeof(twice)));
}

TEST(one_byte_too_many_is_a_limit_and_leaves_the_buffer_as_it_was)
{
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    peg__buf_puts(&out, "kept");
    CHECK_STATUS(gunzip(hello_bytes(), 4, &out, &error), PEG_ELIMIT, error);
    CHECK_STR(peg__str(error.code), "E_MESSAGE_TOO_LARGE");
    CHECK_STATUS(gunzip(hello_bytes(), 0, &out, &error), PEG_ELIMIT, error);
    CHECK_STR(peg__buf_view(&out), "kept");
    CHECK_INT(out.status, PEG_OK);
    CHECK_STATUS(gunzip(hello_bytes(), 5, &out, &error), PEG_OK, error);
    CHECK_STR(peg__buf_view(&out), "kepthello");
    peg__buf_free(&out);
}

TEST(an_empty_message_fits_into_no_bytes)
{
    struct peg__buf packed;
    struct peg__buf out = PEG__BUF(0);
    peg_error error;

    pack(peg__str(""), &packed);
    CHECK_STATUS(gunzip(peg__buf_view(&packed), 0, &out, &error), PEG_OK, error);
    CHECK_INT(out.len, 0);
    peg__buf_free(&packed);
    peg__buf_free(&out);
}

TEST(the_maximum_of_the_buffer_counts_too)
{
    struct peg__buf out = PEG__BUF(4);
    peg_error error;

    CHECK_STATUS(gunzip(hello_bytes(), NO_LIMIT, &out, &error), PEG_ELIMIT, error);
    CHECK_STATUS(grpc_gzip(peg__str("hello"), &out, &error), PEG_ELIMIT, error);
    CHECK_STR(peg__str(error.code), "E_MESSAGE_TOO_LARGE");
    CHECK_INT(out.len, 0);
    CHECK_INT(out.status, PEG_OK);
    peg__buf_free(&out);
}

TEST(a_bomb_costs_no_more_than_its_limit)
{
    char *zeros = calloc(1, 8 << 20);
    struct peg__buf packed;
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    pack(peg__strn(zeros, 8 << 20), &packed);
    CHECK(packed.len < 64 << 10);
    CHECK_STATUS(gunzip(peg__buf_view(&packed), 100000, &out, &error), PEG_ELIMIT, error);
    CHECK(out.capacity <= 1 << 17);
    free(zeros);
    peg__buf_free(&packed);
    peg__buf_free(&out);
}

TEST(a_length_that_is_not_true_costs_no_memory)
{
    char lying[sizeof(hello)];
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;

    memcpy(lying, hello, sizeof(hello));
    memset(lying + sizeof(hello) - 5, 0x3f, 4);
    CHECK_STATUS(gunzip(peg__strn(lying, sizeof(hello) - 1), NO_LIMIT, &out, &error), PEG_EPARSE,
                 error);
    CHECK(out.capacity <= 64 << 10);
    peg__buf_free(&out);
}

TORTURE(packing_survives_any_allocation_failure)
{
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;
    const peg_status status = grpc_gzip(peg__str("hello hello hello"), &out, &error);

    if (status) {
        CHECK_INT(out.len, 0);
        CHECK_INT(out.status, PEG_OK);
    }
    peg__buf_free(&out);
    return status;
}

/* The length at its end is told too small, so that the buffer grows several times and the whole is
 * refused at last. */
TORTURE(unpacking_survives_any_allocation_failure)
{
    static const char zeros[5000];
    struct peg__buf made = PEG__BUF(NO_LIMIT);
    struct peg__buf out = PEG__BUF(NO_LIMIT);
    peg_error error;
    peg_status status = grpc_gzip(peg__strn(zeros, sizeof(zeros)), &made, &error);

    if (!status)
        status = gunzip(peg__buf_view(&made), sizeof(zeros), &out, &error);
    if (!status) {
        CHECK_INT(out.len, sizeof(zeros));
        made.ptr[made.len - 3] = 0;
        peg__buf_free(&out);
        status = gunzip(peg__buf_view(&made), sizeof(zeros), &out, &error);
        CHECK(status == PEG_ENOMEM || status == PEG_EPARSE);
        status = status == PEG_EPARSE ? PEG_OK : status;
    }
    CHECK_INT(out.len, 0);
    CHECK_INT(out.status, PEG_OK);
    peg__buf_free(&made);
    peg__buf_free(&out);
    return status;
}
