/* SPDX-License-Identifier: Apache-2.0 */

/* The end of a call: its callers are notified, its registers forgotten if they are of no use. */

#include "calls/caller/call.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

void calls_send(struct calls_call *call, struct bus_address to, enum bus_message_kind kind,
                enum bus_reason reason, struct peg__blob *body)
{
    struct bus *bus = call->calls->bus;
    struct bus_message message = {
        .kind = kind,
        .reason = reason,
        .id = call->entry.id,
        .attempt = kind == BUS_DONE ? 0 : call->machine.attempt,
        .deadline_ms = call->machine.deadline_ms,
        .from = bus->self,
        .body = body,
    };

    memcpy(message.incarnation, call->machine.incarnation, sizeof(message.incarnation));
    bus_send(bus, to, &message, NULL);
}

void calls_end_make_outcome(struct calls_call *call, enum calls_why why)
{
    struct calls_outcome outcome;

    if (call->outcome)
        return;
    calls_explain(call, why, false, &outcome);
    call->outcome = calls_outcome_write(&outcome);
}

/* A call that cannot be asked for again has no use for its registers. One that was never started,
 * for want of a provider or of room, may be asked for anew, also by a follower that missed the
 * message about its end: it finds no identity. */
static bool may_forget_registers(const struct calls_call *call, const struct calls_outcome *outcome)
{
    return !calls_call_is_keyed(call) || outcome->error == CALLS_OVERLOADED ||
           outcome->error == CALLS_SERVICE_UNAVAILABLE;
}

/* Messages that may still arrive find the registers, and see that there is nothing to start. */
static void finish(struct calls_call *call, const struct calls_outcome *outcome, bool may_forget)
{
    struct bus *bus = call->calls->bus;
    const struct bus_key key = calls_key(&call->entry.id, BUS_RESULT, 0);
    const uint32_t n_attempts = calls_call_n_claims(call);
    const bool forgets = may_forget && !call->machine.n_outstanding;

    if (may_forget && call->machine.n_outstanding)
        calls_outstanding_count(call);
    while (call->callers) {
        struct calls_caller *caller = call->callers;

        calls_call_take_caller(caller);
        caller->events->on_end(caller, outcome);
    }
    calls_call_drop(call);
    if (forgets)
        bus_forget(bus, &key, n_attempts);
}

void calls_end_with(struct calls_call *call, struct peg__blob *blob, bool was_following)
{
    struct peg__blob *kept = peg__blob_ref(blob);
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the outcome of this call cannot be read: a newer gateway wrote it"),
        .was_started = true,
    };

    calls_outcome_read(kept, &outcome);
    calls_call_count_ended(call, &outcome);
    finish(call, &outcome, !was_following && may_forget_registers(call, &outcome));
    peg__blob_unref(kept);
}

/* Without memory for an outcome of its own the call ends all the same. */
void calls_end_own(struct calls_call *call, enum calls_why why, bool was_following)
{
    struct calls_outcome outcome;

    calls_end_make_outcome(call, why);
    if (call->outcome) {
        calls_end_with(call, call->outcome, was_following);
        return;
    }
    calls_explain(call, why, false, &outcome);
    calls_call_count_ended(call, &outcome);
    finish(call, &outcome, false);
}

static void reject_with(struct calls_call *call, struct calls_outcome *outcome, bool is_anothers)
{
    struct calls_loop *calls = call->calls;

    outcome->kind = CALLS_KIND_REFUSED;
    if (call->is_counted)
        calls_call_count_ended(call, outcome);
    else if (!is_anothers)
        calls->env->count_refused(call->meter);
    finish(call, outcome, !calls_call_is_keyed(call) && call->machine.attempt > 0);
}

void calls_end_rejected(struct calls_call *call, enum calls_why why, enum calls_state before)
{
    const bool is_anothers = calls_state_follows(before) || before == CALLS_LOCATING ||
                             why == CALLS_WHY_UNREAD || why == CALLS_WHY_WAIT_OVER;
    struct calls_outcome outcome;

    calls_explain(call, why, is_anothers, &outcome);
    reject_with(call, &outcome, is_anothers);
}

void calls_run_reject(struct calls_call *call, enum calls_error error, peg_str message,
                      int64_t retry_after_ms)
{
    struct calls_outcome outcome = {
        .error = error, .message = message, .retry_after_ms = retry_after_ms};

    reject_with(call, &outcome, false);
}

/* Its coordinator cancels the call; its caller learns that the message was sent. */
void calls_end_stopped(struct calls_call *call, const struct bus_answer *answer)
{
    const struct calls_outcome stopped = {.kind = CALLS_KIND_CANCELED};
    struct calls_identity identity;

    if (calls_identity_read(answer->current, &identity))
        calls_send(call, identity.coordinator, BUS_FOLLOWER, BUS_STOP, NULL);
    finish(call, &stopped, false);
}
