/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_HTTP_HTTP_H
#define PEG_NET_HTTP_HTTP_H

/*
 * An HTTP server: one table of routes, one kind of handler, for HTTP/1.1 (net/http/conn.c) and for
 * HTTP/2 (grpc/server/http.c) alike.
 *
 *   on_head      the head has come: reject what needs no body (Host, Origin, credentials)
 *   on_request   the whole request has come; or on_body, piece by piece
 *   on_writable  an answer that streams may go on
 *   on_end       once and last, whatever happened
 *
 * A request belongs to the loop of its connection, whose thread alone may touch it. A handler
 * answers from within its functions or later, on that loop. No function of a handler is called from
 * within a function of this header.
 */

#include "base/arena.h"
#include "base/blob.h"
#include "net/stream/stream.h"

struct net_http_server;
struct net_http_request;

struct net_http_field {
    peg_str name;
    peg_str value; /* without the blanks around it */
};

/* ---- handlers and routes ------------------------------------------------------------------- */

/* `user` is that of the server. Either on_request or on_body is set. */
struct net_http_handler {
    /* May be NULL. After an answer here the body is not delivered. */
    void (*on_head)(struct net_http_request *request, void *user);
    /* The body was gathered, and lives as long as the request. */
    void (*on_request)(struct net_http_request *request, peg_str body, void *user);
    /* The next bytes, borrowed until it returns; the last call has is_end and may have none. */
    void (*on_body)(struct net_http_request *request, peg_str bytes, bool is_end, void *user);
    /* net_http_is_writable() has become true again. May be NULL. */
    void (*on_writable)(struct net_http_request *request, void *user);
    /* The answer is on its way, or was_lost: the client ended the connection or the stream, or a
     * limit did. May be NULL. */
    void (*on_end)(struct net_http_request *request, void *user);
    size_t max_body; /* bytes; 0: PEG_LIMIT_NET_HTTP_BODY_BYTES */
};

enum { NET_HTTP_MAX_FIELDS = 64, NET_HTTP_MAX_PARAMS = 4 };

struct net_http_route {
    const char *method; /* "POST"; "GET" serves HEAD too */
    const char *path;   /* "/mcp/{toolset}": a segment in braces matches any that is not empty */
    const struct net_http_handler *handler;
};

/* Each 0 means the default named beside it (base/limits.h). */
struct net_http_options {
    const struct net_http_route *routes; /* static; the first that matches counts */
    size_t n_routes;
    void *user;
    /* Before the routes: false if it has answered. For what all of them check. May be NULL. */
    bool (*admits)(struct net_http_request *request, void *user);
    const char *not_found; /* static: the text of 404; NULL: a plain one */
    size_t max_requests;   /* PEG_LIMIT_NET_HTTP_REQUESTS, open at once on all loops */
    size_t
        max_send_bytes; /* PEG_LIMIT_NET_HTTP_SEND_BYTES, waiting on one connection of HTTP/1.1 */
    int64_t head_ms;    /* PEG_LIMIT_NET_HTTP_HEAD_MS: HTTP/1.1, from the first byte of a head */
    int64_t
        body_ms; /* PEG_LIMIT_NET_HTTP_BODY_MS: then PEG_LIMIT_NET_HTTP_BODY_RATE must be kept */
    int64_t idle_ms; /* PEG_LIMIT_NET_HTTP_IDLE_MS: HTTP/1.1, between two requests */
    int64_t send_ms; /* PEG_LIMIT_NET_HTTP_SEND_MS: HTTP/1.1, for the client to take a piece */
};

/* Any thread; outlives its connections. PEG_EINVAL (E_HTTP_ROUTE): a route that is none. */
peg_status net_http_server_new(const struct net_http_options *options,
                               struct net_http_server **ret_server, peg_error *reterr);
struct net_http_server *net_http_server_free(struct net_http_server *server);
/* Any thread: requests that are open now. */
size_t net_http_server_n_requests(const struct net_http_server *server);

/* ---- a request ----------------------------------------------------------------------------- */

/* What a handler reads; all strings live as long as the request. */
struct net_http_request {
    peg_str method;
    peg_str target; /* as it came: "/v1/search?q=a" */
    peg_str path;   /* up to the '?' */
    peg_str query;  /* after it, or empty */
    peg_str host;   /* Host, or :authority; "" if there was none (HTTP/1.0) */
    peg_str origin; /* "" if there was none */
    size_t n_fields;
    const struct net_http_field *fields;
    peg_str params[NET_HTTP_MAX_PARAMS]; /* the segments in braces, decoded: UTF-8 without NUL */
    const char *peer;                    /* as net_stream_peer() */
    peg_str peer_name;                   /* as net_tls_peer_name(); "" without a certificate */
    bool is_local;                       /* as net_stream_is_local() */
    bool is_http2;
    struct net_loop *loop;
    struct peg__arena *arena; /* lives as long as the request */
    void *state;              /* the handler's */
    bool was_lost;            /* in on_end: the answer did not go out whole */

    /* The rest belongs to net/http/request.c. */
    struct net_http_server *server;
    const struct net_http_transport *transport;
    const struct net_http_handler *handler; /* NULL: none was found */
    struct peg__buf body;                   /* gathered */
    int64_t content_length;                 /* of the request; -1: it did not say */
    uint64_t n_body;
    uint64_t n_timed; /* of n_body, since the timer's start */
    int64_t timed_ns;
    struct net_timer slow;
    int64_t left;     /* bytes of the answer's body that were promised; -1: any number */
    bool has_begun;   /* the answer */
    bool is_bodyless; /* of the answer: HEAD, 204, 304 */
    bool is_finished;
    bool is_whole; /* the body of the request has come */
    bool is_paused;
    bool has_ended;
};

/* The value of a field by its name in any case; {"", 0} if there is none. The first of several. */
peg_str net_http_field(const struct net_http_request *request, const char *name);
/* The value of "name=..." in the query, decoded into the request's arena. False: there is none, or
 * it is no UTF-8, or there was no memory. */
bool net_http_query(struct net_http_request *request, const char *name, peg_str *ret_value);
/* The next one of several; *rest, at first the query, is then what stands behind it. False: there
 * is none, and *ret_value is as it was; or it cannot be decoded, and its `ptr` is NULL. */
bool net_http_query_next(struct net_http_request *request, const char *name, peg_str *rest,
                         peg_str *ret_value);

/* Keeps the memory of the request also after its end. On its loop only. */
struct net_http_request *net_http_ref(struct net_http_request *request);
struct net_http_request *net_http_unref(struct net_http_request *request);

/* The client has authenticated: its connection counts for this principal. */
void net_http_authenticate(struct net_http_request *request, peg_str principal);

/* on_body is not called until it is resumed, and soon nothing more is read. */
void net_http_pause(struct net_http_request *request);
void net_http_resume(struct net_http_request *request);

/* ---- its answer ---------------------------------------------------------------------------- */

/* Names are lowercase; fields that frame the answer are the server's own. */
struct net_http_answer {
    int status;               /* 200 to 599 */
    const char *content_type; /* NULL: none */
    const struct net_http_field *fields;
    size_t n_fields;
};

enum { NET_HTTP_STREAM = -1 };

/* Begins an answer of `length` bytes, or of any number (NET_HTTP_STREAM); one without a body, as to
 * HEAD, is then whole. PEG_ECANCELED
 * (E_CALL_ENDED): the request has ended. PEG_ESTATE, PEG_EINVAL (E_HTTP_ANSWER). PEG_ENOMEM. */
peg_status net_http_begin(struct net_http_request *request, const struct net_http_answer *answer,
                          int64_t length, peg_error *reterr);
/* Queues bytes of the body; dropped where the answer has none, as that to HEAD. Fails as
 * net_http_begin(), and with PEG_ELIMIT (E_SEND_QUEUE_FULL) when far more waits than is writable. A
 * failure queues nothing. */
peg_status net_http_send(struct net_http_request *request, peg_str bytes, peg_error *reterr);
/* Less than NET_HTTP_HIGH_MARK waits to be sent; else on_writable reports when it is below
 * NET_HTTP_LOW_MARK. */
enum { NET_HTTP_HIGH_MARK = 64 << 10, NET_HTTP_LOW_MARK = 16 << 10 };
bool net_http_is_writable(const struct net_http_request *request);
/* The answer is whole. One that promised more is reset. */
void net_http_finish(struct net_http_request *request);
/* The client must not take what it has for the whole: ends the stream, or the connection. */
void net_http_reset(struct net_http_request *request);

/* A whole answer. If it cannot be sent the request is reset. Nothing happens if there is an answer
 * already. */
void net_http_reply(struct net_http_request *request, const struct net_http_answer *answer,
                    peg_str body);
/* The same with bytes that many answers share, and that are not copied. */
void net_http_reply_blob(struct net_http_request *request, const struct net_http_answer *answer,
                         struct peg__blob *body);
/* A status, and a sentence as plain text. */
void net_http_reply_text(struct net_http_request *request, int status, const char *fmt, ...)
    PEG_PRINTF(3, 4);

/* Server-sent events: begins the stream, with status 200; sends one. `event` and `id` may be NULL
 * and have no line breaks (PEG_EINVAL, E_HTTP_ANSWER); lines of `data` become lines of the event.
 */
peg_status net_http_begin_events(struct net_http_request *request, peg_error *reterr);
peg_status net_http_send_event(struct net_http_request *request, const char *event, const char *id,
                               peg_str data, peg_error *reterr);
/* A comment, which keeps proxies from ending a silent stream. */
peg_status net_http_send_comment(struct net_http_request *request, peg_error *reterr);

/* ---- a connection of HTTP/1.1 -------------------------------------------------------------- */

struct net_http_conn;

/* For the owner of the connection. */
struct net_http_conn_events {
    /* It holds more or less memory than before. May be NULL. */
    void (*on_memory)(void *user);
    /* net_http_authenticate() was called. May be NULL. */
    void (*on_authenticate)(void *user, peg_str principal);
    /* Once and last: the connection is gone when it returns. */
    void (*on_end)(void *user);
};

/* Takes the stream over, also on failure (it is then dropped), with the `first` bytes that were
 * read from it (at most NET_READ_BYTES, else PEG_ELIMIT). No event comes from within this call. */
peg_status net_http_conn_new(struct net_http_server *server, struct net_stream *stream,
                             const struct net_http_conn_events *events, void *user, peg_str first,
                             struct net_http_conn **ret_conn);
/* Ends it after the request that is being answered, or now: then on_end comes from within. */
void net_http_conn_leave(struct net_http_conn *conn);
/* Ends it now; its request ends (was_lost). No event for the owner comes any more. */
void net_http_conn_drop(struct net_http_conn *conn);
/* Bytes of input, output and the request that it holds. */
size_t net_http_conn_memory(const struct net_http_conn *conn);

#endif
