/* SPDX-License-Identifier: Apache-2.0 */

/* One request, one answer: of one registry, or of several at once. */

#include "base/clock.h"
#include "base/error.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "remote/client/remote.h"

static peg_status fail_late(const struct remote__fan *fan, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ETIMEOUT, "E_TIMEOUT",
                     "the gateway at %s did not answer %s within %lld ms: set timeout_ms of the "
                     "client if it needs longer",
                     fan->registry->address, fan->method->name,
                     (long long)fan->registry->client->timeout_ms);
}

static peg_status keep_answer_bytes(struct remote__fan *fan, peg_str bytes,
                                    struct peg__arena *arena, peg_error *reterr)
{
    peg_str *copy = peg__arena_alloc(arena, sizeof(*copy));

    if (!copy)
        return peg__fail_nomem(reterr);
    copy->ptr = peg__arena_copy(arena, bytes);
    copy->len = bytes.len;
    fan->message = copy;
    return copy->ptr ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status unpack_answer(struct remote__fan *fan, peg_str bytes, struct peg__arena *arena,
                                peg_error *reterr)
{
    const ProtobufCMessage *message;
    peg_error why;
    peg_status status;

    if (!fan->method->output)
        return keep_answer_bytes(fan, bytes, arena, reterr);
    status = grpc_message_unpack(fan->method->output, arena, bytes, &message, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail_because(reterr, PEG_EHOST, "E_GATEWAY", &why,
                                 "what %s answers to %s cannot be read", fan->registry->address,
                                 fan->method->name);
    fan->message = message;
    return PEG_OK;
}

static void start_request(struct remote__fan *fan, peg_ctx *ctx)
{
    const peg_clock *clock = ctx ? peg_ctx_clock(ctx) : peg_clock_system();
    const int64_t ms = fan->registry->client->timeout_ms;

    fan->req = (struct remote__request){
        .registry = fan->registry, .method = fan->method, .request = fan->request};
    fan->until_ns = ms ? peg__clock_in_ms(clock, ms) : INT64_MAX;
    fan->message = NULL;
    fan->status = remote__request_start(&fan->req, &fan->error);
}

/* The answer is read as soon as it is there; the status of the call follows it. */
static peg_status read_fan_answer(struct remote__fan *fan, peg_ctx *ctx, struct peg__arena *arena,
                                  enum remote__received *ret_received)
{
    peg_status status = PEG_OK;
    peg_str bytes;

    while ((*ret_received = remote__request_next(&fan->req, ctx, fan->until_ns, &bytes)) ==
           REMOTE_MESSAGE) {
        if (!status)
            status = unpack_answer(fan, bytes, arena, &fan->error);
    }
    return status;
}

static void finish_request(struct remote__fan *fan, peg_ctx *ctx, struct peg__arena *arena)
{
    enum remote__received received;

    if (fan->status)
        return;
    fan->status = read_fan_answer(fan, ctx, arena, &received);
    remote__request_stop(&fan->req);
    if (fan->status)
        return;
    if (received == REMOTE_STOP)
        fan->status = remote__ctx_error(ctx, &fan->error);
    else if (received == REMOTE_TIME)
        fan->status = fail_late(fan, &fan->error);
    else
        fan->status = remote__request_error(&fan->req, &fan->error);
    if (!fan->status && !fan->message)
        fan->status = peg__fail(&fan->error, PEG_EHOST, "E_GATEWAY", "%s answers nothing to %s",
                                fan->registry->address, fan->method->name);
}

/* Is it worth a second try, and harmless? */
static bool may_ask_again(const struct remote__fan *fan)
{
    const struct remote__request *req = &fan->req;

    if (!fan->status || !req->is_started || req->failure)
        return false;
    if (remote__request_is_lost(req))
        return fan->is_repeatable && req->was_sent;
    return req->status.code == GRPC_UNAUTHENTICATED &&
           remote__registry_renew(fan->registry, req->authorization);
}

static void finish_all(struct remote__fan *fans, size_t n, peg_ctx *ctx, struct peg__arena *arena)
{
    for (size_t i = 0; i < n; i++)
        finish_request(&fans[i], ctx, arena);
    for (size_t i = 0; i < n; i++) {
        if (may_ask_again(&fans[i])) {
            remote__request_free(&fans[i].req);
            start_request(&fans[i], ctx);
            finish_request(&fans[i], ctx, arena);
        }
        remote__request_free(&fans[i].req);
    }
}

peg_status remote__fan_out(struct remote__fan *fans, size_t n, peg_ctx *ctx,
                           struct peg__arena *arena, peg_error *reterr)
{
    const peg_status status = ctx ? peg_ctx_check(ctx, reterr) : PEG_OK;

    if (status)
        return status;
    for (size_t i = 0; i < n; i++)
        start_request(&fans[i], ctx);
    finish_all(fans, n, ctx, arena);
    for (size_t i = 0; i < n; i++) {
        if (fans[i].status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        if (fans[i].status && ctx && peg_ctx_check(ctx, NULL))
            return peg_ctx_check(ctx, reterr);
    }
    return PEG_OK;
}

peg_status remote__unary(struct remote__fan *fan, peg_ctx *ctx, struct peg__arena *arena,
                         peg_error *reterr)
{
    const peg_status status = ctx ? peg_ctx_check(ctx, reterr) : PEG_OK;

    if (status)
        return status;
    start_request(fan, ctx);
    finish_all(fan, 1, ctx, arena);
    if (fan->status && reterr)
        *reterr = fan->error;
    return fan->status;
}
