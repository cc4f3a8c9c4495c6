/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One client. Each message is judged by itself: a request with modern metadata is a modern one,
 * whatever came before it on the same pipe; all others are legacy.
 */

#include "base/error.h"
#include "base/limits_mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

enum { LEGACY = 1 << MCP_LEGACY, MODERN = 1 << MCP_MODERN, BOTH = LEGACY | MODERN };

static const struct method {
    const char *name;
    int eras;
    unsigned offer;   /* what the source must offer for it; 0: nothing */
    bool is_of_tasks; /* needs tasks */
    mcp__method_fn *run;
} methods[] = {
    {"initialize", LEGACY, 0, false, mcp__initialize},
    {"ping", LEGACY, 0, false, mcp__ping},
    {"server/discover", MODERN, 0, false, mcp__discover},
    {"tools/list", BOTH, MCP_OFFERS_TOOLS, false, mcp__list_tools},
    {"tools/call", BOTH, MCP_OFFERS_TOOLS, false, mcp__call_tool},
    {"resources/list", BOTH, MCP_OFFERS_RESOURCES, false, mcp__list_resources},
    {"resources/templates/list", BOTH, MCP_OFFERS_RESOURCES, false, mcp__list_templates},
    {"resources/read", BOTH, MCP_OFFERS_RESOURCES, false, mcp__read_resource},
    {"resources/subscribe", LEGACY, MCP_OFFERS_UPDATES, false, mcp__subscribe},
    {"resources/unsubscribe", LEGACY, MCP_OFFERS_UPDATES, false, mcp__unsubscribe},
    {"prompts/list", BOTH, MCP_OFFERS_PROMPTS, false, mcp__list_prompts},
    {"prompts/get", BOTH, MCP_OFFERS_PROMPTS, false, mcp__get_prompt},
    {"completion/complete", BOTH, MCP_OFFERS_COMPLETION, false, mcp__complete},
    {"logging/setLevel", LEGACY, MCP_OFFERS_LOG, false, mcp__set_level},
    {"subscriptions/listen", MODERN, 0, false, mcp__listen_to},
    {"tasks/get", MODERN, 0, true, mcp__get_task},
    {"tasks/update", MODERN, 0, true, mcp__update_task},
    {"tasks/cancel", MODERN, 0, true, mcp__cancel_task},
};

/* ---- its life ---- */

peg_status mcp_peer_new(struct mcp_server *server, const struct mcp_peer_ops *ops, void *user,
                        const char *principal, struct mcp_peer **ret_peer)
{
    const size_t len = strlen(principal);
    struct mcp_peer *peer = peg__alloc_zero(1, sizeof(*peer));

    if (!peer)
        return PEG_ENOMEM;
    peer->principal = peg__alloc(len + 1);
    if (!peer->principal) {
        peg__free(peer);
        return PEG_ENOMEM;
    }
    memcpy(peer->principal, principal, len + 1);
    peer->server = server;
    peer->ops = ops;
    peer->user = user;
    peer->log_level = MCP_LEVEL_INFO;
    peer->requests = (struct peg__map)PEG__MAP(PEG_LIMIT_MCP_REQUESTS);
    peer->subscribed = (struct peg__map)PEG__MAP(PEG_LIMIT_MCP_SUBSCRIPTIONS);
    /* Room for the largest result within its message. */
    peer->buf = (struct peg__buf)PEG__BUF(2 * (size_t)PEG_LIMIT_MCP_RESULT_BYTES);
    peer->key = (struct peg__buf)PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    PEG_LIST_PUSH(server->peers, peer, next, prev);
    *ret_peer = peer;
    return PEG_OK;
}

static void cancel_requests(struct mcp_peer *peer)
{
    struct peg__map_entry *entry;

    mcp__drop_listens(peer, false);
    while ((entry = peg__map_next(&peer->requests, NULL))) {
        struct mcp__request *rq = entry->value;

        mcp__cancel_call(peg__container_of(rq, struct mcp_call, request), "the client is gone");
    }
}

struct mcp_peer *mcp_peer_free(struct mcp_peer *peer)
{
    if (!peer)
        return NULL;
    cancel_requests(peer);
    PEG_LIST_REMOVE(peer->server->peers, peer, next, prev);
    peg__map_free(&peer->requests);
    peg__map_free(&peer->subscribed);
    peg__buf_free(&peer->buf);
    peg__buf_free(&peer->key);
    peg_json_doc_free(peer->client);
    peg__free(peer->principal);
    peg__free(peer);
    return NULL;
}

void mcp_peer_finish(struct mcp_peer *peer)
{
    mcp__drop_listens(peer, true);
}

size_t mcp_peer_n_requests(const struct mcp_peer *peer)
{
    return peer->requests.n;
}

/* ---- cancellation ---- */

static void cancel_request(struct mcp__request *rq, const char *reason)
{
    if (rq->waiter == MCP__LISTEN)
        mcp__drop_listen(rq);
    else
        mcp__cancel_call(peg__container_of(rq, struct mcp_call, request), reason);
}

void mcp_peer_close_stream(struct mcp_peer *peer, void *stream)
{
    PEG__MAP_EACH(&peer->requests, entry)
    {
        struct mcp__request *rq = entry->value;

        if (rq->stream == stream && rq->era == MCP_MODERN) {
            cancel_request(rq, "the client closed the stream");
            return;
        }
    }
}

static void take_notification(struct mcp__request *rq)
{
    struct mcp__request *found;

    if (peg__str_is(rq->method, "notifications/initialized")) {
        rq->peer->is_initialized = rq->peer->version != NULL;
    } else if (peg__str_is(rq->method, "notifications/cancelled")) {
        found = mcp__find_request(rq->peer, peg_json_get(rq->params, "requestId"));
        if (found)
            cancel_request(found, "the client canceled the request");
    }
}

/* ---- eras ---- */

static bool is_modern(const struct mcp__request *rq)
{
    return peg_json_get(rq->meta, MCP_META "protocolVersion") ||
           peg_json_get(rq->meta, MCP_META "clientCapabilities");
}

static bool read_log_level(struct mcp__request *rq)
{
    const peg_json *level = peg_json_get(rq->meta, MCP_META "logLevel");

    rq->log_level = MCP_N_LEVELS;
    if (!level)
        return true;
    rq->log_level = mcp__level_of(peg_json_str(level));
    rq->wants_log = true;
    if (rq->log_level < MCP_N_LEVELS)
        return true;
    mcp__send_errorf(rq, MCP_INVALID_PARAMS, "_meta: " MCP_META "logLevel is no log level");
    return false;
}

static void reject_version(struct mcp__request *rq, const peg_json *version)
{
    struct peg__buf data = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    struct peg__out out = {.buf = &data};

    peg__out_object(&out);
    peg__out_key(&out, "supported");
    peg__out_raw(&out, peg__str("[\"" MCP_VERSION_MODERN "\"]"));
    peg__out_key(&out, "requested");
    peg__out_value(&out, version);
    peg__out_end_object(&out);
    mcp__send_error(rq, MCP_UNSUPPORTED_VERSION,
                    peg__str("the protocol version is not supported: use one of data.supported"),
                    peg__buf_view(&data));
    peg__buf_free(&data);
}

/* False: it was answered. */
static bool read_modern_meta(struct mcp__request *rq)
{
    const peg_json *version = peg_json_get(rq->meta, MCP_META "protocolVersion");

    rq->era = MCP_MODERN;
    rq->capabilities = peg_json_get(rq->meta, MCP_META "clientCapabilities");
    if (peg_json_kind_of(version) != PEG_JSON_STRING) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "_meta must have " MCP_META "protocolVersion, a string");
        return false;
    }
    if (!peg__str_is(peg_json_str(version), MCP_VERSION_MODERN)) {
        reject_version(rq, version);
        return false;
    }
    if (peg_json_kind_of(rq->capabilities) != PEG_JSON_OBJECT) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "_meta must have " MCP_META "clientCapabilities, an object");
        return false;
    }
    return read_log_level(rq);
}

static void read_legacy_state(struct mcp__request *rq)
{
    const struct mcp_peer *peer = rq->peer;

    rq->era = MCP_LEGACY;
    rq->log_level = peer->log_level;
    rq->wants_log = peer->has_set_level;
    if (peer->client)
        rq->capabilities =
            peg_json_get(peg_json_get(peg_json_root(peer->client), "params"), "capabilities");
}

/* False: it was answered. */
static bool read_meta(struct mcp__request *rq, const struct method *method)
{
    const peg_json *token;

    rq->meta = peg_json_get(rq->params, "_meta");
    if (is_modern(rq) || (method && method->eras == MODERN)) {
        if (!read_modern_meta(rq))
            return false;
    } else {
        read_legacy_state(rq);
    }
    token = peg_json_get(rq->meta, "progressToken");
    if (token && token->kind != PEG_JSON_INTEGER &&
        (token->kind != PEG_JSON_STRING || token->len > PEG_LIMIT_MCP_ID_BYTES)) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "_meta: progressToken must be an integer or a string of at most %d bytes",
                         PEG_LIMIT_MCP_ID_BYTES);
        return false;
    }
    rq->token = token;
    return true;
}

/* ---- requests ---- */

static const struct method *find_method(peg_str name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (peg__str_is(name, methods[i].name))
            return &methods[i];
    }
    return NULL;
}

static bool is_offered(const struct mcp__request *rq, const struct method *method)
{
    const struct mcp_config *config = &rq->peer->server->config;

    return (method->eras & 1 << rq->era) && (!method->is_of_tasks || config->task_ms) &&
           (!method->offer || (config->source->offers & method->offer));
}

static void take_request(struct mcp__request *rq)
{
    const struct method *method = find_method(rq->method);

    if (!read_meta(rq, method))
        return;
    if (method && is_offered(rq, method))
        method->run(rq);
    else
        mcp__send_errorf(rq, MCP_METHOD_NOT_FOUND, "there is no method '" PEG_FMT "' here",
                         (int)(rq->method.len < 128 ? peg__utf8_cut(rq->method.ptr, rq->method.len)
                                                    : peg__utf8_cut(rq->method.ptr, 128)),
                         rq->method.ptr);
}

static void take_message(struct mcp__request *rq)
{
    const peg_json *message = peg_json_root(rq->doc);

    switch (mcp__classify(message, rq)) {
    case MCP__REQUEST:
        take_request(rq);
        return;
    case MCP__NOTIFICATION:
        take_notification(rq);
        return;
    case MCP__RESPONSE:
        mcp__take_response(rq->peer, rq->id, message);
        return;
    case MCP__INVALID:
        break;
    }
    mcp__send_errorf(rq, MCP_INVALID_REQUEST,
                     "a message is one JSON-RPC 2.0 request, notification or response; ids are "
                     "integers or strings of at most %d bytes",
                     PEG_LIMIT_MCP_ID_BYTES);
}

static void reject_text(struct mcp__request *rq, const peg_error *error)
{
    if (error->status == PEG_ENOMEM)
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR, "the server is out of memory: try again later");
    else
        mcp__send_errorf(rq, MCP_PARSE_ERROR, "the message is not JSON: %s", error->message);
}

peg_status mcp_peer_receive(struct mcp_peer *peer, peg_str text, void *stream)
{
    static const peg_json_options options = {PEG_JSON_OPTIONS_INIT,
                                             .max_bytes = PEG_LIMIT_MCP_MESSAGE_BYTES,
                                             .duplicates = PEG_JSON_REFUSE};
    struct mcp__request rq = {.peer = peer, .stream = stream};
    peg_error error;

    if (peg_json_parse(text, &options, &rq.doc, &error))
        reject_text(&rq, &error);
    else
        take_message(&rq);
    mcp__request_free(&rq);
    return peer->status;
}
