/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_REGISTRY_H
#define PEG_CORE_REGISTRY_H

#include <pthread.h>

#include "core/registry_layers.h"
#include "pegboard/registry.h"

/* The lock is held for as long as it takes to look up, list, or change, never while the host is
 * called: readers share it. */
struct peg_registry {
    atomic_uint n_refs;
    pthread_rwlock_t lock;
    struct peg__layers layers;
    bool is_stand_in; /* nobody gave one: a dispatch needs a place for its own tools */
};

/* What a registry holds at this moment; the caller's. PEG_ENOMEM. */
peg_status peg__registry_snapshot(peg_registry *registry, struct peg__layers *ret_layers,
                                  peg_error *reterr);

/* The visible tools in the neutral form of definitions.h; one reference. The same document each
 * time as long as nothing changes in a registry that is as it was made or copied. PEG_ENOMEM,
 * PEG_ELIMIT.
 */
peg_status peg__registry_definitions(peg_registry *registry, struct peg__shared **ret_shared,
                                     peg_error *reterr);
/* An empty one for those who were given none. */
peg_status peg__registry_stand_in(peg_registry **ret_registry, peg_error *reterr);
/* NULL, or a stand-in that has no tools but those forged for artifacts. */
bool peg__registry_is_absent(peg_registry *registry);

/* Replaces all tools of an owner (core/tool.h) by these, at once and all or nothing. A name that
 * somebody else's tool has stays that tool's; *ret_n_shadowed (may be NULL) counts them. Of two
 * tools with one name the later counts. Hidden marks and places of names that stay are kept. */
peg_status peg__registry_replace_owned(peg_registry *registry, const char *owner,
                                       peg_tool *const *tools, size_t n_tools,
                                       size_t *ret_n_shadowed, peg_error *reterr);

#endif
