/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/machine/assignment.h"

#include <assert.h>

#include "base/limits.h"

enum { RETRY_MS = 50 };

/* Handles m->event. */
typedef void handler(struct calls_assignment_machine *m);

/* ---- states and actions ---------------------------------------------------------------------- */

#define STATE_NAME(name, text, next) text,
const char *const calls_assignment_state_names[] = {CALLS_ASSIGNMENT_STATES(STATE_NAME)};
#define EVENT_NAME(name, text) text,
const char *const calls_assignment_event_names[] = {CALLS_ASSIGNMENT_EVENTS(EVENT_NAME)};

void (*calls_assignment_on_step)(enum calls_assignment_state from,
                                 enum calls_assignment_event_kind event,
                                 enum calls_assignment_state to);

bool calls_assignment_may_become(enum calls_assignment_state from, enum calls_assignment_state to)
{
#define BIT(name, text, next) name = 1 << ASSIGNMENT_##name,
    enum { CALLS_ASSIGNMENT_STATES(BIT) };
#define NEXT(name, text, next) next,
    static const unsigned next_states[] = {CALLS_ASSIGNMENT_STATES(NEXT)};

    return next_states[from] >> to & 1;
}

/* What each state that awaits an answer asks for. */
static const struct calls_assignment_action REQUESTS[ASSIGNMENT_OVER + 1] = {
    [ASSIGNMENT_CLAIMING] = {.kind = ASSIGNMENT_PUT, .what = BUS_CLAIM},
    [ASSIGNMENT_CHECKING_RESULT] = {.kind = ASSIGNMENT_READ, .what = BUS_RESULT},
    [ASSIGNMENT_CHECKING_CLAIM] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_CHECKING_ENDED] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_VERIFYING] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_RETURNING] = {.kind = ASSIGNMENT_READ, .what = BUS_CLAIM},
    [ASSIGNMENT_READING_DEADLINE] = {.kind = ASSIGNMENT_READ, .what = BUS_IDENTITY},
    [ASSIGNMENT_WRITING] = {.kind = ASSIGNMENT_PUT, .what = BUS_RESULT},
    [ASSIGNMENT_WRITING_PLACEHOLDER] = {.kind = ASSIGNMENT_PUT_PLACEHOLDER, .what = BUS_RESULT},
    [ASSIGNMENT_NOTIFYING] = {.kind = ASSIGNMENT_READ, .what = BUS_WAITERS},
};

static bool is_completing(const struct calls_assignment_machine *m)
{
    return m->state >= ASSIGNMENT_VERIFYING && m->state <= ASSIGNMENT_NOTIFYING;
}

static struct calls_assignment_action *add(struct calls_assignment_machine *m,
                                           enum calls_assignment_action_kind kind)
{
    struct calls_assignment_action *action = &m->out->list[m->out->n++];

    assert(m->out->n <= ASSIGNMENT_MAX_ACTIONS);
    *action = (struct calls_assignment_action){.kind = kind};
    return action;
}

static void ask(struct calls_assignment_machine *m)
{
    const struct calls_assignment_action *request = &REQUESTS[m->state];

    if (request->what)
        *add(m, request->kind) = *request;
}

static void enter(struct calls_assignment_machine *m, enum calls_assignment_state state)
{
    assert(calls_assignment_may_become(m->state, state));
    m->state = state;
    ask(m);
}

static void send(struct calls_assignment_machine *m, enum bus_message_kind message)
{
    add(m, ASSIGNMENT_SEND)->message = message;
}

/* An answer that is still pending means nothing then. */
static void end_check(struct calls_assignment_machine *m)
{
    if (calls_assignment_is_at_provider(m) && m->state != ASSIGNMENT_RUNNING)
        enter(m, ASSIGNMENT_RUNNING);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void drop(struct calls_assignment_machine *m)
{
    end_check(m);
    enter(m, ASSIGNMENT_OVER);
    add(m, ASSIGNMENT_DROP);
}

/* A Nak carries the epoch of the send: a coordinator that is under another one by then cannot tell
 * what the registers held, and ends the call with outcome_unknown. */
static void drop_unstarted(struct calls_assignment_machine *m, enum bus_reason reason,
                           bool was_claimed)
{
    struct calls_assignment_action *nak = add(m, ASSIGNMENT_SEND);

    nak->message = BUS_NAK;
    nak->reason = reason;
    nak->was_claimed = was_claimed;
    drop(m);
}

static void drop_answered(struct calls_assignment_machine *m)
{
    drop(m);
    add(m, ASSIGNMENT_ACKNOWLEDGE);
    add(m, ASSIGNMENT_PUMP);
}

static void drop_late(struct calls_assignment_machine *m)
{
    add(m, ASSIGNMENT_COUNT_LATE);
    drop_answered(m);
}

/* ---- claiming -------------------------------------------------------------------------------- */

static enum bus_reason reject_start(const struct calls_assignment_machine *m)
{
    const struct calls_assignment_event *event = m->event;

    if (event->status)
        return BUS_FULL;
    if (!event->is_own) /* revoked, or another's: the message starts nothing */
        return BUS_DUPLICATE;
    if (event->closed == BUS_GONE)
        return BUS_GONE;
    if (m->reason)
        return BUS_CANCELED;
    if (event->closed)
        return event->closed;
    if (event->epoch != m->epoch)
        return BUS_EPOCH;
    /* The coordinator may have given up meanwhile. */
    if (event->now_ns - event->asked_ns > event->trust_ns || event->now_ms >= m->deadline_ms)
        return BUS_LATE;
    return BUS_NO_REASON;
}

static void on_claimed(struct calls_assignment_machine *m)
{
    const struct calls_assignment_event *event = m->event;
    const enum bus_reason reason = reject_start(m);

    if (reason) {
        drop_unstarted(m, reason, !event->status && event->is_own && event->epoch == m->epoch);
    } else {
        enter(m, ASSIGNMENT_RUNNING);
        add(m, ASSIGNMENT_HAND_OVER);
    }
    add(m, ASSIGNMENT_PUMP);
}

/* ---- what was reported ----------------------------------------------------------------------- */

/* What was handed over here is answered here. What a provider reports may have been answered on a
 * stream of another node, of which nothing is known here. */
static void mark_unverified(struct calls_assignment_machine *m)
{
    if (m->right == ASSIGNMENT_CLAIMED || m->unknown_ns || m->was_queried)
        return;
    m->unknown_ns = m->event->now_ns;
    add(m, ASSIGNMENT_PUMP);
}

static void check_reported(struct calls_assignment_machine *m)
{
    if (m->scope != ASSIGNMENT_FOREIGN) {
        enter(m, ASSIGNMENT_CHECKING_RESULT);
        return;
    }
    end_check(m);
    mark_unverified(m);
}

static void on_result_read(struct calls_assignment_machine *m)
{
    if (m->event->status)
        end_check(m);
    else
        enter(m, m->event->is_there ? ASSIGNMENT_CHECKING_ENDED : ASSIGNMENT_CHECKING_CLAIM);
}

/* A read that failed tells nothing, and a result of the provider is verified anyway. A coordinator
 * that has seen the end of a call removes its registers, and a node that lives has not lost its
 * own: without a claim there the call has ended. A provider that learns that answers it, and has a
 * place again; one that has answered it elsewhere does not, and the next review finds it. */
static void on_claim_read(struct calls_assignment_machine *m)
{
    const bool has_ended = m->state == ASSIGNMENT_CHECKING_ENDED;
    const bool is_own = m->event->is_own;

    enter(m, ASSIGNMENT_RUNNING);
    if (m->event->status)
        return;
    if (is_own && !has_ended) {
        if (m->right == ASSIGNMENT_CLAIMS)
            m->right = ASSIGNMENT_VERIFIED;
        m->unknown_ns = 0;
    } else if ((is_own || m->scope == ASSIGNMENT_LOCAL) && !m->reason) {
        m->reason = BUS_SETTLED;
        add(m, ASSIGNMENT_CANCEL)->reason = m->reason;
    } else {
        mark_unverified(m);
    }
}

/* A cancel may have been sent while the provider was away, or was lost with its stream. Without
 * one the coordinator may not know of this loop. */
static void notify_coordinator(struct calls_assignment_machine *m)
{
    if (m->state != ASSIGNMENT_REPORTED)
        return;
    if (m->reason) {
        enter(m, ASSIGNMENT_RUNNING);
        add(m, ASSIGNMENT_CANCEL)->reason = m->reason;
    } else {
        send(m, BUS_HAVE);
        check_reported(m);
    }
}

static void review(struct calls_assignment_machine *m)
{
    const int64_t patience_ns = PEG_LIMIT_GATEWAY_REPORTED_MS * INT64_C(1000000);
    const bool was_queried = m->was_queried;

    m->was_queried = false;
    if (m->right == ASSIGNMENT_CLAIMED)
        return;
    if (m->unknown_ns && m->event->now_ns - m->unknown_ns >= patience_ns)
        drop(m);
    else if (!was_queried && m->state <= ASSIGNMENT_RUNNING)
        check_reported(m);
}

/* ---- completing ------------------------------------------------------------------------------ */

/* A result has to stay as long as its identity: a caller that asks again finds the identity, and
 * would wait for a result that was forgotten. */
static void write_result(struct calls_assignment_machine *m)
{
    const bool knows_deadline = m->scope != ASSIGNMENT_KEYED || m->deadline_ms;

    enter(m, knows_deadline ? ASSIGNMENT_WRITING : ASSIGNMENT_READING_DEADLINE);
}

/* A coordinator takes a Nak for the answer to a message of its own, so a provider that only says
 * that it has the call must not cause one. */
static void give_back(struct calls_assignment_machine *m)
{
    if (m->right != ASSIGNMENT_CLAIMS) {
        drop_unstarted(m, m->event->reason, true);
        return;
    }
    m->reason = m->event->reason;
    enter(m, ASSIGNMENT_RETURNING);
}

/* The claims of a foreign call are on its coordinator's node, which believes only the provider that
 * it sent it to; here it is enough that no call of this node has the id. */
static bool is_of_its_provider(const struct calls_assignment_machine *m)
{
    const struct calls_assignment_event *event = m->event;

    return !event->status && (m->scope == ASSIGNMENT_FOREIGN ? !event->is_there : event->is_own);
}

/* What is not its provider's to answer, or what nothing can tell of any more (its coordinator has
 * forgotten it, its time is over, or the registers were lost), its provider need not keep. That it
 * does not list the call later, on a loop that believes it still has it, proves nothing there:
 * Hellos are counted. */
static void on_verified(struct calls_assignment_machine *m)
{
    if (is_of_its_provider(m))
        write_result(m);
    else
        drop_late(m);
}

static void on_returned(struct calls_assignment_machine *m)
{
    if (is_of_its_provider(m))
        drop_unstarted(m, m->reason, true);
    else
        drop(m); /* its provider has forgotten it already */
    add(m, ASSIGNMENT_PUMP);
}

static void on_deadline_read(struct calls_assignment_machine *m)
{
    m->deadline_ms = m->event->deadline_ms;
    enter(m, ASSIGNMENT_WRITING);
}

/* Loops that follow a call read its result for themselves, too: what is lost here costs them a
 * second. */
static void on_written(struct calls_assignment_machine *m)
{
    const struct calls_assignment_event *event = m->event;

    if (event->status && m->state == ASSIGNMENT_WRITING) {
        enter(m, ASSIGNMENT_WRITING_PLACEHOLDER);
    } else if (!event->status && !event->is_own) {
        drop_late(m);
    } else {
        send(m, BUS_DONE);
        if (m->scope == ASSIGNMENT_KEYED)
            enter(m, ASSIGNMENT_NOTIFYING);
        else
            drop_answered(m);
    }
}

static void on_waiters_read(struct calls_assignment_machine *m)
{
    if (!m->event->status)
        add(m, ASSIGNMENT_SEND_WAITERS);
    drop_answered(m);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Followers read for themselves; a check is made again at the next review. */
static bool must_retry(const struct calls_assignment_machine *m)
{
    const peg_status status = m->event->status;

    if (m->state == ASSIGNMENT_CLAIMING)
        return status == PEG_EIO;
    return (status == PEG_EIO || status == PEG_ENOMEM) && is_completing(m) &&
           m->state != ASSIGNMENT_NOTIFYING;
}

static void on_answer(struct calls_assignment_machine *m)
{
    static handler *const handlers[] = {
        [ASSIGNMENT_CLAIMING] = on_claimed,
        [ASSIGNMENT_CHECKING_RESULT] = on_result_read,
        [ASSIGNMENT_CHECKING_CLAIM] = on_claim_read,
        [ASSIGNMENT_CHECKING_ENDED] = on_claim_read,
        [ASSIGNMENT_VERIFYING] = on_verified,
        [ASSIGNMENT_RETURNING] = on_returned,
        [ASSIGNMENT_READING_DEADLINE] = on_deadline_read,
        [ASSIGNMENT_WRITING] = on_written,
        [ASSIGNMENT_WRITING_PLACEHOLDER] = on_written,
        [ASSIGNMENT_NOTIFYING] = on_waiters_read,
        [ASSIGNMENT_OVER] = NULL,
    };

    if (must_retry(m))
        add(m, ASSIGNMENT_ARM)->delay_ms = RETRY_MS;
    else if (handlers[m->state]) /* else it is of a check that ended meanwhile */
        handlers[m->state](m);
}

static void on_cancel(struct calls_assignment_machine *m)
{
    if (m->state == ASSIGNMENT_QUEUED) {
        drop_unstarted(m, BUS_CANCELED, false);
    } else if (m->state < ASSIGNMENT_VALIDATING && !m->reason) {
        m->reason = m->event->reason;
        if (m->state != ASSIGNMENT_CLAIMING)
            add(m, ASSIGNMENT_CANCEL)->reason = m->reason;
    }
}

/* What a provider says of a call that it has ends a check of it. */
static void on_word(struct calls_assignment_machine *m)
{
    m->unknown_ns = 0;
    if (m->event->kind == ASSIGNMENT_ON_OUTPUT) {
        send(m, BUS_DELTA);
        return;
    }
    end_check(m);
    if (m->event->kind == ASSIGNMENT_ON_GIVE_BACK)
        give_back(m);
    else if (m->event->kind == ASSIGNMENT_ON_VALIDATE)
        enter(m, ASSIGNMENT_VALIDATING);
    else if (m->event->kind == ASSIGNMENT_ON_DISCARD)
        drop_answered(m);
    else if (m->right == ASSIGNMENT_CLAIMS)
        enter(m, ASSIGNMENT_VERIFYING);
    else
        write_result(m);
}

static void on_running(struct calls_assignment_machine *m)
{
    const enum calls_assignment_event_kind kind = m->event->kind;

    if (kind == ASSIGNMENT_ON_HELLO || kind == ASSIGNMENT_ON_LISTED) {
        end_check(m);
        if (kind == ASSIGNMENT_ON_LISTED)
            enter(m, ASSIGNMENT_REPORTED);
    } else if (kind == ASSIGNMENT_ON_UNLISTED) {
        drop(m);
    } else if (kind == ASSIGNMENT_ON_NOTIFY) {
        notify_coordinator(m);
    } else if (kind == ASSIGNMENT_ON_REVIEW) {
        review(m);
    } else {
        on_word(m);
    }
}

/* Events that mean the same in many states. A reset may have lost a result that was written: it is
 * put again while its waiters are read. Coordinators read leases less and less often, so they learn
 * at once that a provider is lost. */
static void on_anywhere(struct calls_assignment_machine *m)
{
    switch (m->event->kind) {
    case ASSIGNMENT_ON_RETRY:
        if (m->state == ASSIGNMENT_NOTIFYING)
            enter(m, ASSIGNMENT_WRITING);
        else if (is_completing(m) || m->state == ASSIGNMENT_CLAIMING)
            ask(m);
        break;
    case ASSIGNMENT_ON_RESET:
        if (is_completing(m))
            add(m, ASSIGNMENT_ARM);
        break;
    case ASSIGNMENT_ON_CANCEL:
        on_cancel(m);
        break;
    case ASSIGNMENT_ON_ASK:
        m->was_queried = true;
        m->unknown_ns = 0;
        send(m, BUS_HAVE);
        break;
    default:
        if (calls_assignment_is_at_provider(m))
            send(m, BUS_LOST);
        drop(m);
        break;
    }
}

void calls_assignment_step(struct calls_assignment_machine *m,
                           const struct calls_assignment_event *event,
                           struct calls_assignment_actions *out)
{
    const enum calls_assignment_state from = m->state;

    m->event = event;
    m->out = out;
    out->n = 0;
    if (event->kind == ASSIGNMENT_ON_ANSWER)
        on_answer(m);
    else if (event->kind <= ASSIGNMENT_ON_LOST)
        on_anywhere(m);
    else if (m->state == ASSIGNMENT_QUEUED && event->kind == ASSIGNMENT_ON_PLACE)
        enter(m, ASSIGNMENT_CLAIMING);
    else if (m->state == ASSIGNMENT_QUEUED && event->kind == ASSIGNMENT_ON_REFUSE)
        drop_unstarted(m, event->reason, false);
    else if (m->state <= ASSIGNMENT_CLAIMING && event->kind == ASSIGNMENT_ON_LISTED)
        drop_unstarted(m, BUS_DUPLICATE, false);
    else if (calls_assignment_is_at_provider(m))
        on_running(m);
    else if (m->state == ASSIGNMENT_VALIDATING && event->kind >= ASSIGNMENT_ON_RESULT)
        on_word(m);
    if (calls_assignment_on_step)
        calls_assignment_on_step(from, event->kind, m->state);
}
