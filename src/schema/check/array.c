/* SPDX-License-Identifier: Apache-2.0 */

/* Arrays: items, prefixItems, contains, uniqueItems. */

#include "schema/check/run.h"

enum { FEW_ITEMS = 12 };

/* Items may be arrays again: the recursion is bounded by depth_left.
 * NOLINTBEGIN(misc-no-recursion) */
bool peg__check_items(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const struct peg__node *node = &ck->schema->nodes[insn->a];

    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_ITEM (v, item) {
        const uint32_t pc = node->entry[item->kind];

        if (pc != 0 && !peg__run_inline(ck, pc, item))
            return false;
    }
    if (insn->flags & FLAG_TRACKED)
        peg__mark_all(ck);
    return peg__leave(ck);
}

/* Items that contain nothing are decided by their kinds, all others one by one. */
bool peg__check_items_of_kinds(struct peg_checker *ck, const struct peg__insn *insn,
                               const peg_json *v)
{
    if (v->u.extent != (size_t)v->len + 1 || !peg__are_of_kinds(v + 1, v->len, 1, insn->b))
        return peg__check_items(ck, insn, v);
    if (insn->flags & FLAG_TRACKED)
        peg__mark_all(ck);
    return peg__pass(ck, v);
}

/* What is no record at first sight: an object is not compared with one again. */
static __attribute__((noinline)) bool
apply_to_item(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *item)
{
    const uint32_t pc = ck->schema->nodes[insn->a].entry[item->kind];

    if (item->kind == PEG_JSON_OBJECT)
        return peg__check_members(ck, &ck->schema->code[pc], item);
    return pc == 0 || peg__run(ck, pc, item);
}

bool peg__check_items_records(struct peg_checker *ck, const struct peg__insn *insn,
                              const peg_json *v)
{
    const struct peg__members *m = &ck->schema->members[insn->b];

    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_ITEM (v, item) {
        const bool is_record = item->kind == PEG_JSON_OBJECT && peg__is_record(m, item);

        if (!(is_record ? peg__pass(ck, item) : apply_to_item(ck, insn, item)))
            return false;
    }
    if (insn->flags & FLAG_TRACKED)
        peg__mark_all(ck);
    return peg__leave(ck);
}

bool peg__check_tuple(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const uint32_t *prefix = &ck->schema->lists[insn->a];
    uint32_t i = 0;

    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_ITEM (v, item) {
        const uint32_t node = i < insn->b ? prefix[i] : insn->c;
        const uint32_t pc = ck->schema->nodes[node].entry[item->kind];

        if (pc != 0 && !peg__run_inline(ck, pc, item))
            return false;
        if (i < insn->b)
            peg__mark(ck, insn, i);
        i++;
    }
    if (insn->has_rest)
        if (insn->flags & FLAG_TRACKED)
            peg__mark_all(ck);
    return peg__leave(ck);
}

/* NOLINTEND(misc-no-recursion) */

bool peg__check_contains(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const struct peg__contains *contains = &ck->schema->contains[insn->a];
    const bool marks = contains->marks && (insn->flags & FLAG_TRACKED);
    uint32_t n = 0;
    size_t i = 0;

    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_ITEM (v, item) {
        if (peg__try(ck, contains->node, item)) {
            n++;
            if (marks)
                peg__mark(ck, insn, i);
        } else if (ck->halted) {
            return false;
        }
        i++;
        if (n >= contains->min && contains->max == UINT32_MAX && !marks)
            break;
    }
    peg__leave(ck);
    if (n < contains->min && !peg__fail_rule(ck, contains->min_rule, v, NULL))
        return false;
    return n <= contains->max || peg__fail_rule(ck, contains->max_rule, v, NULL);
}

/* ---- uniqueItems --------------------------------------------------------------- */

static const peg_json *find_equal_among_few(const peg_json *array)
{
    const peg_json *end = peg_json_next(array);

    for (const peg_json *a = array + 1; a < end; a = peg_json_next(a))
        for (const peg_json *b = peg_json_next(a); b < end; b = peg_json_next(b))
            if (peg_json_equal(a, b))
                return b;
    return NULL;
}

/* A table of hash and address, two words a slot, in the checker's scratch. False after a halt. */
static bool find_equal_among_many(struct peg_checker *ck, const peg_json *array,
                                  const peg_json **ret_item)
{
    size_t n_slots = 32;
    size_t table;

    while (n_slots < (size_t)array->len * 2)
        n_slots *= 2;
    table = peg__scratch(ck, n_slots * 2);
    if (table == SIZE_MAX)
        return false;

    *ret_item = NULL;
    PEG_JSON_EACH_ITEM (array, item) {
        const uint64_t hash =
            peg_json_hash(item, peg__checker_seed(ck)) | 1; /* 0 is an empty slot */
        size_t at = hash >> 8 & (n_slots - 1);
        uint64_t *slot = &ck->words[table + 2 * at];

        while (slot[0] && !*ret_item) {
            if (slot[0] == hash && peg_json_equal(array + slot[1], item))
                *ret_item = item;
            at = (at + 1) & (n_slots - 1);
            slot = &ck->words[table + 2 * at];
        }
        if (*ret_item)
            break;
        slot[0] = hash;
        slot[1] = (uint64_t)(item - array);
    }
    ck->n_words = table;
    return true;
}

bool peg__check_unique(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const peg_json *twice;

    if (v->len < 2)
        return true;
    if (v->len <= FEW_ITEMS && peg_json_extent(v) == (size_t)v->len + 1)
        twice = find_equal_among_few(v);
    else if (!find_equal_among_many(ck, v, &twice))
        return false;
    return !twice || peg__fail_rule(ck, peg__rule(ck, insn), v, twice);
}
