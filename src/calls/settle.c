/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The last stage, for calls that do not complete by themselves: the deadline has come, the caller
 * is gone, the provider is lost. Only the coordinator settles. He takes back the right to start; if
 * he gets it, the call never ran. If somebody else has it, it may have, and he says so.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"

/* Before something that could not be asked is asked again. */
enum { PAUSE_NS = 50000000 };

/* Clocks of nodes, and of whoever lets registers expire, differ by less. */
enum { SKEW_MS = 1000 };

static struct calls_call *of_timer(struct net_timer *timer)
{
    return peg__container_of(timer, struct calls_call, again);
}

static void try_again(struct calls_call *call, void (*fn)(struct net_timer *timer))
{
    call->again.fn = fn;
    bus_arm(call->calls->bus, &call->again, bus_now_ns(call->calls->bus) + PAUSE_NS);
}

/* ---- writing an outcome ----------------------------------------------------------------------
 */

static void write_outcome(struct calls_call *call);

static void write_again(struct net_timer *timer)
{
    write_outcome(of_timer(timer));
}

/* Of no attempt: it is none of the messages that a coordinator awaits an answer to. */
static void notify_waiters(struct calls_call *call, const struct bus_answer *answer)
{
    struct bus *bus = call->calls->bus;
    const struct bus_message message = {
        .kind = BUS_DONE,
        .id = call->entry.id,
        .deadline_ms = call->deadline_ms,
        .from = bus->self,
        .body = call->outcome,
    };

    for (size_t i = 0; i < answer->n_addresses; i++)
        bus_send(bus, answer->addresses[i], &message, NULL);
}

static void on_settled_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);

    if (!answer->status)
        notify_waiters(call, answer);
    calls_call_end(call, call->outcome);
}

/* Those who joined hear of an end that no provider side wrote from here; what is lost they look
 * for. */
static void query_waiters(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_WAITERS, 0);

    call->wait.fn = on_settled_waiters;
    bus_waiters(call->calls->bus, &key, &call->wait);
}

static void on_outcome_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM)
        try_again(call, write_again);
    else if (!answer->status && !answer->written)
        calls_call_end(call, answer->current);
    else if (!answer->status && calls_call_is_keyed(call))
        query_waiters(call);
    else
        calls_call_end(call, call->outcome); /* full: nobody else could write it either */
}

static void write_outcome(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_RESULT, 0);

    call->wait.fn = on_outcome_written;
    bus_put_if_absent(call->calls->bus, &key, call->outcome, calls_call_keep_until(call),
                      &call->wait);
}

static void hand_to(struct calls_call *call, struct bus_address coordinator);
static void close_attempts(struct calls_call *call);

static void close_again(struct net_timer *timer)
{
    close_attempts(of_timer(timer));
}

/* Lost to one who took it over while this loop was away. If that one has ended it too, it does not
 * matter who says so. */
static void on_settled_closed(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);
    struct bus_address address;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        try_again(call, close_again);
        return;
    }
    call->token = peg__blob_unref(call->token);
    if (!answer->status && !answer->written &&
        !peg__str_is(calls_claim_token_owner(answer->current, &address), CALLS_TOKEN_ENDED)) {
        call->outcome = peg__blob_unref(call->outcome);
        hand_to(call, address);
        return;
    }
    call->is_closed = true;
    write_outcome(call);
}

/* Who joined a call may take it over and make another attempt. So before anybody says that a call
 * was never started, he takes the right to the attempt that would be next, which is the same that
 * the other one would take. */
static void close_attempts(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_CLAIM, call->attempt + 1);

    if (!call->token)
        call->token = calls_claim_token(call->calls, CALLS_TOKEN_ENDED);
    if (!call->token) {
        try_again(call, close_again);
        return;
    }
    call->wait.fn = on_settled_closed;
    bus_put_if_absent(call->calls->bus, &key, call->token, calls_call_keep_until(call),
                      &call->wait);
}

void calls_settle_with(struct calls_call *call, const struct calls_outcome *outcome)
{
    struct bus *bus = call->calls->bus;

    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->recheck_wait);
    bus_disarm(bus, &call->again);
    call->recheck = CALLS_RECHECK_NONE;
    call->outcome = calls_outcome_write(outcome);
    if (!call->outcome) {
        calls_call_refuse(call, outcome->error, outcome->message, outcome->retry_after_ms);
        return;
    }
    /* What never started has no provider side who could write another end, and no second asker. */
    if (!calls_call_is_keyed(call) && !outcome->was_started) {
        calls_call_end(call, call->outcome);
        return;
    }
    call->step = CALLS_ENDING;
    if (outcome->was_started || call->is_closed || !calls_call_is_keyed(call)) {
        write_outcome(call);
        return;
    }
    call->token = peg__blob_unref(call->token);
    close_attempts(call);
}

static const char *why_unknown(const struct calls_call *call)
{
    switch (call->ending) {
    case BUS_DEADLINE:
        return "the deadline passed while the tool was running";
    case BUS_CANCELED:
        return "the call was canceled, and the tool has not said how it ended";
    default:
        return "the provider was lost while the tool was running";
    }
}

/* This attempt was not; one before it may have been. */
void calls_settle_unstarted(struct calls_call *call)
{
    const bool is_late = call->ending == BUS_DEADLINE;
    const struct calls_outcome outcome = {
        .kind = is_late ? CALLS_KIND_TIMEOUT : CALLS_KIND_CANCELED,
        .error = is_late ? CALLS_TIMEOUT : CALLS_CANCELED,
        .message = is_late ? (peg_str)PEG_LIT("the deadline passed before a provider was free; the "
                                              "call was not started")
                           : (peg_str)PEG_LIT("the call was canceled before it was started"),
    };

    if (call->may_have_run)
        calls_settle_lost(call, why_unknown(call));
    else
        calls_settle_with(call, &outcome);
}

void calls_settle_lost(struct calls_call *call, const char *why)
{
    struct calls_loop *calls = call->calls;
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .was_started = true,
    };

    peg__buf_clear(&calls->text);
    peg__buf_printf(&calls->text,
                    "%s; the call was started, and may have had its effect: look before "
                    "you repeat it",
                    why);
    outcome.message = peg__buf_view(&calls->text);
    calls_settle_with(call, &outcome);
}

void calls_settle_unknown(struct calls_call *call, const char *why)
{
    const bool has_time = bus_now_ns(call->calls->bus) < call->deadline_ns;

    if (!call->ending && call->tool && call->tool->is_idempotent && has_time) {
        call->may_have_run = true;
        calls_send_elsewhere(call);
    } else {
        calls_settle_lost(call, why);
    }
}

/* ---- taking the right to start back ---------------------------------------------------------- */

static void notify_provider_side(struct calls_call *call, enum bus_reason reason)
{
    struct bus_message message = {
        .kind = BUS_CANCEL,
        .reason = reason,
        .id = call->entry.id,
        .attempt = call->attempt,
        .from = call->calls->bus->self,
    };

    bus_send(call->calls->bus, call->provider_side, &message, NULL);
}

/* One who has come back elsewhere may not know that nobody wants the call any more. */
void calls_settle_on_have(struct calls_call *call, const struct bus_message *message)
{
    if (message->attempt != call->attempt || strcmp(message->incarnation, call->incarnation) != 0)
        return;
    call->provider_side = message->from;
    if (call->ending)
        notify_provider_side(call, call->ending);
}

static void find_and_notify(struct calls_call *call);

static void on_grace_over(struct net_timer *timer)
{
    find_and_notify(of_timer(timer));
}

static void wait_for_its_end(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;

    call->step = CALLS_GRACE;
    call->again.fn = on_grace_over;
    bus_arm(bus, &call->again, bus_now_ns(bus) + call->calls->options.grace_ms * 1000000);
}

static void on_whereabouts(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, recheck_wait);

    if (!answer->status && answer->n_addresses && answer->addresses[0].node)
        call->provider_side = answer->addresses[0];
    notify_provider_side(call, call->ending);
    if (call->ending == BUS_CANCELED && call->step == CALLS_REVOKING)
        wait_for_its_end(call);
    else
        calls_settle_unknown(call, why_unknown(call));
}

/* Cancel may have been there before the call itself, or at a loop that its provider has left. So it
 * is said again to the one that has the provider now: before it is waited for, and after that. */
static void find_and_notify(struct calls_call *call)
{
    const peg_str name = peg__str(call->incarnation);

    if (call->recheck_wait.pending)
        return;
    call->recheck_wait.fn = on_whereabouts;
    bus_leases(call->calls->bus, &name, 1, &call->recheck_wait);
}

static void on_started_already(struct calls_call *call, peg_str who)
{
    calls_recheck_follow(call, who);
    if (call->ending) {
        find_and_notify(call);
    } else {
        call->step = CALLS_SENT;
        calls_recheck_soon(call);
    }
}

/* Somebody who had joined took it over: this loop was away. */
static void hand_to(struct calls_call *call, struct bus_address coordinator)
{
    call->step = CALLS_FOLLOWING;
    call->coordinator = coordinator;
    calls_recheck_soon(call);
}

/* Whoever has it in a queue need not keep it: he cannot start it any more. */
static void move_on(struct calls_call *call)
{
    notify_provider_side(call, BUS_CANCELED);
    calls_send_elsewhere(call);
}

/* A token that somebody wrote is not kept for ever: that none stands proves nothing after that. */
static bool is_too_late_to_prove(const struct calls_call *call)
{
    return bus_now_ms(call->calls->bus) + SKEW_MS >= calls_call_keep_until(call);
}

static void on_revoked(struct calls_call *call, uint64_t epoch)
{
    if (epoch != call->sent_epoch)
        calls_settle_unknown(call, "the registry lost its state while the call was under way");
    else if (is_too_late_to_prove(call))
        calls_settle_unknown(call, "the gateway was halted until long after the deadline");
    else if (call->ending)
        calls_settle_unstarted(call);
    else
        move_on(call);
}

static void revoke_again(struct net_timer *timer)
{
    calls_settle_revoke(of_timer(timer));
}

static void on_revocation(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);
    struct bus_address address;
    peg_str who;

    if (answer->status == PEG_EIO) {
        try_again(call, revoke_again);
        return;
    }
    call->token = peg__blob_unref(call->token);
    if (answer->status == PEG_ENOMEM || (answer->status && !call->ending)) {
        try_again(call, revoke_again); /* there is room for one more before its time is over */
        return;
    }
    if (answer->status) {
        calls_settle_unknown(call,
                             "there is no room to take the call back (PEG_LIMIT_BUS_REGISTERS, "
                             "PEG_LIMIT_BUS_REGISTER_BYTES)");
        return;
    }
    if (answer->written) {
        on_revoked(call, answer->epoch);
        return;
    }
    who = calls_claim_token_owner(answer->current, &address);
    if (calls_claim_token_is_coordinator(who))
        hand_to(call, address);
    else
        on_started_already(call, who);
}

void calls_settle_revoke(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    const struct bus_key key = calls_call_key(call, BUS_CLAIM, call->attempt);

    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->recheck_wait);
    bus_disarm(bus, &call->again);
    call->recheck = CALLS_RECHECK_NONE;
    call->step = CALLS_REVOKING;
    if (!call->token) /* it is kept, so that asking again says the same */
        call->token = calls_claim_token(call->calls, CALLS_TOKEN_REVOKED);
    if (!call->token) {
        try_again(call, revoke_again);
        return;
    }
    call->wait.fn = on_revocation;
    bus_put_if_absent(bus, &key, call->token, calls_call_keep_until(call), &call->wait);
}

/* ---- why ------------------------------------------------------------------------------------- */

static void settle_follower(struct calls_call *call, enum bus_reason reason)
{
    if (reason == BUS_DEADLINE)
        calls_call_refuse(call, CALLS_TIMEOUT,
                          peg__str("the wait is over and the call goes on: ask again"), 0);
    else
        calls_call_drop(call);
}

void calls_settle(struct calls_call *call, enum bus_reason reason)
{
    const bool was_ending = call->ending != BUS_NO_REASON;

    if (call->step == CALLS_FOLLOWING && !call->attempt) {
        settle_follower(call, reason);
        return;
    }
    if (call->ending != BUS_DEADLINE)
        call->ending = reason;
    switch (call->step) {
    case CALLS_RESOLVING:
        calls_follow_reject_unanswered(call);
        break;
    case CALLS_CHECKING:
        calls_call_refuse(call, reason == BUS_DEADLINE ? CALLS_TIMEOUT : CALLS_CANCELED,
                          peg__str("it was not started"), 0);
        break;
    case CALLS_SENT:
        notify_provider_side(call, reason);
        calls_settle_revoke(call);
        break;
    case CALLS_REVOKING:
        if (!was_ending)
            notify_provider_side(call, reason);
        break;
    case CALLS_GRACE:
        if (reason == BUS_DEADLINE)
            find_and_notify(call);
        break;
    case CALLS_ADMITTING: /* when it is known who decides */
    case CALLS_FOLLOWING: /* it was taken over: its new coordinator ends it, or nobody: follow.c
                           * looks
                           */
    case CALLS_ENDING:
        break;
    }
}

void calls_settle_on_deadline(struct net_timer *timer)
{
    struct calls_call *call = peg__container_of(timer, struct calls_call, deadline);

    calls_settle(call, BUS_DEADLINE);
}
