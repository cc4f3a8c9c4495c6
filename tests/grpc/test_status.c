/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "grpc/status.h"
#include "t.h"
#include "json/json.h"

/* ---- codes ---------------------------------------------------------------------------------- */

TEST(every_code_has_its_name)
{
    CHECK_STR(peg__str(grpc_code_name(GRPC_OK)), "OK");
    CHECK_STR(peg__str(grpc_code_name(GRPC_CANCELLED)), "CANCELLED");
    CHECK_STR(peg__str(grpc_code_name(GRPC_DEADLINE_EXCEEDED)), "DEADLINE_EXCEEDED");
    CHECK_STR(peg__str(grpc_code_name(GRPC_UNAUTHENTICATED)), "UNAUTHENTICATED");
}

TEST(a_number_that_is_no_code_is_named_unknown)
{
    CHECK_STR(peg__str(grpc_code_name((enum grpc_code)17)), "UNKNOWN");
    CHECK_STR(peg__str(grpc_code_name((enum grpc_code) - 1)), "UNKNOWN");
}

TEST(every_code_is_read_from_the_wire)
{
    for (int code = 0; code <= 16; code++) {
        char text[8];

        snprintf(text, sizeof(text), "%d", code);
        CHECK_INT(grpc_code_from_wire(peg__str(text)), code);
    }
}

TEST(what_is_no_code_on_the_wire_becomes_unknown)
{
    static const char *const others[] = {"",   "17", "99",  "-1",  "+1",
                                         " 1", "1 ", "0x1", "1.0", "18446744073709551616"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK_INT(grpc_code_from_wire(peg__str(others[i])), GRPC_UNKNOWN);
    CHECK_INT(grpc_code_from_wire((peg_str){NULL, 0}), GRPC_UNKNOWN);
}

TEST(an_http_status_becomes_the_code_of_the_protocols_table)
{
    static const int table[][2] = {
        {400, GRPC_INTERNAL},      {401, GRPC_UNAUTHENTICATED}, {403, GRPC_PERMISSION_DENIED},
        {404, GRPC_UNIMPLEMENTED}, {429, GRPC_UNAVAILABLE},     {502, GRPC_UNAVAILABLE},
        {503, GRPC_UNAVAILABLE},   {504, GRPC_UNAVAILABLE},     {200, GRPC_UNKNOWN},
        {500, GRPC_UNKNOWN},       {0, GRPC_UNKNOWN},           {418, GRPC_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        CHECK_INT(grpc_code_from_http(table[i][0]), table[i][1]);
}

TEST(an_http2_error_becomes_the_code_of_the_protocols_table)
{
    static const enum grpc_code table[] = {
        GRPC_INTERNAL,          GRPC_INTERNAL, GRPC_INTERNAL, GRPC_INTERNAL,
        GRPC_INTERNAL,          GRPC_INTERNAL, GRPC_INTERNAL, GRPC_UNAVAILABLE,
        GRPC_CANCELLED,         GRPC_INTERNAL, GRPC_INTERNAL, GRPC_RESOURCE_EXHAUSTED,
        GRPC_PERMISSION_DENIED, GRPC_INTERNAL,
    };

    for (uint32_t error = 0; error < sizeof(table) / sizeof(table[0]); error++)
        CHECK_INT(grpc_code_from_h2(error, false), table[error]);
    CHECK_INT(grpc_code_from_h2(0xFFFFFFFF, false), GRPC_INTERNAL);
}

TEST(a_cancel_after_the_deadline_tells_that_it_passed)
{
    CHECK_INT(grpc_code_from_h2(8, true), GRPC_DEADLINE_EXCEEDED);
    CHECK_INT(grpc_code_from_h2(7, true), GRPC_UNAVAILABLE);
}

/* ---- percent-encoding ----------------------------------------------------------------------- */

/* The exact room that the contract asks for, so that a sanitizer sees one byte too many. */
static peg_str with_room(peg_str text, size_t (*code)(peg_str, char *), char **ret_room)
{
    *ret_room = malloc(3 * text.len + !text.len);
    return peg__strn(*ret_room, code(text, *ret_room));
}

#define CHECK_ENCODED(text, expected)                                                              \
    do {                                                                                           \
        char *room;                                                                                \
        CHECK_STR(with_room(peg__strn((text), sizeof(text) - 1), grpc_percent_encode, &room),      \
                  expected);                                                                       \
        free(room);                                                                                \
    } while (0)

#define CHECK_DECODED(text, expected)                                                              \
    do {                                                                                           \
        char *room;                                                                                \
        CHECK_STR(with_room(peg__strn((text), sizeof(text) - 1), grpc_percent_decode, &room),      \
                  expected);                                                                       \
        free(room);                                                                                \
    } while (0)

TEST(printable_ascii_stays_as_it_is_but_for_percent_and_the_ends)
{
    char all[95];
    char *room;
    peg_str encoded;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(0x20 + i);
    encoded = with_room(peg__strn(all, sizeof(all)), grpc_percent_encode, &room);
    CHECK_INT(encoded.len, sizeof(all) + 2 + 2);
    CHECK(memcmp(encoded.ptr, "%20!\"#$%25&'()", 14) == 0);
    free(room);
}

/* HTTP/2 does not carry them: a peer may strip them, or end the stream for them. */
TEST(spaces_at_either_end_are_encoded)
{
    CHECK_ENCODED("not found: ", "not found:%20");
    CHECK_ENCODED(" a b ", "%20a b%20");
    CHECK_ENCODED("  a  ", "%20 a %20");
    CHECK_ENCODED(" ", "%20");
}

TEST(other_bytes_are_encoded_with_uppercase_digits)
{
    CHECK_ENCODED("", "");
    CHECK_ENCODED("a\nb", "a%0Ab");
    CHECK_ENCODED("\x7F", "%7F");
    CHECK_ENCODED("\0", "%00");
    CHECK_ENCODED("\t\ntest with whitespace\r\nand Unicode BMP \xE2\x98\xBA and non-BMP "
                  "\xF0\x9F\x98\x88\t\n",
                  "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP "
                  "%F0%9F%98%88%09%0A");
}

TEST(escapes_are_decoded_in_either_case)
{
    CHECK_DECODED("", "");
    CHECK_DECODED("plain", "plain");
    CHECK_DECODED("a%0ab%0Ac", "a\nb\nc");
    CHECK_DECODED("%E2%98%BA %f0%9f%98%88", "\xE2\x98\xBA \xF0\x9F\x98\x88");
    CHECK_DECODED("%2525", "%25");
}

TEST(what_is_no_escape_stays_as_it_is)
{
    CHECK_DECODED("%", "%");
    CHECK_DECODED("%2", "%2");
    CHECK_DECODED("%zz", "%zz");
    CHECK_DECODED("%2g%20", "%2g ");
    CHECK_DECODED("100%", "100%");
    CHECK_DECODED("%%41", "%A");
}

TEST(bytes_that_are_no_utf8_become_replacement_characters)
{
    CHECK_DECODED("%FF", "\xEF\xBF\xBD");
    CHECK_DECODED("a\xFF"
                  "b",
                  "a\xEF\xBF\xBD"
                  "b");
    CHECK_DECODED("\xE2\x98", "\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK_DECODED("%C0%80", "\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK_DECODED("%ED%A0%80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK_DECODED("%F4%90%80%80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK_DECODED("\x80\x80\x80\xE2\x98\xBA", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xE2\x98\xBA");
}

TEST(every_character_survives_the_way_there_and_back)
{
    char text[4 * 64];
    char *encoded_room;
    char *decoded_room;
    size_t len = 0;
    peg_str encoded;

    for (unsigned c = 0; c < 0x80; c++)
        text[len++] = (char)c;
    memcpy(text + len, "\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF",
           18);
    len += 18;
    encoded = with_room(peg__strn(text, len), grpc_percent_encode, &encoded_room);
    CHECK(
        peg__str_eq(with_room(encoded, grpc_percent_decode, &decoded_room), peg__strn(text, len)));
    free(encoded_room);
    free(decoded_room);
}

TEST(as_much_of_a_text_fits_as_its_encoding_has_room_for)
{
    static const char text[] = " a b  \xC3\xA4%\xE2\x82\xAC ";
    char encoded[3 * sizeof(text)];

    for (size_t max = 0; max < sizeof(encoded); max++) {
        const size_t n = grpc_percent_fit(peg__str(text), max);
        const size_t more = n + peg__utf8_char_len(peg__strn(text + n, sizeof(text) - 1 - n));

        CHECK(grpc_percent_encode(peg__strn(text, n), encoded) <= max);
        CHECK(n == strlen(text) || grpc_percent_encode(peg__strn(text, more), encoded) > max);
    }
}
