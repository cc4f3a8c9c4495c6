/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_ROW_H
#define PEG_TURN_STORE_ROW_H

/*
 * A turn as it is in the database: a row, and the digests of its blocks in pages of many, so that
 * one block more changes one page.
 */

#include "base/buf.h"
#include "base/limits.h"
#include "turn/store/db.h"
#include "turn/store/store.h"

enum {
    /* Bytes of a page: 100 digests fit a page of the database. */
    PEG__ROW_PAGE = 100 * PEG_SHA256_BYTES,
    PEG__ROW_MAX = PEG_LIMIT_TURN_BLOCKS * PEG_SHA256_BYTES,
};

struct peg__row {
    int64_t no;       /* 0: there is none */
    bool has_data;    /* or data is not set */
    peg__digest data; /* of its bag */
    struct peg__buf
        digests; /* of its blocks, one after the other; starts as PEG__BUF(PEG__ROW_MAX) */
};

/* What else a row tells, for loading. */
struct peg__row_reported {
    peg_phase phase;
    char *head; /* freed with peg__free() */
    size_t head_len;
};

/* row->no is 0 if there is no such turn. told may be NULL. The digests are the caller's to free in
 * any case. */
peg_status peg__row_find(struct peg__db *db, peg_str id, struct peg__row *row,
                         struct peg__row_reported *told, peg_error *reterr) PEG_MUST_USE;

/* PEG_ELIMIT, PEG_ENOMEM: what went wrong with the list. */
peg_status peg__row_check(const struct peg__buf *digests, peg_error *reterr) PEG_MUST_USE;

static inline size_t peg__row_len(const struct peg__buf *digests)
{
    return digests->len / PEG_SHA256_BYTES;
}

static inline const unsigned char *peg__row_at(const struct peg__buf *digests, size_t i)
{
    return (const unsigned char *)digests->ptr + i * PEG_SHA256_BYTES;
}

/* Does the list have this digest at this place? */
bool peg__row_has(const struct peg__buf *digests, size_t i, const peg__digest digest);

#endif
