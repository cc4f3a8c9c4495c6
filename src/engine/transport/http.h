/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_HTTP_H
#define PEG_ENGINE_TRANSPORT_HTTP_H

/*
 * One HTTP request under a context: its deadline and its cancellation end it at once, from
 * whichever thread they come. Who carries it is a transport: engine.c asks one and knows no more.
 * The real one is http.c, the only file that knows curl; it is in libpegboard-engine, not in
 * libpegboard.
 */

#include "base/shared_symbols.h"
#include "pegboard/ctx.h"
#include "pegboard/engine.h"

/* What came back so far. Plain data. */
struct peg__http_answer {
    long status;            /* 0: none came */
    int64_t retry_after_ms; /* -1: not told. Seconds and dates are understood */
    char request_id[128];   /* x-request-id or request-id; "" if none */
    char content_type[128];
    bool is_over; /* on_bytes sets it: nothing matters that comes after these bytes. The request
                   * ends well as soon as the server ends it, or soon after */
};

struct peg__http_request {
    const char *url;
    const char *headers; /* lines ended by LF */
    peg_str body;        /* POST, application/json */
    int64_t connect_ms;
    int64_t idle_ms;  /* without a byte, either way; negative: for ever */
    int64_t total_ms; /* negative: for ever */
    size_t max_bytes; /* of the answer */
    /* Bytes of the body as they come, of every status. What it returns other than PEG_OK ends the
     * request and is returned. */
    peg_status (*on_bytes)(struct peg__http_answer *answer, peg_str bytes, void *user,
                           peg_error *reterr);
    void *user;
};

/* Shared; any number of threads send at once. */
struct peg__transport {
    /* PEG_EIO (E_ENGINE_TRANSPORT), PEG_ETIMEOUT (E_ENGINE_TIMEOUT), PEG_ELIMIT
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

/* An engine over a transport, which it takes over if it succeeds. As peg_engine_new(). */
PEG__SHARED peg_status peg__engine_new(const peg_engine_config *config,
                                       const struct peg__transport *transport,
                                       peg_engine **ret_engine, peg_error *reterr);

#endif
