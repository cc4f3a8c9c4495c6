/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything is answered at once but letters and changes of maps, which are for other loops, too.
 *
 *   send      own loop: queue --end of the round--> on_letter
 *             another:  slot's lock, post to its loop --> on_letter
 *   map_set   table --wake: post to each loop that watches--> tell;  own loop: at once
 *
 * What is posted to a loop refers to a port, which outlives the bus of that loop as long as
 * anything is on its way. A port is closed under its slot's lock, and nobody posts to one that is
 * closed: so nothing is posted to a loop that has ended.
 */

#include "bus/local.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/refs.h"
#include "bus/leases.h"
#include "bus/maps.h"
#include "bus/registers.h"

enum { SWEEP_MS = 1000 };

/* A letter on its way. */
struct envelope {
    struct net_message message; /* first */
    struct envelope *next;      /* in a queue */
    struct port *port;          /* to another loop: a reference */
    struct bus_message letter;
};

/* The way to a loop. */
struct port {
    struct net_message changes; /* first: changes of maps are to be heard */
    atomic_bool is_woken;       /* it is posted; that is a reference */
    atomic_uint n_refs;
    struct net_loop *loop;
    struct bus_local *bus; /* NULL: it is freed. Touched on the loop only */
};

struct slot {
    pthread_mutex_t lock;
    struct port *port; /* NULL: nobody is there */
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
    struct envelope *queue; /* letters to itself, in order */
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

static void give(struct bus_wait *wait, const struct bus_answer *answer)
{
    if (wait)
        wait->fn(wait, answer);
}

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t now_ns(struct bus *bus)
{
    return net_loop_now_ns(local_of(bus)->loop);
}

static int64_t now_ms(struct bus *bus)
{
    return (now_ns(bus) + local_of(bus)->hub->offset_ns) / PEG_NS_PER_MS;
}

static void arm(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    net_loop_arm(local_of(bus)->loop, timer, due_ns);
}

static void disarm(struct bus *bus, struct net_timer *timer)
{
    net_loop_disarm(local_of(bus)->loop, timer);
}

static uint64_t epoch(struct bus *bus)
{
    (void)bus;
    return 1;
}

static bool is_fenced(struct bus *bus)
{
    (void)bus;
    return false;
}

/* ---- letters ------------------------------------------------------------------------------- */

static struct envelope *new_envelope(struct bus_local *local, const struct bus_message *letter)
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
    envelope->letter = *letter;
    peg__blob_ref(letter->body);
    return envelope;
}

/* `local` NULL: nobody is there to keep its memory. */
static void free_envelope(struct bus_local *local, struct envelope *envelope)
{
    peg__blob_unref(envelope->letter.body);
    unref_port(envelope->port);
    if (!local || local->n_spares == PEG_LIMIT_BUS_SPARE_MESSAGES) {
        peg__free(envelope);
        return;
    }
    envelope->next = local->spares;
    local->spares = envelope;
    local->n_spares++;
}

static struct envelope *take_first(struct bus_local *local)
{
    struct envelope *first = local->queue;

    local->queue = first->next;
    if (!local->queue)
        local->queue_end = &local->queue;
    return first;
}

static void hear(struct bus_local *local, const struct bus_message *letter)
{
    if (local->bus.events.on_letter)
        local->bus.events.on_letter(local->bus.user, letter);
}

/* Also those that are sent meanwhile, but not for ever. Whoever hears may free the bus. */
static void deliver_queue(struct net_later *later)
{
    struct bus_local *local =
        (struct bus_local *)((char *)later - offsetof(struct bus_local, deliver));
    struct port *port = ref_port(local->port);

    for (unsigned i = 0; port->bus && local->queue; i++) {
        struct envelope *envelope;

        if (i == PEG_LIMIT_BUS_MESSAGES_A_PASS) {
            net_loop_later(local->loop, &local->deliver);
            break;
        }
        envelope = take_first(local);
        hear(local, &envelope->letter);
        free_envelope(port->bus, envelope);
    }
    unref_port(port);
}

static void on_posted_letter(struct net_message *message)
{
    struct envelope *envelope = (struct envelope *)message;
    struct port *port = ref_port(envelope->port);

    if (port->bus)
        hear(port->bus, &envelope->letter);
    free_envelope(port->bus, envelope);
    unref_port(port);
}

static bool post_letter(struct bus_local *local, struct slot *slot, struct envelope *envelope)
{
    struct port *port;

    pthread_mutex_lock(&slot->lock);
    port = slot->port;
    if (port) {
        envelope->message.fn = on_posted_letter;
        envelope->port = ref_port(port);
        net_loop_post(port->loop, &envelope->message);
    }
    pthread_mutex_unlock(&slot->lock);
    if (!port)
        free_envelope(local, envelope);
    return port != NULL;
}

static bool is_known(const struct bus_local *local, struct bus_address to)
{
    return to.node == local->hub->node && to.loop < PEG_LIMIT_NET_LOOPS;
}

static void queue_letter(struct bus_local *local, struct envelope *envelope)
{
    *local->queue_end = envelope;
    local->queue_end = &envelope->next;
    net_loop_later(local->loop, &local->deliver);
}

static void send_letter(struct bus *bus, struct bus_address to, const struct bus_message *letter,
                        struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct bus_answer answer = new_answer(bus, PEG_OK);
    struct envelope *envelope;

    if (!is_known(local, to)) {
        give(wait, &answer);
        return;
    }
    envelope = new_envelope(local, letter);
    if (!envelope) {
        answer.status = PEG_ENOMEM;
    } else if (to.loop == bus->self.loop) {
        queue_letter(local, envelope);
        answer.won = true;
    } else {
        answer.won = post_letter(local, &local->hub->slots[to.loop], envelope);
    }
    give(wait, &answer);
}

/* ---- registers ----------------------------------------------------------------------------- */

/* Whoever wrote one looks each second until there are none. */
static void sweep(struct net_timer *timer)
{
    struct bus_local *local =
        (struct bus_local *)((char *)timer - offsetof(struct bus_local, sweep));
    struct bus_registers *registers = local->hub->registers;
    const bool has_more = bus_registers_sweep(registers, now_ms(&local->bus), PEG_LIMIT_BUS_SWEEP);

    if (bus_registers_len(registers) > 0)
        net_loop_arm(local->loop, timer,
                     now_ns(&local->bus) + (has_more ? 0 : SWEEP_MS * PEG_NS_PER_MS));
}

static void sweep_soon(struct bus_local *local)
{
    if (!local->sweep.is_armed)
        net_loop_arm(local->loop, &local->sweep, now_ns(&local->bus) + SWEEP_MS * PEG_NS_PER_MS);
}

static void once(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                 int64_t keep_until_ms, struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct peg__blob *other = NULL;
    struct bus_answer answer = new_answer(
        bus, bus_registers_put_if_absent(local->hub->registers, key, value, keep_until_ms, &other));

    if (answer.status == PEG_OK) {
        answer.won = !other;
        answer.standing = other ? other : value;
        sweep_soon(local);
    }
    give(wait, &answer);
    peg__blob_unref(other);
}

static void read_register(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct peg__blob *value = bus_registers_read(local_of(bus)->hub->registers, key);
    struct bus_answer answer = new_answer(bus, PEG_OK);

    answer.standing = value;
    give(wait, &answer);
    peg__blob_unref(value);
}

static void forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    (void)n_attempts;
    bus_registers_forget(local_of(bus)->hub->registers, &key->id);
}

static void wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                     struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct bus_answer answer = new_answer(
        bus, bus_registers_wait_add(local->hub->registers, &key->id, bus->self, keep_until_ms));

    answer.won = answer.status == PEG_OK;
    if (answer.won)
        sweep_soon(local);
    give(wait, &answer);
}

static void waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct bus_answer answer = new_answer(bus, PEG_OK);
    struct bus_address addresses[BUS_MAX_WAITERS];

    answer.n_addresses = bus_registers_waiters(local_of(bus)->hub->registers, &key->id, addresses);
    answer.addresses = addresses;
    give(wait, &answer);
}

/* ---- leases -------------------------------------------------------------------------------- */

static void lease(struct bus *bus, peg_str name, int64_t lease_ms, struct bus_wait *wait)
{
    const int64_t until_ns = peg__clock_after_ms(now_ns(bus), lease_ms);
    struct bus_answer answer = new_answer(
        bus, bus_lease_take(&local_of(bus)->hub->leases, name, bus->self, now_ns(bus), until_ns));

    answer.won = answer.status == PEG_OK;
    give(wait, &answer);
}

static void release(struct bus *bus, peg_str name)
{
    bus_lease_release(&local_of(bus)->hub->leases, name, bus->self);
}

static void leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    PEG_CLEANUP(peg__freep)
    struct bus_address *addresses =
        (struct bus_address *)peg__alloc_zero(n ? n : 1, sizeof(*addresses));
    struct bus_answer answer = new_answer(bus, addresses ? PEG_OK : PEG_ENOMEM);

    if (addresses) {
        bus_lease_find(&local_of(bus)->hub->leases, names, n, now_ns(bus), addresses);
        answer.addresses = addresses;
        answer.n_addresses = n;
    }
    give(wait, &answer);
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* Whoever hears may free the bus. */
static void tell_map(struct bus_local_hub *hub, struct port *port, enum bus_map map)
{
    while (port->bus && bus_map_table_notify(&hub->maps[map], port))
        ;
}

static void on_changes(struct net_message *message)
{
    struct port *port = (struct port *)message;

    /* Before looking: what is changed from here on wakes again. */
    atomic_store(&port->is_woken, false);
    for (unsigned map = 0; map < BUS_N_MAPS && port->bus; map++)
        tell_map(port->bus->hub, port, (enum bus_map)map);
    unref_port(port);
}

/* Under the lock of a map that the port watches: its loop has not ended. */
static void wake(void *owner)
{
    struct port *port = (struct port *)owner;

    if (!atomic_exchange(&port->is_woken, true))
        net_loop_post(port->loop, &ref_port(port)->changes);
}

static void map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                    uint64_t expected, struct bus_wait *wait)
{
    struct bus_local *local = local_of(bus);
    struct port *port = ref_port(local->port);
    const struct bus_map_write write = {.key = key, .value = value, .expected = expected};
    struct bus_answer answer = new_answer(bus, PEG_OK);

    answer.status =
        bus_map_table_set(&local->hub->maps[map], &write, &answer.won, &answer.revision);
    if (answer.won)
        tell_map(local->hub, port, map);
    unref_port(port);
    give(wait, &answer);
}

static void map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    struct bus_local *local = local_of(bus);

    bus_map_table_watch(&local->hub->maps[map], watch, local->port);
}

static void map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    if (watch->owner)
        bus_map_table_unwatch(&local_of(bus)->hub->maps[map], watch);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Every question but letters is answered before it returns: there is nothing to forget. */
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
        free_envelope(local, take_first(local));
    free_envelopes(local->spares);
    local->port->bus = NULL;
    unref_port(local->port);
    peg__free(local);
}

static const struct bus_ops local_ops = {
    .now_ns = now_ns,
    .now_ms = now_ms,
    .arm = arm,
    .disarm = disarm,
    .epoch = epoch,
    .is_fenced = is_fenced,
    .send = send_letter,
    .once = once,
    .read = read_register,
    .forget = forget,
    .wait_add = wait_add,
    .waiters = waiters,
    .lease = lease,
    .release = release,
    .leases = leases,
    .map_set = map_set,
    .map_watch = map_watch,
    .map_unwatch = map_unwatch,
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
                         "loop %u has a bus already: give each loop a number of its own",
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
                         "loop %u is beyond PEG_LIMIT_NET_LOOPS = %d: number loops from 0",
                         (unsigned)number, PEG_LIMIT_NET_LOOPS);
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
        .sweep = {.fn = sweep},
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
        bus_map_table_init(&hub->maps[map], wake);
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
