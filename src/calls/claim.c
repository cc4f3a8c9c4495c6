/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The third stage of a call, at the loop that has its provider: it waits for a place there, then
 * asks for the right to start it, and only who has that hands it over. Nobody else ever does.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "calls/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* A claim whose answer took longer is given back: the coordinator may have given up meanwhile. */
enum { TRUST_NS = 1000000000 };

/* ---- coming in ------------------------------------------------------------------------------- */

static enum bus_reason why_not(struct calls_provider *provider, const struct bus_message *message)
{
    const struct calls_options *options;

    if (!provider || provider->is_away || provider->is_moved || provider->eviction)
        return BUS_GONE;
    options = &provider->calls->options;
    if (calls_id_is_node_local(&message->id) &&
        message->from.node != provider->calls->bus->self.node)
        return BUS_GONE; /* its registers are out of reach */
    /* The name is another principal's by now, and one of the two loops has not heard of it. */
    if (message->owner != provider->owner_hash)
        return BUS_GONE;
    if (provider->is_draining)
        return BUS_DRAINING;
    if (bus_now_ms(provider->calls->bus) >= message->deadline_ms)
        return BUS_LATE;
    if (message->body && !calls_provider_serves(provider, peg__blob_str(message->body)))
        return BUS_OUTDATED;
    if (provider->queue.n >= options->max_queue ||
        provider->queued_bytes + peg__blob_str(message->body).len > options->max_queue_bytes)
        return BUS_OVERLOADED;
    return BUS_NO_REASON;
}

static struct calls_assignment *hold(struct calls_provider *provider,
                                     const struct bus_message *message)
{
    struct calls_assignment *assignment =
        calls_assignment_new(provider, &message->id, message->attempt);

    if (!assignment)
        return NULL;
    assignment->request = peg__blob_ref(message->body);
    assignment->coordinator = message->from;
    assignment->deadline_ms = message->deadline_ms;
    assignment->epoch = message->epoch;
    assignment->account = message->account;
    assignment->tool = provider->calls->env->find_tool(
        provider->calls->user, provider->toolset,
        wire_find_bytes(peg__blob_str(message->body), PEGBOARD_V1_CALL_TOOL_FIELD));
    provider->queued_bytes += message->body->len;
    return assignment;
}

void calls_claim_on_call(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_provider *provider = calls_providers_find(calls, message->incarnation);
    struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);
    enum bus_reason reason;

    /* An attempt that is only sent now was nobody's to list. */
    while (assignment && assignment->is_unverified && assignment->provider != provider &&
           assignment->step == CALLS_HANDED) {
        struct calls_provider *other = assignment->provider;

        calls_assignment_drop(assignment);
        calls_claim_pump(other); /* it has room for one more */
        assignment = calls_assignment_find(calls, &message->id, message->attempt);
    }
    if (assignment)
        calls_providers_reply(calls, message, BUS_DUPLICATE, BUS_NO_REASON);
    if (assignment || !message->body)
        return;
    reason = why_not(provider, message);
    if (!reason && !hold(provider, message))
        reason = BUS_FULL;
    if (reason)
        calls_providers_refuse(calls, message, reason);
    else
        calls_claim_pump(provider);
}

void calls_claim_send_cancel(const struct calls_assignment *assignment)
{
    const struct calls_provider *provider = assignment->provider;

    if (assignment->step == CALLS_HANDED && !provider->is_away)
        provider->events->cancel(provider->user, &assignment->entry.id, assignment->entry.attempt,
                                 assignment->canceled);
}

void calls_claim_on_cancel(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);

    if (!assignment || assignment->canceled)
        return;
    assignment->canceled = message->reason;
    if (assignment->step == CALLS_QUEUED)
        calls_assignment_nak(assignment, BUS_CANCELED, false);
    else
        calls_claim_send_cancel(assignment);
}

/* ---- claiming -------------------------------------------------------------------------------- */

/* A little less than the coordinator waits, so that the tool's own word about being late comes
 * first. */
static int64_t time_for_provider(const struct calls_assignment *assignment)
{
    const int64_t left_ms = assignment->deadline_ms - bus_now_ms(assignment->provider->calls->bus);
    const int64_t spare_ms = left_ms / 20 < 100 ? left_ms / 20 : 100;

    return left_ms - spare_ms > 1 ? left_ms - spare_ms : 1;
}

static void hand_over_claimed(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;
    struct peg__blob *request = assignment->request;
    const struct bus_id id = assignment->entry.id;
    const struct calls_handed handed = {
        .id = &id,
        .attempt = assignment->entry.attempt,
        .call = peg__blob_str(request),
        .timeout_ms = time_for_provider(assignment),
        .deadline_ms = assignment->deadline_ms,
        .route = assignment->coordinator,
    };

    assignment->step = CALLS_HANDED;
    assignment->token = peg__blob_unref(assignment->token);
    assignment->request = NULL;
    provider->events->hand(provider->user, &handed); /* which may give it back */
    peg__blob_unref(request);
}

/* Why a call that is this loop's to start is not started after all. */
static enum bus_reason why_not_start(const struct calls_assignment *assignment,
                                     const struct bus_answer *answer)
{
    struct bus *bus = assignment->provider->calls->bus;

    if (assignment->provider->is_away || assignment->provider->is_moved ||
        assignment->provider->eviction)
        return BUS_GONE;
    if (assignment->canceled)
        return BUS_CANCELED;
    if (assignment->provider->is_draining)
        return BUS_DRAINING;
    if (answer->epoch != assignment->epoch)
        return BUS_EPOCH;
    if (bus_now_ns(bus) - answer->asked_ns > TRUST_NS || bus_now_ms(bus) >= assignment->deadline_ms)
        return BUS_LATE;
    return BUS_NO_REASON;
}

static void request_claim(struct calls_assignment *assignment);

static void on_claim(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, wait);
    struct calls_provider *provider = assignment->provider;
    enum bus_reason reason;

    if (answer->status == PEG_EIO) {
        bus_arm(provider->calls->bus, &assignment->again,
                bus_now_ns(provider->calls->bus) + 50000000);
        return;
    }
    if (answer->status) {
        calls_assignment_nak(assignment, BUS_FULL, false);
    } else if (!answer->written) {
        /* It was taken back, or somebody else has it: this message starts nothing. */
        calls_assignment_send(assignment, BUS_DUPLICATE, NULL);
        calls_assignment_drop(assignment);
    } else {
        reason = why_not_start(assignment, answer);
        if (reason)
            calls_assignment_nak(assignment, reason, answer->epoch == assignment->epoch);
        else
            hand_over_claimed(assignment);
    }
    calls_claim_pump(provider);
}

static void retry_claim(struct net_timer *timer)
{
    request_claim(peg__container_of(timer, struct calls_assignment, again));
}

static void request_claim(struct calls_assignment *assignment)
{
    struct bus_key key = calls_assignment_key(assignment, BUS_CLAIM, assignment->entry.attempt);

    /* One with an identity was admitted when it was named. */
    key.admits = key.id.len < sizeof(key.id.bytes);
    assignment->again.fn = retry_claim;
    assignment->wait.fn = on_claim;
    bus_put_if_absent(assignment->provider->calls->bus, &key, assignment->token,
                      calls_assignment_keep_until(assignment), &assignment->wait);
}

static void claim(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;

    calls_assignment_run(assignment);
    provider->queued_bytes -= assignment->request->len;
    assignment->step = CALLS_CLAIMING;
    assignment->token = calls_claim_token(provider->calls, provider->incarnation);
    if (assignment->token)
        request_claim(assignment);
    else
        calls_assignment_nak(assignment, BUS_FULL, false);
}

/* Answers may come at once and call this again: one of them goes round. */
void calls_claim_pump(struct calls_provider *provider)
{
    if (provider->is_pumping || provider->is_away || provider->is_moved)
        return;
    provider->is_pumping = true;
    if (provider->owes_cancels && provider->events->is_ready(provider->user))
        calls_reported_recheck(provider);
    while (provider->queue.first && provider->running.n - provider->n_unknown < provider->credits &&
           provider->events->is_ready(provider->user))
        claim(provider->queue.first);
    provider->is_pumping = false;
}
