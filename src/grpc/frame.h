/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_FRAME_H
#define PEG_GRPC_FRAME_H

/*
 * Messages in a stream of bytes: one byte that says whether it is compressed, four of length, the
 * message. The reader is handed bytes in pieces of any size, and copies only what does not arrive
 * in one piece. A compressed message is unpacked piece by piece as it comes, so that its last
 * byte costs no more than the others. Does no I/O.
 */

#include "base/buf.h"
#include "grpc/http2/head.h"

enum { GRPC_PREFIX_BYTES = 5 };

/* Owned by its stream. All zero takes no message but an empty one; see grpc_reader_init(). */
struct grpc_reader {
    size_t max_message;          /* after decompression too */
    enum grpc_encoding encoding; /* of compressed messages */
    /* The rest is its own. */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t n_prefix;               /* bytes of it that have come */
    bool is_delivered;              /* what the buffers hold was handed out */
    uint32_t n_packed;              /* bytes of a compressed message that were unpacked */
    struct peg__buf piece;          /* the beginning of a message in the clear */
    struct peg__buf unpacked;       /* a compressed message in the clear, as far as it came */
    struct grpc_inflater *inflater; /* NULL unless a compressed message has begun */
};

/* Readies one that is all zero, or was used for another stream: forgets everything but buffers of
 * at most PEG_LIMIT_GRPC_READER_SPARE_BYTES. */
void grpc_reader_init(struct grpc_reader *reader, size_t max_message);
void grpc_reader_free(struct grpc_reader *reader);
/* Another max_message, before the first message. */
void grpc_reader_limit(struct grpc_reader *reader, size_t max_message);
/* Bytes that it holds of an unfinished message: of a compressed one what was unpacked, and
 * GRPC_INFLATER_BYTES, since a peer gets these for a few bytes. The memory is at most four times as
 * much, and never more than a message in the clear, but for PEG_LIMIT_GRPC_READER_SPARE_BYTES. */
size_t grpc_reader_held(const struct grpc_reader *reader);
/* Memory of its buffers, and of the message that has begun. */
size_t grpc_reader_memory(const struct grpc_reader *reader);

/* Takes bytes from the front of *bytes. Returns PEG_OK and
 *   *ret_has_message true:  *ret_message is a whole message, borrowed until the next call or
 *                           until the bytes that were handed in are gone
 *   *ret_has_message false: *bytes is empty, more are needed
 * PEG_ELIMIT (E_MESSAGE_TOO_LARGE) as soon as the length is seen, or a compressed message has
 * unpacked to more: RESOURCE_EXHAUSTED.
 * PEG_EPARSE (E_GRPC_FRAME): a flag that is none, a compressed message where none was announced,
 * or one that does not decompress, as soon as its bytes show it: INTERNAL.
 * PEG_EUNSUPPORTED (E_GRPC_ENCODING): UNIMPLEMENTED. PEG_ENOMEM. There is no message after any of
 * these; grpc_reader_init() is all that helps. */
peg_status grpc_reader_next(struct grpc_reader *reader, peg_str *bytes, bool *ret_has_message,
                            peg_str *ret_message, peg_error *reterr);

/* The memory of the message that grpc_reader_next() has just returned, if it came in pieces: it is
 * the caller's then, for peg__free(). NULL: it lies elsewhere, copy it. */
char *grpc_reader_take(struct grpc_reader *reader, peg_str message);

/* Did the last message come compressed? */
bool grpc_reader_was_compressed(const struct grpc_reader *reader);

/* Gives the memory of the last message back before the next one is asked for, which may be long:
 * what was handed out is gone. */
void grpc_reader_release(struct grpc_reader *reader);

/* Writes the five bytes before a message. */
void grpc_prefix_write(uint8_t ret_prefix[GRPC_PREFIX_BYTES], bool is_compressed, uint32_t len);

#endif
