/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/text/str.h"
#include "generate/python/internal.h"

/* ---- docstrings --------------------------------------------------------------------------- */

/* A character that would show code in another order, as its escape: true. */
static bool put_hidden_char(struct peg__buf *out, peg_str text, size_t at)
{
    const unsigned code = gen_hidden_char(text, at);

    if (code)
        peg__buf_printf(out, "\\u%04x", code);
    return code != 0;
}

/* A quote beside another, or at an end of the text, could end the docstring. */
static void put_docstring_word(struct peg__buf *out, peg_str word, bool is_first, bool is_last)
{
    for (size_t i = 0; i < word.len; i++) {
        const char c = word.ptr[i];
        const bool is_at_end = (is_first && i == 0) || (is_last && i + 1 == word.len);
        const bool is_beside =
            (i && word.ptr[i - 1] == '"') || (i + 1 < word.len && word.ptr[i + 1] == '"');

        if (put_hidden_char(out, word, i)) {
            i += 2;
            continue;
        }
        if (c == '\\' || (c == '"' && (is_at_end || is_beside)))
            peg__buf_putc(out, '\\');
        peg__buf_putc(out, c);
    }
}

void py_put_docstring(struct peg__buf *out, unsigned indent, peg_str text)
{
    peg_str word = gen_next_word(&text);
    size_t column = indent + 3;
    bool is_first = true;

    if (!word.len)
        return;
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "\"\"\"");
    while (word.len) {
        const peg_str next = gen_next_word(&text);

        /* Room for the quotes at the end. */
        if (!is_first && column + 1 + word.len + 3 > PY_COLUMNS) {
            peg__buf_putc(out, '\n');
            peg__buf_repeat(out, ' ', indent);
            column = indent;
        } else if (!is_first) {
            peg__buf_putc(out, ' ');
            column++;
        }
        put_docstring_word(out, word, is_first, !next.len);
        column += word.len;
        is_first = false;
        word = next;
    }
    peg__buf_puts(out, "\"\"\"\n");
}

/* ---- literals ----------------------------------------------------------------------------- */

static size_t count_of(peg_str text, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == c ? 1 : 0;
    return n;
}

/* The quotes are those that need fewer escapes, as black has them. */
void py_put_literal(struct peg__buf *out, peg_str text)
{
    const char quote = count_of(text, '"') > count_of(text, '\'') ? '\'' : '"';

    peg__buf_putc(out, quote);
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (put_hidden_char(out, text, i))
            i += 2;
        else if (c == quote || c == '\\')
            peg__buf_printf(out, "\\%c", c);
        else if (c == '\n')
            peg__buf_puts(out, "\\n");
        else if ((unsigned char)c < ' ' || c == 127)
            peg__buf_printf(out, "\\x%02x", (unsigned)(unsigned char)c);
        else
            peg__buf_putc(out, c);
    }
    peg__buf_putc(out, quote);
}

/* The longest beginning that is no longer than `most` and ends with a character. */
static size_t piece_of(peg_str text, size_t most)
{
    size_t n = text.len < most ? text.len : most;

    while (n && n < text.len && ((unsigned char)text.ptr[n] & 0xC0) == 0x80)
        n--;
    return n;
}

void py_put_value(struct peg__buf *out, unsigned indent, const char *head, peg_str text,
                  const char *tail)
{
    enum { PIECE = 72 };
    struct peg__buf whole = PEG__BUF(out->max);
    size_t n;

    py_put_literal(&whole, text);
    (void)gen_text_of(out, &whole);
    peg__buf_repeat(out, ' ', indent);
    if (indent + strlen(head) + whole.len + strlen(tail) <= PY_COLUMNS) {
        peg__buf_printf(out, "%s%s%s\n", head, gen_text_of(out, &whole), tail);
        peg__buf_free(&whole);
        return;
    }
    peg__buf_free(&whole);
    peg__buf_printf(out, "%s(\n", head);
    for (size_t at = 0; at < text.len; at += n) {
        const peg_str rest = peg__strn(text.ptr + at, text.len - at);

        n = piece_of(rest, PIECE);
        peg__buf_repeat(out, ' ', indent + 4);
        py_put_literal(out, peg__strn(rest.ptr, n));
        peg__buf_putc(out, '\n');
    }
    peg__buf_printf(out, "%*s)%s\n", (int)indent, "", tail);
}

/* ---- calls -------------------------------------------------------------------------------- */

static size_t length_of(const char *const *args, size_t n)
{
    size_t length = 0;

    for (size_t i = 0; i < n; i++)
        length += strlen(args[i]) + (i ? 2 : 0);
    return length;
}

static void put_joined(struct peg__buf *out, const char *const *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peg__buf_printf(out, "%s%s", i ? ", " : "", args[i]);
}

void py_put_call(struct peg__buf *out, unsigned indent, const char *head, const char *const *args,
                 size_t n, const char *tail)
{
    const size_t length = length_of(args, n);
    const int i = (int)indent;

    peg__buf_printf(out, "%*s%s", i, "", head);
    if (indent + strlen(head) + length + strlen(tail) <= PY_COLUMNS) {
        put_joined(out, args, n);
    } else if (indent + 4 + length <= PY_COLUMNS) {
        peg__buf_printf(out, "\n%*s", i + 4, "");
        put_joined(out, args, n);
        peg__buf_printf(out, "\n%*s", i, "");
    } else {
        peg__buf_putc(out, '\n');
        for (size_t k = 0; k < n; k++)
            peg__buf_printf(out, "%*s%s,\n", i + 4, "", args[k]);
        peg__buf_repeat(out, ' ', indent);
    }
    peg__buf_printf(out, "%s\n", tail);
}
