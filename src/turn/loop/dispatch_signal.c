/* SPDX-License-Identifier: Apache-2.0 */

/* The functions for executors and middlewares: how a dispatch ends, its subscribers, reports
 * while it works, and what it asks of the storage. */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "turn/loop/loop.h"
#include "turn/store/store.h"
#include "turn/turn.h"

struct peg_subscription {
    peg_status (*fn)(void *user);
    void *user;
    void (*user_free)(void *user); /* NULL if not owned */
    struct peg_subscription *next;
};

/* ---- signals -------------------------------------------------------------------- */

bool peg_dispatch_is_signalled(const peg_dispatch *dispatch)
{
    return dispatch->signal != PEG__SIGNAL_NONE;
}

bool peg_dispatch_is_acked(const peg_dispatch *dispatch)
{
    return dispatch->signal == PEG__SIGNAL_ACK;
}

const peg_error *peg_dispatch_nack_error(const peg_dispatch *dispatch)
{
    return dispatch->signal == PEG__SIGNAL_NACK ? &dispatch->nack_error : NULL;
}

bool peg__dispatch_is_over(const peg_dispatch *dispatch)
{
    return peg_dispatch_is_signalled(dispatch) || peg__dispatch_is_stopped(dispatch);
}

static peg_status refuse_second(const peg_dispatch *dispatch, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                     "dispatch %s was already ended by %s; ask peg_dispatch_is_signalled() first",
                     dispatch->id, peg_dispatch_is_acked(dispatch) ? "ack" : "nack");
}

/* A subscriber may end its own or another's subscription: those only lose their fn. */
static void notify_ack(peg_dispatch *dispatch)
{
    for (struct peg_subscription *s = dispatch->subscriptions; s; s = s->next) {
        const peg_status status = s->fn ? s->fn(s->user) : PEG_OK;

        if (status)
            peg__log(PEG_LOG_WARN, "E_CALLBACK",
                     "a subscriber to the ack of dispatch %s failed: %s", dispatch->id,
                     peg_status_name(status));
    }
}

peg_status peg_dispatch_ack(peg_dispatch *dispatch, peg_error *reterr)
{
    if (peg_dispatch_is_signalled(dispatch))
        return refuse_second(dispatch, reterr);
    dispatch->signal = PEG__SIGNAL_ACK;
    notify_ack(dispatch);
    return PEG_OK;
}

peg_status peg_dispatch_nack(peg_dispatch *dispatch, const peg_error *error, peg_error *reterr)
{
    if (peg_dispatch_is_signalled(dispatch))
        return refuse_second(dispatch, reterr);
    dispatch->signal = PEG__SIGNAL_NACK;
    if (error) /* perhaps put together by hand, with half of it missing */
        peg__host_failed(error->status ? error->status : PEG_EHOST, error, "E_NACK",
                         "what nacked the dispatch", &dispatch->nack_error);
    else
        peg__fail(&dispatch->nack_error, PEG_EHOST, "E_NACK",
                  "the dispatch was nacked in iteration %u without a reason", dispatch->iteration);
    return PEG_OK;
}

void peg_dispatch_abort(peg_dispatch *dispatch, const char *reason)
{
    peg_cancel_fire(dispatch->cancel, reason);
}

/* ---- subscriptions -------------------------------------------------------------- */

static peg_status add_subscription(peg_dispatch *dispatch, const struct peg_subscription *what,
                                   peg_subscription **ret_subscription, peg_error *reterr)
{
    struct peg_subscription *subscription = peg__alloc(sizeof(*subscription));

    if (!subscription)
        return peg__fail_nomem(reterr);
    *subscription = *what;
    subscription->next = NULL;
    *dispatch->last_subscription = subscription;
    dispatch->last_subscription = &subscription->next;
    if (ret_subscription)
        *ret_subscription = subscription;
    return PEG_OK;
}

peg_status peg_dispatch_on_ack(peg_dispatch *dispatch, peg_status (*fn)(void *user), void *user,
                               peg_subscription **ret_subscription, peg_error *reterr)
{
    const struct peg_subscription what = {.fn = fn, .user = user};

    return add_subscription(dispatch, &what, ret_subscription, reterr);
}

void peg_subscription_end(peg_subscription *subscription)
{
    if (subscription)
        subscription->fn = NULL;
}

void peg__dispatch_end_subscriptions(peg_dispatch *dispatch)
{
    struct peg_subscription *s = dispatch->subscriptions;

    while (s) {
        struct peg_subscription *next = s->next;

        if (s->user_free)
            s->user_free(s->user);
        peg__free(s);
        s = next;
    }
    dispatch->subscriptions = NULL;
}

static peg_status prune_registry(void *user)
{
    peg_registry_prune_ephemeral(user);
    return PEG_OK;
}

static void unref_registry(void *user)
{
    peg_registry_unref(user);
}

peg_status peg_registry_bind(peg_registry *registry, peg_dispatch *dispatch,
                             peg_subscription **ret_subscription, peg_error *reterr)
{
    const struct peg_subscription what = {
        .fn = prune_registry, .user = registry, .user_free = unref_registry};
    const peg_status status = add_subscription(dispatch, &what, ret_subscription, reterr);

    if (!status)
        peg_registry_ref(registry);
    return status;
}

peg_status peg_dispatch_report_message(peg_dispatch *dispatch, peg_str id, peg_str delta,
                                       bool is_complete, peg_error *reterr)
{
    const struct peg__stream_part part = {id, delta, is_complete};

    return peg__streams_notify(&dispatch->streams, dispatch->ctx, PEG_EVENT_MESSAGE, &part, reterr);
}

peg_status peg_dispatch_report_thought(peg_dispatch *dispatch, peg_str id, peg_str delta,
                                       bool is_complete, peg_error *reterr)
{
    const struct peg__stream_part part = {id, delta, is_complete};

    return peg__streams_notify(&dispatch->streams, dispatch->ctx, PEG_EVENT_THOUGHT, &part, reterr);
}

peg_status peg_dispatch_report_tool_call(peg_dispatch *dispatch, peg_str call_id, peg_str tool,
                                         peg_str args, const peg_record *record, peg_error *reterr)
{
    const struct peg__call_part part = {
        .call_id = call_id, .tool = tool, .args = args, .record = record};

    return peg__streams_notify_call(&dispatch->streams, dispatch->ctx, &part, reterr);
}

/* Where a host masks arguments, they are not shown while they come in either. */
peg_status peg_dispatch_report_args(peg_dispatch *dispatch, peg_str call_id, peg_str tool,
                                    peg_str delta, peg_error *reterr)
{
    const peg_run_hooks *hooks = dispatch->loop->call.hooks;

    if (hooks && hooks->mask_arguments)
        return PEG_OK;
    return peg__streams_notify_args(&dispatch->streams, dispatch->ctx, call_id, tool, delta,
                                    reterr);
}

void peg_dispatch_log(peg_dispatch *dispatch, const char *level, const char *kind,
                      const char *message, const peg_json *payload)
{
    peg_event event = {.kind = PEG_EVENT_LOG};

    event.u.log = (peg_log_event){
        .level = level, .kind = peg_cstr(kind), .message = peg_cstr(message), .payload = payload};
    peg_ctx_emit(dispatch->ctx, &event);
}

void peg_dispatch_report_stats(peg_dispatch *dispatch, const peg_json *stats)
{
    peg_event event = {.kind = PEG_EVENT_STATS};

    event.u.stats = stats;
    peg_ctx_emit(dispatch->ctx, &event);
}

peg_status peg_dispatch_fetch(peg_dispatch *dispatch, unsigned kinds, peg_turn **ret_turn,
                              peg_error *reterr)
{
    return peg__storage_fetch(dispatch->turn, kinds, ret_turn, reterr);
}

peg_status peg_dispatch_store_bytes(peg_dispatch *dispatch, const char *what, peg_str id,
                                    peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    return peg__storage_store_bytes(dispatch->turn, what, id, bytes, ret_reader, reterr);
}
