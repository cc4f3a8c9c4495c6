/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_INTERNAL_H
#define PEG_GATEWAY_CATALOG_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "base/quota.h"
#include "gateway/catalog/catalog.h"
#include "pegboard/tool_config.h"

/*
 *   catalog.c        snapshots and the map of toolsets, and the life of a catalog
 *   change.c         one change at a time: parse on a worker, decide, store, map, undo
 *   toolset_check.c  rejects a registration that is wrong
 *   record.c         what is known of each name, and its form in store and map
 *   presence.c       a loop's replica of the map of providers
 *   presence_own.c   the entries that this loop writes, and their form in the map
 *
 * All fields of the catalog belong to the home loop unless it says otherwise.
 */

/* What is known of a name. It stays when the toolset is gone: so that what comes later has a
 * greater revision. */
struct gw_record {
    peg_str name;               /* the map's */
    struct gw_toolset *toolset; /* NULL: removed, or not readable */
    uint64_t revision;          /* of what is known; 0: nothing is */
    int64_t at_ms;              /* when it was removed */
    uint64_t map_revision;      /* of the key in the bus's map; 0: not there */
    uint64_t stored;            /* revision that the store has, as far as we know */
    bool is_reported;           /* by the snapshot of the map that is being listened to */
    bool is_unreadable;         /* never written by us */
    bool is_queued;             /* for the map, or for the store */
    uint16_t quota_key;         /* key of its owner, or of the last one, in the quotas */
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
    struct net_loop *loop;       /* the requester's; NULL: none */
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
    void **users;
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
    bool is_listening; /* the map is reporting all there is */
    bool is_ready;     /* it has reported all, at least once */
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
/* There was no memory: in a while. */
void catalog_try_again(struct gw_catalog *catalog, bool must_watch);
/* Ends what is stopping once nothing is pending. */
void catalog_check_stopped(struct gw_catalog *catalog);
/* Sends a snapshot to all loops if the last one is old, then answers what waits for it. */
void catalog_publish(struct gw_catalog *catalog);

/* ---- record.c ---- */
/* The key of an owner in the quotas; 0 where owners are not told apart. */
uint16_t record_quota_key(const struct gw_catalog *catalog, peg_str owner);
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

/* ---- change.c ---- */
/* NULL: no memory. */
struct gw_change *change_new(struct gw_catalog *catalog, enum gw_change_kind kind, peg_str name,
                             peg_str principal);
void change_queue(struct gw_catalog *catalog, struct gw_change *change);
void change_run_queue(struct gw_catalog *catalog);
/* Back to the asker, as change->status says. */
void change_answer(struct gw_change *change);
void change_cancel_all(struct gw_catalog *catalog);
void change_init(struct gw_catalog *catalog);

/* ---- presence ---- */

enum {
    PRESENCE_KEY = 256 + 1 + 64, /* toolset, '#', incarnation */
    PRESENCE_RETRY_MS = 500,
};

/* The providers of one toolset. It stays for a while when the last one has gone. */
struct presence_toolset {
    peg_str name; /* the map's */
    struct gw_provider_entry *entries;
    size_t n;
    size_t capacity;
    int64_t last_pong_ms;          /* of all that ever were */
    enum gw_health_state reported; /* the state that on_change was last called for */
    size_t n_reported;             /* and how many there were then */
    size_t n_reported_draining;
    bool is_changed; /* waits to be reported */
    struct presence_toolset *next_changed;
};

/* An entry that this loop writes. */
struct presence_own {
    struct bus_wait wait;
    struct gw_presence *presence;
    peg_str key; /* the map's */
    size_t toolset_len;
    struct gw_provider_entry entry; /* as it should be */
    uint64_t expected;              /* revision of the key; BUS_ANY_REVISION: whatever stands */
    bool is_gone;                   /* it should be removed */
    bool is_dirty;                  /* what is written, or was, is not what it should be */
};

struct gw_presence {
    struct bus *bus;
    struct gw_presence_options options;
    int64_t staleness_ms;
    char staleness[PEG_DURATION_TEXT]; /* the same in words */
    void (*on_change)(void *user, peg_str toolset);
    void *user;
    void (*on_moved)(void *user, const char *incarnation);
    void *moved_user;
    struct peg__map toolsets; /* struct presence_toolset */
    /* The one that was asked for last: a call asks four times, mostly in a row. NULL: none. */
    struct presence_toolset *asked;
    size_t n_entries;
    bool is_listening;                /* the map tells all there is */
    struct presence_toolset *changed; /* to be reported, first to last */
    struct presence_toolset **changed_end;
    bool is_notifying;   /* or will be soon: a change needs no further notice */
    struct peg__map own; /* struct presence_own */
    /* what may be pending */
    struct bus_watch watch;
    struct net_timer look;  /* who has become stale */
    struct net_timer again; /* there was no memory: watch anew */
    struct net_timer retry; /* entries of ours that could not be written */
};

/* ---- presence.c ---- */
struct presence_toolset *presence_find(struct gw_presence *presence, peg_str toolset);
struct gw_provider_entry *presence_entry(const struct presence_toolset *toolset,
                                         const char *incarnation);

/* Tells what has changed, unless somebody is at it. */
void presence_notify(struct gw_presence *presence);

/* ---- presence_own.c ---- */
void presence_own_init(struct gw_presence *presence);
void presence_own_free(struct gw_presence *presence);
/* All that stands has been told: writes what is missing. The caller tells what has changed. */
void presence_own_ready(struct gw_presence *presence);
/* Another loop has written an entry. */
void presence_own_on_written(struct gw_presence *presence, peg_str key,
                             const struct gw_provider_entry *entry);

peg_str presence_key(peg_str toolset, const char *incarnation, char ret_key[PRESENCE_KEY + 1]);
/* Parses key and value. PEG_EPARSE: they are not ours; PEG_ENOMEM. */
peg_status presence_read(peg_str key, const struct peg__blob *value, peg_str *ret_toolset,
                         struct gw_provider_entry *ret_entry);
bool presence_read_key(peg_str key, peg_str *ret_toolset, struct gw_provider_entry *ret_entry);

/* ---- toolset_check.c ---- */

/* PEG_EINVAL, PEG_ELIMIT with the place in `where`, PEG_ENOMEM. */
peg_status gw_toolset_check(const struct Pegboard__V1__RegisterRequest *request, peg_error *reterr);
/* Names the tool that an error is about. */
void gw_toolset_error_at(size_t i, peg_error *reterr);

#endif
