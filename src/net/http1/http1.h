/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_HTTP1_HTTP1_H
#define PEG_NET_HTTP1_HTTP1_H

/* A small, strict HTTP/1.1 server for probes and metrics beside gRPC: GET and HEAD, no body, one
 * request after the other. Ambiguous requests are rejected and the connection closed, so that no
 * two readers can disagree about where a request ends. */

#include <stdatomic.h>

#include "net/stream/stream.h"

enum { NET_HTTP1_MAX_FIELDS = 64 };

struct net_http1_field {
    peg_str name;
    peg_str value; /* without the blanks around it */
};

/* A request that waits for its answer, in a ring with others. On the loop of its connection. */
struct net_http1_waiter {
    void (*wake)(struct net_http1_waiter *waiter); /* asks on_request again */
    struct net_http1_waiter *next;                 /* NULL: it does not wait */
    struct net_http1_waiter *prev;
};
/* A ring of them, which begins with its own address twice. */
static inline void net_http1_waiters_init(struct net_http1_waiter *waiters)
{
    waiters->next = waiters->prev = waiters;
}
void net_http1_wait(struct net_http1_waiter *waiters, struct net_http1_waiter *waiter);
/* One that does not wait is left alone. */
void net_http1_not_wait(struct net_http1_waiter *waiter);
/* Wakes all that wait. */
void net_http1_wake(struct net_http1_waiter *waiters);

/* A value; all strings but the peer's are borrowed from the bytes that were read. */
struct net_http1_request {
    peg_str method; /* "GET" or "HEAD" */
    peg_str target; /* as it came: "/metrics?x=1" */
    peg_str path;   /* up to the '?' */
    peg_str query;  /* after it, or empty */
    bool keeps_alive;
    const char *peer;  /* on_request: as net_stream_peer() */
    peg_str peer_name; /* on_request: as net_tls_peer_name(); "" without TLS or a certificate */
    struct net_http1_waiter *waiter; /* on_request: see net_http1_answer.comes_later */
    size_t n_fields;
    struct net_http1_field fields[NET_HTTP1_MAX_FIELDS];
};

/* Reads one request from the start of `bytes`. Returns
 *   0     and *ret_used > 0: a whole request of so many bytes
 *   0     and *ret_used == 0: more bytes are needed
 *   4xx, 5xx: refuse with this status and close */
int net_http1_read(const uint8_t *bytes, size_t len, struct net_http1_request *ret_request,
                   size_t *ret_used);
/* The value of a field by its name in any case, or an empty one. */
peg_str net_http1_field(const struct net_http1_request *request, const char *name);

/* A body that many answers share; not changed any more. Any thread. */
struct net_http1_body {
    atomic_uint n_refs;
    struct peg__buf bytes;
};
/* Empty, with one reference; NULL: no memory. */
struct net_http1_body *net_http1_body_new(void);
struct net_http1_body *net_http1_body_ref(struct net_http1_body *body);
struct net_http1_body *net_http1_body_unref(struct net_http1_body *body);

struct net_http1_answer {
    int status;                    /* 200 to begin with; 200 to 599 */
    const char *content_type;      /* "text/plain; charset=utf-8" to begin with; static */
    struct peg__buf body;          /* bounded by PEG_LIMIT_HTTP1_ANSWER_BYTES; if it failed, the
                                    * answer is 500. HEAD sends its length only. */
    struct net_http1_body *shared; /* NULL, or a reference on what is sent instead of `body` */
    /* There is no answer yet: the request waits (net_http1_wait()), and on_request is called
     * again. */
    bool comes_later;
};
/* 200 and an empty text; for who answers such requests on other ways than net_http1_serve(). */
void net_http1_answer_init(struct net_http1_answer *ret_answer);
void net_http1_answer_free(struct net_http1_answer *answer);
/* Can it be sent? Else it is 500. */
bool net_http1_answer_is_right(const struct net_http1_answer *answer);
peg_str net_http1_answer_body(const struct net_http1_answer *answer);

struct net_http1_events {
    /* On the loop; fills the answer. After net_http1_close() it is the last one, after
     * net_http1_drop() it is not sent. */
    void (*on_request)(void *user, const struct net_http1_request *request,
                       struct net_http1_answer *answer);
    /* Once and last: the peer ended it, or an error, the last answer or idle_ms did. The connection
     * is gone when it returns. */
    void (*on_end)(void *user);
    int64_t idle_ms; /* for a request to come whole, for an answer that comes later (else it is
                      * 503), and for each 64 KiB of an answer to be taken; 0:
                      * PEG_LIMIT_HTTP1_IDLE_MS */
};

struct net_http1;

/* Takes the stream over, also on failure (it is then dropped), with the `first` bytes that were
 * read from it (with PEG_LIMIT_HTTP1_HEAD_BYTES at most NET_READ_BYTES, else PEG_ELIMIT). No event
 * comes from within this call, nor after net_http1_drop(). */
peg_status net_http1_serve(struct net_stream *stream, const struct net_http1_events *events,
                           void *user, const uint8_t *first, size_t first_len,
                           struct net_http1 **ret_http1);
/* Ends it after the answer that is being sent, or at once. No event comes any more. */
void net_http1_close(struct net_http1 *http1);
/* Ends it now. No event comes any more; right in any state. */
void net_http1_drop(struct net_http1 *http1);

#endif
