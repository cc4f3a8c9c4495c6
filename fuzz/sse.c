/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a byte that says how long the pieces are, and a stream of events. Fed in one piece, byte
 * by byte or in pieces of that length, it gives the same events and ends in the same way.
 */

#include "engine/transport/transport.h"
#include "fuzz.h"

enum { MAX_LINE = 256, MAX_TOLD = 1 << 24 };

static peg_status hear(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct peg__buf *told = user;

    (void)reterr;
    REQUIRE(name.len > 0 && name.len <= MAX_LINE, "a name has %zu bytes", name.len);
    REQUIRE(data.len <= MAX_LINE, "data has %zu bytes", data.len);
    REQUIRE(!memchr(name.ptr, '\n', name.len) && !memchr(name.ptr, '\r', name.len),
            "a name is one line");
    REQUIRE(!data.len || !memchr(data.ptr, '\r', data.len), "CR ends a line");
    peg__buf_printf(told, "%zu %zu ", name.len, data.len);
    peg__buf_str(told, name);
    peg__buf_str(told, data);
    return PEG_OK;
}

static peg_status feed(peg_str text, size_t piece, struct peg__buf *told)
{
    struct peg__sse sse;
    peg_error error;
    peg_status status = PEG_OK;

    peg__sse_init(&sse, MAX_LINE);
    while (text.len && !status) {
        const size_t n = piece < text.len ? piece : text.len;

        status = peg__sse_feed(&sse, peg__strn(text.ptr, n), hear, told, &error);
        text = peg__str_from(text, n);
    }
    if (!status)
        status = peg__sse_end(&sse, hear, told, &error);
    if (status)
        fuzz_check_error(&error, text);
    peg__sse_free(&sse);
    return status;
}

static void check_same(peg_str text, size_t piece, peg_status expected, const struct peg__buf *told)
{
    struct peg__buf again = PEG__BUF(MAX_TOLD);

    REQUIRE(feed(text, piece, &again) == expected, "pieces of %zu end otherwise", piece);
    REQUIRE(peg__str_eq(peg__buf_view(&again), peg__buf_view(told)),
            "pieces of %zu give other events", piece);
    peg__buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t piece = size ? data[0] % 16U + 2 : 2;
    const peg_str text = size ? fuzz_input(data + 1, size - 1) : peg__str("");
    struct peg__buf told = PEG__BUF(MAX_TOLD);
    const peg_status status = feed(text, text.len + 1, &told);

    REQUIRE(status == PEG_OK || status == PEG_ELIMIT, "status %d", status);
    check_same(text, 1, status, &told);
    check_same(text, piece, status, &told);
    peg__buf_free(&told);
    return 0;
}
