/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_PATTERN_NFA_H
#define PEG_SCHEMA_PATTERN_NFA_H

/*
 * An automaton for patterns: its time grows with the length of the subject and the size of the
 * pattern, and with nothing else. Slower than PCRE2 where that is quick, so it is for subjects that
 * are long, for patterns that backtrack, and for who must not be held up.
 */

#include "schema/pattern/internal.h"

/* Instructions; some of a pattern that would have more are matched by PCRE2 alone. */
enum { PEG__NFA_MAX = 1024 };

enum peg__nfa_op {
    PEG__NFA_SET,   /* one character of a set */
    PEG__NFA_SPLIT, /* the next instruction, and the one `to` further */
    PEG__NFA_JUMP,
    PEG__NFA_START,
    PEG__NFA_FINISH,
    PEG__NFA_BOUNDARY,
    PEG__NFA_NO_BOUNDARY,
    PEG__NFA_MATCH,
};

struct peg__nfa_insn {
    uint16_t op;
    uint16_t set;
    int16_t to; /* relative */
};

struct peg__nfa_range {
    uint32_t lo;
    uint32_t hi;
};

struct peg__nfa_set {
    uint64_t ascii[2];
    uint16_t first; /* of its ranges beyond ASCII */
    uint16_t n;
    bool is_negated;
};

/* Owned; immutable. One block. */
struct peg__nfa {
    const struct peg__nfa_set *sets;
    const struct peg__nfa_range *ranges;
    const struct peg__nfa_insn *insns;
    uint32_t n_insns;
    size_t bytes;
    bool from_start; /* matches only begin there */
};

/* Of a valid pattern. PEG_EUNSUPPORTED: it has lookaround, a backreference, a property or more than
 * PEG__NFA_MAX instructions. PEG_ENOMEM. */
peg_status peg__nfa_new(peg_str ecma, struct peg__nfa **ret_nfa);
struct peg__nfa *peg__nfa_free(struct peg__nfa *nfa);
size_t peg__nfa_bytes(const struct peg__nfa *nfa);

/* Takes a step for each instruction at each character from *steps; PEG__MATCH_LIMIT when there are
 * none left. A step takes some 3 ns. Allocates nothing. */
enum peg__match peg__nfa_match(const struct peg__nfa *nfa, peg_str subject, uint64_t *steps);

#endif
