/* SPDX-License-Identifier: Apache-2.0 */

/* What a running tool asks: the host answers, and AnswerCall passes it on. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/client/remote.h"
#include "json/json.h"

/* Somebody else may have answered, or the call may be over: its stream tells what counts. */
static void pass_answer_on(struct remote__registry *registry,
                           Pegboard__V1__AnswerCallRequest *request)
{
    struct remote__fan fan = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_ANSWER_CALL],
        .request = &request->base,
        .registry = registry,
        .is_repeatable = true, /* the second is refused */
    };
    struct peg__arena arena = {0};

    (void)remote__unary(&fan, NULL, &arena, NULL);
    peg__arena_free(&arena);
}

static peg_status write_responses(const peg_json_doc *answers, struct peg__buf *out,
                                  peg_error *reterr)
{
    if (!answers || peg_json_kind_of(peg_json_root(answers)) != PEG_JSON_OBJECT)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "the answers are no object by key");
    peg__json_write(peg_json_root(answers), PEG_JSON_COMPACT, out);
    if (out->status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT", "the answer has more than 64 KiB");
    return out->status ? peg__fail_nomem(reterr) : PEG_OK;
}

static peg_status ask_host(const peg_remote_request *request, const char *call_id,
                           const Pegboard__V1__Question *question, struct peg__buf *out,
                           peg_error *reterr)
{
    const peg_str text = {(const char *)question->requests.data, question->requests.len};
    peg_json_doc *requests = NULL;
    peg_json_doc *answers = NULL;
    peg_status status = peg_json_parse(text, NULL, &requests, reterr);

    if (!status) {
        const peg_remote_question asked = {
            .call_id = call_id, .number = question->number, .requests = peg_json_root(requests)};

        status = request->on_question(&asked, request->question_user, &answers, reterr);
    }
    if (!status)
        status = write_responses(answers, out, reterr);
    peg_json_doc_free(answers);
    peg_json_doc_free(requests);
    return status;
}

peg_status remote__answer(struct remote__registry *registry, const peg_remote_request *request,
                          const char *call_id, const Pegboard__V1__Question *question,
                          peg_error *reterr)
{
    Pegboard__V1__AnswerCallRequest message = PEGBOARD__V1__ANSWER_CALL_REQUEST__INIT;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_QUESTION_BYTES);
    peg_error why = {.message = ""};
    const peg_status status = ask_host(request, call_id, question, &out, &why);

    message.call_id = peg__unconst(call_id);
    message.number = question->number;
    if (status) {
        message.refusal = why.message[0] ? why.message : peg__unconst("the caller does not answer");
    } else {
        message.responses.data = (uint8_t *)out.ptr;
        message.responses.len = out.len;
    }
    pass_answer_on(registry, &message);
    peg__buf_free(&out);
    return status == PEG_ENOMEM ? peg__fail_nomem(reterr) : PEG_OK;
}
