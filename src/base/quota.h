/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_QUOTA_H
#define PEG_BASE_QUOTA_H

/*
 * A bounded amount (bytes, calls, toolsets) that many holders take from, each within its share.
 *
 *   status = peg__quota_init(&quota, &(struct peg__quota_limits){.max = ..., .has_shares = true});
 *   key = peg__quota_key(secret, principal);
 *   status = peg__quota_take(&quota, key, n_bytes, PEG__QUOTA_BEGIN);
 *   ...
 *   peg__quota_give_back(&quota, key, n_bytes);
 *   peg__quota_destroy(&quota);
 *
 * A share is at most PEG_LIMIT_QUOTA_SHARE times what is free (the dynamic threshold by which
 * switches share their buffers): one holder alone gets three quarters, two get three sevenths each,
 * and there is always something free for a holder that has little (docs/decisions/0041).
 *
 * Holders are counted by key, a hash of their name (a principal, a peer's address) below
 * PEG_LIMIT_QUOTA_KEYS: nothing is looked up, allocated or locked once the quota is made. Holders
 * with one key have one share. Key 0 belongs to everybody and has no share: use it where holders
 * are not told apart.
 *
 * Threads: any, without a lock; the counters are atomic, and one quota may be shared by all loops
 * of a node. take() adds before it compares, so at the limit two threads may both be refused where
 * one would have fitted; it never grants more than the limits. A holder that changes often and
 * little should collect its changes and report them in larger steps, because the counter of all
 * holders is one cache line.
 */

#include <stdatomic.h>

#include "base/hash.h"
#include "pegboard/common.h"

struct peg__quota_limits {
    size_t max;
    size_t reserve;  /* the last part of max, which PEG__QUOTA_BEGIN leaves to the other rules */
    size_t floor;    /* a holder with a share is never refused up to this, even above max */
    bool has_shares; /* else every key is key 0, and the quota needs no memory */
};

/* Owned; its fields are read by quota.c alone. All zero: a quota that refuses everything. */
struct peg__quota {
    struct peg__quota_limits limits;
    atomic_size_t used;
    atomic_size_t *shares; /* by key; NULL: there are none */
};

/* What a request has to keep to. */
enum peg__quota_rule {
    PEG__QUOTA_BEGIN,    /* the share, and the reserve stays free: something new begins */
    PEG__QUOTA_SHARED,   /* the share, with the reserve: more for something that has begun */
    PEG__QUOTA_ADMITTED, /* max alone: what is needed to end something that has begun */
};

/* PEG_ENOMEM leaves *quota all zero. */
peg_status peg__quota_init(struct peg__quota *quota,
                           const struct peg__quota_limits *limits) PEG_MUST_USE;
void peg__quota_destroy(struct peg__quota *quota);

/* The key of a name: 1 to PEG_LIMIT_QUOTA_KEYS - 1. The same on all loops and nodes that have one
 * secret. */
uint16_t peg__quota_key(struct peg__hash_key secret, peg_str name);

/* PEG_ELIMIT: it would be too much, and nothing was taken. */
peg_status peg__quota_take(struct peg__quota *quota, uint16_t key, size_t amount,
                           enum peg__quota_rule rule) PEG_MUST_USE;
/* Would it be granted now? For callers that take later, on the only thread that takes. */
bool peg__quota_has(const struct peg__quota *quota, uint16_t key, size_t amount,
                    enum peg__quota_rule rule);
/* Takes without asking: for what is there already and has to be counted. */
void peg__quota_add(struct peg__quota *quota, uint16_t key, size_t amount);
void peg__quota_give_back(struct peg__quota *quota, uint16_t key, size_t amount);
/* Moves what one holder has to another key, as when its name becomes known. */
void peg__quota_move(struct peg__quota *quota, uint16_t from, uint16_t to, size_t amount);

size_t peg__quota_used(const struct peg__quota *quota);
size_t peg__quota_share(const struct peg__quota *quota, uint16_t key);
/* More is used than max, as add() allows: who evicts the largest holder ends this. */
bool peg__quota_is_exceeded(const struct peg__quota *quota);
/* The key that holds most; 0 if none holds anything. Looks at every key: for the rare case. */
uint16_t peg__quota_largest(const struct peg__quota *quota);

#endif
