/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connections of a channel: for each address as many slots as options.n_connections. A slot is
 * idle, connects, is ready, or waits until it may try again.
 *
 * The back-off counts from the beginning of an attempt: a connection that stood for longer is made
 * again at once, one that a server closes as soon as it has accepted it is not. After a failure
 * names are looked up again, but not more often than options.resolve_again_ms.
 *
 * With options.prefers_one only one slot is to be ready. The others are idle then, or wait for the
 * end of their back-off. Slots are tried from `first` on, in rotation, each once, before the
 * channel counts as failing:
 *
 *   fails, or its connection ends   -> `first` is the slot behind it, which is tried (move_on)
 *   is slow (STEP_MS)               -> the next one is tried beside it
 *   is ready                        -> the others go idle
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "grpc/client/internal.h"

/* Then the next address is tried beside one that is silent: what RFC 8305 recommends. */
enum { STEP_MS = 250 };

static void connect_slot(struct grpc__slot *slot);

/* ---- state -------------------------------------------------------------------------------- */

enum grpc_channel_state grpc_channel_state(const struct grpc_channel *channel)
{
    if (channel->pick.n > 0)
        return GRPC_CHANNEL_READY;
    if (channel->is_failing)
        return GRPC_CHANNEL_FAILING;
    if (channel->n_idle == channel->n_slots && channel->lookups.n_pending == 0)
        return GRPC_CHANNEL_IDLE;
    return GRPC_CHANNEL_CONNECTING;
}

/* Called when anything about the slots has changed. */
static void update_state(struct grpc_channel *channel)
{
    bool is_failing = channel->lookups.was_answered;

    for (size_t i = 0; i < channel->n_slots; i++)
        is_failing &= channel->slots[i]->has_failed;
    channel->is_failing = is_failing;
    if (is_failing)
        grpc__channel_fail_waiting(channel);
    if (grpc_channel_state(channel) != channel->reported_state)
        net_loop_later(channel->loop, &channel->later);
}

/* ---- one slot ----------------------------------------------------------------------------- */

static void on_slot_retry(struct net_timer *timer)
{
    connect_slot(peg__container_of(timer, struct grpc__slot, timer));
}

static void arm_slot(struct grpc__slot *slot)
{
    slot->timer.fn = on_slot_retry;
    net_loop_arm(slot->channel->loop, &slot->timer, slot->not_before_ns);
}

static void wake_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;

    if (!grpc__slot_is_idle(slot))
        return;
    channel->n_idle--;
    if (slot->not_before_ns <= net_loop_now_ns(channel->loop))
        connect_slot(slot);
    else
        arm_slot(slot);
}

static bool can_move(const struct grpc_channel *channel)
{
    return channel->options.prefers_one && channel->n_slots > 1;
}

/* Not now: an attempt that fails at once would come here again. */
static void move_on(struct grpc__slot *slot, bool is_wanted)
{
    struct grpc_channel *channel = slot->channel;

    for (size_t i = 0; i < channel->n_slots; i++) {
        if (channel->slots[i] == slot)
            channel->first = (i + 1) % channel->n_slots;
    }
    channel->is_moving |= is_wanted;
    if (is_wanted)
        net_loop_later(channel->loop, &channel->later);
}

/* It has no connection any more, and tries again if there are calls. */
static void release_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;
    const bool is_wanted = channel->n_calls > 0 || slot->has_failed;

    slot->conn = NULL;
    if ((slot->has_failed || (is_wanted && !can_move(channel))) &&
        !net_loop_is_ending(channel->loop))
        arm_slot(slot);
    else
        channel->n_idle++;
    if (can_move(channel))
        move_on(slot, is_wanted);
}

static void fail_slot(struct grpc__slot *slot, const peg_error *error)
{
    struct grpc_channel *channel = slot->channel;

    slot->has_failed = true;
    channel->last_error = *error;
    release_slot(slot);
    update_state(channel);
    grpc__lookups_start_later(&channel->lookups);
}

/* ---- one of several ----------------------------------------------------------------------- */

/* Ends what other slots are about. Their back-off goes on. */
static void rest_others(struct grpc__slot *ready)
{
    struct grpc_channel *channel = ready->channel;

    net_loop_disarm(channel->loop, &channel->step_timer);
    channel->is_moving = false;
    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[i];

        if (slot == ready) {
            channel->first = i;
            continue;
        }
        channel->n_idle += !grpc__slot_is_idle(slot);
        net_loop_disarm(channel->loop, &slot->timer);
        if (slot->conn)
            grpc_pick_remove(&channel->pick, &slot->conn->pick);
        slot->conn = grpc_client_conn_free(slot->conn);
        slot->has_failed = false;
    }
}

static struct grpc__slot *next_slot(const struct grpc_channel *channel)
{
    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[(channel->first + i) % channel->n_slots];

        if (grpc__slot_is_idle(slot) && !slot->has_failed)
            return slot;
    }
    return NULL;
}

static bool is_any_connecting(const struct grpc_channel *channel)
{
    for (size_t i = 0; i < channel->n_slots; i++) {
        if (channel->slots[i]->conn)
            return true;
    }
    return false;
}

/* The next slot, and those behind it as long as it may not connect yet. */
static void wake_next(struct grpc_channel *channel)
{
    struct grpc__slot *slot;
    bool is_connecting = false;

    while (!is_connecting && (slot = next_slot(channel))) {
        wake_slot(slot);
        is_connecting = slot->conn || slot->has_failed;
    }
    if (next_slot(channel))
        net_loop_arm(channel->loop, &channel->step_timer,
                     peg__clock_after_ms(net_loop_now_ns(channel->loop), STEP_MS));
}

static void on_step(struct net_timer *timer)
{
    struct grpc_channel *channel = peg__container_of(timer, struct grpc_channel, step_timer);

    if (channel->pick.n == 0)
        wake_next(channel);
}

/* A name that comes first in the target, and is looked up for the first time, has as long as a
 * server that is connected to. */
static void wake_one(struct grpc_channel *channel)
{
    const struct grpc__slot *slot = next_slot(channel);

    channel->is_moving = false;
    if (!slot || channel->pick.n > 0 || is_any_connecting(channel))
        return;
    if (!channel->options.begins_anywhere &&
        grpc__lookups_is_early(&channel->lookups, &slot->address)) {
        if (!channel->step_timer.is_armed)
            net_loop_arm(channel->loop, &channel->step_timer,
                         peg__clock_after_ms(net_loop_now_ns(channel->loop), STEP_MS));
        return;
    }
    wake_next(channel);
}

/* ---- events of a connection --------------------------------------------------------------- */

static void on_ready(void *user, struct grpc_client_conn *conn)
{
    struct grpc_channel *channel = user;
    struct grpc__slot *slot = conn->slot;

    slot->has_failed = false;
    grpc_backoff_reset(&slot->backoff);
    if (channel->options.prefers_one)
        rest_others(slot);
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
    grpc__lookups_start_later(&channel->lookups);
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
    const struct grpc_target_entry *entry = grpc__lookups_entry(&channel->lookups, &slot->address);
    const int64_t now_ns = net_loop_now_ns(channel->loop);
    struct grpc_client_conn_options options = channel->conn_options;
    peg_error error;

    options.authority = channel->authority ? channel->authority : entry->authority;
    options.stream.tls_host = channel->tls_host ? channel->tls_host : entry->host;
    slot->not_before_ns = peg__clock_after_ms(now_ns, grpc_backoff_take_ms(&slot->backoff));
    if (grpc_client_conn_new(channel->loop, &slot->address, &options, &slot->conn, &error)) {
        fail_slot(slot, &error);
        return;
    }
    slot->conn->slot = slot;
    if (!channel->idle_timer.is_armed)
        net_loop_arm(channel->loop, &channel->idle_timer,
                     peg__clock_after_ms(now_ns, channel->options.idle_ms));
    update_state(channel);
}

/* ---- looking names up --------------------------------------------------------------------- */

static void on_addresses(void *user)
{
    struct grpc_channel *channel = user;
    struct net_address addresses[PEG_LIMIT_NET_ADDRESSES];
    const size_t n = grpc__lookups_collect(&channel->lookups, addresses, PEG_LIMIT_NET_ADDRESSES);

    if (n == 0)
        channel->last_error = channel->lookups.error;
    else if (!grpc__slots_set(channel, addresses, n))
        peg__fail_nomem(&channel->last_error);
    if (channel->n_slots > 0) {
        grpc_backoff_reset(&channel->lookups.backoff);
        if (channel->n_calls > 0 || channel->is_asked)
            grpc__slots_wake(channel);
        channel->is_asked = false;
    } else if (channel->lookups.n_pending == 0) {
        grpc__lookups_back_off(&channel->lookups);
    }
    update_state(channel);
}

/* ---- without calls ------------------------------------------------------------------------ */

static void close_idle(struct grpc_channel *channel)
{
    net_loop_disarm(channel->loop, &channel->step_timer);
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
    const struct grpc_channel_options *options = &channel->options;
    struct grpc__lookups *lookups = &channel->lookups;
    struct net_address addresses[PEG_LIMIT_NET_ADDRESSES];
    const peg_status status = grpc__lookups_init(lookups, channel->loop, &channel->target, reterr);
    size_t n;

    if (status)
        return status;
    channel->conn_options.events = &conn_events;
    channel->conn_options.user = channel;
    channel->idle_timer.fn = on_idle_timer;
    channel->step_timer.fn = on_step;
    lookups->again_ms = options->resolve_again_ms;
    lookups->on_change = on_addresses;
    lookups->user = channel;
    grpc_backoff_init(&lookups->backoff, options->backoff_ms, options->max_backoff_ms,
                      (uint64_t)net_loop_now_ns(channel->loop));
    n = grpc__lookups_collect(lookups, addresses, PEG_LIMIT_NET_ADDRESSES);
    return n == 0 || grpc__slots_set(channel, addresses, n) ? PEG_OK : peg__fail_nomem(reterr);
}

void grpc__slots_wake(struct grpc_channel *channel)
{
    if (!channel->lookups.was_asked || (channel->n_slots == 0 && !channel->lookups.timer.is_armed))
        grpc__lookups_start(&channel->lookups);
    if (channel->options.prefers_one) {
        wake_one(channel);
        return;
    }
    for (size_t i = 0; i < channel->n_slots && channel->n_idle > 0; i++)
        wake_slot(channel->slots[i]);
}

/* Without its back-off, as if it had not failed: calls wait for what comes of it. */
static void refresh_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;

    grpc_backoff_reset(&slot->backoff);
    if (slot->conn)
        return;
    channel->n_idle += !grpc__slot_is_idle(slot);
    net_loop_disarm(channel->loop, &slot->timer);
    slot->has_failed = false;
    slot->not_before_ns = 0;
}

void grpc_channel_connect(struct grpc_channel *channel)
{
    channel->is_asked = channel->n_slots == 0;
    grpc_backoff_reset(&channel->lookups.backoff);
    if (channel->n_slots == 0 || !channel->lookups.was_asked)
        grpc__lookups_start(&channel->lookups);
    for (size_t i = 0; i < channel->n_slots; i++)
        refresh_slot(channel->slots[i]);
    if (channel->n_slots == 0)
        return;
    update_state(channel);
    grpc__slots_wake(channel);
}

size_t grpc_channel_leave(struct grpc_channel *channel, const char *peer)
{
    if (!can_move(channel))
        return 0;
    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc_client_conn *conn = channel->slots[i]->conn;

        if (conn && conn->is_ready && strcmp(conn->peer, peer) == 0) {
            grpc_client_conn_retire(conn);
            break;
        }
    }
    return channel->n_slots - 1;
}

void grpc__slots_free(struct grpc_channel *channel)
{
    grpc__lookups_free(&channel->lookups);
    net_loop_disarm(channel->loop, &channel->step_timer);
    net_loop_disarm(channel->loop, &channel->idle_timer);
    grpc__slots_clear(channel);
    while (channel->retired) {
        struct grpc_client_conn *conn = channel->retired;

        PEG_LIST_REMOVE(channel->retired, conn, next, prev);
        grpc_client_conn_free(conn);
    }
    peg__free(channel->slots);
    grpc_pick_free(&channel->pick);
}
