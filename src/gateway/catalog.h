/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_H
#define PEG_GATEWAY_CATALOG_H

/*
 * What toolsets there are. One loop of a node, the first, is their home: it alone watches the
 * bus's map of toolsets and writes store and map. Every change makes a new snapshot, immutable and
 * shared, which is posted to all loops; a loop reads its snapshot and nothing else.
 *
 *   Register on loop 2 --post--> home: worker compiles, store, map --> snapshot to all loops
 *                      <-post--- done, behind the snapshot: own writes are visible at once
 */

#include "bus/bus.h"
#include "gateway/toolset.h"
#include "net/loop.h"
#include "pegboard/store.h"

/* Toolsets by name, and what finds them by words. */
struct gw_snapshot {
    atomic_uint n_refs;
    uint64_t number;                    /* grows */
    struct gw_toolset *const *toolsets; /* by name */
    size_t n;
    size_t n_tools;
    struct gw_search_index *index; /* search.c's */
};
struct gw_snapshot *gw_snapshot_ref(struct gw_snapshot *snapshot);
struct gw_snapshot *gw_snapshot_unref(struct gw_snapshot *snapshot);
/* Borrowed from the snapshot; NULL: there is none. */
struct gw_toolset *gw_snapshot_find(const struct gw_snapshot *snapshot, peg_str name);

/* What became of a registration or its end. On the asker's loop. */
struct gw_change_wait {
    void (*fn)(struct gw_change_wait *wait, peg_status status, const struct gw_toolset *toolset,
               const peg_error *error);
    bool is_pending; /* the rest is the catalog's */
    void *pending;
};

struct gw_catalog;

struct gw_catalog_events {
    /* On each loop: a new snapshot; it keeps a reference of its own. */
    void (*on_snapshot)(void *desk, struct gw_snapshot *snapshot);
};

/* `desks[i]` is handed to on_snapshot on loop i. The store is the gateway's. Reads the store (it
 * blocks: before the loops serve) and tells every loop the first snapshot. */
peg_status gw_catalog_new(struct net_loops *loops, struct bus *home_bus, const peg_store *store,
                          const struct gw_catalog_events *events, void *const *desks,
                          struct gw_catalog **ret_catalog, peg_error *reterr);
struct gw_catalog *gw_catalog_free(struct gw_catalog *catalog);

/* From any loop of the node, `loop` being the asker's. The answer always comes, later, unless the
 * asker forgets it; `has_live` tells whether the toolset has live providers (of `kind`), for a
 * change of kind. Errors: those of gw_toolset_make(); PEG_EEXISTS (E_NOT_OWNER): it belongs to
 * another principal; PEG_ESTATE (E_TOOLSET_KIND); PEG_EIO: the store; PEG_ENOTFOUND. An equal
 * registration changes nothing and is answered with the toolset that stands. */
void gw_catalog_register(struct gw_catalog *catalog, struct net_loop *loop,
                         struct gw_toolset *toolset, bool has_live, struct gw_change_wait *wait);
void gw_catalog_unregister(struct gw_catalog *catalog, struct net_loop *loop, peg_str name,
                           peg_str principal, struct gw_change_wait *wait);
void gw_change_forget(struct gw_change_wait *wait);

#endif
