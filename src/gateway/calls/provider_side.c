/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/calls/provider_side.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* ---- providers ------------------------------------------------------------------------------- */

struct gw_assignment *gw_assignment_find(const struct gw_calls *desk, const struct bus_id *id,
                                         uint32_t attempt)
{
    return (struct gw_assignment *)gw_table_find(&desk->held, id, attempt);
}

struct gw_assignment *gw_assignment_find_by(const struct gw_provider *provider,
                                            const struct bus_id *id, uint32_t attempt)
{
    struct gw_entry *entry = provider ? gw_table_find(&provider->desk->held, id, attempt) : NULL;

    while (entry && ((struct gw_assignment *)entry)->provider != provider)
        entry = gw_table_again(entry);
    return (struct gw_assignment *)entry;
}

struct bus_id gw_providers_hash(const struct gw_calls *desk, const char *incarnation)
{
    const uint64_t hash = peg__hash(desk->incarnations.key, peg__str(incarnation));
    struct bus_id id = {.len = sizeof(hash)};

    memcpy(id.bytes, &hash, sizeof(hash));
    return id;
}

struct gw_provider *gw_providers_find(struct gw_calls *desk, const char *incarnation)
{
    const struct bus_id id = gw_providers_hash(desk, incarnation);
    struct gw_entry *entry = gw_table_find(&desk->incarnations, &id, 0);

    while (entry && strcmp(((struct gw_provider *)entry)->incarnation, incarnation) != 0)
        entry = gw_table_again(entry);
    return (struct gw_provider *)entry;
}

static void on_provider_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    (void)wait;
    (void)answer; /* it is asked for again in a third of its time */
}

/* One that is away is not renewed but once: its lease is the time that it has to come back. One
 * that has moved has its lease elsewhere, and who renews takes it. */
void gw_provider_renew(struct gw_provider *provider)
{
    struct gw_calls *desk = provider->desk;

    if (provider->is_away || provider->is_moved)
        return;
    bus_forget_wait(desk->bus, &provider->lease);
    provider->lease.fn = on_provider_lease;
    bus_lease(desk->bus, peg__str(provider->incarnation), desk->options.lease_ms, BUS_LEASE_TAKE,
              &provider->lease);
}

/* A third of it may be over. The provider may be elsewhere already, and has its lease there then.
 */
void gw_provider_renew_last(struct gw_provider *provider)
{
    struct gw_calls *desk = provider->desk;

    bus_forget_wait(desk->bus, &provider->lease);
    provider->lease.fn = on_provider_lease;
    bus_lease(desk->bus, peg__str(provider->incarnation), desk->options.lease_ms, BUS_LEASE_RENEW,
              &provider->lease);
}

peg_status gw_provider_report_presence(struct gw_provider *provider, peg_error *reterr)
{
    struct gw_calls *desk = provider->desk;
    struct gw_provider_entry entry = {
        .address = desk->bus->self,
        .last_pong_ms = bus_now_ms(desk->bus),
        .is_draining = provider->is_draining,
        .credits = provider->credits,
        .serves = provider->serves->revision,
    };

    memcpy(entry.incarnation, provider->incarnation, sizeof(entry.incarnation));
    return gw_presence_put(desk->presence, provider->toolset->name, &entry, reterr);
}

/* ---- while it is here ------------------------------------------------------------------------ */

void gw_provider_ready(struct gw_provider *provider)
{
    gw_claim_pump(provider);
}

void gw_provider_pong(struct gw_provider *provider)
{
    if (!provider->is_away)
        gw_presence_pong(provider->desk->presence, provider->toolset->name, provider->incarnation);
}

/* What waits for it goes elsewhere; what it has it finishes. */
void gw_provider_drain(struct gw_provider *provider)
{
    struct gw_assignment *next;

    if (provider->dismissal)
        return;
    provider->is_draining = true;
    if (!provider->is_moved)
        (void)gw_provider_report_presence(provider,
                                          NULL); /* without memory calls come, and are sent back */
    for (struct gw_assignment *held = provider->queue.first; held; held = next) {
        next = held->next;
        gw_assignment_nak(held, BUS_DRAINING, false);
    }
}

bool gw_provider_is_idle(const struct gw_provider *provider)
{
    return !provider->queue.first && !provider->running.first;
}

bool gw_provider_has(const struct gw_provider *provider, const struct bus_id *id, uint32_t attempt)
{
    const struct gw_assignment *held = gw_assignment_find_by(provider, id, attempt);

    return held && held->step == GW_HANDED;
}

/* ---- letters --------------------------------------------------------------------------------- */

void gw_providers_reply(struct gw_calls *desk, const struct bus_message *about,
                        enum bus_message_kind kind, enum bus_reason reason)
{
    struct bus_message letter = {
        .kind = kind,
        .reason = reason,
        .id = about->id,
        .attempt = about->attempt,
        .epoch = about->epoch,
        .from = desk->bus->self,
    };

    memcpy(letter.incarnation, about->incarnation, sizeof(letter.incarnation));
    bus_send(desk->bus, about->from, &letter, NULL);
}

void gw_providers_refuse(struct gw_calls *desk, const struct bus_message *about,
                         enum bus_reason reason)
{
    gw_providers_reply(desk, about, BUS_NAK, reason);
}

static void on_ask(struct gw_calls *desk, const struct bus_message *letter)
{
    const struct gw_provider *provider = gw_providers_find(desk, letter->incarnation);
    struct gw_assignment *held = gw_assignment_find_by(provider, &letter->id, letter->attempt);

    if (!held)
        held = gw_assignment_find(desk, &letter->id, letter->attempt);
    /* Only the desk that the provider is at can tell that it does not have the call. */
    if (held) {
        held->was_asked = true;
        gw_reported_verify(held);
        gw_assignment_send(held, BUS_HAVE, NULL);
    } else if (provider && !provider->is_away && !provider->is_moved) {
        gw_providers_refuse(desk, letter, BUS_UNKNOWN);
    }
}

void gw_providers_on_message(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_provider *provider;

    switch (letter->kind) {
    case BUS_CALL:
        gw_claim_on_call(desk, letter);
        break;
    case BUS_CANCEL:
        gw_claim_on_cancel(desk, letter);
        break;
    case BUS_ASK:
        on_ask(desk, letter);
        break;
    case BUS_EMIT:
        gw_emit_on_message(desk, letter);
        break;
    case BUS_PONG:
        provider = gw_providers_find(desk, letter->incarnation);
        if (provider)
            gw_provider_pong(provider);
        break;
    default:
        break;
    }
}

/* Everything may have been lost: say again who is here, and write again what is not answered. */
void gw_providers_on_reset(struct gw_calls *desk)
{
    for (struct gw_provider *provider = desk->providers; provider; provider = provider->next) {
        if (provider->is_away)
            continue;
        gw_provider_renew(provider);
        for (struct gw_assignment *held = provider->running.first; held; held = held->next)
            if (held->step == GW_COMPLETING && !held->wait.pending)
                bus_arm(desk->bus, &held->again, bus_now_ns(desk->bus));
    }
}
