/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What became of a call, for those who ask later and perhaps at another node. Its registers tell,
 * read one after the other:
 *
 *   identity -> claims of attempts 1, 2, ... -> result -> [questions] -> waiters -> leases
 *
 * They are read without stopping the call, so what is read first may be a moment older. A call
 * without an identity has no such register: the loop that coordinates it, which its id names, says
 * the same about it.
 */

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"

typedef void step_fn(struct calls_description *d, const struct bus_answer *answer);

static void on_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = peg__container_of(wait, struct calls_description, wait);

    if (answer->status)
        d->fn(d, answer->status == PEG_ENOMEM ? CALLS_OVERLOADED : CALLS_SERVICE_UNAVAILABLE);
    else
        d->step(d, answer);
}

static void read_next_register(struct calls_description *d, enum bus_register what, uint32_t n,
                               step_fn *step)
{
    const struct bus_key key = calls_key(&d->id, what, n);

    d->step = step;
    bus_read(d->calls->bus, &key, &d->wait);
}

/* ---- leases: which of those that have it are alive? ---- */

static void on_leases(struct calls_description *d, const struct bus_answer *answer)
{
    for (size_t i = 0; i < answer->n_addresses && i <= d->n_claims; i++) {
        const bool is_alive = answer->addresses[i].node != 0;

        if (i < d->n_claims)
            d->claims[i].is_attached = is_alive;
        else
            d->is_coordinator_alive = is_alive;
    }
    d->fn(d, CALLS_OK);
}

static void read_leases(struct calls_description *d)
{
    char coordinator[BUS_ADDRESS_TEXT];
    peg_str names[CALLS_MAX_CLAIMS + 1];
    size_t n = 0;

    for (; n < d->n_claims; n++)
        names[n] = peg__str(d->claims[n].owner);
    bus_address_print(d->identity.coordinator, coordinator);
    if (d->has_identity)
        names[n++] = peg__str(coordinator);
    if (!n) {
        d->fn(d, CALLS_OK);
        return;
    }
    d->step = on_leases;
    bus_leases(d->calls->bus, names, n, &d->wait);
}

/* ---- waiters ---- */

static void on_waiters_read(struct calls_description *d, const struct bus_answer *answer)
{
    d->n_waiters = answer->n_addresses;
    read_leases(d);
}

static void read_waiters(struct calls_description *d)
{
    const struct bus_key key = calls_key(&d->id, BUS_WAITERS, 0);

    d->step = on_waiters_read;
    bus_waiters(d->calls->bus, &key, &d->wait);
}

/* ---- questions: the last one is open if it has no reply ---- */

static void on_reply_found(struct calls_description *d, const struct bus_answer *answer)
{
    struct calls_question question;

    if (!answer->current && calls_question_read(d->kept[2], &question)) {
        d->question = d->n_questions;
        d->requests = question.requests;
    }
    read_waiters(d);
}

// NOLINTNEXTLINE(misc-no-recursion): once for each question, PEG_LIMIT_GATEWAY_QUESTIONS at most
static void on_question_found(struct calls_description *d, const struct bus_answer *answer)
{
    if (answer->current && d->n_questions < PEG_LIMIT_GATEWAY_QUESTIONS) {
        peg__blob_unref(d->kept[2]);
        d->kept[2] = peg__blob_ref(answer->current);
        d->n_questions++;
        read_next_register(d, BUS_QUESTION, d->n_questions + 1, on_question_found);
    } else if (d->n_questions) {
        read_next_register(d, BUS_REPLY, d->n_questions, on_reply_found);
    } else {
        read_waiters(d);
    }
}

/* ---- the result ---- */

static void on_result(struct calls_description *d, const struct bus_answer *answer)
{
    if (answer->current)
        d->kept[1] = peg__blob_ref(answer->current);
    d->has_ended = calls_outcome_read(d->kept[1], &d->outcome);
    if (!d->has_identity && !d->n_claims && !d->has_ended)
        d->fn(d, CALLS_NOT_FOUND);
    else if (!calls_id_is_keyed(&d->id))
        read_leases(d);
    else if (d->wants_question && !d->has_ended)
        read_next_register(d, BUS_QUESTION, 1, on_question_found);
    else
        read_waiters(d);
}

/* ---- claims ---- */

/* False: it is no token of ours. */
static bool take_claim(struct calls_description *d, const struct peg__blob *token)
{
    struct calls_claim *claim = &d->claims[d->n_claims];
    const peg_str owner = calls_claim_token_owner(token, &claim->address);

    if (!owner.len || owner.len >= sizeof(claim->owner))
        return false;
    memcpy(claim->owner, owner.ptr, owner.len);
    claim->owner[owner.len] = '\0';
    d->n_claims++;
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): once for each attempt, CALLS_MAX_CLAIMS at most
static void on_claim(struct calls_description *d, const struct bus_answer *answer)
{
    if (answer->current && take_claim(d, answer->current) && d->n_claims < CALLS_MAX_CLAIMS)
        read_next_register(d, BUS_CLAIM, d->n_claims + 1, on_claim);
    else
        read_next_register(d, BUS_RESULT, 0, on_result);
}

/* ---- the identity ---- */

/* Without an identity nothing says whose call it is; and one that should have it is none. */
static bool may_be_told(const struct calls_description *d)
{
    if (!d->has_identity)
        return !d->principal && !calls_id_is_keyed(&d->id);
    return !d->principal || peg__str_eq(d->identity.principal, peg__blob_str(d->principal));
}

/* NULL: there is none. */
static void take_identity(struct calls_description *d, struct peg__blob *blob)
{
    if (blob && calls_identity_read(blob, &d->identity)) {
        d->kept[0] = peg__blob_ref(blob);
        d->has_identity = true;
        d->subject = calls_identity_subject(blob);
        d->is_other_epoch = d->identity.epoch != bus_epoch(d->calls->bus);
    }
    if (may_be_told(d))
        read_next_register(d, BUS_CLAIM, 1, on_claim);
    else
        d->fn(d, CALLS_NOT_FOUND);
}

static void on_identity(struct calls_description *d, const struct bus_answer *answer)
{
    take_identity(d, answer->current);
}

/* ---- a call without an identity: asks the loop that coordinates it ---- */

/* Two have a reference: the exchange, and the loop that asks. */
struct calls_inquiry {
    struct bus_post ask;
    struct bus_post answer;
    atomic_uint n_refs;
    struct bus_id id;
    uint32_t from;
    struct calls_description *description; /* the asking loop's; NULL: it does not want to know */
    bool is_there;                         /* the answer */
    struct peg__blob *identity;            /* the same; NULL: it is not there, or no memory */
};

static void unref_inquiry(struct calls_inquiry *inquiry)
{
    if (atomic_fetch_sub(&inquiry->n_refs, 1) > 1)
        return;
    peg__blob_unref(inquiry->identity);
    peg__free(inquiry);
}

static void on_inquiry(struct bus_post *post, void *user)
{
    struct calls_inquiry *inquiry = peg__container_of(post, struct calls_inquiry, ask);
    const struct calls_loop *calls = (const struct calls_loop *)user;
    const struct calls_call *call = calls ? calls_find(calls, &inquiry->id) : NULL;

    if (!calls) { /* there is no such loop, or it has ended */
        unref_inquiry(inquiry);
        return;
    }
    inquiry->is_there = call != NULL;
    inquiry->identity = call ? calls_call_make_identity(call, 0) : NULL;
    bus_post(calls->bus, inquiry->from, &inquiry->answer);
}

static void on_inquiry_answer(struct bus_post *post, void *user)
{
    struct calls_inquiry *inquiry = peg__container_of(post, struct calls_inquiry, answer);
    struct calls_description *d = user ? inquiry->description : NULL;

    if (d) {
        d->inquiry = NULL;
        if (inquiry->is_there && !inquiry->identity)
            d->fn(d, CALLS_OVERLOADED);
        else
            take_identity(d, inquiry->identity);
        unref_inquiry(inquiry);
    }
    unref_inquiry(inquiry);
}

static void inquire(struct calls_description *d)
{
    struct calls_inquiry *inquiry = (struct calls_inquiry *)peg__alloc_zero(1, sizeof(*inquiry));

    if (!inquiry) {
        d->fn(d, CALLS_OVERLOADED);
        return;
    }
    inquiry->ask.fn = on_inquiry;
    inquiry->answer.fn = on_inquiry_answer;
    atomic_init(&inquiry->n_refs, 2);
    inquiry->id = d->id;
    inquiry->from = d->calls->bus->self.loop;
    inquiry->description = d;
    d->inquiry = inquiry;
    bus_post(d->calls->bus, calls_id_loop(&d->id), &inquiry->ask);
    if (atomic_load(&inquiry->n_refs) == 1) {
        d->inquiry = NULL;
        unref_inquiry(inquiry);
        take_identity(d, NULL);
    }
}

/* ---- the face ---- */

void calls_describe(struct calls_loop *calls, const struct bus_id *id, const peg_str *principal,
                    struct calls_description *description)
{
    *description = (struct calls_description){
        .fn = description->fn,
        .wants_question = description->wants_question,
        .id = *id,
        .calls = calls,
        .principal = principal ? peg__blob_copy(*principal) : NULL,
        .wait.fn = on_answer,
    };
    if (principal && !description->principal)
        description->fn(description, CALLS_OVERLOADED);
    else if (calls_id_is_keyed(id))
        read_next_register(description, BUS_IDENTITY, 0, on_identity);
    else
        inquire(description);
}

void calls_description_clear(struct calls_description *description)
{
    if (!description->calls)
        return;
    bus_forget_wait(description->calls->bus, &description->wait);
    if (description->inquiry) {
        description->inquiry->description = NULL;
        unref_inquiry(description->inquiry);
    }
    description->principal = peg__blob_unref(description->principal);
    for (size_t i = 0; i < sizeof(description->kept) / sizeof(description->kept[0]); i++)
        description->kept[i] = peg__blob_unref(description->kept[i]);
    description->calls = NULL;
    description->inquiry = NULL;
}
