/* SPDX-License-Identifier: Apache-2.0 */

/* The tokens of JSON5, each rewritten as JSON where it stands. */

#include "json/json5/token.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/yaml/yaml.h"

enum { END = PEG__JSON5_END };

/* ---- errors -------------------------------------------------------------------------------- */

peg_status peg__json5_fail(struct peg__json5 *r, size_t at, const char *what)
{
    peg__fail(r->reterr, PEG_EPARSE, "E_JSON_SYNTAX", "%s", what);
    peg__error_at(r->reterr, r->text, at);
    return PEG_EPARSE;
}

static peg_status fail_not_finite(struct peg__json5 *r)
{
    peg__fail(r->reterr, PEG_EPARSE, "E_JSON_SYNTAX",
              "JSON has no value for Infinity and NaN; write null or a string instead");
    peg__error_at(r->reterr, r->text, r->token);
    return PEG_EPARSE;
}

/* ---- characters ---------------------------------------------------------------------------- */

static bool is_ahead(const struct peg__json5 *r, const char *bytes)
{
    return peg__str_starts(peg__str_from(r->text, r->at), peg__str(bytes));
}

/* LINE SEPARATOR and PARAGRAPH SEPARATOR, which JavaScript takes for line ends. */
static bool is_separator(const struct peg__json5 *r)
{
    return is_ahead(r, "\u2028") || is_ahead(r, "\u2029");
}

/* Bytes of the line end that comes next, CR LF as one; 0 if none. */
static size_t line_end_len(const struct peg__json5 *r)
{
    if (peg__json5_peek(r, 0) == '\r')
        return peg__json5_peek(r, 1) == '\n' ? 2 : 1;
    if (peg__json5_peek(r, 0) == '\n')
        return 1;
    return is_separator(r) ? 3 : 0;
}

/* Bytes of the space that comes next: ASCII's, the BOM and Unicode's category Zs; 0 if none. */
static size_t space_len(const struct peg__json5 *r)
{
    static const char *const wide[] = {"\u00A0", "\uFEFF", "\u1680", "\u202F", "\u205F", "\u3000"};
    const int c = peg__json5_peek(r, 0);

    if (c == ' ' || (c >= '\t' && c <= '\r'))
        return 1;
    if (c < 0x80)
        return 0;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (is_ahead(r, wide[i]))
            return strlen(wide[i]);
    /* U+2000 to U+200A */
    if (c == 0xE2 && peg__json5_peek(r, 1) == 0x80 && peg__json5_peek(r, 2) >= 0x80 &&
        peg__json5_peek(r, 2) <= 0x8A)
        return 3;
    return is_separator(r) ? 3 : 0;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
    return c != END && peg__hex_value((char)c) >= 0;
}

static bool is_ascii_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

/* ---- space and comments -------------------------------------------------------------------- */

static void skip_line(struct peg__json5 *r)
{
    while (peg__json5_peek(r, 0) != END && line_end_len(r) == 0)
        r->at++;
}

static peg_status skip_comment(struct peg__json5 *r)
{
    const char *const start = r->text.ptr + r->at + 2;
    const char *const end = r->text.ptr + r->text.len;
    const char *star = start;

    while ((star = memchr(star, '*', (size_t)(end - star))) && star + 1 < end && star[1] != '/')
        star++;
    if (!star || star + 1 >= end)
        return peg__json5_fail(r, r->at, "this comment does not end; close it with */");
    r->at += (size_t)(star - start) + 4;
    return PEG_OK;
}

peg_status peg__json5_skip_space(struct peg__json5 *r)
{
    for (;;) {
        const size_t n = space_len(r);
        peg_status status;

        r->at += n;
        if (n > 0)
            continue;
        if (is_ahead(r, "//")) {
            skip_line(r);
        } else if (is_ahead(r, "/*")) {
            status = skip_comment(r);
            if (status)
                return status;
        } else {
            return PEG_OK;
        }
    }
}

/* ---- strings ------------------------------------------------------------------------------- */

/* A byte that stands for itself. */
static peg_status rewrite_byte(struct peg__json5 *r)
{
    const int c = peg__json5_peek(r, 0);

    if (c == END)
        return PEG_OK; /* whoever reads on will say so */
    if (c == '"')
        peg__buf_puts(&r->out, "\\\"");
    else if (c < 0x20)
        peg__buf_printf(&r->out, "\\u%04x", (unsigned)c);
    else
        peg__buf_putc(&r->out, (char)c);
    r->at++;
    return PEG_OK;
}

/* Behind a backslash. What JSON writes in the same way is copied; half a surrogate pair is left to
 * the parser to refuse. */
static peg_status rewrite_escape(struct peg__json5 *r)
{
    const int c = peg__json5_peek(r, 0);
    const size_t n_hex = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    const size_t n_line_end = line_end_len(r);

    if (n_line_end) { /* the string goes on in the next line */
        r->at += n_line_end;
        return PEG_OK;
    }
    for (size_t i = 1; i <= n_hex; i++)
        if (!is_hex(peg__json5_peek(r, i)))
            return peg__json5_fail(r, r->at - 1,
                                   "expected \\x with two or \\u with four hexadecimal digits");
    if (is_digit(c) && (c != '0' || is_digit(peg__json5_peek(r, 1))))
        return peg__json5_fail(r, r->at - 1,
                               "there are no octal escapes; write \\x with two digits");
    if (c == 'v' || c == '0')
        peg__buf_puts(&r->out, c == 'v' ? "\\u000b" : "\\u0000");
    else if (n_hex)
        peg__buf_printf(&r->out, "\\u%s%.*s", c == 'x' ? "00" : "", (int)n_hex,
                        r->text.ptr + r->at + 1);
    else if (c > 0 && strchr("\\\"bfnrt", c))
        peg__buf_printf(&r->out, "\\%c", c);
    else
        return rewrite_byte(r); /* it stands for itself */
    r->at += 1 + n_hex;
    return PEG_OK;
}

static void copy_plain(struct peg__json5 *r)
{
    size_t n = 0;

    while (peg__json5_peek(r, n) >= 0x20 && !strchr("\\\"'", peg__json5_peek(r, n)))
        n++;
    peg__buf_add(&r->out, r->text.ptr + r->at, n);
    r->at += n;
}

peg_status peg__json5_string(struct peg__json5 *r)
{
    const int quote = peg__json5_peek(r, 0);

    r->at++;
    peg__buf_putc(&r->out, '"');
    while (copy_plain(r), peg__json5_peek(r, 0) != quote) {
        const int c = peg__json5_peek(r, 0);
        peg_status status = PEG_OK;

        if (c == END || c == '\n' || c == '\r')
            return peg__json5_fail(
                r, r->token,
                "this string does not end in its line; close it with the quote that "
                "began it, or end the line with a backslash");
        if (c == '\\') {
            r->at++;
            status = rewrite_escape(r);
        } else {
            status = rewrite_byte(r);
        }
        if (status)
            return status;
    }
    peg__buf_putc(&r->out, '"');
    r->at++;
    return PEG_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Bytes of what looks like a name: how far JavaScript's identifiers can reach. */
static size_t name_len(struct peg__json5 *r)
{
    const size_t start = r->at;
    size_t len;

    for (;;) {
        if (is_ascii_name(peg__json5_peek(r, 0)) ||
            (peg__json5_peek(r, 0) >= 0x80 && space_len(r) == 0))
            r->at++;
        else if (is_ahead(r, "\\u"))
            r->at += 2;
        else
            break;
    }
    len = r->at - start;
    r->at = start;
    return len;
}

static bool is_plain_name(peg_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_ascii_name((unsigned char)name.ptr[i]))
            return false;
    return name.len > 0 && !is_digit((unsigned char)name.ptr[0]);
}

/* IdentifierName of ECMAScript 5.1, section 7.6. */
static peg_status make_name_pattern(struct peg__json5 *r)
{
    static const peg_str pattern = PEG_LIT(
        "\\A[$_\\p{L}\\p{Nl}][$_\\p{L}\\p{Nl}\\p{Mn}\\p{Mc}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]*+\\z");

    if (!r->matcher)
        r->matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    if (!r->matcher)
        return peg__fail_nomem(r->reterr);
    return r->name ? PEG_OK : peg__regex_new(pattern, false, &r->name, r->reterr);
}

static peg_status check_name(struct peg__json5 *r, peg_str name)
{
    const peg_status status = make_name_pattern(r);

    if (status)
        return status;
    switch (peg__regex_match(r->name, r->matcher, name)) {
    case PEG__MATCH_YES:
        return PEG_OK;
    case PEG__MATCH_NOMEM:
        return peg__fail_nomem(r->reterr);
    case PEG__MATCH_LIMIT:
        peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                  "this name is too long to be checked; put it in quotes");
        peg__error_at(r->reterr, r->text, r->token);
        return PEG_ELIMIT;
    case PEG__MATCH_NO:
        break;
    }
    return peg__json5_fail(r, r->token, "this can be a name only in quotes");
}

/* A name with escapes or letters beyond ASCII is a JSON string once it has quotes, so the parser
 * tells what the escapes stand for. */
static peg_status check_written_name(struct peg__json5 *r, size_t start)
{
    const peg_str quoted = peg__str_from(peg__buf_view(&r->out), start);
    peg_json_doc *doc = NULL;
    peg_status status;

    if (r->out.status)
        return PEG_OK; /* whoever takes the buffer will say so */
    status = peg_json_parse(quoted, NULL, &doc, r->reterr);
    if (status == PEG_EPARSE)
        return peg__json5_fail(r, r->token,
                               "expected \\u with four hexadecimal digits, or a name in quotes");
    if (status)
        return status;
    status = check_name(r, peg_json_str(peg_json_root(doc)));
    peg_json_doc_free(doc);
    return status;
}

peg_status peg__json5_name(struct peg__json5 *r)
{
    const peg_str name = {r->text.ptr + r->at, name_len(r)};
    const size_t start = r->out.len;

    if (name.len == 0)
        return peg__json5_fail(r, r->at,
                               "expected a name or }; names need quotes unless they are letters, "
                               "digits, $ and _ only");
    peg__buf_putc(&r->out, '"');
    peg__buf_str(&r->out, name);
    peg__buf_putc(&r->out, '"');
    r->at += name.len;
    return is_plain_name(name) ? PEG_OK : check_written_name(r, start);
}

/* ---- numbers and words --------------------------------------------------------------------- */

static size_t digits_len(const struct peg__json5 *r, size_t i)
{
    const size_t start = i;

    while (is_digit(peg__json5_peek(r, i)))
        i++;
    return i - start;
}

/* Bytes of the decimal number i places from here; 0 if it is none. */
static size_t decimal_len(const struct peg__json5 *r, size_t i)
{
    const size_t n_whole = digits_len(r, i);
    size_t n_fraction = 0;
    size_t end = i + n_whole;

    if (n_whole > 1 && peg__json5_peek(r, i) == '0')
        return 0;
    if (peg__json5_peek(r, end) == '.') {
        n_fraction = digits_len(r, end + 1);
        end += 1 + n_fraction;
    }
    if (n_whole + n_fraction == 0)
        return 0;
    if ((peg__json5_peek(r, end) | 0x20) == 'e') {
        const size_t sign =
            peg__json5_peek(r, end + 1) == '+' || peg__json5_peek(r, end + 1) == '-';
        const size_t n_exponent = digits_len(r, end + 1 + sign);

        return n_exponent ? end + 1 + sign + n_exponent - i : 0;
    }
    return end - i;
}

static size_t hex_len(const struct peg__json5 *r, size_t i)
{
    size_t n = 2;

    while (is_hex(peg__json5_peek(r, i + n)))
        n++;
    return n > 2 ? n : 0;
}

static peg_status rewrite_number(struct peg__json5 *r)
{
    const size_t sign = peg__json5_peek(r, 0) == '+' || peg__json5_peek(r, 0) == '-';
    const bool is_based =
        peg__json5_peek(r, sign) == '0' && (peg__json5_peek(r, sign + 1) | 0x20) == 'x';
    const size_t len = is_based ? hex_len(r, sign) : decimal_len(r, sign);
    const peg_str number = {r->text.ptr + r->at, sign + len};

    if (len == 0)
        return peg__json5_fail(
            r, r->token,
            "this is no number; write it like -1, .5, 1e6 or 0x1F, without a zero before "
            "other digits");
    if (!peg__yaml_number(number, is_based ? 16 : 10, &r->out)) {
        peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                  "a number has at most %d digits; shorten it or write it as a string",
                  PEG_LIMIT_NUMBER_DIGITS);
        peg__error_at(r->reterr, r->text, r->token);
        return PEG_ELIMIT;
    }
    r->at += number.len;
    return PEG_OK;
}

/* true, false, null, or what no value can be: Infinity, NaN, a word without quotes. */
static peg_status rewrite_word(struct peg__json5 *r)
{
    const size_t sign = peg__json5_peek(r, 0) == '+' || peg__json5_peek(r, 0) == '-';
    peg_str word;

    r->at += sign;
    word = peg__strn(r->text.ptr + r->at, name_len(r));
    if (peg__str_is(word, "Infinity") || peg__str_is(word, "NaN"))
        return fail_not_finite(r);
    if (sign ||
        (!peg__str_is(word, "true") && !peg__str_is(word, "false") && !peg__str_is(word, "null")))
        return peg__json5_fail(r, r->token,
                               peg__json5_peek(r, 0) == END
                                   ? "expected a value, but the text ends here"
                                   : "expected a value; strings need quotes");
    peg__buf_str(&r->out, word);
    r->at += word.len;
    return PEG_OK;
}

peg_status peg__json5_scalar(struct peg__json5 *r)
{
    const int c = peg__json5_peek(r, 0);
    const int unsigned_c = peg__json5_peek(r, c == '+' || c == '-');

    if (c == '"' || c == '\'')
        return peg__json5_string(r);
    if (is_digit(unsigned_c) || unsigned_c == '.')
        return rewrite_number(r);
    return rewrite_word(r);
}
