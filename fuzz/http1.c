/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests of HTTP/1.1. Whatever the bytes: they are waited for, refused, or taken; what is taken
 * lies inside them, ends with an empty line, holds no control characters, and says of no body;
 * the first bytes of it are waited for, and the first bytes of what is refused are never taken.
 */

#include "fuzz.h"

#include "base/limits.h"
#include "net/http1/http1.h"

static void check_inside(peg_str part, peg_str whole)
{
    REQUIRE(part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len,
            "a part of %zu bytes", part.len);
    for (size_t i = 0; i < part.len; i++) {
        const unsigned char c = (unsigned char)part.ptr[i];

        REQUIRE((c >= 0x20 || c == '\t') && c != 0x7F, "character %u", c);
    }
}

static void check_request(const struct net_http1_request *request, peg_str whole)
{
    REQUIRE(peg__str_is(request->method, "GET") || peg__str_is(request->method, "HEAD"), "method");
    REQUIRE(request->target.len > 0 && request->target.ptr[0] == '/', "target");
    REQUIRE(request->n_fields <= NET_HTTP1_MAX_FIELDS, "%zu fields", request->n_fields);
    REQUIRE(memcmp(whole.ptr + whole.len - 4, "\r\n\r\n", 4) == 0, "the end");
    REQUIRE(net_http1_field(request, "transfer-encoding").len == 0, "a body");
    check_inside(request->target, whole);
    check_inside(request->path, whole);
    check_inside(request->query, whole);
    for (size_t i = 0; i < request->n_fields; i++) {
        check_inside(request->fields[i].name, whole);
        check_inside(request->fields[i].value, whole);
        REQUIRE(request->fields[i].name.len > 0, "a name");
    }
}

/* Some of the places at which the bytes may be split. */
static void check_starts(const uint8_t *data, size_t size, int status)
{
    const size_t step = size / 64 + 1;

    for (size_t n = 0; n < size; n += step) {
        struct net_http1_request request;
        size_t used = 0;
        const int at_n = net_http1_read(data, n, &request, &used);

        REQUIRE(at_n == 0 ? used == 0 : at_n == status, "%zu of %zu bytes give %d, all %d", n, size,
                at_n, status);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net_http1_request request;
    size_t at = 0;

    /* One after the other, as a connection does. */
    while (at < size) {
        size_t used = 0;
        const int status = net_http1_read(data + at, size - at, &request, &used);

        REQUIRE(status == 0 || (status >= 400 && status <= 505), "status %d", status);
        REQUIRE(status == 0 || used == 0, "%zu bytes used", used);
        if (status || used == 0) {
            check_starts(data + at, size - at, status);
            REQUIRE(status || size - at < PEG_LIMIT_HTTP1_HEAD_BYTES, "waits for ever");
            break;
        }
        REQUIRE(used <= size - at && used <= PEG_LIMIT_HTTP1_HEAD_BYTES, "%zu bytes used", used);
        check_request(&request, peg__strn((const char *)data + at, used));
        check_starts(data + at, used, 0);
        at += used;
    }
    return 0;
}
