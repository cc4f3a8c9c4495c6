/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include "../t.h"
#include "base/text/str.h"

TEST(error_carries_status_code_and_a_sentence)
{
    peg_error error;

    memset(&error, 0xff, sizeof(error));
    CHECK_INT(peg__fail(&error, PEG_EEXISTS, "E_TAKEN", "the name '%s' is taken", "x"),
              PEG_EEXISTS);

    CHECK_INT(error.status, PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_TAKEN");
    CHECK_STR(peg__str(error.message), "the name 'x' is taken");
    CHECK_STR(peg__str(error.where), "");
    CHECK_INT(error.offset, 0);
    CHECK_INT(error.line, 0);
    CHECK_INT(error.column, 0);
}

TEST(error_that_nobody_wants_is_only_a_status)
{
    CHECK_INT(peg__fail(NULL, PEG_ELIMIT, "E_LIMIT", "%d", 1), PEG_ELIMIT);
    CHECK_INT(peg__fail_nomem(NULL), PEG_ENOMEM);
    peg__error_at(NULL, peg__str("abc"), 1);
    peg__error_where(NULL, peg__str("/a"));
}

TEST(error_of_memory_has_its_own_code)
{
    peg_error error;

    CHECK_INT(peg__fail_nomem(&error), PEG_ENOMEM);

    CHECK_STR(peg__str(error.code), "E_OUT_OF_MEMORY");
    CHECK(error.message[0]);
}

TEST(error_cuts_a_long_message_at_a_character)
{
    peg_error error;
    char text[sizeof(error.message) * 2];

    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 3);

    for (int shift = 0; shift < 2; shift++) {
        peg_str end;

        peg__fail(&error, PEG_EINVAL, "E_LONG", "%.*s%s", shift, "x", text);

        CHECK_INT(strlen(error.message), sizeof(error.message) - 4 - (size_t)shift + 3);
        end = peg__str_from(peg__str(error.message), strlen(error.message) - 5);
        CHECK_STR(end, "\xc3\xa9...");
    }
}

TEST(error_keeps_a_message_that_just_fits)
{
    peg_error error;
    char text[sizeof(error.message)];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    peg__fail(&error, PEG_EINVAL, "E_LONG", "%s", text);

    CHECK_STR(peg__str(error.message), text);
}

TEST(error_tells_line_and_column_of_an_offset)
{
    static const struct {
        size_t offset;
        unsigned line;
        unsigned column;
    } cases[] = {{0, 1, 1}, {1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {4, 3, 1}, {6, 3, 3}};
    const peg_str text = peg__str("ab\n\ncd");
    peg_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peg__fail(&error, PEG_EPARSE, "E_TEXT", "bad");
        peg__error_at(&error, text, cases[i].offset);

        CHECK_INT(error.offset, cases[i].offset);
        CHECK_INT(error.line, cases[i].line);
        CHECK_INT(error.column, cases[i].column);
    }
}

TEST(error_cuts_a_long_pointer_at_a_character)
{
    peg_error error;
    char text[sizeof(error.where) * 2];

    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    peg__error_where(&error, peg__str(text));

    /* 159 bytes would end in the middle of a character of two. */
    CHECK_INT(strlen(error.where), sizeof(error.where) - 2);
    CHECK(memcmp(error.where, text, sizeof(error.where) - 2) == 0);

    peg__error_where(&error, peg__strn(NULL, 0));
    CHECK_STR(peg__str(error.where), "");
}

TEST(status_names_are_known_for_each_status)
{
    for (int status = PEG_OK; status <= PEG_ELIMIT; status++)
        CHECK(strcmp(peg_status_name((peg_status)status), "unknown") != 0);
    CHECK_STR(peg__str(peg_status_name(PEG_ELIMIT)), "limit");
    CHECK_STR(peg__str(peg_status_name((peg_status)99)), "unknown");
}

TEST(error_shows_what_it_quotes_as_one_line_of_text)
{
    peg_error error;

    peg__fail(&error, PEG_EPARSE, "E_X", "%s",
              "a\nb\x7f \xff \xc3\xa9 \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80");
    CHECK_STR(peg__str(error.message), "a?b? ? \xc3\xa9 ?? ??? \xf0\x9f\x98\x80");

    peg__fail(&error, PEG_EPARSE, "E_X", "cut: %.3s", "ab\xc3\xa9");
    CHECK_STR(peg__str(error.message), "cut: ab?");
}

TEST(fail_because_names_the_cause_and_ends_with_its_words)
{
    peg_error error;

    peg__fail(&error, PEG_EHOST, "E_INNER", "the disk is full");
    CHECK_INT(peg__fail_because(&error, PEG_EINVAL, "E_OUTER", &error, "cannot store '%s'", "x"),
              PEG_EINVAL);

    CHECK_STR(peg__str(error.code), "E_OUTER");
    CHECK_STR(peg__str(error.cause), "E_INNER");
    CHECK_STR(peg__str(error.message), "cannot store 'x': the disk is full");
}

TEST(fail_because_makes_what_a_host_wrote_by_hand_fit_to_be_shown)
{
    const peg_error by_hand = {.status = PEG_EHOST, .message = "line 1\nline 2"};
    peg_error error;

    CHECK_INT(peg__fail_because(&error, PEG_EHOST, "E_OUTER", &by_hand, "no"), PEG_EHOST);

    CHECK_STR(peg__str(error.cause), "");
    CHECK_STR(peg__str(error.message), "no: line 1?line 2");
}
