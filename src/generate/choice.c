/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/choice.h"

#include "base/text/str.h"
#include "json/json.h"

enum { MAX_NESTING = 8 };

/* ---- reading the branches ---------------------------------------------------------------- */

/* Do the schemas around alternatives say nothing else about types? */
static bool is_thin(const struct gen_place *around)
{
    static const char *const shapes[] = {"type",  "properties", "additionalProperties",
                                         "items", "required",   "enum",
                                         "const", "$ref",       "allOf",
                                         "oneOf", "anyOf"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t k = 0; k < around->n; k++)
            n += peg_json_get(around->schemas[k], shapes[i]) ? 1 : 0;
    }
    return n == 1;
}

static struct gen_place place_of_branch(const struct gen_place *around, const peg_json *root,
                                        const peg_json *choice, const peg_json *branch)
{
    struct gen_place place = *around;
    struct gen_place alone = {.n = 0};

    place.ref_name = peg__str("");
    if (place.n_skipped < PEG_LIMIT_GENERATE_TOGETHER)
        place.skipped[place.n_skipped++] = choice;
    gen_place_add(&alone, root, branch);
    gen_place_add(&place, root, branch);
    place.ref_name = alone.ref_name;
    /* Alternatives with nothing around them: the branch is the type, also where it is referred to.
     */
    return is_thin(around) ? alone : place;
}

/* The kinds of a place, with those of alternatives within it. */
// NOLINTNEXTLINE(misc-no-recursion): MAX_NESTING bounds it
static unsigned kinds_within(struct gen_place *place, const peg_json *root, unsigned nesting)
{
    const unsigned kinds = gen_place_kinds(place);
    const peg_json *choice = gen_place_choice(place, root);
    unsigned within = 0;

    if (!choice || nesting > MAX_NESTING)
        return kinds;
    PEG_JSON_EACH_ITEM (choice, branch) {
        struct gen_place inner = place_of_branch(place, root, choice, branch);

        within |= kinds_within(&inner, root, nesting + 1);
    }
    return kinds & within;
}

static bool read_branch(struct gen_choice *c, struct gen_place place, const peg_json *root,
                        struct peg__arena *arena)
{
    struct gen_alternative *item = &c->items[c->n];
    size_t n_values = SIZE_MAX;
    unsigned kinds;

    if (place.wrong) {
        c->reason = place.reason;
        return true;
    }
    kinds = kinds_within(&place, root, 0);
    c->has_null = c->has_null || (kinds & GEN_IS_NULL && kinds != GEN_IS_ANY);
    if (kinds != GEN_IS_ANY)
        kinds &= ~(unsigned)GEN_IS_NULL;
    if (!kinds)
        return true;
    *item = (struct gen_alternative){.place = place, .kinds = kinds};
    if (kinds == GEN_IS_STRING && !gen_place_strings(&place, arena, &item->values, &n_values))
        return false;
    item->n_values = n_values;
    if (n_values == SIZE_MAX)
        item->values = NULL;
    c->n++;
    return true;
}

/* ---- alternatives that are one type ------------------------------------------------------- */

static bool join_values(struct gen_alternative *into, const struct gen_alternative *other,
                        struct peg__arena *arena)
{
    peg_str *values;
    size_t n = into->n_values;

    if (!into->values || !other->values) {
        into->values = NULL;
        return true;
    }
    values = peg__arena_alloc(arena, (n + other->n_values) * sizeof(*values));
    if (!values)
        return false;
    memcpy(values, into->values, n * sizeof(*values));
    for (size_t i = 0; i < other->n_values; i++) {
        bool is_new = true;

        for (size_t k = 0; k < n && is_new; k++)
            is_new = !peg__str_eq(values[k], other->values[i]);
        if (is_new)
            values[n++] = other->values[i];
    }
    into->values = values;
    into->n_values = n;
    return true;
}

static bool is_scalar_kind(unsigned kinds)
{
    return kinds == GEN_IS_BOOL || kinds == GEN_IS_STRING || !(kinds & ~(unsigned)GEN_IS_NUMBER);
}

/* Strings with different patterns are strings, whole numbers or fractions are numbers. */
static bool join_scalars(struct gen_choice *c, struct peg__arena *arena)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        struct gen_alternative *into = NULL;

        for (size_t k = 0; k < n && !into; k++) {
            if (c->items[k].kinds & c->items[i].kinds && is_scalar_kind(c->items[i].kinds) &&
                is_scalar_kind(c->items[k].kinds))
                into = &c->items[k];
        }
        if (!into) {
            if (n != i)
                c->items[n] = c->items[i];
            n++;
            continue;
        }
        if (!join_values(into, &c->items[i], arena))
            return false;
        into->kinds |= c->items[i].kinds;
        into->is_plain = true;
    }
    c->n = n;
    return true;
}

/* ---- telling objects apart ---------------------------------------------------------------- */

static bool is_taken(const struct gen_choice *c, size_t n, peg_str tag)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < c->items[i].n_tags; k++) {
            if (peg__str_eq(c->items[i].tags[k], tag))
                return true;
        }
    }
    return false;
}

static bool take_tags(struct gen_choice *c, size_t i, const peg_json *root, peg_str name,
                      struct peg__arena *arena)
{
    struct gen_alternative *item = &c->items[i];
    struct gen_place member = gen_place_property(&item->place, root, name);
    size_t n_tags = SIZE_MAX;

    if (!gen_place_strings(&member, arena, &item->tags, &n_tags)) {
        c->is_out_of_memory = true;
        return false;
    }
    if (!gen_place_requires(&item->place, name) || !n_tags || n_tags == SIZE_MAX)
        return false;
    for (size_t k = 0; k < n_tags; k++) {
        if (is_taken(c, i, item->tags[k]))
            return false;
    }
    item->n_tags = n_tags;
    return true;
}

static bool try_tag(struct gen_choice *c, const peg_json *root, peg_str name,
                    struct peg__arena *arena)
{
    bool is_tag = true;

    for (size_t i = 0; i < c->n; i++)
        c->items[i].n_tags = 0;
    for (size_t i = 0; i < c->n && is_tag; i++) {
        if (c->items[i].kinds == GEN_IS_OBJECT)
            is_tag = take_tags(c, i, root, name, arena);
    }
    if (is_tag)
        c->tag = name;
    return is_tag;
}

static bool find_tag(struct gen_choice *c, const struct gen_place *first, const peg_json *root,
                     struct peg__arena *arena)
{
    for (size_t i = 0; i < first->n; i++) {
        PEG_JSON_EACH_MEMBER (peg_json_get(first->schemas[i], "properties"), key) {
            if (try_tag(c, root, peg_json_str(key), arena))
                return true;
        }
    }
    return false;
}

static void tell_apart(struct gen_choice *c, const peg_json *root, struct peg__arena *arena)
{
    const struct gen_alternative *object = NULL;
    unsigned seen = 0;
    bool needs_tag = false;

    for (size_t i = 0; i < c->n; i++) {
        const unsigned kinds = c->items[i].kinds;

        if (kinds == GEN_IS_OBJECT && object)
            needs_tag = true;
        else if (seen & kinds)
            c->reason = "a value can belong to several of its alternatives, as they are of one "
                        "kind, or say none";
        if (kinds == GEN_IS_OBJECT)
            object = &c->items[i];
        seen |= kinds;
    }
    if (needs_tag && !c->reason && !find_tag(c, &object->place, root, arena))
        c->reason = "no member tells its alternatives apart: give all of them one that is required "
                    "and has another const in each";
}

bool gen_choice_read(const struct gen_place *place, const peg_json *root, const peg_json *choice,
                     struct peg__arena *arena, struct gen_choice *ret_choice)
{
    struct gen_choice c = {.tag = {"", 0}};

    if (peg_json_len(choice) > PEG_LIMIT_GENERATE_BRANCHES) {
        c.reason = "it has more than 64 alternatives";
        *ret_choice = c;
        return true;
    }
    c.items = peg__arena_alloc_zero(arena, (peg_json_len(choice) + 1) * sizeof(*c.items));
    if (!c.items)
        return false;
    PEG_JSON_EACH_ITEM (choice, branch) {
        if (!read_branch(&c, place_of_branch(place, root, choice, branch), root, arena))
            return false;
    }
    if (!join_scalars(&c, arena))
        return false;
    if (!c.reason)
        tell_apart(&c, root, arena);
    *ret_choice = c;
    return !c.is_out_of_memory;
}
