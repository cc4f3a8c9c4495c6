/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the schema and the documents it refers to. YAML becomes JSON text at the door. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/validate/validate.h"
#include "pegboard/cleanup.h"
#include "pegboard/yaml.h"
#include "schema/compile/compile.h"
#include "json/json.h"

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

/* What one --ref says. */
struct document {
    const char *path;
    peg_str uri; /* as given, may be relative; empty if the document names itself */
};

static bool has_scheme(const char *ref)
{
    const char *colon = ref;

    while (isalnum((unsigned char)*colon) || (*colon && strchr("+-.", *colon)))
        colon++;
    return *colon == ':' && colon > ref;
}

/* Splits URI=FILE. A URI may have = in its query, so the last one counts; a file name may have one
 * too, so what names a file as it stands is no pair, unless it starts as only a URI does. */
static struct document split_ref(const char *ref)
{
    const char *equals = strrchr(ref, '=');

    if (!equals || equals == ref || (!has_scheme(ref) && access(ref, F_OK) == 0))
        return (struct document){ref, {"", 0}};
    return (struct document){equals + 1, {ref, (size_t)(equals - ref)}};
}

const char *validate_ref_path(const char *ref)
{
    return split_ref(ref).path;
}

/* $id, or draft 4's id. Empty if there is none. */
static peg_str own_uri(const peg_json *document)
{
    const peg_json *id = peg_json_get(document, "$id");

    if (!id)
        id = peg_json_get(document, "id");
    if (!id || peg_json_kind_of(id) != PEG_JSON_STRING)
        return (peg_str){"", 0};
    return peg_json_str(id);
}

static peg_status add_as(struct validate *v, peg_str base, peg_str reference, const peg_json *root,
                         peg_error *reterr)
{
    const peg_str uri = peg__uri_resolve(&v->uris, base, peg__uri_split(reference).uri);

    if (!uri.ptr)
        return peg__fail_nomem(reterr);
    return peg_schema_docs_add(v->docs, uri, root, reterr);
}

/* A document that names itself is known by that name, and in any case by where it stands, so that
 * files may refer to their neighbours. */
static peg_status add_by_itself(struct validate *v, const char *path, const peg_json *root,
                                peg_error *reterr)
{
    const peg_str own = own_uri(root);
    peg_status status;
    peg_str place;

    status = cli_file_uri(&v->uris, path, &place, reterr);
    if (!status)
        status = add_as(v, place, own, root, reterr);
    if (status || own.len == 0)
        return status;
    status = peg_schema_docs_add(v->docs, place, root, reterr);
    return status == PEG_EEXISTS ? PEG_OK : status; /* by its own name, or by another --ref */
}

static peg_status add_document(struct validate *v, const struct document *document,
                               peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_status status = cli_read_file_max(document->path, &v->schema_text, reterr);

    if (!status)
        status = cli_parse(peg__buf_view(&v->schema_text),
                           cli_syntax_of(document->path) == CLI_SYNTAX_YAML, &doc, reterr);
    if (status)
        return status;
    if (!document->uri.len)
        return add_by_itself(v, document->path, peg_json_root(doc), reterr);
    return add_as(v, peg__str(v->schema_options.base_uri), document->uri, peg_json_root(doc),
                  reterr);
}

static peg_status add_documents(struct validate *v)
{
    const struct validate_options *o = v->options;

    for (size_t i = 0; i < o->n_refs; i++) {
        const struct document document = split_ref(o->refs[i]);
        const struct validate_place place = {document.path, 0};
        peg_error error;
        peg_status status = add_document(v, &document, &error);

        if (status) {
            validate_unusable_schema(v, &place, &error);
            return status;
        }
    }
    return PEG_OK;
}

/* ---- the schema ----------------------------------------------------------------- */

static peg_status compile_schema(struct validate *v, peg_error *reterr)
{
    const char *path = v->options->schema_path;
    peg_status status = cli_read_file_max(path, &v->schema_text, reterr);

    if (!status && cli_syntax_of(path) == CLI_SYNTAX_YAML)
        status = to_json(&v->schema_text, reterr);
    if (status)
        return status;
    status =
        peg_schema_compile(peg__buf_view(&v->schema_text), &v->schema_options, &v->schema, reterr);
    if (status)
        cli_hint(peg__buf_view(&v->schema_text), false, reterr);
    return status;
}

static peg_status prepare_schema(struct validate *v, peg_error *reterr)
{
    peg_str base;
    peg_status status = cli_file_uri(&v->uris, v->options->schema_path, &base, reterr);

    if (status)
        return status;
    v->docs = peg_schema_docs_new();
    if (!v->docs)
        return peg__fail_nomem(reterr);
    v->schema_options = (peg_schema_options){PEG_SCHEMA_OPTIONS_INIT, .docs = v->docs,
                                             .dialect = v->options->dialect,
                                             .format = v->options->format, .base_uri = base.ptr};
    return PEG_OK;
}

/* What is no keyword is ignored, so that a schema with a slip in it says less than it seems to. */
static void warn_of_typo(const peg_json *key, const char *keyword, void *user)
{
    struct validate *v = user;
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_printf(&line, "pegboard: %s: warning: at ", cli_file_label(v->options->schema_path));
    peg__json_pointer_to(peg_schema_source(v->schema), key, &line);
    peg__buf_printf(&line, ": this is no keyword and is ignored; did you mean '%s'?", keyword);
    cli_print_line(&line);
}

peg_status validate_load_schema(struct validate *v)
{
    const struct validate_place place = {v->options->schema_path, 0};
    peg_error error;
    peg_status status = prepare_schema(v, &error);

    if (!status) {
        status = add_documents(v);
        if (status)
            return status; /* told */
        status = compile_schema(v, &error);
    }
    if (status)
        validate_unusable_schema(v, &place, &error);
    else if (!v->options->quiet)
        peg__schema_typos(peg_schema_source(v->schema), warn_of_typo, v);
    return status;
}
