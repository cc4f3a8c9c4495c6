/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Follows all ways through an automaton at once, character by character. A place is entered once
 * for a character, whichever ways lead to it, so the work for one is at most the instructions.
 */

#include <string.h>

#include "base/text/str.h"
#include "schema/pattern/nfa.h"

/* Places whose next instruction takes a character. */
struct places {
    uint32_t n;
    uint16_t at[PEG__NFA_MAX];
};

struct run {
    const struct peg__nfa *nfa;
    const unsigned char *start;
    const unsigned char *at; /* between two characters */
    const unsigned char *end;
    uint64_t n_steps;
    uint32_t round; /* number of `at`, from 1 */
    bool is_matched;
    struct places *next;
    uint32_t entered[PEG__NFA_MAX]; /* the round in which a place was entered */
    uint16_t to_do[PEG__NFA_MAX];
};

/* ---- characters ------------------------------------------------------------------------ */

static uint32_t decode(const unsigned char *at, const unsigned char **ret_next)
{
    if (at[0] < 0x80) {
        *ret_next = at + 1;
        return at[0];
    }
    if (at[0] < 0xE0) {
        *ret_next = at + 2;
        return (at[0] & 0x1FU) << 6 | (at[1] & 0x3FU);
    }
    if (at[0] < 0xF0) {
        *ret_next = at + 3;
        return (at[0] & 0x0FU) << 12 | (at[1] & 0x3FU) << 6 | (at[2] & 0x3FU);
    }
    *ret_next = at + 4;
    return (at[0] & 0x07U) << 18 | (at[1] & 0x3FU) << 12 | (at[2] & 0x3FU) << 6 | (at[3] & 0x3FU);
}

static bool is_in_ranges(struct run *r, const struct peg__nfa_set *set, uint32_t c)
{
    const struct peg__nfa_range *range = r->nfa->ranges + set->first;

    r->n_steps += set->n / 4;
    for (uint32_t i = 0; i < set->n; i++)
        if (c >= range[i].lo && c <= range[i].hi)
            return true;
    return false;
}

static bool is_in(struct run *r, const struct peg__nfa_set *set, uint32_t c)
{
    const bool is_listed = c < 128 ? set->ascii[c >> 6] >> (c & 63) & 1 : is_in_ranges(r, set, c);

    return is_listed != set->is_negated;
}

static bool is_word(unsigned char c)
{
    return peg__is_alnum(c) || c == '_';
}

static bool is_boundary(const struct run *r)
{
    const bool before = r->at > r->start && is_word(r->at[-1]);
    const bool after = r->at < r->end && is_word(*r->at);

    return before != after;
}

/* ---- places ---------------------------------------------------------------------------- */

/* Puts a place on the list of those to look at, unless it was there in this round. */
static inline uint32_t enter(struct run *r, uint32_t n_to_do, uint32_t pc)
{
    if (r->entered[pc] == r->round)
        return n_to_do;
    r->entered[pc] = r->round;
    r->to_do[n_to_do] = (uint16_t)pc;
    return n_to_do + 1;
}

/* Follows everything that takes no character from a place on. */
static void follow(struct run *r, uint32_t pc)
{
    uint32_t n = enter(r, 0, pc);

    while (n > 0) {
        const struct peg__nfa_insn *insn;
        bool goes_on = true;

        pc = r->to_do[--n];
        insn = &r->nfa->insns[pc];
        r->n_steps++;
        switch ((enum peg__nfa_op)insn->op) {
        case PEG__NFA_SET:
            r->next->at[r->next->n++] = (uint16_t)pc;
            continue;
        case PEG__NFA_MATCH:
            r->is_matched = true;
            return;
        case PEG__NFA_SPLIT:
            n = enter(r, n, (uint32_t)((int32_t)pc + insn->to));
            break;
        case PEG__NFA_JUMP:
            n = enter(r, n, (uint32_t)((int32_t)pc + insn->to));
            continue;
        case PEG__NFA_START:
            goes_on = r->at == r->start;
            break;
        case PEG__NFA_FINISH:
            goes_on = r->at == r->end;
            break;
        case PEG__NFA_BOUNDARY:
            goes_on = is_boundary(r);
            break;
        case PEG__NFA_NO_BOUNDARY:
            goes_on = !is_boundary(r);
            break;
        }
        if (goes_on)
            n = enter(r, n, pc + 1);
    }
}

/* Takes the character at r->at with every place, and begins anew behind it. */
static void take_char(struct run *r, const struct places *now)
{
    const uint32_t c = decode(r->at, &r->at);

    r->round++;
    r->next->n = 0;
    for (uint32_t i = 0; i < now->n && !r->is_matched; i++) {
        const uint32_t pc = now->at[i];

        r->n_steps++;
        if (is_in(r, &r->nfa->sets[r->nfa->insns[pc].set], c))
            follow(r, pc + 1);
    }
    if (!r->nfa->from_start && !r->is_matched)
        follow(r, 0);
}

enum peg__match peg__nfa_match(const struct peg__nfa *nfa, peg_str subject, uint64_t *steps)
{
    const unsigned char *start = (const unsigned char *)(subject.len ? subject.ptr : "");
    struct places places[2];
    unsigned turn = 0;
    struct run r;
    bool is_over;

    r.nfa = nfa;
    r.start = r.at = start;
    r.end = start + subject.len;
    r.n_steps = 0;
    r.round = 1;
    r.is_matched = false;
    r.next = &places[0];
    r.next->n = 0;
    memset(r.entered, 0, nfa->n_insns * sizeof(r.entered[0]));
    follow(&r, 0);
    do {
        is_over = r.is_matched || r.at == r.end || (nfa->from_start && places[turn].n == 0);
        if (!is_over) {
            r.next = &places[!turn];
            take_char(&r, &places[turn]);
            turn = !turn;
        }
    } while (!is_over && r.n_steps <= *steps);
    if (!is_over) {
        *steps = 0;
        return PEG__MATCH_LIMIT;
    }
    *steps -= r.n_steps < *steps ? r.n_steps : *steps;
    return r.is_matched ? PEG__MATCH_YES : PEG__MATCH_NO;
}
