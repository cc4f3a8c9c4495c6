/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RESULT_READER_H
#define PEG_CORE_RESULT_READER_H

#include "base/mem.h"
#include "pegboard/reader.h"

PEG_DEFINE_CLEANUP(peg_reader, peg_reader_unref)

/* Over bytes that are given away: `bytes` comes from peg__alloc and is freed with the reader. On
 * failure it stays the caller's. No bytes are copied. */
peg_status peg__reader_from_owned(char *bytes, size_t len, peg_reader **ret_reader,
                                  peg_error *reterr) PEG_MUST_USE;
/* Over a regular file of `len` bytes that is open. The descriptor is closed with the reader; on
 * failure it stays the caller's. */
peg_status peg__reader_from_fd(int fd, uint64_t len, peg_reader **ret_reader,
                               peg_error *reterr) PEG_MUST_USE;

/* What peg_reader_new() was given as user, if its read_at is this one; else NULL. So a module knows
 * its own readers again. */
void *peg__reader_user(const peg_reader *reader, const peg_reader_ops *ops);

/* True and all bytes, if the reader has them in memory; they live as long as the reader. */
bool peg__reader_view(const peg_reader *reader, peg_str *ret_bytes);

#endif
