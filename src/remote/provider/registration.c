/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider tells a gateway beside its calls: its tools and its token; and how the gateway
 * refuses them. */

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "remote/provider/provider.h"
#include "remote/token.h"
#include "wire/wire.h"
#include "json/json.h"

/* ---- the registry as the gateway's catalog has it ---- */

static bool put_schema(struct peg__arena *arena, const peg_json *schema, ProtobufCBinaryData *ret)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);

    if (!schema)
        return true;
    peg__json_write(schema, PEG_JSON_COMPACT, &out);
    ret->len = out.len;
    ret->data = out.status ? NULL : (uint8_t *)peg__arena_copy(arena, peg__buf_view(&out));
    peg__buf_free(&out);
    return ret->data;
}

/* A title or a version that a gateway would refuse is left out: its tool works without. */
static char *copy_tool_word(struct peg__arena *arena, peg_str word)
{
    return peg__arena_copy(arena, word.len && !wire_check_id(word, "", NULL) ? word : peg__str(""));
}

static bool put_tool_words(struct peg__arena *arena, const peg_tool *tool,
                           Pegboard__V1__Tool *frame)
{
    const peg_artifact_kind *kind = peg_tool_artifact_kind(tool);

    frame->title = copy_tool_word(arena, peg_json_str(peg_json_get(peg_tool_meta(tool), "title")));
    frame->version = copy_tool_word(arena, peg__str(peg_tool_version(tool)));
    frame->artifact_kind = copy_tool_word(arena, peg__str(kind ? kind->name : ""));
    return frame->title && frame->version && frame->artifact_kind;
}

static bool put_tool(struct peg__arena *arena, const peg_tool *tool, Pegboard__V1__Tool *frame)
{
    const int64_t timeout_ms = peg_tool_timeout_ms(tool);

    pegboard__v1__tool__init(frame);
    frame->name = peg__arena_copy(arena, peg__str(peg_tool_name(tool)));
    frame->description = peg__arena_copy(arena, peg__str(peg_tool_description(tool)));
    frame->idempotent = peg_tool_is_idempotent(tool) || peg_tool_is_read_only(tool);
    frame->read_only = peg_tool_is_read_only(tool);
    frame->destructive = peg_tool_is_destructive(tool);
    frame->additive = peg_tool_is_additive(tool);
    frame->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    frame->tags = peg__unconst(peg__arena_copy_list(arena, peg_tool_tags(tool), &frame->n_tags));
    return frame->name && frame->description && frame->tags && put_tool_words(arena, tool, frame) &&
           put_schema(arena, peg_tool_examples(tool), &frame->examples) &&
           put_schema(arena, peg_tool_input_schema(tool), &frame->input_schema) &&
           put_schema(arena, peg_tool_output_schema(tool), &frame->output_schema);
}

static bool put_tool_frames(struct peg__arena *arena, const peg_tool_list *list,
                            Pegboard__V1__RegisterRequest *request)
{
    Pegboard__V1__Tool *frames = peg__arena_alloc(arena, (list->len + 1) * sizeof(*frames));

    request->tools = peg__arena_alloc(arena, (list->len + 1) * sizeof(*request->tools));
    if (!frames || !request->tools)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (!put_tool(arena, list->items[i], &frames[i]))
            return false;
        request->tools[i] = &frames[i];
    }
    request->n_tools = list->len;
    return true;
}

/* The host's last description of the toolset. */
static const struct remote__prov_about *take_about(peg_provider *prov)
{
    struct remote__prov_about *next;

    pthread_mutex_lock(&prov->lock);
    next = prov->next_about;
    prov->next_about = NULL;
    pthread_mutex_unlock(&prov->lock);
    if (next) {
        remote__prov_about_free(prov->about);
        prov->about = next;
    }
    return prov->about;
}

peg_status remote__prov_fill_registration(peg_provider *prov, struct peg__arena *arena,
                                          Pegboard__V1__RegisterRequest **ret_request,
                                          peg_error *reterr)
{
    const struct remote__prov_about *about = take_about(prov);
    Pegboard__V1__RegisterRequest *request = peg__arena_alloc(arena, sizeof(*request));
    peg_tool_list list;
    peg_status status;
    bool is_whole;

    if (!request)
        return peg__fail_nomem(reterr);
    status = peg_registry_visible(prov->registry, &list, reterr);
    if (status)
        return status;
    pegboard__v1__register_request__init(request);
    request->name = peg__unconst(prov->config.toolset);
    request->description = peg__unconst(about->description);
    request->version = peg__unconst(about->version);
    request->tags = peg__unconst(about->tags);
    request->n_tags = about->n_tags;
    request->kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_ATTACHED;
    is_whole = put_tool_frames(arena, &list, request);
    peg_tool_list_free(&list);
    if (!is_whole)
        return peg__fail_nomem(reterr);
    *ret_request = request;
    return PEG_OK;
}

/* ---- the token ---- */

#define TOKEN_CODE "E_PROVIDER"

peg_status remote__prov_check_token(const peg_provider *prov, peg_error *reterr)
{
    struct peg__blob *authorization = NULL;
    const peg_status status =
        prov->config.token_file
            ? remote__token_read(prov->config.token_file, TOKEN_CODE, &authorization, reterr)
            : PEG_OK;

    peg__blob_unref(authorization);
    return status;
}

peg_status remote__prov_put_token(const peg_provider *prov, struct peg__arena *arena,
                                  struct grpc_metadata *metadata, peg_error *reterr)
{
    const struct remote__prov_config *config = &prov->config;
    struct peg__blob *authorization = NULL;
    peg_status status = PEG_OK;

    if (config->token_file)
        status = remote__token_read(config->token_file, TOKEN_CODE, &authorization, reterr);
    else if (config->token)
        status = remote__token_make(peg__str(config->token), "token", TOKEN_CODE, &authorization,
                                    reterr);
    if (!status && authorization)
        status = grpc_metadata_add(metadata, arena, peg__str("authorization"),
                                   peg__blob_str(authorization), reterr);
    peg__blob_unref(authorization);
    return status;
}

/* ---- refusals ---- */

void remote__prov_report_refused_offer(peg_provider *prov, const char *code, const char *message)
{
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFER_REFUSED,
                                                    .address = prov->peer,
                                                    .code = code,
                                                    .message = message});
}

/* The status message, cut at a character. */
static void copy_status_message(const struct grpc_status *status,
                                char ret_message[REMOTE__PROV_MESSAGE_BYTES])
{
    const peg_str all = status->message;
    size_t n = all.len;

    if (n >= REMOTE__PROV_MESSAGE_BYTES)
        n = peg__utf8_cut(all.ptr, REMOTE__PROV_MESSAGE_BYTES - 1);
    if (n)
        memcpy(ret_message, all.ptr, n);
    ret_message[n] = '\0';
    if (!n)
        snprintf(ret_message, REMOTE__PROV_MESSAGE_BYTES, "%s", grpc_code_name(status->code));
}

enum wire_error remote__prov_refusal(const struct grpc_status *status,
                                     char ret_message[REMOTE__PROV_MESSAGE_BYTES])
{
    struct peg__arena arena = {0};
    peg_str name = {NULL, 0};
    const enum wire_error error = wire_error_from_status(status, &arena, &name);

    peg__arena_free(&arena);
    copy_status_message(status, ret_message);
    return error;
}

bool remote__prov_is_permanent(enum wire_error error)
{
    switch (error) {
    case WIRE_VALIDATION:
    case WIRE_MISSING_FIELD:
    case WIRE_INVALID_LENGTH:
    case WIRE_INVALID_PATTERN:
    case WIRE_INVALID_FORMAT:
    case WIRE_INVALID_RANGE:
    case WIRE_PERMISSION_DENIED:
    case WIRE_UNAUTHENTICATED:
    case WIRE_CONFLICT:
    case WIRE_LIMIT:
        return true;
    default:
        return false;
    }
}

void remote__prov_end_refused(peg_provider *prov, enum wire_error error, const char *message)
{
    peg_error why;

    peg__fail(&why, PEG_EHOST, "E_PROVIDER_REFUSED",
              "the gateway at %s refused the toolset: %s: %s", prov->config.address,
              wire_error_name(error), message);
    remote__prov_end(prov, PEG_EHOST, &why);
}
