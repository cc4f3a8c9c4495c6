/* SPDX-License-Identifier: Apache-2.0 */

/* Which calls are the same under one identity. */

#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "calls/caller/call.h"

static bool is_same(const char *tool, peg_str payload, const char *other_tool, peg_str other)
{
    const struct calls_request asks[2] = {{.tool = peg__str(tool), .payload = payload},
                                          {.tool = peg__str(other_tool), .payload = other}};
    unsigned char digests[2][32];

    CHECK(calls_request_digest(&asks[0], digests[0]));
    CHECK(calls_request_digest(&asks[1], digests[1]));
    return memcmp(digests[0], digests[1], 32) == 0;
}

static bool is_same_payload(const char *one, const char *other)
{
    return is_same("add", peg__str(one), "add", peg__str(other));
}

TEST(white_space_between_values_is_no_difference)
{
    CHECK(is_same_payload("{}", "{ }"));
    CHECK(is_same_payload("{}", "\r\n\t {}  "));
    CHECK(is_same_payload("", "{}"));
    CHECK(is_same_payload("{\"a\":[1,2],\"b\":\"x y\"}",
                          "{\n  \"a\": [ 1, 2 ],\n  \"b\": \"x y\"\n}\n"));
    CHECK(is_same_payload("[\"a\\\" b\",1]", "[ \"a\\\" b\" , 1 ]"));
    CHECK(is_same_payload("[\"\\\\\",1]", "[ \"\\\\\" , 1 ]"));
}

TEST(whatever_else_differs_is_another_call)
{
    CHECK(!is_same_payload("{\"a\":1}", "{\"a\":2}"));
    CHECK(!is_same_payload("\"xy\"", "\"x y\""));
    CHECK(!is_same_payload("\"x y\"", "\"x  y\""));
    CHECK(!is_same_payload("[\"a\\\" b\"]", "[\"a\\\"b\"]"));
    CHECK(!is_same_payload("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"));
    CHECK(!is_same("add", peg__str("{}"), "sub", peg__str("{}")));
}

/* The payload of a further caller is not checked. */
TEST(what_is_no_json_has_a_digest_too)
{
    CHECK(is_same_payload("\"a", "\"a"));
    CHECK(!is_same_payload("\"a\\", "\"a"));
}

/* An array of ones, or of ones with a blank before each. */
static peg_str make_array(size_t n, bool has_blanks, char *text)
{
    size_t len = 0;

    text[len++] = '[';
    for (size_t i = 0; i < n; i++) {
        if (has_blanks)
            text[len++] = ' ';
        text[len++] = '1';
        text[len++] = i + 1 < n ? ',' : ']';
    }
    return peg__strn(text, len);
}

/* Also where the text just fills what is digested at once. */
TEST(texts_of_every_length_are_compared_whole)
{
    enum { MOST = 3000 };
    char *compact = malloc(2 * MOST + 1);
    char *loose = malloc(3 * MOST + 1);

    CHECK(compact && loose);
    for (size_t n = 1; n <= MOST; n += n < 1000 || n > 1050 ? 97 : 1) {
        const peg_str one = make_array(n, false, compact);
        const peg_str other = make_array(n, true, loose);

        CHECK(is_same("add", one, "add", other));
        loose[other.len - 2] = '2';
        CHECK(!is_same("add", one, "add", other));
        loose[other.len - 2] = '1';
        loose[2] = '2';
        CHECK(!is_same("add", one, "add", other));
    }
    free(compact);
    free(loose);
}

/* Several bytes are looked at at once. */
TEST(spaces_and_strings_are_found_at_every_place)
{
    for (int n = 1; n <= 20; n++) {
        char texts[4][80];

        snprintf(texts[0], sizeof(texts[0]), "[%0*d,\"a b\",12345678]", n, 1);
        snprintf(texts[1], sizeof(texts[1]), "[%0*d ,\"a b\",12345678]", n, 1);
        snprintf(texts[2], sizeof(texts[2]), "[%0*d,\"a b\",12345678\n]", n, 1);
        snprintf(texts[3], sizeof(texts[3]), "[%0*d,\"ab\",12345678]", n, 1);
        CHECK(is_same_payload(texts[0], texts[1]));
        CHECK(is_same_payload(texts[0], texts[2]));
        CHECK(!is_same_payload(texts[0], texts[3]));
    }
}
