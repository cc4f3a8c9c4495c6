/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_SQL_H
#define PEG_TOOLS_SQL_H

/*
 * SQL as words, split as SQLite splits it: enough to know the names that a query gives to things of
 * its own, whether it is sorted, and whether anything comes after it. What a query may read is not
 * decided here (tools/sqlite_guard.c).
 */

#include "pegboard/common.h"

enum peg__sql_kind {
    PEG__SQL_WORD,   /* a keyword or a plain name */
    PEG__SQL_QUOTED, /* '...', "...", `...` or [...]: SQLite takes each of them for a name */
    PEG__SQL_OTHER,  /* a number, a parameter, a character */
};

struct peg__sql_token {
    enum peg__sql_kind kind;
    peg_str text;   /* with its quotes; borrowed from the SQL */
    unsigned depth; /* of parentheses around it; of a parenthesis: outside it */
};

/* The next token, without space and comments; false at the end. *depth starts with 0. */
bool peg__sql_next(peg_str *rest, unsigned *depth, struct peg__sql_token *ret_token);

/* Is this token that name? Quotes removed, case of ASCII letters ignored, as SQLite does. */
bool peg__sql_is_name(const struct peg__sql_token *token, peg_str name);
bool peg__sql_names_equal(peg_str a, peg_str b);

/* A query that was read; owned. */
struct peg__sql {
    struct peg__sql_token *tokens;
    size_t n_tokens;
    size_t capacity;
    const struct peg__sql_token **names; /* that it gives: of its WITH and WINDOW clauses */
    size_t n_names;
    size_t names_capacity;
    bool is_ordered; /* ORDER BY outside all parentheses */
};

/* Out of memory only. The text is borrowed. */
peg_status peg__sql_read(peg_str text, struct peg__sql *ret_sql) PEG_MUST_USE;
void peg__sql_free(struct peg__sql *sql);
/* Does it give this name to something of its own? */
bool peg__sql_gives_name(const struct peg__sql *sql, peg_str name);
/* How many tokens it has once each CTE is written out where it is used; any number above max if it
 * is more than that, uses CTEs in a circle or has more than PEG_LIMIT_SQL_NAMES. Out of memory. */
peg_status peg__sql_size(const struct peg__sql *sql, size_t max, size_t *ret_size) PEG_MUST_USE;
/* Nothing but space, comments and semicolons? */
bool peg__sql_is_blank(peg_str text);

#endif
