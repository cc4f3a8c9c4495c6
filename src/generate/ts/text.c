/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/text/str.h"
#include "generate/ts/internal.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The bytes of the character at `at`. */
static size_t char_len(peg_str text, size_t at)
{
    size_t n = 1;

    while (at + n < text.len && ((unsigned char)text.ptr[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* ---- comments ----------------------------------------------------------------------------- */

/* Would it be a tag of JSDoc, or a directive of the compiler such as @ts-nocheck? Those of mail
 * addresses are not. */
static bool is_tag(peg_str word, size_t at)
{
    return word.ptr[at] == '@' && (!at || !(is_letter(word.ptr[at - 1]) ||
                                            is_digit(word.ptr[at - 1]) || word.ptr[at - 1] == '.'));
}

/* Text never ends the comment, and is never more than text. */
static void put_comment_word(struct peg__buf *out, peg_str word)
{
    char last = ' ';

    for (size_t i = 0; i < word.len; i++) {
        const char c = word.ptr[i];

        if (gen_hidden_char(word, i)) {
            i += 2;
            continue;
        }
        if (is_tag(word, i))
            peg__buf_putc(out, '\\');
        else if (last == '*' && c == '/')
            peg__buf_putc(out, ' ');
        peg__buf_putc(out, c);
        last = c;
    }
}

/* The text as lines that begin with " * ". */
static void put_comment_lines(struct peg__buf *out, unsigned indent, peg_str text)
{
    peg_str word = gen_next_word(&text);
    size_t column = 0;

    for (; word.len; word = gen_next_word(&text)) {
        if (column && column + 1 + word.len > TS_COLUMNS) {
            peg__buf_putc(out, '\n');
            column = 0;
        }
        if (!column) {
            peg__buf_repeat(out, ' ', indent + 1);
            peg__buf_puts(out, "*");
            column = indent + 2;
        }
        peg__buf_putc(out, ' ');
        put_comment_word(out, word);
        column += 1 + word.len;
    }
    peg__buf_putc(out, '\n');
}

void ts_put_comment(struct peg__buf *out, unsigned indent, peg_str text)
{
    struct peg__buf line = PEG__BUF(out->max);
    peg_str rest = text;
    peg_str word = gen_next_word(&rest);
    const bool is_empty = !word.len;

    for (; word.len; word = gen_next_word(&rest)) {
        put_comment_word(&line, word);
        peg__buf_putc(&line, ' ');
    }
    (void)gen_text_of(out, &line);
    if (is_empty) {
        peg__buf_free(&line);
        return;
    }
    peg__buf_repeat(out, ' ', indent);
    if (indent + strlen("/** ") + line.len + strlen("*/") <= TS_COLUMNS) {
        peg__buf_puts(out, "/** ");
        peg__buf_str(out, peg__buf_view(&line));
        peg__buf_puts(out, "*/\n");
    } else {
        peg__buf_puts(out, "/**\n");
        put_comment_lines(out, indent, text);
        peg__buf_repeat(out, ' ', indent);
        peg__buf_puts(out, " */\n");
    }
    peg__buf_free(&line);
}

void ts_put_head(struct peg__buf *out, const struct gen_service *service,
                 const struct gen_toolset *toolset, const char *what)
{
    struct peg__buf text = PEG__BUF(1 << 16);

    gen_put_head(&text, service, toolset, what);
    ts_put_comment(out, 0, peg__str(gen_text_of(out, &text)));
    peg__buf_putc(out, '\n');
    peg__buf_free(&text);
}

/* ---- literals ----------------------------------------------------------------------------- */

static size_t count_char(peg_str text, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == c;
    return n;
}

/* The quotes that need fewer escapes. */
static char quote_of(peg_str text)
{
    return count_char(text, '"') > count_char(text, '\'') ? '\'' : '"';
}

static void put_escaped_char(struct peg__buf *out, peg_str text, size_t at, char quote)
{
    const char c = text.ptr[at];
    const unsigned code = gen_hidden_char(text, at);

    if (code)
        peg__buf_printf(out, "\\u%04x", code);
    else if (c == quote || c == '\\')
        peg__buf_printf(out, "\\%c", c);
    else if (c == '\n')
        peg__buf_puts(out, "\\n");
    else if ((unsigned char)c < ' ' || c == 127)
        peg__buf_printf(out, "\\u%04x", (unsigned)c);
    else
        peg__buf_add(out, text.ptr + at, char_len(text, at));
}

/* Of what put_escaped_char() writes, quotes left alone. */
static size_t escaped_len(peg_str text, size_t at)
{
    const char c = text.ptr[at];

    if (gen_hidden_char(text, at) || ((unsigned char)c < ' ' && c != '\n') || c == 127)
        return strlen("\\u0000");
    return c == '\\' || c == '\n' ? 2 : char_len(text, at);
}

void ts_put_literal(struct peg__buf *out, peg_str text)
{
    const char quote = quote_of(text);

    peg__buf_putc(out, quote);
    for (size_t i = 0; i < text.len; i += char_len(text, i))
        put_escaped_char(out, text, i, quote);
    peg__buf_putc(out, quote);
}

void ts_put_property(struct peg__buf *out, peg_str name)
{
    bool is_identifier = name.len && !is_digit(name.ptr[0]);

    for (size_t i = 0; i < name.len && is_identifier; i++)
        is_identifier = is_letter(name.ptr[i]) || is_digit(name.ptr[i]);
    if (is_identifier)
        peg__buf_str(out, name);
    else
        ts_put_literal(out, name);
}

/* Where the piece that starts at `at` ends: within the line, and not within a character. */
static size_t piece_end(peg_str text, size_t at, unsigned indent)
{
    const size_t most = TS_COLUMNS - indent - strlen("'' +");
    size_t n_double = 0;
    size_t n_single = 0;
    size_t end = at;
    size_t n = 0;

    while (end < text.len) {
        n += escaped_len(text, end);
        n_double += text.ptr[end] == '"';
        n_single += text.ptr[end] == '\'';
        /* Those that are fewer get an escape. */
        if (n + (n_double < n_single ? n_double : n_single) > most)
            break;
        end += char_len(text, end);
    }
    return end;
}

/* The text as literals, a line each; so many that the compiler would run out of stack with a `+`
 * between them are joined by a call. */
static void put_literal_lines(struct peg__buf *out, unsigned indent, peg_str text)
{
    enum { MOST_SUMMED = 50000 };
    const bool is_joined = text.len > MOST_SUMMED;

    peg__buf_puts(out, is_joined ? " [\n" : "\n");
    for (size_t at = 0, end; at < text.len && !out->status; at = end) {
        end = piece_end(text, at, indent + 2);
        if (at)
            peg__buf_puts(out, is_joined ? ",\n" : " +\n");
        peg__buf_repeat(out, ' ', indent + 2);
        ts_put_literal(out, peg__strn(text.ptr + at, end - at));
    }
    if (!is_joined)
        return;
    peg__buf_puts(out, ",\n");
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "].join(\"\")");
}

void ts_put_text(struct peg__buf *out, unsigned indent, const char *head, peg_str text,
                 const char *tail)
{
    struct peg__buf whole = PEG__BUF(out->max);

    ts_put_literal(&whole, text);
    (void)gen_text_of(out, &whole);
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, head);
    if (!text.len || indent + strlen(head) + 1 + whole.len + strcspn(tail, "\n") <= TS_COLUMNS) {
        peg__buf_putc(out, ' ');
        peg__buf_str(out, peg__buf_view(&whole));
    } else {
        put_literal_lines(out, indent, text);
    }
    peg__buf_puts(out, tail);
    peg__buf_free(&whole);
}

/* ---- lists -------------------------------------------------------------------------------- */

void ts_put_list(struct peg__buf *out, unsigned indent, const char *head, const char *const *items,
                 const char *tail)
{
    size_t n = indent + strlen(head) + strcspn(tail, "\n");
    bool is_short;

    for (size_t i = 0; items[i]; i++)
        n += strlen(items[i]) + (i ? 2 : 0);
    is_short = n <= TS_COLUMNS;
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, head);
    for (size_t i = 0; items[i]; i++) {
        if (is_short) {
            peg__buf_printf(out, "%s%s", i ? ", " : "", items[i]);
            continue;
        }
        peg__buf_putc(out, '\n');
        peg__buf_repeat(out, ' ', indent + 2);
        peg__buf_printf(out, "%s,", items[i]);
    }
    if (!is_short) {
        peg__buf_putc(out, '\n');
        peg__buf_repeat(out, ' ', indent);
    }
    peg__buf_puts(out, tail);
}
