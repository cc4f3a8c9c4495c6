/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_BASE64_H
#define PEG_BASE_TEXT_BASE64_H

/* Base 64 of RFC 4648 with padding. */

#include "pegboard/common.h"

/* Characters for so many bytes, without a NUL. */
static inline size_t peg__base64_len(size_t n_bytes)
{
    return (n_bytes + 2) / 3 * 4;
}

/* Writes peg__base64_len(bytes.len) characters and a NUL. */
void peg__base64_encode(peg_str bytes, char *ret_text);

/* Most bytes that so many characters can stand for. */
static inline size_t peg__base64_bytes(size_t n_characters)
{
    return n_characters / 4 * 3 + 3;
}

/* Reads either alphabet, with padding or without, and skips white space. Writes at most
 * peg__base64_bytes(text.len) bytes. False if it is none. */
bool peg__base64_decode(peg_str text, char *ret_bytes, size_t *ret_len);

#endif
