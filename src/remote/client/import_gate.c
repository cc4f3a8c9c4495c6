/* SPDX-License-Identifier: Apache-2.0 */

/* What an imported tool asks while it runs becomes a gate of the call that called it. */

#include "base/arena.h"
#include "base/error.h"
#include "core/context/context.h"
#include "pegboard/gate.h"
#include "remote/client/remote.h"
#include "json/json.h"

/* On the thread of the handler, which waits for the call. The strings are the document's. */
static peg_status pass_question(const peg_remote_question *question, void *user,
                                peg_json_doc **ret_answers, peg_error *reterr)
{
    struct peg__arena arena = {0};
    peg_ask *asks =
        peg__arena_alloc_zero(&arena, (peg_json_len(question->requests) + 1) * sizeof(*asks));
    size_t n = 0;
    peg_status status;

    if (!asks)
        return peg__fail_nomem(reterr);
    PEG_JSON_EACH_MEMBER (question->requests, key) {
        const peg_json *method = peg_json_get(key + 1, "method");

        asks[n++] =
            (peg_ask){.key = key->u.ptr,
                      .method = peg_json_kind_of(method) == PEG_JSON_STRING ? method->u.ptr : "",
                      .params = peg_json_get(key + 1, "params")};
    }
    status = peg_call_ask(user, asks, n, ret_answers, reterr);
    peg__arena_free(&arena);
    return status;
}

void remote__import_questions(peg_call *call, peg_remote_request *request)
{
    void *listener;

    if (!peg__ctx_gate_listener(peg_call_ctx(call), &listener))
        return;
    request->on_question = pass_question;
    request->question_user = call;
}
