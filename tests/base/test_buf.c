/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"

#include "../t.h"
#include "base/text/str.h"

TEST(buf_collects_text)
{
    struct peg__buf buf = PEG__BUF(1000);

    peg__buf_puts(&buf, "a");
    peg__buf_putc(&buf, 'b');
    peg__buf_str(&buf, peg__str("cd"));
    peg__buf_repeat(&buf, '-', 3);
    peg__buf_printf(&buf, "%d", 42);

    CHECK_STR(peg__buf_view(&buf), "abcd---42");
    peg__buf_free(&buf);
}

TEST(buf_stops_at_its_maximum_and_says_so)
{
    struct peg__buf buf = PEG__BUF(4);
    char *text = NULL;
    peg_error error;

    peg__buf_puts(&buf, "1234");
    CHECK_INT(buf.status, PEG_OK);
    peg__buf_puts(&buf, "5");
    peg__buf_clear(&buf);
    peg__buf_puts(&buf, "12345");

    CHECK_INT(peg__buf_take(&buf, &text, NULL, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK(!text);
}

static void put_cut(struct peg__buf *buf, const char *fmt, ...) PEG_PRINTF(2, 3);
static void put_cut(struct peg__buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf_cut(buf, fmt, args);
    va_end(args);
}

TEST(buf_cuts_words_at_its_maximum_where_a_character_ends)
{
    static const struct {
        size_t max;
        const char *words;
        const char *kept;
    } cases[] = {
        {8, "abc", "-abc"},
        {4, "abc", "-abc"},
        {3, "abc", "-ab"},
        {1, "abc", "-"},
        {4, "a\u00E4\u00E4", "-a\u00E4"},
        {5, "a\u00E4\u00E4", "-a\u00E4"},
        {3, "a\u00E4", "-a"},
        {3, "\u20AC", "-"},
        {4, "\u20ACx", "-\u20AC"},
        {4, "\U0001F600", "-"},
        {5, "\U0001F600x", "-\U0001F600"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf buf = PEG__BUF(cases[i].max);

        peg__buf_putc(&buf, '-');
        put_cut(&buf, "%s", cases[i].words);
        CHECK_INT(buf.status, PEG_OK);
        CHECK_STR(peg__buf_view(&buf), cases[i].kept);
        CHECK_STR(peg__str(buf.ptr), cases[i].kept);
        peg__buf_free(&buf);
    }
}

TEST(buf_hands_over_an_empty_text)
{
    struct peg__buf buf = PEG__BUF(4);
    char *text;
    size_t len;

    CHECK_INT(peg__buf_take(&buf, &text, &len, NULL), PEG_OK);

    CHECK_INT(len, 0);
    CHECK_STR(peg__str(text), "");
    peg_free(text);
}

TEST(bytes_that_are_no_utf8_become_replacement_characters)
{
    static const struct {
        const char *bytes;
        const char *text;
    } cases[] = {
        {"", ""},
        {"plain \xC3\xA9", "plain \xC3\xA9"},
        {"a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b"},
        {"\xC3", "\xEF\xBF\xBD"},
        {"\xE2\x82x", "\xEF\xBF\xBD\xEF\xBF\xBDx"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* a surrogate */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf buf = PEG__BUF(100);

        peg__buf_as_utf8(&buf, peg_cstr(cases[i].bytes));
        CHECK_INT(buf.status, PEG_OK);
        CHECK_STR(peg__buf_view(&buf), cases[i].text);
        peg__buf_free(&buf);
    }
}

TORTURE(buf_survives_any_allocation_failure)
{
    struct peg__buf buf = PEG__BUF(100000);
    char *text = NULL;
    peg_status status;

    for (int i = 0; i < 100; i++)
        peg__buf_puts(&buf, "0123456789");
    status = peg__buf_take(&buf, &text, NULL, NULL);
    peg_free(text);
    return status;
}
