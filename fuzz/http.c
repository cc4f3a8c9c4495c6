/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests of HTTP/1.1 with their bodies, one after the other as a connection reads them. Whatever
 * the bytes: they are waited for, refused, or taken, and it does not matter in which pieces they
 * come. What is taken lies inside them and holds no control characters; a head ends with an empty
 * line; a body never has both a length and chunks; the first bytes of what is refused are never
 * taken.
 */

#include "fuzz.h"

#include "base/limits.h"
#include "net/http/internal.h"

static void check_inside(peg_str part, peg_str whole)
{
    REQUIRE(part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len,
            "a part of %zu bytes", part.len);
    for (size_t i = 0; i < part.len; i++) {
        const unsigned char c = (unsigned char)part.ptr[i];

        REQUIRE((c >= 0x20 || c == '\t') && c != 0x7F, "character %u", c);
    }
}

static size_t count_fields(const struct net_http_head *head, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < head->n_fields; i++)
        n += net_http_is_same_word(head->fields[i].name, name);
    return n;
}

static void check_head(const struct net_http_head *head, peg_str whole)
{
    REQUIRE(head->target.len > 0 && head->target.ptr[0] == '/', "target");
    REQUIRE(head->n_fields <= NET_HTTP_MAX_FIELDS, "%zu fields", head->n_fields);
    REQUIRE(memcmp(whole.ptr + whole.len - 4, "\r\n\r\n", 4) == 0, "the end");
    REQUIRE(count_fields(head, "content-length") + count_fields(head, "transfer-encoding") <= 1,
            "two lengths");
    REQUIRE(head->is_chunked == (count_fields(head, "transfer-encoding") == 1), "chunks");
    REQUIRE((head->content_length >= 0) == (count_fields(head, "content-length") == 1), "length");
    REQUIRE(count_fields(head, "host") <= 1, "two hosts");
    check_inside(head->method, whole);
    check_inside(head->target, whole);
    for (size_t i = 0; i < head->n_fields; i++) {
        check_inside(head->fields[i].name, whole);
        check_inside(head->fields[i].value, whole);
        REQUIRE(net_http_is_token(head->fields[i].name), "a name");
    }
}

/* Some of the places at which the bytes may be split. */
static void check_starts(peg_str bytes, int status)
{
    const size_t step = bytes.len / 64 + 1;

    for (size_t n = 0; n < bytes.len; n += step) {
        struct net_http_head head;
        size_t used = 0;
        const int at_n = net_http_head_read(peg__strn(bytes.ptr, n), &head, &used);

        REQUIRE(at_n == 0 ? used == 0 : at_n == status, "%zu of %zu bytes give %d, all %d", n,
                bytes.len, at_n, status);
    }
}

/* How a body was read. */
struct reading {
    int status;
    bool is_done;
    size_t used;
    uint64_t n_body;
    uint64_t digest; /* of its bytes, in order */
};

static void take_piece(struct reading *reading, peg_str piece)
{
    reading->n_body += piece.len;
    for (size_t i = 0; i < piece.len; i++)
        reading->digest = (reading->digest ^ (unsigned char)piece.ptr[i]) * 1099511628211ULL;
}

static struct reading read_body(const struct net_http_head *head, peg_str bytes, size_t step)
{
    struct net_http_framing framing;
    struct reading reading = {0};

    net_http_framing_begin(&framing, head);
    while (!reading.status && reading.used < bytes.len && !net_http_framing_is_done(&framing)) {
        const size_t left = bytes.len - reading.used;
        const size_t n = left < step ? left : step;
        peg_str rest = {bytes.ptr + reading.used, n};
        peg_str piece;

        reading.status = net_http_framing_next(&framing, &rest, &piece);
        if (reading.status)
            break;
        REQUIRE(rest.len < n, "%zu bytes are not taken", n);
        REQUIRE(piece.len == 0 ||
                    (piece.ptr >= bytes.ptr + reading.used && piece.ptr + piece.len <= rest.ptr),
                "a piece of %zu bytes", piece.len);
        reading.used += n - rest.len;
        take_piece(&reading, piece);
    }
    reading.is_done = net_http_framing_is_done(&framing);
    return reading;
}

static struct reading check_body(const struct net_http_head *head, peg_str bytes)
{
    const struct reading whole = read_body(head, bytes, SIZE_MAX);
    const size_t steps[] = {1, 2, 7, bytes.len / 3 + 1};

    REQUIRE(whole.status == 0 || (whole.status >= 400 && whole.status <= 431), "status %d",
            whole.status);
    REQUIRE(!whole.is_done || head->content_length < 0 ||
                whole.n_body == (uint64_t)head->content_length,
            "%llu bytes", (unsigned long long)whole.n_body);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct reading cut = read_body(head, bytes, steps[i]);

        REQUIRE(cut.status == whole.status && cut.is_done == whole.is_done &&
                    cut.n_body == whole.n_body && cut.digest == whole.digest &&
                    (cut.status || cut.used == whole.used),
                "in pieces of %zu bytes: status %d, not %d", steps[i], cut.status, whole.status);
    }
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = {size ? (const char *)data : "", size};

    while (rest.len > 0) {
        struct net_http_head head;
        struct reading body;
        size_t used = 0;
        const int status = net_http_head_read(rest, &head, &used);

        REQUIRE(status == 0 || (status >= 400 && status <= 505), "status %d", status);
        REQUIRE(status == 0 || used == 0, "%zu bytes used", used);
        if (status || used == 0) {
            check_starts(rest, status);
            REQUIRE(status || rest.len < PEG_LIMIT_NET_HTTP_HEAD_BYTES, "waits for ever");
            break;
        }
        REQUIRE(used <= rest.len && used <= PEG_LIMIT_NET_HTTP_HEAD_BYTES, "%zu bytes used", used);
        check_head(&head, peg__strn(rest.ptr, used));
        check_starts(peg__strn(rest.ptr, used), 0);
        rest = peg__str_from(rest, used);
        body = check_body(&head, rest);
        if (body.status || !body.is_done)
            break;
        rest = peg__str_from(rest, body.used);
    }
    return 0;
}
