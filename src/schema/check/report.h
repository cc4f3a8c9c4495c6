/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_CHECK_REPORT_H
#define PEG_SCHEMA_CHECK_REPORT_H

/* What is wrong with a value, in words; called by the checker when a rule fails. */

#include "base/buf.h"
#include "schema/check/check.h"

/* Writes a failure down. What runs out of memory is told at the end. */
void peg__report_add(struct peg_checker *ck, const peg_json *rule, const peg_json *value,
                     const peg_json *detail);

/* Adds to ck->score how much this failure tells against the branch. */
void peg__report_score(struct peg_checker *ck, const peg_json *rule, const peg_json *value);

/* In report mode: goes into the branch that fits best and reports what it lacks. */
bool peg__report_best_branch(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *value);

/* Failures so far, kept or not; grows with every one, in score mode too. */
size_t peg__report_count(const struct peg_checker *ck);

/* ---- the words: sentence.c --------------------------------------------------------- */

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
