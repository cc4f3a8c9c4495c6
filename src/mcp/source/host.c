/* SPDX-License-Identifier: Apache-2.0 */

/* The source: what the registry has, and the way of a call from the loop to a handler and back. */

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"
#include "pegboard/artifact.h"

/* ---- lists ---- */

static bool add_tool(struct mcp_page *page, const peg_tool *tool)
{
    const peg_artifact_kind *kind = peg_tool_artifact_kind(tool);

    return mcp_page_add_tool(
        page, &(struct mcp_tool){.name = peg__str(peg_tool_name(tool)),
                                 .title = peg_json_str(peg_json_get(peg_tool_meta(tool), "title")),
                                 .description = peg__str(peg_tool_description(tool)),
                                 .input_schema = peg_tool_input_schema(tool),
                                 .output_schema = peg_tool_output_schema(tool),
                                 .is_read_only = peg_tool_is_read_only(tool),
                                 .is_idempotent = peg_tool_is_idempotent(tool),
                                 .is_destructive = peg_tool_is_destructive(tool),
                                 .is_additive = peg_tool_is_additive(tool),
                                 .version = peg_tool_version(tool),
                                 .tags = peg_tool_tags(tool),
                                 .examples = peg_tool_examples(tool),
                                 .artifact_kind = kind ? kind->name : NULL});
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

static peg_status list_page(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                            struct mcp_page *page)
{
    struct mcp_host *host = peg__container_of(source, struct mcp_host, source);

    return kind == MCP_TOOLS ? list_tools(host, after, page)
                             : mcp__list_items(host, kind, after, page);
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

    if (job->item)
        mcp__run_item(job);
    else
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

static void reject_missing(struct mcp_call *call)
{
    const struct mcp_request *request = mcp_call_request(call);
    struct mcp_result result = {0};
    struct peg__out out = {.buf = &result.data};

    if (request->kind == MCP_READ_RESOURCE) {
        mcp_result_fail(&result, MCP_RESOURCE_NOT_FOUND, "Resource not found");
        result.data.max = PEG_LIMIT_MCP_RESULT_BYTES;
        peg__out_object(&out);
        peg__out_member(&out, "uri", request->name);
        peg__out_end_object(&out);
    } else {
        mcp_result_fail(&result, MCP_INVALID_PARAMS, "there is no such prompt or resource");
    }
    mcp_call_end(call, &result);
}

/* What is wrong with the arguments of a prompt, or NULL: they are strings, and none is missing. */
static const char *judge_arguments(const struct mcp_request *request, const struct mcp__item *item)
{
    PEG_JSON_EACH_MEMBER (request->args, key) {
        if (key[1].kind != PEG_JSON_STRING)
            return "arguments of a prompt are strings";
    }
    for (const char **name = item->required; *name; name++) {
        if (!peg_json_get(request->args, *name))
            return "a required argument is missing";
    }
    return NULL;
}

static enum mcp_list_kind list_of(const struct mcp_request *request)
{
    const peg_json *ref = peg_json_get(request->params, "ref");

    return request->kind == MCP_GET_PROMPT ||
                   (request->kind == MCP_COMPLETE &&
                    peg__str_is(peg_json_str(peg_json_get(ref, "type")), "ref/prompt"))
               ? MCP_PROMPTS
               : MCP_RESOURCES;
}

/* False: the call has ended. */
static bool find_item(struct mcp_host *host, struct mcp_call *call, struct mcp__item **ret_item)
{
    const struct mcp_request *request = mcp_call_request(call);
    struct mcp_result result = {0};
    const char *wrong;

    *ret_item = NULL;
    if (request->kind == MCP_CALL_TOOL)
        return true;
    *ret_item = mcp__find_item(host, list_of(request), request->name);
    if (!*ret_item) {
        reject_missing(call);
        return false;
    }
    wrong = request->kind == MCP_GET_PROMPT ? judge_arguments(request, *ret_item) : NULL;
    if (!wrong)
        return true;
    mcp__item_unref(*ret_item);
    mcp_result_fail(&result, MCP_INVALID_PARAMS, "%s", wrong);
    mcp_call_end(call, &result);
    return false;
}

/* Of arguments that a tool wants repeated in headers. False: the call has ended. */
static bool check_params(struct mcp_host *host, struct mcp_call *call)
{
    const struct mcp_request *request = mcp_call_request(call);
    peg_tool *tool;
    bool is_good;

    if (request->kind != MCP_CALL_TOOL || request->era != MCP_MODERN)
        return true;
    tool = peg_registry_get(host->registry, request->name);
    is_good = !tool || mcp_call_check_params(call, peg_tool_input_schema(tool));
    peg_tool_unref(tool);
    return is_good;
}

/* Takes the item over. */
static peg_status make_job(struct mcp_host *host, struct mcp_call *call, struct mcp__item *item,
                           struct mcp__job **ret_job)
{
    peg_status status = mcp__job_new(host, call, ret_job);

    if (status) {
        mcp__item_unref(item);
        return status;
    }
    (*ret_job)->item = item;
    if (item && item->kind == MCP_TEMPLATES && (*ret_job)->kind == MCP_READ_RESOURCE) {
        peg__free((*ret_job)->args);
        (*ret_job)->args = NULL;
        status = mcp__template_values(item, peg__str((*ret_job)->name), &(*ret_job)->args);
    }
    if (status) {
        mcp__job_drop_ctx(*ret_job);
        mcp__job_unref(*ret_job);
    }
    return status;
}

static void begin_call(struct mcp_source *source, struct mcp_call *call)
{
    struct mcp_host *host = peg__container_of(source, struct mcp_host, source);
    struct mcp__item *item;
    struct mcp__job *job = NULL;

    if (!find_item(host, call, &item) || !check_params(host, call))
        return;
    if (make_job(host, call, item, &job)) {
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
    .list = list_page, .begin = begin_call, .answer = answer_call, .cancel = cancel_call};

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

static void take_report(struct mcp_host *host, struct mcp__report *report)
{
    struct mcp__job *job = report->job;
    const peg_str name = peg__strn(report->text, report->name_len);
    const peg_str text = peg__strn(report->text + report->name_len, report->text_len);

    if (!job) {
        if (host->server)
            mcp_server_updated(host->server, text);
        return;
    }
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
    case MCP__UPDATED: /* of no job */
        return;
    }
}

static bool take_change(struct mcp_host *host, int kind)
{
    bool is_changed;

    pthread_mutex_lock(&host->workers->lock);
    is_changed = host->workers->is_changed[kind];
    host->workers->is_changed[kind] = false;
    pthread_mutex_unlock(&host->workers->lock);
    return is_changed;
}

/* What was added while it serves is offered to those who ask from now on. */
static void take_offers(struct mcp_host *host)
{
    pthread_mutex_lock(&host->items_lock);
    host->source.offers |= host->new_offers;
    pthread_mutex_unlock(&host->items_lock);
}

void mcp_host_pump(struct mcp_host *host)
{
    struct mcp__report *report = mcp__take_reports(host->workers);

    while (report) {
        struct mcp__report *next = report->next;

        take_report(host, report);
        mcp__job_unref(report->job);
        peg__free(report);
        report = next;
    }
    take_offers(host);
    for (int kind = 0; host->server && kind < MCP_N_LISTS; kind++) {
        if (take_change(host, kind))
            mcp_server_changed(host->server, (enum mcp_list_kind)kind);
    }
}

peg_status mcp_host_updated(struct mcp_host *host, peg_str uri)
{
    struct mcp__report *report = peg__alloc_zero(1, sizeof(*report) + uri.len);

    if (!report)
        return PEG_ENOMEM;
    report->kind = MCP__UPDATED;
    report->text_len = uri.len;
    memcpy(report->text, uri.ptr, uri.len);
    if (!mcp__post(host->workers, report))
        peg__free(report);
    return PEG_OK;
}

/* ---- its life ---- */

/* Under the registry's lock: nothing of the registry is used. */
static void on_change(struct peg__registry_observer *observer)
{
    struct mcp_host *host = peg__container_of(observer, struct mcp_host, observer);

    mcp__post_change(host->workers, MCP_TOOLS);
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
    pthread_mutex_init(&host->items_lock, NULL);
    host->items = (struct peg__map)PEG__MAP(PEG_LIMIT_MCP_ITEMS);
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
    mcp__items_free(host);
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
