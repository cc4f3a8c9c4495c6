/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gates. A handler waits; its question goes to the client and the answer comes back:
 *
 *   handler's thread  peg_gate_wait -> mcp__on_gate -> mailbox     ... waits ...
 *   loop              mcp__ask_gate -> client -> mcp__answer_gate -> peg_gate_resolve
 */

#include <stdio.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/ask.h"
#include "mcp/source/internal.h"

void mcp__on_gate(peg_gate *gate, void *user)
{
    struct mcp__job *job = user;
    bool is_free;

    pthread_mutex_lock(&job->lock);
    is_free = !job->gate || peg_gate_is_settled(job->gate);
    if (is_free) {
        peg_gate_unref(job->gate);
        job->gate = peg_gate_ref(gate);
    }
    pthread_mutex_unlock(&job->lock);
    if (!is_free)
        peg_gate_reject(gate, "E_MCP_ASK", "the call waits at another gate: one at a time");
    else if (mcp__job_report(job, &(struct mcp__report){.kind = MCP__ASK}, (peg_str){"", 0},
                             (peg_str){"", 0}))
        peg_gate_reject(gate, "E_OUT_OF_MEMORY", "there is no memory to ask the client");
}

/* A reference, or NULL if none is open. */
static peg_gate *open_gate(struct mcp__job *job)
{
    peg_gate *gate;

    pthread_mutex_lock(&job->lock);
    gate = job->gate && !peg_gate_is_settled(job->gate) ? peg_gate_ref(job->gate) : NULL;
    pthread_mutex_unlock(&job->lock);
    return gate;
}

void mcp__ask_gate(struct mcp__job *job)
{
    peg_gate *gate = open_gate(job);
    peg_json_doc *question = NULL;

    if (gate) {
        job->n_gates++; /* a key is used once: asked again, it is another question */
        if (peg__gate_question(gate, job->n_gates, &question))
            peg_gate_reject(gate, "E_OUT_OF_MEMORY", "there is no memory to ask the client");
        else
            mcp_call_ask(job->call, peg_json_root(question));
    }
    peg_json_doc_free(question);
    peg_gate_unref(gate);
}

void mcp__answer_gate(struct mcp__job *job, const peg_json *answers, const char *reason)
{
    peg_gate *gate = open_gate(job);
    bool is_settled = true;

    if (!gate)
        return;
    if (!answers)
        peg_gate_reject(gate, "E_MCP_ASK", "%s", reason);
    else
        is_settled = peg__gate_take_answer(gate, answers);
    peg_gate_unref(gate);
    if (!is_settled)
        mcp__ask_gate(job);
}
