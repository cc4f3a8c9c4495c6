/* SPDX-License-Identifier: Apache-2.0 */

/* Assignments of a loop: executes the actions of their machines on the bus and at their providers,
 * and feeds what comes of it back. */

#include <string.h>

#include "base/limits/recent.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/provider/provider_side.h"

// NOLINTBEGIN(misc-no-recursion): a step is one state further, and is_pumping ends the rest

static void step(struct calls_assignment *assignment, const struct calls_assignment_event *event,
                 const struct bus_answer *answer, struct peg__blob *output);

/* ---- its life -------------------------------------------------------------------------------- */

/* The loop learns how many answers it awaits. */
static void count_listed(const struct calls_assignment *assignment, int by)
{
    struct calls_provider *provider = assignment->provider;
    const size_t len = peg__blob_str(assignment->request).len;

    if (assignment->list == &provider->queue) {
        provider->calls->env->count_queued(provider->meter, by);
        provider->queued_bytes += by > 0 ? len : 0 - len;
    } else if (provider->calls->loop) {
        net_loop_await(provider->calls->loop, by);
    }
}

static void add_to(struct calls_assignment_list *list, struct calls_assignment *assignment)
{
    assignment->list = list;
    PEG_QUEUE_APPEND(list, assignment, next, prev);
    list->n++;
    count_listed(assignment, 1);
}

static void take_out(struct calls_assignment *assignment)
{
    PEG_QUEUE_REMOVE(assignment->list, assignment, next, prev);
    assignment->list->n--;
    count_listed(assignment, -1);
}

static enum calls_assignment_scope scope_of(const struct calls_loop *calls, const struct bus_id *id,
                                            struct bus_address coordinator)
{
    if (calls_id_is_keyed(id))
        return ASSIGNMENT_KEYED;
    if (!calls_id_is_node_local(id))
        return ASSIGNMENT_SHARED;
    return coordinator.node == calls->bus->self.node ? ASSIGNMENT_LOCAL : ASSIGNMENT_FOREIGN;
}

static void on_retry(struct net_timer *timer)
{
    calls_assignment_feed(peg__container_of(timer, struct calls_assignment, retry),
                          ASSIGNMENT_ON_RETRY);
}

struct calls_assignment *calls_assignment_new(struct calls_provider *provider,
                                              const struct bus_id *id, uint32_t attempt,
                                              struct bus_address coordinator,
                                              struct peg__blob *request)
{
    struct calls_loop *calls = provider->calls;
    struct calls_assignment *assignment =
        (struct calls_assignment *)peg__spares_take(&calls->spare_assignments, sizeof(*assignment));

    if (!assignment)
        return NULL;
    *assignment = (struct calls_assignment){
        .entry = {.id = *id, .attempt = attempt},
        .provider = provider,
        .machine = {.state = request ? ASSIGNMENT_QUEUED : ASSIGNMENT_REPORTED,
                    .right = request ? ASSIGNMENT_CLAIMED : ASSIGNMENT_CLAIMS,
                    .scope = scope_of(calls, id, coordinator)},
        .coordinator = coordinator,
        .retry.fn = on_retry,
    };
    if (calls_table_add(&calls->assignments, &assignment->entry)) {
        peg__spares_give(&calls->spare_assignments, assignment, PEG_LIMIT_GATEWAY_SPARE_CALLS);
        return NULL;
    }
    assignment->request = peg__blob_ref(request);
    peg__quota_add(&calls->quotas.assignments, provider->account, 1);
    add_to(request ? &provider->queue : &provider->running, assignment);
    return assignment;
}

static void count_unknown(struct calls_provider *provider, bool was_unknown, bool is_unknown)
{
    provider->n_unknown += (size_t)is_unknown - was_unknown;
    provider->calls->n_unknown += (size_t)is_unknown - was_unknown;
}

void calls_assignment_drop(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;
    struct calls_loop *calls = provider->calls;

    bus_forget_wait(calls->bus, &assignment->wait);
    bus_disarm(calls->bus, &assignment->retry);
    if (assignment->check)
        calls_check_forget(assignment->check);
    calls_gate_drop(assignment);
    count_unknown(provider, assignment->machine.unknown_ns, false);
    if (provider->unchecked == assignment)
        provider->unchecked = assignment->next;
    take_out(assignment);
    if (assignment->list == &provider->running && !calls_provider_is_away(provider) &&
        provider->events->dropped)
        provider->events->dropped(provider->user, &assignment->entry.id, assignment->entry.attempt);
    calls_table_remove(&calls->assignments, &assignment->entry);
    peg__quota_give_back(&calls->quotas.assignments, provider->account, 1);
    peg__blob_unref(assignment->request);
    peg__blob_unref(assignment->value);
    peg__blob_unref(assignment->placeholder);
    peg__spares_give(&calls->spare_assignments, assignment, PEG_LIMIT_GATEWAY_SPARE_CALLS);
    /* An evicted provider goes with its last call. From a timer: our caller still uses it. */
    if (provider->eviction && !calls_provider_is_away(provider))
        calls_arm(calls, &provider->eviction_timer, 0);
}

struct calls_assignment *calls_assignment_find(const struct calls_loop *calls,
                                               const struct bus_id *id, uint32_t attempt)
{
    return (struct calls_assignment *)calls_table_find(&calls->assignments, id, attempt);
}

struct calls_assignment *calls_assignment_find_by(const struct calls_provider *provider,
                                                  const struct bus_id *id, uint32_t attempt)
{
    struct calls_entry *entry =
        provider ? calls_table_find(&provider->calls->assignments, id, attempt) : NULL;

    while (entry && ((struct calls_assignment *)entry)->provider != provider)
        entry = calls_table_again(entry);
    return (struct calls_assignment *)entry;
}

struct calls_assignment *calls_assignment_find_running(const struct calls_provider *provider,
                                                       const struct bus_id *id, uint32_t attempt)
{
    struct calls_assignment *assignment = calls_assignment_find_by(provider, id, attempt);

    return assignment && calls_assignment_is_at_provider(&assignment->machine) ? assignment : NULL;
}

/* ---- registers ------------------------------------------------------------------------------- */

struct bus_key calls_assignment_key(const struct calls_assignment *assignment,
                                    enum bus_register what, uint32_t question)
{
    struct bus_key key = calls_key(&assignment->entry.id, what, question);

    key.account = assignment->account;
    if (what == BUS_CLAIM) {
        /* The first claim of an id shows whether a call of this node has it. */
        key.n = assignment->machine.scope == ASSIGNMENT_FOREIGN ? 1 : assignment->entry.attempt;
        /* One with an identity was admitted when that was written. */
        key.admits = assignment->machine.scope != ASSIGNMENT_KEYED;
    }
    return key;
}

/* The deadline of a call that was reported is not known, and its coordinator may read as late as
 * that. */
int64_t calls_assignment_keep_until(const struct calls_assignment *assignment)
{
    const struct calls_loop *calls = assignment->provider->calls;
    const int64_t deadline_ms = assignment->machine.deadline_ms;

    return deadline_ms
               ? calls_keep_until(&assignment->entry.id, deadline_ms, calls->options.keep_ms)
               : bus_now_ms(calls->bus) + calls->options.keep_ms;
}

static bool holds_own(const struct calls_assignment *assignment, const struct bus_answer *answer)
{
    const peg_str current = peg__blob_str(answer->current);

    return answer->written || (assignment->placeholder &&
                               (peg__str_eq(current, peg__blob_str(assignment->value)) ||
                                peg__str_eq(current, peg__blob_str(assignment->placeholder))));
}

enum bus_reason calls_provider_closed(const struct calls_provider *provider)
{
    if (provider->place != CALLS_HERE || provider->eviction)
        return BUS_GONE;
    return provider->is_draining ? BUS_DRAINING : BUS_NO_REASON;
}

/* How long an answer to a claim may take. A node that stood still for longer may be lost to the
 * others soon; with a second they are not held up for long. */
static int64_t claim_trust_ns(const struct calls_loop *calls)
{
    enum { MOST_MS = 1000, PART_OF_LEASE = 10 };
    const int64_t part_ms = calls->options.lease_ms / PART_OF_LEASE;

    return (part_ms < MOST_MS ? part_ms : (int64_t)MOST_MS) * 1000000;
}

static void on_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, wait);
    struct bus *bus = assignment->provider->calls->bus;
    struct calls_assignment_event event = {
        .kind = ASSIGNMENT_ON_ANSWER,
        .status = answer->status,
        .is_there = answer->current != NULL,
        .epoch = answer->epoch,
        .asked_ns = answer->asked_ns,
        .now_ns = bus_now_ns(bus),
    };
    struct calls_identity identity;
    struct bus_address address;

    switch (assignment->machine.state) {
    case ASSIGNMENT_CLAIMING:
        event.is_own = answer->written;
        event.trust_ns = claim_trust_ns(assignment->provider->calls);
        event.now_ms = bus_now_ms(bus);
        event.closed = calls_provider_closed(assignment->provider);
        break;
    case ASSIGNMENT_WRITING:
    case ASSIGNMENT_WRITING_PLACEHOLDER:
        event.is_own = holds_own(assignment, answer);
        break;
    case ASSIGNMENT_READING_DEADLINE:
        event.deadline_ms = calls_identity_read(answer->current, &identity) ? identity.deadline_ms
                                                                            : bus_now_ms(bus);
        break;
    default:
        event.is_own = peg__str_eq(calls_claim_token_owner(answer->current, &address),
                                   peg__str(assignment->provider->incarnation));
        break;
    }
    step(assignment, &event, answer, NULL);
}

static void put(struct calls_assignment *assignment, enum bus_register what,
                struct peg__blob *value)
{
    const struct bus_key key = calls_assignment_key(assignment, what, 0);

    assignment->wait.fn = on_answer;
    bus_put_if_absent(assignment->provider->calls->bus, &key, value,
                      calls_assignment_keep_until(assignment), &assignment->wait);
}

static void read_register(struct calls_assignment *assignment, enum bus_register what)
{
    const struct bus_key key = calls_assignment_key(assignment, what, 0);

    assignment->wait.fn = on_answer;
    if (what == BUS_WAITERS)
        bus_waiters(assignment->provider->calls->bus, &key, &assignment->wait);
    else
        bus_read(assignment->provider->calls->bus, &key, &assignment->wait);
}

/* One that takes no less room than the outcome has none, either. */
static void put_placeholder(struct calls_assignment *assignment)
{
    const struct bus_answer no_memory = {.status = PEG_ENOMEM};
    const struct bus_answer no_room = {.status = PEG_ELIMIT};

    if (!assignment->placeholder)
        assignment->placeholder = calls_outcome_placeholder(
            assignment->entry.attempt, assignment->value->len, assignment->account != 0);
    if (!assignment->placeholder)
        on_answer(&assignment->wait, &no_memory);
    else if (assignment->placeholder->len >= assignment->value->len)
        on_answer(&assignment->wait, &no_room);
    else
        put(assignment, BUS_RESULT, assignment->placeholder);
}

/* ---- actions --------------------------------------------------------------------------------- */

void calls_assignment_send(const struct calls_assignment *assignment, struct bus_address to,
                           const struct calls_assignment_action *action, struct peg__blob *body)
{
    struct bus *bus = assignment->provider->calls->bus;
    struct bus_message message = {
        .kind = action->message,
        .reason = action->reason,
        .id = assignment->entry.id,
        .attempt = assignment->entry.attempt,
        .was_claimed = action->was_claimed,
        .epoch = assignment->machine.epoch,
        .from = bus->self,
        .body = body,
    };

    /* To other loops it answers nothing that they sent. */
    if (bus_address_equal(to, assignment->coordinator))
        memcpy(message.incarnation, assignment->provider->incarnation, sizeof(message.incarnation));
    bus_send(bus, to, &message, NULL);
}

static void send_waiters(const struct calls_assignment *assignment, const struct bus_answer *answer)
{
    const struct calls_assignment_action done = {.message = BUS_DONE};

    for (size_t i = 0; answer && i < answer->n_addresses; i++)
        if (!bus_address_equal(answer->addresses[i], assignment->coordinator))
            calls_assignment_send(assignment, answer->addresses[i], &done, assignment->value);
}

/* A little less than the coordinator waits, so that the tool's own word about being late is first.
 */
static int64_t time_for_provider(const struct calls_assignment *assignment)
{
    const int64_t left_ms =
        assignment->machine.deadline_ms - bus_now_ms(assignment->provider->calls->bus);
    const int64_t spare_ms = left_ms / 20 < 100 ? left_ms / 20 : 100;

    return left_ms - spare_ms > 1 ? left_ms - spare_ms : 1;
}

/* The provider may give it back before this returns. */
static void hand_over(struct calls_assignment *assignment)
{
    const struct calls_provider *provider = assignment->provider;
    struct peg__blob *request = assignment->request;
    const struct bus_id id = assignment->entry.id;
    const struct calls_handed handed = {
        .id = &id,
        .attempt = assignment->entry.attempt,
        .call = peg__blob_str(request),
        .timeout_ms = time_for_provider(assignment),
        .deadline_ms = assignment->machine.deadline_ms,
        .route = assignment->coordinator,
    };

    assignment->value = peg__blob_unref(assignment->value);
    assignment->request = NULL;
    provider->events->hand(provider->user, &handed);
    peg__blob_unref(request);
}

/* Behind a drop come only actions that need no assignment. */
static void step(struct calls_assignment *assignment, const struct calls_assignment_event *event,
                 const struct bus_answer *answer, struct peg__blob *output)
{
    struct calls_provider *provider = assignment->provider;
    struct calls_loop *calls = provider->calls;
    const struct bus_id id = assignment->entry.id;
    const uint32_t attempt = assignment->entry.attempt;
    const bool was_unknown = assignment->machine.unknown_ns;
    struct calls_assignment_actions actions;

    calls_assignment_step(&assignment->machine, event, &actions);
    count_unknown(provider, was_unknown, assignment->machine.unknown_ns);
    for (unsigned i = 0; i < actions.n; i++) {
        const struct calls_assignment_action *action = &actions.list[i];

        switch (action->kind) {
        case ASSIGNMENT_PUT:
            put(assignment, action->what, assignment->value);
            break;
        case ASSIGNMENT_PUT_PLACEHOLDER:
            put_placeholder(assignment);
            break;
        case ASSIGNMENT_READ:
            read_register(assignment, action->what);
            break;
        case ASSIGNMENT_SEND:
            calls_assignment_send(assignment, assignment->coordinator, action,
                                  action->message == BUS_DONE ? assignment->value : output);
            break;
        case ASSIGNMENT_SEND_WAITERS:
            send_waiters(assignment, answer);
            break;
        case ASSIGNMENT_HAND_OVER:
            hand_over(assignment);
            break;
        case ASSIGNMENT_CANCEL:
            if (!calls_provider_is_away(provider))
                provider->events->cancel(provider->user, &id, attempt, action->reason);
            break;
        case ASSIGNMENT_ARM:
            calls_arm(calls, &assignment->retry, action->delay_ms);
            break;
        case ASSIGNMENT_COUNT_LATE:
            calls->n_late++;
            calls->env->count_late_result(provider->meter);
            break;
        case ASSIGNMENT_DROP:
            calls_assignment_drop(assignment);
            break;
        case ASSIGNMENT_ACKNOWLEDGE:
            if (!calls_provider_is_away(provider))
                provider->events->ack(provider->user, &id, attempt);
            break;
        case ASSIGNMENT_PUMP:
            calls_provider_pump(provider);
            break;
        }
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void calls_assignment_feed_with(struct calls_assignment *assignment,
                                enum calls_assignment_event_kind kind, enum bus_reason reason,
                                struct peg__blob *output)
{
    const struct calls_assignment_event event = {
        .kind = kind,
        .reason = reason,
        .now_ns = bus_now_ns(assignment->provider->calls->bus),
    };

    step(assignment, &event, NULL, output);
}

/* ---- the queue of a provider ----------------------------------------------------------------- */

static void claim(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;

    assignment->value = calls_claim_token(provider->calls->bus->self, provider->incarnation,
                                          ++provider->calls->n_tokens);
    if (!assignment->value) {
        calls_assignment_feed_with(assignment, ASSIGNMENT_ON_REFUSE, BUS_FULL, NULL);
        return;
    }
    take_out(assignment);
    add_to(&provider->running, assignment);
    calls_assignment_feed(assignment, ASSIGNMENT_ON_PLACE);
}

/* Answers may come at once and pump again: the outermost one goes on. */
void calls_provider_pump(struct calls_provider *provider)
{
    if (provider->is_pumping || provider->place != CALLS_HERE)
        return;
    provider->is_pumping = true;
    while (provider->queue.first && provider->running.n - provider->n_unknown < provider->credits &&
           provider->events->is_ready(provider->user))
        claim(provider->queue.first);
    provider->is_pumping = false;
}

void calls_provider_refuse_queue(struct calls_provider *provider, enum bus_reason reason)
{
    while (provider->queue.first)
        calls_assignment_feed_with(provider->queue.first, ASSIGNMENT_ON_REFUSE, reason, NULL);
}

// NOLINTEND(misc-no-recursion)
