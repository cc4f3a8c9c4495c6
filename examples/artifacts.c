/* SPDX-License-Identifier: Apache-2.0 */

/* A result too large for a prompt: the model gets a handle and asks for the lines it needs. */

#include <pegboard/pegboard.h>
#include <stdio.h>
#include <string.h>

static void read_log(peg_call *call, const peg_json *args, void *user)
{
    char log[500 * 32];
    size_t len = 0;

    (void)args;
    (void)user;
    for (int i = 1; i <= 500; i++)
        len += (size_t)snprintf(log + len, sizeof(log) - len, "%03d %s\n", i,
                                i % 207 ? "INFO request served" : "ERROR disk is full");
    peg_call_reply(call, (peg_str){log, len}); /* copied */
}

/* Prints what a model is shown of a result. The nonce in it is new each time, so it is masked. */
static peg_status show(const peg_record *record, peg_error *reterr)
{
    const char *nonce = peg_record_nonce(record);
    char *text = NULL;
    peg_status status = peg_render_result(record, NULL, &text, NULL, reterr);

    for (char *at = text; at && (at = strstr(at, nonce)); at += strlen(nonce))
        memset(at, '~', strlen(nonce));
    if (!status)
        printf("%s\n", text);
    peg_free(text);
    return status;
}

/* The model, as a script: look at the last result, make the next call. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    static const char *const calls[][3] = {
        {"c1", "read_log", "{}"},
        {"c2", "artifact_head", "{\"callId\": \"c1\", \"n\": 2}"},
        {"c3", "artifact_grep", "{\"callId\": \"c1\", \"pattern\": \"ERROR|FATAL\"}"}};
    const unsigned i = peg_dispatch_iteration(dispatch);
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_record *last = peg_block_record(peg_turn_at(turn, peg_turn_len(turn) - 1));
    peg_status status = last ? show(last, reterr) : PEG_OK;

    (void)user;
    if (status || i == sizeof(calls) / sizeof(calls[0]))
        return status; /* nothing asked for: the loop ends */
    printf("\n%s: %s %s\n", calls[i][0], calls[i][1], calls[i][2]);
    return peg_turn_add_call(turn, peg_cstr(calls[i][0]), peg_cstr(calls[i][1]),
                             peg_cstr(calls[i][2]), reterr);
}

int main(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "read_log", "Reads the log", .run = read_log};
    peg_tool *tool = NULL;
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = &tool, .n_tools = 1,
                                      .loop.engine.fn = model};
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error e;
    int failed = peg_tool_new(&def, &tool, &e) || peg_runner_new(&config, &runner, &e) ||
                 peg_turn_new(&turn, &e) ||
                 peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("What broke?"), &e) ||
                 peg_runner_run(runner, NULL, turn, &outcome, &e);
    if (failed)
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    else
        printf("\n%s after %u iterations\n", peg_turn_end_name(outcome.end), outcome.iterations);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_tool_unref(tool);
    return failed;
}
