/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/gzip.h"

#include <zlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    GZIP_FORMAT = 16, /* added to zlib's window bits */
    MIN_WINDOW_BITS = 9,
    MAX_WINDOW_BITS = 15,
    MOST_MEM_LEVEL = 8,
    FAST = 1,
    MAX_RATIO = 1032, /* deflate's own: 258 bytes in two bits */
    MIN_STEP = 256,
    MAX_STEP = 1 << 30, /* zlib counts in 32 bits */
    TRAILER_BYTES = 8,
};

static void *alloc_for_zlib(void *user, unsigned n, unsigned size)
{
    (void)user;
    return peg__alloc((size_t)n * size);
}

static void free_for_zlib(void *user, void *memory)
{
    (void)user;
    peg__free(memory);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* zlib's declaration has no const before its version 2. */
static void set_input(z_stream *z, peg_str bytes)
{
    z->next_in = peg__unconst(bytes.ptr);
    z->avail_in = (uInt)bytes.len;
}

static peg_status fail(peg_status status, size_t max, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_GZIP_TOO_LARGE",
                         "what is gzipped or unpacked here may have %zu bytes and has more; send "
                         "less at once",
                         max);
    return peg__fail(reterr, PEG_EPARSE, "E_GZIP",
                     "the bytes are not one whole gzip member; send them as RFC 1952 says");
}

/* ---- unpacking ------------------------------------------------------------------------------ */

/* How much room to begin with: the size that the last four bytes tell, as far as it can be true. */
static size_t first_step(peg_str bytes)
{
    size_t told = 0;

    if (bytes.len >= TRAILER_BYTES)
        for (size_t i = 1; i <= 4; i++)
            told = told << 8 | (unsigned char)bytes.ptr[bytes.len - i];
    told = least(told, bytes.len * MAX_RATIO);
    return told < MIN_STEP ? MIN_STEP : told;
}

/* What zlib's result means; PEG_ESTATE: go on, with more room. */
static peg_status status_of(int result, const z_stream *z)
{
    switch (result) {
    case Z_STREAM_END:
        return z->avail_in ? PEG_EPARSE : PEG_OK;
    case Z_MEM_ERROR:
        return PEG_ENOMEM;
    case Z_OK:
    case Z_BUF_ERROR: /* one of the two has run out */
        return z->avail_out ? PEG_EPARSE : PEG_ESTATE;
    default:
        return PEG_EPARSE;
    }
}

/* Adds at most `max` bytes to `out`, which takes as many. */
static peg_status inflate_all(z_stream *z, size_t step, size_t max, struct peg__buf *out)
{
    const size_t start = out->len;
    peg_status status = PEG_ESTATE;

    while (status == PEG_ESTATE) {
        const size_t left = max - (out->len - start);
        const size_t room = left ? least(least(step, left), MAX_STEP) : 1;
        char beyond; /* the byte that must not come */
        char *to = left ? peg__buf_reserve(out, room) : &beyond;

        if (!to)
            return PEG_ENOMEM;
        z->next_out = (Bytef *)to;
        z->avail_out = (uInt)room;
        status = status_of(inflate(z, Z_FINISH), z);
        if (left)
            out->len += room - z->avail_out;
        else if (z->avail_out == 0)
            return PEG_ELIMIT;
        step = out->len - start;
    }
    return status;
}

peg_status grpc_gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__buf before = *out;
    z_stream z = {.zalloc = alloc_for_zlib, .zfree = free_for_zlib};
    peg_status status = out->status;

    max = least(max, out->max - out->len);
    if (status || bytes.len > MAX_STEP)
        return fail(status ? status : PEG_ELIMIT, max, reterr);
    if (inflateInit2(&z, MAX_WINDOW_BITS + GZIP_FORMAT) != Z_OK)
        return peg__fail_nomem(reterr);
    set_input(&z, bytes);
    status = inflate_all(&z, first_step(bytes), max, out);
    inflateEnd(&z);

    if (!status && !peg__buf_reserve(out, 0)) /* for the NUL */
        status = PEG_ENOMEM;
    if (status) {
        out->len = before.len;
        out->status = before.status;
    }
    if (out->ptr)
        out->ptr[out->len] = '\0';
    return status ? fail(status, max, reterr) : PEG_OK;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* zlib clears and allocates 270 KB for the largest window; small messages need less. */
static int window_bits(size_t len)
{
    int bits = MIN_WINDOW_BITS;

    while (bits < MAX_WINDOW_BITS && (size_t)1 << bits < len)
        bits++;
    return bits;
}

static peg_status deflate_all(z_stream *z, size_t len, struct peg__buf *out)
{
    const size_t room = least(deflateBound(z, (uLong)len), out->max - out->len);
    char *to = peg__buf_reserve(out, room);
    int result;

    if (!to)
        return PEG_ENOMEM;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)room;
    result = deflate(z, Z_FINISH);
    if (result != Z_STREAM_END)
        return PEG_ELIMIT;
    out->len += room - z->avail_out;
    out->ptr[out->len] = '\0';
    return PEG_OK;
}

peg_status grpc_gzip(peg_str bytes, struct peg__buf *out, peg_error *reterr)
{
    const int bits = window_bits(bytes.len);
    const int level = bits - 7 < MOST_MEM_LEVEL ? bits - 7 : MOST_MEM_LEVEL;
    z_stream z = {.zalloc = alloc_for_zlib, .zfree = free_for_zlib};
    peg_status status = out->status;

    if (status || bytes.len > MAX_STEP)
        return fail(status ? status : PEG_ELIMIT, out->max, reterr);
    if (deflateInit2(&z, FAST, Z_DEFLATED, bits + GZIP_FORMAT, level, Z_DEFAULT_STRATEGY) != Z_OK)
        return peg__fail_nomem(reterr);
    set_input(&z, bytes);
    status = deflate_all(&z, bytes.len, out);
    deflateEnd(&z);
    if (status) {
        out->status = PEG_OK;
        return fail(status, out->max, reterr);
    }
    return PEG_OK;
}
