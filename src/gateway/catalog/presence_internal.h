/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_PRESENCE_INTERNAL_H
#define PEG_GATEWAY_CATALOG_PRESENCE_INTERNAL_H

/* presence.c has the replica, presence_own.c what this loop writes, presence_value.c the form in
 * which it stands in the map. */

#include "base/map.h"
#include "gateway/catalog/presence.h"
#include "pegboard/tool_config.h"

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
    int64_t last_pong_ms;      /* of all that ever were */
    enum gw_health_state told; /* the state that on_change was last called for */
    size_t n_told;             /* and how many there were then */
    size_t n_told_draining;
    bool is_changed; /* waits to be told */
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
    size_t n_entries;
    bool is_listening;                /* the map tells all there is */
    struct presence_toolset *changed; /* to be told, first to last */
    struct presence_toolset **changed_end;
    bool is_telling;     /* or will be soon: whoever changes something need not tell */
    struct peg__map own; /* struct presence_own */
    /* what may be pending */
    struct bus_watch watch;
    struct net_timer look;  /* who has become stale */
    struct net_timer again; /* there was no memory: watch anew */
    struct net_timer retry; /* entries of ours that could not be written */
};

/* ---- presence.c ---- */
struct presence_toolset *presence_find(const struct gw_presence *presence, peg_str toolset);
struct gw_provider_entry *presence_entry(const struct presence_toolset *toolset,
                                         const char *incarnation);

/* Tells what has changed, unless somebody is at it. */
void presence_tell(struct gw_presence *presence);

/* ---- presence_own.c ---- */
void presence_own_init(struct gw_presence *presence);
void presence_own_free(struct gw_presence *presence);
/* All that stands has been told: writes what is missing. The caller tells what has changed. */
void presence_own_ready(struct gw_presence *presence);
/* Another loop has written an entry. */
void presence_own_hear(struct gw_presence *presence, peg_str key,
                       const struct gw_provider_entry *entry);

/* ---- presence_value.c ---- */
peg_str presence_key(peg_str toolset, const char *incarnation, char ret_key[PRESENCE_KEY + 1]);
struct peg__blob *presence_write(const struct gw_provider_entry *entry);
/* Takes key and value apart. PEG_EPARSE: they are not ours; PEG_ENOMEM. */
peg_status presence_read(peg_str key, const struct peg__blob *value, peg_str *ret_toolset,
                         struct gw_provider_entry *ret_entry);
bool presence_read_key(peg_str key, peg_str *ret_toolset, struct gw_provider_entry *ret_entry);

#endif
