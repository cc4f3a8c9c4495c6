/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_READER_H
#define PEGBOARD_READER_H

/*
 * Bytes that can be read again and again, from any place, without saying where they are kept.
 * What is behind media and artifacts.
 *
 * Shared, immutable, reference counted; any thread. The bytes behind a reader do not change.
 */

#include <pegboard/common.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host's own bytes. Functions may be called from several threads at once. */
typedef struct peg_reader_ops {
    /* Reads up to n bytes at an offset; *ret_n is less than n only at the end. Required. */
    peg_status (*read_at)(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                          peg_error *reterr);
    /* All bytes, or -1 where only reading to the end would tell. Required. */
    int64_t (*byte_length)(void *user);
    /* Called once with user when the reader dies; may be NULL. */
    void (*free)(void *user);
} peg_reader_ops;

/* PEG_EINVAL (E_INVALID_ARGUMENT) if a required function is missing; PEG_ENOMEM. *ops is copied. On
 * failure free is not called. */
PEG_API PEG_MUST_USE peg_status peg_reader_new(const peg_reader_ops *ops, void *user,
                                               peg_reader **ret_reader, peg_error *reterr);
/* Over a copy of the bytes. */
PEG_API PEG_MUST_USE peg_status peg_reader_from_bytes(peg_str bytes, peg_reader **ret_reader,
                                                      peg_error *reterr);
/* Over a regular file as it is now: opened here, read later, so it may be renamed, replaced or
 * removed meanwhile. One that got shorter in place fails to be read. PEG_EIO (E_FILE). */
PEG_API PEG_MUST_USE peg_status peg_reader_from_file(const char *path, peg_reader **ret_reader,
                                                     peg_error *reterr);
PEG_API peg_reader *peg_reader_ref(peg_reader *reader);
PEG_API peg_reader *peg_reader_unref(peg_reader *reader);

/* *ret_n is less than n only at the end, 0 beyond it. Fails as the host's function does, and with
 * PEG_EHOST (E_CALLBACK) if that breaks its contract; PEG_EIO (E_FILE) for files. */
PEG_API PEG_MUST_USE peg_status peg_reader_read_at(peg_reader *reader, uint64_t offset,
                                                   void *buffer, size_t n, size_t *ret_n,
                                                   peg_error *reterr);
/* -1 if unknown. */
PEG_API int64_t peg_reader_byte_length(peg_reader *reader);
/* All of it, NUL-terminated, freed with peg_free(). PEG_ELIMIT (E_READER_TOO_LARGE) beyond max.
 * ret_len may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_reader_read_all(peg_reader *reader, size_t max,
                                                    char **ret_bytes, size_t *ret_len,
                                                    peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
