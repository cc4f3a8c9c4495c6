/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/holder.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/call.h"
#include "wire/pack.h"

/* ---- lists of held calls --------------------------------------------------------------------- */

static void list_add(struct gw_held_list *list, struct gw_held *held)
{
    held->next = NULL;
    held->prev = list->last;
    if (held->prev)
        held->prev->next = held;
    else
        list->first = held;
    list->last = held;
    list->n++;
}

static void list_remove(struct gw_held_list *list, struct gw_held *held)
{
    if (held->prev)
        held->prev->next = held->next;
    else
        list->first = held->next;
    if (held->next)
        held->next->prev = held->prev;
    else
        list->last = held->prev;
    held->next = NULL;
    held->prev = NULL;
    list->n--;
}

/* The loop hears how many answers are on their way. */
static void await(const struct gw_desk *desk, int n)
{
    if (desk->loop)
        net_loop_await(desk->loop, n);
}

void gw_held_run(struct gw_held *held)
{
    struct gw_provider *provider = held->provider;

    list_remove(&provider->queue, held);
    list_add(&provider->running, held);
    gw_meter_queued(provider->meter, -1);
    await(provider->desk, 1);
}

/* ---- a held call ----------------------------------------------------------------------------- */

static void retry(struct net_timer *timer)
{
    gw_complete_retry((struct gw_held *)((char *)timer - offsetof(struct gw_held, again)));
}

/* It begins in the queue. */
struct gw_held *gw_held_new(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt)
{
    struct gw_held *held = (struct gw_held *)peg__alloc_zero(1, sizeof(*held));

    if (!held)
        return NULL;
    held->entry.id = *id;
    held->entry.attempt = attempt;
    if (gw_table_add(&provider->desk->held, &held->entry)) {
        peg__free(held);
        return NULL;
    }
    held->provider = provider;
    held->again.fn = retry;
    list_add(&provider->queue, held);
    gw_meter_queued(provider->meter, 1);
    return held;
}

static size_t request_len(const struct gw_held *held)
{
    return held->request ? held->request->len : 0;
}

void gw_held_drop(struct gw_held *held)
{
    struct gw_provider *provider = held->provider;
    struct bus *bus = provider->desk->bus;

    bus_forget_wait(bus, &held->wait);
    bus_forget_wait(bus, &held->waiters);
    bus_disarm(bus, &held->again);
    if (held->check)
        gw_check_forget(held->check);
    if (held->step == GW_QUEUED) {
        provider->queued_bytes -= request_len(held);
        gw_meter_queued(provider->meter, -1);
        list_remove(&provider->queue, held);
    } else {
        list_remove(&provider->running, held);
        await(provider->desk, -1);
    }
    gw_table_remove(&provider->desk->held, &held->entry);
    peg__blob_unref(held->request);
    peg__blob_unref(held->mark);
    peg__blob_unref(held->terminal);
    peg__free(held);
    gw_dismiss_if_idle(provider);
}

void gw_held_say(struct gw_held *held, enum bus_letter_kind kind, struct peg__blob *body)
{
    struct gw_provider *provider = held->provider;
    struct bus_letter letter = {
        .kind = kind,
        .id = held->entry.id,
        .attempt = held->entry.attempt,
        .epoch = held->epoch,
        .from = provider->desk->bus->self,
        .body = body,
    };

    memcpy(letter.incarnation, provider->incarnation, sizeof(letter.incarnation));
    bus_send(provider->desk->bus, held->driver, &letter, NULL);
}

void gw_holder_refuse(struct gw_desk *desk, const struct bus_letter *about, enum bus_reason reason)
{
    struct bus_letter letter = {
        .kind = BUS_NAK,
        .reason = reason,
        .id = about->id,
        .attempt = about->attempt,
        .epoch = about->epoch,
        .from = desk->bus->self,
    };

    memcpy(letter.incarnation, about->incarnation, sizeof(letter.incarnation));
    bus_send(desk->bus, about->from, &letter, NULL);
}

void gw_held_nak(struct gw_held *held, enum bus_reason reason, bool was_claimed)
{
    struct gw_provider *provider = held->provider;
    struct bus_letter letter = {
        .kind = BUS_NAK,
        .reason = reason,
        .id = held->entry.id,
        .attempt = held->entry.attempt,
        .was_claimed = was_claimed,
        .epoch = held->epoch,
        .from = provider->desk->bus->self,
    };

    memcpy(letter.incarnation, provider->incarnation, sizeof(letter.incarnation));
    bus_send(provider->desk->bus, held->driver, &letter, NULL);
    gw_held_drop(held);
}

struct bus_key gw_held_key(const struct gw_held *held, char what, uint32_t n)
{
    return (struct bus_key){
        .id = held->entry.id,
        .what = what,
        .n = n,
        .is_node_local = gw_id_is_node_local(&held->entry.id),
    };
}

int64_t gw_held_keep_until(const struct gw_held *held)
{
    const struct gw_desk *desk = held->provider->desk;

    return (held->deadline_ms ? held->deadline_ms : bus_now_ms(desk->bus)) + desk->options.keep_ms;
}

struct gw_held *gw_holder_held(const struct gw_desk *desk, const struct bus_id *id,
                               uint32_t attempt)
{
    return (struct gw_held *)gw_table_find(&desk->held, id, attempt);
}

/* ---- providers ------------------------------------------------------------------------------- */

static struct bus_id hash_id(const struct gw_desk *desk, const char *incarnation)
{
    const uint64_t hash = peg__hash(desk->incarnations.key, peg__str(incarnation));
    struct bus_id id = {.len = sizeof(hash)};

    memcpy(id.bytes, &hash, sizeof(hash));
    return id;
}

struct gw_provider *gw_holder_find(struct gw_desk *desk, const char *incarnation)
{
    const struct bus_id id = hash_id(desk, incarnation);
    struct gw_entry *entry = gw_table_find(&desk->incarnations, &id, 0);

    while (entry && strcmp(((struct gw_provider *)entry)->incarnation, incarnation) != 0)
        entry = gw_table_again(entry);
    return (struct gw_provider *)entry;
}

static void on_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    (void)wait;
    (void)answer; /* it is asked for again in a third of its time */
}

/* One that is away is not renewed: its lease is the time that it has to come back. One that has
 * moved has its lease elsewhere, and who renews takes it. */
void gw_provider_renew(struct gw_provider *provider)
{
    struct gw_desk *desk = provider->desk;

    if (provider->is_away || provider->is_moved)
        return;
    bus_forget_wait(desk->bus, &provider->lease);
    provider->lease.fn = on_lease;
    bus_lease(desk->bus, peg__str(provider->incarnation), desk->options.lease_ms, &provider->lease);
}

static peg_status tell_presence(struct gw_provider *provider, peg_error *reterr)
{
    struct gw_desk *desk = provider->desk;
    struct gw_provider_entry entry = {
        .address = desk->bus->self,
        .last_pong_ms = bus_now_ms(desk->bus),
        .is_draining = provider->is_draining,
        .credits = provider->credits,
    };

    memcpy(entry.incarnation, provider->incarnation, sizeof(entry.incarnation));
    return gw_presence_put(desk->presence, provider->toolset->name, &entry, reterr);
}

static void link_provider(struct gw_provider *provider)
{
    struct gw_desk *desk = provider->desk;

    provider->next = desk->providers;
    if (provider->next)
        provider->next->prev = provider;
    desk->providers = provider;
    desk->n_providers++;
}

void gw_provider_free(struct gw_provider *provider)
{
    struct gw_desk *desk = provider->desk;

    while (provider->queue.first)
        gw_held_drop(provider->queue.first);
    while (provider->running.first)
        gw_held_drop(provider->running.first);
    if (provider->prev)
        provider->prev->next = provider->next;
    else
        desk->providers = provider->next;
    if (provider->next)
        provider->next->prev = provider->prev;
    desk->n_providers--;
    gw_table_remove(&desk->incarnations, &provider->entry);
    bus_forget_wait(desk->bus, &provider->lease);
    bus_disarm(desk->bus, &provider->away);
    bus_disarm(desk->bus, &provider->farewell);
    gw_toolset_unref(provider->toolset);
    peg__free(provider);
}

/* It did not come back: its lease is over, and the drivers of its calls see that. Or it has moved,
 * and the stream that it left here ends. */
static void on_away(struct net_timer *timer)
{
    struct gw_provider *provider =
        (struct gw_provider *)((char *)timer - offsetof(struct gw_provider, away));

    if (provider->is_away) {
        gw_provider_free(provider);
        return;
    }
    provider->events->replaced(provider->user);
    gw_provider_leave(provider);
}

/* It may be told in the middle of anything, so the stream ends a little later. */
void gw_holder_on_moved(void *user, const char *incarnation)
{
    struct gw_desk *desk = (struct gw_desk *)user;
    struct gw_provider *provider = gw_holder_find(desk, incarnation);

    if (!provider || provider->is_away || provider->is_moved)
        return;
    provider->is_moved = true;
    /* One that a node which shuts down has asked to go is to finish here. */
    if (!desk->is_draining || !provider->is_draining)
        bus_arm(desk->bus, &provider->away, bus_now_ns(desk->bus));
}

static peg_status new_provider(struct gw_desk *desk, const struct gw_attach *attach,
                               struct gw_provider **ret_provider)
{
    struct gw_provider *provider = (struct gw_provider *)peg__alloc_zero(1, sizeof(*provider));

    if (!provider)
        return PEG_ENOMEM;
    memcpy(provider->incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider->entry.id = hash_id(desk, provider->incarnation);
    if (gw_table_add(&desk->incarnations, &provider->entry)) {
        peg__free(provider);
        return PEG_ENOMEM;
    }
    provider->desk = desk;
    provider->away.fn = on_away;
    provider->toolset = gw_toolset_ref(attach->toolset);
    provider->meter = gw_metrics_meter(desk->metrics, desk->number, attach->toolset->name);
    link_provider(provider);
    *ret_provider = provider;
    return PEG_OK;
}

/* ---- coming, and coming back ------------------------------------------------------------------
 */

/* A call that the provider was handed by another desk, or by one that is no more. */
static peg_status adopt(struct gw_provider *provider, const struct gw_running *running,
                        peg_error *reterr)
{
    struct gw_held *held = gw_holder_held(provider->desk, &running->id, running->attempt);

    if (held && held->provider == provider)
        return PEG_OK;
    if (held)
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH",
                         "a running call that was listed is another provider's");
    if (provider->desk->held.n >= PEG_LIMIT_GATEWAY_HELD)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "providers on this loop have listed, or have, PEG_LIMIT_GATEWAY_HELD = %d "
                         "calls: come back later",
                         PEG_LIMIT_GATEWAY_HELD);
    held = gw_held_new(provider, &running->id, running->attempt);
    if (!held)
        return peg__fail_nomem(reterr);
    gw_held_run(held);
    held->step = GW_HANDED;
    held->is_unproven = true;
    held->driver = running->route;
    held->epoch = bus_epoch(provider->desk->bus);
    held->tool = gw_toolset_tool(provider->toolset, running->tool);
    return PEG_OK;
}

static void mark_listed(struct gw_provider *provider, const struct gw_attach *attach)
{
    for (struct gw_held *held = provider->running.first; held; held = held->next)
        held->is_listed = false;
    for (size_t i = 0; i < attach->n_running; i++) {
        struct gw_held *held =
            gw_holder_held(provider->desk, &attach->running[i].id, attach->running[i].attempt);

        if (held && held->provider == provider)
            held->is_listed = true;
    }
}

/* What it was handed and does not list never reached it; or it has been elsewhere meanwhile, and
 * has finished it there: then nothing is known, and nothing is said. */
static void drop_unlisted(struct gw_provider *provider, const struct gw_attach *attach)
{
    const bool was_elsewhere = !attach->number || attach->number != provider->number + 1;
    struct gw_held *next;

    mark_listed(provider, attach);
    for (struct gw_held *held = provider->running.first; held; held = next) {
        next = held->next;
        if (held->step != GW_HANDED || held->is_listed)
            continue;
        if (was_elsewhere)
            gw_held_drop(held);
        else
            gw_held_nak(held, BUS_GONE, true);
    }
}

/* A list that cannot be taken leaves nothing behind. */
static void forget_unproven(struct gw_provider *provider)
{
    struct gw_held *next;

    for (struct gw_held *held = provider->running.first; held; held = next) {
        next = held->next;
        if (held->is_unproven && held->step == GW_HANDED)
            gw_held_drop(held);
    }
}

static peg_status adopt_all(struct gw_provider *provider, const struct gw_attach *attach,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < attach->n_running && !status; i++)
        status = adopt(provider, &attach->running[i], reterr);
    if (status)
        forget_unproven(provider);
    return status;
}

static bool is_attached_somewhere(const struct gw_desk *desk, const struct gw_attach *attach)
{
    size_t n;
    const struct gw_provider_entry *all =
        gw_presence_providers(desk->presence, attach->toolset->name, &n);

    for (size_t i = 0; i < n; i++)
        if (peg__str_eq(peg__str(all[i].incarnation), attach->incarnation))
            return true;
    return false;
}

/* What runs is finished before a node goes, also by a provider whose stream has broken meanwhile.
 * One that still has a stream finishes on that one, and goes elsewhere for new calls. */
static bool may_finish_here(const struct gw_desk *desk, const struct gw_attach *attach)
{
    if (is_attached_somewhere(desk, attach))
        return false;
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct gw_running *running = &attach->running[i];

        if (running->route.node == desk->bus->self.node ||
            gw_holder_held(desk, &running->id, running->attempt))
            return true;
    }
    return false;
}

static peg_status check_attach(const struct gw_desk *desk, const struct gw_attach *attach,
                               peg_error *reterr)
{
    if (desk->is_draining && !may_finish_here(desk, attach))
        return peg__fail(reterr, PEG_ESTATE, "E_DRAINING",
                         "this node is shutting down: attach to another one, or try again");
    if (attach->incarnation.len >= sizeof(((struct gw_provider *)NULL)->incarnation))
        return peg__fail(reterr, PEG_EINVAL, "E_NAME", "an incarnation has at most 64 characters");
    if (attach->n_running > PEG_LIMIT_GATEWAY_CREDITS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "%zu running calls are more than PEG_LIMIT_GATEWAY_CREDITS = %d",
                         attach->n_running, PEG_LIMIT_GATEWAY_CREDITS);
    if (attach->credits < 1 || attach->credits > PEG_LIMIT_GATEWAY_CREDITS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "credits is %u: it must be 1 to PEG_LIMIT_GATEWAY_CREDITS = %d",
                         attach->credits, PEG_LIMIT_GATEWAY_CREDITS);
    if (desk->n_providers >= PEG_LIMIT_GATEWAY_PROVIDERS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "this node has PEG_LIMIT_GATEWAY_PROVIDERS = %d providers on one loop",
                         PEG_LIMIT_GATEWAY_PROVIDERS);
    return PEG_OK;
}

/* The one that is here already under that name: it is away, or its stream is replaced now. */
static peg_status come_back(struct gw_provider *provider, const struct gw_attach *attach,
                            peg_error *reterr)
{
    if (!peg__str_eq(provider->toolset->name, attach->toolset->name))
        return peg__fail(reterr, PEG_EEXISTS, "E_INCARNATION",
                         "this incarnation is attached for another toolset: each provider chooses "
                         "its own at random");
    if (!peg__str_eq(provider->toolset->owner, attach->toolset->owner))
        return peg__fail(reterr, PEG_EEXISTS, "E_INCARNATION",
                         "this incarnation is another principal's: each provider chooses its own "
                         "at random");
    if (!provider->is_away)
        provider->events->replaced(provider->user);
    provider->is_away = false;
    provider->dismissal = WIRE_OK;
    provider->is_moved = false;
    bus_disarm(provider->desk->bus, &provider->away);
    bus_disarm(provider->desk->bus, &provider->farewell);
    return PEG_OK;
}

peg_status gw_provider_attach(struct gw_desk *desk, const struct gw_attach *attach,
                              const struct gw_provider_events *events, void *user,
                              struct gw_provider **ret_provider, peg_error *reterr)
{
    char incarnation[65] = {0};
    struct gw_provider *provider = NULL;
    peg_status status = check_attach(desk, attach, reterr);

    if (status)
        return status;
    memcpy(incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider = gw_holder_find(desk, incarnation);
    if (provider)
        status = come_back(provider, attach, reterr);
    else if (new_provider(desk, attach, &provider))
        status = peg__fail_nomem(reterr);
    if (status || !provider)
        return status;
    provider->events = events;
    provider->user = user;
    provider->credits = attach->credits;
    provider->is_draining = desk->is_draining && !provider->queue.first;
    gw_provider_set_toolset(provider, attach->toolset);
    provider->owes_cancels = attach->n_running > 0;
    status = adopt_all(provider, attach, reterr);
    if (!status)
        status = tell_presence(provider, reterr);
    /* Drivers on other loops who hear that it was not started look for somebody else to run it:
     * they are to find this one. */
    drop_unlisted(provider, attach);
    provider->number = attach->number;
    if (status) {
        gw_provider_leave(provider);
        return status;
    }
    gw_provider_renew(provider);
    *ret_provider = provider;
    gw_claim_pump(provider);
    return PEG_OK;
}

void gw_provider_leave(struct gw_provider *provider)
{
    struct gw_desk *desk = provider->desk;
    struct gw_held *next;

    gw_presence_remove(desk->presence, provider->toolset->name, provider->incarnation);
    provider->is_away = true;
    bus_disarm(desk->bus, &provider->farewell);
    for (struct gw_held *held = provider->queue.first; held; held = next) {
        next = held->next;
        gw_held_nak(held, BUS_GONE, false);
    }
    /* Whoever has no call has nothing to come back for, and need not be waited for. */
    if (!provider->running.first) {
        if (!provider->is_moved)
            bus_release(desk->bus, peg__str(provider->incarnation));
        gw_provider_free(provider);
        return;
    }
    bus_arm(desk->bus, &provider->away, bus_now_ns(desk->bus) + desk->options.lease_ms * 1000000);
}

/* ---- while it is here ------------------------------------------------------------------------ */

/* Tools are looked up again: those of the old toolset go with it. */
void gw_provider_set_toolset(struct gw_provider *provider, struct gw_toolset *toolset)
{
    struct gw_toolset *old = provider->toolset;

    provider->toolset = gw_toolset_ref(toolset);
    for (struct gw_held *held = provider->queue.first; held; held = held->next)
        held->tool = held->tool ? gw_toolset_tool(toolset, held->tool->name) : NULL;
    for (struct gw_held *held = provider->running.first; held; held = held->next)
        held->tool = held->tool ? gw_toolset_tool(toolset, held->tool->name) : NULL;
    gw_toolset_unref(old);
}

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
    struct gw_held *next;

    if (provider->dismissal)
        return;
    provider->is_draining = true;
    if (!provider->is_moved)
        (void)tell_presence(provider, NULL); /* without memory calls come, and are sent back */
    for (struct gw_held *held = provider->queue.first; held; held = next) {
        next = held->next;
        gw_held_nak(held, BUS_DRAINING, false);
    }
}

bool gw_provider_is_idle(const struct gw_provider *provider)
{
    return !provider->queue.first && !provider->running.first;
}

bool gw_provider_has(const struct gw_provider *provider, const struct bus_id *id, uint32_t attempt)
{
    const struct gw_held *held = gw_holder_held(provider->desk, id, attempt);

    return held && held->provider == provider && held->step == GW_HANDED;
}

/* ---- letters --------------------------------------------------------------------------------- */

static void on_ask(struct gw_desk *desk, const struct bus_letter *letter)
{
    struct gw_held *held = gw_holder_held(desk, &letter->id, letter->attempt);
    const struct gw_provider *provider = gw_holder_find(desk, letter->incarnation);

    /* Only the desk that the provider is at can tell that it does not have the call. */
    if (held)
        gw_held_say(held, BUS_HAVE, NULL);
    else if (provider && !provider->is_away && !provider->is_moved)
        gw_holder_refuse(desk, letter, BUS_UNKNOWN);
}

void gw_holder_on_letter(struct gw_desk *desk, const struct bus_letter *letter)
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
        gw_emit_on_letter(desk, letter);
        break;
    case BUS_PONG:
        provider = gw_holder_find(desk, letter->incarnation);
        if (provider)
            gw_provider_pong(provider);
        break;
    default:
        break;
    }
}

/* Everything may have been lost: say again who is here, and write again what is not answered. */
void gw_holder_on_reset(struct gw_desk *desk)
{
    for (struct gw_provider *provider = desk->providers; provider; provider = provider->next) {
        if (provider->is_away)
            continue;
        gw_provider_renew(provider);
        for (struct gw_held *held = provider->running.first; held; held = held->next)
            if (held->step == GW_COMPLETING && !held->wait.pending)
                bus_arm(desk->bus, &held->again, bus_now_ns(desk->bus));
    }
}
