/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_CACHE_H
#define PEG_TURN_STORE_CACHE_H

/*
 * Digests of blocks and bags by their address: what is shared and immutable need not be written to
 * know what it would be. A reference is held to each, so that the address stays its own; how many
 * and how large they are is bounded.
 *
 * Owned; one thread at a time. A value set to zero is an empty cache.
 */

#include "base/hash.h"
#include "pegboard/turn.h"

struct peg__cached;

struct peg__cache {
    struct peg__cached *entries; /* open addressing; a power of two of them */
    size_t capacity;
    size_t n;
    uint64_t n_bytes; /* what all of them took in the store */
    uint64_t round;   /* counts up; what is asked for in a round is kept in it */
    uint64_t full_in; /* the round in which there was no room left; 0: none */
};

enum peg__cache_kind { PEG__CACHE_BLOCK, PEG__CACHE_BAG };

/* A new round: a turn is about to be saved or loaded. */
void peg__cache_start(struct peg__cache *cache);
/* The digest, or NULL; valid until the cache changes. */
const unsigned char *peg__cache_find(struct peg__cache *cache, const void *thing);
/* Takes a reference. Out of memory or full means that it is not remembered. size is what it takes
 * in the store. */
void peg__cache_add(struct peg__cache *cache, enum peg__cache_kind kind, const void *thing,
                    const unsigned char digest[PEG_SHA256_BYTES], size_t size);
void peg__cache_free(struct peg__cache *cache);

#endif
