/* SPDX-License-Identifier: Apache-2.0 */

/* The source: what the registry has, and the way of a call from the loop to a handler and back. */

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits_mcp.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"

/* ---- lists ---- */

static bool add_tool(struct mcp_page *page, const peg_tool *tool)
{
    return mcp_page_add_tool(
        page, &(struct mcp_tool){.name = peg__str(peg_tool_name(tool)),
                                 .title = peg_json_str(peg_json_get(peg_tool_meta(tool), "title")),
                                 .description = peg__str(peg_tool_description(tool)),
                                 .input_schema = peg_tool_input_schema(tool),
                                 .output_schema = peg_tool_output_schema(tool),
                                 .is_read_only = peg_tool_is_read_only(tool),
                                 .is_idempotent = peg_tool_is_idempotent(tool),
                                 .is_destructive = peg_tool_is_destructive(tool),
                                 .version = peg_tool_version(tool),
                                 .tags = peg_tool_tags(tool),
                                 .examples = peg_tool_examples(tool)});
}

/* A position is "INDEX NAME": of the tool that the page before ended with. Where the registry has
 * changed, the page begins behind that name, or where it was. */
static peg_status find_start(const peg_tool_list *tools, peg_str after, size_t *ret_start)
{
    char *end;
    unsigned long long index;
    peg_str name;

    *ret_start = 0;
    if (!after.len)
        return PEG_OK;
    index = strtoull(after.ptr, &end, 10); /* a position is NUL-terminated */
    if (!peg__is_digit(after.ptr[0]) || *end != ' ')
        return PEG_EINVAL;
    name = peg__str_from(after, (size_t)(end + 1 - after.ptr));
    for (size_t i = 0; i < tools->len; i++) {
        if (peg__str_is(name, peg_tool_name(tools->items[i]))) {
            *ret_start = i + 1;
            return PEG_OK;
        }
    }
    *ret_start = index < tools->len ? (size_t)index : tools->len;
    return PEG_OK;
}

static peg_status list_tools(struct mcp_host *host, peg_str after, struct mcp_page *page)
{
    peg_tool_list tools = {0};
    char position[PEG_LIMIT_NAME_BYTES + 32];
    size_t i = 0;
    peg_status status = peg_registry_visible(host->registry, &tools, NULL);

    if (!status)
        status = find_start(&tools, after, &i);
    while (!status && i < tools.len && add_tool(page, tools.items[i]))
        i++;
    if (!status && i && i < tools.len) {
        snprintf(position, sizeof(position), "%zu %s", i, peg_tool_name(tools.items[i - 1]));
        mcp_page_more(page, peg__str(position));
    }
    peg_tool_list_free(&tools);
    return status;
}

static peg_status list_items(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                             struct mcp_page *page)
{
    struct mcp_host *host = peg__container_of(source, struct mcp_host, source);

    (void)kind; /* there are tools alone */
    return list_tools(host, after, page);
}

/* ---- a worker: one call ---- */

static bool checks_output(struct mcp__job *job)
{
    peg_tool *tool = peg_registry_get(job->host->registry, peg__str(job->name));
    const bool checks = tool && peg_tool_output_schema(tool);

    peg_tool_unref(tool);
    return checks;
}

static void run_tool(struct mcp__job *job)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str(job->name),
                                      .args = peg__str(job->args)};
    const bool has_schema = checks_output(job);
    peg_record *record = NULL;
    peg_error error;

    if (peg_call_run(job->ctx, &request, &job->host->run, &record, &error))
        mcp_result_fail_tool(&job->result, NULL, peg__str(error.message));
    else
        mcp__put_record(&job->result, record, has_schema);
    peg_record_unref(record);
}

/* The worker's reference goes with the report of the end. */
static void run_job(struct mcp__job *job)
{
    struct mcp__report *end = job->end;

    run_tool(job);
    job->end = NULL;
    *end = (struct mcp__report){.kind = MCP__END, .job = job};
    (void)mcp__post(job->workers, end);
}

/* ---- the loop: calls ---- */

static void fail_to_begin(struct mcp_call *call, const char *message)
{
    struct mcp_result result = {0};

    mcp_result_fail(&result, MCP_INTERNAL_ERROR, "%s", message);
    mcp_call_end(call, &result);
}

static void begin_call(struct mcp_source *source, struct mcp_call *call)
{
    struct mcp_host *host = peg__container_of(source, struct mcp_host, source);
    struct mcp__job *job = NULL;

    if (mcp__job_new(host, call, &job)) {
        fail_to_begin(call, "the server is out of memory: try again later");
        return;
    }
    mcp_call_set_user(call, job);
    if (mcp__workers_submit(host->workers, mcp__job_ref(job))) {
        mcp__job_drop_ctx(job);
        mcp__job_unref(job);
        mcp__job_unref(job);
        fail_to_begin(call, "the server has no thread for the call: try again later");
    }
}

static void answer_call(struct mcp_source *source, struct mcp_call *call, const peg_json *answers,
                        const char *reason)
{
    (void)source;
    mcp__answer_gate(mcp_call_user(call), answers, reason);
}

static void cancel_call(struct mcp_source *source, struct mcp_call *call, const char *reason)
{
    struct mcp__job *job = mcp_call_user(call);

    (void)source;
    peg_cancel_fire(job->cancel, reason);
}

static const struct mcp_source_ops source_ops = {
    .list = list_items, .begin = begin_call, .answer = answer_call, .cancel = cancel_call};

/* ---- the loop: reports ---- */

static void end_job(struct mcp__job *job)
{
    struct mcp_call *call = job->call;

    job->call = NULL;
    mcp__job_drop_ctx(job);
    mcp_call_end(call, &job->result);
    job->result = (struct mcp_result){0};
    mcp__job_unref(job); /* the loop's */
}

static void take_report(struct mcp__report *report)
{
    struct mcp__job *job = report->job;
    const peg_str name = peg__strn(report->text, report->name_len);
    const peg_str text = peg__strn(report->text + report->name_len, report->text_len);

    atomic_fetch_sub(&job->n_reported,
                     report->kind == MCP__END ? 0 : sizeof(*report) + name.len + text.len);
    if (!job->call) /* a handler that was abandoned on a pool still talks */
        return;
    switch (report->kind) {
    case MCP__PROGRESS:
        mcp_call_progress(job->call, report->progress, report->total, text);
        return;
    case MCP__LOG:
        mcp_call_log(job->call, report->level, name, text);
        return;
    case MCP__OUTPUT:
        mcp_call_output(job->call, name, text);
        return;
    case MCP__ASK:
        mcp__ask_gate(job);
        return;
    case MCP__END:
        end_job(job);
        return;
    }
}

static bool take_change(struct mcp_host *host)
{
    bool is_changed;

    pthread_mutex_lock(&host->workers->lock);
    is_changed = host->workers->is_changed;
    host->workers->is_changed = false;
    pthread_mutex_unlock(&host->workers->lock);
    return is_changed;
}

void mcp_host_pump(struct mcp_host *host)
{
    struct mcp__report *report = mcp__take_reports(host->workers);

    while (report) {
        struct mcp__report *next = report->next;

        take_report(report);
        mcp__job_unref(report->job);
        peg__free(report);
        report = next;
    }
    if (host->server && take_change(host))
        mcp_server_changed(host->server, MCP_TOOLS);
}

/* ---- its life ---- */

/* Under the registry's lock: nothing of the registry is used. */
static void on_change(struct peg__registry_observer *observer)
{
    struct mcp_host *host = peg__container_of(observer, struct mcp_host, observer);

    mcp__post_change(host->workers);
}

static peg_status copy_run(struct mcp_host *host, const peg_run_options *run, peg_error *reterr)
{
    PEG__READ_OR_RETURN(run, PEG_RUN_OPTIONS_INIT, reterr);

    host->run = run ? *run : (peg_run_options){PEG_RUN_OPTIONS_INIT};
    if (host->run.hooks) {
        host->hooks = *host->run.hooks;
        host->run.hooks = &host->hooks;
    }
    peg_pool_ref(host->run.pool);
    return PEG_OK;
}

peg_status mcp_host_new(const struct mcp_host_config *config, struct mcp_host **ret_host,
                        peg_error *reterr)
{
    struct mcp_host *host = peg__alloc_zero(1, sizeof(*host));
    peg_status status;

    if (!host)
        return peg__fail_nomem(reterr);
    host->workers = mcp__workers_new(config, run_job);
    if (!host->workers) {
        peg__free(host);
        return peg__fail_nomem(reterr);
    }
    host->source =
        (struct mcp_source){.ops = &source_ops, .offers = MCP_OFFERS_TOOLS | MCP_OFFERS_LOG};
    host->registry = peg_registry_ref(config->registry);
    host->observer.fn = on_change;
    peg__registry_observe(host->registry, &host->observer);
    status = copy_run(host, config->run, reterr);
    if (!status)
        status = peg_ctx_with_registry(config->ctx, config->registry, &host->ctx, reterr);
    if (status) {
        mcp_host_free(host);
        return status;
    }
    *ret_host = host;
    return PEG_OK;
}

struct mcp_host *mcp_host_free(struct mcp_host *host)
{
    if (!host)
        return NULL;
    peg__registry_unobserve(host->registry, &host->observer);
    mcp__workers_close(host->workers);
    host->server = NULL;
    mcp_host_pump(host); /* what abandoned handlers said */
    mcp__workers_unref(host->workers);
    peg_ctx_unref(host->ctx);
    peg_pool_unref(host->run.pool);
    peg_registry_unref(host->registry);
    peg__free(host);
    return NULL;
}

struct mcp_source *mcp_host_source(struct mcp_host *host)
{
    return &host->source;
}

void mcp_host_set_server(struct mcp_host *host, struct mcp_server *server)
{
    host->server = server;
}
