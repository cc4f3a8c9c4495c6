/* SPDX-License-Identifier: Apache-2.0 */

/* A record as content: text as text, JSON also as structured content, media and bytes whole. */

#include <stdio.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "json/json.h"

/* ---- bytes ---- */

static void put_blob(struct peg__out *out, const char *uri, const char *mime_type, peg_str base64)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "resource");
    peg__out_key(out, "resource");
    mcp_put_contents(out, peg__str(uri), mime_type, (peg_str){NULL, 0}, base64);
    peg__out_end_object(out);
}

static void put_bytes(struct peg__out *out, const peg_record *record, peg_str bytes)
{
    struct peg__buf base64 = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    char uri[320];
    char *at;

    if (peg__utf8_is_valid(bytes)) {
        mcp_put_text(out, bytes);
        return;
    }
    at = peg__buf_reserve(&base64, peg__base64_len(bytes.len));
    if (at) {
        peg__base64_encode(bytes, at);
        base64.len = peg__base64_len(bytes.len);
        snprintf(uri, sizeof(uri), "pegboard:///results/" PEG_FMT, PEG_ARG(peg_record_key(record)));
        put_blob(out, uri, "application/octet-stream", peg__buf_view(&base64));
    } else {
        out->buf->status = base64.status;
    }
    peg__buf_free(&base64);
}

/* ---- media ---- */

static peg_status put_one_media(struct peg__out *out, const peg_media *media, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *base64 = NULL;
    const peg_media_kind kind = peg_media_kind_of(media);
    const char *mime_type = peg_media_mime_type(media);
    /* Text that a tool returned beside it. */
    const peg_media_note *note = peg_media_note_named(media, "text:description");
    char uri[320];
    size_t len = 0;
    peg_status status;

    if (note && !note->is_derived)
        mcp_put_text(out, peg__str(note->text));
    if (!peg_media_has_bytes(media)) {
        mcp_put_link(out, peg_media_uri(media)[0] ? peg_media_uri(media) : peg_media_file_id(media),
                     peg_media_filename(media), mime_type);
        return PEG_OK;
    }
    status =
        peg_media_base64(media, (size_t)PEG_LIMIT_MCP_RESULT_BYTES / 4 * 3, &base64, &len, reterr);
    if (status)
        return status;
    snprintf(uri, sizeof(uri), "pegboard:///media/%.256s", peg_media_id(media));
    if (kind == PEG_MEDIA_IMAGE || kind == PEG_MEDIA_AUDIO)
        mcp_put_media(out, peg_media_kind_name(kind), peg__strn(base64, len), mime_type);
    else
        put_blob(out, uri, mime_type, peg__strn(base64, len));
    return PEG_OK;
}

static peg_status put_media(struct peg__out *out, const peg_record *record, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < peg_record_n_media(record); i++)
        status = put_one_media(out, peg_record_media(record, i), reterr);
    return status;
}

/* ---- text and JSON ---- */

/* Structured content is written anew: what a handler wrote may have line ends. */
static peg_status put_structured(struct mcp_result *result, peg_str bytes, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_error why;
    peg_status status = peg_json_parse(bytes, &peg__json_refuse_duplicates, &doc, &why);

    if (status == PEG_ENOMEM) {
        *reterr = why;
        return status;
    }
    if (!status) {
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &result->structured);
        result->is_structured_object = peg_json_root(doc)->kind == PEG_JSON_OBJECT;
    }
    peg_json_doc_free(doc);
    return PEG_OK;
}

static peg_status put_answer(struct mcp_result *result, struct peg__out *out,
                             const peg_record *record, bool has_schema, peg_error *reterr)
{
    peg_str bytes;
    peg_status status;

    if (peg_record_result_kind(record) == PEG_RESULT_MEDIA)
        return put_media(out, record, reterr);
    status = peg_record_answer(record, &bytes, reterr);
    if (!status && has_schema && peg_record_result_kind(record) == PEG_RESULT_ARTIFACT)
        status = put_structured(result, bytes, reterr);
    if (!status)
        put_bytes(out, record, bytes);
    return status;
}

/* Server-data is not for models; what its author meant for the user is marked so. */
static void put_user_data(struct peg__out *out, const peg_record *record)
{
    PEG_JSON_EACH_ITEM (peg_record_server_data(record), item) {
        struct peg__buf text = PEG__BUF(PEG_LIMIT_SERVER_DATA_BYTES);

        if (!peg__str_is(peg_json_str(peg_json_get(item, "audience")), "user"))
            continue;
        peg__json_write(peg_json_get(item, "data"), PEG_JSON_COMPACT, &text);
        peg__out_object(out);
        peg__out_cmember(out, "type", "text");
        peg__out_member(out, "text", peg__buf_view(&text));
        peg__out_key(out, "annotations");
        peg__out_raw(out, peg__str("{\"audience\":[\"user\"]}"));
        peg__out_end_object(out);
        if (text.status)
            out->buf->status = text.status;
        peg__buf_free(&text);
    }
}

/* ---- failures ---- */

/* The names that a gateway gives them. */
static const char *error_name(const char *code)
{
    static const struct {
        const char *code;
        const char *name;
    } names[] = {{"E_INVALID_TOOL_ARGS", "validation_error"},
                 {"E_TOOL_TIMEOUT", "timeout"},
                 {"E_TOOL_CANCELED", "canceled"},
                 {"E_CANCELED", "canceled"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcmp(code, names[i].code))
            return names[i].name;
    }
    return NULL;
}

static void put_failure(struct mcp_result *result, const peg_record *record)
{
    if (!strcmp(peg_record_code(record), "E_TOOL_NOT_FOUND"))
        mcp_result_fail(result, MCP_INVALID_PARAMS, "Unknown tool: " PEG_FMT,
                        PEG_ARG(peg_record_tool(record)));
    else
        mcp_result_fail_tool(result, error_name(peg_record_code(record)), peg_record_text(record));
}

void mcp__put_record(struct mcp_result *result, const peg_record *record, bool has_schema)
{
    struct peg__out out = {.buf = &result->members};
    peg_error error;
    peg_status status;

    if (peg_record_is_error(record)) {
        put_failure(result, record);
        return;
    }
    *result = (struct mcp_result){.members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES),
                                  .structured = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES)};
    peg__out_key(&out, "content");
    peg__out_array(&out);
    status = put_answer(result, &out, record, has_schema, &error);
    put_user_data(&out, record);
    peg__out_end_array(&out);
    if (status == PEG_ENOMEM)
        result->members.status = PEG_ENOMEM;
    else if (status)
        mcp_result_fail_tool(result, NULL, peg__str(error.message));
}
