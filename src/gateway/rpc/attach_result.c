/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Results that come in several frames, put together. Each is of a call that the provider has, and
 * goes with it: also one that was begun and is never finished, because the call was refused after
 * all, answered in another way, or dropped.
 */

/* Results and outputs of providers: read, and packed as the answer that callers get. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/provider/provider_side.h"
#include "gateway/access/access.h"
#include "gateway/rpc/attached.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/content.h"
#include "wire/pack.h"

/* NULL: none was begun. */
static struct gw_assembly *find_assembly(const struct gw_attached *attached,
                                         const struct bus_id *id, uint32_t attempt)
{
    return attached->assemblies
               ? (struct gw_assembly *)calls_table_find(&attached->assembling, id, attempt)
               : NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* What it takes of the room is what of its chunks is kept, or nothing any more. */
static void count_assembly(struct gw_assembly *assembly, size_t n_bytes)
{
    struct gw_attached *attached = assembly->attached;

    peg__quota_give_back(&attached->calls->results->bytes, attached->account, assembly->counted);
    peg__quota_add(&attached->calls->results->bytes, attached->account, n_bytes);
    attached->assembled += n_bytes - assembly->counted;
    assembly->counted = n_bytes;
}

static peg_status check_assembly_quota(const struct gw_attached *attached, size_t n,
                                       peg_error *reterr)
{
    if (attached->assembled + n > PEG_LIMIT_GATEWAY_ASSEMBLED_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "unfinished results of this provider hold 64 MiB: finish some of them "
                         "first");
    return calls_result_quota_check(attached->calls->results, attached->account, n, reterr);
}

/* ---- from the first chunk to the last -------------------------------------------------------- */

static void free_assembly(struct gw_assembly *assembly)
{
    struct gw_attached *attached = assembly->attached;

    count_assembly(assembly, 0);
    wire_chunks_free(&assembly->chunks);
    calls_table_remove(&attached->assembling, &assembly->entry);
    if (assembly->prev)
        assembly->prev->next = assembly->next;
    else
        attached->assemblies = assembly->next;
    if (assembly->next)
        assembly->next->prev = assembly->prev;
    peg__free(assembly);
}

void gw_attached_drop_assembly(void *user, const struct bus_id *id, uint32_t attempt)
{
    struct gw_assembly *assembly = find_assembly((const struct gw_attached *)user, id, attempt);

    if (assembly)
        free_assembly(assembly);
}

void gw_attached_free_assemblies(struct gw_attached *attached)
{
    while (attached->assemblies)
        free_assembly(attached->assemblies);
    calls_table_free(&attached->assembling);
    calls_result_quota_forget_wait(&attached->room);
}

static struct gw_assembly *begin_assembly(struct gw_attached *attached, const struct bus_id *id,
                                          uint32_t attempt)
{
    struct gw_assembly *assembly = (struct gw_assembly *)peg__alloc_zero(1, sizeof(*assembly));

    if (!assembly)
        return NULL;
    assembly->entry.id = *id;
    assembly->entry.attempt = attempt;
    assembly->attached = attached;
    assembly->chunks.n_before = CALLS_OUTCOME_CAPACITY;
    if (calls_table_add(&attached->assembling, &assembly->entry)) {
        peg__free(assembly);
        return NULL;
    }
    assembly->next = attached->assemblies;
    if (assembly->next)
        assembly->next->prev = assembly;
    attached->assemblies = assembly;
    return assembly;
}

static peg_status add_chunk(struct gw_assembly *assembly, peg_str chunk, peg_error *reterr)
{
    peg_status status = check_assembly_quota(assembly->attached, chunk.len, reterr);

    if (status)
        return status;
    status = wire_chunks_add(&assembly->chunks, chunk, reterr);
    count_assembly(assembly, wire_chunks_view(&assembly->chunks).len);
    return status;
}

/* The next chunk of a result, or the first one. When it fails nothing of the result is left. */
static struct gw_assembly *add_chunk_to_assembly(struct gw_attached *attached,
                                                 const struct bus_id *id, uint32_t attempt,
                                                 peg_str chunk, peg_error *reterr)
{
    struct gw_assembly *assembly = find_assembly(attached, id, attempt);

    if (!assembly)
        assembly = begin_assembly(attached, id, attempt);
    if (!assembly) {
        peg__fail(reterr, PEG_ENOMEM, "E_OUT_OF_MEMORY",
                  "the gateway has no memory for the result");
        return NULL;
    }
    if (!add_chunk(assembly, chunk, reterr))
        return assembly;
    free_assembly(assembly);
    return NULL;
}

enum { MAX_STREAM_NAME = 128 };

/* ---- the answer ------------------------------------------------------------------------------ */

static void add_field(struct peg__buf *out, unsigned field, peg_str bytes)
{
    char *at = bytes.len ? peg__buf_reserve(out, wire_bytes_size(bytes)) : NULL;

    if (at)
        out->len += (size_t)(wire_put_bytes(at, field, bytes) - at);
}

static void add_head(struct peg__buf *out, unsigned field, size_t len)
{
    char head[1 + WIRE_MAX_VARINT];

    peg__buf_add(out, head, (size_t)(wire_put_head(head, field, len) - head));
}

static void add_error(struct peg__buf *out, const Pegboard__V1__ToolError *error)
{
    const peg_str code = peg__str(error->code[0] ? error->code : "execution_failed");
    const peg_str message = peg__str(error->message);

    add_head(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD,
             wire_bytes_size(code) + wire_bytes_size(message));
    add_field(out, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code);
    add_field(out, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
}

/* Those that are large are read with the result, by a worker: see complete.c. */
static bool are_read_later(const struct calls_loop *calls, const struct gw_answer_parts *parts)
{
    size_t n = 0;

    for (size_t i = 0; i < parts->n_server_data; i++)
        n += parts->server_data[i]->data.len;
    return calls->loop && n > PEG_LIMIT_GATEWAY_INLINE_BYTES;
}

static peg_status add_server_data(struct calls_loop *calls, struct peg__buf *out,
                                  const Pegboard__V1__ServerData *data, bool is_read_later,
                                  peg_error *reterr)
{
    const peg_str kind = peg__str(data->kind);
    const peg_str audience = peg__str(data->audience);
    const peg_str json = {(const char *)data->data.data, data->data.len};
    peg_status status;

    if (!kind.len)
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH", "server-data have no kind");
    status = is_read_later ? PEG_OK : calls_check_now(calls, NULL, json, "server-data");
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH", "%.*s",
                         PEG_ARG(peg__buf_view(&calls->text)));
    add_head(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD,
             wire_bytes_size(kind) + wire_bytes_size(audience) + wire_bytes_size(json));
    add_field(out, PEGBOARD_V1_SERVER_DATA_KIND_FIELD, kind);
    add_field(out, PEGBOARD_V1_SERVER_DATA_AUDIENCE_FIELD, audience);
    add_field(out, PEGBOARD_V1_SERVER_DATA_DATA_FIELD, json);
    return PEG_OK;
}

/* The last of an answer. */
static peg_status add_all_server_data(struct calls_loop *calls, const struct gw_answer_parts *parts,
                                      struct peg__buf *out, peg_error *reterr)
{
    const bool is_read_later = are_read_later(calls, parts);
    peg_status status = PEG_OK;

    for (size_t i = 0; i < parts->n_server_data && !status; i++)
        status = add_server_data(calls, out, parts->server_data[i], is_read_later, reterr);
    if (!status && out->status)
        status = out->status == PEG_ELIMIT
                     ? peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                                 "the result with its server-data has more than 8 MiB: send less")
                     : peg__fail_nomem(reterr);
    return status;
}

static void add_contents(struct peg__buf *out, const struct gw_answer_parts *parts)
{
    for (size_t i = 0; i < parts->n_contents; i++) {
        const ProtobufCMessage *message = &parts->contents[i]->base;
        const size_t len = protobuf_c_message_get_packed_size(message);
        char *at;

        add_head(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_CONTENT_FIELD, len);
        at = peg__buf_reserve(out, len);
        if (at)
            out->len += protobuf_c_message_pack(message, (uint8_t *)at);
    }
}

peg_status gw_pack_answer(struct calls_loop *calls, const struct gw_answer_parts *parts,
                          struct peg__buf *out, peg_str *ret_result, peg_error *reterr)
{
    const peg_str result = parts->result.len ? parts->result : (peg_str)PEG_LIT("null");
    size_t end = 0;
    peg_status status;

    peg__buf_clear(out);
    if (parts->error) {
        add_error(out, parts->error);
    } else if (parts->content.len || parts->n_contents) {
        peg__buf_str(out, parts->content);
        add_contents(out, parts);
    } else {
        add_field(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD, result);
        end = out->len;
    }
    status = add_all_server_data(calls, parts, out, reterr);
    if (status)
        return status;
    *ret_result = end ? (peg_str){out->ptr + end - result.len, result.len} : (peg_str){"", 0};
    return PEG_OK;
}

/* ---- what comes ------------------------------------------------------------------------------ */

static void reject_result(struct gw_attached *attached, const struct bus_id *id, uint32_t attempt,
                          const char *why)
{
    calls_provider_bad_result(attached->provider, id, attempt, PEG_EINVAL, peg__str(why));
}

static void reject_result_because(struct gw_attached *attached, const struct bus_id *id,
                                  uint32_t attempt, const peg_error *error)
{
    calls_provider_bad_result(attached->provider, id, attempt, error->status,
                              peg__str(error->message));
}

/* A call that this provider does not have (any more): it need not keep the result. Of one whose
 * terminal is just being written it hears when that is done. */
static void ack_unknown(struct gw_attached *attached, const struct bus_id *id, uint32_t attempt)
{
    if (!calls_assignment_find_by(attached->provider, id, attempt))
        attached->provider->events->ack(attached, id, attempt);
}

/* Its fields become those of the response: nothing but content may be among them. */
static bool is_list_if_content(const Pegboard__V1__Result *result, peg_str bytes)
{
    return !result->is_content || wire_content_is_list(bytes);
}

static void take_whole(struct gw_attached *attached, const struct bus_id *id,
                       const Pegboard__V1__Result *result, peg_str bytes)
{
    const struct gw_answer_parts parts = {
        .result = result->is_content ? peg__str("") : bytes,
        .content = result->is_content ? bytes : peg__str(""),
        .error = result->error,
        .server_data = result->server_data,
        .n_server_data = result->n_server_data,
    };
    peg_str packed_result;
    peg_error error;

    if (!result->error && !is_list_if_content(result, bytes))
        reject_result(attached, id, result->attempt,
                      "the content of the result is no ContentList of 1 to 64 parts");
    else if (gw_pack_answer(attached->calls, &parts, &attached->response, &packed_result, &error))
        reject_result_because(attached, id, result->attempt, &error);
    else
        calls_provider_result(attached->provider, id, result->attempt,
                              peg__buf_view(&attached->response), packed_result,
                              result->error != NULL);
    if (attached->response.capacity > PEG_LIMIT_GATEWAY_INLINE_BYTES)
        peg__buf_free(&attached->response);
}

/* A large one is not copied: what it was put together in becomes the terminal. Content has its own
 * fields: before it stands an empty result. */
static void take_large(struct gw_attached *attached, const struct bus_id *id,
                       const Pegboard__V1__Result *result, struct gw_assembly *assembly)
{
    const struct gw_answer_parts parts = {
        .server_data = result->server_data,
        .n_server_data = result->n_server_data,
    };
    const size_t len = result->is_content ? 0 : wire_chunks_view(&assembly->chunks).len;
    peg_error error;

    assembly->chunks.bytes.max =
        CALLS_OUTCOME_CAPACITY + PEG_LIMIT_GATEWAY_RESULT_BYTES + PEG_LIMIT_GATEWAY_FRAME_BYTES;
    if (add_all_server_data(attached->calls, &parts, &assembly->chunks.bytes, &error)) {
        reject_result_because(attached, id, result->attempt, &error);
        return;
    }
    count_assembly(assembly, 0); /* its reader counts it from now on */
    calls_provider_large_result(attached->provider, id, result->attempt,
                                calls_outcome_of_result(&assembly->chunks.bytes, len), len);
}

static void take_assembled(struct gw_attached *attached, const struct bus_id *id,
                           const Pegboard__V1__Result *result, struct gw_assembly *assembly)
{
    const peg_str bytes = wire_chunks_view(&assembly->chunks);

    if (attached->calls->loop && !result->error && bytes.len > PEG_LIMIT_GATEWAY_INLINE_BYTES &&
        is_list_if_content(result, bytes))
        take_large(attached, id, result, assembly);
    else
        take_whole(attached, id, result, bytes);
}

/* Rejecting or taking a result may end its call, and with it the assembly. */
static void take_chunk(struct gw_attached *attached, const struct bus_id *id,
                       const Pegboard__V1__Result *result, peg_str chunk)
{
    peg_error error;
    struct gw_assembly *assembly =
        add_chunk_to_assembly(attached, id, result->attempt, chunk, &error);

    if (!assembly) {
        reject_result_because(attached, id, result->attempt, &error);
    } else if (!result->more) {
        take_assembled(attached, id, result, assembly);
        gw_attached_drop_assembly(attached, id, result->attempt);
    }
}

static void accept_result(struct gw_attached *attached, const Pegboard__V1__Result *result)
{
    const peg_str chunk = {(const char *)result->chunk.data, result->chunk.len};
    struct bus_id id;

    if (!bus_id_parse(peg__str(result->call_id), &id))
        return;
    if (!calls_provider_has(attached->provider, &id, result->attempt)) {
        if (!result->more)
            ack_unknown(attached, &id, result->attempt);
    } else if (chunk.len > PEG_LIMIT_GATEWAY_CHUNK_BYTES) {
        reject_result(attached, &id, result->attempt,
                      "a chunk of the result has more than 64 KiB: send it in several");
    } else if (result->more || find_assembly(attached, &id, result->attempt)) {
        take_chunk(attached, &id, result, chunk);
    } else {
        take_whole(attached, &id, result, chunk);
    }
}

static void resume_results(struct calls_result_wait *wait)
{
    struct gw_attached *attached = peg__container_of(wait, struct gw_attached, room);

    grpc_call_resume(attached->call);
}

/* Who sends faster than workers read waits, so that nothing is refused that a tool has done. */
void gw_attached_result(struct gw_attached *attached, const Pegboard__V1__Result *result)
{
    accept_result(attached, result);
    if (attached->step != GW_ATTACHED_NOW)
        return;
    attached->room.go_on = resume_results;
    if (calls_result_quota_must_wait(attached->calls->results, attached->account, &attached->room))
        grpc_call_pause(attached->call);
}

void gw_attached_delta(struct gw_attached *attached, const Pegboard__V1__Delta *delta)
{
    const peg_str stream = peg__str(delta->stream);
    const peg_str text = peg__str(delta->delta);
    struct peg__buf *out = &attached->calls->frame;
    struct bus_id id;

    /* What does not keep to the bounds is left out: an output is a hint, the result is what counts.
     */
    if (!bus_id_parse(peg__str(delta->call_id), &id) || !stream.len || !text.len ||
        stream.len > MAX_STREAM_NAME || text.len > PEG_LIMIT_GATEWAY_CHUNK_BYTES)
        return;
    peg__buf_clear(out);
    add_field(out, PEGBOARD_V1_OUTPUT_STREAM_FIELD, stream);
    add_field(out, PEGBOARD_V1_OUTPUT_DELTA_FIELD, text);
    if (!out->status)
        calls_provider_output(attached->provider, &id, delta->attempt, peg__buf_view(out));
}
