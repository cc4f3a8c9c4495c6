/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a running call asks, on its provider's side:
 *
 *   Input -> QUESTION written -> hint to the coordinator ... reply written elsewhere, hint ->
 * Answer
 *
 * The questions of a call have one sequence of registers, whichever attempt or provider asked: a
 * question takes the first one that is free, or that has this very question, if it was asked
 * before a break. While it is open, what was written is written again and the reply is read again
 * now and then, so no hint is needed; and the coordinator gets one more each time. Nothing here
 * decides about the call, which goes on as any other: its machine does not know of gates.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/provider/provider_side.h"

enum { FIRST_LOOK_MS = 1000, LAST_LOOK_MS = 5000, FULL_STREAM_MS = 100 };

struct calls_gate {
    struct calls_assignment *assignment;
    uint32_t number;            /* the provider's */
    uint32_t place;             /* of its registers: the question's number for callers */
    struct peg__blob *question; /* that register */
    bool is_written;            /* it holds that */
    int64_t pause_ms;
    struct bus_wait wait;
    struct net_timer again;
};

static void write_question(struct calls_gate *gate);

static struct calls_loop *calls_of(const struct calls_gate *gate)
{
    return gate->assignment->provider->calls;
}

void calls_gate_drop(struct calls_assignment *assignment)
{
    struct calls_gate *gate = assignment->gate;

    if (!gate)
        return;
    bus_forget_wait(calls_of(gate)->bus, &gate->wait);
    bus_disarm(calls_of(gate)->bus, &gate->again);
    peg__blob_unref(gate->question);
    peg__free(gate);
    assignment->gate = NULL;
}

static void look_less_often(struct calls_gate *gate)
{
    calls_arm(calls_of(gate), &gate->again, gate->pause_ms);
    gate->pause_ms = gate->pause_ms * 2 < LAST_LOOK_MS ? gate->pause_ms * 2 : LAST_LOOK_MS;
}

/* ---- the reply ---- */

/* One that its stream has no room for now is read again. A provider that is away asks again when it
 * comes back. */
static void deliver(struct calls_gate *gate, const struct calls_reply *reply)
{
    struct calls_assignment *assignment = gate->assignment;
    const struct calls_provider *provider = assignment->provider;
    const struct calls_answered answered = {
        .id = &assignment->entry.id,
        .attempt = assignment->entry.attempt,
        .number = gate->number,
        .responses = reply->kind == CALLS_REPLY_RESPONSES ? reply->text : (peg_str){"", 0},
        .refusal = reply->kind == CALLS_REPLY_RESPONSES ? (peg_str){"", 0} : reply->text,
    };

    if (calls_provider_is_away(provider) || !provider->events->answer(provider->user, &answered))
        calls_arm(calls_of(gate), &gate->again, FULL_STREAM_MS);
    else
        calls_gate_drop(assignment);
}

static void refuse(struct calls_gate *gate, const char *why)
{
    deliver(gate, &(struct calls_reply){.kind = CALLS_REPLY_REFUSAL, .text = peg__str(why)});
}

static void on_reply(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_gate *gate = peg__container_of(wait, struct calls_gate, wait);
    struct calls_reply reply;

    if (!answer->status && calls_reply_read(answer->current, &reply))
        deliver(gate, &reply);
    else
        look_less_often(gate);
}

static void read_reply(struct calls_gate *gate)
{
    const struct bus_key key = calls_assignment_key(gate->assignment, BUS_REPLY, gate->place);

    gate->wait.fn = on_reply;
    bus_read(calls_of(gate)->bus, &key, &gate->wait);
}

/* In the place of the reply, unless an answer was faster. Nothing depends on it but the words that
 * somebody gets who answers late. */
static void withdraw(struct calls_assignment *assignment)
{
    struct calls_loop *calls = assignment->provider->calls;
    const struct bus_key key = calls_assignment_key(assignment, BUS_REPLY, assignment->gate->place);
    struct peg__blob *reply = NULL;

    if (assignment->gate->is_written)
        reply = calls_reply_write(&(struct calls_reply){
            .by = calls->bus->self,
            .unique = ++calls->n_tokens,
            .kind = CALLS_REPLY_WITHDRAWN,
            .text = PEG_LIT("the tool does not wait for an answer any more"),
        });
    if (reply)
        bus_put_if_absent(calls->bus, &key, reply, calls_assignment_keep_until(assignment), NULL);
    peg__blob_unref(reply);
    calls_gate_drop(assignment);
}

/* ---- the question ---- */

static void on_question_put(struct bus_wait *wait, const struct bus_answer *answer)
{
    const struct calls_assignment_action hint = {.message = BUS_DELTA, .reason = BUS_ASKED};
    struct calls_gate *gate = peg__container_of(wait, struct calls_gate, wait);
    struct calls_assignment *assignment = gate->assignment;

    if (answer->status == PEG_ELIMIT) {
        refuse(gate, "the gateway has no room for the question");
    } else if (answer->status) {
        look_less_often(gate);
    } else if (answer->written) {
        gate->is_written = true;
        assignment->last_question = gate->place;
        calls_assignment_send(assignment, assignment->coordinator, &hint, NULL);
        read_reply(gate);
    } else if (gate->place < PEG_LIMIT_GATEWAY_QUESTIONS) {
        gate->place++;
        write_question(gate);
    } else {
        refuse(gate, "the call has asked too often (PEG_LIMIT_GATEWAY_QUESTIONS)");
    }
}

// NOLINTNEXTLINE(misc-no-recursion): one place further each time, PEG_LIMIT_GATEWAY_QUESTIONS at
// most
static void write_question(struct calls_gate *gate)
{
    const struct bus_key key = calls_assignment_key(gate->assignment, BUS_QUESTION, gate->place);

    gate->wait.fn = on_question_put;
    bus_put_if_absent(calls_of(gate)->bus, &key, gate->question,
                      calls_assignment_keep_until(gate->assignment), &gate->wait);
}

static void on_again(struct net_timer *timer)
{
    write_question(peg__container_of(timer, struct calls_gate, again));
}

/* At once: something may have changed. */
static void look_now(struct calls_gate *gate)
{
    gate->pause_ms = FIRST_LOOK_MS;
    calls_arm(calls_of(gate), &gate->again, 0);
}

static struct calls_gate *new_gate(struct calls_assignment *assignment, uint32_t number,
                                   peg_str requests)
{
    struct calls_gate *gate = (struct calls_gate *)peg__alloc_zero(1, sizeof(*gate));

    if (!gate)
        return NULL;
    *gate = (struct calls_gate){
        .assignment = assignment,
        .number = number,
        .place = assignment->last_question ? assignment->last_question : 1,
        .question = calls_question_write(&(struct calls_question){
            .incarnation = peg__str(assignment->provider->incarnation),
            .attempt = assignment->entry.attempt,
            .number = number,
            .requests = requests,
        }),
        .again.fn = on_again,
    };
    assignment->gate = gate;
    if (!gate->question)
        calls_gate_drop(assignment);
    return assignment->gate;
}

/* A call that may be asked has an identity: one without has no caller who could answer. */
bool calls_provider_input(struct calls_provider *provider, const struct bus_id *id,
                          uint32_t attempt, uint32_t number, peg_str requests)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);
    struct calls_gate *gate = assignment ? assignment->gate : NULL;

    if (!assignment)
        return true; /* it has ended */
    if (!calls_id_is_keyed(id))
        return false;
    if (gate && gate->number != number)
        withdraw(assignment); /* the provider has one at a time: that one is over */
    if (!assignment->gate && !new_gate(assignment, number, requests))
        return false;
    look_now(assignment->gate);
    return true;
}

void calls_provider_withdraw(struct calls_provider *provider, const struct bus_id *id,
                             uint32_t attempt, uint32_t number)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);
    const struct calls_gate *gate = assignment ? assignment->gate : NULL;

    if (gate && gate->number == number)
        withdraw(assignment);
}

void calls_gate_on_answered(struct calls_loop *calls, const struct bus_message *message)
{
    const struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);

    if (assignment && assignment->gate)
        look_now(assignment->gate);
}
