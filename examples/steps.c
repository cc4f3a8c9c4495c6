/* SPDX-License-Identifier: Apache-2.0 */

/* A person goes through a run step by step. Its settings are on the turn, and go with it. */

#include <pegboard/pegboard.h>
#include <stdio.h>

static const char script_text[] = "- calls: [{name: measure}]\n"
                                  "- calls: [{name: launch}]\n"
                                  "- text: I will wait for better weather.\n";

static void act(peg_call *call, const peg_json *args, void *user)
{
    (void)args, (void)user;
    peg_call_replyf(call, "%s: done", peg_tool_name(peg_call_tool(call)));
}

/* A person who lets the first call run and the second one not. Whoever hears of a pause may settle
 * it here, or keep its id and do so later on any thread. */
static void person(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    const peg_pause_event *pause = &event->u.pause;
    peg_step_decision decision = PEG_STEP_CONTINUE;
    peg_str answer;
    if (event->kind == PEG_EVENT_PAUSE) {
        if (pause->n_pending && event->ids.iteration > 0)
            decision = PEG_STEP_SKIP_TOOLS;
        printf("%s, %zu to run: %s\n", pause->phase, pause->n_pending,
               decision == PEG_STEP_CONTINUE ? "continue" : "skip");
        peg_stepper_continue(user, pause->pause_id, decision, NULL, NULL);
    } else if (event->kind == PEG_EVENT_TOOL_CALL && call->is_complete &&
               !peg_record_answer(call->record, &answer, NULL)) {
        printf("  %.*s\n", (int)answer.len, answer.ptr);
    }
}

int main(void)
{
    static const peg_tool_def defs[] = {
        {PEG_TOOL_DEF_INIT, "measure", "Measures the wind", .run = act},
        {PEG_TOOL_DEF_INIT, "launch", "Launches the rocket", .run = act}};
    peg_tool_config tooling = peg_tool_config_default();
    peg_tool *tools[2] = {NULL};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .n_tools = 2, .on_event = person};
    peg_script *script = NULL;
    peg_runner *runner = NULL;
    peg_stepper *steps = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error e;
    if (peg_script_new(peg_cstr(script_text), &script, &e) || peg_stepper_new(-1, &steps, &e) ||
        peg_tool_new(&defs[0], &tools[0], &e) || peg_tool_new(&defs[1], &tools[1], &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    tooling.settings.max_iterations = 5;
    tooling.choice = PEG_CHOICE_REQUIRED; /* until there is a result */
    config.tools = tools;
    config.on_event_user = steps;
    config.loop = (peg_dispatch_options){PEG_DISPATCH_OPTIONS_INIT,
                                         .engine = peg_script_engine(script), .steps = steps};
    if (peg_runner_new(&config, &runner, &e) || peg_turn_new(&turn, &e) ||
        peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Launch it."), &e) ||
        peg_turn_set_tool_config(turn, &tooling, &e) ||
        peg_turn_set_string(turn, &peg_key_session_id, peg_cstr("desk-1"), &e) ||
        peg_stepper_enable(steps, peg_cstr("desk-1"), &e) ||
        peg_runner_run(runner, NULL, turn, &outcome, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("%s after %u iterations\n", peg_turn_end_name(outcome.end), outcome.iterations);
    peg_turn_free(turn), peg_runner_unref(runner), peg_stepper_unref(steps);
    peg_script_unref(script), peg_tool_unref(tools[0]), peg_tool_unref(tools[1]);
    return 0;
}
