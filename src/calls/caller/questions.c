/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a running call asks, on the side of its callers, whether this node coordinates the call or
 * follows it. Hints, new callers and rechecks only say that it is time to look: the truth is in the
 * registers. Its questions are read in turn up to the first that is not there; the last one is open
 * if it has no reply, and then goes to callers that can be asked and do not know it.
 *
 * Always from a timer, since the code that notices may be in the middle of anything.
 */

#include "base/mem.h"
#include "calls/caller/call.h"

struct calls_questions {
    struct calls_call *call;
    uint32_t n;             /* that are known */
    struct peg__blob *last; /* of these */
    bool must_look;         /* again, when this look is over */
    struct bus_wait wait;
    struct net_timer soon;
};

void calls_questions_free(struct calls_call *call)
{
    struct calls_questions *questions = call->questions;

    if (!questions)
        return;
    bus_forget_wait(call->calls->bus, &questions->wait);
    bus_disarm(call->calls->bus, &questions->soon);
    peg__blob_unref(questions->last);
    peg__free(questions);
    call->questions = NULL;
}

/* A caller that is notified may detach; none is dropped, and neither is the call. */
static void report(struct calls_call *call, const struct calls_question *question)
{
    const uint32_t number = call->questions->n;
    struct calls_caller *next;

    for (struct calls_caller *caller = call->callers; caller; caller = next) {
        const uint32_t before = caller->last_question;

        next = caller->next;
        if (!caller->can_be_asked || !caller->is_reported || before >= number)
            continue;
        caller->last_question = number; /* it may be gone when it has been told */
        if (!caller->events->on_question(caller, number, question->requests))
            caller->last_question = before;
    }
}

static void arm(struct calls_questions *questions)
{
    struct bus *bus = questions->call->calls->bus;

    bus_arm(bus, &questions->soon, bus_now_ns(bus));
}

static void read_next(struct calls_questions *questions, enum bus_register what, uint32_t n,
                      calls_answer_fn *fn)
{
    const struct calls_call *call = questions->call;

    calls_read_register(call->calls->bus, calls_key(&call->entry.id, what, n), &questions->wait,
                        fn);
}

/* What could not be read is looked for again at the next recheck. */
static void on_reply_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_questions *questions = peg__container_of(wait, struct calls_questions, wait);
    struct calls_question question;

    if (questions->must_look)
        arm(questions);
    questions->must_look = false;
    if (!answer->status && !answer->current && calls_question_read(questions->last, &question))
        report(questions->call, &question);
}

// NOLINTNEXTLINE(misc-no-recursion): one further each time, PEG_LIMIT_GATEWAY_QUESTIONS at most
static void on_question_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_questions *questions = peg__container_of(wait, struct calls_questions, wait);

    if (!answer->status && answer->current && questions->n < PEG_LIMIT_GATEWAY_QUESTIONS) {
        peg__blob_unref(questions->last);
        questions->last = peg__blob_ref(answer->current);
        questions->n++;
        read_next(questions, BUS_QUESTION, questions->n + 1, on_question_read);
    } else if (questions->n) {
        read_next(questions, BUS_REPLY, questions->n, on_reply_read);
    } else {
        questions->must_look = false;
    }
}

static void on_soon(struct net_timer *timer)
{
    struct calls_questions *questions = peg__container_of(timer, struct calls_questions, soon);

    if (questions->wait.pending)
        questions->must_look = true;
    else
        read_next(questions, BUS_QUESTION, questions->n + 1, on_question_read);
}

/* Another node may have asked under this identity before: only calls with one have questions. */
void calls_questions_look(struct calls_call *call)
{
    bool is_wanted = false;

    for (const struct calls_caller *caller = call->callers; caller; caller = caller->next)
        is_wanted |= caller->can_be_asked;
    if (!is_wanted || !calls_call_is_keyed(call) || call->machine.state == CALLS_LOCATING)
        return;
    if (!call->questions) {
        call->questions = (struct calls_questions *)peg__alloc_zero(1, sizeof(*call->questions));
        if (!call->questions)
            return; /* at the next recheck */
        call->questions->call = call;
        call->questions->soon.fn = on_soon;
    }
    arm(call->questions);
}
