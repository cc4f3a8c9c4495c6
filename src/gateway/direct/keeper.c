/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the node that leads does for all, once in each ping interval:
 *
 *   ping every direct toolset, and trim what its providers have acknowledged
 *   clean what peers leave behind (janitor.c)
 *
 * Toolsets are walked by name, a few at a time, so that ten thousand do not hold up the loop.
 */

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"
#include "gateway/direct/janitor.h"

enum {
    BATCH = 256,  /* toolsets that are looked at in one turn */
    PINGS = 64,   /* at most, of these */
    PAUSE_MS = 1, /* between turns */
};

struct gw_keeper {
    struct gw_direct *direct;
    struct gw_keeper_counts *counts;
    struct direct_janitor *janitor;
    int64_t interval_ms;
    bool is_leading;
    uint64_t epoch;       /* under which the groups of all toolsets are there */
    uint64_t round_epoch; /* of the round that goes on */
    char at[257];         /* the last toolset of the round that was looked at; "": none */
    struct net_timer round;
    struct net_timer turn;
};

/* After a loss of Redis the group is not there, and its stream is new: what is in it was added
 * since, so its providers are to get all of it. */
static void keep_toolset(struct gw_keeper *keeper, const struct gw_toolset *toolset)
{
    struct gw_direct *direct = keeper->direct;
    char key[PULSE_NAME];

    if (keeper->epoch != keeper->round_epoch)
        bus_stream_make_group(direct->bus, pulse_request_key(toolset->name, key),
                              peg__str(PULSE_PROVIDERS), "0", NULL);
    direct_ping(direct, toolset, NULL);
    bus_stream_trim(direct->bus, pulse_request_key(toolset->name, key));
    atomic_fetch_add_explicit(&keeper->counts->n_pings, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&keeper->counts->n_trims, 1, memory_order_relaxed);
}

/* False: the round is over. */
static bool walk(struct gw_keeper *keeper)
{
    const struct gw_snapshot *snapshot = keeper->direct->router->snapshot;
    size_t i = snapshot ? gw_snapshot_behind(snapshot, peg__str(keeper->at)) : 0;
    const size_t n = snapshot ? snapshot->n : 0;
    unsigned n_pings = 0;

    if (!keeper->at[0])
        i = 0;
    for (unsigned k = 0; i < n && k < BATCH && n_pings < PINGS; i++, k++) {
        const struct gw_toolset *toolset = snapshot->toolsets[i];

        if (toolset->kind == GW_DIRECT) {
            keep_toolset(keeper, toolset);
            n_pings++;
        }
        snprintf(keeper->at, sizeof(keeper->at), PEG_FMT, PEG_ARG(toolset->name));
    }
    return i < n;
}

static void on_turn(struct net_timer *timer)
{
    struct gw_keeper *keeper = peg__container_of(timer, struct gw_keeper, turn);
    struct bus *bus = keeper->direct->bus;

    if (!keeper->is_leading)
        return;
    if (walk(keeper))
        bus_arm(bus, &keeper->turn, bus_now_ns(bus) + PAUSE_MS * PEG_NS_PER_MS);
    else
        keeper->epoch = keeper->round_epoch;
}

static void on_round(struct net_timer *timer)
{
    struct gw_keeper *keeper = peg__container_of(timer, struct gw_keeper, round);
    struct bus *bus = keeper->direct->bus;

    if (!keeper->is_leading)
        return;
    bus_arm(bus, &keeper->round, bus_now_ns(bus) + keeper->interval_ms * PEG_NS_PER_MS);
    if (!keeper->turn.is_armed) {
        keeper->at[0] = '\0';
        keeper->round_epoch = bus_epoch(bus);
        on_turn(&keeper->turn);
    }
    direct_janitor_round(keeper->janitor);
}

void gw_keeper_lead(struct gw_keeper *keeper, bool is_leading)
{
    struct bus *bus = keeper->direct->bus;

    keeper->is_leading = is_leading;
    if (is_leading) {
        bus_arm(bus, &keeper->round, bus_now_ns(bus));
    } else {
        bus_disarm(bus, &keeper->round);
        bus_disarm(bus, &keeper->turn);
    }
}

peg_status gw_keeper_new(struct gw_direct *direct, int64_t ping_interval_ms,
                         struct gw_keeper_counts *counts, struct gw_keeper **ret_keeper,
                         peg_error *reterr)
{
    struct gw_keeper *keeper = (struct gw_keeper *)peg__alloc_zero(1, sizeof(*keeper));

    if (!keeper)
        return peg__fail_nomem(reterr);
    keeper->janitor = direct_janitor_new(direct->bus, counts);
    if (!keeper->janitor) {
        peg__free(keeper);
        return peg__fail_nomem(reterr);
    }
    keeper->direct = direct;
    keeper->counts = counts;
    keeper->interval_ms = ping_interval_ms;
    keeper->round.fn = on_round;
    keeper->turn.fn = on_turn;
    *ret_keeper = keeper;
    return PEG_OK;
}

struct gw_keeper *gw_keeper_free(struct gw_keeper *keeper)
{
    if (!keeper)
        return NULL;
    gw_keeper_lead(keeper, false);
    direct_janitor_free(keeper->janitor);
    peg__free(keeper);
    return NULL;
}
