/* SPDX-License-Identifier: Apache-2.0 */

/* A registry as the gateway's catalog has it: what a model would be told, as it is enforced. Hello
 * says it first, and Offer whenever it has changed. */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "json/json.h"

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

/* The list is copied, the strings are not: the tools outlive it. */
static bool put_tags(struct peg__arena *arena, const char *const *tags, char ***ret_tags,
                     size_t *ret_n)
{
    char **list;
    size_t n = 0;

    while (tags[n])
        n++;
    list = peg__arena_alloc(arena, (n + 1) * sizeof(*list));
    for (size_t i = 0; list && i < n; i++)
        list[i] = peg__unconst(tags[i]);
    *ret_tags = list;
    *ret_n = n;
    return list;
}

static bool put_tool(struct peg__arena *arena, const peg_tool *tool, Pegboard__V1__Tool *frame)
{
    const int64_t timeout_ms = peg_tool_timeout_ms(tool);

    pegboard__v1__tool__init(frame);
    frame->name = peg__arena_copy(arena, peg__str(peg_tool_name(tool)));
    frame->description = peg__arena_copy(arena, peg__str(peg_tool_description(tool)));
    frame->idempotent = peg_tool_is_idempotent(tool) || peg_tool_is_read_only(tool);
    frame->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    return frame->name && frame->description &&
           put_tags(arena, peg_tool_tags(tool), &frame->tags, &frame->n_tags) &&
           put_schema(arena, peg_tool_input_schema(tool), &frame->input_schema) &&
           put_schema(arena, peg_tool_output_schema(tool), &frame->output_schema);
}

static bool copy_tags(struct peg__arena *arena, Pegboard__V1__Tool *frame)
{
    for (size_t i = 0; i < frame->n_tags; i++) {
        frame->tags[i] = peg__arena_copy(arena, peg__str(frame->tags[i]));
        if (!frame->tags[i])
            return false;
    }
    return true;
}

static bool put_tools(struct peg__arena *arena, const peg_tool_list *list,
                      Pegboard__V1__RegisterRequest *request)
{
    Pegboard__V1__Tool *frames = peg__arena_alloc(arena, (list->len + 1) * sizeof(*frames));

    request->tools = peg__arena_alloc(arena, (list->len + 1) * sizeof(*request->tools));
    if (!frames || !request->tools)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (!put_tool(arena, list->items[i], &frames[i]) || !copy_tags(arena, &frames[i]))
            return false;
        request->tools[i] = &frames[i];
    }
    request->n_tools = list->len;
    return true;
}

/* What the host has said of the toolset last. */
static const struct remote__prov_about *look_up_about(peg_provider *prov)
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

peg_status remote__prov_registration(peg_provider *prov, struct peg__arena *arena,
                                     Pegboard__V1__RegisterRequest **ret_request, peg_error *reterr)
{
    const struct remote__prov_about *about = look_up_about(prov);
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
    is_whole = put_tools(arena, &list, request);
    peg_tool_list_free(&list);
    if (!is_whole)
        return peg__fail_nomem(reterr);
    *ret_request = request;
    return PEG_OK;
}

/* ---- other tools -------------------------------------------------------------------------------
 */

static void tell_refused(peg_provider *prov, const char *code, const char *message)
{
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFER_REFUSED,
                                                    .address = prov->peer,
                                                    .code = code,
                                                    .message = message});
}

static peg_status say_offer(struct remote__prov_stream *stream, peg_error *reterr)
{
    struct peg__arena arena = {0};
    Pegboard__V1__Offer offer = PEGBOARD__V1__OFFER__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    peg_status status =
        remote__prov_registration(stream->prov, &arena, &offer.registration, reterr);

    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER;
    request.offer = &offer;
    if (!status)
        status = pegboard_v1_registry_attach_say(stream->rpc, &request, reterr);
    peg__arena_free(&arena);
    return status;
}

/* Hello says what there is when it is said; what changes until its Welcome, or the answer to an
 * Offer, is offered behind that. */
void remote__prov_offer(peg_provider *prov)
{
    struct remote__prov_stream *stream = remote__prov_current(prov);
    peg_error error;
    peg_status status;

    if (!stream || prov->phase != REMOTE__PROV_SERVING || stream->is_broken)
        return;
    stream->has_old_tools = !stream->is_welcome || stream->is_offering;
    if (stream->has_old_tools)
        return;
    status = say_offer(stream, &error);
    stream->is_offering = !status;
    if (status == PEG_ENOMEM) { /* the next Hello says it */
        stream->is_broken = true;
        grpc_rpc_cancel(stream->rpc);
    } else if (status) {
        tell_refused(prov, error.code, error.message);
    }
}

void remote__prov_offered(struct remote__prov_stream *stream, const Pegboard__V1__Offered *frame)
{
    peg_provider *prov = stream->prov;

    stream->is_offering = false;
    if (frame->error[0])
        tell_refused(prov, frame->error, frame->message);
    else
        remote__prov_notify(
            prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFERED, .address = prov->peer});
    if (stream->has_old_tools && stream == remote__prov_current(prov))
        remote__prov_offer(prov);
}
