/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_JSON5_TOKEN_H
#define PEG_JSON_JSON5_TOKEN_H

/* What the two files of JSON5 share: the text being rewritten, and its tokens. */

#include "base/buf.h"
#include "base/limits.h"
#include "base/text/regex.h"
#include "pegboard/json.h"

enum peg__json5_expected {
    PEG__JSON5_VALUE,
    PEG__JSON5_ITEM_OR_END,
    PEG__JSON5_NAME_OR_END,
    PEG__JSON5_END_OR_COMMA,
    PEG__JSON5_NOTHING, /* the text is read */
};

/* Where rewriting stands. The first failure of `out` sticks and is told at the end. */
struct peg__json5 {
    peg_str text; /* valid UTF-8 */
    size_t at;
    size_t token;        /* where the token starts that is being read */
    struct peg__buf out; /* JSON */
    bool owes_comma;     /* written before the next item, so not before an end */
    enum peg__json5_expected expected;
    unsigned max_depth;
    unsigned depth;
    uint8_t is_object[PEG_LIMIT_JSON_DEPTH_MAX / 8]; /* a bit a level */
    struct peg__regex *name; /* what may be a name; made when the first beyond ASCII comes */
    struct peg__matcher *matcher;
    peg_error *reterr;
};

enum { PEG__JSON5_END = -1 };

/* The byte i places from here, or PEG__JSON5_END. */
static inline int peg__json5_peek(const struct peg__json5 *r, size_t i)
{
    return i < r->text.len - r->at ? (unsigned char)r->text.ptr[r->at + i] : PEG__JSON5_END;
}

/* PEG_EPARSE (E_JSON_SYNTAX) at a place of the text. */
peg_status peg__json5_fail(struct peg__json5 *r, size_t at, const char *what);

/* Spaces, line ends and comments. */
peg_status peg__json5_skip_space(struct peg__json5 *r);

/* Each takes the token that starts here. */
peg_status peg__json5_string(struct peg__json5 *r);
peg_status peg__json5_name(struct peg__json5 *r); /* one without quotes */
peg_status peg__json5_scalar(struct peg__json5 *r);

#endif
