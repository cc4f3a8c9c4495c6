/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_HASH_H
#define PEG_BASE_HASH_H

#include "pegboard/common.h"

/* A secret that the source of the names does not know. */
struct peg__hash_key {
    uint64_t k0;
    uint64_t k1;
};

/* A key from the system's randomness; from addresses and the clock where there is none. */
struct peg__hash_key peg__hash_key_new(void);

/* SipHash-1-3: names come from outside, and must not be chosen so that they collide. */
uint64_t peg__hash(struct peg__hash_key key, peg_str bytes);

/* ---- digests --------------------------------------------------------------- */

/* A thin face on OpenSSL: only digest.c knows it. */

enum { PEG_SHA256_BYTES = 32, PEG_SHA256_HEX = 65 };

/* False only when out of memory. */
bool peg__sha256(peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES]);
/* HMAC with SHA-256. False only when out of memory. */
bool peg__hmac_sha256(peg_str key, peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES]);
void peg__hex(const unsigned char *bytes, size_t n, char *ret_hex); /* 2 n characters and a NUL */

/* ---- sealing --------------------------------------------------------------- */

/* What passes through strangers and comes back: AES-256-GCM with a random nonce. */

enum { PEG_SEAL_SECRET_BYTES = 32, PEG_SEAL_EXTRA = 12 + 16 };

/* Each purpose of a secret has a key of its own. Writes bytes.len + PEG_SEAL_EXTRA bytes. False:
 * out of memory, or no randomness. */
bool peg__seal(const unsigned char secret[PEG_SEAL_SECRET_BYTES], const char *purpose,
               peg_str bytes, char *ret_sealed);
/* Writes sealed.len - PEG_SEAL_EXTRA bytes. False: it was not sealed with this secret, for this
 * purpose, or was changed; or out of memory. */
bool peg__unseal(const unsigned char secret[PEG_SEAL_SECRET_BYTES], const char *purpose,
                 peg_str sealed, char *ret_bytes);

#endif
