/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a request to the stream: its identity, if it has one, then the streams. And the other way to
 * a call: by its id.
 */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/redis.h"
#include "calls/value.h"
#include "gateway/direct/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- by its id ------------------------------------------------------------------------------- */

static bool is_owner(const struct direct_call *call, const struct calls_identity *identity)
{
    return peg__str_eq(peg__blob_str(call->principal), identity->principal);
}

static void on_located(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, wait);
    struct gw_direct *direct = call->direct;
    struct calls_identity identity;

    if (answer->status) {
        direct_end_refused(call, CALLS_TIMEOUT,
                           peg__str("the registry did not answer, and the call may go on: ask "
                                    "again"),
                           0);
    } else if (!calls_identity_read(answer->current, &identity) || !is_owner(call, &identity)) {
        direct_end_refused(call, call->asked_before ? CALLS_OUTCOME_UNKNOWN : CALLS_NOT_FOUND,
                           peg__str("there is no such call (any more): it ended too long ago "
                                    "(results are kept for RESULT_STREAM_MAPPING_TTL), or Redis "
                                    "has lost it; it may have run: check before you retry"),
                           0);
    } else if (call->is_stopping) {
        const struct calls_outcome stopped = {.kind = CALLS_KIND_CANCELED};
        const struct bus_message stop = {.kind = BUS_FOLLOWER,
                                         .reason = BUS_STOP,
                                         .id = call->entry.id,
                                         .from = direct->bus->self};

        bus_send(direct->bus, identity.coordinator, &stop, NULL);
        direct_end(call, &stopped);
    } else {
        direct_follow(call, &identity);
    }
}

void direct_run_locate(struct direct_call *call)
{
    const struct bus_key key = direct_register(call, BUS_IDENTITY);

    call->state = DIRECT_LOCATING;
    call->wait.fn = on_located;
    bus_read(call->direct->bus, &key, &call->wait);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The part of a packed pegboard.v1.Call that Pulse has, too; what is no UTF-8 is left out. */
static peg_str text_field(peg_str message, unsigned field)
{
    const peg_str text = wire_find_bytes(message, field);

    return text.ptr && peg__utf8_is_valid(text) ? text : (peg_str){"", 0};
}

peg_status direct_write_request(struct direct_call *call, const struct calls_request *request)
{
    struct peg__buf *out = &call->direct->text;
    const peg_str meta = wire_find_bytes(request->packed, PEGBOARD_V1_CALL_META_FIELD);
    char id[BUS_ID_TEXT];
    struct pulse_entry entry = {.event = PULSE_CALL};
    struct pulse_call *text = &entry.call;

    bus_id_print(&call->entry.id, id);
    *text = (struct pulse_call){
        .tool_use_id = peg__str(id),
        .tool = request->tool,
        .payload = request->payload.len ? request->payload : (peg_str)PEG_LIT("{}"),
        .has_meta = true,
        .run_id = text_field(meta, PEGBOARD_V1_CALL_META_RUN_ID_FIELD),
        .session_id = text_field(meta, PEGBOARD_V1_CALL_META_SESSION_ID_FIELD),
        .turn_id = text_field(meta, PEGBOARD_V1_CALL_META_TURN_ID_FIELD),
        .tool_call_id = text_field(meta, PEGBOARD_V1_CALL_META_TOOL_CALL_ID_FIELD),
        .parent_tool_call_id = text_field(meta, PEGBOARD_V1_CALL_META_PARENT_TOOL_CALL_ID_FIELD),
        .traceparent = text_field(request->packed, PEGBOARD_V1_CALL_TRACEPARENT_FIELD),
        .tracestate = text_field(request->packed, PEGBOARD_V1_CALL_TRACESTATE_FIELD),
        .baggage = text_field(request->packed, PEGBOARD_V1_CALL_BAGGAGE_FIELD),
        .deadline_unix_ms = call->is_for_agent ? 0 : call->deadline_ms,
    };
    /* Providers of the reference refuse a call without these. */
    if (!text->run_id.len)
        text->run_id = peg__str(id);
    if (!text->session_id.len)
        text->session_id = text->run_id;
    peg__buf_clear(out);
    pulse_entry_write(&entry, out);
    call->request = out->status ? NULL : peg__blob_copy(peg__buf_view(out));
    return call->request ? PEG_OK : PEG_ENOMEM;
}

static void count_admitted(struct direct_call *call)
{
    if (!call->is_counted)
        call->direct->calls->env->count_admitted(call->meter);
    call->is_counted = true;
}

/* It may be there or not: `init` is added before it, so a stream that is not there says no. */
static void handle_unsent(struct direct_call *call)
{
    if (!call->was_connected && !bus_redis_is_connected(call->direct->bus)) {
        direct_end_refused(call, CALLS_SERVICE_UNAVAILABLE,
                           peg__str("Redis cannot be reached, and the call was not started: try "
                                    "again"),
                           1000);
        return;
    }
    call->has_changed = true;
    direct_report(call);
    direct_go_on(call);
}

static void on_request_sent(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, stream);

    call->state = DIRECT_WAITING;
    call->epoch = reply->epoch;
    if (reply->status == PEG_ELIMIT || reply->status == PEG_ENOMEM) {
        direct_end_refused(call, CALLS_OVERLOADED,
                           peg__str("Redis or the gateway has no room for the call, and it was "
                                    "not started: try again later"),
                           1000);
        return;
    }
    count_admitted(call);
    if (reply->status) {
        handle_unsent(call);
        return;
    }
    snprintf(call->request_id, sizeof(call->request_id), PEG_FMT, PEG_ARG(reply->text));
    call->request = peg__blob_unref(call->request);
    direct_report(call);
    direct_go_on(call);
}

static int64_t seconds(int64_t ms)
{
    return ms / 1000 > 0 ? ms / 1000 : 1;
}

/* At least as long as it takes, and as long as others may ask. */
static int64_t keep_s(const struct direct_call *call, int64_t keep_ms)
{
    const int64_t left_ms = call->deadline_ms - bus_now_ms(call->direct->bus);

    return seconds(left_ms + PEG_LIMIT_DIRECT_LATE_MS > keep_ms ? left_ms + PEG_LIMIT_DIRECT_LATE_MS
                                                                : keep_ms);
}

static void send_to_stream(struct direct_call *call)
{
    struct gw_direct *direct = call->direct;
    char id[BUS_ID_TEXT];
    char names[4][PULSE_NAME];
    struct bus_stream_call begun = {
        .mapping_s = keep_s(call, direct->calls->options.keep_ms),
        .result_s = keep_s(call, (int64_t)PEG_LIMIT_DIRECT_RESULT_S * 1000),
        .request_name = PEG_LIT("call"),
        .request = peg__blob_str(call->request),
    };

    bus_id_print(&call->entry.id, id);
    begun.mapping_key = pulse_mapping_key(peg__str(id), names[0]);
    begun.mapping_value = pulse_result_stream(peg__str(id), names[1]);
    begun.result_key = pulse_result_key(peg__str(id), names[2]);
    begun.request_key = pulse_request_key(call->toolset->name, names[3]);
    call->state = DIRECT_SENDING;
    call->stream.fn = on_request_sent;
    call->was_connected = bus_redis_is_connected(direct->bus);
    bus_stream_begin_call(direct->bus, &begun, &call->stream);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void refuse_barred(struct direct_call *call)
{
    struct calls_loop *calls = call->direct->calls;

    switch (call->bar) {
    case DIRECT_BAR_DRAINING:
        direct_end_refused(call, CALLS_SERVICE_UNAVAILABLE, peg__str(CALLS_SHUTTING_DOWN), 1000);
        break;
    case DIRECT_BAR_ASKED_BEFORE:
        direct_end_refused(call, CALLS_OUTCOME_UNKNOWN,
                           peg__str("this gateway does not know the call: it was asked for before "
                                    "Redis lost what it knew of calls" DIRECT_MAY_HAVE_RUN),
                           0);
        break;
    case DIRECT_BAR_TRACKING:
        direct_end_refused(call, CALLS_SERVICE_UNAVAILABLE,
                           peg__str("Redis does not let the gateway track keys, which calls of "
                                    "direct toolsets need: allow its user CLIENT TRACKING"),
                           0);
        break;
    default:
        peg__buf_clear(&calls->text);
        calls->env->explain_health(calls->user, call->toolset->name, &calls->text);
        direct_end_refused(call, CALLS_SERVICE_UNAVAILABLE, peg__buf_view(&calls->text), 0);
        break;
    }
}

static void begin_sending(struct direct_call *call)
{
    if (call->bar) {
        refuse_barred(call);
        return;
    }
    if (call->ending) {
        if (call->ending == DIRECT_CANCELED)
            direct_end_as(call, CALLS_KIND_CANCELED, CALLS_CANCELED,
                          "the call was canceled before it was sent; it was not started");
        else
            direct_end_as(call, CALLS_KIND_TIMEOUT, CALLS_TIMEOUT,
                          "the deadline passed before the call was sent; it was not started");
        return;
    }
    if (!direct_track(call)) {
        direct_end_refused(call, CALLS_OVERLOADED,
                           peg__str("the gateway is out of memory: try again later"), 1000);
        return;
    }
    send_to_stream(call);
}

static void handle_standing(struct direct_call *call, const struct peg__blob *standing)
{
    struct calls_identity identity;

    if (!calls_identity_read(standing, &identity))
        direct_end_refused(call, CALLS_FAULT,
                           peg__str("this identity was used by another version of the gateway"), 0);
    else if (memcmp(identity.digest, call->digest, sizeof(call->digest)) != 0)
        direct_end_refused(call, CALLS_VALIDATION,
                           peg__str("this identity (run_id and tool_call_id, or idempotency_key) "
                                    "was used for a call with another tool or payload: choose a "
                                    "new one"),
                           0);
    else
        direct_follow(call, &identity);
}

static void on_name_again(struct net_timer *timer)
{
    direct_run(peg__container_of(timer, struct direct_call, again));
}

static void name_again(struct direct_call *call)
{
    struct bus *bus = call->direct->bus;

    call->again.fn = on_name_again;
    bus_arm(bus, &call->again, bus_now_ns(bus) + DIRECT_AGAIN_MS * PEG_NS_PER_MS);
}

static void on_named(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, wait);

    if (answer->status == PEG_EIO) {
        if (call->ending)
            direct_end_refused(call, CALLS_TIMEOUT,
                               peg__str("the registry did not say in time whether this call was "
                                        "begun before, and it may run: ask again with the same "
                                        "identity"),
                               0);
        else
            name_again(call);
    } else if (answer->status) {
        direct_end_refused(call, CALLS_OVERLOADED,
                           peg__str("the gateway keeps as many calls with an identity (run_id and "
                                    "tool_call_id, or idempotency_key) as it has room for "
                                    "(PEG_LIMIT_BUS_REGISTERS, PEG_LIMIT_BUS_REGISTER_BYTES): try "
                                    "again later, or shorten --result-mapping-ttl"),
                           1000);
    } else if (answer->written || !answer->current) {
        begin_sending(call);
    } else {
        handle_standing(call, answer->current);
    }
}

/* One that may not begin writes nothing, and may follow. */
void direct_run(struct direct_call *call)
{
    struct gw_direct *direct = call->direct;
    struct bus_key key = direct_register(call, BUS_IDENTITY);

    if (!direct_is_keyed(call)) {
        begin_sending(call);
        return;
    }
    call->state = DIRECT_NAMING;
    call->wait.fn = on_named;
    key.admits = true;
    if (call->bar)
        bus_read(direct->bus, &key, &call->wait);
    else
        bus_put_if_absent(direct->bus, &key, call->identity,
                          call->deadline_ms + direct->calls->options.keep_ms, &call->wait);
}
