/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider wrote to a result stream, as the outcome that callers get. It is held to the
 * same as a result of an attached provider: the output schema, whole server-data, 8 MiB. */

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"
#include "pegboard/cleanup.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "json/json.h"

static void add_packed(struct peg__buf *out, unsigned field, peg_str bytes)
{
    char *at = bytes.len ? peg__buf_reserve(out, wire_bytes_size(bytes)) : NULL;

    if (at)
        out->len += (size_t)(wire_put_bytes(at, field, bytes) - at);
}

static void add_packed_head(struct peg__buf *out, unsigned field, size_t len)
{
    char head[1 + WIRE_MAX_VARINT];

    peg__buf_add(out, head, (size_t)(wire_put_head(head, field, len) - head));
}

peg_str direct_pack_output(struct gw_direct *direct, const struct pulse_delta *delta)
{
    peg__buf_clear(&direct->packed);
    add_packed(&direct->packed, PEGBOARD_V1_OUTPUT_STREAM_FIELD, delta->stream);
    add_packed(&direct->packed, PEGBOARD_V1_OUTPUT_DELTA_FIELD, delta->delta);
    return direct->packed.status ? (peg_str){"", 0} : peg__buf_view(&direct->packed);
}

bool direct_outcome_of(struct direct_call *call, const struct calls_outcome *outcome)
{
    peg__blob_unref(call->outcome);
    call->outcome = calls_outcome_write(outcome);
    return call->outcome != NULL;
}

static void pack_error(struct peg__buf *out, peg_str code, peg_str message)
{
    peg__buf_clear(out);
    add_packed_head(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD,
                    wire_bytes_size(code) + wire_bytes_size(message));
    add_packed(out, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code);
    add_packed(out, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
}

bool direct_outcome_of_error(struct direct_call *call, const char *code, peg_str message)
{
    struct peg__buf *out = &call->direct->packed;
    struct calls_outcome outcome = {.kind = CALLS_KIND_ERROR, .was_started = true};

    pack_error(out, peg__str(code), message);
    outcome.response = peg__buf_view(out);
    return !out->status && direct_outcome_of(call, &outcome);
}

/* ---- server-data ----------------------------------------------------------------------------- */

static bool pack_one_data(struct gw_direct *direct, const peg_json *item)
{
    const peg_json *data = peg_json_get(item, "data");
    const peg_str kind = peg_json_str_or(peg_json_get(item, "kind"), "");
    const peg_str audience = peg_json_str_or(peg_json_get(item, "audience"), "");
    peg_str json;

    if (!kind.len || !data)
        return false;
    peg__buf_clear(&direct->text);
    peg__json_write(data, PEG_JSON_COMPACT, &direct->text);
    json = peg__buf_view(&direct->text);
    add_packed_head(&direct->packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD,
                    wire_bytes_size(kind) + wire_bytes_size(audience) + wire_bytes_size(json));
    add_packed(&direct->packed, PEGBOARD_V1_SERVER_DATA_KIND_FIELD, kind);
    add_packed(&direct->packed, PEGBOARD_V1_SERVER_DATA_AUDIENCE_FIELD, audience);
    add_packed(&direct->packed, PEGBOARD_V1_SERVER_DATA_DATA_FIELD, json);
    return true;
}

/* PEG_EPARSE: it is none; PEG_ENOMEM. */
static peg_status pack_server_data(struct gw_direct *direct, peg_str list)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json *root;
    peg_status status;

    if (!list.len)
        return PEG_OK;
    status = peg_json_parse(list, NULL, &doc, NULL);
    if (status)
        return status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
    root = peg_json_root(doc);
    if (root->kind == PEG_JSON_NULL)
        return PEG_OK;
    if (root->kind != PEG_JSON_ARRAY)
        return PEG_EPARSE;
    for (size_t i = 0; peg_json_at(root, i); i++) {
        if (!pack_one_data(direct, peg_json_at(root, i)))
            return PEG_EPARSE;
    }
    return direct->text.status ? PEG_ENOMEM : PEG_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* PEG_ELIMIT: a worker has to. */
static peg_status check_output(struct direct_call *call, peg_str json)
{
    struct calls_loop *calls = call->direct->calls;
    peg_schema *schema = NULL;
    peg_status status;

    if (!call->tool || !call->tool->output_schema.len)
        return PEG_OK;
    if (json.len > PEG_LIMIT_GATEWAY_INLINE_BYTES)
        return PEG_ELIMIT;
    if (!calls->env->get_schema(calls->user, &call->tool->of_calls, CALLS_OUTPUT, &schema))
        return PEG_ENOMEM;
    status = schema ? calls_check_now(calls, schema, json, "result") : PEG_OK;
    peg_schema_unref(schema);
    return status;
}

static bool write_good(struct direct_call *call, peg_str *ret_result, bool is_checked)
{
    struct calls_outcome outcome = {.kind = CALLS_KIND_RESULT,
                                    .was_started = true,
                                    .response = peg__buf_view(&call->direct->packed)};

    if (!direct_outcome_of(call, &outcome) || !calls_outcome_read(call->outcome, &outcome))
        return false;
    if (!is_checked)
        *ret_result =
            wire_find_bytes(outcome.response, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD);
    return true;
}

bool direct_outcome_of_result(struct direct_call *call, const struct pulse_result *result,
                              peg_str *ret_result)
{
    struct gw_direct *direct = call->direct;
    const peg_str json = result->json.len ? result->json : (peg_str)PEG_LIT("null");
    struct calls_outcome failure = {.kind = CALLS_KIND_ERROR, .was_started = true};
    peg_status status;

    *ret_result = (peg_str){"", 0};
    if (result->is_failure) {
        pack_error(&direct->packed, result->code.len ? result->code : peg__str("execution_failed"),
                   result->message);
        if (pack_server_data(direct, result->server_data) == PEG_ENOMEM || direct->packed.status)
            return false;
        failure.response = peg__buf_view(&direct->packed);
        return direct_outcome_of(call, &failure);
    }
    if (json.len + result->server_data.len > PEG_LIMIT_GATEWAY_RESULT_BYTES)
        return direct_outcome_of_error(call, "malformed_result",
                                       peg__str("the result with its server-data has more than 8 "
                                                "MiB: send less"));
    status = check_output(call, json);
    if (status == PEG_ENOMEM)
        return false;
    if (status && status != PEG_ELIMIT)
        return direct_outcome_of_error(call, "malformed_result",
                                       peg__buf_view(&direct->calls->text));
    peg__buf_clear(&direct->packed);
    add_packed(&direct->packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD, json);
    switch (pack_server_data(direct, result->server_data)) {
    case PEG_OK:
        return !direct->packed.status && write_good(call, ret_result, status == PEG_OK);
    case PEG_EPARSE:
        return direct_outcome_of_error(call, "malformed_result",
                                       peg__str("server-data is no list of objects with a kind and "
                                                "data: the whole result is void"));
    default:
        return false;
    }
}
