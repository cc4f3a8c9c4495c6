/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_METADATA_H
#define PEG_GRPC_METADATA_H

/*
 * What travels beside the messages of a call: keys and values, in order, a key perhaps several
 * times. A key that ends in -bin has bytes as its value, any other one printable ASCII. Values
 * are held as the program sees them; base 64 happens on the wire.
 */

#include "base/arena.h"
#include "pegboard/common.h"

struct grpc_metadata_entry {
    peg_str key;   /* lowercase, ends with NUL */
    peg_str value; /* ends with NUL, unless it is one of bytes */
};

/* Arena: keys and values lie in the arena of the call. All zero is empty. */
struct grpc_metadata {
    struct grpc_metadata_entry *entries;
    size_t n;
    size_t capacity;
    size_t bytes; /* as HTTP/2 counts them: key, value and 32 for each */
};

/* Copies. PEG_EINVAL (E_METADATA): a key that is not [a-z0-9_.-]{1,}, or that
 * grpc_metadata_is_ours() refuses; a value with other characters than 0x20..0x7e in a key without
 * -bin. Uppercase letters of a key become lowercase, and spaces around a value that is text are
 * left out: HTTP/2 does not carry them. PEG_ELIMIT (E_METADATA_TOO_LARGE, names
 * PEG_LIMIT_GRPC_METADATA_BYTES), PEG_ENOMEM. A failure adds nothing. */
peg_status grpc_metadata_add(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                             peg_str value, peg_error *reterr);
/* The same from the wire: the key has been checked by HTTP/2, a -bin value is base 64, perhaps
 * several joined by commas, each of which becomes an entry. PEG_EPARSE (E_METADATA) if it is none.
 * A text that is not printable ASCII is left out: what a proxy adds must not end a call. Sets no
 * limit: whoever calls it bounds the sum of grpc_metadata_wire_bytes(). */
peg_status grpc_metadata_add_wire(struct grpc_metadata *metadata, struct peg__arena *arena,
                                  peg_str key, peg_str value, peg_error *reterr);
/* What a field counts, as HTTP/2 does; values joined by commas count as the fields they are. */
size_t grpc_metadata_wire_bytes(peg_str key, peg_str value);

/* The first value of a key (lowercase), or {NULL, 0}. */
peg_str grpc_metadata_get(const struct grpc_metadata *metadata, const char *key);
bool grpc_metadata_is_binary(peg_str key);
/* May this key (lowercase) be set by a program? Not if it begins with ':' or "grpc-", or is one of
 * the protocol's own (content-type, te, user-agent, host, connection, ...). grpc-trace-bin and
 * grpc-tags-bin may be: tracing hands them on. */
bool grpc_metadata_is_ours(peg_str key);

/* Base 64 without padding, as -bin values are sent. `ret_text` has room for
 * peg__base64_len(bytes.len) characters and a NUL; returns how many there are. */
size_t grpc_metadata_encode_bin(peg_str bytes, char *ret_text);

#endif
