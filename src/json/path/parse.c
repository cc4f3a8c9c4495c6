/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the text of a JSONPath to what path_eval.c runs: one function for each
 * rule of RFC 9535, in the order of its grammar. The functions call each other
 * in a circle (a selector has a filter, a filter has queries, a query has
 * selectors), which enter() bounds by PEG_LIMIT_PATH_NESTING.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/doc.h"
#include "json/json.h"
#include "json/path/path.h"

/* A function's name is shown up to here. */
enum { SHOWN_BYTES = 40 };

static peg_status parse_segments(struct peg__path_reader *r, struct peg__path_query *query);
static peg_status parse_or(struct peg__path_reader *r, struct peg__path_expr **ret_expr);

/* Into a filter or parenthesis; the caller takes r->nesting back. */
static peg_status enter(struct peg__path_reader *r)
{
    if (++r->nesting <= PEG_LIMIT_PATH_NESTING)
        return PEG_OK;
    peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_PATH_TOO_LARGE",
              "filters and parentheses may be nested %d deep; write a flatter path",
              PEG_LIMIT_PATH_NESTING);
    peg__error_at(r->reterr, r->text, r->at);
    return PEG_ELIMIT;
}

/* ---- selectors ------------------------------------------------------------- */

/* Behind the start: end and step, each of them optional. */
static peg_status parse_slice(struct peg__path_reader *r, struct peg__path_selector *selector)
{
    peg_status status = PEG_OK;

    selector->kind = PEG__PATH_SLICE;
    selector->step = 1;
    peg__path_skip_blanks(r);
    if (peg__path_peek(r) != ':' && peg__path_peek(r) != ']' && peg__path_peek(r) != ',') {
        status = peg__path_read_integer(r, &selector->end);
        selector->has_end = true;
        peg__path_skip_blanks(r);
    }
    if (status || !peg__path_accept(r, ":"))
        return status;
    peg__path_skip_blanks(r);
    if (peg__path_peek(r) != ']' && peg__path_peek(r) != ',')
        status = peg__path_read_integer(r, &selector->step);
    return status;
}

static peg_status parse_index_or_slice(struct peg__path_reader *r,
                                       struct peg__path_selector *selector)
{
    const unsigned char c = peg__path_peek(r);
    size_t behind;

    if (c != ':' && c != '-' && (c < '0' || c > '9'))
        return peg__path_error(r, r->at, "a quoted name, '*', an index, a slice or a filter ('?')");
    if (c != ':') {
        const peg_status status = peg__path_read_integer(r, &selector->start);

        if (status)
            return status;
        selector->has_start = true;
    }
    behind = r->at;
    peg__path_skip_blanks(r);
    if (peg__path_accept(r, ":"))
        return parse_slice(r, selector);
    r->at = behind;
    selector->kind = PEG__PATH_INDEX;
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_filter(struct peg__path_reader *r, struct peg__path_selector *selector)
{
    struct peg__path_expr *filter = NULL;
    peg_status status = enter(r);

    peg__path_skip_blanks(r);
    if (!status)
        status = parse_or(r, &filter);
    selector->kind = PEG__PATH_FILTER;
    selector->filter = filter;
    r->nesting--;
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_selector(struct peg__path_reader *r, struct peg__path_selector **ret)
{
    struct peg__path_selector *selector = peg__arena_alloc_zero(&r->path->arena, sizeof(*selector));
    const unsigned char c = peg__path_peek(r);

    if (!selector)
        return peg__fail_nomem(r->reterr);
    *ret = selector;
    if (c == '"' || c == '\'') {
        selector->kind = PEG__PATH_NAME;
        return peg__path_read_string(r, &selector->name);
    }
    if (peg__path_accept(r, "*")) {
        selector->kind = PEG__PATH_WILDCARD;
        return PEG_OK;
    }
    if (peg__path_accept(r, "?"))
        return parse_filter(r, selector);
    return parse_index_or_slice(r, selector);
}

/* Behind '['. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_bracket(struct peg__path_reader *r, struct peg__path_segment *segment)
{
    struct peg__path_selector **last = &segment->selectors;

    do {
        peg_status status;

        peg__path_skip_blanks(r);
        status = parse_selector(r, last);
        if (status)
            return status;
        last = &(*last)->next;
        peg__path_skip_blanks(r);
    } while (peg__path_accept(r, ","));

    return peg__path_accept(r, "]") ? PEG_OK : peg__path_error(r, r->at, "',' or ']'");
}

/* Behind '.' or '..'. */
static peg_status parse_shorthand(struct peg__path_reader *r, struct peg__path_segment *segment)
{
    struct peg__path_selector *selector = peg__arena_alloc_zero(&r->path->arena, sizeof(*selector));

    if (!selector)
        return peg__fail_nomem(r->reterr);
    segment->selectors = selector;
    if (peg__path_accept(r, "*")) {
        selector->kind = PEG__PATH_WILDCARD;
        return PEG_OK;
    }
    selector->kind = PEG__PATH_NAME;
    if (!peg__path_starts_name(peg__path_peek(r)))
        return peg__path_error(r, r->at, "a name or '*' (other names are written ['...'])");
    selector->name = peg__path_read_name(r);
    return PEG_OK;
}

/* ---- segments and queries --------------------------------------------------- */

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_segment(struct peg__path_reader *r, struct peg__path_segment *segment)
{
    segment->is_descendant = peg__path_accept(r, "..");
    if (peg__path_accept(r, "["))
        return parse_bracket(r, segment);
    if (!segment->is_descendant)
        peg__path_accept(r, ".");
    return parse_shorthand(r, segment);
}

static bool is_singular(const struct peg__path_segment *segment)
{
    const struct peg__path_selector *selector = segment->selectors;

    return !segment->is_descendant && !selector->next &&
           (selector->kind == PEG__PATH_NAME || selector->kind == PEG__PATH_INDEX);
}

/* Behind '$' or '@'. Blanks belong to the query only if a segment follows them. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_segments(struct peg__path_reader *r, struct peg__path_query *query)
{
    struct peg__path_segment **last = &query->segments;
    struct peg__path_segment *previous = NULL;

    query->is_singular = true;
    for (;;) {
        const size_t behind = r->at;
        struct peg__path_segment *segment;
        peg_status status;

        peg__path_skip_blanks(r);
        if (peg__path_peek(r) != '.' && peg__path_peek(r) != '[') {
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

static struct peg__path_expr *new_expr(struct peg__path_reader *r, enum peg__path_expr_kind kind)
{
    struct peg__path_expr *expr = peg__arena_alloc_zero(&r->path->arena, sizeof(*expr));

    if (expr)
        expr->kind = kind;
    else
        peg__fail_nomem(r->reterr);
    return expr;
}

/* Functions are refused by name, because "expected a literal" would puzzle who wrote one. */
static peg_status refuse_function(const struct peg__path_reader *r)
{
    struct peg__path_reader ahead = *r;
    const peg_str name = peg__path_read_name(&ahead);

    if (name.len == 0 || peg__path_peek(&ahead) != '(')
        return PEG_OK;
    peg__fail(r->reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX",
              "the function %.*s() is unsupported: JSONPath here has no function extensions, "
              "compare values or test that they exist",
              name.len > SHOWN_BYTES ? SHOWN_BYTES : (int)name.len, name.ptr);
    peg__error_at(r->reterr, r->text, r->at);
    return PEG_EPARSE;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_operand(struct peg__path_reader *r, struct peg__path_operand *operand)
{
    const peg_status status = refuse_function(r);

    if (status)
        return status;
    operand->query.is_absolute = peg__path_peek(r) == '$';
    if (peg__path_accept(r, "$") || peg__path_accept(r, "@"))
        return parse_segments(r, &operand->query);
    operand->is_literal = true;
    return peg__path_read_literal(r, &operand->literal);
}

static bool accept_comparison(struct peg__path_reader *r, enum peg__path_comparison *ret)
{
    static const struct {
        const char *token; /* the longer one first where both could match */
        enum peg__path_comparison comparison;
    } table[] = {
        {"==", PEG__PATH_EQ}, {"!=", PEG__PATH_NE}, {"<=", PEG__PATH_LE},
        {">=", PEG__PATH_GE}, {"<", PEG__PATH_LT},  {">", PEG__PATH_GT},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!peg__path_accept(r, table[i].token))
            continue;
        *ret = table[i].comparison;
        return true;
    }
    return false;
}

static peg_status need_singular(const struct peg__path_reader *r, size_t at,
                                const struct peg__path_operand *operand)
{
    if (operand->is_literal || operand->query.is_singular)
        return PEG_OK;
    return peg__path_error(r, at, "a query for one value (names and indexes only) to compare");
}

/* A comparison, or the test that a query finds something. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_test(struct peg__path_reader *r, struct peg__path_expr *expr)
{
    const size_t start = r->at;
    peg_status status = parse_operand(r, &expr->left);
    const size_t behind = r->at;
    size_t right;

    if (status)
        return status;
    peg__path_skip_blanks(r);
    if (!accept_comparison(r, &expr->comparison)) {
        if (expr->left.is_literal)
            return peg__path_error(r, r->at, "a comparison behind the literal");
        r->at = behind;
        expr->query = expr->left.query;
        return PEG_OK;
    }

    expr->kind = PEG__PATH_COMPARE;
    status = need_singular(r, start, &expr->left);
    if (status)
        return status;
    peg__path_skip_blanks(r);
    right = r->at;
    status = parse_operand(r, &expr->right);
    return status ? status : need_singular(r, right, &expr->right);
}

/* Behind '('. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_parenthesis(struct peg__path_reader *r, struct peg__path_expr **ret_expr)
{
    peg_status status = enter(r);

    peg__path_skip_blanks(r);
    if (!status)
        status = parse_or(r, ret_expr);
    r->nesting--;
    if (status)
        return status;
    peg__path_skip_blanks(r);
    return peg__path_accept(r, ")") ? PEG_OK : peg__path_error(r, r->at, "')', '&&' or '||'");
}

/* A comparison or a test by itself; `parts` of a negation if it stands behind '!'. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_plain(struct peg__path_reader *r, bool is_negated,
                              struct peg__path_expr **ret_expr)
{
    struct peg__path_expr *expr = *ret_expr = new_expr(r, PEG__PATH_EXISTS);
    const size_t start = r->at;
    peg_status status;

    if (!expr)
        return PEG_ENOMEM;
    status = parse_test(r, expr);
    if (!status && is_negated && expr->kind == PEG__PATH_COMPARE)
        return peg__path_error(r, start, "'(' (a comparison is negated in parentheses)");
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_basic(struct peg__path_reader *r, struct peg__path_expr **ret_expr)
{
    const bool is_negated = peg__path_accept(r, "!");

    if (is_negated) {
        *ret_expr = new_expr(r, PEG__PATH_NOT);
        if (!*ret_expr)
            return PEG_ENOMEM;
        ret_expr = &(*ret_expr)->parts;
        peg__path_skip_blanks(r);
    }
    return peg__path_accept(r, "(") ? parse_parenthesis(r, ret_expr)
                                    : parse_plain(r, is_negated, ret_expr);
}

/* Parts with `token` between them; one part alone stands for itself. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static peg_status parse_chain(struct peg__path_reader *r, enum peg__path_expr_kind kind,
                              const char *token, struct peg__path_expr **ret_expr)
{
    struct peg__path_expr *first = NULL;
    struct peg__path_expr **last = &first;
    size_t behind;

    do {
        peg_status status;

        peg__path_skip_blanks(r);
        status =
            kind == PEG__PATH_OR ? parse_chain(r, PEG__PATH_AND, "&&", last) : parse_basic(r, last);
        if (status)
            return status;
        last = &(*last)->next;
        behind = r->at;
        peg__path_skip_blanks(r);
    } while (peg__path_accept(r, token));
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
static peg_status parse_or(struct peg__path_reader *r, struct peg__path_expr **ret_expr)
{
    return parse_chain(r, PEG__PATH_OR, "||", ret_expr);
}

/* ---- the path --------------------------------------------------------------- */

static peg_status parse_path(struct peg__path_reader *r)
{
    peg_status status;

    r->path->query.is_absolute = true;
    if (!peg__path_accept(r, "$"))
        return peg__path_error(r, 0, "'$'");
    status = parse_segments(r, &r->path->query);
    if (!status && r->at < r->text.len)
        return peg__path_error(r, r->at, "'.', '..', '[' or the end");
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

static peg_status check_text(peg_str expression, peg_error *reterr)
{
    if (expression.len > PEG_LIMIT_PATH_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_PATH_TOO_LARGE",
                         "a path may have %d bytes, this one has %zu", PEG_LIMIT_PATH_BYTES,
                         expression.len);
    if (!peg__utf8_is_valid(expression)) {
        peg__fail(reterr, PEG_EPARSE, "E_JSON_PATH_SYNTAX", "the path is not valid UTF-8");
        peg__error_at(reterr, expression, 0);
        return PEG_EPARSE;
    }
    return PEG_OK;
}

PEG_DEFINE_CLEANUP(peg_json_path, peg_json_path_free)

peg_status peg_json_path_new(peg_str expression, peg_json_path **ret_path, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_path_freep) peg_json_path *path = NULL;
    struct peg__path_reader r = {.reterr = reterr};
    peg_status status = check_text(expression, reterr);

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
