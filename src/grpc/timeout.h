/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_TIMEOUT_H
#define PEG_GRPC_TIMEOUT_H

#include "pegboard/common.h"

enum { GRPC_TIMEOUT_TEXT = 16 };

/* Reads grpc-timeout: one to eight digits and H, M, S, m, u or n. False if it is none. A time
 * that is too long for int64_t nanoseconds is INT64_MAX. */
bool grpc_timeout_parse(peg_str text, int64_t *ret_ns);
/* Writes the finest unit in which it has at most eight digits, rounded up: a peer must not give
 * up before we do. Zero and less is "1n": a peer must see that it is over. Returns its length. */
size_t grpc_timeout_format(int64_t ns, char ret_text[GRPC_TIMEOUT_TEXT]);

#endif
