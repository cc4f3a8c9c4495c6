/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_POPULATION_H
#define PEG_TESTS_GATEWAY_SIM_POPULATION_H

/* What a seed makes: the kind of a run, its faults, its nodes, providers and callers. */

#include "accidents.h"

enum {
    R_OUT_OF = 24,      /* runs, each kind but the first has one */
    R_CALM_MS = 10000,  /* for a call, where each takes but a moment */
    R_LONG_MS = 100000, /* where some take seconds, one after the other */
};

/* Before there is a world its seed is read another way. */
static uint64_t r_bits(uint64_t seed)
{
    const uint64_t bits = seed * UINT64_C(0x9e3779b97f4a7c15);

    return bits ^ bits >> 29;
}

static enum r_kind r_kind_of(uint64_t seed)
{
    const uint64_t kind = r_bits(seed) % R_OUT_OF;

    return kind < R_N_KINDS ? (enum r_kind)kind : R_ROUGH;
}

static enum r_mode r_mode_of(uint64_t seed)
{
    static const enum r_mode modes[16] = {
        [2] = R_DUPLICATES, R_DUPLICATES, R_CANCELING, R_CANCELING, R_CANCELING,
        R_TAKEOVERS,        R_TAKEOVERS,  R_TAKEOVERS, R_TAKEOVERS, R_TAKEOVERS,
        R_STUBBORN,         R_STUBBORN,   R_REFUSING,  R_REFUSING};

    return modes[r_bits(seed) >> 20 & 15];
}

static struct bus_sim_faults r_faults(uint64_t seed)
{
    static const unsigned levels[4] = {0, 500, 3000, 12000};
    const uint64_t bits = r_bits(seed);
    struct bus_sim_faults faults = {.skew_ms = 3, .timer_lag_ns = PEG_NS_PER_MS};

    if (r.kind != R_ROUGH)
        return faults;
    faults.drop_message = levels[bits >> 8 & 3];
    faults.lose_question = levels[bits >> 10 & 3] / 4;
    faults.lose_answer = levels[bits >> 12 & 3] / 4;
    faults.slow = levels[bits >> 14 & 3] / 6;
    faults.delay_ns = (bits >> 16 & 3) == 3 ? 60 * PEG_NS_PER_MS : PEG_NS_PER_MS;
    faults.full = levels[bits >> 24 & 3];
    faults.full_waiters = faults.full;
    faults.no_memory = levels[bits >> 26 & 3] / 8;
    if (bits >> 28 & 1)
        faults.timer_lag_ns = 100 * PEG_NS_PER_MS;
    if (r.mode != R_MIXED && bits >> 30 & 3) /* much happens while a request is under way */
        faults.delay_ns = 400 * PEG_NS_PER_MS;
    if (r.mode == R_REFUSING || (r.mode == R_TAKEOVERS && bits >> 32 & 1)) {
        faults.full_waiters = 40000;
        faults.lose_answer = 8000;
    }
    if (r.mode == R_DUPLICATES) {
        faults.slow_message = 24000;
        faults.slow = 0;
    }
    return faults;
}

/* ---- providers ------------------------------------------------------------------------------- */

static void r_make_rough(struct p_provider *provider)
{
    provider->percent_nak = w_happens(30) ? 20 : 0;
    provider->percent_queued = w_happens(40) ? 40 : 0;
    provider->percent_for_ever = w_happens(20) ? 30 : 0;
    provider->percent_twice = w_happens(30) ? 30 : 0;
    provider->percent_slow = w_happens(40) ? 30 : 0;
    provider->percent_full = w_happens(20) ? 30 : 0;
    provider->percent_large = w_happens(30) ? 50 : 0;
    provider->percent_output = w_happens(40) ? 60 : 0;
    provider->percent_late_nak = w_happens(50) ? 70 : 0;
    if (r.mode == R_DUPLICATES) {
        provider->percent_for_ever = 40;
        provider->percent_slow = 60;
    } else if (r.mode == R_CANCELING) {
        provider->percent_queued = 80;
        provider->percent_late_nak = 90;
        provider->percent_for_ever = 50;
    } else if (r.mode == R_STUBBORN) {
        provider->gives_back_before = PEG_LIMIT_GATEWAY_ATTEMPTS;
        provider->percent_for_ever = 50;
    } else if (r.mode == R_REFUSING) {
        provider->gives_back_before = w_happens(80) ? UINT32_MAX : 0;
    }
}

static void r_start_provider(void)
{
    struct p_provider *provider = p_new_provider();

    if (!provider)
        return;
    if (r.kind == R_ROUGH) {
        r_make_rough(provider);
    } else if (r.kind != R_CALM) {
        provider->percent_slow = r.kind == R_RETURNS ? 60 : 30;
        provider->percent_for_ever = r.kind == R_CANCELS ? 20 : 0;
        provider->percent_queued = r.kind == R_DRAINS ? 30 : 0;
        provider->percent_output = w_happens(30) ? 50 : 0;
        provider->is_settled = p.n_providers == 1;
        provider->is_silent = false;
    }
    p_start_provider(provider);
}

/* ---- callers --------------------------------------------------------------------------------- */

/* Before the gateway takes it for gone. */
static void r_make_return(struct a_caller *caller)
{
    caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
    caller->returns_after_ns = w_pick_ns(500, PEG_LIMIT_GATEWAY_REATTACH_MS - 500, 50);
}

static void r_make_rough_caller(struct a_caller *caller)
{
    const bool is_takeover = r.mode == R_TAKEOVERS || r.mode == R_STUBBORN;

    caller->timeout_ms = 1 + w_pick_ns(1000, 9000, 50) / PEG_NS_PER_MS;
    if (is_takeover)
        caller->timeout_ms = 2000 + w_pick(28000);
    if (caller->identity && w_happens(is_takeover ? 10 : 30))
        caller->kind = (enum a_kind)(A_START + w_pick(3));
    if (r.mode == R_DUPLICATES)
        caller->timeout_ms = 4000 + w_pick(16000);
    if (r.mode == R_STUBBORN || r.mode == R_CANCELING)
        caller->timeout_ms = 30000 + w_pick(15000);
    if (w_happens(is_takeover ? 5 : 15))
        caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
    if (r.mode == R_CANCELING && w_happens(80))
        caller->leaves_after_ns =
            w_happens(50) ? w_pick_ns(50, 1000, 50) : 11 * PEG_NS_PER_S + w_pick_ns(1000, 8000, 50);
    if (w_happens(60))
        caller->asks_after_ns = w_pick_ns(500, 6000, 50);
}

/* Each third identity is of an idempotent call. */
static unsigned r_pick_identity(void)
{
    if (r.kind == R_ROUGH && (r.mode == R_TAKEOVERS || r.mode == R_STUBBORN))
        return w_happens(40) ? 1 : 3;
    if (r.kind == R_ROUGH && r.mode == R_REFUSING)
        return 1 + (w_pick(4) == 0);
    if (r.kind == R_ROUGH && r.mode == R_CANCELING)
        return w_happens(60) ? 3 : w_pick(2);
    return w_happens(50) ? 1 + w_pick(A_IDENTITIES) : 0;
}

static struct a_caller *r_add_caller(unsigned identity, int64_t after_ns)
{
    struct a_caller *caller = a_add(after_ns);

    if (!caller)
        return NULL;
    caller->identity = identity;
    caller->is_idempotent = identity ? identity % 3 == 0 : w_happens(30);
    caller->timeout_ms = r.kind <= R_CANCELS ? R_CALM_MS : R_LONG_MS;
    caller->wants_output = w_happens(30);
    if (r.kind == R_ROUGH)
        r_make_rough_caller(caller);
    else if (r.kind == R_CANCELS && w_happens(40))
        caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
    else if (r.kind == R_RETURNS && identity && w_happens(60))
        r_make_return(caller);
    return caller;
}

/* Two ask for one identity at about the same time: on two nodes, or on two loops of one. */
static void r_add_twins(void)
{
    const unsigned identity = 1 + w_pick(A_IDENTITIES);
    const int64_t after_ns = 300 * PEG_NS_PER_MS + w_pick_ns(100, 4000, 30);
    struct a_caller *first = r_add_caller(identity, after_ns);
    struct a_caller *second = r_add_caller(identity, after_ns + w_pick_ns(2, 30, 30));

    if (!first || !second)
        return;
    a_count.twins++;
    first->node = &w.nodes[w_pick(r.n_nodes)];
    first->loop = w_pick(first->node->n_loops);
    second->node = w_happens(30) ? first->node : &w.nodes[w_pick(r.n_nodes)];
    second->loop = w_pick(second->node->n_loops);
    if (second->node == first->node && second->loop == first->loop)
        second->loop = (second->loop + 1) % second->node->n_loops;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static unsigned r_n_accidents(void)
{
    switch (r.kind) {
    case R_ROUGH:
        return r.mode == R_DUPLICATES ? R_ACCIDENTS : w_pick(R_ACCIDENTS);
    case R_DRAINS:
    case R_BREAKS:
    case R_CRASHES:
    case R_LAPSES:
        return 1 + w_pick(3);
    default:
        return 0;
    }
}

/* Many calls at once, just when it begins. */
static void r_add_storm(void)
{
    const int64_t after_ns = 250 * PEG_NS_PER_MS + w_pick_ns(500, 4000, 50);
    const unsigned n_callers = w_happens(50) ? 4 + w_pick(16) : 0;

    w_arm(&r.storm, r_begin_storm, after_ns);
    for (unsigned i = 0; i < n_callers; i++)
        r_add_caller(r_pick_identity(), after_ns + w_pick_ns(5, 200, 30));
}

static void r_make_nodes(void)
{
    r.n_nodes = r.kind != R_CRASHES && w_happens(12) ? 1 : 2 + w_pick(4);
    for (unsigned i = 0; i < r.n_nodes; i++)
        r_start_node();
}

static void r_populate(void)
{
    const unsigned n_providers = r.kind >= R_DRAINS ? 2 + w_pick(2) : 1 + w_pick(3);
    const bool is_refusing = r.kind == R_ROUGH && r.mode == R_REFUSING;
    const unsigned n_callers = (is_refusing ? 12 : 3) + w_pick(10);
    const unsigned n_twins = w_pick(3);
    const unsigned n_accidents = r_n_accidents();

    r_make_nodes();
    for (unsigned i = 0; i < n_providers; i++)
        r_start_provider();
    for (unsigned i = 0; i < n_callers; i++)
        r_add_caller(r_pick_identity(), 300 * PEG_NS_PER_MS + w_pick_ns(100, 4000, 30));
    for (unsigned i = 0; i < n_twins; i++)
        r_add_twins();
    for (unsigned i = 0; i < n_accidents; i++)
        w_arm(&r.accidents[i], r_happen, 250 * PEG_NS_PER_MS + w_pick_ns(500, 6000, 50));
    if (r.kind != R_ROUGH)
        return;
    r_make_rules();
    h.on_written = r_on_written;
    if (w_happens(35))
        r_add_storm();
}

#endif
