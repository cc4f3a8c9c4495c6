/* SPDX-License-Identifier: Apache-2.0 */

/* One call at its provider's loop: the list it is in, what it says, and how it ends. */

#include <string.h>

#include "base/mem.h"
#include "calls/call.h"
#include "calls/provider_side.h"

/* ---- lists of assignments -------------------------------------------------------------------- */

static void list_add(struct calls_assignment_list *list, struct calls_assignment *assignment)
{
    assignment->next = NULL;
    assignment->prev = list->last;
    if (assignment->prev)
        assignment->prev->next = assignment;
    else
        list->first = assignment;
    list->last = assignment;
    list->n++;
}

static void list_remove(struct calls_assignment_list *list, struct calls_assignment *assignment)
{
    if (assignment->prev)
        assignment->prev->next = assignment->next;
    else
        list->first = assignment->next;
    if (assignment->next)
        assignment->next->prev = assignment->prev;
    else
        list->last = assignment->prev;
    assignment->next = NULL;
    assignment->prev = NULL;
    list->n--;
}

/* The loop hears how many answers are on their way. */
static void await_retry(const struct calls_loop *calls, int n)
{
    if (calls->loop)
        net_loop_await(calls->loop, n);
}

void calls_assignment_run(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;

    list_remove(&provider->queue, assignment);
    list_add(&provider->running, assignment);
    provider->calls->env->count_queued(provider->meter, -1);
    await_retry(provider->calls, 1);
}

/* ---- an assignment --------------------------------------------------------------------------- */

static void retry_assignment(struct net_timer *timer)
{
    calls_complete_retry(peg__container_of(timer, struct calls_assignment, again));
}

/* It begins in the queue. */
struct calls_assignment *calls_assignment_new(struct calls_provider *provider,
                                              const struct bus_id *id, uint32_t attempt)
{
    struct calls_assignment *assignment =
        (struct calls_assignment *)peg__alloc_zero(1, sizeof(*assignment));

    if (!assignment)
        return NULL;
    assignment->entry.id = *id;
    assignment->entry.attempt = attempt;
    if (calls_table_add(&provider->calls->assignments, &assignment->entry)) {
        peg__free(assignment);
        return NULL;
    }
    assignment->provider = provider;
    peg__quota_add(&provider->calls->quotas.assignments, provider->account, 1);
    assignment->again.fn = retry_assignment;
    list_add(&provider->queue, assignment);
    provider->calls->env->count_queued(provider->meter, 1);
    return assignment;
}

static size_t request_len(const struct calls_assignment *assignment)
{
    return assignment->request ? assignment->request->len : 0;
}

static void tell_dropped(const struct calls_assignment *assignment)
{
    const struct calls_provider *provider = assignment->provider;

    if (!provider->is_away && provider->events->dropped)
        provider->events->dropped(provider->user, &assignment->entry.id, assignment->entry.attempt);
}

void calls_assignment_drop(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;
    struct bus *bus = provider->calls->bus;

    bus_forget_wait(bus, &assignment->wait);
    bus_forget_wait(bus, &assignment->waiters);
    bus_disarm(bus, &assignment->again);
    if (assignment->check)
        calls_check_forget(assignment->check);
    calls_reported_verify(assignment);
    if (assignment->step == CALLS_QUEUED) {
        provider->queued_bytes -= request_len(assignment);
        provider->calls->env->count_queued(provider->meter, -1);
        list_remove(&provider->queue, assignment);
    } else {
        if (provider->unchecked == assignment)
            provider->unchecked = assignment->next;
        list_remove(&provider->running, assignment);
        await_retry(provider->calls, -1);
        tell_dropped(assignment);
    }
    calls_table_remove(&provider->calls->assignments, &assignment->entry);
    peg__quota_give_back(&provider->calls->quotas.assignments, provider->account, 1);
    peg__blob_unref(assignment->request);
    peg__blob_unref(assignment->token);
    peg__blob_unref(assignment->outcome);
    peg__blob_unref(assignment->placeholder);
    peg__free(assignment);
    calls_evict_if_done(provider);
}

void calls_assignment_send(struct calls_assignment *assignment, enum bus_message_kind kind,
                           struct peg__blob *body)
{
    struct calls_provider *provider = assignment->provider;
    struct bus_message message = {
        .kind = kind,
        .id = assignment->entry.id,
        .attempt = assignment->entry.attempt,
        .epoch = assignment->epoch,
        .from = provider->calls->bus->self,
        .body = body,
    };

    memcpy(message.incarnation, provider->incarnation, sizeof(message.incarnation));
    bus_send(provider->calls->bus, assignment->coordinator, &message, NULL);
}

void calls_assignment_nak(struct calls_assignment *assignment, enum bus_reason reason,
                          bool was_claimed)
{
    struct calls_provider *provider = assignment->provider;
    struct bus_message message = {
        .kind = BUS_NAK,
        .reason = reason,
        .id = assignment->entry.id,
        .attempt = assignment->entry.attempt,
        .was_claimed = was_claimed,
        .epoch = assignment->epoch,
        .from = provider->calls->bus->self,
    };

    memcpy(message.incarnation, provider->incarnation, sizeof(message.incarnation));
    bus_send(provider->calls->bus, assignment->coordinator, &message, NULL);
    calls_assignment_drop(assignment);
}

struct bus_key calls_assignment_key(const struct calls_assignment *assignment, char what,
                                    uint32_t n)
{
    return (struct bus_key){
        .id = assignment->entry.id,
        .what = what,
        .n = n,
        .is_node_local = calls_id_is_node_local(&assignment->entry.id),
        .account = assignment->account,
    };
}

/* Of a call that was reported the deadline is not known, and its coordinator may look as late as
 * that. Of one with an identity it is looked for before its end is written: see complete.c. */
int64_t calls_assignment_keep_until(const struct calls_assignment *assignment)
{
    const struct calls_loop *calls = assignment->provider->calls;

    return assignment->deadline_ms
               ? calls_keep_until(calls, &assignment->entry.id, assignment->deadline_ms)
               : bus_now_ms(calls->bus) + calls->options.keep_ms;
}
