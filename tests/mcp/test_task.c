/* SPDX-License-Identifier: Apache-2.0 */

/* The tasks extension. */

#include "world.h"

#define TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}},\"elicitation\":{}}"
#define FORM                                                                                       \
    "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\","                         \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}"

static void world_init_with_tasks(struct world *w)
{
    struct mcp_config config;

    world_init_bare(w);
    schemas_load(&w->schemas);
    config = world_config(w);
    config.task_ms = 2000;
    CHECK_INT(world_open(w, &config), PEG_OK);
}

/* Calls a tool and waits until it is a task. */
static void make_task(struct world *w, char ret_id[64])
{
    const char *at;

    receive(w, M_WITH("1", "tools/call", "\"name\":\"t\",", TASKS, ""));
    CHECK_INT(w->n_sent, 0);
    CHECK_INT(mcp_server_due_ms(w->server), 3000);
    mcp_server_advance(w->server, 3000, 1792238400123);
    CHECK_HAS(w, 0, "\"id\":1,\"result\":{\"resultType\":\"task\",\"taskId\":\"");
    CHECK_HAS(w, 0, "\"status\":\"working\",\"createdAt\":\"2026-10-17T12:00:00.123Z\"");
    CHECK(w->how[0].is_end);
    at = strstr(w->sent[0], "\"taskId\":\"") + strlen("\"taskId\":\"");
    snprintf(ret_id, 64, "%.*s", (int)strcspn(at, "\""), at);
}

static void ask_task(struct world *w, const char *method, const char *id, const char *more)
{
    char text[1024];

    snprintf(text, sizeof(text), M_WITH("9", "%s", "\"taskId\":\"%s\",%s", TASKS, ""), method, id,
             more);
    receive(w, text);
}

TEST(discover_tells_of_tasks)
{
    struct world w;

    world_init_with_tasks(&w);
    receive(&w, M("1", "server/discover", ""));
    CHECK_HAS(&w, 0, "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    receive(&w, L("2", "initialize", "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}"));
    CHECK(!strstr(w.sent[0], "tasks"));
    world_free(&w);
}

TEST(call_that_takes_long_becomes_a_task_and_its_result_is_kept)
{
    struct world w;
    char id[64];

    world_init_with_tasks(&w);
    make_task(&w, id);
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"resultType\":\"complete\",");
    CHECK_HAS(&w, 0, "\"status\":\"working\"");
    finish(&w, 0, "done");
    CHECK_INT(w.n_sent, 1);
    for (int i = 0; i < 2; i++) {
        ask_task(&w, "tasks/get", id, "");
        CHECK_HAS(&w, 0, "\"status\":\"completed\"");
        CHECK_HAS(&w, 0,
                  "\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\","
                  "\"text\":\"done\"}]}");
    }
    world_free(&w);
}

TEST(client_that_does_not_know_tasks_waits)
{
    struct world w;

    world_init_with_tasks(&w);
    receive(&w, M("1", "tools/call", "\"name\":\"t\","));
    mcp_server_advance(w.server, 99999, 0);
    CHECK_INT(w.n_sent, 0);
    receive(&w, M("2", "tasks/get", "\"taskId\":\"x\","));
    CHECK_HAS(&w, 0, "\"code\":-32021");
    CHECK_HAS(&w, 0, "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    world_free(&w);
}

TEST(task_is_canceled_and_stays_so)
{
    struct world w;
    char id[64];

    world_init_with_tasks(&w);
    make_task(&w, id);
    ask_task(&w, "tasks/cancel", id, "");
    CHECK_HAS(&w, 0, "\"id\":9,\"result\":{\"resultType\":\"complete\",\"_meta\"");
    CHECK_INT(w.n_canceled, 1);
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"status\":\"cancelled\"");
    ask_task(&w, "tasks/cancel", id, "");
    CHECK_HAS(&w, 0, "\"result\":{");
    world_free(&w);
}

TEST(task_asks_for_input_and_gets_it)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct world w;
    char id[64];

    world_init_with_tasks(&w);
    make_task(&w, id);
    forget_sent(&w);
    CHECK_INT(peg_json_parse(peg_cstr("{\"a\":" FORM "}"), NULL, &doc, NULL), PEG_OK);
    mcp_call_ask(w.calls[0], peg_json_root(doc));
    CHECK_INT(w.n_sent, 0);
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"status\":\"input_required\"");
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"a\":" FORM "}");
    ask_task(&w, "tasks/update", id, "\"inputResponses\":7,");
    CHECK_HAS(&w, 0, "\"code\":-32602");
    ask_task(&w, "tasks/update", id, "\"inputResponses\":{\"a\":{\"action\":\"accept\"}},");
    CHECK_STR(peg_cstr(w.answers), "{\"a\":{\"action\":\"accept\"}}");
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"status\":\"working\"");
    world_free(&w);
}

TEST(task_of_another_principal_is_not_found)
{
    struct world w;
    struct mcp_peer *other = NULL;
    char id[64];
    char text[512];

    world_init_with_tasks(&w);
    make_task(&w, id);
    CHECK_INT(mcp_peer_new(w.server, &keep_ops, &w, "stranger", &other), PEG_OK);
    snprintf(text, sizeof(text), M_WITH("1", "tasks/get", "\"taskId\":\"%s\",", TASKS, ""), id);
    forget_sent(&w);
    CHECK_INT(mcp_peer_receive(other, peg_cstr(text), NULL), PEG_OK);
    CHECK_HAS(&w, 0, "\"code\":-32602");
    mcp_peer_free(other);
    world_free(&w);
}

TEST(task_outlives_its_connection_and_expires)
{
    struct world w;
    char id[64];

    world_init_with_tasks(&w);
    make_task(&w, id);
    mcp_peer_free(w.peer);
    CHECK_INT(w.n_canceled, 0);
    CHECK_INT(mcp_peer_new(w.server, &keep_ops, &w, "somebody", &w.peer), PEG_OK);
    finish(&w, 0, "done");
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"status\":\"completed\"");
    CHECK_INT(mcp_server_due_ms(w.server), 3000 + PEG_LIMIT_MCP_TASK_MS);
    mcp_server_advance(w.server, 3000 + PEG_LIMIT_MCP_TASK_MS, 0);
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"code\":-32602");
    world_free(&w);
}

TEST(task_that_fails_by_protocol_has_its_error)
{
    struct world w;
    struct mcp_result result = {0};
    char id[64];

    world_init_with_tasks(&w);
    make_task(&w, id);
    mcp_result_fail(&result, MCP_INVALID_PARAMS, "Unknown tool: t");
    end_call(&w, 0, &result);
    ask_task(&w, "tasks/get", id, "");
    CHECK_HAS(&w, 0, "\"status\":\"failed\"");
    CHECK_HAS(&w, 0, "\"error\":{\"code\":-32602,\"message\":\"Unknown tool: t\"}");
    world_free(&w);
}

/* ---- tasks that the source keeps ---- */

#define KEPT_ID "00112233445566778899aabbccddeeff"

static peg_status world_open_with_kept(struct world *w)
{
    struct mcp_config config;

    config = world_config(w);
    w->source.offers |= MCP_OFFERS_TASKS;
    return world_open(w, &config);
}

static void world_init_with_kept(struct world *w)
{
    world_init_bare(w);
    schemas_load(&w->schemas);
    CHECK_INT(world_open_with_kept(w), PEG_OK);
}

static struct mcp_task kept_task(enum mcp_task_status status)
{
    return (struct mcp_task){.id = PEG_LIT(KEPT_ID),
                             .status = status,
                             .created_ms = 1792238400123,
                             .updated_ms = 1792238401000,
                             .ttl_ms = 330000};
}

/* Ends the last call with what a task is. */
static void tell_task(struct world *w, const struct mcp_task *task)
{
    struct mcp_call *call = w->calls[w->n_calls - 1];

    w->calls[w->n_calls - 1] = NULL;
    mcp_call_tell_task(call, task);
}

TEST(source_that_keeps_tasks_makes_them_of_calls)
{
    struct world w;
    struct mcp_task task = kept_task(MCP_TASK_WORKING);

    world_init_with_kept(&w);
    receive(&w, M("1", "server/discover", ""));
    CHECK_HAS(&w, 0, "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    receive(&w, M("2", "tools/call", "\"name\":\"t\","));
    CHECK(!mcp_call_request(w.calls[0])->takes_task);
    receive(&w, M_WITH("3", "tools/call", "\"name\":\"t\",", TASKS, ""));
    CHECK(mcp_call_request(w.calls[1])->takes_task);
    mcp_server_advance(w.server, 99999999, 0);
    CHECK_INT(w.n_sent, 0);
    tell_task(&w, &task);
    CHECK_HAS(&w, 0,
              "\"id\":3,\"result\":{\"resultType\":\"task\",\"taskId\":\"" KEPT_ID
              "\",\"status\":\"working\",\"createdAt\":\"2026-10-17T12:00:00.123Z\","
              "\"lastUpdatedAt\":\"2026-10-17T12:00:01.000Z\",\"ttlMs\":330000");
    CHECK(w.how[0].is_end);
    CHECK_INT(w.n_canceled, 0);
    CHECK_INT((int)mcp_server_n_calls(w.server), 1);
    finish(&w, 0, "done");
    world_free(&w);
}

TEST(source_that_keeps_tasks_tells_what_they_are)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *asked = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *selected = NULL;
    struct world w;
    struct mcp_task task = kept_task(MCP_TASK_ASKS);
    struct mcp_result end = {0};

    world_init_with_kept(&w);
    CHECK_INT(peg_json_parse(
                  peg_cstr("{\"a\":" FORM ",\"b\":{\"method\":\"roots/list\",\"optional\":true}}"),
                  NULL, &asked, NULL),
              PEG_OK);
    ask_task(&w, "tasks/get", KEPT_ID, "");
    CHECK_INT(mcp_call_request(w.calls[0])->kind, MCP_GET_TASK);
    CHECK_STR(mcp_call_request(w.calls[0])->name, KEPT_ID);
    CHECK_INT(mcp_call_select(w.calls[0], peg_json_root(asked), &selected), PEG_OK);
    task.asked = peg_json_root(selected);
    tell_task(&w, &task);
    CHECK_HAS(&w, 0, "\"resultType\":\"complete\",\"taskId\"");
    CHECK_HAS(&w, 0, "\"status\":\"input_required\"");
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"a\":" FORM "}");

    mcp_result_fail_tool(&end, "timeout", peg__str("too late"));
    task = kept_task(MCP_TASK_COMPLETED);
    task.end = &end;
    ask_task(&w, "tasks/get", KEPT_ID, "");
    tell_task(&w, &task);
    CHECK_HAS(&w, 0, "\"status\":\"completed\"");
    CHECK_HAS(&w, 0, "\"result\":{\"resultType\":\"complete\",\"content\":[");
    CHECK_HAS(&w, 0, "\"isError\":true,\"_meta\":{\"pegboard/error\":{\"name\":\"timeout\"}}");

    end = (struct mcp_result){0};
    mcp_result_fail(&end, MCP_INVALID_PARAMS, "no");
    end.data = (struct peg__buf)PEG__BUF(64);
    peg__buf_puts(&end.data, "{\"why\":1}");
    ask_task(&w, "tasks/get", KEPT_ID, "");
    tell_task(&w, &task);
    CHECK_HAS(&w, 0, "\"status\":\"failed\"");
    CHECK_HAS(&w, 0, "\"error\":{\"code\":-32602,\"message\":\"no\",\"data\":{\"why\":1}}");

    task = kept_task(MCP_TASK_CANCELED);
    ask_task(&w, "tasks/get", KEPT_ID, "");
    tell_task(&w, &task);
    CHECK_HAS(&w, 0, "\"status\":\"cancelled\"");
    world_free(&w);
}

TEST(source_that_keeps_tasks_updates_and_cancels_them)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *asked = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *selected = NULL;
    struct world w;

    world_init_with_kept(&w);
    CHECK_INT(peg_json_parse(peg_cstr("{\"a\":{\"method\":\"roots/list\"}}"), NULL, &asked, NULL),
              PEG_OK);
    ask_task(&w, "tasks/update", KEPT_ID, "\"inputResponses\":7,");
    CHECK_HAS(&w, 0, "\"code\":-32602");
    CHECK_INT((int)w.n_calls, 0);
    ask_task(&w, "tasks/update", KEPT_ID, "\"inputResponses\":{\"a\":{}},");
    CHECK_INT(mcp_call_request(w.calls[0])->kind, MCP_UPDATE_TASK);
    CHECK(peg_json_get(mcp_call_request(w.calls[0])->responses, "a") != NULL);
    CHECK_INT(mcp_call_select(w.calls[0], peg_json_root(asked), &selected), PEG_EINVAL);
    forget_sent(&w);
    end_call(&w, 0, &(struct mcp_result){0});
    CHECK_HAS(&w, 0, "\"id\":9,\"result\":{\"resultType\":\"complete\",\"_meta\"");
    ask_task(&w, "tasks/cancel", KEPT_ID, "");
    CHECK_INT(mcp_call_request(w.calls[1])->kind, MCP_CANCEL_TASK);
    forget_sent(&w);
    end_call(&w, 1, &(struct mcp_result){0});
    CHECK_HAS(&w, 0, "\"id\":9,\"result\":{\"resultType\":\"complete\",\"_meta\"");
    receive(&w, M("4", "tasks/get", "\"taskId\":\"" KEPT_ID "\","));
    CHECK_HAS(&w, 0, "\"code\":-32021");
    CHECK_INT((int)w.n_calls, 2);
    world_free(&w);
}

TORTURE(kept_tasks_survive_any_allocation_failure)
{
    struct world w;
    struct mcp_task task = kept_task(MCP_TASK_COMPLETED);
    struct mcp_result end = {0};
    peg_status status;

    world_init_bare(&w);
    status = world_open_with_kept(&w);
    if (!status)
        status = receive(&w, M_WITH("1", "tasks/get", "\"taskId\":\"" KEPT_ID "\",", TASKS, ""));
    if (!status && !w.n_calls)
        status = PEG_ENOMEM;
    if (!status) {
        mcp_result_fail_tool(&end, "timeout", peg__str("too late"));
        task.end = &end;
        tell_task(&w, &task);
        status = w.n_sent == 1 && strstr(w.sent[0], "too late") ? PEG_OK : PEG_ENOMEM;
    }
    world_free(&w);
    return status;
}

TORTURE(tasks_survive_any_allocation_failure)
{
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    config = world_config(&w);
    config.task_ms = 2000;
    status = world_open(&w, &config);
    if (!status)
        status = receive(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", TASKS, ""));
    if (!status && !w.n_calls)
        status = PEG_ENOMEM;
    if (!status) {
        mcp_server_advance(w.server, 3000, 0);
        status = w.n_sent == 1 && strstr(w.sent[0], "taskId") ? PEG_OK : PEG_ENOMEM;
        finish(&w, 0, "done");
    }
    world_free(&w);
    return status;
}
