/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ROUTING_ROUTING_H
#define PEG_GATEWAY_ROUTING_ROUTING_H

/*
 * The environment of the calls of one loop (calls/environment.h): toolsets from the catalog,
 * providers from the presence, counters from the metrics. environment.c answers, choose.c picks the
 * provider of a call.
 */

#include "calls/calls.h"
#include "gateway/catalog/catalog.h"
#include "gateway/telemetry/metrics.h"

struct gw_auth;
struct gw_direct;
struct gw_tracer;

struct gw_router_options {
    struct bus *bus;
    struct net_loop *loop; /* NULL in simulations */
    unsigned number;       /* of the loop */
    const struct calls_options *calls;
    struct gw_presence *presence;
    struct gw_metrics *metrics;     /* NULL: nothing is counted */
    const struct gw_auth *auth;     /* NULL: everybody is known */
    const struct gw_tracer *tracer; /* NULL: calls have no spans */
};

struct gw_router {
    struct calls_loop *calls;
    struct bus *bus;
    unsigned number;
    struct gw_presence *presence;
    struct gw_snapshot *snapshot; /* NULL: none has come yet */
    struct gw_metrics *metrics;
    const struct gw_auth *auth;
    const struct gw_tracer *tracer;
    uint64_t dice;            /* for choosing one of two */
    struct gw_direct *direct; /* calls that go by streams (direct/); NULL: the bus has none */
};

/* Makes the calls of a loop too. What the options name outlives the router, but for `calls`.
 * Nothing is kept on failure. */
peg_status gw_router_init(struct gw_router *router, const struct gw_router_options *options,
                          peg_error *reterr);
/* Frees the calls. One that is all zeroes is left alone. */
void gw_router_clear(struct gw_router *router);
/* A new catalog; takes a reference. */
void gw_router_on_snapshot(struct gw_router *router, struct gw_snapshot *snapshot);

/* The router of calls that one has made. */
static inline struct gw_router *gw_router_of(const struct calls_loop *calls)
{
    return (struct gw_router *)calls->user;
}

/* The registry's error for one of calls/. */
enum wire_error gw_error_of_call(enum calls_error error);

/* ---- choose.c: struct calls_environment has what they do ---- */

bool gw_choose_provider(void *user, const struct calls_choice *choice,
                        struct calls_chosen *ret_chosen);
bool gw_locate_provider(void *user, const struct calls_choice *choice, const char *incarnation,
                        struct bus_address *ret_address);
void gw_release_provider(void *user, peg_str toolset, const char *incarnation);
void gw_note_outdated(void *user, peg_str toolset, const char *incarnation);

#endif
