/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/wire.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

/* Whatever was kept of it is of no use to anybody: a result is whole or it is none. */
static peg_status reject_chunk(struct wire_chunks *chunks, size_t len, peg_error *reterr)
{
    peg__buf_free(&chunks->bytes);
    chunks->is_too_large = true;
    if (len > PEG_LIMIT_GATEWAY_CHUNK_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "a chunk has %zu bytes: send the result in chunks of at most %d, with "
                         "`more` in all but the last",
                         len, PEG_LIMIT_GATEWAY_CHUNK_BYTES);
    return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                     "a result has more than %d bytes: answer with less, or with where to find it",
                     PEG_LIMIT_GATEWAY_RESULT_BYTES);
}

/* Behind what is left free. */
static void append_chunk(struct wire_chunks *chunks, peg_str chunk)
{
    struct peg__buf *bytes = &chunks->bytes;

    bytes->max = chunks->n_before + PEG_LIMIT_GATEWAY_RESULT_BYTES;
    if (peg__buf_reserve(bytes, (bytes->len ? 0 : chunks->n_before) + chunk.len)) {
        if (!bytes->len)
            peg__buf_repeat(bytes, '\0', chunks->n_before);
        peg__buf_str(bytes, chunk);
    }
}

peg_status wire_chunks_add(struct wire_chunks *chunks, peg_str chunk, peg_error *reterr)
{
    if (chunks->is_too_large || chunk.len > PEG_LIMIT_GATEWAY_CHUNK_BYTES ||
        chunk.len > PEG_LIMIT_GATEWAY_RESULT_BYTES - wire_chunks_view(chunks).len)
        return reject_chunk(chunks, chunk.len, reterr);
    append_chunk(chunks, chunk);
    if (chunks->bytes.status) {
        chunks->bytes.status = PEG_OK; /* the next one may have more luck */
        return peg__fail_nomem(reterr);
    }
    return PEG_OK;
}

peg_str wire_chunks_view(const struct wire_chunks *chunks)
{
    return chunks->bytes.len ? peg__str_from(peg__buf_view(&chunks->bytes), chunks->n_before)
                             : peg__str("");
}

void wire_chunks_free(struct wire_chunks *chunks)
{
    peg__buf_free(&chunks->bytes);
    *chunks = (struct wire_chunks){0};
}
