/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the schema and the documents it refers to. YAML becomes JSON text at the door. */

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/validate.h"
#include "pegboard/yaml.h"
#include "json/json.h"

PEG_DEFINE_CLEANUP(peg_json_doc, peg_json_doc_free)

static peg_status parse(const char *path, peg_str text, peg_json_doc **ret_doc, peg_error *reterr)
{
    return cli_syntax_of(path) == CLI_SYNTAX_YAML ? peg_yaml_parse(text, NULL, ret_doc, reterr)
                                                  : peg_json_parse(text, NULL, ret_doc, reterr);
}

/* Replaces YAML text by the JSON it says. */
static peg_status to_json(struct peg__buf *text, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_status status = peg_yaml_parse(peg__buf_view(text), NULL, &doc, reterr);

    if (status)
        return status;
    peg__buf_clear(text);
    peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, text);
    return text->status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- documents of --ref --------------------------------------------------------- */

/* Splits URI=FILE. What does not start with a scheme and a colon is all file name; a URI may have
 * = in its query, so the last one counts. */
static peg_str split_uri(const char *ref, const char **ret_path)
{
    const char *colon = ref;
    const char *equals = strrchr(ref, '=');

    while (isalnum((unsigned char)*colon) || (*colon && strchr("+-.", *colon)))
        colon++;
    if (*colon == ':' && colon > ref && equals && equals > colon) {
        *ret_path = equals + 1;
        return (peg_str){ref, (size_t)(equals - ref)};
    }
    *ret_path = ref;
    return (peg_str){"", 0};
}

/* $id, or draft 4's id; without an empty fragment. Empty if there is none. */
static peg_str own_uri(const peg_json *document)
{
    const peg_json *id = peg_json_get(document, "$id");
    peg_str uri = {"", 0};

    if (!id)
        id = peg_json_get(document, "id");
    if (id && peg_json_kind_of(id) == PEG_JSON_STRING)
        uri = peg_json_str(id);
    if (uri.len && uri.ptr[uri.len - 1] == '#')
        uri.len--;
    return uri;
}

static peg_status add_document(struct validate *v, const char *path, peg_str uri, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_status status = cli_read_file(path, &v->schema_text, reterr);

    if (!status)
        status = parse(path, peg__buf_view(&v->schema_text), &doc, reterr);
    if (status)
        return status;
    if (!uri.len)
        uri = own_uri(peg_json_root(doc));
    if (!uri.len)
        return peg__fail(reterr, PEG_EINVAL, "E_REF_UNNAMED",
                         "has no $id, so no $ref can lead to it; name it with --ref URI=%s", path);
    return peg_schema_docs_add(v->docs, uri, peg_json_root(doc), reterr);
}

static peg_status add_documents(struct validate *v)
{
    const struct validate_options *o = v->options;

    for (size_t i = 0; i < o->n_refs; i++) {
        struct validate_place place = {0};
        const peg_str uri = split_uri(o->refs[i], &place.path);
        peg_error error;
        peg_status status = add_document(v, place.path, uri, &error);

        if (status) {
            validate_unusable(v, &place, &error);
            return status;
        }
    }
    return PEG_OK;
}

/* ---- the schema ----------------------------------------------------------------- */

static peg_status compile(struct validate *v, peg_error *reterr)
{
    const char *path = v->options->schema_path;
    peg_status status = cli_read_file(path, &v->schema_text, reterr);

    if (!status && cli_syntax_of(path) == CLI_SYNTAX_YAML)
        status = to_json(&v->schema_text, reterr);
    if (status)
        return status;
    return peg_schema_compile(peg__buf_view(&v->schema_text), &v->schema_options, &v->schema,
                              reterr);
}

peg_status validate_load_schema(struct validate *v)
{
    const struct validate_place place = {v->options->schema_path, 0};
    peg_error error;
    peg_status status;

    v->docs = peg_schema_docs_new();
    if (!v->docs) {
        peg__fail_nomem(&error);
        validate_unusable(v, &place, &error);
        return PEG_ENOMEM;
    }
    status = add_documents(v);
    if (status)
        return status;
    v->schema_options = (peg_schema_options){
        .docs = v->docs, .dialect = v->options->dialect, .format = v->options->format};
    status = compile(v, &error);
    if (status)
        validate_unusable(v, &place, &error);
    return status;
}
