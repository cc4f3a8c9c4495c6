/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parsing JSON: options, the copy of the text, the choice of the fast path, errors. Read it from
 * the bottom up:
 *
 *   peg_json_parse, peg_json_reparse -> parse -> parse_text -> peg__parse_values
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "json/duplicates.h"
#include "json/parse_state.h"

enum { SMALL_DEPTH = PEG_LIMIT_JSON_DEPTH };

static peg__parse_values_fn *fast_path(void)
{
#ifdef PEG_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"))
        return peg__parse_values_avx2;
#endif
    return peg__parse_values;
}

static peg_status parse_text(struct peg__parser *p)
{
    const char *at = fast_path()(p, peg__parse_space(p->doc->text));

    if (at && at != p->end)
        peg__parse_fail_syntax(p, at, "expected nothing after the value; remove what follows");
    else if (at && p->has_duplicates && !peg__json_drop_duplicates(p->doc, p->duplicates))
        p->status = PEG_ENOMEM;
    return p->status;
}

/* Copies the text into the document and makes room for its values. */
static bool load(struct peg__parser *p, peg_str text)
{
    peg_json_doc *doc = p->doc;
    /* Room for every value of a small text; larger ones start with what is usual and grow. */
    const size_t want = text.len <= 16384 ? text.len / 2 + 6 : text.len / 8 + 6;

    if (doc->text_capacity < text.len + PEG_JSON_PADDING) {
        char *grown = peg__alloc(text.len + PEG_JSON_PADDING);

        if (!grown)
            return false;
        peg__free(doc->text);
        doc->text = grown;
        doc->text_capacity = text.len + PEG_JSON_PADDING;
    }
    if (text.len)
        memcpy(doc->text, text.ptr, text.len);
    memset(doc->text + text.len, 0, PEG_JSON_PADDING);
    p->end = doc->text + text.len;

    if (doc->capacity < want) {
        peg_json *values = peg__alloc(want * sizeof(*values));

        if (!values)
            return false;
        peg__free(doc->values);
        doc->values = values;
        doc->capacity = want;
    }
    return true;
}

static unsigned max_depth(const peg_json_options *options)
{
    const unsigned max = options && options->max_depth ? options->max_depth : PEG_LIMIT_JSON_DEPTH;

    return max < PEG_LIMIT_JSON_DEPTH_MAX ? max : PEG_LIMIT_JSON_DEPTH_MAX;
}

static void take_options(struct peg__parser *p, const peg_json_options *options)
{
    const peg_json_options none = {0};
    const peg_json_options *o = options ? options : &none;

    p->max_digits = o->max_number_digits ? o->max_number_digits : PEG_LIMIT_NUMBER_DIGITS;
    p->max_exponent = o->max_exponent ? o->max_exponent : PEG_LIMIT_NUMBER_EXPONENT;
    p->duplicates = o->duplicates;
}

static size_t max_bytes(const peg_json_options *options)
{
    const size_t max = options && options->max_bytes ? options->max_bytes : PEG_LIMIT_JSON_BYTES;

    return max < PEG_LIMIT_JSON_BYTES_MAX ? max : PEG_LIMIT_JSON_BYTES_MAX;
}

static peg_status parse(peg_json_doc *doc, peg_str text, const peg_json_options *options,
                        peg_error *reterr)
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
    if (!p.frames || !load(&p, text)) {
        p.status = PEG_ENOMEM;
    } else {
        p.frames[0] = (struct peg__frame){.closer = '\0'};
        p.last = p.frames + max_depth(options);
        parse_text(&p);
    }
    if (p.frames != small)
        peg__free(p.frames);
    if (p.status == PEG_OK)
        return PEG_OK;
    if (p.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    peg__fail(reterr, p.status, p.code, "%s", p.message);
    peg__error_at(reterr, text, (size_t)(p.failed_at - doc->text));
    return p.status;
}

peg_status peg_json_reparse(peg_json_doc *doc, peg_str text, const peg_json_options *options,
                            peg_error *reterr)
{
    const peg_status status = parse(doc, text, options, reterr);

    /* No half-read value is ever handed out. */
    if (status && doc->values)
        doc->values[0] = (peg_json){.kind = PEG_JSON_NULL};
    return status;
}

peg_status peg_json_parse(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                          peg_error *reterr)
{
    peg_json_doc *doc = peg__json_doc_new();
    peg_status status;

    if (!doc)
        return peg__fail_nomem(reterr);
    status = parse(doc, text, options, reterr);
    if (status)
        peg_json_doc_free(doc);
    else
        *ret_doc = doc;
    return status;
}
