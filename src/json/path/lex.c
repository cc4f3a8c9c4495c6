/* SPDX-License-Identifier: Apache-2.0 */

/* The words of a JSONPath: blanks, names, strings, integers, literals. */

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/doc.h"
#include "json/number/number.h"
#include "json/path/path.h"

/* Of an index or slice: what every double holds exactly (RFC 7493). */
#define MAX_INTEGER ((INT64_C(1) << 53) - 1)

peg_status peg__path_error(const struct peg__path_reader *r, size_t at, const char *expected)
{
    if (at >= r->text.len)
        peg__fail(r->reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX",
                  "the path ends where %s was expected", expected);
    else
        peg__fail(r->reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX",
                  "expected %s at offset %zu of the path", expected, at);
    peg__error_at(r->reterr, r->text, at);
    return PEG_EPARSE;
}

void peg__path_skip_blanks(struct peg__path_reader *r)
{
    for (;;) {
        switch (peg__path_peek(r)) {
        case ' ':
        case '\t':
        case '\n':
        case '\r':
            r->at++;
            continue;
        default:
            return;
        }
    }
}

bool peg__path_accept(struct peg__path_reader *r, const char *token)
{
    if (!peg__str_starts(peg__str_from(r->text, r->at), peg__str(token)))
        return false;
    r->at += strlen(token);
    return true;
}

/* ---- names and strings ------------------------------------------------------ */

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

bool peg__path_starts_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

peg_str peg__path_read_name(struct peg__path_reader *r)
{
    const size_t start = r->at;

    while (peg__path_starts_name(peg__path_peek(r)) || is_digit(peg__path_peek(r)))
        r->at++;
    return peg__strn(r->text.ptr + start, r->at - start);
}

/* The four hex digits behind \u, or -1. */
static int read_unit(struct peg__path_reader *r)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = peg__hex_value((char)peg__path_peek(r));

        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
        r->at++;
    }
    return unit;
}

/* Behind \u: one unit, or two of a surrogate pair; -1 if it is neither. */
static int32_t read_escaped_character(struct peg__path_reader *r)
{
    const int high = read_unit(r);
    int low;

    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || !peg__path_accept(r, "\\u"))
        return -1;
    low = read_unit(r);
    if (low < 0xDC00 || low > 0xDFFF)
        return -1;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* Behind a backslash: the character it stands for, or -1. */
static int32_t read_escape(struct peg__path_reader *r, char quote)
{
    static const char letters[] = "bfnrt/\\";
    static const char meanings[] = "\b\f\n\r\t/\\";
    const unsigned char c = peg__path_peek(r);
    const char *letter = c ? strchr(letters, c) : NULL;

    if (c)
        r->at++;
    if (letter)
        return meanings[letter - letters];
    if (c == (unsigned char)quote)
        return c;
    return c == 'u' ? read_escaped_character(r) : -1;
}

/* Bytes up to the closing quote, or to the end of the text. */
static size_t quoted_length(const struct peg__path_reader *r, char quote)
{
    size_t end = r->at;

    while (end < r->text.len && r->text.ptr[end] != quote)
        end += r->text.ptr[end] == '\\' ? 2 : 1;
    return end - r->at;
}

peg_status peg__path_read_string(struct peg__path_reader *r, peg_str *ret_string)
{
    const char quote = r->text.ptr[r->at++];
    /* Unescaping never makes a string longer. */
    char *copy = peg__arena_alloc_zero(&r->path->arena, quoted_length(r, quote) + PEG_JSON_PADDING);
    char *to = copy;

    if (!copy)
        return peg__fail_nomem(r->reterr);
    while (peg__path_peek(r) != (unsigned char)quote) {
        const size_t at = r->at;
        int32_t c;

        if (peg__path_peek(r) < 0x20)
            return peg__path_error(r, at, "a closing quote (control characters are escaped)");
        if (!peg__path_accept(r, "\\")) {
            *to++ = r->text.ptr[r->at++];
            continue;
        }
        c = read_escape(r, quote);
        if (c < 0)
            return peg__path_error(r, at, "a valid escape such as \\n, \\\\ or \\u00e9");
        to = put_utf8(to, c);
    }
    r->at++;
    *ret_string = peg__strn(copy, (size_t)(to - copy));
    return PEG_OK;
}

/* ---- numbers and literals ----------------------------------------------------- */

peg_status peg__path_read_integer(struct peg__path_reader *r, int64_t *ret_number)
{
    const size_t start = r->at;
    const bool is_negative = peg__path_accept(r, "-");
    const size_t first = r->at;
    int64_t number = 0;

    for (; is_digit(peg__path_peek(r)); r->at++) {
        number = number * 10 + (peg__path_peek(r) - '0');
        if (number > MAX_INTEGER)
            return peg__path_error(r, start, "an integer within +-(2^53 - 1)");
    }
    if (r->at == first || (r->text.ptr[first] == '0' && (r->at > first + 1 || is_negative)))
        return peg__path_error(r, start, "an integer without leading zero or minus zero");
    *ret_number = is_negative ? -number : number;
    return PEG_OK;
}

static peg_status read_number(struct peg__path_reader *r, peg_json *ret_value)
{
    const size_t start = r->at;

    while (peg__path_peek(r) && strchr("+-.0123456789eE", peg__path_peek(r)))
        r->at++;
    switch (peg__number_read(peg__strn(r->text.ptr + start, r->at - start), PEG_LIMIT_NUMBER_DIGITS,
                             PEG_LIMIT_NUMBER_EXPONENT, ret_value)) {
    case PEG__NUMBER_OK:
        return PEG_OK;
    case PEG__NUMBER_LIMIT:
        peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                  "a number has at most %d digits and an exponent within +-%d",
                  PEG_LIMIT_NUMBER_DIGITS, PEG_LIMIT_NUMBER_EXPONENT);
        peg__error_at(r->reterr, r->text, start);
        return PEG_ELIMIT;
    case PEG__NUMBER_SYNTAX:
        break;
    }
    return peg__path_error(r, start, "a number as JSON writes it");
}

static peg_status read_string_literal(struct peg__path_reader *r, peg_json *ret_value)
{
    peg_str s;
    peg_status status = peg__path_read_string(r, &s);

    if (status)
        return status;
    *ret_value = (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)s.len, .u.ptr = s.ptr};
    return PEG_OK;
}

peg_status peg__path_read_literal(struct peg__path_reader *r, peg_json *ret_value)
{
    const unsigned char c = peg__path_peek(r);
    const size_t start = r->at;
    peg_str word;

    if (c == '"' || c == '\'')
        return read_string_literal(r, ret_value);
    if (c == '-' || is_digit(c))
        return read_number(r, ret_value);

    word = peg__path_read_name(r);
    if (peg__str_is(word, "true"))
        *ret_value = (peg_json){.kind = PEG_JSON_BOOL, .u.truth = 1};
    else if (peg__str_is(word, "false"))
        *ret_value = (peg_json){.kind = PEG_JSON_BOOL};
    else if (peg__str_is(word, "null"))
        *ret_value = (peg_json){.kind = PEG_JSON_NULL};
    else
        return peg__path_error(r, start, "a literal, '@' or '$'");
    return PEG_OK;
}
