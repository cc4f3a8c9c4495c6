/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A provider's life, and its signals:
 *
 *   SERVING -> DRAINING (stop) -> STOPPING (drain_ms, or stop again) -> ENDED
 *
 * It ends when no call is left and its streams are closed; STOPPING ends it after a grace whatever
 * is left. The phases change on the loop only.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"

static _Atomic(peg_provider *) signal_target;
/* Handlers that are running, perhaps on other threads: the target must outlive them. */
static atomic_uint n_handling;
static struct sigaction before_term;
static struct sigaction before_int;

static void on_signal(int number)
{
    const int kept = errno;
    peg_provider *prov;

    (void)number;
    atomic_fetch_add(&n_handling, 1);
    prov = atomic_load(&signal_target);
    if (prov)
        peg_provider_stop(prov);
    atomic_fetch_sub(&n_handling, 1);
    errno = kept;
}

/* PEG_ESTATE (E_PROVIDER): another provider has them. */
static peg_status catch_signals(peg_provider *prov, peg_error *reterr)
{
    peg_provider *none = NULL;
    struct sigaction action;

    if (!atomic_compare_exchange_strong(&signal_target, &none, prov))
        return peg__fail(reterr, PEG_ESTATE, "E_PROVIDER",
                         "another provider of this process handles signals: set handles_signals "
                         "for one of them, and stop the others yourself");
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, &before_term);
    sigaction(SIGINT, &action, &before_int);
    return PEG_OK;
}

static void release_signals(void)
{
    sigaction(SIGTERM, &before_term, NULL);
    sigaction(SIGINT, &before_int, NULL);
    atomic_store(&signal_target, NULL);
    while (atomic_load(&n_handling))
        sched_yield();
}

/* ---- the end: on the loop ---- */

static void on_end_posted(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, end));

    net_loop_disarm(prov->loop, &prov->drained);
    net_loop_disarm(prov->loop, &prov->quiet);
    net_loop_disarm(prov->loop, &prov->review);
    remote__prov_drop_streams(prov);
    prov->phase = REMOTE__PROV_ENDED;
    remote__prov_close_queue(prov);
    /* Their results go nowhere, and peg_provider_free() waits for them. */
    remote__prov_cancel_all(prov, "the provider ends");
    remote__prov_drop_calls(prov);
    pthread_mutex_lock(&prov->lock);
    prov->state.is_attached = false;
    prov->has_ended = true;
    pthread_cond_broadcast(&prov->ended);
    pthread_mutex_unlock(&prov->lock);
}

void remote__prov_end(peg_provider *prov, peg_status status, const peg_error *error)
{
    if (prov->is_ending)
        return;
    prov->is_ending = true;
    pthread_mutex_lock(&prov->lock);
    prov->status = status;
    if (error)
        prov->error = *error;
    pthread_mutex_unlock(&prov->lock);
    /* Not now: this may be an event of a stream, which must not be freed meanwhile. */
    prov->end.fn = on_end_posted;
    net_loop_post(prov->loop, &prov->end);
}

static bool is_any_open(const peg_provider *prov)
{
    for (const struct remote__prov_stream *s = prov->streams; s; s = s->next) {
        if (!s->is_closed)
            return true;
    }
    return false;
}

static bool may_calls_come(const peg_provider *prov)
{
    for (const struct remote__prov_stream *s = prov->streams; s; s = s->next) {
        if (!s->is_closed && !s->is_last_call_seen)
            return true;
    }
    return false;
}

static void on_quiet(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, quiet));

    if (!prov->calls.n)
        remote__prov_close_streams(prov);
}

void remote__prov_check_end(peg_provider *prov)
{
    const struct remote__prov_stream *current = remote__prov_current(prov);

    if (prov->phase == REMOTE__PROV_SERVING || prov->is_ending || prov->calls.n)
        return;
    if (!prov->streams || (current && !current->is_welcome)) {
        remote__prov_end(prov, PEG_OK, NULL);
        return;
    }
    if (!is_any_open(prov))
        return;
    if (!may_calls_come(prov)) {
        net_loop_disarm(prov->loop, &prov->quiet);
        remote__prov_close_streams(prov);
        return;
    }
    if (prov->quiet.is_armed)
        return;
    /* Calls that the gateway sent before it received the drain are returned until it sends Drained,
     * which earlier versions do not. */
    prov->quiet.fn = on_quiet;
    net_loop_arm(prov->loop, &prov->quiet,
                 net_loop_now_ns(prov->loop) + PEG_LIMIT_REMOTE_QUIET_MS * PEG_NS_PER_MS);
}

static void arm_drained(peg_provider *prov, void (*fn)(struct net_timer *timer), int64_t ms)
{
    prov->drained.fn = fn;
    net_loop_arm(prov->loop, &prov->drained, net_loop_now_ns(prov->loop) + ms * PEG_NS_PER_MS);
}

static void on_grace_over(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, drained));
    peg_error why;

    if (!prov->calls.n) {
        remote__prov_end(prov, PEG_OK, NULL);
        return;
    }
    peg__fail(&why, PEG_ETIMEOUT, "E_PROVIDER_DRAIN",
              "%zu call%s of toolset '%.64s' %s abandoned: raise drain_ms, or let handlers check "
              "peg_call_should_stop()",
              prov->calls.n, prov->calls.n == 1 ? "" : "s", prov->config.toolset,
              prov->calls.n == 1 ? "was" : "were");
    remote__prov_end(prov, PEG_ETIMEOUT, &why);
}

static void stop_calls(peg_provider *prov)
{
    prov->phase = REMOTE__PROV_STOPPING;
    remote__prov_cancel_all(prov, "the provider stops");
    arm_drained(prov, on_grace_over, PEG_LIMIT_CANCEL_GRACE_MS);
    remote__prov_check_end(prov);
}

static void on_drain_over(struct net_timer *timer)
{
    stop_calls((peg_provider *)((char *)timer - offsetof(peg_provider, drained)));
}

static void on_first_stop(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, stops[0]));

    if (prov->is_ending || prov->phase != REMOTE__PROV_SERVING)
        return;
    prov->phase = REMOTE__PROV_DRAINING;
    pthread_mutex_lock(&prov->lock);
    prov->state.is_draining = true;
    pthread_mutex_unlock(&prov->lock);
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_DRAINS});
    remote__prov_send_drain(prov);
    arm_drained(prov, on_drain_over, prov->config.drain_ms);
    remote__prov_check_end(prov);
}

static void on_second_stop(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, stops[1]));

    if (!prov->is_ending && prov->phase == REMOTE__PROV_DRAINING)
        stop_calls(prov);
}

void peg_provider_stop(peg_provider *prov)
{
    const unsigned n = atomic_fetch_add(&prov->n_stops, 1);

    if (n < 2)
        net_loop_post(prov->loop, &prov->stops[n]);
}

/* ---- its beginning ---- */

static void on_begin(struct net_message *message)
{
    remote__prov_attach((peg_provider *)((char *)message - offsetof(peg_provider, begin)));
}

static void on_refresh(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, refresh));

    atomic_store(&prov->is_refreshing, false);
    if (!prov->is_ending)
        remote__prov_offer(prov);
}

/* Many changes at once become one message, and so mostly one Offer. */
static void post_refresh(peg_provider *prov)
{
    if (!atomic_exchange(&prov->is_refreshing, true))
        net_loop_post(prov->loop, &prov->refresh);
}

static void on_registry_change(struct peg__registry_observer *observer)
{
    post_refresh((peg_provider *)((char *)observer - offsetof(peg_provider, observer)));
}

void peg_provider_refresh(peg_provider *prov)
{
    if (prov->is_started)
        post_refresh(prov);
}

peg_status peg_provider_describe(peg_provider *prov, const char *description, const char *version,
                                 const char *const *tags, peg_error *reterr)
{
    struct remote__prov_about *about = NULL;
    struct remote__prov_about *old;
    peg_status status = remote__prov_about_new(description, version, tags, &about, reterr);

    if (status)
        return status;
    pthread_mutex_lock(&prov->lock);
    old = prov->next_about;
    prov->next_about = about;
    pthread_mutex_unlock(&prov->lock);
    remote__prov_about_free(old);
    peg_provider_refresh(prov);
    return PEG_OK;
}

static peg_status make_provider_channel(peg_provider *prov, peg_error *reterr)
{
    const struct grpc_channel_options options = {
        .tls = prov->config.tls,
        .tls_host = prov->config.tls_host,
        .keepalive_ms = PEG_LIMIT_REMOTE_KEEPALIVE_MS,
        /* The provider's own backoff counts: it makes the channel connect at each try. */
        .backoff_ms = prov->config.backoff_ms,
        .max_backoff_ms = prov->config.max_backoff_ms,
        .user_agent = "pegboard-provider",
    };

    return grpc_channel_new(prov->loop, peg__str(prov->config.address), &options, &prov->channel,
                            reterr);
}

static peg_status set_up_provider(peg_provider *prov, const peg_provider_options *options,
                                  peg_error *reterr)
{
    char id[PEG_ID_HEX_TEXT];
    uint64_t seed;
    peg_status status = remote__prov_config_copy(&prov->config, prov->registry, options, reterr);

    if (!status)
        status = remote__prov_about_new(options->description, options->version, options->tags,
                                        &prov->about, reterr);
    if (status)
        return status;
    if (!peg__id_hex(id) || !peg__random(&seed, sizeof(seed)))
        return peg__fail_no_randomness(reterr);
    memcpy(prov->incarnation, id, sizeof(id));
    grpc_backoff_init(&prov->backoff, prov->config.backoff_ms, prov->config.max_backoff_ms, seed);
    status = net_loop_new(&prov->loop, reterr);
    if (status)
        return status;
    prov->link = remote__prov_link_new(prov->loop);
    return prov->link ? make_provider_channel(prov, reterr) : peg__fail_nomem(reterr);
}

peg_status peg_provider_new(peg_registry *registry, const peg_provider_options *options,
                            peg_provider **ret_provider, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_PROVIDER_OPTIONS_INIT, reterr);
    peg_provider *prov;
    peg_status status;

    if (!registry || !options)
        return peg__fail(reterr, PEG_EINVAL, "E_PROVIDER",
                         "a provider needs a registry and options with the name of its toolset");
    prov = peg__alloc_zero(1, sizeof(*prov));
    if (!prov)
        return peg__fail_nomem(reterr);
    prov->registry = peg_registry_ref(registry);
    prov->calls.max = (size_t)2 * PEG_LIMIT_REMOTE_CREDITS;
    prov->recent.max = PEG_LIMIT_REMOTE_RECENT;
    prov->keep_ms = PEG_LIMIT_REMOTE_KEPT_MS;
    prov->review.fn = remote__prov_review_kept;
    prov->stops[0].fn = on_first_stop;
    prov->stops[1].fn = on_second_stop;
    prov->begin.fn = on_begin;
    prov->refresh.fn = on_refresh;
    prov->observer.fn = on_registry_change;
    pthread_mutex_init(&prov->lock, NULL);
    remote__prov_events_init(&prov->events);
    pthread_cond_init(&prov->ended, NULL);
    pthread_cond_init(&prov->queue.changed, NULL);
    status = set_up_provider(prov, options, reterr);
    if (status) {
        peg_provider_free(prov);
        return status;
    }
    *ret_provider = prov;
    return PEG_OK;
}

peg_status peg_provider_start(peg_provider *prov, peg_error *reterr)
{
    peg_status status;

    if (prov->is_started)
        return peg__fail(reterr, PEG_ESTATE, "E_PROVIDER",
                         "the provider was already started: make another one");
    /* A wrong name fails here. Later the file may be missing for a while, and is retried. */
    status = remote__prov_check_token(prov, reterr);
    if (status)
        return status;
    status = remote__prov_start_workers(prov, reterr);
    if (!status)
        status = net_loop_start(prov->loop, reterr);
    if (status) {
        remote__prov_close_queue(prov);
        remote__prov_join_workers(prov);
        prov->queue.is_closed = false;
        return status;
    }
    prov->is_started = true;
    peg__registry_observe(prov->registry, &prov->observer);
    net_loop_post(prov->loop, &prov->begin);
    return PEG_OK;
}

/* ---- waiting ---- */

static peg_status await_end(peg_provider *prov, peg_error *reterr)
{
    peg_status status;

    pthread_mutex_lock(&prov->lock);
    while (!prov->has_ended)
        pthread_cond_wait(&prov->ended, &prov->lock);
    status = prov->status;
    if (status && reterr)
        *reterr = prov->error;
    pthread_mutex_unlock(&prov->lock);
    return status;
}

peg_status peg_provider_wait(peg_provider *prov, peg_error *reterr)
{
    peg_status status;

    if (!prov->is_started)
        return peg__fail(reterr, PEG_ESTATE, "E_PROVIDER",
                         "the provider was not started: call peg_provider_start() first");
    if (!prov->config.handles_signals)
        return await_end(prov, reterr);
    status = catch_signals(prov, reterr);
    if (status)
        return status;
    status = await_end(prov, reterr);
    release_signals();
    return status;
}

static peg_status serve_provider(peg_provider *prov, peg_error *reterr)
{
    peg_status status = PEG_OK;

    /* Before its threads, so that no signal is missed. */
    if (prov->config.handles_signals)
        status = catch_signals(prov, reterr);
    if (status)
        return status;
    status = peg_provider_start(prov, reterr);
    if (!status)
        status = await_end(prov, reterr);
    if (prov->config.handles_signals)
        release_signals();
    return status;
}

peg_status peg_provider_serve(peg_registry *registry, const peg_provider_options *options,
                              peg_error *reterr)
{
    peg_provider *prov = NULL;
    peg_status status = peg_provider_new(registry, options, &prov, reterr);

    if (prov)
        status = serve_provider(prov, reterr);
    peg_provider_free(prov);
    return status;
}

peg_provider_state peg_provider_info(peg_provider *prov)
{
    peg_provider_state state;

    pthread_mutex_lock(&prov->lock);
    state = prov->state;
    pthread_mutex_unlock(&prov->lock);
    return state;
}

/* ---- freeing ---- */

peg_provider *peg_provider_free(peg_provider *prov)
{
    if (!prov)
        return NULL;
    peg__registry_unobserve(prov->registry, &prov->observer);
    prov->is_ending |= !prov->is_started; /* an earlier stop has no effect */
    if (prov->is_started) {
        peg_provider_stop(prov);
        peg_provider_stop(prov);
        (void)await_end(prov, NULL); /* peg_provider_wait() has returned the status */
    }
    remote__prov_join_workers(prov);
    if (prov->link)
        remote__prov_link_cut(prov->link);
    grpc_channel_free(prov->channel); /* of one that was never started */
    net_loop_free(prov->loop);
    remote__prov_drop_calls(prov);
    remote__prov_link_unref(prov->link);
    remote__prov_config_free(&prov->config);
    remote__prov_about_free(prov->about);
    remote__prov_about_free(prov->next_about);
    peg_registry_unref(prov->registry);
    pthread_cond_destroy(&prov->queue.changed);
    pthread_cond_destroy(&prov->ended);
    remote__prov_events_destroy(&prov->events);
    pthread_mutex_destroy(&prov->lock);
    peg__free(prov);
    return NULL;
}
