/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The input schema as it is enforced, and therefore advertised. A root that does not say whether
 * other members may come is closed: additionalProperties where the root alone lists the members,
 * unevaluatedProperties where a $ref or a branch does too. Drafts without the latter cannot say
 * it: such a root stays open, and the log tells.
 *
 * Closing adds members at the end of the root, so a place in the schema is the same before and
 * after.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/tool/tool.h"
#include "pegboard/cleanup.h"
#include "schema/compile/compile.h"
#include "json/json.h"

#define BIT(keyword) (1ULL << (keyword))

/* Keywords that apply further schemas to the same object. `not` is none: it describes no member. */
static const peg__keywords applicators = BIT(KW_REF) | BIT(KW_DYNAMIC_REF) | BIT(KW_RECURSIVE_REF) |
                                         BIT(KW_ALL_OF) | BIT(KW_ANY_OF) | BIT(KW_ONE_OF) |
                                         BIT(KW_IF) | BIT(KW_DEPENDENT_SCHEMAS) |
                                         BIT(KW_DEPENDENCIES) | BIT(KW_PROPERTY_DEPENDENCIES);

/* Says about extra members what there is to say. */
static const peg__keywords closers = BIT(KW_ADDITIONAL_PROPERTIES) | BIT(KW_UNEVALUATED_PROPERTIES);
/* Whole values are listed: nothing is extra. */
static const peg__keywords lists = BIT(KW_CONST) | BIT(KW_ENUM);
static const peg__keywords members = BIT(KW_PROPERTIES) | BIT(KW_PATTERN_PROPERTIES);
/* Without members of its own, a root with one of these is a map from names of the caller's. */
static const peg__keywords maps = BIT(KW_PROPERTY_NAMES) | BIT(KW_MIN_PROPERTIES);

/* Where the search for an object stops; deeper schemas are taken for objects. */
enum { MAX_HOPS = 8, MAX_VISITS = 1000, MAX_LOOKUPS = 1 << 20 };

/* A root and how it is read. */
struct root {
    const peg_json *value; /* an object, or true */
    struct peg__dialect dialect;
    struct peg__subschema sub;
    bool is_hidden;  /* a $ref stands here that hides all beside it */
    unsigned visits; /* schemas that were looked at */
};

/* ---- rejecting ------------------------------------------------------------------------------- */

peg_status peg__tool_refuse(peg_error *reterr, const char *where, const char *message)
{
    peg__fail(reterr, PEG_EINVAL, PEG__TOOL_INVALID, "%s%s%s", where, *where ? ": " : "", message);
    if (reterr)
        peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

peg_status peg__tool_refuse_because(peg_error *reterr, const char *field, const peg_error *cause)
{
    const peg_error behind = *cause;
    /* A place in another document is a URI, which is no part of a pointer. */
    const bool is_elsewhere = behind.where[0] && behind.where[0] != '/';
    char where[sizeof(behind.where) + 64];

    if (behind.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    snprintf(where, sizeof(where), "%s%s", field, is_elsewhere ? "" : behind.where);
    peg__fail_because(reterr, PEG_EINVAL, PEG__TOOL_INVALID, &behind, "%s%s%s", where,
                      is_elsewhere ? " at " : "", is_elsewhere ? behind.where : "");
    if (reterr) {
        peg__error_where(reterr, peg__str(where));
        reterr->offset = behind.offset;
        reterr->line = behind.line;
        reterr->column = behind.column;
    }
    return PEG_EINVAL;
}

/* ---- can it be an object? -------------------------------------------------------------------- */

static bool names_object(const peg_json *type)
{
    if (type->kind == PEG_JSON_STRING)
        return peg__str_is(peg_json_str(type), "object");
    if (type->kind != PEG_JSON_ARRAY)
        return true; /* malformed: compiling reports it */
    PEG_JSON_EACH_ITEM (type, item) {
        if (item->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(item), "object"))
            return true;
    }
    return false;
}

static bool lists_object(const peg_json *values)
{
    if (values->kind != PEG_JSON_ARRAY)
        return true;
    PEG_JSON_EACH_ITEM (values, item) {
        if (item->kind == PEG_JSON_OBJECT)
            return true;
    }
    return false;
}

static bool may_be_object(struct root *root, const peg_json *schema, unsigned hops);

/* Where a reference within the document leads; NULL if it leads elsewhere or nowhere. */
static const peg_json *follow(const peg_json *document, const peg_json *ref)
{
    const peg_str uri = ref->kind == PEG_JSON_STRING ? peg_json_str(ref) : peg__str("");
    const peg_json *target;

    if (uri.len == 0 || uri.ptr[0] != '#' ||
        peg_json_pointer(document, peg__str_from(uri, 1), &target, NULL))
        return NULL;
    return target;
}

/* Bounded by hops and visits, in may_be_object().
 * NOLINTBEGIN(misc-no-recursion) */
static bool may_one(struct root *root, const peg_json *branches, unsigned hops)
{
    if (branches->kind != PEG_JSON_ARRAY || branches->len == 0)
        return true;
    PEG_JSON_EACH_ITEM (branches, branch) {
        if (may_be_object(root, branch, hops))
            return true;
    }
    return false;
}

static bool may_all(struct root *root, const peg_json *branches, unsigned hops)
{
    if (branches->kind != PEG_JSON_ARRAY)
        return true;
    PEG_JSON_EACH_ITEM (branches, branch) {
        if (!may_be_object(root, branch, hops))
            return false;
    }
    return true;
}

/* Through what stands in other schemas. */
static bool may_through(struct root *root, const struct peg__subschema *sub, unsigned hops)
{
    const peg_json *target =
        peg__has(sub, KW_REF) ? follow(root->value, peg__value_of(sub, KW_REF)) : NULL;

    if (target && !may_be_object(root, target, hops))
        return false;
    if (peg__has(sub, KW_REF) && root->dialect.ref_stands_alone)
        return true;
    return !(peg__has(sub, KW_ALL_OF) && !may_all(root, peg__value_of(sub, KW_ALL_OF), hops)) &&
           !(peg__has(sub, KW_ANY_OF) && !may_one(root, peg__value_of(sub, KW_ANY_OF), hops)) &&
           !(peg__has(sub, KW_ONE_OF) && !may_one(root, peg__value_of(sub, KW_ONE_OF), hops));
}

/* False for what certainly accepts no object. */
static bool may_be_object(struct root *root, const peg_json *schema, unsigned hops)
{
    struct peg__subschema sub;

    if (schema->kind != PEG_JSON_OBJECT)
        return schema->kind != PEG_JSON_BOOL || peg_json_is_true(schema);
    if (hops == 0 || ++root->visits > MAX_VISITS)
        return true;
    peg__subschema_read(schema, &root->dialect, &sub);
    if (schema != root->value && peg__has(&sub, KW_ID))
        return true; /* its references start elsewhere */
    if (!may_through(root, &sub, hops - 1))
        return false;
    if (peg__has(&sub, KW_REF) && root->dialect.ref_stands_alone)
        return true;
    return !(peg__has(&sub, KW_TYPE) && !names_object(peg__value_of(&sub, KW_TYPE))) &&
           !(peg__has(&sub, KW_ENUM) && !lists_object(peg__value_of(&sub, KW_ENUM))) &&
           !(peg__has(&sub, KW_CONST) && peg__value_of(&sub, KW_CONST)->kind != PEG_JSON_OBJECT);
}
/* NOLINTEND(misc-no-recursion) */

/* ---- is it silent? --------------------------------------------------------------------------- */

/* `dependencies` holds schemas, or only names of further members. */
static bool has_dependent_schemas(const struct root *root)
{
    const peg_json *map =
        peg__has(&root->sub, KW_DEPENDENCIES) ? peg__value_of(&root->sub, KW_DEPENDENCIES) : NULL;

    if (!map || map->kind != PEG_JSON_OBJECT)
        return false;
    PEG_JSON_EACH_MEMBER (map, key) {
        if (key[1].kind != PEG_JSON_ARRAY)
            return true;
    }
    return false;
}

static bool has_applicators(const struct root *root)
{
    return (root->sub.present & applicators & ~BIT(KW_DEPENDENCIES)) || has_dependent_schemas(root);
}

static bool is_silent(const struct root *root)
{
    const peg__keywords present = root->sub.present;
    const bool is_map = (present & maps) && !(present & members) && !has_applicators(root);

    return root->is_hidden || (!(present & (closers | lists)) && !is_map);
}

/* The keyword that closes a silent root; KW_COUNT if its dialect has none that would do. */
static enum peg__keyword closer_of(const struct root *root)
{
    const enum peg__keyword closer =
        has_applicators(root) ? KW_UNEVALUATED_PROPERTIES : KW_ADDITIONAL_PROPERTIES;

    return !root->is_hidden && (root->dialect.keywords & BIT(closer)) ? closer : KW_COUNT;
}

/* ---- what a root has to be ------------------------------------------------------------------- */

static bool is_only_object(const peg_json *type)
{
    return names_object(type) && (type->kind == PEG_JSON_STRING || peg_json_len(type) == 1);
}

static peg_status refuse_type(const peg_json *type, peg_error *reterr)
{
    const bool is_list = type && type->kind == PEG_JSON_ARRAY;

    return peg__tool_refuse(reterr, type ? "/input_schema/type" : "/input_schema",
                            is_list ? "arguments are always one object: write \"type\": \"object\""
                                    : "the root must be an object: write \"type\": \"object\"");
}

/* Nothing but what its properties name will be accepted. */
static bool lists_all_members(const struct root *root)
{
    const peg_json *rest = peg_json_get(root->value, "additionalProperties");

    if (has_applicators(root) || peg__has(&root->sub, KW_PATTERN_PROPERTIES))
        return false;
    if (rest)
        return rest->kind == PEG_JSON_BOOL && !peg_json_is_true(rest);
    return is_silent(root) && closer_of(root) == KW_ADDITIONAL_PROPERTIES;
}

/* Requiring what is not accepted would refuse every call. */
static peg_status check_required(const struct root *root, peg_error *reterr)
{
    const peg_json *required = peg_json_get(root->value, "required");
    const peg_json *properties = peg_json_get(root->value, "properties");
    char where[64];
    size_t i = 0;

    if (!required || required->kind != PEG_JSON_ARRAY ||
        peg_json_len(required) * (properties ? peg_json_len(properties) : 0) > MAX_LOOKUPS)
        return PEG_OK;
    PEG_JSON_EACH_ITEM (required, name) {
        if (name->kind == PEG_JSON_STRING &&
            !(properties && peg_json_get_str(properties, peg_json_str(name)))) {
            snprintf(where, sizeof(where), "/input_schema/required/%zu", i);
            return peg__tool_refuse(reterr, where,
                                    "a member is required that properties does not have, so no "
                                    "call could succeed: describe it in properties");
        }
        i++;
    }
    return PEG_OK;
}

static peg_status check_root(struct root *root, bool is_open, peg_error *reterr)
{
    const peg_json *type = peg_json_get(root->value, "type");

    if (!may_be_object(root, root->value, MAX_HOPS))
        return type && !names_object(type)
                   ? refuse_type(type, reterr)
                   : peg__tool_refuse(reterr, "/input_schema",
                                      "arguments are always an object, which this schema never "
                                      "accepts: let its root be of type \"object\"");
    if (is_open || root->is_hidden)
        return PEG_OK;
    if (type ? !is_only_object(type) : !(root->sub.present & applicators))
        return refuse_type(type, reterr);
    return lists_all_members(root) ? check_required(root, reterr) : PEG_OK;
}

/* ---- closing it ------------------------------------------------------------------------------ */

static void write_closed(const struct root *root, enum peg__keyword closer, struct peg__buf *out)
{
    const bool has_type = peg_json_get(root->value, "type");

    peg__json_write(root->value, PEG_JSON_COMPACT, out);
    if (out->status)
        return;
    out->len--; /* its last brace */
    if (!has_type)
        peg__buf_puts(out, root->value->len ? ",\"type\":\"object\"" : "\"type\":\"object\"");
    if (closer != KW_COUNT)
        peg__buf_printf(out, ",\"%s\":false", peg__keyword_name(closer));
    peg__buf_putc(out, '}');
}

/* ---- compiling ------------------------------------------------------------------------------- */

static peg_status compile_schema(const peg_tool_def *def, peg_str text, bool check_defaults,
                                 peg_schema **ret_schema, peg_error *reterr)
{
    peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT};

    if (def->schema_options)
        options = *def->schema_options;
    options.check_defaults |= check_defaults;
    if (def->schema_cache)
        return peg_schema_cache_compile(def->schema_cache, text, &options, ret_schema, reterr);
    return peg_schema_compile(text, &options, ret_schema, reterr);
}

/* As compiling parses it, so that both refuse the same. */
static peg_status parse_schema(const peg_tool_def *def, peg_str text, peg_json_doc **ret_doc,
                               peg_error *reterr)
{
    const peg_schema_options *o = def->schema_options;
    const unsigned depth = o && o->max_depth ? o->max_depth : PEG_LIMIT_SCHEMA_DEPTH;
    const peg_json_options limits = {
        PEG_JSON_OPTIONS_INIT,
        .max_bytes = o && o->max_bytes ? o->max_bytes : PEG_LIMIT_SCHEMA_BYTES,
        .max_depth = 2 * depth + 2,
        .duplicates = PEG_JSON_REFUSE,
    };

    return peg_json_parse(text, &limits, ret_doc, reterr);
}

/* False for what is no schema at all: compiling says why. */
static bool read_root(const peg_tool_def *def, const peg_json *value, struct root *ret_root)
{
    const peg_schema_options *o = def->schema_options;
    const struct peg__index index = {.docs = o ? o->docs : NULL};
    const struct peg__dialect outer = peg__dialect_of(o ? o->dialect : PEG_DIALECT_DEFAULT);
    struct root root = {.value = value};

    if (value->kind != PEG_JSON_OBJECT && value->kind != PEG_JSON_BOOL)
        return false;
    if (peg__index_dialect(&index, value, &outer, &root.dialect, NULL))
        return false;
    if (value->kind == PEG_JSON_OBJECT)
        peg__subschema_read(value, &root.dialect, &root.sub);
    root.is_hidden = root.dialect.ref_stands_alone && peg__has(&root.sub, KW_REF);
    *ret_root = root;
    return true;
}

static void tell_open(const peg_tool_def *def)
{
    peg__log(PEG_LOG_WARN, "E_TOOL_ARGUMENTS_OPEN",
             "the tool '%s' takes members that its schema does not know: its dialect cannot close "
             "a root with references or branches; use 2020-12, or set open_arguments",
             def->name);
}

/* A root of the host's own: closed if it is silent. */
static peg_status compile_closed(const peg_tool_def *def, peg_str text, const struct root *root,
                                 peg_schema **ret_schema, peg_error *reterr)
{
    const bool silent = is_silent(root);
    const enum peg__keyword closer = silent ? closer_of(root) : KW_COUNT;
    const bool is_edited =
        !root->is_hidden && (closer != KW_COUNT || !peg_json_get(root->value, "type"));
    struct peg__buf closed = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status = PEG_OK;

    if (is_edited)
        write_closed(root, closer, &closed);
    if (closed.status)
        status = peg__fail_nomem(reterr);
    else
        status = compile_schema(def, is_edited ? peg__buf_view(&closed) : text, true, ret_schema,
                                reterr);
    peg__buf_free(&closed);
    if (status == PEG_OK && silent && closer == KW_COUNT)
        tell_open(def);
    return status;
}

peg_status peg__tool_compile_input(const peg_tool_def *def, peg_schema **ret_schema,
                                   peg_error *reterr)
{
    static const char no_arguments[] = "{\"type\":\"object\",\"properties\":{}}";
    const peg_str text = peg__str(def->input_schema ? def->input_schema : no_arguments);
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct root root;
    peg_error why;
    peg_status status = parse_schema(def, text, &doc, &why);

    if (status == PEG_OK && read_root(def, peg_json_root(doc), &root)) {
        status = check_root(&root, def->open_arguments, reterr);
        if (status)
            return status;
        if (root.value->kind == PEG_JSON_OBJECT && !def->open_arguments)
            status = compile_closed(def, text, &root, ret_schema, &why);
        else
            status = compile_schema(def, text, true, ret_schema, &why);
    } else if (status == PEG_OK || status == PEG_ELIMIT) {
        /* Fails in the same way, in the words of a schema. */
        status = compile_schema(def, text, true, ret_schema, &why);
    }
    return status ? peg__tool_refuse_because(reterr, "/input_schema", &why) : PEG_OK;
}

peg_status peg__tool_compile_output(const peg_tool_def *def, peg_schema **ret_schema,
                                    peg_error *reterr)
{
    peg_error why;

    if (compile_schema(def, peg__str(def->output_schema), false, ret_schema, &why))
        return peg__tool_refuse_because(reterr, "/output_schema", &why);
    return PEG_OK;
}
