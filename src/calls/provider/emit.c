/* SPDX-License-Identifier: Apache-2.0 */

/* Results that come by EmitToolResult, on any loop: the claim of the attempt names the provider,
 * its lease the loop that it is attached to, which takes the result as if the provider had sent it.
 */

#include <string.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/provider/provider_side.h"

enum { LATE_MS = 5000 };

/* The body of a BUS_EMIT: this, the principal, the response. */
struct head {
    uint32_t principal_len;
    uint32_t result_offset; /* in the response */
    uint32_t result_len;
    uint32_t is_error;
};

/* ---- the loop that it comes to --------------------------------------------------------------- */

static void answer_emit(struct calls_emission *emit, enum calls_error error, const char *words)
{
    calls_emission_forget(emit);
    emit->fn(emit, error, words);
}

static void on_late(struct net_timer *timer)
{
    answer_emit(peg__container_of(timer, struct calls_emission, late), CALLS_SERVICE_UNAVAILABLE,
                "the node that the provider is attached to does not answer: send the result again");
}

static const char NOT_RUNNING[] =
    "no provider is running this call: it has ended, or was never started";

static void on_emit_lease(struct bus_wait *wait, const struct bus_answer *got)
{
    struct calls_emission *emit = peg__container_of(wait, struct calls_emission, wait);

    if (got->status || !got->n_addresses || !got->addresses[0].node)
        answer_emit(emit, CALLS_NOT_FOUND, NOT_RUNNING);
    else
        bus_send(emit->calls->bus, got->addresses[0], &emit->message, NULL);
}

static void on_owner(struct bus_wait *wait, const struct bus_answer *got)
{
    struct calls_emission *emit = peg__container_of(wait, struct calls_emission, wait);
    struct bus_address address;
    const peg_str owner = calls_claim_token_owner(got->current, &address);

    if (got->status || !owner.len || owner.len >= sizeof(emit->message.incarnation) ||
        calls_claim_token_is_coordinator(owner)) {
        answer_emit(emit, CALLS_NOT_FOUND, NOT_RUNNING);
        return;
    }
    memcpy(emit->message.incarnation, owner.ptr, owner.len);
    emit->wait.fn = on_emit_lease;
    bus_leases(emit->calls->bus, &owner, 1, &emit->wait);
}

static void read_owner(struct calls_emission *emit, uint32_t attempt,
                       void (*fn)(struct bus_wait *wait, const struct bus_answer *got))
{
    const struct bus_key key = calls_key(&emit->message.id, BUS_CLAIM, attempt);

    emit->wait.fn = fn;
    bus_read(emit->calls->bus, &key, &emit->wait);
}

/* Without an attempt: the last one that was claimed. */
static void on_earlier(struct bus_wait *wait, const struct bus_answer *got)
{
    struct calls_emission *emit = peg__container_of(wait, struct calls_emission, wait);

    if (!got->status && got->current && emit->message.attempt < PEG_LIMIT_GATEWAY_ATTEMPTS) {
        emit->message.attempt++;
        read_owner(emit, emit->message.attempt + 1, on_earlier);
    } else {
        read_owner(emit, emit->message.attempt, on_owner);
    }
}

static struct peg__blob *pack_emit(const struct calls_emitted *emitted)
{
    const struct head head = {
        .principal_len = (uint32_t)emitted->principal.len,
        .result_offset =
            emitted->result.len ? (uint32_t)(emitted->result.ptr - emitted->response.ptr) : 0,
        .result_len = (uint32_t)emitted->result.len,
        .is_error = emitted->is_error,
    };
    struct peg__blob *blob =
        peg__blob_new(sizeof(head) + emitted->principal.len + emitted->response.len);

    if (!blob)
        return NULL;
    memcpy(blob->bytes, &head, sizeof(head));
    memcpy(blob->bytes + sizeof(head), emitted->principal.ptr, emitted->principal.len);
    memcpy(blob->bytes + sizeof(head) + emitted->principal.len, emitted->response.ptr,
           emitted->response.len);
    return blob;
}

void calls_emit(struct calls_loop *calls, const struct calls_emitted *emitted,
                struct calls_emission *emit)
{
    *emit = (struct calls_emission){
        .fn = emit->fn,
        .message = {.kind = BUS_EMIT,
                    .id = *emitted->id,
                    .attempt = emitted->attempt,
                    .epoch = ++calls->n_emits,
                    .from = calls->bus->self,
                    .body = pack_emit(emitted)},
        .late.fn = on_late,
    };
    if (!emit->message.body) {
        emit->fn(emit, CALLS_OVERLOADED, "the gateway is out of memory: send the result again");
        return;
    }
    emit->calls = calls;
    PEG_LIST_PUSH(calls->emits, emit, next, prev);
    calls_arm(calls, &emit->late, LATE_MS);
    if (emitted->attempt)
        read_owner(emit, emitted->attempt, on_owner);
    else
        read_owner(emit, 1, on_earlier);
}

void calls_emission_forget(struct calls_emission *emit)
{
    struct calls_loop *calls = emit->calls;

    if (!calls)
        return;
    PEG_LIST_REMOVE(calls->emits, emit, next, prev);
    bus_forget_wait(calls->bus, &emit->wait);
    bus_disarm(calls->bus, &emit->late);
    emit->message.body = peg__blob_unref(emit->message.body);
    emit->calls = NULL;
}

void calls_emit_on_answer(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_emission *emit = calls->emits;

    while (emit && !(emit->message.epoch == message->epoch &&
                     bus_id_equal(&emit->message.id, &message->id)))
        emit = emit->next;
    if (emit)
        answer_emit(emit, message->reason ? CALLS_NOT_FOUND : CALLS_OK,
                    message->reason ? NOT_RUNNING : "");
}

/* ---- the loop that has the provider ---------------------------------------------------------- */

static bool unpack_emit(const struct bus_message *message, struct calls_emitted *ret_emitted)
{
    const peg_str body = peg__blob_str(message->body);
    struct head head;
    peg_str rest;

    if (body.len < sizeof(head))
        return false;
    memcpy(&head, body.ptr, sizeof(head));
    rest = peg__str_from(body, sizeof(head));
    if (head.principal_len > rest.len)
        return false;
    ret_emitted->principal = (peg_str){rest.ptr, head.principal_len};
    ret_emitted->response = peg__str_from(rest, head.principal_len);
    if ((uint64_t)head.result_offset + head.result_len > ret_emitted->response.len)
        return false;
    ret_emitted->result =
        (peg_str){ret_emitted->response.ptr + head.result_offset, head.result_len};
    ret_emitted->is_error = head.is_error;
    return true;
}

/* Another principal's call is treated as one that there is not. */
static bool take_emit(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_assignment *assignment =
        calls_assignment_find(calls, &message->id, message->attempt);
    struct calls_emitted emitted;

    if (!assignment || !unpack_emit(message, &emitted) ||
        !peg__str_eq(assignment->provider->toolset->owner, emitted.principal))
        return false;
    return calls_provider_result(assignment->provider, &message->id, message->attempt,
                                 emitted.response, emitted.result, emitted.is_error);
}

void calls_emit_on_message(struct calls_loop *calls, const struct bus_message *message)
{
    const struct bus_message notified = {
        .kind = BUS_EMITTED,
        .reason = take_emit(calls, message) ? BUS_NO_REASON : BUS_UNKNOWN,
        .id = message->id,
        .attempt = message->attempt,
        .epoch = message->epoch,
        .from = calls->bus->self,
    };

    bus_send(calls->bus, message->from, &notified, NULL);
}
