/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_INTERNAL_H
#define PEG_BUS_INTERNAL_H

/* Registers, leases and maps in the memory of one process: the tables behind the local bus. Any
 * thread may call them; each holds a lock for a moment. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/map.h"
#include "bus/bus.h"

/* ---- leases: which names are alive, and on which loop ---- */

struct bus_lease_table {
    pthread_mutex_t lock;
    struct peg__map names;
    struct net_timers ends;
    struct net_timers own_ends; /* of leases that loops have under their own addresses */
    /* Both are called under the lock; NULL: neither is wanted. A loop that had no lease under its
     * own address has one now: bus_lease_check() is due earlier, perhaps. */
    void (*on_own)(struct bus_lease_table *table);
    /* Its lease has ended, and was not released. */
    void (*on_lost)(struct bus_lease_table *table, struct bus_address loop);
};

void bus_lease_table_init(struct bus_lease_table *table);
void bus_lease_table_free(struct bus_lease_table *table);

struct bus_lease_request {
    peg_str name;
    struct bus_address loop;
    enum bus_lease_mode mode;
    int64_t now_ns;
    int64_t until_ns;
};
/* *ret_loop has the name now; node 0: none. PEG_ELIMIT (PEG_LIMIT_BUS_LEASES), PEG_ENOMEM: the
 * lease is not changed. */
peg_status bus_lease_ask(struct bus_lease_table *table, const struct bus_lease_request *request,
                         struct bus_address *ret_loop) PEG_MUST_USE;
void bus_lease_release(struct bus_lease_table *table, peg_str name, struct bus_address loop);
/* The loop ends: the lease of its own address ends now, if it is not released. */
void bus_lease_end_own(struct bus_lease_table *table, struct bus_address loop);
/* Reports the loops whose own leases have ended. Returns when to check again, or NET_NEVER. */
int64_t bus_lease_check(struct bus_lease_table *table, int64_t now_ns);
/* The loop of each name now; node 0: none. */
void bus_lease_find(struct bus_lease_table *table, const peg_str *names, size_t n, int64_t now_ns,
                    struct bus_address *ret_loops);

/* ---- ports: the way to each loop of one process ----
 *
 * A message on its way refers to its port, which outlives the bus of its loop. A port is closed
 * under the lock of its slot, so that nothing is posted to an ended loop. */

struct bus_slot {
    pthread_mutex_t lock;
    struct bus_port *port; /* NULL: no bus */
};

struct bus_ports {
    struct bus_slot slots[PEG_LIMIT_NET_LOOPS];
};

struct bus_local;

/* The local bus is a part of another one, `face`, for what stays in the process: the events, the
 * user, the epoch and the time are those of the other. */
void bus_local_set_face(struct bus *bus, struct bus *face);

struct bus_port {
    struct net_message changes; /* first: maps or leases have changed */
    atomic_bool is_woken;       /* it is posted; that is a reference */
    atomic_uint n_refs;
    struct net_loop *loop;
    struct bus_local *bus;     /* NULL: it is freed. Touched on the loop only */
    struct bus_slot *slot;     /* under whose lock is the rest */
    struct net_message posted; /* posted if there are posts; that is a reference */
    struct bus_post *posts;
    struct bus_post **posts_end;
    uint64_t lost; /* loops whose leases have ended, a bit each */
    bool has_new_lease;
};

void bus_ports_init(struct bus_ports *ports);
void bus_ports_free(struct bus_ports *ports);
/* False: another port has that number. */
bool bus_ports_open(struct bus_ports *ports, uint32_t number, struct bus_port *port) PEG_MUST_USE;
/* Posts the message, and sets *ret_port to a reference before. False: there is no such loop. */
bool bus_ports_send(struct bus_ports *ports, uint32_t number, struct net_message *message,
                    struct bus_port **ret_port) PEG_MUST_USE;
bool bus_ports_post(struct bus_ports *ports, uint32_t number, struct bus_post *post) PEG_MUST_USE;
/* A loop has leased its own address: wakes all. */
void bus_ports_note_lease(struct bus_ports *ports);
/* The lease of a loop's own address has ended: wakes all others. */
void bus_ports_note_lost(struct bus_ports *ports, uint32_t number);

struct bus_port *bus_port_ref(struct bus_port *port);
void bus_port_unref(struct bus_port *port);
/* Nothing is posted to it from here on. */
void bus_port_close(struct bus_port *port);
/* Posts `changes`, if it is not posted. The caller has a lock that the loop takes before it ends:
 * that of the slot, or of a map that it watches. */
void bus_port_wake(void *owner);
/* All of them, in order. */
struct bus_post *bus_port_take_posts(struct bus_port *port);
/* The bits of lost loops; once. */
uint64_t bus_port_take_lost(struct bus_port *port, bool *ret_has_new_lease);

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

/* The same for a change that has its revision already, whatever is expected. One that is not newer
 * than what the table has changes nothing. */
peg_status bus_map_table_apply(struct bus_map_table *table, const struct bus_map_write *write,
                               uint64_t revision) PEG_MUST_USE;

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
