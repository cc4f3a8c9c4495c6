/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call of an imported tool, on the thread of its handler: sends tools/call, passes progress on,
 * and asks where the server asks. A modern server asks with its answer, and the call is sent again
 * with what was answered; a legacy one sends a request meanwhile.
 */

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "mcp/client/internal.h"
#include "mcp/source/source.h"
#include "pegboard/gate.h"

enum { MAX_ASKS = 16 };

struct calling {
    peg_call *call;
    const struct mcp__imported *imported;
    const peg_json *args;
    bool can_be_asked;
    /* of the answer to the last attempt; NULL: none */
    peg_json_doc *answers;
    const peg_json *state;
};

/* ---- progress ---- */

static void say(const struct calling *k, const char *stream, peg_str text)
{
    const struct peg__listener *listener = peg__ctx_listener(peg_call_ctx(k->call));

    if (listener && text.len && peg__utf8_is_valid(text) && !memchr(text.ptr, '\0', text.len))
        (void)listener->say(k->call, stream, text);
}

static void pass_progress(const struct calling *k, const peg_json *params)
{
    const double progress = peg_json_double_or(peg_json_get(params, "progress"), 0);
    const double total = peg_json_double_or(peg_json_get(params, "total"), 0);
    const peg_json *message = peg_json_get(params, "message");
    const char *words = peg_json_kind_of(message) == PEG_JSON_STRING ? message->u.ptr : NULL;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);

    if (mcp_is_served(k->call)) {
        (void)peg_mcp_progress(k->call, progress, total, words);
        return;
    }
    peg__buf_printf(&text, "%g", progress);
    if (total > 0)
        peg__buf_printf(&text, "/%g", total);
    peg__buf_printf(&text, "%s%s\n", words ? " " : "", peg__or_empty(words));
    if (!text.status)
        say(k, "progress", peg__buf_view(&text));
    peg__buf_free(&text);
}

static void pass_log(const struct calling *k, const peg_json *params)
{
    const peg_json *data = peg_json_get(params, "data");
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_REPORT_BYTES);

    if (peg_json_kind_of(data) == PEG_JSON_STRING)
        peg__buf_str(&text, peg_json_str(data));
    else
        peg__json_write(peg__json_or_null(data), PEG_JSON_COMPACT, &text);
    peg__buf_putc(&text, '\n');
    if (!text.status)
        say(k, "log", peg__buf_view(&text));
    peg__buf_free(&text);
}

/* ---- questions of a legacy server ---- */

/* The answer of a person, or that there is none. */
static void write_answer(const struct calling *k, const peg_json *message, struct mcp__message *m)
{
    const peg_json *params = peg_json_get(message, "params");
    const peg_json *id = peg_json_get(message, "id");
    const peg_ask ask = {.key = "ask", .method = "elicitation/create", .params = params};
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES);
    peg_json_doc *answers = NULL;
    peg_error error;
    peg_status status = PEG_EUNSUPPORTED;

    if (k->can_be_asked)
        status = peg_call_ask(k->call, &ask, 1, &answers, &error);
    if (!status)
        peg__json_write(peg__json_or_null(peg_json_get(peg_json_root(answers), "ask")),
                        PEG_JSON_COMPACT, &text);
    if (!status && !text.status)
        mcp__write_response(m, id, peg__buf_view(&text));
    else
        mcp__write_response(
            m, id,
            peg__str(k->can_be_asked ? "{\"action\":\"cancel\"}" : "{\"action\":\"decline\"}"));
    peg__buf_free(&text);
    peg_json_doc_free(answers);
}

static void answer_question(const struct calling *k, const peg_json *message)
{
    peg_mcp_client *client = k->imported->client;
    struct mcp__message m = MCP__MESSAGE;

    write_answer(k, message, &m);
    if (!m.text.status)
        client->link->send(client, peg__buf_view(&m.text), false);
    mcp__message_free(&m);
}

static void on_note(struct mcp__exchange *x, const peg_json *message)
{
    const struct calling *k = x->user;
    const peg_str method = peg_json_str(peg_json_get(message, "method"));
    const peg_json *params = peg_json_get(message, "params");

    if (peg_json_get(message, "id"))
        answer_question(k, message);
    else if (peg__str_is(method, "notifications/progress"))
        pass_progress(k, params);
    else
        pass_log(k, params);
}

/* ---- questions of a modern server ---- */

static bool is_question(const peg_json *result)
{
    return peg__str_is(peg_json_str(peg_json_get(result, "resultType")), "input_required");
}

static peg_status fail_ask(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_EHOST, "E_MCP_ASK", "the MCP server asks %s", why);
}

static peg_status ask_all(struct calling *k, const peg_json *requests, peg_error *reterr)
{
    peg_ask asks[MAX_ASKS];
    size_t n = 0;

    if (!k->can_be_asked)
        return fail_ask(reterr, "a person for input, and no one can be asked here");
    if (peg_json_len(requests) > MAX_ASKS)
        return fail_ask(reterr, "more than 16 questions at once");
    PEG_JSON_EACH_MEMBER (requests, key) {
        if (!peg__str_is(peg_json_str(peg_json_get(key + 1, "method")), "elicitation/create"))
            return fail_ask(reterr, "for more than input of a person");
        asks[n++] = (peg_ask){.key = key->u.ptr,
                              .method = "elicitation/create",
                              .params = peg_json_get(key + 1, "params")};
    }
    return peg_call_ask(k->call, asks, n, &k->answers, reterr);
}

/* Keeps what the next attempt carries; `x` has the answer that it points into. */
static peg_status take_question(struct calling *k, const peg_json *result, peg_error *reterr)
{
    const peg_json *requests = peg_json_get(result, "inputRequests");

    k->answers = peg_json_doc_free(k->answers);
    k->state = peg_json_get(result, "requestState");
    if (peg_json_kind_of(requests) == PEG_JSON_OBJECT && peg_json_len(requests))
        return ask_all(k, requests, reterr);
    return k->state ? PEG_OK : fail_ask(reterr, "for input, and does not say for what");
}

/* ---- one attempt ---- */

static void write_call(const struct calling *k, const struct mcp__exchange *x,
                       struct mcp__message *m)
{
    const bool wants_progress = peg__ctx_listener(peg_call_ctx(k->call)) || mcp_is_served(k->call);

    mcp__open_request(m, x->id, x->method);
    mcp__put_request_meta(m, x->client, k->can_be_asked, wants_progress ? x->id : 0);
    peg__out_cmember(&m->out, "name", k->imported->name);
    peg__out_key(&m->out, "arguments");
    peg__out_value(&m->out, k->args);
    if (k->answers) {
        peg__out_key(&m->out, "inputResponses");
        peg__out_value(&m->out, peg_json_root(k->answers));
    }
    if (k->state) {
        peg__out_key(&m->out, "requestState");
        peg__out_value(&m->out, k->state);
    }
    mcp__close_request(m);
}

static void send_cancel(const struct mcp__exchange *x, const peg_error *why)
{
    struct mcp__message m = MCP__MESSAGE;

    if (x->client->link->is_http && x->client->era == MCP_MODERN)
        return; /* the end of its stream says it */
    mcp__open_request(&m, 0, "notifications/cancelled");
    peg__out_key(&m.out, "requestId");
    peg__out_integer(&m.out, x->id);
    peg__out_cmember(&m.out, "reason",
                     why->status == PEG_ETIMEOUT ? "the deadline has passed" : "canceled");
    mcp__close_request(&m);
    if (!m.text.status)
        x->client->link->send(x->client, peg__buf_view(&m.text), false);
    mcp__message_free(&m);
}

static peg_status attempt(struct calling *k, struct mcp__exchange *x, peg_error *reterr)
{
    const peg_json_doc *schema = k->imported->schema;
    struct peg__buf headers = PEG__BUF(PEG_LIMIT_MCP_IMPORT_HEADER_BYTES);
    struct mcp__message m = MCP__MESSAGE;
    peg_status status = mcp__exchange_begin(x, reterr);

    if (!status && schema)
        status = mcp__put_params(&headers, peg_json_root(schema), k->args, reterr);
    if (!status) {
        x->headers = peg__buf_view(&headers);
        write_call(k, x, &m);
        status = mcp__exchange_run(x, peg_call_ctx(k->call), &m.text, reterr);
        if (status && peg_ctx_check(peg_call_ctx(k->call), NULL))
            send_cancel(x, reterr);
    }
    mcp__message_free(&m);
    peg__buf_free(&headers);
    return status;
}

/* The answer outlives its exchange until the next one has come: it has the state. */
static const peg_json *keep_result(struct mcp__exchange *x, peg_json_doc **answer,
                                   peg_error *reterr)
{
    peg_json_doc_free(*answer);
    *answer = x->answer;
    x->answer = NULL;
    return mcp__read_result(*answer, reterr);
}

/* A session that ended took no call with it: the next one begins at once. */
static bool may_try_again(const struct calling *k, const struct mcp__exchange *x, bool *tried_again,
                          peg_error *reterr)
{
    if (!x->lost_session || *tried_again)
        return false;
    *tried_again = true;
    return !mcp__await_ready(x->client, peg_call_ctx(k->call), reterr);
}

static peg_status attempt_twice(struct calling *k, peg_json_doc **answer,
                                const peg_json **ret_result, peg_error *reterr)
{
    bool tried_again = false;
    peg_status status;
    bool goes_on;

    do {
        struct mcp__exchange x = {.client = k->imported->client,
                                  .is_call = true,
                                  .on_note = on_note,
                                  .user = k,
                                  .method = "tools/call",
                                  .name = k->imported->name,
                                  .is_repeatable = k->imported->is_repeatable};

        status = attempt(k, &x, reterr);
        *ret_result = status ? NULL : keep_result(&x, answer, reterr);
        status = *ret_result ? PEG_OK : reterr->status;
        mcp__exchange_end(&x);
        goes_on = status && may_try_again(k, &x, &tried_again, reterr);
    } while (goes_on);
    return status;
}

/* ---- the call ---- */

/* The model reads what it can do about it. */
static void fail_call(const struct calling *k, const peg_error *why)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    if (why->status == PEG_ENOMEM) {
        peg__call_out_of_memory(k->call);
        return;
    }
    peg__buf_puts(&sentence, why->message);
    if (!strcmp(why->code, "E_MCP_LOST"))
        peg__buf_puts(&sentence, k->imported->is_repeatable
                                     ? ". It is safe to call it again."
                                     : ". It may have taken effect: check before you retry.");
    peg__call_fail_because(k->call, why->code, &sentence);
}

void mcp__run_imported(peg_call *call, const peg_json *args, void *user)
{
    const struct mcp__imported *imported = user;
    void *listener_user;
    struct calling k = {.call = call, .imported = imported, .args = args};
    peg_json_doc *answer = NULL;
    const peg_json *result = NULL;
    unsigned round = 0;
    peg_error why;
    peg_status status;

    k.can_be_asked = peg__ctx_gate_listener(peg_call_ctx(call), &listener_user) != NULL;
    do {
        status = attempt_twice(&k, &answer, &result, &why);
        if (!status && is_question(result))
            status = ++round > PEG_LIMIT_MCP_IMPORT_ROUNDS
                         ? fail_ask(&why, "for input again and again: it was given up")
                         : take_question(&k, result, &why);
    } while (!status && is_question(result));
    if (status)
        fail_call(&k, &why);
    else
        mcp__reply_result(call, result, imported->has_output_schema);
    peg_json_doc_free(answer);
    peg_json_doc_free(k.answers);
}
