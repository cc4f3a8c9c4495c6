/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that a provider lists in its Hello: it says that it has them, and does not know what became
 * of them meanwhile. Their coordinators learn where it is, and the registers show whose they are:
 *
 *   result and claim of the attempt:
 *
 *     the claim names it     verified; with a result it is over, and its provider may stop
 *     it does not, or none   of this node: as if it were over; of another one: unknown
 *
 * What is another provider's is treated as what there never was: a provider that lists it learns
 * nothing. Unknown calls take no place, and no node waits for them; after a while they are dropped,
 * unless their coordinator asks for them or their provider speaks of them.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "calls/provider/provider_side.h"
#include "calls/quota.h"

/* Several times before anything is dropped, and less often than coordinators ask. */
enum { REVIEW_MS = PEG_LIMIT_GATEWAY_REPORTED_MS / 6 };

/* A loop that drains waits for calls that may have ended elsewhere. */
enum { DRAIN_REVIEW_MS = 1000 };

/* So many are looked at before others have their turn: that takes a tenth of a millisecond, and
 * PEG_LIMIT_GATEWAY_CREDITS of them take some tens of rounds. */
enum { CHECKS_AT_ONCE = 512 };

/* Ids are random, so an assignment is in no cache: it is fetched while so many others are taken. */
enum { AHEAD = 8 };

/* ---- the list -------------------------------------------------------------------------------- */

/* A call that another loop handed to the provider, or one that is no more. */
static peg_status adopt(struct calls_provider *provider, const struct calls_running *running,
                        peg_error *reterr)
{
    struct calls_loop *calls = provider->calls;
    const char *why_not = calls_quota_reject_report(calls, provider->account);
    struct calls_assignment *assignment;

    if (why_not)
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL", "%s", why_not);
    assignment =
        calls_assignment_new(provider, &running->id, running->attempt, running->route, NULL);
    if (!assignment)
        return peg__fail_nomem(reterr);
    assignment->machine.epoch = bus_epoch(calls->bus);
    assignment->tool = calls->env->find_tool(calls->user, provider->toolset, running->tool);
    return PEG_OK;
}

static void forget_unverified(struct calls_provider *provider)
{
    struct calls_assignment *next;

    for (struct calls_assignment *each = provider->running.first; each; each = next) {
        next = each->next;
        if (each->machine.right == ASSIGNMENT_CLAIMS &&
            calls_assignment_is_at_provider(&each->machine))
            calls_assignment_drop(each);
    }
}

/* The provider got it from another loop, to which its coordinator sent it too: the message that
 * came here is a duplicate. If it stayed, it would be in the way of what the provider answers.
 * NULL. */
static struct calls_assignment *note_listed(struct calls_assignment *assignment)
{
    const bool is_duplicate = assignment->machine.state <= ASSIGNMENT_CLAIMING;

    calls_assignment_feed(assignment, ASSIGNMENT_ON_LISTED);
    return is_duplicate ? NULL : assignment;
}

/* Each is looked up once: there may be thousands. What the provider has, and lists behind one that
 * cannot be taken, is listed all the same. One that another provider has is taken like any other:
 * its answers do not count. */
peg_status calls_reattach_take(struct calls_provider *provider, const struct calls_attach *attach,
                               peg_error *reterr)
{
    peg_status status = PEG_OK;

    provider->has_unchecked = false;
    for (struct calls_assignment *each = provider->running.first; each; each = each->next)
        calls_assignment_feed(each, ASSIGNMENT_ON_HELLO);
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct calls_running *running = &attach->running[i];
        struct calls_assignment *assignment =
            calls_assignment_find_by(provider, &running->id, running->attempt);

        if (i + AHEAD < attach->n_running)
            calls_table_expect(&provider->calls->assignments, &running[AHEAD].id,
                               running[AHEAD].attempt);
        if (assignment)
            assignment = note_listed(assignment);
        if (!assignment && !status)
            status = adopt(provider, running, reterr);
    }
    if (status)
        forget_unverified(provider);
    return status;
}

/* What it was handed and does not list never reached it; or it has been elsewhere meanwhile, and
 * has finished it there: then nothing is known, and nothing is sent. */
void calls_reattach_drop_unlisted(struct calls_provider *provider,
                                  const struct calls_attach *attach)
{
    const bool was_elsewhere = !attach->number || attach->number != provider->number + 1;
    struct calls_assignment *next;

    for (struct calls_assignment *each = provider->running.first; each; each = next) {
        next = each->next;
        if (each->machine.state != ASSIGNMENT_RUNNING)
            continue;
        if (was_elsewhere)
            calls_assignment_feed(each, ASSIGNMENT_ON_UNLISTED);
        else
            calls_assignment_feed_with(each, ASSIGNMENT_ON_GIVE_BACK, BUS_GONE, NULL);
    }
}

/* ---- what became of them --------------------------------------------------------------------- */

static void arm_review(struct calls_provider *provider)
{
    calls_arm(provider->calls, &provider->review,
              provider->calls->is_draining ? DRAIN_REVIEW_MS : REVIEW_MS);
}

/* While the review is armed a part of them was looked at in this round. */
void calls_reattach_continue(struct calls_provider *provider)
{
    if (!provider->has_unchecked || provider->review.is_armed || provider->place != CALLS_HERE ||
        !provider->events->is_ready(provider->user))
        return;
    for (unsigned n = 0; provider->unchecked && n < CHECKS_AT_ONCE; n++) {
        struct calls_assignment *assignment = provider->unchecked;

        provider->unchecked = assignment->next;
        calls_assignment_feed(assignment, ASSIGNMENT_ON_NOTIFY);
    }
    provider->has_unchecked = provider->unchecked;
    if (provider->unchecked)
        calls_arm(provider->calls, &provider->review, 0);
    else
        arm_review(provider);
}

static void on_review(struct net_timer *timer)
{
    struct calls_provider *provider = peg__container_of(timer, struct calls_provider, review);
    bool has_any = false;
    struct calls_assignment *next;

    if (provider->place & CALLS_MOVED)
        provider->has_unchecked = false; /* it has listed them elsewhere */
    if (provider->has_unchecked) {
        calls_reattach_continue(provider);
        return;
    }
    for (struct calls_assignment *each = provider->running.first; each; each = next) {
        next = each->next;
        has_any = has_any || each->machine.right != ASSIGNMENT_CLAIMED;
        calls_assignment_feed(each, ASSIGNMENT_ON_REVIEW);
    }
    if (has_any)
        arm_review(provider);
}

void calls_reattach_begin_drain(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next)
        if (provider->review.is_armed && !provider->has_unchecked)
            arm_review(provider);
}

void calls_reattach_begin(struct calls_provider *provider)
{
    provider->has_unchecked = true;
    provider->unchecked = provider->running.first;
    provider->review.fn = on_review;
    bus_disarm(provider->calls->bus, &provider->review);
    calls_reattach_continue(provider);
}
