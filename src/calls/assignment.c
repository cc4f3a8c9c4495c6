/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/assignment.h"

#include <assert.h>

#include "base/limits.h"

/* A claim whose answer took longer is given back: the coordinator may have given up meanwhile. */
enum { CLAIM_TRUST_NS = 1000000000 };
enum { RETRY_MS = 50 };

struct step {
    struct calls_assignment_machine *machine;
    const struct calls_assignment_event *event;
    struct calls_assignment_actions *out;
};

/* ---- states ---------------------------------------------------------------------------------- */

#define X(name, text) text,
const char *const calls_assignment_state_names[] = {CALLS_ASSIGNMENT_STATES(X)};
const char *const calls_assignment_event_names[] = {CALLS_ASSIGNMENT_EVENTS(X)};
#undef X

bool calls_assignment_is_legal(enum calls_assignment_state from, enum calls_assignment_state to)
{
    switch ((unsigned)from << 8 | to) {
#define X(a, b) case ASSIGNMENT_##a << 8 | ASSIGNMENT_##b:
        CALLS_ASSIGNMENT_TRANSITIONS(X)
#undef X
        return true;
    default:
        return false;
    }
}

static void enter(struct step *step, enum calls_assignment_state state)
{
    assert(calls_assignment_is_legal(step->machine->state, state));
    step->machine->state = state;
}

static bool is_in(const struct step *step, enum calls_assignment_state state)
{
    return step->machine->state == state;
}

/* An answer that is still pending means nothing then. */
static void end_check(struct step *step)
{
    if (calls_assignment_is_at_provider(step->machine) && !is_in(step, ASSIGNMENT_RUNNING))
        enter(step, ASSIGNMENT_RUNNING);
}

/* ---- actions --------------------------------------------------------------------------------- */

static struct calls_assignment_action *add(struct step *step,
                                           enum calls_assignment_action_kind kind)
{
    struct calls_assignment_action *action = &step->out->list[step->out->n++];

    assert(step->out->n <= ASSIGNMENT_MAX_ACTIONS);
    *action = (struct calls_assignment_action){.kind = kind};
    return action;
}

static void send(struct step *step, enum bus_message_kind message)
{
    add(step, ASSIGNMENT_SEND)->message = message;
}

static void retry_after(struct step *step, int delay_ms)
{
    add(step, ASSIGNMENT_ARM)->delay_ms = delay_ms;
}

static void cancel_at_provider(struct step *step)
{
    add(step, ASSIGNMENT_CANCEL)->reason = step->machine->reason;
}

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

static void request(struct step *step)
{
    const struct calls_assignment_action *action = &REQUESTS[step->machine->state];

    *add(step, action->kind) = *action;
}

static void request_in(struct step *step, enum calls_assignment_state state)
{
    enter(step, state);
    request(step);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void drop(struct step *step)
{
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

static enum bus_reason reject_start(const struct step *step)
{
    const struct calls_assignment_machine *machine = step->machine;
    const struct calls_assignment_event *event = step->event;

    if (event->closed == BUS_GONE)
        return BUS_GONE;
    if (machine->reason)
        return BUS_CANCELED;
    if (event->closed)
        return event->closed;
    if (event->epoch != machine->epoch)
        return BUS_EPOCH;
    if (event->now_ns - event->asked_ns > CLAIM_TRUST_NS || event->now_ms >= machine->deadline_ms)
        return BUS_LATE;
    return BUS_NO_REASON;
}

static void on_claimed(struct step *step)
{
    const struct calls_assignment_event *event = step->event;
    const enum bus_reason reason = reject_start(step);

    if (event->status) {
        drop_unstarted(step, BUS_FULL, false);
    } else if (!event->is_own) {
        /* It was revoked, or is another's: the message starts nothing. */
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
        request_in(step, ASSIGNMENT_CHECKING_RESULT);
        return;
    }
    end_check(step);
    doubt(step);
}

/* A provider that learns that a call is over answers it, and has a place again; one that has
 * answered it elsewhere does not, and the next review finds it. */
static void cancel_settled(struct step *step)
{
    if (step->machine->reason) {
        doubt(step);
        return;
    }
    step->machine->reason = BUS_SETTLED;
    cancel_at_provider(step);
}

static void on_result_read(struct step *step)
{
    if (step->event->status)
        enter(step, ASSIGNMENT_RUNNING);
    else if (step->event->is_there)
        request_in(step, ASSIGNMENT_CHECKING_ENDED);
    else
        request_in(step, ASSIGNMENT_CHECKING_CLAIM);
}

/* A read that failed tells nothing, and a result of the provider is verified anyway. */
static void on_claim_read(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;
    const bool has_ended = is_in(step, ASSIGNMENT_CHECKING_ENDED);
    const bool is_own = step->event->is_own;

    enter(step, ASSIGNMENT_RUNNING);
    if (step->event->status)
        return;
    if (is_own && !has_ended) {
        if (machine->right == ASSIGNMENT_CLAIMS)
            machine->right = ASSIGNMENT_VERIFIED;
        machine->unknown_ns = 0;
    } else if (is_own || machine->scope == ASSIGNMENT_LOCAL) {
        /* A coordinator that has seen the end of a call removes its registers; a node that lives
         * has not lost its own. */
        cancel_settled(step);
    } else {
        doubt(step);
    }
}

/* A cancel may have been sent while the provider was away, or was lost with its stream. Without
 * one the coordinator may not know of this loop. */
static void notify_coordinator(struct step *step)
{
    if (step->machine->reason) {
        enter(step, ASSIGNMENT_RUNNING);
        cancel_at_provider(step);
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
    if (machine->unknown_ns && step->event->now_ns - machine->unknown_ns >= patience_ns) {
        end_check(step);
        drop(step);
    } else if (!was_queried && machine->state <= ASSIGNMENT_RUNNING) {
        check_reported(step);
    }
}

/* ---- completing ------------------------------------------------------------------------------ */

/* A result has to stay as long as its identity: a caller that asks again finds the identity, and
 * would wait for a result that was forgotten. */
static void write_result(struct step *step)
{
    const struct calls_assignment_machine *machine = step->machine;

    if (machine->scope == ASSIGNMENT_KEYED && !machine->deadline_ms)
        request_in(step, ASSIGNMENT_READING_DEADLINE);
    else
        request_in(step, ASSIGNMENT_WRITING);
}

static void complete(struct step *step)
{
    if (step->machine->right == ASSIGNMENT_CLAIMS)
        request_in(step, ASSIGNMENT_VERIFYING);
    else
        write_result(step);
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
    request_in(step, ASSIGNMENT_RETURNING);
}

/* The claims of a foreign call are on its coordinator's node, which believes only the provider that
 * it sent it to; here it is enough that no call of this node has the id. */
static bool is_verified(const struct step *step)
{
    if (step->event->status)
        return false;
    return step->machine->scope == ASSIGNMENT_FOREIGN ? !step->event->is_there
                                                      : step->event->is_own;
}

/* If not: it is not its provider's to answer, or nothing can tell any more, because its coordinator
 * has seen its end and forgotten it, its time is over, or the registers were lost. The provider
 * need not keep a result that is of no use. That it does not list the call later, on a loop that
 * believes it still has it, proves nothing there: Hellos are counted. */
static void on_verified(struct step *step)
{
    if (is_verified(step))
        write_result(step);
    else
        drop_late(step);
}

static void on_return_verified(struct step *step)
{
    if (is_verified(step))
        drop_unstarted(step, step->machine->reason, true);
    else
        drop(step); /* its provider has forgotten it already */
    add(step, ASSIGNMENT_PUMP);
}

static void on_deadline_read(struct step *step)
{
    step->machine->deadline_ms = step->event->deadline_ms;
    request_in(step, ASSIGNMENT_WRITING);
}

/* Loops that follow a call read its result for themselves, too: what is lost here costs them a
 * second. */
static void notify_written(struct step *step)
{
    send(step, BUS_DONE);
    if (step->machine->scope == ASSIGNMENT_KEYED)
        request_in(step, ASSIGNMENT_NOTIFYING);
    else
        drop_answered(step);
}

static void on_written(struct step *step)
{
    const struct calls_assignment_event *event = step->event;

    if (event->status && is_in(step, ASSIGNMENT_WRITING))
        request_in(step, ASSIGNMENT_WRITING_PLACEHOLDER);
    else if (event->status || event->is_own)
        notify_written(step);
    else
        drop_late(step);
}

static void on_waiters_read(struct step *step)
{
    if (!step->event->status)
        add(step, ASSIGNMENT_SEND_WAITERS);
    drop_answered(step);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_completing(const struct step *step)
{
    return step->machine->state >= ASSIGNMENT_VERIFYING &&
           step->machine->state <= ASSIGNMENT_NOTIFYING;
}

/* Waiters read for themselves; a check is made again at the next review. */
static bool must_retry(const struct step *step)
{
    const peg_status status = step->event->status;

    if (is_in(step, ASSIGNMENT_CLAIMING))
        return status == PEG_EIO;
    return (status == PEG_EIO || status == PEG_ENOMEM) && is_completing(step) &&
           !is_in(step, ASSIGNMENT_NOTIFYING);
}

/* In other states: an answer to a check that ended meanwhile. */
static void (*const ON_ANSWER[])(struct step *step) = {
    [ASSIGNMENT_CLAIMING] = on_claimed,
    [ASSIGNMENT_CHECKING_RESULT] = on_result_read,
    [ASSIGNMENT_CHECKING_CLAIM] = on_claim_read,
    [ASSIGNMENT_CHECKING_ENDED] = on_claim_read,
    [ASSIGNMENT_VERIFYING] = on_verified,
    [ASSIGNMENT_RETURNING] = on_return_verified,
    [ASSIGNMENT_READING_DEADLINE] = on_deadline_read,
    [ASSIGNMENT_WRITING] = on_written,
    [ASSIGNMENT_WRITING_PLACEHOLDER] = on_written,
    [ASSIGNMENT_NOTIFYING] = on_waiters_read,
    [ASSIGNMENT_OVER] = NULL,
};

static void on_answer(struct step *step)
{
    if (must_retry(step))
        retry_after(step, RETRY_MS);
    else if (ON_ANSWER[step->machine->state])
        ON_ANSWER[step->machine->state](step);
}

/* A reset may have lost a result that was written: it is put again while its waiters are read. */
static void on_retry(struct step *step)
{
    if (is_in(step, ASSIGNMENT_NOTIFYING))
        request_in(step, ASSIGNMENT_WRITING);
    else if (is_completing(step) || is_in(step, ASSIGNMENT_CLAIMING))
        request(step);
}

static void on_cancel(struct step *step)
{
    struct calls_assignment_machine *machine = step->machine;

    if (is_in(step, ASSIGNMENT_QUEUED)) {
        drop_unstarted(step, BUS_CANCELED, false);
    } else if (machine->state < ASSIGNMENT_VALIDATING && !machine->reason) {
        machine->reason = step->event->reason;
        if (!is_in(step, ASSIGNMENT_CLAIMING))
            cancel_at_provider(step);
    }
}

/* Coordinators read leases less and less often: they learn of it at once. */
static void on_lost(struct step *step)
{
    if (calls_assignment_is_at_provider(step->machine)) {
        end_check(step);
        send(step, BUS_LOST);
    }
    drop(step);
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
    else if (step->event->kind == ASSIGNMENT_ON_RESULT)
        complete(step);
    else
        drop_answered(step);
}

static void on_running(struct step *step)
{
    switch (step->event->kind) {
    case ASSIGNMENT_ON_HELLO:
        end_check(step);
        break;
    case ASSIGNMENT_ON_LISTED:
        end_check(step);
        enter(step, ASSIGNMENT_REPORTED);
        break;
    case ASSIGNMENT_ON_UNLISTED:
        end_check(step);
        drop(step);
        break;
    case ASSIGNMENT_ON_NOTIFY:
        if (is_in(step, ASSIGNMENT_REPORTED))
            notify_coordinator(step);
        break;
    case ASSIGNMENT_ON_REVIEW:
        review(step);
        break;
    default:
        on_word(step);
        break;
    }
}

static void on_queued(struct step *step)
{
    if (step->event->kind == ASSIGNMENT_ON_PLACE)
        request_in(step, ASSIGNMENT_CLAIMING);
    else if (step->event->kind == ASSIGNMENT_ON_REFUSE)
        drop_unstarted(step, step->event->reason, false);
}

void calls_assignment_step(struct calls_assignment_machine *machine,
                           const struct calls_assignment_event *event,
                           struct calls_assignment_actions *out)
{
    struct step step = {machine, event, out};

    out->n = 0;
    if (event->kind == ASSIGNMENT_ON_ANSWER) {
        on_answer(&step);
    } else if (event->kind == ASSIGNMENT_ON_RETRY) {
        on_retry(&step);
    } else if (event->kind == ASSIGNMENT_ON_RESET) {
        if (is_completing(&step))
            retry_after(&step, 0);
    } else if (event->kind == ASSIGNMENT_ON_CANCEL) {
        on_cancel(&step);
    } else if (event->kind == ASSIGNMENT_ON_ASK) {
        machine->was_queried = true;
        machine->unknown_ns = 0;
        send(&step, BUS_HAVE);
    } else if (event->kind == ASSIGNMENT_ON_LOST) {
        on_lost(&step);
    } else if (machine->state == ASSIGNMENT_QUEUED) {
        on_queued(&step);
    } else if (calls_assignment_is_at_provider(machine)) {
        on_running(&step);
    } else if (machine->state == ASSIGNMENT_VALIDATING && event->kind >= ASSIGNMENT_ON_RESULT) {
        on_word(&step);
    }
}
