/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_MESSAGE_H
#define PEG_GRPC_MESSAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/common.h"

/* ---- service ------------------------------------------------------------------------------- */

/* What tools/grpc-gen writes for each .proto file: constants for routes, stubs and reflection. */

struct ProtobufCMessageDescriptor;

struct grpc_method {
    const char *name; /* "Check" */
    const char *path; /* "/grpc.health.v1.Health/Check" */
    /* NULL: its messages are bytes, and what is handed over as a message is a peg_str. */
    const struct ProtobufCMessageDescriptor *input;
    const struct ProtobufCMessageDescriptor *output;
    bool client_streams;
    bool server_streams;
};

/* A FileDescriptorProto as bytes. */
struct grpc_file {
    const char *name; /* "grpc/health/v1/health.proto" */
    const uint8_t *bytes;
    size_t len;
    const struct grpc_file *const *imports;
    size_t n_imports;
};

struct grpc_service {
    const char *name; /* "grpc.health.v1.Health" */
    const struct grpc_method *methods;
    size_t n_methods;
    const struct grpc_file *file; /* NULL: reflection does not know it */
};

/* ---- message ------------------------------------------------------------------------------- */

/* Messages of protobuf-c in the arena of their call. Input is checked once before protobuf-c
 * unpacks it, which has no limit for nested messages and does not check strings. */

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/* The message and its strings lie in the arena: `bytes` may go. A failure leaves some memory in the
 * arena. PEG_EPARSE (E_PROTOBUF): no message of this type, or a string that is no UTF-8 or contains
 * a NUL. PEG_ELIMIT (names the limit): PEG_LIMIT_GRPC_MESSAGE_DEPTH or
 * PEG_LIMIT_GRPC_UNPACKED_BYTES. PEG_ENOMEM. */
peg_status grpc_message_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                               struct peg__arena *arena, peg_str bytes,
                               const struct ProtobufCMessage **ret_message, peg_error *reterr);

/* Bytes of a message on the wire; grpc_message_pack() writes exactly so many. */
size_t grpc_message_packed_size(const struct ProtobufCMessage *message);
void grpc_message_pack(const struct ProtobufCMessage *message, uint8_t *ret_bytes);

/* ---- gzip ---------------------------------------------------------------------------------- */

/* A gzip member that comes in pieces; each is unpacked when it is fed. Owned. */
struct grpc_inflater;

/* Its memory, at most: zlib's state and a window of 32 KiB. */
enum { GRPC_INFLATER_BYTES = 40 << 10 };

/* NULL: out of memory. All pieces together may unpack to `max` bytes. */
struct grpc_inflater *grpc_inflater_new(size_t max);
struct grpc_inflater *grpc_inflater_free(struct grpc_inflater *inflater);
/* Appends to `out`, which must take `max` bytes and be the same for all pieces. PEG_EPARSE
 * (E_GRPC_FRAME): no gzip, cut off, a wrong checksum, or bytes behind it, such as a second member.
 * PEG_ELIMIT (E_MESSAGE_TOO_LARGE): more than `max` bytes. PEG_ENOMEM. After a failure `out` is of
 * no use, and nothing may be fed. */
peg_status grpc_inflater_feed(struct grpc_inflater *inflater, peg_str piece, bool is_last,
                              struct peg__buf *out, peg_error *reterr);

/* Appends to `out`, fast rather than small. PEG_ELIMIT (E_MESSAGE_TOO_LARGE): `out` does not take
 * it. PEG_ENOMEM. A failure leaves `out` as it was. */
peg_status grpc_gzip(peg_str bytes, struct peg__buf *out, peg_error *reterr);

/* ---- frame --------------------------------------------------------------------------------- */

/* Messages in a stream of bytes: a flag for compression, four bytes of length, the message. Bytes
 * come in pieces of any size; only messages in several pieces are copied. A compressed message is
 * unpacked as it comes, so that its last byte costs no more than the others. */

enum grpc_encoding {
    GRPC_IDENTITY,
    GRPC_GZIP,
    GRPC_ENCODING_UNKNOWN, /* named, and not one of ours */
};

enum { GRPC_PREFIX_BYTES = 5 };

/* Owned by its stream. All zero takes no message but an empty one; see grpc_reader_init(). */
struct grpc_reader {
    size_t max_message;          /* after decompression too */
    enum grpc_encoding encoding; /* of compressed messages */
    bool is_plain;               /* no gRPC: all bytes that come together are a message */
    /* The rest is its own. */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t n_prefix;               /* bytes of it that have come */
    bool is_delivered;              /* what the buffers hold was handed out */
    uint32_t n_packed;              /* bytes of a compressed message that were unpacked */
    struct peg__buf piece;          /* the beginning of a message in the clear */
    struct peg__buf unpacked;       /* a compressed message in the clear, as far as it came */
    struct grpc_inflater *inflater; /* NULL unless a compressed message has begun */
};

/* Readies a new one, or one of another stream, whose buffers of at most
 * PEG_LIMIT_GRPC_READER_SPARE_BYTES stay. */
void grpc_reader_init(struct grpc_reader *reader, size_t max_message);
void grpc_reader_free(struct grpc_reader *reader);
/* Another max_message, before the first message. */
void grpc_reader_limit(struct grpc_reader *reader, size_t max_message);
/* Bytes that it holds of an unfinished message: of a compressed one what was unpacked, and
 * GRPC_INFLATER_BYTES. The memory is at most four times as much, and never more than a message in
 * the clear, but for PEG_LIMIT_GRPC_READER_SPARE_BYTES. */
size_t grpc_reader_held(const struct grpc_reader *reader);
/* Memory of its buffers, and of the message that has begun. */
size_t grpc_reader_memory(const struct grpc_reader *reader);

/*
 * Takes bytes from the front of *bytes. PEG_OK and
 *   *ret_has_message true:  *ret_message is borrowed until the next call, or as long as the bytes
 *   *ret_has_message false: *bytes is empty, more are needed
 * PEG_ELIMIT (E_MESSAGE_TOO_LARGE): RESOURCE_EXHAUSTED. PEG_EPARSE (E_GRPC_FRAME): no flag, a
 * compressed message that was not announced, or bad gzip: INTERNAL. PEG_EUNSUPPORTED
 * (E_GRPC_FRAME): UNIMPLEMENTED. PEG_ENOMEM. After a failure only grpc_reader_init() helps.
 */
peg_status grpc_reader_next(struct grpc_reader *reader, peg_str *bytes, bool *ret_has_message,
                            peg_str *ret_message, peg_error *reterr);

/* The memory of the message that was just returned, if it came in pieces: the caller's then, for
 * peg__free(). NULL: copy it. */
char *grpc_reader_take(struct grpc_reader *reader, peg_str message);

/* Did the last message come compressed? */
bool grpc_reader_was_compressed(const struct grpc_reader *reader);

/* Frees the memory of the last message early: the next one may be long in coming. */
void grpc_reader_release(struct grpc_reader *reader);

/* Writes the five bytes before a message. */
void grpc_prefix_write(uint8_t ret_prefix[GRPC_PREFIX_BYTES], bool is_compressed, uint32_t len);

#endif
