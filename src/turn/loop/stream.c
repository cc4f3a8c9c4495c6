/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/loop/loop.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "core/run/run.h"
#include "json/json.h"

/* A message or thought, or the arguments of a call that are being written. */
struct text {
    struct peg__buf full; /* freed when it is complete */
    int64_t created_ms;
    unsigned n_parts;
    bool is_complete;
    bool is_emitting; /* a sink may be reading `full` */
};

/* A tool call. */
struct call {
    char *strings; /* tool and args; freed when it is complete */
    peg_str tool;
    peg_str args;
    char checksum[65]; /* "" without a sink */
    int64_t created_ms;
    bool is_complete;
    bool is_emitting;
};

static void free_texts(struct peg__map *texts)
{
    PEG__MAP_EACH(texts, entry)
    {
        struct text *text = entry->value;

        peg__buf_free(&text->full);
        peg__free(text);
    }
    peg__map_free(texts);
}

void peg__streams_free(struct peg__streams *streams)
{
    free_texts(&streams->messages);
    free_texts(&streams->thoughts);
    free_texts(&streams->args);
    PEG__MAP_EACH(&streams->calls, entry)
    {
        struct call *call = entry->value;

        peg__free(call->strings);
        peg__free(call);
    }
    peg__map_free(&streams->calls);
    streams->n_bytes = 0;
}

/* ---- checks --------------------------------------------------------------------- */

static peg_status check_id(peg_str id, peg_error *reterr)
{
    if (!id.len || id.len > PEG_LIMIT_CALL_ID_BYTES)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "an id has 1 to %d bytes, not %zu", PEG_LIMIT_CALL_ID_BYTES, id.len);
    return PEG_OK;
}

static peg_status check_open(bool is_complete, bool is_emitting, peg_error *reterr)
{
    if (is_complete)
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "the stream of this id is complete: use another id");
    if (is_emitting)
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "the sink handles an event of this id: send more after it has returned");
    return PEG_OK;
}

static peg_status check_capacity(const struct peg__streams *streams, size_t n, peg_error *reterr)
{
    if (n > PEG_LIMIT_STREAM_BYTES - streams->n_bytes)
        return peg__fail(reterr, PEG_ELIMIT, "E_STREAM_TOO_LARGE",
                         "the open streams of a dispatch have at most %d bytes: complete some",
                         PEG_LIMIT_STREAM_BYTES);
    return PEG_OK;
}

static peg_status fail_add(peg_status status, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_STREAM_TOO_LARGE",
                     "a dispatch has at most %d streams of a kind", PEG_LIMIT_STREAMS);
}

static int64_t now_ms(const peg_ctx *ctx)
{
    return peg_clock_now_ms(peg_ctx_clock(ctx));
}

/* ---- messages and thoughts ------------------------------------------------------ */

static bool append(struct text *text, peg_str delta)
{
    char *at = peg__buf_reserve(&text->full, delta.len);

    if (!at) {
        text->full.status = PEG_OK; /* what it holds is still right */
        return false;
    }
    if (delta.len)
        memcpy(at, delta.ptr, delta.len);
    at[delta.len] = '\0';
    text->full.len += delta.len;
    return true;
}

/* A new one that holds nothing yet, or NULL with *ret_status. */
static struct text *begin_text(struct peg__map *texts, peg_str id, int64_t now,
                               peg_status *ret_status)
{
    struct text *text = peg__alloc_zero(1, sizeof(*text));

    *ret_status = text ? peg__map_add(texts, id, text) : PEG_ENOMEM;
    if (*ret_status) {
        peg__free(text);
        return NULL;
    }
    text->full.max = PEG_LIMIT_STREAM_BYTES;
    text->created_ms = now;
    return text;
}

static void drop_text(struct peg__map *texts, peg_str id, struct text *text)
{
    peg__map_remove(texts, id, NULL);
    peg__free(text);
}

static void emit_text(struct peg__streams *streams, peg_ctx *ctx, struct text *text,
                      peg_event *event)
{
    text->is_emitting = true;
    peg_ctx_emit(ctx, event);
    text->is_emitting = false;
    if (text->is_complete) {
        streams->n_bytes -= text->full.len;
        peg__buf_free(&text->full);
    }
}

/* The text of an id with a delta added to it; NULL with *ret_status if nothing has changed. */
static struct text *add_to_text(struct peg__streams *streams, struct peg__map *texts, peg_ctx *ctx,
                                const struct peg__stream_part *part, peg_status *ret_status,
                                peg_error *reterr)
{
    struct text *text = peg__map_get(texts, part->id);
    const bool is_new = !text;

    *ret_status = check_id(part->id, reterr);
    if (!*ret_status && text)
        *ret_status = check_open(text->is_complete, text->is_emitting, reterr);
    if (!*ret_status)
        *ret_status = check_capacity(streams, part->delta.len, reterr);
    if (*ret_status)
        return NULL;
    if (!text)
        text = begin_text(texts, part->id, now_ms(ctx), ret_status);
    if (!text) {
        *ret_status = fail_add(*ret_status, reterr);
        return NULL;
    }
    if (!append(text, part->delta)) {
        if (is_new)
            drop_text(texts, part->id, text);
        *ret_status = peg__fail_nomem(reterr);
        return NULL;
    }
    streams->n_bytes += part->delta.len;
    text->is_complete = part->is_complete;
    text->n_parts++;
    return text;
}

peg_status peg__streams_notify(struct peg__streams *streams, peg_ctx *ctx, peg_event_kind kind,
                               const struct peg__stream_part *part, peg_error *reterr)
{
    struct peg__map *texts = kind == PEG_EVENT_MESSAGE ? &streams->messages : &streams->thoughts;
    const int64_t now = now_ms(ctx);
    peg_event event = {.kind = kind};
    peg_status status;
    struct text *text = add_to_text(streams, texts, ctx, part, &status, reterr);

    if (!text)
        return status;
    event.u.stream = (peg_stream_event){
        .id = part->id,
        .full = peg__buf_view(&text->full),
        .delta = part->delta,
        .is_complete = part->is_complete,
        .created_ms = text->created_ms,
        .updated_ms = now,
        .completed_ms = part->is_complete ? now : 0,
    };
    emit_text(streams, ctx, text, &event);
    return PEG_OK;
}

peg_status peg__streams_notify_args(struct peg__streams *streams, peg_ctx *ctx, peg_str call_id,
                                    peg_str tool, peg_str delta, peg_error *reterr)
{
    const struct peg__stream_part part = {call_id, delta, false};
    peg_event event = {.kind = PEG_EVENT_TOOL_ARGS};
    peg_status status;
    struct text *text = add_to_text(streams, &streams->args, ctx, &part, &status, reterr);

    if (!text)
        return status;
    event.u.tool_args = (peg_tool_args_event){.call_id = call_id,
                                              .tool = tool,
                                              .full = peg__buf_view(&text->full),
                                              .delta = delta,
                                              .sequence = text->n_parts};
    emit_text(streams, ctx, text, &event);
    return PEG_OK;
}

void peg__streams_forget_args(struct peg__streams *streams)
{
    PEG__MAP_EACH(&streams->args, entry)
    {
        streams->n_bytes -= ((struct text *)entry->value)->full.len;
    }
    free_texts(&streams->args);
}

/* ---- tool calls ----------------------------------------------------------------- */

/* As the record of the call will have it: what is not an object stands for {}. */
static peg_status digest(peg_str tool, peg_str args, char ret_hex[65], peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(args, &peg__json_refuse_duplicates, &doc, reterr);

    if (status == PEG_ENOMEM)
        return status;
    if (status || peg_json_root(doc)->kind != PEG_JSON_OBJECT) {
        peg_json_doc_free(doc);
        doc = NULL;
        status = peg_json_parse((peg_str)PEG_LIT("{}"), NULL, &doc, reterr);
    }
    if (!status)
        status = peg_call_digest(tool, peg_json_root(doc), ret_hex, reterr);
    peg_json_doc_free(doc);
    return status;
}

static peg_status fill_checksum(struct call *call, const peg_ctx *ctx,
                                const struct peg__call_part *part, peg_error *reterr)
{
    const char *known = part->checksum;
    peg_status status;

    if (!peg__ctx_has_sink(ctx))
        return PEG_OK;
    if (!known && part->record && (status = peg__record_checksum(part->record, &known, reterr)))
        return status;
    if (known) {
        memccpy(call->checksum, known, '\0', sizeof(call->checksum) - 1);
        return PEG_OK;
    }
    return digest(call->tool, call->args, call->checksum, reterr);
}

static peg_str choose(peg_str given, peg_str recorded, const char *otherwise)
{
    if (given.len)
        return given;
    return recorded.len ? recorded : peg__str(otherwise);
}

static struct call *make_call(const struct peg__call_part *part, int64_t now)
{
    const peg_record *record = part->record;
    const peg_str none = {"", 0};
    const peg_str tool =
        choose(part->tool, record ? peg_record_tool(record) : none, PEG__UNNAMED_TOOL);
    const peg_str args = choose(part->args, record ? peg_record_args_text(record) : none, "{}");
    struct call *call = peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    call->strings = peg__alloc(tool.len + args.len);
    if (!call->strings) {
        peg__free(call);
        return NULL;
    }
    memcpy(call->strings, tool.ptr, tool.len);
    memcpy(call->strings + tool.len, args.ptr, args.len);
    call->tool = peg__strn(call->strings, tool.len);
    call->args = peg__strn(call->strings + tool.len, args.len);
    call->created_ms = now;
    return call;
}

static void emit_call(peg_ctx *ctx, struct call *call, const struct peg__call_part *part,
                      const peg_record *record, int64_t now)
{
    const bool has_sink = peg__ctx_has_sink(ctx);
    peg_event event = {
        .kind = PEG_EVENT_TOOL_CALL,
        .u.tool_call =
            {
                .call_id = part->call_id,
                .tool = call->tool,
                .args = record && part->args.len ? part->args : call->args,
                .checksum =
                    peg__str(record && has_sink ? peg_record_checksum(record) : call->checksum),
                .is_complete = record != NULL,
                .is_error = record && peg_record_is_error(record),
                .record = record,
                .created_ms = call->created_ms,
                .updated_ms = now,
                .completed_ms = record ? now : 0,
            },
    };

    call->is_emitting = true;
    peg_ctx_emit(ctx, &event);
    call->is_emitting = false;
}

/* The call, or NULL with *ret_status and the error. */
static struct call *announce(struct peg__streams *streams, peg_ctx *ctx, peg_str key,
                             const struct peg__call_part *part, peg_status *ret_status,
                             peg_error *reterr)
{
    const int64_t now = now_ms(ctx);
    struct call *call = make_call(part, now);
    peg_status status;

    if (!call) {
        *ret_status = peg__fail_nomem(reterr);
        return NULL;
    }
    status = check_capacity(streams, call->tool.len + call->args.len, reterr);
    if (!status)
        status = fill_checksum(call, ctx, part, reterr);
    if (!status && (status = peg__map_add(&streams->calls, key, call)))
        status = fail_add(status, reterr);
    if (status) {
        peg__free(call->strings);
        peg__free(call);
        *ret_status = status;
        return NULL;
    }
    streams->n_bytes += call->tool.len + call->args.len;
    emit_call(ctx, call, part, NULL, now);
    return call;
}

static peg_status complete(struct peg__streams *streams, peg_ctx *ctx, struct call *call,
                           const struct peg__call_part *part, peg_error *reterr)
{
    const char *checksum;
    peg_status status;

    /* Made here, where it may fail, so that the event has it. */
    if (peg__ctx_has_sink(ctx) && (status = peg__record_checksum(part->record, &checksum, reterr)))
        return status;
    call->is_complete = true;
    emit_call(ctx, call, part, part->record, now_ms(ctx));
    streams->n_bytes -= call->tool.len + call->args.len;
    peg__free(call->strings);
    call->strings = NULL;
    return PEG_OK;
}

peg_status peg__streams_notify_call(struct peg__streams *streams, peg_ctx *ctx,
                                    const struct peg__call_part *part, peg_error *reterr)
{
    const peg_str key = part->key.len ? part->key : part->call_id;
    struct call *call = peg__map_get(&streams->calls, key);
    peg_status status = check_id(key, reterr);

    if (!status && call)
        status = check_open(call->is_complete, call->is_emitting, reterr);
    if (status)
        return status;
    if (call && !part->record)
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "this call was announced: complete it with its record");
    if (!call)
        call = announce(streams, ctx, key, part, &status, reterr);
    if (call && part->record)
        status = complete(streams, ctx, call, part, reterr);
    return status;
}

/* ---- calls that we run ---------------------------------------------------------- */

static struct peg__call_part part_of(const peg_record *record)
{
    return (struct peg__call_part){
        .key = peg_record_key(record),
        .call_id = peg_record_call_id(record),
        .tool = peg_record_tool(record),
        .args = PEG_LIT("{}"),
    };
}

void peg__streams_announce_call(struct peg__streams *streams, peg_ctx *ctx,
                                const peg_record *record, const peg_json *args)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_STREAM_BYTES);
    struct peg__call_part part = part_of(record);

    if (!peg__ctx_has_sink(ctx) || peg__record_checksum(record, &part.checksum, NULL))
        return;
    if (args) {
        peg__json_write(args, PEG_JSON_COMPACT, &text);
        part.args = peg__buf_view(&text);
    }
    if (!text.status)
        (void)peg__streams_notify_call(streams, ctx, &part, NULL);
    peg__buf_free(&text);
}

peg_status peg__streams_complete_call(struct peg__streams *streams, peg_ctx *ctx,
                                      const peg_record *record, peg_error *reterr)
{
    struct peg__call_part part = part_of(record);

    if (!peg__ctx_has_sink(ctx))
        return PEG_OK;
    if (peg__map_find(&streams->calls, part.key))
        part.args = (peg_str){"", 0}; /* as announced */
    part.record = record;
    return peg__streams_notify_call(streams, ctx, &part, reterr);
}
