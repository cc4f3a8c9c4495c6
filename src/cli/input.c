/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/yaml.h"

enum { READ_BYTES = 64 << 10 };

bool cli_is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *cli_file_label(const char *path)
{
    return cli_is_stdin(path) ? "<stdin>" : path;
}

enum cli_syntax cli_syntax_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');

    if (!dot)
        return CLI_SYNTAX_JSON;
    if (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)
        return CLI_SYNTAX_YAML;
    if (strcmp(dot, ".jsonl") == 0 || strcmp(dot, ".ndjson") == 0)
        return CLI_SYNTAX_JSON_LINES;
    return CLI_SYNTAX_JSON;
}

static peg_status fail_read(peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_FILE", "cannot be read (%m); give a readable file");
}

/* *ret_size is 0 where the size says nothing: pipes, terminals, /proc. */
static peg_status open_file(const char *path, int *ret_fd, uint64_t *ret_size, peg_error *reterr)
{
    struct stat st;
    const int fd = cli_is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_FILE",
                         "cannot be opened (%m); check its name and permissions");
    *ret_size = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        *ret_size = (uint64_t)st.st_size;
    *ret_fd = fd;
    return PEG_OK;
}

static void close_file(int fd)
{
    if (fd > STDIN_FILENO)
        close(fd);
}

static ssize_t read_retrying(int fd, char *into, size_t n)
{
    ssize_t got;

    do
        got = read(fd, into, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* ---- whole files ------------------------------------------------------------ */

static peg_status fail_file_too_large(size_t max, bool has_option, peg_error *reterr)
{
    if (has_option)
        return peg__fail(reterr, PEG_ELIMIT, "E_FILE_TOO_LARGE",
                         "the file is larger than max-bytes = %zu; raise it with --max-bytes", max);
    return peg__fail(reterr, PEG_ELIMIT, "E_FILE_TOO_LARGE",
                     "the file is larger than %zu bytes, which is the most: give a smaller one",
                     max);
}

static peg_status read_whole_file(int fd, struct peg__buf *text, bool has_option, peg_error *reterr)
{
    for (;;) {
        /* One byte beyond the maximum tells a file that is too large from one that fits. */
        const size_t room = text->max - text->len + 1;
        const size_t want = room < READ_BYTES ? room : READ_BYTES;
        char extra[1];
        char *into = want > 1 ? peg__buf_reserve(text, want - 1) : extra;
        ssize_t got;

        if (!into)
            return peg__fail_nomem(reterr);
        got = read_retrying(fd, into, want > 1 ? want - 1 : 1);
        if (got < 0)
            return fail_read(reterr);
        if (got == 0)
            return PEG_OK;
        if (into == extra)
            return fail_file_too_large(text->max, has_option, reterr);
        text->len += (size_t)got;
    }
}

static peg_status read_file(const char *path, struct peg__buf *text, bool has_option,
                            peg_error *reterr)
{
    peg_status status;
    uint64_t size = 0;
    int fd = -1;

    peg__buf_clear(text);
    status = open_file(path, &fd, &size, reterr);
    if (status)
        return status;
    /* A large file is refused before its first byte is read. */
    status = size > text->max ? fail_file_too_large(text->max, has_option, reterr)
                              : read_whole_file(fd, text, has_option, reterr);
    close_file(fd);
    return status;
}

peg_status cli_read_file(const char *path, struct peg__buf *text, peg_error *reterr)
{
    return read_file(path, text, false, reterr);
}

peg_status cli_read_file_max(const char *path, struct peg__buf *text, peg_error *reterr)
{
    return read_file(path, text, true, reterr);
}

/* ---- hints ------------------------------------------------------------------ */

/* JSON is nearly always an object or an array; only a hint hangs on it. */
static bool looks_like_json(peg_str text)
{
    size_t i = 0;

    while (i < text.len && strchr(" \t\r\n", text.ptr[i]) && text.ptr[i])
        i++;
    return i == text.len || text.ptr[i] == '{' || text.ptr[i] == '[';
}

void cli_hint(peg_str text, bool may_be_yaml, peg_error *error)
{
    static const peg_str mark = PEG_LIT("\xEF\xBB\xBF");
    const size_t len = strlen(error->message);
    const char *hint = NULL;

    if (strcmp(error->code, "E_JSON_SYNTAX") != 0)
        return;
    if (peg__str_starts(text, mark))
        hint = "the text starts with a byte order mark: remove it";
    else if (may_be_yaml && !looks_like_json(text))
        hint = "if this is YAML, try --yaml";
    if (hint)
        snprintf(error->message + len, sizeof(error->message) - len, "; %s", hint);
}

peg_status cli_parse(peg_str text, bool is_yaml, peg_json_doc **ret_doc, peg_error *reterr)
{
    const peg_status status = is_yaml ? peg_yaml_parse(text, NULL, ret_doc, reterr)
                                      : peg_json_parse(text, NULL, ret_doc, reterr);

    if (status && !is_yaml)
        cli_hint(text, false, reterr);
    return status;
}

/* ---- lines ------------------------------------------------------------------ */

peg_status cli_lines_open(const char *path, size_t max_line, struct cli_lines *ret_lines,
                          peg_error *reterr)
{
    struct cli_lines lines = {.max_line = max_line, .capacity = 2 * (size_t)READ_BYTES};
    peg_status status = open_file(path, &lines.fd, &lines.size, reterr);

    if (status)
        return status;
    lines.buf = peg__alloc(lines.capacity);
    if (!lines.buf) {
        close_file(lines.fd);
        return peg__fail_nomem(reterr);
    }
    *ret_lines = lines;
    return PEG_OK;
}

void cli_lines_close(struct cli_lines *lines)
{
    close_file(lines->fd);
    peg__free(lines->buf);
    lines->buf = NULL;
}

/* Makes room behind what is held and reads into it. */
static peg_status fill_lines(struct cli_lines *lines, peg_error *reterr)
{
    const size_t held = lines->end - lines->start;
    ssize_t got;

    if (lines->start) {
        memmove(lines->buf, lines->buf + lines->start, held);
        lines->start = 0;
        lines->end = held;
    }
    if (!PEG__RESERVE(lines->buf, held + READ_BYTES, lines->capacity))
        return peg__fail_nomem(reterr);
    got = read_retrying(lines->fd, lines->buf + lines->end, lines->capacity - lines->end);
    if (got < 0)
        return fail_read(reterr);
    lines->at_eof = got == 0;
    lines->end += (size_t)got;
    return PEG_OK;
}

/* Takes n bytes of text and what ends them; counts the line. */
static peg_str take_input_line(struct cli_lines *lines, size_t n, size_t n_end)
{
    const peg_str line = {lines->buf + lines->start, n};

    lines->start += n + n_end;
    lines->offset += n + n_end;
    lines->line++;
    return line;
}

static enum cli_line too_long(const struct cli_lines *lines, peg_error *reterr)
{
    peg__fail(reterr, PEG_ELIMIT, "E_FILE_TOO_LARGE",
              "the line is longer than max-bytes = %zu; raise it with --max-bytes",
              lines->max_line);
    return CLI_LINE_TOO_LONG;
}

/* The line in buf[start, start + n) is complete; n_end is 1 if a newline follows. */
static enum cli_line finish_line(struct cli_lines *lines, size_t n, size_t n_end, peg_str *ret_line,
                                 peg_error *reterr)
{
    const bool skipped = lines->skipping;
    const peg_str line = take_input_line(lines, n, n_end);

    lines->skipping = false;
    if (skipped || n > lines->max_line)
        return too_long(lines, reterr);
    *ret_line = line;
    return CLI_LINE;
}

enum cli_line cli_lines_next(struct cli_lines *lines, peg_str *ret_line, peg_error *reterr)
{
    size_t seen = 0; /* bytes held that have no newline in them */

    for (;;) {
        const size_t held = lines->end - lines->start;
        const char *from = lines->buf + lines->start;
        const char *newline = memchr(from + seen, '\n', held - seen);

        if (newline)
            return finish_line(lines, (size_t)(newline - from), 1, ret_line, reterr);
        if (lines->at_eof) {
            if (held == 0 && !lines->skipping)
                return CLI_LINE_END;
            return finish_line(lines, held, 0, ret_line, reterr);
        }
        seen = held;
        if (held > lines->max_line) { /* no need to hold what will not be parsed */
            lines->skipping = true;
            lines->offset += held;
            lines->start = lines->end;
            seen = 0;
        }
        if (fill_lines(lines, reterr))
            return CLI_LINE_FAILED;
    }
}
