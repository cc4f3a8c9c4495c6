/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What happens when an event arrives: the server does what is asked and answers, a loop hears an
 * answer, a message, of changes or of a reset.
 */

#include <string.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "internal.h"

enum { MAX_POST_NS = 50000 };

/* ---- answers ------------------------------------------------------------------------------- */

void sim_event_give(struct sim_event *event)
{
    struct bus_wait *wait = event->wait;
    struct bus_answer *answer = &event->answer;

    if (!wait || event->loop->is_dead) {
        event->wait = NULL;
        sim_event_free(event);
        return;
    }
    event->wait = NULL;
    wait->pending = NULL;
    answer->current = event->current;
    answer->addresses = event->addresses;
    wait->fn(wait, answer);
    sim_event_free(event);
}

void sim_event_fail(struct sim_event *event)
{
    struct bus_sim *sim = event->loop->sim;

    event->is_answer = true;
    event->current = peg__blob_unref(event->current);
    event->answer.status = PEG_EIO;
    event->answer.written = false;
    event->answer.n_addresses = 0;
    sim_event_arm(event,
                  sim->now_ns + 1 + (int64_t)bus_sim_pick(sim, (uint64_t)sim->faults.error_ns));
}

static void send_answer(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;
    int64_t due_ns = loop->sim->now_ns + sim_delay(loop->sim);

    event->answer.epoch = loop->sim->server.epoch;
    if (event->loses_answer) {
        sim_event_fail(event);
        return;
    }
    if (due_ns <= loop->last_answer_ns)
        due_ns = loop->last_answer_ns + 1;
    loop->last_answer_ns = due_ns;
    event->is_answer = true;
    sim_event_arm(event, due_ns);
}

/* ---- registers ----------------------------------------------------------------------------- */

/* The server's, or the node's own. */
static uint64_t scope_of(const struct sim_event *event)
{
    return event->key.is_node_local ? event->loop->node->id : 0;
}

static void do_once(struct sim_event *event)
{
    struct bus_sim *sim = event->loop->sim;
    struct sim_register *found = sim_find(sim, &event->key, scope_of(event));

    if (!found) {
        found = sim_add(sim, &event->key, scope_of(event), event->keep_until_ms);
        if (!found) {
            event->answer.status = PEG_ENOMEM;
            return;
        }
        found->value = peg__blob_ref(event->value);
        if (sim->hooks.on_written)
            sim->hooks.on_written(sim->hooks.user, &event->key, event->value,
                                  event->loop->bus.self);
    }
    event->answer.written = peg__str_eq(peg__blob_str(found->value), peg__blob_str(event->value));
    event->current = peg__blob_ref(found->value);
}

static void do_read(struct sim_event *event)
{
    const struct sim_register *found = sim_find(event->loop->sim, &event->key, scope_of(event));

    event->current = found ? peg__blob_ref(found->value) : NULL;
}

static void do_forget(struct sim_event *event)
{
    struct bus_sim *sim = event->loop->sim;

    if (sim->hooks.on_forgotten)
        sim->hooks.on_forgotten(sim->hooks.user, &event->key.id);
    sim_forget(sim, &event->key.id, scope_of(event));
}

static void do_waiters(struct sim_event *event)
{
    event->answer.n_addresses =
        sim_waiters(event->loop->sim, &event->key, scope_of(event), event->addresses);
}

static void do_wait_add(struct sim_event *event)
{
    const struct bus_address waiter = event->loop->bus.self;
    struct sim_register *added;

    do_waiters(event);
    for (size_t i = 0; i < event->answer.n_addresses; i++) {
        if (bus_address_equal(event->addresses[i], waiter))
            event->answer.written = true;
    }
    event->answer.n_addresses = 0;
    if (event->answer.written)
        return;
    event->key.what = BUS_WAITERS;
    added = sim_add(event->loop->sim, &event->key, scope_of(event), event->keep_until_ms);
    event->answer.written = added != NULL;
    event->answer.status = added ? PEG_OK : PEG_ENOMEM;
    if (added)
        added->waiter = waiter;
}

/* ---- leases and maps ----------------------------------------------------------------------- */

/* Without memory for it, it is as if the loop had been cut off. */
static void send_lost(struct sim_loop *loop, struct bus_address lost)
{
    struct sim_event *event;

    if (loop->is_dead || bus_address_equal(loop->bus.self, lost))
        return;
    event = sim_event_new(loop->sim, SIM_NODE_LOST, loop);
    if (!event) {
        sim_loop_cut(loop, sim_delay(loop->sim));
        return;
    }
    event->to = lost;
    sim_event_arm(event, loop->sim->now_ns + sim_delay(loop->sim));
}

static void do_lease(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;
    const int64_t until_ns = loop->sim->now_ns + event->keep_until_ms * PEG_NS_PER_MS;
    const struct bus_address holder = sim_holder(loop->sim, event->text);
    const bool is_mine = bus_address_equal(holder, loop->bus.self);

    event->addresses[0] = holder;
    event->answer.n_addresses = 1;
    if (!is_mine &&
        (event->mode == BUS_LEASE_RENEW || (event->mode == BUS_LEASE_IF_FREE && holder.node)))
        return;
    if (!is_mine && loop->sim->hooks.on_taken)
        loop->sim->hooks.on_taken(loop->sim->hooks.user, event->text, holder, loop->bus.self,
                                  event->answer.asked_ns - loop->node->base_ns);
    if (!sim_lease(loop->sim, event->text, loop->bus.self, until_ns)) {
        event->answer.status = PEG_ENOMEM;
        event->answer.n_addresses = 0;
        return;
    }
    event->addresses[0] = loop->bus.self;
    event->answer.written = true;
    if (strcmp(event->text, loop->name) == 0)
        sim_event_arm(&loop->lease_end, until_ns);
}

void sim_lose_node(struct sim_loop *lost, struct sim_lease *lease)
{
    struct bus_sim *sim = lost->sim;

    *lease = sim->server.leases[--sim->server.n_leases];
    net_timers_disarm(&sim->events, &lost->lease_end.timer);
    for (size_t i = 0; i < sim->n_nodes; i++) {
        for (unsigned k = 0; k < sim->nodes[i].n_loops; k++)
            send_lost(&sim->nodes[i].loops[k], lost->bus.self);
    }
}

/* Of a loop that is dead, paused or cut off, or that does not renew. */
static void run_lease_end(struct sim_loop *loop)
{
    struct sim_lease *lease = sim_own_lease(loop->sim, loop);

    if (lease)
        sim_lose_node(loop, lease);
}

static void run_node_lost(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;
    const struct bus_address lost = event->to;

    sim_event_free(event);
    if (loop->is_dead || loop->sim->now_ns < loop->deaf_until_ns || !loop->bus.events.on_node_lost)
        return;
    if (loop->sim->hooks.on_node_lost)
        loop->sim->hooks.on_node_lost(loop->sim->hooks.user, lost,
                                      sim_loop_at(loop->sim, lost) != NULL);
    loop->bus.events.on_node_lost(loop->bus.user, lost);
}

static void do_leases(struct sim_event *event)
{
    const char *name = event->text;

    for (size_t i = 0; i < event->n_names; i++) {
        event->addresses[i] = sim_holder(event->loop->sim, name);
        name += strlen(name) + 1;
    }
    event->answer.n_addresses = event->n_names;
}

static void do_map_set(struct sim_event *event)
{
    const struct bus_map_write write = {
        .key = {event->text, event->text_len - 1},
        .value = event->value,
        .expected = event->expected,
    };

    event->answer.status = bus_map_table_set(&event->loop->sim->server.maps[event->map], &write,
                                             &event->answer.written, &event->answer.revision);
}

static void tell(struct sim_loop *loop, enum bus_map map)
{
    while (!loop->is_dead && bus_map_table_notify(&loop->sim->server.maps[map], loop))
        ;
}

void sim_wake(void *owner)
{
    struct sim_loop *loop = (struct sim_loop *)owner;
    struct sim_event *event;

    if (loop->has_tell || loop->is_dead)
        return;
    event = sim_event_new(loop->sim, SIM_TELL, loop);
    if (!event)
        return; /* the next change tells this one, too */
    loop->has_tell = true;
    sim_event_arm(event, loop->sim->now_ns + sim_delay(loop->sim));
}

static void run_tell(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;

    if (loop->sim->now_ns < loop->deaf_until_ns) {
        sim_event_arm(event, loop->deaf_until_ns + sim_delay(loop->sim));
        return;
    }
    sim_event_free(event);
    loop->has_tell = false;
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        tell(loop, (enum bus_map)map);
}

/* ---- messages ------------------------------------------------------------------------------- */

bool sim_send_on(struct bus_sim *sim, struct bus_address to, const struct bus_message *message)
{
    struct sim_loop *loop = sim_loop_at(sim, to);
    struct sim_event *event;
    int64_t delay_ns;

    if (!loop || sim_happens(sim, sim->faults.drop_message))
        return loop != NULL;
    event = sim_event_new(sim, SIM_MESSAGE, loop);
    if (!event)
        return true; /* lost like others */
    event->message = *message;
    peg__blob_ref(message->body);
    delay_ns = sim_delay(sim);
    if (sim_happens(sim, sim->faults.slow_message))
        delay_ns += (int64_t)bus_sim_pick(sim, (uint64_t)sim->faults.slow_ns);
    sim_event_arm(event, sim->now_ns + delay_ns);
    return true;
}

static void run_message(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;
    struct bus_sim *sim = loop->sim;

    const bool arrives =
        event->message.from.node == loop->node->id || sim->now_ns >= loop->deaf_until_ns;

    if (!loop->is_dead && arrives && loop->bus.events.on_message) {
        if (sim->hooks.on_message)
            sim->hooks.on_message(sim->hooks.user, loop->bus.self, &event->message);
        loop->bus.events.on_message(loop->bus.user, &event->message);
    }
    sim_event_free(event);
}

/* ---- posts --------------------------------------------------------------------------------- */

void sim_arm_post(struct sim_loop *loop)
{
    struct bus_sim *sim = loop->sim;

    loop->next_post.was_deferred = false;
    sim_event_arm(&loop->next_post, sim->now_ns + 1 + (int64_t)bus_sim_pick(sim, MAX_POST_NS));
}

static void run_post(struct sim_loop *loop)
{
    struct bus_post *post = loop->posts;

    loop->posts = post->next;
    if (loop->posts)
        sim_arm_post(loop);
    post->fn(post, loop->bus.user);
}

/* ---- events -------------------------------------------------------------------------------- */

/* Is there room and memory for it? */
static peg_status refuse_event(const struct sim_event *event)
{
    struct bus_sim *sim = event->loop->sim;
    unsigned full = 0;

    if (event->what > SIM_WAITERS || event->what == SIM_FORGET)
        return PEG_OK;
    if (sim_happens(sim, sim->faults.no_memory))
        return PEG_ENOMEM;
    if (event->what == SIM_WAIT_ADD)
        full = sim->faults.full_waiters;
    else if (event->what == SIM_PUT_IF_ABSENT &&
             (event->key.admits || event->value->len > PEG_LIMIT_BUS_REASON_BYTES))
        full = sim->faults.full;
    return sim_happens(sim, full) ? PEG_ELIMIT : PEG_OK;
}

void sim_event_serve(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;

    event->answer.status = refuse_event(event);
    if (event->answer.status)
        return;
    switch (event->what) {
    case SIM_PUT_IF_ABSENT:
        do_once(event);
        break;
    case SIM_READ:
        do_read(event);
        break;
    case SIM_FORGET:
        do_forget(event);
        break;
    case SIM_WAIT_ADD:
        do_wait_add(event);
        break;
    case SIM_WAITERS:
        do_waiters(event);
        break;
    case SIM_LEASE:
        do_lease(event);
        break;
    case SIM_RELEASE:
        sim_release(loop->sim, event->text, loop->bus.self);
        break;
    case SIM_LEASES:
        do_leases(event);
        break;
    case SIM_MAP_SET:
        do_map_set(event);
        break;
    default: /* SIM_SEND */
        event->answer.written = sim_send_on(loop->sim, event->to, &event->message);
        break;
    }
}

/* The loop learns from some answers, whoever waits for them. */
static void run_answer(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;

    if (event->what == SIM_LEASE && event->answer.written && strcmp(event->text, loop->name) == 0) {
        loop->renewed_ns = event->answer.asked_ns;
        loop->lease_ns = event->keep_until_ms * PEG_NS_PER_MS;
    }
    if (event->what == SIM_MAP_SET)
        tell(loop, event->map);
    sim_event_give(event);
}

static void run_reset(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;

    sim_event_free(event);
    if (loop->is_dead)
        return;
    loop->epoch = loop->sim->server.epoch;
    if (loop->bus.events.on_reset)
        loop->bus.events.on_reset(loop->bus.user);
}

void sim_event_run(struct sim_event *event)
{
    if (event->is_answer) {
        run_answer(event);
        return;
    }
    switch (event->what) {
    case SIM_MESSAGE:
        run_message(event);
        break;
    case SIM_TELL:
        run_tell(event);
        break;
    case SIM_RESET:
        run_reset(event);
        break;
    case SIM_NODE_LOST:
        run_node_lost(event);
        break;
    case SIM_LEASE_END:
        run_lease_end(event->loop);
        break;
    case SIM_POST:
        run_post(event->loop);
        break;
    default:
        sim_event_serve(event);
        send_answer(event);
        break;
    }
}
