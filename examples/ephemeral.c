/* SPDX-License-Identifier: Apache-2.0 */

/* A tool that is lent for one task: gone when ack returns, and never seen by the next turn. */

#include <pegboard/pegboard.h>
#include <stdio.h>

static void pay_bill(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("paid"));
}

static void show(const char *when, peg_dispatch *dispatch)
{
    const bool can_pay = peg_registry_has(peg_dispatch_registry(dispatch), peg_cstr("pay"));

    printf("  iteration %u, %-10s the model can%s pay\n", peg_dispatch_iteration(dispatch) + 1,
           when, can_pay ? "" : "not");
}

/* A middleware of the dispatch: lends a tool to this dispatch alone. */
static peg_status lend(peg_dispatch *dispatch, peg_middleware_next *next, void *user, peg_error *e)
{
    peg_status status = PEG_OK;

    show("at first:", dispatch);
    if (peg_dispatch_iteration(dispatch) == 0)
        status = peg_registry_register(peg_dispatch_registry(dispatch), user, false, e);
    return status ? status : peg_middleware_run_next(next, e);
}

/* The model, as a script: call the tool, then say that it is done. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status;

    (void)user;
    show("then:", dispatch);
    if (peg_dispatch_iteration(dispatch) == 0)
        return peg_turn_add_call(turn, peg_cstr("c1"), peg_cstr("pay"), peg_cstr("{}"), reterr);
    status = peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr("Paid."), reterr);
    if (!status)
        status = peg_dispatch_ack(dispatch, reterr); /* else the loop does it, a moment later */
    show("after ack:", dispatch);
    return status;
}

int main(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "pay", .description = "Pays the bill",
                              .run = pay_bill, .ephemeral = true};
    peg_tool *pay = NULL;
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error e;
    int failed = peg_tool_new(&def, &pay, &e);
    const peg_dispatch_middleware input = {.run = lend, .user = pay};
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = model,
                                      .loop.input = &input, .loop.n_input = 1};

    failed = failed || peg_runner_new(&config, &runner, &e) || peg_turn_new(&turn, &e) ||
             peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Pay, please."), &e);
    for (int i = 1; i <= 2 && !failed; i++) {
        printf("turn %d\n", i);
        failed = peg_runner_run(runner, NULL, turn, &outcome, &e);
        if (!failed)
            printf("  ack after %u iterations\n", outcome.iterations);
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_tool_unref(pay);
    return failed;
}
