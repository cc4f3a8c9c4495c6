/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_PRESENCE_H
#define PEG_GATEWAY_CATALOG_PRESENCE_H

/*
 * Who provides what, and whether they are well: one loop's replica of the bus's map of providers.
 * The loop that holds a provider's stream writes its entry; every loop reads the same ones.
 *
 * An attached provider is well from its Hello on, as long as its last pong is not older than
 * (missed_pings + 1) * ping_interval, and not older than the schemas of its toolset. A toolset is
 * healthy if one of its providers is well and does not drain.
 */

#include "base/buf.h"
#include "bus/bus.h"
#include "gateway/catalog/toolset.h"

struct gw_provider_entry {
    char incarnation[65];
    struct bus_address address; /* the loop that holds its stream */
    int64_t last_pong_ms;       /* cluster time; its Hello to begin with */
    bool is_draining;
    bool is_awaited;    /* its toolset has other schemas since its last pong */
    uint32_t credits;   /* calls at once */
    uint32_t sent;      /* calls of this loop's that it has now; send.c counts */
    uint64_t serves;    /* the revision of the toolset that its stream has spoken of */
    bool said_outdated; /* it gave a call back that did not fit its version */
    /* the presence's */
    uint64_t revision; /* of its key in the map */
    bool is_told;      /* by the snapshot of the map that is being listened to */
};

struct gw_presence;

struct gw_presence_options {
    int64_t ping_interval_ms;
    unsigned missed_pings;
};

enum gw_health_state { GW_HEALTHY, GW_UNHEALTHY };
struct gw_health {
    enum gw_health_state state;
    int64_t last_pong_ms; /* 0: never */
    unsigned n_providers;
    unsigned n_draining;
    int64_t staleness_ms; /* the threshold */
};

/* `on_change` is called for each toolset whose health or providers changed (a pong alone is no
 * change), also when one has become stale: a timer looks. */
peg_status gw_presence_new(struct bus *bus, const struct gw_presence_options *options,
                           void (*on_change)(void *user, peg_str toolset), void *user,
                           struct gw_presence **ret_presence, peg_error *reterr);
struct gw_presence *gw_presence_free(struct gw_presence *presence);

struct gw_health gw_presence_health(struct gw_presence *presence, peg_str toolset);
/* The providers of a toolset; borrowed until the presence changes. */
struct gw_provider_entry *gw_presence_providers(struct gw_presence *presence, peg_str toolset,
                                                size_t *ret_n);
bool gw_provider_is_well(const struct gw_presence *presence, const struct gw_provider_entry *entry,
                         int64_t now_ms);
/* In words, for service_unavailable: `no healthy providers for toolset "x"
 * (staleness_threshold=40s, last_pong=<RFC 3339|missing>, age=12.5s)`. */
void gw_presence_explain(struct gw_presence *presence, peg_str toolset, struct peg__buf *ret_text);

/* The holder's side: writes an entry of this loop, changes it, removes it. What the bus could not
 * write is written again later, and after a reset. An entry that another loop has written meanwhile
 * is theirs, and is neither changed nor removed: the provider has moved there.
 * PEG_ENOMEM; PEG_ELIMIT (PEG_LIMIT_GATEWAY_PROVIDERS): nothing was written. */
peg_status gw_presence_put(struct gw_presence *presence, peg_str toolset,
                           const struct gw_provider_entry *entry, peg_error *reterr);
void gw_presence_pong(struct gw_presence *presence, peg_str toolset, const char *incarnation);
/* It is not well until its next pong. */
void gw_presence_await(struct gw_presence *presence, peg_str toolset, const char *incarnation);
/* Its stream has spoken of that revision of its toolset. */
void gw_presence_serve(struct gw_presence *presence, peg_str toolset, const char *incarnation,
                       uint64_t revision);
void gw_presence_remove(struct gw_presence *presence, peg_str toolset, const char *incarnation);
/* `fn` hears of each provider of this loop that has moved, perhaps several times, and from within
 * any of the functions above. NULL: nobody does. */
void gw_presence_on_moved(struct gw_presence *presence,
                          void (*fn)(void *user, const char *incarnation), void *user);

#endif
