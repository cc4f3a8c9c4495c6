/* SPDX-License-Identifier: Apache-2.0 */

/* EmitToolResult: a result by whoever cannot send it on its stream. */

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/principal.h"
#include "gateway/attach/attached.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/services.h"

struct emitting {
    struct gw_emit emit; /* the first member */
    struct grpc_call *call;
};

static void on_emitted(struct gw_emit *emit, enum wire_error error, const char *words)
{
    struct emitting *emitting = (struct emitting *)emit;

    if (error)
        gw_fail(emitting->call, error, peg__str(words));
    else
        grpc_call_reply(emitting->call, peg__str(""));
}

static void fail_to_pack(struct grpc_call *call, const peg_error *error)
{
    if (error->status == PEG_ENOMEM)
        gw_fail(call, WIRE_OVERLOADED,
                peg__str("the gateway is out of memory: send the result again"));
    else
        gw_fail_because(call, error);
}

void gw_serve_emit(struct grpc_call *call, const Pegboard__V1__EmitToolResultRequest *request,
                   void *node)
{
    struct gw_calls *desk = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct emitting *emitting =
        (struct emitting *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*emitting));
    struct peg__buf response = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    const struct gw_answer_parts parts = {
        .result = {(const char *)request->result.data, request->result.len},
        .error = request->error,
        .server_data = request->server_data,
        .n_server_data = request->n_server_data,
    };
    struct bus_id id;
    struct gw_emitted emitted = {
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
    } else if (gw_pack_answer(desk, &parts, &response, &emitted.result, &error)) {
        fail_to_pack(call, &error);
    } else {
        emitted.response = peg__buf_view(&response);
        emitting->call = call;
        emitting->emit.fn = on_emitted;
        grpc_call_set_state(call, emitting);
        gw_calls_emit(desk, &emitted, &emitting->emit);
    }
    peg__buf_free(&response);
}

void gw_serve_emit_on_end(struct grpc_call *call, void *node)
{
    struct emitting *emitting = (struct emitting *)grpc_call_state(call);

    (void)node;
    if (emitting)
        gw_emit_forget(&emitting->emit);
}
