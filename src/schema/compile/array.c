/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords of arrays: items and their neighbours, contains, uniqueItems, counts. */

#include "schema/compile/compile.h"

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

static bool compile_counts(struct peg__compiler *c, struct peg__draft *d)
{
    struct peg__insn insn = {.op = OP_ITEMS_MIN};

    if (peg__has(&d->sub, KW_MIN_ITEMS)) {
        if (!peg__read_count(c, d, KW_MIN_ITEMS, &insn.a))
            return false;
        if (insn.a > 0 && !peg__emit(c, d, KINDS_ARRAY, KW_MIN_ITEMS, insn))
            return false;
    }
    insn.op = OP_ITEMS_MAX;
    return !peg__has(&d->sub, KW_MAX_ITEMS) || (peg__read_count(c, d, KW_MAX_ITEMS, &insn.a) &&
                                                peg__emit(c, d, KINDS_ARRAY, KW_MAX_ITEMS, insn));
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
    const struct peg__subschema *sub = &d->sub;

    if (!compile_counts(c, d) || !compile_items(c, d))
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
