/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_REGISTRY_REGISTRY_H
#define PEG_CORE_REGISTRY_REGISTRY_H

#include <pthread.h>

#include "base/shared_symbols.h"
#include "core/registry/internal.h"
#include "pegboard/registry.h"

/* Notified of every change of a registry, on the thread that changes it and under its lock: fn
 * must neither wait nor use the registry. Owned by the observer. */
struct peg__registry_observer {
    void (*fn)(struct peg__registry_observer *observer);
    struct peg__registry_observer *next;
};

/* The lock is held for as long as it takes to look up, list, or change, never while the host is
 * called: readers share it. */
struct peg_registry {
    atomic_uint n_refs;
    pthread_rwlock_t lock;
    struct peg__layers layers;
    struct peg__registry_observer *observers; /* under the lock */
    bool is_stand_in; /* the host set none: a dispatch needs a place for its own tools */
};

PEG__SHARED void peg__registry_observe(peg_registry *registry,
                                       struct peg__registry_observer *observer);
/* It is not notified any more when this returns. Silent if it does not observe. */
PEG__SHARED void peg__registry_unobserve(peg_registry *registry,
                                         struct peg__registry_observer *observer);
/* Releases the writer's lock; notifies observers if there was a change. */
void peg__registry_unlock(peg_registry *registry, bool has_changed);

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
peg_status peg__registry_placeholder(peg_registry **ret_registry, peg_error *reterr);
/* NULL, or a stand-in that has no tools but those forged for artifacts. */
bool peg__registry_is_absent(peg_registry *registry);

/* Replaces all tools of an owner (core/tool/tool.h) by these, at once and all or nothing. A name
 * that somebody else's tool has stays that tool's; *ret_n_shadowed (may be NULL) counts them. Of
 * two tools with one name the later counts. Hidden marks and places of names that stay are kept. */
peg_status peg__registry_replace_owned(peg_registry *registry, const char *owner,
                                       peg_tool *const *tools, size_t n_tools,
                                       size_t *ret_n_shadowed, peg_error *reterr);

#endif
