/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A catalog: its snapshots and how they get to the loops, the bus's map of toolsets, and its life,
 * which begins and ends on a thread that is none of the loops' and happens on the first of them.
 *
 * The map is the truth where there are several nodes; each node's store is what it is made of again
 * when it was lost. The greatest revision wins: what the map has that is older than what is known
 * is overwritten, and what it has that the store lacks is written there.
 */

#include "gateway/catalog/catalog.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "gateway/search/search.h"
#include "wire/wire.h"

/* ---- snapshots ---- */

struct gw_snapshot *gw_snapshot_ref(struct gw_snapshot *snapshot)
{
    if (snapshot)
        peg__refs_take(&snapshot->n_refs);
    return snapshot;
}

struct gw_snapshot *gw_snapshot_unref(struct gw_snapshot *snapshot)
{
    if (!snapshot || !peg__refs_drop(&snapshot->n_refs))
        return NULL;
    for (size_t i = 0; i < snapshot->n; i++)
        gw_toolset_unref(snapshot->toolsets[i]);
    gw_search_index_unref(snapshot->index);
    peg__free(snapshot);
    return NULL;
}

size_t gw_snapshot_behind(const struct gw_snapshot *snapshot, peg_str name)
{
    size_t low = 0;
    size_t high = snapshot->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (peg__str_compare(snapshot->toolsets[middle]->name, name) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct gw_toolset *gw_snapshot_find(const struct gw_snapshot *snapshot, peg_str name)
{
    const size_t behind = gw_snapshot_behind(snapshot, name);
    struct gw_toolset *toolset = behind > 0 ? snapshot->toolsets[behind - 1] : NULL;

    return toolset && peg__str_eq(toolset->name, name) ? toolset : NULL;
}

static void forget_snapshot(struct gw_catalog *catalog)
{
    catalog->last = gw_snapshot_unref(catalog->last);
    catalog->index = gw_search_index_unref(catalog->index);
}

static void signal_flag(struct gw_catalog *catalog, bool *flag)
{
    pthread_mutex_lock(&catalog->lock);
    *flag = true;
    pthread_cond_broadcast(&catalog->moved);
    pthread_mutex_unlock(&catalog->lock);
}

static void publish_later(struct gw_catalog *catalog)
{
    if (catalog->is_dirty && !catalog->is_stopping)
        net_loop_later(catalog->home, &catalog->later);
}

/* ---- making them ---- */

/* Parts of an index that a worker puts together. */
struct gw_merge {
    struct net_work work; /* first */
    struct gw_catalog *catalog;
    struct gw_search_index *index; /* a reference */
    unsigned first;
    unsigned end;
    struct gw_segment *merged; /* NULL: no memory */
};

static struct gw_toolsets toolsets_of(const struct gw_catalog *catalog)
{
    return (struct gw_toolsets){.list = catalog->toolsets, .n = catalog->n};
}

static struct gw_search_index *next_index(const struct gw_catalog *catalog)
{
    const struct gw_toolsets before = {
        .list = catalog->last ? catalog->last->toolsets : NULL,
        .n = catalog->last ? catalog->last->n : 0,
    };

    return gw_search_index_next(catalog->index, catalog->merge ? catalog->merge->end : 0, before,
                                toolsets_of(catalog));
}

static struct gw_snapshot *make_snapshot(struct gw_catalog *catalog)
{
    struct gw_snapshot *snapshot =
        peg__alloc_zero(1, sizeof(*snapshot) + catalog->n * sizeof(struct gw_toolset *));
    struct gw_search_index *index = next_index(catalog);
    struct gw_toolset **toolsets;

    if (!snapshot || !index) {
        peg__free(snapshot);
        gw_search_index_unref(index);
        return NULL;
    }
    toolsets = (struct gw_toolset **)(void *)(snapshot + 1);
    atomic_init(&snapshot->n_refs, 1);
    snapshot->number = catalog->last ? catalog->last->number + 1 : 1;
    snapshot->toolsets = toolsets;
    snapshot->n = catalog->n;
    snapshot->index = index;
    for (size_t i = 0; i < catalog->n; i++) {
        toolsets[i] = gw_toolset_ref(catalog->toolsets[i]);
        snapshot->n_tools += toolsets[i]->n_tools;
    }
    return snapshot;
}

/* On a worker. */
static void merge_parts(struct net_work *work)
{
    struct gw_merge *merge = (struct gw_merge *)work;

    merge->merged = gw_search_index_merge(merge->index, merge->first, merge->end);
}

/* The index becomes that of the next snapshot; without memory it stays as it was. */
static void on_merged(struct net_work *work, bool was_canceled)
{
    struct gw_merge *merge = (struct gw_merge *)work;
    struct gw_catalog *catalog = merge->catalog;
    struct gw_search_index *index = NULL;

    catalog->merge = NULL;
    if (!was_canceled && merge->merged &&
        gw_search_index_shares(catalog->index, merge->index, merge->first, merge->end))
        index = gw_search_index_replace(
            catalog->index, merge->first, merge->end, merge->merged,
            (struct gw_toolsets){.list = catalog->last->toolsets, .n = catalog->last->n});
    if (index) {
        gw_search_index_unref(catalog->index);
        catalog->index = index;
        catalog->is_dirty = true;
        publish_later(catalog);
    }
    gw_segment_unref(merge->merged);
    gw_search_index_unref(merge->index);
    peg__free(merge);
    catalog_check_stopped(catalog);
}

static void merge_if_worth_while(struct gw_catalog *catalog)
{
    struct gw_merge *merge;
    unsigned first;

    if (catalog->merge || !gw_search_index_wants_merge(catalog->index, &first))
        return;
    merge = peg__alloc_zero(1, sizeof(*merge));
    if (!merge)
        return;
    *merge = (struct gw_merge){.work = {.work = merge_parts, .done = on_merged},
                               .catalog = catalog,
                               .index = gw_search_index_ref(catalog->index),
                               .first = first,
                               .end = gw_search_index_n_parts(catalog->index)};
    if (net_loop_work(catalog->home, &merge->work) == PEG_OK) {
        catalog->merge = merge;
        return;
    }
    gw_search_index_unref(merge->index);
    peg__free(merge);
}

/* ---- sending ---- */

struct delivery {
    struct net_message message; /* first */
    void (*on_snapshot)(void *user, struct gw_snapshot *snapshot);
    void *user;
    struct gw_snapshot *snapshot; /* a reference */
};

static void deliver_snapshot(struct net_message *message)
{
    struct delivery *delivery = (struct delivery *)message;

    delivery->on_snapshot(delivery->user, delivery->snapshot);
    gw_snapshot_unref(delivery->snapshot);
    peg__free(delivery);
}

/* All of them, or none. */
static bool make_deliveries(const struct gw_catalog *catalog, struct delivery **deliveries,
                            unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        deliveries[i] = peg__alloc_zero(1, sizeof(*deliveries[i]));
        if (!deliveries[i]) {
            while (i > 0)
                peg__free(deliveries[--i]);
            return false;
        }
        deliveries[i]->message.fn = deliver_snapshot;
        deliveries[i]->on_snapshot = catalog->events.on_snapshot;
        deliveries[i]->user = catalog->users[i];
    }
    return true;
}

static bool send_all(struct gw_catalog *catalog)
{
    const unsigned n = net_loops_len(catalog->loops);
    struct delivery *deliveries[PEG_LIMIT_NET_LOOPS];
    struct gw_snapshot *snapshot = make_snapshot(catalog);

    if (!snapshot || !make_deliveries(catalog, deliveries, n)) {
        gw_snapshot_unref(snapshot);
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        deliveries[i]->snapshot = gw_snapshot_ref(snapshot);
        net_loop_post(net_loops_at(catalog->loops, i), &deliveries[i]->message);
    }
    forget_snapshot(catalog);
    catalog->last = snapshot;
    catalog->index = gw_search_index_ref(snapshot->index);
    catalog->is_dirty = false;
    merge_if_worth_while(catalog);
    return true;
}

static void answer_written(struct gw_catalog *catalog)
{
    while (catalog->written) {
        struct gw_change *change = catalog->written;

        catalog->written = change->next;
        change_answer(change);
    }
    catalog->written_end = &catalog->written;
}

void catalog_publish(struct gw_catalog *catalog)
{
    if (catalog->is_ready && (catalog->is_dirty || !catalog->last) && !catalog->is_stopping &&
        !send_all(catalog)) {
        catalog_try_again(catalog, false);
        return;
    }
    if (catalog->last && !catalog->is_started)
        signal_flag(catalog, &catalog->is_started);
    answer_written(catalog);
}

/* ---- the map ---- */

static void repair_record(struct gw_catalog *catalog, struct gw_record *record,
                          enum gw_change_kind kind)
{
    struct gw_change *change;

    if (record->is_queued || record->is_unreadable)
        return;
    change = change_new(catalog, kind, record->name, peg__str(""));
    if (!change) {
        catalog_try_again(catalog, false);
        return;
    }
    record->is_queued = true;
    change_queue(catalog, change);
}

static void repair_map(struct gw_catalog *catalog)
{
    PEG__MAP_EACH(&catalog->records, entry)
    {
        struct gw_record *record = entry->value;

        if (record->map_revision == 0 && record->revision > 0)
            repair_record(catalog, record, GW_CHANGE_SEED);
        else if (record->revision > record->stored)
            repair_record(catalog, record, GW_CHANGE_MIRROR);
    }
}

/* What we write ourselves need not be read. While it is with a worker, its value is not made yet.
 */
static peg_status read_change(struct gw_catalog *catalog, const struct bus_change *change,
                              struct gw_value *ret_value, peg_error *reterr)
{
    const struct gw_change *own = catalog->is_working ? NULL : catalog->current;

    if (own && own->value == change->value && peg__str_eq(own->name, change->key)) {
        *ret_value = (struct gw_value){.toolset = gw_toolset_ref(own->toolset),
                                       .revision = own->revision,
                                       .at_ms = own->at_ms};
        return PEG_OK;
    }
    return record_read_value(change->key, peg__blob_str(change->value), ret_value, reterr);
}

static void log_ignored(const struct bus_change *change, const peg_error *error)
{
    char name[WIRE_PRINTABLE];

    wire_printable(change->key, name);
    peg__log(PEG_LOG_ERROR, "record_unreadable",
             "toolset '%s' in the map is left alone, because it cannot be read: %s", name,
             error->message);
}

static peg_status take_value(struct gw_catalog *catalog, struct gw_record *record,
                             const struct gw_value *value)
{
    peg_status status;

    if (value->revision < record->revision && !record->is_unreadable) {
        repair_record(catalog, record, GW_CHANGE_SEED);
        return PEG_OK;
    }
    if (value->revision == record->revision && !record->toolset == !value->toolset)
        return PEG_OK;
    status = record_apply(catalog, record, value->toolset);
    if (status)
        return status;
    record->revision = value->revision;
    record->at_ms = value->at_ms;
    record->is_unreadable = false;
    if (record->revision > record->stored)
        repair_record(catalog, record, GW_CHANGE_MIRROR);
    return PEG_OK;
}

static peg_status take_change(struct gw_catalog *catalog, const struct bus_change *change)
{
    struct gw_record *record;
    struct gw_value value;
    peg_error why;
    peg_status status = read_change(catalog, change, &value, &why);

    if (status) {
        if (status != PEG_ENOMEM)
            log_ignored(change, &why);
        return status == PEG_ENOMEM ? status : PEG_OK;
    }
    status = record_get(catalog, change->key, &record);
    if (!status) {
        record->map_revision = change->revision;
        record->is_reported = catalog->is_listening;
        status = take_value(catalog, record, &value);
    }
    gw_toolset_unref(value.toolset);
    return status;
}

static void on_change(struct bus_watch *watch, const struct bus_change *change)
{
    struct gw_catalog *catalog = peg__container_of(watch, struct gw_catalog, watch);
    struct gw_record *record;
    peg_status status = PEG_OK;

    if (change->is_snapshot)
        catalog->is_listening = true;
    if (change->value) {
        status = take_change(catalog, change);
    } else {
        /* An old tombstone was forgotten by a node. */
        record = record_find(catalog, change->key);
        if (record && !record->is_queued &&
            (!catalog->current || !peg__str_eq(catalog->current->name, change->key)))
            record_remove(catalog, record);
    }
    if (status == PEG_ENOMEM)
        catalog_try_again(catalog, true);
    publish_later(catalog);
}

/* What was not told is not in the map: it was lost, or has never been there. */
static void on_ready(struct bus_watch *watch)
{
    struct gw_catalog *catalog = peg__container_of(watch, struct gw_catalog, watch);

    PEG__MAP_EACH(&catalog->records, entry)
    {
        struct gw_record *record = entry->value;

        if (!record->is_reported)
            record->map_revision = 0;
        record->is_reported = false;
    }
    catalog->is_listening = false;
    catalog->is_ready = true;
    repair_map(catalog);
    change_run_queue(catalog);
}

static void watch_map(struct gw_catalog *catalog)
{
    if (catalog->is_watching)
        bus_map_unwatch(catalog->bus, BUS_MAP_TOOLSETS, &catalog->watch);
    catalog->is_watching = true;
    bus_map_watch(catalog->bus, BUS_MAP_TOOLSETS, &catalog->watch);
}

/* ---- tombstones ---- */

enum { MAX_ENDS = 64, SOON_MS = 1000 };

static bool is_old_end(const struct gw_catalog *catalog, const struct gw_record *record,
                       int64_t before_ms)
{
    if (catalog->current && peg__str_eq(catalog->current->name, record->name))
        return false;
    return !record->toolset && !record->is_unreadable && !record->is_queued &&
           record->at_ms < before_ms;
}

/* A few at a time, and only while the records are not in use: they change as soon as the map does.
 */
struct old_ends {
    char names[MAX_ENDS][PEG_LIMIT_NAME_BYTES + 1];
    uint64_t revisions[MAX_ENDS];
    size_t n;
};

static void collect_ends(struct gw_catalog *catalog, int64_t before_ms, struct old_ends *ends)
{
    PEG__MAP_EACH(&catalog->records, entry)
    {
        struct gw_record *record = entry->value;

        if (!is_old_end(catalog, record, before_ms))
            continue;
        if (!record->map_revision) {
            record_remove(catalog, record);
        } else if (ends->n < MAX_ENDS && record->name.len <= PEG_LIMIT_NAME_BYTES) {
            memcpy(ends->names[ends->n], record->name.ptr, record->name.len + 1);
            ends->revisions[ends->n++] = record->map_revision;
        }
    }
}

static void purge_tombstones(struct net_timer *timer)
{
    struct gw_catalog *catalog = peg__container_of(timer, struct gw_catalog, purge);
    const int64_t before_ms = bus_now_ms(catalog->bus) - PEG_LIMIT_GATEWAY_TOMBSTONE_MS;
    struct gw_change *change = change_new(catalog, GW_CHANGE_FORGET, peg__str(""), peg__str(""));
    struct old_ends ends;

    ends.n = 0;
    collect_ends(catalog, before_ms, &ends);
    for (size_t i = 0; i < ends.n; i++)
        bus_map_set(catalog->bus, BUS_MAP_TOOLSETS, peg__str(ends.names[i]), NULL,
                    ends.revisions[i], NULL);
    bus_arm(catalog->bus, &catalog->purge,
            bus_now_ns(catalog->bus) +
                (ends.n == MAX_ENDS ? SOON_MS : PEG_LIMIT_GATEWAY_PURGE_MS) * PEG_NS_PER_MS);
    if (!change)
        return;
    change->at_ms = before_ms;
    change_queue(catalog, change);
    change_run_queue(catalog);
}

static void init_map(struct gw_catalog *catalog)
{
    catalog->watch.on_change = on_change;
    catalog->watch.on_ready = on_ready;
    catalog->purge.fn = purge_tombstones;
    bus_arm(catalog->bus, &catalog->purge,
            bus_now_ns(catalog->bus) + PEG_LIMIT_GATEWAY_PURGE_MS * PEG_NS_PER_MS);
}

/* ---- its life ---- */

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
    forget_snapshot(catalog);
    peg__quota_destroy(&catalog->n_toolsets);
    peg__quota_destroy(&catalog->n_records);
    peg__quota_destroy(&catalog->n_bytes);
    pthread_mutex_destroy(&catalog->lock);
    pthread_cond_destroy(&catalog->moved);
    peg__free(catalog->users);
    peg__free(catalog);
    return NULL;
}

static void await_flag(struct gw_catalog *catalog, const bool *flag)
{
    pthread_mutex_lock(&catalog->lock);
    while (!*flag)
        pthread_cond_wait(&catalog->moved, &catalog->lock);
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- when there was no memory ---- */

static void do_again(struct net_timer *timer)
{
    struct gw_catalog *catalog = peg__container_of(timer, struct gw_catalog, again);

    if (catalog->must_watch_again) {
        catalog->must_watch_again = false;
        watch_map(catalog);
    }
    if (catalog->is_ready)
        repair_map(catalog);
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

/* ---- the start ---- */

static void publish_now(struct net_later *later)
{
    struct gw_catalog *catalog = peg__container_of(later, struct gw_catalog, later);

    /* What is still being written comes with its own snapshot. */
    if (!catalog->current)
        catalog_publish(catalog);
}

static void start_at_home(struct net_message *message)
{
    struct gw_catalog *catalog = peg__container_of(message, struct gw_catalog, message);

    init_map(catalog);
    watch_map(catalog);
}

static void init_catalog(struct gw_catalog *catalog)
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
    init_catalog(catalog);
    catalog->loops = options->loops;
    catalog->home = net_loops_at(options->loops, 0);
    catalog->bus = options->home_bus;
    catalog->store = *options->store;
    catalog->events = *options->events;
    catalog->users = peg__alloc_zero(n, sizeof(*catalog->users));
    catalog->index = gw_search_index_new(options->language);
    if (!catalog->users || !catalog->index || make_quotas(catalog, options->has_principals)) {
        catalog_unref(catalog);
        return peg__fail_nomem(reterr);
    }
    memcpy(catalog->users, options->users, n * sizeof(*catalog->users));
    status = record_read_store(catalog, reterr);
    if (status) {
        catalog_unref(catalog);
        return status;
    }
    catalog->message.fn = start_at_home;
    net_loop_post(catalog->home, &catalog->message);
    await_flag(catalog, &catalog->is_started);
    *ret_catalog = catalog;
    return PEG_OK;
}

/* ---- the end ---- */

void catalog_check_stopped(struct gw_catalog *catalog)
{
    if (catalog->is_stopping && !catalog->current && !catalog->merge && !catalog->is_stopped)
        signal_flag(catalog, &catalog->is_stopped);
}

/* What a worker is at is waited for; an answer of the bus is not. */
static void stop_at_home(struct net_message *message)
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
    catalog->message.fn = stop_at_home;
    net_loop_post(catalog->home, &catalog->message);
    await_flag(catalog, &catalog->is_stopped);
    return catalog_unref(catalog);
}
