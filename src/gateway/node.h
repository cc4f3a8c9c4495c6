/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_NODE_H
#define PEG_GATEWAY_NODE_H

/* A node: its loops, a desk on each, and what they share. Made by gateway.c; services find their
 * desk here. */

#include "gateway/calls/calls.h"
#include "grpc/server/server.h"

struct gw_watches;      /* watch.h */
struct gw_metrics_page; /* metrics_page.h */
struct gw_event_log;    /* journal.h */
struct gw_auth;         /* auth.h */

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
    struct net_loops *loops;
    unsigned n_desks;
    struct gw_calls **desks;        /* [i] on loop i */
    struct gw_presence **presences; /* likewise */
    struct gw_watches **watches;    /* likewise */
    struct gw_catalog *catalog;
    struct gw_metrics *metrics;
    struct gw_metrics_page *metrics_page;
    struct gw_event_log *journal;
    struct gw_auth *auth;
    struct grpc_server *server;
    struct pegboard_v1_registry_handlers *handlers; /* service_registry.c's */
    atomic_bool is_draining;
    /* Ends peg_gateway_run(), as peg_gateway_stop() does; any thread. */
    void (*stop)(void *user);
    void *stop_user;
};

/* The desk of the loop that a call is on. */
struct gw_calls *gw_node_calls(const struct gw_node *node, const struct net_loop *loop);

#endif
