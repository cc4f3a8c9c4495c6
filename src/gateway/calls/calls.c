/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/calls/calls.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"

/* Leases are renewed three times in their life: one answer may be lost, and one may be late. */
enum { RENEWALS = 3 };

static void take_defaults(struct gw_calls_options *options)
{
    if (!options->call_timeout_ms)
        options->call_timeout_ms = PEG_LIMIT_GATEWAY_CALL_MS;
    if (!options->lease_ms)
        options->lease_ms = PEG_LIMIT_GATEWAY_LEASE_MS;
    if (!options->grace_ms)
        options->grace_ms = PEG_LIMIT_GATEWAY_GRACE_MS;
    if (!options->reattach_ms)
        options->reattach_ms = PEG_LIMIT_GATEWAY_REATTACH_MS;
    if (!options->keep_ms)
        options->keep_ms = PEG_LIMIT_GATEWAY_KEEP_MS;
    if (!options->max_calls)
        options->max_calls = PEG_LIMIT_GATEWAY_CALLS;
    if (!options->max_queue)
        options->max_queue = PEG_LIMIT_GATEWAY_QUEUE;
    if (!options->max_payload)
        options->max_payload = PEG_LIMIT_GATEWAY_PAYLOAD_BYTES;
    if (!options->max_queue_bytes)
        options->max_queue_bytes = PEG_LIMIT_GATEWAY_QUEUE_BYTES;
    if (!options->max_large_bytes)
        options->max_large_bytes = PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES;
}

/* ---- leases: of the desk itself, for those who join its calls, and of its providers ---------- */

static void on_own_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    (void)wait;
    (void)answer; /* a lease that was not renewed is asked for again soon enough, or is gone */
}

static void renew_own(struct gw_calls *desk)
{
    char name[BUS_ADDRESS_TEXT];

    bus_address_print(desk->bus->self, name);
    bus_forget_wait(desk->bus, &desk->lease_wait);
    desk->lease_wait.fn = on_own_lease;
    bus_lease(desk->bus, peg__str(name), desk->options.lease_ms, BUS_LEASE_TAKE, &desk->lease_wait);
}

static void renew(struct net_timer *timer)
{
    struct gw_calls *desk = peg__container_of(timer, struct gw_calls, renewal);

    renew_own(desk);
    for (struct gw_provider *provider = desk->providers; provider; provider = provider->next)
        gw_provider_renew(provider);
    bus_arm(desk->bus, &desk->renewal,
            bus_now_ns(desk->bus) + desk->options.lease_ms * 1000000 / RENEWALS);
}

/* ---- its life ---------------------------------------------------------------------------- */

/* On a loop a check that is not done soon is left to a worker, which takes its time. */
static peg_status prepare_calls(struct gw_calls *desk, peg_error *reterr)
{
    const peg_checker_options quick = {PEG_CHECKER_OPTIONS_INIT, .max_steps = 2000,
                                       .max_pattern_steps = PEG_LIMIT_GATEWAY_PATTERN_STEPS};
    peg_status status = peg_checker_new(desk->loop ? &quick : NULL, &desk->checker, reterr);

    if (!status)
        status = peg_json_parse(peg__str("null"), NULL, &desk->doc, reterr);
    desk->results = gw_result_quota_new(desk->options.has_principals);
    if (!status && (!desk->results || gw_quotas_init(desk)))
        status = peg__fail_nomem(reterr);
    return status;
}

// NOLINTNEXTLINE(readability-function-size): eight parts of a node meet here, once
peg_status gw_calls_new(struct bus *bus, struct net_loop *loop, unsigned number,
                        const struct gw_calls_options *options, struct gw_presence *presence,
                        struct gw_metrics *metrics, struct gw_calls **ret_desk, peg_error *reterr)
{
    struct gw_calls *desk = (struct gw_calls *)peg__alloc_zero(1, sizeof(*desk));
    peg_status status;

    if (!desk)
        return peg__fail_nomem(reterr);
    *desk = (struct gw_calls){
        .bus = bus,
        .loop = loop,
        .number = number,
        .options = *options,
        .presence = presence,
        .metrics = metrics,
        .renewal.fn = renew,
        .dice = number + 1,
        .text.max = PEG_LIMIT_GATEWAY_MESSAGE_BYTES,
        .frame.max = PEG_LIMIT_GATEWAY_FRAME_BYTES,
    };
    take_defaults(&desk->options);
    gw_table_init(&desk->calls);
    gw_table_init(&desk->astray);
    gw_table_init(&desk->held);
    gw_table_init(&desk->incarnations);
    gw_presence_on_moved(presence, gw_providers_on_moved, desk);
    status = prepare_calls(desk, reterr);
    if (status) {
        gw_calls_free(desk);
        return status;
    }
    renew(&desk->renewal);
    *ret_desk = desk;
    return PEG_OK;
}

struct gw_calls *gw_calls_free(struct gw_calls *desk)
{
    if (!desk)
        return NULL;
    gw_presence_on_moved(desk->presence, NULL, NULL);
    while (desk->first_call)
        gw_call_drop(desk->first_call);
    assert(peg__quota_used(&desk->quotas.large_bytes) ==
           0); /* each call has given back what it took */
    while (desk->providers)
        gw_provider_free(desk->providers);
    bus_forget_wait(desk->bus, &desk->lease_wait);
    bus_disarm(desk->bus, &desk->renewal);
    gw_table_free(&desk->calls);
    gw_outstanding_free(desk);
    gw_table_free(&desk->held);
    gw_table_free(&desk->incarnations);
    gw_snapshot_unref(desk->snapshot);
    peg_checker_free(desk->checker);
    peg_json_doc_free(desk->doc);
    gw_result_quota_unref(desk->results);
    gw_quotas_destroy(desk);
    peg__buf_free(&desk->text);
    peg__buf_free(&desk->frame);
    peg__free(desk);
    return NULL;
}

void gw_calls_on_snapshot(void *user, struct gw_snapshot *snapshot)
{
    struct gw_calls *desk = (struct gw_calls *)user;
    struct gw_snapshot *old = desk->snapshot;

    desk->snapshot = gw_snapshot_ref(snapshot);
    gw_snapshot_unref(old);
    gw_providers_on_snapshot(desk);
}

size_t gw_calls_count(const struct gw_calls *desk)
{
    return peg__quota_used(&desk->quotas.calls) + desk->held.n - desk->n_doubted;
}

size_t gw_calls_count_unsent(const struct gw_calls *desk)
{
    size_t n = 0;

    for (const struct gw_call *call = desk->first_call; call; call = call->next)
        n += call->step <= GW_NAMING || (call->step == GW_REVOKING && !call->ending);
    return n;
}

void gw_calls_epoch(const struct gw_calls *desk, char ret_text[GW_EPOCH_TEXT])
{
    snprintf(ret_text, GW_EPOCH_TEXT, "%016llx-%llu", (unsigned long long)desk->bus->origin,
             (unsigned long long)bus_epoch(desk->bus));
}

/* ---- letters ------------------------------------------------------------------------------ */

struct gw_call *gw_calls_coordinated(const struct gw_calls *desk, const struct bus_id *id)
{
    struct gw_entry *entry = gw_table_find(&desk->calls, id, 0);

    while (entry && ((struct gw_call *)entry)->step <= GW_FOLLOWING)
        entry = gw_table_again(entry);
    return (struct gw_call *)entry;
}

/* The same; or one that has become the driver, as others have read, and has not heard of it. */
static struct gw_call *to_be_stopped(struct gw_calls *desk, const struct bus_id *id)
{
    struct gw_call *call = gw_calls_coordinated(desk, id);
    struct gw_entry *entry = call ? &call->entry : gw_table_find(&desk->calls, id, 0);

    while (!call && entry) {
        if (((struct gw_call *)entry)->step == GW_NAMING)
            call = (struct gw_call *)entry;
        entry = gw_table_again(entry);
    }
    return call;
}

static void hear_as_driver(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_call *call = letter->kind == BUS_STOP ? to_be_stopped(desk, &letter->id)
                                                    : gw_calls_coordinated(desk, &letter->id);

    if (!call)
        gw_outstanding_on_answer(desk, letter);
    else if (letter->kind == BUS_STOP)
        gw_settle(call, BUS_CANCELED);
    else if (letter->kind == BUS_NAK && letter->reason == BUS_UNKNOWN)
        gw_recheck_on_unknown(call, letter);
    else if (letter->kind == BUS_NAK)
        gw_send_on_nak(call, letter);
    else if (letter->kind == BUS_HAVE)
        gw_settle_on_have(call, letter);
    else if (letter->kind == BUS_DUPLICATE)
        gw_outstanding_answer(call, letter);
    else if (letter->kind == BUS_LOST)
        gw_recheck_on_lost(call, letter);
}

void gw_calls_on_message(void *user, const struct bus_message *letter)
{
    struct gw_calls *desk = (struct gw_calls *)user;

    switch (letter->kind) {
    case BUS_CALL:
    case BUS_CANCEL:
    case BUS_ASK:
    case BUS_EMIT:
    case BUS_PONG:
        gw_providers_on_message(desk, letter);
        break;
    case BUS_DELTA:
        gw_output_on_message(desk, letter);
        break;
    case BUS_LISTEN:
        gw_output_on_listener(desk, letter);
        break;
    case BUS_DONE:
        gw_done_on_message(desk, letter);
        break;
    case BUS_WAITING:
        gw_leave_on_waiting(desk, letter);
        break;
    case BUS_LEFT:
        gw_leave_on_left(desk, letter);
        break;
    case BUS_KEEP:
        gw_leave_on_keep(desk, letter);
        break;
    case BUS_NAK:
    case BUS_STOP:
    case BUS_HAVE:
    case BUS_DUPLICATE:
    case BUS_LOST:
        hear_as_driver(desk, letter);
        break;
    case BUS_EMITTED:
        gw_emit_on_answer(desk, letter);
        break;
    }
}

void gw_calls_on_reset(void *user)
{
    struct gw_calls *desk = (struct gw_calls *)user;
    struct gw_call *next;

    renew_own(desk);
    gw_providers_on_reset(desk);
    for (struct gw_call *call = desk->first_call; call; call = next) {
        next = call->next;
        gw_recheck_soon(call);
    }
}

/* ---- ids ----------------------------------------------------------------------------------- */

bool gw_calls_random_id(struct gw_calls *desk, bool is_node_local, struct bus_id *ret_id)
{
    enum { LEN = 16 };

    if (desk->n_random < LEN) {
        if (!peg__random(desk->random, sizeof(desk->random)))
            return false;
        desk->n_random = sizeof(desk->random);
    }
    *ret_id = (struct bus_id){.len = LEN};
    memcpy(ret_id->bytes, desk->random + sizeof(desk->random) - desk->n_random, LEN);
    ret_id->bytes[LEN - 1] = (uint8_t)((ret_id->bytes[LEN - 1] & ~1) | is_node_local);
    desk->n_random -= LEN;
    return true;
}

/* Not for secrets: xorshift. */
uint64_t gw_calls_random(struct gw_calls *desk)
{
    desk->dice ^= desk->dice << 13;
    desk->dice ^= desk->dice >> 7;
    desk->dice ^= desk->dice << 17;
    return desk->dice;
}
