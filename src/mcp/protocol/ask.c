/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input from the client while a call runs: forms for a person, samples of its model, its roots.
 *
 *   legacy  each question is a request of ours on the call's stream; its response has our id
 *   modern  the request ends with input_required, whose requestState names the call; a retry of the
 *           same request by the same principal brings answers, and gets the rest
 *
 * requestState is sealed: call, expiry, and a digest of principal, method and params, so that it
 * fits no other request. It is good once: a call that does not wait takes no answers.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/limits_mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

/* ---- what a client can be asked ---- */

enum {
    CAN_FORM = 1 << 0,
    CAN_URL = 1 << 1,
    CAN_SAMPLE = 1 << 2,
    CAN_SAMPLE_TOOLS = 1 << 3,
    CAN_ROOTS = 1 << 4,
    CAN_ALL = (1 << 5) - 1, /* of what no client can do: an unknown method */
};

static bool has_object(const peg_json *parent, const char *name)
{
    return peg_json_kind_of(peg_json_get(parent, name)) == PEG_JSON_OBJECT;
}

static unsigned abilities_of(const peg_json *capabilities)
{
    const peg_json *elicitation = peg_json_get(capabilities, "elicitation");
    const peg_json *sampling = peg_json_get(capabilities, "sampling");
    unsigned can = 0;

    if (has_object(capabilities, "elicitation")) {
        /* An empty one means forms, as it did when there was nothing else. */
        if (has_object(elicitation, "form") || !has_object(elicitation, "url"))
            can |= CAN_FORM;
        if (has_object(elicitation, "url"))
            can |= CAN_URL;
    }
    if (has_object(capabilities, "sampling"))
        can |= CAN_SAMPLE | (has_object(sampling, "tools") ? CAN_SAMPLE_TOOLS : 0);
    if (has_object(capabilities, "roots"))
        can |= CAN_ROOTS;
    return can;
}

static unsigned needs_of(const peg_json *request)
{
    const peg_str method = peg_json_str(peg_json_get(request, "method"));
    const peg_json *params = peg_json_get(request, "params");

    if (peg__str_is(method, "elicitation/create"))
        return peg__str_is(peg_json_str(peg_json_get(params, "mode")), "url") ? CAN_URL : CAN_FORM;
    if (peg__str_is(method, "sampling/createMessage"))
        return CAN_SAMPLE | (peg_json_get(params, "tools") ? CAN_SAMPLE_TOOLS : 0);
    return peg__str_is(method, "roots/list") ? CAN_ROOTS : CAN_ALL;
}

static void put_needs(struct peg__out *out, unsigned needs)
{
    peg__out_object(out);
    peg__out_key(out, "requiredCapabilities");
    peg__out_object(out);
    if (needs & (CAN_FORM | CAN_URL)) {
        peg__out_key(out, "elicitation");
        peg__out_raw(out, peg__str(!(needs & CAN_URL)    ? "{\"form\":{}}"
                                   : !(needs & CAN_FORM) ? "{\"url\":{}}"
                                                         : "{\"form\":{},\"url\":{}}"));
    }
    if (needs & (CAN_SAMPLE | CAN_SAMPLE_TOOLS)) {
        peg__out_key(out, "sampling");
        peg__out_raw(out, peg__str(needs & CAN_SAMPLE_TOOLS ? "{\"tools\":{}}" : "{}"));
    }
    if (needs & CAN_ROOTS) {
        peg__out_key(out, "roots");
        peg__out_raw(out, peg__str("{}"));
    }
    peg__out_end_object(out);
    peg__out_end_object(out);
}

/* ---- requestState ---- */

/* Of who asks for what: a retry has the same. */
static bool digest_request(const struct mcp__request *rq, const char *principal, char ret_hex[65])
{
    static const char *const members[] = {"name", "uri", "arguments"};
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char digest[PEG_SHA256_BYTES];
    bool is_made;

    peg__buf_printf(&text, "%zu:%s", strlen(principal), principal);
    peg__buf_str(&text, rq->method);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const peg_json *value = peg_json_get(rq->params, members[i]);
        PEG_CLEANUP(peg__freep) char *canonical = NULL;

        if (value && peg_json_canonical(value, &canonical, NULL, NULL))
            text.status = PEG_ENOMEM;
        peg__buf_printf(&text, "\n%s", canonical ? canonical : "");
    }
    is_made = !text.status && peg__sha256(peg__buf_view(&text), digest);
    peg__buf_free(&text);
    if (is_made)
        peg__hex(digest, sizeof(digest), ret_hex);
    return is_made;
}

enum { STATE_BYTES = 32 + 1 + 20 + 1 + 64 }; /* call, expiry, digest */

static void put_state(struct peg__out *out, struct mcp_call *call)
{
    const struct mcp__request *rq = &call->request;
    char plain[STATE_BYTES + 1];
    char sealed[STATE_BYTES + PEG_SEAL_EXTRA];
    char text[(sizeof(sealed) + 2) / 3 * 4 + 1];
    char digest[PEG_SHA256_HEX];
    int len;

    if (!digest_request(rq, call->principal, digest)) {
        out->buf->status = PEG_ENOMEM;
        return;
    }
    len = snprintf(plain, sizeof(plain), "%s %" PRId64 " %s", call->id, call->expires_ms, digest);
    if (!peg__seal(call->server->secret, peg__strn(plain, (size_t)len), sealed)) {
        out->buf->status = PEG_ENOMEM;
        return;
    }
    peg__base64_encode(peg__strn(sealed, (size_t)len + PEG_SEAL_EXTRA), text);
    peg__out_cmember(out, "requestState", text);
}

/* The call that a state names, if this request may answer it. */
static struct mcp_call *find_waiting(const struct mcp__request *rq, peg_str state)
{
    struct mcp_server *server = rq->peer->server;
    char sealed[(STATE_BYTES + PEG_SEAL_EXTRA + 2) / 3 * 4 + 4];
    char plain[sizeof(sealed) + 1];
    char digest[PEG_SHA256_HEX];
    size_t len = 0;
    struct mcp_call *call;

    if (peg__base64_bytes(state.len) > sizeof(sealed) || !peg__base64_decode(state, sealed, &len) ||
        !peg__unseal(server->secret, peg__strn(sealed, len), plain))
        return NULL;
    plain[len - PEG_SEAL_EXTRA] = '\0';
    call = mcp__find_call(server, peg__strn(plain, strcspn(plain, " ")));
    if (!call || !call->expires_ms || call->expires_ms <= server->now_ms || call->request.peer ||
        !digest_request(rq, rq->peer->principal, digest) || !strstr(plain, digest))
        return NULL;
    return call;
}

/* ---- asking ---- */

static bool has_answer(const struct mcp_call *call, peg_str key)
{
    return call->answers && peg_json_get_str(peg_json_root(call->answers), key);
}

void mcp__put_asked(struct peg__out *out, const struct mcp_call *call)
{
    PEG_JSON_EACH_MEMBER (peg_json_root(call->asked), key) {
        if (!has_answer(call, peg_json_str(key))) {
            peg__out_key_str(out, peg_json_str(key));
            peg__out_value(out, key + 1);
        }
    }
}

static void ask_modern(struct mcp_call *call)
{
    struct mcp__request *rq = &call->request;
    struct peg__out *out = mcp__open_result(rq, "input_required");

    peg__out_key(out, "inputRequests");
    peg__out_object(out);
    mcp__put_asked(out, call);
    peg__out_end_object(out);
    put_state(out, call);
    mcp__send_result(rq, (peg_str){"", 0});
    mcp__detach_call(call);
}

/* The URL mode of 2025-11-25 has an id that later revisions dropped. */
static void put_legacy_params(struct peg__out *out, const struct mcp_call *call,
                              const peg_json *params)
{
    peg__out_object(out);
    PEG_JSON_EACH_MEMBER (params, name) {
        peg__out_key_str(out, peg_json_str(name));
        peg__out_value(out, name + 1);
    }
    if (peg__str_is(peg_json_str(peg_json_get(params, "mode")), "url") &&
        !peg_json_get(params, "elicitationId")) {
        peg__out_cmember(out, "elicitationId", call->id);
    }
    peg__out_end_object(out);
}

static void ask_legacy(struct mcp_call *call)
{
    struct mcp__request *rq = &call->request;

    PEG_JSON_EACH_MEMBER (peg_json_root(call->asked), key) {
        const peg_json *params = peg_json_get(key + 1, "params");
        struct peg__buf id = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
        struct peg__out *out = mcp__open(rq->peer);

        peg__buf_printf(&id, "%s:", call->id);
        peg__buf_str(&id, peg_json_str(key));
        peg__out_member(out, "id", peg__buf_view(&id));
        peg__out_member(out, "method", peg_json_str(peg_json_get(key + 1, "method")));
        if (params) {
            peg__out_key(out, "params");
            put_legacy_params(out, call, params);
        }
        if (id.status)
            out->buf->status = id.status;
        peg__buf_free(&id);
        rq->has_streamed = true;
        mcp__send(rq->peer, &(struct mcp_sent){.stream = rq->stream});
    }
}

static void give_up(struct mcp_call *call, const char *reason)
{
    struct mcp_source *source = call->server->config.source;

    mcp__drop_ask(call);
    source->ops->answer(source, call, NULL, reason);
}

/* The client cannot be asked: a modern one learns what it lacks, and that is the end. */
static void refuse_to_ask(struct mcp_call *call, unsigned missing)
{
    struct mcp__request *rq = &call->request;
    struct peg__buf data = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    struct peg__out out = {.buf = &data};

    if (rq->era == MCP_LEGACY || missing == CAN_ALL) {
        give_up(call, "the client cannot be asked for this");
        return;
    }
    put_needs(&out, missing);
    mcp__send_error(rq, MCP_MISSING_CAPABILITY,
                    peg__str("the request needs a capability that the client did not declare"),
                    peg__buf_view(&data));
    peg__buf_free(&data);
    mcp__cancel_call(call, "the client cannot be asked for what the call needs");
}

/* Of what is asked, what the client did not declare. */
static unsigned missing_of(const struct mcp_call *call)
{
    unsigned needs = 0;

    PEG_JSON_EACH_MEMBER (peg_json_root(call->asked), key)
        needs |= needs_of(key + 1);
    return needs == CAN_ALL ? CAN_ALL : needs & ~abilities_of(call->request.capabilities);
}

/* Sends what is asked and has no answer to the client. */
static void ask_client(struct mcp_call *call)
{
    struct mcp__request *rq = &call->request;
    const unsigned missing = missing_of(call);

    if (missing) {
        refuse_to_ask(call, missing);
        return;
    }
    call->expires_ms = call->server->now_ms + call->server->config.wait_ms;
    if (rq->era == MCP_MODERN)
        ask_modern(call);
    else
        ask_legacy(call);
}

void mcp__drop_ask(struct mcp_call *call)
{
    call->asked = peg_json_doc_free(call->asked);
    call->answers = peg_json_doc_free(call->answers);
    call->expires_ms = 0;
}

void mcp_call_ask(struct mcp_call *call, const peg_json *requests)
{
    if (call->is_canceled)
        return;
    mcp__drop_ask(call);
    if (peg__json_copy(requests, &call->asked, NULL)) {
        give_up(call, "the server is out of memory");
        return;
    }
    if (call->request.peer)
        ask_client(call);
    else if (call->task && missing_of(call)) /* else the client finds it when it asks */
        give_up(call, "the client cannot be asked for this");
}

void mcp__expire_ask(struct mcp_call *call)
{
    if (call->request.peer)
        give_up(call, "the answer did not come in time");
    else
        mcp__cancel_call(call, "the answer did not come in time");
}

/* ---- answers ---- */

static bool is_complete(const struct mcp_call *call)
{
    PEG_JSON_EACH_MEMBER (peg_json_root(call->asked), key) {
        if (!has_answer(call, peg_json_str(key)))
            return false;
    }
    return true;
}

/* Those that were asked for, the old ones first. */
static peg_status merge_answers(struct mcp_call *call, const peg_json *answers)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *merged = NULL;
    peg_status status;

    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (peg_json_root(call->asked), key) {
        const peg_str name = peg_json_str(key);
        const peg_json *old = peg_json_get_str(peg_json_root(call->answers), name);
        const peg_json *answer = old ? old : peg_json_get_str(answers, name);

        if (peg_json_kind_of(answer) == PEG_JSON_OBJECT) {
            peg_json_add_key(b, name);
            peg_json_add_copy(b, answer);
        }
    }
    peg_json_close(b);
    status = peg_json_builder_finish(b, &merged, NULL);
    if (!status) {
        peg_json_doc_free(call->answers);
        call->answers = merged;
    }
    return status;
}

void mcp__give_answers(struct mcp_call *call, const peg_json *answers)
{
    struct mcp_source *source = call->server->config.source;
    peg_json_doc *complete;

    if (!call->asked)
        return;
    if (merge_answers(call, answers)) {
        give_up(call, "the server is out of memory");
        return;
    }
    if (!is_complete(call)) {
        if (call->request.peer && call->request.era == MCP_MODERN)
            ask_client(call);
        return;
    }
    complete = call->answers;
    call->answers = NULL;
    mcp__drop_ask(call);
    source->ops->answer(source, call, peg_json_root(complete), NULL);
    peg_json_doc_free(complete);
}

bool mcp__take_retry(struct mcp__request *rq)
{
    const peg_json *state = peg_json_get(rq->params, "requestState");
    struct mcp_call *call;
    struct mcp__request taken = *rq;

    if (rq->era != MCP_MODERN || !state)
        return false;
    call = find_waiting(rq, peg_json_str(state));
    if (!call) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "requestState is not valid for this request, was used, or has expired: "
                         "send the request again without it");
        return true;
    }
    taken.waiter = MCP__CALL;
    mcp__request_free(&call->request);
    call->request = taken;
    call->request.doc = NULL;
    if (mcp__add_request(&call->request)) {
        call->request.peer = NULL;
        mcp__send_errorf(rq, MCP_INVALID_REQUEST,
                         "the id is in use by a request that has no answer yet: take another one");
        return true;
    }
    call->request.doc = rq->doc;
    rq->doc = NULL;
    mcp__give_answers(call, peg_json_get(call->request.params, "inputResponses"));
    return true;
}

void mcp__take_response(struct mcp_peer *peer, const peg_json *id, const peg_json *message)
{
    const peg_str text = peg_json_str(id);
    const peg_json *result = peg_json_get(message, "result");
    struct mcp_call *call = NULL;
    peg_json_builder *b;
    peg_json_doc *answer = NULL;

    if (text.len > 33)
        call = mcp__find_call(peer->server, peg__strn(text.ptr, 32));
    if (!call || call->request.peer != peer || !call->asked)
        return; /* late, or none of ours */
    if (peg_json_kind_of(result) != PEG_JSON_OBJECT) {
        give_up(call, "the client answered with an error");
        return;
    }
    b = peg_json_builder_new();
    peg_json_open_object(b);
    peg_json_add_key(b, peg__str_from(text, 33));
    peg_json_add_copy(b, result);
    peg_json_close(b);
    if (peg_json_builder_finish(b, &answer, NULL))
        give_up(call, "the server is out of memory");
    else
        mcp__give_answers(call, peg_json_root(answer));
    peg_json_doc_free(answer);
}
