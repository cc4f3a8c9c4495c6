/* SPDX-License-Identifier: Apache-2.0 */

/* What a handler can do with its call: answer once, add server-data, look around. */

#include "core/run/run.h"

#include <stdarg.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "core/context/context.h"
#include "core/tool/tool.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "json/json.h"

/* ---- lifetime ------------------------------------------------------------------- */

struct peg__task *peg__task_new(peg_tool *tool, peg_record *record)
{
    struct peg__task *task = peg__alloc_zero(1, sizeof(*task));

    if (!task)
        return NULL;
    atomic_init(&task->n_refs, 1);
    task->tool = peg_tool_ref(tool);
    task->record = peg_record_ref(record);
    return task;
}

struct peg__task *peg__task_unref(struct peg__task *task)
{
    if (!task || !peg__refs_drop(&task->n_refs))
        return NULL;
    peg_tool_unref(task->tool);
    peg_record_unref(task->record);
    peg_json_doc_free(task->filled);
    peg_json_doc_free(task->replaced);
    peg__free(task);
    return NULL;
}

peg_call *peg__call_new(struct peg__task *task, peg_ctx *ctx, unsigned attempt)
{
    peg_call *call = attempt == 1 ? &task->first : peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    atomic_init(&call->n_refs, 1);
    atomic_fetch_add_explicit(&task->n_refs, 1, memory_order_relaxed);
    call->task = task;
    call->ctx = peg_ctx_ref(ctx);
    call->attempt = attempt;
    call->server_data.max = PEG_LIMIT_SERVER_DATA_BYTES;
    return call;
}

peg_call *peg__call_ref(peg_call *call)
{
    atomic_fetch_add_explicit(&call->n_refs, 1, memory_order_relaxed);
    return call;
}

static void answer_free(struct peg__answer *answer)
{
    peg__buf_free(&answer->text);
    peg__free(answer->cause);
    for (size_t i = 0; i < answer->n_media; i++)
        peg_media_unref(answer->media[i]);
    peg__free(answer->media);
    peg_artifact_unref(answer->artifact);
}

void peg__call_forget_answer(peg_call *call)
{
    answer_free(&call->answer);
    call->answer = (struct peg__answer){.kind = PEG__ANSWER_NONE};
}

peg_call *peg__call_unref(peg_call *call)
{
    struct peg__task *task;

    if (!call || !peg__refs_drop(&call->n_refs))
        return NULL;
    answer_free(&call->answer);
    peg__buf_free(&call->server_data);
    peg_ctx_unref(call->ctx);
    task = call->task;
    if (call != &task->first)
        peg__free(call);
    peg__task_unref(task);
    return NULL;
}

/* ---- answering ------------------------------------------------------------------ */

static bool has_answered(const peg_call *call)
{
    return call->answer.kind != PEG__ANSWER_NONE || call->is_out_of_memory;
}

peg_status peg__call_out_of_memory(peg_call *call)
{
    peg__call_forget_answer(call);
    call->is_out_of_memory = true;
    return PEG_ENOMEM;
}

/* The text was written into answer.text; becomes the answer unless something went wrong. */
static peg_status answer_with_text(peg_call *call, enum peg__answer_kind kind)
{
    const peg_status status = call->answer.text.status;

    if (!status) {
        call->answer.kind = kind;
        return PEG_OK;
    }
    peg__buf_free(&call->answer.text);
    if (status == PEG_ENOMEM)
        return peg__call_out_of_memory(call);
    call->answer.kind = PEG__ANSWER_TOO_LARGE;
    return PEG_ELIMIT;
}

peg_status peg_call_reply(peg_call *call, peg_str text)
{
    return peg_call_reply_bytes(call, text);
}

peg_status peg_call_reply_bytes(peg_call *call, peg_str bytes)
{
    if (has_answered(call))
        return PEG_ESTATE;
    call->answer.text.max = call->task->max_result_bytes;
    peg__buf_str(&call->answer.text, bytes);
    return answer_with_text(call, PEG__ANSWER_TEXT);
}

peg_status peg_call_replyf(peg_call *call, const char *fmt, ...)
{
    va_list args;

    if (has_answered(call))
        return PEG_ESTATE;
    call->answer.text.max = call->task->max_result_bytes;
    va_start(args, fmt);
    peg__buf_vprintf(&call->answer.text, fmt, args);
    va_end(args);
    return answer_with_text(call, PEG__ANSWER_TEXT);
}

peg_status peg_call_reply_json(peg_call *call, const peg_json *value)
{
    if (has_answered(call))
        return PEG_ESTATE;
    if (!value)
        return PEG_EINVAL;
    call->answer.text.max = call->task->max_result_bytes;
    peg__json_write(value, PEG_JSON_COMPACT, &call->answer.text);
    return answer_with_text(call, PEG__ANSWER_JSON);
}

peg_status peg__call_reply_text(peg_call *call, struct peg__buf *json)
{
    if (has_answered(call))
        return PEG_ESTATE;
    peg__buf_free(&call->answer.text);
    call->answer.text = *json;
    *json = (struct peg__buf){.max = json->max};
    call->answer.text.max = call->task->max_result_bytes;
    if (call->answer.text.len > call->task->max_result_bytes)
        call->answer.text.status = PEG_ELIMIT;
    return answer_with_text(call, PEG__ANSWER_JSON);
}

peg_status peg_call_reply_value(peg_call *call, const peg_json *value)
{
    if (has_answered(call))
        return PEG_ESTATE;
    call->answer.text.max = call->task->max_result_bytes;
    peg__query_render(value, &call->answer.text);
    return answer_with_text(call, PEG__ANSWER_TEXT);
}

peg_status peg_call_reply_media(peg_call *call, peg_media *const *media, size_t n_media)
{
    if (has_answered(call))
        return PEG_ESTATE;
    if (!media || !n_media)
        return PEG_EINVAL;
    for (size_t i = 0; i < n_media; i++) {
        if (!media[i])
            return PEG_EINVAL;
    }
    call->answer.media = peg__alloc_zero(n_media, sizeof(*call->answer.media));
    if (!call->answer.media)
        return peg__call_out_of_memory(call);
    for (size_t i = 0; i < n_media; i++)
        call->answer.media[i] = peg_media_ref(media[i]);
    call->answer.n_media = n_media;
    call->answer.kind = PEG__ANSWER_MEDIA;
    return PEG_OK;
}

peg_status peg_call_reply_artifact(peg_call *call, peg_artifact *artifact)
{
    if (has_answered(call))
        return PEG_ESTATE;
    if (!artifact)
        return PEG_EINVAL;
    call->answer.artifact = peg_artifact_ref(artifact);
    call->answer.kind = PEG__ANSWER_ARTIFACT;
    return PEG_OK;
}

/* False when out of memory. */
static bool keep_cause(struct peg__answer *answer, const char *code)
{
    const size_t size = strlen(code) + 1;

    if (!*code)
        return true;
    answer->cause = peg__alloc(size);
    if (answer->cause)
        memcpy(answer->cause, code, size);
    return answer->cause != NULL;
}

peg_status peg__call_fail_because(peg_call *call, const char *code, struct peg__buf *sentence)
{
    peg_status status = PEG_ESTATE;

    if (!has_answered(call)) {
        call->answer.text = *sentence;
        *sentence = (struct peg__buf){.max = sentence->max};
        status = keep_cause(&call->answer, code) ? answer_with_text(call, PEG__ANSWER_FAILURE)
                                                 : peg__call_out_of_memory(call);
    }
    peg__buf_free(sentence);
    return status;
}

peg_status peg_call_fail(peg_call *call, const char *fmt, ...)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf_cut(&sentence, fmt, args);
    va_end(args);
    return peg__call_fail_because(call, "", &sentence);
}

peg_status peg_call_fail_with(peg_call *call, const peg_error *error)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_puts(&sentence, error->message);
    return peg__call_fail_because(call, error->code ? error->code : "", &sentence);
}

/* ---- server-data ---------------------------------------------------------------- */

static const char *what_is_wrong(const char *kind, const char *audience)
{
    if (!kind || !kind[0])
        return "kind is empty";
    if (!audience || !audience[0])
        return "audience is empty";
    if (!peg__utf8_is_valid(peg__str(kind)) || !peg__utf8_is_valid(peg__str(audience)))
        return "kind and audience are not UTF-8";
    return NULL;
}

static void open_server_data(struct peg__buf *out, const char *kind, const char *audience)
{
    peg__buf_puts(out, out->len ? "," : "[");
    peg__buf_puts(out, "{\"kind\":");
    peg__json_write_string(peg__str(kind), out);
    peg__buf_puts(out, ",\"audience\":");
    peg__json_write_string(peg__str(audience), out);
    peg__buf_puts(out, ",\"data\":");
}

/* The data was written into server_data. */
static peg_status close_server_data(peg_call *call)
{
    peg__buf_putc(&call->server_data, '}');
    if (call->server_data.status == PEG_ENOMEM)
        return peg__call_out_of_memory(call);
    if (call->server_data.status)
        call->server_data_wrong = "it is larger than 1 MiB";
    return call->server_data.status;
}

peg_status peg_call_add_server_data(peg_call *call, const char *kind, const char *audience,
                                    const peg_json *data)
{
    const char *wrong = what_is_wrong(kind, audience);

    if (!wrong && !data)
        wrong = "data is missing";
    if (wrong) {
        call->server_data_wrong = wrong;
        return PEG_EINVAL;
    }
    open_server_data(&call->server_data, kind, audience);
    peg__json_write(data, PEG_JSON_COMPACT, &call->server_data);
    return close_server_data(call);
}

peg_status peg__call_add_server_text(peg_call *call, const char *kind, const char *audience,
                                     peg_str json)
{
    call->server_data_wrong = what_is_wrong(kind, audience);
    if (call->server_data_wrong)
        return PEG_EINVAL;
    open_server_data(&call->server_data, kind, audience);
    peg__buf_str(&call->server_data, json);
    return close_server_data(call);
}

/* ---- looking around ------------------------------------------------------------- */

PEG__DEFINE_GETTER(peg_ctx *, peg_call_ctx, peg_call, ctx)

const peg_tool *peg_call_tool(const peg_call *call)
{
    return call->task->tool;
}

peg_str peg_call_id(const peg_call *call)
{
    return call->task->record->call_id;
}

const char *peg_call_checksum(const peg_call *call)
{
    return peg_record_checksum(call->task->record);
}

PEG__DEFINE_GETTER(unsigned, peg_call_attempt, peg_call, attempt)

const peg_json *peg__call_args(const peg_call *call)
{
    const struct peg__task *task = call->task;

    if (task->replaced)
        return peg_json_root(task->replaced);
    if (task->filled)
        return peg_json_root(task->filled);
    return peg_record_args(task->record);
}

const peg_json *peg_call_meta(const peg_call *call, const char *path)
{
    const peg_json *value = peg_tool_meta(call->task->tool);
    peg_str rest = peg__str(path);

    while (value) {
        const char *dot = memchr(rest.ptr, '.', rest.len);
        const size_t len = dot ? (size_t)(dot - rest.ptr) : rest.len;

        value = peg_json_get_str(value, peg__strn(rest.ptr, len));
        if (!dot)
            break;
        rest = peg__str_from(rest, len + 1);
    }
    return value;
}

bool peg_call_should_stop(const peg_call *call)
{
    return peg_ctx_check(call->ctx, NULL) != PEG_OK;
}
