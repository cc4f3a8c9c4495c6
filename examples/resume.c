/* SPDX-License-Identifier: Apache-2.0 */

/* A process dies inside a tool; another one goes on with the conversation from the store. */

#include <pegboard/pegboard.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char steps[] = "- calls: [{name: book}, {name: pay}, {name: weather}]\n"
                            "- text: Booked. Please look whether it is paid.\n";

static void act(peg_call *call, const peg_json *args, void *user)
{
    const peg_tool *tool = peg_call_tool(call);
    (void)args, (void)user;
    printf("  runs     %s\n", peg_tool_name(tool));
    fflush(stdout);
    if (peg_tool_is_destructive(tool))
        raise(SIGKILL); /* nothing is cleaned up, and nobody is told */
    peg_call_reply(call, peg_cstr("done"));
}

static void trace(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    (void)user;
    if (event->kind == PEG_EVENT_TOOL_CALL && call->is_complete && call->is_error)
        printf("  not run  %.*s: %s\n", (int)call->tool.len, call->tool.ptr,
               peg_record_code(call->record));
    else if (event->kind == PEG_EVENT_MESSAGE && event->u.stream.is_complete)
        printf("  says     %.*s\n", (int)event->u.stream.full.len, event->u.stream.full.ptr);
}

/* What a process does: goes on with the turn in the store, or begins one. */
static peg_status live(peg_runner_config config, peg_error *e)
{
    peg_phase phase = PEG_PHASE_PRE_INFERENCE;
    peg_turn_store *store = NULL;
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_status s = peg_turn_store_sqlite_new("turns.db", &store, e);
    if (!s && !(s = peg_turn_store_load(store, peg_cstr("trip-1"), &turn, &phase, e)) && !turn &&
        !(s = peg_turn_new(&turn, e)) && !(s = peg_turn_set_id(turn, peg_cstr("trip-1"), e)))
        s = peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Book a seat to Oslo."), e);
    config.loop.snapshot = peg_turn_store_snapshot, config.loop.snapshot_user = store;
    if (!s)
        printf("%zu blocks, %s\n", peg_turn_len(turn), peg_phase_name(phase));
    if (!s && !peg_turn_is_over(turn, phase) && !(s = peg_runner_new(&config, &runner, e)))
        s = peg_runner_run(runner, NULL, turn, NULL, e);
    return peg_turn_free(turn), peg_runner_unref(runner), peg_turn_store_unref(store), s;
}

int main(void)
{
    static const peg_tool_def defs[] = {
        {PEG_TOOL_DEF_INIT, "book", "Books it", .run = act},
        {PEG_TOOL_DEF_INIT, "pay", "Pays for it", .run = act, .destructive = true},
        {PEG_TOOL_DEF_INIT, "weather", "Tells it", .run = act, .read_only = true}};
    char folder[] = "/tmp/resume-XXXXXX";
    peg_tool *t[3];
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = t, .n_tools = 3};
    peg_script *script;
    peg_error e;
    if (!mkdtemp(folder) || chdir(folder) || peg_script_new(peg_cstr(steps), &script, &e) ||
        peg_tool_new(&defs[0], &t[0], &e) || peg_tool_new(&defs[1], &t[1], &e) ||
        peg_tool_new(&defs[2], &t[2], &e))
        return 1;
    config.loop.engine = peg_script_engine(script), config.on_event = trace;
    if (fork() == 0)
        return live(config, &e); /* a first process, which does not get far */
    wait(NULL);
    if (live(config, &e) || live(config, &e)) /* a second one; and again, when all is done */
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    peg_script_unref(script), peg_tool_unref(t[0]), peg_tool_unref(t[1]), peg_tool_unref(t[2]);
    return unlink("turns.db") || rmdir(folder);
}
