/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RESULT_RESULT_H
#define PEG_CORE_RESULT_RESULT_H

#include "base/buf.h"
#include "base/mem.h"
#include "pegboard/cleanup.h"
#include "pegboard/envelope.h"
#include "pegboard/media.h"
#include "pegboard/reader.h"
#include "pegboard/spool.h"

/* Appends the envelope around the body. Requires a nonce that is one, and a kind. */
void peg__envelope_write(const peg_envelope *envelope, peg_str body, struct peg__buf *out);

/* Appends s for a place between double quotes: & < > " and characters that cannot be seen are
 * written as references. */
void peg__quoted_write(peg_str s, struct peg__buf *out);

/* The first character of s and its bytes; U+FFFD and 1 where it is no UTF-8. Requires s.len > 0. */
size_t peg__char_decode(peg_str s, uint32_t *ret_char);
/* Controls, and what turns or hides text without being seen: bidirectional marks, zero widths, tag
 * characters, line and paragraph separators. */
bool peg__char_is_unseen(uint32_t c);

/* Appends one media as text. nonce and tool may be NULL; may_trust false makes it untrusted. */
struct peg__media_frame {
    const char *nonce;
    const char *tool;
    bool may_trust;
};
void peg__media_write(const peg_media *media, const struct peg__media_frame *frame,
                      struct peg__buf *out);
void peg__media_marker_write(const peg_media *media, struct peg__buf *out);

/* ---- media ----------------------------------------------------------------- */

/* ---- readers --------------------------------------------------------------- */

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

/* ---- spools ---------------------------------------------------------------- */

/*
 * What a store has beyond its public face: a way to give bytes away instead of having them copied.
 */

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
