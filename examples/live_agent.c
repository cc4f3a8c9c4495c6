/* SPDX-License-Identifier: Apache-2.0 */

/* An agent with a tool. It follows a script, or asks a model; --help says how. */

#include <pegboard/engine.h>
#include <pegboard/pegboard.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN(s) (int)(s).len, (s).ptr

static const char usage[] =
    "usage: live_agent                                            follow a script\n"
    "       [OPENAI_API_KEY=...] live_agent URL MODEL [QUESTION]  ask a model, such as one at "
    "http://127.0.0.1:11434/v1\n";
static const char script_text[] = "- {calls: [{name: forecast, args: {city: Bergen}}]}\n"
                                  "- {text: 'It rains: take one.', stream: 8}\n";

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "%s: rain until Friday", peg_json_str(peg_json_get(args, "city")).ptr);
}

static void trace(const peg_event *event, void *user)
{
    (void)user;
    if (event->kind == PEG_EVENT_MESSAGE)
        printf("%.*s%s", SHOWN(event->u.stream.delta), event->u.stream.is_complete ? "\n" : "");
    else if (event->kind == PEG_EVENT_TOOL_CALL && !event->u.tool_call.is_complete)
        printf("[%.*s %.*s]\n", SHOWN(event->u.tool_call.tool), SHOWN(event->u.tool_call.args));
    fflush(stdout); /* or a pipe would get all of it at the end */
}

int main(int argc, char **argv)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,
                              "forecast",
                              "Tells the weather of the coming days.",
                              "{\"type\":\"object\",\"required\":[\"city\"],"
                              "\"properties\":{\"city\":{\"type\":\"string\"}}}",
                              .run = forecast,
                              .read_only = true};
    const peg_model_config at = {PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT,
                                 .model.model = argc > 2 ? argv[2] : "",
                                 .base_url = argc > 1 ? argv[1] : NULL,
                                 .api_key_env = getenv("OPENAI_API_KEY") ? NULL : ""};
    const char *question = argc > 3 ? argv[3] : "Do I need an umbrella in Bergen?";
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .n_tools = 1, .on_event = trace};
    peg_model *engine = NULL;
    peg_script *script = NULL;
    peg_runner *runner = NULL;
    peg_tool *tool = NULL;
    peg_turn *turn = NULL;
    char *yaml = NULL;
    peg_error e;

    if (argc == 2 || argc > 4)
        return fputs(usage, stderr), 2;
    if ((argc > 2 ? peg_model_new(&at, &engine, &e)
                  : peg_script_new(peg_cstr(script_text), &script, &e)) ||
        peg_tool_new(&def, &tool, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    config.tools = &tool;
    config.loop.engine = engine ? peg_model_engine(engine) : peg_script_engine(script);
    if (peg_runner_new(&config, &runner, &e) || peg_turn_new(&turn, &e) ||
        peg_turn_set_system(turn, peg_cstr("Answer in one sentence."), &e) ||
        peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr(question), &e) ||
        peg_runner_run(runner, NULL, turn, NULL, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    if (getenv("SHOW_TURN") &&
        !peg_turn_write(
            turn, &(peg_turn_write_options){PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_YAML},
            &yaml, NULL, &e))
        printf("\n%s", yaml);
    peg_free(yaml), peg_turn_free(turn), peg_runner_unref(runner), peg_tool_unref(tool);
    peg_model_unref(engine), peg_script_unref(script);
    return 0;
}
