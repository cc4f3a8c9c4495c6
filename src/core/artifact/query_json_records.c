/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds out how an artifact is JSON: as a whole, line by line, or as JSON5. Lines are first parsed
 * one by one, into one document that is used again and again; then the text becomes one array, a
 * comma for each line end, and is parsed once more. So a million lines are one document.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query_json.h"
#include "json/json.h"

static const char blanks[] = " \t\r";

PEG_DEFINE_CLEANUP(peg_json_doc, peg_json_doc_free)

struct peg__records *peg__records_free(struct peg__records *records)
{
    if (records)
        peg_json_doc_free(records->doc);
    peg__free(records);
    return NULL;
}

/* Takes over the document, in either case. */
static peg_status finish(enum peg__json_format format, peg_json_doc *doc,
                         struct peg__records **ret_records, peg_error *reterr)
{
    struct peg__records *records = peg__alloc(sizeof(*records));
    const peg_json *root;

    if (!records) {
        peg_json_doc_free(doc);
        return peg__fail_nomem(reterr);
    }
    peg__json_doc_trim(doc);
    root = peg_json_root(doc);
    *records = (struct peg__records){
        .format = format, .doc = doc, .first = root, .end = peg_json_next(root), .n = 1};
    if (format == PEG__FORMAT_LINES) {
        records->first = root + 1;
        records->n = peg_json_len(root);
    }
    *ret_records = records;
    return PEG_OK;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* The first line of *rest without its LF; *rest becomes what follows. */
static peg_str take_line(peg_str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    const peg_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};

    *rest = peg__str_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

/* Is each line that is not blank a JSON text? */
static peg_status check_lines(peg_str text, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;

    for (unsigned n = 1; text.len; n++) {
        const peg_str line = take_line(&text);
        peg_status status = PEG_OK;

        if (peg__str_span(line, blanks) < line.len)
            status = doc ? peg_json_reparse(doc, line, NULL, reterr)
                         : peg_json_parse(line, NULL, &doc, reterr);
        if (status) {
            reterr->line = n;
            return status;
        }
    }
    return PEG_OK;
}

static peg_status read_lines(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = text.len + 2,
                                      .max_depth = PEG_LIMIT_JSON_DEPTH + 1};
    struct peg__buf array = PEG__BUF(text.len + 2);
    peg_json_doc *doc = NULL;
    peg_status status = check_lines(text, reterr);

    if (status)
        return status;
    peg__buf_putc(&array, '[');
    while (text.len) {
        const peg_str line = take_line(&text);

        if (peg__str_span(line, blanks) == line.len)
            continue;
        if (array.len > 1)
            peg__buf_putc(&array, ',');
        peg__buf_str(&array, line);
    }
    peg__buf_putc(&array, ']');
    status = array.status ? peg__fail_nomem(reterr)
                          : peg_json_parse(peg__buf_view(&array), &options, &doc, reterr);
    peg__buf_free(&array);
    return status ? status : finish(PEG__FORMAT_LINES, doc, ret_records, reterr);
}

/* ---- which of them ------------------------------------------------------------------------ */

static peg_status read_json(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, NULL, &doc, reterr);

    return status ? status : finish(PEG__FORMAT_JSON, doc, ret_records, reterr);
}

static peg_status read_json5(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json5_parse(text, NULL, &doc, reterr);

    return status ? status : finish(PEG__FORMAT_JSON5, doc, ret_records, reterr);
}

typedef peg_status (*read_fn)(peg_str text, struct peg__records **ret_records, peg_error *reterr);

enum { N_FORMATS = 3 };

/* In this order: what is strict JSON is never taken for something else. */
static const read_fn readers[N_FORMATS] = {read_json, read_lines, read_json5};

static peg_status try_each(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_error why[N_FORMATS];

    for (size_t i = 0; i < N_FORMATS; i++) {
        const peg_status status = readers[i](text, ret_records, &why[i]);

        if (status && status != PEG_EPARSE && reterr)
            *reterr = why[i];
        if (status != PEG_EPARSE)
            return status;
    }
    return peg__fail(reterr, PEG_EPARSE, "E_ARTIFACT_NOT_JSON",
                     "the artifact is not JSON (line %u, column %u: %.80s), not JSON Lines (see "
                     "line %u) and not JSON5 (see line %u, column %u); read it with artifact_head, "
                     "artifact_cat or artifact_grep",
                     why[0].line, why[0].column, why[0].message, why[1].line, why[2].line,
                     why[2].column);
}

peg_status peg__records_new(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    static const peg_str bom = PEG_LIT("\xEF\xBB\xBF");
    peg_str rest;

    if (peg__str_starts(text, bom))
        text = peg__str_from(text, bom.len);
    for (rest = text; rest.len && strchr(" \t\r\n", rest.ptr[0]) && rest.ptr[0];)
        rest = peg__str_from(rest, 1);
    if (rest.len == 0)
        return peg__fail(reterr, PEG_EPARSE, "E_ARTIFACT_NOT_JSON",
                         "the artifact is empty, so there is no JSON to ask about");
    return try_each(text, ret_records, reterr);
}
