/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes YAML in block style: one member or item a line, two spaces a level,
 * never folded, so that equal values give equal bytes and a change of one value
 * changes its lines only. Why not libyaml's emitter: docs/decisions/0003.
 *
 * A string stands without quotes only if no reader, of 1.1 or 1.2, can take it
 * for something else; the rule is narrow on purpose.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/number/number.h"
#include "json/yaml/yaml.h"

enum {
    INDENT = 2,
    /* A reader gives up on "key:" after 1,024 characters; longer keys are written "? key". */
    LONGEST_SIMPLE_KEY = 1000,
};

/* ---- what a string is made of -------------------------------------------------------- */

/* Control characters, what some readers take for a line end, the byte order mark, and what is
 * no character at all. Only double quotes hold these, as escapes. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
           (c & 0xFFFE) == 0xFFFE;
}

struct looks {
    bool has_line_end;
    bool has_tab;
    bool needs_escape;           /* beyond line ends and tabs */
    bool has_backslash_or_quote; /* these read better in single quotes */
};

static struct looks inspect_string(peg_str s)
{
    struct looks looks = {0};

    for (const unsigned char *at = (const unsigned char *)s.ptr, *end = at + s.len; at < end;) {
        const uint32_t c = peg__utf8_next(&at);

        if (c == '\n')
            looks.has_line_end = true;
        else if (c == '\t')
            looks.has_tab = true;
        else if (needs_escape(c))
            looks.needs_escape = true;
        else if (c == '\\' || c == '"')
            looks.has_backslash_or_quote = true;
    }
    return looks;
}

/* ---- without quotes --------------------------------------------------------------------- */

static bool is_word_in_any_case(peg_str s, const char *lowercase)
{
    if (strlen(lowercase) != s.len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((s.ptr[i] | 0x20) != lowercase[i])
            return false;
    return true;
}

/* What YAML 1.1 or 1.2 reads as null or a boolean, in any case of letters. */
static bool is_word_with_meaning(peg_str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is_word_in_any_case(s, words[i]))
            return true;
    return false;
}

/* Letters and '/' begin neither a number, a date nor anything of YAML's syntax. */
static bool may_begin_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' || c >= 0x80;
}

static bool may_be_plain(peg_str s, struct looks looks)
{
    if (s.len == 0 || looks.has_line_end || looks.has_tab || looks.needs_escape)
        return false;
    if (!may_begin_plain((unsigned char)s.ptr[0]) || is_word_with_meaning(s))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if ((s.ptr[i - 1] == ':' && s.ptr[i] == ' ') || (s.ptr[i - 1] == ' ' && s.ptr[i] == '#'))
            return false;
    return s.ptr[s.len - 1] != ' ' && s.ptr[s.len - 1] != ':';
}

/* ---- in quotes ---------------------------------------------------------------------------- */

static void write_single_quoted(peg_str s, struct peg__buf *out)
{
    peg__buf_putc(out, '\'');
    for (size_t i = 0; i < s.len; i++)
        peg__buf_add(out, s.ptr[i] == '\'' ? "''" : &s.ptr[i], s.ptr[i] == '\'' ? 2 : 1);
    peg__buf_putc(out, '\'');
}

static void write_escape(uint32_t c, struct peg__buf *out)
{
    static const char characters[] = "\b\t\n\f\r\"\\";
    static const char letters[] = "btnfr\"\\";
    const char *known = c && c < 0x80 ? strchr(characters, (int)c) : NULL;

    if (known)
        peg__buf_printf(out, "\\%c", letters[known - characters]);
    else if (c < 0x100)
        peg__buf_printf(out, "\\x%02x", (unsigned)c);
    else if (c < 0x10000)
        peg__buf_printf(out, "\\u%04x", (unsigned)c);
    else
        peg__buf_printf(out, "\\U%08x", (unsigned)c);
}

static void write_double_quoted(peg_str s, struct peg__buf *out)
{
    peg__buf_putc(out, '"');
    for (const unsigned char *at = (const unsigned char *)s.ptr, *end = at + s.len; at < end;) {
        const unsigned char *start = at;
        const uint32_t c = peg__utf8_next(&at);

        if (c == '"' || c == '\\' || needs_escape(c))
            write_escape(c, out);
        else
            peg__buf_add(out, (const char *)start, (size_t)(at - start));
    }
    peg__buf_putc(out, '"');
}

/* On one line, in the simplest way that is exact. */
static void write_line(peg_str s, struct looks looks, struct peg__buf *out)
{
    if (may_be_plain(s, looks))
        peg__buf_str(out, s);
    else if (looks.has_backslash_or_quote && !looks.has_line_end && !looks.has_tab &&
             !looks.needs_escape)
        write_single_quoted(s, out);
    else
        write_double_quoted(s, out);
}

/* ---- literal blocks ------------------------------------------------------------------------ */

/* The line that starts at `start`, without its end. */
static peg_str line_at(peg_str s, size_t start)
{
    const char *end = memchr(s.ptr + start, '\n', s.len - start);

    return peg__strn(s.ptr + start, end ? (size_t)(end - s.ptr) - start : s.len - start);
}

/* Some line has text, and none has blanks alone: they are invisible, and readers differ. */
static bool has_only_clean_lines(peg_str s)
{
    bool has_text = false;

    for (size_t start = 0; start < s.len;) {
        const peg_str line = line_at(s, start);
        size_t n = 0;

        while (n < line.len && peg__is_blank(line.ptr[n]))
            n++;
        if (line.len && n == line.len)
            return false;
        has_text = has_text || line.len;
        start += line.len + 1;
    }
    return has_text;
}

/* Without an indicator a reader takes the indentation from the first line. */
static bool needs_indicator(peg_str s)
{
    return s.ptr[0] == '\n' || peg__is_blank(s.ptr[0]);
}

static bool is_block(peg_str s, struct looks looks, bool is_root)
{
    if (!looks.has_line_end || looks.needs_escape || !has_only_clean_lines(s))
        return false;
    /* What an indicator counts from differs between readers at the root. */
    return !is_root || !needs_indicator(s);
}

static void write_block(peg_str s, size_t indent, struct peg__buf *out)
{
    const bool ends = s.ptr[s.len - 1] == '\n';
    const bool ends_twice = ends && s.ptr[s.len - 2] == '\n';

    peg__buf_putc(out, '|');
    if (needs_indicator(s))
        peg__buf_putc(out, '0' + INDENT);
    if (!ends || ends_twice)
        peg__buf_putc(out, ends ? '+' : '-');
    peg__buf_putc(out, '\n');
    for (size_t start = 0; start < s.len;) {
        const peg_str line = line_at(s, start);

        if (line.len)
            peg__buf_repeat(out, ' ', indent);
        peg__buf_str(out, line);
        peg__buf_putc(out, '\n');
        start += line.len + 1;
    }
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* The digits of a JSON number with exponent, e.g. -12.5e300. */
struct scientific {
    bool is_negative;
    size_t n;         /* significant digits */
    int64_t exponent; /* of the first of them */
};

/* Packs the significant digits to the front of the text. False if there are none. */
static bool take_apart(char *text, const char *e, struct scientific *ret)
{
    struct scientific s = {.is_negative = *text == '-', .exponent = -1};
    bool is_fraction = false;

    for (const char *p = text + s.is_negative; p < e; p++) {
        if (*p == '.') {
            is_fraction = true;
            continue;
        }
        if (!is_fraction && (s.n || *p != '0'))
            s.exponent++;
        else if (is_fraction && s.n == 0 && *p == '0')
            s.exponent--;
        if (s.n || *p != '0')
            text[s.n++] = *p;
    }
    s.exponent += strtoll(e + 1, NULL, 10);
    *ret = s;
    return s.n;
}

/*
 * A number with exponent gets point and sign, 1.0e+400 instead of 1e400, because a reader of
 * 1.1 takes it for a string without them. One digit before the point: then the text is the same
 * when it was read and is written again.
 */
static void write_number(const peg_json *number, struct peg__buf *out)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES_MAX);
    const size_t start = out->len;
    struct scientific s;

    peg__number_write(number, out);
    if (out->status || !strpbrk(out->ptr + start, "eE"))
        return;
    peg__buf_add(&text, out->ptr + start, out->len - start);
    out->len = start;
    if (text.status)
        out->status = text.status;
    else if (take_apart(text.ptr, strpbrk(text.ptr, "eE"), &s))
        peg__buf_printf(out, "%s%c.%.*se%+lld", s.is_negative ? "-" : "", text.ptr[0],
                        s.n > 1 ? (int)s.n - 1 : 1, s.n > 1 ? text.ptr + 1 : "0",
                        (long long)s.exponent);
    else
        peg__buf_puts(out, s.is_negative ? "-0.0" : "0.0");
    peg__buf_free(&text);
}

/* With the line end. `indent` is where the lines of a block begin. */
static void write_yaml_string(peg_str s, size_t indent, bool is_root, struct peg__buf *out)
{
    const struct looks looks = inspect_string(s);

    if (is_block(s, looks, is_root)) {
        write_block(s, indent, out);
        return;
    }
    write_line(s, looks, out);
    peg__buf_putc(out, '\n');
}

/* A scalar or an empty container, with the line end. */
static void write_leaf(const peg_json *value, size_t indent, bool is_root, struct peg__buf *out)
{
    if (peg_json_kind_of(value) == PEG_JSON_STRING) {
        write_yaml_string(peg_json_str(value), indent, is_root, out);
        return;
    }
    if (peg_json_is_number(value))
        write_number(value, out);
    else
        peg__json_write(value, PEG_JSON_COMPACT, out);
    peg__buf_putc(out, '\n');
}

/* Up to the colon. */
static void write_yaml_key(peg_str name, size_t indent, struct peg__buf *out)
{
    const size_t start = out->len;

    write_line(name, inspect_string(name), out);
    if (out->len - start > LONGEST_SIMPLE_KEY) {
        out->len = start;
        peg__buf_puts(out, "? ");
        write_line(name, inspect_string(name), out);
        peg__buf_putc(out, '\n');
        peg__buf_repeat(out, ' ', indent);
    }
    peg__buf_putc(out, ':');
}

/* ---- containers -------------------------------------------------------------------------------
 */

/* A container that is being written. */
struct frame {
    const peg_json *next; /* its next item or key */
    const peg_json *end;
    size_t indent;
    bool is_object;
    bool is_on_line; /* the first item or member follows the "- " of the container around it */
};

struct writer {
    struct peg__buf *out;
    struct frame *frames;
    size_t depth;
    size_t capacity;
};

static void open_frame(struct writer *w, const peg_json *value, size_t indent, bool is_on_line)
{
    if (!PEG__RESERVE(w->frames, w->depth + 1, w->capacity)) {
        w->out->status = PEG_ENOMEM;
        return;
    }
    w->frames[w->depth++] = (struct frame){.next = value + 1,
                                           .end = peg_json_next(value),
                                           .indent = indent,
                                           .is_object = value->kind == PEG_JSON_OBJECT,
                                           .is_on_line = is_on_line};
}

/* Writes the next item or member of the innermost container, and opens it if it has inside. */
static void write_next(struct writer *w)
{
    struct frame *frame = &w->frames[w->depth - 1];
    const peg_json *value = frame->is_object ? frame->next + 1 : frame->next;
    const size_t inner = frame->indent + INDENT;
    const bool is_object = frame->is_object;

    if (!frame->is_on_line)
        peg__buf_repeat(w->out, ' ', frame->indent);
    frame->is_on_line = false;
    if (is_object)
        write_yaml_key(peg_json_str(frame->next), frame->indent, w->out);
    else
        peg__buf_putc(w->out, '-');
    frame->next = peg_json_next(value);

    if (peg_json_len(value) == 0) {
        peg__buf_putc(w->out, ' ');
        write_leaf(value, inner, false, w->out);
        return;
    }
    peg__buf_putc(w->out, is_object ? '\n' : ' ');
    open_frame(w, value, inner, !is_object);
}

static void write_root(const peg_json *value, struct peg__buf *out)
{
    struct writer w = {.out = out};

    if (peg_json_len(value) == 0) {
        write_leaf(value, INDENT, true, out);
        return;
    }
    open_frame(&w, value, 0, true);
    while (w.depth && !out->status) {
        if (w.frames[w.depth - 1].next == w.frames[w.depth - 1].end)
            w.depth--;
        else
            write_next(&w);
    }
    peg__free(w.frames);
}

peg_status peg_yaml_write(const peg_json *value, char **ret_text, size_t *ret_len,
                          peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    write_root(peg__json_or_null(value), &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
