/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"
#include "t.h"

/* ---- fixture: a command with one option of each kind ------------------------ */

enum { LOUD = 1, SIZE };

static const struct cli_option options[] = {
    {LOUD, 'l', "loud", NULL, "be loud", .kind = CLI_OWN},
    {SIZE, 0, "size", "N", "how large", .kind = CLI_OWN},
    {.name = NULL},
};
static const struct cli_command command = {.name = "test", .options = options};

#define ARGS(...)                                                                                  \
    {                                                                                              \
        .command = &command, .argv = (char *[]){(char[]){"test"}, __VA_ARGS__},                    \
        .argc = (int)(sizeof((char *[]){(char[]){"test"}, __VA_ARGS__}) / sizeof(char *))          \
    }

static bool next_is(struct cli_args *args, int id, const char *value)
{
    return cli_next(args) == id &&
           (value ? args->value && strcmp(args->value, value) == 0 : !args->value);
}

/* ---- tests ------------------------------------------------------------------- */

TEST(options_and_operands_come_in_order)
{
    char a[] = "a", loud[] = "--loud", size[] = "--size", five[] = "5", l[] = "-l", dash[] = "-";
    struct cli_args args = ARGS(a, loud, size, five, l, dash);

    CHECK(next_is(&args, CLI_OPERAND, "a"));
    CHECK(next_is(&args, LOUD, NULL));
    CHECK(next_is(&args, SIZE, "5"));
    CHECK(next_is(&args, LOUD, NULL));
    CHECK(next_is(&args, CLI_OPERAND, "-"));
    CHECK_INT(cli_next(&args), CLI_END);
    CHECK_INT(cli_next(&args), CLI_END);
}

TEST(a_value_may_stand_behind_an_equals_sign)
{
    char size[] = "--size=a=b", empty[] = "--size=";
    struct cli_args args = ARGS(size, empty);

    CHECK(next_is(&args, SIZE, "a=b"));
    CHECK(next_is(&args, SIZE, ""));
}

TEST(two_dashes_end_the_options)
{
    char dashes[] = "--", loud[] = "--loud", again[] = "--";
    struct cli_args args = ARGS(dashes, loud, again);

    CHECK(next_is(&args, CLI_OPERAND, "--loud"));
    CHECK(next_is(&args, CLI_OPERAND, "--"));
    CHECK_INT(cli_next(&args), CLI_END);
}

TEST(no_arguments_are_no_arguments)
{
    struct cli_args args = {.command = &command, .argc = 0};

    CHECK_INT(cli_next(&args), CLI_END);
}

TEST(numbers_are_read_with_their_suffix)
{
    uint64_t n = 0;

    CHECK(cli_number("0", 0, 10, &n));
    CHECK_INT(n, 0);
    CHECK(cli_number("64M", 1, UINT32_MAX, &n));
    CHECK_INT(n, 64 << 20);
    CHECK(cli_number("3k", 1, 3072, &n));
    CHECK_INT(n, 3072);
    CHECK(cli_number("18446744073709551615", 0, UINT64_MAX, &n));
    CHECK(n == UINT64_MAX);
}

TEST(what_is_no_number_or_out_of_range_is_refused)
{
    static const char *const wrong[] = {"",   "-1", "+1", " 1", "1 ",      "1KB",
                                        "x1", "K",  "0",  "1G", "4194305", "99999999999999999999"};
    uint64_t n = 7;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (cli_number(wrong[i], 1, 4 << 20, &n))
            T_FAIL("'%s' was taken", wrong[i]);
    }
    CHECK_INT(n, 7);
}
