/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_SPOOL_H
#define PEGBOARD_SPOOL_H

/*
 * Where the bytes of large results are kept, by key. Writing a key again replaces its bytes;
 * readers handed out before keep the old ones.
 *
 * Shared, reference counted; any thread.
 */

#include <pegboard/reader.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A store of the host's: all functions are required and may be called from several threads. */
typedef struct peg_spool_ops {
    peg_status (*write)(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                        peg_error *reterr);
    /* PEG_OK with *ret_reader NULL if there is no such key. */
    peg_status (*read)(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr);
    peg_status (*remove)(void *user, peg_str key, bool *ret_was_there, peg_error *reterr);
    void (*free)(void *user); /* may be NULL */
} peg_spool_ops;

/* PEG_EINVAL (E_INVALID_ARGUMENT) names every function that is missing. *ops is copied. */
PEG_API PEG_MUST_USE peg_status peg_spool_store_new(const peg_spool_ops *ops, void *user,
                                                    peg_spool_store **ret_store, peg_error *reterr);
/* In memory. max_bytes of all keys together, 0 means 256 MiB; more, or more than a million keys, is
 * PEG_ELIMIT (E_SPOOL_FULL) and leaves the key as it was. Bytes that were replaced or removed are
 * not counted while a reader still holds them. */
PEG_API PEG_MUST_USE peg_status peg_spool_memory_new(size_t max_bytes, peg_spool_store **ret_store,
                                                     peg_error *reterr);
/* In files of a directory, which is made if its parent exists; only its owner may be able to write
 * into it, and it must be no symbolic link. A write is there whole or not at all, also after a
 * crash. Files stay when the store is freed, and a store opened on the directory later has them.
 * max_bytes as above; several stores on one directory count apart. Each reader is an open file.
 * PEG_EIO (E_FILE). */
PEG_API PEG_MUST_USE peg_status peg_spool_file_new(const char *directory, size_t max_bytes,
                                                   peg_spool_store **ret_store, peg_error *reterr);
PEG_API peg_spool_store *peg_spool_store_ref(peg_spool_store *store);
PEG_API peg_spool_store *peg_spool_store_unref(peg_spool_store *store);

/* Keys are 1 to 256 bytes of anything; PEG_EINVAL (E_INVALID_ARGUMENT) otherwise. */
PEG_API PEG_MUST_USE peg_status peg_spool_write(peg_spool_store *store, peg_str key, peg_str bytes,
                                                peg_reader **ret_reader, peg_error *reterr);
/* *ret_reader is NULL if there is no such key. */
PEG_API PEG_MUST_USE peg_status peg_spool_read(peg_spool_store *store, peg_str key,
                                               peg_reader **ret_reader, peg_error *reterr);
/* ret_was_there may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_spool_remove(peg_spool_store *store, peg_str key,
                                                 bool *ret_was_there, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
