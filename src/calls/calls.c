/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/calls.h"

#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/provider/provider_side.h"
#include "calls/quota.h"

/* Leases are renewed three times in their life: one answer may be lost, and one may be late. */
enum { RENEWALS = 3 };

static void take_defaults(struct calls_options *options)
{
    if (!options->call_timeout_ms)
        options->call_timeout_ms = PEG_LIMIT_GATEWAY_CALL_MS;
    if (!options->lease_ms)
        options->lease_ms = PEG_LIMIT_GATEWAY_LEASE_MS;
    if (!options->grace_ms)
        options->grace_ms = PEG_LIMIT_GATEWAY_GRACE_MS;
    if (!options->settle_ms)
        options->settle_ms = PEG_LIMIT_GATEWAY_SETTLE_MS;
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

/* ---- leases: of the loop itself, for those who join its calls, and of its providers ---------- */

/* One that was not renewed is asked for again soon enough, or is gone. */
static void renew_own(struct calls_loop *calls)
{
    char name[BUS_ADDRESS_TEXT];

    bus_address_print(calls->bus->self, name);
    bus_lease(calls->bus, peg__str(name), calls->options.lease_ms, BUS_LEASE_TAKE, NULL);
}

static void renew(struct net_timer *timer)
{
    struct calls_loop *calls = peg__container_of(timer, struct calls_loop, renewal);

    renew_own(calls);
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next)
        calls_provider_renew(provider);
    bus_arm(calls->bus, &calls->renewal,
            bus_now_ns(calls->bus) + calls->options.lease_ms * 1000000 / RENEWALS);
}

/* ---- its life ---------------------------------------------------------------------------- */

/* On a loop a check that is not done soon is left to a worker, which takes its time. */
static peg_status prepare_calls(struct calls_loop *calls, peg_error *reterr)
{
    const peg_checker_options quick = {PEG_CHECKER_OPTIONS_INIT, .max_steps = 2000,
                                       .max_pattern_steps = PEG_LIMIT_GATEWAY_PATTERN_STEPS};
    peg_status status = peg_checker_new(calls->loop ? &quick : NULL, &calls->checker, reterr);

    if (!status)
        status = peg_json_parse(peg__str("null"), NULL, &calls->doc, reterr);
    calls->results = calls_result_quota_new(calls->options.has_principals);
    calls->recent = calls_recent_new();
    if (!status && (!calls->results || !calls->recent || calls_quotas_init(calls)))
        status = peg__fail_nomem(reterr);
    return status;
}

// NOLINTNEXTLINE(readability-function-size): the parts of a loop meet here, once
peg_status calls_loop_new(struct bus *bus, struct net_loop *loop,
                          const struct calls_options *options,
                          const struct calls_environment *environment, void *user,
                          struct calls_loop **ret_calls, peg_error *reterr)
{
    struct calls_loop *calls = (struct calls_loop *)peg__alloc_zero(1, sizeof(*calls));
    peg_status status;

    if (!calls)
        return peg__fail_nomem(reterr);
    *calls = (struct calls_loop){
        .bus = bus,
        .loop = loop,
        .options = *options,
        .env = environment,
        .user = user,
        .renewal.fn = renew,
        .text.max = PEG_LIMIT_GATEWAY_MESSAGE_BYTES,
        .frame.max = PEG_LIMIT_GATEWAY_FRAME_BYTES,
    };
    take_defaults(&calls->options);
    calls_table_init(&calls->by_id);
    calls_table_init(&calls->outstanding);
    calls_table_init(&calls->assignments);
    calls_table_init(&calls->incarnations);
    status = prepare_calls(calls, reterr);
    if (status) {
        calls_loop_free(calls);
        return status;
    }
    renew(&calls->renewal);
    *ret_calls = calls;
    return PEG_OK;
}

struct calls_loop *calls_loop_free(struct calls_loop *calls)
{
    if (!calls)
        return NULL;
    while (calls->first_call) {
        calls_abandon_callers(calls->first_call);
        calls_call_drop(calls->first_call);
    }
    calls_drop_relays(calls);
    assert(peg__quota_used(&calls->quotas.large_bytes) ==
           0); /* each call has given back what it took */
    while (calls->providers)
        calls_provider_free(calls->providers);
    bus_disarm(calls->bus, &calls->renewal);
    calls_table_free(&calls->by_id);
    calls_outstanding_free(calls);
    calls_table_free(&calls->assignments);
    calls_table_free(&calls->incarnations);
    peg_checker_free(calls->checker);
    peg_json_doc_free(calls->doc);
    calls_result_quota_unref(calls->results);
    calls_recent_free(calls->recent);
    calls_quotas_destroy(calls);
    peg__spares_free(&calls->spare_calls);
    peg__spares_free(&calls->spare_assignments);
    peg__buf_free(&calls->text);
    peg__buf_free(&calls->frame);
    peg__free(calls);
    return NULL;
}

void calls_begin_drain(struct calls_loop *calls, int64_t ms)
{
    calls->is_draining = true;
    calls->drain_ends_ns = bus_now_ns(calls->bus) + ms * INT64_C(1000000);
    calls_reattach_begin_drain(calls);
}

size_t calls_count(const struct calls_loop *calls)
{
    return peg__quota_used(&calls->quotas.calls) + calls->assignments.n - calls->n_unknown;
}

size_t calls_count_unsent(const struct calls_loop *calls)
{
    size_t n = 0;

    for (const struct calls_call *call = calls->first_call; call; call = call->next)
        n += call->machine.state <= CALLS_PEEKING ||
             (call->machine.state == CALLS_REVOKING && !call->machine.ending);
    return n;
}

void calls_epoch(const struct calls_loop *calls, char ret_text[CALLS_EPOCH_TEXT])
{
    snprintf(ret_text, CALLS_EPOCH_TEXT, "%016llx-%llu", (unsigned long long)calls->bus->origin,
             (unsigned long long)bus_epoch(calls->bus));
}

/* ---- messages ------------------------------------------------------------------------------ */

void calls_on_message(void *user, const struct bus_message *message)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    struct calls_call *call;

    switch (message->kind) {
    case BUS_CALL:
    case BUS_CANCEL:
    case BUS_ASK:
        calls_providers_on_message(calls, message);
        break;
    case BUS_EMIT:
        calls_emit_on_message(calls, message);
        break;
    case BUS_DELTA:
        if (message->reason == BUS_ANSWERED)
            calls_gate_on_answered(calls, message);
        else
            calls_on_output(calls, message);
        break;
    case BUS_WAITING:
        calls_on_waiting(calls, message);
        break;
    case BUS_FOLLOWER:
        calls_on_follower(calls, message);
        break;
    case BUS_DONE:
    case BUS_NAK:
    case BUS_HAVE:
    case BUS_LOST:
        call = calls_find(calls, &message->id);
        if (call)
            calls_run_message(call, message);
        else
            calls_outstanding_on_answer(calls, message);
        break;
    case BUS_EMITTED:
        calls_emit_on_answer(calls, message);
        break;
    case BUS_DRAIN: /* of no call: the node's */
    case BUS_SESSION:
        break;
    }
}

bool calls_set_secret(struct calls_loop *calls, const unsigned char secret[32])
{
    if (memcmp(calls->options.secret, secret, sizeof(calls->options.secret)) == 0)
        return false;
    memcpy(calls->options.secret, secret, sizeof(calls->options.secret));
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next)
        provider->owner_hash = calls_owner_hash(calls, provider->toolset);
    return true;
}

void calls_on_reset(void *user)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    struct calls_call *next;

    renew_own(calls);
    calls_providers_on_reset(calls);
    for (struct calls_call *call = calls->first_call; call; call = next) {
        next = call->next;
        calls_run_event(call, CALLS_RESET);
    }
}

/* Its followers, and those who wait for a provider there, need not wait until they recheck. */
void calls_on_node_lost(void *user, struct bus_address address)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    struct calls_call *next;

    for (struct calls_call *call = calls->first_call; call; call = next) {
        const struct calls_machine *machine = &call->machine;

        next = call->next;
        if ((machine->state == CALLS_FOLLOWING &&
             bus_address_equal(machine->coordinator, address)) ||
            (machine->state == CALLS_SENT && bus_address_equal(machine->address, address)))
            calls_run_event(call, CALLS_TIMER);
    }
}
