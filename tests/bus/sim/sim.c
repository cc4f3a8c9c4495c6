/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The world: its clock, its dice, its nodes, and what happens next. That is the first of
 *
 *   events    of the server and of the ways to it and from it
 *   timers    of the world, and those of each loop, on its own clock
 *
 * but for a node that is paused, for which nothing happens until it goes on.
 */

#include "sim.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "internal.h"

/* ---- dice ---------------------------------------------------------------------------------- */

/* splitmix64. */
uint64_t bus_sim_random(struct bus_sim *sim)
{
    uint64_t z = (sim->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t bus_sim_pick(struct bus_sim *sim, uint64_t n)
{
    return n ? bus_sim_random(sim) % n : 0;
}

bool sim_happens(struct bus_sim *sim, unsigned of_65536)
{
    return of_65536 && (bus_sim_random(sim) & 0xffff) < of_65536;
}

int64_t sim_delay(struct bus_sim *sim)
{
    const int64_t max_ns =
        sim_happens(sim, sim->faults.slow) ? sim->faults.slow_ns : sim->faults.delay_ns;

    return 1 + (int64_t)bus_sim_pick(sim, (uint64_t)max_ns);
}

/* ---- events -------------------------------------------------------------------------------- */

struct sim_event *sim_event_new(struct bus_sim *sim, enum sim_what what, struct sim_loop *loop)
{
    struct sim_event *event = sim->spares;

    if (event)
        sim->spares = event->next;
    else
        event = (struct sim_event *)peg__alloc(sizeof(*event));
    if (!event)
        return NULL;
    event->timer = (struct net_timer){0};
    event->what = what;
    event->is_answer = false;
    event->loses_answer = false;
    event->was_deferred = false;
    event->loop = loop;
    event->next = NULL;
    event->prev = NULL;
    event->wait = NULL;
    event->answer = (struct bus_answer){0};
    event->current = NULL;
    event->value = NULL;
    event->message.body = NULL;
    event->n_names = 0;
    event->text_len = 0;
    return event;
}

void sim_event_free(struct sim_event *event)
{
    struct bus_sim *sim = event->loop->sim;

    if (event->wait)
        event->wait->pending = NULL;
    if (event->prev) {
        event->prev->next = event->next;
        event->next->prev = event->prev;
    }
    peg__blob_unref(event->current);
    peg__blob_unref(event->value);
    peg__blob_unref(event->message.body);
    event->next = sim->spares;
    sim->spares = event;
}

void sim_event_arm(struct sim_event *event, int64_t due_ns)
{
    net_timers_arm(&event->loop->sim->events, &event->timer, due_ns);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static struct sim_node *find_node(struct bus_sim *sim, uint64_t id)
{
    for (size_t i = 0; i < sim->n_nodes; i++) {
        if (sim->nodes[i].id == id && !sim->nodes[i].is_dead)
            return &sim->nodes[i];
    }
    return NULL;
}

struct sim_loop *sim_loop_at(struct bus_sim *sim, struct bus_address address)
{
    struct sim_node *node = find_node(sim, address.node);

    if (!node || address.loop >= node->n_loops || node->loops[address.loop].is_dead)
        return NULL;
    return &node->loops[address.loop];
}

static int64_t pick_skew_ms(struct bus_sim *sim)
{
    const int64_t max_ms = sim->faults.skew_ms;

    return max_ms ? (int64_t)bus_sim_pick(sim, (uint64_t)(2 * max_ms + 1)) - max_ms : 0;
}

peg_status bus_sim_add_node(struct bus_sim *sim, unsigned n_loops, struct bus **ret_buses,
                            uint64_t *ret_node)
{
    struct sim_node *node;

    if (n_loops == 0 || n_loops > BUS_SIM_MAX_LOOPS)
        return PEG_EINVAL;
    if (sim->n_nodes == BUS_SIM_MAX_NODES)
        return PEG_ELIMIT;
    node = &sim->nodes[sim->n_nodes++];
    node->id = UINT64_C(0xa0) + sim->n_nodes;
    node->is_dead = false;
    node->base_ns = (int64_t)bus_sim_pick(sim, 1000) * PEG_NS_PER_S;
    node->skew_ms = pick_skew_ms(sim);
    node->paused_until_ns = 0;
    node->deferred_until_ns = 0;
    node->n_loops = n_loops;
    for (unsigned i = 0; i < n_loops; i++) {
        sim_loop_init(&node->loops[i], node, sim, i);
        ret_buses[i] = &node->loops[i].bus;
    }
    *ret_node = node->id;
    return PEG_OK;
}

void bus_sim_pause(struct bus_sim *sim, uint64_t node_id, int64_t ns)
{
    struct sim_node *node = find_node(sim, node_id);

    /* What is deferred would lose its order if that were to take longer. */
    if (node && node->paused_until_ns <= sim->now_ns && node->deferred_until_ns < sim->now_ns)
        node->paused_until_ns = sim->now_ns + ns;
}

void bus_sim_crash(struct bus_sim *sim, uint64_t node_id)
{
    struct sim_node *node = find_node(sim, node_id);

    if (!node)
        return;
    for (unsigned i = 0; i < node->n_loops; i++)
        sim_loop_kill(&node->loops[i]);
    node->is_dead = true;
    for (unsigned i = 0; i < node->n_loops; i++)
        sim_loop_drop_posts(&node->loops[i]);
    sim_lose(sim, node->id);
}

void bus_sim_cut(struct bus_sim *sim, uint64_t node_id)
{
    struct sim_node *node = find_node(sim, node_id);

    for (unsigned i = 0; node && i < node->n_loops; i++)
        sim_loop_cut(&node->loops[i], sim_delay(sim));
}

void bus_sim_partition(struct bus_sim *sim, uint64_t node_id, int64_t ns)
{
    struct sim_node *node = find_node(sim, node_id);

    for (unsigned i = 0; node && i < node->n_loops; i++) {
        sim_loop_cut(&node->loops[i], ns);
        node->loops[i].mute_until_ns = node->loops[i].deaf_until_ns;
    }
}

void bus_sim_new_epoch(struct bus_sim *sim)
{
    struct sim_server *server = &sim->server;

    server->epoch++;
    sim_lose(sim, 0);
    server->n_leases = 0;
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_lose(&server->maps[map]);
    for (size_t i = 0; i < sim->n_nodes; i++)
        bus_sim_cut(sim, sim->nodes[i].id);
}

void bus_sim_calm(struct bus_sim *sim)
{
    sim->faults.drop_message = 0;
    sim->faults.lose_question = 0;
    sim->faults.lose_answer = 0;
    sim->faults.slow = 0;
    sim->faults.slow_message = 0;
    sim->faults.no_memory = 0;
    sim->faults.full = 0;
    sim->faults.full_waiters = 0;
    sim->faults.delay_ns = PEG_NS_PER_MS;
}

/* ---- what happens next --------------------------------------------------------------------- */

int64_t bus_sim_now_ns(const struct bus_sim *sim)
{
    return sim->now_ns;
}

uint64_t bus_sim_n_events(const struct bus_sim *sim)
{
    return sim->n_events;
}

void bus_sim_arm(struct bus_sim *sim, struct net_timer *timer, int64_t due_ns)
{
    net_timers_arm(&sim->timers, timer, due_ns);
}

void bus_sim_disarm(struct bus_sim *sim, struct net_timer *timer)
{
    net_timers_disarm(&sim->timers, timer);
}

/* When the next timer of a loop rings, on the world's clock. */
static int64_t ring_ns(const struct sim_loop *loop)
{
    const int64_t next_ns = net_timers_next_ns(&loop->timers);
    int64_t due_ns;

    if (next_ns == NET_NEVER || loop->is_dead)
        return NET_NEVER;
    due_ns = next_ns - loop->node->base_ns + loop->lag_ns;
    return due_ns < loop->node->paused_until_ns ? loop->node->paused_until_ns : due_ns;
}

/* If one of the node's loops rings before `*due_ns`, that is the first one from here on. */
static void first_of_node(struct sim_node *node, struct sim_loop **first, int64_t *due_ns)
{
    for (unsigned i = 0; !node->is_dead && i < node->n_loops; i++) {
        const int64_t ring = ring_ns(&node->loops[i]);

        if (ring < *due_ns) {
            *due_ns = ring;
            *first = &node->loops[i];
        }
    }
}

static struct sim_loop *first_loop(struct bus_sim *sim, int64_t *ret_due_ns)
{
    struct sim_loop *first = NULL;

    *ret_due_ns = NET_NEVER;
    for (size_t i = 0; i < sim->n_nodes; i++)
        first_of_node(&sim->nodes[i], &first, ret_due_ns);
    return first;
}

static void run_loop_timer(struct sim_loop *loop)
{
    struct bus_sim *sim = loop->sim;
    struct net_timer *timer = net_timers_take_due(&loop->timers, sim->now_ns + loop->node->base_ns);

    loop->lag_ns = (int64_t)bus_sim_pick(sim, (uint64_t)sim->faults.timer_lag_ns);
    if (timer)
        timer->fn(timer);
}

/* What came first while it was paused comes first afterwards, and before what comes then. */
static int64_t defer(const struct bus_sim *sim, struct sim_node *node, bool *was_deferred)
{
    if (node->paused_until_ns <= sim->now_ns &&
        (*was_deferred || node->deferred_until_ns < sim->now_ns))
        return 0;
    if (node->deferred_until_ns < node->paused_until_ns)
        node->deferred_until_ns = node->paused_until_ns;
    *was_deferred = true;
    return ++node->deferred_until_ns;
}

int64_t bus_sim_defer(struct bus_sim *sim, uint64_t node_id, bool *was_deferred)
{
    struct sim_node *node = find_node(sim, node_id);

    return node ? defer(sim, node, was_deferred) : 0;
}

/* A loop that does not run gets it when it does. */
static int64_t defer_event(const struct bus_sim *sim, struct sim_event *event)
{
    const bool is_for_loop = event->is_answer || event->what >= SIM_MESSAGE;

    if (!is_for_loop || event->loop->is_dead)
        return 0;
    return defer(sim, event->loop->node, &event->was_deferred);
}

static void run_event(struct bus_sim *sim)
{
    struct sim_event *event = (struct sim_event *)net_timers_take_due(&sim->events, sim->now_ns);
    const int64_t later_ns = defer_event(sim, event);

    if (later_ns)
        sim_event_arm(event, later_ns);
    else
        sim_event_run(event);
}

static void run_timer(struct bus_sim *sim)
{
    struct net_timer *timer = net_timers_take_due(&sim->timers, sim->now_ns);

    timer->fn(timer);
}

/* False: nothing is due until then. */
static bool step_until(struct bus_sim *sim, int64_t until_ns)
{
    const int64_t event_ns = net_timers_next_ns(&sim->events);
    const int64_t timer_ns = net_timers_next_ns(&sim->timers);
    int64_t loop_ns;
    struct sim_loop *loop = first_loop(sim, &loop_ns);
    int64_t next_ns = event_ns < timer_ns ? event_ns : timer_ns;

    if (loop_ns < next_ns)
        next_ns = loop_ns;
    if (next_ns == NET_NEVER || next_ns > until_ns)
        return false;
    if (sim->now_ns < next_ns)
        sim->now_ns = next_ns;
    sim->n_events++;
    if (next_ns == event_ns)
        run_event(sim);
    else if (next_ns == timer_ns)
        run_timer(sim);
    else
        run_loop_timer(loop);
    return true;
}

bool bus_sim_step(struct bus_sim *sim)
{
    return step_until(sim, NET_NEVER);
}

void bus_sim_run_until(struct bus_sim *sim, int64_t until_ns)
{
    while (step_until(sim, until_ns))
        ;
    if (sim->now_ns < until_ns)
        sim->now_ns = until_ns;
}

/* ---- worlds -------------------------------------------------------------------------------- */

static void take_faults(struct bus_sim *sim, const struct bus_sim_faults *faults)
{
    sim->faults = faults ? *faults : (struct bus_sim_faults){0};
    if (!sim->faults.delay_ns)
        sim->faults.delay_ns = PEG_NS_PER_MS;
    if (!sim->faults.slow_ns)
        sim->faults.slow_ns = 3 * PEG_NS_PER_S;
    if (!sim->faults.error_ns)
        sim->faults.error_ns = PEG_NS_PER_S;
}

void bus_sim_set_faults(struct bus_sim *sim, const struct bus_sim_faults *faults)
{
    take_faults(sim, faults);
}

static void end_world(struct bus_sim *sim)
{
    struct net_timer *timer;

    for (size_t i = 0; i < sim->n_nodes; i++) {
        bus_sim_crash(sim, sim->nodes[i].id);
        for (unsigned k = 0; k < sim->nodes[i].n_loops; k++)
            net_timers_disarm(&sim->events, &sim->nodes[i].loops[k].lease_end.timer);
    }
    while ((timer = net_timers_take_due(&sim->events, NET_NEVER - 1)))
        sim_event_free((struct sim_event *)timer);
    sim_lose(sim, 0);
    sim->timers = (struct net_timers){0};
    sim->server.n_leases = 0;
    for (unsigned map = 0; map < BUS_N_MAPS; map++) {
        bus_map_table_lose(&sim->server.maps[map]);
        sim->server.maps[map].revision = 0;
    }
    sim->n_nodes = 0;
}

void bus_sim_begin(struct bus_sim *sim, uint64_t seed, const struct bus_sim_faults *faults,
                   const struct bus_sim_hooks *hooks)
{
    end_world(sim);
    sim->random = seed;
    take_faults(sim, faults);
    sim->hooks = hooks ? *hooks : (struct bus_sim_hooks){0};
    sim->now_ns = INT64_C(1700000000) * PEG_NS_PER_S;
    sim->n_events = 0;
    sim->server.epoch = 1;
}

peg_status bus_sim_new(struct bus_sim **ret_sim, peg_error *reterr)
{
    struct bus_sim *sim = (struct bus_sim *)peg__alloc_zero(1, sizeof(*sim));

    if (!sim)
        return peg__fail_nomem(reterr);
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_init(&sim->server.maps[map], sim_wake);
    bus_sim_begin(sim, 0, NULL, NULL);
    *ret_sim = sim;
    return PEG_OK;
}

struct bus_sim *bus_sim_free(struct bus_sim *sim)
{
    if (!sim)
        return NULL;
    end_world(sim);
    while (sim->spares) {
        struct sim_event *spare = sim->spares;

        sim->spares = spare->next;
        peg__free(spare);
    }
    sim_server_free(&sim->server);
    peg__free(sim);
    return NULL;
}
