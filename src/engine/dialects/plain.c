/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parameters as they are, for vendors that take JSON Schema: OpenAI without strict mode, and
 * Anthropic. Both want a root whose type is object, without combinators; OpenAI
 * also wants its `properties`, and `items` wherever there is an array.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static bool is_openai(const struct peg__render *r)
{
    return r->options->vendor == PEG_VENDOR_OPENAI_CHAT ||
           r->options->vendor == PEG_VENDOR_OPENAI_RESPONSES;
}

/* ---- copying, with items where OpenAI misses them ----------------------------------------- */

static bool is_bare_array(const peg_json *type, bool has_items)
{
    return type && !has_items && peg__types_of(type) & PEG__TYPE_ARRAY;
}

static void copy_schema(struct peg__render *r, const peg_json *schema,
                        const struct peg__place *place);

// NOLINTNEXTLINE(misc-no-recursion): copy_schema() has the bound
static void copy_value(struct peg__render *r, enum peg__kw keyword, const peg_json *value,
                       const struct peg__place *up)
{
    const enum peg__kw_shape shape = peg__kw_shape_of(keyword);

    if (shape == PEG__KW_ONE && value->kind == PEG_JSON_OBJECT) {
        const struct peg__place place = peg__place_of(up, keyword);

        copy_schema(r, value, &place);
    } else if (shape != PEG__KW_PLAIN && value->kind == PEG_JSON_ARRAY) {
        peg__put_open(r->out, "[");
        peg__write_list(r, value, up, keyword);
        peg__put_close(r->out, "]");
    } else if (shape == PEG__KW_MEMBERS && value->kind == PEG_JSON_OBJECT) {
        peg__put_open(r->out, "{");
        peg__write_named(r, value, up, keyword, NULL);
        peg__put_close(r->out, "}");
    } else {
        peg__put_value(r->out, value);
    }
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep; what is deeper is copied as it is. */
// NOLINTNEXTLINE(misc-no-recursion)
static void copy_schema(struct peg__render *r, const peg_json *schema,
                        const struct peg__place *place)
{
    const peg_json *type = NULL;
    bool has_items = false;

    if (schema->kind != PEG_JSON_OBJECT || r->depth == PEG_LIMIT_REWRITE_DEPTH) {
        peg__put_value(r->out, schema);
        return;
    }
    r->depth++;
    peg__put_open(r->out, "{");
    PEG_JSON_EACH_MEMBER (schema, key) {
        const enum peg__kw keyword = peg__kw_find(key);

        if (keyword == PEG__KW_TYPE)
            type = key + 1;
        has_items = has_items || keyword == PEG__KW_ITEMS;
        if (keyword == PEG__KW_UNKNOWN)
            peg__put_key(r->out, key);
        else
            peg__put_kw(r->out, keyword);
        copy_value(r, keyword, key + 1, place);
    }
    if (is_openai(r) && is_bare_array(type, has_items)) {
        peg__put_kw(r->out, PEG__KW_ITEMS);
        peg__out_raw(r->out, peg__str("{}"));
        peg__lose_here(r, place, PEG__KW_ITEMS, "rewritten",
                       "OpenAI refuses an array that does not say what its items are, so it is "
                       "sent with items of any kind");
    }
    peg__put_close(r->out, "}");
    r->depth--;
}

/* ---- the root --------------------------------------------------------------------------- */

/* What the root may not say; OpenAI refuses two more. */
static uint64_t refused(const struct peg__render *r)
{
    const uint64_t combinators =
        PEG__KW_BIT(REF) | PEG__KW_BIT(ALL_OF) | PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF);

    return is_openai(r) ? combinators | PEG__KW_BIT(NOT) | PEG__KW_BIT(ENUM) : combinators;
}

static bool is_object_type(const peg_json *type)
{
    return type->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(type), "object");
}

static bool is_fine(const struct peg__render *r)
{
    const uint64_t wrong = refused(r);
    bool is_object = false;
    bool has_properties = false;

    PEG_JSON_EACH_MEMBER (r->root, key) {
        const enum peg__kw keyword = peg__kw_find(key);

        if (keyword == PEG__KW_TYPE)
            is_object = is_object_type(key + 1);
        has_properties = has_properties || keyword == PEG__KW_PROPERTIES;
        if (keyword != PEG__KW_UNKNOWN && wrong >> keyword & 1)
            return false;
    }
    return is_object && (has_properties || !is_openai(r));
}

static const char *note_of(enum peg__kw keyword)
{
    switch (keyword) {
    case PEG__KW_REF:
    case PEG__KW_ALL_OF:
        return "the vendor takes it below the root only, so it is merged into the root";
    case PEG__KW_ANY_OF:
    case PEG__KW_ONE_OF:
        return "the vendor takes it below the root only, so the members of its branches are "
               "offered, each optional";
    case PEG__KW_TYPE:
        return "arguments are always an object";
    default:
        return "the vendor does not take it at the root";
    }
}

static void lose_at_root(struct peg__render *r, const struct peg__view *view)
{
    const uint64_t lost = view->has & refused(r);
    const peg_json *type = peg__view_get(view, PEG__KW_TYPE);

    for (enum peg__kw i = 0; i < PEG__KW_N; i++) {
        const bool is_dropped = i == PEG__KW_NOT || i == PEG__KW_ENUM;

        if (lost >> i & 1 && !(i == PEG__KW_REF && view->is_cut))
            peg__lose_kw(r, peg__view_place(view, i), i, is_dropped ? "dropped" : "rewritten",
                         note_of(i));
    }
    if (type && !is_object_type(type))
        peg__lose_kw(r, peg__view_place(view, PEG__KW_TYPE), PEG__KW_TYPE, "rewritten",
                     note_of(PEG__KW_TYPE));
}

static void copy_property(struct peg__render *r, const peg_json *key,
                          const struct peg__place *place, void *user)
{
    (void)user;
    peg__put_key(r->out, key);
    if (is_openai(r))
        copy_schema(r, key + 1, place);
    else
        peg__put_value(r->out, key + 1);
}

/* What the sources say, but for the members and what the root may not say. */
static void copy_rest(struct peg__render *r, const struct peg__view *view)
{
    const uint64_t skipped =
        refused(r) | PEG__KW_BIT(TYPE) | PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED);

    for (size_t i = 0; i < view->n_sources; i++) {
        const struct peg__source *source = &view->sources[i];

        if (source->is_optional)
            continue;
        PEG_JSON_EACH_MEMBER (source->schema, key) {
            const enum peg__kw keyword = peg__kw_find(key);
            const bool is_known = keyword != PEG__KW_UNKNOWN;

            if (is_known ? skipped >> keyword & 1 || view->from[keyword] != i : i > 0)
                continue;
            peg__put_key(r->out, key);
            if (is_openai(r))
                copy_value(r, keyword, key + 1, source->place);
            else
                peg__put_value(r->out, key + 1);
        }
    }
}

static void rewrite_root(struct peg__render *r)
{
    const size_t inside = r->n_inside;
    struct peg__view view;

    peg__view_make(r, r->root, NULL, PEG__VIEW_MERGE | PEG__VIEW_ROOT | PEG__VIEW_QUIET, &view);
    lose_at_root(r, &view);
    peg__put_open(r->out, "{");
    peg__out_cmember(r->out, "type", "object");
    copy_rest(r, &view);
    peg__put_kw(r->out, PEG__KW_PROPERTIES);
    peg__put_open(r->out, "{");
    peg__view_members(r, &view, copy_property, NULL);
    peg__put_close(r->out, "}");
    peg__put_required(r, &view);
    peg__put_close(r->out, "}");
    r->n_inside = inside;
}

void peg__schema_write_plain(struct peg__render *r)
{
    static const struct peg__dialect dialect = {.write = copy_schema};

    r->dialect = &dialect;
    if (!r->root || r->root->len == 0)
        peg__out_raw(r->out, peg__str("{\"type\":\"object\",\"properties\":{}}"));
    else if (is_fine(r))
        copy_schema(r, r->root, NULL);
    else
        rewrite_root(r);
}
