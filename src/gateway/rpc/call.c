/* SPDX-License-Identifier: Apache-2.0 */

/* CallTool, CallToolStream, StartTool, AwaitTool, CancelTool: from the request to the calls of the
 * loop, and from the outcome to the answer. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/direct/direct.h"
#include "gateway/rpc/rpc.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"

enum mode { CALL, STREAM, START, AWAIT, STOP };

/* The state of an RPC, in its arena. */
struct asked {
    struct calls_caller caller; /* the first member */
    struct grpc_call *call;
    enum mode mode;
    bool accepts_content;
    unsigned n_lost; /* outputs that the reader was too slow for */
};

/* ---- answers ---- */

/* What belongs to this caller goes before the response, which all callers share. */
static void reply_response(struct asked *asked, const struct calls_outcome *outcome)
{
    const struct calls_caller *caller = &asked->caller;
    char id[BUS_ID_TEXT];
    char own[BUS_ID_TEXT + 8];
    char head[sizeof(own) + 1 + WIRE_MAX_VARINT];
    char *at;
    size_t n_own;

    bus_id_print(&caller->id, id);
    at = wire_put_bytes(own, PEGBOARD_V1_CALL_TOOL_RESPONSE_CALL_ID_FIELD, peg__str(id));
    at = wire_put_number(at, PEGBOARD_V1_CALL_TOOL_RESPONSE_ATTACHED_FIELD, caller->is_follower);
    n_own = (size_t)(at - own);
    at = head;
    if (asked->mode == STREAM)
        at = wire_put_head(at, PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_RESULT_FIELD,
                           n_own + outcome->response.len);
    memcpy(at, own, n_own);
    gw_reply_outcome(asked->call, &caller->id, peg__strn(head, (size_t)(at + n_own - head)),
                     outcome->blob, outcome->response);
}

static void reply_result(struct asked *asked, const struct calls_outcome *outcome)
{
    struct peg__buf plain = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES);
    struct calls_outcome shown = *outcome;

    if (asked->accepts_content || gw_flatten_outcome(&shown, &plain))
        reply_response(asked, &shown);
    else
        gw_fail_unsent(asked->call, &asked->caller.id);
    peg__buf_free(&plain);
}

static void on_call_ended(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct asked *asked = (struct asked *)caller;

    if (asked->mode == STOP && outcome->kind == CALLS_KIND_CANCELED)
        grpc_call_reply(asked->call, peg__str(""));
    else if (outcome->error != CALLS_OK)
        gw_fail_outcome(asked->call, outcome, &caller->id);
    else
        reply_result(asked, outcome);
}

/* ---- what is sent before the end ---- */

enum { EVENT_BYTES = 160 };

/* A short event of the stream. */
static bool send_event(struct asked *asked, unsigned field, peg_str event)
{
    char frame[EVENT_BYTES + 1 + WIRE_MAX_VARINT];
    char *at = wire_put_bytes(frame, field, event);

    return grpc_call_send(asked->call, peg__strn(frame, (size_t)(at - frame)), NULL) == PEG_OK;
}

static void send_started(struct asked *asked, const struct bus_id *id)
{
    char text[BUS_ID_TEXT];
    char event[EVENT_BYTES];
    char *at;

    bus_id_print(id, text);
    at = wire_put_bytes(event, PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_STARTED_CALL_ID_FIELD,
                        peg__str(text));
    (void)send_event(asked, PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_STARTED_FIELD,
                     peg__strn(event, (size_t)(at - event)));
}

static void reply_started(struct asked *asked, const struct bus_id *id, int64_t deadline_ms,
                          bool is_follower)
{
    char text[BUS_ID_TEXT];
    const Pegboard__V1__StartToolResponse response = {
        .base = PROTOBUF_C_MESSAGE_INIT(&pegboard__v1__start_tool_response__descriptor),
        .call_id = text,
        .attached = is_follower,
        .deadline_unix_ms = deadline_ms,
    };

    bus_id_print(id, text);
    gw_caller_leave(&asked->caller, CALLS_DETACHES);
    grpc_call_reply_message(asked->call, &response.base);
}

static void on_call_admitted(struct calls_caller *caller, const struct bus_id *id,
                             int64_t deadline_ms, bool is_follower)
{
    struct asked *asked = (struct asked *)caller;

    if (asked->mode == STREAM)
        send_started(asked, id);
    else if (asked->mode == START)
        reply_started(asked, id, deadline_ms, is_follower);
}

/* Reports once, when the stream takes more again, how much is missing. */
static bool send_lost(struct asked *asked)
{
    char text[64];
    char event[EVENT_BYTES];
    char *at;

    snprintf(text, sizeof(text), "[%u outputs were dropped: read faster]", asked->n_lost);
    at = wire_put_bytes(event, PEGBOARD_V1_OUTPUT_STREAM_FIELD, peg__str("pegboard"));
    at = wire_put_bytes(at, PEGBOARD_V1_OUTPUT_DELTA_FIELD, peg__str(text));
    if (!send_event(asked, PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_OUTPUT_FIELD,
                    peg__strn(event, (size_t)(at - event))))
        return false;
    asked->n_lost = 0;
    return true;
}

static void on_call_output(struct calls_caller *caller, peg_str output)
{
    struct asked *asked = (struct asked *)caller;
    struct calls_loop *calls;
    char head[WIRE_MAX_VARINT + 1];
    char *at;

    if (!grpc_call_is_writable(asked->call) || (asked->n_lost && !send_lost(asked))) {
        asked->n_lost++;
        return;
    }
    calls = (struct calls_loop *)grpc_call_state(asked->call);
    at = wire_put_head(head, PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_OUTPUT_FIELD, output.len);
    peg__buf_clear(&calls->frame);
    peg__buf_add(&calls->frame, head, (size_t)(at - head));
    peg__buf_str(&calls->frame, output);
    if (calls->frame.status || grpc_call_send(asked->call, peg__buf_view(&calls->frame), NULL))
        asked->n_lost++;
}

/* ---- questions ---- */

/* As a Question, in the loop's frame with `head` before it; "": no memory. */
static peg_str pack_question(struct calls_loop *calls, peg_str head, unsigned field,
                             uint32_t number, peg_str requests)
{
    const size_t size = wire_number_size(number) + wire_bytes_size(requests);
    struct peg__buf *frame = &calls->frame;
    char *start;
    char *at;

    peg__buf_clear(frame);
    start = peg__buf_reserve(frame, head.len + 1 + WIRE_MAX_VARINT + size);
    if (!start)
        return (peg_str){"", 0};
    if (head.len)
        memcpy(start, head.ptr, head.len);
    at = wire_put_head(start + head.len, field, size);
    at = wire_put_number(at, PEGBOARD_V1_QUESTION_NUMBER_FIELD, number);
    at = wire_put_bytes(at, PEGBOARD_V1_QUESTION_REQUESTS_FIELD, requests);
    return peg__strn(start, (size_t)(at - start));
}

/* The one that awaits has its answer, the question, and awaits again when it has replied. */
static bool reply_question(struct asked *asked, uint32_t number, peg_str requests)
{
    const struct grpc_status ok = {.code = GRPC_OK};
    struct calls_loop *calls = (struct calls_loop *)grpc_call_state(asked->call);
    char id[BUS_ID_TEXT];
    char head[BUS_ID_TEXT + 8];
    char *at;
    peg_str frame;

    bus_id_print(&asked->caller.id, id);
    at = wire_put_bytes(head, PEGBOARD_V1_CALL_TOOL_RESPONSE_CALL_ID_FIELD, peg__str(id));
    at = wire_put_number(at, PEGBOARD_V1_CALL_TOOL_RESPONSE_ATTACHED_FIELD,
                         asked->caller.is_follower);
    frame = pack_question(calls, peg__strn(head, (size_t)(at - head)),
                          PEGBOARD_V1_CALL_TOOL_RESPONSE_QUESTION_FIELD, number, requests);
    if (!frame.len || grpc_call_send(asked->call, frame, NULL))
        return false;
    gw_caller_leave(&asked->caller, CALLS_DETACHES);
    grpc_call_finish(asked->call, &ok);
    return true;
}

static bool on_call_question(struct calls_caller *caller, uint32_t number, peg_str requests)
{
    struct asked *asked = (struct asked *)caller;
    peg_str frame;

    if (asked->mode == AWAIT)
        return reply_question(asked, number, requests);
    frame = pack_question((struct calls_loop *)grpc_call_state(asked->call), peg__str(""),
                          PEGBOARD_V1_CALL_TOOL_STREAM_RESPONSE_QUESTION_FIELD, number, requests);
    return frame.len && grpc_call_send(asked->call, frame, NULL) == PEG_OK;
}

static const struct calls_caller_events call_events = {
    .on_end = on_call_ended,
    .on_question = on_call_question,
};

static const struct calls_caller_events start_events = {
    .on_admitted = on_call_admitted,
    .on_end = on_call_ended,
};

static const struct calls_caller_events stream_events = {
    .on_admitted = on_call_admitted,
    .on_output = on_call_output,
    .on_end = on_call_ended,
    .on_question = on_call_question,
};

/* ---- requests ---- */

static const struct calls_caller_events *get_events(enum mode mode)
{
    if (mode == STREAM)
        return &stream_events;
    return mode == START ? &start_events : &call_events;
}

static const void *const asked_key = &asked_key;

static struct asked *make_asked(struct grpc_call *call, struct calls_loop *calls, enum mode mode)
{
    struct asked *asked =
        (struct asked *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*asked));

    if (!asked || grpc_call_put(call, asked_key, asked)) {
        gw_fail_memory(call);
        return NULL;
    }
    *asked = (struct asked){.caller.events = get_events(mode), .call = call, .mode = mode};
    grpc_call_set_state(call, calls);
    return asked;
}

static peg_status check_id_field(const char *text, const char *what, peg_error *reterr)
{
    return text[0] ? wire_check_id(peg__str(text), what, reterr) : PEG_OK;
}

static peg_status check_meta(const Pegboard__V1__CallMeta *meta, peg_error *reterr)
{
    const struct {
        const char *id;
        const char *field;
    } ids[] = {
        {meta->run_id, "meta.run_id"},
        {meta->session_id, "meta.session_id"},
        {meta->turn_id, "meta.turn_id"},
        {meta->tool_call_id, "meta.tool_call_id"},
        {meta->parent_tool_call_id, "meta.parent_tool_call_id"},
    };
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < sizeof(ids) / sizeof(ids[0]); i++)
        status = check_id_field(ids[i].id, ids[i].field, reterr);
    return status;
}

static peg_status check_call_request(const Pegboard__V1__CallToolRequest *request,
                                     peg_error *reterr)
{
    peg_status status = wire_check_name(peg__str(request->toolset), "toolset", reterr);

    if (!status)
        status = wire_check_name(peg__str(request->tool), "tool", reterr);
    if (!status)
        status = check_id_field(request->idempotency_key, "idempotency_key", reterr);
    if (!status && request->meta)
        status = check_meta(request->meta, reterr);
    if (!status && request->n_metadata > PEG_LIMIT_GATEWAY_METADATA)
        status =
            peg__fail(reterr, PEG_ELIMIT, "E_METADATA", "metadata has %zu entries: use at most %d",
                      request->n_metadata, PEG_LIMIT_GATEWAY_METADATA);
    return status ? status : gw_check_timeout(request->timeout_ms, reterr);
}

/* ---- what is handed on as it came ---- */

static bool is_part(const struct grpc_metadata_entry *entry, peg_str key)
{
    return entry->value.len > 0 && peg__str_eq(entry->key, key);
}

/* A list may come in several fields, which are one when they are put together with commas (W3C;
 * RFC 9110, 5.3). As long as max_header_bytes at most. */
static peg_status join_fields(struct grpc_call *call, const char *key, peg_str *ret_list)
{
    const struct grpc_metadata *metadata = grpc_call_metadata(call);
    const peg_str wanted = peg__str(key);
    peg_str list = {"", 0};
    size_t n = 0;
    size_t size = 0;
    char *at;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct grpc_metadata_entry *entry = &metadata->entries[i];

        if (!is_part(entry, wanted))
            continue;
        list = entry->value;
        size += entry->value.len + 1;
        n++;
    }
    *ret_list = list;
    if (n < 2)
        return PEG_OK;
    at = peg__arena_alloc(grpc_call_arena(call), size);
    if (!at)
        return PEG_ENOMEM;
    *ret_list = peg__strn(at, size - 1);
    for (size_t i = 0; i < metadata->n; i++) {
        const struct grpc_metadata_entry *entry = &metadata->entries[i];

        if (!is_part(entry, wanted))
            continue;
        memcpy(at, entry->value.ptr, entry->value.len);
        at += entry->value.len;
        *at++ = ',';
    }
    return PEG_OK;
}

/* What the request says itself wins. */
static peg_status find_trace(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                             peg_str ret_trace[3])
{
    peg_status status = PEG_OK;

    ret_trace[0] = request->traceparent[0]
                       ? peg__str(request->traceparent)
                       : grpc_metadata_get(grpc_call_metadata(call), "traceparent");
    ret_trace[1] = peg__str(request->tracestate);
    ret_trace[2] = peg__str(request->baggage);
    if (!ret_trace[1].len)
        status = join_fields(call, "tracestate", &ret_trace[1]);
    if (!status && !ret_trace[2].len)
        status = join_fields(call, "baggage", &ret_trace[2]);
    return status;
}

peg_status gw_pack_rest(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        struct calls_loop *calls, peg_str *ret_packed)
{
    static const unsigned fields[] = {PEGBOARD_V1_CALL_TRACEPARENT_FIELD,
                                      PEGBOARD_V1_CALL_TRACESTATE_FIELD,
                                      PEGBOARD_V1_CALL_BAGGAGE_FIELD};
    Pegboard__V1__Call rest = PEGBOARD__V1__CALL__INIT;
    peg_str trace[3];
    struct peg__buf *out = &calls->frame;
    size_t size;
    char *at;
    const bool has_rest = request->meta || request->n_metadata > 0; /* few have */
    const peg_status status = find_trace(call, request, trace);

    *ret_packed = (peg_str){"", 0};
    if (status)
        return status;
    rest.meta = request->meta;
    rest.n_metadata = request->n_metadata;
    rest.metadata = request->metadata;
    peg__buf_clear(out);
    size = has_rest ? protobuf_c_message_get_packed_size(&rest.base) : 0;
    for (size_t i = 0; i < 3; i++)
        size += wire_bytes_size(trace[i]);
    if (!size)
        return PEG_OK;
    if (size > PEG_LIMIT_GATEWAY_METADATA_BYTES)
        return PEG_ELIMIT;
    at = peg__buf_reserve(out, size);
    if (!at)
        return PEG_ENOMEM;
    if (has_rest)
        at += protobuf_c_message_pack(&rest.base, (uint8_t *)at);
    for (unsigned i = 0; i < 3; i++)
        at = wire_put_bytes(at, fields[i], trace[i]);
    out->len = size;
    *ret_packed = peg__buf_view(out);
    return PEG_OK;
}

static void start_call(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                       struct gw_node *node, enum mode mode)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    char key[PEG_ID_HEX_TEXT] = "";
    peg_error error;
    struct asked *asked;
    struct calls_request what = {
        .toolset = peg__str(request->toolset),
        .tool = peg__str(request->tool),
        .payload = {(const char *)request->payload.data, request->payload.len},
        .principal = gw_call_principal(call)->name,
        .key = peg__str(request->idempotency_key),
        .timeout_ms = request->timeout_ms,
        .deadline_ns = mode == START ? NET_NEVER : grpc_call_deadline_ns(call),
        .can_be_asked = request->can_be_asked && mode != CALL,
    };
    peg_status status = check_call_request(request, &error);

    if (status) {
        gw_fail_because(call, &error);
        return;
    }
    if (request->meta) {
        what.run_id = peg__str(request->meta->run_id);
        what.tool_call_id = peg__str(request->meta->tool_call_id);
    }
    if (what.key.len || (what.run_id.len && what.tool_call_id.len)) {
        gw_report_epoch(call, calls);
        what.may_have_run = gw_was_asked_elsewhere(call, calls);
    } else if ((mode == START || what.can_be_asked) && peg__id_hex(key)) {
        /* A call that is to be asked for again, or answered, has an identity, if only of ours. */
        gw_report_epoch(call, calls);
        what.key = peg__str(key);
    }
    status = gw_pack_rest(call, request, calls, &what.packed);
    if (status == PEG_ELIMIT) {
        gw_fail(call, WIRE_LIMIT,
                peg__str("meta, metadata and trace context together are larger than 16 KiB"));
        return;
    }
    asked = status ? NULL : make_asked(call, calls, mode);
    if (asked) {
        asked->caller.can_be_asked = mode == STREAM && what.can_be_asked;
        asked->accepts_content = request->accepts_content;
        gw_call_start(calls, &what, &asked->caller);
    } else if (status) {
        gw_fail_memory(call);
    }
}

void gw_serve_call_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        void *node)
{
    start_call(call, request, (struct gw_node *)node, CALL);
}

void gw_serve_call_tool_stream(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                               void *node)
{
    start_call(call, request, (struct gw_node *)node, STREAM);
}

void gw_serve_start_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                         void *node)
{
    start_call(call, request, (struct gw_node *)node, START);
}

/* ---- by id ---- */

static bool parse_id(struct grpc_call *call, const char *text, struct bus_id *ret_id)
{
    if (bus_id_parse(peg__str(text), ret_id))
        return true;
    gw_fail(
        call, WIRE_VALIDATION,
        peg__str("call_id is not an id that this gateway gave out: 32 or 64 hexadecimal digits"));
    return false;
}

static bool takes_timeout(struct grpc_call *call, int64_t timeout_ms)
{
    peg_error error;

    if (gw_check_timeout(timeout_ms, &error) == PEG_OK)
        return true;
    gw_fail_because(call, &error);
    return false;
}

static int64_t wait_until(struct grpc_call *call, struct calls_loop *calls, int64_t timeout_ms)
{
    const int64_t deadline_ns = grpc_call_deadline_ns(call);
    const int64_t wait_ms = timeout_ms ? timeout_ms : calls->options.call_timeout_ms;
    const int64_t until_ns = bus_now_ns(calls->bus) + wait_ms * 1000000;

    return deadline_ns < until_ns ? deadline_ns : until_ns;
}

void gw_serve_await_tool(struct grpc_call *call, const Pegboard__V1__AwaitToolRequest *request,
                         void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct bus_id id;
    struct asked *asked =
        parse_id(call, request->call_id, &id) && takes_timeout(call, request->timeout_ms)
            ? make_asked(call, calls, AWAIT)
            : NULL;

    if (!asked)
        return;
    asked->accepts_content = request->accepts_content;
    asked->caller.was_asked_elsewhere = gw_was_asked_elsewhere(call, calls);
    asked->caller.can_be_asked = request->can_be_asked;
    gw_call_await(calls, &id, gw_call_principal(call)->name,
                  wait_until(call, calls, request->timeout_ms), &asked->caller);
}

void gw_serve_cancel_tool(struct grpc_call *call, const Pegboard__V1__CancelToolRequest *request,
                          void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct bus_id id;
    struct asked *asked =
        parse_id(call, request->call_id, &id) ? make_asked(call, calls, STOP) : NULL;

    if (!asked)
        return;
    asked->caller.was_asked_elsewhere = gw_was_asked_elsewhere(call, calls);
    gw_call_cancel(calls, &id, gw_call_principal(call)->name, &asked->caller);
}

void gw_serve_call_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = (struct asked *)grpc_call_get(call, asked_key);

    (void)node;
    if (!asked)
        return;
    /* A connection that broke says nothing about what its client wants. */
    if (grpc_call_ended_as(call)->code == GRPC_UNAVAILABLE)
        gw_caller_leave(&asked->caller, CALLS_LOSES_CONNECTION);
    else
        gw_caller_leave(&asked->caller, CALLS_LEAVES);
}
