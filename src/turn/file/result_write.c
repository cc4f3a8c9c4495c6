/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "core/run/run.h"
#include "turn/call_match.h"
#include "turn/file/result.h"
#include "json/json.h"

peg_str peg__expected_name(const peg_block *call)
{
    const peg_str name = call ? peg_block_tool(call) : (peg_str){NULL, 0};

    return name.len && name.len <= PEG_LIMIT_NAME_BYTES ? name : peg__str(PEG__UNNAMED_TOOL);
}

peg_str peg__expected_args(const peg_block *call)
{
    const peg_str args = call ? peg_block_args(call) : (peg_str){NULL, 0};

    return args.len ? args : peg__str("{}");
}

/* ---- which call it answers ------------------------------------------------------------- */

/* Adds `call` where a reader would take another one. *ret_call is the call, or NULL. */
static void tell_call(struct peg__payload *payload, const peg_block **ret_call)
{
    struct peg__call_match *calls = payload->how->calls;
    const peg_record *record = peg_block_record(payload->block);
    const peg_str key = peg_record_key(record);
    const peg_block *call = calls ? peg__call_match_infer(calls, peg_record_call_id(record)) : NULL;

    if (!calls || !peg__str_eq(key, peg_block_id(call ? call : payload->block))) {
        peg__fields_string(&payload->fields, "call", key);
        call = calls ? peg__call_match_find(calls, key) : NULL;
    }
    if (calls)
        peg__call_match_answer(calls, key);
    *ret_call = call;
}

/* Would a reader take the arguments of the call for those of the record? */
static peg_status are_args_of(const peg_block *call, const peg_record *record, peg_str args,
                              bool *ret_same, peg_error *reterr)
{
    peg_str expected = peg__expected_args(call);
    bool is_usable = true;
    peg_status status = PEG_OK;

    *ret_same = peg__str_eq(args, expected);
    if (*ret_same)
        return PEG_OK;
    if (!peg_record_is_error(record))
        status = peg__args_usable(expected, &is_usable, reterr);
    if (status)
        return status;
    if (!is_usable)
        expected = peg__str("{}");
    return peg__args_same(args, expected, ret_same, reterr);
}

static peg_status tell_asked(struct peg__payload *payload, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    const peg_str text = peg_record_args_text(record);
    const peg_str args = text.len ? text : peg__str("{}");
    const peg_block *call;
    bool is_same = false;
    peg_status status = PEG_OK;

    tell_call(payload, &call);
    if (!payload->how->calls || !peg__str_eq(peg_record_tool(record), peg__expected_name(call)))
        peg__fields_string(&payload->fields, "name", peg_record_tool(record));
    if (payload->how->calls)
        status = are_args_of(call, record, args, &is_same, reterr);
    if (!status && !is_same)
        status = peg__args_fields(args, &payload->args, &payload->fields, reterr);
    return status;
}

/* ---- what came of it --------------------------------------------------------------------- */

/* Text stands where the reference has it: in result, or in error. */
static peg_status tell_text(struct peg__payload *payload, bool *ret_needs_code, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    const bool is_error = peg_record_is_error(record);
    peg_str text = peg_record_text(record);
    struct peg__fields *fields = &payload->fields;
    size_t len = 0;
    peg_status status;

    if (!peg__utf8_is_valid(text)) {
        status = peg__bytes_base64(text, &payload->base64, &len, reterr);
        if (status)
            return status;
        peg__fields_string(fields, "text_base64", peg__strn(payload->base64, len));
        text = (peg_str){NULL, 0};
    }
    *ret_needs_code = is_error && !text.len;
    if (is_error || !text.ptr)
        peg__fields_null(fields, "result");
    else
        peg__fields_string(fields, "result", text);
    peg__fields_string(fields, "error", is_error && text.len ? text : peg__str(""));
    return PEG_OK;
}

static peg_status tell_artifact(struct peg__payload *payload, peg_error *reterr)
{
    const peg_status status = peg__payload_place_artifact(payload, reterr);

    if (status)
        return status;
    if (payload->bytes.form == PEG__BYTES_TEXT)
        peg__fields_string(&payload->fields, "result", payload->bytes.text);
    else
        peg__fields_null(&payload->fields, "result");
    peg__payload_artifact(payload, payload->bytes.form != PEG__BYTES_TEXT);
    return PEG_OK;
}

static peg_status tell_answer(struct peg__payload *payload, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    bool needs_code = true; /* without text only the code tells a failure */
    peg_status status = PEG_OK;

    if (peg_record_result_kind(record) == PEG_RESULT_TEXT) {
        status = tell_text(payload, &needs_code, reterr);
    } else {
        peg__fields_string(&payload->fields, "error", peg__str(""));
        if (peg_record_artifact(record))
            status = tell_artifact(payload, reterr);
        else
            peg__fields_null(&payload->fields, "result");
        peg__payload_media(payload);
    }
    if (status || !peg_record_is_error(record))
        return status;
    if (needs_code || strcmp(peg_record_code(record), PEG__DEFAULT_CODE) != 0)
        peg__fields_string(&payload->fields, "code", peg__str(peg_record_code(record)));
    if (peg__utf8_is_valid(peg__str(peg_record_cause(record))))
        peg__fields_text(&payload->fields, "cause", peg__str(peg_record_cause(record)));
    return PEG_OK;
}

static peg_status tell_circumstances(struct peg__fields *fields, const peg_record *record,
                                     peg_error *reterr)
{
    const char *nonce;
    const peg_status status = peg__record_nonce(record, &nonce, reterr);

    if (status)
        return status;
    if (!peg__str_eq(peg_record_handle(record), peg_record_call_id(record)))
        peg__fields_string(fields, "handle", peg_record_handle(record));
    peg__fields_true(fields, "trusted", peg_record_is_trusted(record));
    peg__fields_true(fields, "inline", peg_record_is_inline(record));
    peg__fields_true(fields, "artifact_tool", peg_record_is_from_artifact_tool(record));
    peg__fields_integer(fields, "attempts", peg_record_attempts(record));
    peg__fields_integer(fields, "created_ms", peg_record_created_ms(record));
    peg__fields_integer(fields, "completed_ms", peg_record_completed_ms(record));
    peg__fields_integer(fields, "duration_ns", peg_record_duration_ns(record));
    peg__fields_string(fields, "nonce", peg__str(nonce));
    if (peg_record_server_data(record))
        peg__fields_json(fields, "server_data", peg_record_server_data(record));
    if (peg_record_payload(record))
        peg__fields_json(fields, "replay", peg_record_payload(record));
    peg__fields_text(fields, "replay_compatibility",
                     peg__str(peg_record_replay_compatibility(record)));
    return PEG_OK;
}

peg_status peg__result_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    peg_status status;

    peg__fields_string(&payload->fields, "id", peg_record_call_id(record));
    status = tell_asked(payload, reterr);
    if (!status)
        status = tell_answer(payload, reterr);
    return status ? status : tell_circumstances(&payload->fields, record, reterr);
}
