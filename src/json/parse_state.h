/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_STATE_H
#define PEG_JSON_PARSE_STATE_H

/*
 * What the files of the parser share: parse.c starts and ends it, parse_values.h is the fast
 * path, compiled once for every machine and once for those with AVX2, parse_hard.c is what
 * rarely happens.
 *
 * The parser works on a private copy of the text that ends with a NUL and padding, so that no
 * length is checked while reading: a NUL is no part of any token, and whoever stops at one asks
 * whether it is the end. Functions take a place in the text and return the place behind what
 * they read, or NULL after a failure.
 */

#include "json/doc.h"

/* An open container. */
struct peg__frame {
    uint64_t seen[4]; /* objects: one bit of a hash for each key so far */
    uint32_t index;   /* of the container's value */
    uint32_t n;       /* items or members begun */
    char closer;      /* '}' or ']'; NUL for the frame below all containers */
};

struct peg__parser {
    peg_json_doc *doc;
    struct peg__frame *frames; /* the first is below all containers */
    struct peg__frame *last;   /* the deepest that is allowed */
    char *end;                 /* of the text: its NUL */
    bool has_duplicates;
    unsigned max_digits;
    unsigned max_exponent;
    peg_json_duplicates duplicates;
    peg_status status;
    const char *code;
    const char *message;
    const char *failed_at;
};

/* ---- the fast path ------------------------------------------------------------------ */

typedef char *peg__parse_values_fn(struct peg__parser *p, char *at);

peg__parse_values_fn peg__parse_values;
#ifdef PEG_HAVE_AVX2
peg__parse_values_fn peg__parse_values_avx2;
#endif

/* ---- failures: all return NULL -------------------------------------------------------- */

char *peg__parse_fail(struct peg__parser *p, peg_status status, const char *code, const char *at,
                      const char *message);
char *peg__parse_fail_syntax(struct peg__parser *p, const char *at, const char *message);
char *peg__parse_fail_depth(struct peg__parser *p, const char *at);
/* Neither a comma nor the end of the container. */
char *peg__parse_fail_after(struct peg__parser *p, const struct peg__frame *top, const char *at);

/* ---- what rarely happens ---------------------------------------------------------------- */

/* Room for more values: the place of `next` after growing, or NULL. */
peg_json *peg__parse_grow(struct peg__parser *p, peg_json *next, peg_json **ret_limit);
char *peg__parse_space(char *at);
/* A string with escapes, bytes beyond ASCII or a mistake; plain from `start` up to `stop`. */
char *peg__parse_hard_string(struct peg__parser *p, char *start, char *stop, peg_json *value);
/* A number that does not fit mantissa and exponent, or what is no number. */
char *peg__parse_hard_number(struct peg__parser *p, char *start, peg_json *value);
/* The key's bit was set before: is there a key like it? */
char *peg__parse_check_key(struct peg__parser *p, const struct peg__frame *top, const peg_json *key,
                           char *at);
/* The same for a complete object with many members. */
char *peg__parse_check_keys(struct peg__parser *p, const peg_json *object, char *at);

#endif
