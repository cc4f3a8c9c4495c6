/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/machine/assignment.h"

#include <assert.h>

#include "base/limits.h"

enum { RETRY_MS = 50 };

struct step {
    struct calls_assignment_machine *machine;
    const struct calls_assignment_event *event;
    struct calls_assignment_actions *out;
};

/* ---- states and actions ---------------------------------------------------------------------- */

#define X(name, text) text,
const char *const calls_assignment_state_names[] = {CALLS_ASSIGNMENT_STATES(X)};
const char *const calls_assignment_event_names[] = {CALLS_ASSIGNMENT_EVENTS(X)};
#undef X

void (*calls_assignment_on_step)(enum calls_assignment_state from,
                                 enum calls_assignment_event_kind event,
                                 enum calls_assignment_state to);

#define X(from, to) [ASSIGNMENT_##from][ASSIGNMENT_##to] = true,
static const bool LEGAL[ASSIGNMENT_OVER + 1][ASSIGNMENT_OVER + 1] = {
    CALLS_ASSIGNMENT_TRANSITIONS(X)};
#undef X

/* What each state that awaits an answer has asked for. */
static const struct calls_assignment_action REQUESTS[] = {
    [ASSIGNMENT_CLAIMING] = {.kind = ASSIGNMENT_PUT, .what = BUS_CLAIM},
    [ASSIGNMENT_CHECKING_RESULT] = {.kind = ASSIGNMENT_READ, .what = BUS_RESULT},
    [ASSIGNMENT_CHECKING_CLAIM] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_CHECKING_ENDED] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_VERIFYING] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_RETURNING] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_READING_DEADLINE] = {.kind = ASSIGNMENT_READ, .what = BUS_IDENTITY},
    [ASSIGNMENT_WRITING] = {.kind = ASSIGNMENT_PUT, .what = BUS_RESULT},
    [ASSIGNMENT_WRITING_PLACEHOLDER] = {.kind = ASSIGNMENT_PUT_PLACEHOLDER},
    [ASSIGNMENT_NOTIFYING] = {.kind = ASSIGNMENT_READ, .what = BUS_WAITERS},
};

static bool is_completing(const struct step *step)
{
    return step->machine->state >= ASSIGNMENT_VERIFYING &&
           step->machine->state <= ASSIGNMENT_NOTIFYING;
}

static void enter(struct step *step, enum calls_assignment_state state)
{
    assert(LEGAL[step->machine->state][state]);
    step->machine->state = state;
}

static struct calls_assignment_action *add(struct step *step,
                                           enum calls_assignment_action_kind kind)
{
    struct calls_assignment_action *action = &step->out->list[step->out->n++];

    assert(step->out->n <= ASSIGNMENT_MAX_ACTIONS);
    *action = (struct calls_assignment_action){.kind = kind};
    return action;
}

static void ask(struct step *step)
{
    const struct calls_assignment_action *request = &REQUESTS[step->machine->state];

    *add(step, request->kind) = *request;
}

static void ask_in(struct step *step, enum calls_assignment_state state)
{
    enter(step, state);
    ask(step);
}

static void send(struct step *step, enum bus_message_kind message)
{
    add(step, ASSIGNMENT_SEND)->message = message;
}

/* An answer that is still pending means nothing then. */
static void end_check(struct step *step)
{
    if (calls_assignment_is_at_provider(step->machine) &&
        step->machine->state != ASSIGNMENT_RUNNING)
        enter(step, ASSIGNMENT_RUNNING);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void drop(struct step *step)
{
    end_check(step);
    enter(step, ASSIGNMENT_OVER);
    add(step, ASSIGNMENT_DROP);
}

/* A Nak carries the epoch of the send: a coordinator that is under another one by then cannot tell
 * what the registers held, and ends the call with outcome_unknown. */
static void drop_unstarted(struct step *step, enum bus_reason reason, bool was_claimed)
{
    struct calls_assignment_action *nak = add(step, ASSIGNMENT_SEND);

    nak->message = BUS_NAK;
    nak->reason = reason;
    nak->was_claimed = was_claimed;
    drop(step);
}

static void drop_answered(struct step *step)
{
    drop(step);
    add(step, ASSIGNMENT_ACKNOWLEDGE);
    add(step, ASSIGNMENT_PUMP);
}

static void drop_late(struct step *step)
{
    add(step, ASSIGNMENT_COUNT_LATE);
    drop_answered(step);
}

/* ---- claiming -------------------------------------------------------------------------------- */

static enum bus_reason reject_start(const struct calls_assignment_machine *machine,
                                    const struct calls_assignment_event *event)
{
    if (event->closed == BUS_GONE)
        return BUS_GONE;
    if (machine->reason)
        return BUS_CANCELED;
    if (event->closed)
        return event->closed;
    if (event->epoch != machine->epoch)
        return BUS_EPOCH;
    /* The coordinator may have given up meanwhile. */
    if (event->now_ns - event->asked_ns > event->trust_ns || event->now_ms >= machine->deadline_ms)
        return BUS_LATE;
    return BUS_NO_REASON;
}

static void on_claimed(struct step *step)
{
    const struct calls_assignment_event *event = step->event;
    const enum bus_reason reason = reject_start(step->machine, event);

    if (event->status) {
        drop_unstarted(step, BUS_FULL, false);
    } else if (!event->is_own) { /* revoked, or another's: the message starts nothing */
        drop_unstarted(step, BUS_DUPLICATE, false);
    } else if (reason) {
        drop_unstarted(step, reason, event->epoch == step->machine->epoch);
    } else {
        enter(step, ASSIGNMENT_RUNNING);
        add(step, ASSIGNMENT_HAND_OVER);
    }
    add(step, ASSIGNMENT_PUMP);
}

/* ---- what was reported ----------------------------------------------------------------------- */

/* What was handed over here is answered here. What a provider reports may have been answered on a
 * stream of another node, of which nothing is known here. */
static void doubt(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;

    if (machine->right == ASSIGNMENT_CLAIMED || machine->unknown_ns || machine->was_queried)
        return;
    machine->unknown_ns = step->event->now_ns;
    add(step, ASSIGNMENT_PUMP);
}

static void check_reported(struct step *step)
{
    if (step->machine->scope != ASSIGNMENT_FOREIGN) {
        ask_in(step, ASSIGNMENT_CHECKING_RESULT);
        return;
    }
    end_check(step);
    doubt(step);
}

/* A read that failed tells nothing, and a result of the provider is verified anyway. A coordinator
 * that has seen the end of a call removes its registers, and a node that lives has not lost its
 * own: without a claim there the call has ended. A provider that learns that answers it, and has a
 * place again; one that has answered it elsewhere does not, and the next review finds it. */
static void on_claim_read(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;
    const bool has_ended = machine->state == ASSIGNMENT_CHECKING_ENDED;
    const bool is_own = step->event->is_own;

    enter(step, ASSIGNMENT_RUNNING);
    if (step->event->status)
        return;
    if (is_own && !has_ended) {
        if (machine->right == ASSIGNMENT_CLAIMS)
            machine->right = ASSIGNMENT_VERIFIED;
        machine->unknown_ns = 0;
    } else if ((is_own || machine->scope == ASSIGNMENT_LOCAL) && !machine->reason) {
        machine->reason = BUS_SETTLED;
        add(step, ASSIGNMENT_CANCEL)->reason = machine->reason;
    } else {
        doubt(step);
    }
}

/* A cancel may have been sent while the provider was away, or was lost with its stream. Without
 * one the coordinator may not know of this loop. */
static void notify_coordinator(struct step *step)
{
    if (step->machine->state != ASSIGNMENT_REPORTED)
        return;
    if (step->machine->reason) {
        enter(step, ASSIGNMENT_RUNNING);
        add(step, ASSIGNMENT_CANCEL)->reason = step->machine->reason;
    } else {
        send(step, BUS_HAVE);
        check_reported(step);
    }
}

static void review(struct step *step)
{
    const int64_t patience_ns = PEG_LIMIT_GATEWAY_REPORTED_MS * INT64_C(1000000);
    struct calls_assignment_machine *machine = step->machine;
    const bool was_queried = machine->was_queried;

    machine->was_queried = false;
    if (machine->right == ASSIGNMENT_CLAIMED)
        return;
    if (machine->unknown_ns && step->event->now_ns - machine->unknown_ns >= patience_ns)
        drop(step);
    else if (!was_queried && machine->state <= ASSIGNMENT_RUNNING)
        check_reported(step);
}

/* ---- completing ------------------------------------------------------------------------------ */

/* A result has to stay as long as its identity: a caller that asks again finds the identity, and
 * would wait for a result that was forgotten. */
static void write_result(struct step *step)
{
    const bool knows_deadline =
        step->machine->scope != ASSIGNMENT_KEYED || step->machine->deadline_ms;

    ask_in(step, knows_deadline ? ASSIGNMENT_WRITING : ASSIGNMENT_READING_DEADLINE);
}

/* A coordinator takes a Nak for the answer to a message of its own, so a provider that only says
 * that it has the call must not cause one. */
static void give_back(struct step *step)
{
    if (step->machine->right != ASSIGNMENT_CLAIMS) {
        drop_unstarted(step, step->event->reason, true);
        return;
    }
    step->machine->reason = step->event->reason;
    ask_in(step, ASSIGNMENT_RETURNING);
}

/* The claims of a foreign call are on its coordinator's node, which believes only the provider that
 * it sent it to; here it is enough that no call of this node has the id.
 *
 * What is not its provider's to answer, or what nothing can tell of any more (its coordinator has
 * forgotten it, its time is over, or the registers were lost), its provider need not keep. That it
 * does not list the call later, on a loop that believes it still has it, proves nothing there:
 * Hellos are counted. */
static void on_verified(struct step *step)
{
    const struct calls_assignment_event *event = step->event;
    const bool is_its =
        !event->status &&
        (step->machine->scope == ASSIGNMENT_FOREIGN ? !event->is_there : event->is_own);

    if (step->machine->state == ASSIGNMENT_VERIFYING) {
        if (is_its)
            write_result(step);
        else
            drop_late(step);
        return;
    }
    if (is_its)
        drop_unstarted(step, step->machine->reason, true);
    else
        drop(step); /* its provider has forgotten it already */
    add(step, ASSIGNMENT_PUMP);
}

/* Loops that follow a call read its result for themselves, too: what is lost here costs them a
 * second. */
static void on_written(struct step *step)
{
    const struct calls_assignment_event *event = step->event;

    if (event->status && step->machine->state == ASSIGNMENT_WRITING) {
        ask_in(step, ASSIGNMENT_WRITING_PLACEHOLDER);
    } else if (!event->status && !event->is_own) {
        drop_late(step);
    } else {
        send(step, BUS_DONE);
        if (step->machine->scope == ASSIGNMENT_KEYED)
            ask_in(step, ASSIGNMENT_NOTIFYING);
        else
            drop_answered(step);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Followers read for themselves; a check is made again at the next review. */
static bool must_retry(const struct step *step)
{
    const peg_status status = step->event->status;

    if (step->machine->state == ASSIGNMENT_CLAIMING)
        return status == PEG_EIO;
    return (status == PEG_EIO || status == PEG_ENOMEM) && is_completing(step) &&
           step->machine->state != ASSIGNMENT_NOTIFYING;
}

static void on_answer(struct step *step)
{
    if (must_retry(step)) {
        add(step, ASSIGNMENT_ARM)->delay_ms = RETRY_MS;
        return;
    }
    switch (step->machine->state) {
    case ASSIGNMENT_CLAIMING:
        on_claimed(step);
        break;
    case ASSIGNMENT_CHECKING_RESULT:
        if (step->event->status)
            end_check(step);
        else
            ask_in(step,
                   step->event->is_there ? ASSIGNMENT_CHECKING_ENDED : ASSIGNMENT_CHECKING_CLAIM);
        break;
    case ASSIGNMENT_CHECKING_CLAIM:
    case ASSIGNMENT_CHECKING_ENDED:
        on_claim_read(step);
        break;
    case ASSIGNMENT_VERIFYING:
    case ASSIGNMENT_RETURNING:
        on_verified(step);
        break;
    case ASSIGNMENT_READING_DEADLINE:
        step->machine->deadline_ms = step->event->deadline_ms;
        ask_in(step, ASSIGNMENT_WRITING);
        break;
    case ASSIGNMENT_WRITING:
    case ASSIGNMENT_WRITING_PLACEHOLDER:
        on_written(step);
        break;
    case ASSIGNMENT_NOTIFYING:
        if (!step->event->status)
            add(step, ASSIGNMENT_SEND_WAITERS);
        drop_answered(step);
        break;
    default: /* of a check that ended meanwhile */
        break;
    }
}

static void on_cancel(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;

    if (machine->state == ASSIGNMENT_QUEUED) {
        drop_unstarted(step, BUS_CANCELED, false);
    } else if (machine->state < ASSIGNMENT_VALIDATING && !machine->reason) {
        machine->reason = step->event->reason;
        if (machine->state != ASSIGNMENT_CLAIMING)
            add(step, ASSIGNMENT_CANCEL)->reason = machine->reason;
    }
}

/* What a provider says of a call that it has ends a check of it. */
static void on_word(struct step *step)
{
    step->machine->unknown_ns = 0;
    if (step->event->kind == ASSIGNMENT_ON_OUTPUT) {
        send(step, BUS_DELTA);
        return;
    }
    end_check(step);
    if (step->event->kind == ASSIGNMENT_ON_GIVE_BACK)
        give_back(step);
    else if (step->event->kind == ASSIGNMENT_ON_VALIDATE)
        enter(step, ASSIGNMENT_VALIDATING);
    else if (step->event->kind == ASSIGNMENT_ON_DISCARD)
        drop_answered(step);
    else if (step->machine->right == ASSIGNMENT_CLAIMS)
        ask_in(step, ASSIGNMENT_VERIFYING);
    else
        write_result(step);
}

static void on_running(struct step *step)
{
    const enum calls_assignment_event_kind kind = step->event->kind;

    if (kind == ASSIGNMENT_ON_HELLO || kind == ASSIGNMENT_ON_LISTED) {
        end_check(step);
        if (kind == ASSIGNMENT_ON_LISTED)
            enter(step, ASSIGNMENT_REPORTED);
    } else if (kind == ASSIGNMENT_ON_UNLISTED) {
        drop(step);
    } else if (kind == ASSIGNMENT_ON_NOTIFY) {
        notify_coordinator(step);
    } else if (kind == ASSIGNMENT_ON_REVIEW) {
        review(step);
    } else {
        on_word(step);
    }
}

/* Events that mean the same in many states. A reset may have lost a result that was written: it is
 * put again while its waiters are read. Coordinators read leases less and less often, so they learn
 * at once that a provider is lost. */
static void on_anywhere(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;

    switch (step->event->kind) {
    case ASSIGNMENT_ON_RETRY:
        if (machine->state == ASSIGNMENT_NOTIFYING)
            ask_in(step, ASSIGNMENT_WRITING);
        else if (is_completing(step) || machine->state == ASSIGNMENT_CLAIMING)
            ask(step);
        break;
    case ASSIGNMENT_ON_RESET:
        if (is_completing(step))
            add(step, ASSIGNMENT_ARM);
        break;
    case ASSIGNMENT_ON_CANCEL:
        on_cancel(step);
        break;
    case ASSIGNMENT_ON_ASK:
        machine->was_queried = true;
        machine->unknown_ns = 0;
        send(step, BUS_HAVE);
        break;
    default:
        if (calls_assignment_is_at_provider(machine))
            send(step, BUS_LOST);
        drop(step);
        break;
    }
}

void calls_assignment_step(struct calls_assignment_machine *machine,
                           const struct calls_assignment_event *event,
                           struct calls_assignment_actions *out)
{
    struct step step = {machine, event, out};
    const enum calls_assignment_state from = machine->state;

    out->n = 0;
    if (event->kind == ASSIGNMENT_ON_ANSWER)
        on_answer(&step);
    else if (event->kind <= ASSIGNMENT_ON_LOST)
        on_anywhere(&step);
    else if (machine->state == ASSIGNMENT_QUEUED && event->kind == ASSIGNMENT_ON_PLACE)
        ask_in(&step, ASSIGNMENT_CLAIMING);
    else if (machine->state == ASSIGNMENT_QUEUED && event->kind == ASSIGNMENT_ON_REFUSE)
        drop_unstarted(&step, event->reason, false);
    else if (machine->state <= ASSIGNMENT_CLAIMING && event->kind == ASSIGNMENT_ON_LISTED)
        drop_unstarted(&step, BUS_DUPLICATE, false);
    else if (calls_assignment_is_at_provider(machine))
        on_running(&step);
    else if (machine->state == ASSIGNMENT_VALIDATING && event->kind >= ASSIGNMENT_ON_RESULT)
        on_word(&step);
    if (calls_assignment_on_step)
        calls_assignment_on_step(from, event->kind, machine->state);
}
