/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_INTERNAL_H
#define PEG_BUS_INTERNAL_H

/* Registers, leases and maps in the memory of one process: the tables behind the local bus. Any
 * thread may call them; each holds a lock for a moment. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "bus/bus.h"

/* ---- leases: which names are alive, and on which loop ---- */

struct bus_lease_table {
    pthread_mutex_t lock;
    struct peg__map names;
    struct net_timers ends;
};

void bus_lease_table_init(struct bus_lease_table *table);
void bus_lease_table_free(struct bus_lease_table *table);

/* Leases the name to `loop` until then. PEG_ELIMIT (PEG_LIMIT_BUS_LEASES), PEG_ENOMEM. */
peg_status bus_lease_take(struct bus_lease_table *table, peg_str name, struct bus_address loop,
                          int64_t now_ns, int64_t until_ns) PEG_MUST_USE;
void bus_lease_release(struct bus_lease_table *table, peg_str name, struct bus_address loop);
/* The loop of each name now; node 0: none. */
void bus_lease_find(struct bus_lease_table *table, const peg_str *names, size_t n, int64_t now_ns,
                    struct bus_address *ret_loops);

/* ---- maps that the loops of one process watch ----
 *
 * All keys lie in the order of their last change, and each watch has a place in that order: it has
 * yet to report what is behind its place. So a change costs the same however many watch, a loop
 * that does not listen for a while makes nothing grow, and a new watch begins before everything.
 * Only `wake` is called under a lock. */

/* A key and what it was changed to. Immutable, reference counted. */
struct bus_item {
    struct bus_place place; /* first */
    atomic_uint n_refs;
    struct peg__blob *value; /* NULL: removed */
    uint64_t revision;
    size_t n_unreported; /* of a removed one: watches that have not reported it yet */
    size_t key_len;
    char key[];
};

struct bus_map_table {
    pthread_mutex_t lock;
    struct peg__map keys;   /* to their items; without those that are removed */
    struct bus_place order; /* a ring of items and places of watches; this is its head */
    struct bus_watch *watches;
    size_t n_watches;
    size_t n_items; /* with removed ones that are not reported yet */
    size_t bytes;
    uint64_t revision; /* the last one */
    /* A watch of this owner has something to report; called under the lock. */
    void (*wake)(void *owner);
};

void bus_map_table_init(struct bus_map_table *table, void (*wake)(void *owner));
void bus_map_table_free(struct bus_map_table *table);
/* Loses all keys at once, without reporting them: every watch then reports a new snapshot. */
void bus_map_table_lose(struct bus_map_table *table);

/* Wakes the owners of all watches. *ret_revision is the key's. PEG_ELIMIT (PEG_LIMIT_BUS_MAP_KEYS,
 * PEG_LIMIT_BUS_MAP_BYTES), PEG_ENOMEM. */
struct bus_map_write {
    peg_str key;
    struct peg__blob *value;
    uint64_t expected;
};
peg_status bus_map_table_set(struct bus_map_table *table, const struct bus_map_write *write,
                             bool *ret_written, uint64_t *ret_revision) PEG_MUST_USE;

void bus_map_table_watch(struct bus_map_table *table, struct bus_watch *watch, void *owner);
void bus_map_table_unwatch(struct bus_map_table *table, struct bus_watch *watch);
/* Ends all watches of an owner. */
void bus_map_table_leave(struct bus_map_table *table, void *owner);

/* Calls one of the owner's watches with its next change. False: there was none. On the loop of the
 * watches. */
bool bus_map_table_notify(struct bus_map_table *table, void *owner);

/* ---- registers in the memory of one process ----
 *
 * The local bus keeps all of them here; one with a server keeps those of calls that stay in the
 * process. Each function locks a small part for some 50 ns, and frees large values afterwards. */

struct bus_registers;

peg_status bus_registers_new(struct bus_registers **ret_registers, peg_error *reterr);
struct bus_registers *bus_registers_free(struct bus_registers *registers);

/* *ret_other is NULL if the register has `value` now; else a reference on its other value.
 * PEG_ELIMIT: the quota is used up (bus.h); PEG_ENOMEM. */
peg_status bus_registers_put_if_absent(struct bus_registers *registers, const struct bus_key *key,
                                       struct peg__blob *value, int64_t keep_until_ms,
                                       struct peg__blob **ret_other) PEG_MUST_USE;
/* A reference, or NULL. */
struct peg__blob *bus_registers_read(struct bus_registers *registers, const struct bus_key *key);
/* All of the id, with every attempt and its waiters. */
void bus_registers_forget(struct bus_registers *registers, const struct bus_id *id);

/* One address is added once. PEG_ELIMIT as above, and beyond BUS_MAX_WAITERS; PEG_ENOMEM. */
enum { BUS_MAX_WAITERS = 64 }; /* of one call; as many as a process has loops */
peg_status bus_registers_wait_add(struct bus_registers *registers, const struct bus_id *id,
                                  struct bus_address waiter, int64_t keep_until_ms) PEG_MUST_USE;
size_t bus_registers_waiters(struct bus_registers *registers, const struct bus_id *id,
                             struct bus_address ret_waiters[BUS_MAX_WAITERS]);

/* Removes those whose time is over, at most `max` of them. True: there may be more. */
bool bus_registers_sweep(struct bus_registers *registers, int64_t now_ms, size_t max);

/* Registers and waiters, and the bytes that they take. */
size_t bus_registers_len(const struct bus_registers *registers);
size_t bus_registers_bytes(const struct bus_registers *registers);

#endif
