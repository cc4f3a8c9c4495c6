/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/base64.h"

#include "../t.h"
#include "base/text/str.h"

static void check_decoded(const char *text, const char *expected)
{
    char bytes[64];
    size_t len = 99;

    if (!peg__base64_decode(peg__str(text), bytes, &len))
        T_FAIL("'%s' is refused", text);
    CHECK_STR(peg__strn(bytes, len), expected);
}

static void check_refused(const char *text)
{
    char bytes[64];
    size_t len = 99;

    if (peg__base64_decode(peg__str(text), bytes, &len))
        T_FAIL("'%s' is taken for %zu bytes", text, len);
    CHECK_INT(len, 99);
}

TEST(base64_reads_what_it_wrote)
{
    unsigned char bytes[50];
    char text[80];
    char again[80];
    size_t len;

    for (size_t n = 0; n <= sizeof(bytes); n++) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 37 + n * 11 + 251);
        peg__base64_encode(peg__strn((const char *)bytes, n), text);
        CHECK_INT(strlen(text), peg__base64_len(n));
        CHECK(peg__base64_bytes(strlen(text)) >= n);
        CHECK(peg__base64_decode(peg__str(text), again, &len));
        CHECK(peg__str_eq(peg__strn(again, len), peg__strn((const char *)bytes, n)));
    }
}

TEST(base64_reads_both_alphabets_without_padding_and_with_space)
{
    check_decoded("Zm9vYg==", "foob");
    check_decoded("Zm9vYg", "foob");
    check_decoded("Zm9v\r\n Ym\tE=", "fooba");
    check_decoded("_-_-", "\xFF\xEF\xFE");
    check_decoded("/+/+", "\xFF\xEF\xFE");
    check_decoded("", "");
}

TEST(base64_refuses_what_is_none)
{
    check_refused("Zm9vY");
    check_refused("Zm9v=");
    check_refused("Zg=a");
    check_refused("Zg===");
    check_refused("Zg=");
    check_refused("Zm9%");
    check_refused("=");
    check_refused("Zm\xC3\xA4");
}
