/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a model:
 *
 *   infer -> peg__wire_write                 the request, once
 *                    -> try_once, again while it is worth it
 *                         -> transport.send -> take_bytes -> on_event -> the vendor's reader
 *                         -> read_rest                  what only the end shows
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
#include "engine/reply.h"

/* One inference, for all tries. */
struct inference {
    const peg_model *engine;
    peg_dispatch *dispatch;
    peg_ctx *ctx;
    struct peg__names *names;
    struct peg__buf body;
};

enum form { FORM_UNKNOWN, FORM_STREAM, FORM_BODY };

/* One try. */
struct attempt {
    const struct inference *inference;
    const struct peg__wire *wire;
    struct peg__http_answer answer;
    struct peg__reply reply;
    struct peg__sse sse;
    struct peg__buf body; /* what is no stream, or an error */
    enum form form;
    bool is_end; /* the stream had its own end */
};

/* ---- what comes in --------------------------------------------------------------------- */

static bool is_good(long http_status)
{
    return http_status >= 200 && http_status < 300;
}

static peg_status on_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct attempt *t = user;

    if (t->is_end)
        return PEG_OK;
    return peg__wire_read_event(t->wire, &t->reply, name, data, &t->is_end, reterr);
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

static peg_status keep_body(struct attempt *t, peg_str bytes, peg_error *reterr)
{
    peg__buf_str(&t->body, bytes);
    if (t->body.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (t->body.status)
        return peg__fail(reterr, PEG_ELIMIT, "E_ENGINE_TOO_LARGE",
                         "the answer has more than %zu bytes: raise max_reply_bytes, or ask for "
                         "less",
                         t->body.max);
    return PEG_OK;
}

/* Errors are cut: what they say first is what matters. */
static peg_status keep_error(struct attempt *t, peg_str bytes, peg_error *reterr)
{
    const size_t left = PEG_LIMIT_ENGINE_ERROR_BYTES - t->body.len;

    if (bytes.len > left)
        bytes.len = left;
    return keep_body(t, bytes, reterr);
}

static peg_status take_bytes(struct peg__http_answer *answer, peg_str bytes, void *user,
                             peg_error *reterr)
{
    struct attempt *t = user;
    peg_status status;

    if (!is_good(answer->status))
        return keep_error(t, bytes, reterr);
    if (t->form == FORM_UNKNOWN)
        t->form = form_of(answer, bytes);
    if (t->form == FORM_BODY)
        return keep_body(t, bytes, reterr);
    status = peg__sse_feed(&t->sse, bytes, on_event, t, reterr);
    answer->is_over = t->is_end;
    return status;
}

/* ---- what the end shows ---------------------------------------------------------------- */

static peg_status read_stream_end(struct attempt *t, peg_error *reterr)
{
    const peg_status status = peg__sse_end(&t->sse, on_event, t, reterr);

    if (status)
        return status;
    if (t->is_end || t->reply.is_ended)
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_ENGINE_TRANSPORT",
                     "the stream of %s ended before the answer did", t->reply.vendor);
}

static peg_status read_rest(struct attempt *t, peg_error *reterr)
{
    if (!is_good(t->answer.status)) {
        if (t->answer.retry_after_ms < 0)
            t->answer.retry_after_ms = peg__wire_retry_ms(peg__buf_view(&t->body));
        return peg__wire_error(t->wire, t->answer.status, peg__buf_view(&t->body), reterr);
    }
    if (t->form == FORM_BODY)
        return peg__wire_read_body(t->wire, &t->reply, peg__buf_view(&t->body), reterr);
    return read_stream_end(t, reterr);
}

/* ---- one try ------------------------------------------------------------------------------ */

static void open_attempt(struct attempt *t, const struct inference *inference)
{
    const peg_model *engine = inference->engine;
    const struct peg__reply_def def = {
        .turn = peg_dispatch_turn(inference->dispatch),
        .dispatch = inference->dispatch,
        .names = inference->names,
        .strict =
            engine->config.model.strict ? peg_dispatch_definitions(inference->dispatch) : NULL,
        .vendor = engine->config.vendor,
        .model = engine->config.model.model,
        .max_bytes = (size_t)engine->config.max_reply_bytes,
    };

    memset(t, 0, sizeof(*t));
    t->inference = inference;
    t->wire = engine->wire;
    t->body.max = (size_t)engine->config.max_reply_bytes;
    if (t->body.max < PEG_LIMIT_ENGINE_ERROR_BYTES)
        t->body.max = PEG_LIMIT_ENGINE_ERROR_BYTES;
    peg__reply_init(&t->reply, &def);
    peg__sse_init(&t->sse, (size_t)engine->config.max_reply_bytes);
}

static void close_attempt(struct attempt *t)
{
    peg__reply_free(&t->reply);
    peg__sse_free(&t->sse);
    peg__buf_free(&t->body);
}

static peg_status send_once(struct attempt *t, peg_error *reterr)
{
    const peg_model *engine = t->inference->engine;
    const struct peg__http_request request = {
        .url = engine->url.ptr,
        .headers = peg__buf_view(&engine->headers).ptr,
        .body = peg__buf_view(&t->inference->body),
        .connect_ms = engine->config.connect_ms,
        .idle_ms = engine->config.idle_ms,
        .total_ms = engine->config.total_ms,
        .max_bytes = (size_t)engine->config.max_reply_bytes,
        .on_bytes = take_bytes,
        .user = t,
    };
    peg_status status = engine->transport.send(engine->transport.self, t->inference->ctx, &request,
                                               &t->answer, reterr);

    if (!status)
        status = read_rest(t, reterr);
    peg__reply_set(&t->reply, &t->reply.request_id, peg__str(t->answer.request_id));
    return status;
}

/* Vendors and proxies repeat in an error what they were sent: the key must not get into logs. */
static void hide_secrets(const peg_model *engine, peg_error *error)
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
static peg_status try_once(const struct inference *inference, int n, int64_t *ret_wait_ms,
                           peg_error *reterr)
{
    struct attempt t;
    peg_error why;
    peg_status status;

    open_attempt(&t, inference);
    status = send_once(&t, &why);
    if (status)
        hide_secrets(inference->engine, &why);
    *ret_wait_ms = -1;
    if (!status) {
        status = peg__reply_finish(&t.reply, true, reterr);
        close_attempt(&t);
        return status;
    }
    *ret_wait_ms = peg__retry_wait_ms(
        &inference->engine->retry,
        &(struct peg__try){n, &t.answer, why.code, peg__reply_has_content(&t.reply)});
    /* What was reported is kept as far as it is text. Why it broke off matters more than what may
     * go wrong with that. */
    if (peg__reply_has_content(&t.reply))
        (void)peg__reply_finish(&t.reply, false, NULL);
    close_attempt(&t);
    if (reterr)
        *reterr = why;
    return status;
}

/* ---- all tries ------------------------------------------------------------------------------ */

static peg_status open_inference(struct inference *inference, peg_error *reterr)
{
    const peg_model *engine = inference->engine;
    const peg_json *definitions = peg_dispatch_definitions(inference->dispatch);
    const peg_turn *turn = peg_dispatch_turn(inference->dispatch);
    const peg_definitions_options options = {
        PEG_DEFINITIONS_OPTIONS_INIT, .vendor = engine->config.vendor,
        .strict = engine->config.model.strict, .json_schema = engine->config.model.json_schema};
    struct peg__request request = {
        .options = &engine->config.model,
        .turn = turn,
        .definitions = definitions,
        .config = peg_dispatch_tool_config(inference->dispatch),
        .is_streaming = !engine->config.no_stream,
    };
    peg_status status = peg__names_new(definitions, turn, &options, &inference->names, reterr);

    if (status)
        return status;
    request.names = inference->names;
    return peg__wire_write(engine->wire, &request, &inference->body, reterr);
}

static void log_retry(const struct inference *inference, int n, int64_t wait_ms,
                      const peg_error *why)
{
    char message[sizeof(why->message) + 64];

    snprintf(message, sizeof(message), "try %d failed, again in %lld ms: %s", n, (long long)wait_ms,
             why->message);
    peg_dispatch_log(inference->dispatch, "warn", "engine.retry", message, NULL);
}

static peg_status try_until_answered(const struct inference *inference, peg_error *reterr)
{
    for (int n = 1;; n++) {
        peg_error why;
        int64_t wait_ms;
        peg_status status = try_once(inference, n, &wait_ms, &why);

        if (!status)
            return PEG_OK;
        if (wait_ms < 0) {
            if (reterr)
                *reterr = why;
            return status;
        }
        log_retry(inference, n, wait_ms, &why);
        status = peg_ctx_wait(inference->ctx, wait_ms, reterr);
        if (status)
            return status;
    }
}

static peg_status infer(peg_dispatch *dispatch, void *engine, peg_error *reterr)
{
    struct inference inference = {.engine = engine,
                                  .dispatch = dispatch,
                                  .ctx = peg_dispatch_ctx(dispatch),
                                  .body = PEG__BUF(PEG_LIMIT_TEXT_BYTES)};
    peg_status status = open_inference(&inference, reterr);

    if (!status)
        status = try_until_answered(&inference, reterr);
    peg__names_free(inference.names);
    peg__buf_free(&inference.body);
    return status;
}

peg_engine peg_model_engine(peg_model *model)
{
    return (peg_engine){infer, model};
}
