/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "cli/terminal/terminal.h"
#include "t.h"

static void check_safe(const char *text, size_t len, const char *expected)
{
    struct peg__buf out = PEG__BUF(1000);

    cli_put_safe(&out, (peg_str){text, len});
    CHECK_STR(peg__buf_view(&out), expected);
    peg__buf_free(&out);
}

TEST(ordinary_text_stays_as_it_is)
{
    check_safe("", 0, "");
    check_safe("Troms\xC3\xB8 \xF0\x9F\x98\x80", 12, "Troms\xC3\xB8 \xF0\x9F\x98\x80");
}

TEST(control_characters_become_visible)
{
    check_safe("\x1B[2J", 4, "\\x1B[2J");
    check_safe("a\nb\tc\x7F", 6, "a\\x0Ab\\x09c\\x7F");
    check_safe("\0", 1, "\\x00");
}

TEST(the_second_block_of_control_characters_too)
{
    check_safe("\xC2\x9B"
               "31m",
               5, "\\xC2\\x9B31m");
    check_safe("\xC2\xA0", 2, "\xC2\xA0"); /* a no-break space is text */
    check_safe("\xC2", 1, "\xC2");         /* cut short: nothing behind it is read */
}

TEST(what_turns_the_direction_of_writing_around_becomes_visible)
{
    check_safe("\xE2\x80\x8E\xE2\x80\x8F", 6, "\\xE2\\x80\\x8E\\xE2\\x80\\x8F");
    check_safe("\xE2\x80\xAA\xE2\x80\xAE", 6, "\\xE2\\x80\\xAA\\xE2\\x80\\xAE");
    check_safe("\xE2\x81\xA6\xE2\x81\xA9", 6, "\\xE2\\x81\\xA6\\xE2\\x81\\xA9");
    /* Their neighbours are text, and nothing behind one that is cut short is read. */
    check_safe("\xE2\x80\x8D\xE2\x80\x90", 6, "\xE2\x80\x8D\xE2\x80\x90");
    check_safe("\xE2\x80\xA9\xE2\x80\xAF", 6, "\xE2\x80\xA9\xE2\x80\xAF");
    check_safe("\xE2\x81\xA5\xE2\x81\xAA", 6, "\xE2\x81\xA5\xE2\x81\xAA");
    check_safe("\xE2\x80", 2, "\xE2\x80");
}

TEST(colour_is_read_by_name)
{
    enum cli_color color = CLI_COLOR_AUTO;

    CHECK(cli_color_read("never", &color));
    CHECK_INT(color, CLI_COLOR_NEVER);
    CHECK(!cli_color_read("Always", &color));
    CHECK_INT(color, CLI_COLOR_NEVER);
}
