/* SPDX-License-Identifier: Apache-2.0 */

/* Built against what is installed, with pkg-config alone: an engine is made, and a turn that nobody
 * answers says so. */

#include <pegboard/engine.h>
#include <pegboard/runner.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const peg_model_config config = {PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT,
                                     .model.model = "m",    .base_url = "http://127.0.0.1:1/v1",
                                     .api_key_env = "",     .max_tries = 1};
    peg_runner_config runner_config = {PEG_RUNNER_CONFIG_INIT};
    peg_model *engine = NULL;
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error error;
    peg_status status = peg_model_new(&config, &engine, &error);

    runner_config.loop.engine = peg_model_engine(engine);
    if (!status)
        status = peg_runner_new(&runner_config, &runner, &error);
    if (!status)
        status = peg_turn_new(&turn, &error);
    if (!status)
        status = peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("hello"), &error);
    if (!status)
        status = peg_runner_run(runner, NULL, turn, &outcome, &error);
    if (!status || strcmp(error.cause, "E_ENGINE_TRANSPORT") != 0) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        return 1;
    }
    printf("%s %s\n", peg_turn_end_name(outcome.end), outcome.error.cause);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_model_unref(engine);
    return strcmp(outcome.error.cause, "E_ENGINE_TRANSPORT") != 0;
}
