/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RESULT_SPOOL_H
#define PEG_CORE_RESULT_SPOOL_H

/*
 * What a store has beyond its public face: a way to give bytes away instead of having them copied.
 */

#include "base/buf.h"
#include "base/mem.h"
#include "pegboard/spool.h"

PEG_DEFINE_CLEANUP(peg_spool_store, peg_spool_store_unref)

/* Writes the bytes of a buffer, which is empty and freed afterwards in either case. In memory
 * nothing is copied. store NULL keeps the bytes nowhere but behind the reader. What went wrong with
 * the buffer itself (its status) is the caller's to have looked at. */
peg_status peg__spool_write_owned(peg_spool_store *store, peg_str key, struct peg__buf *take,
                                  peg_reader **ret_reader, peg_error *reterr) PEG_MUST_USE;

/* As peg_spool_memory_new(), which takes PEG_LIMIT_SPOOL_KEYS. */
peg_status peg__spool_memory_new(size_t max_bytes, size_t max_keys, peg_spool_store **ret_store,
                                 peg_error *reterr) PEG_MUST_USE;

/* As peg_spool_ops.write, but the reader is made already: the store references it. */
typedef peg_status (*peg__spool_keep_fn)(void *user, peg_str key, peg_reader *reader,
                                         peg_error *reterr);

/* As peg_spool_store_new(); keep may be NULL. For our own stores. */
peg_status peg__spool_store_new(const peg_spool_ops *ops, peg__spool_keep_fn keep, void *user,
                                peg_spool_store **ret_store, peg_error *reterr) PEG_MUST_USE;

#endif
