/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_CHANGES_H
#define PEG_GATEWAY_CATALOG_CHANGES_H

/*
 * What changed lately in the catalog of a node, so that a watcher that was cut off gets what it
 * missed: names and kinds of changes in a ring, which all loops of the node fill and read. A place
 * in it means: the watcher has been sent what its loop noted up to there.
 *
 * Each loop notes each change when it sees it, some earlier than others. So a watcher that comes
 * back on another loop gets changes of the last PEG_LIMIT_GATEWAY_LOOP_LAG_MS once more: there may
 * be some that the loop it comes from had not seen, and this one had.
 *
 * Threads: any; a lock.
 */

#include "pegboard/common.h"

struct gw_changes;
/* `origin` tells places of this ring from those of others. NULL: no memory. */
struct gw_changes *gw_changes_new(uint64_t origin, unsigned n_loops);
struct gw_changes *gw_changes_free(struct gw_changes *changes);

/* Nothing is noted before the first watcher comes. */
void gw_changes_begin(struct gw_changes *changes);
bool gw_changes_has_begun(const struct gw_changes *changes);
/* Returns the place of the change. `kind` is the caller's, below 256. */
uint64_t gw_changes_note(struct gw_changes *changes, peg_str toolset, unsigned kind);
uint64_t gw_changes_now(struct gw_changes *changes);

/* "9f86d081884c7d65-17", for the watcher. */
enum { GW_CHANGES_PLACE = 40 };
void gw_changes_print(const struct gw_changes *changes, uint64_t place,
                      char ret_text[GW_CHANGES_PLACE]);

/* A change that was missed. The name is borrowed until it returns; the lock is held. */
typedef void gw_changes_fn(void *user, uint64_t place, peg_str toolset, unsigned kind);
/* The changes behind a place, in order; the same change of a toolset perhaps once for several.
 * False: the place is of another ring, or what came behind it is not kept any more, or there is
 * more to tell than `max`; fn may have been called, `max` times at most. */
bool gw_changes_since(struct gw_changes *changes, peg_str place, size_t max, gw_changes_fn *fn,
                      void *user);

#endif
