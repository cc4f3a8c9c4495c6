/* SPDX-License-Identifier: Apache-2.0 */

/* The slot of a loop is locked for a moment by all that send to it; its mailbox then carries the
 * message. Posts and changes wait in the port: one message in the mailbox stands for all. */

#include "base/mem.h"
#include "bus/internal.h"

_Static_assert(PEG_LIMIT_NET_LOOPS <= 64, "a loop is a bit of bus_port.lost");

void bus_ports_init(struct bus_ports *ports)
{
    for (unsigned i = 0; i < PEG_LIMIT_NET_LOOPS; i++) {
        pthread_mutex_init(&ports->slots[i].lock, NULL);
        ports->slots[i].port = NULL;
    }
}

void bus_ports_free(struct bus_ports *ports)
{
    for (unsigned i = 0; i < PEG_LIMIT_NET_LOOPS; i++)
        pthread_mutex_destroy(&ports->slots[i].lock);
}

struct bus_port *bus_port_ref(struct bus_port *port)
{
    peg__refs_take(&port->n_refs);
    return port;
}

void bus_port_unref(struct bus_port *port)
{
    if (port && peg__refs_drop(&port->n_refs))
        peg__free(port);
}

bool bus_ports_open(struct bus_ports *ports, uint32_t number, struct bus_port *port)
{
    struct bus_slot *slot = &ports->slots[number];
    bool is_free;

    port->slot = slot;
    pthread_mutex_lock(&slot->lock);
    is_free = !slot->port;
    if (is_free)
        slot->port = port;
    pthread_mutex_unlock(&slot->lock);
    return is_free;
}

void bus_port_close(struct bus_port *port)
{
    pthread_mutex_lock(&port->slot->lock);
    port->slot->port = NULL;
    pthread_mutex_unlock(&port->slot->lock);
}

bool bus_ports_send(struct bus_ports *ports, uint32_t number, struct net_message *message,
                    struct bus_port **ret_port)
{
    struct bus_slot *slot = &ports->slots[number];
    struct bus_port *port;

    pthread_mutex_lock(&slot->lock);
    port = slot->port;
    if (port) {
        *ret_port = bus_port_ref(port);
        net_loop_post(port->loop, message);
    }
    pthread_mutex_unlock(&slot->lock);
    return port != NULL;
}

/* ---- posts --------------------------------------------------------------------------------- */

static void add_post(struct bus_port *port, struct bus_post *post)
{
    post->next = NULL;
    if (!port->posts) {
        port->posts_end = &port->posts;
        net_loop_post(port->loop, &bus_port_ref(port)->posted);
    }
    *port->posts_end = post;
    port->posts_end = &post->next;
}

bool bus_ports_post(struct bus_ports *ports, uint32_t number, struct bus_post *post)
{
    struct bus_slot *slot;
    bool is_there;

    if (number >= PEG_LIMIT_NET_LOOPS)
        return false;
    slot = &ports->slots[number];
    pthread_mutex_lock(&slot->lock);
    is_there = slot->port != NULL;
    if (is_there)
        add_post(slot->port, post);
    pthread_mutex_unlock(&slot->lock);
    return is_there;
}

struct bus_post *bus_port_take_posts(struct bus_port *port)
{
    struct bus_post *posts;

    pthread_mutex_lock(&port->slot->lock);
    posts = port->posts;
    port->posts = NULL;
    pthread_mutex_unlock(&port->slot->lock);
    return posts;
}

/* ---- changes ------------------------------------------------------------------------------- */

void bus_port_wake(void *owner)
{
    struct bus_port *port = (struct bus_port *)owner;

    if (!atomic_exchange(&port->is_woken, true))
        net_loop_post(port->loop, &bus_port_ref(port)->changes);
}

/* What a loop has to know of leases. */
static void note_leases(struct bus_slot *slot, uint64_t lost, bool has_new_lease)
{
    pthread_mutex_lock(&slot->lock);
    if (slot->port) {
        slot->port->lost |= lost;
        slot->port->has_new_lease |= has_new_lease;
        bus_port_wake(slot->port);
    }
    pthread_mutex_unlock(&slot->lock);
}

void bus_ports_note_lease(struct bus_ports *ports)
{
    for (uint32_t i = 0; i < PEG_LIMIT_NET_LOOPS; i++)
        note_leases(&ports->slots[i], 0, true);
}

void bus_ports_note_lost(struct bus_ports *ports, uint32_t number)
{
    for (uint32_t i = 0; i < PEG_LIMIT_NET_LOOPS; i++) {
        if (i != number)
            note_leases(&ports->slots[i], UINT64_C(1) << number, false);
    }
}

uint64_t bus_port_take_lost(struct bus_port *port, bool *ret_has_new_lease)
{
    uint64_t lost;

    pthread_mutex_lock(&port->slot->lock);
    lost = port->lost;
    *ret_has_new_lease = port->has_new_lease;
    port->lost = 0;
    port->has_new_lease = false;
    pthread_mutex_unlock(&port->slot->lock);
    return lost;
}
