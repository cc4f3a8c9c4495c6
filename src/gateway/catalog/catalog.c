/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a catalog: it begins and ends on a thread that is none of the loops', and happens on
 * the first of them. */

#include "gateway/catalog/catalog.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "gateway/search/search.h"

struct gw_catalog *catalog_ref(struct gw_catalog *catalog)
{
    peg__refs_take(&catalog->n_refs);
    return catalog;
}

struct gw_catalog *catalog_unref(struct gw_catalog *catalog)
{
    if (!catalog || !peg__refs_drop(&catalog->n_refs))
        return NULL;
    record_free_all(catalog);
    catalog_snapshot_free(catalog);
    peg__quota_destroy(&catalog->n_toolsets);
    peg__quota_destroy(&catalog->n_records);
    peg__quota_destroy(&catalog->n_bytes);
    pthread_mutex_destroy(&catalog->lock);
    pthread_cond_destroy(&catalog->moved);
    peg__free(catalog->desks);
    peg__free(catalog);
    return NULL;
}

void catalog_signal(struct gw_catalog *catalog, bool *flag)
{
    pthread_mutex_lock(&catalog->lock);
    *flag = true;
    pthread_cond_broadcast(&catalog->moved);
    pthread_mutex_unlock(&catalog->lock);
}

static void await(struct gw_catalog *catalog, const bool *flag)
{
    pthread_mutex_lock(&catalog->lock);
    while (!*flag)
        pthread_cond_wait(&catalog->moved, &catalog->lock);
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- when there was no memory ------------------------------------------------------------------
 */

static void do_again(struct net_timer *timer)
{
    struct gw_catalog *catalog = peg__container_of(timer, struct gw_catalog, again);

    if (catalog->must_watch_again) {
        catalog->must_watch_again = false;
        catalog_map_watch(catalog);
    }
    if (catalog->is_told)
        catalog_map_repair_all(catalog);
    change_run_queue(catalog);
    catalog_publish(catalog);
}

void catalog_try_again(struct gw_catalog *catalog, bool must_watch)
{
    catalog->must_watch_again = catalog->must_watch_again || must_watch;
    if (!catalog->again.is_armed)
        bus_arm(catalog->bus, &catalog->again,
                bus_now_ns(catalog->bus) + GW_CATALOG_AGAIN_MS * PEG_NS_PER_MS);
}

/* ---- the start ---------------------------------------------------------------------------------
 */

static void publish_now(struct net_later *later)
{
    struct gw_catalog *catalog = peg__container_of(later, struct gw_catalog, later);

    /* What is still being written comes with its own snapshot. */
    if (!catalog->current)
        catalog_publish(catalog);
}

static void start(struct net_message *message)
{
    struct gw_catalog *catalog = peg__container_of(message, struct gw_catalog, message);

    catalog_map_init(catalog);
    catalog_map_watch(catalog);
}

static void init(struct gw_catalog *catalog)
{
    atomic_init(&catalog->n_refs, 1);
    pthread_mutex_init(&catalog->lock, NULL);
    pthread_cond_init(&catalog->moved, NULL);
    catalog->records = (struct peg__map)PEG__MAP(PEG_LIMIT_GATEWAY_RECORDS);
    catalog->later.fn = publish_now;
    catalog->again.fn = do_again;
    change_init(catalog);
}

static peg_status make_quota(struct peg__quota *quota, size_t max, bool has_shares)
{
    return peg__quota_init(quota,
                           &(struct peg__quota_limits){.max = max, .has_shares = has_shares});
}

static peg_status make_quotas(struct gw_catalog *catalog, bool has_shares)
{
    peg_status status = make_quota(&catalog->n_toolsets, PEG_LIMIT_GATEWAY_TOOLSETS, has_shares);

    if (!status)
        status = make_quota(&catalog->n_records, PEG_LIMIT_GATEWAY_RECORDS, has_shares);
    if (!status)
        status = make_quota(&catalog->n_bytes, PEG_LIMIT_BUS_MAP_BYTES, has_shares);
    catalog->secret = peg__hash_key_new();
    catalog->has_principals = has_shares;
    return status;
}

peg_status gw_catalog_new(const struct gw_catalog_options *options, struct gw_catalog **ret_catalog,
                          peg_error *reterr)
{
    const unsigned n = net_loops_len(options->loops);
    struct gw_catalog *catalog = peg__alloc_zero(1, sizeof(*catalog));
    peg_status status;

    if (!catalog)
        return peg__fail_nomem(reterr);
    init(catalog);
    catalog->loops = options->loops;
    catalog->home = net_loops_at(options->loops, 0);
    catalog->bus = options->home_bus;
    catalog->store = *options->store;
    catalog->events = *options->events;
    catalog->desks = peg__alloc_zero(n, sizeof(*catalog->desks));
    catalog->index = gw_search_index_new(options->language);
    if (!catalog->desks || !catalog->index || make_quotas(catalog, options->has_principals)) {
        catalog_unref(catalog);
        return peg__fail_nomem(reterr);
    }
    memcpy(catalog->desks, options->desks, n * sizeof(*catalog->desks));
    status = record_read_store(catalog, reterr);
    if (status) {
        catalog_unref(catalog);
        return status;
    }
    catalog->message.fn = start;
    net_loop_post(catalog->home, &catalog->message);
    await(catalog, &catalog->is_started);
    *ret_catalog = catalog;
    return PEG_OK;
}

/* ---- the end -----------------------------------------------------------------------------------
 */

void catalog_check_stopped(struct gw_catalog *catalog)
{
    if (catalog->is_stopping && !catalog->current && !catalog->merge && !catalog->is_stopped)
        catalog_signal(catalog, &catalog->is_stopped);
}

/* What a worker is at is waited for; an answer of the bus is not. */
static void stop(struct net_message *message)
{
    struct gw_catalog *catalog = peg__container_of(message, struct gw_catalog, message);
    struct gw_change *change = catalog->current;

    catalog->is_stopping = true;
    bus_map_unwatch(catalog->bus, BUS_MAP_TOOLSETS, &catalog->watch);
    bus_disarm(catalog->bus, &catalog->again);
    bus_disarm(catalog->bus, &catalog->purge);
    net_loop_not_later(catalog->home, &catalog->later);
    if (change && !catalog->is_working) {
        bus_forget_wait(catalog->bus, &catalog->wait);
        catalog->current = NULL;
        change_queue(catalog, change);
    }
    change_cancel_all(catalog);
    catalog_publish(catalog);
    catalog_check_stopped(catalog);
}

struct gw_catalog *gw_catalog_free(struct gw_catalog *catalog)
{
    if (!catalog)
        return NULL;
    catalog->message.fn = stop;
    net_loop_post(catalog->home, &catalog->message);
    await(catalog, &catalog->is_stopped);
    return catalog_unref(catalog);
}
