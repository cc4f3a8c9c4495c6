/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/telemetry/metrics.h"

#include <pthread.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/node.h"
#include "gateway/telemetry/event_log.h"
#include "otlp/otlp.h"
#include "pegboard/clock.h"

/* Toolsets that are looked at in one round of the loop: below 0.1 ms. */
enum { LOOKED_AT_ONCE = 512 };

/* Of a loop. */
struct page_loop {
    struct gw_metrics_page *page;
    struct net_loop *loop;
    struct net_message wake;
    struct gw_page_waiter *waiters;
    bool is_waking;         /* those who ask meanwhile get */
    struct peg__blob *text; /* this; NULL: there was no memory */
    /* Under the lock. */
    bool has_waiters; /* it is to be woken */
    bool is_posted;   /* `wake` is on its way, with */
    struct peg__blob *posted;
};

/* Owned. What is not under the lock is loop 0's, and the worker's while it works. */
struct gw_metrics_page {
    struct gw_node *node;
    pthread_mutex_t lock;
    struct peg__blob *text; /* under the lock; NULL: there is none, or it is too old */
    bool is_making;         /* likewise */
    struct net_message make;
    struct net_later look;
    struct net_timer expiry;
    struct net_work write;
    bool is_stopped;
    /* What it is made from. */
    struct gw_snapshot *snapshot; /* a reference */
    struct gw_metrics_toolset *toolsets;
    size_t n_looked_at;
    struct gw_metrics_node now;
    struct peg__buf made; /* as peg__blob_take() wants it */
    _Atomic uint64_t n_made;
    unsigned n_loops;
    struct page_loop loops[];
};

static struct net_loop *home_of(const struct gw_metrics_page *page)
{
    return page->loops[0].loop;
}

/* ---- it is there ---- */

static void stop_waiting(struct page_loop *here, struct gw_page_waiter *waiter)
{
    waiter->is_waiting = false;
    PEG_LIST_REMOVE(here->waiters, waiter, next, prev);
}

static void on_page_wake(struct net_message *message)
{
    struct page_loop *here = peg__container_of(message, struct page_loop, wake);

    pthread_mutex_lock(&here->page->lock);
    here->text = here->posted;
    here->posted = NULL;
    here->is_posted = false;
    pthread_mutex_unlock(&here->page->lock);
    here->is_waking = true;
    while (here->waiters) {
        struct gw_page_waiter *waiter = here->waiters;

        stop_waiting(here, waiter);
        waiter->fn(waiter, here->text);
    }
    here->is_waking = false;
    here->text = peg__blob_unref(here->text);
}

static void on_expiry(struct net_timer *timer)
{
    struct gw_metrics_page *page = peg__container_of(timer, struct gw_metrics_page, expiry);

    pthread_mutex_lock(&page->lock);
    page->text = peg__blob_unref(page->text);
    pthread_mutex_unlock(&page->lock);
}

static void forget_sources(struct gw_metrics_page *page)
{
    page->snapshot = gw_snapshot_unref(page->snapshot);
    peg__free(page->toolsets);
    page->toolsets = NULL;
}

/* Who waits gets it, or hears that there is none; one that was made is kept for a while. */
static void finish_page(struct gw_metrics_page *page)
{
    struct peg__blob *text = peg__blob_take(&page->made); /* NULL if it has failed */

    peg__buf_free(&page->made);
    forget_sources(page);
    pthread_mutex_lock(&page->lock);
    page->is_making = false;
    for (unsigned i = 0; i < page->n_loops; i++) {
        struct page_loop *there = &page->loops[i];

        if (!there->has_waiters)
            continue;
        there->has_waiters = false;
        peg__blob_unref(there->posted);
        there->posted = peg__blob_ref(text);
        if (!there->is_posted)
            net_loop_post(there->loop, &there->wake);
        there->is_posted = true;
    }
    page->text = text;
    pthread_mutex_unlock(&page->lock);
    atomic_fetch_add_explicit(&page->n_made, 1, memory_order_relaxed);
    if (text && !page->is_stopped)
        net_loop_arm(
            home_of(page), &page->expiry,
            peg__clock_after_ms(net_loop_now_ns(home_of(page)), PEG_LIMIT_GATEWAY_METRICS_MS));
}

/* ---- making it ---- */

/* On a worker. */
static void write_page(struct net_work *work)
{
    struct gw_metrics_page *page = peg__container_of(work, struct gw_metrics_page, write);

    page->now.rss_bytes = gw_rss_bytes();
    page->now.heap_bytes = gw_heap_bytes();
    gw_metrics_write(page->node->metrics, &page->now, &page->made);
}

static void on_page_written(struct net_work *work, bool was_canceled)
{
    struct gw_metrics_page *page = peg__container_of(work, struct gw_metrics_page, write);

    if (was_canceled)
        peg__buf_free(&page->made);
    finish_page(page);
}

static void read_spans(const struct otlp_exporter *exporter, struct gw_metrics_node *ret_node)
{
    const struct otlp_counts counts = otlp_exporter_counts(exporter);

    ret_node->has_spans = exporter != NULL;
    ret_node->spans.n_exported = counts.n_exported;
    ret_node->spans.n_dropped = counts.n_dropped;
    ret_node->spans.n_failures = counts.n_failures;
}

static void read_node(const struct gw_node *node, struct gw_metrics_node *ret_node)
{
    struct grpc_server_counts counts = {0};

    if (node->server)
        grpc_server_counts(node->server, &counts);
    *ret_node = (struct gw_metrics_node){
        .version = peg_version(),
        .bus = node->bus_kind,
        .store = node->store_kind,
        .registry = peg__str(node->name),
        .now_ms = peg_clock_now_ms(peg_clock_system()),
        .started_ms = node->started_ms,
        .n_connections = counts.n_connections,
        .n_refused_connections = counts.n_refused_connections,
        .n_evicted_connections = counts.n_evicted_connections,
        .n_held_bytes = counts.n_held_bytes,
        .n_unauthenticated = node->auth ? gw_auth_n_refused(node->auth) : 0,
        .n_rpcs = counts.n_started,
        .n_running_rpcs = counts.n_calls,
        .n_loops = net_loops_len(node->loops),
        .n_log_lines_dropped = gw_event_log_n_dropped(node->log),
        .is_draining = atomic_load(&node->is_draining),
    };
    read_spans(node->tracer.exporter, ret_node);
    ret_node->has_redis = node->redis != NULL;
    if (node->redis)
        bus_redis_hub_stats(node->redis, &ret_node->redis);
    ret_node->direct.n_pings = atomic_load(&node->keeper_counts.n_pings);
    ret_node->direct.n_trims = atomic_load(&node->keeper_counts.n_trims);
    ret_node->direct.n_expiries = atomic_load(&node->keeper_counts.n_expiries);
    ret_node->direct.n_removed_fields = atomic_load(&node->keeper_counts.n_removed_fields);
    for (unsigned i = 0; i < ret_node->n_loops; i++)
        ret_node->n_wakes += net_loop_n_wakes(net_loops_at(node->loops, i));
}

static void read_toolset_state(struct gw_metrics_page *page, size_t i)
{
    const struct gw_toolset *toolset = page->snapshot->toolsets[i];
    const struct gw_health health = gw_presence_health(page->node->presences[0], toolset->name);

    page->toolsets[i] = (struct gw_metrics_toolset){
        .name = toolset->name,
        .owner = toolset->owner,
        .is_healthy = health.state == GW_HEALTHY,
        .last_pong_ms = health.last_pong_ms,
        .n_providers = health.n_providers,
        .n_draining = health.n_draining,
    };
}

static void start_writing(struct gw_metrics_page *page)
{
    read_node(page->node, &page->now);
    page->now.n_toolsets = page->n_looked_at;
    page->now.n_tools = page->snapshot ? page->snapshot->n_tools : 0;
    page->now.toolsets = page->toolsets;
    if (net_loop_work(home_of(page), &page->write)) {
        peg__buf_free(&page->made);
        finish_page(page);
    }
}

static void read_next_toolsets(struct net_later *later)
{
    struct gw_metrics_page *page = peg__container_of(later, struct gw_metrics_page, look);
    const size_t n = page->snapshot ? page->snapshot->n : 0;

    for (size_t i = 0; i < LOOKED_AT_ONCE && page->n_looked_at < n; i++)
        read_toolset_state(page, page->n_looked_at++);
    if (page->n_looked_at < n)
        net_loop_later(home_of(page), &page->look);
    else
        start_writing(page);
}

static void on_make(struct net_message *message)
{
    struct gw_metrics_page *page = peg__container_of(message, struct gw_metrics_page, make);
    const struct calls_loop *calls = page->node->calls[0];

    if (page->is_stopped)
        return;
    page->snapshot = gw_snapshot_ref(calls ? gw_router_of(calls)->snapshot : NULL);
    page->n_looked_at = 0;
    page->toolsets =
        peg__alloc((page->snapshot ? page->snapshot->n : 0) * sizeof(*page->toolsets) + 1);
    page->made = (struct peg__buf)PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);
    if (page->toolsets)
        peg__buf_repeat(&page->made, '\0', PEG__BLOB_CAPACITY);
    if (page->toolsets && !page->made.status)
        read_next_toolsets(&page->look);
    else
        finish_page(page);
}

/* ---- asking ---- */

void gw_metrics_page_ask(struct gw_metrics_page *page, unsigned number,
                         struct gw_page_waiter *waiter)
{
    struct page_loop *here = &page->loops[number];
    struct peg__blob *text;
    bool must_make = false;

    if (here->is_waking) {
        waiter->fn(waiter, here->text);
        return;
    }
    pthread_mutex_lock(&page->lock);
    text = peg__blob_ref(page->text);
    if (!text) {
        here->has_waiters = true;
        must_make = !page->is_making;
        page->is_making = true;
    }
    pthread_mutex_unlock(&page->lock);
    if (text) {
        waiter->fn(waiter, text);
        peg__blob_unref(text);
        return;
    }
    waiter->is_waiting = true;
    PEG_LIST_PUSH(here->waiters, waiter, next, prev);
    if (must_make)
        net_loop_post(home_of(page), &page->make);
}

void gw_metrics_page_leave(struct gw_metrics_page *page, unsigned number,
                           struct gw_page_waiter *waiter)
{
    if (waiter->is_waiting)
        stop_waiting(&page->loops[number], waiter);
}

uint64_t gw_metrics_page_n_made(const struct gw_metrics_page *page)
{
    return atomic_load_explicit(&page->n_made, memory_order_relaxed);
}

/* ---- its life ---- */

peg_status gw_metrics_page_new(struct gw_node *node, struct gw_metrics_page **ret_page,
                               peg_error *reterr)
{
    const unsigned n_loops = net_loops_len(node->loops);
    struct gw_metrics_page *page =
        peg__alloc_zero(1, sizeof(*page) + n_loops * sizeof(page->loops[0]));

    if (!page)
        return peg__fail_nomem(reterr);
    page->node = node;
    page->n_loops = n_loops;
    page->make.fn = on_make;
    page->look.fn = read_next_toolsets;
    page->expiry.fn = on_expiry;
    page->write.work = write_page;
    page->write.done = on_page_written;
    pthread_mutex_init(&page->lock, NULL);
    for (unsigned i = 0; i < n_loops; i++) {
        page->loops[i].page = page;
        page->loops[i].loop = net_loops_at(node->loops, i);
        page->loops[i].wake.fn = on_page_wake;
    }
    *ret_page = page;
    return PEG_OK;
}

static void stop_here(void *user)
{
    struct gw_metrics_page *page = user;

    page->is_stopped = true;
    net_loop_not_later(home_of(page), &page->look);
    net_loop_disarm(home_of(page), &page->expiry);
}

void gw_metrics_page_stop(struct gw_metrics_page *page)
{
    if (page)
        gw_on_loop(home_of(page), stop_here, page);
}

struct gw_metrics_page *gw_metrics_page_free(struct gw_metrics_page *page)
{
    if (!page)
        return NULL;
    forget_sources(page);
    peg__buf_free(&page->made);
    peg__blob_unref(page->text);
    pthread_mutex_destroy(&page->lock);
    peg__free(page);
    return NULL;
}
