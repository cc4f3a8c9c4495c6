/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connections of a channel: for each address as many slots as options.n_connections. A slot is
 * idle, connects, is ready, or waits until it may try again.
 *
 * The back-off counts from the beginning of an attempt: a connection that stood for longer is made
 * again at once, one that a server closes as soon as it has accepted it is not. After a failure the
 * name is looked up again, but not more often than options.resolve_again_ms.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "grpc/client/internal.h"

static void connect_slot(struct grpc__slot *slot);
static void resolve_again(struct grpc_channel *channel);

/* ---- state -------------------------------------------------------------------------------- */

enum grpc_channel_state grpc_channel_state(const struct grpc_channel *channel)
{
    if (channel->pick.n > 0)
        return GRPC_CHANNEL_READY;
    if (channel->is_failing)
        return GRPC_CHANNEL_FAILING;
    if (channel->n_idle == channel->n_slots && !channel->resolve)
        return GRPC_CHANNEL_IDLE;
    return GRPC_CHANNEL_CONNECTING;
}

/* Called when anything about the slots has changed. */
static void update_state(struct grpc_channel *channel)
{
    bool is_failing = channel->n_slots > 0 || channel->is_failing;

    for (size_t i = 0; i < channel->n_slots; i++)
        is_failing &= channel->slots[i]->has_failed;
    channel->is_failing = is_failing;
    if (is_failing)
        grpc__channel_fail_waiting(channel);
    if (grpc_channel_state(channel) != channel->reported_state)
        net_loop_later(channel->loop, &channel->later);
}

/* ---- one slot ----------------------------------------------------------------------------- */

static bool is_idle(const struct grpc__slot *slot)
{
    return !slot->conn && !slot->timer.is_armed;
}

static void wake_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;

    if (!is_idle(slot))
        return;
    channel->n_idle--;
    if (slot->not_before_ns <= net_loop_now_ns(channel->loop))
        connect_slot(slot);
    else
        net_loop_arm(channel->loop, &slot->timer, slot->not_before_ns);
}

/* It has no connection any more, and tries again if there are calls. */
static void release_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;

    slot->conn = NULL;
    if ((channel->n_calls > 0 || slot->has_failed) && !net_loop_is_ending(channel->loop))
        net_loop_arm(channel->loop, &slot->timer, slot->not_before_ns);
    else
        channel->n_idle++;
}

static void fail_slot(struct grpc__slot *slot, const peg_error *error)
{
    struct grpc_channel *channel = slot->channel;

    slot->has_failed = true;
    channel->last_error = *error;
    release_slot(slot);
    update_state(channel);
    resolve_again(channel);
}

static void on_slot_retry(struct net_timer *timer)
{
    connect_slot(peg__container_of(timer, struct grpc__slot, timer));
}

/* ---- events of a connection --------------------------------------------------------------- */

static void on_ready(void *user, struct grpc_client_conn *conn)
{
    struct grpc_channel *channel = user;
    struct grpc__slot *slot = conn->slot;

    slot->has_failed = false;
    grpc_backoff_reset(&slot->backoff);
    grpc_pick_add(&channel->pick, &conn->pick);
    update_state(channel);
    grpc__channel_open_waiting(channel);
}

static void on_fed(void *user)
{
    struct grpc_channel *channel = user;

    grpc__channel_report_ended(channel);
    if (channel->waiting.n > 0)
        grpc__channel_open_waiting(channel);
}

static void on_retired(void *user, struct grpc_client_conn *conn, bool is_too_eager)
{
    struct grpc_channel *channel = user;
    struct grpc__slot *slot = conn->slot;
    peg_error error;

    if (is_too_eager && channel->conn_options.keepalive_ms <= INT64_MAX / 2)
        channel->conn_options.keepalive_ms *= 2; /* as the protocol asks */
    grpc_pick_remove(&channel->pick, &conn->pick);
    conn->slot = NULL;
    PEG_LIST_PUSH(channel->retired, conn, next, prev);
    for (struct grpc_rpc *rpc = channel->calls; rpc; rpc = rpc->all.next) {
        if (rpc->conn == conn)
            grpc__rpc_take_back(rpc);
    }
    if (!slot)
        return;
    if (!conn->is_ready) {
        peg__fail(&error, PEG_EIO, "E_GRPC_CONNECT",
                  "%s takes no calls: it sent GOAWAY before anything else", conn->peer);
        fail_slot(slot, &error);
        return;
    }
    release_slot(slot);
    update_state(channel);
}

static void on_lost(void *user, struct grpc_client_conn *conn)
{
    struct grpc_channel *channel = user;
    struct grpc__slot *slot = conn->slot;

    grpc_pick_remove(&channel->pick, &conn->pick);
    if (!slot) {
        PEG_LIST_REMOVE(channel->retired, conn, next, prev);
        return;
    }
    conn->slot = NULL;
    if (!conn->is_ready) {
        fail_slot(slot, &conn->lost);
        return;
    }
    channel->last_error = conn->lost;
    release_slot(slot);
    update_state(channel);
    resolve_again(channel);
}

static const struct grpc_client_conn_events conn_events = {
    .on_ready = on_ready,
    .on_fed = on_fed,
    .on_retired = on_retired,
    .on_lost = on_lost,
};

static void connect_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;
    const int64_t now_ns = net_loop_now_ns(channel->loop);
    peg_error error;

    slot->not_before_ns = peg__clock_after_ms(now_ns, grpc_backoff_take_ms(&slot->backoff));
    if (grpc_client_conn_new(channel->loop, &slot->address, &channel->conn_options, &slot->conn,
                             &error)) {
        fail_slot(slot, &error);
        return;
    }
    slot->conn->slot = slot;
    if (!channel->idle_timer.is_armed)
        net_loop_arm(channel->loop, &channel->idle_timer,
                     peg__clock_after_ms(now_ns, channel->options.idle_ms));
    update_state(channel);
}

/* ---- all slots ---------------------------------------------------------------------------- */

static struct grpc__slot *new_slot(struct grpc_channel *channel, const struct net_address *address)
{
    struct grpc__slot *slot = peg__alloc_zero(1, sizeof(*slot));
    uint64_t seed = 0;

    if (!slot)
        return NULL;
    if (!peg__random(&seed, sizeof(seed)))
        seed = (uint64_t)net_loop_now_ns(channel->loop); /* it hides nothing */
    slot->channel = channel;
    slot->address = *address;
    slot->timer.fn = on_slot_retry;
    grpc_backoff_init(&slot->backoff, channel->options.backoff_ms, channel->options.max_backoff_ms,
                      seed);
    return slot;
}

/* Its connection ends with its last call. */
static void remove_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;
    struct grpc_client_conn *conn = slot->conn;

    net_loop_disarm(channel->loop, &slot->timer);
    if (conn) {
        conn->slot = NULL;
        slot->conn = NULL;
        if (conn->pick.n_streams > 0) {
            grpc_client_conn_retire(conn);
        } else {
            grpc_pick_remove(&channel->pick, &conn->pick);
            grpc_client_conn_free(conn);
        }
    }
    peg__free(slot);
}

static size_t n_listed(const struct grpc_channel *channel, const struct net_address *address)
{
    size_t n = 0;

    for (size_t i = 0; i < channel->n_slots; i++) {
        if (net_address_eq(&channel->slots[i]->address, address)) {
            channel->slots[i]->is_listed = true;
            n++;
        }
    }
    return n;
}

static bool add_slots(struct grpc_channel *channel, const struct net_address *address)
{
    for (size_t n = n_listed(channel, address); n < channel->options.n_connections; n++) {
        struct grpc__slot *slot;

        if (channel->n_slots == PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS)
            return true; /* enough addresses */
        slot = new_slot(channel, address);
        if (!slot)
            return false;
        slot->is_listed = true;
        channel->slots[channel->n_slots++] = slot;
        channel->n_idle++;
    }
    return true;
}

static void remove_unlisted(struct grpc_channel *channel)
{
    size_t n = 0;

    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[i];

        if (slot->is_listed) {
            slot->is_listed = false;
            channel->slots[n++] = slot;
        } else {
            channel->n_idle -= is_idle(slot);
            remove_slot(slot);
        }
    }
    channel->n_slots = n;
}

static bool reserve_slots(struct grpc_channel *channel, size_t n_addresses)
{
    size_t capacity = channel->n_slots;
    size_t n = channel->n_slots + n_addresses * channel->options.n_connections;
    struct grpc__slot **slots;

    if (n > PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS)
        n = PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS;
    if (grpc_pick_reserve(&channel->pick, n))
        return false;
    if (n <= capacity)
        return true;
    slots = peg__realloc(channel->slots, n * sizeof(*slots));
    if (!slots)
        return false;
    channel->slots = slots;
    return true;
}

bool grpc__slots_set(struct grpc_channel *channel, const struct net_address *addresses, size_t n)
{
    bool is_whole = reserve_slots(channel, n);

    for (size_t i = 0; is_whole && i < n; i++)
        is_whole = add_slots(channel, &addresses[i]);
    if (!is_whole) {
        for (size_t i = 0; i < channel->n_slots; i++)
            channel->slots[i]->is_listed = false;
        return false;
    }
    remove_unlisted(channel);
    return true;
}

/* ---- looking a name up -------------------------------------------------------------------- */

static void fail_lookup(struct grpc_channel *channel, const peg_error *error)
{
    channel->last_error = *error;
    if (channel->n_slots > 0)
        return; /* what was found before may still be right; the next failure asks again */
    channel->is_failing = true;
    net_loop_arm(channel->loop, &channel->resolve_timer,
                 peg__clock_after_ms(net_loop_now_ns(channel->loop),
                                     grpc_backoff_take_ms(&channel->resolve_backoff)));
    update_state(channel);
}

static void on_resolved(void *user, const struct net_address *addresses, size_t n,
                        const peg_error *error)
{
    struct grpc_channel *channel = user;
    peg_error nomem;

    channel->resolve = NULL;
    if (n > 0 && !grpc__slots_set(channel, addresses, n)) {
        peg__fail_nomem(&nomem);
        fail_lookup(channel, &nomem);
    } else if (n == 0) {
        fail_lookup(channel, error);
    } else {
        grpc_backoff_reset(&channel->resolve_backoff);
        if (channel->n_calls > 0 || channel->is_asked)
            grpc__slots_wake(channel);
        channel->is_asked = false;
        update_state(channel);
    }
}

static void resolve_target(struct grpc_channel *channel)
{
    peg_error error;

    net_loop_disarm(channel->loop, &channel->resolve_timer);
    channel->resolved_ns = net_loop_now_ns(channel->loop);
    if (net_resolve(channel->loop, &channel->target.name, on_resolved, channel, &channel->resolve,
                    &error))
        fail_lookup(channel, &error);
}

static void on_resolve_timer(struct net_timer *timer)
{
    resolve_target(peg__container_of(timer, struct grpc_channel, resolve_timer));
}

static void resolve_again(struct grpc_channel *channel)
{
    if (!channel->target.is_name || channel->resolve || channel->resolve_timer.is_armed)
        return;
    net_loop_arm(channel->loop, &channel->resolve_timer,
                 peg__clock_after_ms(channel->resolved_ns, channel->options.resolve_again_ms));
}

/* ---- without calls ------------------------------------------------------------------------ */

static void close_idle(struct grpc_channel *channel)
{
    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[i];

        net_loop_disarm(channel->loop, &slot->timer);
        if (slot->conn)
            grpc_pick_remove(&channel->pick, &slot->conn->pick);
        slot->conn = grpc_client_conn_free(slot->conn);
        slot->has_failed = false;
    }
    channel->n_idle = channel->n_slots;
    update_state(channel);
}

static void on_idle_timer(struct net_timer *timer)
{
    struct grpc_channel *channel = peg__container_of(timer, struct grpc_channel, idle_timer);
    const int64_t now_ns = net_loop_now_ns(channel->loop);
    int64_t due_ns = peg__clock_after_ms(channel->last_call_ns, channel->options.idle_ms);

    if (channel->n_calls > 0)
        due_ns = peg__clock_after_ms(now_ns, channel->options.idle_ms);
    if (due_ns > now_ns)
        net_loop_arm(channel->loop, &channel->idle_timer, due_ns);
    else
        close_idle(channel);
}

/* ---- the face ----------------------------------------------------------------------------- */

peg_status grpc__slots_init(struct grpc_channel *channel, peg_error *reterr)
{
    const struct grpc_target *target = &channel->target;

    channel->conn_options.events = &conn_events;
    channel->conn_options.user = channel;
    channel->resolve_timer.fn = on_resolve_timer;
    channel->idle_timer.fn = on_idle_timer;
    grpc_backoff_init(&channel->resolve_backoff, channel->options.backoff_ms,
                      channel->options.max_backoff_ms, (uint64_t)net_loop_now_ns(channel->loop));
    if (target->is_name || grpc__slots_set(channel, target->numbers, target->n_numbers))
        return PEG_OK;
    return peg__fail_nomem(reterr);
}

void grpc__slots_wake(struct grpc_channel *channel)
{
    if (channel->n_slots == 0 && !channel->resolve && !channel->resolve_timer.is_armed)
        resolve_target(channel);
    for (size_t i = 0; i < channel->n_slots && channel->n_idle > 0; i++)
        wake_slot(channel->slots[i]);
}

void grpc_channel_connect(struct grpc_channel *channel)
{
    channel->is_asked = channel->n_slots == 0;
    grpc_backoff_reset(&channel->resolve_backoff);
    if (channel->n_slots == 0 && !channel->resolve)
        resolve_target(channel);
    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[i];

        grpc_backoff_reset(&slot->backoff);
        if (slot->conn)
            continue;
        channel->n_idle -= is_idle(slot);
        net_loop_disarm(channel->loop, &slot->timer);
        slot->has_failed = false; /* calls wait for what comes of it */
        connect_slot(slot);
    }
}

void grpc__slots_free(struct grpc_channel *channel)
{
    net_loop_disarm(channel->loop, &channel->resolve_timer);
    net_loop_disarm(channel->loop, &channel->idle_timer);
    if (channel->resolve)
        net_resolve_cancel(channel->resolve);
    for (size_t i = 0; i < channel->n_slots; i++)
        remove_slot(channel->slots[i]);
    channel->n_slots = 0;
    while (channel->retired) {
        struct grpc_client_conn *conn = channel->retired;

        PEG_LIST_REMOVE(channel->retired, conn, next, prev);
        grpc_client_conn_free(conn);
    }
    peg__free(channel->slots);
    grpc_pick_free(&channel->pick);
}
