/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON5 is rewritten as JSON, token by token, and parsed by peg_json_parse(), which finds duplicate
 * names and checks numbers. Read it from the bottom up:
 *
 *   peg__json5_parse -> parse_rewritten -> rewrite -> rewrite_token
 *
 * Where the parser rejects what was written, the text is rewritten again up to that place, to find
 * its offset in the JSON5 (report_place).
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/regex.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/yaml/yaml.h"

/* A character of a text becomes at most "\u0000". */
enum { END = -1, GROWTH = 6 };

enum expected {
    EXPECT_VALUE,
    EXPECT_ITEM_OR_END,
    EXPECT_NAME_OR_END,
    EXPECT_END_OR_COMMA,
    EXPECT_NOTHING, /* the text is read */
};

/* Where rewriting stands. The first failure of `out` sticks and is reported at the end. */
struct rewriter {
    peg_str text; /* valid UTF-8 */
    size_t at;
    size_t token;        /* where the current token starts */
    struct peg__buf out; /* JSON */
    bool owes_comma;     /* written before the next item, so not before an end */
    enum expected expected;
    unsigned max_depth;
    unsigned depth;
    uint8_t is_object[PEG_LIMIT_JSON_DEPTH_MAX / 8]; /* a bit a level */
    struct peg__regex *name; /* what may be a name; made for the first one beyond ASCII */
    struct peg__matcher *matcher;
    peg_error *reterr;
};

/* The byte i places from here, or END. */
static int peek_byte(const struct rewriter *r, size_t i)
{
    return i < r->text.len - r->at ? (unsigned char)r->text.ptr[r->at + i] : END;
}

/* ---- errors -------------------------------------------------------------------------------- */

static peg_status fail_syntax(struct rewriter *r, size_t at, const char *what)
{
    peg__fail(r->reterr, PEG_EPARSE, "E_JSON_SYNTAX", "%s", what);
    peg__error_at(r->reterr, r->text, at);
    return PEG_EPARSE;
}

/* At the current token. */
static peg_status fail_limit(struct rewriter *r, const char *code, const char *what)
{
    peg__fail(r->reterr, PEG_ELIMIT, code, "%s", what);
    peg__error_at(r->reterr, r->text, r->token);
    return PEG_ELIMIT;
}

/* ---- characters ---------------------------------------------------------------------------- */

static bool is_ahead(const struct rewriter *r, const char *bytes)
{
    return peg__str_starts(peg__str_from(r->text, r->at), peg__str(bytes));
}

/* LINE SEPARATOR and PARAGRAPH SEPARATOR, which JavaScript takes for line ends. */
static bool is_separator(const struct rewriter *r)
{
    return is_ahead(r, "\u2028") || is_ahead(r, "\u2029");
}

/* Bytes of the line end that comes next, CR LF as one; 0 if none. */
static size_t line_end_len(const struct rewriter *r)
{
    if (peek_byte(r, 0) == '\r')
        return peek_byte(r, 1) == '\n' ? 2 : 1;
    if (peek_byte(r, 0) == '\n')
        return 1;
    return is_separator(r) ? 3 : 0;
}

/* Bytes of the space that comes next: ASCII's, the BOM and Unicode's category Zs; 0 if none. */
static size_t space_len(const struct rewriter *r)
{
    static const char *const wide[] = {"\u00A0", "\uFEFF", "\u1680", "\u202F", "\u205F", "\u3000"};
    const int c = peek_byte(r, 0);

    if (c == ' ' || (c >= '\t' && c <= '\r'))
        return 1;
    if (c < 0x80)
        return 0;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (is_ahead(r, wide[i]))
            return strlen(wide[i]);
    /* U+2000 to U+200A */
    if (c == 0xE2 && peek_byte(r, 1) == 0x80 && peek_byte(r, 2) >= 0x80 && peek_byte(r, 2) <= 0x8A)
        return 3;
    return is_separator(r) ? 3 : 0;
}

static bool is_hex(int c)
{
    return c != END && peg__hex_value((char)c) >= 0;
}

static bool is_ascii_name(int c)
{
    return peg__is_alnum(c) || c == '_' || c == '$';
}

/* ---- space and comments -------------------------------------------------------------------- */

static void skip_line(struct rewriter *r)
{
    while (peek_byte(r, 0) != END && line_end_len(r) == 0)
        r->at++;
}

static peg_status skip_comment(struct rewriter *r)
{
    const char *const start = r->text.ptr + r->at + 2;
    const char *const end = r->text.ptr + r->text.len;
    const char *star = start;

    while ((star = memchr(star, '*', (size_t)(end - star))) && star + 1 < end && star[1] != '/')
        star++;
    if (!star || star + 1 >= end)
        return fail_syntax(r, r->at, "this comment does not end; close it with */");
    r->at += (size_t)(star - start) + 4;
    return PEG_OK;
}

static peg_status skip_space_and_comments(struct rewriter *r)
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
static peg_status rewrite_byte(struct rewriter *r)
{
    const int c = peek_byte(r, 0);

    if (c == END)
        return PEG_OK; /* the caller reports the end */
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
static peg_status rewrite_escape(struct rewriter *r)
{
    const int c = peek_byte(r, 0);
    const size_t n_hex = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    const size_t n_line_end = line_end_len(r);

    if (n_line_end) { /* the string goes on in the next line */
        r->at += n_line_end;
        return PEG_OK;
    }
    for (size_t i = 1; i <= n_hex; i++)
        if (!is_hex(peek_byte(r, i)))
            return fail_syntax(r, r->at - 1,
                               "expected \\x with two or \\u with four hexadecimal digits");
    if (peg__is_digit(c) && (c != '0' || peg__is_digit(peek_byte(r, 1))))
        return fail_syntax(r, r->at - 1, "there are no octal escapes; write \\x with two digits");
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

static void copy_plain_bytes(struct rewriter *r)
{
    size_t n = 0;

    while (peek_byte(r, n) >= 0x20 && !strchr("\\\"'", peek_byte(r, n)))
        n++;
    peg__buf_add(&r->out, r->text.ptr + r->at, n);
    r->at += n;
}

static peg_status rewrite_string(struct rewriter *r)
{
    const int quote = peek_byte(r, 0);

    r->at++;
    peg__buf_putc(&r->out, '"');
    while (copy_plain_bytes(r), peek_byte(r, 0) != quote) {
        const int c = peek_byte(r, 0);
        peg_status status = PEG_OK;

        if (c == END || c == '\n' || c == '\r')
            return fail_syntax(r, r->token,
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
static size_t name_len(struct rewriter *r)
{
    const size_t start = r->at;
    size_t len;

    for (;;) {
        if (is_ascii_name(peek_byte(r, 0)) || (peek_byte(r, 0) >= 0x80 && space_len(r) == 0))
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
    return name.len > 0 && !peg__is_digit((unsigned char)name.ptr[0]);
}

/* IdentifierName of ECMAScript 5.1, section 7.6. */
static peg_status make_name_pattern(struct rewriter *r)
{
    static const peg_str pattern = PEG_LIT(
        "\\A[$_\\p{L}\\p{Nl}][$_\\p{L}\\p{Nl}\\p{Mn}\\p{Mc}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]*+\\z");

    if (!r->matcher)
        r->matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    if (!r->matcher)
        return peg__fail_nomem(r->reterr);
    return r->name ? PEG_OK : peg__regex_new(pattern, false, &r->name, r->reterr);
}

static peg_status match_name(struct rewriter *r, peg_str name)
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
        return fail_limit(r, "E_JSON_TOO_LARGE",
                          "this name is too long to be checked; put it in quotes");
    case PEG__MATCH_NO:
        break;
    }
    return fail_syntax(r, r->token, "this can be a name only in quotes");
}

/* A name with escapes or letters beyond ASCII is a JSON string once it has quotes, so the parser
 * resolves the escapes. */
static peg_status check_written_name(struct rewriter *r, size_t start)
{
    const peg_str quoted = peg__str_from(peg__buf_view(&r->out), start);
    peg_json_doc *doc = NULL;
    peg_status status;

    if (r->out.status)
        return PEG_OK; /* reported when the buffer is taken */
    status = peg_json_parse(quoted, NULL, &doc, r->reterr);
    if (status == PEG_EPARSE)
        return fail_syntax(r, r->token,
                           "expected \\u with four hexadecimal digits, or a name in quotes");
    if (status)
        return status;
    status = match_name(r, peg_json_str(peg_json_root(doc)));
    peg_json_doc_free(doc);
    return status;
}

static peg_status rewrite_name(struct rewriter *r)
{
    const peg_str name = {r->text.ptr + r->at, name_len(r)};
    const size_t start = r->out.len;

    if (name.len == 0)
        return fail_syntax(r, r->at,
                           "expected a name or }; names need quotes unless they are letters, "
                           "digits, $ and _ only");
    peg__buf_putc(&r->out, '"');
    peg__buf_str(&r->out, name);
    peg__buf_putc(&r->out, '"');
    r->at += name.len;
    return is_plain_name(name) ? PEG_OK : check_written_name(r, start);
}

/* ---- numbers and words --------------------------------------------------------------------- */

static size_t digits_len(const struct rewriter *r, size_t i)
{
    const size_t start = i;

    while (peg__is_digit(peek_byte(r, i)))
        i++;
    return i - start;
}

/* Bytes of the decimal number i places from here; 0 if it is none. */
static size_t decimal_len(const struct rewriter *r, size_t i)
{
    const size_t n_whole = digits_len(r, i);
    size_t n_fraction = 0;
    size_t end = i + n_whole;

    if (n_whole > 1 && peek_byte(r, i) == '0')
        return 0;
    if (peek_byte(r, end) == '.') {
        n_fraction = digits_len(r, end + 1);
        end += 1 + n_fraction;
    }
    if (n_whole + n_fraction == 0)
        return 0;
    if ((peek_byte(r, end) | 0x20) == 'e') {
        const size_t sign = peek_byte(r, end + 1) == '+' || peek_byte(r, end + 1) == '-';
        const size_t n_exponent = digits_len(r, end + 1 + sign);

        return n_exponent ? end + 1 + sign + n_exponent - i : 0;
    }
    return end - i;
}

static size_t hex_len(const struct rewriter *r, size_t i)
{
    size_t n = 2;

    while (is_hex(peek_byte(r, i + n)))
        n++;
    return n > 2 ? n : 0;
}

static peg_status rewrite_number(struct rewriter *r)
{
    const size_t sign = peek_byte(r, 0) == '+' || peek_byte(r, 0) == '-';
    const bool is_based = peek_byte(r, sign) == '0' && (peek_byte(r, sign + 1) | 0x20) == 'x';
    const size_t len = is_based ? hex_len(r, sign) : decimal_len(r, sign);
    const peg_str number = {r->text.ptr + r->at, sign + len};

    if (len == 0)
        return fail_syntax(
            r, r->token,
            "this is no number; write it like -1, .5, 1e6 or 0x1F, without a zero before "
            "other digits");
    if (!peg__yaml_number(number, is_based ? 16 : 10, &r->out))
        return fail_limit(r, "E_JSON_TOO_LARGE",
                          "this number has too many digits; shorten it or write it as a string");
    r->at += number.len;
    return PEG_OK;
}

/* true, false, null, or what no value can be: Infinity, NaN, a word without quotes. */
static peg_status rewrite_word(struct rewriter *r)
{
    const size_t sign = peek_byte(r, 0) == '+' || peek_byte(r, 0) == '-';
    peg_str word;

    r->at += sign;
    word = peg__strn(r->text.ptr + r->at, name_len(r));
    if (peg__str_is(word, "Infinity") || peg__str_is(word, "NaN"))
        return fail_syntax(
            r, r->token, "JSON has no value for Infinity and NaN; write null or a string instead");
    if (sign ||
        (!peg__str_is(word, "true") && !peg__str_is(word, "false") && !peg__str_is(word, "null")))
        return fail_syntax(r, r->token,
                           peek_byte(r, 0) == END ? "expected a value, but the text ends here"
                                                  : "expected a value; strings need quotes");
    peg__buf_str(&r->out, word);
    r->at += word.len;
    return PEG_OK;
}

static peg_status rewrite_scalar(struct rewriter *r)
{
    const int c = peek_byte(r, 0);
    const int unsigned_c = peek_byte(r, c == '+' || c == '-');

    if (c == '"' || c == '\'')
        return rewrite_string(r);
    if (peg__is_digit(unsigned_c) || unsigned_c == '.')
        return rewrite_number(r);
    return rewrite_word(r);
}

/* ---- values -------------------------------------------------------------------------------- */

static bool is_in_object(const struct rewriter *r)
{
    return r->is_object[(r->depth - 1) / 8] >> ((r->depth - 1) % 8) & 1;
}

static peg_status begin_container(struct rewriter *r)
{
    const bool is_object = peek_byte(r, 0) == '{';
    const unsigned bit = 1U << (r->depth % 8);
    uint8_t *byte = &r->is_object[r->depth / 8];

    if (r->depth == r->max_depth)
        return fail_limit(r, "E_JSON_TOO_DEEP",
                          "arrays and objects nest deeper than max_depth; flatten the value or "
                          "raise the limit");
    *byte = (uint8_t)(is_object ? *byte | bit : *byte & ~bit);
    r->depth++;
    r->at++;
    peg__buf_putc(&r->out, is_object ? '{' : '[');
    r->expected = is_object ? EXPECT_NAME_OR_END : EXPECT_ITEM_OR_END;
    return PEG_OK;
}

static peg_status read_member_name(struct rewriter *r)
{
    const int c = peek_byte(r, 0);
    peg_status status = c == '"' || c == '\'' ? rewrite_string(r) : rewrite_name(r);

    if (!status)
        status = skip_space_and_comments(r);
    if (status)
        return status;
    if (peek_byte(r, 0) != ':')
        return fail_syntax(r, r->at, "expected : after the name");
    r->at++;
    peg__buf_putc(&r->out, ':');
    r->expected = EXPECT_VALUE;
    return PEG_OK;
}

static peg_status read_value(struct rewriter *r)
{
    if (peek_byte(r, 0) == '[' || peek_byte(r, 0) == '{')
        return begin_container(r);
    r->expected = EXPECT_END_OR_COMMA;
    return rewrite_scalar(r);
}

static bool is_at_end(const struct rewriter *r)
{
    return r->depth > 0 && peek_byte(r, 0) == (is_in_object(r) ? '}' : ']');
}

static peg_status end_container(struct rewriter *r)
{
    peg__buf_putc(&r->out, (char)peek_byte(r, 0));
    r->owes_comma = false;
    r->at++;
    r->depth--;
    r->expected = EXPECT_END_OR_COMMA;
    return PEG_OK;
}

static void pay_comma(struct rewriter *r)
{
    if (r->owes_comma)
        peg__buf_putc(&r->out, ',');
    r->owes_comma = false;
}

/* Behind a value. */
static peg_status end_value(struct rewriter *r)
{
    if (r->depth == 0) {
        if (peek_byte(r, 0) != END)
            return fail_syntax(r, r->at, "expected nothing after the value; remove what follows");
        r->expected = EXPECT_NOTHING;
        return PEG_OK;
    }
    if (is_at_end(r))
        return end_container(r);
    if (peek_byte(r, 0) != ',')
        return fail_syntax(r, r->at,
                           is_in_object(r) ? "expected , or } after the member"
                                           : "expected , or ] after the item");
    r->at++;
    r->owes_comma = true;
    r->expected = is_in_object(r) ? EXPECT_NAME_OR_END : EXPECT_ITEM_OR_END;
    return PEG_OK;
}

static peg_status rewrite_token(struct rewriter *r)
{
    const peg_status status = skip_space_and_comments(r);

    if (status)
        return status;
    r->token = r->at;
    if (r->expected == EXPECT_END_OR_COMMA)
        return end_value(r);
    if (r->expected != EXPECT_VALUE && is_at_end(r))
        return end_container(r);
    pay_comma(r);
    return r->expected == EXPECT_NAME_OR_END ? read_member_name(r) : read_value(r);
}

/* Writes JSON for the text, up to its end or to what stands for the byte at `stop`. */
static peg_status rewrite(struct rewriter *r, size_t stop)
{
    r->at = 0;
    r->depth = 0;
    r->owes_comma = false;
    r->expected = EXPECT_VALUE;
    peg__buf_clear(&r->out);
    while (r->expected != EXPECT_NOTHING && r->out.len <= stop && !r->out.status) {
        const peg_status status = rewrite_token(r);

        if (status)
            return status;
    }
    return r->out.status ? peg__fail_nomem(r->reterr) : PEG_OK;
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* Reports an error of the parser at its place in the JSON5 text. */
static peg_status report_place(struct rewriter *r, const peg_error *why)
{
    peg_status status;

    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(r->reterr);
    status = rewrite(r, why->offset);
    if (status)
        return status;
    peg__fail(r->reterr, why->status, why->code, "%s", why->message);
    peg__error_at(r->reterr, r->text, r->token);
    return why->status;
}

static peg_status parse_rewritten(struct rewriter *r, const peg_json_options *options,
                                  peg_json_doc **ret_doc)
{
    peg_json_options inner = *options;
    peg_error why;
    peg_status status = rewrite(r, SIZE_MAX);

    if (status)
        return status;
    inner.max_bytes = PEG_LIMIT_JSON_BYTES_MAX;
    if (peg_json_parse(peg__buf_view(&r->out), &inner, ret_doc, &why) == PEG_OK)
        return PEG_OK;
    return report_place(r, &why);
}

/* The text is no UTF-8; finds where. */
static peg_status fail_utf8(peg_str text, peg_error *reterr)
{
    size_t at = 0;
    size_t n = 1;

    for (; n <= 4 && at + n <= text.len; n++) {
        if (!peg__utf8_is_valid(peg__strn(text.ptr + at, n)))
            continue;
        at += n;
        n = 0;
    }
    peg__fail(reterr, PEG_EPARSE, "E_JSON_UTF8", "these bytes are not UTF-8");
    peg__error_at(reterr, text, at);
    return PEG_EPARSE;
}

static size_t max_bytes(const peg_json_options *options)
{
    const size_t max = options->max_bytes ? options->max_bytes : PEG_LIMIT_JSON_BYTES;

    return max < PEG_LIMIT_JSON_BYTES_MAX / GROWTH ? max : PEG_LIMIT_JSON_BYTES_MAX / GROWTH;
}

peg_status peg__json5_parse(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                            peg_error *reterr)
{
    static const peg_json_options defaults = {PEG_JSON_OPTIONS_INIT};
    const peg_json_options *o = options ? options : &defaults;
    const unsigned depth = o->max_depth ? o->max_depth : PEG_LIMIT_JSON_DEPTH;
    struct rewriter r = {
        .text = {text.len ? text.ptr : "", text.len},
        .out = PEG__BUF(PEG_LIMIT_JSON_BYTES_MAX),
        .max_depth = depth < PEG_LIMIT_JSON_DEPTH_MAX ? depth : PEG_LIMIT_JSON_DEPTH_MAX,
        .reterr = reterr,
    };
    peg_status status;

    if (text.len > max_bytes(o))
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                         "the text has %zu bytes, more than max_bytes = %zu; send less or raise "
                         "the limit",
                         text.len, max_bytes(o));
    if (!peg__utf8_is_valid(text))
        return fail_utf8(text, reterr);
    status = parse_rewritten(&r, o, ret_doc);
    peg__buf_free(&r.out);
    peg__regex_free(r.name);
    peg__matcher_free(r.matcher);
    return status;
}
