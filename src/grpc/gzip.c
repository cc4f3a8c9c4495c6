/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/message.h"

#include <zlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"

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

static peg_status fail_gzip(peg_status status, size_t max, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE",
                         "what is gzipped or unpacked here may have %zu bytes and has more; send "
                         "less at once",
                         max);
    return peg__fail(reterr, PEG_EPARSE, "E_GRPC_FRAME",
                     "the bytes are not one whole gzip member; send them as RFC 1952 says");
}

/* ---- unpacking ------------------------------------------------------------------------------ */

struct grpc_inflater {
    z_stream z;
    size_t max;
    size_t left; /* of max */
    bool is_done;
};

struct grpc_inflater *grpc_inflater_new(size_t max)
{
    struct grpc_inflater *inflater = peg__alloc(sizeof(*inflater));

    if (!inflater)
        return NULL;
    *inflater = (struct grpc_inflater){
        .z = {.zalloc = alloc_for_zlib, .zfree = free_for_zlib}, .max = max, .left = max};
    if (inflateInit2(&inflater->z, MAX_WINDOW_BITS + GZIP_FORMAT) == Z_OK)
        return inflater;
    peg__free(inflater);
    return NULL;
}

struct grpc_inflater *grpc_inflater_free(struct grpc_inflater *inflater)
{
    if (inflater)
        inflateEnd(&inflater->z);
    peg__free(inflater);
    return NULL;
}

/* How much is still to come: what the last four bytes tell, as far as it can be true. */
static size_t told_rest(const struct grpc_inflater *inflater, peg_str last_piece)
{
    const size_t produced = inflater->max - inflater->left;
    size_t told = 0;

    if (last_piece.len >= TRAILER_BYTES)
        for (size_t i = 1; i <= 4; i++)
            told = told << 8 | (unsigned char)last_piece.ptr[last_piece.len - i];
    told = told > produced ? told - produced : 0;
    return least(told, last_piece.len * MAX_RATIO);
}

/* Reserves `step` bytes more, but not beyond the maximum. */
static bool reserve_output(const struct grpc_inflater *inflater, size_t step, struct peg__buf *out)
{
    return peg__buf_reserve(out, least(step < MIN_STEP ? MIN_STEP : step, inflater->left));
}

/* The free capacity of `out`, and if it is full, as much again as there is: the memory is never
 * more than twice what came. */
static bool find_capacity(struct grpc_inflater *inflater, struct peg__buf *out)
{
    if (out->capacity <= out->len + 1 &&
        !reserve_output(inflater, inflater->max - inflater->left, out))
        return false;
    inflater->z.next_out = (Bytef *)out->ptr + out->len;
    inflater->z.avail_out =
        (uInt)least(least(out->capacity - 1 - out->len, inflater->left), MAX_STEP);
    return true;
}

/* What zlib's result means; PEG_ESTATE: go on, with more capacity. Z_FINISH does not say that the
 * input ends here, only that a member which is whole at once needs no window. */
static peg_status inflate_some(struct grpc_inflater *inflater)
{
    z_stream *z = &inflater->z;

    switch (inflate(z, Z_FINISH)) {
    case Z_STREAM_END:
        inflater->is_done = true;
        return z->avail_in ? PEG_EPARSE : PEG_OK;
    case Z_MEM_ERROR:
        return PEG_ENOMEM;
    case Z_OK:
    case Z_BUF_ERROR: /* one of the two has run out */
        return z->avail_out ? PEG_OK : PEG_ESTATE;
    default:
        return PEG_EPARSE;
    }
}

/* With all that was allowed unpacked: takes what does not unpack to anything. */
static peg_status inflate_nothing(struct grpc_inflater *inflater)
{
    Bytef beyond; /* the byte that must not come */
    peg_status status;

    inflater->z.next_out = &beyond;
    inflater->z.avail_out = 1;
    status = inflate_some(inflater);
    return inflater->z.avail_out == 0 ? PEG_ELIMIT : status;
}

static peg_status inflate_piece(struct grpc_inflater *inflater, struct peg__buf *out)
{
    peg_status status = PEG_ESTATE;

    while (status == PEG_ESTATE && inflater->left > 0) {
        size_t capacity;

        if (!find_capacity(inflater, out))
            return PEG_ENOMEM;
        capacity = inflater->z.avail_out;
        status = inflate_some(inflater);
        out->len += capacity - inflater->z.avail_out;
        inflater->left -= capacity - inflater->z.avail_out;
    }
    return status == PEG_ESTATE ? inflate_nothing(inflater) : status;
}

static peg_status take_piece(struct grpc_inflater *inflater, peg_str piece, bool is_last,
                             struct peg__buf *out)
{
    peg_status status = PEG_OK;

    if (piece.len > MAX_STEP)
        return PEG_ELIMIT;
    if (inflater->is_done)
        return piece.len ? PEG_EPARSE : PEG_OK;
    if (is_last && !reserve_output(inflater, told_rest(inflater, piece), out))
        return PEG_ENOMEM;
    set_input(&inflater->z, piece);
    status = inflate_piece(inflater, out);
    if (out->ptr)
        out->ptr[out->len] = '\0';
    return !status && is_last && !inflater->is_done ? PEG_EPARSE : status;
}

peg_status grpc_inflater_feed(struct grpc_inflater *inflater, peg_str piece, bool is_last,
                              struct peg__buf *out, peg_error *reterr)
{
    const peg_status status = take_piece(inflater, piece, is_last, out);

    return status ? fail_gzip(status, inflater->max, reterr) : PEG_OK;
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
    const size_t capacity = least(deflateBound(z, (uLong)len), out->max - out->len);
    char *to = peg__buf_reserve(out, capacity);
    int result;

    if (!to)
        return PEG_ENOMEM;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)capacity;
    result = deflate(z, Z_FINISH);
    if (result != Z_STREAM_END)
        return PEG_ELIMIT;
    out->len += capacity - z->avail_out;
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
        return fail_gzip(status ? status : PEG_ELIMIT, out->max, reterr);
    if (deflateInit2(&z, FAST, Z_DEFLATED, bits + GZIP_FORMAT, level, Z_DEFAULT_STRATEGY) != Z_OK)
        return peg__fail_nomem(reterr);
    set_input(&z, bytes);
    status = deflate_all(&z, bytes.len, out);
    deflateEnd(&z);
    if (status) {
        out->status = PEG_OK;
        return fail_gzip(status, out->max, reterr);
    }
    return PEG_OK;
}
