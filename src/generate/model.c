/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas to types. Read it from the bottom up:
 *
 *   gen_type_of -> type_of_place -> make_object, make_union, ... -> gen_type_of
 *
 * A type is kept with the place it was made of, so that a definition that is referred to twice is
 * one type, and one that contains itself comes to an end.
 */

#include "base/text/str.h"
#include "generate/choice.h"
#include "generate/maker.h"

// NOLINTBEGIN(misc-no-recursion): PEG_LIMIT_GENERATE_DEPTH bounds it, in gen_type_of()

/* ---- strings ------------------------------------------------------------------------------ */

static struct gen_type *make_enum(struct gen_maker *m, const struct gen_place *place,
                                  const peg_str *values, size_t n, const char *name)
{
    struct gen_type *type = gen_new_type(m, GEN_ENUM, name);

    if (!type)
        return NULL;
    type->values = values;
    type->n_values = n;
    type->description = gen_place_description(place);
    return gen_remember(m, place, GEN_IS_STRING, type) ? gen_complete(m, type) : NULL;
}

static struct gen_type *make_string(struct gen_maker *m, const struct gen_place *place,
                                    const char *name)
{
    const peg_str *values = NULL;
    size_t n;

    if (!gen_place_strings(place, m->arena, &values, &n))
        return gen_fail_nomem(m);
    if (n == SIZE_MAX)
        return &m->scalars[GEN_STRING];
    return n ? make_enum(m, place, values, n, name)
             : gen_refuse(m, place->schemas[0], "no string fits it");
}

/* ---- arrays ------------------------------------------------------------------------------- */

static struct gen_type *make_array(struct gen_maker *m, const struct gen_place *place,
                                   const char *name)
{
    struct gen_place item = {.n = 0};
    const char *item_name = gen_join(m->arena, name, "item");

    if (!item_name)
        return gen_fail_nomem(m);
    for (size_t i = 0; i < place->n; i++) {
        const peg_json *items = peg_json_get(place->schemas[i], "items");
        const peg_json *places = peg_json_get(place->schemas[i], "prefixItems");

        if (peg_json_kind_of(items) == PEG_JSON_ARRAY)
            places = items;
        if (places)
            return gen_refuse(m, places, "an array whose items differ by their place has no type");
        if (items && peg_json_kind_of(items) != PEG_JSON_BOOL)
            gen_place_add(&item, m->root, items);
    }
    return gen_compound(m, GEN_ARRAY, gen_type_of(m, &item, GEN_IS_ANY, item_name));
}

/* ---- objects ------------------------------------------------------------------------------ */

static bool is_known(const struct gen_place *place, peg_str name)
{
    for (size_t i = 0; i < place->n; i++) {
        if (peg_json_get_str(peg_json_get(place->schemas[i], "properties"), name))
            return true;
    }
    return false;
}

/* Members that exist only under a condition have no place in a struct. */
static bool has_unknown(const struct gen_place *place, const peg_json *schema)
{
    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        if (!is_known(place, peg_json_str(key)))
            return true;
    }
    return false;
}

const peg_json *gen_find_conditional(const struct gen_place *place)
{
    static const char *const conditions[] = {"then", "else"};
    static const char *const dependents[] = {"dependentSchemas", "dependencies"};

    for (size_t i = 0; i < 2 * place->n; i++) {
        const peg_json *schema = place->schemas[i / 2];
        const peg_json *then = peg_json_get(schema, conditions[i % 2]);

        if (has_unknown(place, then))
            return then;
        PEG_JSON_EACH_MEMBER (peg_json_get(schema, dependents[i % 2]), key) {
            if (has_unknown(place, key + 1))
                return key + 1;
        }
    }
    return NULL;
}

/* What the schemas say about members without a name. */
struct rest {
    struct gen_place place;
    size_t n_patterns;
    bool is_open;   /* said so */
    bool is_closed; /* said so */
};

static void read_other_members(struct gen_maker *m, const peg_json *schema, struct rest *rest)
{
    static const char *const keywords[] = {"additionalProperties", "unevaluatedProperties"};

    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "patternProperties"), key) {
        rest->n_patterns++;
        gen_place_add(&rest->place, m->root, key + 1);
    }
    for (size_t i = 0; i < 2; i++) {
        const peg_json *others = peg_json_get(schema, keywords[i]);

        if (!others)
            continue;
        if (peg_json_kind_of(others) == PEG_JSON_BOOL && !peg_json_is_true(others)) {
            rest->is_closed = true;
            continue;
        }
        rest->is_open = true;
        gen_place_add(&rest->place, m->root, others);
    }
}

/* NULL and PEG_OK: there are none, or nothing was said. */
static struct gen_type *type_of_others(struct gen_maker *m, const struct gen_place *place,
                                       const char *name, bool has_members)
{
    struct rest rest = {.n_patterns = 0};
    const char *value_name = gen_join(m->arena, name, "value");

    if (!value_name)
        return gen_fail_nomem(m);
    for (size_t i = 0; i < place->n; i++)
        read_other_members(m, place->schemas[i], &rest);
    if (rest.is_closed && !rest.n_patterns)
        return NULL;
    if (!rest.is_open && !rest.n_patterns)
        return has_members ? NULL : &m->scalars[GEN_RAW];
    /* Several schemas, of which each describes some: what they have in common is JSON. */
    if (rest.n_patterns + (rest.is_open || !rest.is_closed ? 1 : 0) > 1 || rest.place.is_false)
        return &m->scalars[GEN_RAW];
    return gen_type_of(m, &rest.place, GEN_IS_ANY, value_name);
}

static bool add_struct_member(struct gen_maker *m, const struct gen_place *place,
                              struct gen_type *type, const peg_json *key)
{
    const peg_str name = peg_json_str(key);
    struct gen_member *member = &type->members[type->n_members];
    struct gen_place inner = gen_place_property(place, m->root, name);
    const peg_json *description = peg_json_get(key + 1, "description");
    const char *word = gen_word(m->arena, name);
    const char *inner_name = word ? gen_join(m->arena, type->name, word) : NULL;
    struct gen_type *member_type;

    if (!inner_name) {
        gen_fail_nomem(m);
        return false;
    }
    if (inner.is_false && !gen_place_requires(place, name))
        return true;
    member_type = gen_type_of(m, &inner, GEN_IS_ANY, inner_name);
    if (!member_type)
        return false;
    *member = (struct gen_member){.name = name,
                                  .description = description ? peg_json_str(description)
                                                             : gen_place_description(&inner),
                                  .slot = gen_slot_of(member_type),
                                  .is_required = gen_place_requires(place, name)};
    type->n_members++;
    return true;
}

static bool is_member(const struct gen_type *type, peg_str name)
{
    for (size_t i = 0; i < type->n_members; i++) {
        if (peg__str_eq(type->members[i].name, name))
            return true;
    }
    return false;
}

static bool add_members(struct gen_maker *m, const struct gen_place *place, struct gen_type *type)
{
    size_t n = 0;

    for (size_t i = 0; i < place->n; i++)
        n += peg_json_len(peg_json_get(place->schemas[i], "properties"));
    type->members = peg__arena_alloc_zero(m->arena, (n + 1) * sizeof(*type->members));
    if (!type->members) {
        gen_fail_nomem(m);
        return false;
    }
    for (size_t i = 0; i < place->n; i++) {
        PEG_JSON_EACH_MEMBER (peg_json_get(place->schemas[i], "properties"), key) {
            if (!is_member(type, peg_json_str(key)) && !add_struct_member(m, place, type, key))
                return false;
        }
    }
    return true;
}

struct gen_type *gen_make_struct(struct gen_maker *m, const struct gen_place *place,
                                 const char *name)
{
    const peg_json *conditional = gen_find_conditional(place);
    struct gen_type *type;

    if (conditional)
        return gen_refuse(m, conditional, "it adds members under a condition");
    type = gen_new_type(m, GEN_STRUCT, name);
    if (!type || !gen_remember(m, place, GEN_IS_OBJECT, type) || !add_members(m, place, type))
        return NULL;
    type->description = gen_place_description(place);
    type->others = type_of_others(m, place, type->name, type->n_members > 0);
    return m->status ? NULL : gen_complete(m, type);
}

static struct gen_type *make_object(struct gen_maker *m, const struct gen_place *place,
                                    const char *name)
{
    struct gen_type *others;

    for (size_t i = 0; i < place->n; i++) {
        if (peg_json_len(peg_json_get(place->schemas[i], "properties")))
            return gen_make_struct(m, place, name);
    }
    if (gen_find_conditional(place))
        return gen_make_struct(m, place, name);
    others = type_of_others(m, place, name, false);
    if (m->status)
        return NULL;
    return others ? gen_compound(m, GEN_MAP, others) : gen_make_struct(m, place, name);
}

/* ---- alternatives ------------------------------------------------------------------------- */

static const char *name_of_kinds(unsigned kinds)
{
    static const struct {
        unsigned kinds;
        const char *name;
    } table[] = {
        {GEN_IS_BOOL, "boolean"},  {GEN_IS_WHOLE, "integer"}, {GEN_IS_NUMBER, "number"},
        {GEN_IS_STRING, "string"}, {GEN_IS_ARRAY, "array"},   {GEN_IS_OBJECT, "object"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].kinds == kinds)
            return table[i].name;
    }
    return "other";
}

static struct gen_type *type_of_alternative(struct gen_maker *m, struct gen_alternative *item,
                                            const char *name)
{
    if (!item->is_plain)
        return gen_type_of(m, &item->place, item->kinds, name);
    if (item->kinds != GEN_IS_STRING)
        return gen_type_of(m, &(struct gen_place){.n = 0}, item->kinds, name);
    if (!item->values)
        return &m->scalars[GEN_STRING];
    return make_enum(m, &item->place, item->values, item->n_values, name);
}

static bool add_branch(struct gen_maker *m, struct gen_type *type, struct gen_alternative *item,
                       struct peg__map *taken)
{
    struct gen_branch *branch = &type->branches[type->n_branches];
    const char *word = NULL;
    const char *name;

    if (item->n_tags)
        word = gen_word(m->arena, item->tags[0]);
    else if (item->place.ref_name.len)
        word = gen_word(m->arena, item->place.ref_name);
    else
        word = name_of_kinds(item->kinds);
    word = word ? gen_unique(m->arena, taken, word) : NULL;
    name = word ? gen_join(m->arena, type->name, word) : NULL;
    if (!name) {
        gen_fail_nomem(m);
        return false;
    }
    *branch = (struct gen_branch){
        .name = word, .kinds = item->kinds, .tags = item->tags, .n_tags = item->n_tags};
    branch->slot = gen_slot_of(type_of_alternative(m, item, name));
    type->n_branches++;
    return branch->slot.type != NULL;
}

static struct gen_type *make_union(struct gen_maker *m, const struct gen_place *place,
                                   unsigned kinds, const struct gen_choice *choice,
                                   const char *name)
{
    struct peg__map taken = PEG__MAP(PEG_LIMIT_GENERATE_BRANCHES);
    struct gen_type *type = gen_new_type(m, GEN_UNION, name);
    bool is_made = type && gen_remember(m, place, kinds, type);

    if (!is_made)
        return NULL;
    type->description = gen_place_description(place);
    type->tag = choice->tag;
    type->branches = peg__arena_alloc_zero(m->arena, choice->n * sizeof(*type->branches));
    is_made = type->branches || gen_fail_nomem(m);
    for (size_t i = 0; i < choice->n && is_made; i++)
        is_made = add_branch(m, type, &choice->items[i], &taken);
    peg__map_free(&taken);
    return is_made ? gen_complete(m, type) : NULL;
}

static struct gen_type *type_of_choice(struct gen_maker *m, struct gen_place *place, unsigned kinds,
                                       const peg_json *list, const char *name)
{
    unsigned rest = kinds;
    struct gen_choice choice;
    struct gen_type *type;

    if (!gen_choice_read(place, m->root, list, m->arena, &choice))
        return gen_fail_nomem(m);
    if (choice.reason)
        return gen_refuse(m, list, choice.reason);
    if (!choice.n && choice.has_null)
        return &m->scalars[GEN_NULL];
    if (!choice.n)
        return gen_refuse(m, list, "no value fits it");
    if (choice.has_null)
        rest &= ~(unsigned)GEN_IS_NULL;
    type = choice.n == 1 ? type_of_alternative(m, &choice.items[0], name)
                         : gen_find_made(m, place, rest);
    if (!type && choice.n > 1)
        type = make_union(m, place, rest, &choice, name);
    return rest != kinds ? gen_compound(m, GEN_NULLABLE, type) : type;
}

/* A union of the kinds of a place: {"type": ["string", "integer"]}. */
static struct gen_type *type_of_kinds(struct gen_maker *m, const struct gen_place *place,
                                      unsigned kinds, const char *name)
{
    static const unsigned each[] = {GEN_IS_BOOL,   GEN_IS_NUMBER, GEN_IS_WHOLE,
                                    GEN_IS_STRING, GEN_IS_ARRAY,  GEN_IS_OBJECT};
    const unsigned all = kinds;
    struct gen_choice choice = {.tag = {"", 0}};

    choice.items =
        peg__arena_alloc_zero(m->arena, sizeof(each) / sizeof(each[0]) * sizeof(*choice.items));
    if (!choice.items)
        return gen_fail_nomem(m);
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        if ((kinds & each[i]) != each[i])
            continue;
        choice.items[choice.n].place = *place;
        choice.items[choice.n++].kinds = each[i];
        kinds &= ~each[i];
    }
    for (size_t i = 0; i < choice.n; i++)
        choice.items[i].place.ref_name = peg__str("");
    return make_union(m, place, all, &choice, name);
}

/* ---- one place ---------------------------------------------------------------------------- */

static struct gen_type *type_of_number(struct gen_maker *m, const struct gen_place *place,
                                       unsigned kinds)
{
    const enum gen_kind kind = kinds & GEN_IS_FRACTION ? GEN_NUMBER : GEN_INTEGER;

    if (m->options->raw_numbers && (kind == GEN_NUMBER || !gen_place_is_int64(place)))
        return &m->scalars[GEN_RAW];
    return &m->scalars[kind];
}

static struct gen_type *type_of_one_kind(struct gen_maker *m, const struct gen_place *place,
                                         unsigned kinds, const char *name)
{
    switch (kinds) {
    case GEN_IS_NULL:
        return &m->scalars[GEN_NULL];
    case GEN_IS_BOOL:
        return &m->scalars[GEN_BOOL];
    case GEN_IS_WHOLE:
    case GEN_IS_FRACTION:
    case GEN_IS_NUMBER:
        return type_of_number(m, place, kinds);
    case GEN_IS_STRING:
        return make_string(m, place, name);
    case GEN_IS_ARRAY:
        return make_array(m, place, name);
    case GEN_IS_OBJECT:
        return make_object(m, place, name);
    default:
        return type_of_kinds(m, place, kinds, name);
    }
}

/* `kinds` has some, and not all. */
static struct gen_type *type_of_place(struct gen_maker *m, struct gen_place *place, unsigned kinds,
                                      const char *name)
{
    const peg_json *choice = gen_place_choice(place, m->root);
    struct gen_type *type;

    if (place->wrong)
        return gen_refuse(m, place->wrong, place->reason);
    if (choice)
        return type_of_choice(m, place, kinds, choice, name);
    if (!kinds)
        return gen_refuse(m, place->n ? place->schemas[0] : m->root, "no value fits it");
    if (kinds == GEN_IS_ANY)
        return &m->scalars[GEN_RAW];
    if (kinds == GEN_IS_NULL || !(kinds & GEN_IS_NULL))
        return type_of_one_kind(m, place, kinds, name);
    kinds &= ~(unsigned)GEN_IS_NULL;
    type = gen_find_made(m, place, kinds);
    return gen_compound(m, GEN_NULLABLE, type ? type : type_of_one_kind(m, place, kinds, name));
}

struct gen_type *gen_type_of(struct gen_maker *m, struct gen_place *place, unsigned allowed,
                             const char *name)
{
    const unsigned kinds = gen_place_kinds(place) & allowed;
    struct gen_type *type = gen_find_made(m, place, kinds);

    if (type)
        return type;
    if (m->depth >= PEG_LIMIT_GENERATE_DEPTH)
        return gen_fail_limit(m, "PEG_LIMIT_GENERATE_DEPTH");
    if (place->ref_name.len) {
        const char *word = gen_word(m->arena, place->ref_name);

        name = word ? gen_join(m->arena, m->prefix, word) : NULL;
        if (!name)
            return gen_fail_nomem(m);
    }
    m->depth++;
    type = type_of_place(m, place, kinds, name);
    m->depth--;
    return type;
}

// NOLINTEND(misc-no-recursion)
