/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_STATUS_H
#define PEG_GRPC_STATUS_H

/* How a call ended. A value; its strings are borrowed, the comment of whoever hands one out says
 * from whom. */

#include "pegboard/common.h"

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

/* Percent-encoding of grpc-message, with spaces at its ends: into `ret_text`, which has room for 3
 * * text.len bytes; returns how many. Decoding never fails: what is no escape stays as it is, bytes
 * that are no UTF-8 become U+FFFD; room for 3 * text.len bytes. */
size_t grpc_percent_encode(peg_str text, char *ret_text);
/* How many bytes of the text, whole characters, take at most `max` when they are encoded. */
size_t grpc_percent_fit(peg_str text, size_t max);
size_t grpc_percent_decode(peg_str text, char *ret_text);

#endif
