/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that somebody else drives: the same identity was asked for before, or is awaited by its id.
 * Who joins is told the same terminal. If the driver's node is gone, one of them takes its place:
 * the one who takes back the attempt that is open.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"

static struct gw_call *of_wait(struct bus_wait *wait)
{
    return peg__container_of(wait, struct gw_call, wait);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Is the end that was read that of the call it has joined? Nobody kept that from being forgotten,
 * and the identity from being used again. */
static void on_name_of_end(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);

    if (!answer->status && gw_follow_is_same(call, answer->current)) {
        gw_call_report_admitted(call, true);
        gw_call_end(call, call->terminal);
        return;
    }
    call->terminal = peg__blob_unref(call->terminal);
    if (answer->status)
        gw_recheck_soon(call); /* which asks to be listed again */
    else
        gw_follow_again(call, answer->current);
}

static void on_end_unlisted(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);
    const struct bus_key key = gw_call_key(call, BUS_IDENTITY, 0);

    if (answer->status || !answer->current || gw_recheck_awaits_message(call, answer->current)) {
        gw_recheck_soon(call);
        return;
    }
    call->terminal = peg__blob_ref(answer->current);
    call->wait.fn = on_name_of_end;
    bus_read(call->desk->bus, &key, &call->wait);
}

/* There is no room to be listed: a call that has ended needs none. */
static void look_unlisted(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_RESULT, 0);

    call->wait.fn = on_end_unlisted;
    bus_read(call->desk->bus, &key, &call->wait);
}

static void on_waiting(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);

    if (answer->status == PEG_ELIMIT || answer->status == PEG_ENOMEM) {
        look_unlisted(call);
        return;
    }
    if (answer->status) {
        gw_recheck_soon(call); /* which asks again */
        return;
    }
    call->is_listed = true;
    gw_output_listen(call);
    gw_call_report_admitted(call, true);
    gw_recheck_now(call);
}

/* Before it looks: as long as somebody is listed, nobody forgets what he looks at. */
void gw_follow_add_waiter(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_WAITERS, 0);

    call->wait.fn = on_waiting;
    bus_wait_add(call->desk->bus, &key, gw_call_keep_until(call), &call->wait);
}

void gw_follow(struct gw_call *call, struct peg__blob *blob)
{
    struct gw_named named;

    if (!gw_named_read(blob, &named)) {
        gw_call_refuse(call, WIRE_FAULT,
                       peg__str("this identity was used by another version of the gateway"), 0);
        return;
    }
    if (call->has_digest && memcmp(named.digest, call->digest, sizeof(named.digest)) != 0) {
        gw_call_refuse(call, WIRE_VALIDATION,
                       peg__str("this identity (run_id and tool_call_id, or idempotency_key) was "
                                "used for a call with another tool or payload: choose a new one"),
                       0);
        return;
    }
    call->step = GW_FOLLOWING;
    if (call->ending) {
        gw_call_refuse(call, WIRE_TIMEOUT,
                       peg__str("the wait is over and the call goes on: ask again"), 0);
        return;
    }
    call->again.fn = gw_recheck_on_timer;
    call->driver = named.driver;
    call->named_driver = named.driver;
    call->deadline_ms = named.deadline_ms;
    call->named_epoch = named.epoch;
    call->is_listed = false;
    call->has_waited = false;
    call->has_seen_end = false;
    call->has_heard_end = false;
    gw_follow_add_waiter(call);
}

bool gw_follow_is_same(const struct gw_call *call, const struct peg__blob *blob)
{
    struct gw_named named;

    return gw_named_read(blob, &named) && bus_address_equal(named.driver, call->named_driver) &&
           named.deadline_ms == call->deadline_ms && named.epoch == call->named_epoch;
}

/* ---- by its id -------------------------------------------------------------------------------
 */

void gw_follow_reject_unanswered(struct gw_call *call)
{
    gw_call_refuse(call, WIRE_TIMEOUT,
                   peg__str("the registry did not answer, and the call may go on: ask again"), 0);
}

/* The same words for a call that never was and for another principal's. Nobody knows here whether
 * it has run. */
static void reject_unfollowed(struct gw_call *call)
{
    if (call->may_run_elsewhere)
        gw_call_refuse(call, WIRE_OUTCOME_UNKNOWN,
                       peg__str("this gateway does not know the call: it was restarted since, and "
                                "lost what it knew of calls; the call may have been started, and "
                                "run still: look before you repeat it"),
                       0);
    else
        gw_call_refuse(call, WIRE_NOT_FOUND,
                       peg__str("there is no such call (any more): it ended too long ago (results "
                                "are kept for RESULT_STREAM_MAPPING_TTL), the gateway was "
                                "restarted since, or it was not started for want of a provider or "
                                "of room; it may have run: look before you repeat it"),
                       0);
}

void gw_follow_again(struct gw_call *call, struct peg__blob *named)
{
    if (named)
        gw_follow(call, named);
    else if ((call->tool && call->named) || call->why_not)
        gw_admit_again(call);
    else
        reject_unfollowed(call);
}

/* Is it its principal's? If not, or if that is not known, it is refused. */
static bool is_of_principal(struct gw_call *call, const struct bus_answer *answer,
                            struct gw_named *ret_named)
{
    if (answer->status)
        gw_follow_reject_unanswered(call);
    else if (gw_named_read(answer->current, ret_named) &&
             peg__str_eq(ret_named->principal, peg__blob_str(call->request)))
        return true;
    else
        reject_unfollowed(call);
    return false;
}

static void on_awaited(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);
    struct gw_named named;

    if (!is_of_principal(call, answer, &named))
        return;
    call->request = peg__blob_unref(call->request);
    gw_follow(call, answer->current);
}

static void on_stopped(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);
    const struct gw_outcome told = {.outcome = GW_CANCELED};
    struct bus_message letter = {
        .kind = BUS_STOP,
        .id = call->entry.id,
        .from = call->desk->bus->self,
    };
    struct gw_named named;
    struct gw_caller *caller = call->callers;

    if (!is_of_principal(call, answer, &named))
        return;
    bus_send(call->desk->bus, named.driver, &letter, NULL);
    gw_call_take_caller(caller);
    gw_call_drop(call);
    caller->events->on_end(caller, &told);
}

/* The principal lies where the request would, until it is known whose call it is. Whoever guesses
 * an id hears and changes nothing of it: no letter about the call is for him, and he does not count
 * among those who wait. */
static void ask_whose(struct gw_calls *desk, const struct bus_id *id, peg_str principal,
                      int64_t deadline_ns, struct gw_caller *caller,
                      void (*fn)(struct bus_wait *wait, const struct bus_answer *answer))
{
    const struct gw_outcome no_memory = {
        .outcome = GW_REFUSED,
        .error = WIRE_OVERLOADED,
        .message = PEG_LIT("the gateway has too many calls (PEG_LIMIT_GATEWAY_CALLS), of this "
                           "principal or of all, or too little memory: try again later"),
        .retry_after_ms = 1000,
    };
    const uint16_t account = gw_calls_quota_key(desk, principal);
    /* To end a call takes room for a moment, and makes some. */
    const bool has_room = fn == on_stopped
                              ? peg__quota_used(&desk->quotas.calls) < desk->options.max_calls
                              : gw_quota_has_wait(desk, account);
    struct gw_call *call = has_room ? gw_call_new(desk, id, account) : NULL;
    struct bus_key key;

    caller->call = NULL;
    if (call)
        call->request = peg__blob_copy(principal);
    if (!call || !call->request) {
        if (call)
            gw_call_drop(call);
        caller->events->on_end(caller, &no_memory);
        return;
    }
    call->step = GW_ASKING;
    call->may_run_elsewhere = caller->was_asked_elsewhere;
    gw_call_add_caller(call, caller);
    bus_arm(desk->bus, &call->deadline, gw_give_up_ns(bus_now_ns(desk->bus), deadline_ns));
    key = gw_call_key(call, BUS_IDENTITY, 0);
    call->wait.fn = fn;
    bus_read(desk->bus, &key, &call->wait);
}

void gw_calls_await(struct gw_calls *desk, const struct bus_id *id, peg_str principal,
                    int64_t deadline_ns, struct gw_caller *caller)
{
    ask_whose(desk, id, principal, deadline_ns, caller, on_awaited);
}

void gw_calls_cancel(struct gw_calls *desk, const struct bus_id *id, peg_str principal,
                     struct gw_caller *caller)
{
    ask_whose(desk, id, principal, NET_NEVER, caller, on_stopped);
}

/* ---- taking over -----------------------------------------------------------------------------
 */

static void walk_followed(struct gw_call *call);
static void on_owner_lease(struct bus_wait *wait, const struct bus_answer *answer);

static bool is_long_over(const struct gw_call *call)
{
    return bus_now_ms(call->desk->bus) > call->deadline_ms + call->desk->options.grace_ms;
}

/* The open attempt is this desk's, revoked: it drives the call now. */
static void drive(struct gw_call *call, uint64_t epoch)
{
    call->attempt = call->walk;
    call->n_astray++;          /* nobody knows what the other one sent */
    call->may_have_run = true; /* nor, in which attempts after this one */
    if (epoch != call->named_epoch) {
        gw_settle_unknown(call, "the registry lost its state while the call was under way");
        return;
    }
    if (!call->tool || bus_now_ms(call->desk->bus) >= call->deadline_ms) {
        call->ending = BUS_DEADLINE;
        gw_settle_unstarted(call);
        return;
    }
    call->incarnation[0] = '\0';
    if (call->ending)
        gw_settle_unstarted(call);
    else
        gw_send(call);
}

static void give_up_lost(struct gw_call *call)
{
    call->attempt = call->walk;
    call->n_astray++;
    gw_settle_unknown(call, "the provider, or the gateway it was attached to, was lost while the "
                            "tool was running");
}

static void name_again(struct gw_call *call);

/* There was no name, and perhaps there is one again. */
static bool is_forgotten(const struct gw_call *call, const struct bus_answer *answer)
{
    return !answer->status && (call->named ? answer->written : !answer->current);
}

static void on_pause_over(struct net_timer *timer)
{
    name_again(peg__container_of(timer, struct gw_call, again));
}

static void on_followed_name(struct bus_wait *wait, const struct bus_answer *answer)
{
    enum { PAUSE_NS = 50000000 };
    struct gw_call *call = of_wait(wait);
    struct bus *bus = call->desk->bus;

    if (answer->status == PEG_EIO) {
        call->again.fn = on_pause_over;
        bus_arm(bus, &call->again, bus_now_ns(bus) + PAUSE_NS);
        return;
    }
    call->mark = peg__blob_unref(call->mark);
    if (call->is_owner_lost && !is_forgotten(call, answer))
        give_up_lost(call);
    else
        drive(call, answer->epoch);
}

/* Its driver was alive after all, perhaps, and has ended it as one that nobody could run. Then its
 * registers are forgotten, and what was taken is the first attempt of a call that has no name yet.
 * Somebody who has named it meanwhile finds the mark in his way, and follows. */
static void name_again(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_followed_name;
    if (call->named)
        bus_put_if_absent(call->desk->bus, &key, call->named, gw_call_keep_until(call),
                          &call->wait);
    else
        bus_read(call->desk->bus, &key, &call->wait);
}

static void on_taken(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);

    if (!answer->status && answer->written) {
        name_again(call);
    } else {
        gw_recheck_soon(call); /* somebody was faster, or it is not known */
    }
}

static void take_followed(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_CLAIM, call->walk);

    if (!call->mark)
        call->mark = gw_calls_claim_token(call->desk, GW_REVOKED);
    if (!call->mark) {
        gw_recheck_soon(call);
        return;
    }
    call->wait.fn = on_taken;
    bus_put_if_absent(call->desk->bus, &key, call->mark, gw_call_keep_until(call), &call->wait);
}

static void ask_owner_lease(struct gw_call *call, const struct peg__blob *mark)
{
    char driver[BUS_ADDRESS_TEXT];
    struct bus_address address;
    peg_str name = gw_claim_token_owner(mark, &address);

    call->driver = (struct bus_address){0};
    if (peg__str_is(name, GW_REVOKED)) {
        bus_address_print(address, driver);
        name = peg__str(driver);
        call->driver = address;
    }
    call->wait.fn = on_owner_lease;
    bus_leases(call->desk->bus, &name, 1, &call->wait);
}

/* It was asked for before, and the answer was lost. */
static bool is_own_mark(const struct gw_call *call, const struct peg__blob *mark)
{
    return call->mark && peg__str_eq(peg__blob_str(call->mark), peg__blob_str(mark));
}

static bool is_ended(const struct peg__blob *mark)
{
    struct bus_address address;

    return peg__str_is(gw_claim_token_owner(mark, &address), GW_ENDED);
}

/* Its driver was lost just before it could say that the call was not started; or it was not, and
 * has said so. Nothing is written for it: it may have forgotten the call, and somebody have asked
 * for it anew. */
static void end_for_driver(struct gw_call *call)
{
    gw_call_refuse(call, WIRE_SERVICE_UNAVAILABLE,
                   peg__str("the call was not started, and the node that should have was lost: ask "
                            "again later, or with another identity"),
                   0);
}

static void on_walked(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);

    if (answer->status)
        gw_recheck_soon(call);
    else if (answer->current && is_ended(answer->current))
        end_for_driver(call);
    else if (answer->current && is_own_mark(call, answer->current))
        name_again(call);
    else if (answer->current)
        ask_owner_lease(call, answer->current);
    else
        take_followed(call);
}

/* Who owns the attempt: a driver that revoked it, or a provider that ran it. It may have given it
 * back, and the driver have gone on, or have ended the call and forgotten it: the attempt behind it
 * tells, and with that the right to say what became of the call. */
static void on_owner_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_wait(wait);
    const bool is_driver = call->driver.node != 0;
    const bool is_alive = !answer->status && answer->n_addresses && answer->addresses[0].node;

    if (answer->status || (is_alive && !is_long_over(call))) {
        gw_recheck_soon(call);
        return;
    }
    call->is_owner_lost |= !is_driver;
    if (call->walk < PEG_LIMIT_GATEWAY_ATTEMPTS + 1) {
        call->walk++;
        walk_followed(call);
    } else {
        give_up_lost(call);
    }
}

static void walk_followed(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_CLAIM, call->walk);

    call->wait.fn = on_walked;
    bus_read(call->desk->bus, &key, &call->wait);
}

void gw_follow_take_over(struct gw_call *call)
{
    bus_forget_wait(call->desk->bus, &call->wait);
    call->walk = 1;
    call->is_owner_lost = false;
    walk_followed(call);
}
