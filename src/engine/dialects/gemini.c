/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gemini's `parameters`: a subset of OpenAPI's schemas, without references and with types in upper
 * case. References are written out in place, allOf is merged, branches take over the rules beside
 * them; what the subset has no word for goes into the description.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static void write_schema(struct peg__render *r, const peg_json *schema,
                         const struct peg__place *place);

/* ---- parts ------------------------------------------------------------------------------ */

static void write_type(struct peg__render *r, unsigned type)
{
    static const struct peg__kw_text texts[] = {
        PEG__KW_TEXT("\"type\":\"NULL\""),    PEG__KW_TEXT("\"type\":\"BOOLEAN\""),
        PEG__KW_TEXT("\"type\":\"INTEGER\""), PEG__KW_TEXT("\"type\":\"NUMBER\""),
        PEG__KW_TEXT("\"type\":\"STRING\""),  PEG__KW_TEXT("\"type\":\"ARRAY\""),
        PEG__KW_TEXT("\"type\":\"OBJECT\"")};

    peg__put_text(r->out, &texts[__builtin_ctz(type)]);
}

static void write_plain(struct peg__render *r, const struct peg__view *view, uint64_t keywords)
{
    for (uint64_t rest = view->has & keywords; rest; rest &= rest - 1) {
        const enum peg__kw i = (enum peg__kw)__builtin_ctzll(rest);

        if (!peg__gemini_takes_value(i, view->value[i]))
            continue;
        peg__put_kw(r->out, i);
        peg__put_value(r->out, view->value[i]);
    }
}

static void write_bounds(struct peg__render *r, const struct peg__view *view,
                         const struct peg__gemini_form *form)
{
    int64_t bound;

    if (!(view->has & (PEG__KW_BIT(EXCLUSIVE_MINIMUM) | PEG__KW_BIT(EXCLUSIVE_MAXIMUM))))
        return;
    if (peg__gemini_bound(view, form, PEG__KW_EXCLUSIVE_MINIMUM, &bound)) {
        peg__put_kw(r->out, PEG__KW_MINIMUM);
        peg__out_integer(r->out, bound);
    }
    if (peg__gemini_bound(view, form, PEG__KW_EXCLUSIVE_MAXIMUM, &bound)) {
        peg__put_kw(r->out, PEG__KW_MAXIMUM);
        peg__out_integer(r->out, bound);
    }
}

/* Gemini refuses an empty value, and says null by `nullable`. */
static void write_enum(struct peg__render *r, const struct peg__view *view)
{
    bool has_empty = false;

    peg__put_kw(r->out, PEG__KW_ENUM);
    peg__put_open(r->out, "[");
    PEG_JSON_EACH_ITEM (view->value[PEG__KW_ENUM], value) {
        if (value->kind == PEG_JSON_STRING && value->len)
            peg__put_value(r->out, value);
        else
            has_empty = has_empty || value->kind == PEG_JSON_STRING;
    }
    peg__put_close(r->out, "]");
    if (has_empty)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_ENUM), PEG__KW_ENUM, "rewritten",
                     "Gemini takes no empty value");
}

static void write_values(struct peg__render *r, const struct peg__view *view,
                         const struct peg__gemini_form *form)
{
    if (form->has_enum) {
        write_enum(r, view);
    } else if (form->has_const) {
        peg__put_kw(r->out, PEG__KW_ENUM);
        peg__put_open(r->out, "[");
        peg__put_value(r->out, view->value[PEG__KW_CONST]);
        peg__put_close(r->out, "]");
    }
}

static void write_title(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *title = peg__view_get(view, PEG__KW_TITLE);

    if (title && title->kind == PEG_JSON_STRING && title->len) {
        peg__put_kw(r->out, PEG__KW_TITLE);
        peg__put_value(r->out, title);
    }
}

/* ---- arrays ----------------------------------------------------------------------------- */

static void write_anything(struct peg__render *r)
{
    peg__out_raw(r->out, peg__str("{\"anyOf\":[{\"type\":\"STRING\"},{\"type\":\"NUMBER\"},"
                                  "{\"type\":\"BOOLEAN\"},{\"type\":\"OBJECT\"}]}"));
}

/* A tuple: each item may be any of those it has. */
// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_tuple(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword)
{
    const struct peg__place *up = peg__view_place(view, keyword);
    const peg_json *list = view->value[keyword];
    uint32_t i = 0;

    peg__lose_kw(r, up, keyword, "rewritten",
                 "Gemini's parameters know no tuples, so each item may be any of them");
    if (list->len > 1) {
        peg__put_open(r->out, "{");
        peg__put_kw(r->out, PEG__KW_ANY_OF);
        peg__put_open(r->out, "[");
    }
    PEG_JSON_EACH_ITEM (list, item) {
        const struct peg__place place = peg__place_index(up, keyword, i++);

        write_schema(r, item, &place);
    }
    if (list->len > 1) {
        peg__put_close(r->out, "]");
        peg__put_close(r->out, "}");
    }
}

static bool is_tuple(const peg_json *list)
{
    return list && list->kind == PEG_JSON_ARRAY && list->len;
}

// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_items(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *items = peg__view_get(view, PEG__KW_ITEMS);

    peg__put_kw(r->out, PEG__KW_ITEMS);
    if (is_tuple(peg__view_get(view, PEG__KW_PREFIX_ITEMS))) {
        write_tuple(r, view, PEG__KW_PREFIX_ITEMS);
    } else if (is_tuple(items)) {
        write_tuple(r, view, PEG__KW_ITEMS);
    } else if (items && items->kind == PEG_JSON_OBJECT) {
        const struct peg__place place =
            peg__place_of(peg__view_place(view, PEG__KW_ITEMS), PEG__KW_ITEMS);

        write_schema(r, items, &place);
    } else {
        peg__lose_here(r, view->sources[0].place, PEG__KW_ITEMS, "rewritten",
                       "Gemini refuses an array that does not say what its items are, so it is "
                       "sent with items of any kind");
        write_anything(r);
    }
}

/* ---- objects ---------------------------------------------------------------------------- */

struct members {
    struct peg__required required;
    size_t n_required; /* of them that there are */
    size_t n;
};

static bool is_false(const peg_json *schema)
{
    return schema->kind == PEG_JSON_BOOL && !peg_json_is_true(schema);
}

static void write_member(struct peg__render *r, const peg_json *key, const struct peg__place *place,
                         void *user)
{
    struct members *members = user;

    if (is_false(key + 1)) {
        peg__lose_here(r, place, PEG__KW_PROPERTIES, "dropped",
                       "nothing is valid there, so it is not offered");
        return;
    }
    if (members->n++ == 0) {
        peg__put_kw(r->out, PEG__KW_PROPERTIES);
        peg__put_open(r->out, "{");
    }
    members->n_required += peg__required_has(&members->required, key);
    peg__put_key(r->out, key);
    write_schema(r, key + 1, place);
}

static void write_required_name(struct peg__render *r, const peg_json *key,
                                const struct peg__place *place, void *user)
{
    const struct members *members = user;

    (void)place;
    if (!is_false(key + 1) && peg__required_has(&members->required, key))
        peg__put_string(r->out, key);
}

// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_members(struct peg__render *r, const struct peg__view *view)
{
    struct members members;

    members.n_required = 0;
    members.n = 0;
    peg__required_make(r, view, &members.required);
    peg__view_members(r, view, write_member, &members);
    if (members.n)
        peg__put_close(r->out, "}");
    if (members.n_required) {
        peg__put_kw(r->out, PEG__KW_REQUIRED);
        peg__put_open(r->out, "[");
        peg__view_members(r, view, write_required_name, &members);
        peg__put_close(r->out, "]");
    }
    if (members.n_required < members.required.n && view->has & PEG__KW_BIT(REQUIRED))
        peg__lose_kw(r, peg__view_place(view, PEG__KW_REQUIRED), PEG__KW_REQUIRED, "rewritten",
                     "Gemini takes only members that are described");
    peg__required_free(&members.required);
}

/* ---- a schema --------------------------------------------------------------------------- */

/* Of one type; its notes are ready. */
// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_inside(struct peg__render *r, const struct peg__view *view,
                         const struct peg__gemini_form *form)
{
    const unsigned type = form->types;

    write_type(r, type);
    if (view->has & PEG__KW_BIT(FORMAT) &&
        peg__gemini_takes_format(type, view->value[PEG__KW_FORMAT])) {
        peg__put_kw(r->out, PEG__KW_FORMAT);
        peg__put_value(r->out, view->value[PEG__KW_FORMAT]);
    }
    if (!form->is_described) {
        write_title(r, view);
        peg__write_description(r, view);
        if (form->is_nullable) {
            peg__put_kw(r->out, PEG__KW_NULLABLE);
            peg__out_bool(r->out, true);
        }
    }
    write_values(r, view, form);
    write_plain(r, view, peg__gemini_keywords(type));
    write_bounds(r, view, form);
    if (type == PEG__TYPE_ARRAY)
        write_items(r, view);
    if (type == PEG__TYPE_OBJECT)
        write_members(r, view);
    if (!form->is_described && view->has & PEG__KW_BIT(DEFAULT)) {
        peg__put_kw(r->out, PEG__KW_DEFAULT);
        peg__put_value(r->out, view->value[PEG__KW_DEFAULT]);
    }
}

/* What stands beside branches. */
static void write_outside(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    write_title(r, view);
    peg__write_description(r, view);
    if (is_nullable) {
        peg__put_kw(r->out, PEG__KW_NULLABLE);
        peg__out_bool(r->out, true);
    }
    peg__put_kw(r->out, PEG__KW_ANY_OF);
    peg__put_open(r->out, "[");
}

/* Several types are as many branches. */
// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_types(struct peg__render *r, const struct peg__view *view,
                        struct peg__gemini_form *form)
{
    if (view->has & PEG__KW_BIT(TYPE))
        peg__lose_kw(r, peg__view_place(view, PEG__KW_TYPE), PEG__KW_TYPE, "rewritten",
                     "Gemini's parameters have one type each, so they are sent as anyOf");
    write_outside(r, view, form->is_nullable);
    for (unsigned rest = form->types; rest; rest &= rest - 1) {
        const struct peg__gemini_form one = {
            .types = rest & -rest, .is_described = true, .branches = PEG__KW_UNKNOWN};

        peg__put_open(r->out, "{");
        write_inside(r, view, &one);
        peg__put_close(r->out, "}");
    }
    peg__put_close(r->out, "]");
}

/* ---- branches --------------------------------------------------------------------------- */

static void write_laid_out(struct peg__render *r, const struct peg__view *view);

static bool is_null(const peg_json *branch)
{
    const peg_json *constant = peg_json_get(branch, "const");

    return peg__types_of(peg_json_get(branch, "type")) == PEG__TYPE_NULL ||
           (constant && constant->kind == PEG_JSON_NULL);
}

static bool is_real(const peg_json *branch)
{
    return !is_null(branch) && !is_false(branch);
}

static size_t count_real(const peg_json *list)
{
    size_t n = 0;

    PEG_JSON_EACH_ITEM (list, branch)
        n += is_real(branch);
    return n;
}

/* One branch, or one and null, is that branch with the rules beside it. */
static void take_only_branch(struct peg__render *r, struct peg__view *view)
{
    for (enum peg__kw keyword; (keyword = peg__gemini_branches(view)) != PEG__KW_UNKNOWN;) {
        const peg_json *list = view->value[keyword];
        const struct peg__place *up = peg__view_place(view, keyword);
        uint32_t i = 0;

        if (count_real(list) > 1)
            return;
        view->has &= ~(UINT64_C(1) << keyword);
        PEG_JSON_EACH_ITEM (list, branch) {
            const struct peg__place place = peg__place_index(up, keyword, i++);

            view->is_nullable = view->is_nullable || is_null(branch);
            if (is_real(branch))
                peg__view_add(r, view, branch, &place, PEG__VIEW_MERGE);
        }
    }
}

/* A branch with the rules beside it: both apply. */
// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_branch(struct peg__render *r, const peg_json *branch,
                         const struct peg__place *place, const struct peg__view *beside)
{
    const size_t inside = r->n_inside;
    struct peg__view view;

    peg__view_make(r, branch, place, PEG__VIEW_MERGE, &view);
    for (size_t i = 0; i < beside->n_sources; i++)
        peg__view_add(r, &view, beside->sources[i].schema, beside->sources[i].place,
                      PEG__VIEW_BASE);
    take_only_branch(r, &view);
    peg__put_open(r->out, "{");
    write_laid_out(r, &view);
    peg__put_close(r->out, "}");
    r->n_inside = inside;
}

// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_branches(struct peg__render *r, const struct peg__view *view,
                           const struct peg__gemini_form *form)
{
    const peg_json *list = view->value[form->branches];
    const struct peg__place *up = peg__view_place(view, form->branches);
    bool has_null = false;
    uint32_t i = 0;

    PEG_JSON_EACH_ITEM (list, branch)
        has_null = has_null || is_null(branch);
    write_outside(r, view, form->is_nullable || has_null);
    PEG_JSON_EACH_ITEM (list, branch) {
        const struct peg__place place = peg__place_index(up, form->branches, i++);

        if (is_real(branch))
            write_branch(r, branch, &place, view);
    }
    peg__put_close(r->out, "]");
}

/* ---- putting it together ---------------------------------------------------------------- */

static void write_any_type(struct peg__render *r, const struct peg__view *view,
                           const struct peg__gemini_form *form)
{
    peg__lose_here(r, view->n_sources ? view->sources[0].place : NULL, PEG__KW_TYPE, "rewritten",
                   "Gemini's parameters want a type, so it is sent as any of them");
    write_outside(r, view, form->is_nullable);
    peg__out_raw(r->out, peg__str("{\"type\":\"STRING\"},{\"type\":\"NUMBER\"},"
                                  "{\"type\":\"BOOLEAN\"},{\"type\":\"OBJECT\"}"));
    peg__put_close(r->out, "]");
}

/* Branches repeat what stands beside them, and may stand inside each other: text that would grow
 * without an end is not written. */
static bool is_too_much(const struct peg__render *r)
{
    return r->out->buf->len - r->start > PEG_LIMIT_INLINED_BYTES ||
           r->depth >= PEG_LIMIT_REWRITE_DEPTH;
}

/* The members of a schema. */
// NOLINTNEXTLINE(misc-no-recursion): write_schema() has the bound
static void write_laid_out(struct peg__render *r, const struct peg__view *view)
{
    struct peg__gemini_form form;

    peg__gemini_decide(view, &form);
    if (form.branches != PEG__KW_UNKNOWN && is_too_much(r)) {
        peg__lose_kw(r, peg__view_place(view, form.branches), form.branches, "dropped",
                     "written out, the branches would become too large");
        form.branches = PEG__KW_UNKNOWN;
        form.types = form.types ? form.types : peg__gemini_implied(view);
    }
    r->depth++;
    peg__gemini_sort(r, view, &form);
    if (form.branches != PEG__KW_UNKNOWN)
        write_branches(r, view, &form);
    else if (!form.types)
        write_any_type(r, view, &form);
    else if (form.types & (form.types - 1))
        write_types(r, view, &form);
    else
        write_inside(r, view, &form);
    r->depth--;
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_schema(struct peg__render *r, const peg_json *schema,
                         const struct peg__place *place)
{
    const size_t inside = r->n_inside;
    struct peg__view view;

    if (r->depth >= PEG_LIMIT_REWRITE_DEPTH) {
        peg__lose_here(r, place, PEG__KW_TYPE, "rewritten",
                       "it is nested too deeply, so its inside is left open");
        peg__out_raw(r->out, peg__str("{\"type\":\"OBJECT\"}"));
        return;
    }
    peg__view_make(r, schema, place, PEG__VIEW_MERGE, &view);
    if (view.has & (PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF)))
        take_only_branch(r, &view);
    peg__put_open(r->out, "{");
    write_laid_out(r, &view);
    peg__put_close(r->out, "}");
    r->n_inside = inside;
}

/* ---- the root --------------------------------------------------------------------------- */

static void count_member(struct peg__render *r, const peg_json *key, const struct peg__place *place,
                         void *user)
{
    size_t *n = user;

    (void)r;
    (void)place;
    *n += !is_false(key + 1);
}

/* The first member of a plain schema mostly tells. */
static bool has_members(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *properties = peg__view_get(view, PEG__KW_PROPERTIES);
    size_t n = 0;

    if (view->n_sources == 1 && properties && properties->kind == PEG_JSON_OBJECT &&
        properties->len && !is_false(properties + 2))
        return true;
    peg__view_members(r, view, count_member, &n);
    return n > 0;
}

static void tell_root(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *type = peg__view_get(view, PEG__KW_TYPE);

    for (enum peg__kw i = PEG__KW_ANY_OF; i <= PEG__KW_ONE_OF; i++) {
        if (view->has >> i & 1)
            peg__lose_kw(r, peg__view_place(view, i), i, "rewritten",
                         "Gemini takes it below the root only, so the members of its branches are "
                         "offered, each optional");
    }
    if (type && peg__types_of(type) != PEG__TYPE_OBJECT)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_TYPE), PEG__KW_TYPE, "rewritten",
                     "arguments are always an object");
}

void peg__schema_write_gemini(struct peg__render *r)
{
    const struct peg__gemini_form form = {.types = PEG__TYPE_OBJECT, .branches = PEG__KW_UNKNOWN};
    struct peg__view view;

    if (!r->root)
        return;
    peg__view_make(r, r->root, NULL, PEG__VIEW_MERGE | PEG__VIEW_ROOT, &view);
    tell_root(r, &view);
    peg__gemini_sort(r, &view, &form);
    /* Gemini refuses an object without members: then there are no parameters at all. */
    if (has_members(r, &view)) {
        peg__put_before(r->out, "\"parameters\":{");
        r->depth = 1;
        write_inside(r, &view, &form);
        r->depth = 0;
        peg__put_close(r->out, "}");
    }
    r->n_inside = 0;
}
