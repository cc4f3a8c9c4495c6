/* SPDX-License-Identifier: Apache-2.0 */

/* Ours, twice: one document used again for every text, and a new one each time. */

#include <pegboard/json.h>

#include "bench.h"

/* Recursion is bounded by the parser's own depth limit. */
static void walk(const peg_json *value, struct bench_tally *tally) /* NOLINT(misc-no-recursion) */
{
    tally->values++;
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_STRING:
        tally->string_bytes += value->len;
        break;
    case PEG_JSON_INTEGER:
        tally->numbers += (double)value->u.number;
        break;
    case PEG_JSON_DECIMAL:
        tally->numbers += peg_json_double(value);
        break;
    case PEG_JSON_BOOL:
        tally->truths += value->u.truth;
        break;
    case PEG_JSON_ARRAY:
        PEG_JSON_EACH_ITEM (value, item)
            walk(item, tally);
        break;
    case PEG_JSON_OBJECT:
        PEG_JSON_EACH_MEMBER (value, key) {
            tally->string_bytes += key->len;
            walk(key + 1, tally);
        }
        break;
    case PEG_JSON_NULL:
        break;
    }
}

static void *open_document(void)
{
    peg_json_doc *doc = NULL;

    return peg_json_parse(peg_cstr("null"), NULL, &doc, NULL) == PEG_OK ? doc : NULL;
}

static bool run_reused(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    peg_json_doc *doc = state;

    if (!doc || peg_json_reparse(doc, (peg_str){text, len}, NULL, NULL))
        return false;
    walk(peg_json_root(doc), tally);
    return true;
}

static void close_document(void *state)
{
    peg_json_doc_free(state);
}

static bool run_fresh(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    peg_json_doc *doc;

    (void)state;
    if (peg_json_parse((peg_str){text, len}, NULL, &doc, NULL))
        return false;
    walk(peg_json_root(doc), tally);
    peg_json_doc_free(doc);
    return true;
}

static void *keep(const char *text, size_t len)
{
    peg_json_doc *doc;

    return peg_json_parse((peg_str){text, len}, NULL, &doc, NULL) ? NULL : doc;
}

const struct bench_parser bench_pegboard_reused = {
    .name = "pegboard", .open = open_document, .run = run_reused, .close = close_document};
const struct bench_parser bench_pegboard_fresh = {
    .name = "pegboard, new document", .run = run_fresh, .keep = keep, .drop = close_document};
