/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_STATUS_H
#define PEG_GRPC_STATUS_H

#include "base/arena.h"
#include "pegboard/common.h"

/* ---- status -------------------------------------------------------------------------------- */

/* How a call ended. A value; its strings are borrowed. */

enum grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

struct grpc_status {
    enum grpc_code code;
    peg_str message; /* UTF-8, for people */
    peg_str details; /* a google.rpc.Status as bytes, or empty */
};

#define GRPC_STATUS(a_code, literal)                                                               \
    ((struct grpc_status){.code = (a_code), .message = {(literal), sizeof(literal) - 1}})

/* "DEADLINE_EXCEEDED"; "UNKNOWN" for a number that is none. Static. */
const char *grpc_code_name(enum grpc_code code);
/* The code of a number from the wire: one that is none becomes GRPC_UNKNOWN. */
enum grpc_code grpc_code_from_wire(peg_str decimal);

/* What a call ends with when the answer is no gRPC: the table of the protocol. */
enum grpc_code grpc_code_from_http(int http_status);
enum grpc_code grpc_code_from_h2(uint32_t h2_error, bool deadline_passed);

/* Percent-encoding of grpc-message, and of spaces at its ends; returns the length. Decoding never
 * fails: what is no escape stays, bytes that are no UTF-8 become U+FFFD. Both need 3 * text.len
 * bytes. */
size_t grpc_percent_encode(peg_str text, char *ret_text);
/* How many bytes of the text, whole characters, take at most `max` when they are encoded. */
size_t grpc_percent_fit(peg_str text, size_t max);
size_t grpc_percent_decode(peg_str text, char *ret_text);

/* ---- metadata ------------------------------------------------------------------------------ */

/* Metadata of a call: keys and values, in order, a key perhaps several times. A key that ends in
 * -bin has bytes as its value (base 64 on the wire), any other one printable ASCII. */

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

/* Copies. PEG_EINVAL (E_METADATA): a key that is not [a-z0-9_.-]{1,} after lowercasing, or that
 * grpc_metadata_is_ours() rejects; a text with characters outside 0x20..0x7e. Spaces around a text
 * are removed, as HTTP/2 demands. PEG_ELIMIT (E_METADATA, names
 * PEG_LIMIT_GRPC_METADATA_BYTES), PEG_ENOMEM. A failure adds nothing. */
peg_status grpc_metadata_add(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                             peg_str value, peg_error *reterr);
/* The same from the wire, with a checked key: a -bin value is base 64, perhaps several joined by
 * commas, which become entries of their own (PEG_EPARSE, E_METADATA). A text that is not printable
 * ASCII is left out: what a proxy adds must not end a call. The caller limits the sum of
 * grpc_metadata_wire_bytes(). */
peg_status grpc_metadata_add_wire(struct grpc_metadata *metadata, struct peg__arena *arena,
                                  peg_str key, peg_str value, peg_error *reterr);
/* What a field counts, as HTTP/2 does; values joined by commas count as the fields they are. */
size_t grpc_metadata_wire_bytes(peg_str key, peg_str value);

/* The first value of a key (lowercase), or {NULL, 0}. */
peg_str grpc_metadata_get(const struct grpc_metadata *metadata, const char *key);
bool grpc_metadata_is_binary(peg_str key);
/* May a program set this key (lowercase)? Not ':' and "grpc-" (but grpc-trace-bin and grpc-tags-
 * bin, for tracing), nor fields of the protocol (content-type, te, user-agent, host, connection,
 * ...). */
bool grpc_metadata_is_ours(peg_str key);

/* Base 64 without padding, as -bin values are sent, and a NUL; at most peg__base64_len(bytes.len) +
 * 1 bytes. Returns the length. */
size_t grpc_metadata_encode_bin(peg_str bytes, char *ret_text);

/* ---- timeout ------------------------------------------------------------------------------- */

enum { GRPC_TIMEOUT_TEXT = 16 };

/* Reads grpc-timeout: one to eight digits and H, M, S, m, u or n. INT64_MAX if it is too long. */
bool grpc_timeout_parse(peg_str text, int64_t *ret_ns);
/* In the finest unit with at most eight digits, rounded up: a peer must not give up before we do.
 * "1n" if it is over. Returns its length. */
size_t grpc_timeout_format(int64_t ns, char ret_text[GRPC_TIMEOUT_TEXT]);

#endif
