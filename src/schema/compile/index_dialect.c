/* SPDX-License-Identifier: Apache-2.0 */

/* Which dialect a schema is written in: its $schema, or a meta-schema that the host registered. */

#include "base/error.h"
#include "base/text/str.h"
#include "schema/compile/index.h"
#include "schema/compile/uri.h"

enum { MAX_DIALECT_HOPS = 8, MAX_WHERE = 4096 };

static peg_status fail_dialect(peg_str uri, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_DIALECT",
                     "the dialect '%.*s' is unknown; use https://json-schema.org/draft/2020-12/"
                     "schema or http://json-schema.org/draft-07/schema#, or register its "
                     "meta-schema",
                     PEG_ARG(uri));
}

/* A meta-schema that the host registered: its own $schema decides, its $vocabulary narrows. */
static peg_status custom_dialect(const struct peg__index *index, peg_str uri,
                                 struct peg__dialect *ret_dialect, peg_error *reterr)
{
    const peg_json *vocabulary = NULL;
    const peg_json *unknown;
    const peg_str asked = uri;

    for (int hops = 0; hops < MAX_DIALECT_HOPS; hops++) {
        struct peg__document *meta = peg__docs_find(index->docs, peg__uri_split(uri).uri);
        const peg_json *next = meta ? peg_json_get(peg__document_root(meta), "$schema") : NULL;
        const peg_json *listed =
            meta ? peg_json_get(peg__document_root(meta), "$vocabulary") : NULL;

        if (!next || next->kind != PEG_JSON_STRING)
            return fail_dialect(asked, reterr);
        if (!vocabulary && listed && listed->kind == PEG_JSON_OBJECT)
            vocabulary = listed;
        uri = peg_json_str(next);
        if (!peg__dialect_by_uri(uri, ret_dialect))
            continue;
        if (vocabulary && !peg__dialect_narrow(ret_dialect, vocabulary, &unknown))
            return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_DIALECT",
                             "the dialect '%.*s' requires the vocabulary '%.*s', which is unknown",
                             PEG_ARG(asked), PEG_ARG(peg_json_str(unknown)));
        return PEG_OK;
    }
    return fail_dialect(asked, reterr);
}

void peg__index_report_place(const struct peg__index *index, const peg_json *value,
                             peg_error *reterr)
{
    struct peg__buf where = PEG__BUF(MAX_WHERE);

    if (!reterr || reterr->status == PEG_ENOMEM)
        return;
    peg__index_locate(index, value, &where);
    peg__error_where(reterr, peg__buf_view(&where));
    peg__buf_free(&where);
}

peg_status peg__index_dialect(const struct peg__index *index, const peg_json *schema,
                              const struct peg__dialect *outer, struct peg__dialect *ret_dialect,
                              peg_error *reterr)
{
    const peg_json *uri = schema->kind == PEG_JSON_OBJECT ? peg_json_get(schema, "$schema") : NULL;
    peg_status status = PEG_OK;

    if (!uri) {
        *ret_dialect = *outer;
        return PEG_OK;
    }
    if (uri->kind != PEG_JSON_STRING)
        status = peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD", "'$schema' must be a string");
    else if (!peg__dialect_by_uri(peg_json_str(uri), ret_dialect))
        status = custom_dialect(index, peg_json_str(uri), ret_dialect, reterr);
    if (status)
        peg__index_report_place(index, uri, reterr);
    return status;
}
