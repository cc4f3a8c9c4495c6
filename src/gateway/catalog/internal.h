/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_INTERNAL_H
#define PEG_GATEWAY_CATALOG_INTERNAL_H

/*
 * The catalog inside:
 *
 *   catalog_ask.c      what loops ask for: a worker of theirs, then a message to home and back
 *   catalog_change.c   one change at a time: decide, store, map, undo
 *   catalog_record.c   what is known of each name, and its form in store and map
 *   catalog_map.c      what the map tells, and what it has to be told again
 *   snapshot.c         snapshots, and sending them to the loops
 *   catalog.c          its life
 *
 * All fields are home's but where it says so.
 */

#include <pthread.h>

#include "base/map.h"
#include "base/quota.h"
#include "gateway/catalog/catalog.h"

/* What is known of a name. It stays when the toolset is gone: so that what comes later has a
 * greater revision. */
struct gw_record {
    peg_str name;               /* the map's */
    struct gw_toolset *toolset; /* NULL: removed, or not readable */
    uint64_t revision;          /* of what is known; 0: nothing is */
    int64_t at_ms;              /* when it was removed */
    uint64_t map_revision;      /* of the key in the bus's map; 0: not there */
    uint64_t stored;            /* revision that the store has, as far as we know */
    bool is_told;               /* by the snapshot of the map that is being listened to */
    bool is_unreadable;         /* never written by us */
    bool is_queued;             /* for the map, or for the store */
    uint16_t holder;            /* key of its owner, or of the last one, in the quotas */
    size_t n_bytes;             /* that it has taken of the quota */
};

enum gw_change_kind {
    GW_CHANGE_REGISTER,
    GW_CHANGE_UNREGISTER,
    GW_CHANGE_SEED,   /* the map lacks what we know */
    GW_CHANGE_MIRROR, /* the store lacks what the map told */
    GW_CHANGE_FORGET, /* old tombstones */
};

/* Something to be done. It lies on the asker's loop, then at home, then goes back. */
struct gw_change {
    struct net_message message; /* first */
    struct net_work work;       /* of the asker's loop: taking the request apart */
    struct gw_catalog *catalog; /* a reference */
    enum gw_change_kind kind;
    struct net_loop *loop;       /* the asker's; NULL: nobody asked */
    struct gw_change_wait *wait; /* the asker's loop's; NULL: forgotten */
    struct peg__blob *request;   /* packed; NULL: there is a toolset */
    struct gw_toolset *toolset;  /* the one to be, then the one that stands */
    bool has_live;
    peg_str name;
    peg_str principal;
    peg_status status;
    peg_error error;
    /* At home. */
    struct gw_change *next;
    uint64_t revision; /* of what is written */
    int64_t at_ms;
    struct peg__blob *value; /* for the map */
    size_t old_bytes;        /* of the toolset that stands */
    unsigned n_tries;
    bool is_undoing; /* the store has what the map does not take: it gets back what was there */
    char text[];     /* name and principal */
};

struct gw_catalog {
    struct net_loops *loops;
    struct net_loop *home;
    struct bus *bus;
    peg_store store;
    struct gw_catalog_events events;
    void **desks;
    struct peg__map records; /* struct gw_record */
    /* What owners hold. Names that have ended count for the last owner until they are forgotten:
     * who registers and unregisters names without an end would else fill the map, too. */
    struct peg__quota n_toolsets;
    struct peg__quota n_records;
    struct peg__quota n_bytes; /* a worker looks at it, too */
    struct peg__hash_key secret;
    bool has_principals;
    struct gw_toolset **toolsets; /* those that stand, by name; references */
    size_t n;
    size_t capacity;
    struct gw_snapshot *last;      /* the last one that was sent; NULL: none */
    struct gw_search_index *index; /* its index, or one with parts that were put together since */
    struct gw_change *queue;
    struct gw_change **queue_end;
    struct gw_change *written; /* to be answered behind the next snapshot */
    struct gw_change **written_end;
    /* what may be pending */
    struct gw_change *current;
    struct net_work work; /* the store, for `current`, while is_working */
    struct bus_wait wait; /* the map, for `current` */
    struct bus_watch watch;
    struct net_later later; /* a snapshot is due */
    struct net_timer again; /* there was no memory: look again at what is left to do */
    struct net_timer purge; /* tombstones */
    struct gw_merge *merge; /* parts of the index that are put together; NULL: none are */
    /* Any thread, under the lock: how far the start and the end have come. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct net_message message; /* start, then stop */
    atomic_uint n_refs;
    bool is_started;   /* under the lock */
    bool is_stopped;   /* under the lock */
    bool is_listening; /* the map tells all there is */
    bool is_told;      /* it has done so, at least once */
    bool is_dirty;     /* the last snapshot is old */
    bool is_running;   /* the queue */
    bool is_stopping;
    bool is_working;
    bool is_watching;
    bool must_watch_again;
};

enum { GW_CATALOG_AGAIN_MS = 100, GW_CATALOG_TRIES = 5 };

/* ---- catalog.c ---- */
struct gw_catalog *catalog_ref(struct gw_catalog *catalog);
struct gw_catalog *catalog_unref(struct gw_catalog *catalog);
void catalog_signal(struct gw_catalog *catalog, bool *flag);
/* There was no memory: in a while. */
void catalog_try_again(struct gw_catalog *catalog, bool must_watch);
/* Nothing is pending any more? Then ends what is ending. */
void catalog_check_stopped(struct gw_catalog *catalog);

/* ---- catalog_record.c ---- */
/* The key of an owner in the quotas; 0 where owners are not told apart. */
uint16_t record_holder(const struct gw_catalog *catalog, peg_str owner);
struct gw_record *record_find(const struct gw_catalog *catalog, peg_str name);
/* Finds or makes it. PEG_ENOMEM, PEG_ELIMIT. */
peg_status record_get(struct gw_catalog *catalog, peg_str name, struct gw_record **ret_record);
void record_free_all(struct gw_catalog *catalog);
void record_remove(struct gw_catalog *catalog, struct gw_record *record);
/* What stands under the name is this toolset from now on (NULL: none); takes a reference. Without
 * memory nothing is changed; with a place that was reserved it always works. */
peg_status record_apply(struct gw_catalog *catalog, struct gw_record *record,
                        struct gw_toolset *toolset);
peg_status record_reserve(struct gw_catalog *catalog);
/* The value for the map of a toolset, or of its end. NULL: no memory. */
struct peg__blob *record_value(const struct gw_toolset *toolset, uint64_t revision, int64_t at_ms);
/* *ret_toolset NULL: it is the end of one. */
struct gw_value {
    struct gw_toolset *toolset;
    uint64_t revision;
    int64_t at_ms;
};
peg_status record_read_value(peg_str name, peg_str value, struct gw_value *ret_value,
                             peg_error *reterr);
/* All records of the store; before home knows of the catalog. */
peg_status record_read_store(struct gw_catalog *catalog, peg_error *reterr);

/* ---- catalog_change.c ---- */
/* NULL: no memory. */
struct gw_change *change_new(struct gw_catalog *catalog, enum gw_change_kind kind, peg_str name,
                             peg_str principal);
void change_free(struct gw_change *change);
void change_queue(struct gw_catalog *catalog, struct gw_change *change);
void change_run_queue(struct gw_catalog *catalog);
/* Back to the asker, as change->status says. */
void change_answer(struct gw_change *change);
void change_cancel_all(struct gw_catalog *catalog);
void change_init(struct gw_catalog *catalog);

/* ---- catalog_map.c ---- */
void catalog_map_init(struct gw_catalog *catalog);
void catalog_map_watch(struct gw_catalog *catalog);
/* Queues a change that makes the map, or the store, say what the record says. */
void catalog_map_repair(struct gw_catalog *catalog, struct gw_record *record,
                        enum gw_change_kind kind);
void catalog_map_repair_all(struct gw_catalog *catalog);

/* ---- snapshot.c ---- */
/* Sends a snapshot to all loops if the last one is old, then answers what waits for it. */
void catalog_publish(struct gw_catalog *catalog);
void catalog_publish_later(struct gw_catalog *catalog);
void catalog_snapshot_free(struct gw_catalog *catalog);

#endif
