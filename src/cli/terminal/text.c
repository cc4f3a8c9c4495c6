/* SPDX-License-Identifier: Apache-2.0 */

/* Words from outside in lines that fit a terminal. */

#include <stdio.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

enum {
    TAB = 4,
    LEAST = 16, /* columns of words, however narrow the terminal and deep the indentation */
};

/* ---- how wide a character is ------------------------------------------------------------ */

struct range {
    uint32_t first;
    uint32_t last;
};

/* Not every character, but those that people write: the locale is "C", so wcwidth() knows none. */
static const struct range without_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},   {0x1AB0, 0x1AFF},
    {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};
static const struct range wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

static bool is_in_ranges(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* Requires a whole character of n bytes. */
static uint32_t decode_utf8(const char *text, size_t n)
{
    static const unsigned char first[] = {0x7F, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)text[0] & first[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3F);
    return c;
}

static unsigned width_of(const char *text, size_t n)
{
    const uint32_t c = decode_utf8(text, n);

    if (is_in_ranges(without_width, sizeof(without_width) / sizeof(without_width[0]), c))
        return 0;
    return is_in_ranges(wide, sizeof(wide) / sizeof(wide[0]), c) ? 2 : 1;
}

unsigned cli_text_width(peg_str text)
{
    unsigned width = 0;
    size_t i = 0;

    while (i < text.len) {
        const size_t n = peg__utf8_char_len(peg__str_from(text, i));

        width += n ? width_of(text.ptr + i, n) : 1;
        i += n ? n : 1;
    }
    return width;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* A line of the terminal that is not written yet. Owned by cli_put_text(). */
struct row {
    const struct cli_text *how;
    struct peg__buf text;
    unsigned width;  /* most columns of the text; 0: any */
    unsigned column; /* where it ends */
    size_t break_at; /* behind the last space between words; 0: there is none */
    unsigned break_column;
    bool has_word;
    bool is_first;
};

static void emit_row(struct row *row, size_t len)
{
    struct peg__buf *out = row->how->out;

    if (row->is_first && row->how->first)
        peg__buf_puts(out, row->how->first);
    else if (len)
        peg__buf_repeat(out, ' ', row->how->indent);
    row->is_first = false;
    if (len) {
        peg__buf_puts(out, row->how->on);
        peg__buf_add(out, row->text.ptr, len);
        peg__buf_puts(out, row->how->off);
    }
    peg__buf_putc(out, '\n');
}

static void end_row(struct row *row)
{
    emit_row(row, row->text.len);
    peg__buf_clear(&row->text);
    row->column = 0;
    row->break_at = 0;
    row->has_word = false;
}

/* Ends the row behind its last space, and begins the next with the rest; in the middle of a word
 * that is longer than a row. */
static void wrap_row(struct row *row)
{
    size_t len = row->break_at;
    size_t rest;

    if (!len) {
        end_row(row);
        return;
    }
    rest = row->text.len - len;
    while (len && row->text.ptr[len - 1] == ' ')
        len--;
    emit_row(row, len);
    memmove(row->text.ptr, row->text.ptr + row->break_at, rest);
    row->text.len = rest;
    row->column -= row->break_column;
    row->break_at = 0;
    row->has_word = rest > 0;
}

static void put_row_bytes(struct row *row, const char *bytes, size_t n, unsigned width)
{
    if (row->width && row->column + width > row->width && row->text.len && *bytes != ' ')
        wrap_row(row);
    peg__buf_add(&row->text, bytes, n);
    row->column += width;
    if (*bytes != ' ') {
        row->has_word = true;
    } else if (row->has_word) {
        row->break_at = row->text.len;
        row->break_column = row->column;
    }
}

/* ---- characters ------------------------------------------------------------------------- */

static void put_escaped(struct row *row, peg_str bytes)
{
    char text[5];

    for (size_t i = 0; i < bytes.len; i++) {
        snprintf(text, sizeof(text), "\\x%02X", (unsigned)(unsigned char)bytes.ptr[i]);
        put_row_bytes(row, text, 4, 4);
    }
}

/* Writes one character and returns its bytes. */
static size_t put_any_character(struct row *row, peg_str rest)
{
    struct peg__buf safe = PEG__BUF(64);
    const size_t n = peg__utf8_char_len(rest);

    if (n == 0) {
        put_escaped(row, peg__strn(rest.ptr, 1));
        return 1;
    }
    cli_put_safe(&safe, peg__strn(rest.ptr, n));
    if (safe.status)
        row->text.status = safe.status;
    else if (safe.len == n)
        put_row_bytes(row, rest.ptr, n, width_of(rest.ptr, n));
    else
        put_escaped(row, peg__strn(rest.ptr, n));
    peg__buf_free(&safe);
    return n;
}

static void put_tab(struct row *row)
{
    do
        put_row_bytes(row, " ", 1, 1);
    while (row->column % TAB);
}

void cli_put_text(const struct cli_text *how, peg_str text)
{
    struct row row = {.how = how, .text = PEG__BUF(how->out->max), .is_first = true};
    size_t i = 0;

    if (how->width)
        row.width = how->width > how->indent + LEAST ? how->width - how->indent : LEAST;
    while (i < text.len && !row.text.status) {
        const char c = text.ptr[i];

        if (c == '\n')
            end_row(&row);
        else if (c == '\t')
            put_tab(&row);
        else if (c >= ' ' && c <= '~')
            put_row_bytes(&row, &c, 1, 1);
        else if (c != '\r' || i + 1 == text.len || text.ptr[i + 1] != '\n')
            i += put_any_character(&row, peg__str_from(text, i)) - 1;
        i++;
    }
    if (row.text.status)
        how->out->status = row.text.status;
    else if (row.text.len || row.is_first)
        end_row(&row);
    peg__buf_free(&row.text);
}

void cli_put_count(struct peg__buf *out, uint64_t number)
{
    char digits[24];
    const int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            peg__buf_putc(out, ',');
        peg__buf_putc(out, digits[i]);
    }
}
