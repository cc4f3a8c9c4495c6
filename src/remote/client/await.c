/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that were started: waiting for their end, asking for it.
 *
 * The gateway waits until a little before the requested time, and then reports that the call runs;
 * we wait for that answer as for any other. Then our wait is over too, or others follow. A gateway
 * that does not wait, because it cannot ask its registry, is asked again as one that was lost: a
 * few times, with growing pauses. If we wait without end, then until it waits, or our context
 * stops.
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "remote/client/remote.h"

enum {
    /* One wait, when there is no end to them. */
    WAIT_MS = 10 * 60 * 1000,
    /* Without a wait the gateway still needs a moment to check the call. */
    LEAST_MS = 200,
    /* For the answer, of a client that has no timeout. */
    ANSWER_MS = 10000,
    /* Between asks of a gateway that does not wait; with what chance adds to it, shorter than the
     * gateway expects one back who was lost (PEG_LIMIT_GATEWAY_REATTACH_MS). */
    FIRST_PAUSE_MS = 500,
    MAX_PAUSE_MS = 5000,
    /* A connection that held for so long was well. */
    WELL_MS = 30000,
};

struct awaiting {
    struct remote__registry *registry;
    peg_ctx *ctx; /* or NULL */
    const char *call_id;
    int64_t until_ns;  /* INT64_MAX: the end of the call */
    int64_t answer_ns; /* when the gateway must have answered; INT64_MAX: never */
    int64_t asked_ns;  /* when the gateway was asked last, */
    int64_t asked_ms;  /* and how long it should wait */
    struct grpc_backoff backoff;
    unsigned n_lost;
    bool has_new_token;
    char epoch[REMOTE_EPOCH]; /* the gateway's when the wait began, as far as it is known */
    peg_remote_result *result;
};

static int64_t awaiting_now_ns(const struct awaiting *a)
{
    return peg_clock_mono_ns(a->ctx ? peg_ctx_clock(a->ctx) : peg_clock_system());
}

static int64_t wait_of(const struct awaiting *a)
{
    int64_t left_ms;

    if (a->until_ns == INT64_MAX)
        return WAIT_MS;
    left_ms = (a->until_ns - awaiting_now_ns(a)) / PEG_NS_PER_MS;
    if (left_ms < LEAST_MS)
        return LEAST_MS;
    return left_ms < WAIT_MS ? left_ms : WAIT_MS;
}

static bool is_wait_over(const struct awaiting *a)
{
    return awaiting_now_ns(a) >= a->until_ns;
}

/* A gateway that waits does so until just before the requested time. */
static bool has_waited(const struct awaiting *a)
{
    return (awaiting_now_ns(a) - a->asked_ns) / PEG_NS_PER_MS >= a->asked_ms / 2;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* Not longer than we wait in all. */
static peg_status pause_before_next(struct awaiting *a, peg_error *reterr)
{
    const int64_t end_ns =
        peg__clock_after_ms(awaiting_now_ns(a), grpc_backoff_take_ms(&a->backoff));
    struct peg__wait wait;
    enum peg__woke woke;

    peg__wait_init(&wait);
    pthread_mutex_lock(&wait.lock);
    woke = peg__wait_for(&wait, a->ctx, end_ns < a->until_ns ? end_ns : a->until_ns, never, NULL);
    pthread_mutex_unlock(&wait.lock);
    peg__wait_destroy(&wait);
    return woke == PEG__WOKE_STOP ? remote__ctx_error(a->ctx, reterr) : PEG_OK;
}

/* Were more asks lost in a row than a wait with an end has? */
static bool has_lost_many(const struct awaiting *a)
{
    return a->n_lost > a->registry->client->max_reasks;
}

/* One more was lost. A wait without end goes on, unless max_reasks is 0: then the first loss ends
 * it. */
static bool may_lose(struct awaiting *a)
{
    a->n_lost++;
    return !has_lost_many(a) || (a->until_ns == INT64_MAX && a->registry->client->max_reasks > 0);
}

/* The gateway has waited, and the call runs. What broke before that is of another wait. */
static void wait_anew(struct awaiting *a)
{
    a->n_lost = 0;
    a->has_new_token = false;
    grpc_backoff_reset(&a->backoff);
}

static bool may_repeat_await(struct awaiting *a, const struct remote__request *req)
{
    if (req->failure)
        return false;
    if ((awaiting_now_ns(a) - a->asked_ns) / PEG_NS_PER_MS >= WELL_MS)
        wait_anew(a);
    if (remote__request_is_lost(req))
        return may_lose(a);
    if (req->status.code != GRPC_UNAUTHENTICATED || a->has_new_token)
        return false;
    a->has_new_token = true;
    return remote__registry_renew(a->registry, req->authorization);
}

static peg_status fail_unasked(const struct remote__request *req, peg_error *reterr)
{
    const peg_status status = remote__request_error(req, reterr);

    return status ? status
                  : peg__fail(reterr, PEG_EHOST, "E_GATEWAY", "%s answers nothing to AwaitTool",
                              req->registry->address);
}

static peg_status fail_unwaited(const struct awaiting *a, const peg_remote_result *late,
                                peg_error *reterr)
{
    return peg__fail_because(reterr, PEG_EIO, "E_SERVICE_UNAVAILABLE", &late->error,
                             "the gateway at %s does not wait, and the call may go on: await it "
                             "again later",
                             a->registry->address);
}

static peg_status wait_again(struct awaiting *a, const peg_remote_result *late, peg_error *reterr)
{
    if (has_waited(a)) {
        wait_anew(a);
        return PEG_OK;
    }
    if (!may_lose(a))
        return fail_unwaited(a, late, reterr);
    return pause_before_next(a, reterr);
}

/* A gateway that has waited says that the call runs; one that has not does not know. */
static peg_status end_late_await(struct awaiting *a, const peg_remote_result *late, bool *ret_again,
                                 peg_error *reterr)
{
    *ret_again = !is_wait_over(a);
    if (*ret_again)
        return wait_again(a, late, reterr);
    if (!has_waited(a))
        return fail_unwaited(a, late, reterr);
    return remote__result_running(a->call_id, &a->result, reterr);
}

/* A terminal of the call is a result; that the gateway could not be asked is an error. */
static peg_status end_without_answer(struct awaiting *a, const struct remote__request *req,
                                     bool *ret_again, peg_error *reterr)
{
    PEG_CLEANUP(peg_remote_result_freep) peg_remote_result *result = NULL;
    peg_status status;

    *ret_again = may_repeat_await(a, req);
    if (*ret_again) /* a few times at once: mostly the gateway is there again */
        return has_lost_many(a) ? pause_before_next(a, reterr) : PEG_OK;
    if (req->failure || req->status.details.len == 0)
        return fail_unasked(req, reterr);
    status = remote__result_of_end(req, false, &result, reterr);
    if (!status)
        status = remote__result_set_call_id(result, a->call_id, reterr);
    if (status)
        return status;
    if (result->outcome == PEG_REMOTE_REFUSED)
        return peg_remote_result_check(result, reterr);
    if (remote__result_is_late_wait(result, req))
        return end_late_await(a, result, ret_again, reterr);
    a->result = result;
    result = NULL;
    return PEG_OK;
}

static peg_status read_await_answer(struct awaiting *a, struct remote__request *req, peg_ctx *ctx,
                                    int64_t until_ns, enum remote__received *ret_received,
                                    peg_error *reterr)
{
    peg_status status = PEG_OK;
    peg_str bytes;

    while (!status &&
           (*ret_received = remote__request_next(req, ctx, until_ns, &bytes)) == REMOTE_MESSAGE) {
        a->result = peg_remote_result_free(a->result);
        status = remote__result_read(bytes, &a->result, reterr);
    }
    return status;
}

static peg_status end_wait(struct awaiting *a, const struct remote__request *req,
                           enum remote__received received, bool *ret_again, peg_error *reterr)
{
    *ret_again = false;
    if (a->result)
        return PEG_OK;
    if (received == REMOTE_STOP)
        return remote__ctx_error(a->ctx, reterr);
    if (received == REMOTE_TIME)
        return peg__fail(reterr, PEG_ETIMEOUT, "E_TIMEOUT",
                         "the gateway at %s does not say whether the call has ended: await it "
                         "again later",
                         a->registry->address);
    return end_without_answer(a, req, ret_again, reterr);
}

static peg_status wait_once(struct awaiting *a, bool *ret_again, peg_error *reterr)
{
    Pegboard__V1__AwaitToolRequest request = PEGBOARD__V1__AWAIT_TOOL_REQUEST__INIT;
    struct remote__request req = {
        .registry = a->registry,
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_AWAIT_TOOL],
        .request = &request.base,
        .waits_for_ready = a->n_lost > 0,
        .asked_epoch = *a->epoch ? a->epoch : NULL,
    };
    enum remote__received received = REMOTE_OVER;
    enum remote__received rest;
    peg_status status;

    request.call_id = peg__unconst(a->call_id);
    a->asked_ns = awaiting_now_ns(a);
    a->asked_ms = wait_of(a);
    request.timeout_ms = a->asked_ms;
    status = remote__request_start(&req, reterr);
    if (!status)
        status = read_await_answer(a, &req, a->ctx, a->answer_ns, &received, reterr);
    remote__request_stop(&req);
    /* An answer may have come while it was stopped. */
    if (!status && received != REMOTE_OVER)
        status = read_await_answer(a, &req, NULL, INT64_MAX, &rest, reterr);
    if (!status)
        status = end_wait(a, &req, received, ret_again, reterr);
    remote__request_free(&req);
    return status;
}

static peg_status check_call(const peg_remote_call *call, peg_error *reterr)
{
    if (!call || !call->call_id || !*call->call_id)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "call_id is empty: peg_client_start() tells it");
    return PEG_OK;
}

peg_status peg_client_await(peg_client *client, peg_ctx *ctx, const peg_remote_call *call,
                            int64_t wait_ms, peg_remote_result **ret_result, peg_error *reterr)
{
    struct awaiting a = {.ctx = ctx, .until_ns = INT64_MAX, .answer_ns = INT64_MAX};
    bool again = true;
    peg_status status;

    if ((status = check_call(call, reterr)) ||
        (status = remote__registry_only(client, call->registry, &a.registry, reterr)) ||
        (status = ctx ? peg_ctx_check(ctx, reterr) : PEG_OK))
        return status;
    a.call_id = call->call_id;
    /* The call is older than that: a gateway that has another memory by now has lost it. */
    remote__registry_epoch(a.registry, a.epoch);
    if (wait_ms >= 0) {
        a.until_ns = peg__clock_after_ms(awaiting_now_ns(&a), wait_ms);
        a.answer_ns = peg__clock_after_ms(
            a.until_ns, LEAST_MS + (client->timeout_ms ? client->timeout_ms : ANSWER_MS));
    }
    grpc_backoff_init(&a.backoff, FIRST_PAUSE_MS, MAX_PAUSE_MS, (uint64_t)awaiting_now_ns(&a));
    while (again && !status)
        status = wait_once(&a, &again, reterr);
    if (!status)
        status = remote__result_set_registry(a.result, a.registry, reterr);
    if (status)
        peg_remote_result_free(a.result);
    else
        *ret_result = a.result;
    return status;
}

peg_status peg_client_cancel(peg_client *client, peg_ctx *ctx, const peg_remote_call *call,
                             peg_error *reterr)
{
    Pegboard__V1__CancelToolRequest request = PEGBOARD__V1__CANCEL_TOOL_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_CANCEL_TOOL],
        .request = &request.base,
        .is_repeatable = true, /* said twice, it is the same */
    };
    struct peg__arena arena = {0};
    peg_status status;

    if ((status = check_call(call, reterr)) ||
        (status = remote__registry_only(client, call->registry, &fan.registry, reterr)))
        return status;
    request.call_id = peg__unconst(call->call_id);
    status = remote__unary(&fan, ctx, &arena, reterr);
    peg__arena_free(&arena);
    return status;
}
