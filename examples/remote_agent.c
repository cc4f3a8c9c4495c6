/* SPDX-License-Identifier: Apache-2.0 */

/* An agent whose tools live elsewhere. Here gateway and provider are in the same program. */

#include <pegboard/client.h>
#include <pegboard/gateway.h>
#include <pegboard/pegboard.h>
#include <pegboard/provider.h>
#include <semaphore.h>
#include <stdio.h>

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)args, (void)user;
    peg_call_reply(call, peg_cstr("rain until Friday"));
}

static void note_attached(const peg_provider_event *event, void *is_there)
{
    if (event->kind == PEG_PROVIDER_ATTACHED)
        sem_post(is_there);
}

static void trace(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    peg_str answer;
    (void)user;
    if (event->kind == PEG_EVENT_TOOL_CALL && call->is_complete &&
        !peg_record_answer(call->record, &answer, NULL))
        printf("%.*s: %.*s\n", (int)call->tool.len, call->tool.ptr, (int)answer.len, answer.ptr);
}

int main(void)
{
    const char model[] = "- {calls: [{name: forecast, args: {}}]}\n- {text: Take an umbrella.}\n";
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "forecast", "Tells the weather.", NULL,
                              .run = forecast};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .on_event = trace};
    sem_t is_there;
    peg_provider_options offer = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "weather",
                                  .on_event = note_attached, .user = &is_there};
    peg_registry *theirs = NULL, *ours = NULL;
    peg_client_options at = {PEG_CLIENT_OPTIONS_INIT};
    peg_provider *provider = NULL;
    peg_gateway *gateway = NULL;
    peg_client *client = NULL;
    peg_script *script = NULL;
    peg_runner *run = NULL;
    peg_tool *tool = NULL;
    peg_turn *turn = NULL;
    peg_error e;

    sem_init(&is_there, 0, 0);
    if (peg_gateway_new(&(peg_gateway_config){PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_ERROR},
                        &gateway, &e) ||
        peg_gateway_listen(gateway, "127.0.0.1:0", &e) || peg_tool_new(&def, &tool, &e) ||
        (offer.address = at.address = peg_gateway_address(gateway), false) ||
        peg_registry_new(&tool, 1, &theirs, &e) || peg_client_new(&at, &client, &e) ||
        peg_provider_new(theirs, &offer, &provider, &e) || peg_provider_start(provider, &e) ||
        peg_script_new(peg_cstr(model), &script, &e) || peg_turn_new(&turn, &e) ||
        peg_turn_set_system(turn, peg_cstr("Be brief."), &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    sem_wait(&is_there); /* the provider is on its way to the gateway */
    if (peg_client_import(client, NULL, "weather", NULL, &ours, &e) ||
        (config.registry = ours, config.loop.engine = peg_script_engine(script), false) ||
        peg_runner_new(&config, &run, &e) || peg_runner_run(run, NULL, turn, NULL, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    peg_turn_free(turn), peg_runner_unref(run), peg_script_unref(script);
    peg_registry_unref(ours), peg_client_unref(client), peg_provider_free(provider);
    return peg_registry_unref(theirs), peg_tool_unref(tool), peg_gateway_free(gateway), 0;
}
