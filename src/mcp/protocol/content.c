/* SPDX-License-Identifier: Apache-2.0 */

/* Items of content, and how calls end. Any thread: a source writes them where its handlers run. */

#include <stdarg.h>

#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

void mcp_put_text(struct peg__out *out, peg_str utf8)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "text");
    peg__out_member(out, "text", utf8);
    peg__out_end_object(out);
}

/* Base 64 needs no escapes: no pass over megabytes to look for them. */
static void put_base64(struct peg__out *out, const char *name, peg_str base64)
{
    peg__out_key(out, name);
    peg__out_raw(out, peg__str("\""));
    peg__buf_str(out->buf, base64);
    peg__buf_putc(out->buf, '"');
}

void mcp_put_media(struct peg__out *out, const char *type, peg_str base64, const char *mime_type)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", type);
    put_base64(out, "data", base64);
    peg__out_cmember(out, "mimeType", mime_type);
    peg__out_end_object(out);
}

void mcp_put_link(struct peg__out *out, const char *uri, const char *name, const char *mime_type)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "resource_link");
    peg__out_cmember(out, "uri", uri);
    peg__out_cmember(out, "name", name);
    peg__out_cmember(out, "mimeType", mime_type);
    peg__out_end_object(out);
}

void mcp_put_contents(struct peg__out *out, peg_str uri, const char *mime_type, peg_str text,
                      peg_str base64)
{
    peg__out_object(out);
    peg__out_member(out, "uri", uri);
    if (mime_type && mime_type[0])
        peg__out_cmember(out, "mimeType", mime_type);
    if (text.ptr)
        peg__out_member(out, "text", text);
    else
        put_base64(out, "blob", base64);
    peg__out_end_object(out);
}

/* ---- ends ---- */

void mcp_result_free(struct mcp_result *result)
{
    peg__buf_free(&result->members);
    peg__buf_free(&result->structured);
    peg__buf_free(&result->meta);
    peg__buf_free(&result->message);
    peg__buf_free(&result->data);
}

void mcp_result_fail(struct mcp_result *result, int code, const char *fmt, ...)
{
    va_list args;

    mcp_result_free(result);
    *result = (struct mcp_result){.code = code, .message = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES)};
    va_start(args, fmt);
    peg__buf_vprintf_cut(&result->message, fmt, args);
    va_end(args);
}

void mcp_result_fail_tool(struct mcp_result *result, const char *name, peg_str sentence)
{
    struct peg__out members = {.buf = &result->members};
    struct peg__out meta = {.buf = &result->meta};

    mcp_result_free(result);
    *result = (struct mcp_result){.is_error = true,
                                  .members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES),
                                  .meta = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES)};
    peg__out_key(&members, "content");
    peg__out_array(&members);
    mcp_put_text(&members, sentence);
    peg__out_end_array(&members);
    if (!name)
        return;
    peg__out_key(&meta, "pegboard/error");
    peg__out_object(&meta);
    peg__out_cmember(&meta, "name", name);
    peg__out_end_object(&meta);
}
