/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Results that come by EmitToolResult, on any loop: the register of the attempt tells who runs the
 * call, his lease where he is attached, and the desk there takes the result as if he had sent it.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"

enum { LATE_MS = 5000 };

/* What the letter carries, then the principal, then the response. */
struct head {
    uint32_t principal_len;
    uint32_t result_offset; /* in the response */
    uint32_t result_len;
    uint32_t is_error;
};

/* ---- the one who asks ------------------------------------------------------------------------ */

static void answer_emit(struct gw_emit *emit, enum wire_error error, const char *words)
{
    gw_emit_forget(emit);
    emit->fn(emit, error, words);
}

static void on_late(struct net_timer *timer)
{
    answer_emit(peg__container_of(timer, struct gw_emit, late), WIRE_SERVICE_UNAVAILABLE,
                "the node that the provider is attached to does not answer: send the result again");
}

static const char NOT_RUNNING[] =
    "no provider is running this call: it has ended, or was never started";

static void on_emit_lease(struct bus_wait *wait, const struct bus_answer *got)
{
    struct gw_emit *emit = peg__container_of(wait, struct gw_emit, wait);
    struct bus_message letter = {
        .kind = BUS_EMIT,
        .id = emit->id,
        .attempt = emit->attempt,
        .epoch = emit->number,
        .from = emit->desk->bus->self,
        .body = emit->body,
    };

    if (got->status || !got->n_addresses || !got->addresses[0].node) {
        answer_emit(emit, WIRE_NOT_FOUND, NOT_RUNNING);
        return;
    }
    memcpy(letter.incarnation, emit->incarnation, sizeof(letter.incarnation));
    bus_send(emit->desk->bus, got->addresses[0], &letter, NULL);
}

static void on_owner(struct bus_wait *wait, const struct bus_answer *got)
{
    struct gw_emit *emit = peg__container_of(wait, struct gw_emit, wait);
    struct bus_address address;
    const peg_str who = gw_claim_token_owner(got->current, &address);
    peg_str name;

    if (got->status || !who.len || who.len >= sizeof(emit->incarnation) ||
        gw_claim_token_is_coordinator(who)) {
        answer_emit(emit, WIRE_NOT_FOUND, NOT_RUNNING);
        return;
    }
    memcpy(emit->incarnation, who.ptr, who.len);
    emit->incarnation[who.len] = '\0';
    name = peg__str(emit->incarnation);
    emit->wait.fn = on_emit_lease;
    bus_leases(emit->desk->bus, &name, 1, &emit->wait);
}

static void read_owner(struct gw_emit *emit, uint32_t attempt,
                       void (*fn)(struct bus_wait *wait, const struct bus_answer *got))
{
    const struct bus_key key = {
        .id = emit->id,
        .what = BUS_CLAIM,
        .n = attempt,
        .is_node_local = gw_id_is_node_local(&emit->id),
    };

    emit->wait.fn = fn;
    bus_read(emit->desk->bus, &key, &emit->wait);
}

/* Who does not name an attempt means the last that somebody has the right to. */
static void on_earlier(struct bus_wait *wait, const struct bus_answer *got)
{
    struct gw_emit *emit = peg__container_of(wait, struct gw_emit, wait);

    if (!got->status && got->current && emit->attempt < PEG_LIMIT_GATEWAY_ATTEMPTS) {
        emit->attempt++;
        read_owner(emit, emit->attempt + 1, on_earlier);
    } else {
        read_owner(emit, emit->attempt, on_owner);
    }
}

static struct peg__blob *pack_emit(const struct gw_emitted *emitted)
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
    char *at = blob ? blob->bytes : NULL;

    if (!blob)
        return NULL;
    memcpy(at, &head, sizeof(head));
    memcpy(at + sizeof(head), emitted->principal.ptr, emitted->principal.len);
    memcpy(at + sizeof(head) + emitted->principal.len, emitted->response.ptr,
           emitted->response.len);
    return blob;
}

static void link_emit(struct gw_calls *desk, struct gw_emit *emit)
{
    emit->prev = NULL;
    emit->next = desk->emits;
    if (emit->next)
        emit->next->prev = emit;
    desk->emits = emit;
}

void gw_calls_emit(struct gw_calls *desk, const struct gw_emitted *emitted, struct gw_emit *emit)
{
    *emit = (struct gw_emit){
        .fn = emit->fn,
        .number = ++desk->n_emits,
        .id = *emitted->id,
        .attempt = emitted->attempt,
        .body = pack_emit(emitted),
        .late.fn = on_late,
    };
    if (!emit->body) {
        emit->fn(emit, WIRE_OVERLOADED, "the gateway is out of memory: send the result again");
        return;
    }
    emit->desk = desk;
    link_emit(desk, emit);
    bus_arm(desk->bus, &emit->late, bus_now_ns(desk->bus) + (int64_t)LATE_MS * 1000000);
    if (emit->attempt)
        read_owner(emit, emit->attempt, on_owner);
    else
        read_owner(emit, 1, on_earlier);
}

void gw_emit_forget(struct gw_emit *emit)
{
    struct gw_calls *desk = emit->desk;

    if (!desk)
        return;
    if (emit->prev)
        emit->prev->next = emit->next;
    else
        desk->emits = emit->next;
    if (emit->next)
        emit->next->prev = emit->prev;
    bus_forget_wait(desk->bus, &emit->wait);
    bus_disarm(desk->bus, &emit->late);
    emit->body = peg__blob_unref(emit->body);
    emit->desk = NULL;
}

void gw_emit_on_answer(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_emit *emit = desk->emits;

    while (emit && !(emit->number == letter->epoch && bus_id_equal(&emit->id, &letter->id)))
        emit = emit->next;
    if (!emit)
        return;
    if (letter->reason)
        answer_emit(emit, WIRE_NOT_FOUND, NOT_RUNNING);
    else
        answer_emit(emit, WIRE_OK, "");
}

/* ---- the one who has the provider ------------------------------------------------------------ */

static bool unpack_emit(const struct bus_message *letter, struct gw_emitted *ret_emitted)
{
    const peg_str body = peg__blob_str(letter->body);
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

/* Another principal's call is not there for this one: whether it exists is not his to know. */
static bool take_emit(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_assignment *held = gw_assignment_find(desk, &letter->id, letter->attempt);
    struct gw_emitted emitted;

    if (!held || !unpack_emit(letter, &emitted) ||
        !peg__str_eq(held->provider->toolset->owner, emitted.principal))
        return false;
    return gw_provider_result(held->provider, &letter->id, letter->attempt, emitted.response,
                              emitted.result, emitted.is_error);
}

void gw_emit_on_message(struct gw_calls *desk, const struct bus_message *letter)
{
    const struct bus_message told = {
        .kind = BUS_EMITTED,
        .reason = take_emit(desk, letter) ? BUS_NO_REASON : BUS_UNKNOWN,
        .id = letter->id,
        .attempt = letter->attempt,
        .epoch = letter->epoch,
        .from = desk->bus->self,
    };

    bus_send(desk->bus, letter->from, &told, NULL);
}

/* ---- pongs ----------------------------------------------------------------------------------- */

/* Ping ids are "<incarnation>/<number>". If the provider is on another loop, its own stream will
 * tell: a pong that comes another way is worth a letter only if it is cheap. */
void gw_calls_pong(struct gw_calls *desk, peg_str ping_id)
{
    char incarnation[65] = {0};
    const char *slash = (const char *)memchr(ping_id.ptr, '/', ping_id.len);
    const size_t len = slash ? (size_t)(slash - ping_id.ptr) : 0;
    struct gw_provider *provider;

    if (!len || len >= sizeof(incarnation))
        return;
    memcpy(incarnation, ping_id.ptr, len);
    provider = gw_providers_find(desk, incarnation);
    if (provider)
        gw_provider_pong(provider);
}
