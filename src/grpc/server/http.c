/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests of HTTP/2 that are not gRPC go to the handlers of options.http, as those of HTTP/1.1 do.
 * Over TLS the client's library chooses the version, and most choose HTTP/2 where it is offered.
 * The request lies in the arena of its call; windows bound what waits in both directions.
 */

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"
#include "net/http/transport.h"

static struct grpc_call *call_of(const struct net_http_request *request)
{
    return ((const struct grpc__http *)request)->call;
}

/* ---- what a handler says ------------------------------------------------------------------- */

enum { DECIMAL = 20, OWN_FIELDS = 3 };

static peg_str write_number(char *text, uint64_t n)
{
    return peg__strn(text, (size_t)(peg__put_decimal(text, n) - text));
}

static peg_status begin_answer(struct net_http_request *request,
                               const struct net_http_answer *answer, int64_t length,
                               bool is_bodyless, peg_error *reterr)
{
    struct grpc_call *call = call_of(request);
    struct grpc_field *fields =
        peg__arena_alloc(&call->arena, (OWN_FIELDS + answer->n_fields) * sizeof(*fields));
    struct grpc_block block = {.fields = fields};
    char status[DECIMAL];
    char digits[DECIMAL];

    if (!fields)
        return peg__fail_nomem(reterr);
    fields[block.n++] =
        (struct grpc_field){PEG_LIT(":status"), write_number(status, (uint64_t)answer->status)};
    if (answer->content_type)
        fields[block.n++] =
            (struct grpc_field){PEG_LIT("content-type"), peg__str(answer->content_type)};
    if (length >= 0 && answer->status != 204 && answer->status != 304)
        fields[block.n++] =
            (struct grpc_field){PEG_LIT("content-length"), write_number(digits, (uint64_t)length)};
    for (size_t i = 0; i < answer->n_fields; i++)
        fields[block.n++] = (struct grpc_field){answer->fields[i].name, answer->fields[i].value};
    return grpc_stream_respond(&call->stream, &block, is_bodyless, reterr);
}

static peg_status send_bytes(struct net_http_request *request, peg_str bytes, peg_error *reterr)
{
    return grpc_stream_send_plain(&call_of(request)->stream, bytes, reterr);
}

static peg_status send_blob(struct net_http_request *request, struct peg__blob *blob,
                            peg_error *reterr)
{
    return grpc_stream_send_shared(&call_of(request)->stream, peg__strn("", 0), blob,
                                   peg__blob_str(blob), reterr);
}

static bool is_writable(const struct net_http_request *request)
{
    return grpc_stream_is_writable(&call_of(request)->stream);
}

/* A body that is short is read to its end: libcurl before 8 forgets an answer with RST_STREAM. */
static bool has_short_rest(const struct grpc_stream *stream)
{
    return stream->session && !stream->remote_ended && stream->content_length >= 0 &&
           stream->content_length <= PEG_LIMIT_NET_HTTP_DISCARD_BYTES;
}

static void on_slow_rest(struct net_timer *timer)
{
    struct grpc_call *call = peg__container_of(timer, struct grpc_call, deadline);

    grpc_stream_reset(&call->stream, GRPC_H2_NO_ERROR);
}

static void finish_answer(struct net_http_request *request)
{
    struct grpc_call *call = call_of(request);

    call->is_finished = true;
    if (has_short_rest(&call->stream)) {
        call->stream.awaits_end = true;
        call->deadline.fn = on_slow_rest;
        net_loop_arm(call->loop, &call->deadline,
                     peg__clock_after_ms(net_loop_now_ns(call->loop), PEG_LIMIT_NET_HTTP_BODY_MS));
    }
    if (!call->stream.local_ended)
        grpc_stream_end(&call->stream, NULL, NULL);
}

static void reset_answer(struct net_http_request *request)
{
    struct grpc_call *call = call_of(request);

    call->is_finished = true;
    grpc_stream_reset(&call->stream, GRPC_H2_INTERNAL_ERROR);
}

/* Bytes that waited would come from within a function of the handler. */
static void on_resume(struct net_later *later)
{
    struct grpc__http *http = peg__container_of(later, struct grpc__http, resume);

    if (!http->request.is_paused)
        grpc_stream_resume(&http->call->stream);
}

static void note_paused(struct net_http_request *request)
{
    struct grpc_call *call = call_of(request);

    if (request->is_paused) {
        grpc_stream_pause(&call->stream);
        return;
    }
    call->http->resume.fn = on_resume;
    net_loop_later(call->loop, &call->http->resume);
}

static void authenticate(struct net_http_request *request, peg_str principal)
{
    grpc__conn_authenticate(call_of(request)->conn, principal);
}

static const struct net_http_transport transport = {
    .begin = begin_answer,
    .send = send_bytes,
    .send_blob = send_blob,
    .is_writable = is_writable,
    .finish = finish_answer,
    .reset = reset_answer,
    .pause = note_paused,
    .authenticate = authenticate,
    .ref = grpc__call_ref_http,
    .unref = grpc__call_unref_http,
};

/* ---- a request ----------------------------------------------------------------------------- */

/* Fields of gRPC are read apart. Values of "...-bin" were decoded, and are not shown. */
static size_t copy_fields(const struct grpc_head *head, struct net_http_field *ret_fields)
{
    size_t n = 0;

    if (head->content_type.ptr)
        ret_fields[n++] = (struct net_http_field){PEG_LIT("content-type"), head->content_type};
    if (head->user_agent.ptr)
        ret_fields[n++] = (struct net_http_field){PEG_LIT("user-agent"), head->user_agent};
    for (size_t i = 0; i < head->metadata.n; i++) {
        const struct grpc_metadata_entry *entry = &head->metadata.entries[i];

        if (!grpc_metadata_is_binary(entry->key))
            ret_fields[n++] = (struct net_http_field){entry->key, entry->value};
    }
    return n;
}

/* The body that was gathered lives as long as the call. */
static void end_http(struct grpc_end_hook *hook)
{
    struct grpc__http *http = peg__container_of(hook, struct grpc__http, hook);
    struct grpc_call *call = http->call;

    net_loop_not_later(call->loop, &http->resume);
    call->taken = http->request.body.ptr;
    net_http_request_ended(&http->request, call->status.code != GRPC_OK);
}

/* NULL: no memory. */
static struct grpc__http *new_http(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;
    const struct net_stream *stream = call->conn->stream;
    const struct net_tls *tls = net_stream_tls(stream);
    const peg_str peer_name = tls ? net_tls_peer_name(tls) : peg__strn("", 0);
    struct grpc__http *http = peg__arena_alloc_zero(&call->arena, sizeof(*http));
    struct net_http_field *fields =
        peg__arena_alloc(&call->arena, (head->metadata.n + 2) * sizeof(*fields));
    const char *name = peg__arena_copy(&call->arena, peer_name);
    const char *peer = peg__arena_copy(&call->arena, peg__str(net_stream_peer(stream)));

    if (!http || !fields || !name || !peer)
        return NULL;
    http->call = call;
    http->hook.fn = end_http;
    http->request = (struct net_http_request){
        .transport = &transport,
        .method = head->method,
        .target = head->path,
        .host = head->authority,
        .fields = fields,
        .n_fields = copy_fields(head, fields),
        .peer = peer,
        .peer_name = peg__strn(name, peer_name.len),
        .is_local = net_stream_is_local(stream),
        .is_http2 = true,
        .loop = call->loop,
        .arena = &call->arena,
        .content_length = call->stream.content_length,
    };
    return http;
}

void grpc__http_begin(struct grpc_call *call)
{
    struct grpc__http *http;

    grpc__count(&call->server_loop->counts.n_pages, 1);
    call->is_page = true;
    call->stream.reader.is_plain = true;
    http = new_http(call);
    if (!http) {
        call->http_refusal = "503";
    } else if (http->request.n_fields > NET_HTTP_MAX_FIELDS) {
        call->http_refusal = "431";
    } else if (!net_http_is_target(http->request.target) ||
               !net_http_request_read(&http->request)) {
        call->http_refusal = "400";
    } else {
        call->http = http;
        net_http_request_start(call->server_loop->server->options.http, &http->request);
    }
}

void grpc__http_body(struct grpc_call *call, peg_str bytes)
{
    struct grpc__http *http = call->http;

    net_http_request_body(&http->request, bytes);
    if (http->request.body.capacity > http->kept && call->stream.session) {
        grpc_stream_keep(&call->stream, http->request.body.capacity - http->kept);
        http->kept = http->request.body.capacity;
    }
}

void grpc__http_body_end(struct grpc_call *call)
{
    net_http_request_body_end(&call->http->request);
    /* What the handler made of the body is in the call's arena. */
    if (call->stream.session)
        grpc__stream_measure(&call->stream);
}

void grpc__http_body_broke(struct grpc_call *call, const struct grpc_status *status)
{
    char why[256];

    snprintf(why, sizeof(why), "%.*s", PEG_ARG(status->message));
    net_http_request_body_broke(&call->http->request, 503, why);
}

void grpc__http_writable(struct grpc_call *call)
{
    net_http_request_writable(&call->http->request);
}
