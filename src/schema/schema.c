/* SPDX-License-Identifier: Apache-2.0 */

/* Compiling for callers: options, documents, references. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"
#include "json/json.h"

static peg_schema_options with_defaults(const peg_schema_options *options)
{
    peg_schema_options o = {PEG_SCHEMA_OPTIONS_INIT};

    if (options)
        o = *options;
    if (!o.max_bytes)
        o.max_bytes = PEG_LIMIT_SCHEMA_BYTES;
    if (!o.max_depth)
        o.max_depth = PEG_LIMIT_SCHEMA_DEPTH;
    if (!o.max_subschemas)
        o.max_subschemas = PEG_LIMIT_SCHEMA_SUBSCHEMAS;
    if (!o.max_pattern_bytes)
        o.max_pattern_bytes = PEG_LIMIT_PATTERN_BYTES;
    return o;
}

static void free_schema(peg_schema *schema)
{
    for (size_t i = 0; i < schema->n_patterns; i++)
        peg__pattern_free(schema->patterns[i]);
    for (size_t i = 0; i < schema->n_documents; i++)
        peg__document_unref(schema->documents[i]);
    peg__free(schema->documents);
    peg__free(schema->patterns);
    peg__free(schema->code);
    peg__free(schema->rules);
    peg__free(schema->nodes);
    peg__free(schema->lists);
    peg__free(schema->members);
    peg__free(schema->contains);
    peg__free(schema->switches);
    peg__free(schema->enums);
    peg__free(schema->formats);
    peg__free(schema->values);
    peg__free(schema->words);
    peg__arena_free(&schema->arena);
    peg__free(schema);
}

/* Compiles and takes its own reference to the document. */
static peg_status compile_own_document(struct peg__document *document,
                                       const peg_schema_options *options, peg_schema **ret_schema,
                                       peg_error *reterr)
{
    struct peg__compiler c = {.options = *options, .reterr = reterr};

    c.index.docs = options->docs;
    c.index.dialect = peg__dialect_of(options->dialect);
    c.index.max_depth = options->max_depth;
    c.out = peg__alloc_zero(1, sizeof(*c.out));
    if (!c.out)
        return peg__fail_nomem(reterr);
    atomic_init(&c.out->refs, 1);
    if (!peg__compile(&c, document)) {
        free_schema(c.out);
        return c.status;
    }
    *ret_schema = c.out;
    return PEG_OK;
}

static peg_status compile_json(peg_json_doc *json, const peg_schema_options *options,
                               peg_schema **ret_schema, peg_error *reterr)
{
    /* Without a URI of its own: reports give places in it as plain pointers. */
    struct peg__document *document = peg__document_new(peg__str(""), json);
    peg_status status;

    if (!document)
        return peg__fail_nomem(reterr);
    status = compile_own_document(document, options, ret_schema, reterr);
    peg__document_unref(document);
    return status;
}

/* Reports the parser's limits as those of a schema. */
static void rename_limit(peg_error *reterr, const peg_schema_options *options, size_t len)
{
    const peg_error was = *reterr;

    if (len > options->max_bytes)
        peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                  "the schema has more than max_bytes = %zu bytes; shorten it or raise the limit",
                  options->max_bytes);
    else if (!strcmp(was.code, "E_JSON_TOO_DEEP"))
        peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                  "the schema nests deeper than max_depth = %u subschemas; use $ref to flatten it",
                  options->max_depth);
    reterr->offset = was.offset;
    reterr->line = was.line;
    reterr->column = was.column;
}

peg_status peg_schema_compile(peg_str text, const peg_schema_options *options,
                              peg_schema **ret_schema, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_SCHEMA_OPTIONS_INIT, reterr);
    const peg_schema_options o = with_defaults(options);
    /* A subschema takes two levels of JSON: {"properties": {"a": ...}}. */
    const peg_json_options limits = {PEG_JSON_OPTIONS_INIT, .max_bytes = o.max_bytes,
                                     .max_depth = 2 * o.max_depth + 2,
                                     .duplicates = PEG_JSON_REFUSE};
    peg_json_doc *json;
    peg_status status = peg_json_parse(text, &limits, &json, reterr);

    if (status) {
        if (reterr && status == PEG_ELIMIT)
            rename_limit(reterr, &o, text.len);
        return status;
    }
    peg__json_doc_trim(json);
    return compile_json(json, &o, ret_schema, reterr);
}

peg_status peg_schema_compile_value(const peg_json *schema, const peg_schema_options *options,
                                    peg_schema **ret_schema, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_SCHEMA_OPTIONS_INIT, reterr);
    const peg_schema_options o = with_defaults(options);
    peg_json_doc *json;
    peg_status status;

    if (peg_json_extent(schema) > o.max_bytes)
        return peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                         "the schema has more values than max_bytes = %zu; shorten it or raise the "
                         "limit",
                         o.max_bytes);
    status = peg__json_copy(schema, &json, reterr);
    return status ? status : compile_json(json, &o, ret_schema, reterr);
}

peg_schema *peg_schema_ref(peg_schema *schema)
{
    atomic_fetch_add_explicit(&schema->refs, 1, memory_order_relaxed);
    return schema;
}

peg_schema *peg_schema_unref(peg_schema *schema)
{
    if (schema && atomic_fetch_sub_explicit(&schema->refs, 1, memory_order_acq_rel) == 1)
        free_schema(schema);
    return NULL;
}

const peg_json *peg_schema_source(const peg_schema *schema)
{
    return peg__document_root(schema->documents[0]);
}

size_t peg_schema_bytes(const peg_schema *schema)
{
    return schema->bytes;
}
