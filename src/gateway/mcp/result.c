/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The outcome of a call for an MCP client. What a model can act on is a result that is marked as an
 * error, with a sentence; only a tool that does not exist is an error of the protocol.
 */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits/mcp.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/content.h"
#include "wire/pack.h"
#include "wire/wire.h"
#include "json/json.h"

/* ---- what the tool returned ---- */

/* A string is text for the model, everything else is JSON for it to read. */
static peg_status put_text(struct peg__out *out, peg_str json)
{
    peg_json_doc *doc = NULL;
    peg_status status = PEG_OK;

    if (json.ptr[0] == '"')
        status = peg_json_parse(json, NULL, &doc, NULL);
    if (!status)
        mcp_put_text(out, doc ? peg_json_str(peg_json_root(doc)) : json);
    peg_json_doc_free(doc);
    return status;
}

/* One line, as all messages are. */
static peg_status put_structured(struct mcp_result *result, peg_str json)
{
    peg_json_doc *doc = NULL;
    peg_status status;

    result->is_structured_object = json.ptr[json.len - 1] == '}';
    if (!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len)) {
        peg__buf_str(&result->structured, json);
        return PEG_OK;
    }
    status = peg_json_parse(json, NULL, &doc, NULL);
    if (!status)
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &result->structured);
    peg_json_doc_free(doc);
    return status;
}

/* Server-data is not for models; what its author meant for the user is marked so. */
static void put_user_data(struct peg__out *out, peg_str response)
{
    peg_str item;

    while (wire_next_bytes(&response, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item)) {
        const peg_str audience = wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_AUDIENCE_FIELD);
        const peg_str data = wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_DATA_FIELD);

        if (!data.len || !audience.len || !peg__str_is(audience, "user"))
            continue;
        peg__out_object(out);
        peg__out_cmember(out, "type", "text");
        peg__out_member(out, "text", data);
        peg__out_key(out, "annotations");
        peg__out_raw(out, peg__str("{\"audience\":[\"user\"]}"));
        peg__out_end_object(out);
    }
}

/* ---- typed content ---- */

/* NUL-terminated, as the writers of content take it. NULL: no memory. */
static const char *copy_media_word(struct peg__arena *arena, peg_str word)
{
    return peg__arena_copy(arena, word);
}

static peg_status encode_base64(struct peg__arena *arena, peg_str bytes, peg_str *ret_base64)
{
    const size_t len = peg__base64_len(bytes.len);
    char *text = peg__arena_alloc(arena, len + 1);

    if (!text)
        return PEG_ENOMEM;
    peg__base64_encode(bytes, text);
    *ret_base64 = peg__strn(text, len);
    return PEG_OK;
}

static void put_embedded(struct peg__out *out, const char *uri, const char *mime_type,
                         peg_str base64)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "resource");
    peg__out_key(out, "resource");
    mcp_put_contents(out, peg__str(uri), mime_type, (peg_str){NULL, 0}, base64);
    peg__out_end_object(out);
}

static peg_status put_content_bytes(struct peg__out *out, struct peg__arena *arena, peg_str bytes,
                                    unsigned number)
{
    char uri[64];
    peg_str base64;
    const peg_status status = encode_base64(arena, bytes, &base64);

    snprintf(uri, sizeof(uri), "pegboard:///results/%u", number);
    if (!status)
        put_embedded(out, uri, "application/octet-stream", base64);
    return status;
}

static peg_status put_media_link(struct peg__out *out, struct peg__arena *arena,
                                 const struct wire_content *media)
{
    const peg_str at = media->words[WIRE_MEDIA_URI].len ? media->words[WIRE_MEDIA_URI]
                                                        : media->words[WIRE_MEDIA_FILE_ID];
    const char *uri = copy_media_word(arena, at);
    const char *name = copy_media_word(arena, media->words[WIRE_MEDIA_FILENAME]);
    const char *mime_type = copy_media_word(arena, media->words[WIRE_MEDIA_TYPE]);

    if (!uri || !name || !mime_type)
        return PEG_ENOMEM;
    mcp_put_link(out, uri, name, mime_type);
    return PEG_OK;
}

/* Text that a tool returned beside its media. */
static void put_description(struct peg__out *out, peg_str media)
{
    struct wire_note note;

    while (wire_content_next_note(&media, &note)) {
        if (peg__str_is(note.name, "text:description") && !note.is_derived)
            mcp_put_text(out, note.text);
    }
}

/* As mcp/source/result.c does with a registry of this process. */
static peg_status put_content_media(struct peg__out *out, struct peg__arena *arena,
                                    const struct wire_content *media)
{
    const peg_str kind = media->words[WIRE_MEDIA_KIND];
    const char *mime_type = copy_media_word(arena, media->words[WIRE_MEDIA_TYPE]);
    char uri[320];
    peg_str base64;

    put_description(out, media->media);
    if (!media->bytes.ptr)
        return put_media_link(out, arena, media);
    if (!mime_type || encode_base64(arena, media->bytes, &base64))
        return PEG_ENOMEM;
    snprintf(uri, sizeof(uri), "pegboard:///media/%.*s",
             (int)(media->words[WIRE_MEDIA_ID].len < 256 ? media->words[WIRE_MEDIA_ID].len : 0),
             media->words[WIRE_MEDIA_ID].ptr);
    if (peg__str_is(kind, "image") || peg__str_is(kind, "audio"))
        mcp_put_media(out, peg__str_is(kind, "image") ? "image" : "audio", base64, mime_type);
    else
        put_embedded(out, uri, mime_type, base64);
    return PEG_OK;
}

static peg_status put_content_part(struct peg__out *out, struct peg__arena *arena,
                                   const struct wire_content *part, unsigned number)
{
    switch (part->kind) {
    case WIRE_MEDIA:
        return put_content_media(out, arena, part);
    case WIRE_BYTES:
        if (!peg__utf8_is_valid(part->bytes))
            return put_content_bytes(out, arena, part->bytes, number);
        break;
    case WIRE_TEXT:
    case WIRE_JSON:
        break;
    }
    mcp_put_text(out, part->bytes);
    return PEG_OK;
}

static peg_status put_content(struct peg__out *out, peg_str response)
{
    struct wire_content part;
    unsigned n = 0;
    peg_status status = PEG_OK;

    while (!status && wire_content_next(&response, &part)) {
        struct peg__arena arena = {0};

        status = put_content_part(out, &arena, &part, ++n);
        peg__arena_free(&arena);
    }
    return status;
}

static void put_tool_result(struct mcp_result *result, peg_str response, bool has_schema)
{
    const peg_str found = wire_find_bytes(response, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD);
    const peg_str json = found.len ? peg__str_trim(found, " \t\r\n") : peg__str("");
    struct peg__out out = {.buf = &result->members};
    peg_status status = PEG_OK;

    *result = (struct mcp_result){.members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES),
                                  .structured = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES)};
    peg__out_key(&out, "content");
    peg__out_array(&out);
    if (json.len && !peg__str_is(json, "null"))
        status = put_text(&out, json);
    if (!status && json.len && has_schema)
        status = put_structured(result, json);
    if (!status)
        status = put_content(&out, response);
    put_user_data(&out, response);
    peg__out_end_array(&out);
    if (status)
        result->members.status = status == PEG_ENOMEM ? PEG_ENOMEM : PEG_ELIMIT;
}

static void put_tool_error(struct mcp_result *result, peg_str error)
{
    const peg_str code = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD);
    const peg_str message = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD);
    char name[128];

    snprintf(name, sizeof(name), "%.*s", (int)(code.len < 128 ? code.len : 127),
             peg__or_empty(code.ptr));
    mcp_result_fail_tool(result, name[0] && peg__utf8_is_valid(peg__str(name)) ? name : NULL,
                         message.len ? message : peg__str("the tool failed"));
}

/* ---- what became of it otherwise ---- */

static void put_gateway_error(struct mcp_result *result, const struct calls_outcome *outcome)
{
    struct peg__out out = {.buf = &result->meta};

    mcp_result_fail_tool(result, NULL, outcome->message);
    peg__out_key(&out, "pegboard/error");
    peg__out_object(&out);
    peg__out_cmember(&out, "name", wire_error_name(gw_error_of_call(outcome->error)));
    peg__out_key(&out, "started");
    peg__out_bool(&out, outcome->was_started);
    if (outcome->retry_after_ms) {
        peg__out_key(&out, "retry_ms");
        peg__out_integer(&out, outcome->retry_after_ms);
    }
    peg__out_end_object(&out);
}

void gw_mcp_put_outcome(struct mcp_result *result, const struct calls_outcome *outcome,
                        bool has_schema)
{
    const peg_str error =
        outcome->error == CALLS_OK
            ? wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD)
            : (peg_str){NULL, 0};

    if (outcome->error == CALLS_NOT_FOUND)
        mcp_result_fail(result, MCP_INVALID_PARAMS, "Unknown tool: " PEG_FMT,
                        PEG_ARG(outcome->message));
    else if (outcome->error != CALLS_OK)
        put_gateway_error(result, outcome);
    else if (error.ptr)
        put_tool_error(result, error);
    else
        put_tool_result(result, outcome->response, has_schema);
}
