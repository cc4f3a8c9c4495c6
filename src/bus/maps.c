/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Items are immutable: a new value is a new item at the end of the order, and the old one is
 * dropped. A removed key leaves an item without a value there until the watches of that time have
 * passed it; later watches skip it.
 */

#include "bus/internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* ---- the order ----------------------------------------------------------------------------- */

static void insert_behind(struct bus_place *before, struct bus_place *place)
{
    place->prev = before;
    place->next = before->next;
    before->next->prev = place;
    before->next = place;
}

static void unlink_place(struct bus_place *place)
{
    place->prev->next = place->next;
    place->next->prev = place->prev;
}

/* There are few watches, so a place is compared with each of them. */
static bool is_watch(const struct bus_map_table *table, const struct bus_place *place)
{
    for (const struct bus_watch *watch = table->watches; watch; watch = watch->next) {
        if (place == &watch->place)
            return true;
    }
    return false;
}

/* The first item behind a place, or NULL. */
static struct bus_item *item_behind(const struct bus_map_table *table,
                                    const struct bus_place *place)
{
    struct bus_place *next = place->next;

    while (next != &table->order && is_watch(table, next))
        next = next->next;
    return next == &table->order ? NULL : (struct bus_item *)next;
}

/* ---- items --------------------------------------------------------------------------------- */

static struct bus_item *new_item(peg_str key, struct peg__blob *value)
{
    struct bus_item *item = (struct bus_item *)peg__alloc(sizeof(*item) + key.len + 1);

    if (!item)
        return NULL;
    *item = (struct bus_item){.key_len = key.len};
    atomic_init(&item->n_refs, 1);
    item->value = peg__blob_ref(value);
    if (key.len)
        memcpy(item->key, key.ptr, key.len);
    item->key[key.len] = '\0';
    return item;
}

static void unref_item(struct bus_item *item)
{
    if (!item || !peg__refs_drop(&item->n_refs))
        return;
    peg__blob_unref(item->value);
    peg__free(item);
}

static size_t item_bytes(const struct bus_item *item)
{
    return item->key_len + (item->value ? item->value->len : 0);
}

/* It has left the order; the table's reference goes. */
static void drop_item(struct bus_map_table *table, struct bus_item *item)
{
    unlink_place(&item->place);
    table->n_items--;
    table->bytes -= item_bytes(item);
    unref_item(item);
}

/* ---- writing ------------------------------------------------------------------------------- */

static peg_status check_limits(const struct bus_map_table *table, const struct bus_item *item,
                               const struct bus_item *old)
{
    const size_t n = table->n_items + (old ? 0 : 1);
    const size_t bytes = table->bytes + item_bytes(item) - (old ? item_bytes(old) : 0);

    if (!item->value) /* removing frees memory, sooner or later */
        return PEG_OK;
    return n > PEG_LIMIT_BUS_MAP_KEYS || bytes > PEG_LIMIT_BUS_MAP_BYTES ? PEG_ELIMIT : PEG_OK;
}

/* Only a key that is new can fail. */
static peg_status write_map_key(struct bus_map_table *table, struct bus_item *item,
                                const struct bus_item *old)
{
    const peg_str key = {item->key, item->key_len};

    if (item->value)
        return peg__map_put(&table->keys, key, item, NULL);
    if (old)
        peg__map_remove(&table->keys, key, NULL);
    return PEG_OK;
}

static void wake_all(const struct bus_map_table *table)
{
    for (const struct bus_watch *watch = table->watches; watch; watch = watch->next)
        table->wake(watch->owner);
}

/* Takes the reference of `item`, which has its revision, if it succeeds. */
static peg_status replace_item(struct bus_map_table *table, struct bus_item *old,
                               struct bus_item *item)
{
    peg_status status = check_limits(table, item, old);

    if (!status)
        status = write_map_key(table, item, old);
    if (status)
        return status;
    if (old)
        drop_item(table, old);
    if (item->revision > table->revision)
        table->revision = item->revision;
    item->n_unreported = table->n_watches;
    table->n_items++;
    table->bytes += item_bytes(item);
    insert_behind(table->order.prev, &item->place);
    if (!item->value && item->n_unreported == 0)
        drop_item(table, item);
    wake_all(table);
    return PEG_OK;
}

peg_status bus_map_table_set(struct bus_map_table *table, const struct bus_map_write *write,
                             bool *ret_written, uint64_t *ret_revision)
{
    struct bus_item *item = new_item(write->key, write->value);
    peg_status status = PEG_OK;
    struct bus_item *old;
    uint64_t revision;
    bool written;

    if (!item)
        return PEG_ENOMEM;
    pthread_mutex_lock(&table->lock);
    old = (struct bus_item *)peg__map_get(&table->keys, write->key);
    revision = old ? old->revision : 0;
    written = write->expected == BUS_ANY_REVISION || write->expected == revision;
    if (written && (old || write->value)) {
        item->revision = table->revision + 1;
        status = replace_item(table, old, item);
        if (!status) {
            revision = write->value ? table->revision : 0;
            item = NULL;
        }
    }
    pthread_mutex_unlock(&table->lock);
    unref_item(item);
    if (status)
        return status;
    *ret_written = written;
    *ret_revision = revision;
    return PEG_OK;
}

peg_status bus_map_table_apply(struct bus_map_table *table, const struct bus_map_write *write,
                               uint64_t revision)
{
    struct bus_item *item = new_item(write->key, write->value);
    peg_status status = PEG_OK;
    struct bus_item *old;

    if (!item)
        return PEG_ENOMEM;
    item->revision = revision;
    pthread_mutex_lock(&table->lock);
    old = (struct bus_item *)peg__map_get(&table->keys, write->key);
    if ((old && old->revision < revision) || (!old && write->value)) {
        status = replace_item(table, old, item);
        if (!status)
            item = NULL;
    }
    pthread_mutex_unlock(&table->lock);
    unref_item(item);
    return status;
}

/* ---- watching ------------------------------------------------------------------------------ */

void bus_map_table_watch(struct bus_map_table *table, struct bus_watch *watch, void *owner)
{
    pthread_mutex_lock(&table->lock);
    watch->owner = owner;
    watch->is_ready = false;
    watch->begun_at = table->revision;
    watch->next = table->watches;
    table->watches = watch;
    table->n_watches++;
    insert_behind(&table->order, &watch->place);
    table->wake(owner);
    pthread_mutex_unlock(&table->lock);
}

/* The watch has reported the item, or skips it. */
static void count_pass(struct bus_map_table *table, const struct bus_watch *watch,
                       struct bus_item *item)
{
    if (!item->value && item->revision > watch->begun_at && --item->n_unreported == 0)
        drop_item(table, item);
}

/* An ending watch skips everything that it has not reported. */
static void end_watch(struct bus_map_table *table, struct bus_watch **at)
{
    struct bus_watch *watch = *at;
    struct bus_item *item;

    while ((item = item_behind(table, &watch->place))) {
        unlink_place(&watch->place);
        insert_behind(&item->place, &watch->place);
        count_pass(table, watch, item);
    }
    unlink_place(&watch->place);
    *at = watch->next;
    table->n_watches--;
    watch->next = NULL;
    watch->owner = NULL;
}

void bus_map_table_unwatch(struct bus_map_table *table, struct bus_watch *watch)
{
    struct bus_watch **at = &table->watches;

    pthread_mutex_lock(&table->lock);
    while (*at && *at != watch)
        at = &(*at)->next;
    if (*at)
        end_watch(table, at);
    pthread_mutex_unlock(&table->lock);
}

void bus_map_table_leave(struct bus_map_table *table, void *owner)
{
    struct bus_watch **at = &table->watches;

    pthread_mutex_lock(&table->lock);
    while (*at) {
        if ((*at)->owner == owner)
            end_watch(table, at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&table->lock);
}

/* ---- reporting ---- */

/* Moves on by one item. Returns a reference on it, or NULL if the watch skips it. */
static struct bus_item *pass_item(struct bus_map_table *table, struct bus_watch *watch,
                                  struct bus_item *item)
{
    const bool is_reported = item->value || item->revision > watch->begun_at;

    unlink_place(&watch->place);
    insert_behind(&item->place, &watch->place);
    if (is_reported)
        peg__refs_take(&item->n_refs);
    count_pass(table, watch, item);
    return is_reported ? item : NULL;
}

/* The next item that a watch reports, as a reference; else NULL, and perhaps that it is ready. */
static struct bus_item *take_next_item(struct bus_map_table *table, struct bus_watch *watch,
                                       bool *ret_is_ready)
{
    struct bus_item *item;
    struct bus_item *next = NULL;

    while (!next && (item = item_behind(table, &watch->place)))
        next = pass_item(table, watch, item);
    *ret_is_ready = !next && !watch->is_ready;
    if (*ret_is_ready)
        watch->is_ready = true;
    return next;
}

static void report_item(struct bus_watch *watch, struct bus_item *item)
{
    const struct bus_change change = {
        .key = {item->key, item->key_len},
        .value = item->value,
        .revision = item->revision,
        .is_snapshot = !watch->is_ready,
    };

    watch->on_change(watch, &change);
    unref_item(item);
}

bool bus_map_table_notify(struct bus_map_table *table, void *owner)
{
    struct bus_item *item = NULL;
    struct bus_watch *watch;
    bool is_ready = false;

    pthread_mutex_lock(&table->lock);
    for (watch = table->watches; watch; watch = watch->next) {
        if (watch->owner == owner)
            item = take_next_item(table, watch, &is_ready);
        if (item || is_ready)
            break;
    }
    pthread_mutex_unlock(&table->lock);
    if (item)
        report_item(watch, item);
    else if (is_ready && watch->on_ready)
        watch->on_ready(watch);
    return item || is_ready;
}

/* ---- beginning and end --------------------------------------------------------------------- */

void bus_map_table_init(struct bus_map_table *table, void (*wake)(void *owner))
{
    *table = (struct bus_map_table){.keys = PEG__MAP(PEG_LIMIT_BUS_MAP_KEYS), .wake = wake};
    pthread_mutex_init(&table->lock, NULL);
    table->order.next = &table->order;
    table->order.prev = &table->order;
}

static void drop_items(struct bus_map_table *table)
{
    struct bus_item *item;

    while ((item = item_behind(table, &table->order)))
        drop_item(table, item);
}

void bus_map_table_lose(struct bus_map_table *table)
{
    pthread_mutex_lock(&table->lock);
    PEG__MAP_EACH(&table->keys, entry)
    peg__map_remove(&table->keys, entry->name, NULL);
    drop_items(table);
    for (struct bus_watch *watch = table->watches; watch; watch = watch->next) {
        watch->is_ready = false;
        watch->begun_at = table->revision;
    }
    wake_all(table);
    pthread_mutex_unlock(&table->lock);
}

void bus_map_table_free(struct bus_map_table *table)
{
    drop_items(table);
    peg__map_free(&table->keys);
    pthread_mutex_destroy(&table->lock);
}
