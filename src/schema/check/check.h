/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_CHECK_CHECK_H
#define PEG_SCHEMA_CHECK_CHECK_H

/*
 * Executing a compiled schema on a value.
 *
 * Every function returns whether to go on. In verdict mode the first failure returns false and
 * everything unwinds. In report mode fail() writes the failure down and returns true, so that
 * the same code goes on and finds the next one; false then only means that a limit was reached.
 * Branches of anyOf, oneOf, not, if and contains are always tried silently, in verdict mode.
 */

#include "base/buf.h"
#include "schema/compile/program.h"
#include "schema/pattern/pattern.h"

enum peg__mode {
    MODE_VERDICT, /* stop at the first failure */
    MODE_REPORT,  /* write every failure down */
    MODE_SCORE,   /* only add up how badly a branch fits */
};

/* The members or items of one value that were evaluated so far: a set of bits. */
struct peg__track {
    const peg_json *value;
    size_t words; /* offset into the checker's scratch */
    size_t n_words;
};

/* Owned; one thread at a time. */
struct peg_checker {
    const struct peg_schema *schema; /* while a check runs */
    uint64_t steps_left;
    uint64_t pattern_steps_left; /* if the options count them */
    unsigned depth_left;
    enum peg__mode mode;
    const char *halted; /* the limit that was reached, or NULL */
    struct peg__track *track;
    struct peg__matcher *matcher; /* made when first needed */
    /* scratch, a stack of words */
    uint64_t *words;
    size_t n_words;
    size_t words_capacity;
    /* report */
    struct peg_report *report;
    const peg_json *root;
    uint64_t score;
    const peg_json *branch; /* the value that branches are being scored for */
    peg_json_doc *content;  /* for contentMediaType; made when first needed */
    peg_checker_options options;
    uint64_t seed; /* of hashes: strangers cannot make them collide; 0 until first needed */
};

/* A checker in memory of one's own: nothing is allocated until a check needs it. options may be
 * NULL. */
void peg__checker_init(struct peg_checker *ck, const peg_checker_options *options);
/* Frees what checks have allocated. */
void peg__checker_done(struct peg_checker *ck);

/* Has no check allocated anything yet? */
static inline bool peg__checker_is_bare(const struct peg_checker *ck)
{
    return !ck->matcher && !ck->words && !ck->content;
}

/* Halts the check if there is neither a match nor none. */
enum peg__match peg__checker_match(struct peg_checker *ck, const struct peg__pattern *pattern,
                                   peg_str subject);
uint64_t peg__checker_seed(struct peg_checker *ck);

/* One whole check. In report mode ck->report is set. */
peg_verdict peg__check(const peg_schema *schema, struct peg_checker *ck, const peg_json *value,
                       enum peg__mode mode);

/* Runs the instructions from pc on. */
bool peg__run(struct peg_checker *ck, uint32_t pc, const peg_json *value);

static inline bool peg__apply(struct peg_checker *ck, uint32_t node, const peg_json *value)
{
    const uint32_t pc = ck->schema->nodes[node].entry[value->kind];

    return pc == 0 || peg__run(ck, pc, value);
}

/* Would the node accept? Nothing is reported. After false, check ck->halted. */
static inline bool peg__try(struct peg_checker *ck, uint32_t node, const peg_json *value)
{
    const uint32_t pc = ck->schema->nodes[node].entry[value->kind];
    const enum peg__mode mode = ck->mode;
    const unsigned depth_left = ck->depth_left;
    bool fits;

    if (pc == 0)
        return true;
    ck->mode = MODE_VERDICT;
    fits = peg__run(ck, pc, value);
    ck->mode = mode;
    ck->depth_left = depth_left; /* a failure does not leave */
    return fits;
}

/* A failure of a rule: returns whether to go on. `detail` is what the rule is about: the key
 * that is too much, the name that is missing, an item; may be NULL. */
bool peg__fail_rule(struct peg_checker *ck, const peg_json *rule, const peg_json *value,
                    const peg_json *detail) __attribute__((cold, noinline));

/* A limit was reached: always false. */
bool peg__halt(struct peg_checker *ck, const char *limit) __attribute__((cold, noinline));

static inline const peg_json *peg__rule(const struct peg_checker *ck, const struct peg__insn *insn)
{
    return ck->schema->rules[insn - ck->schema->code];
}

static inline bool peg__fail_insn(struct peg_checker *ck, const struct peg__insn *insn,
                                  const peg_json *value)
{
    return peg__fail_rule(ck, peg__rule(ck, insn), value, NULL);
}

/*
 * Work that grows with the value takes steps for it: else a schema that applies itself a million
 * times would be within max_steps on a value of a million items. Four items or members, or a
 * thousand bytes of a string, are one step more.
 */
static inline uint64_t peg__size_in_steps(const peg_json *v)
{
    return v->len >> (v->kind == PEG_JSON_STRING ? 10 : 2);
}

static inline bool peg__charge(struct peg_checker *ck, uint64_t n_steps)
{
    if (__builtin_expect(ck->steps_left < n_steps, 0))
        return peg__halt(ck, "max_steps");
    ck->steps_left -= n_steps;
    return true;
}

/* Around everything that applies a schema: depth and steps are counted here. A function that
 * returns false need not leave. */
static inline bool peg__enter(struct peg_checker *ck, const peg_json *v)
{
    if (__builtin_expect(ck->depth_left == 0, 0))
        return peg__halt(ck, "max_depth");
    if (!peg__charge(ck, 1 + peg__size_in_steps(v)))
        return false;
    ck->depth_left--;
    return true;
}

static inline bool peg__leave(struct peg_checker *ck)
{
    ck->depth_left++;
    return true;
}

/* n words of scratch, cleared; their offset, or SIZE_MAX after a halt. Give them back in
 * reverse order by setting n_words to the offset. */
size_t peg__scratch(struct peg_checker *ck, size_t n);

/* ---- instructions, by the kind of value that they check ------------------------- */

typedef bool peg__check_insn(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *v);

peg__check_insn peg__check_call;
peg__check_insn peg__check_switch;
peg__check_insn peg__check_any_of;
peg__check_insn peg__check_one_of;
peg__check_insn peg__check_not;
peg__check_insn peg__check_if;
peg__check_insn peg__check_track;
peg__check_insn peg__check_enum;

peg__check_insn peg__check_content;

peg__check_insn peg__check_items;
peg__check_insn peg__check_items_of_kinds;
peg__check_insn peg__check_items_records;
peg__check_insn peg__check_tuple;
peg__check_insn peg__check_contains;
peg__check_insn peg__check_unique;

peg__check_insn peg__check_members;
peg__check_insn peg__check_record;
peg__check_insn peg__check_map_of_kinds;
peg__check_insn peg__check_few_members;
peg__check_insn peg__check_required;
peg__check_insn peg__check_member_names;
peg__check_insn peg__check_dependent_required;
peg__check_insn peg__check_dependent_schema;
peg__check_insn peg__check_dependent_value;

/* ---- what was evaluated ----------------------------------------------------------- */

static inline void peg__mark(struct peg_checker *ck, const struct peg__insn *insn, size_t i)
{
    if (insn->flags & FLAG_TRACKED)
        ck->words[ck->track->words + i / 64] |= 1ULL << (i % 64);
}

/* Every member or item of the value that is tracked. */
void peg__mark_all(struct peg_checker *ck);

/* ---- reports: report.c and sentence.c -------------------------------------- */

/* Adds a failure. Running out of memory is reported at the end. */
void peg__report_add(struct peg_checker *ck, const peg_json *rule, const peg_json *value,
                     const peg_json *detail);

/* Adds the weight of this failure to the score of the branch. */
void peg__report_score(struct peg_checker *ck, const peg_json *rule, const peg_json *value);

/* In report mode: goes into the branch that fits best and reports what it lacks. */
bool peg__report_best_branch(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *value);

/* Failures so far, kept or not; grows with every one, in score mode too. */
size_t peg__report_count(const struct peg_checker *ck);

/* What a sentence is made from. */
struct peg__finding {
    const char *keyword;
    const peg_json *rule;   /* the keyword's value; a false schema itself */
    const peg_json *value;  /* that fails */
    const peg_json *detail; /* or NULL; see peg__fail_rule() */
    const struct peg_schema *schema;
    bool is_name; /* the value is a member's name */
};

/* Text that came from outside, its control characters as \u00XX: a failure is one line. */
void peg__write_line(peg_str text, struct peg__buf *out);
void peg__write_expected(const struct peg__finding *finding, struct peg__buf *out);
void peg__write_got(const struct peg__finding *finding, struct peg__buf *out);
void peg__write_sentence(const struct peg__finding *finding, struct peg__buf *out);

#endif
