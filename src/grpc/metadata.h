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
    peg_str key; /* lowercase */
    peg_str value;
};

/* Arena: keys and values lie in the arena of the call. All zero is empty. */
struct grpc_metadata {
    struct grpc_metadata_entry *entries;
    size_t n;
    size_t capacity;
    size_t bytes; /* as HTTP/2 counts them: key, value and 32 for each */
};

/* Copies. PEG_EINVAL (E_METADATA): a key that is not [a-z0-9_.-]{1,}, that begins with "grpc-" or
 * ':', or is one of the protocol's own (content-type, te, user-agent, host, connection, ...); a
 * value with other characters than 0x20..0x7e in a key without -bin. Uppercase letters of a key
 * become lowercase. PEG_ELIMIT (names PEG_LIMIT_GRPC_METADATA_BYTES), PEG_ENOMEM. */
peg_status grpc_metadata_add(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                             peg_str value, peg_error *reterr);
/* The same from the wire: the key has been checked by HTTP/2, a -bin value is base 64, perhaps
 * several joined by commas. PEG_EPARSE if it is none. */
peg_status grpc_metadata_add_wire(struct grpc_metadata *metadata, struct peg__arena *arena,
                                  peg_str key, peg_str value, peg_error *reterr);
/* The first value of a key, or {NULL, 0}. */
peg_str grpc_metadata_get(const struct grpc_metadata *metadata, const char *key);
bool grpc_metadata_is_binary(peg_str key);
/* May this key be set by a program? See grpc_metadata_add(). */
bool grpc_metadata_is_ours(peg_str key);

#endif
