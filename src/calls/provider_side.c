/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/provider_side.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* ---- providers ------------------------------------------------------------------------------- */

struct calls_assignment *calls_assignment_find(const struct calls_loop *calls,
                                               const struct bus_id *id, uint32_t attempt)
{
    return (struct calls_assignment *)calls_table_find(&calls->assignments, id, attempt);
}

struct calls_assignment *calls_assignment_find_by(const struct calls_provider *provider,
                                                  const struct bus_id *id, uint32_t attempt)
{
    struct calls_entry *entry =
        provider ? calls_table_find(&provider->calls->assignments, id, attempt) : NULL;

    while (entry && ((struct calls_assignment *)entry)->provider != provider)
        entry = calls_table_again(entry);
    return (struct calls_assignment *)entry;
}

struct bus_id calls_providers_hash(const struct calls_loop *calls, const char *incarnation)
{
    const uint64_t hash = peg__hash(calls->incarnations.key, peg__str(incarnation));
    struct bus_id id = {.len = sizeof(hash)};

    memcpy(id.bytes, &hash, sizeof(hash));
    return id;
}

struct calls_provider *calls_providers_find(struct calls_loop *calls, const char *incarnation)
{
    const struct bus_id id = calls_providers_hash(calls, incarnation);
    struct calls_entry *entry = calls_table_find(&calls->incarnations, &id, 0);

    while (entry && strcmp(((struct calls_provider *)entry)->incarnation, incarnation) != 0)
        entry = calls_table_again(entry);
    return (struct calls_provider *)entry;
}

static void on_provider_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    (void)wait;
    (void)answer; /* it is asked for again in a third of its time */
}

/* One that is away is not renewed but once: its lease is the time that it has to come back. One
 * that has moved has its lease elsewhere, and who renews takes it. */
void calls_provider_renew(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;

    if (provider->is_away || provider->is_moved)
        return;
    bus_forget_wait(calls->bus, &provider->lease);
    provider->lease.fn = on_provider_lease;
    bus_lease(calls->bus, peg__str(provider->incarnation), calls->options.lease_ms, BUS_LEASE_TAKE,
              &provider->lease);
}

/* A third of it may be over. The provider may be elsewhere already, and has its lease there then.
 */
void calls_provider_renew_last(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;

    bus_forget_wait(calls->bus, &provider->lease);
    provider->lease.fn = on_provider_lease;
    bus_lease(calls->bus, peg__str(provider->incarnation), calls->options.lease_ms, BUS_LEASE_RENEW,
              &provider->lease);
}

peg_status calls_provider_report_presence(struct calls_provider *provider, peg_error *reterr)
{
    struct calls_loop *calls = provider->calls;
    const struct calls_presence presence = {
        .toolset = provider->toolset,
        .incarnation = provider->incarnation,
        .credits = provider->credits,
        .serves = provider->serves->revision,
        .is_draining = provider->is_draining,
    };

    return calls->env->put_presence(calls->user, &presence, reterr);
}

/* ---- while it is here ------------------------------------------------------------------------ */

void calls_provider_ready(struct calls_provider *provider)
{
    calls_claim_pump(provider);
}

void calls_provider_pong(struct calls_provider *provider)
{
    if (!provider->is_away)
        provider->calls->env->note_pong(provider->calls->user, provider->toolset->name,
                                        provider->incarnation);
}

/* What waits for it goes elsewhere; what it has it finishes. */
void calls_provider_drain(struct calls_provider *provider)
{
    struct calls_assignment *next;

    if (provider->eviction)
        return;
    provider->is_draining = true;
    if (!provider->is_moved)
        (void)calls_provider_report_presence(
            provider, NULL); /* without memory calls come, and are sent back */
    for (struct calls_assignment *assignment = provider->queue.first; assignment;
         assignment = next) {
        next = assignment->next;
        calls_assignment_nak(assignment, BUS_DRAINING, false);
    }
}

bool calls_provider_is_idle(const struct calls_provider *provider)
{
    return !provider->queue.first && !provider->running.first;
}

bool calls_provider_has(const struct calls_provider *provider, const struct bus_id *id,
                        uint32_t attempt)
{
    const struct calls_assignment *assignment = calls_assignment_find_by(provider, id, attempt);

    return assignment && assignment->step == CALLS_HANDED;
}

/* ---- messages ---------------------------------------------------------------------------------
 */

void calls_providers_reply(struct calls_loop *calls, const struct bus_message *about,
                           enum bus_message_kind kind, enum bus_reason reason)
{
    struct bus_message message = {
        .kind = kind,
        .reason = reason,
        .id = about->id,
        .attempt = about->attempt,
        .epoch = about->epoch,
        .from = calls->bus->self,
    };

    memcpy(message.incarnation, about->incarnation, sizeof(message.incarnation));
    bus_send(calls->bus, about->from, &message, NULL);
}

void calls_providers_refuse(struct calls_loop *calls, const struct bus_message *about,
                            enum bus_reason reason)
{
    calls_providers_reply(calls, about, BUS_NAK, reason);
}

static void on_query(struct calls_loop *calls, const struct bus_message *message)
{
    const struct calls_provider *provider = calls_providers_find(calls, message->incarnation);
    struct calls_assignment *assignment =
        calls_assignment_find_by(provider, &message->id, message->attempt);

    if (!assignment)
        assignment = calls_assignment_find(calls, &message->id, message->attempt);
    /* Only the loop that the provider is at can tell that it does not have the call. */
    if (assignment) {
        assignment->was_queried = true;
        calls_reported_verify(assignment);
        calls_assignment_send(assignment, BUS_HAVE, NULL);
    } else if (provider && !provider->is_away && !provider->is_moved) {
        calls_providers_refuse(calls, message, BUS_UNKNOWN);
    }
}

void calls_providers_on_message(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_provider *provider;

    switch (message->kind) {
    case BUS_CALL:
        calls_claim_on_call(calls, message);
        break;
    case BUS_CANCEL:
        calls_claim_on_cancel(calls, message);
        break;
    case BUS_ASK:
        on_query(calls, message);
        break;
    case BUS_EMIT:
        calls_emit_on_message(calls, message);
        break;
    case BUS_PONG:
        provider = calls_providers_find(calls, message->incarnation);
        if (provider)
            calls_provider_pong(provider);
        break;
    default:
        break;
    }
}

/* Everything may have been lost: say again who is here, and write again what is not answered. */
void calls_providers_on_reset(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next) {
        if (provider->is_away)
            continue;
        calls_provider_renew(provider);
        for (struct calls_assignment *assignment = provider->running.first; assignment;
             assignment = assignment->next)
            if (assignment->step == CALLS_COMPLETING && !assignment->wait.pending)
                bus_arm(calls->bus, &assignment->again, bus_now_ns(calls->bus));
    }
}
