/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/place.h"

#include "base/text/str.h"
#include "json/json.h"

static void mark_wrong(struct gen_place *place, const peg_json *schema, const char *reason)
{
    if (!place->wrong) {
        place->wrong = schema;
        place->reason = reason;
    }
}

/* ---- gathering -------------------------------------------------------------------------- */

/* Does a schema say nothing but where it refers to, and what people read? */
static bool is_only_ref(const peg_json *schema)
{
    static const char *const notes[] = {"$ref",       "description", "title",   "default",
                                        "deprecated", "examples",    "$comment"};

    PEG_JSON_EACH_MEMBER (schema, key) {
        bool is_note = false;

        for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]) && !is_note; i++)
            is_note = peg__str_is(peg_json_str(key), notes[i]);
        if (!is_note)
            return false;
    }
    return true;
}

/* The schema with this $anchor, NULL if there is none. A document holds its values in one array. */
static const peg_json *find_anchor(const peg_json *root, peg_str anchor)
{
    const peg_json *end = peg_json_next(root);

    for (const peg_json *at = root; at < end; at++) {
        if (peg_json_kind_of(at) == PEG_JSON_OBJECT &&
            peg__str_eq(peg_json_str(peg_json_get(at, "$anchor")), anchor) && anchor.len)
            return at;
    }
    return NULL;
}

static const peg_json *resolve_ref(const peg_json *root, peg_str ref)
{
    const peg_json *target = NULL;

    if (!ref.len || ref.ptr[0] != '#')
        return NULL;
    ref = peg__strn(ref.ptr + 1, ref.len - 1);
    if (ref.len && ref.ptr[0] != '/')
        return find_anchor(root, ref);
    if (memchr(ref.ptr, '%', ref.len) || peg_json_pointer(root, ref, &target, NULL))
        return NULL;
    return target;
}

static peg_str last_token(peg_str ref)
{
    for (size_t i = ref.len; i > 0; i--) {
        if (ref.ptr[i - 1] == '/' || ref.ptr[i - 1] == '#')
            return peg__strn(ref.ptr + i, ref.len - i);
    }
    return ref;
}

static bool holds_schema(const struct gen_place *place, const peg_json *schema)
{
    for (size_t i = 0; i < place->n; i++) {
        if (place->schemas[i] == schema)
            return true;
    }
    return false;
}

// NOLINTBEGIN(misc-no-recursion): gather() bounds `depth`

/* `depth` bounds references that lead to themselves without ever being added. */
static void gather(struct gen_place *place, const peg_json *root, const peg_json *schema,
                   unsigned depth);

static void gather_ref(struct gen_place *place, const peg_json *root, const peg_json *schema,
                       unsigned depth)
{
    const peg_json *ref = peg_json_get(schema, "$ref");
    const peg_json *target = resolve_ref(root, peg_json_str(ref));

    if (!target) {
        mark_wrong(place, ref, "it refers to something that is not in this schema");
        return;
    }
    if (!place->n)
        place->ref_name = last_token(peg_json_str(ref));
    gather(place, root, target, depth + 1);
}

static void gather_object(struct gen_place *place, const peg_json *root, const peg_json *schema,
                          unsigned depth)
{
    const peg_json *all = peg_json_get(schema, "allOf");

    if (peg_json_get(schema, "$dynamicRef") || peg_json_get(schema, "$recursiveRef"))
        mark_wrong(place, schema, "a dynamic reference has a type only at run time");
    if (peg_json_get(schema, "$ref") && is_only_ref(schema)) {
        gather_ref(place, root, schema, depth);
        return;
    }
    if (holds_schema(place, schema))
        return;
    if (place->n == PEG_LIMIT_GENERATE_TOGETHER) {
        mark_wrong(place, schema, "more than 32 schemas describe one place");
        return;
    }
    place->schemas[place->n++] = schema;
    if (peg_json_get(schema, "$ref"))
        gather_ref(place, root, schema, depth);
    PEG_JSON_EACH_ITEM (all, item)
        gather(place, root, item, depth + 1);
}

static void gather(struct gen_place *place, const peg_json *root, const peg_json *schema,
                   unsigned depth)
{
    if (depth > PEG_LIMIT_GENERATE_TOGETHER)
        mark_wrong(place, schema, "its references have no end");
    else if (peg_json_kind_of(schema) == PEG_JSON_OBJECT)
        gather_object(place, root, schema, depth);
    else if (peg_json_kind_of(schema) == PEG_JSON_BOOL && !peg_json_is_true(schema))
        place->is_false = true;
}

// NOLINTEND(misc-no-recursion)

void gen_place_add(struct gen_place *place, const peg_json *root, const peg_json *schema)
{
    gather(place, root, schema, 0);
}

bool gen_place_is_same(const struct gen_place *a, const struct gen_place *b)
{
    return a->n == b->n && a->n_skipped == b->n_skipped &&
           memcmp(a->schemas, b->schemas, a->n * sizeof(a->schemas[0])) == 0 &&
           memcmp(a->skipped, b->skipped, a->n_skipped * sizeof(a->skipped[0])) == 0;
}

/* ---- kinds ------------------------------------------------------------------------------ */

static unsigned kinds_of_name(peg_str name)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } table[] = {
        {"null", GEN_IS_NULL},     {"boolean", GEN_IS_BOOL},  {"integer", GEN_IS_WHOLE},
        {"number", GEN_IS_NUMBER}, {"string", GEN_IS_STRING}, {"array", GEN_IS_ARRAY},
        {"object", GEN_IS_OBJECT},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (peg__str_is(name, table[i].name))
            return table[i].kinds;
    }
    return 0;
}

static unsigned kinds_of_value(const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_NULL:
        return GEN_IS_NULL;
    case PEG_JSON_BOOL:
        return GEN_IS_BOOL;
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        return peg_json_is_whole(value) ? GEN_IS_WHOLE : GEN_IS_FRACTION;
    case PEG_JSON_STRING:
        return GEN_IS_STRING;
    case PEG_JSON_ARRAY:
        return GEN_IS_ARRAY;
    case PEG_JSON_OBJECT:
        break;
    }
    return GEN_IS_OBJECT;
}

static unsigned kinds_of_type(const peg_json *type)
{
    unsigned kinds = kinds_of_name(peg_json_str(type));

    PEG_JSON_EACH_ITEM (type, item)
        kinds |= kinds_of_name(peg_json_str(item));
    return kinds;
}

static unsigned kinds_of_enum(const peg_json *values)
{
    unsigned kinds = 0;

    PEG_JSON_EACH_ITEM (values, item)
        kinds |= kinds_of_value(item);
    /* Numbers of an enum that has both kinds are numbers. */
    return kinds & GEN_IS_FRACTION ? kinds | GEN_IS_WHOLE : kinds;
}

static bool any_has(const struct gen_place *place, const char *const *keywords)
{
    for (; *keywords; keywords++) {
        if (gen_place_keyword(place, *keywords))
            return true;
    }
    return false;
}

unsigned gen_place_kinds(const struct gen_place *place)
{
    static const char *const of_objects[] = {"properties", "additionalProperties",
                                             "patternProperties", NULL};
    static const char *const of_arrays[] = {"items", "prefixItems", NULL};
    unsigned kinds = GEN_IS_ANY;

    for (size_t i = 0; i < place->n; i++) {
        const peg_json *type = peg_json_get(place->schemas[i], "type");
        const peg_json *values = peg_json_get(place->schemas[i], "enum");
        const peg_json *value = peg_json_get(place->schemas[i], "const");

        if (type)
            kinds &= kinds_of_type(type);
        if (values)
            kinds &= kinds_of_enum(values);
        if (value)
            kinds &= kinds_of_value(value);
    }
    if (kinds == GEN_IS_ANY && any_has(place, of_objects))
        return GEN_IS_OBJECT;
    if (kinds == GEN_IS_ANY && any_has(place, of_arrays))
        return GEN_IS_ARRAY;
    return place->is_false ? 0 : kinds;
}

/* ---- keywords --------------------------------------------------------------------------- */

const peg_json *gen_place_keyword(const struct gen_place *place, const char *keyword)
{
    const peg_json *value = NULL;

    for (size_t i = 0; i < place->n && !value; i++)
        value = peg_json_get(place->schemas[i], keyword);
    return value;
}

bool gen_place_requires(const struct gen_place *place, peg_str name)
{
    for (size_t i = 0; i < place->n; i++) {
        PEG_JSON_EACH_ITEM (peg_json_get(place->schemas[i], "required"), item) {
            if (peg__str_eq(peg_json_str(item), name))
                return true;
        }
    }
    return false;
}

struct gen_place gen_place_property(const struct gen_place *place, const peg_json *root,
                                    peg_str name)
{
    struct gen_place member = {.n = 0};

    for (size_t i = 0; i < place->n; i++) {
        const peg_json *properties = peg_json_get(place->schemas[i], "properties");
        const peg_json *schema = peg_json_get_str(properties, name);

        if (schema)
            gen_place_add(&member, root, schema);
    }
    return member;
}

static bool is_value_listed(const peg_json *schema, const peg_json *value)
{
    const peg_json *values = peg_json_get(schema, "enum");
    const peg_json *only = peg_json_get(schema, "const");

    if (only && !peg_json_equal(only, value))
        return false;
    if (!values)
        return true;
    PEG_JSON_EACH_ITEM (values, item) {
        if (peg_json_equal(item, value))
            return true;
    }
    return false;
}

static bool is_in_all(const struct gen_place *place, const peg_json *value)
{
    for (size_t i = 0; i < place->n; i++) {
        if (!is_value_listed(place->schemas[i], value))
            return false;
    }
    return true;
}

static void take_string(const struct gen_place *place, const peg_json *value, peg_str *strings,
                        size_t *n)
{
    const peg_str text = peg_json_str(value);

    if (peg_json_kind_of(value) != PEG_JSON_STRING || !is_in_all(place, value))
        return;
    for (size_t i = 0; i < *n; i++) {
        if (peg__str_eq(strings[i], text))
            return;
    }
    strings[(*n)++] = text;
}

bool gen_place_strings(const struct gen_place *place, struct peg__arena *arena,
                       const peg_str **ret_strings, size_t *ret_n)
{
    const peg_json *only = gen_place_keyword(place, "const");
    const peg_json *values = gen_place_keyword(place, "enum");
    peg_str *strings;
    size_t n = 0;

    *ret_n = SIZE_MAX;
    if (!only && !values)
        return true;
    strings = peg__arena_alloc(arena, (peg_json_len(values) + 1) * sizeof(*strings));
    if (!strings)
        return false;
    if (only)
        take_string(place, only, strings, &n);
    else
        PEG_JSON_EACH_ITEM (values, item)
            take_string(place, item, strings, &n);
    *ret_strings = strings;
    *ret_n = n;
    return true;
}

peg_str gen_place_description(const struct gen_place *place)
{
    const peg_json *text = gen_place_keyword(place, "description");

    return peg_json_str(text ? text : gen_place_keyword(place, "title"));
}

static bool is_int64_bound(const peg_json *bound)
{
    int64_t number;

    return bound && (peg_json_int64(bound, &number) ||
                     (peg_json_is_number(bound) && peg_json_double(bound) > -9e18 &&
                      peg_json_double(bound) < 9e18));
}

bool gen_place_is_int64(const struct gen_place *place)
{
    const peg_json *least = gen_place_keyword(place, "minimum");
    const peg_json *most = gen_place_keyword(place, "maximum");

    least = least ? least : gen_place_keyword(place, "exclusiveMinimum");
    most = most ? most : gen_place_keyword(place, "exclusiveMaximum");
    return (is_int64_bound(least) && is_int64_bound(most)) || gen_place_keyword(place, "enum") ||
           gen_place_keyword(place, "const");
}

/* ---- alternatives ----------------------------------------------------------------------- */

/* Keywords that say what a value is made of; others only refuse some values. */
static const char *const shapes[] = {"type",  "properties", "additionalProperties",
                                     "enum",  "const",      "patternProperties",
                                     "items", "oneOf",      "anyOf",
                                     NULL};

/* Does one of the branches say something about types? If none does, checking is all it is for. */
static bool has_shape(const peg_json *choice, const peg_json *root)
{
    PEG_JSON_EACH_ITEM (choice, branch) {
        struct gen_place place = {.n = 0};

        gen_place_add(&place, root, branch);
        if (place.wrong || any_has(&place, shapes))
            return true;
    }
    return false;
}

static bool is_skipped(const struct gen_place *place, const peg_json *choice)
{
    for (size_t i = 0; i < place->n_skipped; i++) {
        if (place->skipped[i] == choice)
            return true;
    }
    return false;
}

const peg_json *gen_place_choice(struct gen_place *place, const peg_json *root)
{
    static const char *const keywords[] = {"oneOf", "anyOf"};
    const peg_json *found = NULL;

    for (size_t i = 0; i < 2 * place->n; i++) {
        const peg_json *choice = peg_json_get(place->schemas[i / 2], keywords[i % 2]);

        if (!choice || is_skipped(place, choice) || !has_shape(choice, root))
            continue;
        if (found)
            mark_wrong(place, choice, "two sets of alternatives describe one place");
        else
            found = choice;
    }
    return found;
}
