/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds the machine of a call with events and executes its actions, in order. A request to the bus
 * may be answered before it returns, and an end frees the call: the machine asks for either last.
 */

#include "calls/caller/call.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/quota.h"

// NOLINTBEGIN(misc-no-recursion): each step is one state further, at most ten within each other

static void run(struct calls_call *call, struct calls_event *event);

/* ---- events ---- */

static void arm(struct calls_call *call, uint32_t ms)
{
    struct bus *bus = call->calls->bus;

    bus_arm(bus, &call->again, bus_now_ns(bus) + ms * INT64_C(1000000));
}

/* The call that was looked for is on this loop: its callers are one more of that. One that is not
 * admitted yet may still be another's. */
static void merge(struct calls_call *call, struct calls_call *found)
{
    enum { PAUSE_MS = 50 };

    if (found->machine.state <= CALLS_CHOOSING) {
        arm(call, PAUSE_MS);
        return;
    }
    while (call->callers) {
        struct calls_caller *caller = call->callers;

        calls_call_take_caller(caller);
        calls_call_attach_caller(found, caller, call->deadline_ns);
    }
    calls_questions_look(found);
    calls_call_drop(call);
}

static void on_located(struct calls_call *call, struct calls_event *event)
{
    struct calls_call *found = calls_find(call->calls, &call->entry.id);
    struct calls_identity identity;

    event->is_owner = calls_identity_read(event->answer->current, &identity) &&
                      peg__str_eq(identity.principal, peg__blob_str(call->principal));
    if (event->is_owner && found && call->machine.origin == CALLS_AWAITS)
        merge(call, found);
    else
        run(call, event);
}

static void on_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);
    struct calls_event event = {.kind = CALLS_ANSWER, .answer = answer};

    event.is_own_token =
        call->token.blob && answer->current &&
        peg__str_eq(peg__blob_str(call->token.blob), peg__blob_str(answer->current));
    if (call->machine.state == CALLS_LOCATING)
        on_located(call, &event);
    else
        run(call, &event);
}

static void on_sent(struct bus_wait *wait, const struct bus_answer *answer)
{
    if (!answer->status && !answer->written)
        calls_run_event(peg__container_of(wait, struct calls_call, sent), CALLS_UNRECEIVED);
}

static void on_timer(struct net_timer *timer)
{
    struct calls_call *call = peg__container_of(timer, struct calls_call, again);

    calls_questions_look(call);
    calls_run_event(call, CALLS_TIMER);
}

/* A registry that does not answer cannot say how the call ends: some time later its callers are
 * told so. */
static void on_deadline(struct net_timer *timer)
{
    struct calls_call *call = peg__container_of(timer, struct calls_call, deadline);
    const int64_t last_ns = call->deadline_ns + call->calls->options.settle_ms * INT64_C(1000000);

    for (struct calls_caller *caller = call->callers; caller; caller = caller->next)
        if (!caller->deadline.is_armed)
            calls_call_arm_caller(caller, last_ns);
    calls_run_event(call, CALLS_DEADLINE);
}

void calls_run_event(struct calls_call *call, enum calls_event_kind kind)
{
    run(call, &(struct calls_event){.kind = kind});
}

void calls_run_message(struct calls_call *call, const struct bus_message *message)
{
    struct calls_loop *calls = call->calls;

    if (message->kind == BUS_NAK && message->reason == BUS_OUTDATED && call->toolset)
        calls->env->note_outdated(calls->user, call->toolset->name, message->incarnation);
    run(call, &(struct calls_event){.kind = CALLS_MESSAGE, .message = message});
}

static void arm_deadline(struct calls_call *call)
{
    bus_arm(call->calls->bus, &call->deadline, call->deadline_ns);
}

void calls_run_begin(struct calls_call *call)
{
    call->wait.fn = on_answer;
    call->sent.fn = on_sent;
    call->deadline.fn = on_deadline;
    call->again.fn = on_timer;
    arm_deadline(call);
}

static enum calls_bar find_bar(const struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    if (calls_call_is_keyed(call) && calls->is_draining)
        return CALLS_BAR_DRAINING;
    if (calls_call_is_keyed(call) && call->asked_before)
        return CALLS_BAR_ASKED_BEFORE;
    if (call->reject_reason)
        return CALLS_BAR_QUOTA;
    return calls->env->is_healthy(calls->user, call->toolset->name) ? CALLS_NO_BAR
                                                                    : CALLS_BAR_UNHEALTHY;
}

void calls_run_admit(struct calls_call *call)
{
    run(call, &(struct calls_event){.kind = CALLS_ADMIT, .bar = find_bar(call)});
}

/* ---- messages ---- */

static void send_call(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    const struct calls_machine *machine = &call->machine;
    struct bus_message message = {
        .kind = BUS_CALL,
        .id = call->entry.id,
        .attempt = machine->attempt,
        .account = call->account,
        .owner = calls_owner_hash(call->calls, call->toolset),
        .epoch = machine->sent_epoch,
        .deadline_ms = machine->deadline_ms,
        .from = bus->self,
        .body = call->request,
    };

    memcpy(message.incarnation, machine->incarnation, sizeof(message.incarnation));
    bus_send(bus, machine->address, &message, &call->sent);
}

/* Of no attempt: it answers none of the messages that a coordinator counts. */
static void send_outcome(struct calls_call *call, const struct bus_answer *answer)
{
    for (size_t i = 0; i < answer->n_addresses; i++)
        if (!bus_address_equal(answer->addresses[i], call->calls->bus->self))
            calls_send(call, answer->addresses[i], BUS_DONE, BUS_NO_REASON, call->outcome);
}

/* ---- providers ---- */

static struct calls_choice make_choice(const struct calls_call *call)
{
    return (struct calls_choice){
        .toolset = call->toolset,
        .refusals = &call->machine.refusals,
        .is_node_local = calls_id_is_node_local(&call->entry.id),
        .released = call->slot[0] ? call->slot : NULL,
    };
}

static void choose(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const struct calls_choice choice = make_choice(call);
    struct calls_chosen chosen;
    struct calls_event event = {.kind = CALLS_NO_PROVIDER};

    bus_forget_wait(calls->bus, &call->wait);
    if (call->machine.attempt >= PEG_LIMIT_GATEWAY_ATTEMPTS) {
        calls_call_release(call);
    } else if (calls->env->choose(calls->user, &choice, &chosen)) {
        memcpy(call->slot, chosen.incarnation, sizeof(call->slot));
        event.kind = CALLS_PROVIDER;
        event.address = chosen.address;
        event.incarnation = chosen.incarnation;
    } else {
        call->slot[0] = '\0';
    }
    run(call, &event);
}

static void find_provider(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const struct calls_choice choice = make_choice(call);
    struct calls_event event = {.kind = CALLS_NO_PROVIDER};

    if (calls->env->locate(calls->user, &choice, call->machine.incarnation, &event.address))
        event.kind = CALLS_PROVIDER;
    run(call, &event);
}

/* ---- requests to the bus ---- */

static int64_t keep_until(const struct calls_call *call)
{
    return calls_keep_until(&call->entry.id, call->machine.deadline_ms,
                            call->calls->options.keep_ms);
}

/* NULL: there was no memory for the value, as the machine learns from the answer. */
static void put(struct calls_call *call, enum bus_register what, uint32_t n,
                struct peg__blob *value)
{
    static const struct bus_answer no_memory = {.status = PEG_ENOMEM};
    struct bus_key key = calls_key(&call->entry.id, what, n);

    if (!value) {
        run(call, &(struct calls_event){.kind = CALLS_ANSWER, .answer = &no_memory});
        return;
    }
    key.admits = what == BUS_IDENTITY;
    key.account = call->account;
    bus_put_if_absent(call->calls->bus, &key, value, keep_until(call), &call->wait);
}

/* A put that is repeated writes the same token. */
static void put_token(struct calls_call *call, const struct calls_action *action)
{
    const bool is_repeated =
        call->token.blob && call->token.kind == action->kind && call->token.attempt == action->n;

    if (!is_repeated) {
        peg__blob_unref(call->token.blob);
        call->token.blob = calls_claim_token(call->calls->bus->self,
                                             action->kind == CALLS_PUT_ENDED ? CALLS_TOKEN_ENDED
                                                                             : CALLS_TOKEN_REVOKED,
                                             ++call->calls->n_tokens);
        call->token.kind = action->kind;
        call->token.attempt = action->n;
    }
    put(call, BUS_CLAIM, action->n, call->token.blob);
}

/* Of the provider, the owner of a claim, or a node. */
static void read_lease(struct calls_call *call, const struct calls_event *event,
                       const struct calls_action *action)
{
    char text[BUS_ADDRESS_TEXT];
    struct bus_address address;
    peg_str name = peg__str(call->machine.incarnation);

    if (action->kind == CALLS_READ_OWNER) {
        name = calls_claim_token_owner(event->answer->current, &address);
    } else if (action->kind == CALLS_READ_NODE) {
        bus_address_print(call->machine.coordinator, text);
        name = peg__str(text);
    }
    bus_leases(call->calls->bus, &name, 1, &call->wait);
}

/* Each caller waits for its own time from now on, not for the call's. */
static void list(struct calls_call *call)
{
    const struct bus_key key = calls_key(&call->entry.id, BUS_WAITERS, 0);
    struct bus *bus = call->calls->bus;

    if (call->deadline.is_armed) {
        bus_disarm(bus, &call->deadline);
        for (struct calls_caller *caller = call->callers; caller; caller = caller->next)
            if (!caller->is_attached)
                calls_call_arm_caller(caller, call->deadline_ns);
    }
    bus_wait_add(bus, &key, keep_until(call), &call->wait);
}

static void read_waiters(struct calls_call *call)
{
    const struct bus_key key = calls_key(&call->entry.id, BUS_WAITERS, 0);

    bus_waiters(call->calls->bus, &key, &call->wait);
}

/* ---- executing ---- */

static void report(struct calls_call *call, enum calls_reported reported)
{
    /* A coordinator may lose the call to a follower, follow, and admit it again. */
    if (reported == CALLS_REPORTED_ADMITTED && !call->is_counted) {
        call->calls->env->count_admitted(call->meter);
        call->is_counted = true;
    }
    call->reported = reported;
    calls_call_report(call);
    if (reported == CALLS_REPORTED_FOLLOWING)
        calls_questions_look(call);
}

static void readmit(struct calls_call *call)
{
    call->outcome = peg__blob_unref(call->outcome);
    calls_call_set_deadline(call);
    if (calls_call_renew_identity(call)) {
        arm_deadline(call);
        calls_run_admit(call);
    } else {
        calls_run_reject(call, CALLS_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
    }
}

/* The deadline of the call, not that of its callers here, settles it. */
static void coordinate(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    const int64_t left_ms = call->machine.deadline_ms - bus_now_ms(bus);

    call->outcome = peg__blob_unref(call->outcome);
    call->deadline_ns = bus_now_ns(bus) + (left_ms > 0 ? left_ms * 1000000 : 0);
    arm_deadline(call);
}

static bool wants_output(const struct calls_call *call)
{
    for (const struct calls_caller *caller = call->callers; caller; caller = caller->next)
        if (caller->events->on_output || caller->can_be_asked)
            return true;
    return false;
}

// NOLINTNEXTLINE(readability-function-size): a line or two for each action
static void execute(struct calls_call *call, const struct calls_event *event,
                    const struct calls_action *action, enum calls_state before)
{
    struct calls_machine *machine = &call->machine;
    const bool was_following = calls_state_follows(before);

    switch (action->kind) {
    case CALLS_PUT_IDENTITY:
        put(call, BUS_IDENTITY, 0, call->identity);
        break;
    case CALLS_PUT_REVOKED:
    case CALLS_PUT_ENDED:
        put_token(call, action);
        break;
    case CALLS_PUT_RESULT:
        calls_end_make_outcome(call, action->why);
        put(call, BUS_RESULT, 0, call->outcome);
        break;
    case CALLS_READ:
        calls_read_register(call->calls->bus,
                            calls_key(&call->entry.id, (enum bus_register)action->what, action->n),
                            &call->wait, on_answer);
        break;
    case CALLS_READ_LEASE:
    case CALLS_READ_NODE:
    case CALLS_READ_OWNER:
        read_lease(call, event, action);
        break;
    case CALLS_LIST:
        list(call);
        break;
    case CALLS_READ_WAITERS:
        read_waiters(call);
        break;
    case CALLS_ARM:
        arm(call, action->n);
        break;
    case CALLS_DISARM:
        bus_disarm(call->calls->bus, &call->again);
        break;
    case CALLS_CHOOSE:
        choose(call);
        break;
    case CALLS_FIND:
        find_provider(call);
        break;
    case CALLS_RELEASE:
        calls_call_release(call);
        break;
    case CALLS_SEND_CALL:
        send_call(call);
        break;
    case CALLS_SEND_CANCEL:
        calls_send(call, machine->address, BUS_CANCEL, action->reason, NULL);
        break;
    case CALLS_SEND_ASK:
        calls_send(call, machine->address, BUS_ASK, BUS_NO_REASON, NULL);
        break;
    case CALLS_SEND_LISTEN:
        if (wants_output(call))
            calls_send(call, machine->coordinator, BUS_FOLLOWER, BUS_LISTEN, NULL);
        break;
    case CALLS_SEND_STOP:
        calls_end_stopped(call, event->answer);
        break;
    case CALLS_SEND_OUTCOME:
        send_outcome(call, event->answer);
        break;
    case CALLS_REPORT_ADMITTED:
        report(call, CALLS_REPORTED_ADMITTED);
        break;
    case CALLS_REPORT_FOLLOWING:
        report(call, CALLS_REPORTED_FOLLOWING);
        break;
    case CALLS_READMIT:
        readmit(call);
        break;
    case CALLS_KEEP:
        peg__blob_unref(call->outcome);
        call->outcome = peg__blob_ref(event->answer->current);
        break;
    case CALLS_COORDINATE:
        coordinate(call);
        break;
    case CALLS_END_CURRENT:
        calls_end_with(call, event->message ? event->message->body : event->answer->current,
                       was_following);
        break;
    case CALLS_END_OWN:
        calls_end_own(call, action->why, was_following);
        break;
    case CALLS_REJECT:
        calls_end_rejected(call, action->why, before);
        break;
    case CALLS_NO_ACTION:
    case CALLS_N_ACTIONS:
        break;
    }
}

/* Nothing of the call is touched after its last action. */
static void run(struct calls_call *call, struct calls_event *event)
{
    static const struct bus_answer nothing_read;
    struct calls_loop *calls = call->calls;
    const enum calls_state before = call->machine.state;
    struct calls_actions actions;

    actions.n = 0;
    event->now_ms = bus_now_ms(calls->bus);
    event->epoch = bus_epoch(calls->bus);
    event->self = calls->bus->self;
    event->grace_ms = calls->options.grace_ms;
    event->keep_until_ms = keep_until(call);
    event->is_fenced = bus_is_fenced(calls->bus);
    event->wants_output = event->kind == CALLS_ANSWER && wants_output(call);
    calls_machine_step(&call->machine, event, &actions);
    if (calls_on_step)
        calls_on_step(before, (int)event->kind, call->machine.state);
    if (!event->answer)
        event->answer = &nothing_read;
    for (unsigned i = 0; i < actions.n; i++)
        execute(call, event, &actions.list[i], before);
}

// NOLINTEND(misc-no-recursion)
