/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the text of a JSONPath to what eval.c runs: first its tokens, then one function for each
 * rule of RFC 9535, in the order of its grammar. The rules are recursive (a selector has a filter,
 * a filter has queries, a query has selectors); enter_nesting() bounds it by
 * PEG_LIMIT_PATH_NESTING.
 */

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "json/internal.h"
#include "json/number/number.h"
#include "json/path/path.h"

struct reader {
    peg_str text; /* valid UTF-8 in the path's arena, with padding behind it */
    size_t at;
    peg_json_path *path;
    unsigned nesting;
    peg_error *reterr;
};

/* The byte at the reader's place, or 0 at the end: no token contains a NUL. */
static unsigned char peek_char(const struct reader *r)
{
    return r->at < r->text.len ? (unsigned char)r->text.ptr[r->at] : 0;
}

/* Of an index or slice: what every double holds exactly (RFC 7493). */
#define MAX_INTEGER ((INT64_C(1) << 53) - 1)

static peg_status fail_syntax(const struct reader *r, size_t at, const char *expected)
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

static void skip_blanks(struct reader *r)
{
    while (peek_char(r) && strchr(" \t\n\r", peek_char(r)))
        r->at++;
}

static bool accept(struct reader *r, const char *token)
{
    if (!peg__str_starts(peg__str_from(r->text, r->at), peg__str(token)))
        return false;
    r->at += strlen(token);
    return true;
}

/* ---- names and strings ------------------------------------------------------ */

static bool starts_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static peg_str read_plain_name(struct reader *r)
{
    const size_t start = r->at;

    while (starts_name(peek_char(r)) || peg__is_digit(peek_char(r)))
        r->at++;
    return peg__strn(r->text.ptr + start, r->at - start);
}

/* The four hex digits behind \u, or -1. */
static int read_unit(struct reader *r)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = peg__hex_value((char)peek_char(r));

        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
        r->at++;
    }
    return unit;
}

/* Behind \u: one unit, or two of a surrogate pair; -1 if it is neither. */
static int32_t read_escaped_character(struct reader *r)
{
    const int high = read_unit(r);
    int low;

    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || !accept(r, "\\u"))
        return -1;
    low = read_unit(r);
    if (low < 0xDC00 || low > 0xDFFF)
        return -1;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* Behind a backslash: the character it stands for, or -1. */
static int32_t read_path_escape(struct reader *r, char quote)
{
    static const char letters[] = "bfnrt/\\";
    static const char meanings[] = "\b\f\n\r\t/\\";
    const unsigned char c = peek_char(r);
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
static size_t quoted_length(const struct reader *r, char quote)
{
    size_t end = r->at;

    while (end < r->text.len && r->text.ptr[end] != quote)
        end += r->text.ptr[end] == '\\' ? 2 : 1;
    return end - r->at;
}

static peg_status read_quoted(struct reader *r, peg_str *ret_string)
{
    const char quote = r->text.ptr[r->at++];
    /* Unescaping never makes a string longer. */
    char *copy = peg__arena_alloc_zero(&r->path->arena, quoted_length(r, quote) + PEG_JSON_PADDING);
    char *to = copy;

    if (!copy)
        return peg__fail_nomem(r->reterr);
    while (peek_char(r) != (unsigned char)quote) {
        const size_t at = r->at;
        int32_t c;

        if (peek_char(r) < 0x20)
            return fail_syntax(r, at, "a closing quote (control characters are escaped)");
        if (!accept(r, "\\")) {
            *to++ = r->text.ptr[r->at++];
            continue;
        }
        c = read_path_escape(r, quote);
        if (c < 0)
            return fail_syntax(r, at, "a valid escape such as \\n, \\\\ or \\u00e9");
        to = peg__utf8_put(to, (uint32_t)c);
    }
    r->at++;
    *ret_string = peg__strn(copy, (size_t)(to - copy));
    return PEG_OK;
}

/* ---- numbers and literals ----------------------------------------------------- */

static peg_status read_integer(struct reader *r, int64_t *ret_number)
{
    const size_t start = r->at;
    const bool is_negative = accept(r, "-");
    const size_t first = r->at;
    int64_t number = 0;

    for (; peg__is_digit(peek_char(r)); r->at++) {
        number = number * 10 + (peek_char(r) - '0');
        if (number > MAX_INTEGER)
            return fail_syntax(r, start, "an integer within +-(2^53 - 1)");
    }
    if (r->at == first || (r->text.ptr[first] == '0' && (r->at > first + 1 || is_negative)))
        return fail_syntax(r, start, "an integer without leading zero or minus zero");
    *ret_number = is_negative ? -number : number;
    return PEG_OK;
}

static peg_status read_number_literal(struct reader *r, peg_json *ret_value)
{
    const size_t start = r->at;

    while (peek_char(r) && strchr("+-.0123456789eE", peek_char(r)))
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
    return fail_syntax(r, start, "a number as JSON writes it");
}

static peg_status read_string_literal(struct reader *r, peg_json *ret_value)
{
    peg_str s;
    peg_status status = read_quoted(r, &s);

    if (status)
        return status;
    *ret_value = (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)s.len, .u.ptr = s.ptr};
    return PEG_OK;
}

static peg_status read_literal_value(struct reader *r, peg_json *ret_value)
{
    const unsigned char c = peek_char(r);
    const size_t start = r->at;
    peg_str word;

    if (c == '"' || c == '\'')
        return read_string_literal(r, ret_value);
    if (c == '-' || peg__is_digit(c))
        return read_number_literal(r, ret_value);

    word = read_plain_name(r);
    if (peg__str_is(word, "true"))
        *ret_value = (peg_json){.kind = PEG_JSON_BOOL, .u.truth = 1};
    else if (peg__str_is(word, "false"))
        *ret_value = (peg_json){.kind = PEG_JSON_BOOL};
    else if (peg__str_is(word, "null"))
        *ret_value = (peg_json){.kind = PEG_JSON_NULL};
    else
        return fail_syntax(r, start, "a literal, '@' or '$'");
    return PEG_OK;
}

/* A function's name is shown up to here. */
enum { SHOWN_BYTES = 40 };

static peg_status parse_segments(struct reader *r, struct peg__path_query *query);
static peg_status parse_or(struct reader *r, struct peg__path_expr **ret_expr);

/* Into a filter or parenthesis; the caller takes r->nesting back. */
static peg_status enter_nesting(struct reader *r)
{
    if (++r->nesting <= PEG_LIMIT_PATH_NESTING)
        return PEG_OK;
    peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_PATH_LIMIT",
              "filters and parentheses may be nested %d deep; write a flatter path",
              PEG_LIMIT_PATH_NESTING);
    peg__error_at(r->reterr, r->text, r->at);
    return PEG_ELIMIT;
}

/* ---- selectors ------------------------------------------------------------- */

/* Behind the start: end and step, each of them optional. */
static peg_status parse_slice(struct reader *r, struct peg__path_selector *selector)
{
    peg_status status = PEG_OK;

    selector->kind = PEG__PATH_SLICE;
    selector->step = 1;
    skip_blanks(r);
    if (peek_char(r) != ':' && peek_char(r) != ']' && peek_char(r) != ',') {
        status = read_integer(r, &selector->end);
        selector->has_end = true;
        skip_blanks(r);
    }
    if (status || !accept(r, ":"))
        return status;
    skip_blanks(r);
    if (peek_char(r) != ']' && peek_char(r) != ',')
        status = read_integer(r, &selector->step);
    return status;
}

static peg_status parse_index_or_slice(struct reader *r, struct peg__path_selector *selector)
{
    const unsigned char c = peek_char(r);
    size_t behind;

    if (c != ':' && c != '-' && (c < '0' || c > '9'))
        return fail_syntax(r, r->at, "a quoted name, '*', an index, a slice or a filter ('?')");
    if (c != ':') {
        const peg_status status = read_integer(r, &selector->start);

        if (status)
            return status;
        selector->has_start = true;
    }
    behind = r->at;
    skip_blanks(r);
    if (accept(r, ":"))
        return parse_slice(r, selector);
    r->at = behind;
    selector->kind = PEG__PATH_INDEX;
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_filter(struct reader *r, struct peg__path_selector *selector)
{
    struct peg__path_expr *filter = NULL;
    peg_status status = enter_nesting(r);

    skip_blanks(r);
    if (!status)
        status = parse_or(r, &filter);
    selector->kind = PEG__PATH_FILTER;
    selector->filter = filter;
    r->nesting--;
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_selector(struct reader *r, struct peg__path_selector **ret)
{
    struct peg__path_selector *selector = peg__arena_alloc_zero(&r->path->arena, sizeof(*selector));
    const unsigned char c = peek_char(r);

    if (!selector)
        return peg__fail_nomem(r->reterr);
    *ret = selector;
    if (c == '"' || c == '\'') {
        selector->kind = PEG__PATH_NAME;
        return read_quoted(r, &selector->name);
    }
    if (accept(r, "*")) {
        selector->kind = PEG__PATH_WILDCARD;
        return PEG_OK;
    }
    if (accept(r, "?"))
        return parse_filter(r, selector);
    return parse_index_or_slice(r, selector);
}

/* Behind '['.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_bracket(struct reader *r, struct peg__path_segment *segment)
{
    struct peg__path_selector **last = &segment->selectors;

    do {
        peg_status status;

        skip_blanks(r);
        status = parse_selector(r, last);
        if (status)
            return status;
        last = &(*last)->next;
        skip_blanks(r);
    } while (accept(r, ","));

    return accept(r, "]") ? PEG_OK : fail_syntax(r, r->at, "',' or ']'");
}

/* Behind '.' or '..'. */
static peg_status parse_shorthand(struct reader *r, struct peg__path_segment *segment)
{
    struct peg__path_selector *selector = peg__arena_alloc_zero(&r->path->arena, sizeof(*selector));

    if (!selector)
        return peg__fail_nomem(r->reterr);
    segment->selectors = selector;
    if (accept(r, "*")) {
        selector->kind = PEG__PATH_WILDCARD;
        return PEG_OK;
    }
    selector->kind = PEG__PATH_NAME;
    if (!starts_name(peek_char(r)))
        return fail_syntax(r, r->at, "a name or '*' (other names are written ['...'])");
    selector->name = read_plain_name(r);
    return PEG_OK;
}

/* ---- segments and queries --------------------------------------------------- */

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_segment(struct reader *r, struct peg__path_segment *segment)
{
    segment->is_descendant = accept(r, "..");
    if (accept(r, "["))
        return parse_bracket(r, segment);
    if (!segment->is_descendant)
        accept(r, ".");
    return parse_shorthand(r, segment);
}

static bool is_singular(const struct peg__path_segment *segment)
{
    const struct peg__path_selector *selector = segment->selectors;

    return !segment->is_descendant && !selector->next &&
           (selector->kind == PEG__PATH_NAME || selector->kind == PEG__PATH_INDEX);
}

/* Behind '$' or '@'. Blanks belong to the query only if a segment follows them.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_segments(struct reader *r, struct peg__path_query *query)
{
    struct peg__path_segment **last = &query->segments;
    struct peg__path_segment *previous = NULL;

    query->is_singular = true;
    for (;;) {
        const size_t behind = r->at;
        struct peg__path_segment *segment;
        peg_status status;

        skip_blanks(r);
        if (peek_char(r) != '.' && peek_char(r) != '[') {
            r->at = behind;
            return PEG_OK;
        }
        segment = peg__arena_alloc_zero(&r->path->arena, sizeof(*segment));
        if (!segment)
            return peg__fail_nomem(r->reterr);
        segment->slot = r->path->n_segments++;
        segment->previous = previous;
        *last = previous = segment;
        last = &segment->next;
        status = parse_segment(r, segment);
        if (status)
            return status;
        query->is_singular = query->is_singular && is_singular(segment);
    }
}

/* ---- expressions ------------------------------------------------------------ */

static struct peg__path_expr *new_expr(struct reader *r, enum peg__path_expr_kind kind)
{
    struct peg__path_expr *expr = peg__arena_alloc_zero(&r->path->arena, sizeof(*expr));

    if (expr)
        expr->kind = kind;
    else
        peg__fail_nomem(r->reterr);
    return expr;
}

/* Functions are refused by name, because "expected a literal" would puzzle who wrote one. */
static peg_status refuse_function(const struct reader *r)
{
    struct reader ahead = *r;
    const peg_str name = read_plain_name(&ahead);

    if (name.len == 0 || peek_char(&ahead) != '(')
        return PEG_OK;
    peg__fail(r->reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX",
              "the function %.*s() is unsupported: JSONPath here has no function extensions, "
              "compare values or test that they exist",
              name.len > SHOWN_BYTES ? SHOWN_BYTES : (int)name.len, name.ptr);
    peg__error_at(r->reterr, r->text, r->at);
    return PEG_EPARSE;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_operand(struct reader *r, struct peg__path_operand *operand)
{
    const peg_status status = refuse_function(r);

    if (status)
        return status;
    operand->query.is_absolute = peek_char(r) == '$';
    if (accept(r, "$") || accept(r, "@"))
        return parse_segments(r, &operand->query);
    operand->is_literal = true;
    return read_literal_value(r, &operand->literal);
}

static bool accept_comparison(struct reader *r, enum peg__path_comparison *ret)
{
    static const struct {
        const char *token; /* the longer one first where both could match */
        enum peg__path_comparison comparison;
    } table[] = {
        {"==", PEG__PATH_EQ}, {"!=", PEG__PATH_NE}, {"<=", PEG__PATH_LE},
        {">=", PEG__PATH_GE}, {"<", PEG__PATH_LT},  {">", PEG__PATH_GT},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!accept(r, table[i].token))
            continue;
        *ret = table[i].comparison;
        return true;
    }
    return false;
}

static peg_status need_singular(const struct reader *r, size_t at,
                                const struct peg__path_operand *operand)
{
    if (operand->is_literal || operand->query.is_singular)
        return PEG_OK;
    return fail_syntax(r, at, "a query for one value (names and indexes only) to compare");
}

/* A comparison, or the test that a query finds something.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_test(struct reader *r, struct peg__path_expr *expr)
{
    const size_t start = r->at;
    peg_status status = parse_operand(r, &expr->left);
    const size_t behind = r->at;
    size_t right;

    if (status)
        return status;
    skip_blanks(r);
    if (!accept_comparison(r, &expr->comparison)) {
        if (expr->left.is_literal)
            return fail_syntax(r, r->at, "a comparison behind the literal");
        r->at = behind;
        expr->query = expr->left.query;
        return PEG_OK;
    }

    expr->kind = PEG__PATH_COMPARE;
    status = need_singular(r, start, &expr->left);
    if (status)
        return status;
    skip_blanks(r);
    right = r->at;
    status = parse_operand(r, &expr->right);
    return status ? status : need_singular(r, right, &expr->right);
}

/* Behind '('.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_parenthesis(struct reader *r, struct peg__path_expr **ret_expr)
{
    peg_status status = enter_nesting(r);

    skip_blanks(r);
    if (!status)
        status = parse_or(r, ret_expr);
    r->nesting--;
    if (status)
        return status;
    skip_blanks(r);
    return accept(r, ")") ? PEG_OK : fail_syntax(r, r->at, "')', '&&' or '||'");
}

/* A comparison or a test by itself; `parts` of a negation if it stands behind '!'.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_plain(struct reader *r, bool is_negated, struct peg__path_expr **ret_expr)
{
    struct peg__path_expr *expr = *ret_expr = new_expr(r, PEG__PATH_EXISTS);
    const size_t start = r->at;
    peg_status status;

    if (!expr)
        return PEG_ENOMEM;
    status = parse_test(r, expr);
    if (!status && is_negated && expr->kind == PEG__PATH_COMPARE)
        return fail_syntax(r, start, "'(' (a comparison is negated in parentheses)");
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_basic(struct reader *r, struct peg__path_expr **ret_expr)
{
    const bool is_negated = accept(r, "!");

    if (is_negated) {
        *ret_expr = new_expr(r, PEG__PATH_NOT);
        if (!*ret_expr)
            return PEG_ENOMEM;
        ret_expr = &(*ret_expr)->parts;
        skip_blanks(r);
    }
    return accept(r, "(") ? parse_parenthesis(r, ret_expr) : parse_plain(r, is_negated, ret_expr);
}

/* Parts with `token` between them; one part alone stands for itself.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_chain(struct reader *r, enum peg__path_expr_kind kind, const char *token,
                              struct peg__path_expr **ret_expr)
{
    struct peg__path_expr *first = NULL;
    struct peg__path_expr **last = &first;
    size_t behind;

    do {
        peg_status status;

        skip_blanks(r);
        status =
            kind == PEG__PATH_OR ? parse_chain(r, PEG__PATH_AND, "&&", last) : parse_basic(r, last);
        if (status)
            return status;
        last = &(*last)->next;
        behind = r->at;
        skip_blanks(r);
    } while (accept(r, token));
    r->at = behind;

    *ret_expr = first;
    if (!first->next)
        return PEG_OK;
    *ret_expr = new_expr(r, kind);
    if (!*ret_expr)
        return PEG_ENOMEM;
    (*ret_expr)->parts = first;
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_or(struct reader *r, struct peg__path_expr **ret_expr)
{
    return parse_chain(r, PEG__PATH_OR, "||", ret_expr);
}

/* ---- the path --------------------------------------------------------------- */

static peg_status parse_path(struct reader *r)
{
    peg_status status;

    r->path->query.is_absolute = true;
    if (!accept(r, "$"))
        return fail_syntax(r, 0, "'$'");
    status = parse_segments(r, &r->path->query);
    if (!status && r->at < r->text.len)
        return fail_syntax(r, r->at, "'.', '..', '[' or the end");
    return status;
}

/* With zeros behind it: strings and numbers of the path borrow the text. */
static char *copy_padded(struct peg__arena *arena, peg_str s)
{
    char *copy = peg__arena_alloc_zero(arena, s.len + PEG_JSON_PADDING);

    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

static peg_status check_path_text(peg_str expression, peg_error *reterr)
{
    if (expression.len > PEG_LIMIT_PATH_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_PATH_LIMIT",
                         "a path may have %d bytes, this one has %zu", PEG_LIMIT_PATH_BYTES,
                         expression.len);
    if (!peg__utf8_is_valid(expression)) {
        peg__fail(reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX", "the path is not valid UTF-8");
        peg__error_at(reterr, expression, 0);
        return PEG_EPARSE;
    }
    return PEG_OK;
}

peg_status peg_json_path_new(peg_str expression, peg_json_path **ret_path, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_path_freep) peg_json_path *path = NULL;
    struct reader r = {.reterr = reterr};
    peg_status status = check_path_text(expression, reterr);

    if (status)
        return status;
    path = peg__alloc_zero(1, sizeof(*path));
    if (!path)
        return peg__fail_nomem(reterr);
    r.path = path;
    r.text = peg__strn(copy_padded(&path->arena, expression), expression.len);
    if (!r.text.ptr)
        return peg__fail_nomem(reterr);
    status = parse_path(&r);
    if (status)
        return status;

    *ret_path = path;
    path = NULL;
    return PEG_OK;
}

peg_json_path *peg_json_path_free(peg_json_path *path)
{
    if (path)
        peg__arena_free(&path->arena);
    peg__free(path);
    return NULL;
}
