/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A provider's life, and its signals:
 *
 *   SERVING -> DRAINING (stop) -> STOPPING (drain_ms, or stop again) -> ENDED
 *
 * While it is paused it serves with no stream, once its calls have ended.
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
    prov->transport->drop(prov);
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

void remote__prov_check_end(peg_provider *prov)
{
    const bool leaves = prov->phase != REMOTE__PROV_SERVING || prov->is_paused;

    if (leaves && !prov->is_ending && !prov->calls.n)
        prov->transport->close(prov);
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
    prov->transport->drain(prov);
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

/* ---- pauses ---- */

static void on_pause(struct net_message *message)
{
    peg_provider *prov = peg__container_of(message, peg_provider, pause);
    bool wants_pause;

    atomic_store(&prov->is_pausing, false);
    wants_pause = atomic_load(&prov->wants_pause);
    if (prov->is_ending || prov->phase != REMOTE__PROV_SERVING || !prov->transport->pause ||
        wants_pause == prov->is_paused)
        return;
    prov->is_paused = wants_pause;
    prov->transport->pause(prov);
    remote__prov_check_end(prov);
}

static void post_pause(peg_provider *prov, bool wants_pause)
{
    atomic_store(&prov->wants_pause, wants_pause);
    if (!atomic_exchange(&prov->is_pausing, true))
        net_loop_post(prov->loop, &prov->pause);
}

void peg_provider_pause(peg_provider *prov)
{
    post_pause(prov, true);
}

void peg_provider_resume(peg_provider *prov)
{
    post_pause(prov, false);
}

/* ---- its beginning ---- */

static void on_begin(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, begin));

    prov->transport->begin(prov);
}

static void on_refresh(struct net_message *message)
{
    peg_provider *prov = (peg_provider *)((char *)message - offsetof(peg_provider, refresh));

    atomic_store(&prov->is_refreshing, false);
    if (!prov->is_ending)
        prov->transport->offer(prov);
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
        /* So that the providers of a toolset spread over the nodes of a cluster. */
        .prefers_one = true,
        .begins_anywhere = true,
        .user_agent = "pegboard-provider",
    };

    return grpc_channel_new(prov->loop, peg__str(prov->config.address), &options, &prov->channel,
                            reterr);
}

static peg_status open_otlp(peg_provider *prov, const peg_provider_options *options,
                            peg_error *reterr)
{
    if (!options->otlp_endpoint)
        return PEG_OK;
    return otlp_exporter_new(&(struct otlp_options){.endpoint = options->otlp_endpoint,
                                                    .sample = options->otlp_sample,
                                                    .service = prov->config.toolset,
                                                    .instance = prov->incarnation},
                             &prov->otlp, reterr);
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
    status = open_otlp(prov, options, reterr);
    if (!status)
        status = net_loop_new(&prov->loop, reterr);
    if (status)
        return status;
    prov->link = remote__prov_link_new(prov->loop);
    return prov->link ? make_provider_channel(prov, reterr) : peg__fail_nomem(reterr);
}

peg_status remote__prov_new(peg_registry *registry, const peg_provider_options *options,
                            const struct remote__prov_transport *transport,
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
    prov->transport = transport;
    prov->registry = peg_registry_ref(registry);
    prov->calls.max = (size_t)2 * PEG_LIMIT_REMOTE_CREDITS;
    prov->recent.max = PEG_LIMIT_REMOTE_RECENT;
    prov->keep_ms = PEG_LIMIT_REMOTE_KEPT_MS;
    prov->review.fn = remote__prov_review_kept;
    prov->stops[0].fn = on_first_stop;
    prov->stops[1].fn = on_second_stop;
    prov->begin.fn = on_begin;
    prov->refresh.fn = on_refresh;
    prov->pause.fn = on_pause;
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

peg_status peg_provider_new(peg_registry *registry, const peg_provider_options *options,
                            peg_provider **ret_provider, peg_error *reterr)
{
    return remote__prov_new(registry, options, &remote__prov_attached, ret_provider, reterr);
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

static peg_status serve_caught(peg_provider *prov, peg_error *reterr)
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

peg_status remote__prov_serve(peg_provider *prov, peg_error *reterr)
{
    const peg_status status = serve_caught(prov, reterr);

    peg_provider_free(prov);
    return status;
}

peg_status peg_provider_serve(peg_registry *registry, const peg_provider_options *options,
                              peg_error *reterr)
{
    peg_provider *prov = NULL;
    const peg_status status = peg_provider_new(registry, options, &prov, reterr);

    return prov ? remote__prov_serve(prov, reterr) : status;
}

void remote__prov_set_attached(peg_provider *prov, bool is_attached)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.is_attached = is_attached;
    prov->state.n_attached += is_attached;
    pthread_mutex_unlock(&prov->lock);
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
    otlp_exporter_free(prov->otlp);
    if (prov->free_state)
        prov->free_state(prov->transport_state);
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
