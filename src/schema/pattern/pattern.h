/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_PATTERN_PATTERN_H
#define PEG_SCHEMA_PATTERN_PATTERN_H

/*
 * ECMA-262 regular expressions (with the u flag), matched anywhere in the subject. Common
 * simple ones (^literal, ^[class]{n,m}$, .*) are matched by hand, the others by PCRE2, and so are
 * all with flags.
 */

#include "base/buf.h"
#include "base/text/regex.h"

/* Owned; immutable and usable from any thread. */
struct peg__pattern;

/* The flags of ECMA-262 beside u, which is always on. */
enum {
    PEG__PATTERN_CASELESS = 1,  /* i */
    PEG__PATTERN_MULTILINE = 2, /* m: ^ and $ also match at line ends, of which CR is one */
    PEG__PATTERN_DOTALL = 4,    /* s: the dot matches line ends too */
};

/* PEG_EPARSE (E_PATTERN_SYNTAX) with offset, PEG_ELIMIT (E_PATTERN_TOO_LARGE), PEG_ENOMEM. */
peg_status peg__pattern_new(peg_str ecma, size_t max_bytes, struct peg__pattern **ret_pattern,
                            peg_error *reterr);
peg_status peg__pattern_new_with_flags(peg_str ecma, unsigned flags, size_t max_bytes,
                                       struct peg__pattern **ret_pattern, peg_error *reterr);
struct peg__pattern *peg__pattern_free(struct peg__pattern *pattern);
size_t peg__pattern_bytes(const struct peg__pattern *pattern);
enum peg__match peg__pattern_match(const struct peg__pattern *pattern, struct peg__matcher *matcher,
                                   peg_str subject);

/* Writes the PCRE2 form of an ECMA-262 pattern. Never longer than 64 times the pattern + 1 KiB. */
peg_status peg__pattern_translate(peg_str ecma, struct peg__buf *out, peg_error *reterr);

/* Is it an ECMA-262 pattern (for format "regex")? */
bool peg__pattern_is_valid(peg_str ecma);

#endif
