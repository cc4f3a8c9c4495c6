/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "t.h"

/* ---- fixture: a text in lines, and a turn with everything wrong -------------------------- */

static void check_lines(unsigned width, const char *text, const char *expected)
{
    struct peg__buf out = PEG__BUF(1 << 16);
    const struct cli_text how = {.out = &out, .width = width, .indent = 2, .on = "", .off = ""};

    cli_put_text(&how, peg_cstr(text));

    CHECK_INT(out.status, PEG_OK);
    CHECK_STR(peg__buf_view(&out), expected);
    peg__buf_free(&out);
}

static const char bad_turn[] =
    "{\"blocks\":["
    "{\"kind\":\"user\",\"payload\":{\"text\":\"\\u001b[2J \\u00e4\"},"
    "\"metadata\":{\"No Key\":1,\"geppetto.middleware@v1\":\"m\"}},"
    "{\"kind\":\"tool_call\",\"payload\":{\"id\":\"c\",\"name\":\"t\",\"args\":{\"x\":1}}},"
    "{\"kind\":\"tool_call\",\"payload\":{\"id\":\"d\",\"name\":\"t\",\"args\":\"broken {\"}},"
    "{\"kind\":\"tool_use\",\"payload\":{\"id\":\"c\",\"artifact\":{\"kind\":\"json\","
    "\"text\":\"[1]\"}}},"
    "{\"kind\":\"tool_use\",\"payload\":{\"id\":\"e\",\"result\":\"x\"}},"
    "{\"kind\":\"memory\",\"payload\":{\"a\":1}}],"
    "\"metadata\":{\"pegboard.calls_started@v1\":[\"d\"],"
    "\"pegboard.inference_result@v1\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5}}},"
    "\"data\":{\"pegboard.tool_config@v1\":{\"tool_choice\":\"maybe\"},"
    "\"geppetto.tool_definitions@v1\":[{\"name\":\"t\",\"parameters\":{\"minimum\":\"x\"}}]}}";

/* Writes the turn into a file whose name is in `path`. */
static void write_turn(char *path)
{
    const int fd = mkstemps(path, 5);

    CHECK(fd >= 0);
    CHECK(write(fd, bad_turn, strlen(bad_turn)) == (ssize_t)strlen(bad_turn));
    close(fd);
}

/* What is printed meanwhile must not get among the results of the tests. */
static int hide_output(void)
{
    const int shown = dup(STDOUT_FILENO);
    FILE *hidden = tmpfile();

    CHECK(shown >= 0 && hidden);
    fflush(stdout);
    CHECK(dup2(fileno(hidden), STDOUT_FILENO) >= 0);
    fclose(hidden);
    return shown;
}

static void show_output(int shown)
{
    fflush(stdout);
    dup2(shown, STDOUT_FILENO);
    close(shown);
}

/* ---- words --------------------------------------------------------------------------------- */

TEST(lines_break_between_words_and_within_long_ones)
{
    check_lines(20, "one two three four five", "  one two three four\n  five\n");
    check_lines(18, "aaaaaaaaaaaaaaaaaaaaaaaa b", "  aaaaaaaaaaaaaaaa\n  aaaaaaaa b\n");
    check_lines(0, "one two three four five six seven", "  one two three four five six seven\n");
}

TEST(indentation_and_empty_lines_stay)
{
    check_lines(40, "if x:\n    y\n\nz\n", "  if x:\n      y\n\n  z\n");
    check_lines(18, "    aaaaaaaaaaaaaaaaaa", "      aaaaaaaaaaaa\n  aaaaaa\n");
}

TEST(bytes_that_are_no_utf8_are_written_out)
{
    check_lines(0, "a\xFF\xC3", "  a\\xFF\\xC3\n");
    check_lines(0, "\xE2\x80\xAE\x7F", "  \\xE2\\x80\\xAE\\x7F\n");
}

TEST(a_narrow_terminal_still_gets_some_columns)
{
    check_lines(1, "0123456789abcdefgh", "  0123456789abcdef\n  gh\n");
}

TEST(counts_have_commas)
{
    struct peg__buf out = PEG__BUF(256);

    cli_put_count(&out, 0);
    peg__buf_putc(&out, ' ');
    cli_put_count(&out, 999);
    peg__buf_putc(&out, ' ');
    cli_put_count(&out, UINT64_MAX);

    CHECK_STR(peg__buf_view(&out), "0 999 18,446,744,073,709,551,615");
    peg__buf_free(&out);
}

/* ---- without memory ------------------------------------------------------------------------- */

TORTURE(checking_survives_any_allocation_failure)
{
    static struct turn_findings findings;
    const struct turn_common common = {.max_bytes = 0};
    char path[] = "/tmp/pegboard-test-XXXXXX.json";
    struct turn_file file = TURN_FILE;
    peg_error error;
    peg_status status;

    write_turn(path);
    findings = (struct turn_findings){.n = 0};
    status = turn_load(&common, path, &file, &error);
    if (!status)
        status = turn_check(&file, &findings, &error);
    if (!status && (findings.n_errors != 3 || findings.n_warnings != 4))
        status = PEG_ESTATE;
    turn_file_free(&file);
    unlink(path);
    return status;
}

static peg_status show(peg_status (*print)(const struct turn_show_options *,
                                           const struct turn_file *, peg_error *))
{
    const struct turn_show_options options = {.kinds = PEG_BLOCKS_ALL,
                                              .common = {.color = CLI_COLOR_NEVER}};
    char path[] = "/tmp/pegboard-test-XXXXXX.json";
    struct turn_file file = TURN_FILE;
    peg_error error;
    peg_status status;
    int shown;

    write_turn(path);
    shown = hide_output();
    status = turn_load(&options.common, path, &file, &error);
    if (!status)
        status = print(&options, &file, &error);
    show_output(shown);
    turn_file_free(&file);
    unlink(path);
    return status;
}

TORTURE(a_transcript_survives_any_allocation_failure)
{
    return show(turn_print);
}

TORTURE(json_lines_survive_any_allocation_failure)
{
    return show(turn_print_objects);
}
