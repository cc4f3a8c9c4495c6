/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_CATALOG_H
#define PEG_GATEWAY_CATALOG_CATALOG_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "bus/bus.h"
#include "calls/environment.h"
#include "net/loop/loop.h"
#include "pegboard/json.h"
#include "pegboard/schema.h"
#include "pegboard/store.h"
#include "wire/wire.h"

/* A toolset as the catalog holds it. Immutable, reference counted, shared by all loops. */

struct gw_schema;

enum gw_kind { GW_ATTACHED, GW_DIRECT };

struct gw_tool {
    union { /* in one piece for calls/ */
        struct calls_tool of_calls;
        struct {
            CALLS_TOOL_MEMBERS;
        };
    };
    peg_str description;
    const peg_str *tags;
    size_t n_tags;
    peg_str title;
    peg_str version;       /* "": the toolset's */
    peg_str artifact_kind; /* "": none is named */
    peg_str examples;      /* a JSON array of objects, as registered; "": none */
    bool is_read_only;     /* hints; of what is not set nothing is known */
    bool is_destructive;
    bool is_additive;
    peg_str input_schema;  /* as registered */
    peg_str output_schema; /* "": results are not checked */
    /* toolset_schema.c's: compiled, or to be compiled again. NULL: there is none. The texts above
     * are theirs. */
    struct gw_schema *input;
    struct gw_schema *output;
};

/* Strings end with NUL and live as long as the toolset. */
struct gw_toolset {
    union { /* likewise */
        struct calls_toolset of_calls;
        struct {
            CALLS_TOOLSET_MEMBERS;
        };
    };
    atomic_uint n_refs;
    peg_str description;
    peg_str version;
    const peg_str *tags;
    size_t n_tags;
    const struct gw_tool *tools; /* in the order in which they were registered */
    size_t n_tools;
    const uint32_t *by_name; /* places in tools, by name */
    enum gw_kind kind;
    int64_t registered_at_ms;
    size_t stored_bytes; /* of its JSON in the map; 0: not written yet */
    /* SHA-256 of what a caller sees of it, owner and dates aside: a registration that is equal
     * changes nothing. */
    unsigned char digest[32];
};

/* Takes a registration apart: names, limits, every schema compiled. Nothing is kept on failure.
 * PEG_EINVAL (E_MISSING_FIELD, E_INVALID_LENGTH, E_INVALID_PATTERN, E_INVALID_RANGE, E_NAME),
 * PEG_ESCHEMA (E_TOOL_SCHEMA: `invalid tool schema: tool "x": input schema: ...`),
 * PEG_ELIMIT (names the limit), PEG_ENOMEM. Any thread: it may take milliseconds, workers do it. */
struct Pegboard__V1__RegisterRequest;
struct gw_toolset_dates {
    peg_str owner;
    int64_t registered_at_ms;
    uint64_t revision;
};
peg_status gw_toolset_make(const struct Pegboard__V1__RegisterRequest *request,
                           const struct gw_toolset_dates *dates, struct gw_toolset **ret_toolset,
                           peg_error *reterr);
struct gw_toolset *gw_toolset_ref(struct gw_toolset *toolset);
struct gw_toolset *gw_toolset_unref(struct gw_toolset *toolset);

/* The time of a call or of a wait, wherever a request names one: 0 (the gateway's own) to
 * PEG_LIMIT_GATEWAY_MAX_CALL_MS. PEG_EINVAL (E_INVALID_RANGE). */
peg_status gw_check_timeout(int64_t timeout_ms, peg_error *reterr);

/* The registry's word for what gw_toolset_make(), a request check or the catalog failed with:
 * missing_field, invalid_length, permission_denied, conflict, ... */
enum wire_error gw_wire_error(const peg_error *error);

/* The one with that name, or NULL. */
const struct gw_tool *gw_toolset_tool(const struct gw_toolset *toolset, peg_str name);

/* Does it have all of these tags? */
bool gw_toolset_has_tags(const struct gw_toolset *toolset, char *const *tags, size_t n);

/* The same tools, taking and giving the same? Then those who provide one can provide the other. */
bool gw_toolset_has_schemas_of(const struct gw_toolset *toolset, const struct gw_toolset *other);

/* The JSON that stores and maps keep; reading it checks everything again. */
peg_status gw_toolset_write(const struct gw_toolset *toolset, struct peg__buf *ret_json,
                            peg_error *reterr);
peg_status gw_toolset_read(peg_str json, struct gw_toolset **ret_toolset, peg_error *reterr);
enum { GW_TOOLSET_FORMAT = 1 }; /* raised when an older version could not read what is written */

/* A reference on the compiled schema of a tool; NULL only without memory, or where there is no
 * output schema. Any thread. It is compiled again, in microseconds, if it had to make room; else
 * it costs two locked instructions. */
peg_schema *gw_tool_input_schema(const struct gw_tool *tool);
peg_schema *gw_tool_output_schema(const struct gw_tool *tool);

/* ---- toolset_schema.c: schemas by their text, shared by all toolsets of the process ---- */

/* Compiles the text, unless it is known. One reference for the caller. PEG_ESCHEMA, PEG_EPARSE,
 * PEG_ELIMIT as peg_schema_compile(). */
peg_status gw_schema_get(peg_str text, struct gw_schema **ret_schema, peg_error *reterr);
struct gw_schema *gw_schema_unref(struct gw_schema *schema);
/* As it was registered; lives as long as the schema does. */
peg_str gw_schema_text(const struct gw_schema *schema);
/* How many there are, and bytes of those that are compiled now. */
size_t gw_schema_count(size_t *ret_compiled_bytes);
/* Tests: another bound than PEG_LIMIT_GATEWAY_COMPILED_BYTES; 0: that one. */
void gw_schema_set_budget(size_t bytes);

/*
 * What toolsets there are. One loop of a node, the first, is their home: it alone watches the
 * bus's map of toolsets and writes store and map. Every change makes a new snapshot, immutable and
 * shared, which is posted to all loops; a loop reads its snapshot and nothing else.
 *
 *   Register on loop 2 --post--> home: worker compiles, store, map --> snapshot to all loops
 *                      <-post--- done, behind the snapshot: own writes are visible at once
 */

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
    /* On each loop: a new snapshot; to keep it, take a reference. */
    void (*on_snapshot)(void *user, struct gw_snapshot *snapshot);
};

/* All of it is copied, or outlives the catalog. */
struct gw_catalog_options {
    struct net_loops *loops;
    struct bus *home_bus; /* of loop 0 */
    const peg_store *store;
    const struct gw_catalog_events *events;
    void *const *users;          /* users[i] is handed to on_snapshot on loop i */
    struct gw_language language; /* of the search index */
    bool has_principals;         /* each has its share of toolsets, names and bytes */
};

/* Reads the store, which blocks, and returns when every loop has been sent the first snapshot: from
 * a thread that is none of the loops'. A record that cannot be read is reported in the log, and
 * left alone. */
peg_status gw_catalog_new(const struct gw_catalog_options *options, struct gw_catalog **ret_catalog,
                          peg_error *reterr);
/* While the loops and the bus are there; from a thread that is none of the loops'. Changes that
 * still wait get PEG_ECANCELED. No snapshot is sent any more when it returns. */
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
 * PEG_ESTATE (E_TOOLSET_KIND); PEG_EIO (E_STORE, E_GATEWAY): nothing was changed; PEG_ELIMIT
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

/*
 * The providers of toolsets and their health: one loop's replica of the bus's map of providers.
 * The loop that has a provider's stream writes its entry; every loop reads the same ones.
 *
 * An attached provider is well from its Hello on, as long as its last pong is not older than
 * (missed_pings + 1) * ping_interval, and not older than the schemas of its toolset. A toolset is
 * healthy if one of its providers is well and does not drain.
 */

struct gw_provider_entry {
    char incarnation[65];
    struct bus_address address; /* the loop that holds its stream */
    int64_t last_pong_ms;       /* cluster time; its Hello to begin with */
    bool is_draining;
    bool is_awaited;    /* its toolset has other schemas since its last pong */
    bool is_direct;     /* stands for all providers of a direct toolset */
    uint32_t credits;   /* calls at once */
    uint32_t sent;      /* calls of this loop's that it has now; send.c counts */
    uint64_t serves;    /* the revision of the toolset that its stream has spoken of */
    bool said_outdated; /* it gave a call back that did not fit its version */
    /* the presence's */
    uint64_t revision; /* of its key in the map */
    bool is_reported;  /* by the snapshot of the map that is being listened to */
};

struct gw_presence;

struct gw_presence_options {
    int64_t ping_interval_ms;
    unsigned missed_pings;
    /* The revision of the map up to which each loop of the node knows it: it outlives them. NULL:
     * there is one loop. */
    atomic_ullong *known;
    unsigned n_loops;
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
/* Is its state GW_HEALTHY? */
bool gw_presence_is_healthy(struct gw_presence *presence, peg_str toolset);
/* Has it providers that a change of its kind would cut off? One is attached, or a direct one has
 * answered a ping in time. */
bool gw_presence_is_live(struct gw_presence *presence, peg_str toolset);
/* The providers of a toolset; borrowed until the presence changes. */
struct gw_provider_entry *gw_presence_providers(struct gw_presence *presence, peg_str toolset,
                                                size_t *ret_n);
bool gw_provider_is_well(const struct gw_presence *presence, const struct gw_provider_entry *entry,
                         int64_t now_ms);
/* In words, for service_unavailable: `no healthy providers for toolset "x"
 * (staleness_threshold=40s, last_pong=<RFC 3339|missing>, age=12.5s)`. */
void gw_presence_explain(struct gw_presence *presence, peg_str toolset, struct peg__buf *ret_text);

/* How many entries there are of providers that are attached to that node. */
size_t gw_presence_count_at(const struct gw_presence *presence, uint64_t node);

/* The loop with that address is gone, and the streams of its providers with it. */
void gw_presence_on_node_lost(struct gw_presence *presence, struct bus_address address);

/* The quota_key's side: writes an entry of this loop, changes it, removes it. What the bus could
 * not write is written again later, and after a reset. An entry that another loop has written
 * meanwhile is theirs, and is neither changed nor removed: the provider has moved there.
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
/* Is the entry written as it should be, and known to all loops of this node? Also if there is none.
 */
bool gw_presence_is_known(struct gw_presence *presence, peg_str toolset, const char *incarnation);

/* Of a direct toolset, whose providers have no stream that a loop could have: one entry stands for
 * all of them, and any loop writes it. A write that fails is not repeated: the next pong is.
 * `revision`: the toolset's. If it is awaited it is not well until the next pong. */
void gw_presence_put_direct(struct gw_presence *presence, peg_str toolset, uint64_t revision,
                            bool is_awaited);
void gw_presence_remove_direct(struct gw_presence *presence, peg_str toolset);

/* `fn` is called for each provider of this loop that has moved, perhaps several times, and from
 * within any of the functions above. May be NULL. */
void gw_presence_on_moved(struct gw_presence *presence,
                          void (*fn)(void *user, const char *incarnation), void *user);

#endif
