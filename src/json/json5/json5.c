/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON5 is rewritten as JSON, token by token, and parsed by peg_json_parse(): duplicate names,
 * numbers and their limits are what they are there. Read it from the bottom up:
 *
 *   peg__json5_parse -> parse -> rewrite -> step, once a token -> the tokens of json5_token.c
 *
 * A step takes one token with the space before it and writes what stands for it. Where the parser
 * refuses what was written, the steps are taken again up to that place (tell_place).
 */

#include "json/json5/json5.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/json5/token.h"

/* A character of a text becomes at most "\u0000". */
enum { GROWTH = 6 };

/* ---- values -------------------------------------------------------------------------------- */

static peg_status fail_too_deep(struct peg__json5 *r)
{
    peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_DEEP",
              "arrays and objects nest deeper than max_depth = %u; flatten the value or raise the "
              "limit",
              r->max_depth);
    peg__error_at(r->reterr, r->text, r->token);
    return PEG_ELIMIT;
}

static bool is_in_object(const struct peg__json5 *r)
{
    return r->is_object[(r->depth - 1) / 8] >> ((r->depth - 1) % 8) & 1;
}

static peg_status begin_container(struct peg__json5 *r)
{
    const bool is_object = peg__json5_peek(r, 0) == '{';
    const unsigned bit = 1U << (r->depth % 8);
    uint8_t *byte = &r->is_object[r->depth / 8];

    if (r->depth == r->max_depth)
        return fail_too_deep(r);
    *byte = (uint8_t)(is_object ? *byte | bit : *byte & ~bit);
    r->depth++;
    r->at++;
    peg__buf_putc(&r->out, is_object ? '{' : '[');
    r->expected = is_object ? PEG__JSON5_NAME_OR_END : PEG__JSON5_ITEM_OR_END;
    return PEG_OK;
}

static peg_status read_name(struct peg__json5 *r)
{
    const int c = peg__json5_peek(r, 0);
    peg_status status = c == '"' || c == '\'' ? peg__json5_string(r) : peg__json5_name(r);

    if (!status)
        status = peg__json5_skip_space(r);
    if (status)
        return status;
    if (peg__json5_peek(r, 0) != ':')
        return peg__json5_fail(r, r->at, "expected : after the name");
    r->at++;
    peg__buf_putc(&r->out, ':');
    r->expected = PEG__JSON5_VALUE;
    return PEG_OK;
}

static peg_status read_value(struct peg__json5 *r)
{
    if (peg__json5_peek(r, 0) == '[' || peg__json5_peek(r, 0) == '{')
        return begin_container(r);
    r->expected = PEG__JSON5_END_OR_COMMA;
    return peg__json5_scalar(r);
}

static bool is_at_end(const struct peg__json5 *r)
{
    return r->depth > 0 && peg__json5_peek(r, 0) == (is_in_object(r) ? '}' : ']');
}

static peg_status end_container(struct peg__json5 *r)
{
    peg__buf_putc(&r->out, (char)peg__json5_peek(r, 0));
    r->owes_comma = false;
    r->at++;
    r->depth--;
    r->expected = PEG__JSON5_END_OR_COMMA;
    return PEG_OK;
}

static void pay_comma(struct peg__json5 *r)
{
    if (r->owes_comma)
        peg__buf_putc(&r->out, ',');
    r->owes_comma = false;
}

/* Behind a value. */
static peg_status end_value(struct peg__json5 *r)
{
    if (r->depth == 0) {
        if (peg__json5_peek(r, 0) != PEG__JSON5_END)
            return peg__json5_fail(r, r->at,
                                   "expected nothing after the value; remove what follows");
        r->expected = PEG__JSON5_NOTHING;
        return PEG_OK;
    }
    if (is_at_end(r))
        return end_container(r);
    if (peg__json5_peek(r, 0) != ',')
        return peg__json5_fail(r, r->at,
                               is_in_object(r) ? "expected , or } after the member"
                                               : "expected , or ] after the item");
    r->at++;
    r->owes_comma = true;
    r->expected = is_in_object(r) ? PEG__JSON5_NAME_OR_END : PEG__JSON5_ITEM_OR_END;
    return PEG_OK;
}

static peg_status step(struct peg__json5 *r)
{
    const peg_status status = peg__json5_skip_space(r);

    if (status)
        return status;
    r->token = r->at;
    if (r->expected == PEG__JSON5_END_OR_COMMA)
        return end_value(r);
    if (r->expected != PEG__JSON5_VALUE && is_at_end(r))
        return end_container(r);
    pay_comma(r);
    return r->expected == PEG__JSON5_NAME_OR_END ? read_name(r) : read_value(r);
}

/* Writes JSON for the text, up to its end or to what stands for the byte at `stop`. */
static peg_status rewrite(struct peg__json5 *r, size_t stop)
{
    r->at = 0;
    r->depth = 0;
    r->owes_comma = false;
    r->expected = PEG__JSON5_VALUE;
    peg__buf_clear(&r->out);
    while (r->expected != PEG__JSON5_NOTHING && r->out.len <= stop && !r->out.status) {
        const peg_status status = step(r);

        if (status)
            return status;
    }
    return r->out.status ? peg__fail_nomem(r->reterr) : PEG_OK;
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* The parser found what the steps do not look for; tells where that is in the text. */
static peg_status tell_place(struct peg__json5 *r, const peg_error *why)
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

static peg_status parse(struct peg__json5 *r, const peg_json_options *options,
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
    return tell_place(r, &why);
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
    static const peg_json_options defaults;
    const peg_json_options *o = options ? options : &defaults;
    const unsigned depth = o->max_depth ? o->max_depth : PEG_LIMIT_JSON_DEPTH;
    struct peg__json5 r = {
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
    status = parse(&r, o, ret_doc);
    peg__buf_free(&r.out);
    peg__regex_free(r.name);
    peg__matcher_free(r.matcher);
    return status;
}
