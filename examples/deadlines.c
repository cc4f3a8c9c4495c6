/* SPDX-License-Identifier: Apache-2.0 */

/* Handlers that do not come back: on a pool and in a process, the call is over in time anyway. */

#include <pegboard/pegboard.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t released;

/* Asks nobody whether it should stop. At its deadline the call goes on without it. */
static void hang(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    sem_wait(&released);
    peg_call_reply_json(call, args); /* too late: dropped */
}

/* Stops when it is told to: peg_call_should_stop(), or a wait that is woken. */
static void nap(peg_call *call, const peg_json *args, void *user)
{
    peg_error e;
    (void)args;
    (void)user;
    if (peg_ctx_wait(peg_call_ctx(call), 60000, &e))
        peg_call_fail_with(call, &e);
    else
        peg_call_reply(call, peg_cstr("rested"));
}

static peg_status show(peg_ctx *ctx, const char *tool, peg_pool *pool, peg_error *reterr)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr(tool)};
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .pool = pool};
    peg_record *record = NULL;
    peg_status status = peg_call_run(ctx, &request, &options, &record, reterr);

    if (!status)
        printf("%-5s -> %s, cause: %s\n", tool, peg_record_code(record),
               peg_record_cause(record)[0] ? peg_record_cause(record) : "(none)");
    peg_record_unref(record);
    return status;
}

int main(void)
{
    static const char *const argv[] = {"sleep", "60", NULL};
    const peg_tool_def hanging = {PEG_TOOL_DEF_INIT, .name = "hang", .description = "Hangs",
                                  .run = hang, .timeout_ms = 500};
    const peg_tool_def napping = {PEG_TOOL_DEF_INIT, .name = "nap", .description = "Naps",
                                  .run = nap, .timeout_ms = 50};
    const peg_command_def command = {PEG_COMMAND_DEF_INIT, .tool.name = "sleep",
                                     .tool.description = "Sleeps", .tool.timeout_ms = 50,
                                     .argv = argv};
    peg_tool *tools[3] = {NULL};
    peg_registry *registry = NULL;
    peg_ctx *root = NULL, *ctx = NULL;
    peg_pool *pool = NULL;
    peg_error e = {.code = "E_SEMAPHORE", .message = "there is no semaphore"};
    if (sem_init(&released, 0, 0) || peg_tool_new(&hanging, &tools[0], &e) ||
        peg_tool_new(&napping, &tools[1], &e) || peg_command_tool_new(&command, &tools[2], &e) ||
        peg_registry_new(tools, 3, &registry, &e) || peg_ctx_new(&root, &e) ||
        peg_ctx_with_registry(root, registry, &ctx, &e) || peg_pool_new(NULL, &pool, &e) ||
        show(ctx, "hang", pool, &e) || show(ctx, "nap", NULL, &e) || show(ctx, "sleep", NULL, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("left behind: %u thread\n", peg_pool_info(pool).n_abandoned);
    sem_post(&released); /* comes back after all, and the pool has its thread again */
    while (peg_pool_info(pool).n_abandoned > 0)
        peg_ctx_wait(root, 1, NULL);
    peg_pool_unref(pool);
    peg_ctx_unref(ctx);
    peg_ctx_unref(root);
    peg_registry_unref(registry);
    for (int i = 0; i < 3; i++)
        peg_tool_unref(tools[i]);
    return 0;
}
