/* SPDX-License-Identifier: Apache-2.0 */

/* What Gemini's parameters have a word for, and what goes into descriptions instead. */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static const char *const not_taken = "Gemini's parameters do not take it";

/* ---- what goes where -------------------------------------------------------------------- */

/* Silent: resolved, merged, or decided by functions of their own. */
static const uint64_t ours =
    PEG__KW_BIT(TYPE) | PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(FORMAT) |
    PEG__KW_BIT(TITLE) | PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(DEFAULT) | PEG__KW_BIT(NULLABLE) |
    PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) | PEG__KW_BIT(ITEMS) |
    PEG__KW_BIT(PREFIX_ITEMS) | PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(ALL_OF) |
    PEG__KW_BIT(REF) | PEG__KW_BIT(DEFS) | PEG__KW_BIT(DEFINITIONS) | PEG__KW_BIT(EXAMPLES);

/* Nothing a model could use, or what it does anyway. */
static const uint64_t left_out = PEG__KW_BIT(SCHEMA) | PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR) |
                                 PEG__KW_BIT(COMMENT) | PEG__KW_BIT(READ_ONLY) |
                                 PEG__KW_BIT(WRITE_ONLY) | PEG__KW_BIT(ADDITIONAL_ITEMS) |
                                 PEG__KW_BIT(UNEVALUATED_ITEMS);

static const uint64_t closing =
    PEG__KW_BIT(ADDITIONAL_PROPERTIES) | PEG__KW_BIT(UNEVALUATED_PROPERTIES);

static const uint64_t of_strings =
    PEG__KW_BIT(MIN_LENGTH) | PEG__KW_BIT(MAX_LENGTH) | PEG__KW_BIT(PATTERN);
static const uint64_t of_numbers = PEG__KW_BIT(MINIMUM) | PEG__KW_BIT(MAXIMUM);
static const uint64_t of_arrays = PEG__KW_BIT(MIN_ITEMS) | PEG__KW_BIT(MAX_ITEMS);
static const uint64_t of_objects =
    PEG__KW_BIT(MIN_PROPERTIES) | PEG__KW_BIT(MAX_PROPERTIES) | PEG__KW_BIT(PROPERTY_ORDERING);

uint64_t peg__gemini_keywords(unsigned type)
{
    switch (type) {
    case PEG__TYPE_STRING:
        return of_strings;
    case PEG__TYPE_INTEGER:
    case PEG__TYPE_NUMBER:
        return of_numbers;
    case PEG__TYPE_ARRAY:
        return of_arrays;
    case PEG__TYPE_OBJECT:
        return of_objects;
    default:
        return 0;
    }
}

/* A field of the wrong kind would have the whole request refused. */
bool peg__gemini_takes_value(enum peg__kw keyword, const peg_json *value)
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

bool peg__gemini_takes_format(unsigned type, const peg_json *format)
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
bool peg__gemini_bound(const struct peg__view *view, const struct peg__gemini_form *form,
                       enum peg__kw keyword, int64_t *ret_bound)
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

unsigned peg__gemini_implied(const struct peg__view *view)
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

static void decide_values(const struct peg__view *view, struct peg__gemini_form *form)
{
    const peg_json *values = peg__view_get(view, PEG__KW_ENUM);
    const peg_json *constant = peg__view_get(view, PEG__KW_CONST);
    const unsigned types = values     ? peg__types_of_values(values)
                           : constant ? peg__type_of_value(constant)
                                      : 0;

    if (!form->types)
        form->types = types & ~(unsigned)PEG__TYPE_NULL;
    form->is_nullable = form->is_nullable || types & PEG__TYPE_NULL;
    if ((types & ~(unsigned)PEG__TYPE_NULL) != PEG__TYPE_STRING || form->types != PEG__TYPE_STRING)
        return;
    form->has_enum = values;
    form->has_const = !values;
}

enum peg__kw peg__gemini_find_branches(const struct peg__view *view)
{
    const peg_json *any_of = peg__view_get(view, PEG__KW_ANY_OF);
    const peg_json *one_of = peg__view_get(view, PEG__KW_ONE_OF);

    if (any_of && any_of->kind == PEG_JSON_ARRAY && any_of->len)
        return PEG__KW_ANY_OF;
    return one_of && one_of->kind == PEG_JSON_ARRAY && one_of->len ? PEG__KW_ONE_OF
                                                                   : PEG__KW_UNKNOWN;
}

void peg__gemini_decide(const struct peg__view *view, struct peg__gemini_form *ret_form)
{
    const unsigned types = peg__types_of(peg__view_get(view, PEG__KW_TYPE));
    const peg_json *nullable = peg__view_get(view, PEG__KW_NULLABLE);
    struct peg__gemini_form *form = ret_form;

    *form = (struct peg__gemini_form){.types = types & ~(unsigned)PEG__TYPE_NULL,
                                      .is_nullable = view->is_nullable || types & PEG__TYPE_NULL ||
                                                     (nullable && peg_json_is_true(nullable)),
                                      .branches = peg__gemini_branches(view)};
    if (types == PEG__TYPE_NULL && form->branches == PEG__KW_UNKNOWN)
        *form = (struct peg__gemini_form){.types = PEG__TYPE_NULL, .branches = PEG__KW_UNKNOWN};
    if (view->has & (PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST)))
        decide_values(view, form);
    if (!form->types && form->branches == PEG__KW_UNKNOWN)
        form->types = peg__gemini_implied(view);
}

/* ---- what has no place ------------------------------------------------------------------ */

static void sort_values(struct peg__render *r, const struct peg__view *view,
                        const struct peg__gemini_form *form, uint64_t has)
{
    if (has & PEG__KW_BIT(ENUM) && !form->has_enum)
        peg__describe(r, view, PEG__KW_ENUM, "Gemini's parameters take enum for strings only");
    if (has & PEG__KW_BIT(CONST) && form->has_const)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_CONST), PEG__KW_CONST, "rewritten",
                     "it is sent as an enum of one value");
    else if (has & PEG__KW_BIT(CONST))
        peg__describe(r, view, PEG__KW_CONST, not_taken);
    if (has & PEG__KW_BIT(FORMAT) &&
        !peg__gemini_takes_format(form->types, view->value[PEG__KW_FORMAT]))
        peg__describe(r, view, PEG__KW_FORMAT, "Gemini's parameters do not know this format");
    if (has & PEG__KW_BIT(EXAMPLES))
        peg__describe(r, view, PEG__KW_EXAMPLES, not_taken);
}

/* Sent as they are, with the type that they belong to. */
static uint64_t taken(void)
{
    return of_strings | of_numbers | of_arrays | of_objects;
}

static void sort_keyword(struct peg__render *r, const struct peg__view *view,
                         const struct peg__gemini_form *form, enum peg__kw i)
{
    const struct peg__place *place = peg__view_place(view, i);
    const peg_json *value = view->value[i];
    const bool is_exclusive = i == PEG__KW_EXCLUSIVE_MINIMUM || i == PEG__KW_EXCLUSIVE_MAXIMUM;
    int64_t bound;

    if (taken() >> i & 1) {
        if (!peg__gemini_takes_value(i, value))
            peg__lose_kw(r, place, i, "dropped", "it is not what JSON Schema wants there");
    } else if (is_exclusive && peg__gemini_bound(view, form, i, &bound)) {
        peg__lose_kw(r, place, i, "rewritten", "it is sent as the bound next to it");
    } else if (left_out >> i & 1 || (closing >> i & 1 && value->kind == PEG_JSON_BOOL)) {
        peg__lose_kw(r, place, i, "dropped", not_taken);
    } else {
        peg__describe(r, view, i, not_taken);
    }
}

/* Fills the notes and tells what is lost. */
void peg__gemini_sort(struct peg__render *r, const struct peg__view *view,
                      const struct peg__gemini_form *form)
{
    const uint64_t of_values =
        PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(FORMAT) | PEG__KW_BIT(EXAMPLES);
    const uint64_t has = view->has & ~view->of_base;
    /* What is taken can only be lost. */
    const uint64_t silent = r->losses ? ours : ours | taken();

    peg__buf_clear(&r->notes);
    for (uint64_t rest = has & ~silent; rest; rest &= rest - 1)
        sort_keyword(r, view, form, (enum peg__kw)__builtin_ctzll(rest));
    if (has & of_values)
        sort_values(r, view, form, has);
    if (form->branches == PEG__KW_ANY_OF && view->has & PEG__KW_BIT(ONE_OF))
        peg__describe(r, view, PEG__KW_ONE_OF, "Gemini's parameters take one list of branches");
    else if (form->branches == PEG__KW_ONE_OF)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_ONE_OF), PEG__KW_ONE_OF, "rewritten",
                     "it is sent as anyOf");
}
