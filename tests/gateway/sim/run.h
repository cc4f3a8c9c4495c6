/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_RUN_H
#define PEG_TESTS_GATEWAY_SIM_RUN_H

/*
 * A run: what a seed makes of nodes, providers, callers and accidents, from the first call until
 * everything is quiet. In most of them anything may go wrong. In the others nothing does, or only
 * one kind of thing that calls survive, and then every call must end well.
 */

#include "callers.h"
#include "providers.h"

enum r_kind {
    R_ROUGH,   /* anything may happen */
    R_CALM,    /* nothing does */
    R_CANCELS, /* some callers leave, some calls do not end: their providers must be told */
    R_DRAINS,  /* providers drain, and others stay */
    R_BREAKS,  /* streams of providers break, and they come back in time */
    R_CRASHES, /* nodes crash, and their providers come to another one in time */
    R_RETURNS, /* connections of callers break, and they ask again in time */
    R_N_KINDS,
};

enum {
    R_OUT_OF = 16, /* runs, each kind but the first has one */
    R_ACCIDENTS = 6,
    R_CALM_MS = 10000,  /* for a call, where each takes but a moment */
    R_LONG_MS = 100000, /* where some take seconds, one after the other */
    /* Beyond its deadline: for a provider to end what is canceled, and for questions that get lost,
     * are slow, and are asked again. */
    R_GRACE_MS = 60000,
    R_SLICE_MS = 50,
    R_END_MS = 120000,
};

struct r_accident {
    struct net_timer timer; /* first */
};

static struct {
    enum r_kind kind;
    struct r_accident accidents[R_ACCIDENTS];
} r;

/* What happened, over all runs. */
static struct {
    uint64_t runs;
    uint64_t kinds[R_N_KINDS];
    uint64_t events;
    uint64_t starts;
    uint64_t crashes;
    uint64_t pauses;
    uint64_t epochs;
    uint64_t cuts;
    uint64_t kills;
    uint64_t breaks;
    uint64_t drains;
    uint64_t lapses;
} r_count;

/* ---- accidents ----------------------------------------------------------------------------- */

static struct p_provider *r_any_provider(void)
{
    return &p.providers[w_pick(p.n_providers)];
}

/* In runs that end well the first provider stays, and the first node with it: there is always
 * somebody to run a call. */
static struct p_provider *r_other_provider(void)
{
    return &p.providers[1 + w_pick(p.n_providers - 1)];
}

static void r_lose_node(struct w_node *node)
{
    r_count.crashes++;
    a_on_crash(node);
    p_on_crash(node);
    w_crash_node(node);
}

static void r_crash(struct w_node *node)
{
    r_lose_node(node);
    if (w_n_alive() == 0 || w_happens(60))
        w_start_node(1 + w_pick(W_LOOPS));
}

static void r_break_stream(struct p_provider *provider)
{
    r_count.breaks++;
    if (provider->is_alive)
        p_hang_up(provider, false);
}

static void r_happen_to_node(struct w_node *node)
{
    switch (w_pick(4)) {
    case 0:
        r_crash(node);
        break;
    case 1:
        r_count.cuts++;
        h_say("node %llx is cut off", (unsigned long long)node->id);
        bus_sim_cut(w.sim, node->id);
        break;
    default:
        r_count.pauses++;
        w_pause_node(node, w_pick_ns(1500, 15000, 40));
        break;
    }
}

static void r_happen_to_provider(struct p_provider *provider)
{
    switch (w_pick(4)) {
    case 0:
        r_count.kills++;
        p_kill(provider);
        if (w_happens(50))
            p_start_provider(p_new_provider());
        break;
    case 1:
        r_count.drains++;
        p_drain(provider);
        break;
    default:
        r_break_stream(provider);
        break;
    }
}

static void r_crash_other(void)
{
    struct w_node *node = &w.nodes[1 + w_pick(w.n_nodes - 1)];

    if (node->is_alive)
        r_lose_node(node);
}

static void r_drain_other(void)
{
    r_count.drains++;
    p_drain(r_other_provider());
}

static void r_happen_roughly(void)
{
    struct w_node *node = w_any_node();
    const unsigned what = w_pick(100);

    if (what < 8) {
        r_count.epochs++;
        h.has_lost_registers = true;
        h_say("the server loses EVERYTHING");
        bus_sim_new_epoch(w.sim);
    } else if (what < 16) {
        r_count.lapses++;
        h_say("a lease lapses");
        bus_sim_lapse(w.sim);
    } else if (what < 60 && node) {
        r_happen_to_node(node);
    } else {
        r_happen_to_provider(r_any_provider());
    }
}

static void r_happen(struct net_timer *timer)
{
    (void)timer;
    switch (r.kind) {
    case R_DRAINS:
        r_drain_other();
        break;
    case R_BREAKS:
        r_break_stream(r_other_provider());
        break;
    case R_CRASHES:
        r_crash_other();
        break;
    default:
        r_happen_roughly();
        break;
    }
}

/* ---- what a seed makes --------------------------------------------------------------------- */

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
    return faults;
}

static void r_make_rough(struct p_provider *provider)
{
    provider->percent_nak = w_happens(30) ? 20 : 0;
    provider->percent_queued = w_happens(30) ? 40 : 0;
    provider->percent_for_ever = w_happens(20) ? 30 : 0;
    provider->percent_twice = w_happens(30) ? 30 : 0;
    provider->percent_slow = w_happens(40) ? 30 : 0;
    provider->percent_full = w_happens(20) ? 30 : 0;
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
        provider->is_settled = p.n_providers == 1;
        provider->is_silent = false;
    }
    p_start_provider(provider);
}

/* Before the gateway takes it for gone. */
static void r_make_return(struct a_caller *caller)
{
    caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
    caller->returns_after_ns = w_pick_ns(500, PEG_LIMIT_GATEWAY_REATTACH_MS - 500, 50);
}

static void r_make_rough_caller(struct a_caller *caller)
{
    caller->timeout_ms = 1 + w_pick_ns(1000, 9000, 50) / PEG_NS_PER_MS;
    if (caller->identity && w_happens(30))
        caller->kind = (enum a_kind)(A_START + w_pick(3));
    if (w_happens(15))
        caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
}

static void r_add_caller(void)
{
    struct a_caller *caller = a_add(300 * PEG_NS_PER_MS + w_pick_ns(100, 4000, 30));

    if (!caller)
        return;
    caller->identity = w_happens(50) ? 1 + w_pick(A_IDENTITIES) : 0;
    caller->is_idempotent = caller->identity ? caller->identity % 3 == 0 : w_happens(30);
    caller->timeout_ms = r.kind <= R_CANCELS ? R_CALM_MS : R_LONG_MS;
    if (r.kind == R_ROUGH)
        r_make_rough_caller(caller);
    else if (r.kind == R_CANCELS && w_happens(40))
        caller->leaves_after_ns = w_pick_ns(50, 5000, 50);
    else if (r.kind == R_RETURNS && caller->identity && w_happens(60))
        r_make_return(caller);
}

static unsigned r_n_accidents(void)
{
    switch (r.kind) {
    case R_ROUGH:
        return w_pick(R_ACCIDENTS);
    case R_DRAINS:
    case R_BREAKS:
    case R_CRASHES:
        return 1 + w_pick(3);
    default:
        return 0;
    }
}

static void r_populate(void)
{
    const bool has_other_provider = r.kind >= R_DRAINS;
    const bool has_other_node = r.kind == R_CRASHES;
    const unsigned n_nodes = has_other_node ? 2 + w_pick(2) : 1 + w_pick(3);
    const unsigned n_providers = has_other_provider ? 2 + w_pick(2) : 1 + w_pick(3);
    const unsigned n_callers = 3 + w_pick(10);
    const unsigned n_accidents = r_n_accidents();

    for (unsigned i = 0; i < n_nodes; i++)
        w_start_node(1 + (w_pick(3) == 0));
    for (unsigned i = 0; i < n_providers; i++)
        r_start_provider();
    for (unsigned i = 0; i < n_callers; i++)
        r_add_caller();
    for (unsigned i = 0; i < n_accidents; i++)
        w_arm(&r.accidents[i].timer, r_happen, 250 * PEG_NS_PER_MS + w_pick_ns(500, 6000, 50));
}

/* ---- running it ---------------------------------------------------------------------------- */

static size_t r_n_held(void)
{
    size_t n = 0;

    for (unsigned i = 0; i < w.n_nodes; i++)
        for (unsigned k = 0; w.nodes[i].is_alive && k < w.nodes[i].n_loops; k++)
            n += calls_count(w.nodes[i].loops[k]) + w.nodes[i].loops[k]->n_unknown;
    return n;
}

/* What a call that is left waits for. */
static void r_describe_desk(const struct calls_loop *calls)
{
    for (const struct calls_call *call = calls->first_call; call; call = call->next)
        h_say("%s: left %s, attempt %u, ending %d, rechecking %d, %s%s%s%s", h_id(&call->entry.id),
              calls_state_name(call->machine.state), call->machine.attempt, call->machine.ending,
              call->machine.recheck, call->wait.pending ? "wait " : "",
              call->sent.pending ? "sent " : "", call->again.is_armed ? "again " : "",
              call->deadline.is_armed ? "deadline " : "");
    for (const struct calls_provider *provider = calls->providers; provider;
         provider = provider->next)
        for (const struct calls_assignment *assignment = provider->running.first; assignment;
             assignment = assignment->next)
            h_say("%s: left at %s, %s, %s%s%s", h_id(&assignment->entry.id), provider->incarnation,
                  calls_assignment_state_names[assignment->machine.state],
                  calls_provider_is_away(provider) ? "away " : "",
                  assignment->wait.pending ? "wait " : "",
                  assignment->retry.is_armed ? "retry " : "");
}

static void r_describe(void)
{
    for (unsigned i = 0; i < w.n_nodes; i++)
        for (unsigned k = 0; w.nodes[i].is_alive && k < w.nodes[i].n_loops; k++)
            r_describe_desk(w.nodes[i].loops[k]);
}

static bool r_has_accidents(void)
{
    for (unsigned i = 0; i < R_ACCIDENTS; i++)
        if (r.accidents[i].timer.is_armed)
            return true;
    return false;
}

static void r_wait_for_callers(int64_t end_ns)
{
    while ((a.n_open || r_has_accidents()) && !h.is_broken && w_now_ns() < end_ns) {
        bus_sim_run_until(w.sim, w_now_ns() + R_SLICE_MS * PEG_NS_PER_MS);
        a_check_told(R_GRACE_MS * PEG_NS_PER_MS);
    }
    if (a.n_open)
        h_break("told", "%u callers were not told", a.n_open);
}

/* At the loops, and at the providers, each of which is to hear that it need not keep a result. */
static void r_wait_for_desks(int64_t end_ns)
{
    bus_sim_calm(w.sim);
    p_answer_all();
    while ((r_n_held() || p_n_kept()) && !h.is_broken && w_now_ns() < end_ns) {
        bus_sim_run_until(w.sim, w_now_ns() + R_SLICE_MS * PEG_NS_PER_MS);
        p_answer_all();
    }
    if (r_n_held())
        h_break("leak", "%zu calls are left at the desks", r_n_held());
    else if (p_n_kept())
        h_break("kept", "%u calls are left at providers that have answered them", p_n_kept());
}

/* As far as it can see itself. */
static bool r_has_one_desk(void)
{
    return w.n_nodes == 1 && w.nodes[0].n_loops == 1 && !p.has_lost_hello;
}

/* A provider that comes back to another loop does not list what was lost on its way to it, or with
 * the node that had just been given the right to hand it over. Nobody can know then whether it was
 * started, and those who wait are told that their time, or its time, is over. Where there is but
 * one loop, that one knows. */
static bool r_may_be_unknown(const struct h_call *call)
{
    return (r.kind == R_BREAKS || r.kind == R_CRASHES) && !r_has_one_desk() &&
           call->n_claims > call->n_starts;
}

static void r_check_caller_well(const struct a_caller *caller)
{
    const struct bus_id *id = &caller->caller.id; /* it may be told before it is admitted */
    const struct h_call *call = id->len ? h_call(id) : NULL;
    const bool is_well = caller->outcome == CALLS_KIND_RESULT ||
                         (caller->outcome == CALLS_KIND_ERROR && !caller->error);
    const bool has_one_start = r.kind != R_BREAKS && r.kind != R_CRASHES;

    if (!is_well && !(call && r_may_be_unknown(call)))
        h_break("well", "caller %u was told %s %s", caller->number,
                gw_outcome_kind_name(caller->outcome),
                wire_error_name(gw_error_of_call(caller->error)));
    else if (has_one_start && (!call || call->n_starts != 1))
        h_break("well", "the call of caller %u was started %u times", caller->number,
                call ? call->n_starts : 0);
}

/* Those who went with their nodes were told nothing. */
static void r_check_well(void)
{
    for (unsigned i = 0; i < a.n_callers; i++)
        if (a.callers[i].n_notified)
            r_check_caller_well(&a.callers[i]);
}

static void r_check_calm(void)
{
    bus_sim_run_until(w.sim, w_now_ns() + 100 * PEG_NS_PER_MS);
    /* Those of what nobody knows the end of stay until their time is over. */
    if (r.kind == R_CALM && bus_sim_n_registers(w.sim, 16))
        h_break("leak", "%zu registers of calls without an identity are left",
                bus_sim_n_registers(w.sim, 16));
    for (unsigned i = 0; i < h.n_calls; i++)
        h_check_cancel(&h.calls[i]);
}

static void r_count_run(void)
{
    r_count.runs++;
    r_count.kinds[r.kind]++;
    r_count.events += bus_sim_n_events(w.sim);
    for (unsigned i = 0; i < h.n_calls; i++)
        r_count.starts += h.calls[i].n_starts;
}

/* True: every promise was kept. */
static bool r_run(uint64_t seed, bool is_verbose)
{
    struct bus_sim_faults faults;
    int64_t end_ns;

    r.kind = r_kind_of(seed);
    faults = r_faults(seed);
    bus_sim_begin(w.sim, seed, &faults, &h_hooks);
    end_ns = w_now_ns() + R_END_MS * PEG_NS_PER_MS;
    h_begin(w.sim, is_verbose);
    p_begin(1 + w_pick(5));
    a_begin();
    memset(&r.accidents, 0, sizeof(r.accidents));
    r_populate();
    r_wait_for_callers(end_ns);
    if (r.kind != R_ROUGH && r.kind != R_CANCELS)
        r_check_well();
    r_wait_for_desks(end_ns + R_END_MS * PEG_NS_PER_MS);
    if (h.is_broken)
        r_describe();
    else if (r.kind == R_CALM || r.kind == R_CANCELS)
        r_check_calm();
    h_check_calls();
    r_count_run();
    w_crash_all();
    return !h.is_broken;
}

static void r_open(void)
{
    CHECK_INT(bus_sim_new(&w.sim, NULL), PEG_OK);
    w_make_catalog();
    w.options = (struct calls_options){0};
    h.plant = H_NONE;
}

static void r_close(void)
{
    w_free_catalog();
    w.sim = bus_sim_free(w.sim);
}

#endif
