/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_PATTERN_INTERNAL_H
#define PEG_SCHEMA_PATTERN_INTERNAL_H

/*
 * What the files of pattern/ share. The reader turns an ECMA-262 pattern into tokens and is the
 * only place that knows its grammar; the translator and the planner of hand matchers only see
 * tokens, so the two ways of matching can't disagree about what a pattern says.
 *
 *   read.c       text -> tokens: groups, quantifiers, classes
 *   escape.c     ... and what follows a backslash, with the names inside \p{...}
 *   translate.c  tokens -> PCRE2
 *   plan.c       tokens -> a plan, if the pattern is simple enough
 *   simple.c     matches a plan
 *   nfa.c        tokens -> an automaton, if nothing looks around or back; matches it
 *   pattern.c    chooses
 */

#include "base/error.h"
#include "base/limits.h"
#include "schema/pattern/pattern.h"

/* ---- tokens ---------------------------------------------------------------- */

enum peg__token_kind {
    PEG__TOKEN_END,
    PEG__TOKEN_CHAR,       /* lo; may be a lone surrogate, which matches nothing in UTF-8 */
    PEG__TOKEN_ANY,        /* . */
    PEG__TOKEN_SET,        /* \d \D \w \W \s \S: letter */
    PEG__TOKEN_PROPERTY,   /* \p{...}: name is the PCRE2 form, negated for \P */
    PEG__TOKEN_START,      /* ^ */
    PEG__TOKEN_FINISH,     /* $ */
    PEG__TOKEN_BOUNDARY,   /* \b, or \B if negated */
    PEG__TOKEN_CLASS_OPEN, /* [ or [^ : then RANGE, SET and PROPERTY tokens up to CLASS_CLOSE */
    PEG__TOKEN_RANGE,      /* inside a class: lo to hi, often the same */
    PEG__TOKEN_CLASS_CLOSE,
    PEG__TOKEN_GROUP_OPEN, /* group */
    PEG__TOKEN_GROUP_CLOSE,
    PEG__TOKEN_OR,      /* | */
    PEG__TOKEN_BACKREF, /* number; 0 if the group can't have taken part yet: matches empty */
    PEG__TOKEN_REPEAT,  /* min, max, lazy: of the token or group before it */
};

enum peg__group {
    PEG__GROUP_CAPTURE,
    PEG__GROUP_PLAIN,
    PEG__GROUP_AHEAD,
    PEG__GROUP_NOT_AHEAD,
    PEG__GROUP_BEHIND,
    PEG__GROUP_NOT_BEHIND,
};

#define PEG__REPEAT_FOREVER UINT32_MAX

struct peg__token {
    enum peg__token_kind kind;
    enum peg__group group;
    bool negated;
    bool lazy;
    bool in_lookbehind; /* BACKREF */
    char letter;
    uint32_t lo;
    uint32_t hi;
    uint32_t min;
    uint32_t max;
    uint32_t number;
    size_t at;        /* byte offset in the pattern */
    const char *name; /* borrowed from static tables or, with name_len, from the pattern */
    size_t name_len;
    const char *name_prefix; /* "sc:", "scx:" or "" */
};

struct peg__open_group {
    enum peg__group group;
    uint32_t number; /* of a capture, else 0 */
};

/* A value; lives on the reader's stack. */
struct peg__pattern_reader {
    peg_str text;
    size_t at;
    peg_error *reterr;
    uint32_t n_captures; /* opened so far */
    uint32_t n_total;    /* captures in the whole pattern; counted at the first backreference */
    unsigned depth;
    bool has_total;
    bool in_class;
    bool repeatable;      /* a quantifier may follow */
    unsigned plain_items; /* class items to come that can't start a range: see read_class_item */
    size_t lookbehind_at; /* of the first one */
    bool has_lookbehind;
    struct peg__open_group open[PEG_LIMIT_PATTERN_NESTING];
};

/* reterr may be NULL. */
void peg__pattern_reader_init(struct peg__pattern_reader *reader, peg_str text, peg_error *reterr);
/* PEG_EPARSE (E_PATTERN_SYNTAX) with offset, PEG_ELIMIT (E_PATTERN_TOO_LARGE). */
peg_status peg__pattern_next(struct peg__pattern_reader *reader, struct peg__token *ret_token);
/* escape.c: the token at a backslash. */
peg_status peg__pattern_escape(struct peg__pattern_reader *reader, struct peg__token *token);
/* The character at *at, which it moves; false if it is not UTF-8. Requires *at < text.len. */
bool peg__pattern_utf8(peg_str text, size_t *at, uint32_t *ret_char);
/* Reads `name>` from *at; false if it is no group name. */
bool peg__pattern_skip_name(peg_str text, size_t *at);
/* The number of the first capture with the name that starts at name_at, or 0. */
uint32_t peg__pattern_find_name(peg_str text, size_t name_at);
/* Marks reterr (already filled with E_PATTERN_SYNTAX) with the place; returns PEG_EPARSE. */
peg_status peg__pattern_refuse_at(const struct peg__pattern_reader *reader, size_t at);

#define PEG__PATTERN_REFUSE(reader, at, ...)                                                       \
    (peg__fail((reader)->reterr, PEG_EPARSE, "E_PATTERN_SYNTAX", __VA_ARGS__),                     \
     peg__pattern_refuse_at(reader, at))

/* Can a backreference occur? May say yes where there is none. */
bool peg__pattern_may_refer_back(peg_str text);

/* peg__pattern_translate() with flags; what it writes for CASELESS is for a caseless regex. */
peg_status peg__pattern_translate_with_flags(peg_str ecma, unsigned flags, struct peg__buf *out,
                                             peg_error *reterr);

/* ---- plans: patterns matched by hand ---------------------------------------- */

/* Which code points above ASCII belong to a set. */
enum peg__beyond {
    PEG__BEYOND_NONE,
    PEG__BEYOND_ALL,
    PEG__BEYOND_SPACES, /* what \s has there */
    PEG__BEYOND_NOT_SPACES,
    PEG__BEYOND_NOT_LINE_ENDS, /* all but U+2028 and U+2029, for the dot */
};

struct peg__charset {
    uint64_t ascii[4]; /* a bit for each byte; those above ASCII are 0 */
    enum peg__beyond beyond;
};

enum peg__step_kind {
    PEG__STEP_SET,     /* min to max characters of set */
    PEG__STEP_LITERAL, /* the bytes literals[at .. at+len) */
    PEG__STEP_OPEN,    /* min to max times the steps up to CLOSE, which is at `other` */
    PEG__STEP_CLOSE,   /* back to the OPEN at `other` */
};

struct peg__step {
    enum peg__step_kind kind;
    uint32_t min;
    uint32_t max;
    uint32_t at;
    uint32_t len;
    uint32_t other;
    struct peg__charset set; /* LITERAL: of its first character */
};

enum peg__plan_kind {
    PEG__PLAN_ALWAYS,   /* every subject matches */
    PEG__PLAN_LITERALS, /* one of the LITERAL steps: anywhere, at the start, at the end, exactly */
    PEG__PLAN_RUN,      /* somewhere min characters of steps[0].set in a row */
    PEG__PLAN_STEPS,    /* from the start the steps, in order, each taking all it can */
};

enum {
    PEG__PLAN_STEPS_MAX = 32,
    PEG__PLAN_LITERAL_BYTES_MAX = 256,
};

/* A value, without pointers. */
struct peg__plan {
    enum peg__plan_kind kind;
    bool from_start;
    bool to_end;
    uint32_t n_steps;
    uint32_t n_literal_bytes;
    struct peg__step steps[PEG__PLAN_STEPS_MAX];
    char literals[PEG__PLAN_LITERAL_BYTES_MAX];
};

/* Plans the pattern, if hand matching is exactly what ECMA-262 says; else *ret_simple is false
 * and *ret_plan undefined. Errors are those of the reader. */
peg_status peg__pattern_plan(peg_str ecma, struct peg__plan *ret_plan, bool *ret_simple,
                             peg_error *reterr);

/* What simple.c matches: a plan in just the memory it needs. Owned; immutable. */
struct peg__simple;

struct peg__simple *peg__simple_new(const struct peg__plan *plan);
struct peg__simple *peg__simple_free(struct peg__simple *simple);
size_t peg__simple_bytes(const struct peg__simple *simple);
bool peg__simple_match(const struct peg__simple *simple, peg_str subject);

/* ---- characters --------------------------------------------------------------- */

static inline bool peg__is_surrogate(uint32_t c)
{
    return c >= 0xD800 && c <= 0xDFFF;
}

static inline bool peg__in_ascii(const struct peg__charset *set, unsigned char c)
{
    return set->ascii[c >> 6] >> (c & 63) & 1;
}

/* Does \s match this character above ASCII? */
static inline bool peg__is_wide_space(uint32_t c)
{
    return c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

/* ---- the automaton --------------------------------------------------------- */

/*
 * An automaton for patterns: its time grows with the length of the subject and the size of the
 * pattern, and with nothing else. Slower than PCRE2 where that is quick, so it is for subjects that
 * are long and for patterns that backtrack.
 */

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
