/* SPDX-License-Identifier: Apache-2.0 */

/* A request of a client for a resource, a prompt or a completion, as the host's function sees it.
 */

#include <stdarg.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"
#include "pegboard/media.h"

struct peg_mcp_request {
    struct mcp__job *job;
    peg_json_doc *args;
    const peg_json *values; /* arguments by name */
    struct peg__out out;    /* of what was answered: items of one list */
    size_t n;
    bool has_failed;
};

/* ---- what is asked ---- */

peg_ctx *peg_mcp_request_ctx(const peg_mcp_request *request)
{
    return request->job->ctx;
}

const char *peg_mcp_request_name(const peg_mcp_request *request)
{
    return request->job->name;
}

const char *peg_mcp_request_argument(const peg_mcp_request *request, const char *name)
{
    return peg_json_str(peg_json_get(request->values, name)).ptr;
}

static const peg_json *completed(const peg_mcp_request *request)
{
    return request->job->kind == MCP_COMPLETE
               ? peg_json_get(peg_json_root(request->args), "argument")
               : NULL;
}

const char *peg_mcp_request_completes(const peg_mcp_request *request)
{
    return peg_json_str(peg_json_get(completed(request), "name")).ptr;
}

const char *peg_mcp_request_value(const peg_mcp_request *request)
{
    return peg_json_str(peg_json_get(completed(request), "value")).ptr;
}

/* ---- answering ---- */

static peg_status end_reply(peg_mcp_request *request)
{
    request->n++;
    return request->out.buf->status;
}

/* A message of a prompt; its content follows. */
static struct peg__out *open_message(peg_mcp_request *request, const char *role)
{
    struct peg__out *out = &request->out;

    peg__out_object(out);
    peg__out_cmember(out, "role", role);
    peg__out_key(out, "content");
    return out;
}

static peg_status end_message(peg_mcp_request *request)
{
    peg__out_end_object(&request->out);
    return end_reply(request);
}

static bool is_role(const char *role)
{
    return !strcmp(role, "user") || !strcmp(role, "assistant");
}

peg_status peg_mcp_reply_text(peg_mcp_request *request, peg_str utf8)
{
    const struct mcp__job *job = request->job;

    if (!peg__utf8_is_valid(utf8))
        return PEG_EINVAL;
    switch (job->kind) {
    case MCP_READ_RESOURCE:
        mcp_put_contents(&request->out, peg__str(job->name), job->item->mime_type,
                         peg__strn(utf8.ptr ? utf8.ptr : "", utf8.len), (peg_str){"", 0});
        break;
    case MCP_GET_PROMPT:
        mcp_put_text(open_message(request, "user"), utf8);
        return end_message(request);
    default:
        if (request->n < PEG_LIMIT_MCP_COMPLETIONS)
            peg__out_string(&request->out, utf8);
    }
    return end_reply(request);
}

/* Nothing, and the failure sticks to what is answered, if there is no memory. */
static struct peg__buf encode(peg_mcp_request *request, peg_str bytes)
{
    struct peg__buf base64 = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    char *at = peg__buf_reserve(&base64, peg__base64_len(bytes.len));

    if (at) {
        peg__base64_encode(bytes, at);
        base64.len = peg__base64_len(bytes.len);
    } else {
        request->out.buf->status = base64.status;
    }
    return base64;
}

peg_status peg_mcp_reply_bytes(peg_mcp_request *request, peg_str bytes)
{
    const struct mcp__job *job = request->job;
    struct peg__buf base64;

    if (job->kind != MCP_READ_RESOURCE)
        return PEG_ESTATE;
    base64 = encode(request, bytes);
    mcp_put_contents(&request->out, peg__str(job->name), job->item->mime_type, (peg_str){NULL, 0},
                     peg__buf_view(&base64));
    peg__buf_free(&base64);
    return end_reply(request);
}

peg_status peg_mcp_reply_message(peg_mcp_request *request, const char *role, peg_str utf8)
{
    if (request->job->kind != MCP_GET_PROMPT)
        return PEG_ESTATE;
    if (!is_role(role) || !peg__utf8_is_valid(utf8))
        return PEG_EINVAL;
    mcp_put_text(open_message(request, role), utf8);
    return end_message(request);
}

/* "image" or "audio"; NULL: it is neither. */
static const char *media_type_of(const char *mime_type)
{
    static const char *const types[] = {"image", "audio"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!strncmp(mime_type, types[i], 5) && mime_type[5] == '/')
            return types[i];
    }
    return NULL;
}

peg_status peg_mcp_reply_media(peg_mcp_request *request, const char *role, const char *mime_type,
                               peg_str bytes)
{
    const char *type = media_type_of(mime_type);
    struct peg__buf base64;

    if (request->job->kind != MCP_GET_PROMPT)
        return PEG_ESTATE;
    if (!is_role(role) || !type || !peg__utf8_is_valid(peg__str(mime_type)))
        return PEG_EINVAL;
    base64 = encode(request, bytes);
    mcp_put_media(open_message(request, role), type, peg__buf_view(&base64), mime_type);
    peg__buf_free(&base64);
    return end_message(request);
}

peg_status peg_mcp_reply_resource(peg_mcp_request *request, const char *role, const char *uri,
                                  const char *mime_type, peg_str utf8)
{
    struct peg__out *out;

    if (request->job->kind != MCP_GET_PROMPT)
        return PEG_ESTATE;
    if (!is_role(role) || !peg__utf8_is_valid(peg__str(uri)) || !peg__utf8_is_valid(utf8) ||
        (mime_type && !peg__utf8_is_valid(peg__str(mime_type))))
        return PEG_EINVAL;
    out = open_message(request, role);
    peg__out_object(out);
    peg__out_cmember(out, "type", "resource");
    peg__out_key(out, "resource");
    mcp_put_contents(out, peg__str(uri), mime_type, peg__strn(utf8.ptr ? utf8.ptr : "", utf8.len),
                     (peg_str){"", 0});
    peg__out_end_object(out);
    return end_message(request);
}

void peg_mcp_fail(peg_mcp_request *request, bool is_missing, const char *fmt, ...)
{
    const bool is_resource = request->job->kind == MCP_READ_RESOURCE;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf_cut(&text, fmt, args);
    va_end(args);
    request->has_failed = true;
    mcp_result_fail(&request->job->result,
                    !is_missing   ? MCP_INTERNAL_ERROR
                    : is_resource ? MCP_RESOURCE_NOT_FOUND
                                  : MCP_INVALID_PARAMS,
                    "%s",
                    text.ptr && peg__utf8_is_valid(peg__buf_view(&text)) ? text.ptr : "it failed");
    peg__buf_free(&text);
}

/* ---- running it, on a worker ---- */

static void open_list(peg_mcp_request *request)
{
    struct peg__out *out = &request->out;

    switch (request->job->kind) {
    case MCP_READ_RESOURCE:
        peg__out_key(out, "contents");
        break;
    case MCP_GET_PROMPT:
        peg__out_key(out, "messages");
        break;
    default:
        peg__out_key(out, "completion");
        peg__out_object(out);
        peg__out_key(out, "values");
    }
    peg__out_array(out);
}

static void close_list(peg_mcp_request *request)
{
    struct peg__out *out = &request->out;

    peg__out_end_array(out);
    if (request->job->kind != MCP_COMPLETE)
        return;
    peg__out_key(out, "total");
    peg__out_integer(out, (int64_t)request->n);
    peg__out_key(out, "hasMore");
    peg__out_bool(out, request->n > PEG_LIMIT_MCP_COMPLETIONS);
    peg__out_end_object(out);
}

static const peg_json *values_of(const peg_mcp_request *request)
{
    const peg_json *root = peg_json_root(request->args);

    return request->job->kind == MCP_COMPLETE
               ? peg_json_get(peg_json_get(root, "context"), "arguments")
               : root;
}

void mcp__run_item(struct mcp__job *job)
{
    struct mcp_result *result = &job->result;
    peg_mcp_request request = {.job = job};
    const struct mcp__item *item = job->item;
    peg_mcp_fn run = job->kind == MCP_COMPLETE ? item->complete : item->run;
    struct peg__buf members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);

    if (peg_json_parse(peg__str(job->args), NULL, &request.args, NULL)) {
        mcp_result_fail(result, MCP_INTERNAL_ERROR, "the server is out of memory");
        return;
    }
    request.values = values_of(&request);
    request.out.buf = &members;
    open_list(&request);
    if (run)
        run(&request, item->user);
    close_list(&request);
    if (!request.has_failed && !request.n && job->kind != MCP_COMPLETE)
        peg_mcp_fail(&request, false, "'%.200s' has no answer", job->name);
    if (request.has_failed)
        peg__buf_free(&members);
    else
        result->members = members;
    peg_json_doc_free(request.args);
}
