/* SPDX-License-Identifier: Apache-2.0 */

/* A whole turn: a model, a tool, and a trace of what happens between them. */

#include <pegboard/pegboard.h>
#include <stdio.h>

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "%s: rain on %g days", peg_json_str(peg_json_get(args, "city")).ptr,
                    peg_json_double(peg_json_get(args, "days")));
}

/* The model. A real one sends the turn's blocks and the registry's tools to a provider and adds
 * what comes back. This one follows a script, and gets it wrong at first. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *e)
{
    static const char *const args[] = {"{\"city\": \"Bergen\", \"days\": \"two\"}",
                                       "{\"city\": \"Bergen\", \"days\": 2}"};
    const peg_str words = peg_cstr("Yes, take one.");
    const unsigned i = peg_dispatch_iteration(dispatch);
    peg_turn *turn = peg_dispatch_turn(dispatch);
    (void)user;
    if (i < 2)
        return peg_turn_add_call(turn, peg_cstr(i ? "c2" : "c1"), peg_cstr("forecast"),
                                 peg_cstr(args[i]), e);
    peg_status status = peg_dispatch_report_message(dispatch, peg_cstr("m1"), words, true, e);
    return status ? status : peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, words, e);
}

static void put(const char *who, peg_str text)
{
    printf("  %-8s ", who);
    for (size_t i = 0; i < text.len; i++)
        printf("%c%s", text.ptr[i], text.ptr[i] == '\n' ? "           " : "");
    printf("\n");
}

/* Hears everything that happens; shows what a person wants to see. */
static void trace(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    peg_str answer;
    (void)user;
    if (event->kind == PEG_EVENT_ITERATION_START)
        printf("iteration %d\n", event->ids.iteration + 1);
    else if (event->kind == PEG_EVENT_MESSAGE)
        put("says", event->u.stream.full);
    else if (event->kind == PEG_EVENT_TOOL_CALL && !call->is_complete)
        put("calls", call->tool), put("with", call->args);
    else if (event->kind == PEG_EVENT_TOOL_CALL && !peg_record_answer(call->record, &answer, NULL))
        put(call->is_error ? "fails" : "answers", answer);
}

int main(void)
{
    const char *schema = "{\"type\":\"object\",\"required\":[\"city\",\"days\"],\"properties\":{"
                         "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"}}}";
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "forecast", "Tells it", schema, .run = forecast};
    const peg_str question = peg_cstr("Do I need an umbrella in Bergen?");
    peg_tool *tool = NULL;
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = &tool, .n_tools = 1,
                                      .loop.engine.fn = model, .on_event = trace};
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error e;
    put("asked", question);
    if (peg_tool_new(&def, &tool, &e) || peg_runner_new(&config, &runner, &e) ||
        peg_turn_new(&turn, &e) || peg_turn_add_text(turn, PEG_BLOCK_USER, question, &e) ||
        peg_runner_run(runner, NULL, turn, &outcome, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("%s after %u iterations\n", peg_turn_end_name(outcome.end), outcome.iterations);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_tool_unref(tool);
    return 0;
}
