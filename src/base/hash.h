/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_HASH_H
#define PEG_BASE_HASH_H

#include "pegboard/common.h"

/* A secret that whoever chooses the names does not know. */
struct peg__hash_key {
    uint64_t k0;
    uint64_t k1;
};

/* A key from the system's randomness; from addresses and the clock where there is none. */
struct peg__hash_key peg__hash_key_new(void);

/* SipHash-1-3: names come from outside, and nobody may choose them so that they collide. */
uint64_t peg__hash(struct peg__hash_key key, peg_str bytes);

#endif
