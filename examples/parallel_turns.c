/* SPDX-License-Identifier: Apache-2.0 */
/* Many turns at once on one runner: what a turn does to its tools, no other turn sees. */

#include <pegboard/pegboard.h>
#include <pthread.h>
#include <stdio.h>

static peg_runner *runner; /* one for all threads */
static char is_admin;      /* a context that has a value under this key belongs to an admin */

static void reboot(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

/* A middleware of the turn: takes a tool out of the registry, which is this turn's own. */
static peg_status restrict_guests(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                                  peg_error *e)
{
    peg_status status = PEG_OK;
    if (!peg_ctx_value(peg_turn_scope_ctx(scope), user))
        status = peg_registry_unregister(peg_turn_scope_registry(scope), peg_cstr("reboot"), e);
    return status ? status : peg_middleware_run_next(next, e);
}

/* A model that calls the tool whether it was told about it or not. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *e)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    (void)user;
    if (peg_dispatch_iteration(dispatch) > 0)
        return PEG_OK;
    return peg_turn_add_call(turn, peg_cstr("c1"), peg_cstr("reboot"), peg_cstr("{}"), e);
}

static void *run_turns(void *ctx)
{
    intptr_t n = 0;
    for (int i = 0; i < 25; i++) {
        peg_turn *turn = NULL;
        if (!peg_turn_new(&turn, NULL) &&
            !peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Reboot it!"), NULL) &&
            !peg_runner_run(runner, ctx, turn, NULL, NULL))
            n += !peg_record_is_error(peg_block_record(peg_turn_at(turn, 2))); /* of the call */
        peg_turn_free(turn);
    }
    return (void *)n; /* turns that could reboot */
}

int main(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "reboot", "Reboots", .run = reboot};
    const peg_turn_middleware input = {.run = restrict_guests, .user = &is_admin};
    peg_tool *tool = NULL;
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = &tool,
                                      .n_tools = 1,           .input = &input,
                                      .n_input = 1,           .loop.engine.fn = model};
    peg_ctx *guest = NULL, *admin = NULL;
    pthread_t threads[4];
    void *n = NULL;
    peg_error e;
    if (peg_tool_new(&def, &tool, &e) || peg_runner_new(&config, &runner, &e) ||
        peg_ctx_new(&guest, &e) ||
        peg_ctx_with_value(guest, &is_admin, &is_admin, NULL, &admin, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, run_turns, i % 2 ? guest : admin))
            return fprintf(stderr, "no thread\n"), 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &n);
        printf("%s: %2d of 25 turns could reboot\n", i % 2 ? "guest" : "admin", (int)(intptr_t)n);
    }
    peg_ctx_unref(admin);
    peg_ctx_unref(guest);
    peg_runner_unref(runner);
    peg_tool_unref(tool);
    return 0;
}
