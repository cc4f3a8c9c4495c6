/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The third stage of a call, at the desk that has its provider: it waits for a place there, then
 * asks for the right to start it, and only who has that hands it over. Nobody else ever does.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* A claim whose answer took longer is given back: the driver may have given up meanwhile. */
enum { TRUST_NS = 1000000000 };

/* ---- coming in ------------------------------------------------------------------------------- */

static enum bus_reason why_not(struct gw_provider *provider, const struct bus_message *letter)
{
    const struct gw_calls_options *options;

    if (!provider || provider->is_away || provider->is_moved || provider->dismissal)
        return BUS_GONE;
    options = &provider->desk->options;
    if (gw_id_is_node_local(&letter->id) && letter->from.node != provider->desk->bus->self.node)
        return BUS_GONE; /* its registers are out of reach */
    /* The name is another principal's by now, and one of the two loops has not heard of it. */
    if (letter->owner != provider->owner_hash)
        return BUS_GONE;
    if (provider->is_draining)
        return BUS_DRAINING;
    if (bus_now_ms(provider->desk->bus) >= letter->deadline_ms)
        return BUS_LATE;
    if (letter->body && !gw_provider_serves(provider, peg__blob_str(letter->body)))
        return BUS_OUTDATED;
    if (provider->queue.n >= options->max_queue ||
        provider->queued_bytes + peg__blob_str(letter->body).len > options->max_queue_bytes)
        return BUS_OVERLOADED;
    return BUS_NO_REASON;
}

static struct gw_assignment *hold(struct gw_provider *provider, const struct bus_message *letter)
{
    struct gw_assignment *held = gw_assignment_new(provider, &letter->id, letter->attempt);

    if (!held)
        return NULL;
    held->request = peg__blob_ref(letter->body);
    held->driver = letter->from;
    held->deadline_ms = letter->deadline_ms;
    held->epoch = letter->epoch;
    held->account = letter->account;
    held->tool = gw_toolset_tool(provider->toolset, wire_find_bytes(peg__blob_str(letter->body),
                                                                    PEGBOARD_V1_CALL_TOOL_FIELD));
    provider->queued_bytes += letter->body->len;
    return held;
}

void gw_claim_on_call(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_provider *provider = gw_providers_find(desk, letter->incarnation);
    struct gw_assignment *held = gw_assignment_find(desk, &letter->id, letter->attempt);
    enum bus_reason reason;

    /* An attempt that is only sent now was nobody's to list. */
    while (held && held->is_unproven && held->provider != provider && held->step == GW_HANDED) {
        struct gw_provider *other = held->provider;

        gw_assignment_drop(held);
        gw_claim_pump(other); /* it has room for one more */
        held = gw_assignment_find(desk, &letter->id, letter->attempt);
    }
    if (held)
        gw_providers_reply(desk, letter, BUS_DUPLICATE, BUS_NO_REASON);
    if (held || !letter->body)
        return;
    reason = why_not(provider, letter);
    if (!reason && !hold(provider, letter))
        reason = BUS_FULL;
    if (reason)
        gw_providers_refuse(desk, letter, reason);
    else
        gw_claim_pump(provider);
}

void gw_claim_send_cancel(const struct gw_assignment *held)
{
    const struct gw_provider *provider = held->provider;

    if (held->step == GW_HANDED && !provider->is_away)
        provider->events->cancel(provider->user, &held->entry.id, held->entry.attempt,
                                 held->canceled);
}

void gw_claim_on_cancel(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_assignment *held = gw_assignment_find(desk, &letter->id, letter->attempt);

    if (!held || held->canceled)
        return;
    held->canceled = letter->reason;
    if (held->step == GW_QUEUED)
        gw_assignment_nak(held, BUS_CANCELED, false);
    else
        gw_claim_send_cancel(held);
}

/* ---- claiming -------------------------------------------------------------------------------- */

/* A little less than the driver waits, so that the tool's own word about being late comes first. */
static int64_t time_for_provider(const struct gw_assignment *held)
{
    const int64_t left_ms = held->deadline_ms - bus_now_ms(held->provider->desk->bus);
    const int64_t spare_ms = left_ms / 20 < 100 ? left_ms / 20 : 100;

    return left_ms - spare_ms > 1 ? left_ms - spare_ms : 1;
}

static void hand_over_claimed(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;
    struct peg__blob *request = held->request;
    const struct bus_id id = held->entry.id;
    const struct gw_handed handed = {
        .id = &id,
        .attempt = held->entry.attempt,
        .call = peg__blob_str(request),
        .timeout_ms = time_for_provider(held),
        .deadline_ms = held->deadline_ms,
        .route = held->driver,
    };

    held->step = GW_HANDED;
    held->mark = peg__blob_unref(held->mark);
    held->request = NULL;
    provider->events->hand(provider->user, &handed); /* which may give it back */
    peg__blob_unref(request);
}

/* Why a call that is this desk's to start is not started after all. */
static enum bus_reason why_not_start(const struct gw_assignment *held,
                                     const struct bus_answer *answer)
{
    struct bus *bus = held->provider->desk->bus;

    if (held->provider->is_away || held->provider->is_moved || held->provider->dismissal)
        return BUS_GONE;
    if (held->canceled)
        return BUS_CANCELED;
    if (held->provider->is_draining)
        return BUS_DRAINING;
    if (answer->epoch != held->epoch)
        return BUS_EPOCH;
    if (bus_now_ns(bus) - answer->asked_ns > TRUST_NS || bus_now_ms(bus) >= held->deadline_ms)
        return BUS_LATE;
    return BUS_NO_REASON;
}

static void ask_for_claim(struct gw_assignment *held);

static void on_claim(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = peg__container_of(wait, struct gw_assignment, wait);
    struct gw_provider *provider = held->provider;
    enum bus_reason reason;

    if (answer->status == PEG_EIO) {
        bus_arm(provider->desk->bus, &held->again, bus_now_ns(provider->desk->bus) + 50000000);
        return;
    }
    if (answer->status) {
        gw_assignment_nak(held, BUS_FULL, false);
    } else if (!answer->written) {
        /* It was taken back, or somebody else has it: this letter starts nothing. */
        gw_assignment_send(held, BUS_DUPLICATE, NULL);
        gw_assignment_drop(held);
    } else {
        reason = why_not_start(held, answer);
        if (reason)
            gw_assignment_nak(held, reason, answer->epoch == held->epoch);
        else
            hand_over_claimed(held);
    }
    gw_claim_pump(provider);
}

static void ask_again(struct net_timer *timer)
{
    ask_for_claim(peg__container_of(timer, struct gw_assignment, again));
}

static void ask_for_claim(struct gw_assignment *held)
{
    struct bus_key key = gw_assignment_key(held, BUS_CLAIM, held->entry.attempt);

    /* One with an identity was admitted when it was named. */
    key.admits = key.id.len < sizeof(key.id.bytes);
    held->again.fn = ask_again;
    held->wait.fn = on_claim;
    bus_put_if_absent(held->provider->desk->bus, &key, held->mark, gw_assignment_keep_until(held),
                      &held->wait);
}

static void claim(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;

    gw_assignment_run(held);
    provider->queued_bytes -= held->request->len;
    held->step = GW_CLAIMING;
    held->mark = gw_calls_claim_token(provider->desk, provider->incarnation);
    if (held->mark)
        ask_for_claim(held);
    else
        gw_assignment_nak(held, BUS_FULL, false);
}

/* Answers may come at once and call this again: one of them goes round. */
void gw_claim_pump(struct gw_provider *provider)
{
    if (provider->is_pumping || provider->is_away || provider->is_moved)
        return;
    provider->is_pumping = true;
    if (provider->owes_cancels && provider->events->is_ready(provider->user))
        gw_reported_recheck(provider);
    while (provider->queue.first && provider->running.n - provider->n_doubted < provider->credits &&
           provider->events->is_ready(provider->user))
        claim(provider->queue.first);
    provider->is_pumping = false;
}
