/* SPDX-License-Identifier: Apache-2.0 */

/* What a model said, said again: with its tool, and in a program that does not have it. */

#include <pegboard/pegboard.h>
#include <stdio.h>

/* What was kept of a conversation, perhaps with `pegboard turn convert`. */
static const char kept[] =
    "blocks:\n"
    "  - {id: b1, kind: user, payload: {text: Do I need an umbrella in Bergen?}}\n"
    "  - {id: b2, kind: tool_call, payload: {id: c1, name: forecast, args: {city: Bergen}}}\n"
    "  - {id: b3, kind: tool_use, payload: {id: c1, result: rain, error: ''}}\n"
    "  - {id: b4, kind: llm_text, payload: {text: Take one.}}\n"
    "data:\n"
    "  pegboard.tool_definitions@v1:\n"
    "    - {name: forecast, description: Tells the weather, parameters: {type: object}}\n";

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "%s: sunny", peg_json_str(peg_json_get(args, "city")).ptr);
}

static void trace(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    const peg_json *offered = event->u.inference.definitions;
    peg_str answer;
    (void)user;
    if (event->kind == PEG_EVENT_INFERENCE_START)
        printf("  offered  %zu tools\n", offered ? peg_json_len(offered) : 0);
    else if (event->kind == PEG_EVENT_TOOL_CALL && call->is_complete &&
             !peg_record_answer(call->record, &answer, NULL))
        printf("  %s %.*s\n", call->is_error ? "fails   " : "answers ", (int)answer.len,
               answer.ptr);
    else if (event->kind == PEG_EVENT_MESSAGE && event->u.stream.is_complete)
        printf("  says     %.*s\n", (int)event->u.stream.full.len, event->u.stream.full.ptr);
}

/* Asks the same again on a fresh turn that has the definitions of the kept one. */
static peg_status replay(const peg_turn *turn, const peg_runner_config *config, peg_error *e)
{
    peg_str question = peg_block_text(peg_turn_at(turn, 0));
    const peg_json *defs = NULL;
    peg_runner *runner = NULL;
    peg_turn *fresh = NULL;
    peg_status s;
    if (!(s = peg_turn_definitions(turn, &defs, e)) && !(s = peg_turn_new(&fresh, e)) &&
        !(s = peg_turn_set(fresh, &peg_key_tool_definitions, defs, e)) &&
        !(s = peg_turn_add_text(fresh, PEG_BLOCK_USER, question, e)) &&
        !(s = peg_runner_new(config, &runner, e)))
        s = peg_runner_run(runner, NULL, fresh, NULL, e);
    peg_runner_unref(runner), peg_turn_free(fresh);
    return s;
}

int main(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,       "forecast",      "Tells the weather",
                              "{\"type\":\"object\"}", .run = forecast, .open_arguments = true};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .on_event = trace};
    peg_script *script = NULL;
    peg_tool *tool = NULL;
    peg_turn *turn = NULL;
    peg_error e;
    if (peg_tool_new(&def, &tool, &e) || peg_turn_read(peg_cstr(kept), NULL, &turn, &e) ||
        peg_script_from_turn(turn, &script, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    config.loop.engine = peg_script_engine(script), config.tools = &tool;
    for (config.n_tools = 1; config.n_tools < 2; config.n_tools--) { /* with it, and without */
        printf(config.n_tools ? "with the tool\n" : "without it\n");
        if (replay(turn, &config, &e))
            return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    }
    peg_turn_free(turn), peg_script_unref(script), peg_tool_unref(tool);
    return 0;
}
