/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_CALLERS_H
#define PEG_TESTS_GATEWAY_SIM_CALLERS_H

/* Callers: each calls once, at some loop, with or without an identity that others may have, too.
 * Some give up, some start a call and do not wait, some wait for a call by its id or ask to stop
 * it; some lose their connection, or their node, and ask again at another loop. */

#include "nodes.h"

enum { A_CALLERS = 48, A_IDENTITIES = 4, A_NODE_MS = 100 };

enum a_kind { A_CALL, A_START, A_AWAIT, A_STOP };

struct a_caller {
    struct calls_caller caller; /* first */
    struct net_timer begin;
    struct net_timer leave;
    bool was_deferred;
    enum a_kind kind;
    struct w_node *node;
    unsigned loop;
    unsigned number;
    unsigned identity; /* 0: none */
    bool is_idempotent;
    int64_t timeout_ms;
    int64_t leaves_after_ns;  /* 0: it waits */
    int64_t returns_after_ns; /* having lost its connection; 0: never */
    int64_t asks_after_ns;    /* having lost its node; 0: never */
    bool wants_output;
    int64_t deadline_ns; /* of the world, when it has begun */
    bool has_begun;
    bool found_started;  /* what it asks for had been started before it asked */
    bool is_over;        /* it has its end, or is gone */
    bool has_id;         /* it was admitted */
    unsigned n_notified; /* answers of any kind */
    enum calls_outcome_kind outcome;
    enum calls_error error;
};

static struct {
    struct a_caller callers[A_CALLERS];
    unsigned n_callers;
    unsigned n_open;                     /* not over */
    struct bus_id ids[A_IDENTITIES + 1]; /* of identities, once known */
    bool has_id[A_IDENTITIES + 1];
} a;

/* What became of them, over all runs. */
static struct {
    uint64_t outcomes[CALLS_N_KINDS];
    uint64_t followers;
    uint64_t lost; /* with their node */
    uint64_t left; /* by themselves */
    uint64_t returned;
    uint64_t asked_again; /* lost with their node, and back */
    uint64_t twins;       /* pairs that ask for one identity at about the same time */
    uint64_t relayed;     /* to another loop of their node */
    uint64_t stops;
    uint64_t calls;
} a_count;

static void a_be_over(struct a_caller *caller)
{
    if (caller->is_over)
        return;
    caller->is_over = true;
    a.n_open--;
    bus_sim_disarm(w.sim, &caller->leave);
}

static void a_check_home(const struct a_caller *caller)
{
    const struct bus_id *id = &caller->caller.id;

    if (id->len == 32 && w_n_homes(caller->node, id) > 1)
        h_break("home", "two loops of a node have the call of caller %u", caller->number);
}

/* ---- what a caller gets ------------------------------------------------------------------- */

static void a_on_admitted(struct calls_caller *calls_caller, const struct bus_id *id,
                          int64_t deadline_ms, bool is_follower)
{
    struct a_caller *caller = (struct a_caller *)calls_caller;

    (void)deadline_ms;
    h_log("%s: caller %u %s", h_id(id), caller->number, is_follower ? "follows" : "is admitted");
    caller->has_id = true;
    a_check_home(caller);
    a_count.followers += is_follower;
    a.ids[caller->identity] = *id;
    a.has_id[caller->identity] = true;
    if (caller->kind == A_START) {
        a_be_over(caller);
        calls_caller_leave(calls_caller, CALLS_DETACHES);
    }
}

/* Rejected: it was not started, if the outcome says so. A follower only stops waiting, and what
 * another node has started is no less started for it. */
static void a_on_refused(struct a_caller *caller, const struct calls_outcome *outcome)
{
    h_log("caller %u is rejected: %s%s", caller->number,
          wire_error_name(gw_error_of_call(outcome->error)),
          outcome->was_started ? ", and may have been started" : "");
    if (outcome->was_started)
        return;
    if (caller->has_id && !caller->caller.is_follower)
        h_refused(&caller->caller.id);
    else if (caller->found_started && !h.has_lost_registers)
        h_break("unstarted",
                "the call of caller %u was reported as not started, and it was started",
                caller->number);
}

/* A caller that asks after that asks for something new. */
static void a_forget_registers(const struct a_caller *caller)
{
    const struct bus_key key = {.id = caller->caller.id, .what = BUS_RESULT};

    bus_forget(caller->node->buses[caller->loop], &key, PEG_LIMIT_GATEWAY_ATTEMPTS);
}

static void a_on_end(struct calls_caller *calls_caller, const struct calls_outcome *outcome)
{
    struct a_caller *caller = (struct a_caller *)calls_caller;

    if (h.plant == H_LOSES_END && caller->number == 1)
        return;
    a_count.outcomes[outcome->kind]++;
    if (caller->n_notified++ || caller->is_over) {
        h_break("once", "caller %u got two ends", caller->number);
        return;
    }
    caller->outcome = outcome->kind;
    caller->error = outcome->error;
    a_check_home(caller);
    a_be_over(caller);
    if (outcome->kind == CALLS_KIND_REFUSED)
        a_on_refused(caller, outcome);
    else if (caller->kind != A_STOP)
        h_notified(&calls_caller->id, outcome);
    if (outcome->kind == CALLS_KIND_UNKNOWN && calls_caller->id.len == 16)
        h_canceled(&calls_caller->id);
    if (h.plant == H_FORGETS_ENDED && calls_caller->id.len == 32)
        a_forget_registers(caller);
}

static void a_on_output(struct calls_caller *calls_caller, peg_str output)
{
    const struct a_caller *caller = (const struct a_caller *)calls_caller;

    h_log("%s: caller %u gets output %.*s", h_id(&calls_caller->id), caller->number,
          PEG_ARG(output));
    h_output(&calls_caller->id, output);
    if (caller->is_over)
        h_break("output", "caller %u got an output after its end", caller->number);
}

static void a_lose_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    (void)caller;
    (void)outcome;
}

static const struct calls_caller_events a_events = {.on_admitted = a_on_admitted,
                                                    .on_end = a_on_end};
static const struct calls_caller_events a_output_events = {
    .on_admitted = a_on_admitted, .on_output = a_on_output, .on_end = a_on_end};
static const struct calls_caller_events a_planted_events = {
    .on_admitted = a_on_admitted, .on_output = a_on_output, .on_end = a_lose_end};

/* ---- what a caller does -------------------------------------------------------------------- */

static void a_call(struct a_caller *caller, struct calls_loop *calls)
{
    const bool is_well =
        gw_presence_health(gw_router_of(calls)->presence, peg__str("tools")).state == GW_HEALTHY;
    char run_id[16];
    struct calls_request request = {
        .toolset = PEG_LIT("tools"),
        .tool = peg__str(caller->is_idempotent ? "again" : "do"),
        .principal = PEG_LIT("local"),
        .timeout_ms = caller->timeout_ms,
        .deadline_ns = NET_NEVER,
    };

    snprintf(run_id, sizeof(run_id), "run-%u", caller->identity);
    if (caller->identity) {
        request.run_id = peg__str(run_id);
        request.tool_call_id = peg__str("call");
    }
    h_log("caller %u calls \"%s\" at %llx.%u as %s within %lld ms", caller->number,
          request.tool.ptr, (unsigned long long)caller->node->id, caller->loop,
          caller->identity ? run_id : "nobody", (long long)caller->timeout_ms);
    if (is_well || h.plant != H_HOLDS_UNHEALTHY)
        calls_start(calls, &request, &caller->caller);
    /* A caller with an identity may follow a call that runs, so that is read first. */
    if (!is_well && !caller->identity && !caller->is_over)
        h_break("health", "caller %u waits, and no provider can run its call", caller->number);
}

static void a_ask_by_id(struct a_caller *caller, struct calls_loop *calls)
{
    const int64_t deadline_ns =
        bus_now_ns(caller->node->buses[caller->loop]) + caller->timeout_ms * PEG_NS_PER_MS;
    const struct bus_id id = a.ids[caller->identity];

    h_log("caller %u %s %s at %llx.%u", caller->number, caller->kind == A_STOP ? "stops" : "awaits",
          h_id(&id), (unsigned long long)caller->node->id, caller->loop);
    if (caller->kind == A_STOP)
        calls_cancel(calls, &id, peg__str("local"), &caller->caller);
    else
        calls_await(calls, &id, peg__str("local"), deadline_ns, &caller->caller);
}

static void a_begin_on_timer(struct net_timer *timer);

/* Elsewhere, as if for the first time. */
static void a_ask_again(struct a_caller *caller, int64_t after_ns)
{
    caller->node = NULL;
    caller->has_begun = false;
    caller->has_id = false;
    caller->leaves_after_ns = 0;
    bus_sim_disarm(w.sim, &caller->leave);
    w_arm(&caller->begin, a_begin_on_timer, after_ns);
}

static void a_lose_connection(struct a_caller *caller)
{
    h_log("the connection of caller %u breaks, and it will return", caller->number);
    a_count.returned++;
    if (h.plant == H_DROPS_LOST_CALLER)
        calls_caller_leave(&caller->caller, CALLS_LEAVES);
    else
        calls_caller_leave(&caller->caller, CALLS_LOSES_CONNECTION);
    a_ask_again(caller, caller->returns_after_ns);
}

static void a_leave(struct net_timer *timer)
{
    struct a_caller *caller = (struct a_caller *)((char *)timer - offsetof(struct a_caller, leave));
    const int64_t later_ns = bus_sim_defer(w.sim, caller->node->id, &caller->was_deferred);

    if (later_ns) {
        bus_sim_arm(w.sim, timer, later_ns);
        return;
    }
    if (caller->returns_after_ns) {
        a_lose_connection(caller);
        return;
    }
    a_count.left++;
    if (caller->caller.id.len == 16)
        h_canceled(&caller->caller.id);
    a_be_over(caller);
    if (caller->number & 1) {
        h_log("caller %u leaves", caller->number);
        calls_caller_leave(&caller->caller, CALLS_LEAVES);
    } else {
        h_log("the connection of caller %u breaks", caller->number);
        calls_caller_leave(&caller->caller, CALLS_LOSES_CONNECTION);
    }
}

static void a_begin_at_node(struct a_caller *caller)
{
    struct calls_loop *calls = caller->node->loops[caller->loop];

    caller->has_begun = true;
    caller->was_deferred = false;
    caller->deadline_ns = w_now_ns() + caller->timeout_ms * PEG_NS_PER_MS;
    caller->caller =
        (struct calls_caller){.events = caller->wants_output ? &a_output_events : &a_events};
    caller->found_started = caller->identity && a.has_id[caller->identity] &&
                            h_call(&a.ids[caller->identity])->n_starts > 0;
    a_count.calls++;
    if (caller->leaves_after_ns)
        w_arm(&caller->leave, a_leave, caller->leaves_after_ns);
    if (caller->kind <= A_START)
        a_call(caller, calls);
    else if (a.has_id[caller->identity])
        a_ask_by_id(caller, calls);
    else
        a_be_over(caller);
    a_count.stops += caller->kind == A_STOP;
    a_count.relayed += caller->caller.relay != NULL;
    a_check_home(caller);
    if (caller->caller.relay && h.plant == H_LOSES_RELAYED_END)
        caller->caller.events = &a_planted_events;
}

static void a_begin_on_timer(struct net_timer *timer)
{
    struct a_caller *caller = (struct a_caller *)((char *)timer - offsetof(struct a_caller, begin));
    int64_t later_ns;

    if (!caller->node || !caller->node->is_alive) {
        caller->node = w_any_node();
        caller->was_deferred = false;
        if (caller->node)
            caller->loop = w_pick(caller->node->n_loops);
    }
    if (!caller->node) {
        a_be_over(caller);
        return;
    }
    /* A node that has just begun does not know the providers yet. */
    if (w_now_ns() < caller->node->since_ns + A_NODE_MS * PEG_NS_PER_MS)
        later_ns = caller->node->since_ns + A_NODE_MS * PEG_NS_PER_MS;
    else
        later_ns = bus_sim_defer(w.sim, caller->node->id, &caller->was_deferred);
    if (later_ns)
        bus_sim_arm(w.sim, timer, later_ns);
    else
        a_begin_at_node(caller);
}

/* It begins after so long; whoever adds it decides what it does. */
static struct a_caller *a_add(int64_t after_ns)
{
    struct a_caller *caller;

    if (a.n_callers == A_CALLERS)
        return NULL;
    caller = &a.callers[a.n_callers++];
    *caller = (struct a_caller){.number = a.n_callers};
    a.n_open++;
    w_arm(&caller->begin, a_begin_on_timer, after_ns);
    return caller;
}

/* ---- the end of a node, and of a run ------------------------------------------------------- */

static void a_on_crash(const struct w_node *node)
{
    for (unsigned i = 0; i < a.n_callers; i++) {
        struct a_caller *caller = &a.callers[i];

        if (caller->node != node || caller->is_over || !caller->has_begun)
            continue;
        a_count.lost++;
        if (caller->asks_after_ns && caller->kind == A_CALL) {
            a_count.asked_again++;
            a_ask_again(caller, caller->asks_after_ns);
        } else {
            a_be_over(caller);
        }
    }
}

static void a_check_notified(int64_t grace_ns)
{
    for (unsigned i = 0; i < a.n_callers; i++) {
        const struct a_caller *caller = &a.callers[i];

        if (!caller->is_over && caller->has_begun &&
            w_now_ns() > caller->deadline_ns + caller->node->paused_ns + grace_ns)
            h_break("notified", "caller %u has no end", caller->number);
    }
}

static void a_begin(void)
{
    a.n_callers = 0;
    a.n_open = 0;
    memset(a.has_id, 0, sizeof(a.has_id));
}

#endif
