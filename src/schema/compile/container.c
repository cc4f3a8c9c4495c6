/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keywords of arrays and objects. properties, patternProperties, additionalProperties and required
 * become one instruction, which goes through the members once.
 */

#include "base/mem.h"
#include "schema/compile/internal.h"

bool peg__add_list(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schemas,
                   bool in_place, uint32_t *ret_start)
{
    const size_t n = peg_json_len(schemas);
    size_t i = 0;

    if (n && !PEG__ADD(c, lists, lists, n))
        return false;
    *ret_start = (uint32_t)(c->lists.n - n);
    PEG_JSON_EACH_ITEM (schemas, schema) {
        uint32_t node;

        if (!(in_place ? peg__node_in_place : peg__node_below)(c, d, schema, &node))
            return false;
        /* By index: compiling the node may have moved the array. */
        c->out->lists[*ret_start + i++] = node;
    }
    return true;
}

/* `rest` is KW_COUNT if nothing is said about the items after the prefix. */
static bool emit_tuple(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword prefix,
                       enum peg__keyword rest)
{
    const peg_json *schemas = peg__value_of(&d->sub, prefix);
    struct peg__insn insn = {.op = OP_TUPLE, .b = (uint32_t)schemas->len, .c = NODE_TRUE};

    if (!peg__add_list(c, d, schemas, false, &insn.a))
        return false;
    if (rest != KW_COUNT) {
        insn.has_rest = 1;
        if (!peg__node_below(c, d, peg__value_of(&d->sub, rest), &insn.c))
            return false;
    }
    return peg__emit(c, d, KINDS_ARRAY, prefix, insn);
}

static bool emit_items(struct peg__compiler *c, struct peg__draft *d)
{
    struct peg__insn insn = {.op = OP_ITEMS};

    if (!peg__node_below(c, d, peg__value_of(&d->sub, KW_ITEMS), &insn.a))
        return false;
    if (insn.a == NODE_TRUE && !d->task.is_tracked)
        return true;
    return peg__emit(c, d, KINDS_ARRAY, KW_ITEMS, insn);
}

static bool compile_items(struct peg__compiler *c, struct peg__draft *d)
{
    const struct peg__subschema *sub = &d->sub;

    if (peg__has(sub, KW_PREFIX_ITEMS))
        return peg__need_kind(c, sub->key[KW_PREFIX_ITEMS], PEG_JSON_ARRAY,
                              "an array of schemas") &&
               emit_tuple(c, d, KW_PREFIX_ITEMS, peg__has(sub, KW_ITEMS) ? KW_ITEMS : KW_COUNT);
    if (!peg__has(sub, KW_ITEMS))
        return true;
    if (peg__value_of(sub, KW_ITEMS)->kind == PEG_JSON_ARRAY &&
        d->task.resource->dialect.id < PEG_DIALECT_2020_12)
        return emit_tuple(c, d, KW_ITEMS,
                          peg__has(sub, KW_ADDITIONAL_ITEMS) ? KW_ADDITIONAL_ITEMS : KW_COUNT);
    return emit_items(c, d);
}

static bool compile_contains(struct peg__compiler *c, struct peg__draft *d)
{
    const struct peg__subschema *sub = &d->sub;
    struct peg__contains contains = {
        .min = 1,
        .max = UINT32_MAX,
        .min_rule = sub->key[KW_CONTAINS],
        .marks = d->task.resource->dialect.id >= PEG_DIALECT_2020_12,
    };
    struct peg__contains *slot;

    if (!peg__node_below(c, d, peg__value_of(sub, KW_CONTAINS), &contains.node))
        return false;
    if (peg__has(sub, KW_MIN_CONTAINS)) {
        contains.min_rule = sub->key[KW_MIN_CONTAINS];
        if (!peg__read_count(c, d, KW_MIN_CONTAINS, &contains.min))
            return false;
    }
    if (peg__has(sub, KW_MAX_CONTAINS)) {
        contains.max_rule = sub->key[KW_MAX_CONTAINS];
        if (!peg__read_count(c, d, KW_MAX_CONTAINS, &contains.max))
            return false;
    }
    slot = PEG__ADD(c, contains, contains, 1);
    if (!slot)
        return false;
    *slot = contains;
    return peg__emit(
        c, d, KINDS_ARRAY, KW_CONTAINS,
        (struct peg__insn){.op = OP_CONTAINS, .a = (uint32_t)(slot - c->out->contains)});
}

bool peg__compile_array(struct peg__compiler *c, struct peg__draft *d)
{
    static const struct peg__count_rule counts = {KW_MIN_ITEMS, KW_MAX_ITEMS, OP_ITEMS_MIN,
                                                  OP_ITEMS_MAX, KINDS_ARRAY};
    const struct peg__subschema *sub = &d->sub;

    if (!peg__compile_counts(c, d, &counts) || !compile_items(c, d))
        return false;
    if (peg__has(sub, KW_CONTAINS) && !compile_contains(c, d))
        return false;
    if (!peg__has(sub, KW_UNIQUE_ITEMS))
        return true;
    if (!peg__need_kind(c, sub->key[KW_UNIQUE_ITEMS], PEG_JSON_BOOL, "a boolean"))
        return false;
    return !peg_json_is_true(peg__value_of(sub, KW_UNIQUE_ITEMS)) ||
           peg__emit(c, d, KINDS_ARRAY, KW_UNIQUE_ITEMS, (struct peg__insn){.op = OP_UNIQUE});
}

enum { FEW_REQUIRED = 4, FEW_PROPERTIES = 1 };

static bool need_names(struct peg__compiler *c, const peg_json *key, const peg_json *list)
{
    if (list->kind != PEG_JSON_ARRAY)
        return peg__fail_keyword(c, key, "an array of names");
    PEG_JSON_EACH_ITEM (list, name)
        if (name->kind != PEG_JSON_STRING)
            return peg__fail_keyword(c, key, "an array of names");
    return true;
}

/* ---- members ----------------------------------------------------------------------------- */

static bool add_properties(struct peg__compiler *c, const struct peg__draft *d,
                           struct peg__name *list, uint32_t *n)
{
    const peg_json *properties = peg__value_of(&d->sub, KW_PROPERTIES);

    PEG_JSON_EACH_MEMBER (properties, key) {
        struct peg__name *name = &list[*n];

        *name =
            (struct peg__name){.text = peg_json_str(key), .flags = MEMBER_DECLARED, .order = *n};
        ++*n;
        if (!peg__node_below(c, d, key + 1, &name->node))
            return false;
    }
    return true;
}

static void add_required(const struct peg__draft *d, struct peg__name *list, uint32_t *n)
{
    PEG_JSON_EACH_ITEM (peg__value_of(&d->sub, KW_REQUIRED), name) {
        list[*n] =
            (struct peg__name){.text = peg_json_str(name), .flags = MEMBER_REQUIRED, .order = *n};
        ++*n;
    }
}

static uint32_t count_required(const struct peg__name *list, uint32_t n)
{
    uint32_t n_required = 0;

    for (uint32_t i = 0; i < n; i++)
        n_required += list[i].flags & MEMBER_REQUIRED;
    return n_required;
}

static bool read_names(struct peg__compiler *c, const struct peg__draft *d,
                       struct peg__members *members)
{
    const bool has_properties = peg__has(&d->sub, KW_PROPERTIES);
    const bool has_required = peg__has(&d->sub, KW_REQUIRED);
    const size_t max = (has_properties ? peg__value_of(&d->sub, KW_PROPERTIES)->len : 0U) +
                       (has_required ? peg__value_of(&d->sub, KW_REQUIRED)->len : 0U);
    struct peg__name *list = peg__alloc_zero(max, sizeof(*list));
    uint32_t n = 0;
    bool read = true;

    if (!list)
        return peg__compile_nomem(c);
    if (has_properties)
        read = add_properties(c, d, list, &n);
    if (read && has_required)
        add_required(d, list, &n);
    read = read && peg__add_names(c, &members->names, list, n);
    /* What is left of the list has every name once. */
    members->n_required = read ? count_required(list, members->names.n) : 0;
    peg__free(list);
    return read;
}

static bool read_patterns(struct peg__compiler *c, const struct peg__draft *d,
                          struct peg__members *members)
{
    const peg_json *patterns = peg__value_of(&d->sub, KW_PATTERN_PROPERTIES);
    uint32_t i = 0;

    members->patterns =
        peg__arena_alloc(&c->out->arena, patterns->len * sizeof(*members->patterns));
    if (!members->patterns)
        return peg__compile_nomem(c);
    PEG_JSON_EACH_MEMBER (patterns, key) {
        struct peg__pattern_member *member = &members->patterns[i++];
        uint32_t index;

        if (!peg__add_pattern(c, key, peg_json_str(key), &member->pattern, &index) ||
            !peg__node_below(c, d, key + 1, &member->node))
            return false;
    }
    members->n_patterns = i;
    return true;
}

static bool read_additional(struct peg__compiler *c, const struct peg__draft *d,
                            struct peg__members *members)
{
    const peg_json *key = d->sub.key[KW_ADDITIONAL_PROPERTIES];

    members->additional_rule = key;
    members->has_additional = true;
    members->is_closed = key[1].kind == PEG_JSON_BOOL && !key[1].u.truth;
    return members->is_closed || peg__node_below(c, d, key + 1, &members->additional);
}

static bool read_member_rules(struct peg__compiler *c, const struct peg__draft *d,
                              struct peg__members *members)
{
    const struct peg__subschema *sub = &d->sub;

    members->required_rule = peg__has(sub, KW_REQUIRED) ? sub->key[KW_REQUIRED] : NULL;
    return read_names(c, d, members) &&
           (!peg__has(sub, KW_PATTERN_PROPERTIES) || read_patterns(c, d, members)) &&
           (!peg__has(sub, KW_ADDITIONAL_PROPERTIES) || read_additional(c, d, members));
}

static bool need_shapes(struct peg__compiler *c, const struct peg__subschema *sub)
{
    static const enum peg__keyword maps[] = {KW_PROPERTIES, KW_PATTERN_PROPERTIES};

    for (int i = 0; i < 2; i++)
        if (peg__has(sub, maps[i]) &&
            !peg__need_kind(c, sub->key[maps[i]], PEG_JSON_OBJECT, "an object of schemas"))
            return false;
    return !peg__has(sub, KW_REQUIRED) ||
           need_names(c, sub->key[KW_REQUIRED], peg__value_of(sub, KW_REQUIRED));
}

/* Nothing but a few required names: looked for one by one. */
static bool compile_few_required(struct peg__compiler *c, struct peg__draft *d)
{
    const peg_json *names = peg__value_of(&d->sub, KW_REQUIRED);
    struct peg__insn insn = {.op = OP_REQUIRED, .a = (uint32_t)c->words.n, .b = names->len};
    uint32_t index;

    PEG_JSON_EACH_ITEM (names, name)
        if (!peg__add_word(c, name, &index))
            return false;
    return insn.b == 0 || peg__emit(c, d, KINDS_OBJECT, KW_REQUIRED, insn);
}

static bool compile_members(struct peg__compiler *c, struct peg__draft *d)
{
    const peg__keywords wide =
        1ULL << KW_PROPERTIES | 1ULL << KW_PATTERN_PROPERTIES | 1ULL << KW_ADDITIONAL_PROPERTIES;
    const struct peg__subschema *sub = &d->sub;
    struct peg__members members = {.additional = NODE_TRUE};
    struct peg__members *slot;
    bool is_few;

    if (!need_shapes(c, sub))
        return false;
    if (!(sub->present & wide))
        if (!peg__has(sub, KW_REQUIRED) || peg__value_of(sub, KW_REQUIRED)->len <= FEW_REQUIRED)
            return !peg__has(sub, KW_REQUIRED) || compile_few_required(c, d);
    if (!read_member_rules(c, d, &members))
        return false;
    slot = PEG__ADD(c, members, members, 1);
    if (!slot)
        return false;
    *slot = members;
    is_few = members.names.slots && members.names.n <= FEW_PROPERTIES && !members.n_patterns &&
             !members.has_additional && !d->task.is_tracked;
    return peg__emit(c, d, KINDS_OBJECT, KW_PROPERTIES,
                     (struct peg__insn){.op = is_few ? OP_FEW_MEMBERS : OP_MEMBERS,
                                        .a = (uint32_t)(slot - c->out->members)});
}

/* ---- dependencies -------------------------------------------------------------------------- */

static bool emit_dependency(struct peg__compiler *c, struct peg__draft *d,
                            enum peg__keyword keyword, const peg_json *name)
{
    struct peg__insn insn = {.op = OP_DEPENDENT_SCHEMA};

    if (name[1].kind == PEG_JSON_ARRAY && keyword != KW_DEPENDENT_SCHEMAS) {
        insn.op = OP_DEPENDENT_REQUIRED;
        return need_names(c, d->sub.key[keyword], name + 1) && peg__add_word(c, name, &insn.a) &&
               peg__emit(c, d, KINDS_OBJECT, keyword, insn);
    }
    if (keyword == KW_DEPENDENT_REQUIRED)
        return need_names(c, d->sub.key[keyword], name + 1);
    return peg__node_in_place(c, d, name + 1, &insn.a) && peg__add_word(c, name, &insn.b) &&
           peg__emit(c, d, KINDS_OBJECT, keyword, insn);
}

static bool compile_dependencies(struct peg__compiler *c, struct peg__draft *d)
{
    static const enum peg__keyword keywords[] = {KW_DEPENDENT_REQUIRED, KW_DEPENDENT_SCHEMAS,
                                                 KW_DEPENDENCIES};

    for (int i = 0; i < 3; i++) {
        if (!peg__has(&d->sub, keywords[i]))
            continue;
        if (!peg__need_kind(c, d->sub.key[keywords[i]], PEG_JSON_OBJECT,
                            "an object from names to what they need"))
            return false;
        PEG_JSON_EACH_MEMBER (peg__value_of(&d->sub, keywords[i]), name)
            if (!emit_dependency(c, d, keywords[i], name))
                return false;
    }
    return true;
}

static bool emit_value_dependency(struct peg__compiler *c, struct peg__draft *d,
                                  const peg_json *name)
{
    PEG_JSON_EACH_MEMBER (name + 1, value) {
        struct peg__insn insn = {.op = OP_DEPENDENT_VALUE};

        if (!peg__node_in_place(c, d, value + 1, &insn.a) || !peg__add_word(c, name, &insn.b) ||
            !peg__add_word(c, value, &insn.c) ||
            !peg__emit(c, d, KINDS_OBJECT, KW_PROPERTY_DEPENDENCIES, insn))
            return false;
    }
    return true;
}

static bool compile_value_dependencies(struct peg__compiler *c, struct peg__draft *d)
{
    static const char must[] = "an object from names to objects from values to schemas";
    const peg_json *key = d->sub.key[KW_PROPERTY_DEPENDENCIES];

    if (!peg__need_kind(c, key, PEG_JSON_OBJECT, must))
        return false;
    PEG_JSON_EACH_MEMBER (key + 1, name) {
        if (name[1].kind != PEG_JSON_OBJECT)
            return peg__fail_keyword(c, key, must);
        if (!emit_value_dependency(c, d, name))
            return false;
    }
    return true;
}

bool peg__compile_object(struct peg__compiler *c, struct peg__draft *d)
{
    static const struct peg__count_rule counts = {KW_MIN_PROPERTIES, KW_MAX_PROPERTIES,
                                                  OP_MEMBERS_MIN, OP_MEMBERS_MAX, KINDS_OBJECT};
    const struct peg__subschema *sub = &d->sub;
    struct peg__insn names = {.op = OP_MEMBER_NAMES};

    if (!peg__compile_counts(c, d, &counts) || !compile_members(c, d) ||
        !compile_dependencies(c, d))
        return false;
    if (peg__has(sub, KW_PROPERTY_DEPENDENCIES) && !compile_value_dependencies(c, d))
        return false;
    if (!peg__has(sub, KW_PROPERTY_NAMES))
        return true;
    return peg__node_below(c, d, peg__value_of(sub, KW_PROPERTY_NAMES), &names.a) &&
           peg__emit(c, d, KINDS_OBJECT, KW_PROPERTY_NAMES, names);
}
