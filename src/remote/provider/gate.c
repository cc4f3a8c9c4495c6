/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gates of running calls, which the caller answers:
 *
 *   handler's thread  peg_gate_wait -> on_gate -> message      ... waits ...
 *   the loop          review -> Input ... Answer -> the gate is settled
 *
 * Until there is an Answer, the Input is sent again on each new stream of the call. An answer that
 * does not fit is asked for again, as another question: the gateway keeps the first answer to each.
 * A gate that closes by itself is withdrawn.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/ask.h"
#include "pegboard/event.h"
#include "remote/provider/provider.h"
#include "json/json.h"

/* To the loop: a gate has opened or closed. */
struct news {
    struct net_message message; /* the first member */
    struct remote__prov_call *call;
};

/* ---- on the loop ---- */

static void forget_question(struct remote__prov_call *call)
{
    peg_gate_unref(call->asked);
    call->asked = NULL;
    peg__free(call->question);
    call->question = NULL;
    call->question_len = 0;
}

static void send_input(struct remote__prov_call *call, bool is_withdrawn)
{
    Pegboard__V1__Input input = PEGBOARD__V1__INPUT__INIT;

    if (!call->via || !call->via->is_welcome)
        return; /* the next stream */
    input.call_id = peg__unconst(call->face.call_id);
    input.attempt = call->face.attempt;
    input.number = call->n_questions;
    input.withdrawn = is_withdrawn;
    if (!is_withdrawn) {
        input.requests.data = (uint8_t *)call->question;
        input.requests.len = call->question_len;
    }
    remote__prov_send(call->via, PEGBOARD__V1__ATTACH_REQUEST__FRAME_INPUT, &input);
}

static void reject_asked(struct remote__prov_call *call, const char *why)
{
    peg_gate *gate = peg_gate_ref(call->asked);

    forget_question(call);
    peg_gate_reject(gate, "E_GATE_REMOTE", "%s", why);
    peg_gate_unref(gate);
}

void remote__prov_send_question(struct remote__prov_call *call)
{
    if (!call->asked || !call->via || !call->via->is_welcome)
        return;
    if (call->via->takes_input)
        send_input(call, false);
    else
        reject_asked(call, "the gateway cannot pass on questions: update it");
}

static bool write_question(struct remote__prov_call *call)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_QUESTION_BYTES);
    peg_json_doc *doc = NULL;

    if (peg__gate_question(call->asked, call->n_questions, &doc) == PEG_OK)
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &out);
    peg_json_doc_free(doc);
    if (out.len && peg__buf_take(&out, &call->question, &call->question_len, NULL) == PEG_OK)
        return true;
    peg__buf_free(&out);
    return false;
}

/* Takes the reference. */
static void ask_caller(struct remote__prov_call *call, peg_gate *gate)
{
    call->asked = gate;
    call->n_questions++;
    if (write_question(call))
        remote__prov_send_question(call);
    else
        reject_asked(call, "the question is larger than 64 KiB, or there is no memory for it");
}

/* A reference to the gate that waits, or NULL. */
static peg_gate *waiting_gate(struct remote__prov_call *call)
{
    peg_gate *gate;

    pthread_mutex_lock(&call->gate_lock);
    gate = call->gate && !peg_gate_is_settled(call->gate) ? peg_gate_ref(call->gate) : NULL;
    pthread_mutex_unlock(&call->gate_lock);
    return gate;
}

static void review(struct remote__prov_call *call)
{
    peg_gate *gate;

    if (call->asked && peg_gate_is_settled(call->asked)) {
        send_input(call, true);
        forget_question(call);
    }
    gate = call->is_done || call->asked ? NULL : waiting_gate(call);
    if (gate)
        ask_caller(call, gate);
}

static void on_news(struct net_message *message)
{
    struct news *news = (struct news *)message;

    review(news->call);
    remote__prov_call_unref(news->call);
    peg__free(news);
}

/* ---- on any thread ---- */

/* False: no memory, or the provider is gone. */
static bool post_news(struct remote__prov_call *call)
{
    struct remote__prov_link *link = call->link;
    struct news *news = peg__alloc_zero(1, sizeof(*news));
    bool is_posted;

    if (!news)
        return false;
    *news = (struct news){.message.fn = on_news, .call = remote__prov_call_ref(call)};
    pthread_mutex_lock(&link->lock);
    is_posted = link->loop != NULL;
    if (is_posted)
        net_loop_post(link->loop, &news->message);
    pthread_mutex_unlock(&link->lock);
    if (!is_posted) {
        remote__prov_call_unref(call);
        peg__free(news);
    }
    return is_posted;
}

static void on_gate(peg_gate *gate, void *user)
{
    struct remote__prov_call *call = user;
    bool is_free;

    pthread_mutex_lock(&call->gate_lock);
    is_free = !call->gate || peg_gate_is_settled(call->gate);
    if (is_free) {
        peg_gate_unref(call->gate);
        call->gate = peg_gate_ref(gate);
    }
    pthread_mutex_unlock(&call->gate_lock);
    if (!is_free)
        peg_gate_reject(gate, "E_GATE_REMOTE", "the call waits at another gate: one at a time");
    else if (!post_news(call))
        peg_gate_reject(gate, "E_GATE_REMOTE",
                        "the provider has ended, or there is no memory to ask");
}

/* Without memory the question stays open where it is asked, until the call ends. */
static void on_gate_event(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_GATE_CLOSED)
        (void)post_news(user);
}

/* The context holds the call, and so it may point to it. */
static peg_status open_gates(struct remote__prov_call *call)
{
    peg_ctx *heard = NULL;
    peg_ctx *asking = NULL;
    peg_status status = peg_ctx_with_events(call->ctx, on_gate_event, call, &heard, NULL);

    if (!status)
        status = peg_ctx_with_gates(heard, on_gate, call, &asking, NULL);
    peg_ctx_unref(heard);
    if (status)
        return status;
    peg_ctx_unref(call->ctx);
    call->ctx = asking;
    return PEG_OK;
}

/* A handler that waits on the loop would wait for itself. */
peg_status remote__prov_make_call(peg_provider *prov, const Pegboard__V1__Call *frame,
                                  struct remote__prov_call **ret_call)
{
    struct remote__prov_call *call = NULL;
    peg_status status = remote__prov_call_new(prov, frame, &call);

    if (!status && frame->can_be_asked && !prov->config.runs_inline)
        status = open_gates(call);
    if (!status) {
        *ret_call = call;
    } else if (call) {
        remote__prov_call_drop_ctx(call);
        remote__prov_call_unref(call);
    }
    return status;
}

/* ---- answers, on the loop ---- */

static void settle_asked(struct remote__prov_call *call, const Pegboard__V1__Answer *frame)
{
    const peg_str responses = {(const char *)frame->responses.data, frame->responses.len};
    peg_gate *gate = peg_gate_ref(call->asked);
    peg_json_doc *doc = NULL;
    bool is_settled = true;

    forget_question(call);
    if (!responses.len)
        peg_gate_reject(gate, "E_GATE_REMOTE", "%s",
                        frame->refusal[0] ? frame->refusal : "there is no answer");
    else if (peg_json_parse(responses, NULL, &doc, NULL))
        is_settled = false;
    else
        is_settled = peg__gate_take_answer(gate, peg_json_root(doc));
    peg_json_doc_free(doc);
    if (is_settled || peg_gate_is_settled(gate))
        peg_gate_unref(gate);
    else
        ask_caller(call, gate);
}

/* Of an earlier question: it was withdrawn, or the frame was sent twice. */
void remote__prov_take_answer(struct remote__prov_call *call, const Pegboard__V1__Answer *frame)
{
    if (call && call->asked && frame->number == call->n_questions)
        settle_asked(call, frame);
}
