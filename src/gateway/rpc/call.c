/* SPDX-License-Identifier: Apache-2.0 */

/* CallTool, CallToolStream, StartTool, AwaitTool, CancelTool: from the request to the desk, and
 * from the call's end to the answer. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/principal.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/services.h"
#include "wire/name.h"
#include "wire/pack.h"

enum mode { CALL, STREAM, START, AWAIT, STOP };

/* What hangs on an RPC; in its arena. */
struct asked {
    struct gw_caller caller; /* the first member */
    struct grpc_call *call;
    enum mode mode;
    unsigned n_lost; /* outputs that the reader was too slow for */
};

/* ---- answers --------------------------------------------------------------------------------- */

static peg_str pack_response(struct grpc_call *call, const struct gw_caller *caller,
                             const struct gw_outcome *terminal)
{
    char id[BUS_ID_TEXT];
    char *start;
    char *at;
    peg_str id_text;

    bus_id_print(&caller->id, id);
    id_text = peg__str(id);
    start = (char *)peg__arena_alloc(grpc_call_arena(call), terminal->response.len +
                                                                wire_bytes_size(id_text) +
                                                                wire_number_size(1));
    if (!start)
        return (peg_str){NULL, 0};
    at = wire_put_bytes(start, 1, id_text);
    memcpy(at, terminal->response.ptr, terminal->response.len);
    at = wire_put_number(at + terminal->response.len, 5, caller->is_joined);
    return (peg_str){start, (size_t)(at - start)};
}

/* A message that holds another as its field. */
static peg_str wrap(struct grpc_call *call, unsigned field, peg_str inner)
{
    char *start = (char *)peg__arena_alloc(grpc_call_arena(call), inner.len + WIRE_MAX_VARINT + 1);
    char *at = start;

    if (!start)
        return (peg_str){NULL, 0};
    *at++ = (char)(field << 3 | 2);
    at = wire_put_varint(at, inner.len);
    if (inner.len)
        memcpy(at, inner.ptr, inner.len);
    return (peg_str){start, (size_t)(at + inner.len - start)};
}

static void fail_memory(struct grpc_call *call)
{
    gw_fail(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"));
}

/* A large response is the register's, and goes out from there: what belongs to this caller is put
 * before it. */
static void reply_large(struct asked *asked, const struct gw_outcome *terminal)
{
    const struct gw_caller *caller = &asked->caller;
    char id[BUS_ID_TEXT];
    char own[BUS_ID_TEXT + 8];
    char head[sizeof(own) + 1 + WIRE_MAX_VARINT];
    char *at;
    size_t n_own;

    bus_id_print(&caller->id, id);
    at = wire_put_bytes(own, 1, peg__str(id));
    at = wire_put_number(at, 5, caller->is_joined);
    n_own = (size_t)(at - own);
    at = head;
    if (asked->mode == STREAM) {
        *at++ = 3 << 3 | 2;
        at = wire_put_varint(at, n_own + terminal->response.len);
    }
    memcpy(at, own, n_own);
    if (grpc_call_reply_shared(asked->call, peg__strn(head, (size_t)(at + n_own - head)),
                               terminal->blob, terminal->response, NULL))
        gw_fail_report(asked->call, &asked->caller.id);
}

static void reply_terminal(struct asked *asked, const struct gw_outcome *terminal)
{
    const struct grpc_status ok = {.code = GRPC_OK};
    struct grpc_call *call = asked->call;
    peg_str message;

    if (terminal->blob && terminal->response.len > PEG_LIMIT_GATEWAY_INLINE_BYTES) {
        reply_large(asked, terminal);
        return;
    }
    message = pack_response(call, &asked->caller, terminal);
    if (message.ptr && asked->mode == STREAM)
        message = wrap(call, 3, message);
    if (message.ptr && !grpc_call_send(call, message, NULL))
        grpc_call_finish(call, &ok);
    else
        gw_fail_report(asked->call, &asked->caller.id);
}

static void on_end(struct gw_caller *caller, const struct gw_outcome *terminal)
{
    struct asked *asked = (struct asked *)caller;

    if (asked->mode == STOP && terminal->outcome == GW_CANCELED)
        grpc_call_reply(asked->call, peg__str(""));
    else if (terminal->error != WIRE_OK)
        gw_fail_outcome(asked->call, terminal, &caller->id);
    else
        reply_terminal(asked, terminal);
}

/* ---- what is told before the end ------------------------------------------------------------- */

static void say_started(struct asked *asked, const struct bus_id *id)
{
    char text[BUS_ID_TEXT];
    char inner[BUS_ID_TEXT + 4];
    peg_str message;
    size_t len;

    bus_id_print(id, text);
    len = (size_t)(wire_put_bytes(inner, 1, peg__str(text)) - inner);
    message = wrap(asked->call, 1, (peg_str){inner, len});
    if (message.ptr)
        (void)grpc_call_send(asked->call, message, NULL);
}

static void reply_started(struct asked *asked, const struct bus_id *id, int64_t deadline_ms,
                          bool is_joined)
{
    char text[BUS_ID_TEXT];
    const Pegboard__V1__StartToolResponse response = {
        .base = PROTOBUF_C_MESSAGE_INIT(&pegboard__v1__start_tool_response__descriptor),
        .call_id = text,
        .attached = is_joined,
        .deadline_unix_ms = deadline_ms,
    };

    bus_id_print(id, text);
    gw_caller_detach(&asked->caller);
    grpc_call_reply_message(asked->call, &response.base);
}

static void on_admitted(struct gw_caller *caller, const struct bus_id *id, int64_t deadline_ms,
                        bool is_joined)
{
    struct asked *asked = (struct asked *)caller;

    if (asked->mode == STREAM)
        say_started(asked, id);
    else if (asked->mode == START)
        reply_started(asked, id, deadline_ms, is_joined);
}

/* Says once, when there is room again, how much is missing. */
static bool say_lost(struct asked *asked)
{
    char words[64];
    char output[128];
    peg_str message;
    char *at;

    snprintf(words, sizeof(words), "[%u outputs were dropped: read faster]", asked->n_lost);
    at = wire_put_bytes(output, 1, peg__str("pegboard"));
    at = wire_put_bytes(at, 2, peg__str(words));
    message = wrap(asked->call, 2, (peg_str){output, (size_t)(at - output)});
    if (!message.ptr || grpc_call_send(asked->call, message, NULL))
        return false;
    asked->n_lost = 0;
    return true;
}

static void on_output(struct gw_caller *caller, peg_str output)
{
    struct asked *asked = (struct asked *)caller;
    struct gw_calls *desk;
    char head[WIRE_MAX_VARINT + 1];
    char *at = head;

    if (!grpc_call_is_writable(asked->call) || (asked->n_lost && !say_lost(asked))) {
        asked->n_lost++;
        return;
    }
    desk = (struct gw_calls *)grpc_call_state(asked->call);
    *at++ = 2 << 3 | 2;
    at = wire_put_varint(at, output.len);
    peg__buf_clear(&desk->frame);
    peg__buf_add(&desk->frame, head, (size_t)(at - head));
    peg__buf_str(&desk->frame, output);
    if (desk->frame.status || grpc_call_send(asked->call, peg__buf_view(&desk->frame), NULL))
        asked->n_lost++;
}

static const struct gw_caller_events EVENTS = {
    .on_admitted = on_admitted,
    .on_end = on_end,
};

static const struct gw_caller_events STREAM_EVENTS = {
    .on_admitted = on_admitted,
    .on_output = on_output,
    .on_end = on_end,
};

/* ---- requests -------------------------------------------------------------------------------- */

static const void *const ASKED_KEY = &ASKED_KEY;

static struct asked *make_asked(struct grpc_call *call, struct gw_calls *desk, enum mode mode)
{
    struct asked *asked =
        (struct asked *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*asked));

    if (!asked || grpc_call_put(call, ASKED_KEY, asked)) {
        fail_memory(call);
        return NULL;
    }
    *asked = (struct asked){
        .caller.events = mode == STREAM ? &STREAM_EVENTS : &EVENTS, .call = call, .mode = mode};
    grpc_call_set_state(call, desk);
    return asked;
}

static peg_status check_id_field(const char *text, const char *what, peg_error *reterr)
{
    return text[0] ? wire_check_id(peg__str(text), what, reterr) : PEG_OK;
}

static peg_status check_meta(const Pegboard__V1__CallMeta *meta, peg_error *reterr)
{
    peg_status status = check_id_field(meta->run_id, "meta.run_id", reterr);

    if (!status)
        status = check_id_field(meta->session_id, "meta.session_id", reterr);
    if (!status)
        status = check_id_field(meta->turn_id, "meta.turn_id", reterr);
    if (!status)
        status = check_id_field(meta->tool_call_id, "meta.tool_call_id", reterr);
    if (!status)
        status = check_id_field(meta->parent_tool_call_id, "meta.parent_tool_call_id", reterr);
    return status;
}

static peg_status check_request(const Pegboard__V1__CallToolRequest *request, peg_error *reterr)
{
    peg_status status = wire_check_name(peg__str(request->toolset), "toolset", reterr);

    if (!status)
        status = wire_check_name(peg__str(request->tool), "tool", reterr);
    if (!status)
        status = check_id_field(request->idempotency_key, "idempotency_key", reterr);
    if (!status && request->meta)
        status = check_meta(request->meta, reterr);
    if (!status && request->n_metadata > PEG_LIMIT_GATEWAY_METADATA)
        status = peg__fail(reterr, PEG_ELIMIT, "E_CALL_METADATA",
                           "%zu entries of metadata are more than PEG_LIMIT_GATEWAY_METADATA = %d",
                           request->n_metadata, PEG_LIMIT_GATEWAY_METADATA);
    return status ? status : gw_check_timeout(request->timeout_ms, reterr);
}

/* ---- what is handed on as it came ------------------------------------------------------------ */

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
                        struct gw_calls *desk, peg_str *ret_packed)
{
    Pegboard__V1__Call rest = PEGBOARD__V1__CALL__INIT;
    peg_str trace[3];
    struct peg__buf *out = &desk->frame;
    size_t size;
    char *at;
    const peg_status status = find_trace(call, request, trace);

    *ret_packed = (peg_str){"", 0};
    if (status)
        return status;
    rest.meta = request->meta;
    rest.n_metadata = request->n_metadata;
    rest.metadata = request->metadata;
    peg__buf_clear(out);
    size = protobuf_c_message_get_packed_size(&rest.base);
    for (size_t i = 0; i < 3; i++)
        size += wire_bytes_size(trace[i]);
    if (!size)
        return PEG_OK;
    if (size > PEG_LIMIT_GATEWAY_METADATA_BYTES)
        return PEG_ELIMIT;
    at = peg__buf_reserve(out, size);
    if (!at)
        return PEG_ENOMEM;
    at += protobuf_c_message_pack(&rest.base, (uint8_t *)at);
    for (unsigned i = 0; i < 3; i++)
        at = wire_put_bytes(at, 9 + i, trace[i]);
    out->len = size;
    *ret_packed = peg__buf_view(out);
    return PEG_OK;
}

static void ask(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                struct gw_node *node, enum mode mode)
{
    struct gw_calls *desk = gw_node_calls(node, grpc_call_loop(call));
    char key[PEG_ID_HEX_TEXT] = "";
    peg_error error;
    struct asked *asked;
    struct gw_ask what = {
        .toolset = peg__str(request->toolset),
        .tool = peg__str(request->tool),
        .payload = {(const char *)request->payload.data, request->payload.len},
        .principal = gw_call_principal(call)->name,
        .key = peg__str(request->idempotency_key),
        .timeout_ms = request->timeout_ms,
        .deadline_ns = mode == START ? NET_NEVER : grpc_call_deadline_ns(call),
    };
    peg_status status = check_request(request, &error);

    if (status) {
        gw_fail_because(call, &error);
        return;
    }
    if (request->meta) {
        what.run_id = peg__str(request->meta->run_id);
        what.tool_call_id = peg__str(request->meta->tool_call_id);
    }
    if (what.key.len || (what.run_id.len && what.tool_call_id.len)) {
        gw_report_epoch(call, desk);
        what.may_have_run = gw_was_asked_elsewhere(call, desk);
    } else if (mode == START && peg__id_hex(key)) {
        /* A call that is to be asked for again has an identity, if only of ours. */
        gw_report_epoch(call, desk);
        what.key = peg__str(key);
    }
    status = gw_pack_rest(call, request, desk, &what.packed);
    if (status == PEG_ELIMIT) {
        gw_fail(call, WIRE_LIMIT,
                peg__str("meta, metadata and trace context together are larger than "
                         "PEG_LIMIT_GATEWAY_METADATA_BYTES = 16 KiB"));
        return;
    }
    asked = status ? NULL : make_asked(call, desk, mode);
    if (asked)
        gw_calls_start(desk, &what, &asked->caller);
    else if (status)
        fail_memory(call);
}

void gw_serve_call_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        void *node)
{
    ask(call, request, (struct gw_node *)node, CALL);
}

void gw_serve_call_tool_stream(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                               void *node)
{
    ask(call, request, (struct gw_node *)node, STREAM);
}

void gw_serve_start_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                         void *node)
{
    ask(call, request, (struct gw_node *)node, START);
}

/* ---- by id ----------------------------------------------------------------------------------- */

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

static int64_t wait_until(struct grpc_call *call, struct gw_calls *desk, int64_t timeout_ms)
{
    const int64_t deadline_ns = grpc_call_deadline_ns(call);
    const int64_t wait_ms = timeout_ms ? timeout_ms : desk->options.call_timeout_ms;
    const int64_t until_ns = bus_now_ns(desk->bus) + wait_ms * 1000000;

    return deadline_ns < until_ns ? deadline_ns : until_ns;
}

void gw_serve_await_tool(struct grpc_call *call, const Pegboard__V1__AwaitToolRequest *request,
                         void *node)
{
    struct gw_calls *desk = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct bus_id id;
    struct asked *asked =
        parse_id(call, request->call_id, &id) && takes_timeout(call, request->timeout_ms)
            ? make_asked(call, desk, AWAIT)
            : NULL;

    if (!asked)
        return;
    asked->caller.was_asked_elsewhere = gw_was_asked_elsewhere(call, desk);
    gw_calls_await(desk, &id, gw_call_principal(call)->name,
                   wait_until(call, desk, request->timeout_ms), &asked->caller);
}

void gw_serve_cancel_tool(struct grpc_call *call, const Pegboard__V1__CancelToolRequest *request,
                          void *node)
{
    struct gw_calls *desk = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct bus_id id;
    struct asked *asked =
        parse_id(call, request->call_id, &id) ? make_asked(call, desk, STOP) : NULL;

    if (!asked)
        return;
    asked->caller.was_asked_elsewhere = gw_was_asked_elsewhere(call, desk);
    gw_calls_cancel(desk, &id, gw_call_principal(call)->name, &asked->caller);
}

void gw_serve_call_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = (struct asked *)grpc_call_get(call, ASKED_KEY);

    (void)node;
    if (!asked)
        return;
    /* A connection that broke says nothing about what its client wants. */
    if (grpc_call_ended_as(call)->code == GRPC_UNAVAILABLE)
        gw_caller_lose(&asked->caller);
    else
        gw_caller_drop(&asked->caller);
}
