/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of coordinators about calls of the providers of this loop. */

#include <string.h>

#include "base/text/str.h"
#include "calls/provider/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* Of a call that is not here, or does not get in. */
static void send_nak(struct calls_loop *calls, const struct bus_message *about,
                     enum bus_reason reason)
{
    struct bus_message message = {
        .kind = BUS_NAK,
        .reason = reason,
        .id = about->id,
        .attempt = about->attempt,
        .epoch = about->epoch,
        .from = calls->bus->self,
    };

    memcpy(message.incarnation, about->incarnation, sizeof(message.incarnation));
    bus_send(calls->bus, about->from, &message, NULL);
}

static enum bus_reason reject_call(const struct calls_loop *calls, struct calls_provider *provider,
                                   const struct bus_message *message)
{
    const enum bus_reason closed = provider ? calls_provider_closed(provider) : BUS_GONE;

    if (closed == BUS_GONE)
        return BUS_GONE;
    if (calls_id_is_node_local(&message->id) && message->from.node != calls->bus->self.node)
        return BUS_GONE; /* its registers are out of reach */
    /* The toolset is another principal's by now, and one of the two loops does not know yet. */
    if (message->owner != provider->owner_hash)
        return BUS_GONE;
    if (closed)
        return closed;
    if (bus_now_ms(calls->bus) >= message->deadline_ms)
        return BUS_LATE;
    if (!calls_provider_serves(provider, peg__blob_str(message->body)))
        return BUS_OUTDATED;
    if (provider->queue.n >= calls->options.max_queue ||
        provider->queued_bytes + message->body->len > calls->options.max_queue_bytes)
        return BUS_OVERLOADED;
    return BUS_NO_REASON;
}

static bool enqueue(struct calls_provider *provider, const struct bus_message *message)
{
    struct calls_loop *calls = provider->calls;
    struct calls_assignment *assignment = calls_assignment_new(
        provider, &message->id, message->attempt, message->from, message->body);

    if (!assignment)
        return false;
    assignment->machine.deadline_ms = message->deadline_ms;
    assignment->machine.epoch = message->epoch;
    assignment->account = message->account;
    assignment->tool = calls->env->find_tool(
        calls->user, provider->toolset,
        wire_find_bytes(peg__blob_str(message->body), PEGBOARD_V1_CALL_TOOL_FIELD));
    return true;
}

/* An attempt that is only sent now was no other provider's to report. */
static struct calls_assignment *drop_false_reports(struct calls_loop *calls,
                                                   const struct calls_provider *provider,
                                                   const struct bus_message *message)
{
    struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);

    while (assignment && assignment->provider != provider &&
           assignment->machine.right == ASSIGNMENT_CLAIMS &&
           calls_assignment_is_at_provider(&assignment->machine)) {
        struct calls_provider *other = assignment->provider;

        calls_assignment_drop(assignment);
        calls_provider_pump(other); /* it has a place for one more */
        assignment = calls_assignment_find(calls, &message->id, message->attempt);
    }
    return assignment;
}

static void on_call(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_provider *provider = calls_providers_find(calls, peg__str(message->incarnation));
    const bool is_here = drop_false_reports(calls, provider, message) != NULL;
    enum bus_reason reason = BUS_DUPLICATE;

    if (!is_here && !message->body)
        return;
    if (!is_here)
        reason = reject_call(calls, provider, message);
    if (!reason && !enqueue(provider, message))
        reason = BUS_FULL;
    if (reason)
        send_nak(calls, message, reason);
    else
        calls_provider_pump(provider);
}

static void on_cancel(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);

    if (assignment)
        calls_assignment_feed_with(assignment, ASSIGNMENT_ON_CANCEL, message->reason, NULL);
}

/* Only the loop that the provider is attached to can tell that it does not have the call. */
static void on_ask(struct calls_loop *calls, const struct bus_message *message)
{
    const struct calls_provider *provider =
        calls_providers_find(calls, peg__str(message->incarnation));
    struct calls_assignment *assignment =
        calls_assignment_find_by(provider, &message->id, message->attempt);

    if (!assignment)
        assignment = calls_assignment_find(calls, &message->id, message->attempt);
    if (assignment)
        calls_assignment_feed(assignment, ASSIGNMENT_ON_ASK);
    else if (provider && provider->place == CALLS_HERE)
        send_nak(calls, message, BUS_UNKNOWN);
}

void calls_providers_on_message(struct calls_loop *calls, const struct bus_message *message)
{
    if (message->kind == BUS_CALL)
        on_call(calls, message);
    else if (message->kind == BUS_CANCEL)
        on_cancel(calls, message);
    else if (message->kind == BUS_ASK)
        on_ask(calls, message);
}
