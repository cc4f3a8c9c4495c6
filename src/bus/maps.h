/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_MAPS_H
#define PEG_BUS_MAPS_H

/*
 * A map that the loops of one process watch. All its keys lie in the order in which they were last
 * changed, and each watch has a place in that order: what is behind its place it has yet to hear.
 * So a change costs the same however many watch, a loop that does not listen for a while makes
 * nothing grow, and a watch that begins stands before all of it.
 *
 * Any thread; short locks, and nobody is called under one but `wake`.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "bus/bus.h"

/* A key and what it was changed to. Immutable, reference counted. */
struct bus_item {
    struct bus_place place; /* first */
    atomic_uint n_refs;
    struct peg__blob *value; /* NULL: removed */
    uint64_t revision;
    size_t n_to_tell; /* of one that is removed: watches that have yet to hear of it */
    size_t key_len;
    char key[];
};

struct bus_map_table {
    pthread_mutex_t lock;
    struct peg__map keys;   /* to their items; without those that are removed */
    struct bus_place order; /* a ring of items and places of watches; this is its head */
    struct bus_watch *watches;
    size_t n_watches;
    size_t n_items; /* with those that are removed, but not yet told */
    size_t bytes;
    uint64_t revision; /* the last one */
    /* Something is to be heard by a watch of this owner; called under the lock. */
    void (*wake)(void *owner);
};

void bus_map_table_init(struct bus_map_table *table, void (*wake)(void *owner));
void bus_map_table_free(struct bus_map_table *table);
/* All keys are lost, at once and without a word about each: every watch hears what is there from
 * then on as a snapshot, and is ready again. */
void bus_map_table_lose(struct bus_map_table *table);

/* Wakes the owners of all watches. *ret_revision is the key's. PEG_ELIMIT (PEG_LIMIT_BUS_MAP_KEYS,
 * PEG_LIMIT_BUS_MAP_BYTES), PEG_ENOMEM. */
struct bus_map_write {
    peg_str key;
    struct peg__blob *value;
    uint64_t expected;
};
peg_status bus_map_table_set(struct bus_map_table *table, const struct bus_map_write *write,
                             bool *ret_won, uint64_t *ret_revision) PEG_MUST_USE;

void bus_map_table_watch(struct bus_map_table *table, struct bus_watch *watch, void *owner);
void bus_map_table_unwatch(struct bus_map_table *table, struct bus_watch *watch);
/* Ends all watches of an owner. */
void bus_map_table_leave(struct bus_map_table *table, void *owner);

/* Calls one of the owner's watches with what it has to hear next. False: there was nothing. On the
 * loop of the watches. */
bool bus_map_table_notify(struct bus_map_table *table, void *owner);

#endif
