/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PATH_PATH_H
#define PEG_JSON_PATH_PATH_H

/*
 * A compiled JSONPath: what parse.c makes and eval.c runs. Everything
 * lives in the path's arena and never changes after peg_json_path_new().
 *
 *   $.store.book[?@.price < 10, 0]..title
 *    ----- ---- ------------------ ------   segments, each with its selectors
 *                ^^^^^^^^^^^^^^^^           a filter holds an expression, whose
 *                                           operands are literals and queries
 */

#include "base/arena.h"
#include "pegboard/json.h"

struct peg__path_expr;

enum peg__path_selector_kind {
    PEG__PATH_NAME,
    PEG__PATH_WILDCARD,
    PEG__PATH_INDEX, /* start */
    PEG__PATH_SLICE,
    PEG__PATH_FILTER,
};

struct peg__path_selector {
    enum peg__path_selector_kind kind;
    bool has_start;
    bool has_end;
    int64_t start; /* within +-(2^53 - 1), as are end and step */
    int64_t end;
    int64_t step;
    peg_str name;
    const struct peg__path_expr *filter;
    struct peg__path_selector *next;
};

/*
 * At any moment of an evaluation each segment is entered at most once, because
 * a query inside of a filter has segments of its own. So the evaluator needs
 * no stack: `slot` is the segment's place in one array of cursors.
 */
struct peg__path_segment {
    bool is_descendant;
    unsigned slot;
    struct peg__path_selector *selectors; /* at least one */
    struct peg__path_segment *next;
    struct peg__path_segment *previous;
};

struct peg__path_query {
    bool is_absolute; /* starts at $, else at @ */
    bool is_singular; /* names and indexes only: at most one node */
    struct peg__path_segment *segments;
};

enum peg__path_comparison {
    PEG__PATH_EQ,
    PEG__PATH_NE,
    PEG__PATH_LT,
    PEG__PATH_LE,
    PEG__PATH_GT,
    PEG__PATH_GE,
};

/* A literal, or a singular query. */
struct peg__path_operand {
    bool is_literal;
    peg_json literal;
    struct peg__path_query query;
};

enum peg__path_expr_kind {
    PEG__PATH_OR,  /* of all `parts` */
    PEG__PATH_AND, /* of all `parts` */
    PEG__PATH_NOT, /* of the one in `parts` */
    PEG__PATH_EXISTS,
    PEG__PATH_COMPARE,
};

/* Nesting is bounded by PEG_LIMIT_PATH_NESTING: each level is a parenthesis or a filter. */
struct peg__path_expr {
    enum peg__path_expr_kind kind;
    enum peg__path_comparison comparison;
    struct peg__path_expr *parts;
    struct peg__path_expr *next; /* the next part of what this is a part of */
    struct peg__path_operand left;
    struct peg__path_operand right;
    struct peg__path_query query; /* EXISTS */
};

/* Owned, immutable. */
struct peg_json_path {
    struct peg__arena arena;
    struct peg__path_query query;
    unsigned n_segments; /* of all queries together */
};

#endif
