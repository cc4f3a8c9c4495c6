/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_CATALOG_H
#define PEG_GATEWAY_CATALOG_CATALOG_H

/*
 * What toolsets there are. One loop of a node, the first, is their home: it alone watches the
 * bus's map of toolsets and writes store and map. Every change makes a new snapshot, immutable and
 * shared, which is posted to all loops; a loop reads its snapshot and nothing else.
 *
 *   Register on loop 2 --post--> home: worker compiles, store, map --> snapshot to all loops
 *                      <-post--- done, behind the snapshot: own writes are visible at once
 */

#include "bus/bus.h"
#include "gateway/catalog/toolset.h"
#include "net/loop/loop.h"
#include "pegboard/store.h"

/* Toolsets by name, and what finds them by words. */
struct gw_snapshot {
    atomic_uint n_refs;
    uint64_t number;                    /* grows */
    struct gw_toolset *const *toolsets; /* by name */
    size_t n;
    size_t n_tools;
    struct gw_search_index *index; /* search/search.h */
};
struct gw_snapshot *gw_snapshot_ref(struct gw_snapshot *snapshot);
struct gw_snapshot *gw_snapshot_unref(struct gw_snapshot *snapshot);
/* Borrowed from the snapshot; NULL: there is none. */
struct gw_toolset *gw_snapshot_find(const struct gw_snapshot *snapshot, peg_str name);
/* The place of the first toolset whose name is greater: n if there is none. */
size_t gw_snapshot_behind(const struct gw_snapshot *snapshot, peg_str name);

/* What became of a registration or its end. On the asker's loop; the toolset, which stands now
 * (NULL after an end), is borrowed until it returns. */
struct gw_change_wait {
    void (*fn)(struct gw_change_wait *wait, peg_status status, const struct gw_toolset *toolset,
               const peg_error *error);
    void *pending; /* the catalog's; NULL: nothing is asked */
};

/* How the words of texts become stems (search/search.h). Plain data. */
struct gw_language {
    const char *stemmer; /* libstemmer's name of it; NULL: words stay as they are */
};

struct gw_catalog;

struct gw_catalog_events {
    /* On each loop: a new snapshot; whoever keeps it takes a reference. */
    void (*on_snapshot)(void *desk, struct gw_snapshot *snapshot);
};

/* All of it is copied, or outlives the catalog. */
struct gw_catalog_options {
    struct net_loops *loops;
    struct bus *home_bus; /* of loop 0 */
    const peg_store *store;
    const struct gw_catalog_events *events;
    void *const *desks;          /* desks[i] is handed to on_snapshot on loop i */
    struct gw_language language; /* of the search index */
    bool has_principals;         /* each has its share of toolsets, names and bytes */
};

/* Reads the store, which blocks, and returns when every loop has been sent the first snapshot: from
 * a thread that is none of the loops'. A record that cannot be read is told in the log, and left
 * alone. */
peg_status gw_catalog_new(const struct gw_catalog_options *options, struct gw_catalog **ret_catalog,
                          peg_error *reterr);
/* While the loops and the bus are there; from a thread that is none of the loops'. Whoever still
 * waits hears PEG_ECANCELED. No snapshot is sent any more when it returns. */
struct gw_catalog *gw_catalog_free(struct gw_catalog *catalog);

/* From any loop of the node, `loop` being the asker's. The answer always comes, later (without
 * memory it may come at once), unless the asker forgets it. What has been answered is in the
 * snapshots of all loops, or on its way to them, and is in the asker's.
 *
 * gw_catalog_offer() has a worker take the request apart first; it is borrowed until it returns.
 * gw_catalog_register() takes over the reference, which must be the only one: it sets date and
 * revision. `has_live` tells whether the toolset has live providers, for a change of kind.
 *
 * Errors: those of gw_toolset_make(); PEG_EEXISTS (E_NOT_OWNER): it belongs to another principal;
 * PEG_ESTATE (E_TOOLSET_KIND); PEG_EIO (E_STORE, E_BUS): nothing was changed; PEG_ELIMIT
 * (E_TOOLSETS: PEG_LIMIT_GATEWAY_TOOLSETS, PEG_LIMIT_GATEWAY_RECORDS, PEG_LIMIT_BUS_MAP_BYTES, or
 * this principal's share of one of them, PEG_LIMIT_QUOTA_SHARE); PEG_ENOTFOUND (E_TOOLSET): there
 * is none. An equal registration changes nothing and is answered with the toolset that stands.
 * gw_wire_error() has their names. */
void gw_catalog_offer(struct gw_catalog *catalog, struct net_loop *loop,
                      const struct Pegboard__V1__RegisterRequest *request, peg_str principal,
                      bool has_live, struct gw_change_wait *wait);
void gw_catalog_register(struct gw_catalog *catalog, struct net_loop *loop,
                         struct gw_toolset *toolset, bool has_live, struct gw_change_wait *wait);
/* For an operator, who may take out what any principal has registered: a name that none has. */
#define GW_ANY_OWNER ((peg_str){"", 0})
void gw_catalog_unregister(struct gw_catalog *catalog, struct net_loop *loop, peg_str name,
                           peg_str principal, struct gw_change_wait *wait);
/* On the asker's loop. One that asks nothing is left alone. */
void gw_change_forget(struct gw_change_wait *wait);

#endif
