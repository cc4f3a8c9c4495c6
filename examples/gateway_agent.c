/* SPDX-License-Identifier: Apache-2.0 */
/* An agent with a real model, whose tools run in other processes, behind a gateway. */
#include <pegboard/client.h>
#include <pegboard/engine.h>
#include <pegboard/pegboard.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *address = getenv("PEGBOARD_REGISTRY"), *key = getenv("OPENAI_API_KEY");
    const peg_client_options at = {PEG_CLIENT_OPTIONS_INIT,
                                   .address = address ? address : "127.0.0.1:9090"};
    peg_model_config model = {PEG_MODEL_CONFIG_INIT, PEG_VENDOR_OPENAI_CHAT,
                              .api_key_env = key ? NULL : ""};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT};
    peg_client *client = NULL;
    peg_model *engine = NULL;
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_str answer;
    peg_error e;

    if (argc != 4)
        return fprintf(stderr, "usage: [OPENAI_API_KEY=...] gateway_agent URL MODEL QUESTION\n"), 2;
    model.base_url = argv[1], model.model.model = argv[2];
    if (peg_client_new(&at, &client, &e) || peg_model_new(&model, &engine, &e) ||
        peg_client_import(client, NULL, "**", NULL, &config.registry, &e) ||
        (config.loop.engine = peg_model_engine(engine), peg_runner_new(&config, &runner, &e)) ||
        peg_turn_new(&turn, &e) || peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr(argv[3]), &e) ||
        peg_runner_run(runner, NULL, turn, NULL, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    answer = peg_block_text(peg_turn_last(turn, PEG_BLOCKS_MESSAGES));
    printf("%.*s\n", (int)answer.len, answer.ptr);
    peg_turn_free(turn), peg_runner_unref(runner), peg_registry_unref(config.registry);
    return peg_model_unref(engine), peg_client_unref(client), 0;
}
