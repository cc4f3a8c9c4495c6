/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include "wire/wire.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

static char long_text[PEG_LIMIT_NAME_BYTES + 2];

static peg_str repeated(char c, size_t n)
{
    memset(long_text, c, n);
    return peg__strn(long_text, n);
}

TEST(names_are_letters_digits_and_a_few_signs)
{
    CHECK_INT(wire_check_name(peg__str("weather"), "toolset", NULL), PEG_OK);
    CHECK_INT(wire_check_name(peg__str("a/b:c.d-e_F9"), "toolset", NULL), PEG_OK);
    CHECK_INT(wire_check_name(repeated('x', PEG_LIMIT_NAME_BYTES), "toolset", NULL), PEG_OK);
}

TEST(names_refuse_what_could_be_a_pattern_a_path_or_a_terminal_code)
{
    static const char *const bad[] = {"a b",      "a*",  "a?",   "{x}", "a\nb", "\x1b[31m",
                                      "\xc3\xa4", "a|b", "a\"b", "$x",  "a\\b", "a@b"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        peg_error error;

        CHECK_INT(wire_check_name(peg__str(bad[i]), "toolset", &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_NAME");
        CHECK(strstr(error.message, "toolset") != NULL);
        for (const char *c = error.message; *c; c++)
            CHECK(*c >= ' ' && *c < 0x7f);
    }
    CHECK_INT(wire_check_name(peg__strn("a\0b", 3), "toolset", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_name(peg__str(""), "toolset", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_name(repeated('x', PEG_LIMIT_NAME_BYTES + 1), "toolset", NULL),
              PEG_EINVAL);
}

TEST(an_error_shows_at_most_64_bytes_of_what_was_sent)
{
    peg_error error;

    CHECK_INT(wire_check_name(repeated('!', 200), "tool", &error), PEG_EINVAL);
    CHECK(strstr(error.message, "!!!...'") != NULL);
    CHECK(strlen(error.message) < 180);
}

TEST(what_cannot_be_printed_is_shown_as_a_question_mark)
{
    char text[WIRE_PRINTABLE];

    wire_printable(peg__strn("a\0\n\x7f\xff\"\\ z", 9), text);
    CHECK_STR(peg__str(text), "a???????z");
    wire_printable(peg__str(""), text);
    CHECK_STR(peg__str(text), "");
    wire_printable(repeated('y', 65), text);
    CHECK_INT(strlen(text), 67);
    wire_printable(repeated('y', 64), text);
    CHECK_INT(strlen(text), 64);
}

TEST(incarnations_have_8_to_64_characters)
{
    CHECK_INT(wire_check_incarnation(peg__str("Ab-_5678"), NULL), PEG_OK);
    CHECK_INT(wire_check_incarnation(repeated('x', 64), NULL), PEG_OK);
    CHECK_INT(wire_check_incarnation(repeated('x', 65), NULL), PEG_EINVAL);
    CHECK_INT(wire_check_incarnation(peg__str("1234567"), NULL), PEG_EINVAL);
    CHECK_INT(wire_check_incarnation(peg__str("revoked:1"), NULL), PEG_EINVAL);
    CHECK_INT(wire_check_incarnation(peg__str(""), NULL), PEG_EINVAL);
}

TEST(ids_are_text_without_control_characters)
{
    CHECK_INT(wire_check_id(peg__str("run 1 \xc3\xa4 *"), "run_id", NULL), PEG_OK);
    CHECK_INT(wire_check_id(repeated('x', PEG_LIMIT_GATEWAY_ID_BYTES), "run_id", NULL), PEG_OK);
    CHECK_INT(wire_check_id(repeated('x', PEG_LIMIT_GATEWAY_ID_BYTES + 1), "run_id", NULL),
              PEG_EINVAL);
    CHECK_INT(wire_check_id(peg__str("a\tb"), "run_id", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_id(peg__str("a\x7f"), "run_id", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_id(peg__str("\xc2\x9b"), "run_id", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_id(peg__str("\xc2\xa0"), "run_id", NULL), PEG_OK);
    CHECK_INT(wire_check_id(peg__str("\xff"), "run_id", NULL), PEG_EINVAL);
    CHECK_INT(wire_check_id(peg__str(""), "run_id", NULL), PEG_EINVAL);
}

TEST(versions_have_three_numbers)
{
    static const char *const good[] = {"", "1.2.3", "v0.0.0", "10.20.30-rc.1", "v1.2.3-A.b.9"};
    static const char *const bad[] = {"1",       "1.2",       "v",      "1.2.3-", "1.2.3+x",
                                      "V1.2.3",  "1.2.3-a_b", "1.2.3 ", " 1.2.3", "1..3",
                                      "1.2.3.4", "vv1.2.3",   "1.2.x",  "-1.2.3"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK_INT(wire_check_version(peg__str(good[i]), NULL), PEG_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(wire_check_version(peg__str(bad[i]), NULL), PEG_EINVAL);
    memset(long_text, '1', sizeof(long_text));
    memcpy(long_text, "1.2.", 4);
    CHECK_INT(wire_check_version(peg__strn(long_text, 257), NULL), PEG_EINVAL);
}

TEST(tags_are_counted_and_checked)
{
    peg_str tags[PEG_LIMIT_GATEWAY_TAGS + 1];
    peg_error error;

    for (size_t i = 0; i <= PEG_LIMIT_GATEWAY_TAGS; i++)
        tags[i] = peg__str("tag");
    CHECK_INT(wire_check_tags(NULL, 0, NULL), PEG_OK);
    CHECK_INT(wire_check_tags(tags, PEG_LIMIT_GATEWAY_TAGS, NULL), PEG_OK);
    CHECK_INT(wire_check_tags(tags, PEG_LIMIT_GATEWAY_TAGS + 1, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "tags: use at most") != NULL);
    tags[3] = peg__str("");
    CHECK_INT(wire_check_tags(tags, 4, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_NAME");
    tags[3] = peg__str("a\nb");
    CHECK_INT(wire_check_tags(tags, 4, NULL), PEG_EINVAL);
}
