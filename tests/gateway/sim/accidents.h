/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_ACCIDENTS_H
#define PEG_TESTS_GATEWAY_SIM_ACCIDENTS_H

/*
 * What goes wrong in a run: accidents at any time, storms that last for a while, and strikes, which
 * hit a node just when it has written a register, before it knows that it has.
 */

#include "callers.h"
#include "providers.h"

enum r_kind {
    R_ROUGH,   /* anything may happen */
    R_CALM,    /* nothing does */
    R_CANCELS, /* some callers leave, some calls do not end: their providers must learn that */
    R_DRAINS,  /* providers drain, and others stay */
    R_BREAKS,  /* streams of providers break, and they come back in time */
    R_CRASHES, /* nodes crash, and their providers come to another one in time */
    R_RETURNS, /* connections of callers break, and they ask again in time */
    R_LAPSES,  /* leases of nodes lapse, and the nodes live */
    R_N_KINDS,
};

/* What a rough run is about. */
enum r_mode {
    R_MIXED,      /* some of everything */
    R_TAKEOVERS,  /* many askers of two identities, and their coordinators are struck */
    R_STUBBORN,   /* likewise, and providers give back all attempts but the last */
    R_REFUSING,   /* providers give back all attempts: identities are used again and again */
    R_DUPLICATES, /* messages are late and sent again, providers move, registers are lost */
    R_CANCELING,  /* callers leave, and providers give canceled calls back late */
    R_N_MODES,
};

enum { R_ACCIDENTS = 6, R_STRIKES = 8, R_RULES = 2, R_RETURNING = 8 };

enum r_action { R_CRASH, R_CUT, R_PAUSE, R_PARTITION, R_N_ACTIONS, R_LOSE_REGISTERS, R_NOTHING };

/* When such a register is written, this happens to a node. */
struct r_rule {
    char what;
    bool is_coordinator; /* the writer of a claim; of other registers: any */
    bool hits_coordinator;
    bool kills_provider;  /* one that is attached to the writer */
    bool isolates_writer; /* until its lease has ended */
    uint32_t min_n;
    unsigned percent; /* 0: there is no rule */
    enum r_action action;
};

struct r_strike {
    struct net_timer timer; /* first */
    uint64_t node;
    uint64_t writer;
    const struct r_rule *rule;
};

static struct {
    enum r_kind kind;
    enum r_mode mode;
    struct bus_sim_faults faults; /* but for storms */
    unsigned n_nodes;             /* at first */
    struct net_timer accidents[R_ACCIDENTS];
    struct net_timer storm;
    struct net_timer storm_end;
    struct net_timer returning[R_RETURNING];
    struct net_timer isolation;
    struct p_provider *isolated; /* NULL: none */
    struct r_rule rules[R_RULES];
    struct r_strike strikes[R_STRIKES];
    unsigned n_strikes;
} r;

/* What happened, over all runs: counters only. */
static struct r_counts {
    uint64_t runs;
    uint64_t kinds[R_N_KINDS];
    uint64_t nodes;
    uint64_t loops;
    uint64_t with_many_nodes;
    uint64_t events;
    uint64_t starts;
    uint64_t crashes;
    uint64_t returns;
    uint64_t pauses;
    uint64_t epochs;
    uint64_t cuts;
    uint64_t partitions;
    uint64_t storms;
    uint64_t strikes;
    uint64_t isolations;
    uint64_t kills;
    uint64_t breaks;
    uint64_t drains;
    uint64_t lapses;
} r_count;

/* ---- nodes ----------------------------------------------------------------------------------- */

static void r_start_node(void)
{
    const struct w_node *node = w_start_node(1 + w_pick(W_LOOPS));

    if (!node)
        return;
    r_count.nodes++;
    r_count.loops += node->n_loops;
}

static void r_return(struct net_timer *timer)
{
    (void)timer;
    r_count.returns++;
    r_start_node();
}

/* A node that comes back has a new id, and knows nothing. */
static void r_return_later(void)
{
    for (unsigned i = 0; i < R_RETURNING; i++)
        if (!r.returning[i].is_armed) {
            w_arm(&r.returning[i], r_return, w_pick_ns(500, 12000, 50));
            return;
        }
}

static void r_crash(struct w_node *node)
{
    r_count.crashes++;
    a_on_crash(node);
    p_on_crash(node);
    w_crash_node(node);
    if (w_n_alive() == 0)
        r_start_node();
    else if (w_happens(75))
        r_return_later();
}

static void r_hit_node(struct w_node *node, enum r_action action)
{
    switch (action) {
    case R_CRASH:
        r_crash(node);
        break;
    case R_CUT:
        r_count.cuts++;
        h_log("node %llx is cut off", (unsigned long long)node->id);
        bus_sim_cut(w.sim, node->id);
        break;
    case R_PAUSE:
        r_count.pauses++;
        w_pause_node(node, w_pick_ns(1500, 15000, 40));
        break;
    default:
        r_count.partitions++;
        w_partition_node(node, w_pick_ns(2000, 16000, 50));
        break;
    }
}

/* ---- providers ------------------------------------------------------------------------------- */

static struct p_provider *r_any_provider(void)
{
    return &p.providers[w_pick(p.n_providers)];
}

/* In runs that end well the first provider stays, and the first node with it: one provider can
 * always run a call. */
static struct p_provider *r_other_provider(void)
{
    return &p.providers[1 + w_pick(p.n_providers - 1)];
}

static void r_break_stream(struct p_provider *provider)
{
    r_count.breaks++;
    if (provider->is_alive)
        p_hang_up(provider, false);
}

static void r_kill(struct p_provider *provider)
{
    struct p_provider *next;

    r_count.kills++;
    p_kill(provider);
    next = w_happens(50) ? p_new_provider() : NULL;
    if (next)
        next->gives_back_before = provider->gives_back_before;
    p_start_provider(next);
}

/* A provider comes back to a node that is cut off then, answers there what it runs, and leaves: its
 * results cannot be written before its lease ends. */
static void r_end_isolation(struct net_timer *timer)
{
    (void)timer;
    r_break_stream(r.isolated);
}

static void r_isolate_on_timer(struct net_timer *timer)
{
    if (!r.isolated->is_alive || !r.isolated->stream)
        return;
    r_count.isolations++;
    w_partition_node(r.isolated->stream->node, (PEG_LIMIT_GATEWAY_LEASE_MS + 2000) * PEG_NS_PER_MS);
    p_answer_its(r.isolated);
    w_arm(timer, r_end_isolation, w_pick_ns(200, 1000, 50));
}

static void r_isolate(struct p_provider *provider)
{
    if (r.isolated)
        return;
    r.isolated = provider;
    r_break_stream(provider);
    w_arm(&r.isolation, r_isolate_on_timer, 300 * PEG_NS_PER_MS + w_pick_ns(300, 1000, 30));
}

static void r_hit_provider(struct p_provider *provider)
{
    switch (w_pick(8)) {
    case 0:
    case 1:
        r_kill(provider);
        break;
    case 2:
    case 3:
        r_count.drains++;
        p_drain(provider);
        break;
    case 4:
        r_isolate(provider);
        break;
    default:
        r_break_stream(provider);
        break;
    }
}

/* ---- accidents ------------------------------------------------------------------------------- */

static void r_crash_other(void)
{
    struct w_node *node = &w.nodes[1 + w_pick(w.n_nodes - 1)];

    if (node->is_alive)
        r_crash(node);
}

static void r_drain_other(void)
{
    r_count.drains++;
    p_drain(r_other_provider());
}

static void r_lapse_own(void)
{
    const struct w_node *node = w_any_node();
    const struct bus_address loop = {node->id, w_pick(node->n_loops)};

    r_count.lapses++;
    h_log("the lease of %llx.%u lapses", (unsigned long long)loop.node, loop.loop);
    bus_sim_lapse_own(w.sim, loop);
}

static void r_lose_registers(void)
{
    r_count.epochs++;
    h.has_lost_registers = true;
    h_log("the server loses EVERYTHING");
    bus_sim_new_epoch(w.sim);
}

static void r_happen_roughly(void)
{
    struct w_node *node = w_any_node();
    const unsigned what = w_pick(100);

    if (r.mode == R_DUPLICATES && what < 75) {
        r_break_stream(r_any_provider());
    } else if (what < 8 || r.mode == R_DUPLICATES) {
        r_lose_registers();
    } else if (what < 13) {
        r_count.lapses++;
        h_log("a lease lapses");
        bus_sim_lapse(w.sim);
    } else if (what < 18 && node) {
        r_lapse_own();
    } else if (what < 60 && node) {
        r_hit_node(node, (enum r_action)w_pick(R_N_ACTIONS));
    } else {
        r_hit_provider(r_any_provider());
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
    case R_LAPSES:
        r_lapse_own();
        break;
    default:
        r_happen_roughly();
        break;
    }
}

/* ---- strikes --------------------------------------------------------------------------------- */

static struct w_node *r_find_node(uint64_t id)
{
    for (unsigned i = 0; i < w.n_nodes; i++)
        if (w.nodes[i].is_alive && w.nodes[i].id == id)
            return &w.nodes[i];
    return NULL;
}

static void r_kill_at(uint64_t node)
{
    for (unsigned i = 0; i < p.n_providers; i++) {
        struct p_provider *provider = &p.providers[i];

        if (provider->is_alive && provider->stream && provider->stream->node->id == node) {
            r_kill(provider);
            return;
        }
    }
}

/* For as long as a follower needs to see that. */
static void r_isolate_node(uint64_t id)
{
    struct w_node *node = r_find_node(id);

    if (!node)
        return;
    r_count.partitions++;
    w_partition_node(node, PEG_LIMIT_GATEWAY_LEASE_MS * PEG_NS_PER_MS + w_pick_ns(500, 2500, 70));
}

static void r_run_strike(struct net_timer *timer)
{
    const struct r_strike *strike = (const struct r_strike *)timer;
    struct w_node *node = r_find_node(strike->node);

    r_count.strikes++;
    if (strike->rule->kills_provider)
        r_kill_at(strike->writer);
    if (strike->rule->isolates_writer && strike->writer != strike->node)
        r_isolate_node(strike->writer);
    if (strike->rule->action == R_LOSE_REGISTERS)
        r_lose_registers();
    else if (node && strike->rule->action != R_NOTHING)
        r_hit_node(node, strike->rule->action);
}

/* At the server; the answer is on its way. */
static void r_on_written(const struct bus_key *key, bool is_coordinator, struct bus_address by)
{
    for (unsigned i = 0; i < R_RULES; i++) {
        const struct r_rule *rule = &r.rules[i];
        struct r_strike *strike = &r.strikes[r.n_strikes];

        if (r.n_strikes == R_STRIKES || key->what != rule->what || key->n < rule->min_n ||
            (key->what == BUS_CLAIM && is_coordinator != rule->is_coordinator) ||
            !w_happens(rule->percent))
            continue;
        r.n_strikes++;
        strike->rule = rule;
        strike->writer = by.node;
        strike->node = rule->hits_coordinator ? h_call(&key->id)->coordinator.node : by.node;
        w_arm(&strike->timer, r_run_strike, w_happens(60) ? 1 : w_pick_ns(2, 100, 30));
    }
}

static void r_make_rules(void)
{
    static const char whats[3] = {BUS_IDENTITY, BUS_CLAIM, BUS_RESULT};

    if (r.mode == R_CANCELING) {
        r.rules[0] = (struct r_rule){
            .what = BUS_CLAIM, .kills_provider = true, .percent = 30, .action = R_NOTHING};
        return;
    }
    if (r.mode == R_TAKEOVERS && w_happens(60)) {
        r.rules[0] = (struct r_rule){
            .what = BUS_CLAIM, .hits_coordinator = true, .isolates_writer = true, .percent = 60};
        return;
    }
    if (r.mode == R_STUBBORN) {
        r.rules[0] = (struct r_rule){
            .what = BUS_CLAIM,
            .min_n = PEG_LIMIT_GATEWAY_ATTEMPTS,
            .hits_coordinator = true,
            .kills_provider = w_happens(85),
            .percent = 90,
        };
        r.rules[1] = (struct r_rule){
            .what = BUS_CLAIM,
            .is_coordinator = true,
            .min_n = PEG_LIMIT_GATEWAY_ATTEMPTS,
            .percent = 60,
        };
        return;
    }
    for (unsigned i = 0; i < R_RULES; i++)
        r.rules[i] = (struct r_rule){
            .what = whats[w_pick(3)],
            .is_coordinator = w_happens(60),
            .hits_coordinator = w_happens(40),
            .kills_provider = w_happens(20),
            .percent = w_happens(r.mode == R_TAKEOVERS ? 80 : 25) ? 15 + w_pick(50) : 0,
            .action = w_happens(8) ? R_LOSE_REGISTERS : (enum r_action)w_pick(R_N_ACTIONS),
        };
}

/* ---- storms ---------------------------------------------------------------------------------- */

static void r_end_storm(struct net_timer *timer)
{
    (void)timer;
    h_log("the storm is over");
    bus_sim_set_faults(w.sim, &r.faults);
}

/* Messages are lost, late, out of order and, being sent again, there twice; requests fail. */
static void r_begin_storm(struct net_timer *timer)
{
    struct bus_sim_faults faults = r.faults;

    (void)timer;
    r_count.storms++;
    faults.drop_message = 2000 + w_pick(20000);
    faults.lose_question = w_pick(8000);
    faults.lose_answer = w_pick(8000);
    faults.no_memory = w_happens(50) ? w_pick(4000) : 0;
    faults.full = w_happens(60) ? w_pick(40000) : 0;
    faults.full_waiters = w_happens(60) ? w_pick(60000) : 0;
    faults.slow = w_pick(8000);
    faults.slow_message = w_pick(20000);
    faults.delay_ns = w_pick_ns(30, 1500, 60);
    h_log("a storm: %u/%u/%u lost, up to %.0f ms", faults.drop_message, faults.lose_question,
          faults.lose_answer, (double)faults.delay_ns / 1e6);
    bus_sim_set_faults(w.sim, &faults);
    w_arm(&r.storm_end, r_end_storm, w_pick_ns(1500, 8000, 50));
}

/* ---- */

static bool r_has_accidents(void)
{
    for (unsigned i = 0; i < R_ACCIDENTS; i++)
        if (r.accidents[i].is_armed)
            return true;
    return r.storm.is_armed || r.storm_end.is_armed;
}

static void r_begin_accidents(void)
{
    memset(r.accidents, 0, sizeof(r.accidents));
    memset(r.returning, 0, sizeof(r.returning));
    memset(r.rules, 0, sizeof(r.rules));
    memset(r.strikes, 0, sizeof(r.strikes));
    r.storm = (struct net_timer){0};
    r.storm_end = (struct net_timer){0};
    r.isolation = (struct net_timer){0};
    r.isolated = NULL;
    r.n_strikes = 0;
    h.on_written = NULL;
}

#endif
