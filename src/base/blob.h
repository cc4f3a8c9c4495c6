/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_BLOB_H
#define PEG_BASE_BLOB_H

/* Bytes that never change once they are shared: payloads and results go from loop to loop, into
 * registers and out again, without being copied. Reference counted; any thread. */

#include <stdatomic.h>

#include "base/buf.h"
#include "pegboard/common.h"

struct peg__blob {
    atomic_uint n_refs;
    size_t len;
    char bytes[]; /* and a NUL behind them */
};

/* Room for so many bytes, to be filled before it is shared; NULL: no memory. */
struct peg__blob *peg__blob_new(size_t len);
struct peg__blob *peg__blob_copy(peg_str bytes);
/* The parts, one behind the other. */
struct peg__blob *peg__blob_join(const peg_str *parts, size_t n);
/* Out of a buffer that was begun with PEG__BLOB_CAPACITY bytes which mean nothing: takes its memory
 * and leaves it empty. NULL: the buffer has failed, or is shorter than that. */
enum { PEG__BLOB_CAPACITY = sizeof(struct peg__blob) };
struct peg__blob *peg__blob_take(struct peg__buf *buf);
/* Both take NULL. */
struct peg__blob *peg__blob_ref(struct peg__blob *blob);
struct peg__blob *peg__blob_unref(struct peg__blob *blob);
/* Borrowed; NULL is empty. */
peg_str peg__blob_str(const struct peg__blob *blob);

#endif
