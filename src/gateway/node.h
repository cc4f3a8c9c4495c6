/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_NODE_H
#define PEG_GATEWAY_NODE_H

/* A node: its loops, the calls of each, and what they share. gateway.c makes it, node.c has the
 * state of a loop, drain.c stops it. */

#include <stdatomic.h>

#include "base/quota.h"
#include "calls/calls.h"
#include "gateway/direct/direct.h"
#include "gateway/routing/call_span.h"
#include "gateway/routing/routing.h"
#include "grpc/server/server.h"
#include "net/loop/loop.h"
#include "pegboard/gateway.h"

struct bus_local_hub;
struct bus_redis_hub;
struct gw_auth;
struct gw_changes;
struct gw_event_log;
struct gw_leader;
struct gw_mcp;
struct gw_member;
struct gw_members;
struct gw_metrics_page;
struct gw_watches;

struct gw_node {
    uint64_t id;
    char name[257];                /* of the registry */
    _Atomic(const char *) address; /* where it listens; NULL: not yet */
    const char *store_kind;
    const char *bus_kind;
    int64_t started_ms; /* Unix time */
    int64_t ping_interval_ms;
    int64_t lease_ms;
    int64_t drain_ms;
    unsigned goa_generation; /* of the clients of goa_ai_registry.Registry: 1 or 2 */
    struct net_loops *loops;
    unsigned n_loops;
    struct calls_homes *homes;      /* which loop has the call of an identity; NULL: there is one */
    struct calls_loop **calls;      /* [i] on loop i */
    struct gw_presence **presences; /* likewise */
    atomic_ullong *known_providers; /* [i]: how far loop i knows the map of them */
    struct gw_watches **watches;    /* likewise */
    struct gw_changes *changes;     /* for watchers that come back */
    struct {
        struct gw_mcp **loops; /* likewise */
        char *hosts;           /* names that MCP clients may use, between commas; NULL: none */
        size_t search_above;   /* with more tools than this they search; 0: never */
        char *issuer; /* of their tokens: --mcp-authorization-server; NULL: none is named */
        bool has_tls;
        struct peg__quota sessions;
    } mcp;
    struct {
        char *cors_origins; /* of pages that may use the HTTP API, between commas; NULL: none */
        bool has_console;
    } http;
    struct gw_members **members; /* likewise */
    struct gw_leader *leader;    /* on the first loop */
    struct gw_keeper *keeper;    /* likewise; NULL: there are no direct toolsets */
    struct gw_keeper_counts keeper_counts;
    struct bus_redis_hub *redis; /* NULL: it is alone */
    struct gw_catalog *catalog;
    struct gw_metrics *metrics;
    struct gw_metrics_page *metrics_page;
    struct gw_event_log *log;
    struct gw_tracer tracer;
    struct gw_auth *auth;
    struct grpc_server *server;
    struct pegboard_v1_registry_handlers *handlers; /* rpc/registry.c's */
    atomic_bool is_draining;
    /* Ends peg_gateway_run(), as peg_gateway_stop() does; any thread. */
    void (*stop)(void *user);
    void *stop_user;
};

/* The calls of a loop, which is one of the node's. */
static inline struct calls_loop *gw_node_calls(const struct gw_node *node,
                                               const struct net_loop *loop)
{
    unsigned i = 0;

    while (i + 1 < node->n_loops && node->calls[i]->loop != loop)
        i++;
    return node->calls[i];
}

/* What a node has on one loop. */
struct gw_loop_state {
    struct gw_node *node;
    unsigned number;
    struct bus_local_hub *hub;
    struct bus_redis_hub *redis; /* instead of it, in a cluster */
    struct calls_options options;
    struct gw_presence_options health;
    struct bus *bus;
    struct gw_router router;
    peg_status status;
    peg_error error;
    struct net_message eviction;  /* of principals that are not known any more */
    atomic_bool is_eviction_sent; /* the message is on its way */
};

extern const struct gw_catalog_events
    gw_loop_state_events; /* with a struct gw_loop_state as user */

bool gw_has_redis(const peg_gateway_config *config);
/* Refuses what no gateway can be made from (config.c). */
peg_status gw_check_config(const peg_gateway_config *config, peg_error *reterr);
/* What the loops' buses share: one of the two. A Redis that cannot be used is an error now, not
 * when the first call comes. */
peg_status gw_node_open_bus(const struct gw_node *node, const peg_gateway_config *config,
                            struct bus_local_hub **ret_hub, struct bus_redis_hub **ret_redis,
                            peg_error *reterr);

peg_status gw_loop_state_init(struct gw_loop_state *state, peg_error *reterr);
void gw_loop_state_clear(struct gw_loop_state *state);
/* Ends what principals have there that are not known any more. A loop, from which a host reloads
 * when something is logged, is in the middle of anything, and does not wait for it: another one may
 * be about to wait for that loop. */
void gw_loop_state_evict_unknown(struct gw_loop_state *state, bool waits);

/* Waits until the node is announced, and knows that it may be one of the registry. PEG_ESTATE
 * (E_PROTOCOL_VERSION): a live node of it has another protocol; PEG_EIO (E_JOIN). */
peg_status gw_node_join(struct gw_node *node, peg_error *reterr);
/* What a node says of its calls. */
void gw_member_count(struct gw_member *member, const struct gw_totals *totals);
/* Announces what it is now: it listens, or drains. */
void gw_node_announce(struct gw_node *node);

/* Refuses new calls and providers, waits at most drain_ms for those that run, then ends the
 * streams. When `is_hurried` returns true it stops waiting, for connections too. True: everything
 * ended in good order. */
bool gw_node_drain(struct gw_node *node, struct gw_loop_state *states, int64_t drain_ms,
                   bool (*is_hurried)(void *user), void *user);

/* Runs `fn` on a loop and waits until it returns; from a thread that is none of the node's loops'.
 */
void gw_on_loop(struct net_loop *loop, void (*fn)(void *user), void *user);

#endif
