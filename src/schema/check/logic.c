/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas applied to the same value: anyOf, oneOf, not, if, and what was evaluated by them.
 *
 * A branch that fails must leave no marks behind, and since 2019-09 every branch of anyOf that
 * fits leaves its own: under tracking no branch is skipped, and marks are saved before each.
 */

#include "schema/check/check.h"

/* ---- marks ------------------------------------------------------------------ */

static void mark_up_to(struct peg_checker *ck, const struct peg__track *track, size_t n)
{
    uint64_t *words = ck->words + track->words;

    for (size_t i = 0; i < n / 64; i++)
        words[i] = UINT64_MAX;
    if (n % 64)
        words[n / 64] |= (1ULL << (n % 64)) - 1;
}

void peg__mark_all(struct peg_checker *ck)
{
    mark_up_to(ck, ck->track, ck->track->value->len);
}

/* Tries a branch; its marks stay only if it fits. */
static bool try_tracked(struct peg_checker *ck, uint32_t node, const peg_json *v)
{
    const struct peg__track *track = ck->track;
    const size_t saved = peg__scratch(ck, track->n_words);
    bool fits;

    if (saved == SIZE_MAX)
        return false;
    memcpy(ck->words + saved, ck->words + track->words, track->n_words * sizeof(*ck->words));
    fits = peg__try(ck, node, v);
    if (!fits)
        memcpy(ck->words + track->words, ck->words + saved, track->n_words * sizeof(*ck->words));
    ck->n_words = saved;
    return fits;
}

static inline bool try_branch(struct peg_checker *ck, const struct peg__insn *insn, uint32_t node,
                              const peg_json *v)
{
    return insn->flags & FLAG_TRACKED ? try_tracked(ck, node, v) : peg__try(ck, node, v);
}

/* ---- calls ------------------------------------------------------------------ */

bool peg__check_call(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    return peg__enter(ck, v) && peg__apply(ck, insn->a, v) && peg__leave(ck);
}

/* ---- branches --------------------------------------------------------------- */

bool peg__check_any_of(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const uint32_t *branches = &ck->schema->lists[insn->a];
    bool fits = false;

    if (!peg__enter(ck, v))
        return false;
    for (uint32_t i = 0; i < insn->b && (!fits || (insn->flags & FLAG_TRACKED)); i++) {
        if (try_branch(ck, insn, branches[i], v))
            fits = true;
        else if (ck->halted)
            return false;
    }
    peg__leave(ck);
    if (fits)
        return true;
    return peg__fail_insn(ck, insn, v) && peg__report_best_branch(ck, insn, v);
}

bool peg__check_one_of(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const uint32_t *branches = &ck->schema->lists[insn->a];
    unsigned n_fit = 0;

    if (!peg__enter(ck, v))
        return false;
    for (uint32_t i = 0; i < insn->b && n_fit < 2; i++) {
        if (try_branch(ck, insn, branches[i], v))
            n_fit++;
        else if (ck->halted)
            return false;
    }
    peg__leave(ck);
    if (n_fit == 1)
        return true;
    if (n_fit == 0)
        return peg__fail_insn(ck, insn, v) && peg__report_best_branch(ck, insn, v);
    /* The value itself as detail means: too many. */
    return peg__fail_rule(ck, peg__rule(ck, insn), v, v);
}

bool peg__check_not(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    bool fits;

    if (!peg__enter(ck, v))
        return false;
    fits = peg__try(ck, insn->a, v);
    peg__leave(ck);
    if (fits)
        return peg__fail_insn(ck, insn, v);
    return !ck->halted;
}

bool peg__check_if(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    bool holds;

    if (!peg__enter(ck, v))
        return false;
    holds = try_branch(ck, insn, insn->a, v);
    if (ck->halted)
        return false;
    return peg__apply(ck, holds ? insn->b : insn->c, v) && peg__leave(ck);
}

/* ---- unevaluatedProperties, unevaluatedItems ----------------------------------- */

static bool is_marked(const struct peg_checker *ck, const struct peg__track *track, size_t i)
{
    return (ck->words[track->words + i / 64] >> (i % 64)) & 1;
}

static bool apply_to_rest(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v,
                          const struct peg__track *track)
{
    const bool is_object = v->kind == PEG_JSON_OBJECT;
    const peg_json *end = peg_json_next(v);
    size_t i = 0;

    for (const peg_json *at = v + 1; at < end; i++) {
        const peg_json *item = is_object ? at + 1 : at;

        if (!is_marked(ck, track, i)) {
            const bool refused =
                insn->c != 0 && ck->schema->nodes[insn->b].entry[item->kind] == insn->c;
            /* A false schema: the failure is reported for the object and names the member. */
            const bool goes_on = refused ? peg__fail_rule(ck, peg__rule(ck, insn), v, at)
                                         : peg__apply(ck, insn->b, item);

            if (!goes_on)
                return false;
        }
        at = peg_json_next(item);
    }
    return true;
}

/* What the inner schema evaluated, the outer one has evaluated too. */
static void merge_marks(struct peg_checker *ck, const struct peg__track *inner,
                        const struct peg__track *outer)
{
    for (size_t i = 0; i < inner->n_words; i++)
        ck->words[outer->words + i] |= ck->words[inner->words + i];
}

bool peg__check_track(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    struct peg__track *outer = ck->track;
    const size_t n_words = (v->len + 63) / 64;
    struct peg__track track = {.value = v, .n_words = n_words};
    const size_t failures = peg__report_count(ck);
    bool goes_on;

    track.words = peg__enter(ck, v) ? peg__scratch(ck, n_words) : SIZE_MAX;
    if (track.words == SIZE_MAX)
        return false;
    ck->track = &track;
    goes_on = peg__apply(ck, insn->a, v);
    /* After a failure the marks are incomplete: what they leave over means nothing. */
    if (goes_on && peg__report_count(ck) == failures)
        goes_on = apply_to_rest(ck, insn, v, &track);
    ck->track = outer;
    if (goes_on && (insn->flags & FLAG_TRACKED)) {
        mark_up_to(ck, &track, v->len);
        merge_marks(ck, &track, outer);
    }
    ck->n_words = track.words;
    return goes_on && peg__leave(ck);
}

/* ---- enum, const ----------------------------------------------------------------- */

static bool is_among(const peg_json *list, const peg_json *v)
{
    PEG_JSON_EACH_ITEM (list, item)
        if (peg_json_equal(item, v))
            return true;
    return false;
}

static bool is_in_set(const struct peg__values *set, const peg_json *v)
{
    uint32_t at = (uint32_t)peg_json_hash(v, set->seed) & set->mask;

    while (set->slots[at]) {
        if (peg_json_equal(set->slots[at], v))
            return true;
        at = (at + 1) & set->mask;
    }
    return false;
}

bool peg__check_enum(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const peg_json *wanted = peg__rule(ck, insn) + 1;
    bool fits;

    if (insn->op == OP_CONST)
        fits = peg_json_equal(wanted, v);
    else if (insn->op == OP_ENUM)
        fits = is_among(wanted, v);
    else
        fits = is_in_set(&ck->schema->values[insn->a], v);
    return fits || peg__fail_insn(ck, insn, v);
}
