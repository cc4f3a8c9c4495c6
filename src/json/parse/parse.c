/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parsing JSON: options, the copy of the text, the choice of the fast path, errors. Read it from
 * the bottom up:
 *
 *   peg_json_parse, peg_json_reparse -> parse -> parse_text -> peg__parse_values or one of its
 *   twins for better machines
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/parse/internal.h"

enum { SMALL_DEPTH = PEG_LIMIT_JSON_DEPTH };

/* Room for so many more is not worth an allocation. */
enum { WASTED_VALUES = 8 };

#ifdef PEG_HAVE_AVX2
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("popcnt");
}

/* As of Ice Lake and Zen 4. */
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

static peg__parse_values_fn *best_way(void)
{
#ifdef PEG_HAVE_AVX2
    if (has_avx512())
        return peg__parse_values_avx512;
    if (has_avx2())
        return peg__parse_values_avx2;
#endif
    return peg__parse_values;
}

size_t peg__parse_ways(peg__parse_values_fn *ret_ways[PEG__PARSE_WAYS])
{
    size_t n = 0;

    ret_ways[n++] = peg__parse_values;
#ifdef PEG_HAVE_AVX2
    if (has_avx2())
        ret_ways[n++] = peg__parse_values_avx2;
    if (has_avx512())
        ret_ways[n++] = peg__parse_values_avx512;
#endif
    return n;
}

static peg_status parse_text(struct peg__parser *p, peg__parse_values_fn *way)
{
    const char *at = way(p, peg__parse_space(p->text));

    if (at && at != p->end)
        peg__parse_fail_syntax(p, at, "expected nothing after the value; remove what follows");
    else if (at && p->has_duplicates && !peg__json_drop_duplicates(p->doc, p->duplicates))
        p->status = PEG_ENOMEM;
    return p->status;
}

static size_t text_capacity_for(peg_str text)
{
    return PEG__TEXT_LEAD + text.len + PEG__TEXT_PADDING;
}

/* Copies the text into the document. */
static bool load_text(struct peg__parser *p, peg_str text)
{
    peg_json_doc *doc = p->doc;
    const size_t held = text_capacity_for(text);

    if (doc->text_capacity < held) {
        char *grown = peg__alloc(held);

        if (!grown)
            return false;
        if (doc->text != doc->inlined)
            peg__free(doc->text);
        doc->text = grown;
        doc->text_capacity = held;
    }
    memset(doc->text, 0, PEG__TEXT_LEAD);
    p->text = doc->text + PEG__TEXT_LEAD;
    p->end = p->text + text.len;
    if (text.len)
        memcpy(p->text, text.ptr, text.len);
    memset(p->end, 0, PEG__TEXT_PADDING);
    return true;
}

static unsigned max_depth(const peg_json_options *options)
{
    const unsigned max = options && options->max_depth ? options->max_depth : PEG_LIMIT_JSON_DEPTH;

    return max < PEG_LIMIT_JSON_DEPTH_MAX ? max : PEG_LIMIT_JSON_DEPTH_MAX;
}

static void take_options(struct peg__parser *p, const peg_json_options *options)
{
    const peg_json_options none = {PEG_JSON_OPTIONS_INIT};
    const peg_json_options *o = options ? options : &none;

    p->max_digits = o->max_number_digits ? o->max_number_digits : PEG_LIMIT_NUMBER_DIGITS;
    p->max_exponent = o->max_exponent ? o->max_exponent : PEG_LIMIT_NUMBER_EXPONENT;
    p->has_usual_limits = p->max_digits >= 18 && p->max_exponent >= 18;
    p->duplicates = o->duplicates;
}

static size_t max_bytes(const peg_json_options *options)
{
    const size_t max = options && options->max_bytes ? options->max_bytes : PEG_LIMIT_JSON_BYTES;

    return max < PEG_LIMIT_JSON_BYTES_MAX ? max : PEG_LIMIT_JSON_BYTES_MAX;
}

static peg_status report_parse_failure(const struct peg__parser *p, peg_str text, peg_error *reterr)
{
    char where[sizeof(reterr->where)] = "";

    if (p->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (p->twice)
        peg__parse_where(p, where, sizeof(where));
    peg__fail(reterr, p->status, p->code, "%s%s%s", where, p->twice ? " " : "", p->message);
    peg__error_where(reterr, peg__str(where));
    peg__error_at(reterr, text, (size_t)(p->failed_at - p->text));
    return p->status;
}

static peg_status parse_into(peg__parse_values_fn *way, peg_json_doc *doc, peg_str text,
                             const peg_json_options *options, peg_error *reterr)
{
    struct peg__frame small[SMALL_DEPTH + 1];
    struct peg__parser p = {.doc = doc, .frames = small};

    if (text.len > max_bytes(options))
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                         "the text has %zu bytes, more than max_bytes = %zu; send less or raise "
                         "the limit",
                         text.len, max_bytes(options));
    take_options(&p, options);
    if (max_depth(options) > SMALL_DEPTH)
        p.frames = peg__alloc((max_depth(options) + 1) * sizeof(*p.frames));
    if (!p.frames || !load_text(&p, text)) {
        p.status = PEG_ENOMEM;
    } else {
        p.frames[0] = (struct peg__frame){.closer = '\0'};
        p.last = p.frames + max_depth(options);
        parse_text(&p, way);
    }
    if (p.status)
        report_parse_failure(&p, text, reterr);
    if (p.frames != small)
        peg__free(p.frames);
    return p.status;
}

peg_status peg__json_reparse_by(peg__parse_values_fn *way, peg_json_doc *doc, peg_str text,
                                const peg_json_options *options, peg_error *reterr)
{
    const peg_status status = parse_into(way, doc, text, options, reterr);

    /* No half-read value is ever handed out. */
    if (status && doc->values)
        doc->values[0] = (peg_json){.kind = PEG_JSON_NULL};
    return status;
}

peg_status peg_json_reparse(peg_json_doc *doc, peg_str text, const peg_json_options *options,
                            peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_JSON_OPTIONS_INIT, reterr);
    return peg__json_reparse_by(best_way(), doc, text, options, reterr);
}

peg_status peg_json_parse(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                          peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_JSON_OPTIONS_INIT, reterr);
    /* A text that is too large is rejected before it is copied. */
    peg_json_doc *doc =
        peg__json_doc_new(text.len <= max_bytes(options) ? text_capacity_for(text) : 0);
    peg_status status;

    if (!doc)
        return peg__fail_nomem(reterr);
    status = parse_into(best_way(), doc, text, options, reterr);
    if (status) {
        peg_json_doc_free(doc);
        return status;
    }
    /* Mostly hardly more was reserved than is used. */
    if (doc->capacity > WASTED_VALUES + peg_json_extent(doc->values) / 8 * 9)
        peg__json_doc_trim(doc);
    *ret_doc = doc;
    return PEG_OK;
}
