/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords that look at one value: type, enum, const, and those of numbers and strings. */

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"

enum { FEW_VALUES = 8 };

static struct peg__insn with_immediate(enum peg__op op, int64_t immediate)
{
    return (struct peg__insn){.op = (uint8_t)op,
                              .b = (uint32_t)((uint64_t)immediate & UINT32_MAX),
                              .c = (uint32_t)((uint64_t)immediate >> 32)};
}

/* ---- type --------------------------------------------------------------------------- */

enum { TYPE_INTEGER = 1U << PEG_KINDS }; /* beside the kinds: whole numbers only */

static unsigned kinds_of(peg_str name)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } types[] = {
        {"null", 1U << PEG_JSON_NULL}, {"boolean", 1U << PEG_JSON_BOOL}, {"integer", TYPE_INTEGER},
        {"number", KINDS_NUMBER},      {"string", KINDS_STRING},         {"array", KINDS_ARRAY},
        {"object", KINDS_OBJECT},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (peg__str_is(name, types[i].name))
            return types[i].kinds;
    return 0;
}

static bool read_types(struct peg__compiler *c, const peg_json *key, unsigned *ret_kinds)
{
    static const char must[] = "one of \"null\", \"boolean\", \"integer\", \"number\", \"string\", "
                               "\"array\", \"object\", or an array of them";
    const peg_json *type = key + 1;
    unsigned kinds = 0;

    if (type->kind == PEG_JSON_STRING) {
        kinds = kinds_of(peg_json_str(type));
        if (!kinds)
            return peg__fail_keyword(c, key, must);
    } else if (type->kind == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (type, name) {
            const unsigned more = name->kind == PEG_JSON_STRING ? kinds_of(peg_json_str(name)) : 0;

            if (!more)
                return peg__fail_keyword(c, key, must);
            kinds |= more;
        }
    } else {
        return peg__fail_keyword(c, key, must);
    }
    *ret_kinds = kinds;
    return true;
}

bool peg__compile_type(struct peg__compiler *c, struct peg__draft *d)
{
    const bool is_draft4 = d->task.resource->dialect.id == PEG_DIALECT_DRAFT4;
    const struct peg__insn whole = {.op = is_draft4 ? OP_WRITTEN_WHOLE : OP_WHOLE};
    unsigned kinds = 0;

    if (!peg__has(&d->sub, KW_TYPE))
        return true;
    if (!read_types(c, d->sub.key[KW_TYPE], &kinds))
        return false;
    if (!(kinds & TYPE_INTEGER) || (kinds & KINDS_NUMBER)) {
        d->kinds = kinds & KINDS_ALL;
        return true;
    }
    d->kinds = (kinds & KINDS_ALL) | KINDS_NUMBER;
    return peg__emit(c, d, 1U << PEG_JSON_DECIMAL, KW_TYPE, whole);
}

/* ---- enum and const -------------------------------------------------------------------- */

/* The values that are allowed: an array, or the one value of const. */
struct choice {
    enum peg__keyword keyword;
    const peg_json *first;
    const peg_json *end;
    uint32_t n_of_kind[PEG_KINDS];
    uint32_t n;
};

static struct choice read_choice(const struct peg__draft *d, enum peg__keyword keyword)
{
    const peg_json *value = peg__value_of(&d->sub, keyword);
    const bool is_list = keyword == KW_ENUM;
    struct choice choice = {
        .keyword = keyword, .first = is_list ? value + 1 : value, .end = peg_json_next(value)};

    for (const peg_json *v = choice.first; v < choice.end; v = peg_json_next(v)) {
        choice.n_of_kind[v->kind]++;
        choice.n++;
    }
    return choice;
}

static bool emit_fail(struct peg__compiler *c, struct peg__draft *d, unsigned kinds,
                      enum peg__keyword keyword)
{
    return peg__emit(c, d, kinds, keyword, (struct peg__insn){.op = OP_FAIL});
}

static bool choose_bool(struct peg__compiler *c, struct peg__draft *d, const struct choice *choice)
{
    unsigned truths = 0;

    for (const peg_json *v = choice->first; v < choice->end; v = peg_json_next(v))
        if (v->kind == PEG_JSON_BOOL)
            truths |= v->u.truth ? 2 : 1;
    if (truths == 3)
        return true;
    if (truths == 0)
        return emit_fail(c, d, 1U << PEG_JSON_BOOL, choice->keyword);
    return peg__emit(c, d, 1U << PEG_JSON_BOOL, choice->keyword,
                     (struct peg__insn){.op = OP_TRUTH, .a = truths >> 1});
}

static bool choose_string(struct peg__compiler *c, struct peg__draft *d,
                          const struct choice *choice)
{
    const uint32_t n = choice->n_of_kind[PEG_JSON_STRING];
    struct peg__names *names;
    struct peg__name *list;
    uint32_t i = 0;
    bool added;

    if (n == 0)
        return emit_fail(c, d, KINDS_STRING, choice->keyword);
    names = PEG__ADD(c, enums, enums, 1);
    list = names ? peg__alloc_zero(n, sizeof(*list)) : NULL;
    if (!list)
        return peg__compile_nomem(c);
    for (const peg_json *v = choice->first; v < choice->end; v = peg_json_next(v))
        if (v->kind == PEG_JSON_STRING)
            list[i++].text = peg_json_str(v);
    added = peg__add_names(c, names, list, n);
    peg__free(list);
    return added && peg__emit(c, d, KINDS_STRING, choice->keyword,
                              (struct peg__insn){.op = OP_ENUM_STRING,
                                                 .a = (uint32_t)(names - c->out->enums)});
}

static bool add_value_set(struct peg__compiler *c, const struct choice *choice, uint32_t *ret_index)
{
    struct peg__values *set = PEG__ADD(c, values, values, 1);
    uint32_t n_slots = 16;

    if (!set)
        return false;
    while (n_slots < choice->n * 2)
        n_slots *= 2;
    set->mask = n_slots - 1;
    set->seed = peg__hash_key_new().k0;
    set->slots = peg__arena_alloc_zero(&c->out->arena, n_slots * sizeof(*set->slots));
    if (!set->slots)
        return peg__compile_nomem(c);
    for (const peg_json *v = choice->first; v < choice->end; v = peg_json_next(v)) {
        uint32_t at = (uint32_t)peg_json_hash(v, set->seed) & set->mask;

        while (set->slots[at])
            at = (at + 1) & set->mask;
        set->slots[at] = v;
    }
    *ret_index = (uint32_t)(set - c->out->values);
    return true;
}

/* Numbers, arrays and objects, by comparing. */
static bool choose_other(struct peg__compiler *c, struct peg__draft *d, const struct choice *choice,
                         unsigned kinds)
{
    struct peg__insn insn = {.op = choice->keyword == KW_CONST ? OP_CONST : OP_ENUM};

    if (choice->n > FEW_VALUES) {
        insn.op = OP_ENUM_HASH;
        if (!add_value_set(c, choice, &insn.a))
            return false;
    }
    return peg__emit(c, d, kinds, choice->keyword, insn);
}

static bool choose_number(struct peg__compiler *c, struct peg__draft *d,
                          const struct choice *choice)
{
    const unsigned integer = 1U << PEG_JSON_INTEGER;
    const unsigned decimal = 1U << PEG_JSON_DECIMAL;

    if (choice->n_of_kind[PEG_JSON_INTEGER] + choice->n_of_kind[PEG_JSON_DECIMAL] == 0)
        return emit_fail(c, d, integer | decimal, choice->keyword);
    if (choice->n == 1 && choice->first->kind == PEG_JSON_INTEGER)
        return peg__emit(c, d, integer, choice->keyword,
                         with_immediate(OP_INT_EQUAL, choice->first->u.number)) &&
               choose_other(c, d, choice, decimal);
    return choose_other(c, d, choice, integer | decimal);
}

static bool compile_choice(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword)
{
    const struct choice choice = read_choice(d, keyword);
    unsigned compared = 0;
    unsigned refused = 0;

    if (choice.n_of_kind[PEG_JSON_NULL] == 0)
        refused |= 1U << PEG_JSON_NULL;
    for (unsigned kind = PEG_JSON_ARRAY; kind <= PEG_JSON_OBJECT; kind++)
        *(choice.n_of_kind[kind] ? &compared : &refused) |= 1U << kind;
    return (!refused || emit_fail(c, d, refused, keyword)) && choose_bool(c, d, &choice) &&
           choose_string(c, d, &choice) && choose_number(c, d, &choice) &&
           (!compared || choose_other(c, d, &choice, compared));
}

bool peg__compile_enum(struct peg__compiler *c, struct peg__draft *d)
{
    if (peg__has(&d->sub, KW_ENUM) &&
        (!peg__need_kind(c, d->sub.key[KW_ENUM], PEG_JSON_ARRAY, "an array of values") ||
         !compile_choice(c, d, KW_ENUM)))
        return false;
    return !peg__has(&d->sub, KW_CONST) || compile_choice(c, d, KW_CONST);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool need_number(struct peg__compiler *c, const struct peg__draft *d,
                        enum peg__keyword keyword)
{
    return peg_json_is_number(peg__value_of(&d->sub, keyword)) ||
           peg__fail_keyword(c, d->sub.key[keyword], "a number");
}

/* Whole bounds become comparisons of integers where the value is an integer. */
static bool emit_bound(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword,
                       enum peg__op op)
{
    const struct peg__insn exact = {.op = (uint8_t)op};
    struct peg__insn decimal = exact;
    const bool is_lower = op == OP_MIN || op == OP_ABOVE;
    int64_t bound;

    if (!need_number(c, d, keyword))
        return false;
    if (!peg_json_int64(peg__value_of(&d->sub, keyword), &bound) || bound == INT64_MAX ||
        bound == INT64_MIN)
        return peg__emit(c, d, KINDS_NUMBER, keyword, exact);
    if ((op == OP_MIN || op == OP_MAX) && bound <= PEG_WHOLE_BOUND && bound >= -PEG_WHOLE_BOUND)
        decimal = with_immediate(is_lower ? OP_DECIMAL_MIN : OP_DECIMAL_MAX, bound);
    if (op == OP_ABOVE)
        bound++;
    if (op == OP_BELOW)
        bound--;
    return peg__emit(c, d, 1U << PEG_JSON_INTEGER, keyword,
                     with_immediate(is_lower ? OP_INT_MIN : OP_INT_MAX, bound)) &&
           peg__emit(c, d, 1U << PEG_JSON_DECIMAL, keyword, decimal);
}

/* In draft-04 `exclusiveMinimum` is a boolean beside `minimum`. */
static bool compile_bounds_draft4(struct peg__compiler *c, struct peg__draft *d,
                                  enum peg__keyword bound, enum peg__keyword exclusive,
                                  bool is_lower)
{
    bool excludes = false;

    if (peg__has(&d->sub, exclusive)) {
        if (!peg__need_kind(c, d->sub.key[exclusive], PEG_JSON_BOOL, "a boolean in draft-04"))
            return false;
        excludes = peg_json_is_true(peg__value_of(&d->sub, exclusive));
    }
    if (!peg__has(&d->sub, bound))
        return true;
    if (excludes)
        return emit_bound(c, d, bound, is_lower ? OP_ABOVE : OP_BELOW);
    return emit_bound(c, d, bound, is_lower ? OP_MIN : OP_MAX);
}

static bool compile_bounds(struct peg__compiler *c, struct peg__draft *d)
{
    static const struct {
        enum peg__keyword keyword;
        enum peg__op op;
    } bounds[] = {{KW_MINIMUM, OP_MIN},
                  {KW_MAXIMUM, OP_MAX},
                  {KW_EXCLUSIVE_MINIMUM, OP_ABOVE},
                  {KW_EXCLUSIVE_MAXIMUM, OP_BELOW}};

    if (d->task.resource->dialect.id == PEG_DIALECT_DRAFT4)
        return compile_bounds_draft4(c, d, KW_MINIMUM, KW_EXCLUSIVE_MINIMUM, true) &&
               compile_bounds_draft4(c, d, KW_MAXIMUM, KW_EXCLUSIVE_MAXIMUM, false);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
        if (peg__has(&d->sub, bounds[i].keyword) &&
            !emit_bound(c, d, bounds[i].keyword, bounds[i].op))
            return false;
    return true;
}

static bool compile_multiple(struct peg__compiler *c, struct peg__draft *d)
{
    const peg_json zero = {.kind = PEG_JSON_INTEGER};
    const struct peg__insn exact = {.op = OP_MULTIPLE};
    const peg_json *divisor = peg__value_of(&d->sub, KW_MULTIPLE_OF);
    int64_t whole;

    if (!peg_json_is_number(divisor) || peg_json_compare_numbers(divisor, &zero) <= 0)
        return peg__fail_keyword(c, d->sub.key[KW_MULTIPLE_OF], "a number above 0");
    if (!peg_json_int64(divisor, &whole))
        return peg__emit(c, d, KINDS_NUMBER, KW_MULTIPLE_OF, exact);
    return peg__emit(c, d, 1U << PEG_JSON_INTEGER, KW_MULTIPLE_OF,
                     with_immediate(OP_INT_MULTIPLE, whole)) &&
           peg__emit(c, d, 1U << PEG_JSON_DECIMAL, KW_MULTIPLE_OF, exact);
}

bool peg__compile_number(struct peg__compiler *c, struct peg__draft *d)
{
    return compile_bounds(c, d) && (!peg__has(&d->sub, KW_MULTIPLE_OF) || compile_multiple(c, d));
}

/* ---- strings ------------------------------------------------------------------------------- */

static bool compile_pattern(struct peg__compiler *c, struct peg__draft *d)
{
    const peg_json *key = d->sub.key[KW_PATTERN];
    struct peg__insn insn = {.op = OP_PATTERN};
    struct peg__pattern *pattern;

    return peg__need_kind(c, key, PEG_JSON_STRING, "a string with a regular expression") &&
           peg__add_pattern(c, key, peg_json_str(key + 1), &pattern, &insn.a) &&
           peg__emit(c, d, KINDS_STRING, KW_PATTERN, insn);
}

static bool asserts_format(const struct peg__compiler *c, const struct peg__draft *d)
{
    switch (c->options.format) {
    case PEG_FORMAT_ASSERT:
        return true;
    case PEG_FORMAT_IGNORE:
        return false;
    case PEG_FORMAT_BY_DIALECT:
        break;
    }
    return d->task.resource->dialect.asserts_format;
}

static bool compile_format(struct peg__compiler *c, struct peg__draft *d)
{
    const peg_json *key = d->sub.key[KW_FORMAT];
    peg__format_fn *format;
    peg__format_fn **slot;

    if (!peg__need_kind(c, key, PEG_JSON_STRING, "the name of a format"))
        return false;
    format = peg__format_find(peg_json_str(key + 1), d->task.resource->dialect.id);
    if (!format || !asserts_format(c, d))
        return true;
    slot = PEG__ADD(c, formats, formats, 1);
    if (!slot)
        return false;
    *slot = format;
    return peg__emit(c, d, KINDS_STRING, KW_FORMAT,
                     (struct peg__insn){.op = OP_FORMAT, .a = (uint32_t)(slot - c->out->formats)});
}

/* draft-07 lets us check base64 and JSON; later drafts only tell the reader about them. */
static bool compile_content(struct peg__compiler *c, struct peg__draft *d)
{
    const struct peg__subschema *sub = &d->sub;
    struct peg__insn insn = {.op = OP_CONTENT};
    enum peg__keyword keyword = KW_CONTENT_MEDIA_TYPE;

    if (!d->task.resource->dialect.asserts_content || c->options.format == PEG_FORMAT_IGNORE)
        return true;
    if (peg__has(sub, KW_CONTENT_ENCODING)) {
        const peg_json *encoding = peg__value_of(sub, KW_CONTENT_ENCODING);

        insn.a = encoding->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(encoding), "base64");
        keyword = KW_CONTENT_ENCODING;
    }
    if (peg__has(sub, KW_CONTENT_MEDIA_TYPE)) {
        const peg_json *type = peg__value_of(sub, KW_CONTENT_MEDIA_TYPE);

        insn.b =
            type->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(type), "application/json");
        keyword = insn.b ? KW_CONTENT_MEDIA_TYPE : keyword;
    }
    if (peg__has(sub, KW_CONTENT_ENCODING) && !insn.a)
        return true; /* an encoding we do not know hides the content */
    return (!insn.a && !insn.b) || peg__emit(c, d, KINDS_STRING, keyword, insn);
}

bool peg__compile_string(struct peg__compiler *c, struct peg__draft *d)
{
    static const struct peg__count_rule lengths = {KW_MIN_LENGTH, KW_MAX_LENGTH, OP_LENGTH_MIN,
                                                   OP_LENGTH_MAX, KINDS_STRING};

    return peg__compile_counts(c, d, &lengths) &&
           (!peg__has(&d->sub, KW_FORMAT) || compile_format(c, d)) &&
           (!peg__has(&d->sub, KW_PATTERN) || compile_pattern(c, d)) && compile_content(c, d);
}
