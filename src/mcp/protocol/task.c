/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tasks extension: a call of a tool that takes long is answered with a task, which the client
 * asks for until it has ended. Only for clients that declare the extension with the request. Its id
 * is the call's, 128 random bits, and only the principal that made it finds it.
 *
 * A source whose calls outlive this server keeps the tasks itself, and names them: then only what
 * they look like is decided here.
 */

#include <stdio.h>
#include <time.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

enum { POLL_MS = 1000 };

struct mcp__task {
    struct mcp__task *next;
    struct mcp__task *prev;
    struct mcp_call *call; /* NULL: it has ended */
    char id[PEG_ID_HEX_TEXT];
    char *principal; /* owned */
    int64_t created_wall_ms;
    int64_t updated_wall_ms;
    int64_t expires_ms;
    enum mcp_task_status status; /* but for MCP_TASK_ASKS, which its call knows */
    struct peg__buf end;         /* "result" or "error" as JSON */
};

static bool declares_tasks(const struct mcp__request *rq)
{
    const peg_json *extensions = peg_json_get(rq->capabilities, "extensions");

    return peg_json_kind_of(peg_json_get(extensions, MCP_TASKS)) == PEG_JSON_OBJECT;
}

static void free_task(struct mcp_server *server, struct mcp__task *task)
{
    PEG_LIST_REMOVE(server->tasks, task, next, prev);
    server->n_tasks--;
    peg__buf_free(&task->end);
    peg__free(task->principal);
    peg__free(task);
}

/* ---- what a client sees ---- */

static void put_time(struct peg__out *out, const char *name, int64_t wall_ms)
{
    const time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    char text[64];

    gmtime_r(&seconds, &utc);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
             (int)(wall_ms % 1000));
    peg__out_cmember(out, name, text);
}

static void put_task(struct peg__out *out, const struct mcp_task *task)
{
    static const char *const names[] = {"working", "input_required", "completed", "failed",
                                        "cancelled"};

    peg__out_member(out, "taskId", task->id);
    peg__out_cmember(out, "status", names[task->status]);
    if (task->message.len)
        peg__out_member(out, "statusMessage", task->message);
    put_time(out, "createdAt", task->created_ms);
    put_time(out, "lastUpdatedAt", task->updated_ms);
    peg__out_key(out, "ttlMs");
    peg__out_integer(out, task->ttl_ms);
    peg__out_key(out, "pollIntervalMs");
    peg__out_integer(out, POLL_MS);
}

static void put_own_task(struct peg__out *out, const struct mcp__task *task)
{
    put_task(out, &(struct mcp_task){
                      .id = peg__str(task->id),
                      .status = task->call && task->call->asked ? MCP_TASK_ASKS : task->status,
                      .created_ms = task->created_wall_ms,
                      .updated_ms = task->updated_wall_ms,
                      .ttl_ms = PEG_LIMIT_MCP_TASK_MS,
                  });
}

/* ---- becoming one ---- */

bool mcp__has_tasks(const struct mcp_server *server)
{
    return server->config.task_ms || (server->config.source->offers & MCP_OFFERS_TASKS);
}

bool mcp__takes_tasks(const struct mcp__request *rq)
{
    return mcp__has_tasks(rq->peer->server) && rq->era == MCP_MODERN && declares_tasks(rq);
}

bool mcp__may_become_task(const struct mcp_call *call)
{
    const struct mcp__request *rq = &call->request;

    return call->server->config.task_ms && rq->peer && !call->refuses_task &&
           call->face.takes_task && !call->asked && declares_tasks(rq);
}

static struct mcp__task *make_task(struct mcp_call *call)
{
    const size_t len = strlen(call->principal);
    struct mcp_server *server = call->server;
    struct mcp__task *task;

    if (server->n_tasks >= PEG_LIMIT_MCP_TASKS)
        return NULL;
    task = peg__alloc_zero(1, sizeof(*task));
    if (!task)
        return NULL;
    task->principal = peg__alloc(len + 1);
    if (!task->principal) {
        peg__free(task);
        return NULL;
    }
    memcpy(task->principal, call->principal, len + 1);
    memcpy(task->id, call->id, sizeof(task->id));
    task->call = call;
    task->created_wall_ms = task->updated_wall_ms = server->wall_ms;
    task->expires_ms = server->now_ms + PEG_LIMIT_MCP_TASK_MS;
    task->end = (struct peg__buf)PEG__BUF(2 * (size_t)PEG_LIMIT_MCP_RESULT_BYTES);
    PEG_LIST_PUSH(server->tasks, task, next, prev);
    server->n_tasks++;
    return task;
}

void mcp__become_task(struct mcp_call *call)
{
    call->task = make_task(call);
    if (!call->task) {
        call->refuses_task = true; /* the client waits, as it would without the extension */
        return;
    }
    put_own_task(mcp__open_result(&call->request, "task"), call->task);
    mcp__send_result(&call->request, (peg_str){"", 0});
    mcp__detach_call(call);
}

void mcp__touch_task(struct mcp_call *call)
{
    call->task->updated_wall_ms = call->server->wall_ms;
}

static void put_failure(struct peg__out *out, const struct mcp_result *result)
{
    peg__out_key(out, "error");
    peg__out_object(out);
    peg__out_key(out, "code");
    peg__out_integer(out, result->code);
    peg__out_member(out, "message", peg__buf_view(&result->message));
    if (result->data.len) {
        peg__out_key(out, "data");
        peg__out_raw(out, peg__buf_view(&result->data));
    }
    peg__out_end_object(out);
}

static void put_completion(struct peg__out *out, const struct mcp_result *result)
{
    peg__out_key(out, "result");
    peg__out_object(out);
    peg__out_cmember(out, "resultType", "complete");
    mcp__put_end(out, result, MCP_MODERN);
    if (result->meta.len) {
        peg__out_key(out, "_meta");
        peg__out_object(out);
        peg__out_raw(out, peg__buf_view(&result->meta));
        peg__out_end_object(out);
    }
    peg__out_end_object(out);
}

void mcp__end_task(struct mcp_call *call, struct mcp_result *result)
{
    struct mcp__task *task = call->task;
    struct peg__out out = {.buf = &task->end};

    mcp__touch_task(call);
    task->call = NULL;
    task->status = call->is_canceled ? MCP_TASK_CANCELED
                   : result->code    ? MCP_TASK_FAILED
                                     : MCP_TASK_COMPLETED;
    if (task->status == MCP_TASK_COMPLETED)
        put_completion(&out, result);
    else if (task->status == MCP_TASK_FAILED)
        put_failure(&out, result);
    if (!task->end.status)
        return;
    task->status = MCP_TASK_FAILED;
    peg__buf_free(&task->end);
}

/* ---- tasks of the source ---- */

static void put_details(struct peg__out *out, const struct mcp_task *task)
{
    if (task->status == MCP_TASK_ASKS) {
        peg__out_key(out, "inputRequests");
        peg__out_value(out, task->asked);
    } else if (task->status == MCP_TASK_COMPLETED) {
        put_completion(out, task->end);
    } else if (task->status == MCP_TASK_FAILED) {
        put_failure(out, task->end);
    }
}

void mcp_call_tell_task(struct mcp_call *call, const struct mcp_task *task)
{
    struct mcp__request *rq = &call->request;
    const bool is_new = call->face.kind == MCP_CALL_TOOL;
    struct mcp_task told = *task;

    if (task->end) {
        mcp__replace_broken(MCP_CALL_TOOL, task->end);
        told.status = task->end->code ? MCP_TASK_FAILED : MCP_TASK_COMPLETED;
    }
    if (rq->peer) {
        struct peg__out *out = mcp__open_result(rq, is_new ? "task" : "complete");

        put_task(out, &told);
        if (!is_new)
            put_details(out, &told);
        mcp__send_result(rq, (peg_str){"", 0});
    }
    if (task->end)
        mcp_result_free(task->end);
    mcp__drop_call(call);
}

/* ---- methods ---- */

/* False: it was answered. */
static bool check_declared(struct mcp__request *rq)
{
    if (declares_tasks(rq))
        return true;
    mcp__send_error(rq, MCP_MISSING_CAPABILITY,
                    peg__str("the request needs the tasks extension, which the client did not "
                             "declare"),
                    peg__str("{\"requiredCapabilities\":{\"extensions\":{\"" MCP_TASKS "\":{}}}}"));
    return false;
}

/* False: it was answered. */
static bool check_answers(struct mcp__request *rq)
{
    if (peg_json_kind_of(peg_json_get(rq->params, "inputResponses")) == PEG_JSON_OBJECT)
        return true;
    mcp__send_errorf(rq, MCP_INVALID_PARAMS, "inputResponses must be an object");
    return false;
}

/* A request about a task that the source keeps. */
static bool is_for_source(const struct mcp__request *rq)
{
    return rq->peer->server->config.source->offers & MCP_OFFERS_TASKS;
}

static void ask_source(struct mcp__request *rq, enum mcp_call_kind kind)
{
    mcp__begin_call(rq, kind, peg_json_str(peg_json_get(rq->params, "taskId")));
}

/* NULL: it was answered. */
static struct mcp__task *find_task(struct mcp__request *rq)
{
    const peg_str id = peg_json_str(peg_json_get(rq->params, "taskId"));
    struct mcp__task *task = rq->peer->server->tasks;

    while (task && !(peg__str_is(id, task->id) && !strcmp(task->principal, rq->peer->principal)))
        task = task->next;
    if (!task)
        mcp__send_errorf(rq, MCP_INVALID_PARAMS, "there is no such task, or it has expired");
    return task;
}

static void put_end_of_memory(struct peg__out *out)
{
    peg__out_key(out, "error");
    peg__out_raw(out, peg__str("{\"code\":-32603,\"message\":\"the server was out of memory\"}"));
}

static void tell_own_task(struct mcp__request *rq)
{
    const struct mcp__task *task = find_task(rq);
    struct peg__out *out;

    if (!task)
        return;
    out = mcp__open_result(rq, "complete");
    put_own_task(out, task);
    if (task->call && task->call->asked) {
        peg__out_key(out, "inputRequests");
        peg__out_object(out);
        mcp__put_asked(out, task->call);
        peg__out_end_object(out);
    }
    if (task->end.len)
        peg__out_raw(out, peg__buf_view(&task->end));
    else if (task->status == MCP_TASK_FAILED)
        put_end_of_memory(out);
    mcp__send_result(rq, (peg_str){"", 0});
}

static void update_own_task(struct mcp__request *rq)
{
    struct mcp__task *task = find_task(rq);

    if (!task)
        return;
    mcp__send_empty(rq);
    if (task->call) {
        mcp__touch_task(task->call);
        mcp__give_answers(task->call, peg_json_get(rq->params, "inputResponses"));
    }
}

static void cancel_own_task(struct mcp__request *rq)
{
    struct mcp__task *task = find_task(rq);

    if (!task)
        return;
    mcp__send_empty(rq);
    if (task->call)
        mcp__cancel_call(task->call, "the client canceled the task");
}

void mcp__get_task(struct mcp__request *rq)
{
    if (!check_declared(rq))
        return;
    if (is_for_source(rq))
        ask_source(rq, MCP_GET_TASK);
    else
        tell_own_task(rq);
}

void mcp__update_task(struct mcp__request *rq)
{
    if (!check_declared(rq) || !check_answers(rq))
        return;
    if (is_for_source(rq))
        ask_source(rq, MCP_UPDATE_TASK);
    else
        update_own_task(rq);
}

void mcp__cancel_task(struct mcp__request *rq)
{
    if (!check_declared(rq))
        return;
    if (is_for_source(rq))
        ask_source(rq, MCP_CANCEL_TASK);
    else
        cancel_own_task(rq);
}

/* ---- time ---- */

int64_t mcp__tasks_due_ms(const struct mcp_server *server)
{
    int64_t due = INT64_MAX;

    for (const struct mcp__task *task = server->tasks; task; task = task->next) {
        if (!task->call && task->expires_ms < due)
            due = task->expires_ms;
    }
    return due;
}

/* One that still runs is canceled when its time is over, and goes when it has ended. */
void mcp__expire_tasks(struct mcp_server *server)
{
    struct mcp__task *next;

    for (struct mcp__task *task = server->tasks; task; task = next) {
        next = task->next;
        if (task->expires_ms > server->now_ms)
            continue;
        if (!task->call)
            free_task(server, task);
        else if (!task->call->is_canceled)
            mcp__cancel_call(task->call, "the time of the task is over");
    }
}

void mcp__drop_tasks(struct mcp_server *server)
{
    while (server->tasks)
        free_task(server, server->tasks);
}
