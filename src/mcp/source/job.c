/* SPDX-License-Identifier: Apache-2.0 */

/* One call: its context, and what its handler reports. */

#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"

/* Its address is the key of the job in its context. */
static const char job_key;

struct mcp__job *mcp__job_ref(struct mcp__job *job)
{
    peg__refs_take(&job->n_refs);
    return job;
}

struct mcp__job *mcp__job_unref(struct mcp__job *job)
{
    if (!job || !peg__refs_drop(&job->n_refs))
        return NULL;
    mcp_result_free(&job->result);
    mcp__workers_unref(job->workers);
    mcp__item_unref(job->item);
    peg_gate_unref(job->gate);
    peg_cancel_unref(job->cancel);
    pthread_mutex_destroy(&job->lock);
    peg__free(job->end);
    peg__free(job->name);
    peg__free(job->args);
    peg__free(job);
    return NULL;
}

struct mcp__job *mcp__job_of(const peg_ctx *ctx)
{
    return peg_ctx_value(ctx, &job_key);
}

void mcp__job_drop_ctx(struct mcp__job *job)
{
    peg_ctx *ctx = job->ctx;

    job->ctx = NULL;
    peg_ctx_unref(ctx);
}

/* ---- reports ---- */

peg_status mcp__job_report(struct mcp__job *job, const struct mcp__report *head, peg_str name,
                           peg_str text)
{
    const size_t size = sizeof(struct mcp__report) + name.len + text.len;
    struct mcp__report *report;

    if (atomic_fetch_add(&job->n_reported, size) + size > PEG_LIMIT_MCP_REPORT_BYTES) {
        atomic_fetch_sub(&job->n_reported, size);
        return PEG_ELIMIT;
    }
    report = peg__alloc(size);
    if (!report) {
        atomic_fetch_sub(&job->n_reported, size);
        return PEG_ENOMEM;
    }
    *report = *head;
    report->job = mcp__job_ref(job);
    report->name_len = name.len;
    report->text_len = text.len;
    if (name.len)
        memcpy(report->text, name.ptr, name.len);
    if (text.len)
        memcpy(report->text + name.len, text.ptr, text.len);
    if (!mcp__post(job->workers, report)) {
        peg__free(report);
        mcp__job_unref(job);
    }
    return PEG_OK;
}

/* Output of commands, but only of the call itself: one that a handler makes has a call of its own
 * around it. */
static peg_status relay_output(peg_call *call, const char *stream, peg_str text)
{
    struct mcp__job *job = mcp__job_of(peg_call_ctx(call));

    if (!job || !job->wants_output || peg__ctx_call_depth(peg_call_ctx(call)) > 1)
        return PEG_OK;
    return mcp__job_report(job, &(struct mcp__report){.kind = MCP__OUTPUT}, peg__str(stream), text);
}

static const struct peg__listener listener = {.say = relay_output};

/* ---- the context ---- */

static void unref_value(void *value)
{
    mcp__job_unref(value);
}

static void on_event(const peg_event *event, void *user)
{
    struct mcp__job *job = user;

    if (event->kind == PEG_EVENT_GATE_OPEN)
        mcp__workers_block(job->workers, true);
    else if (event->kind == PEG_EVENT_GATE_CLOSED)
        mcp__workers_block(job->workers, false);
}

/* Replaces a context by the one that was made below it. */
static peg_status replace_ctx(peg_ctx **ctx, peg_status status, peg_ctx *const *made)
{
    if (!status) {
        peg_ctx_unref(*ctx);
        *ctx = *made;
    }
    return status;
}

static peg_status make_ctx(struct mcp__job *job)
{
    peg_ctx *ctx = peg_ctx_ref(job->host->ctx);
    peg_ctx *made = NULL;
    peg_status status =
        replace_ctx(&ctx, peg_ctx_with_cancel(ctx, &made, &job->cancel, NULL), &made);

    if (!status)
        status = replace_ctx(&ctx, peg_ctx_with_events(ctx, on_event, job, &made, NULL), &made);
    if (!status)
        status = replace_ctx(&ctx, peg_ctx_with_gates(ctx, mcp__on_gate, job, &made, NULL), &made);
    if (!status)
        status = replace_ctx(&ctx, peg__ctx_with_listener(ctx, &listener, &made, NULL), &made);
    if (!status)
        status = peg_ctx_with_value(ctx, &job_key, job, unref_value, &made, NULL);
    peg_ctx_unref(ctx);
    if (status)
        return PEG_ENOMEM;
    mcp__job_ref(job);
    job->ctx = made;
    return PEG_OK;
}

/* ---- making ---- */

static char *copy_text(peg_str text)
{
    char *copy = peg__alloc(text.len + 1);

    if (copy) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

static peg_status copy_request(struct mcp__job *job, const struct mcp_request *request)
{
    const peg_json *args = request->kind == MCP_COMPLETE ? request->params : request->args;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    job->kind = request->kind;
    job->wants_output = request->wants_output;
    job->name = copy_text(request->name);
    if (args)
        peg__json_write(args, PEG_JSON_COMPACT, &text);
    else
        peg__buf_puts(&text, "{}");
    if (peg__buf_take(&text, &job->args, NULL, NULL))
        return PEG_ENOMEM;
    job->end = peg__alloc_zero(1, sizeof(*job->end));
    return job->name && job->end ? PEG_OK : PEG_ENOMEM;
}

peg_status mcp__job_new(struct mcp_host *host, struct mcp_call *call, struct mcp__job **ret_job)
{
    struct mcp__job *job = peg__alloc_zero(1, sizeof(*job));
    peg_status status;

    if (!job)
        return PEG_ENOMEM;
    atomic_init(&job->n_refs, 1);
    atomic_init(&job->n_reported, 0);
    pthread_mutex_init(&job->lock, NULL);
    job->host = host;
    peg__refs_take(&host->workers->n_refs);
    job->workers = host->workers;
    job->call = call;
    status = copy_request(job, mcp_call_request(call));
    if (!status)
        status = make_ctx(job);
    if (status) {
        mcp__job_unref(job);
        return status;
    }
    *ret_job = job;
    return PEG_OK;
}
