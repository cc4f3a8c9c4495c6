/* SPDX-License-Identifier: Apache-2.0 */

/* Who hears of changes of a registry: providers, which offer what it holds to a gateway. */

#include "core/registry/registry.h"

void peg__registry_observe(peg_registry *registry, struct peg__registry_observer *observer)
{
    pthread_rwlock_wrlock(&registry->lock);
    observer->next = registry->observers;
    registry->observers = observer;
    pthread_rwlock_unlock(&registry->lock);
}

void peg__registry_unobserve(peg_registry *registry, struct peg__registry_observer *observer)
{
    struct peg__registry_observer **at = &registry->observers;

    pthread_rwlock_wrlock(&registry->lock);
    while (*at && *at != observer)
        at = &(*at)->next;
    if (*at)
        *at = observer->next;
    pthread_rwlock_unlock(&registry->lock);
}

void peg__registry_unlock(peg_registry *registry, bool has_changed)
{
    for (struct peg__registry_observer *o = registry->observers; o && has_changed; o = o->next)
        o->fn(o);
    pthread_rwlock_unlock(&registry->lock);
}
