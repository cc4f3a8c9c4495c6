/* SPDX-License-Identifier: Apache-2.0 */

/* Pong and EmitToolResult: what providers answer by other ways than a stream of theirs. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "gateway/access/access.h"
#include "gateway/direct/direct.h"
#include "gateway/rpc/attached.h"
#include "gateway/rpc/rpc.h"
#include "wire/wire.h"
#include "json/json.h"

/* ---- Pong ---- */

/* The provider whose ping it answers: a ping's id is "<incarnation>/<number>". */
static const struct gw_provider_entry *find_provider(struct calls_loop *calls,
                                                     const Pegboard__V1__PongRequest *request)
{
    const peg_str incarnation = {request->ping_id, strcspn(request->ping_id, "/")};
    size_t n;
    struct gw_provider_entry *entries =
        gw_presence_providers(gw_router_of(calls)->presence, peg__str(request->toolset), &n);

    for (size_t i = 0; i < n; i++) {
        if (peg__str_eq(peg__str(entries[i].incarnation), incarnation))
            return &entries[i];
    }
    return NULL;
}

/* Old providers end when it fails, so it is always answered. */
void gw_serve_pong(struct grpc_call *call, const Pegboard__V1__PongRequest *request, void *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    const struct gw_toolset *toolset =
        gw_router_of(calls)->snapshot
            ? gw_snapshot_find(gw_router_of(calls)->snapshot, peg__str(request->toolset))
            : NULL;
    const struct gw_provider_entry *entry = NULL;

    if (toolset && !peg__str_eq(toolset->owner, gw_call_principal(call)->name))
        toolset = NULL;
    if (toolset && toolset->kind == GW_DIRECT && gw_router_of(calls)->direct)
        gw_direct_pong(gw_router_of(calls)->direct, toolset, peg__str(request->ping_id));
    else if (toolset)
        entry = find_provider(calls, request);
    if (entry)
        calls_pong(calls, entry->incarnation, entry->address);
    grpc_call_reply(call, peg__str(""));
}

/* ---- EmitToolResult: a result from a provider that cannot send it on its stream ---- */

struct emitting {
    struct calls_emission emit; /* the first member */
    struct gw_direct_emission direct;
    struct grpc_call *call;
};

static void on_emitted(struct calls_emission *emit, enum calls_error error, const char *words)
{
    struct emitting *emitting = (struct emitting *)emit;

    if (error)
        gw_fail(emitting->call, gw_error_of_call(error), peg__str(words));
    else
        grpc_call_reply(emitting->call, peg__str(""));
}

static void fail_packing(struct grpc_call *call, const peg_error *error)
{
    if (error->status == PEG_ENOMEM)
        gw_fail(call, WIRE_OVERLOADED,
                peg__str("the gateway is out of memory: send the result again"));
    else
        gw_fail_because(call, error);
}

/* ---- of a direct call: to its result stream ---- */

static void on_stream_emitted(struct gw_direct_emission *emission, enum calls_error error,
                              const char *words)
{
    struct emitting *emitting = peg__container_of(emission, struct emitting, direct);

    on_emitted(&emitting->emit, error, words);
}

/* False: one of them is none, and the call has been answered. */
static bool put_server_data(struct grpc_call *call,
                            const Pegboard__V1__EmitToolResultRequest *request,
                            struct calls_loop *calls, struct peg__buf *ret_list)
{
    struct peg__out out = {.buf = ret_list};

    if (!request->n_server_data)
        return true;
    peg__out_array(&out);
    for (size_t i = 0; i < request->n_server_data; i++) {
        const Pegboard__V1__ServerData *data = request->server_data[i];
        const peg_str json = {(const char *)data->data.data, data->data.len};

        if (!data->kind[0] || calls_check_now(calls, NULL, json, "server-data")) {
            gw_fail(call, WIRE_VALIDATION,
                    peg__str("server-data need a kind, and data that is JSON"));
            return false;
        }
        peg__out_object(&out);
        peg__out_cmember(&out, "kind", data->kind);
        peg__out_cmember(&out, "audience", data->audience);
        peg__out_key(&out, "data");
        peg__out_raw(&out, json);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    return true;
}

/* JSON is put into JSON: it has to be whole. One that is large is read here all the same, as it
 * comes from few providers and not from callers. */
static bool check_emitted(struct grpc_call *call, struct calls_loop *calls, peg_str json)
{
    peg_json_doc *doc = NULL;
    peg_error error;
    const peg_status status = json.len ? peg_json_parse(json, NULL, &doc, &error) : PEG_OK;

    (void)calls;
    peg_json_doc_free(doc);
    if (status)
        gw_fail_because(call, &error);
    return status == PEG_OK;
}

static void emit_to_stream(struct emitting *emitting,
                           const Pegboard__V1__EmitToolResultRequest *request,
                           struct calls_loop *calls)
{
    struct grpc_call *call = emitting->call;
    struct peg__buf server_data = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    struct gw_direct_emitted emitted = {
        .call_id = peg__str(request->call_id),
        .is_failure = request->error != NULL,
        .result = {(const char *)request->result.data, request->result.len},
    };

    if (request->error) {
        emitted.code =
            peg__str(request->error->code[0] ? request->error->code : "execution_failed");
        emitted.message = peg__str(request->error->message);
    }
    emitting->direct.fn = on_stream_emitted;
    grpc_call_set_state(call, emitting);
    if (emitted.result.len > PEG_LIMIT_GATEWAY_RESULT_BYTES) {
        gw_fail(call, WIRE_LIMIT, peg__str("the result has more than 8 MiB: send less"));
    } else if ((emitted.is_failure || check_emitted(call, calls, emitted.result)) &&
               put_server_data(call, request, calls, &server_data)) {
        emitted.server_data = peg__buf_view(&server_data);
        gw_direct_emit(gw_router_of(calls)->direct, &emitted, &emitting->direct);
    }
    peg__buf_free(&server_data);
}

void gw_serve_emit(struct grpc_call *call, const Pegboard__V1__EmitToolResultRequest *request,
                   void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct emitting *emitting =
        (struct emitting *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*emitting));
    struct peg__buf response = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    const struct gw_answer_parts parts = {
        .result = {(const char *)request->result.data, request->result.len},
        .error = request->error,
        .server_data = request->server_data,
        .n_server_data = request->n_server_data,
        .contents = request->content,
        .n_contents = request->n_content,
    };
    struct bus_id id;
    struct calls_emitted emitted = {
        .id = &id,
        .attempt = request->attempt,
        .principal = gw_call_principal(call)->name,
        .is_error = request->error != NULL,
    };
    peg_error error;

    if (!bus_id_parse(peg__str(request->call_id), &id)) {
        gw_fail(call, WIRE_VALIDATION,
                peg__str("call_id is not one that this gateway gave out: 32 or 64 hexadecimal "
                         "digits"));
    } else if (!emitting) {
        gw_fail(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"));
    } else if (gw_id_is_direct(&id) && request->n_content) {
        gw_fail(call, WIRE_VALIDATION,
                peg__str("the call is of a direct toolset, whose results are JSON: send `result`"));
    } else if (gw_id_is_direct(&id) && gw_router_of(calls)->direct) {
        emitting->call = call;
        emit_to_stream(emitting, request, calls);
    } else if (gw_pack_answer(calls, &parts, &response, &emitted.result, &error)) {
        fail_packing(call, &error);
    } else {
        emitted.response = peg__buf_view(&response);
        emitting->call = call;
        emitting->emit.fn = on_emitted;
        grpc_call_set_state(call, emitting);
        calls_emit(calls, &emitted, &emitting->emit);
    }
    peg__buf_free(&response);
}

void gw_serve_emit_on_end(struct grpc_call *call, void *node)
{
    struct emitting *emitting = (struct emitting *)grpc_call_state(call);

    (void)node;
    if (!emitting)
        return;
    gw_direct_forget_emission(&emitting->direct);
    if (emitting->emit.calls)
        calls_emission_forget(&emitting->emit);
}
