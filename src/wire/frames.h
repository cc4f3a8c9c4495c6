/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_FRAMES_H
#define PEG_WIRE_FRAMES_H

/* A result in chunks, as the frames of Attach carry it: of at most PEG_LIMIT_GATEWAY_CHUNK_BYTES
 * each, and PEG_LIMIT_GATEWAY_RESULT_BYTES together. */

#include "base/buf.h"
#include "pegboard/common.h"

/* What has come so far. Owned; all zero is empty. */
struct wire_chunks {
    struct peg__buf bytes;
    size_t n_before;   /* of them, that are left free for something else: set before the first */
    bool is_too_large; /* the rest is counted and not kept */
};

/* PEG_ELIMIT (E_CHUNK, E_RESULT_TOO_LARGE; names the limit): nothing of this chunk is kept, and
 * all that was is given back; every later one says the same. PEG_ENOMEM keeps what there was. */
peg_status wire_chunks_add(struct wire_chunks *chunks, peg_str chunk, peg_error *reterr);
/* Borrowed until the next change. */
peg_str wire_chunks_view(const struct wire_chunks *chunks);
void wire_chunks_free(struct wire_chunks *chunks);

/* Takes the next chunk off *rest; true if more follow. An empty text is one empty chunk:
 *
 *   do {
 *       has_more = wire_chunk_next(&rest, &chunk);
 *       send(chunk, has_more);
 *   } while (has_more);
 */
bool wire_chunk_next(peg_str *rest, peg_str *ret_chunk);

#endif
