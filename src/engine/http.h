/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_HTTP_H
#define PEG_ENGINE_HTTP_H

/*
 * One HTTP request over libcurl, on the caller's thread, under a context: its deadline and its
 * cancellation end it at once, from whichever thread they come. The only file that knows curl is
 * http.c; it is in libpegboard-engine, not in libpegboard.
 */

#include "base/buf.h"
#include "pegboard/ctx.h"

struct peg__http_request {
    const char *url;
    const char *headers; /* lines ended by LF */
    peg_str body;        /* POST, application/json */
    int64_t connect_ms;
    int64_t idle_ms;  /* negative: for ever */
    int64_t total_ms; /* negative: for ever */
    size_t max_bytes; /* of the answer */
    /* Bytes of a 2xx answer as they come, NULL: they are collected in the answer. What it returns
     * other than PEG_OK ends the request and is returned. */
    peg_status (*on_bytes)(peg_str bytes, void *user, peg_error *reterr);
    void *user;
};

/* Owned. */
struct peg__http_answer {
    long status;            /* 0: none came */
    struct peg__buf body;   /* of what was not 2xx, and where on_bytes is NULL */
    int64_t retry_after_ms; /* -1: not told. Seconds and dates are understood */
    char request_id[128];   /* x-request-id or request-id; "" if none */
    char content_type[128];
};

/* PEG_EIO (E_ENGINE_TRANSPORT, curl's words), PEG_ETIMEOUT (E_ENGINE_TIMEOUT), PEG_ELIMIT
 * (E_ENGINE_TOO_LARGE), PEG_ECANCELED and PEG_ETIMEOUT as peg_ctx_check(), PEG_ENOMEM. An answer
 * with any HTTP status is PEG_OK. The answer is filled as far as it came in any case; free it. */
peg_status peg__http_send(peg_ctx *ctx, const struct peg__http_request *request,
                          struct peg__http_answer *answer, peg_error *reterr);
void peg__http_answer_free(struct peg__http_answer *answer);

#endif
