/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_HTTP_TRANSPORT_H
#define PEG_NET_HTTP_TRANSPORT_H

/*
 * Between a request and what carries it. The transport fills the first part of a request, and
 * reports what comes:
 *
 *   net_http_request_start, then any number of _body, then _body_end; _writable; _ended
 *
 * net/http/request.c checks the order of the answer, counts, and calls the transport's functions.
 * These call no function of the handler, and leave the request alive.
 */

#include "net/http/http.h"

struct net_http_transport {
    /* length as net_http_begin(); is_bodyless: nothing follows, whatever the length is. */
    peg_status (*begin)(struct net_http_request *request, const struct net_http_answer *answer,
                        int64_t length, bool is_bodyless, peg_error *reterr);
    peg_status (*send)(struct net_http_request *request, peg_str bytes, peg_error *reterr);
    /* All of the body. */
    peg_status (*send_blob)(struct net_http_request *request, struct peg__blob *blob,
                            peg_error *reterr);
    bool (*is_writable)(const struct net_http_request *request);
    void (*finish)(struct net_http_request *request);
    void (*reset)(struct net_http_request *request);
    /* request->is_paused has changed. */
    void (*pause)(struct net_http_request *request);
    void (*authenticate)(struct net_http_request *request, peg_str principal);
    void (*ref)(struct net_http_request *request);
    void (*unref)(struct net_http_request *request);
};

/* The transport holds a reference around each of these. */
void net_http_request_start(struct net_http_server *server, struct net_http_request *request);
void net_http_request_body(struct net_http_request *request, peg_str bytes);
void net_http_request_body_end(struct net_http_request *request);
/* The body cannot be read: 400, 413, 503. */
void net_http_request_body_broke(struct net_http_request *request, int status, const char *why);
void net_http_request_writable(struct net_http_request *request);
void net_http_request_ended(struct net_http_request *request, bool was_lost);

/* Splits the target into path and query, and sets host (if it is not set yet) and origin from the
 * fields. False: a field that counts once came twice. */
bool net_http_request_read(struct net_http_request *request);
/* "Not Found"; "" for those that it does not know. Static. */
const char *net_http_reason(int status);
/* A path and perhaps a query, of characters that URLs have. */
bool net_http_is_target(peg_str target);

#endif
