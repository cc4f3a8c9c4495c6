/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_TRANSPORT_H
#define PEG_ENGINE_TRANSPORT_TRANSPORT_H

/*
 * How bytes get to a vendor and back: one HTTP request under a context, server-sent events, when to
 * try again, and what must not be seen in errors.
 */

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/shared_symbols.h"
#include "pegboard/ctx.h"
#include "pegboard/engine.h"
#include "pegboard/http.h"

/* ---- HTTP ------------------------------------------------------------------------------- */

/*
 * The deadline and the cancellation of the context end a request at once, from whichever thread
 * they come. A transport carries it: http.c, the only file that knows curl, is in
 * libpegboard-engine, not in libpegboard.
 */

/* What came back so far. Plain data. */
struct peg__http_answer {
    long status;            /* 0: none came */
    int64_t retry_after_ms; /* -1: none. Seconds and dates are understood */
    char request_id[128];   /* x-request-id or request-id; "" if none */
    char content_type[128];
    bool is_over;  /* on_bytes sets it: nothing matters that comes after these bytes. The request
                    * ends well as soon as the server ends it, or soon after */
    bool was_sent; /* the server may have some of the request */
};

struct peg__http_request {
    const char *url;
    const char *headers; /* lines ended by LF */
    const char *method;  /* NULL: POST */
    peg_str body;        /* of POST, application/json */
    /* Never sent twice, not even when a kept connection turns out to be closed. */
    bool is_once;
    /* To no address of this machine or of a private network (E_ENGINE_ADDRESS), by no proxy. */
    bool only_public;
    int64_t connect_ms;
    int64_t idle_ms;  /* without a byte, either way; negative: for ever */
    int64_t total_ms; /* negative: for ever */
    size_t max_bytes; /* of the answer */
    /* Bytes of the body as they come, of every status. What it returns other than PEG_OK ends the
     * request and is returned. */
    peg_status (*on_bytes)(struct peg__http_answer *answer, peg_str bytes, void *user,
                           peg_error *reterr);
    /* Headers of the answer, before its bytes; may be NULL. */
    void (*on_header)(peg_str name, peg_str value, void *user);
    /* Between reads, and four times a second at least; it may take its time. May be NULL. */
    void (*on_step)(void *user);
    void *user;
};

/* Shared; any number of threads send at once. */
struct peg__transport {
    /* PEG_EIO (E_ENGINE_TRANSPORT, E_ENGINE_ADDRESS), PEG_ETIMEOUT (E_ENGINE_TIMEOUT), PEG_ELIMIT
     * (E_ENGINE_TOO_LARGE), PEG_ECANCELED and PEG_ETIMEOUT as peg_ctx_check(), PEG_ENOMEM, or what
     * on_bytes returned. An answer with any HTTP status is PEG_OK. *answer is filled as far as it
     * came in any case. */
    peg_status (*send)(void *self, peg_ctx *ctx, const struct peg__http_request *request,
                       struct peg__http_answer *answer, peg_error *reterr);
    void (*free)(void *self); /* may be NULL */
    void *self;
};

/* libcurl: HTTP/1.1 and HTTP/2, connections kept for the next request. PEG_ENOMEM, PEG_EIO. */
peg_status peg__http_new(struct peg__transport *ret_transport, peg_error *reterr);

/* What the host makes with peg_http_new() and hands to those who send: counted. */
struct peg_http {
    atomic_uint n_refs;
    struct peg__transport transport;
};

static inline peg_http *peg__http_ref(peg_http *http)
{
    peg__refs_take(&http->n_refs);
    return http;
}

static inline peg_http *peg__http_unref(peg_http *http)
{
    if (http && peg__refs_drop(&http->n_refs)) {
        if (http->transport.free)
            http->transport.free(http->transport.self);
        peg__free(http);
    }
    return NULL;
}

/* Of this machine, of a private or local network, or for several receivers at once? What is no
 * address of IPv4 or IPv6 is, too. */
bool peg__address_is_private(const struct sockaddr *address);

/* An engine over a transport, which it takes over if it succeeds. As peg_model_new(). */
PEG__SHARED peg_status peg__engine_new(const peg_model_config *config,
                                       const struct peg__transport *transport,
                                       peg_model **ret_engine, peg_error *reterr);

/* ---- server-sent events ------------------------------------------------------------------ */

/*
 * Bytes in, byte by byte if need be, and events out, no I/O. Lines end with LF, CR
 * or CRLF, also split between two reads; a byte order mark is passed over; comments and unknown
 * fields are ignored; data lines are joined by LF. An event that the end of the stream cuts off
 * before its blank line counts all the same: servers leave that line out.
 *
 * Owned.
 */

struct peg__sse {
    struct peg__buf line;
    struct peg__buf event; /* name; empty: "message" */
    struct peg__buf data;
    bool has_data;
    bool was_cr; /* the last byte was a CR: a LF belongs to it */
    bool is_past_start;
    /* What the stream said last, for those who take it up again. */
    struct peg__buf id; /* of the last whole event that had one; empty: none. Ids that are no
                         * header of HTTP are passed over */
    struct peg__buf next_id;
    bool has_next_id;
    int64_t retry_ms; /* -1: never */
};

/* name is "message" where none was given. Anything but PEG_OK ends feeding and is returned. Both
 * strings are the parser's own, valid during the call. */
typedef peg_status (*peg__sse_fn)(peg_str name, peg_str data, void *user, peg_error *reterr);

/* max_bytes: of one line, and of one event's data. */
PEG__SHARED void peg__sse_init(struct peg__sse *sse, size_t max_bytes);
PEG__SHARED void peg__sse_free(struct peg__sse *sse);
/* PEG_ELIMIT (E_ENGINE_TOO_LARGE), PEG_ENOMEM, or what fn returned. */
PEG__SHARED peg_status peg__sse_feed(struct peg__sse *sse, peg_str bytes, peg__sse_fn fn,
                                     void *user, peg_error *reterr);
/* The stream has ended. */
PEG__SHARED peg_status peg__sse_end(struct peg__sse *sse, peg__sse_fn fn, void *user,
                                    peg_error *reterr);

/* ---- retries ---------------------------------------------------------------------------- */

/* When a request is tried again, and how long to wait before. Pure: no clock, no randomness. */

struct peg__retry {
    int max_tries;
    int64_t backoff_ms;
    int64_t backoff_max_ms;
    uint64_t seed; /* of the +-10 %, so that clients that failed together do not return together */
};

/* A try that failed. */
struct peg__try {
    int n; /* from 1 */
    const struct peg__http_answer *answer;
    const char *code; /* of its error; "": only the HTTP status counts */
    bool has_content; /* something of the answer came: it is not tried again */
};

/* Milliseconds, or -1: give up. */
int64_t peg__retry_wait_ms(const struct peg__retry *retry, const struct peg__try *failed);

/* ---- secrets ---------------------------------------------------------------------------- */

/* What is not to be seen of a header "Name: value" or "Name: Bearer value": its value, or "" where
 * that is too short to be a key. Borrowed. */
peg_str peg__secret_in(peg_str header);

/* Every place of a text where the secret stands becomes "***"; so does a beginning of it at the
 * end of the text, where an error was cut. An empty secret is nowhere. */
void peg__secret_hide(peg_str secret, char *text);

#endif
