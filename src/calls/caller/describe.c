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

/* ---- the end ---- */

static void end_description(struct calls_description *d, enum calls_error error)
{
    d->fn(d, error);
}

static bool is_unread(struct calls_description *d, const struct bus_answer *answer)
{
    if (answer->status)
        end_description(d, answer->status == PEG_ENOMEM ? CALLS_OVERLOADED
                                                        : CALLS_SERVICE_UNAVAILABLE);
    return answer->status != PEG_OK;
}

static struct calls_description *description_of(struct bus_wait *wait)
{
    return peg__container_of(wait, struct calls_description, wait);
}

static struct bus_key described_key(const struct calls_description *d, char what, uint32_t n)
{
    return (struct bus_key){
        .id = d->id,
        .what = what,
        .n = n,
        .is_node_local = calls_id_is_node_local(&d->id),
    };
}

/* ---- leases: which of those that have it are alive? ---- */

static void on_leases(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (is_unread(d, answer))
        return;
    for (size_t i = 0; i < answer->n_addresses && i <= d->n_claims; i++) {
        const bool is_alive = answer->addresses[i].node != 0;

        if (i < d->n_claims)
            d->claims[i].is_attached = is_alive;
        else
            d->is_coordinator_alive = is_alive;
    }
    end_description(d, CALLS_OK);
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
        end_description(d, CALLS_OK);
        return;
    }
    d->wait.fn = on_leases;
    bus_leases(d->calls->bus, names, n, &d->wait);
}

/* ---- waiters ---- */

static void on_waiters_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (is_unread(d, answer))
        return;
    d->n_waiters = answer->n_addresses;
    read_leases(d);
}

static void read_waiters(struct calls_description *d)
{
    const struct bus_key key = described_key(d, BUS_WAITERS, 0);

    d->wait.fn = on_waiters_read;
    bus_waiters(d->calls->bus, &key, &d->wait);
}

static void read_next_register(struct calls_description *d, char what, uint32_t n,
                               void (*fn)(struct bus_wait *wait, const struct bus_answer *answer))
{
    const struct bus_key key = described_key(d, what, n);

    d->wait.fn = fn;
    bus_read(d->calls->bus, &key, &d->wait);
}

/* ---- questions: the last one is open if it has no reply ---- */

static void on_reply_found(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);
    struct calls_question question;

    if (is_unread(d, answer))
        return;
    if (!answer->current && calls_question_read(d->kept[2], &question)) {
        d->question = d->n_questions;
        d->requests = question.requests;
    }
    read_waiters(d);
}

// NOLINTNEXTLINE(misc-no-recursion): once for each question, PEG_LIMIT_GATEWAY_QUESTIONS at most
static void on_question_found(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (is_unread(d, answer))
        return;
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

static void on_result(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (is_unread(d, answer))
        return;
    if (answer->current)
        d->kept[1] = peg__blob_ref(answer->current);
    d->has_ended = calls_outcome_read(d->kept[1], &d->outcome);
    if (!d->has_identity && !d->n_claims && !d->has_ended)
        end_description(d, CALLS_NOT_FOUND);
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
static void on_claim(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (is_unread(d, answer))
        return;
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
        end_description(d, CALLS_NOT_FOUND);
}

static void on_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_description *d = description_of(wait);

    if (!is_unread(d, answer))
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

/* As if it had an identity. NULL: no memory. */
static struct peg__blob *make_identity(const struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    const struct calls_subject subject = calls_call_subject(call);
    const struct calls_identity identity = {
        .coordinator = bus->self,
        .deadline_ms = call->machine.deadline_ms,
        .epoch = bus_epoch(bus),
        .principal = call->caller_name,
    };

    return calls_identity_write(&identity, &subject);
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
    inquiry->identity = call ? make_identity(call) : NULL;
    bus_post(calls->bus, inquiry->from, &inquiry->answer);
}

static void on_inquiry_answer(struct bus_post *post, void *user)
{
    struct calls_inquiry *inquiry = peg__container_of(post, struct calls_inquiry, answer);
    struct calls_description *d = user ? inquiry->description : NULL;

    if (d) {
        d->inquiry = NULL;
        if (inquiry->is_there && !inquiry->identity)
            end_description(d, CALLS_OVERLOADED);
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
        end_description(d, CALLS_OVERLOADED);
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
    };
    if (principal && !description->principal)
        end_description(description, CALLS_OVERLOADED);
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
