/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_DIRECT_DIRECT_H
#define PEG_GATEWAY_DIRECT_DIRECT_H

/*
 * Direct toolsets: their providers read calls from a stream on Redis, as goa-ai's do, and need no
 * stream of gRPC. src/pulse/ has the names and texts.
 *
 *   caller --gw_call_start()--> known, valid, healthy, admitted
 *     SET mapping; XADD init; EXPIRE; watch the result stream; XADD the request --> provider
 *     on a change: XRANGE: deltas, the first result --> [BUS_RESULT] --> on_end
 *
 * The truth of a call with an identity is in the registers of the bus, as for other calls, and any
 * loop can follow it: the result stream is the same for all. A call without one has one driver, and
 * needs no register. Its deadline takes the request back; if a provider has got it, the outcome is
 * unknown: there is no way to tell a provider to stop.
 *
 * All of it is of one loop, and called on its thread. Files, each of which calls only those below:
 *
 *   loop.c     what a loop has
 *   agent.c    calls of agents that read the result from a stream
 *   start.c    a request becomes a call, or one more caller of one; by id; callers that leave
 *   send.c     identity and streams; by id
 *   run.c      the steps of a call that was sent
 *   outcome.c  what a provider wrote, as an outcome
 *   call.c     life of a call, its callers
 *   health.c   registration, pings, pongs
 *   keeper.c   what one node does for all: pings, trimming
 *   janitor.c  what peers leave behind
 *   emit.c     EmitToolResult
 */

#include <stdatomic.h>

#include "calls/calls.h"
#include "gateway/catalog/catalog.h"

struct gw_direct;
struct gw_router;

/* The router has calls, and its bus has streams. *ret_direct goes into router->direct. */
peg_status gw_direct_new(struct gw_router *router, struct gw_direct **ret_direct,
                         peg_error *reterr);
/* Callers that still wait get no event any more. NULL is allowed. */
struct gw_direct *gw_direct_free(struct gw_direct *direct);
/* Calls that somebody waits for. NULL is allowed. */
size_t gw_direct_count(const struct gw_direct *direct);
/* As calls_list(), which has those that ended. NULL is allowed. */
bool gw_direct_list(const struct gw_direct *direct, peg_str principal, calls_list_fn *fn,
                    void *user);

/* ---- calls: as calls_start() and so on, of toolsets of both kinds ---- */

void gw_call_start(struct calls_loop *calls, const struct calls_request *request,
                   struct calls_caller *caller);
void gw_call_await(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                   int64_t deadline_ns, struct calls_caller *caller);
void gw_call_cancel(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                    struct calls_caller *caller);
void gw_caller_leave(struct calls_caller *caller, enum calls_leaving leaving);
/* A message about a direct call. False: it is not about one. `direct` may be NULL. */
bool gw_direct_on_message(struct gw_direct *direct, const struct bus_message *message);

/* For an agent that reads the result from a stream on Redis, of a toolset of either kind. fn is
 * called once, when that stream is there, with the call's id; or with a refusal. */
struct gw_agent_asker {
    void (*fn)(struct gw_agent_asker *asker, const struct bus_id *id,
               const struct calls_outcome *refusal);
    void *pending; /* direct's; NULL: nothing is asked */
};
void gw_direct_ask_for_agent(struct gw_direct *direct, const struct calls_request *request,
                             struct gw_agent_asker *asker);
/* The call goes on. */
void gw_direct_forget_agent(struct gw_agent_asker *asker);

/* ---- toolsets ---- */

/* It has been registered: makes the group of its providers, and pings them. `before`: the toolset
 * that had its name, or NULL; with other schemas its providers have to answer anew. fn gets PEG_OK,
 * PEG_EIO, PEG_ELIMIT or PEG_ENOMEM, perhaps before it returns. */
struct gw_direct_opening {
    void (*fn)(struct gw_direct_opening *opening, peg_status status);
    void *pending; /* direct's; NULL: nothing is asked */
};
void gw_direct_open_toolset(struct gw_direct *direct, struct gw_toolset *toolset,
                            const struct gw_toolset *before, struct gw_direct_opening *asker);
void gw_direct_forget_opening(struct gw_direct_opening *asker);
/* A provider of it is alive. An answer to a ping that is older than the toolset changes nothing. */
void gw_direct_pong(struct gw_direct *direct, const struct gw_toolset *toolset, peg_str ping_id);

/* What a keeper has asked Redis for since the start; read on any thread. */
struct gw_keeper_counts {
    atomic_ullong n_pings;
    atomic_ullong n_trims;          /* of streams of requests */
    atomic_ullong n_expiries;       /* of keys of peers, unless they have one */
    atomic_ullong n_removed_fields; /* of consumers that were silent */
};

/* Pings, trims and cleans while this node leads. Of the first loop; freed before `direct`. The
 * counts outlive it. */
struct gw_keeper;
peg_status gw_keeper_new(struct gw_direct *direct, int64_t ping_interval_ms,
                         struct gw_keeper_counts *counts, struct gw_keeper **ret_keeper,
                         peg_error *reterr);
void gw_keeper_lead(struct gw_keeper *keeper, bool is_leading);
struct gw_keeper *gw_keeper_free(struct gw_keeper *keeper);

/* ---- results ---- */

bool gw_id_is_direct(const struct bus_id *id);

/* A result that a provider gives to this node: adds it to the result stream of the call. Lies in
 * its owner's memory. */
struct gw_direct_emission {
    /* CALLS_OK: it was added. `words` are static. */
    void (*fn)(struct gw_direct_emission *emission, enum calls_error error, const char *words);
    void *pending; /* direct's */
};
struct gw_direct_emitted {
    peg_str call_id;
    bool is_failure;
    peg_str result; /* JSON; "": null */
    peg_str code;
    peg_str message;
    peg_str server_data; /* JSON, a list; "": none */
};
void gw_direct_emit(struct gw_direct *direct, const struct gw_direct_emitted *emitted,
                    struct gw_direct_emission *asker);
void gw_direct_forget_emission(struct gw_direct_emission *asker);

#endif
