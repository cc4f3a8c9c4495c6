/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a string, asked of every format. Formats that contain one another agree. */

#include <arpa/inet.h>

#include "fuzz.h"
#include "schema/format/format.h"

static bool is(const char *format, peg_str s)
{
    peg__format_fn *check = peg__format_find(peg__str(format), PEG_DIALECT_2020_12);

    REQUIRE(check, "there is no format %s", format);
    return check(s);
}

static void check_all(peg_str s)
{
    static const char *const names[] = {
        "date-time",    "date",          "time",
        "duration",     "email",         "idn-email",
        "hostname",     "idn-hostname",  "ipv4",
        "ipv6",         "uri",           "uri-reference",
        "iri",          "iri-reference", "uuid",
        "uri-template", "json-pointer",  "relative-json-pointer",
        "regex",        "color",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int dialect = PEG_DIALECT_DRAFT4; dialect <= PEG_DIALECT_V1; dialect++) {
            peg__format_fn *check = peg__format_find(peg__str(names[i]), (peg_dialect)dialect);

            if (check)
                REQUIRE(check(s) == check(s), "%s is a function", names[i]);
        }
}

#define IMPLIES(a, b) REQUIRE(!is(a, s) || is(b, s), "%s but not %s", a, b)

static void check_inclusion(peg_str s)
{
    IMPLIES("uri", "uri-reference");
    IMPLIES("uri", "iri");
    IMPLIES("uri-reference", "iri-reference");
    IMPLIES("iri", "iri-reference");
    IMPLIES("email", "idn-email");
}

/* A date-time is a date, a T and a time. */
static void check_date_time(peg_str s)
{
    const bool is_joined = s.len > 11 && (s.ptr[10] == 'T' || s.ptr[10] == 't') &&
                           is("date", peg__strn(s.ptr, 10)) && is("time", peg__str_from(s, 11));

    /* A leap second is right or wrong by the offset alone, so nothing else can differ. */
    REQUIRE(is("date-time", s) == is_joined, "date-time is %d", !is_joined);
}

/* The C library knows addresses too. */
static void check_addresses(peg_str s)
{
    unsigned char address[sizeof(struct in6_addr)];

    if (memchr(s.ptr, '\0', s.len))
        return;
    REQUIRE(is("ipv4", s) == (inet_pton(AF_INET, s.ptr, address) == 1), "ipv4 %s", s.ptr);
    REQUIRE(is("ipv6", s) == (inet_pton(AF_INET6, s.ptr, address) == 1), "ipv6 %s", s.ptr);
}

static void check_pointer(peg_str s)
{
    static const peg_json nothing = {.kind = PEG_JSON_NULL};
    const peg_json *found;

    REQUIRE(is("json-pointer", s) == (peg_json_pointer(&nothing, s, &found, NULL) != PEG_EPARSE),
            "json-pointer");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str s = fuzz_utf8(fuzz_input(data, size));

    check_all(s);
    check_inclusion(s);
    check_date_time(s);
    check_addresses(s);
    check_pointer(s);
    fuzz_free(s);
    return 0;
}
