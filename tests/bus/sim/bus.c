/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A question on its way: asked -> arrives at the server, which does it -> its answer arrives. It
 * may get lost on either way, which the asker is told some time later.
 *
 * Registers that a node keeps to itself, and messages within it, need no server: their answers come
 * at once.
 */

#include <string.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "internal.h"

static struct sim_loop *loop_of(struct bus *bus)
{
    return (struct sim_loop *)bus;
}

static int64_t loop_now_ns(const struct sim_loop *loop)
{
    return loop->sim->now_ns + loop->node->base_ns;
}

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t now_ns(struct bus *bus)
{
    return loop_now_ns(loop_of(bus));
}

static int64_t now_ms(struct bus *bus)
{
    return sim_wall_ms(loop_of(bus)->sim) + loop_of(bus)->node->skew_ms;
}

static void arm(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    struct sim_loop *loop = loop_of(bus);
    const int64_t now = loop_now_ns(loop);

    if (!loop->is_dead)
        net_timers_arm(&loop->timers, timer, due_ns > now ? due_ns : now + 1);
}

static void disarm(struct bus *bus, struct net_timer *timer)
{
    net_timers_disarm(&loop_of(bus)->timers, timer);
}

static uint64_t epoch(struct bus *bus)
{
    return loop_of(bus)->epoch;
}

/* Rule R3 of the call protocol. */
static bool is_fenced(struct bus *bus)
{
    const struct sim_loop *loop = loop_of(bus);
    const int64_t margin_ns = loop->lease_ns < 4 * PEG_NS_PER_S ? loop->lease_ns / 4 : PEG_NS_PER_S;

    return loop_now_ns(loop) >= loop->renewed_ns + loop->lease_ns - margin_ns;
}

/* ---- questions ----------------------------------------------------------------------------- */

static void give_at_once(struct bus_wait *wait, struct sim_loop *loop, peg_status status,
                         bool written)
{
    const struct bus_answer answer = {
        .status = status,
        .written = written,
        .epoch = loop->epoch,
        .asked_ns = loop_now_ns(loop),
    };

    if (wait)
        wait->fn(wait, &answer);
}

/* NULL: nobody asks, or there is no memory, which `wait` has heard then. */
static struct sim_event *new_question(struct bus *bus, enum sim_what what, struct bus_wait *wait)
{
    struct sim_loop *loop = loop_of(bus);
    struct sim_event *event;

    if (loop->is_dead)
        return NULL;
    event = sim_event_new(loop->sim, what, loop);
    if (!event) {
        give_at_once(wait, loop, PEG_ENOMEM, false);
        return NULL;
    }
    event->answer.asked_ns = loop_now_ns(loop);
    event->wait = wait;
    if (wait)
        wait->pending = event;
    event->next = &loop->questions;
    event->prev = loop->questions.prev;
    event->prev->next = event;
    loop->questions.prev = event;
    return event;
}

static void ask(struct sim_event *event)
{
    struct sim_loop *loop = event->loop;
    struct bus_sim *sim = loop->sim;
    int64_t due_ns = sim->now_ns + sim_delay(sim);

    if (sim->now_ns < loop->mute_until_ns || sim_happens(sim, sim->faults.lose_question)) {
        sim_event_fail(event);
        return;
    }
    event->loses_answer = sim_happens(sim, sim->faults.lose_answer);
    if (due_ns <= loop->last_question_ns)
        due_ns = loop->last_question_ns + 1;
    loop->last_question_ns = due_ns;
    sim_event_arm(event, due_ns);
}

/* False: too long for this simulation. */
static bool add_text(struct sim_event *event, peg_str text)
{
    if (event->text_len + text.len + 1 > SIM_TEXT)
        return false;
    if (text.len)
        memcpy(event->text + event->text_len, text.ptr, text.len);
    event->text_len += text.len;
    event->text[event->text_len++] = '\0';
    event->n_names++;
    return true;
}

static void refuse(struct sim_event *event)
{
    event->answer.status = PEG_ELIMIT;
    sim_event_give(event);
}

/* ---- what the owner of a loop asks --------------------------------------------------------- */

/* A register that needs no trip is asked for at once. */
static void ask_register(struct sim_event *event, const struct bus_key *key)
{
    event->key = *key;
    if (key->is_node_local) {
        sim_event_serve(event);
        event->answer.epoch = event->loop->epoch;
        sim_event_give(event);
    } else {
        ask(event);
    }
}

static void send_message(struct bus *bus, struct bus_address to, const struct bus_message *message,
                         struct bus_wait *wait)
{
    struct sim_event *event;

    if (to.node == bus->self.node) {
        if (!loop_of(bus)->is_dead)
            give_at_once(wait, loop_of(bus), PEG_OK, sim_send_on(loop_of(bus)->sim, to, message));
        return;
    }
    event = new_question(bus, SIM_SEND, wait);
    if (!event)
        return;
    event->to = to;
    event->message = *message;
    peg__blob_ref(message->body);
    ask(event);
}

static void once(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                 int64_t keep_until_ms, struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_PUT_IF_ABSENT, wait);

    if (!event)
        return;
    event->value = peg__blob_ref(value);
    event->keep_until_ms = keep_until_ms;
    ask_register(event, key);
}

static void read_register(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_READ, wait);

    if (event)
        ask_register(event, key);
}

static void forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    struct sim_event *event = new_question(bus, SIM_FORGET, NULL);

    (void)n_attempts;
    if (event)
        ask_register(event, key);
}

static void wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                     struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_WAIT_ADD, wait);

    if (!event)
        return;
    event->keep_until_ms = keep_until_ms;
    ask_register(event, key);
}

static void waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_WAITERS, wait);

    if (event)
        ask_register(event, key);
}

static void lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                  struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_LEASE, wait);

    if (!event)
        return;
    event->keep_until_ms = lease_ms;
    event->mode = mode;
    if (add_text(event, name))
        ask(event);
    else
        refuse(event);
}

static void release(struct bus *bus, peg_str name)
{
    struct sim_event *event = new_question(bus, SIM_RELEASE, NULL);

    if (!event)
        return;
    if (add_text(event, name))
        ask(event);
    else
        refuse(event);
}

static void leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_LEASES, wait);
    bool fits = n <= SIM_ADDRESSES;

    if (!event)
        return;
    for (size_t i = 0; fits && i < n; i++)
        fits = add_text(event, names[i]);
    if (fits)
        ask(event);
    else
        refuse(event);
}

static void map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                    uint64_t expected, struct bus_wait *wait)
{
    struct sim_event *event = new_question(bus, SIM_MAP_SET, wait);

    if (!event)
        return;
    event->map = map;
    event->value = peg__blob_ref(value);
    event->expected = expected;
    if (add_text(event, key))
        ask(event);
    else
        refuse(event);
}

/* Within a node nothing gets lost: a post needs no memory, and no server. */
static void post_to_loop(struct bus *bus, uint32_t number, struct bus_post *post)
{
    struct sim_node *node = loop_of(bus)->node;
    struct sim_loop *to = number < node->n_loops ? &node->loops[number] : NULL;

    if (loop_of(bus)->is_dead || !to || to->is_dead) {
        post->fn(post, NULL);
        return;
    }
    post->next = NULL;
    if (!to->posts) {
        to->posts_end = &to->posts;
        sim_arm_post(to);
    }
    *to->posts_end = post;
    to->posts_end = &post->next;
}

static void map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    if (!loop_of(bus)->is_dead)
        bus_map_table_watch(&loop_of(bus)->sim->server.maps[map], watch, bus);
}

static void map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    if (watch->owner)
        bus_map_table_unwatch(&loop_of(bus)->sim->server.maps[map], watch);
}

static void forget_wait(struct bus *bus, struct bus_wait *wait)
{
    struct sim_event *event = (struct sim_event *)wait->pending;

    (void)bus;
    event->wait = NULL;
    wait->pending = NULL;
}

/* Its memory is the world's. */
static void free_bus(struct bus *bus)
{
    sim_loop_kill(loop_of(bus));
    sim_loop_drop_posts(loop_of(bus));
}

static const struct bus_ops sim_ops = {
    .now_ns = now_ns,
    .now_ms = now_ms,
    .arm = arm,
    .disarm = disarm,
    .epoch = epoch,
    .is_fenced = is_fenced,
    .send = send_message,
    .put_if_absent = once,
    .read = read_register,
    .forget = forget,
    .wait_add = wait_add,
    .waiters = waiters,
    .lease = lease,
    .release = release,
    .leases = leases,
    .map_set = map_set,
    .post = post_to_loop,
    .map_watch = map_watch,
    .map_unwatch = map_unwatch,
    .forget_wait = forget_wait,
    .free = free_bus,
};

/* ---- loops --------------------------------------------------------------------------------- */

void sim_loop_init(struct sim_loop *loop, struct sim_node *node, struct bus_sim *sim,
                   unsigned number)
{
    *loop = (struct sim_loop){
        .bus = {.ops = &sim_ops, .self = {node->id, number}},
        .sim = sim,
        .node = node,
        .epoch = sim->server.epoch,
        .lag_ns = (int64_t)bus_sim_pick(sim, (uint64_t)sim->faults.timer_lag_ns),
    };
    loop->lease_end.what = SIM_LEASE_END;
    loop->lease_end.loop = loop;
    loop->next_post.what = SIM_POST;
    loop->next_post.loop = loop;
    loop->questions.next = &loop->questions;
    loop->questions.prev = &loop->questions;
    bus_address_print(loop->bus.self, loop->name);
}

void sim_loop_kill(struct sim_loop *loop)
{
    if (loop->is_dead)
        return;
    loop->is_dead = true;
    for (struct sim_event *event = loop->questions.next; event != &loop->questions;
         event = event->next) {
        if (event->wait)
            event->wait->pending = NULL;
        event->wait = NULL;
    }
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_leave(&loop->sim->server.maps[map], loop);
}

void sim_loop_drop_posts(struct sim_loop *loop)
{
    net_timers_disarm(&loop->sim->events, &loop->next_post.timer);
    while (loop->posts) {
        struct bus_post *post = loop->posts;

        loop->posts = post->next;
        post->fn(post, NULL);
    }
}

/* What is on its way to the server may arrive all the same. */
static void cut_question(struct sim_event *event)
{
    if (event->is_answer || sim_happens(event->loop->sim, 0x8000))
        sim_event_fail(event);
    else
        event->loses_answer = true;
}

void sim_loop_cut(struct sim_loop *loop, int64_t ns)
{
    struct bus_sim *sim = loop->sim;
    struct sim_event *reset;

    if (loop->is_dead)
        return;
    for (struct sim_event *event = loop->questions.next; event != &loop->questions;
         event = event->next)
        cut_question(event);
    reset = sim_event_new(sim, SIM_RESET, loop);
    if (!reset)
        return; /* its questions are answered */
    if (loop->deaf_until_ns < sim->now_ns + ns)
        loop->deaf_until_ns = sim->now_ns + ns;
    sim_event_arm(reset, loop->deaf_until_ns + sim_delay(sim));
}
