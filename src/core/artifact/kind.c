/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kinds of artifacts: what they are made from, and whether a host's can work. Its queries become
 * tools in the middle of a dispatch, where a mistake would be found late and by the wrong person.
 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "pegboard/cleanup.h"
#include "pegboard/schema.h"
#include "json/json.h"

const peg_artifact_kind *peg__kind_base(const peg_artifact_kind *kind)
{
    if (kind->base || kind == &peg_artifact_text)
        return kind->base;
    return &peg_artifact_text;
}

bool peg_artifact_kind_is(const peg_artifact_kind *kind, const peg_artifact_kind *base)
{
    for (int depth = 0; kind && depth <= PEG_LIMIT_KIND_DEPTH; depth++) {
        if (kind == base)
            return true;
        kind = peg__kind_base(kind);
    }
    return false;
}

const peg_artifact_kind *peg__kind_named(peg_str name)
{
    const peg_artifact_kind *const kinds[] = {&peg_artifact_text, &peg_artifact_json,
                                              &peg_artifact_markdown};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (peg__str_is(name, kinds[i]->name))
            return kinds[i];
    }
    return NULL;
}

/* ---- which field ------------------------------------------------------------------------- */

/* A kind with all it is made from, itself first, and where the check stands. */
struct chain {
    const peg_artifact_kind *kinds[PEG_LIMIT_KIND_DEPTH];
    size_t n;
    size_t level; /* in kinds */
    size_t query; /* in the queries of that kind; SIZE_MAX: none */
};

/* Sets the place: "/base/queries/3/name". */
static void point_at(const struct chain *chain, const char *field, peg_error *reterr)
{
    char where[sizeof(reterr->where)];
    size_t len = 0;

    for (size_t i = 0; i < chain->level; i++)
        len += (size_t)snprintf(where + len, sizeof(where) - len, "/base");
    if (chain->query != SIZE_MAX)
        len += (size_t)snprintf(where + len, sizeof(where) - len, "/queries/%zu", chain->query);
    len += (size_t)snprintf(where + len, sizeof(where) - len, "/%s", field);
    peg__error_where(reterr, peg__strn(where, len));
}

static peg_status reject_kind(const struct chain *chain, const char *field, const char *what,
                              peg_error *reterr)
{
    const char *name = chain->kinds[chain->level]->name;

    peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "the %s%s of artifact kind '%.64s' %s",
              chain->query == SIZE_MAX ? "" : "query's ", field, name ? name : "", what);
    point_at(chain, field, reterr);
    return PEG_EINVAL;
}

/* The same with the error behind it; out of memory stays what it is. */
static peg_status reject_kind_because(const struct chain *chain, const char *field,
                                      const peg_error *cause, peg_error *reterr)
{
    if (cause->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    peg__fail_because(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", cause,
                      "the query's %s of artifact kind '%.64s' cannot be used", field,
                      chain->kinds[chain->level]->name);
    point_at(chain, field, reterr);
    return PEG_EINVAL;
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_plain_name(const char *name, size_t max, const char *others)
{
    size_t len = 0;

    if (!name)
        return false;
    for (; name[len]; len++) {
        const char c = name[len];
        const bool is_plain = peg__is_alnum(c);

        if (len == max || (!is_plain && !strchr(others, c)))
            return false;
    }
    return len > 0;
}

static bool has_query(const peg_artifact_kind *kind, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kind->queries[i].name, name) == 0)
            return true;
    return false;
}

/* ---- arguments --------------------------------------------------------------------------- */

static peg_status check_properties(const struct chain *chain, const peg_json *properties,
                                   peg_error *reterr)
{
    if (properties->kind != PEG_JSON_OBJECT)
        return reject_kind(chain, "properties",
                           "must be a JSON object, one schema for each argument", reterr);
    if (peg_json_get(properties, PEG__ARTIFACT_ID))
        return reject_kind(chain, "properties",
                           "must not have '" PEG__ARTIFACT_ID "', which is added", reterr);
    PEG_JSON_EACH_MEMBER (properties, key) {
        if (key[1].kind != PEG_JSON_OBJECT && key[1].kind != PEG_JSON_BOOL)
            return reject_kind(chain, "properties", "must have a schema for each argument", reterr);
    }
    return PEG_OK;
}

static peg_status check_required(const struct chain *chain, const peg_json *required,
                                 const peg_json *properties, peg_error *reterr)
{
    if (required->kind != PEG_JSON_ARRAY)
        return reject_kind(chain, "required", "must be a JSON array of names", reterr);
    PEG_JSON_EACH_ITEM (required, name) {
        if (name->kind != PEG_JSON_STRING || !peg_json_get_str(properties, peg_json_str(name)))
            return reject_kind(chain, "required", "must have only names that are in properties",
                               reterr);
    }
    return PEG_OK;
}

static peg_status parse_field(const struct chain *chain, const char *field, const char *text,
                              peg_json_doc **ret_doc, peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_SCHEMA_BYTES,
                                      .duplicates = PEG_JSON_REFUSE};
    peg_error why;

    if (peg_json_parse(peg__str(text), &options, ret_doc, &why))
        return reject_kind_because(chain, field, &why, reterr);
    return PEG_OK;
}

static const char *properties_of(const peg_artifact_query *query)
{
    return query->properties ? query->properties : "{}";
}

static const char *required_of(const peg_artifact_query *query)
{
    return query->required ? query->required : "[]";
}

static peg_status check_arguments(const struct chain *chain, const peg_artifact_query *query,
                                  peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *properties = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *required = NULL;
    peg_status status;

    status = parse_field(chain, "properties", properties_of(query), &properties, reterr);
    if (status)
        return status;
    status = check_properties(chain, peg_json_root(properties), reterr);
    if (status)
        return status;
    status = parse_field(chain, "required", required_of(query), &required, reterr);
    if (status)
        return status;
    return check_required(chain, peg_json_root(required), peg_json_root(properties), reterr);
}

/* Would its tool's schema compile? */
static peg_status check_schema(const struct chain *chain, const peg_artifact_query *query,
                               peg_error *reterr)
{
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg__freep) char *text = NULL;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status;
    peg_error why;
    size_t len;

    peg__buf_printf(&out, "{\"type\":\"object\",\"properties\":%s,\"required\":%s}",
                    properties_of(query), required_of(query));
    status = peg__buf_take(&out, &text, &len, reterr);
    if (status)
        return status;
    if (peg_schema_compile(peg__strn(text, len), NULL, &schema, &why))
        return reject_kind_because(chain, "properties", &why, reterr);
    return PEG_OK;
}

/* ---- a kind ------------------------------------------------------------------------------ */

static peg_status check_description(const struct chain *chain, const char *description,
                                    peg_error *reterr)
{
    if (!description || !*description)
        return reject_kind(chain, "description", "is missing: say what it answers", reterr);
    if (strlen(description) > PEG_LIMIT_DESCRIPTION_BYTES)
        return reject_kind(chain, "description", "is longer than 64 KiB (description_bytes)",
                           reterr);
    if (!peg__utf8_is_valid(peg__str(description)))
        return reject_kind(chain, "description", "is not UTF-8", reterr);
    return PEG_OK;
}

static peg_status check_query(const struct chain *chain, bool compile, peg_error *reterr)
{
    const peg_artifact_query *query = &chain->kinds[chain->level]->queries[chain->query];
    peg_status status;

    if (!is_plain_name(query->name, PEG_LIMIT_NAME_BYTES, "_.:/-"))
        return reject_kind(chain, "name", "must be a tool's: [A-Za-z0-9_.:/-]{1,256}", reterr);
    if (has_query(chain->kinds[chain->level], chain->query, query->name))
        return reject_kind(chain, "name", "is that of an earlier query", reterr);
    status = check_description(chain, query->description, reterr);
    if (status)
        return status;
    if (!query->run)
        return reject_kind(chain, "run", "is missing: set the function that answers", reterr);
    status = check_arguments(chain, query, reterr);
    if (status || !compile)
        return status;
    return check_schema(chain, query, reterr);
}

/* Those are checked by tests, and too often met to be checked again. */
static bool is_ours(const peg_artifact_kind *kind)
{
    return kind == &peg_artifact_text || kind == &peg_artifact_json ||
           kind == &peg_artifact_markdown;
}

/* All that a kind says of itself. */
static peg_status check_level(struct chain *chain, bool compile, peg_error *reterr)
{
    const peg_artifact_kind *kind = chain->kinds[chain->level];

    chain->query = SIZE_MAX;
    if (!is_plain_name(kind->name, PEG_LIMIT_KIND_NAME_BYTES, "_.-"))
        return reject_kind(chain, "name", "must be [A-Za-z0-9_.-]{1,64}", reterr);
    if (kind->n_queries > PEG_LIMIT_KIND_QUERIES)
        return reject_kind(chain, "queries", "are more than 64 (kind_queries)", reterr);
    if (kind->n_queries && !kind->queries)
        return reject_kind(chain, "queries", "are missing, but n_queries is not 0", reterr);
    for (chain->query = 0; chain->query < kind->n_queries; chain->query++) {
        const peg_status status = check_query(chain, compile, reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}

/* All that a kind says again after those it is made from. */
static peg_status check_against_bases(struct chain *chain, peg_error *reterr)
{
    const peg_artifact_kind *kind = chain->kinds[chain->level];

    for (size_t i = chain->level + 1; i < chain->n; i++) {
        const peg_artifact_kind *base = chain->kinds[i];

        chain->query = SIZE_MAX;
        if (kind->parse && base->parse)
            return reject_kind(chain, "parse",
                               "must be NULL: its base has one, and the queries of the "
                               "base rely on what that makes",
                               reterr);
        for (chain->query = 0; chain->query < kind->n_queries; chain->query++)
            if (has_query(base, base->n_queries, kind->queries[chain->query].name))
                return reject_kind(chain, "name", "is that of a query of its base", reterr);
    }
    return PEG_OK;
}

static peg_status collect_bases(const peg_artifact_kind *kind, struct chain *chain,
                                peg_error *reterr)
{
    *chain = (struct chain){.query = SIZE_MAX};
    for (; kind; kind = peg__kind_base(kind)) {
        if (chain->n == PEG_LIMIT_KIND_DEPTH)
            return reject_kind(chain, "base",
                               "leads to more than 16 kinds (kind_depth) or in a circle", reterr);
        chain->kinds[chain->n++] = kind;
    }
    return PEG_OK;
}

peg_status peg__kind_check(const peg_artifact_kind *kind, bool compile, peg_error *reterr)
{
    struct chain chain;
    peg_status status;

    if (!kind)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "the kind is missing");
    status = collect_bases(kind, &chain, reterr);
    for (size_t i = 0; status == PEG_OK && i < chain.n && !is_ours(chain.kinds[i]); i++) {
        chain.level = i;
        status = check_level(&chain, compile, reterr);
    }
    for (size_t i = 0; status == PEG_OK && i < chain.n && !is_ours(chain.kinds[i]); i++) {
        chain.level = i;
        status = check_against_bases(&chain, reterr);
    }
    return status;
}

peg_status peg_artifact_kind_check(const peg_artifact_kind *kind, peg_error *reterr)
{
    return peg__kind_check(kind, true, reterr);
}
