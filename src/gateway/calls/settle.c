/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The last stage, for calls that do not complete by themselves: the deadline has come, the caller
 * is gone, the provider is lost. Only the driver settles. He takes back the right to start; if he
 * gets it, the call never ran. If somebody else has it, it may have, and he says so.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"

/* Before something that could not be asked is asked again. */
enum { PAUSE_NS = 50000000 };

/* Clocks of nodes, and of whoever lets registers expire, differ by less. */
enum { SKEW_MS = 1000 };

static struct gw_call *of_timer(struct net_timer *timer)
{
    return peg__container_of(timer, struct gw_call, again);
}

static void try_again(struct gw_call *call, void (*fn)(struct net_timer *timer))
{
    call->again.fn = fn;
    bus_arm(call->desk->bus, &call->again, bus_now_ns(call->desk->bus) + PAUSE_NS);
}

/* ---- writing a terminal ----------------------------------------------------------------------
 */

static void write_terminal(struct gw_call *call);

static void write_again(struct net_timer *timer)
{
    write_terminal(of_timer(timer));
}

/* Of no attempt: it is none of the letters that a driver awaits an answer to. */
static void tell_waiters(struct gw_call *call, const struct bus_answer *answer)
{
    struct bus *bus = call->desk->bus;
    const struct bus_message letter = {
        .kind = BUS_DONE,
        .id = call->entry.id,
        .deadline_ms = call->deadline_ms,
        .from = bus->self,
        .body = call->terminal,
    };

    for (size_t i = 0; i < answer->n_addresses; i++)
        bus_send(bus, answer->addresses[i], &letter, NULL);
}

static void on_settled_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);

    if (!answer->status)
        tell_waiters(call, answer);
    gw_call_end(call, call->terminal);
}

/* Those who joined hear of an end that no holder wrote from here; what is lost they look for. */
static void ask_waiters(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_WAITERS, 0);

    call->wait.fn = on_settled_waiters;
    bus_waiters(call->desk->bus, &key, &call->wait);
}

static void on_outcome_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM)
        try_again(call, write_again);
    else if (!answer->status && !answer->written)
        gw_call_end(call, answer->current);
    else if (!answer->status && gw_call_is_keyed(call))
        ask_waiters(call);
    else
        gw_call_end(call, call->terminal); /* full: nobody else could write it either */
}

static void write_terminal(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_RESULT, 0);

    call->wait.fn = on_outcome_written;
    bus_put_if_absent(call->desk->bus, &key, call->terminal, gw_call_keep_until(call), &call->wait);
}

static void hand_to(struct gw_call *call, struct bus_address driver);
static void close_attempts(struct gw_call *call);

static void close_again(struct net_timer *timer)
{
    close_attempts(of_timer(timer));
}

/* Lost to one who took it over while this desk was away. If that one has ended it too, it does not
 * matter who says so. */
static void on_settled_closed(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);
    struct bus_address address;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        try_again(call, close_again);
        return;
    }
    call->mark = peg__blob_unref(call->mark);
    if (!answer->status && !answer->written &&
        !peg__str_is(gw_claim_token_owner(answer->current, &address), GW_ENDED)) {
        call->terminal = peg__blob_unref(call->terminal);
        hand_to(call, address);
        return;
    }
    call->is_closed = true;
    write_terminal(call);
}

/* Who joined a call may take it over and make another attempt. So before anybody says that a call
 * was never started, he takes the right to the attempt that would be next, which is the same that
 * the other one would take. */
static void close_attempts(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_CLAIM, call->attempt + 1);

    if (!call->mark)
        call->mark = gw_calls_claim_token(call->desk, GW_ENDED);
    if (!call->mark) {
        try_again(call, close_again);
        return;
    }
    call->wait.fn = on_settled_closed;
    bus_put_if_absent(call->desk->bus, &key, call->mark, gw_call_keep_until(call), &call->wait);
}

void gw_settle_with(struct gw_call *call, const struct gw_outcome *terminal)
{
    struct bus *bus = call->desk->bus;

    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->look);
    bus_disarm(bus, &call->again);
    call->looking = GW_RECHECK_NONE;
    call->terminal = gw_outcome_write(terminal);
    if (!call->terminal) {
        gw_call_refuse(call, terminal->error, terminal->message, terminal->retry_after_ms);
        return;
    }
    /* What never started has no holder who could write another end, and no second asker. */
    if (!gw_call_is_keyed(call) && !terminal->was_started) {
        gw_call_end(call, call->terminal);
        return;
    }
    call->step = GW_ENDING;
    if (terminal->was_started || call->is_closed || !gw_call_is_keyed(call)) {
        write_terminal(call);
        return;
    }
    call->mark = peg__blob_unref(call->mark);
    close_attempts(call);
}

static const char *why_unknown(const struct gw_call *call)
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
void gw_settle_unstarted(struct gw_call *call)
{
    const bool is_late = call->ending == BUS_DEADLINE;
    const struct gw_outcome terminal = {
        .outcome = is_late ? GW_TIMEOUT : GW_CANCELED,
        .error = is_late ? WIRE_TIMEOUT : WIRE_CANCELED,
        .message = is_late ? (peg_str)PEG_LIT("the deadline passed before a provider was free; the "
                                              "call was not started")
                           : (peg_str)PEG_LIT("the call was canceled before it was started"),
    };

    if (call->may_have_run)
        gw_settle_lost(call, why_unknown(call));
    else
        gw_settle_with(call, &terminal);
}

void gw_settle_lost(struct gw_call *call, const char *why)
{
    struct gw_calls *desk = call->desk;
    struct gw_outcome terminal = {
        .outcome = GW_OUTCOME_UNKNOWN,
        .error = WIRE_OUTCOME_UNKNOWN,
        .was_started = true,
    };

    peg__buf_clear(&desk->text);
    peg__buf_printf(&desk->text,
                    "%s; the call was started, and may have had its effect: look before "
                    "you repeat it",
                    why);
    terminal.message = peg__buf_view(&desk->text);
    gw_settle_with(call, &terminal);
}

void gw_settle_unknown(struct gw_call *call, const char *why)
{
    const bool has_time = bus_now_ns(call->desk->bus) < call->deadline_ns;

    if (!call->ending && call->tool && call->tool->is_idempotent && has_time) {
        call->may_have_run = true;
        gw_send_elsewhere(call);
    } else {
        gw_settle_lost(call, why);
    }
}

/* ---- taking the right to start back ---------------------------------------------------------- */

static void tell_holder(struct gw_call *call, enum bus_reason reason)
{
    struct bus_message letter = {
        .kind = BUS_CANCEL,
        .reason = reason,
        .id = call->entry.id,
        .attempt = call->attempt,
        .from = call->desk->bus->self,
    };

    bus_send(call->desk->bus, call->holder, &letter, NULL);
}

/* One who has come back elsewhere may not know that nobody wants the call any more. */
void gw_settle_on_have(struct gw_call *call, const struct bus_message *letter)
{
    if (letter->attempt != call->attempt || strcmp(letter->incarnation, call->incarnation) != 0)
        return;
    call->holder = letter->from;
    if (call->ending)
        tell_holder(call, call->ending);
}

static void find_and_tell(struct gw_call *call);

static void on_grace_over(struct net_timer *timer)
{
    find_and_tell(of_timer(timer));
}

static void wait_for_its_end(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;

    call->step = GW_GRACE;
    call->again.fn = on_grace_over;
    bus_arm(bus, &call->again, bus_now_ns(bus) + call->desk->options.grace_ms * 1000000);
}

static void on_whereabouts(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, look);

    if (!answer->status && answer->n_addresses && answer->addresses[0].node)
        call->holder = answer->addresses[0];
    tell_holder(call, call->ending);
    if (call->ending == BUS_CANCELED && call->step == GW_REVOKING)
        wait_for_its_end(call);
    else
        gw_settle_unknown(call, why_unknown(call));
}

/* Cancel may have been there before the call itself, or at a desk that its provider has left. So it
 * is said again to the one that has the provider now: before it is waited for, and after that. */
static void find_and_tell(struct gw_call *call)
{
    const peg_str name = peg__str(call->incarnation);

    if (call->look.pending)
        return;
    call->look.fn = on_whereabouts;
    bus_leases(call->desk->bus, &name, 1, &call->look);
}

static void on_started_already(struct gw_call *call, peg_str who)
{
    gw_recheck_follow(call, who);
    if (call->ending) {
        find_and_tell(call);
    } else {
        call->step = GW_SENT;
        gw_recheck_soon(call);
    }
}

/* Somebody who had joined took it over: this desk was away. */
static void hand_to(struct gw_call *call, struct bus_address driver)
{
    call->step = GW_FOLLOWING;
    call->driver = driver;
    gw_recheck_soon(call);
}

/* Whoever has it in a queue need not keep it: he cannot start it any more. */
static void move_on(struct gw_call *call)
{
    tell_holder(call, BUS_CANCELED);
    gw_send_elsewhere(call);
}

/* A mark that somebody wrote is not kept for ever: that none stands proves nothing after that. */
static bool is_too_late_to_tell(const struct gw_call *call)
{
    return bus_now_ms(call->desk->bus) + SKEW_MS >= gw_call_keep_until(call);
}

static void on_revoked(struct gw_call *call, uint64_t epoch)
{
    if (epoch != call->sent_epoch)
        gw_settle_unknown(call, "the registry lost its state while the call was under way");
    else if (is_too_late_to_tell(call))
        gw_settle_unknown(call, "the gateway was halted until long after the deadline");
    else if (call->ending)
        gw_settle_unstarted(call);
    else
        move_on(call);
}

static void revoke_again(struct net_timer *timer)
{
    gw_settle_revoke(of_timer(timer));
}

static void on_revocation(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);
    struct bus_address address;
    peg_str who;

    if (answer->status == PEG_EIO) {
        try_again(call, revoke_again);
        return;
    }
    call->mark = peg__blob_unref(call->mark);
    if (answer->status == PEG_ENOMEM || (answer->status && !call->ending)) {
        try_again(call, revoke_again); /* there is room for one more before its time is over */
        return;
    }
    if (answer->status) {
        gw_settle_unknown(call, "there is no room to take the call back (PEG_LIMIT_BUS_REGISTERS, "
                                "PEG_LIMIT_BUS_REGISTER_BYTES)");
        return;
    }
    if (answer->written) {
        on_revoked(call, answer->epoch);
        return;
    }
    who = gw_claim_token_owner(answer->current, &address);
    if (gw_claim_token_is_coordinator(who))
        hand_to(call, address);
    else
        on_started_already(call, who);
}

void gw_settle_revoke(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;
    const struct bus_key key = gw_call_key(call, BUS_CLAIM, call->attempt);

    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->look);
    bus_disarm(bus, &call->again);
    call->looking = GW_RECHECK_NONE;
    call->step = GW_REVOKING;
    if (!call->mark) /* it is kept, so that asking again says the same */
        call->mark = gw_calls_claim_token(call->desk, GW_REVOKED);
    if (!call->mark) {
        try_again(call, revoke_again);
        return;
    }
    call->wait.fn = on_revocation;
    bus_put_if_absent(bus, &key, call->mark, gw_call_keep_until(call), &call->wait);
}

/* ---- why ------------------------------------------------------------------------------------- */

static void settle_joined(struct gw_call *call, enum bus_reason reason)
{
    if (reason == BUS_DEADLINE)
        gw_call_refuse(call, WIRE_TIMEOUT,
                       peg__str("the wait is over and the call goes on: ask again"), 0);
    else
        gw_call_drop(call);
}

void gw_settle(struct gw_call *call, enum bus_reason reason)
{
    const bool was_ending = call->ending != BUS_NO_REASON;

    if (call->step == GW_FOLLOWING && !call->attempt) {
        settle_joined(call, reason);
        return;
    }
    if (call->ending != BUS_DEADLINE)
        call->ending = reason;
    switch (call->step) {
    case GW_ASKING:
        gw_follow_reject_unanswered(call);
        break;
    case GW_CHECKING:
        gw_call_refuse(call, reason == BUS_DEADLINE ? WIRE_TIMEOUT : WIRE_CANCELED,
                       peg__str("it was not started"), 0);
        break;
    case GW_SENT:
        tell_holder(call, reason);
        gw_settle_revoke(call);
        break;
    case GW_REVOKING:
        if (!was_ending)
            tell_holder(call, reason);
        break;
    case GW_GRACE:
        if (reason == BUS_DEADLINE)
            find_and_tell(call);
        break;
    case GW_NAMING:    /* when it is known who decides */
    case GW_FOLLOWING: /* it was taken over: its new driver ends it, or nobody: join.c looks */
    case GW_ENDING:
        break;
    }
}

void gw_settle_on_deadline(struct net_timer *timer)
{
    struct gw_call *call = peg__container_of(timer, struct gw_call, deadline);

    gw_settle(call, BUS_DEADLINE);
}
