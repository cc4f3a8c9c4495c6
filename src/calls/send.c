/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second stage of a call: which provider is asked to run it. An attempt goes to one provider;
 * the next attempt exists only when it is proven that the one before did not start.
 *
 * What proves it: each message arrives at most once. So if an attempt was sent in one message,
 * whoever answers that he did not start it has used it up. If it was sent in several, only the
 * register of the attempt proves it, under the epoch of the first of them.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"

enum { RETRY_MS = 250 };

/* ---- choosing ------------------------------------------------------------------------------ */

/* A provider where it is: what it does not take at the loop that it leaves it may take at the one
 * that it comes to. */
static uint64_t hash_provider(struct peg__hash_key key, const char *incarnation,
                              struct bus_address address)
{
    return peg__hash(key, peg__str(incarnation)) ^ address.node ^ address.loop;
}

bool calls_choice_has_refused(const struct calls_choice *choice, const char *incarnation,
                              struct bus_address address, bool is_forgiven)
{
    const struct calls_refusals *refusals = choice->refusals;
    const uint64_t hash = refusals->n ? hash_provider(choice->key, incarnation, address) : 0;

    for (unsigned i = 0; i < refusals->n; i++)
        if (refusals->by[i] == hash && !(is_forgiven && refusals->was_given_back[i]))
            return true;
    return false;
}

static struct calls_choice make_choice(const struct calls_call *call)
{
    return (struct calls_choice){
        .toolset = call->toolset,
        .refusals = &call->refusals,
        .key = call->calls->by_id.key,
        .is_node_local = calls_id_is_node_local(&call->entry.id),
        .met_outdated = call->met_outdated,
        .released = call->has_slot ? call->incarnation : NULL,
    };
}

void calls_send_release(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    if (call->has_slot)
        calls->env->release(calls->user, call->toolset->name, call->incarnation);
    call->has_slot = false;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void on_posted(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, post);
    struct bus_message message;

    if (answer->status || answer->written)
        return;
    message = (struct bus_message){
        .kind = BUS_NAK,
        .reason = BUS_GONE,
        .attempt = call->attempt,
    };
    memcpy(message.incarnation, call->incarnation, sizeof(message.incarnation));
    calls_send_on_nak(call, &message);
}

static void deliver_call(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    struct bus_message message = {
        .kind = BUS_CALL,
        .id = call->entry.id,
        .attempt = call->attempt,
        .account = call->account,
        .owner = calls_owner_hash(call->calls, call->toolset),
        .deadline_ms = call->deadline_ms,
        .from = bus->self,
        .body = call->request,
    };

    if (call->n_sent++ == 0)
        call->sent_epoch = bus_epoch(bus);
    message.epoch = call->sent_epoch;
    call->n_outstanding++;
    memcpy(message.incarnation, call->incarnation, sizeof(message.incarnation));
    calls_recheck_soon(call);
    bus_forget_wait(bus, &call->post);
    call->post.fn = on_posted;
    bus_send(bus, call->provider_side, &message, &call->post);
}

static bool is_provider_full(enum bus_reason reason)
{
    return reason == BUS_OVERLOADED || reason == BUS_FULL;
}

/* By what is known of its providers there is one that could run it. */
static void say_why_nobody_took_it(const struct calls_call *call, struct peg__buf *out)
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

static bool is_provider_healthy(const struct calls_call *call)
{
    return call->calls->env->is_healthy(call->calls->user, call->toolset->name);
}

static void say_why(const struct calls_call *call, struct peg__buf *out)
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
        call->calls->env->explain_health(call->calls->user, call->toolset->name, out);
}

/* Nobody can run it, and, but for attempts that may be repeated, nobody has started it. */
static void give_up_sending(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const bool may_have_room_soon = is_provider_full(call->refusal);
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_ERROR,
        .error = may_have_room_soon ? CALLS_OVERLOADED : CALLS_SERVICE_UNAVAILABLE,
        .retry_after_ms = may_have_room_soon ? RETRY_MS : 0,
    };

    if (call->may_have_run) {
        calls_settle_lost(call,
                          "the provider was lost while the tool was running, and nobody else can "
                          "run it now");
        return;
    }
    peg__buf_clear(&calls->text);
    say_why(call, &calls->text);
    outcome.message = peg__buf_view(&calls->text);
    if (calls_call_is_keyed(call))
        calls_settle_with(call, &outcome);
    else
        calls_call_refuse(call, outcome.error, outcome.message, outcome.retry_after_ms);
}

void calls_send(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const struct calls_choice choice = make_choice(call);
    struct calls_chosen chosen;

    call->step = CALLS_SENT;
    if (call->attempt >= PEG_LIMIT_GATEWAY_ATTEMPTS ||
        !calls->env->choose(calls->user, &choice, &chosen)) {
        calls_send_release(call);
        give_up_sending(call);
        return;
    }
    call->has_slot = true;
    call->attempt++;
    call->n_sent = 0;
    call->was_unknown = false;
    call->n_rechecks = 0;
    call->provider_side = chosen.address;
    memcpy(call->incarnation, chosen.incarnation, sizeof(call->incarnation));
    deliver_call(call);
}

/* One that has become silent, or drains, will not start it: the right to is taken back, and it goes
 * to another one or fails now, not at its deadline. */
void calls_send_again(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const struct calls_choice choice = make_choice(call);
    struct bus_address address;

    if (calls->env->locate(calls->user, &choice, call->incarnation, &address)) {
        call->provider_side = address;
        deliver_call(call);
    } else {
        calls_settle_revoke(call);
    }
}

void calls_send_elsewhere(struct calls_call *call)
{
    bus_forget_wait(call->calls->bus, &call->wait);
    bus_forget_wait(call->calls->bus, &call->recheck_wait);
    call->recheck = CALLS_RECHECK_NONE;
    call->token = peg__blob_unref(call->token);
    calls_send(call);
}

/* ---- being refused ---------------------------------------------------------------------------
 */

/* A call with an identity may have several who think that they coordinate it: between them the
 * register of an attempt decides, so it has to be written before there is another attempt. */
static bool is_proof(const struct calls_call *call, const struct bus_message *message)
{
    return (call->n_sent == 1 && !calls_call_is_keyed(call)) ||
           (message->was_claimed && message->epoch == call->sent_epoch);
}

/* Who did not take it is not asked again. One who had taken it and gives it back is asked when
 * nobody else is left, unless it would do the same again: it has another version, or drains. And as
 * before, if it is not that he does not want it: he has come back from a break, say, without it. */
static void remember_refusal(struct calls_call *call, const struct bus_message *message)
{
    struct calls_refusals *refusals = &call->refusals;
    const bool is_final = message->reason == BUS_OUTDATED || message->reason == BUS_DRAINING;
    const struct bus_address where = message->from.node ? message->from : call->provider_side;

    if (message->was_claimed && message->reason != BUS_OVERLOADED && !is_final)
        return;
    if (refusals->n == PEG_LIMIT_GATEWAY_ATTEMPTS)
        return;
    refusals->was_given_back[refusals->n] = message->was_claimed && !is_final;
    refusals->by[refusals->n++] = hash_provider(call->calls->by_id.key, call->incarnation, where);
}

/* What its caller is told if nobody takes it: that one was full if one was, as then it may try
 * again; that one has another version before that one was away. */
static void note_reason(struct calls_call *call, enum bus_reason reason)
{
    struct calls_loop *calls = call->calls;

    if (reason == BUS_OUTDATED)
        calls->env->note_outdated(calls->user, call->toolset->name, call->incarnation);
    call->met_outdated |= reason == BUS_OUTDATED;
    if (is_provider_full(reason) ||
        (!is_provider_full(call->refusal) && call->refusal != BUS_OUTDATED))
        call->refusal = reason;
}

/* Provider sides start nothing in the last millisecond or two, before this loop's own timer:
 * deadlines in messages are whole ones. Nobody else would take it either. A claim that only took
 * too long is not late for that. */
static bool is_behind_deadline(const struct calls_call *call, const struct bus_message *message)
{
    return message->reason == BUS_LATE &&
           (!message->was_claimed || bus_now_ms(call->calls->bus) >= call->deadline_ms);
}

void calls_send_on_nak(struct calls_call *call, const struct bus_message *message)
{
    const bool is_current =
        message->attempt == call->attempt && strcmp(message->incarnation, call->incarnation) == 0;

    calls_outstanding_answer(call, message);
    if (!is_current || call->step == CALLS_ENDING || call->step == CALLS_FOLLOWING)
        return;
    note_reason(call, message->reason);
    remember_refusal(call, message);
    if (!call->ending && is_behind_deadline(call, message))
        call->ending = BUS_DEADLINE;
    if (!is_proof(call, message)) {
        if (call->step == CALLS_SENT)
            calls_settle_revoke(call);
    } else if (call->ending) {
        calls_settle_unstarted(call);
    } else {
        calls_send_elsewhere(call);
    }
}
