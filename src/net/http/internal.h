/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_HTTP_INTERNAL_H
#define PEG_NET_HTTP_INTERNAL_H

/*
 * Shared by the files of net/http/, in the order in which a request meets them:
 *
 *   conn.c           one connection of HTTP/1.1: steps and times
 *   read.c           the head of a request
 *   framing.c        where its body ends: Content-Length, chunks
 *   http1_request.c  its memory
 *   request.c        from the head to the handler; limits, and the order of the answer
 *   route.c          the table of routes
 *   output.c         what goes out on HTTP/1.1
 *   events.c         server-sent events
 */

#include <stdatomic.h>

#include "net/http/transport.h"

struct net_http_server {
    struct net_http_options options; /* with defaults filled in */
    atomic_size_t n_requests;
};

/* ---- read.c -------------------------------------------------------------------------------- */

/* A value; strings are borrowed from the bytes that were read. */
struct net_http_head {
    peg_str method;
    peg_str target;
    bool is_1_0;
    bool keeps_alive;
    bool awaits_continue;
    bool is_chunked;
    int64_t content_length; /* -1: none */
    size_t n_fields;
    struct net_http_field fields[NET_HTTP_MAX_FIELDS];
};

/* Reads one head from the start of `bytes`. Returns
 *   0     and *ret_used > 0: a whole head of so many bytes
 *   0     and *ret_used == 0: more bytes are needed
 *   4xx, 5xx: refuse with this status and close */
int net_http_head_read(peg_str bytes, struct net_http_head *ret_head, size_t *ret_used);
bool net_http_is_token(peg_str s);
bool net_http_is_same_word(peg_str a, const char *b);

/* ---- framing.c ----------------------------------------------------------------------------- */

enum net_http_framing_state {
    NET_HTTP_NO_BODY, /* nothing is left */
    NET_HTTP_LENGTH,
    NET_HTTP_CHUNK_SIZE,
    NET_HTTP_CHUNK_EXTENSION,
    NET_HTTP_CHUNK_LF,
    NET_HTTP_CHUNK_DATA,
    NET_HTTP_DATA_CR,
    NET_HTTP_DATA_LF,
    NET_HTTP_TRAILER, /* at the start of a line */
    NET_HTTP_TRAILER_NAME,
    NET_HTTP_TRAILER_VALUE,
    NET_HTTP_TRAILER_LF,
    NET_HTTP_LAST_LF,
};

/* A value. */
struct net_http_framing {
    enum net_http_framing_state state;
    uint64_t left;     /* of the body, or of this chunk */
    unsigned n_digits; /* of its size */
    size_t n_extra;    /* bytes of extensions and trailers */
};

void net_http_framing_begin(struct net_http_framing *framing, const struct net_http_head *head);
/* Takes bytes from the front of *bytes: up to the end of a piece of the body, which lies in them,
 * or all. Returns 0, or a status to refuse with. */
int net_http_framing_next(struct net_http_framing *framing, peg_str *bytes, peg_str *ret_piece);
static inline bool net_http_framing_is_done(const struct net_http_framing *framing)
{
    return framing->state == NET_HTTP_NO_BODY;
}

/* ---- http1_request.c ----------------------------------------------------------------------- */

/* Counted; may outlive its connection. */
struct net_http1_request {
    struct net_http_request request; /* first */
    struct net_http_conn *conn;      /* NULL after the end */
    struct peg__arena arena;
    unsigned n_refs;
};

/* `head` was read from `bytes`, which are copied. NULL: no memory. The caller sets the transport.
 */
struct net_http1_request *net_http1_request_new(struct net_http_conn *conn,
                                                const struct net_stream *stream,
                                                const struct net_http_head *head, peg_str bytes);
void net_http1_request_ref(struct net_http_request *request);
void net_http1_request_unref(struct net_http_request *request);

/* ---- output.c ------------------------------------------------------------------------------ */

/* Owned. Beside these functions its owner sets is_chunked, and `blob` as the last of an answer. */
struct net_http_output {
    struct peg__buf bytes; /* its owner bounds it */
    size_t n_sent;
    struct peg__blob *blob; /* follows `bytes`; a reference, or NULL */
    size_t n_blob_sent;
    bool is_chunked; /* the answer that was begun last */
};

peg_status net_http_output_head(struct net_http_output *output,
                                const struct net_http_answer *answer, int64_t length, bool is_last,
                                peg_error *reterr);
peg_status net_http_output_body(struct net_http_output *output, peg_str bytes, peg_error *reterr);
/* As it is. PEG_ENOMEM. */
peg_status net_http_output_text(struct net_http_output *output, const char *text);
size_t net_http_output_pending(const struct net_http_output *output);
/* Hands it to the stream until that is blocked. Fails as net_stream_write(). */
peg_status net_http_output_send(struct net_http_output *output, struct net_stream *stream,
                                bool *ret_moved);
void net_http_output_free(struct net_http_output *output);
size_t net_http_output_memory(const struct net_http_output *output);

/* ---- route.c ------------------------------------------------------------------------------- */

/* The route of a request, with its params; or NULL and a status: 404, 405 and what is allowed, 400
 * (a param that is no UTF-8), 503 (no memory). */
const struct net_http_route *net_http_route_find(const struct net_http_options *options,
                                                 struct net_http_request *request, int *ret_status,
                                                 struct peg__buf *allow);
/* %41 becomes A, and '+' a blank if it is of a query. {NULL, 0}: no UTF-8, a NUL, no memory. */
peg_str net_http_decode(struct peg__arena *arena, peg_str text, bool is_query);

#endif
