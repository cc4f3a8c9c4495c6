/* SPDX-License-Identifier: Apache-2.0 */

/* Calls of generated code: answers that are encoded, and results that are decoded. */

#include "json/typed/typed.h"
#include "base/error.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/run.h"

/* ---- answering ---------------------------------------------------------------------------- */

/* What cannot be encoded fails the call. */
static peg_status read_encoded(peg_call *call, peg_encoder *encoder, peg_str *ret_text)
{
    peg_error error;
    peg_status status = peg_encoder_text(encoder, ret_text, &error);

    if (status == PEG_ENOMEM)
        return peg__call_out_of_memory(call);
    if (status)
        peg_call_fail_with(call, &error);
    return status;
}

peg_status peg_call_reply_encoded(peg_call *call, peg_encoder *encoder)
{
    peg_str text;
    peg_status status = read_encoded(call, encoder, &text);

    if (!status)
        status = peg__call_reply_text(call, &encoder->text);
    peg_encoder_clear(encoder);
    return status;
}

peg_status peg_call_add_server_data_encoded(peg_call *call, const char *kind, const char *audience,
                                            peg_encoder *encoder)
{
    peg_str text;
    peg_status status = read_encoded(call, encoder, &text);

    if (!status)
        status = peg__call_add_server_text(call, kind, audience, text);
    peg_encoder_clear(encoder);
    return status;
}

/* ---- calling ------------------------------------------------------------------------------ */

static void drop_record(void *record)
{
    peg_record_unref(record);
}

static peg_status fail_typed(const peg_record *record, peg_error *reterr)
{
    const peg_str text = peg_record_text(record);

    /* Codes of records made by hand die with them. */
    peg__fail(reterr, PEG_EHOST, "E_TYPED_CALL", "%.*s", (int)text.len, text.ptr);
    if (reterr && !record->own_code)
        reterr->cause = record->code;
    return PEG_EHOST;
}

/* A tool without an output schema may answer with text. */
static peg_status read_answer(const peg_record *record, peg_arena *arena,
                              const peg_json **ret_value, peg_error *reterr)
{
    peg_json *string;
    peg_str text;
    peg_status status = peg_record_answer(record, &text, reterr);

    if (!status)
        status = peg_arena_parse(arena, text, ret_value, reterr);
    if (status != PEG_EPARSE || !peg__utf8_is_valid(text))
        return status;
    text = peg_arena_copy(arena, text);
    string = peg_arena_alloc(arena, 1, sizeof(*string));
    if (!string || peg_arena_has_failed(arena))
        return peg__fail_nomem(reterr);
    *string = (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)text.len, .u.ptr = text.ptr};
    *ret_value = string;
    return PEG_OK;
}

peg_status peg_typed_call(peg_ctx *ctx, const char *tool, peg_encoder *args, peg_arena *arena,
                          peg_typed_answer *ret_answer, peg_error *reterr)
{
    peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr(tool)};
    const peg_json *value = NULL;
    peg_record *record = NULL;
    peg_status status = peg_encoder_text(args, &request.args, reterr);

    if (!status && !arena)
        status = peg__fail_nomem(reterr);
    if (!status)
        status = peg_call_run(ctx, &request, NULL, &record, reterr);
    if (status)
        return status;
    if (!peg__arena_keep(arena, record, drop_record))
        return peg__fail_nomem(reterr);
    if (peg_record_is_error(record))
        return fail_typed(record, reterr);
    status = read_answer(record, arena, &value, reterr);
    if (status)
        return status;
    *ret_answer = (peg_typed_answer){value, peg_record_server_data(record)};
    return PEG_OK;
}

const peg_json *peg_typed_server_data(const peg_typed_answer *answer, const char *kind)
{
    PEG_JSON_EACH_ITEM (answer->server_data, item) {
        if (peg__str_is(peg_json_str(peg_json_get(item, "kind")), kind))
            return peg_json_get(item, "data");
    }
    return NULL;
}
