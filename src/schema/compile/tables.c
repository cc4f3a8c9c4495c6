/* SPDX-License-Identifier: Apache-2.0 */

/* What all keywords use while compiling: failures, drafts, and the schema's arrays. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"

/* ---- failures ---------------------------------------------------------------------- */

bool peg__fail_compile(struct peg__compiler *c, const peg_json *place)
{
    peg__index_report_place(&c->index, place, c->reterr);
    return false;
}

bool peg__fail_keyword(struct peg__compiler *c, const peg_json *key, const char *must)
{
    c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD", "'%.*s' must be %s",
                          PEG_ARG(peg_json_str(key)), must);
    return peg__fail_compile(c, key);
}

bool peg__compile_nomem(struct peg__compiler *c)
{
    c->status = peg__fail_nomem(c->reterr);
    return false;
}

bool peg__need_kind(struct peg__compiler *c, const peg_json *key, peg_json_kind kind,
                    const char *must)
{
    return key[1].kind == kind || peg__fail_keyword(c, key, must);
}

bool peg__read_count(struct peg__compiler *c, const struct peg__draft *d, enum peg__keyword keyword,
                     uint32_t *ret_count)
{
    const peg_json *value = peg__value_of(&d->sub, keyword);
    const peg_json zero = {.kind = PEG_JSON_INTEGER};
    int64_t count;

    if (!peg_json_is_whole(value) || peg_json_compare_numbers(value, &zero) < 0)
        return peg__fail_keyword(c, d->sub.key[keyword], "a whole number that is not negative");
    *ret_count = peg_json_int64(value, &count) && count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return true;
}

/* ---- drafts -------------------------------------------------------------------------- */

bool peg__emit(struct peg__compiler *c, struct peg__draft *d, unsigned kinds,
               enum peg__keyword keyword, struct peg__insn insn)
{
    if (!PEG__RESERVE(d->insns, d->n + 1, d->capacity))
        return peg__compile_nomem(c);
    insn.flags = d->task.is_tracked ? FLAG_TRACKED : 0;
    d->insns[d->n++] = (struct peg__draft_insn){
        .insn = insn, .rule = d->sub.key[keyword], .kinds = kinds & d->kinds};
    return true;
}

bool peg__compile_counts(struct peg__compiler *c, struct peg__draft *d,
                         const struct peg__count_rule *rule)
{
    struct peg__insn insn = {.op = (uint8_t)rule->min_op};

    if (peg__has(&d->sub, rule->min)) {
        if (!peg__read_count(c, d, rule->min, &insn.a))
            return false;
        if (insn.a > 0 && !peg__emit(c, d, rule->kinds, rule->min, insn))
            return false;
    }
    insn.op = (uint8_t)rule->max_op;
    return !peg__has(&d->sub, rule->max) || (peg__read_count(c, d, rule->max, &insn.a) &&
                                             peg__emit(c, d, rule->kinds, rule->max, insn));
}

/* ---- the schema's arrays ------------------------------------------------------------- */

void *peg__add_items(struct peg__compiler *c, void *array_pointer, struct peg__counts *counts,
                     size_t item_size, size_t n)
{
    void **array = array_pointer;

    if (counts->n + n > counts->capacity &&
        !peg__reserve(array, item_size, counts->n + n, &counts->capacity)) {
        peg__compile_nomem(c);
        return NULL;
    }
    counts->n += n;
    return (char *)*array + (counts->n - n) * item_size;
}

bool peg__add_word(struct peg__compiler *c, const peg_json *key, uint32_t *ret_index)
{
    const peg_json **word = PEG__ADD(c, words, words, 1);

    if (!word)
        return false;
    *word = key;
    *ret_index = (uint32_t)(word - c->out->words);
    return true;
}

bool peg__add_pattern(struct peg__compiler *c, const peg_json *place, peg_str ecma,
                      struct peg__pattern **ret_pattern, uint32_t *ret_index)
{
    struct peg__pattern **slot = PEG__ADD(c, patterns, patterns, 1);
    peg_error error = {0};
    peg_status status;

    if (!slot)
        return false;
    *slot = NULL;
    status = peg__pattern_new(ecma, c->options.max_pattern_bytes, slot, &error);
    if (status == PEG_ENOMEM)
        return peg__compile_nomem(c);
    if (status) {
        c->status = peg__fail(c->reterr, status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ESCHEMA,
                              status == PEG_ELIMIT ? "E_SCHEMA_TOO_LARGE" : "E_SCHEMA_KEYWORD",
                              "the pattern cannot be used: %s", error.message);
        return peg__fail_compile(c, place);
    }
    *ret_pattern = *slot;
    *ret_index = (uint32_t)(slot - c->out->patterns);
    return true;
}

static int order_names(const void *a, const void *b)
{
    const peg_str x = ((const struct peg__name *)a)->text;
    const peg_str y = ((const struct peg__name *)b)->text;

    if (x.len != y.len)
        return x.len < y.len ? -1 : 1;
    return x.len ? memcmp(x.ptr, y.ptr, x.len) : 0;
}

bool peg__add_names(struct peg__compiler *c, struct peg__names *names, struct peg__name *list,
                    uint32_t n)
{
    uint32_t n_distinct = 0;

    qsort(list, n, sizeof(*list), order_names);
    for (uint32_t i = 0; i < n; i++) {
        struct peg__name *last = n_distinct ? &list[n_distinct - 1] : NULL;

        if (last && order_names(last, &list[i]) == 0) {
            last->flags |= list[i].flags;
            if (list[i].order < last->order)
                last->order = list[i].order;
            last->node |= list[i].node; /* a required name has none, a property has one */
        } else {
            list[n_distinct++] = list[i];
        }
    }
    return peg__names_init(names, list, n_distinct, &c->out->arena) || peg__compile_nomem(c);
}
