/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers everything at once; only messages, posts, changes of maps and lost loops travel to other
 * loops.
 *
 *   send      own loop: queue --end of the round--> on_message
 *             another:  its port --> on_message
 *   post      its port --> fn
 *   map_set   table --wake: post to each loop that watches--> report;  own loop: at once
 *   leases    every loop has a timer for the next end of a loop's own lease; the first that finds
 *             one ended, or the loop that ends --wake: post to the others--> on_node_lost
 */

#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "bus/internal.h"
#include "net/loop/loop.h"

enum { SWEEP_MS = 1000 };

/* A message on its way. */
struct envelope {
    struct net_message post; /* first */
    struct envelope *next;   /* in a queue */
    struct bus_port *port;   /* to another loop: a reference */
    struct bus_message message;
};

struct bus_local_hub {
    uint64_t node;
    int64_t offset_ns; /* from the monotonic clock to the one on the wall, when the hub was made */
    struct bus_registers *registers;
    struct bus_lease_table leases;
    struct bus_map_table maps[BUS_N_MAPS];
    struct bus_ports ports;
};

struct bus_local {
    struct bus bus;   /* first */
    struct bus *face; /* whose owner uses it: itself, or the bus that it is a part of */
    struct bus_local_hub *hub;
    struct net_loop *loop;
    struct bus_port *port;
    struct net_timer sweep; /* armed while there may be registers that this loop wrote */
    struct net_timer lease_check;
    struct bus_post *posts; /* being delivered */
    struct net_later deliver;
    struct envelope *queue; /* messages to itself, in order */
    struct envelope **queue_end;
    struct envelope *spares;
    size_t n_spares;
};

static struct bus_local *local_of(struct bus *bus)
{
    return (struct bus_local *)bus;
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct bus_answer new_answer(struct bus *bus, peg_status status)
{
    return (struct bus_answer){
        .status = status,
        .epoch = bus_epoch(local_of(bus)->face),
        .asked_ns = net_loop_now_ns(local_of(bus)->loop),
    };
}

static void answer_wait(struct bus_wait *wait, const struct bus_answer *answer)
{
    if (wait)
        wait->fn(wait, answer);
}

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t local_now_ns(struct bus *bus)
{
    return net_loop_now_ns(local_of(bus)->loop);
}

static int64_t local_now_ms(struct bus *bus)
{
    return (local_now_ns(bus) + local_of(bus)->hub->offset_ns) / PEG_NS_PER_MS;
}

static void arm_timer(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    net_loop_arm(local_of(bus)->loop, timer, due_ns);
}

static void disarm_timer(struct bus *bus, struct net_timer *timer)
{
    net_loop_disarm(local_of(bus)->loop, timer);
}

static uint64_t local_epoch(struct bus *bus)
{
    (void)bus;
    return 1;
}

static bool local_is_fenced(struct bus *bus)
{
    (void)bus;
    return false;
}

/* ---- messages ------------------------------------------------------------------------------- */

static struct envelope *new_envelope(struct bus_local *local, const struct bus_message *message)
{
    struct envelope *envelope = local->spares;

    if (envelope) {
        local->spares = envelope->next;
        local->n_spares--;
    } else {
        envelope = (struct envelope *)peg__alloc(sizeof(*envelope));
    }
    if (!envelope)
        return NULL;
    envelope->next = NULL;
    envelope->port = NULL;
    envelope->message = *message;
    peg__blob_ref(message->body);
    return envelope;
}

/* `local` NULL: its bus is gone, and so are its spares. */
static void free_envelope(struct bus_local *local, struct envelope *envelope)
{
    peg__blob_unref(envelope->message.body);
    bus_port_unref(envelope->port);
    if (!local || local->n_spares == PEG_LIMIT_BUS_SPARE_MESSAGES) {
        peg__free(envelope);
        return;
    }
    envelope->next = local->spares;
    local->spares = envelope;
    local->n_spares++;
}

static struct envelope *take_queued(struct bus_local *local)
{
    struct envelope *first = local->queue;

    local->queue = first->next;
    if (!local->queue)
        local->queue_end = &local->queue;
    return first;
}

static void deliver_message(struct bus_local *local, const struct bus_message *message)
{
    const struct bus *face = local->face;

    if (face->events.on_message)
        face->events.on_message(face->user, message);
}

/* Also messages that are sent meanwhile, but not for ever. A handler may free the bus. */
static void deliver_queue(struct net_later *later)
{
    struct bus_local *local = peg__container_of(later, struct bus_local, deliver);
    struct bus_port *port = bus_port_ref(local->port);

    for (unsigned i = 0; port->bus && local->queue; i++) {
        struct envelope *envelope;

        if (i == PEG_LIMIT_BUS_MESSAGES_A_PASS) {
            net_loop_later(local->loop, &local->deliver);
            break;
        }
        envelope = take_queued(local);
        deliver_message(local, &envelope->message);
        free_envelope(port->bus, envelope);
    }
    bus_port_unref(port);
}

static void on_posted(struct net_message *message)
{
    struct envelope *envelope = (struct envelope *)message;
    struct bus_port *port = bus_port_ref(envelope->port);

    if (port->bus)
        deliver_message(port->bus, &envelope->message);
    free_envelope(port->bus, envelope);
    bus_port_unref(port);
}

static bool post_message(struct bus_local *local, uint32_t loop, struct envelope *envelope)
{
    envelope->post.fn = on_posted;
    if (bus_ports_send(&local->hub->ports, loop, &envelope->post, &envelope->port))
        return true;
    free_envelope(local, envelope);
    return false;
}

static bool is_of_this_node(const struct bus_local *local, struct bus_address to)
{
    return to.node == local->hub->node && to.loop < PEG_LIMIT_NET_LOOPS;
}

static void queue_message(struct bus_local *local, struct envelope *envelope)
{
    *local->queue_end = envelope;
    local->queue_end = &envelope->next;
    net_loop_later(local->loop, &local->deliver);
}

static void send_message(struct bus *bus, struct bus_address to, const struct bus_message *message,
                         struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct bus_answer answer = new_answer(bus, PEG_OK);
    struct envelope *envelope;

    if (!is_of_this_node(local, to)) {
        answer_wait(wait, &answer);
        return;
    }
    envelope = new_envelope(local, message);
    if (!envelope) {
        answer.status = PEG_ENOMEM;
    } else if (to.loop == bus->self.loop) {
        queue_message(local, envelope);
        answer.written = true;
    } else {
        answer.written = post_message(local, to.loop, envelope);
    }
    answer_wait(wait, &answer);
}

/* ---- posts --------------------------------------------------------------------------------- */

static void post_to_loop(struct bus *bus, uint32_t loop, struct bus_post *post)
{
    if (!bus_ports_post(&local_of(bus)->hub->ports, loop, post))
        post->fn(post, NULL);
}

/* Posts that are added meanwhile wait for the next round. One may free the bus. */
static void on_posts(struct net_message *message)
{
    struct bus_port *port = peg__container_of(message, struct bus_port, posted);
    struct bus_local *local = port->bus;

    if (local)
        local->posts = bus_port_take_posts(port);
    while (port->bus && local->posts) {
        struct bus_post *post = local->posts;

        local->posts = post->next;
        post->fn(post, local->face->user);
    }
    bus_port_unref(port);
}

static void drop_posts(struct bus_post *post)
{
    while (post) {
        struct bus_post *next = post->next;

        post->fn(post, NULL);
        post = next;
    }
}

/* ---- registers ----------------------------------------------------------------------------- */

/* A loop that wrote a register sweeps each second until none is left. */
static void sweep_registers(struct net_timer *timer)
{
    struct bus_local *local = peg__container_of(timer, struct bus_local, sweep);
    struct bus_registers *registers = local->hub->registers;
    const bool has_more =
        bus_registers_sweep(registers, bus_now_ms(local->face), PEG_LIMIT_BUS_SWEEP);

    if (bus_registers_len(registers) > 0)
        net_loop_arm(local->loop, timer,
                     local_now_ns(&local->bus) + (has_more ? 0 : SWEEP_MS * PEG_NS_PER_MS));
}

static void sweep_soon(struct bus_local *local)
{
    if (!local->sweep.is_armed)
        net_loop_arm(local->loop, &local->sweep,
                     local_now_ns(&local->bus) + SWEEP_MS * PEG_NS_PER_MS);
}

static void put_register(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                         int64_t keep_until_ms, struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct peg__blob *other = NULL;
    struct bus_answer answer = new_answer(
        bus, bus_registers_put_if_absent(local->hub->registers, key, value, keep_until_ms, &other));

    if (answer.status == PEG_OK) {
        answer.written = !other;
        answer.current = other ? other : value;
        sweep_soon(local);
    }
    answer_wait(wait, &answer);
    peg__blob_unref(other);
}

static void read_register(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct peg__blob *value = bus_registers_read(local_of(bus)->hub->registers, key);
    struct bus_answer answer = new_answer(bus, PEG_OK);

    answer.current = value;
    answer_wait(wait, &answer);
    peg__blob_unref(value);
}

static void forget_registers(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    (void)n_attempts;
    bus_registers_forget(local_of(bus)->hub->registers, &key->id);
}

static void add_waiter(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                       struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct bus_answer answer = new_answer(
        bus, bus_registers_wait_add(local->hub->registers, &key->id, bus->self, keep_until_ms));

    answer.written = answer.status == PEG_OK;
    if (answer.written)
        sweep_soon(local);
    answer_wait(wait, &answer);
}

static void list_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct bus_answer answer = new_answer(bus, PEG_OK);
    struct bus_address addresses[BUS_MAX_WAITERS];

    answer.n_addresses = bus_registers_waiters(local_of(bus)->hub->registers, &key->id, addresses);
    answer.addresses = addresses;
    answer_wait(wait, &answer);
}

/* ---- leases -------------------------------------------------------------------------------- */

static void ask_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                      struct bus_wait *wait)
{
    const struct bus_lease_request request = {
        .name = name,
        .loop = bus->self,
        .mode = mode,
        .now_ns = local_now_ns(bus),
        .until_ns = peg__clock_after_ms(local_now_ns(bus), lease_ms),
    };
    struct bus_address loop;
    struct bus_answer answer =
        new_answer(bus, bus_lease_ask(&local_of(bus)->hub->leases, &request, &loop));

    if (!answer.status) {
        answer.written = bus_address_equal(loop, bus->self);
        answer.addresses = &loop;
        answer.n_addresses = 1;
    }
    answer_wait(wait, &answer);
}

static void release_lease(struct bus *bus, peg_str name)
{
    bus_lease_release(&local_of(bus)->hub->leases, name, bus->self);
}

static void find_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    PEG_CLEANUP(peg__freep)
    struct bus_address *addresses =
        (struct bus_address *)peg__alloc_zero(n ? n : 1, sizeof(*addresses));
    struct bus_answer answer = new_answer(bus, addresses ? PEG_OK : PEG_ENOMEM);

    if (addresses) {
        bus_lease_find(&local_of(bus)->hub->leases, names, n, local_now_ns(bus), addresses);
        answer.addresses = addresses;
        answer.n_addresses = n;
    }
    answer_wait(wait, &answer);
}

static void check_leases(struct net_timer *timer)
{
    struct bus_local *local = peg__container_of(timer, struct bus_local, lease_check);

    net_loop_arm(local->loop, timer,
                 bus_lease_check(&local->hub->leases, local_now_ns(&local->bus)));
}

/* A handler may free the bus. */
static void report_leases(struct bus_port *port)
{
    const uint64_t node = port->bus->hub->node;
    bool has_new_lease;
    uint64_t lost = bus_port_take_lost(port, &has_new_lease);

    if (has_new_lease)
        check_leases(&port->bus->lease_check);
    for (uint32_t loop = 0; lost && port->bus; loop++, lost >>= 1) {
        const struct bus *bus = &port->bus->bus;

        if ((lost & 1) && bus->events.on_node_lost)
            bus->events.on_node_lost(bus->user, (struct bus_address){node, loop});
    }
}

static void on_own_lease(struct bus_lease_table *table)
{
    bus_ports_note_lease(&peg__container_of(table, struct bus_local_hub, leases)->ports);
}

static void on_lost_loop(struct bus_lease_table *table, struct bus_address loop)
{
    bus_ports_note_lost(&peg__container_of(table, struct bus_local_hub, leases)->ports, loop.loop);
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* A watch may free the bus. */
static void report_map(struct bus_local_hub *hub, struct bus_port *port, enum bus_map map)
{
    while (port->bus && bus_map_table_notify(&hub->maps[map], port))
        ;
}

static void on_changes(struct net_message *message)
{
    struct bus_port *port = (struct bus_port *)message;

    /* First: later changes wake again. */
    atomic_store(&port->is_woken, false);
    for (unsigned map = 0; map < BUS_N_MAPS && port->bus; map++)
        report_map(port->bus->hub, port, (enum bus_map)map);
    if (port->bus)
        report_leases(port);
    bus_port_unref(port);
}

static void set_map_key(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                        uint64_t expected, struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct bus_port *port = bus_port_ref(local->port);
    const struct bus_map_write write = {.key = key, .value = value, .expected = expected};
    struct bus_answer answer = new_answer(bus, PEG_OK);

    answer.status =
        bus_map_table_set(&local->hub->maps[map], &write, &answer.written, &answer.revision);
    if (answer.written)
        report_map(local->hub, port, map);
    bus_port_unref(port);
    answer_wait(wait, &answer);
}

static void watch_map(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    struct bus_local *local = local_of(bus);

    bus_map_table_watch(&local->hub->maps[map], watch, local->port);
}

static void unwatch_map(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    if (watch->owner)
        bus_map_table_unwatch(&local_of(bus)->hub->maps[map], watch);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Every request is answered before it returns: there is nothing to forget. */
static void forget_wait(struct bus *bus, struct bus_wait *wait)
{
    (void)bus;
    wait->pending = NULL;
}

static void free_envelopes(struct envelope *envelope)
{
    while (envelope) {
        struct envelope *next = envelope->next;

        peg__free(envelope);
        envelope = next;
    }
}

static void free_bus(struct bus *bus)
{
    struct bus_local *local = local_of(bus);

    bus_port_close(local->port);
    bus_lease_end_own(&local->hub->leases, bus->self);
    drop_posts(local->posts);
    drop_posts(bus_port_take_posts(local->port));
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_leave(&local->hub->maps[map], local->port);
    net_loop_disarm(local->loop, &local->sweep);
    net_loop_disarm(local->loop, &local->lease_check);
    net_loop_not_later(local->loop, &local->deliver);
    while (local->queue)
        free_envelope(local, take_queued(local));
    free_envelopes(local->spares);
    local->port->bus = NULL;
    bus_port_unref(local->port);
    peg__free(local);
}

static const struct bus_ops local_ops = {
    .now_ns = local_now_ns,
    .now_ms = local_now_ms,
    .arm = arm_timer,
    .disarm = disarm_timer,
    .epoch = local_epoch,
    .is_fenced = local_is_fenced,
    .send = send_message,
    .put_if_absent = put_register,
    .read = read_register,
    .forget = forget_registers,
    .wait_add = add_waiter,
    .waiters = list_waiters,
    .lease = ask_lease,
    .release = release_lease,
    .leases = find_leases,
    .map_set = set_map_key,
    .post = post_to_loop,
    .map_watch = watch_map,
    .map_unwatch = unwatch_map,
    .forget_wait = forget_wait,
    .free = free_bus,
};

peg_status bus_local_new(struct bus_local_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) struct bus_local *local = NULL;
    PEG_CLEANUP(peg__freep) struct bus_port *port = NULL;

    if (number >= PEG_LIMIT_NET_LOOPS)
        return peg__fail(reterr, PEG_EINVAL, "E_BUS_NUMBER",
                         "there are at most %d loops, and %u is beyond: number them from 0",
                         PEG_LIMIT_NET_LOOPS, (unsigned)number);
    local = (struct bus_local *)peg__alloc_zero(1, sizeof(*local));
    port = (struct bus_port *)peg__alloc_zero(1, sizeof(*port));
    if (!local || !port)
        return peg__fail_nomem(reterr);
    *port = (struct bus_port){
        .changes = {.fn = on_changes}, .posted = {.fn = on_posts}, .loop = loop, .bus = local};
    atomic_init(&port->n_refs, 1);
    *local = (struct bus_local){
        .bus = {.ops = &local_ops, .self = {hub->node, number}, .origin = hub->node},
        .hub = hub,
        .loop = loop,
        .port = port,
        .sweep = {.fn = sweep_registers},
        .lease_check = {.fn = check_leases},
        .deliver = {.fn = deliver_queue},
    };
    local->face = &local->bus;
    local->queue_end = &local->queue;
    if (!bus_ports_open(&hub->ports, number, port))
        return peg__fail(reterr, PEG_EEXISTS, "E_BUS_NUMBER",
                         "loop %u already has a bus: give each loop its own number",
                         (unsigned)number);
    check_leases(&local->lease_check);
    *ret_bus = &local->bus;
    local = NULL;
    port = NULL;
    return PEG_OK;
}

void bus_local_set_face(struct bus *bus, struct bus *face)
{
    local_of(bus)->face = face;
}

static int64_t measure_offset_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * PEG_NS_PER_S + now.tv_nsec - (int64_t)uv_hrtime();
}

peg_status bus_local_hub_new(uint64_t node, struct bus_local_hub **ret_hub, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep)
    struct bus_local_hub *hub = (struct bus_local_hub *)peg__alloc_zero(1, sizeof(*hub));
    peg_status status;

    if (!hub)
        return peg__fail_nomem(reterr);
    status = bus_registers_new(&hub->registers, reterr);
    if (status)
        return status;
    hub->node = node;
    hub->offset_ns = measure_offset_ns();
    bus_lease_table_init(&hub->leases);
    hub->leases.on_own = on_own_lease;
    hub->leases.on_lost = on_lost_loop;
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_init(&hub->maps[map], bus_port_wake);
    bus_ports_init(&hub->ports);
    *ret_hub = hub;
    hub = NULL;
    return PEG_OK;
}

struct bus_local_hub *bus_local_hub_free(struct bus_local_hub *hub)
{
    if (!hub)
        return NULL;
    bus_registers_free(hub->registers);
    bus_lease_table_free(&hub->leases);
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_free(&hub->maps[map]);
    bus_ports_free(&hub->ports);
    peg__free(hub);
    return NULL;
}

size_t bus_local_n_registers(const struct bus_local_hub *hub)
{
    return bus_registers_len(hub->registers);
}
