/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "generate/c/internal.h"

/* ---- comments ----------------------------------------------------------------------------- */

/* A word that ends the comment, or begins another, would not stay in it. A character that shows
 * code in another order is a dot. */
static void put_comment_word(struct peg__buf *out, peg_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        if (gen_hidden_char(word, i)) {
            peg__buf_putc(out, '.');
            i += 2;
            continue;
        }
        peg__buf_putc(out, word.ptr[i]);
        if (i + 1 < word.len && ((word.ptr[i] == '*' && word.ptr[i + 1] == '/') ||
                                 (word.ptr[i] == '/' && word.ptr[i + 1] == '*') ||
                                 (word.ptr[i] == '?' && word.ptr[i + 1] == '?')))
            peg__buf_putc(out, ' ');
        if (i + 1 == word.len && word.ptr[i] == '\\')
            peg__buf_putc(out, '.');
    }
}

void c_put_comment(struct peg__buf *out, unsigned indent, peg_str text)
{
    peg_str word = gen_next_word(&text);
    size_t column = indent + 2;

    if (!word.len)
        return;
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "/*");
    for (; word.len; word = gen_next_word(&text)) {
        /* Room for the end of the comment. */
        if (column + 1 + word.len + 3 > C_COLUMNS && column > indent + 2) {
            peg__buf_putc(out, '\n');
            peg__buf_repeat(out, ' ', indent + 1);
            peg__buf_putc(out, '*');
            column = indent + 2;
        }
        peg__buf_putc(out, ' ');
        put_comment_word(out, word);
        column += 1 + word.len;
    }
    peg__buf_puts(out, " */\n");
}

void c_put_head(struct peg__buf *out, const struct gen_service *service,
                const struct gen_toolset *toolset, const char *what)
{
    struct peg__buf text = PEG__BUF(1 << 16);

    gen_put_head(&text, service, toolset, what);
    c_put_comment(out, 0, peg__str(gen_text_of(out, &text)));
    peg__buf_putc(out, '\n');
    peg__buf_free(&text);
}

/* ---- calls -------------------------------------------------------------------------------- */

/* The column where a text ends. */
static size_t column_of(const char *text)
{
    const char *line = strrchr(text, '\n');

    return strlen(line ? line + 1 : text);
}

void c_put_call(struct peg__buf *out, const char *head, const char *const *args, const char *tail)
{
    const size_t start = column_of(head);
    size_t column = start;

    peg__buf_puts(out, head);
    for (size_t i = 0; args[i]; i++) {
        const bool is_last = !args[i + 1];
        const size_t n = strlen(args[i]) + (is_last ? strcspn(tail, "\n") : 1);

        if (i && column + 1 + n > C_COLUMNS) {
            peg__buf_putc(out, '\n');
            peg__buf_repeat(out, ' ', start);
            column = start;
        } else if (i) {
            peg__buf_putc(out, ' ');
            column++;
        }
        peg__buf_puts(out, args[i]);
        if (!is_last)
            peg__buf_putc(out, ',');
        column += n;
    }
    peg__buf_puts(out, tail);
}

void c_put_callf(struct peg__buf *out, const char *const *args, const char *tail, const char *fmt,
                 ...)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    va_list values;

    va_start(values, fmt);
    peg__buf_vprintf(&head, fmt, values);
    va_end(values);
    c_put_call(out, gen_text_of(out, &head), args, tail);
    peg__buf_free(&head);
}

/* ---- literals ----------------------------------------------------------------------------- */

void c_put_literal(struct peg__buf *out, peg_str text)
{
    peg__buf_putc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        if (c == '"' || c == '\\')
            peg__buf_printf(out, "\\%c", c);
        else if (c == '\n')
            peg__buf_puts(out, "\\n");
        else if (c < ' ' || c >= 127)
            peg__buf_printf(out, "\\%03o", c);
        else if (c == '?' && i && text.ptr[i - 1] == '?')
            peg__buf_puts(out, "\\?"); /* no trigraph */
        else
            peg__buf_putc(out, (char)c);
    }
    peg__buf_putc(out, '"');
}

void c_put_declarator(struct peg__buf *out, const char *type, const char *name)
{
    const size_t n = strlen(type);

    peg__buf_printf(out, "%s%s%s", type, n && type[n - 1] == '*' ? "" : " ", name);
}
