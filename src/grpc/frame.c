/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/message.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { MIN_PIECE = 1024 };

/* Empties it, and keeps no more memory than the next small message can use. */
static void empty(struct peg__buf *buf)
{
    peg__buf_clear(buf);
    if (buf->capacity > PEG_LIMIT_GRPC_READER_SPARE_BYTES)
        peg__buf_free(buf);
}

/* Forgets where in a message it is. */
static void forget_message(struct grpc_reader *reader)
{
    reader->inflater = grpc_inflater_free(reader->inflater);
    reader->n_prefix = 0;
    reader->n_packed = 0;
    reader->is_delivered = false;
}

void grpc_reader_init(struct grpc_reader *reader, size_t max_message)
{
    forget_message(reader);
    empty(&reader->piece);
    empty(&reader->unpacked);
    grpc_reader_limit(reader, max_message);
    reader->encoding = GRPC_IDENTITY;
    reader->is_plain = false;
}

void grpc_reader_limit(struct grpc_reader *reader, size_t max_message)
{
    reader->piece.max = max_message;
    reader->unpacked.max = max_message;
    reader->max_message = max_message;
}

void grpc_reader_free(struct grpc_reader *reader)
{
    forget_message(reader);
    peg__buf_free(&reader->piece);
    peg__buf_free(&reader->unpacked);
}

size_t grpc_reader_held(const struct grpc_reader *reader)
{
    if (reader->is_delivered)
        return 0;
    return reader->n_prefix + reader->piece.len + reader->unpacked.len +
           (reader->inflater ? (size_t)GRPC_INFLATER_BYTES : 0);
}

size_t grpc_reader_memory(const struct grpc_reader *reader)
{
    return reader->piece.capacity + reader->unpacked.capacity +
           (reader->inflater ? (size_t)GRPC_INFLATER_BYTES : 0);
}

static uint32_t message_len(const struct grpc_reader *reader)
{
    const uint8_t *p = reader->prefix;

    return (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
}

void grpc_reader_release(struct grpc_reader *reader)
{
    if (!reader->is_delivered)
        return;
    forget_message(reader);
    empty(&reader->piece);
    empty(&reader->unpacked);
}

/* False: the prefix is not whole. */
static bool take_prefix(struct grpc_reader *reader, peg_str *bytes)
{
    size_t n = (size_t)GRPC_PREFIX_BYTES - reader->n_prefix;

    if (n == 0)
        return true;
    if (n > bytes->len)
        n = bytes->len;
    if (n == 0)
        return false;
    memcpy(reader->prefix + reader->n_prefix, bytes->ptr, n);
    reader->n_prefix = (uint8_t)(reader->n_prefix + n);
    *bytes = peg__str_from(*bytes, n);
    return reader->n_prefix == GRPC_PREFIX_BYTES;
}

static peg_status refuse_compressed(const struct grpc_reader *reader, peg_error *reterr)
{
    if (reader->prefix[0] > 1)
        return peg__fail(reterr, PEG_EPARSE, "E_GRPC_FRAME",
                         "a message begins with the flag %u; it must be 0 or 1, 1 if the message "
                         "is compressed",
                         reader->prefix[0]);
    if (reader->encoding == GRPC_IDENTITY)
        return peg__fail(reterr, PEG_EPARSE, "E_GRPC_FRAME",
                         "a message is compressed, but grpc-encoding does not say how; name it "
                         "there");
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_GRPC_FRAME",
                     "a message is compressed in a way that is not known here; use gzip or "
                     "identity");
}

static peg_status check_prefix(const struct grpc_reader *reader, peg_error *reterr)
{
    if (reader->prefix[0] != 0 && (reader->prefix[0] > 1 || reader->encoding != GRPC_GZIP))
        return refuse_compressed(reader, reterr);
    if (message_len(reader) > reader->max_message)
        return peg__fail(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE",
                         "a message has %u bytes, and max_message_bytes is %zu; send smaller ones "
                         "or raise it",
                         message_len(reader), reader->max_message);
    return PEG_OK;
}

/* Twice what there is, at most the message; all of it when a quarter is here: copying megabytes
 * takes a millisecond in which the loop serves no one else. */
static size_t grown_capacity(size_t capacity, size_t need, size_t len)
{
    const size_t twice = capacity < MIN_PIECE / 2 ? MIN_PIECE : 2 * capacity;

    if (twice > len || need > len / 4)
        return len;
    return twice < need ? need : twice;
}

/* Room for so many bytes of a message that has `len`. */
static bool grow_piece(struct peg__buf *piece, size_t need, size_t len)
{
    size_t capacity;
    char *grown;

    if (need <= piece->capacity)
        return true;
    capacity = grown_capacity(piece->capacity, need, len);
    grown = peg__realloc(piece->ptr, capacity);
    if (!grown)
        return false;
    piece->ptr = grown;
    piece->capacity = capacity;
    return true;
}

static peg_status copy_piece(struct peg__buf *piece, peg_str bytes, size_t len, peg_error *reterr)
{
    if (bytes.len == 0)
        return PEG_OK;
    if (!grow_piece(piece, piece->len + bytes.len, len))
        return peg__fail_nomem(reterr);
    memcpy(piece->ptr + piece->len, bytes.ptr, bytes.len);
    piece->len += bytes.len;
    return PEG_OK;
}

/* So many bytes, or as many as there are. */
static peg_str take_front(peg_str *bytes, size_t n)
{
    const peg_str taken = {bytes->ptr, n < bytes->len ? n : bytes->len};

    if (taken.len)
        *bytes = peg__str_from(*bytes, taken.len);
    return taken;
}

/* A message in the clear; without bytes if it is not whole. It is not copied if it lies in one
 * piece. */
static peg_status take_clear(struct grpc_reader *reader, peg_str *bytes, peg_str *ret_message,
                             peg_error *reterr)
{
    const size_t len = message_len(reader);
    const peg_str taken = take_front(bytes, len - reader->piece.len);
    peg_status status;

    if (taken.len == len) {
        *ret_message = len ? taken : peg__str("");
        return PEG_OK;
    }
    status = copy_piece(&reader->piece, taken, len, reterr);
    if (!status)
        *ret_message = (peg_str){reader->piece.len == len ? reader->piece.ptr : NULL, len};
    return status;
}

static peg_status fail_unpacking(const struct grpc_reader *reader, peg_status status,
                                 const peg_error *why, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status == PEG_ELIMIT)
        return peg__fail_because(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE", why,
                                 "a message of %u bytes unpacks to more than max_message_bytes",
                                 message_len(reader));
    return peg__fail_because(reterr, PEG_EPARSE, "E_GRPC_FRAME", why,
                             "a compressed message of %u bytes cannot be unpacked",
                             message_len(reader));
}

/* zlib's memory is there from the first byte of a message to its last. */
static peg_status unpack_piece(struct grpc_reader *reader, peg_str piece, bool is_last,
                               peg_error *reterr)
{
    peg_status status;
    peg_error why;

    if (!reader->inflater)
        reader->inflater = grpc_inflater_new(reader->max_message);
    if (!reader->inflater)
        return peg__fail_nomem(reterr);
    status = grpc_inflater_feed(reader->inflater, piece, is_last, &reader->unpacked, &why);
    if (status || is_last)
        reader->inflater = grpc_inflater_free(reader->inflater);
    if (!status)
        return PEG_OK;
    empty(&reader->unpacked);
    return fail_unpacking(reader, status, &why, reterr);
}

/* A compressed message, unpacked; without bytes if it is not whole. */
static peg_status take_packed(struct grpc_reader *reader, peg_str *bytes, peg_str *ret_message,
                              peg_error *reterr)
{
    const size_t missing = message_len(reader) - reader->n_packed;
    const peg_str taken = take_front(bytes, missing);
    const bool is_last = taken.len == missing;
    peg_status status;

    *ret_message = (peg_str){NULL, 0};
    if (taken.len == 0 && !is_last)
        return PEG_OK;
    reader->n_packed += (uint32_t)taken.len;
    status = unpack_piece(reader, taken, is_last, reterr);
    if (!status && is_last)
        *ret_message = peg__buf_view(&reader->unpacked);
    return status;
}

peg_status grpc_reader_next(struct grpc_reader *reader, peg_str *bytes, bool *ret_has_message,
                            peg_str *ret_message, peg_error *reterr)
{
    peg_str message;
    peg_status status;

    if (reader->is_plain) {
        *ret_has_message = bytes->len > 0;
        *ret_message = *bytes;
        *bytes = peg__str_from(*bytes, bytes->len);
        return PEG_OK;
    }
    grpc_reader_release(reader);
    if (!take_prefix(reader, bytes)) {
        *ret_has_message = false;
        return PEG_OK;
    }
    status = check_prefix(reader, reterr);
    if (!status)
        status = reader->prefix[0] ? take_packed(reader, bytes, &message, reterr)
                                   : take_clear(reader, bytes, &message, reterr);
    if (status)
        return status;

    *ret_has_message = reader->is_delivered = message.ptr != NULL;
    if (message.ptr)
        *ret_message = message;
    return PEG_OK;
}

char *grpc_reader_take(struct grpc_reader *reader, peg_str message)
{
    char *taken = reader->piece.ptr;

    if (!taken || message.ptr != taken)
        return NULL;
    reader->piece = (struct peg__buf){.max = reader->piece.max};
    return taken;
}

bool grpc_reader_was_compressed(const struct grpc_reader *reader)
{
    return reader->prefix[0] != 0;
}

void grpc_prefix_write(uint8_t ret_prefix[GRPC_PREFIX_BYTES], bool is_compressed, uint32_t len)
{
    ret_prefix[0] = is_compressed;
    ret_prefix[1] = (uint8_t)(len >> 24);
    ret_prefix[2] = (uint8_t)(len >> 16);
    ret_prefix[3] = (uint8_t)(len >> 8);
    ret_prefix[4] = (uint8_t)len;
}
