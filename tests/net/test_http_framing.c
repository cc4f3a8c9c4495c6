/* SPDX-License-Identifier: Apache-2.0 */

/* Where bodies end: tables of what is taken and what is refused, in any pieces. */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/http/internal.h"

struct result {
    int status; /* 0: it is done, or waits */
    bool is_done;
    size_t used;
    char body[256];
    size_t n_body;
};

/* Feeds pieces of so many bytes. */
static struct result read_body(bool is_chunked, int64_t length, peg_str bytes, size_t piece)
{
    const struct net_http_head head = {.is_chunked = is_chunked, .content_length = length};
    struct net_http_framing framing;
    struct result result = {0};

    net_http_framing_begin(&framing, &head);
    while (result.used < bytes.len && !result.status && !net_http_framing_is_done(&framing)) {
        const size_t left = bytes.len - result.used;
        const size_t n = left < piece ? left : piece;
        peg_str rest = {bytes.ptr + result.used, n};
        peg_str part;

        result.status = net_http_framing_next(&framing, &rest, &part);
        if (result.status)
            break;
        result.used += n - rest.len;
        CHECK(result.n_body + part.len <= sizeof(result.body));
        memcpy(result.body + result.n_body, part.ptr, part.len);
        result.n_body += part.len;
    }
    result.is_done = net_http_framing_is_done(&framing);
    return result;
}

TEST(http_body_of_a_length_ends_there)
{
    const peg_str bytes = PEG_LIT("helloGET /");

    for (size_t piece = 1; piece <= bytes.len; piece++) {
        const struct result result = read_body(false, 5, bytes, piece);

        CHECK(result.is_done && result.used == 5);
        CHECK_STR(peg__strn(result.body, result.n_body), "hello");
    }
    CHECK(read_body(false, 0, bytes, 10).is_done);
    CHECK(read_body(false, -1, bytes, 10).is_done);
    CHECK(!read_body(false, 11, bytes, 10).is_done);
}

static const struct {
    const char *bytes;
    const char *body;
} good[] = {
    {"0\r\n\r\n", ""},
    {"000\r\n\r\n", ""},
    {"5\r\nhello\r\n0\r\n\r\n", "hello"},
    {"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "hello!"},
    {"00000000000000a\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
    {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
    {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n"},
    {"1;a=b\r\nx\r\n0;last\r\n\r\n", "x"},
    {"1;a=\"b;\xc3\xa4\"\r\nx\r\n0\r\n\r\n", "x"},
    {"1\r\nx\r\n0\r\nTrailer: a\r\nOther:\r\n\r\n", "x"},
    {"1\r\nx\r\n0\r\nContent-Length: 99\r\n\r\n", "x"},
};

TEST(http_chunks_are_taken_in_any_pieces_and_nothing_behind_them)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const size_t len = strlen(good[i].bytes);
        char text[128];

        snprintf(text, sizeof(text), "%sGET / HTTP/1.1\r\n", good[i].bytes);
        for (size_t piece = 1; piece <= len + 4; piece++) {
            const struct result result = read_body(true, -1, peg__str(text), piece);

            if (result.status || !result.is_done || result.used != len)
                T_FAIL("chunks %zu in pieces of %zu: status %d after %zu", i, piece, result.status,
                       result.used);
            CHECK_STR(peg__strn(result.body, result.n_body), good[i].body);
        }
        for (size_t n = 0; n < len; n++) {
            const struct result result = read_body(true, -1, peg__strn(text, n), 7);

            if (result.status || result.is_done)
                T_FAIL("chunks %zu are done after %zu bytes", i, n);
        }
    }
}

static const struct {
    int status;
    const char *bytes;
} bad[] = {
    /* sizes */
    {400, "\r\n"},
    {400, "x\r\n"},
    {400, " 1\r\nx\r\n"},
    {400, "1 \r\nx\r\n"},
    {400, "1\t\r\nx\r\n"},
    {400, "+1\r\nx\r\n"},
    {400, "-1\r\nx\r\n"},
    {400, "0x1\r\nx\r\n"},
    {400, "1h\r\nx\r\n"},
    {400, "1,1\r\nx\r\n"},
    {400, ";a\r\n"},
    {413, "ffffffffffffffff\r\n"},
    {413, "0000000000000001\r\nx\r\n"},
    {413, "8000000000000000\r\n"},
    /* ends of lines */
    {400, "1\nx\r\n"},
    {400, "1\rx\r\n"},
    {400, "1\r\rx\r\n"},
    {400, "1\r\nx\n0\r\n\r\n"},
    {400, "1\r\nx\r0\r\n\r\n"},
    {400, "1\r\nxy\r\n0\r\n\r\n"},
    {400, "1\r\nx0\r\n\r\n"},
    {400, "0\r\n\n"},
    {400, "0\r\n\r\r\n"},
    {400, "0\n\r\n"},
    /* extensions */
    {400, "1;a\nb\r\nx\r\n"},
    {400, "1;a\rb\r\nx\r\n"},
    {400, "1;\x01\r\nx\r\n"},
    {400, "1;\x7f\r\nx\r\n"},
    /* trailers */
    {400, "0\r\nno colon\r\n\r\n"},
    {400, "0\r\n: no name\r\n\r\n"},
    {400, "0\r\nA : b\r\n\r\n"},
    {400, "0\r\n A: b\r\n\r\n"},
    {400, "0\r\nA: b\r\n folded\r\n\r\n"},
    {400, "0\r\nA: b\n\r\n"},
    {400, "0\r\nA: \x01\r\n\r\n"},
    {400, "0\r\nGET / HTTP/1.1\r\n\r\n"},
};

TEST(http_chunks_that_are_unclear_are_refused_in_any_pieces)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t piece = 1; piece <= strlen(bad[i].bytes); piece++) {
            const struct result result = read_body(true, -1, peg__str(bad[i].bytes), piece);

            if (result.status != bad[i].status)
                T_FAIL("bad chunks %zu in pieces of %zu give %d", i, piece, result.status);
        }
    }
}

TEST(http_chunks_have_a_limit_for_what_nobody_reads)
{
    static const char *const starts[] = {"1;", "0\r\n", "0\r\nA:"};

    for (size_t i = 0; i < 3; i++) {
        for (size_t extra = 0; extra < 2; extra++) {
            const size_t has = i == 2; /* the name counts */
            struct peg__buf text = PEG__BUF(1 << 20);

            peg__buf_puts(&text, starts[i]);
            peg__buf_repeat(&text, 'a', PEG_LIMIT_NET_HTTP_CHUNK_EXTRA_BYTES - has + extra);
            CHECK_INT(read_body(true, -1, peg__buf_view(&text), text.len).status, extra ? 431 : 0);
            peg__buf_free(&text);
        }
    }
}

/* Small chunks with large extensions: the sum counts. */
TEST(http_chunks_count_extensions_of_all_chunks)
{
    struct peg__buf text = PEG__BUF(1 << 20);

    for (size_t i = 0; i < 200; i++) {
        peg__buf_puts(&text, "1;");
        peg__buf_repeat(&text, 'a', 100);
        peg__buf_puts(&text, "\r\nx\r\n");
    }
    CHECK_INT(read_body(true, -1, peg__buf_view(&text), 1000).status, 431);
    peg__buf_free(&text);
}
