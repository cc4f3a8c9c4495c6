/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_CHECK_RUN_H
#define PEG_SCHEMA_CHECK_RUN_H

/*
 * The interpreter's loop, inline: most members and items have one or two instructions that look
 * at nothing but the value, and a call would cost more than they do. The loops over members and
 * items have it inside them; everybody else calls peg__run().
 */

#include "base/text/str.h"
#include "schema/check/check.h"
#include "json/json.h"
#include "json/number/number.h"

/* Instructions that apply schemas, or are too long for a line. */
bool peg__run_long(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v);

/* ---- strings ---------------------------------------------------------------- */

/* A character takes one to four bytes: most lengths are decided without counting. */
static inline bool peg__is_long_enough(const peg_json *string, uint32_t min)
{
    if (string->len < min)
        return false;
    return string->len / 4 >= min || peg__utf8_length(peg_json_str(string)) >= min;
}

static inline bool peg__is_short_enough(const peg_json *string, uint32_t max)
{
    return string->len <= max || peg__utf8_length(peg_json_str(string)) <= max;
}

/* ---- numbers ---------------------------------------------------------------- */

/* A decimal against a whole bound of at most PEG_WHOLE_BOUND: in 64 bits for all that have a few
 * decimal places. */
static inline bool peg__is_scaled(const peg_json *decimal)
{
    return __builtin_expect(decimal->form == PEG_JSON_FORM_SCALED && decimal->exponent <= 0 &&
                                decimal->exponent >= -9,
                            1);
}

static inline int64_t peg__scale(int64_t bound, const peg_json *decimal)
{
    static const int64_t powers[] = {1,      10,      100,      1000,      10000,
                                     100000, 1000000, 10000000, 100000000, 1000000000};

    return bound * powers[-decimal->exponent];
}

static inline bool peg__is_at_least(const peg_json *decimal, int64_t bound)
{
    if (peg__is_scaled(decimal))
        return decimal->u.number >= peg__scale(bound, decimal);
    return peg_json_compare_numbers(decimal,
                                    &(peg_json){.kind = PEG_JSON_INTEGER, .u.number = bound}) >= 0;
}

static inline bool peg__is_at_most(const peg_json *decimal, int64_t bound)
{
    if (peg__is_scaled(decimal))
        return decimal->u.number <= peg__scale(bound, decimal);
    return peg_json_compare_numbers(decimal,
                                    &(peg_json){.kind = PEG_JSON_INTEGER, .u.number = bound}) <= 0;
}

/* ---- kinds ------------------------------------------------------------------ */

/* Around what kinds have decided: it counts as much as the loop that was saved. */
static inline bool peg__pass(struct peg_checker *ck, const peg_json *v)
{
    return peg__enter(ck, v) && peg__leave(ck);
}

/* n values that contain nothing, `stride` apart. */
static inline bool peg__are_of_kinds(const peg_json *v, size_t n, size_t stride, uint32_t kinds)
{
    for (const peg_json *end = v + n * stride; v < end; v += stride)
        if (!(kinds >> v->kind & 1))
            return false;
    return true;
}

static inline bool peg__is_member_of_record(const struct peg__slot *slot, const peg_json *key)
{
    const uint32_t len = key->len;

    if (slot->len != len ||
        (slot->head ^ peg__load8(key->u.ptr)) << (slot->flags >> MEMBER_UNUSED_SHIFT) != 0)
        return false;
    return len <= 8 || slot->tail == peg__load8(key->u.ptr + len - 8);
}

/* Members in the order of the schema, each of a kind that is accepted as it is, none missing and
 * none too many. If not, nothing is decided: the order may be another. */
static inline bool peg__is_record(const struct peg__members *m, const peg_json *v)
{
    const struct peg__slot *slots = m->names.slots;
    const struct peg__slot *slot = &slots[m->names.first];
    const peg_json *key = v + 1;
    const peg_json *end = key + 2 * (size_t)v->len;

    if (end != v + v->u.extent)
        return false;
    for (uint32_t i = 0; i < m->names.n; i++, slot = &slots[slot->next]) {
        if (key < end && peg__is_member_of_record(slot, key)) {
            if (!(slot->flags >> (MEMBER_KINDS_SHIFT + key[1].kind) & 1))
                return false;
            key += 2;
        } else if (slot->flags & MEMBER_REQUIRED) {
            return false;
        }
    }
    return key == end;
}

/* ---- the loop --------------------------------------------------------------- */

/*
 * The one dispatch of the interpreter: long, and flat. Each case continues with the next
 * instruction, returns what a function decided, or breaks: then the rule has failed.
 * Recursion is bounded by depth_left, which every function that applies a schema uses up.
 * NOLINTBEGIN(misc-no-recursion,readability-function-size,readability-function-cognitive-complexity)
 */
static inline __attribute__((always_inline)) bool peg__run_inline(struct peg_checker *ck,
                                                                  uint32_t pc, const peg_json *v)
{
    for (const struct peg__insn *insn = &ck->schema->code[pc];; insn++) {
        switch ((enum peg__op)insn->op) {
        case OP_END:
            return true;
        case OP_FAIL:
            return peg__fail_insn(ck, insn, v);
        case OP_MEMBERS:
            if (peg__check_members(ck, insn, v))
                continue;
            return false;
        case OP_ITEMS:
            if (peg__check_items(ck, insn, v))
                continue;
            return false;
        case OP_RECORD:
            if (peg__check_record(ck, insn, v))
                continue;
            return false;
        case OP_MAP_OF_KINDS:
            if (peg__check_map_of_kinds(ck, insn, v))
                continue;
            return false;
        case OP_ITEMS_OF_KINDS:
            if (peg__check_items_of_kinds(ck, insn, v))
                continue;
            return false;
        case OP_ITEMS_RECORDS:
            if (peg__check_items_records(ck, insn, v))
                continue;
            return false;
        case OP_TUPLE:
            if (peg__check_tuple(ck, insn, v))
                continue;
            return false;
        case OP_ENUM_STRING:
            if (peg__names_find(&ck->schema->enums[insn->a], v))
                continue;
            break;
        case OP_LENGTH_MIN:
            if (peg__is_long_enough(v, insn->a))
                continue;
            break;
        case OP_LENGTH_MAX:
            if (peg__is_short_enough(v, insn->a))
                continue;
            break;
        case OP_FORMAT:
            if (ck->schema->formats[insn->a](peg_json_str(v)))
                continue;
            break;
        case OP_INT_MIN:
            if (v->u.number >= peg__immediate(insn))
                continue;
            break;
        case OP_INT_MAX:
            if (v->u.number <= peg__immediate(insn))
                continue;
            break;
        case OP_INT_MULTIPLE:
            if (v->u.number % peg__immediate(insn) == 0)
                continue;
            break;
        case OP_INT_EQUAL:
            if (v->u.number == peg__immediate(insn))
                continue;
            break;
        case OP_INT_RANGE:
            /* On failure the two that follow find out which bound it is. */
            if (v->u.number >= (int32_t)insn->b && v->u.number <= (int32_t)insn->c)
                insn += 2;
            continue;
        case OP_DECIMAL_RANGE:
            if (peg__is_scaled(v) && v->u.number >= peg__scale((int32_t)insn->b, v) &&
                v->u.number <= peg__scale((int32_t)insn->c, v))
                insn += 2;
            continue;
        case OP_DECIMAL_MIN:
            if (peg__is_at_least(v, peg__immediate(insn)))
                continue;
            break;
        case OP_DECIMAL_MAX:
            if (peg__is_at_most(v, peg__immediate(insn)))
                continue;
            break;
        case OP_TRUTH:
            if (v->u.truth == insn->a)
                continue;
            break;
        case OP_ITEMS_MIN:
        case OP_MEMBERS_MIN:
            if (v->len >= insn->a)
                continue;
            break;
        case OP_ITEMS_MAX:
        case OP_MEMBERS_MAX:
            if (v->len <= insn->a)
                continue;
            break;
        case OP_CALL:
        case OP_ANY_OF:
        case OP_ONE_OF:
        case OP_SWITCH:
        case OP_NOT:
        case OP_IF:
        case OP_TRACK:
        case OP_ENUM:
        case OP_ENUM_HASH:
        case OP_CONST:
        case OP_PATTERN:
        case OP_CONTENT:
        case OP_WHOLE:
        case OP_WRITTEN_WHOLE:
        case OP_MIN:
        case OP_MAX:
        case OP_ABOVE:
        case OP_BELOW:
        case OP_MULTIPLE:
        case OP_CONTAINS:
        case OP_UNIQUE:
        case OP_FEW_MEMBERS:
        case OP_REQUIRED:
        case OP_MEMBER_NAMES:
        case OP_DEPENDENT_REQUIRED:
        case OP_DEPENDENT_SCHEMA:
        case OP_DEPENDENT_VALUE:
            if (peg__run_long(ck, insn, v))
                continue;
            return false;
        default:
            __builtin_unreachable(); /* the compiler need not check that the operation is one */
        }
        if (!peg__fail_insn(ck, insn, v))
            return false;
    }
}
/* NOLINTEND(misc-no-recursion,readability-function-size,readability-function-cognitive-complexity)
 */

#endif
