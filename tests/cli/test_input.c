/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"

#include <unistd.h>

#include "t.h"

/* ---- fixture: a file ------------------------------------------------------------ */

struct file {
    char path[64];
};

static void make(struct file *file, const char *bytes, size_t len)
{
    int fd;

    strcpy(file->path, "/tmp/pegboard-test-XXXXXX");
    fd = mkstemp(file->path);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, bytes, len), len);
    close(fd);
}

static peg_status read_into(const char *path, size_t max, struct peg__buf *text, peg_error *error)
{
    *text = (struct peg__buf)PEG__BUF(max);
    return cli_read_file(path, text, error);
}

/* ---- names ---------------------------------------------------------------------- */

TEST(the_extension_decides_the_syntax)
{
    CHECK_INT(cli_syntax_of("a.json"), CLI_SYNTAX_JSON);
    CHECK_INT(cli_syntax_of("a.yaml"), CLI_SYNTAX_YAML);
    CHECK_INT(cli_syntax_of("dir.d/a.b.yml"), CLI_SYNTAX_YAML);
    CHECK_INT(cli_syntax_of("a.jsonl"), CLI_SYNTAX_JSON_LINES);
    CHECK_INT(cli_syntax_of("a.ndjson"), CLI_SYNTAX_JSON_LINES);
    CHECK_INT(cli_syntax_of("dir.yaml/a"), CLI_SYNTAX_JSON);
    CHECK_INT(cli_syntax_of("-"), CLI_SYNTAX_JSON);
}

/* ---- whole files ------------------------------------------------------------------ */

TEST(a_file_is_read_whole_up_to_its_maximum)
{
    struct peg__buf text;
    struct file file;
    peg_error error;

    make(&file, "0123456789", 10);

    CHECK_STATUS(read_into(file.path, 10, &text, &error), PEG_OK, error);
    CHECK_STR(peg__buf_view(&text), "0123456789");
    CHECK_STATUS(cli_read_file(file.path, &text, &error), PEG_OK, error);
    CHECK_STR(peg__buf_view(&text), "0123456789");
    peg__buf_free(&text);
    CHECK_INT(read_into(file.path, 9, &text, &error), PEG_ELIMIT);
    CHECK(strcmp(error.code, "E_FILE_TOO_LARGE") == 0);
    peg__buf_free(&text);
    unlink(file.path);
}

TEST(a_file_whose_size_is_unknown_is_bounded_too)
{
    struct peg__buf text;
    peg_error error;

    CHECK_INT(read_into("/dev/zero", 100000, &text, &error), PEG_ELIMIT);
    CHECK(strcmp(error.code, "E_FILE_TOO_LARGE") == 0);
    peg__buf_free(&text);
    CHECK_STATUS(read_into("/proc/self/cmdline", 100000, &text, &error), PEG_OK, error);
    CHECK(text.len > 0);
    peg__buf_free(&text);
}

TEST(a_missing_file_is_reported)
{
    struct peg__buf text;
    peg_error error;

    CHECK_INT(read_into("/nonexistent/file", 10, &text, &error), PEG_ENOTFOUND);
    CHECK(strstr(error.message, "No such file or directory"));
}

/* ---- lines -------------------------------------------------------------------------- */

TEST(lines_come_one_by_one_with_their_numbers)
{
    struct cli_lines lines;
    struct file file;
    peg_error error;
    peg_str line;

    make(&file, "one\n\nthree\r\nlast", 16);
    CHECK_STATUS(cli_lines_open(file.path, 100, &lines, &error), PEG_OK, error);

    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_STR(line, "one");
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_STR(line, "");
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_STR(line, "three\r");
    CHECK_INT(lines.line, 3);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_STR(line, "last");
    CHECK_INT(lines.line, 4);
    CHECK_INT(lines.offset, 16);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_END);
    cli_lines_close(&lines);
    unlink(file.path);
}

/* Every length around the sizes at which the buffer is filled and grown. */
/* Lines have a length and no NUL. */
static long number_in(peg_str line)
{
    long number = 0;

    for (size_t i = 0; i < line.len; i++)
        number = number * 10 + (line.ptr[i] - '0');
    return number;
}

TEST(lines_of_every_length_come_whole)
{
    enum { LONGEST = 200000, STEP = 4093 };
    struct cli_lines lines;
    struct file file;
    peg_error error;
    peg_str line;
    FILE *f;

    make(&file, "", 0);
    f = fopen(file.path, "w");
    CHECK(f);
    for (int n = 0; n < LONGEST; n += STEP)
        fprintf(f, "%0*d\n", n + 1, n);
    fclose(f);
    CHECK_STATUS(cli_lines_open(file.path, LONGEST, &lines, &error), PEG_OK, error);

    for (int n = 0; n < LONGEST; n += STEP) {
        CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
        CHECK(line.len >= (size_t)n + 1);
        CHECK_INT(number_in(line), n);
    }
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_END);
    cli_lines_close(&lines);
    unlink(file.path);
}

TEST(a_line_that_is_too_long_is_skipped_without_being_held)
{
    struct cli_lines lines;
    struct file file;
    peg_error error;
    peg_str line;
    FILE *f;

    make(&file, "", 0);
    f = fopen(file.path, "w");
    CHECK(f);
    fprintf(f, "ok\n%05000000d\nok again\n12345678901", 0);
    fclose(f);
    CHECK_STATUS(cli_lines_open(file.path, 10, &lines, &error), PEG_OK, error);

    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_TOO_LONG);
    CHECK(strcmp(error.code, "E_FILE_TOO_LARGE") == 0);
    CHECK_INT(lines.line, 2);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE);
    CHECK_STR(line, "ok again");
    CHECK_INT(lines.line, 3);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_TOO_LONG);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_END);
    CHECK(lines.capacity < 1000000);
    CHECK_INT(lines.offset, lines.size);
    cli_lines_close(&lines);
    unlink(file.path);
}

TEST(a_directory_cannot_be_read)
{
    struct cli_lines lines;
    peg_error error;
    peg_str line;

    CHECK_STATUS(cli_lines_open("/tmp", 10, &lines, &error), PEG_OK, error);
    CHECK_INT(cli_lines_next(&lines, &line, &error), CLI_LINE_FAILED);
    CHECK(strcmp(error.code, "E_FILE") == 0);
    cli_lines_close(&lines);
}

/* ---- out of memory --------------------------------------------------------------------- */

TORTURE(reading_a_file_survives_any_allocation_failure)
{
    struct peg__buf text;
    peg_error error;
    const peg_status status = read_into("/proc/self/maps", 1 << 20, &text, &error);

    peg__buf_free(&text);
    return status;
}

TORTURE(reading_lines_survives_any_allocation_failure)
{
    static char long_line[300000];
    struct cli_lines lines;
    struct file file;
    peg_error error;
    peg_str line;
    peg_status status;

    make(&file, long_line, sizeof(long_line));
    status = cli_lines_open(file.path, sizeof(long_line), &lines, &error);
    if (!status) {
        status = cli_lines_next(&lines, &line, &error) == CLI_LINE ? PEG_OK : error.status;
        cli_lines_close(&lines);
    }
    unlink(file.path);
    return status;
}
