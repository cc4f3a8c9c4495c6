/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers everything at once; only messages and changes of maps travel to other loops.
 *
 *   send      own loop: queue --end of the round--> on_message
 *             another:  slot's lock, post to its loop --> on_message
 *   map_set   table --wake: post to each loop that watches--> report;  own loop: at once
 *
 * A posted message refers to a port, which outlives the bus of its loop as long as anything is on
 * its way. A port is closed under its slot's lock, so that nothing is posted to an ended loop.
 */

#include <pthread.h>
#include <stdatomic.h>
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
    struct port *port;       /* to another loop: a reference */
    struct bus_message message;
};

/* The way to a loop. */
struct port {
    struct net_message changes; /* first: maps have changed */
    atomic_bool is_woken;       /* it is posted; that is a reference */
    atomic_uint n_refs;
    struct net_loop *loop;
    struct bus_local *bus; /* NULL: it is freed. Touched on the loop only */
};

struct slot {
    pthread_mutex_t lock;
    struct port *port; /* NULL: no bus */
};

struct bus_local_hub {
    uint64_t node;
    int64_t offset_ns; /* from the monotonic clock to the one on the wall, when the hub was made */
    struct bus_registers *registers;
    struct bus_lease_table leases;
    struct bus_map_table maps[BUS_N_MAPS];
    struct slot slots[PEG_LIMIT_NET_LOOPS];
};

struct bus_local {
    struct bus bus; /* first */
    struct bus_local_hub *hub;
    struct net_loop *loop;
    struct port *port;
    struct net_timer sweep; /* armed while there may be registers that this loop wrote */
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

static struct port *ref_port(struct port *port)
{
    peg__refs_take(&port->n_refs);
    return port;
}

static void unref_port(struct port *port)
{
    if (port && peg__refs_drop(&port->n_refs))
        peg__free(port);
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct bus_answer new_answer(struct bus *bus, peg_status status)
{
    return (struct bus_answer){
        .status = status,
        .epoch = 1,
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
    unref_port(envelope->port);
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
    if (local->bus.events.on_message)
        local->bus.events.on_message(local->bus.user, message);
}

/* Also messages that are sent meanwhile, but not for ever. A handler may free the bus. */
static void deliver_queue(struct net_later *later)
{
    struct bus_local *local = peg__container_of(later, struct bus_local, deliver);
    struct port *port = ref_port(local->port);

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
    unref_port(port);
}

static void on_posted(struct net_message *message)
{
    struct envelope *envelope = (struct envelope *)message;
    struct port *port = ref_port(envelope->port);

    if (port->bus)
        deliver_message(port->bus, &envelope->message);
    free_envelope(port->bus, envelope);
    unref_port(port);
}

static bool post_message(struct bus_local *local, struct slot *slot, struct envelope *envelope)
{
    struct port *port;

    pthread_mutex_lock(&slot->lock);
    port = slot->port;
    if (port) {
        envelope->post.fn = on_posted;
        envelope->port = ref_port(port);
        net_loop_post(port->loop, &envelope->post);
    }
    pthread_mutex_unlock(&slot->lock);
    if (!port)
        free_envelope(local, envelope);
    return port != NULL;
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
        answer.written = post_message(local, &local->hub->slots[to.loop], envelope);
    }
    answer_wait(wait, &answer);
}

/* ---- registers ----------------------------------------------------------------------------- */

/* A loop that wrote a register sweeps each second until none is left. */
static void sweep_registers(struct net_timer *timer)
{
    struct bus_local *local = peg__container_of(timer, struct bus_local, sweep);
    struct bus_registers *registers = local->hub->registers;
    const bool has_more =
        bus_registers_sweep(registers, local_now_ms(&local->bus), PEG_LIMIT_BUS_SWEEP);

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

static void take_lease(struct bus *bus, peg_str name, int64_t lease_ms, struct bus_wait *wait)
{
    const int64_t until_ns = peg__clock_after_ms(local_now_ns(bus), lease_ms);
    struct bus_answer answer =
        new_answer(bus, bus_lease_take(&local_of(bus)->hub->leases, name, bus->self,
                                       local_now_ns(bus), until_ns));

    answer.written = answer.status == PEG_OK;
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

/* ---- maps ---------------------------------------------------------------------------------- */

/* A watch may free the bus. */
static void report_map(struct bus_local_hub *hub, struct port *port, enum bus_map map)
{
    while (port->bus && bus_map_table_notify(&hub->maps[map], port))
        ;
}

static void on_changes(struct net_message *message)
{
    struct port *port = (struct port *)message;

    /* First: later changes wake again. */
    atomic_store(&port->is_woken, false);
    for (unsigned map = 0; map < BUS_N_MAPS && port->bus; map++)
        report_map(port->bus->hub, port, (enum bus_map)map);
    unref_port(port);
}

/* Called under the lock of a map that the port watches, so its loop has not ended. */
static void wake_port(void *owner)
{
    struct port *port = (struct port *)owner;

    if (!atomic_exchange(&port->is_woken, true))
        net_loop_post(port->loop, &ref_port(port)->changes);
}

static void set_map_key(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                        uint64_t expected, struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct port *port = ref_port(local->port);
    const struct bus_map_write write = {.key = key, .value = value, .expected = expected};
    struct bus_answer answer = new_answer(bus, PEG_OK);

    answer.status =
        bus_map_table_set(&local->hub->maps[map], &write, &answer.written, &answer.revision);
    if (answer.written)
        report_map(local->hub, port, map);
    unref_port(port);
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
    struct slot *slot = &local->hub->slots[bus->self.loop];

    pthread_mutex_lock(&slot->lock);
    slot->port = NULL;
    pthread_mutex_unlock(&slot->lock);
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_leave(&local->hub->maps[map], local->port);
    net_loop_disarm(local->loop, &local->sweep);
    net_loop_not_later(local->loop, &local->deliver);
    while (local->queue)
        free_envelope(local, take_queued(local));
    free_envelopes(local->spares);
    local->port->bus = NULL;
    unref_port(local->port);
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
    .lease = take_lease,
    .release = release_lease,
    .leases = find_leases,
    .map_set = set_map_key,
    .map_watch = watch_map,
    .map_unwatch = unwatch_map,
    .forget_wait = forget_wait,
    .free = free_bus,
};

static peg_status take_slot(struct bus_local_hub *hub, uint32_t number, struct port *port,
                            peg_error *reterr)
{
    struct slot *slot = &hub->slots[number];
    bool is_taken;

    pthread_mutex_lock(&slot->lock);
    is_taken = slot->port != NULL;
    if (!is_taken)
        slot->port = port;
    pthread_mutex_unlock(&slot->lock);
    if (is_taken)
        return peg__fail(reterr, PEG_EEXISTS, "E_BUS_NUMBER",
                         "loop %u already has a bus: give each loop its own number",
                         (unsigned)number);
    return PEG_OK;
}

peg_status bus_local_new(struct bus_local_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) struct bus_local *local = NULL;
    PEG_CLEANUP(peg__freep) struct port *port = NULL;
    peg_status status;

    if (number >= PEG_LIMIT_NET_LOOPS)
        return peg__fail(reterr, PEG_EINVAL, "E_BUS_NUMBER",
                         "there are at most %d loops, and %u is beyond: number them from 0",
                         PEG_LIMIT_NET_LOOPS, (unsigned)number);
    local = (struct bus_local *)peg__alloc_zero(1, sizeof(*local));
    port = (struct port *)peg__alloc_zero(1, sizeof(*port));
    if (!local || !port)
        return peg__fail_nomem(reterr);
    *port = (struct port){.changes = {.fn = on_changes}, .loop = loop, .bus = local};
    atomic_init(&port->n_refs, 1);
    *local = (struct bus_local){
        .bus = {.ops = &local_ops, .self = {hub->node, number}, .origin = hub->node},
        .hub = hub,
        .loop = loop,
        .port = port,
        .sweep = {.fn = sweep_registers},
        .deliver = {.fn = deliver_queue},
    };
    local->queue_end = &local->queue;
    status = take_slot(hub, number, port, reterr);
    if (status)
        return status;
    *ret_bus = &local->bus;
    local = NULL;
    port = NULL;
    return PEG_OK;
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
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_init(&hub->maps[map], wake_port);
    for (unsigned i = 0; i < PEG_LIMIT_NET_LOOPS; i++)
        pthread_mutex_init(&hub->slots[i].lock, NULL);
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
    for (unsigned i = 0; i < PEG_LIMIT_NET_LOOPS; i++)
        pthread_mutex_destroy(&hub->slots[i].lock);
    peg__free(hub);
    return NULL;
}

size_t bus_local_n_registers(const struct bus_local_hub *hub)
{
    return bus_registers_len(hub->registers);
}
