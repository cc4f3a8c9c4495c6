/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer to what a call asks, from any loop of any node. The call's identity tells whose it is;
 * then its outcome, since no question waits when it is over; then the question; then the
 * answer is written, which only the first one can; and a hint goes to the provider that asks. A
 * provider side whose hint is lost reads the register after a while.
 */

#include <string.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/check.h"

enum { LATE_MS = 5000, RETRY_MS = 200 };

static const char NOT_FOUND[] =
    "there is no such question: the call has ended, has not asked it, or is not yours";

static void finish_replying(struct calls_replying *replying, enum calls_error error,
                            const char *words)
{
    calls_replying_forget(replying);
    replying->fn(replying, error, peg__str(words));
}

static void on_reply_late(struct net_timer *timer)
{
    finish_replying(
        peg__container_of(timer, struct calls_replying, late), CALLS_SERVICE_UNAVAILABLE,
        "the registers of the call do not answer: answer again; conflict would mean that this "
        "answer was taken");
}

/* ---- the hint ---- */

static void on_lease(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_replying *replying = peg__container_of(wait, struct calls_replying, wait);
    struct bus *bus = replying->calls->bus;
    struct bus_message message = {
        .kind = BUS_DELTA,
        .reason = BUS_ANSWERED,
        .id = replying->id,
        .attempt = replying->attempt,
        .from = bus->self,
    };

    memcpy(message.incarnation, replying->incarnation, sizeof(message.incarnation));
    if (!answer->status && answer->n_addresses && answer->addresses[0].node)
        bus_send(bus, answer->addresses[0], &message, NULL);
    finish_replying(replying, CALLS_OK, "");
}

static void find_asker(struct calls_replying *replying)
{
    const peg_str name = peg__str(replying->incarnation);

    replying->wait.fn = on_lease;
    bus_leases(replying->calls->bus, &name, 1, &replying->wait);
}

/* ---- the answer ---- */

static void put_reply(struct calls_replying *replying);

static void on_put_again(struct net_timer *timer)
{
    put_reply(peg__container_of(timer, struct calls_replying, again));
}

static void on_reply_put(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_replying *replying = peg__container_of(wait, struct calls_replying, wait);
    struct bus *bus = replying->calls->bus;
    struct calls_reply current;

    if (answer->status == PEG_ELIMIT)
        finish_replying(replying, CALLS_OVERLOADED, "the gateway has no room for the answer");
    else if (answer->status)
        bus_arm(bus, &replying->again, bus_now_ns(bus) + (int64_t)RETRY_MS * 1000000);
    else if (answer->written)
        find_asker(replying);
    else if (calls_reply_read(answer->current, &current) && current.kind == CALLS_REPLY_WITHDRAWN)
        finish_replying(replying, CALLS_CONFLICT, "the tool does not wait for an answer any more");
    else
        finish_replying(replying, CALLS_CONFLICT, "the question was answered before");
}

/* One that is repeated is the same value, so it cannot be refused for itself. As long as the
 * question is of use: the deadline of the call is not known here. */
static void put_reply(struct calls_replying *replying)
{
    struct calls_loop *calls = replying->calls;
    const struct bus_key key = calls_key(&replying->id, BUS_REPLY, replying->number);
    const int64_t keep_until_ms =
        bus_now_ms(calls->bus) + PEG_LIMIT_GATEWAY_MAX_CALL_MS + calls->options.keep_ms;

    replying->wait.fn = on_reply_put;
    bus_put_if_absent(calls->bus, &key, replying->value, keep_until_ms, &replying->wait);
}

/* ---- whose, and is it asked? ---- */

static void on_question_found(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_replying *replying = peg__container_of(wait, struct calls_replying, wait);
    struct calls_question question;

    if (answer->status || !calls_question_read(answer->current, &question)) {
        finish_replying(replying, answer->status ? CALLS_SERVICE_UNAVAILABLE : CALLS_NOT_FOUND,
                        NOT_FOUND);
        return;
    }
    replying->attempt = question.attempt;
    memcpy(replying->incarnation, question.incarnation.ptr, question.incarnation.len);
    replying->incarnation[question.incarnation.len] = '\0';
    put_reply(replying);
}

static void read_before(struct calls_replying *replying, enum bus_register what, uint32_t n,
                        calls_answer_fn *fn)
{
    calls_read_register(replying->calls->bus, calls_key(&replying->id, what, n), &replying->wait,
                        fn);
}

static void on_outcome(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_replying *replying = peg__container_of(wait, struct calls_replying, wait);

    if (answer->current)
        finish_replying(replying, CALLS_NOT_FOUND, NOT_FOUND);
    else
        read_before(replying, BUS_QUESTION, replying->number, on_question_found);
}

/* Another principal's call is treated as one that there is not. */
static void on_owner_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_replying *replying = peg__container_of(wait, struct calls_replying, wait);
    struct calls_identity identity;

    if (answer->status)
        finish_replying(replying, CALLS_SERVICE_UNAVAILABLE,
                        "the call cannot be read now: try again");
    else if (calls_identity_read(answer->current, &identity) &&
             peg__str_eq(identity.principal, peg__blob_str(replying->principal)))
        read_before(replying, BUS_RESULT, 0, on_outcome);
    else
        finish_replying(replying, CALLS_NOT_FOUND, NOT_FOUND);
}

/* ---- the public face ---- */

static bool is_responses(struct calls_loop *calls, peg_str json)
{
    return calls_check_now(calls, NULL, json, "responses") == PEG_OK &&
           peg_json_kind_of(peg_json_root(calls->doc)) == PEG_JSON_OBJECT;
}

static struct peg__blob *make_value(struct calls_loop *calls,
                                    const struct calls_reply_request *request)
{
    return calls_reply_write(&(struct calls_reply){
        .by = calls->bus->self,
        .unique = ++calls->n_tokens,
        .kind = request->responses.len ? CALLS_REPLY_RESPONSES : CALLS_REPLY_REFUSAL,
        .text = request->responses.len ? request->responses : request->refusal,
    });
}

void calls_reply(struct calls_loop *calls, const struct calls_reply_request *request,
                 struct calls_replying *replying)
{
    *replying = (struct calls_replying){
        .fn = replying->fn,
        .id = *request->id,
        .number = request->number,
        .late.fn = on_reply_late,
        .again.fn = on_put_again,
    };
    if (request->responses.len && !is_responses(calls, request->responses)) {
        replying->fn(replying, CALLS_VALIDATION,
                     peg__str("responses is no JSON object with the answers by key"));
        return;
    }
    replying->principal = peg__blob_copy(request->principal);
    replying->value = make_value(calls, request);
    replying->calls = calls;
    PEG_LIST_PUSH(calls->replies, replying, next, prev);
    if (!replying->principal || !replying->value) {
        finish_replying(replying, CALLS_OVERLOADED, "the gateway is out of memory: answer again");
        return;
    }
    bus_arm(calls->bus, &replying->late, bus_now_ns(calls->bus) + (int64_t)LATE_MS * 1000000);
    if (calls_id_is_keyed(request->id))
        read_before(replying, BUS_IDENTITY, 0, on_owner_read);
    else
        finish_replying(replying, CALLS_NOT_FOUND, NOT_FOUND);
}

void calls_replying_forget(struct calls_replying *replying)
{
    struct calls_loop *calls = replying->calls;

    if (!calls)
        return;
    PEG_LIST_REMOVE(calls->replies, replying, next, prev);
    bus_forget_wait(calls->bus, &replying->wait);
    bus_disarm(calls->bus, &replying->late);
    bus_disarm(calls->bus, &replying->again);
    replying->principal = peg__blob_unref(replying->principal);
    replying->value = peg__blob_unref(replying->value);
    replying->calls = NULL;
}
