/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a model:
 *
 *   peg_engine_infer -> peg__wire_write                 the request, once
 *                    -> ask, again while it is worth it
 *                         -> transport.send -> on_bytes -> on_event -> the wire's reader
 *                         -> read_rest                  what only the end tells
 *                         -> peg__reply_finish          blocks
 */

#include "engine/engine.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/transport/secret.h"
#include "engine/transport/sse.h"

/* What is asked, for all tries. */
struct asking {
    const peg_engine *engine;
    peg_dispatch *dispatch;
    peg_ctx *ctx;
    struct peg__names *names;
    struct peg__buf body;
};

enum form { FORM_UNKNOWN, FORM_STREAM, FORM_BODY };

/* One try. */
struct hearing {
    const struct asking *asking;
    const struct peg__wire *wire;
    struct peg__http_answer answer;
    struct peg__reply reply;
    struct peg__sse sse;
    struct peg__buf body; /* what is no stream, or an error */
    enum form form;
    bool is_end; /* the stream told its own end */
};

/* ---- what comes in --------------------------------------------------------------------- */

static bool is_good(long http_status)
{
    return http_status >= 200 && http_status < 300;
}

/* The provider's reader is done with an event or a body: what it returned, or what stuck. */
static peg_status reader_status(const struct hearing *h, peg_status status, peg_error *reterr)
{
    if (status || !h->reply.status)
        return status;
    if (reterr)
        *reterr = h->reply.error;
    return h->reply.status;
}

static peg_status on_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct hearing *h = user;

    if (h->is_end)
        return PEG_OK;
    return reader_status(h, h->wire->read_event(&h->reply, name, data, &h->is_end, reterr), reterr);
}

/* Some servers answer a request for a stream with the whole at once, and say so or not. */
static enum form form_of(const struct peg__http_answer *answer, peg_str bytes)
{
    size_t at = 0;

    if (strncasecmp(answer->content_type, "text/event-stream", 17) == 0)
        return FORM_STREAM;
    if (strncasecmp(answer->content_type, "application/json", 16) == 0)
        return FORM_BODY;
    while (at < bytes.len && strchr(" \t\r\n", bytes.ptr[at]))
        at++;
    if (at == bytes.len)
        return FORM_UNKNOWN;
    return bytes.ptr[at] == '{' || bytes.ptr[at] == '[' ? FORM_BODY : FORM_STREAM;
}

static peg_status keep_body(struct hearing *h, peg_str bytes, peg_error *reterr)
{
    peg__buf_str(&h->body, bytes);
    if (h->body.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (h->body.status)
        return peg__fail(reterr, PEG_ELIMIT, "E_ENGINE_TOO_LARGE",
                         "the answer has more than %zu bytes: raise max_reply_bytes, or ask for "
                         "less",
                         h->body.max);
    return PEG_OK;
}

/* Errors are cut: what they say first is what matters. */
static peg_status keep_error(struct hearing *h, peg_str bytes, peg_error *reterr)
{
    const size_t room = PEG_LIMIT_ENGINE_ERROR_BYTES - h->body.len;

    if (bytes.len > room)
        bytes.len = room;
    return keep_body(h, bytes, reterr);
}

static peg_status on_bytes(struct peg__http_answer *answer, peg_str bytes, void *user,
                           peg_error *reterr)
{
    struct hearing *h = user;
    peg_status status;

    if (!is_good(answer->status))
        return keep_error(h, bytes, reterr);
    if (h->form == FORM_UNKNOWN)
        h->form = form_of(answer, bytes);
    if (h->form == FORM_BODY)
        return keep_body(h, bytes, reterr);
    status = peg__sse_feed(&h->sse, bytes, on_event, h, reterr);
    answer->is_over = h->is_end;
    return status;
}

/* ---- what the end tells ----------------------------------------------------------------- */

static peg_status read_stream_end(struct hearing *h, peg_error *reterr)
{
    const peg_status status = peg__sse_end(&h->sse, on_event, h, reterr);

    if (status)
        return status;
    if (h->is_end || h->wire->is_whole(&h->reply))
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_ENGINE_TRANSPORT",
                     "the stream of %s ended before the answer did", h->reply.provider);
}

static peg_status read_rest(struct hearing *h, peg_error *reterr)
{
    if (!is_good(h->answer.status)) {
        if (h->answer.retry_after_ms < 0)
            h->answer.retry_after_ms = peg__wire_retry_ms(peg__buf_view(&h->body));
        return peg__wire_error(h->wire, h->answer.status, peg__buf_view(&h->body), reterr);
    }
    if (h->form == FORM_BODY)
        return reader_status(h, h->wire->read_body(&h->reply, peg__buf_view(&h->body), reterr),
                             reterr);
    return read_stream_end(h, reterr);
}

/* ---- one try ------------------------------------------------------------------------------ */

static void open_hearing(struct hearing *h, const struct asking *asking)
{
    const peg_engine *engine = asking->engine;
    const struct peg__reply_def def = {
        .turn = peg_dispatch_turn(asking->dispatch),
        .dispatch = asking->dispatch,
        .names = asking->names,
        .strict = engine->config.model.strict ? peg_dispatch_definitions(asking->dispatch) : NULL,
        .provider = engine->config.provider,
        .model = engine->config.model.model,
        .max_bytes = (size_t)engine->config.max_reply_bytes,
    };

    memset(h, 0, sizeof(*h));
    h->asking = asking;
    h->wire = engine->wire;
    h->body.max = (size_t)engine->config.max_reply_bytes;
    if (h->body.max < PEG_LIMIT_ENGINE_ERROR_BYTES)
        h->body.max = PEG_LIMIT_ENGINE_ERROR_BYTES;
    peg__reply_init(&h->reply, &def);
    peg__sse_init(&h->sse, (size_t)engine->config.max_reply_bytes);
}

static void close_hearing(struct hearing *h)
{
    peg__reply_free(&h->reply);
    peg__sse_free(&h->sse);
    peg__buf_free(&h->body);
}

static peg_status hear(struct hearing *h, peg_error *reterr)
{
    const peg_engine *engine = h->asking->engine;
    const struct peg__http_request request = {
        .url = engine->url.ptr,
        .headers = peg__buf_view(&engine->headers).ptr,
        .body = peg__buf_view(&h->asking->body),
        .connect_ms = engine->config.connect_ms,
        .idle_ms = engine->config.idle_ms,
        .total_ms = engine->config.total_ms,
        .max_bytes = (size_t)engine->config.max_reply_bytes,
        .on_bytes = on_bytes,
        .user = h,
    };
    peg_status status = engine->transport.send(engine->transport.self, h->asking->ctx, &request,
                                               &h->answer, reterr);

    if (!status)
        status = read_rest(h, reterr);
    peg__reply_set_request_id(&h->reply, peg__str(h->answer.request_id));
    return status;
}

/* Providers and proxies tell in an error what they were sent: the key must not get into logs. */
static void hide_secrets(const peg_engine *engine, peg_error *error)
{
    peg_str rest = peg__buf_view(&engine->headers);

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

        peg__secret_hide(peg__secret_in(peg__strn(rest.ptr, len)), error->message);
        rest = peg__str_from(rest, end ? len + 1 : len);
    }
}

/* Asks once. *ret_wait_ms: how long to wait before it is worth another try, or -1. */
static peg_status ask(const struct asking *asking, int n, int64_t *ret_wait_ms, peg_error *reterr)
{
    struct hearing h;
    peg_error why;
    peg_status status;

    open_hearing(&h, asking);
    status = hear(&h, &why);
    if (status)
        hide_secrets(asking->engine, &why);
    *ret_wait_ms = -1;
    if (!status) {
        status = peg__reply_finish(&h.reply, true, reterr);
        close_hearing(&h);
        return status;
    }
    *ret_wait_ms = peg__retry_wait_ms(
        &asking->engine->retry,
        &(struct peg__try){n, &h.answer, why.code, peg__reply_has_content(&h.reply)});
    /* What was told of is kept as far as it is text. Why it broke off matters more than what may
     * go wrong with that. */
    if (peg__reply_has_content(&h.reply))
        (void)peg__reply_finish(&h.reply, false, NULL);
    close_hearing(&h);
    if (reterr)
        *reterr = why;
    return status;
}

/* ---- all tries ------------------------------------------------------------------------------ */

static peg_status open_asking(struct asking *asking, peg_error *reterr)
{
    const peg_engine *engine = asking->engine;
    const peg_json *definitions = peg_dispatch_definitions(asking->dispatch);
    const peg_turn *turn = peg_dispatch_turn(asking->dispatch);
    const peg_definitions_options options = {.provider = engine->config.provider,
                                             .strict = engine->config.model.strict,
                                             .json_schema = engine->config.model.json_schema};
    struct peg__request request = {
        .options = &engine->config.model,
        .turn = turn,
        .definitions = definitions,
        .config = peg_dispatch_tool_config(asking->dispatch),
        .is_streaming = !engine->config.no_stream,
    };
    peg_status status = peg__names_new(definitions, turn, &options, &asking->names, reterr);

    if (status)
        return status;
    request.names = asking->names;
    return peg__wire_write(engine->wire, &request, &asking->body, reterr);
}

static void tell_retry(const struct asking *asking, int n, int64_t wait_ms, const peg_error *why)
{
    char words[sizeof(why->message) + 64];

    snprintf(words, sizeof(words), "try %d failed, again in %lld ms: %s", n, (long long)wait_ms,
             why->message);
    peg_dispatch_log(asking->dispatch, "warn", "engine.retry", words, NULL);
}

static peg_status ask_until_heard(const struct asking *asking, peg_error *reterr)
{
    for (int n = 1;; n++) {
        peg_error why;
        int64_t wait_ms;
        peg_status status = ask(asking, n, &wait_ms, &why);

        if (!status)
            return PEG_OK;
        if (wait_ms < 0) {
            if (reterr)
                *reterr = why;
            return status;
        }
        tell_retry(asking, n, wait_ms, &why);
        status = peg_ctx_wait(asking->ctx, wait_ms, reterr);
        if (status)
            return status;
    }
}

peg_status peg_engine_infer(peg_dispatch *dispatch, void *engine, peg_error *reterr)
{
    struct asking asking = {.engine = engine,
                            .dispatch = dispatch,
                            .ctx = peg_dispatch_ctx(dispatch),
                            .body = PEG__BUF(PEG_LIMIT_TEXT_BYTES)};
    peg_status status = open_asking(&asking, reterr);

    if (!status)
        status = ask_until_heard(&asking, reterr);
    peg__names_free(asking.names);
    peg__buf_free(&asking.body);
    return status;
}
