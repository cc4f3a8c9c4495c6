/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_REGEX_H
#define PEG_BASE_TEXT_REGEX_H

/* A thin face on PCRE2: only regex.c knows it. Patterns and subjects are UTF-8. */

#include "pegboard/common.h"

/* Shared immutable, any thread; machine code is made once it is matched often. */
struct peg__regex;
/* Scratch for matching: one thread at a time, any regex. */
struct peg__matcher;

enum peg__match {
    PEG__MATCH_NO,
    PEG__MATCH_YES,
    PEG__MATCH_LIMIT, /* the match limit was reached: undecided */
    PEG__MATCH_NOMEM,
};

/* `pattern` is in PCRE2's own syntax and valid UTF-8. PEG_EPARSE (E_PATTERN_SYNTAX) with
 * offset, PEG_ELIMIT (E_PATTERN_TOO_LARGE), PEG_ENOMEM. */
peg_status peg__regex_new(peg_str pattern, bool caseless, struct peg__regex **ret_regex,
                          peg_error *reterr);
struct peg__regex *peg__regex_free(struct peg__regex *regex);
size_t peg__regex_bytes(const struct peg__regex *regex);

/* match_limit is per start position and grows with the subject's length within. A search also ends,
 * as PEG__MATCH_LIMIT, after 20 ms and 60 ns a byte of CPU, above 16 KiB after 20 ms and 200 ns a
 * byte. It may come to the clock some tenths of a second late. */
struct peg__matcher *peg__matcher_new(uint32_t match_limit);
struct peg__matcher *peg__matcher_free(struct peg__matcher *matcher);

/* From now on matches take steps of some 5 ns from *steps, and end as PEG__MATCH_LIMIT when there
 * are none left: for threads that must not be held up. What counts is the same on every machine.
 * NULL, as at first: the limits above. */
void peg__matcher_set_steps(struct peg__matcher *matcher, uint64_t *steps);
uint64_t *peg__matcher_steps(const struct peg__matcher *matcher);

/* Does it match anywhere in the subject? */
enum peg__match peg__regex_match(const struct peg__regex *regex, struct peg__matcher *matcher,
                                 peg_str subject);

#endif
