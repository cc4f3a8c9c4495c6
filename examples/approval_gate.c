/* SPDX-License-Identifier: Apache-2.0 */

/* A person decides: the handler asks and waits, another thread answers. */

#include <pegboard/pegboard.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static peg_gate *asked; /* on its way from on_gate to the person; NULL: go home */
static sem_t rang;

/* Asks before the side effect, so that a denial leaves nothing behind. */
static void deploy(peg_call *call, const peg_json *args, void *user)
{
    const peg_gate_def question = {PEG_GATE_DEF_INIT, .reason = "Deploy?", .payload = args};
    peg_error e;
    (void)user;
    if (peg_gate_wait(peg_call_ctx(call), &question, NULL, &e))
        peg_call_fail_with(call, &e); /* rejected, or canceled */
    else
        peg_call_reply(call, peg_cstr("deployed"));
}

/* Hears of a gate on the thread that is going to wait there, so it only passes it on. */
static void on_gate(peg_gate *gate, void *user)
{
    (void)user;
    asked = peg_gate_ref(gate);
    sem_post(&rang);
}

static void *person(void *user)
{
    for (int n = 0; sem_wait(&rang) == 0 && asked; n++) {
        peg_gate *gate = asked;
        printf("%s %s\n", peg_gate_reason(gate), n == 0 ? "Yes." : "No.");
        if (n == 0)
            peg_gate_resolve(gate, peg_gate_payload(gate), NULL); /* with any JSON value */
        else
            peg_gate_reject(gate, "E_DENIED", "not on a Friday");
        peg_gate_unref(gate);
    }
    return user;
}

int main(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "deploy", "Deploys", .run = deploy};
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("deploy")};
    peg_tool *tool;
    peg_registry *tools;
    peg_ctx *root, *heard, *ctx;
    pthread_t thread;
    peg_error e = {.code = "E_THREAD", .message = "there is no thread for the person"};
    if (peg_tool_new(&def, &tool, &e) || peg_registry_new(&tool, 1, &tools, &e) ||
        peg_ctx_new(&root, &e) || peg_ctx_with_gates(root, on_gate, NULL, &heard, &e) ||
        peg_ctx_with_registry(heard, tools, &ctx, &e) || sem_init(&rang, 0, 0) ||
        pthread_create(&thread, NULL, person, NULL))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    for (int i = 0; i < 2; i++) {
        peg_record *record;
        peg_str answer;
        if (peg_call_run(ctx, &request, NULL, &record, &e) ||
            peg_record_answer(record, &answer, &e))
            return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
        printf("%.*s\n", (int)answer.len, answer.ptr);
        peg_record_unref(record);
    }
    asked = NULL;
    sem_post(&rang);
    pthread_join(thread, NULL);
    peg_ctx_unref(ctx);
    peg_ctx_unref(heard);
    peg_ctx_unref(root);
    peg_registry_unref(tools);
    peg_tool_unref(tool);
    return 0;
}
