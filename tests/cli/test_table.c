/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "cli/terminal/terminal.h"
#include "t.h"

static const struct cli_column columns[] = {
    {"NAME", false, true}, {"N", true, false}, {"ABOUT", false, true}};
static const struct cli_style plain = {"", "", "", "", ""};
static const struct cli_style marked = {"<b>", "<d>", "<g>", "<r>", "</>"};

static void add(struct cli_table *table, const char *name, uint64_t n, const char *about)
{
    cli_table_cell(table, peg__str(name), "");
    cli_table_number(table, n);
    cli_table_cell(table, peg__str(about), "");
}

static void check_table(struct cli_table *table, unsigned width, const char *expected)
{
    struct peg__buf out = PEG__BUF(1 << 16);

    cli_table_print(table, width, &plain, &out);
    CHECK_STR(peg__buf_view(&out), expected);
    peg__buf_free(&out);
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};

    add(&table, "weather", 1234567, "sun and rain");
    add(&table, "a", 2, "");
    check_table(&table, 0,
                "NAME             N  ABOUT\n"
                "weather  1,234,567  sun and rain\n"
                "a                2  \n");
    cli_table_free(&table);
}

TEST(a_narrow_terminal_cuts_what_may_be_cut_the_widest_first)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};

    add(&table, "abcdefghij", 1, "some words that are far too long");
    check_table(&table, 30,
                "NAME        N  ABOUT\n"
                "abcdefghij  1  some words t...\n");
    check_table(&table, 1,
                "NAME      N  ABOUT\n"
                "abcde...  1  some ...\n");
    cli_table_free(&table);
}

TEST(wide_characters_are_cut_whole)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};

    add(&table, "\xE6\x97\xA5\xE6\x9C\xAC\xE6\x97\xA5\xE6\x9C\xAC\xE6\x97\xA5", 1, "x");
    check_table(&table, 14,
                "NAME      N  ABOUT\n"
                "\xE6\x97\xA5\xE6\x9C\xAC...   1  x\n");
    cli_table_free(&table);
}

TEST(text_of_others_cannot_steer_the_terminal)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};

    add(&table, "a\033[2J", 1, "line\nline");
    check_table(&table, 0,
                "NAME      N  ABOUT\n"
                "a\\x1B[2J  1  line\\x0Aline\n");
    cli_table_free(&table);
}

TEST(styles_stand_around_the_words_alone)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};
    struct peg__buf out = PEG__BUF(1 << 16);

    cli_table_cell(&table, peg__str("a"), marked.good);
    cli_table_number(&table, 1);
    cli_table_cell(&table, peg__str("b"), "");
    cli_table_print(&table, 0, &marked, &out);
    CHECK_STR(peg__buf_view(&out), "<b>NAME</>  <b>N</>  <b>ABOUT</>\n"
                                   "<g>a</>     1  b\n");
    peg__buf_free(&out);
    cli_table_free(&table);
}

TORTURE(a_table_survives_any_allocation_failure)
{
    struct cli_table table = {.columns = columns, .n_columns = 3};
    struct peg__buf out = PEG__BUF(1 << 16);
    peg_status status;

    add(&table, "a", 1, "b");
    cli_table_print(&table, 20, &plain, &out);
    status = out.status;
    peg__buf_free(&out);
    cli_table_free(&table);
    return status;
}
