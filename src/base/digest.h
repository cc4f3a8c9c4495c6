/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_DIGEST_H
#define PEG_BASE_DIGEST_H

/* A thin face on OpenSSL: only digest.c knows it. */

#include "pegboard/common.h"

enum { PEG_SHA256_BYTES = 32, PEG_SHA256_HEX = 65 };

/* False only when out of memory. */
bool peg__sha256(peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES]);
/* HMAC with SHA-256. False only when out of memory. */
bool peg__hmac_sha256(peg_str key, peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES]);
void peg__hex(const unsigned char *bytes, size_t n, char *ret_hex); /* 2 n characters and a NUL */

#endif
