/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the bus's map of toolsets tells. It is the truth where there are several nodes; each node's
 * store is what it is made of again when it was lost. The greatest revision wins: what the map says
 * that is older than what is known is written over, and what it says that the store does not know
 * is written there.
 */

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "wire/name.h"

void catalog_map_repair(struct gw_catalog *catalog, struct gw_record *record,
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

void catalog_map_repair_all(struct gw_catalog *catalog)
{
    PEG__MAP_EACH(&catalog->records, entry)
    {
        struct gw_record *record = entry->value;

        if (record->map_revision == 0 && record->revision > 0)
            catalog_map_repair(catalog, record, GW_CHANGE_SEED);
        else if (record->revision > record->stored)
            catalog_map_repair(catalog, record, GW_CHANGE_MIRROR);
    }
}

/* What we write ourselves need not be read. */
static peg_status read_change(struct gw_catalog *catalog, const struct bus_change *change,
                              struct gw_value *ret_value, peg_error *reterr)
{
    const struct gw_change *own = catalog->current;

    if (own && own->value == change->value && peg__str_eq(own->name, change->key)) {
        *ret_value = (struct gw_value){.toolset = gw_toolset_ref(own->toolset),
                                       .revision = own->revision,
                                       .at_ms = own->at_ms};
        return PEG_OK;
    }
    return record_read_value(change->key, peg__blob_str(change->value), ret_value, reterr);
}

static void tell_ignored(const struct bus_change *change, const peg_error *error)
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
        catalog_map_repair(catalog, record, GW_CHANGE_SEED);
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
        catalog_map_repair(catalog, record, GW_CHANGE_MIRROR);
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
            tell_ignored(change, &why);
        return status == PEG_ENOMEM ? status : PEG_OK;
    }
    status = record_get(catalog, change->key, &record);
    if (!status) {
        record->map_revision = change->revision;
        record->is_told = catalog->is_listening;
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
    catalog_publish_later(catalog);
}

/* What was not told is not in the map: it was lost, or has never been there. */
static void on_ready(struct bus_watch *watch)
{
    struct gw_catalog *catalog = peg__container_of(watch, struct gw_catalog, watch);

    PEG__MAP_EACH(&catalog->records, entry)
    {
        struct gw_record *record = entry->value;

        if (!record->is_told)
            record->map_revision = 0;
        record->is_told = false;
    }
    catalog->is_listening = false;
    catalog->is_told = true;
    catalog_map_repair_all(catalog);
    change_run_queue(catalog);
}

void catalog_map_watch(struct gw_catalog *catalog)
{
    if (catalog->is_watching)
        bus_map_unwatch(catalog->bus, BUS_MAP_TOOLSETS, &catalog->watch);
    catalog->is_watching = true;
    bus_map_watch(catalog->bus, BUS_MAP_TOOLSETS, &catalog->watch);
}

/* ---- tombstones --------------------------------------------------------------------------------
 */

enum { MAX_ENDS = 64, SOON_MS = 1000 };

static bool is_old_end(const struct gw_catalog *catalog, const struct gw_record *record,
                       int64_t before_ms)
{
    if (catalog->current && peg__str_eq(catalog->current->name, record->name))
        return false;
    return !record->toolset && !record->is_unreadable && !record->is_queued &&
           record->at_ms < before_ms;
}

/* A few at a time, and only when nobody is in the records: they change as soon as the map does. */
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

static void purge(struct net_timer *timer)
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

void catalog_map_init(struct gw_catalog *catalog)
{
    catalog->watch.on_change = on_change;
    catalog->watch.on_ready = on_ready;
    catalog->purge.fn = purge;
    bus_arm(catalog->bus, &catalog->purge,
            bus_now_ns(catalog->bus) + PEG_LIMIT_GATEWAY_PURGE_MS * PEG_NS_PER_MS);
}
