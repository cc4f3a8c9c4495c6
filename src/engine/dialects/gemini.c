/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gemini's `parameters`: a subset of OpenAPI's schemas, without references and with types in upper
 * case. References are written out in place, allOf is merged, branches take over the rules beside
 * them; what the subset has no word for goes into the description.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static void write_openapi(struct peg__render *r, const peg_json *schema,
                          const struct peg__place *place);

static const struct peg__dialect dialect = {
    /* Resolved, merged, or decided by functions of their own. */
    .written = PEG__KW_BIT(TYPE) | PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(FORMAT) |
               PEG__KW_BIT(TITLE) | PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(DEFAULT) |
               PEG__KW_BIT(NULLABLE) | PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) |
               PEG__KW_BIT(ITEMS) | PEG__KW_BIT(PREFIX_ITEMS) | PEG__KW_BIT(ANY_OF) |
               PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(ALL_OF) | PEG__KW_BIT(REF) | PEG__KW_BIT(DEFS) |
               PEG__KW_BIT(DEFINITIONS) | PEG__KW_BIT(EXAMPLES),
    /* Nothing a model could use, or what it does anyway. */
    .dropped = PEG__KW_BIT(SCHEMA) | PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR) | PEG__KW_BIT(COMMENT) |
               PEG__KW_BIT(READ_ONLY) | PEG__KW_BIT(WRITE_ONLY) | PEG__KW_BIT(ADDITIONAL_ITEMS) |
               PEG__KW_BIT(UNEVALUATED_ITEMS),
    .note = "Gemini's parameters do not take it",
    .write = write_openapi,
};

#define ANY_TYPE                                                                                   \
    "{\"type\":\"STRING\"},{\"type\":\"NUMBER\"},{\"type\":\"BOOLEAN\"},{\"type\":\"OBJECT\"}"

/* How one schema is written. */
struct form {
    unsigned types;        /* without null; none: anything */
    bool is_nullable;      /* null is valid, too */
    bool has_enum;         /* all values are strings */
    bool has_const;        /* which is a string */
    bool is_described;     /* the description stands outside already */
    enum peg__kw branches; /* PEG__KW_ANY_OF, PEG__KW_ONE_OF or PEG__KW_UNKNOWN */
};

/* ---- what goes where -------------------------------------------------------------------- */

static const uint64_t closing =
    PEG__KW_BIT(ADDITIONAL_PROPERTIES) | PEG__KW_BIT(UNEVALUATED_PROPERTIES);

static const uint64_t of_strings =
    PEG__KW_BIT(MIN_LENGTH) | PEG__KW_BIT(MAX_LENGTH) | PEG__KW_BIT(PATTERN);
static const uint64_t of_numbers = PEG__KW_BIT(MINIMUM) | PEG__KW_BIT(MAXIMUM);
static const uint64_t of_arrays = PEG__KW_BIT(MIN_ITEMS) | PEG__KW_BIT(MAX_ITEMS);
static const uint64_t of_objects =
    PEG__KW_BIT(MIN_PROPERTIES) | PEG__KW_BIT(MAX_PROPERTIES) | PEG__KW_BIT(PROPERTY_ORDERING);

/* Keywords of one type that are sent as they are, if their value is taken. */
static uint64_t keywords_of(unsigned type)
{
    return type == PEG__TYPE_STRING                        ? of_strings
           : type & (PEG__TYPE_INTEGER | PEG__TYPE_NUMBER) ? of_numbers
           : type == PEG__TYPE_ARRAY                       ? of_arrays
           : type == PEG__TYPE_OBJECT                      ? of_objects
                                                           : 0;
}

/* A field of the wrong kind would have the whole request refused. */
static bool takes_value(enum peg__kw keyword, const peg_json *value)
{
    int64_t number;

    switch (keyword) {
    case PEG__KW_PATTERN:
        return value->kind == PEG_JSON_STRING;
    case PEG__KW_MINIMUM:
    case PEG__KW_MAXIMUM:
        return peg_json_is_number(value);
    case PEG__KW_PROPERTY_ORDERING:
        return value->kind == PEG_JSON_ARRAY &&
               !(peg__types_of_values(value) & ~(unsigned)PEG__TYPE_STRING);
    default:
        return peg_json_int64(value, &number) && number >= 0;
    }
}

static bool takes_format(unsigned type, const peg_json *format)
{
    const peg_str name = format->kind == PEG_JSON_STRING ? peg_json_str(format) : peg__str("");

    switch (type) {
    case PEG__TYPE_STRING:
        return peg__str_is(name, "date-time") || peg__str_is(name, "enum");
    case PEG__TYPE_INTEGER:
        return peg__str_is(name, "int32") || peg__str_is(name, "int64");
    case PEG__TYPE_NUMBER:
        return peg__str_is(name, "float") || peg__str_is(name, "double");
    default:
        return false;
    }
}

/* A bound of whole numbers that excludes its value is one that includes the next. */
static bool find_bound(const struct peg__view *view, const struct form *form, enum peg__kw keyword,
                       int64_t *ret_bound)
{
    const bool is_lower = keyword == PEG__KW_EXCLUSIVE_MINIMUM;
    const enum peg__kw plain = is_lower ? PEG__KW_MINIMUM : PEG__KW_MAXIMUM;
    const peg_json *value = peg__view_get(view, keyword);
    int64_t bound;

    if (!value || form->types != PEG__TYPE_INTEGER || view->has >> plain & 1 ||
        !peg_json_int64(value, &bound) || bound == (is_lower ? INT64_MAX : INT64_MIN))
        return false;
    *ret_bound = is_lower ? bound + 1 : bound - 1;
    return true;
}

/* ---- the form --------------------------------------------------------------------------- */

/* Types that the other keywords imply, where `type` is missing; 0: none. */
static unsigned implied_types(const struct peg__view *view)
{
    const uint64_t numbers = of_numbers | PEG__KW_BIT(MULTIPLE_OF) |
                             PEG__KW_BIT(EXCLUSIVE_MINIMUM) | PEG__KW_BIT(EXCLUSIVE_MAXIMUM);
    const uint64_t arrays = of_arrays | PEG__KW_BIT(ITEMS) | PEG__KW_BIT(PREFIX_ITEMS) |
                            PEG__KW_BIT(UNIQUE_ITEMS) | PEG__KW_BIT(CONTAINS);

    if (view->is_cut ||
        view->has & (of_objects | closing | PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED)))
        return PEG__TYPE_OBJECT;
    if (view->has & arrays)
        return PEG__TYPE_ARRAY;
    if (view->has & of_strings)
        return PEG__TYPE_STRING;
    return view->has & numbers ? PEG__TYPE_NUMBER : 0;
}

static void decide_values(const struct peg__view *view, struct form *form)
{
    const unsigned types = peg__types_of_view_values(view);

    if (!form->types)
        form->types = types & ~(unsigned)PEG__TYPE_NULL;
    form->is_nullable = form->is_nullable || types & PEG__TYPE_NULL;
    if ((types & ~(unsigned)PEG__TYPE_NULL) != PEG__TYPE_STRING || form->types != PEG__TYPE_STRING)
        return;
    form->has_enum = view->has & PEG__KW_BIT(ENUM);
    form->has_const = !form->has_enum;
}

static void decide_form(const struct peg__view *view, struct form *form)
{
    const unsigned types = peg__types_of(peg__view_get(view, PEG__KW_TYPE));
    const peg_json *nullable = peg__view_get(view, PEG__KW_NULLABLE);

    *form = (struct form){.types = types & ~(unsigned)PEG__TYPE_NULL,
                          .is_nullable = view->is_nullable || types & PEG__TYPE_NULL ||
                                         (nullable && peg_json_is_true(nullable)),
                          .branches = peg__view_branches(view)};
    if (types == PEG__TYPE_NULL && form->branches == PEG__KW_UNKNOWN)
        *form = (struct form){.types = PEG__TYPE_NULL, .branches = PEG__KW_UNKNOWN};
    if (view->has & (PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST)))
        decide_values(view, form);
    if (!form->types && form->branches == PEG__KW_UNKNOWN)
        form->types = implied_types(view);
}

/* ---- what has no place ------------------------------------------------------------------ */

static void sort_form_values(struct peg__render *r, const struct peg__view *view,
                             const struct form *form, uint64_t has)
{
    if (has & PEG__KW_BIT(ENUM) && !form->has_enum)
        peg__describe(r, view, PEG__KW_ENUM, "Gemini's parameters take enum for strings only");
    if (has & PEG__KW_BIT(CONST))
        peg__sort_const(r, view, form->has_const);
    if (has & PEG__KW_BIT(FORMAT) && !takes_format(form->types, view->value[PEG__KW_FORMAT]))
        peg__describe(r, view, PEG__KW_FORMAT, "Gemini's parameters do not know this format");
    if (has & PEG__KW_BIT(EXAMPLES))
        peg__describe(r, view, PEG__KW_EXAMPLES, dialect.note);
}

/* Sent as they are, with the type that they belong to. */
static uint64_t taken_keywords(void)
{
    return of_strings | of_numbers | of_arrays | of_objects;
}

static void sort_one(struct peg__render *r, const struct peg__view *view, const struct form *form,
                     enum peg__kw i)
{
    const struct peg__place *place = peg__view_place(view, i);
    const peg_json *value = view->value[i];
    const bool is_exclusive = i == PEG__KW_EXCLUSIVE_MINIMUM || i == PEG__KW_EXCLUSIVE_MAXIMUM;
    int64_t bound;

    if (taken_keywords() >> i & 1) {
        if (!takes_value(i, value))
            peg__lose_kw(r, place, i, "dropped", "it is not what JSON Schema wants there");
    } else if (is_exclusive && find_bound(view, form, i, &bound)) {
        peg__lose_kw(r, place, i, "rewritten", "it is sent as the bound next to it");
    } else if (dialect.dropped >> i & 1 || (closing >> i & 1 && value->kind == PEG_JSON_BOOL)) {
        peg__lose_kw(r, place, i, "dropped", dialect.note);
    } else {
        peg__describe(r, view, i, dialect.note);
    }
}

/* Fills the notes, and reports what is lost. */
static void sort_view(struct peg__render *r, const struct peg__view *view, const struct form *form)
{
    const uint64_t of_values =
        PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(FORMAT) | PEG__KW_BIT(EXAMPLES);
    const uint64_t has = view->has & ~view->of_base;
    /* What is taken can only be lost. */
    const uint64_t silent = r->losses ? dialect.written : dialect.written | taken_keywords();

    peg__buf_clear(&r->notes);
    for (uint64_t rest = has & ~silent; rest; rest &= rest - 1)
        sort_one(r, view, form, (enum peg__kw)__builtin_ctzll(rest));
    if (has & of_values)
        sort_form_values(r, view, form, has);
    if (form->branches == PEG__KW_ANY_OF && view->has & PEG__KW_BIT(ONE_OF))
        peg__describe(r, view, PEG__KW_ONE_OF, "Gemini's parameters take one list of branches");
    else if (form->branches == PEG__KW_ONE_OF)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_ONE_OF), PEG__KW_ONE_OF, "rewritten",
                     "it is sent as anyOf");
}

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

        if (takes_value(i, view->value[i]))
            peg__put_member(r, view, i);
    }
}

static void write_bounds(struct peg__render *r, const struct peg__view *view,
                         const struct form *form)
{
    int64_t bound;

    if (!(view->has & (PEG__KW_BIT(EXCLUSIVE_MINIMUM) | PEG__KW_BIT(EXCLUSIVE_MAXIMUM))))
        return;
    for (enum peg__kw i = PEG__KW_EXCLUSIVE_MINIMUM; i <= PEG__KW_EXCLUSIVE_MAXIMUM; i++) {
        if (!find_bound(view, form, i, &bound))
            continue;
        peg__put_kw(r->out, i == PEG__KW_EXCLUSIVE_MINIMUM ? PEG__KW_MINIMUM : PEG__KW_MAXIMUM);
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

/* Title, description and nullable. */
static void write_heading(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const peg_json *title = peg__view_get(view, PEG__KW_TITLE);

    if (title && title->kind == PEG_JSON_STRING && title->len)
        peg__put_member(r, view, PEG__KW_TITLE);
    peg__write_description(r, view);
    if (is_nullable)
        peg__put(r->out, PEG__LIT("\"nullable\":true"));
}

/* ---- arrays ----------------------------------------------------------------------------- */

/* A tuple: each item may be any of those it has. */
// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_tuple(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword)
{
    const struct peg__place *up = peg__view_place(view, keyword);
    const peg_json *list = view->value[keyword];

    peg__lose_kw(r, up, keyword, "rewritten",
                 "Gemini's parameters know no tuples, so each item may be any of them");
    if (list->len > 1) {
        peg__put_open(r->out, "{");
        peg__put_kw(r->out, PEG__KW_ANY_OF);
        peg__put_open(r->out, "[");
    }
    peg__write_list(r, list, up, keyword);
    if (list->len > 1) {
        peg__put_close(r->out, "]");
        peg__put_close(r->out, "}");
    }
}

static bool is_tuple(const peg_json *list)
{
    return list && list->kind == PEG_JSON_ARRAY && list->len;
}

// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
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

        write_openapi(r, items, &place);
    } else {
        peg__lose_here(r, view->sources[0].place, PEG__KW_ITEMS, "rewritten",
                       "Gemini refuses an array that does not say what its items are, so it is "
                       "sent with items of any kind");
        peg__out_raw(r->out, peg__str("{\"anyOf\":[" ANY_TYPE "]}"));
    }
}

/* ---- objects ---------------------------------------------------------------------------- */

struct members {
    struct peg__required required;
    size_t n_required; /* of them that there are */
    size_t n;
};

static void write_described(struct peg__render *r, const peg_json *key,
                            const struct peg__place *place, void *user)
{
    struct members *members = user;

    if (peg__is_false_schema(key + 1)) {
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
    write_openapi(r, key + 1, place);
}

static void write_required_name(struct peg__render *r, const peg_json *key,
                                const struct peg__place *place, void *user)
{
    const struct members *members = user;

    (void)place;
    if (!peg__is_false_schema(key + 1) && peg__required_has(&members->required, key))
        peg__put_string(r->out, key);
}

// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_properties(struct peg__render *r, const struct peg__view *view)
{
    struct members members;

    members.n_required = 0;
    members.n = 0;
    peg__required_make(r, view, &members.required);
    peg__view_members(r, view, write_described, &members);
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
// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_inside(struct peg__render *r, const struct peg__view *view,
                         const struct form *form)
{
    const unsigned type = form->types;

    write_type(r, type);
    if (view->has & PEG__KW_BIT(FORMAT) && takes_format(type, view->value[PEG__KW_FORMAT]))
        peg__put_member(r, view, PEG__KW_FORMAT);
    if (!form->is_described)
        write_heading(r, view, form->is_nullable);
    if (form->has_enum)
        write_enum(r, view);
    else if (form->has_const)
        peg__put_only_value(r, view->value[PEG__KW_CONST], false);
    write_plain(r, view, keywords_of(type));
    write_bounds(r, view, form);
    if (type == PEG__TYPE_ARRAY)
        write_items(r, view);
    if (type == PEG__TYPE_OBJECT)
        write_properties(r, view);
    if (!form->is_described && view->has & PEG__KW_BIT(DEFAULT))
        peg__put_member(r, view, PEG__KW_DEFAULT);
}

/* What stands beside branches. */
static void write_outside(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    write_heading(r, view, is_nullable);
    peg__put_kw(r->out, PEG__KW_ANY_OF);
    peg__put_open(r->out, "[");
}

/* Several types are as many branches. */
// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_type_branches(struct peg__render *r, const struct peg__view *view,
                                struct form *form)
{
    if (view->has & PEG__KW_BIT(TYPE))
        peg__lose_kw(r, peg__view_place(view, PEG__KW_TYPE), PEG__KW_TYPE, "rewritten",
                     "Gemini's parameters have one type each, so they are sent as anyOf");
    write_outside(r, view, form->is_nullable);
    for (unsigned rest = form->types; rest; rest &= rest - 1) {
        const struct form one = {
            .types = rest & -rest, .is_described = true, .branches = PEG__KW_UNKNOWN};

        peg__put_open(r->out, "{");
        write_inside(r, view, &one);
        peg__put_close(r->out, "}");
    }
    peg__put_close(r->out, "]");
}

/* ---- branches --------------------------------------------------------------------------- */

static void write_form(struct peg__render *r, const struct peg__view *view);

/* A branch with the rules beside it: both apply. */
// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_branch(struct peg__render *r, const peg_json *branch,
                         const struct peg__place *place, const struct peg__view *beside)
{
    const size_t inside = r->n_inside;
    struct peg__view view;

    peg__view_make(r, branch, place, PEG__VIEW_MERGE, &view);
    for (size_t i = 0; i < beside->n_sources; i++)
        peg__view_add(r, &view, beside->sources[i].schema, beside->sources[i].place,
                      PEG__VIEW_BASE);
    peg__view_take_only_branch(r, &view);
    peg__put_open(r->out, "{");
    write_form(r, &view);
    peg__put_close(r->out, "}");
    r->n_inside = inside;
}

// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_branches(struct peg__render *r, const struct peg__view *view,
                           const struct form *form)
{
    const peg_json *list = view->value[form->branches];
    const struct peg__place *up = peg__view_place(view, form->branches);
    bool has_null = false;
    uint32_t i = 0;

    PEG_JSON_EACH_ITEM (list, branch)
        has_null = has_null || peg__is_null_schema(branch);
    write_outside(r, view, form->is_nullable || has_null);
    PEG_JSON_EACH_ITEM (list, branch) {
        const struct peg__place place = peg__place_index(up, form->branches, i++);

        if (peg__is_real_branch(branch))
            write_branch(r, branch, &place, view);
    }
    peg__put_close(r->out, "]");
}

static void write_any_type(struct peg__render *r, const struct peg__view *view,
                           const struct form *form)
{
    peg__lose_here(r, view->n_sources ? view->sources[0].place : NULL, PEG__KW_TYPE, "rewritten",
                   "Gemini's parameters want a type, so it is sent as any of them");
    write_outside(r, view, form->is_nullable);
    peg__out_raw(r->out, peg__str(ANY_TYPE));
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
// NOLINTNEXTLINE(misc-no-recursion): write_openapi() has the bound
static void write_form(struct peg__render *r, const struct peg__view *view)
{
    struct form form;

    decide_form(view, &form);
    if (form.branches != PEG__KW_UNKNOWN && is_too_much(r)) {
        peg__lose_kw(r, peg__view_place(view, form.branches), form.branches, "dropped",
                     "written out, the branches would become too large");
        form.branches = PEG__KW_UNKNOWN;
        form.types = form.types ? form.types : implied_types(view);
    }
    r->depth++;
    sort_view(r, view, &form);
    if (form.branches != PEG__KW_UNKNOWN)
        write_branches(r, view, &form);
    else if (!form.types)
        write_any_type(r, view, &form);
    else if (form.types & (form.types - 1))
        write_type_branches(r, view, &form);
    else
        write_inside(r, view, &form);
    r->depth--;
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_openapi(struct peg__render *r, const peg_json *schema,
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
        peg__view_take_only_branch(r, &view);
    peg__put_open(r->out, "{");
    write_form(r, &view);
    peg__put_close(r->out, "}");
    r->n_inside = inside;
}

/* ---- the root --------------------------------------------------------------------------- */

void peg__schema_write_gemini(struct peg__render *r)
{
    const struct form form = {.types = PEG__TYPE_OBJECT, .branches = PEG__KW_UNKNOWN};
    struct peg__view view;

    if (!r->root)
        return;
    r->dialect = &dialect;
    peg__view_make(r, r->root, NULL, PEG__VIEW_MERGE | PEG__VIEW_ROOT, &view);
    peg__lose_root(r, &view,
                   "Gemini takes it below the root only, so the members of its branches are "
                   "offered, each optional");
    sort_view(r, &view, &form);
    /* Gemini refuses an object without members: then there are no parameters at all. */
    if (peg__view_has_members(r, &view)) {
        peg__put_before(r->out, "\"parameters\":{");
        r->depth = 1;
        write_inside(r, &view, &form);
        r->depth = 0;
        peg__put_close(r->out, "}");
    }
    r->n_inside = 0;
}
