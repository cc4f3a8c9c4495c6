/* SPDX-License-Identifier: Apache-2.0 */

#include "base/digest.h"

#include <openssl/sha.h>

bool peg__sha256(peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES])
{
    return SHA256((const unsigned char *)bytes.ptr, bytes.len, ret_digest) != NULL;
}

void peg__hex(const unsigned char *bytes, size_t n, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_hex[2 * n] = '\0';
}
