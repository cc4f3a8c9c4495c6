/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_ID_H
#define PEG_BASE_ID_H

/*
 * Identifiers from the system's randomness. Any thread, also after fork().
 * All of them are false only where the system refuses randomness (a sandbox
 * without getrandom): what they wrote is then of no use, and there is no weaker
 * fallback.
 */

#include <stdatomic.h>

#include "base/clock.h"
#include "pegboard/common.h"

enum {
    PEG_UUID_TEXT = 37,   /* 8-4-4-4-12 lowercase hex digits and a NUL */
    PEG_ID_HEX_TEXT = 33, /* 128 bits as lowercase hex digits and a NUL */
};

bool peg__random(void *ret_bytes, size_t n) PEG_MUST_USE;

/* 128 random bits: nonces, names that cannot be guessed. */
bool peg__id_hex(char ret_text[PEG_ID_HEX_TEXT]) PEG_MUST_USE;

/* A UUID of version 7 (RFC 9562): sorts by time, as bytes and as text. Each one that a process
 * makes is greater than all it made before, also when several fall into one millisecond
 * or the clock is set back. */
bool peg__uuid7(const peg_clock *clock, char ret_text[PEG_UUID_TEXT]) PEG_MUST_USE;

/* What peg__uuid7 does, with its memory in the caller's hands; *last starts at 0. */
bool peg__uuid7_after(_Atomic uint64_t *last, const peg_clock *clock,
                      char ret_text[PEG_UUID_TEXT]) PEG_MUST_USE;

#endif
