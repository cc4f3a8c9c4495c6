/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_CHECK_RUN_H
#define PEG_SCHEMA_CHECK_RUN_H

/*
 * The interpreter's loop, inline: most members and items have one or two instructions that look
 * at nothing but the value, and a call would cost more than they do. The loops over members and
 * items have it inside them; everybody else calls peg__run().
 */

#include "schema/check.h"
#include "json/json.h"
#include "json/number.h"

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

/* A decimal against a whole bound: exact in 128 bits for all that have a few decimal places. */
static inline int peg__compare_to_whole(const peg_json *decimal, int64_t bound)
{
    static const int64_t powers[] = {1,       10,       100,       1000,       10000,      100000,
                                     1000000, 10000000, 100000000, 1000000000, 10000000000};
    const int places = -decimal->exponent;

    if (__builtin_expect(decimal->form == PEG_JSON_FORM_SCALED && places >= 0 && places <= 10, 1)) {
        const __int128 scaled = (__int128)bound * powers[places];

        return (decimal->u.number > scaled) - (decimal->u.number < scaled);
    }
    return peg_json_compare_numbers(decimal,
                                    &(peg_json){.kind = PEG_JSON_INTEGER, .u.number = bound});
}

/* ---- the loop --------------------------------------------------------------- */

/*
 * The one dispatch of the interpreter: long, and flat. Each case continues with the next
 * instruction, returns what a function decided, or breaks: then the rule has failed.
 * Recursion is bounded by depth_left, which every function that applies a schema uses up.
 * NOLINTBEGIN(misc-no-recursion,readability-function-size,readability-function-cognitive-complexity)
 */
static inline bool peg__run_inline(struct peg_checker *ck, uint32_t pc, const peg_json *v)
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
        case OP_DECIMAL_MIN:
            if (peg__compare_to_whole(v, peg__immediate(insn)) >= 0)
                continue;
            break;
        case OP_DECIMAL_MAX:
            if (peg__compare_to_whole(v, peg__immediate(insn)) <= 0)
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
        default:
            if (peg__run_long(ck, insn, v))
                continue;
            return false;
        }
        if (!peg__fail_insn(ck, insn, v))
            return false;
    }
}
/* NOLINTEND(misc-no-recursion,readability-function-size,readability-function-cognitive-complexity)
 */

#endif
