/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_RUN_H
#define PEG_TESTS_GATEWAY_SIM_RUN_H

/*
 * A run: what a seed makes of nodes, providers, callers and accidents, from the first call until
 * everything is quiet. In most of them anything may go wrong. In the others nothing does, or only
 * one kind of thing that calls survive, and then every call must end well.
 */

#include "population.h"

enum {
    /* Beyond its deadline: for a provider to end what is canceled, and for requests that get lost,
     * are slow, and are sent again. */
    R_GRACE_MS = 120000,
    R_SLICE_MS = 50,
    /* Then nothing gets lost any more. Until then a take-over, which needs eight answers in a row,
     * may fail as often as it likes: no call can promise an end under losses that never end. */
    R_ROUGH_MS = 60000,
    R_END_MS = 300000,
};

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
static void r_describe_loop(const struct calls_loop *calls)
{
    for (const struct calls_call *call = calls->first_call; call; call = call->next)
        h_log("%s: left %s, attempt %u, ending %d, rechecking %d, %s%s%s%s", h_id(&call->entry.id),
              calls_state_names[call->machine.state], call->machine.attempt, call->machine.ending,
              call->machine.recheck, call->wait.pending ? "wait " : "",
              call->sent.pending ? "sent " : "", call->again.is_armed ? "again " : "",
              call->deadline.is_armed ? "deadline " : "");
    for (const struct calls_provider *provider = calls->providers; provider;
         provider = provider->next)
        for (const struct calls_assignment *assignment = provider->running.first; assignment;
             assignment = assignment->next)
            h_log("%s: left at %s, %s, %s%s%s", h_id(&assignment->entry.id), provider->incarnation,
                  calls_assignment_state_names[assignment->machine.state],
                  calls_provider_is_away(provider) ? "away " : "",
                  assignment->wait.pending ? "wait " : "",
                  assignment->retry.is_armed ? "retry " : "");
}

static void r_describe(void)
{
    for (unsigned i = 0; i < w.n_nodes; i++)
        for (unsigned k = 0; w.nodes[i].is_alive && k < w.nodes[i].n_loops; k++)
            r_describe_loop(w.nodes[i].loops[k]);
}

static void r_wait_for_callers(int64_t end_ns)
{
    const int64_t calm_ns = w_now_ns() + R_ROUGH_MS * PEG_NS_PER_MS;

    while ((a.n_open || r_has_accidents()) && !h.is_broken && w_now_ns() < end_ns) {
        if (w_now_ns() >= calm_ns)
            bus_sim_calm(w.sim);
        bus_sim_run_until(w.sim, w_now_ns() + R_SLICE_MS * PEG_NS_PER_MS);
        a_check_notified(R_GRACE_MS * PEG_NS_PER_MS);
    }
    if (a.n_open)
        h_break("notified", "%u callers have no end", a.n_open);
}

/* At the loops, and at the providers, each of which is to learn that it need not keep a result. */
static void r_wait_for_loops(int64_t end_ns)
{
    bus_sim_calm(w.sim);
    p_answer_all();
    while ((r_n_held() || p_n_kept()) && !h.is_broken && w_now_ns() < end_ns) {
        bus_sim_run_until(w.sim, w_now_ns() + R_SLICE_MS * PEG_NS_PER_MS);
        p_answer_all();
    }
    if (r_n_held())
        h_break("leak", "%zu calls are left at the loops", r_n_held());
    else if (p_n_kept())
        h_break("kept", "%u calls are left at providers that have answered them", p_n_kept());
}

/* A call that was counted as admitted, and has ended, is counted as ended. */
static void r_check_counted(void)
{
    for (unsigned i = 0; i < w.n_nodes; i++) {
        struct gw_totals totals;

        if (!w.nodes[i].is_alive)
            continue;
        gw_metrics_total(w.nodes[i].metrics, &totals);
        if (totals.in_flight)
            h_break("leak", "%lld calls are counted as in flight", (long long)totals.in_flight);
    }
}

/* As far as it can see itself. */
static bool r_has_one_loop(void)
{
    return w.n_nodes == 1 && w.nodes[0].n_loops == 1 && !p.has_lost_hello;
}

/* A provider that comes back to another loop does not list what was lost on its way to it, or with
 * the node that had just claimed it. No loop can know then whether it was started, and callers
 * learn that their time, or its time, is over. Where there is but one loop, that one knows. */
static bool r_may_be_unknown(const struct h_call *call)
{
    return (r.kind == R_BREAKS || r.kind == R_CRASHES) && !r_has_one_loop() &&
           call->n_claims > call->n_starts;
}

static void r_check_caller_well(const struct a_caller *caller)
{
    const struct bus_id *id = &caller->caller.id; /* it may end before it is admitted */
    const struct h_call *call = id->len ? h_call(id) : NULL;
    const bool is_well = caller->outcome == CALLS_KIND_RESULT ||
                         (caller->outcome == CALLS_KIND_ERROR && !caller->error);
    const bool has_one_start = r.kind != R_BREAKS && r.kind != R_CRASHES && r.kind != R_LAPSES;

    if (!is_well && !(call && r_may_be_unknown(call)))
        h_break("well", "caller %u got %s %s", caller->number,
                gw_outcome_kind_name(caller->outcome),
                wire_error_name(gw_error_of_call(caller->error)));
    else if (has_one_start && (!call || call->n_starts != 1))
        h_break("well", "the call of caller %u was started %u times", caller->number,
                call ? call->n_starts : 0);
}

/* Callers that went with their nodes have no end. */
static void r_check_well(void)
{
    for (unsigned i = 0; i < a.n_callers; i++)
        if (a.callers[i].n_notified)
            r_check_caller_well(&a.callers[i]);
}

static void r_check_calm(void)
{
    bus_sim_run_until(w.sim, w_now_ns() + 100 * PEG_NS_PER_MS);
    /* Those of calls whose end is not known stay until their time is over. */
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
    r_count.with_many_nodes += r.n_nodes > 1;
    for (unsigned i = 0; i < h.n_calls; i++)
        r_count.starts += h.calls[i].n_starts;
}

/* True: every promise was kept. */
static bool r_run(uint64_t seed, bool is_verbose)
{
    int64_t end_ns;

    r.kind = r_kind_of(seed);
    r.mode = r_mode_of(seed);
    r.faults = r_faults(seed);
    bus_sim_begin(w.sim, seed, &r.faults, &h_hooks);
    end_ns = w_now_ns() + R_END_MS * PEG_NS_PER_MS;
    h_begin(w.sim, is_verbose);
    p_begin(1 + w_pick(5));
    a_begin();
    x_begin();
    r_begin_accidents();
    r_populate();
    r_wait_for_callers(end_ns);
    if (r.kind != R_ROUGH && r.kind != R_CANCELS)
        r_check_well();
    r_wait_for_loops(end_ns + R_END_MS * PEG_NS_PER_MS);
    r_check_counted();
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
