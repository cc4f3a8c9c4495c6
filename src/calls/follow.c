/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that somebody else coordinates: the same identity was asked for before, or is awaited by
 * its id. Who joins is told the same outcome. If the coordinator's node is gone, one of them takes
 * its place: the one who takes back the attempt that is open.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"

static struct calls_call *of_wait(struct bus_wait *wait)
{
    return peg__container_of(wait, struct calls_call, wait);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Is the end that was read that of the call it has joined? Nobody kept that from being forgotten,
 * and the identity from being used again. */
static void on_identity_of_end(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);

    if (!answer->status && calls_follow_is_same(call, answer->current)) {
        calls_call_report_admitted(call, true);
        calls_call_end(call, call->outcome);
        return;
    }
    call->outcome = peg__blob_unref(call->outcome);
    if (answer->status)
        calls_recheck_soon(call); /* which asks to be reported again */
    else
        calls_follow_again(call, answer->current);
}

static void on_end_unregistered(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);
    const struct bus_key key = calls_call_key(call, BUS_IDENTITY, 0);

    if (answer->status || !answer->current || calls_recheck_awaits_message(call, answer->current)) {
        calls_recheck_soon(call);
        return;
    }
    call->outcome = peg__blob_ref(answer->current);
    call->wait.fn = on_identity_of_end;
    bus_read(call->calls->bus, &key, &call->wait);
}

/* There is no room to be reported: a call that has ended needs none. */
static void recheck_unregistered(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_RESULT, 0);

    call->wait.fn = on_end_unregistered;
    bus_read(call->calls->bus, &key, &call->wait);
}

static void on_waiting(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);

    if (answer->status == PEG_ELIMIT || answer->status == PEG_ENOMEM) {
        recheck_unregistered(call);
        return;
    }
    if (answer->status) {
        calls_recheck_soon(call); /* which asks again */
        return;
    }
    call->is_reported = true;
    calls_output_listen(call);
    calls_call_report_admitted(call, true);
    calls_recheck_now(call);
}

/* Before it looks: as long as somebody is reported, nobody forgets what he looks at. */
void calls_follow_add_waiter(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_WAITERS, 0);

    call->wait.fn = on_waiting;
    bus_wait_add(call->calls->bus, &key, calls_call_keep_until(call), &call->wait);
}

void calls_follow(struct calls_call *call, struct peg__blob *blob)
{
    struct calls_identity identity;

    if (!calls_identity_read(blob, &identity)) {
        calls_call_refuse(call, CALLS_FAULT,
                          peg__str("this identity was used by another version of the gateway"), 0);
        return;
    }
    if (call->has_digest && memcmp(identity.digest, call->digest, sizeof(identity.digest)) != 0) {
        calls_call_refuse(
            call, CALLS_VALIDATION,
            peg__str("this identity (run_id and tool_call_id, or idempotency_key) was "
                     "used for a call with another tool or payload: choose a new one"),
            0);
        return;
    }
    call->step = CALLS_FOLLOWING;
    if (call->ending) {
        calls_call_refuse(call, CALLS_TIMEOUT,
                          peg__str("the wait is over and the call goes on: ask again"), 0);
        return;
    }
    call->again.fn = calls_recheck_on_timer;
    call->coordinator = identity.coordinator;
    call->identity_coordinator = identity.coordinator;
    call->deadline_ms = identity.deadline_ms;
    call->identity_epoch = identity.epoch;
    call->is_reported = false;
    call->has_waited = false;
    call->has_seen_end = false;
    call->has_heard_end = false;
    calls_follow_add_waiter(call);
}

bool calls_follow_is_same(const struct calls_call *call, const struct peg__blob *blob)
{
    struct calls_identity identity;

    return calls_identity_read(blob, &identity) &&
           bus_address_equal(identity.coordinator, call->identity_coordinator) &&
           identity.deadline_ms == call->deadline_ms && identity.epoch == call->identity_epoch;
}

/* ---- by its id -------------------------------------------------------------------------------
 */

void calls_follow_reject_unanswered(struct calls_call *call)
{
    calls_call_refuse(call, CALLS_TIMEOUT,
                      peg__str("the registry did not answer, and the call may go on: ask again"),
                      0);
}

/* The same words for a call that never was and for another principal's. Nobody knows here whether
 * it has run. */
static void reject_unfollowed(struct calls_call *call)
{
    if (call->may_run_elsewhere)
        calls_call_refuse(
            call, CALLS_OUTCOME_UNKNOWN,
            peg__str("this gateway does not know the call: it was restarted since, and "
                     "lost what it knew of calls; the call may have been started, and "
                     "run still: look before you repeat it"),
            0);
    else
        calls_call_refuse(
            call, CALLS_NOT_FOUND,
            peg__str("there is no such call (any more): it ended too long ago (results "
                     "are kept for RESULT_STREAM_MAPPING_TTL), the gateway was "
                     "restarted since, or it was not started for want of a provider or "
                     "of room; it may have run: look before you repeat it"),
            0);
}

void calls_follow_again(struct calls_call *call, struct peg__blob *identity)
{
    if (identity)
        calls_follow(call, identity);
    else if ((call->tool && call->identity) || call->why_not)
        calls_admit_again(call);
    else
        reject_unfollowed(call);
}

/* Is it its principal's? If not, or if that is not known, it is refused. */
static bool is_of_principal(struct calls_call *call, const struct bus_answer *answer,
                            struct calls_identity *ret_identity)
{
    if (answer->status)
        calls_follow_reject_unanswered(call);
    else if (calls_identity_read(answer->current, ret_identity) &&
             peg__str_eq(ret_identity->principal, peg__blob_str(call->request)))
        return true;
    else
        reject_unfollowed(call);
    return false;
}

static void on_awaited(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);
    struct calls_identity identity;

    if (!is_of_principal(call, answer, &identity))
        return;
    call->request = peg__blob_unref(call->request);
    calls_follow(call, answer->current);
}

static void on_stopped(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);
    const struct calls_outcome notified = {.kind = CALLS_KIND_CANCELED};
    struct bus_message message = {
        .kind = BUS_STOP,
        .id = call->entry.id,
        .from = call->calls->bus->self,
    };
    struct calls_identity identity;
    struct calls_caller *caller = call->callers;

    if (!is_of_principal(call, answer, &identity))
        return;
    bus_send(call->calls->bus, identity.coordinator, &message, NULL);
    calls_call_take_caller(caller);
    calls_call_drop(call);
    caller->events->on_end(caller, &notified);
}

/* The principal lies where the request would, until it is known whose call it is. Whoever guesses
 * an id hears and changes nothing of it: no message about the call is for him, and he does not
 * count among those who wait. */
static void read_whose(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                       int64_t deadline_ns, struct calls_caller *caller,
                       void (*fn)(struct bus_wait *wait, const struct bus_answer *answer))
{
    const struct calls_outcome no_memory = {
        .kind = CALLS_KIND_REFUSED,
        .error = CALLS_OVERLOADED,
        .message = PEG_LIT("the gateway has too many calls (PEG_LIMIT_GATEWAY_CALLS), of this "
                           "principal or of all, or too little memory: try again later"),
        .retry_after_ms = 1000,
    };
    const uint16_t account = calls_quota_key(calls, principal);
    /* To end a call takes room for a moment, and makes some. */
    const bool has_room = fn == on_stopped
                              ? peg__quota_used(&calls->quotas.calls) < calls->options.max_calls
                              : calls_quota_has_wait(calls, account);
    struct calls_call *call = has_room ? calls_call_new(calls, id, account) : NULL;
    struct bus_key key;

    caller->call = NULL;
    if (call)
        call->request = peg__blob_copy(principal);
    if (!call || !call->request) {
        if (call)
            calls_call_drop(call);
        caller->events->on_end(caller, &no_memory);
        return;
    }
    call->step = CALLS_RESOLVING;
    call->may_run_elsewhere = caller->was_asked_elsewhere;
    calls_call_add_caller(call, caller);
    bus_arm(calls->bus, &call->deadline, calls_give_up_ns(bus_now_ns(calls->bus), deadline_ns));
    key = calls_call_key(call, BUS_IDENTITY, 0);
    call->wait.fn = fn;
    bus_read(calls->bus, &key, &call->wait);
}

void calls_await(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                 int64_t deadline_ns, struct calls_caller *caller)
{
    read_whose(calls, id, principal, deadline_ns, caller, on_awaited);
}

void calls_cancel(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                  struct calls_caller *caller)
{
    read_whose(calls, id, principal, NET_NEVER, caller, on_stopped);
}

/* ---- taking over -----------------------------------------------------------------------------
 */

static void walk_followed(struct calls_call *call);
static void on_owner_lease(struct bus_wait *wait, const struct bus_answer *answer);

static bool is_long_over(const struct calls_call *call)
{
    return bus_now_ms(call->calls->bus) > call->deadline_ms + call->calls->options.grace_ms;
}

/* The open attempt is this loop's, revoked: it coordinates the call now. */
static void drive(struct calls_call *call, uint64_t epoch)
{
    call->attempt = call->walk;
    call->n_outstanding++;     /* nobody knows what the other one sent */
    call->may_have_run = true; /* nor, in which attempts after this one */
    if (epoch != call->identity_epoch) {
        calls_settle_unknown(call, "the registry lost its state while the call was under way");
        return;
    }
    if (!call->tool || bus_now_ms(call->calls->bus) >= call->deadline_ms) {
        call->ending = BUS_DEADLINE;
        calls_settle_unstarted(call);
        return;
    }
    call->incarnation[0] = '\0';
    if (call->ending)
        calls_settle_unstarted(call);
    else
        calls_send(call);
}

static void give_up_lost(struct calls_call *call)
{
    call->attempt = call->walk;
    call->n_outstanding++;
    calls_settle_unknown(call,
                         "the provider, or the gateway it was attached to, was lost while the "
                         "tool was running");
}

static void admit_again(struct calls_call *call);

/* There was no name, and perhaps there is one again. */
static bool is_forgotten(const struct calls_call *call, const struct bus_answer *answer)
{
    return !answer->status && (call->identity ? answer->written : !answer->current);
}

static void on_pause_over(struct net_timer *timer)
{
    admit_again(peg__container_of(timer, struct calls_call, again));
}

static void on_followed_name(struct bus_wait *wait, const struct bus_answer *answer)
{
    enum { PAUSE_NS = 50000000 };
    struct calls_call *call = of_wait(wait);
    struct bus *bus = call->calls->bus;

    if (answer->status == PEG_EIO) {
        call->again.fn = on_pause_over;
        bus_arm(bus, &call->again, bus_now_ns(bus) + PAUSE_NS);
        return;
    }
    call->token = peg__blob_unref(call->token);
    if (call->is_owner_lost && !is_forgotten(call, answer))
        give_up_lost(call);
    else
        drive(call, answer->epoch);
}

/* Its coordinator was alive after all, perhaps, and has ended it as one that nobody could run. Then
 * its registers are forgotten, and what was taken is the first attempt of a call that has no name
 * yet. Somebody who has named it meanwhile finds the token in his way, and follows. */
static void admit_again(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_followed_name;
    if (call->identity)
        bus_put_if_absent(call->calls->bus, &key, call->identity, calls_call_keep_until(call),
                          &call->wait);
    else
        bus_read(call->calls->bus, &key, &call->wait);
}

static void on_taken(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);

    if (!answer->status && answer->written) {
        admit_again(call);
    } else {
        calls_recheck_soon(call); /* somebody was faster, or it is not known */
    }
}

static void take_followed(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_CLAIM, call->walk);

    if (!call->token)
        call->token = calls_claim_token(call->calls, CALLS_TOKEN_REVOKED);
    if (!call->token) {
        calls_recheck_soon(call);
        return;
    }
    call->wait.fn = on_taken;
    bus_put_if_absent(call->calls->bus, &key, call->token, calls_call_keep_until(call),
                      &call->wait);
}

static void read_owner_lease(struct calls_call *call, const struct peg__blob *token)
{
    char coordinator[BUS_ADDRESS_TEXT];
    struct bus_address address;
    peg_str name = calls_claim_token_owner(token, &address);

    call->coordinator = (struct bus_address){0};
    if (peg__str_is(name, CALLS_TOKEN_REVOKED)) {
        bus_address_print(address, coordinator);
        name = peg__str(coordinator);
        call->coordinator = address;
    }
    call->wait.fn = on_owner_lease;
    bus_leases(call->calls->bus, &name, 1, &call->wait);
}

/* It was asked for before, and the answer was lost. */
static bool is_own_token(const struct calls_call *call, const struct peg__blob *token)
{
    return call->token && peg__str_eq(peg__blob_str(call->token), peg__blob_str(token));
}

static bool is_ended(const struct peg__blob *token)
{
    struct bus_address address;

    return peg__str_is(calls_claim_token_owner(token, &address), CALLS_TOKEN_ENDED);
}

/* Its coordinator was lost just before it could say that the call was not started; or it was not,
 * and has said so. Nothing is written for it: it may have forgotten the call, and somebody have
 * asked for it anew. */
static void end_for_coordinator(struct calls_call *call)
{
    calls_call_refuse(
        call, CALLS_SERVICE_UNAVAILABLE,
        peg__str("the call was not started, and the node that should have was lost: ask "
                 "again later, or with another identity"),
        0);
}

static void on_walked(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);

    if (answer->status)
        calls_recheck_soon(call);
    else if (answer->current && is_ended(answer->current))
        end_for_coordinator(call);
    else if (answer->current && is_own_token(call, answer->current))
        admit_again(call);
    else if (answer->current)
        read_owner_lease(call, answer->current);
    else
        take_followed(call);
}

/* Who owns the attempt: a coordinator that revoked it, or a provider that ran it. It may have given
 * it back, and the coordinator have gone on, or have ended the call and forgotten it: the attempt
 * behind it tells, and with that the right to say what became of the call. */
static void on_owner_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_wait(wait);
    const bool is_coordinator = call->coordinator.node != 0;
    const bool is_alive = !answer->status && answer->n_addresses && answer->addresses[0].node;

    if (answer->status || (is_alive && !is_long_over(call))) {
        calls_recheck_soon(call);
        return;
    }
    call->is_owner_lost |= !is_coordinator;
    if (call->walk < PEG_LIMIT_GATEWAY_ATTEMPTS + 1) {
        call->walk++;
        walk_followed(call);
    } else {
        give_up_lost(call);
    }
}

static void walk_followed(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_CLAIM, call->walk);

    call->wait.fn = on_walked;
    bus_read(call->calls->bus, &key, &call->wait);
}

void calls_follow_take_over(struct calls_call *call)
{
    bus_forget_wait(call->calls->bus, &call->wait);
    call->walk = 1;
    call->is_owner_lost = false;
    walk_followed(call);
}
