/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_INTERNAL_H
#define PEG_JSON_PARSE_INTERNAL_H

/*
 * What the files of the parser share: parse.c starts and ends it; values.h is the fast
 * path, with the index of index.h and block.h, compiled once for every machine and
 * again for those with AVX2 and with AVX-512; hard.c and number.c are what happens
 * more rarely.
 *
 * The parser works on a private copy of the text that ends with a NUL and padding, so that no
 * length is checked while reading: a NUL is no part of any token, and a reader that stops at one
 * checks whether it is the end. Functions take a place in the text and return the place behind what
 * they read, or NULL after a failure.
 */

#include "json/internal.h"

/* Readable bytes around the text: words are read that end in it, blocks that start in it. Those
 * behind it are 0. */
enum { PEG__TEXT_LEAD = 16, PEG__TEXT_PADDING = 80 };

/* An open container. */
struct peg__frame {
    uint64_t seen[4]; /* objects: a filter of the keys so far */
    uint32_t index;   /* of the container's value */
    uint32_t n;       /* items or members begun */
    char closer;      /* '}' or ']'; NUL for the frame below all containers */
};

struct peg__parser {
    peg_json_doc *doc;
    struct peg__frame *frames; /* the first is below all containers */
    struct peg__frame *last;   /* the deepest that is allowed */
    char *text;
    char *end; /* of the text: its NUL */
    bool has_duplicates;
    unsigned max_digits;
    unsigned max_exponent;
    bool has_usual_limits; /* no number of up to 18 digits reaches one */
    peg_json_duplicates duplicates;
    peg_status status;
    const char *code;
    const char *message;
    const char *failed_at;
    const peg_json *twice;    /* the name that an object has already, if that is the failure */
    const peg_json *twice_in; /* that object */
};

/* ---- the fast path ------------------------------------------------------------------ */

/* Reads the value at `at` and all it contains. The place behind it and behind space, or NULL. */
typedef char *peg__parse_values_fn(struct peg__parser *p, char *at);

peg__parse_values_fn peg__parse_values;
#ifdef PEG_HAVE_AVX2
peg__parse_values_fn peg__parse_values_avx2;
peg__parse_values_fn peg__parse_values_avx512;
#endif

/* The ways that this machine has, the best one last; for tests. */
enum { PEG__PARSE_WAYS = 3 };
size_t peg__parse_ways(peg__parse_values_fn *ret_ways[PEG__PARSE_WAYS]);

/* peg_json_reparse by one of them. */
peg_status peg__json_reparse_by(peg__parse_values_fn *way, peg_json_doc *doc, peg_str text,
                                const peg_json_options *options, peg_error *reterr);

/* ---- failures: all return NULL; the first one is kept
 * -------------------------------------------------------- */

char *peg__parse_fail(struct peg__parser *p, peg_status status, const char *code, const char *at,
                      const char *message);
char *peg__parse_fail_syntax(struct peg__parser *p, const char *at, const char *message);
char *peg__parse_fail_depth(struct peg__parser *p, const char *at);
/* Neither a comma nor the end of the container. */
char *peg__parse_fail_after(struct peg__parser *p, const struct peg__frame *top, const char *at);

/* The pointer to the member that comes twice, cut to its first bytes. Requires p->twice. */
void peg__parse_where(const struct peg__parser *p, char *ret_where, size_t size);

/* ---- what rarely happens ---------------------------------------------------------------- */

/* Room for so many more values, those of the next window of what is left of the text: the place of
 * `next`, which may have changed, or NULL. */
peg_json *peg__parse_reserve(struct peg__parser *p, peg_json *next, size_t n_more,
                             ptrdiff_t n_left);
char *peg__parse_space(char *at);
/* Where the name of a member starts, or its colon is, behind space. */
char *peg__parse_find_name(struct peg__parser *p, char *at);
char *peg__parse_find_colon(struct peg__parser *p, char *at);
/* A string whose end is not known, from behind its quote. */
char *peg__parse_hard_string(struct peg__parser *p, char *start, peg_json *value);
/* The same where its value is known up to `at`, which is no plain byte: it stands from `start` up
 * to `end`. */
char *peg__parse_rest_of_string(struct peg__parser *p, char *start, char *end, char *at,
                                peg_json *value);
/* A number that is longer than usual, and whatever else stands where a value should. */
char *peg__parse_number(struct peg__parser *p, char *start, peg_json *value);
/* A number that does not fit mantissa and exponent, or what is no number. */
char *peg__parse_hard_number(struct peg__parser *p, char *start, peg_json *value);
/* The key's bit was set before: is there a key like it? */
char *peg__parse_check_key(struct peg__parser *p, const struct peg__frame *top, const peg_json *key,
                           char *at);
/* The same for a complete object with many members. */
char *peg__parse_check_keys(struct peg__parser *p, const peg_json *object, char *at);

/* ---- equal names ------------------------------------------------------------- */

/* Members of one object that have the same name. */

/* Small objects are looked through member by member; above this a hash table is cheaper. */
enum { PEG_JSON_FEW_MEMBERS = 32 };

/* Is a key the same as an earlier one of the object? Only for few members. */
bool peg__json_has_key_before(const peg_json *object, const peg_json *key);

/* The second of the first two equal keys, or NULL, for any number of members. False when out
 * of memory. */
bool peg__json_find_duplicate(const peg_json *object, const peg_json **ret_key);

/* Takes every duplicate out of the document. False when out of memory, the document is as before.
 */
bool peg__json_drop_duplicates(peg_json_doc *doc, peg_json_duplicates policy);

/* ---- strings that are not plain ------------------------------------------------ */

/* Strings with escapes or bytes beyond ASCII: the slower path of the parser. */

struct peg__unescaped {
    char *at;            /* what was not read yet; in the end the closing quote, or the problem */
    char *end;           /* behind the last byte of the string's value so far */
    const char *problem; /* out, on failure */
    bool is_utf8;        /* out, on failure: bytes that are no UTF-8 */
};

/* Unescapes in place the rest of a string, from text->at on: that is where it stops to be plain, or
 * where the caller left off. The text around it is padded and ends with a NUL. */
bool peg__json_unescape(struct peg__unescaped *text);

#endif
