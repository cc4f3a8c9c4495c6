/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second stage of a call: which provider is asked to run it. An attempt goes to one provider;
 * the next attempt exists only when it is proven that the one before did not start.
 *
 * What proves it: each letter arrives at most once. So if an attempt was sent in one letter,
 * whoever answers that he did not start it has used it up. If it was sent in several, only the
 * register of the attempt proves it, under the epoch of the first of them.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"

enum { RETRY_MS = 250 };

/* ---- picking ------------------------------------------------------------------------------- */

/* A provider where it is: what it does not take at the loop that it leaves it may take at the one
 * that it comes to. */
static uint64_t hash_provider(const struct gw_call *call, const char *incarnation,
                              struct bus_address address)
{
    return peg__hash(call->desk->calls.key, peg__str(incarnation)) ^ address.node ^ address.loop;
}

/* Who may be asked. */
enum tolerance {
    UP_TO_DATE, /* nobody who may have another version of the toolset */
    NOT_REFUSED,
    FORGIVEN, /* also who took this call and gave it back */
};

/* Did it not take this call, or, unless that is forgiven, give it back? */
static bool has_refused(const struct gw_call *call, const struct gw_provider_entry *entry,
                        bool is_forgiven)
{
    const uint64_t hash =
        call->n_refused ? hash_provider(call, entry->incarnation, entry->address) : 0;

    for (unsigned i = 0; i < call->n_refused; i++)
        if (call->refused_by[i] == hash && !(is_forgiven && call->was_given_back[i]))
            return true;
    return false;
}

/* Registers of a call that is this node's alone are not seen by others. */
static bool may_go_to(const struct gw_call *call, const struct gw_provider_entry *entry)
{
    return entry->address.node == call->desk->bus->self.node ||
           !gw_id_is_node_local(&call->entry.id);
}

static bool may_run(const struct gw_call *call, const struct gw_provider_entry *entry,
                    int64_t now_ms)
{
    return !entry->is_draining && gw_provider_is_well(call->desk->presence, entry, now_ms) &&
           may_go_to(call, entry);
}

/* A revision that is not the toolset's may have other tools, or take other arguments. */
static bool is_up_to_date(const struct gw_call *call, const struct gw_provider_entry *entry)
{
    return entry->serves == call->toolset->revision && !entry->said_outdated;
}

/* The share of its places that calls of this desk take. */
static bool is_less_loaded(const struct gw_provider_entry *a, const struct gw_provider_entry *b)
{
    return (uint64_t)a->sent * b->credits < (uint64_t)b->sent * a->credits;
}

/* Of two candidates the one with less to do, one of this node before one of another. */
static struct gw_provider_entry *better(const struct gw_call *call, struct gw_provider_entry *a,
                                        struct gw_provider_entry *b)
{
    const uint64_t here = call->desk->bus->self.node;

    if (!a || !b)
        return a ? a : b;
    if ((a->address.node == here) != (b->address.node == here))
        return a->address.node == here ? a : b;
    return is_less_loaded(b, a) ? b : a;
}

/* The better of two that are met first from a random place on; all are looked at only while none
 * can run it. */
static struct gw_provider_entry *pick_of(struct gw_call *call, enum tolerance tolerance)
{
    struct gw_calls *desk = call->desk;
    const int64_t now_ms = bus_now_ms(desk->bus);
    struct gw_provider_entry *best = NULL;
    unsigned n_met = 0;
    size_t n;
    struct gw_provider_entry *all = gw_presence_providers(desk->presence, call->toolset->name, &n);
    const size_t first = n > 1 ? gw_calls_random(desk) % n : 0;

    for (size_t i = 0; i < n; i++) {
        struct gw_provider_entry *entry = &all[(first + i) % n];

        if (!may_run(call, entry, now_ms) || has_refused(call, entry, tolerance == FORGIVEN) ||
            (tolerance == UP_TO_DATE && !is_up_to_date(call, entry)))
            continue;
        best = better(call, best, entry);
        if (++n_met >= 2 && best->address.node == desk->bus->self.node)
            break;
    }
    return best;
}

/* One that gives calls back has little to do, and would be asked again before those that work.
 * Most calls fit any version of their toolset, so that only those which one did not fit are kept
 * from the others that may have it. */
static struct gw_provider_entry *pick(struct gw_call *call)
{
    struct gw_provider_entry *entry = call->met_outdated ? pick_of(call, UP_TO_DATE) : NULL;

    if (!entry)
        entry = pick_of(call, NOT_REFUSED);
    return entry || !call->n_refused ? entry : pick_of(call, FORGIVEN);
}

static struct gw_provider_entry *find_entry(struct gw_call *call)
{
    size_t n;
    struct gw_provider_entry *all =
        gw_presence_providers(call->desk->presence, call->toolset->name, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].incarnation, call->incarnation) == 0)
            return &all[i];
    return NULL;
}

void gw_send_release(struct gw_call *call)
{
    struct gw_provider_entry *entry = call->has_slot ? find_entry(call) : NULL;

    if (entry && entry->sent)
        entry->sent--;
    call->has_slot = false;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void on_posted(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, post);
    struct bus_message letter;

    if (answer->status || answer->written)
        return;
    letter = (struct bus_message){
        .kind = BUS_NAK,
        .reason = BUS_GONE,
        .attempt = call->attempt,
    };
    memcpy(letter.incarnation, call->incarnation, sizeof(letter.incarnation));
    gw_send_on_nak(call, &letter);
}

static void deliver_call(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;
    struct bus_message letter = {
        .kind = BUS_CALL,
        .id = call->entry.id,
        .attempt = call->attempt,
        .account = call->account,
        .owner = gw_calls_owner_hash(call->desk, call->toolset),
        .deadline_ms = call->deadline_ms,
        .from = bus->self,
        .body = call->request,
    };

    if (call->n_sent++ == 0)
        call->sent_epoch = bus_epoch(bus);
    letter.epoch = call->sent_epoch;
    call->n_astray++;
    memcpy(letter.incarnation, call->incarnation, sizeof(letter.incarnation));
    gw_recheck_soon(call);
    bus_forget_wait(bus, &call->post);
    call->post.fn = on_posted;
    bus_send(bus, call->holder, &letter, &call->post);
}

static bool is_provider_full(enum bus_reason reason)
{
    return reason == BUS_OVERLOADED || reason == BUS_FULL;
}

/* By what is known of its providers there is one that could run it. */
static void say_why_nobody_took_it(const struct gw_call *call, struct peg__buf *out)
{
    if (call->refusal == BUS_DRAINING)
        peg__buf_printf(out,
                        "the providers of toolset \"%.*s\" that are attached give calls back "
                        "because they drain: start another",
                        PEG_ARG(call->toolset->name));
    else
        peg__buf_printf(out,
                        "the providers of toolset \"%.*s\" that are attached did not take the "
                        "call: try again",
                        PEG_ARG(call->toolset->name));
}

static bool is_provider_healthy(const struct gw_call *call)
{
    return gw_presence_health(call->desk->presence, call->toolset->name).state == GW_HEALTHY;
}

static void say_why(const struct gw_call *call, struct peg__buf *out)
{
    if (call->refusal == BUS_OVERLOADED)
        peg__buf_printf(out,
                        "every provider of toolset \"%.*s\" has as many calls waiting as it takes: "
                        "try again in %d ms",
                        PEG_ARG(call->toolset->name), RETRY_MS);
    else if (call->refusal == BUS_FULL && call->account)
        peg__buf_printf(
            out,
            "there is no room to note who runs the call, or no memory: calls of this "
            "principal would hold more than three times what is free "
            "(PEG_LIMIT_QUOTA_SHARE) of PEG_LIMIT_BUS_REGISTERS or "
            "PEG_LIMIT_BUS_REGISTER_BYTES: try again in %d ms, with fewer calls at once",
            RETRY_MS);
    else if (call->refusal == BUS_FULL)
        peg__buf_printf(out,
                        "the gateway has no room to note who runs the call "
                        "(PEG_LIMIT_BUS_REGISTERS, PEG_LIMIT_BUS_REGISTER_BYTES), or no memory: "
                        "try again in %d ms, with fewer calls at once",
                        RETRY_MS);
    else if (call->refusal == BUS_OUTDATED)
        peg__buf_printf(
            out,
            "the providers of toolset \"%.*s\" that are attached have other versions of "
            "it than the one that is registered: restart them with that one",
            PEG_ARG(call->toolset->name));
    else if (is_provider_healthy(call))
        say_why_nobody_took_it(call, out);
    else
        gw_presence_explain(call->desk->presence, call->toolset->name, out);
}

/* Nobody can run it, and, but for attempts that may be repeated, nobody has started it. */
static void give_up_sending(struct gw_call *call)
{
    struct gw_calls *desk = call->desk;
    const bool may_have_room_soon = is_provider_full(call->refusal);
    struct gw_outcome terminal = {
        .outcome = GW_ERROR,
        .error = may_have_room_soon ? WIRE_OVERLOADED : WIRE_SERVICE_UNAVAILABLE,
        .retry_after_ms = may_have_room_soon ? RETRY_MS : 0,
    };

    if (call->may_have_run) {
        gw_settle_lost(call,
                       "the provider was lost while the tool was running, and nobody else can "
                       "run it now");
        return;
    }
    peg__buf_clear(&desk->text);
    say_why(call, &desk->text);
    terminal.message = peg__buf_view(&desk->text);
    if (gw_call_is_keyed(call))
        gw_settle_with(call, &terminal);
    else
        gw_call_refuse(call, terminal.error, terminal.message, terminal.retry_after_ms);
}

void gw_send(struct gw_call *call)
{
    struct gw_provider_entry *entry =
        call->attempt < PEG_LIMIT_GATEWAY_ATTEMPTS ? pick(call) : NULL;

    gw_send_release(call);
    call->step = GW_SENT;
    if (!entry) {
        give_up_sending(call);
        return;
    }
    entry->sent++;
    call->has_slot = true;
    call->attempt++;
    call->n_sent = 0;
    call->was_unknown = false;
    call->n_looks = 0;
    call->holder = entry->address;
    memcpy(call->incarnation, entry->incarnation, sizeof(call->incarnation));
    deliver_call(call);
}

/* One that has become silent, or drains, will not start it: the right to is taken back, and it goes
 * to another one or fails now, not at its deadline. */
void gw_send_again(struct gw_call *call)
{
    const struct gw_provider_entry *entry = find_entry(call);

    if (entry && may_run(call, entry, bus_now_ms(call->desk->bus))) {
        call->holder = entry->address;
        deliver_call(call);
    } else {
        gw_settle_revoke(call);
    }
}

void gw_send_elsewhere(struct gw_call *call)
{
    bus_forget_wait(call->desk->bus, &call->wait);
    bus_forget_wait(call->desk->bus, &call->look);
    call->looking = GW_RECHECK_NONE;
    call->mark = peg__blob_unref(call->mark);
    gw_send(call);
}

/* ---- being refused ---------------------------------------------------------------------------
 */

/* A call with an identity may have several who think that they drive it: between them the register
 * of an attempt decides, so it has to be written before there is another attempt. */
static bool is_proof(const struct gw_call *call, const struct bus_message *letter)
{
    return (call->n_sent == 1 && !gw_call_is_keyed(call)) ||
           (letter->was_claimed && letter->epoch == call->sent_epoch);
}

/* Who did not take it is not asked again. One who had taken it and gives it back is asked when
 * nobody else is left, unless it would do the same again: it has another version, or drains. And as
 * before, if it is not that he does not want it: he has come back from a break, say, without it. */
static void remember_refusal(struct gw_call *call, const struct bus_message *letter)
{
    const bool is_final = letter->reason == BUS_OUTDATED || letter->reason == BUS_DRAINING;
    const struct bus_address where = letter->from.node ? letter->from : call->holder;

    if (letter->was_claimed && letter->reason != BUS_OVERLOADED && !is_final)
        return;
    if (call->n_refused == PEG_LIMIT_GATEWAY_ATTEMPTS)
        return;
    call->was_given_back[call->n_refused] = letter->was_claimed && !is_final;
    call->refused_by[call->n_refused++] = hash_provider(call, call->incarnation, where);
}

/* What its caller is told if nobody takes it: that one was full if one was, as then it may try
 * again; that one has another version before that one was away. */
static void note_reason(struct gw_call *call, enum bus_reason reason)
{
    struct gw_provider_entry *entry = reason == BUS_OUTDATED ? find_entry(call) : NULL;

    if (entry)
        entry->said_outdated = true;
    call->met_outdated |= reason == BUS_OUTDATED;
    if (is_provider_full(reason) ||
        (!is_provider_full(call->refusal) && call->refusal != BUS_OUTDATED))
        call->refusal = reason;
}

/* Holders start nothing in the last millisecond or two, before this desk's own timer: deadlines in
 * letters are whole ones. Nobody else would take it either. A claim that only took too long is not
 * late for that. */
static bool is_behind_deadline(const struct gw_call *call, const struct bus_message *letter)
{
    return letter->reason == BUS_LATE &&
           (!letter->was_claimed || bus_now_ms(call->desk->bus) >= call->deadline_ms);
}

void gw_send_on_nak(struct gw_call *call, const struct bus_message *letter)
{
    const bool is_current =
        letter->attempt == call->attempt && strcmp(letter->incarnation, call->incarnation) == 0;

    gw_outstanding_answer(call, letter);
    if (!is_current || call->step == GW_ENDING || call->step == GW_FOLLOWING)
        return;
    note_reason(call, letter->reason);
    remember_refusal(call, letter);
    if (!call->ending && is_behind_deadline(call, letter))
        call->ending = BUS_DEADLINE;
    if (!is_proof(call, letter)) {
        if (call->step == GW_SENT)
            gw_settle_revoke(call);
    } else if (call->ending) {
        gw_settle_unstarted(call);
    } else {
        gw_send_elsewhere(call);
    }
}
