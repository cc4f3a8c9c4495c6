/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/dialects.h"

#include "base/error.h"

#include "base/text/str.h"
#include "engine/dialects/internal.h"
#include "json/json.h"

struct walk {
    const peg_json *root;
    struct peg__out out;
    unsigned depth;
};

/* What a chain of local references ends at, or NULL. */
static const peg_json *resolve(const struct walk *w, const peg_json *schema)
{
    for (int i = 0; schema && i < PEG_LIMIT_INLINED_DEPTH; i++) {
        const peg_json *ref = peg_json_get(schema, "$ref");
        const struct peg__render r = {.root = w->root};
        peg_str pointer;

        if (!ref || ref->kind != PEG_JSON_STRING)
            return schema;
        schema = peg__ref_target(&r, peg_json_str(ref), &pointer);
    }
    return NULL;
}

static bool names(const peg_json *list, peg_str name)
{
    if (!list || list->kind != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (list, item) {
        if (item->kind == PEG_JSON_STRING && peg__str_eq(peg_json_str(item), name))
            return true;
    }
    return false;
}

/* Branches have no branches of their own that matter: then null stays. */
static bool has_null_branch(const peg_json *list)
{
    PEG_JSON_EACH_ITEM (list, branch) {
        const unsigned types = peg__types_of(peg_json_get(branch, "type"));

        if (!types || types & PEG__TYPE_NULL)
            return true;
    }
    return false;
}

/* In doubt it does, and the validator has the last word. */
static bool takes_null(const struct walk *w, const peg_json *schema)
{
    const peg_json *values;
    const peg_json *any_of;
    const peg_json *type;

    schema = resolve(w, schema);
    if (!schema || schema->kind != PEG_JSON_OBJECT)
        return true;
    type = peg_json_get(schema, "type");
    values = peg_json_get(schema, "enum");
    any_of = peg_json_get(schema, "anyOf");
    if (type)
        return peg__types_of(type) & PEG__TYPE_NULL;
    if (values)
        return peg__types_of_values(values) & PEG__TYPE_NULL;
    if (any_of && any_of->kind == PEG_JSON_ARRAY)
        return has_null_branch(any_of);
    return !peg_json_get(schema, "const") && !peg_json_get(schema, "properties") &&
           !peg_json_get(schema, "items");
}

/* The schema of a member, looked for in the branches too; *ret_is_required where it was found. */
static const peg_json *find_member(const struct walk *w, const peg_json *schema, peg_str name,
                                   bool *ret_is_required)
{
    const peg_json *properties = peg_json_get(schema, "properties");
    const peg_json *found = properties ? peg_json_get_str(properties, name) : NULL;
    const peg_json *any_of = peg_json_get(schema, "anyOf");

    *ret_is_required = names(peg_json_get(schema, "required"), name);
    if (found || !any_of || any_of->kind != PEG_JSON_ARRAY)
        return found;
    PEG_JSON_EACH_ITEM (any_of, item) {
        const peg_json *branch = resolve(w, item);

        properties = branch ? peg_json_get(branch, "properties") : NULL;
        found = properties ? peg_json_get_str(properties, name) : NULL;
        *ret_is_required = branch && names(peg_json_get(branch, "required"), name);
        if (found)
            return found;
    }
    return NULL;
}

static void write_value(struct walk *w, const peg_json *schema, const peg_json *value);

// NOLINTNEXTLINE(misc-no-recursion): write_value() has the bound
static void write_object(struct walk *w, const peg_json *schema, const peg_json *object)
{
    peg__out_object(&w->out);
    PEG_JSON_EACH_MEMBER (object, key) {
        bool is_required;
        const peg_json *member = find_member(w, schema, peg_json_str(key), &is_required);

        if (key[1].kind == PEG_JSON_NULL && member && !is_required && !takes_null(w, member))
            continue;
        peg__out_key_str(&w->out, peg_json_str(key));
        write_value(w, member, key + 1);
    }
    peg__out_end_object(&w->out);
}

// NOLINTNEXTLINE(misc-no-recursion): write_value() has the bound
static void write_array(struct walk *w, const peg_json *schema, const peg_json *array)
{
    const peg_json *items = peg_json_get(schema, "items");

    peg__out_array(&w->out);
    PEG_JSON_EACH_ITEM (array, item)
        write_value(w, items, item);
    peg__out_end_array(&w->out);
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep, as schemas are where they are rewritten. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_value(struct walk *w, const peg_json *schema, const peg_json *value)
{
    const peg_json *resolved = resolve(w, schema);

    if (!resolved || value->kind < PEG_JSON_ARRAY || w->depth == PEG_LIMIT_REWRITE_DEPTH) {
        peg__out_value(&w->out, value);
        return;
    }
    w->depth++;
    if (value->kind == PEG_JSON_OBJECT)
        write_object(w, resolved, value);
    else
        write_array(w, resolved, value);
    w->depth--;
}

void peg__strict_args(const peg_json *parameters, const peg_json *args, struct peg__buf *out)
{
    struct walk w = {.root = parameters, .out = {.buf = out}};

    write_value(&w, parameters, args);
}

/* ---- a call ------------------------------------------------------------------------------- */

static const peg_json *parameters_of(const peg_json *definitions, peg_str tool)
{
    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_json *name = peg_json_get(definition, "name");

        if (name && peg_json_kind_of(name) == PEG_JSON_STRING &&
            peg__str_eq(peg_json_str(name), tool))
            return peg_json_get(definition, "parameters");
    }
    return NULL;
}

peg_status peg__strict_call_args(const peg_json *definitions, peg_str tool, peg_str args,
                                 struct peg__buf *out, peg_error *reterr)
{
    const peg_json *parameters = definitions ? parameters_of(definitions, tool) : NULL;
    peg_json_doc *doc;
    peg_status status;

    if (!parameters)
        return PEG_OK;
    status = peg_json_parse(args, &peg__json_refuse_duplicates, &doc, NULL);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return PEG_OK; /* the run reports to the model what is wrong */
    if (peg_json_kind_of(peg_json_root(doc)) == PEG_JSON_OBJECT)
        peg__strict_args(parameters, peg_json_root(doc), out);
    peg_json_doc_free(doc);
    return out->status ? peg__fail_nomem(reterr) : PEG_OK;
}
