/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_HEAD_H
#define PEG_GRPC_HTTP2_HEAD_H

/*
 * A block of headers as gRPC reads it: the protocol's own fields, each into its place, and the
 * metadata of the program. Filled field by field while HTTP/2 unpacks them; does no I/O.
 */

#include "grpc/metadata.h"
#include "grpc/status.h"

enum grpc_encoding {
    GRPC_IDENTITY,
    GRPC_GZIP,
    GRPC_ENCODING_UNKNOWN, /* named, and not one of ours */
};

/* Arena: strings lie in the arena that the head was given. {NULL, 0} is what did not come. Method,
 * path, authority, content type, encoding and user agent are bytes as HTTP/2 let them through and
 * end with NUL; they need not be UTF-8. */
struct grpc_head {
    struct peg__arena *arena;
    size_t max_bytes; /* of the whole block as HTTP/2 counts */
    size_t n_bytes;
    /* pseudo-headers */
    peg_str method;
    peg_str path;
    peg_str authority;
    int http_status; /* 0: none */
    /* fields of the protocol */
    peg_str content_type;
    bool has_te_trailers;
    int64_t timeout_ns; /* -1: none */
    bool has_bad_timeout;
    enum grpc_encoding encoding;
    peg_str encoding_name; /* as it came */
    bool accepts_gzip;
    peg_str user_agent;
    /* the end of a call */
    bool has_status;
    enum grpc_code code;
    peg_str message; /* decoded */
    peg_str details;
    /* the program's */
    struct grpc_metadata metadata;
};

void grpc_head_init(struct grpc_head *head, struct peg__arena *arena, size_t max_bytes);
/* Copies what it keeps. Of fields of the protocol that come twice the first counts; what one
 * grpc-accept-encoding or te says, another cannot take back. Of names that begin with "grpc-" only
 * grpc-trace-bin and grpc-tags-bin become metadata, and of the rest those that
 * grpc_metadata_is_ours() knows; others are counted and left out.
 * PEG_ELIMIT (E_HEADERS_TOO_LARGE, names max_header_bytes): the block is too large, the rest need
 * not be read. PEG_EPARSE (E_METADATA): a value that must be base 64 is not. PEG_ENOMEM.
 * A failure changes nothing. */
peg_status grpc_head_add(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr);
/* "application/grpc" in any case of its letters, alone or followed by '+' or ';'. */
bool grpc_head_is_grpc(const struct grpc_head *head);

#endif
