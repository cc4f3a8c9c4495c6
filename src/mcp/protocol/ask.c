/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input from the client while a call runs: forms for a person, samples of its model, its roots.
 *
 *   legacy  each question is a request of ours on the call's stream; its response has our id
 *   modern  the request ends with input_required, whose requestState names the call; a retry of the
 *           same request by the same principal brings answers, and gets the rest
 *
 * requestState is sealed: call, expiry, and a digest of principal, method and params, so that it
 * fits no other request. It is good once: a call that does not wait takes no answers. One that was
 * asked apart is named by its source's token instead, and its source knows what is good once.
 *
 * A modern client that knows what will be asked may answer with its first request: those answers
 * count for the first question that has their keys.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

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

/* call, expiry, digest; or APART, the time of expiry, digest, token */
enum { STATE_BYTES = 32 + 1 + 20 + 1 + 64 + 1 + MCP_TOKEN_BYTES };
#define APART "apart"

static const char PURPOSE[] = "requestState of MCP";

/* `token` "": by the call's id. */
static void put_state(struct peg__out *out, struct mcp_call *call, peg_str token)
{
    const struct mcp_server *server = call->server;
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
    if (token.len)
        len = snprintf(plain, sizeof(plain), APART " %" PRId64 " %s %.*s",
                       server->wall_ms + server->config.wait_ms, digest, PEG_ARG(token));
    else
        len =
            snprintf(plain, sizeof(plain), "%s %" PRId64 " %s", call->id, call->expires_ms, digest);
    if (!peg__seal(server->secret, PURPOSE, peg__strn(plain, (size_t)len), sealed)) {
        out->buf->status = PEG_ENOMEM;
        return;
    }
    peg__base64_encode(peg__strn(sealed, (size_t)len + PEG_SEAL_EXTRA), text);
    peg__out_cmember(out, "requestState", text);
}

enum { SEALED_BYTES = (STATE_BYTES + PEG_SEAL_EXTRA + 2) / 3 * 4 + 4 };

/* False: it is none of ours, or was changed. */
static bool open_state(const struct mcp_server *server, peg_str state,
                       char ret_plain[SEALED_BYTES + 1])
{
    char sealed[SEALED_BYTES];
    size_t len = 0;

    if (peg__base64_bytes(state.len) > sizeof(sealed) || !peg__base64_decode(state, sealed, &len) ||
        len < PEG_SEAL_EXTRA ||
        !peg__unseal(server->secret, PURPOSE, peg__strn(sealed, len), ret_plain))
        return false;
    ret_plain[len - PEG_SEAL_EXTRA] = '\0';
    return true;
}

/* What was asked apart, if this request may answer it: rq->resumed. */
static bool resume(struct mcp__request *rq, const char *plain)
{
    const char *token = strrchr(plain, ' ');
    char digest[PEG_SHA256_HEX];

    if (strncmp(plain, APART " ", sizeof(APART)) != 0 ||
        strtoll(plain + sizeof(APART), NULL, 10) <= rq->peer->server->wall_ms ||
        !digest_request(rq, rq->peer->principal, digest) || !strstr(plain, digest) || !token)
        return false;
    snprintf(rq->resumed, sizeof(rq->resumed), "%s", token + 1);
    return true;
}

/* The call that a state names, if this request may answer it. */
static struct mcp_call *find_waiting(const struct mcp__request *rq, const char *plain)
{
    struct mcp_server *server = rq->peer->server;
    char digest[PEG_SHA256_HEX];
    struct mcp_call *call;

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

static void ask_modern(struct mcp_call *call, peg_str token)
{
    struct mcp__request *rq = &call->request;
    struct peg__out *out = mcp__open_result(rq, "input_required");

    peg__out_key(out, "inputRequests");
    peg__out_object(out);
    mcp__put_asked(out, call);
    peg__out_end_object(out);
    put_state(out, call, token);
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

        peg__buf_printf(&id, "%s%s:", peg__or_empty(call->server->config.ask_prefix), call->id);
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
        mcp__send(rq->peer, &(struct mcp_sent){.stream = rq->stream, .is_question = true});
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

    if (rq->era == MCP_LEGACY || missing == MCP__CAN_ALL) {
        give_up(call, "the client cannot be asked for this");
        return;
    }
    mcp__put_needs(&out, missing);
    mcp__send_error(rq, MCP_MISSING_CAPABILITY,
                    peg__str("the request needs a capability that the client did not declare"),
                    peg__buf_view(&data));
    peg__buf_free(&data);
    mcp__cancel_call(call, "the client cannot be asked for what the call needs");
}

/* Requests without the optional ones that the client cannot be asked. */
static peg_status copy_asked(const struct mcp_call *call, const peg_json *requests,
                             peg_json_doc **ret_asked)
{
    const unsigned can = call->request.can;
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (requests, key) {
        const peg_json *params = peg_json_get(key + 1, "params");

        if (peg_json_is_true(peg_json_get(key + 1, "optional")) && (mcp__needs_of(key + 1) & ~can))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_open_object(b);
        peg_json_add_key(b, peg__str("method"));
        peg_json_add_copy(b, peg_json_get(key + 1, "method"));
        if (params) {
            peg_json_add_key(b, peg__str("params"));
            peg_json_add_copy(b, params);
        }
        peg_json_close(b);
    }
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_asked, NULL);
}

/* Of these requests, what the client did not declare. */
static unsigned missing_for(const struct mcp_call *call, const peg_json *requests)
{
    unsigned needs = 0;

    PEG_JSON_EACH_MEMBER (requests, key)
        needs |= mcp__needs_of(key + 1);
    return needs == MCP__CAN_ALL ? MCP__CAN_ALL : needs & ~call->request.can;
}

static unsigned missing_of(const struct mcp_call *call)
{
    return missing_for(call, peg_json_root(call->asked));
}

peg_status mcp_call_select(const struct mcp_call *call, const peg_json *requests,
                           peg_json_doc **ret_asked)
{
    peg_json_doc *asked = NULL;

    if (copy_asked(call, requests, &asked))
        return PEG_ENOMEM;
    if (missing_for(call, peg_json_root(asked))) {
        peg_json_doc_free(asked);
        return PEG_EINVAL;
    }
    *ret_asked = asked;
    return PEG_OK;
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
    if (rq->is_lost) {
        give_up(call, "the client's stream broke, so it cannot be asked");
        return;
    }
    call->expires_ms = call->server->now_ms + call->server->config.wait_ms;
    if (rq->era == MCP_MODERN)
        ask_modern(call, (peg_str){"", 0});
    else
        ask_legacy(call);
}

void mcp__drop_ask(struct mcp_call *call)
{
    call->asked = peg_json_doc_free(call->asked);
    call->answers = peg_json_doc_free(call->answers);
    call->expires_ms = 0;
}

/* ---- answers that are there ---- */

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

static void hand_answers(struct mcp_call *call)
{
    struct mcp_source *source = call->server->config.source;
    peg_json_doc *complete = call->answers;

    call->answers = NULL;
    mcp__drop_ask(call);
    source->ops->answer(source, call, peg_json_root(complete), NULL);
    peg_json_doc_free(complete);
}

/* True: nothing is left to be asked, and the source has its answers. */
static bool is_answered_before(struct mcp_call *call)
{
    const peg_json *given = peg_json_get(call->request.params, "inputResponses");

    if (call->has_given || call->request.era != MCP_MODERN || call->face.resumed.len)
        given = NULL;
    call->has_given = true;
    if (merge_answers(call, given)) { /* then it is asked */
        call->answers = peg_json_doc_free(call->answers);
        return false;
    }
    if (!is_complete(call))
        return false;
    hand_answers(call);
    return true;
}

/* ---- what the source asks ---- */

void mcp_call_ask(struct mcp_call *call, const peg_json *requests)
{
    if (call->is_canceled)
        return;
    mcp__drop_ask(call);
    if (copy_asked(call, requests, &call->asked)) {
        give_up(call, "the server is out of memory");
        return;
    }
    if (is_answered_before(call))
        return;
    if (call->request.peer)
        ask_client(call);
    else if (call->task && missing_of(call)) /* else the client finds it when it asks */
        give_up(call, "the client cannot be asked for this");
}

bool mcp_call_ask_apart(struct mcp_call *call, const peg_json *requests, peg_str token)
{
    unsigned missing;

    if (call->is_canceled)
        return false;
    mcp__drop_ask(call);
    if (!call->request.peer || call->request.era != MCP_MODERN || token.len > MCP_TOKEN_BYTES ||
        copy_asked(call, requests, &call->asked)) {
        give_up(call, "the client cannot be asked, or the server is out of memory");
        return false;
    }
    if (is_answered_before(call))
        return false;
    call->answers = peg_json_doc_free(call->answers); /* the retry has them all */
    missing = missing_of(call);
    if (missing) {
        refuse_to_ask(call, missing);
        return false;
    }
    ask_modern(call, token);
    mcp__drop_call(call);
    return true;
}

void mcp__expire_ask(struct mcp_call *call)
{
    if (call->request.peer)
        give_up(call, "the answer did not come in time");
    else
        mcp__cancel_call(call, "the answer did not come in time");
}

/* ---- answers ---- */

void mcp__give_answers(struct mcp_call *call, const peg_json *answers)
{
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
    hand_answers(call);
}

bool mcp__take_retry(struct mcp__request *rq)
{
    const peg_json *state = peg_json_get(rq->params, "requestState");
    struct mcp_call *call = NULL;
    struct mcp__request taken = *rq;
    char plain[SEALED_BYTES + 1];

    if (rq->era != MCP_MODERN || !state)
        return false;
    if (open_state(rq->peer->server, peg_json_str(state), plain)) {
        if (resume(rq, plain))
            return false;
        call = find_waiting(rq, plain);
    }
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
    call->has_given = true;
    mcp__give_answers(call, peg_json_get(call->request.params, "inputResponses"));
    return true;
}

void mcp__take_response(struct mcp_peer *peer, const peg_json *id, const peg_json *message)
{
    const peg_str prefix = peg__str(peg__or_empty(peer->server->config.ask_prefix));
    const peg_str whole = peg_json_str(id);
    const bool is_ours = whole.len > prefix.len && memcmp(whole.ptr, prefix.ptr, prefix.len) == 0;
    const peg_str text = is_ours ? peg__str_from(whole, prefix.len) : (peg_str){"", 0};
    const peg_json *result = peg_json_get(message, "result");
    struct mcp_call *call = NULL;
    peg_json_builder *b;
    peg_json_doc *answer = NULL;

    if (text.len > 33)
        call = mcp__find_call(peer->server, peg__strn(text.ptr, 32));
    if (!call || !call->request.peer || !mcp__is_same_client(peer, call->request.peer) ||
        !call->asked)
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

/* The source learns it, and may end nothing meanwhile but the call itself. */
void mcp_peer_refuse(struct mcp_peer *peer, const char *reason)
{
    struct mcp_call *next;

    peer->abilities = 0;
    for (struct mcp_call *call = peer->server->calls; call; call = next) {
        next = call->next;
        if (call->request.peer != peer)
            continue;
        call->request.can = 0;
        if (call->asked)
            give_up(call, reason);
    }
}
