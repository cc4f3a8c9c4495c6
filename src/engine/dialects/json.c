/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gemini's `parametersJsonSchema`: JSON Schema with references, but not all of its keywords. What
 * is missing goes into the description; allOf is merged, const is an enum of one value.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static void write_json_schema(struct peg__render *r, const peg_json *schema,
                              const struct peg__place *place);

static const struct peg__dialect dialect = {
    .kept = PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR) | PEG__KW_BIT(TYPE) | PEG__KW_BIT(FORMAT) |
            PEG__KW_BIT(TITLE) | PEG__KW_BIT(MIN_ITEMS) | PEG__KW_BIT(MAX_ITEMS) |
            PEG__KW_BIT(MINIMUM) | PEG__KW_BIT(MAXIMUM) | PEG__KW_BIT(PROPERTY_ORDERING),
    .written = PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) |
               PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) | PEG__KW_BIT(ITEMS) |
               PEG__KW_BIT(PREFIX_ITEMS) | PEG__KW_BIT(ADDITIONAL_PROPERTIES) |
               PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(ALL_OF) | PEG__KW_BIT(REF) |
               PEG__KW_BIT(DEFS) | PEG__KW_BIT(DEFINITIONS),
    .dropped = PEG__KW_BIT(SCHEMA) | PEG__KW_BIT(COMMENT) | PEG__KW_BIT(READ_ONLY) |
               PEG__KW_BIT(WRITE_ONLY),
    .note = "Gemini does not take it",
    .write = write_json_schema,
};

/* Without any of them, there is nothing to write of that kind; an array may have none but TYPE. */
static const uint64_t of_values = PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST);
static const uint64_t of_arrays =
    PEG__KW_BIT(ITEMS) | PEG__KW_BIT(PREFIX_ITEMS) | PEG__KW_BIT(TYPE);
static const uint64_t of_objects =
    PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) | PEG__KW_BIT(ADDITIONAL_PROPERTIES);

/* ---- values ----------------------------------------------------------------------------- */

/* Strings and numbers, and null where the type says it already. */
static bool takes_values(const struct peg__view *view)
{
    const unsigned taken = PEG__TYPE_STRING | PEG__TYPE_NUMBER | PEG__TYPE_INTEGER | PEG__TYPE_NULL;
    const unsigned types = peg__types_of_view_values(view);

    return types && !(types & ~taken) && types != PEG__TYPE_NULL;
}

static void write_enum_values(struct peg__render *r, const struct peg__view *view)
{
    if (!takes_values(view))
        return;
    if (view->has & PEG__KW_BIT(ENUM))
        peg__put_member(r, view, PEG__KW_ENUM);
    else
        peg__put_only_value(r, view->value[PEG__KW_CONST], false);
}

static void sort_enum_values(struct peg__render *r, const struct peg__view *view)
{
    const bool is_taken = takes_values(view);

    if (view->has & PEG__KW_BIT(ENUM) && !is_taken)
        peg__describe(r, view, PEG__KW_ENUM, "Gemini takes enum for strings and numbers only");
    if (view->has & PEG__KW_BIT(CONST))
        peg__sort_const(r, view, is_taken);
}

static void sort_view(struct peg__render *r, const struct peg__view *view)
{
    peg__sort_keywords(r, view);
    if (view->has & of_values)
        sort_enum_values(r, view);
}

/* ---- schemas inside --------------------------------------------------------------------- */

static void write_branches_as(struct peg__render *r, const struct peg__view *view,
                              enum peg__kw keyword, enum peg__kw as)
{
    const peg_json *list = peg__view_get(view, keyword);

    if (!list || list->kind != PEG_JSON_ARRAY || list->len == 0)
        return;
    peg__put_kw(r->out, as);
    peg__put_open(r->out, "[");
    peg__write_list(r, list, peg__view_place(view, keyword), keyword);
    peg__put_close(r->out, "]");
}

// NOLINTNEXTLINE(misc-no-recursion): write_json_schema() has the bound
static void write_one(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword)
{
    const peg_json *schema = peg__view_get(view, keyword);
    const struct peg__place place =
        peg__place_of(schema ? peg__view_place(view, keyword) : NULL, keyword);

    if (!schema || schema->kind == PEG_JSON_ARRAY)
        return;
    peg__put_kw(r->out, keyword);
    write_json_schema(r, schema, &place);
}

static void write_property(struct peg__render *r, const peg_json *key,
                           const struct peg__place *place, void *user)
{
    (void)user;
    peg__put_key(r->out, key);
    write_json_schema(r, key + 1, place);
}

// NOLINTNEXTLINE(misc-no-recursion): write_json_schema() has the bound
static void write_object_rules(struct peg__render *r, const struct peg__view *view)
{
    if (view->n_sources > 1 || view->has & PEG__KW_BIT(PROPERTIES)) {
        peg__put_before(r->out, "\"properties\":{");
        peg__view_members(r, view, write_property, NULL);
        peg__put_close(r->out, "}");
    }
    peg__put_required(r, view);
    write_one(r, view, PEG__KW_ADDITIONAL_PROPERTIES);
}

// NOLINTNEXTLINE(misc-no-recursion): write_json_schema() has the bound
static void write_arrays(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *items = peg__view_get(view, PEG__KW_ITEMS);

    if (items && items->kind == PEG_JSON_ARRAY && !(view->has & PEG__KW_BIT(PREFIX_ITEMS))) {
        write_branches_as(r, view, PEG__KW_ITEMS, PEG__KW_PREFIX_ITEMS);
        peg__lose_kw(r, peg__view_place(view, PEG__KW_ITEMS), PEG__KW_ITEMS, "rewritten",
                     "it is sent as prefixItems");
    }
    write_branches_as(r, view, PEG__KW_PREFIX_ITEMS, PEG__KW_PREFIX_ITEMS);
    write_one(r, view, PEG__KW_ITEMS);
    if (!(view->has & (PEG__KW_BIT(ITEMS) | PEG__KW_BIT(PREFIX_ITEMS))) &&
        peg__types_of(peg__view_get(view, PEG__KW_TYPE)) & PEG__TYPE_ARRAY) {
        peg__put_kw(r->out, PEG__KW_ITEMS);
        peg__out_raw(r->out, peg__str("{}"));
        peg__lose_here(r, view->sources[0].place, PEG__KW_ITEMS, "rewritten",
                       "Gemini refuses an array that does not say what its items are, so it is "
                       "sent with items of any kind");
    }
}

/* The older name is not taken: references to it are renamed, too. */
static void write_defs(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *defs = peg__view_get(view, PEG__KW_DEFS);
    const peg_json *older = peg__view_get(view, PEG__KW_DEFINITIONS);

    if (!defs && !older)
        return;
    peg__put_kw(r->out, PEG__KW_DEFS);
    peg__put_open(r->out, "{");
    if (defs && defs->kind == PEG_JSON_OBJECT)
        peg__write_named(r, defs, peg__view_place(view, PEG__KW_DEFS), PEG__KW_DEFS, NULL);
    if (older && older->kind == PEG_JSON_OBJECT)
        peg__write_named(r, older, peg__view_place(view, PEG__KW_DEFINITIONS), PEG__KW_DEFINITIONS,
                         defs);
    peg__put_close(r->out, "}");
}

/* ---- a schema --------------------------------------------------------------------------- */

/* As it is called here: definitions have one name. */
static peg_str rename_ref(struct peg__render *r, peg_str ref)
{
    static const peg_str old = PEG_LIT("#/definitions/");

    if (!peg__str_starts(ref, old))
        return ref;
    peg__buf_clear(&r->renamed);
    peg__buf_puts(&r->renamed, "#/$defs/");
    peg__buf_str(&r->renamed, peg__str_from(ref, old.len));
    if (r->renamed.status)
        peg__render_nomem(r);
    return peg__buf_view(&r->renamed);
}

// NOLINTNEXTLINE(misc-no-recursion): write_json_schema() has the bound
static void write_rules(struct peg__render *r, const struct peg__view *view)
{
    peg__write_description(r, view);
    peg__put_kept(r, view);
    if (view->has & of_values)
        write_enum_values(r, view);
    if (view->has & of_arrays)
        write_arrays(r, view);
    if (view->n_sources > 1 || view->has & of_objects)
        write_object_rules(r, view);
}

// NOLINTNEXTLINE(misc-no-recursion): write_json_schema() has the bound
static void write_view(struct peg__render *r, const struct peg__view *view)
{
    const bool is_merged = view->has & PEG__KW_BIT(ALL_OF);
    const peg_json *ref = peg__view_get(view, PEG__KW_REF);

    sort_view(r, view);
    if (ref && ref->kind == PEG_JSON_STRING && !is_merged) {
        peg__lose_beside_ref(r, view, "Gemini takes no other rule beside $ref");
        peg__write_ref(r, view, rename_ref(r, peg_json_str(ref)), false);
        return;
    }
    write_rules(r, view);
    if (view->has & (PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF))) {
        write_branches_as(r, view, PEG__KW_ANY_OF, PEG__KW_ANY_OF);
        write_branches_as(r, view, PEG__KW_ONE_OF, PEG__KW_ONE_OF);
    }
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_json_schema(struct peg__render *r, const peg_json *schema,
                              const struct peg__place *place)
{
    const size_t inside = r->n_inside;
    struct peg__view view;

    if (schema->kind != PEG_JSON_OBJECT) {
        peg__put_value(r->out, schema);
        return;
    }
    if (r->depth == PEG_LIMIT_REWRITE_DEPTH) {
        peg__lose_here(r, place, PEG__KW_TYPE, "rewritten",
                       "it is nested too deeply, so its inside is left open");
        peg__out_raw(r->out, peg__str("{}"));
        return;
    }
    r->depth++;
    peg__view_make(r, schema, place, PEG__VIEW_MERGE_ALL_OF, &view);
    peg__put_open(r->out, "{");
    write_view(r, &view);
    write_defs(r, &view);
    peg__put_close(r->out, "}");
    r->depth--;
    r->n_inside = inside;
}

/* ---- the root --------------------------------------------------------------------------- */

void peg__schema_write_json(struct peg__render *r)
{
    struct peg__view view;

    if (!r->root || r->root->len == 0)
        return;
    r->dialect = &dialect;
    peg__view_make(r, r->root, NULL, PEG__VIEW_MERGE | PEG__VIEW_ROOT, &view);
    peg__lose_root(r, &view,
                   "the root is an object, so the members of its branches are offered, each "
                   "optional");
    view.has &= ~(PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(TYPE));
    sort_view(r, &view);
    r->depth = 1;
    peg__put_before(r->out, "\"parametersJsonSchema\":{");
    peg__put(r->out, PEG__LIT("\"type\":\"object\""));
    write_rules(r, &view);
    write_defs(r, &view);
    peg__put_close(r->out, "}");
    r->depth = 0;
    r->n_inside = 0;
}
