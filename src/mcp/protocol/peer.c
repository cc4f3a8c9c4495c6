/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One client. Each message is judged by itself: a request with modern metadata is a modern one,
 * whatever came before it on the same pipe; all others are legacy.
 */

#include "base/error.h"
#include "base/limits/mcp.h"
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
    peg__free(peer->principal);
    peg__free(peer->session);
    peg__free(peer);
    return NULL;
}

void mcp_peer_set_scope(struct mcp_peer *peer, void *scope)
{
    peer->scope = scope;
}

peg_status mcp_peer_set_session(struct mcp_peer *peer, peg_str session)
{
    char *copy = peg__alloc(session.len + 1);

    if (!copy)
        return PEG_ENOMEM;
    memcpy(copy, session.ptr, session.len);
    copy[session.len] = '\0';
    peg__free(peer->session);
    peer->session = copy;
    return PEG_OK;
}

void mcp_peer_set_client(struct mcp_peer *peer, const struct mcp_client *client)
{
    peer->abilities = client->abilities;
    peer->has_set_level = client->log_level < MCP_N_LEVELS;
    if (peer->has_set_level)
        peer->log_level = client->log_level;
}

unsigned mcp_peer_abilities(const struct mcp_peer *peer)
{
    return peer->abilities;
}

void mcp_peer_notify(struct mcp_peer *peer)
{
    peer->is_initialized = true;
}

const char *mcp_peer_version(const struct mcp_peer *peer)
{
    return peer->version;
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

bool mcp_peer_awaits(const struct mcp_peer *peer, const void *stream)
{
    PEG__MAP_EACH(&peer->requests, entry)
    {
        const struct mcp__request *rq = entry->value;

        if (rq->stream == stream)
            return true;
    }
    return false;
}

void mcp_peer_close_stream(struct mcp_peer *peer, void *stream)
{
    PEG__MAP_EACH(&peer->requests, entry)
    {
        struct mcp__request *rq = entry->value;

        if (rq->stream != stream)
            continue;
        rq->is_lost = true;
        if (rq->era == MCP_MODERN) {
            cancel_request(rq, "the client closed the stream");
            return;
        }
    }
}

/* A legacy request of this client, on whichever of its connections. */
static struct mcp__request *find_canceled(const struct mcp__request *rq)
{
    const peg_json *id = peg_json_get(rq->params, "requestId");

    for (struct mcp_peer *peer = rq->peer->server->peers; peer; peer = peer->next) {
        struct mcp__request *found =
            mcp__is_same_client(rq->peer, peer) ? mcp__find_request(peer, id) : NULL;

        if (found && (peer == rq->peer || found->era == MCP_LEGACY))
            return found;
    }
    return NULL;
}

static void take_notification(struct mcp__request *rq)
{
    struct mcp__request *found;

    if (peg__str_is(rq->method, "notifications/initialized")) {
        rq->peer->is_initialized = rq->peer->version != NULL;
    } else if (peg__str_is(rq->method, "notifications/cancelled")) {
        found = find_canceled(rq);
        if (found)
            cancel_request(found, "the client canceled the request");
    }
}

/* ---- eras ---- */

static bool is_modern(const struct mcp__request *rq)
{
    return peg_json_get(rq->meta, MCP_META "protocolVersion") ||
           peg_json_get(rq->meta, MCP_META "clientCapabilities") ||
           mcp__has_modern_header(rq->peer);
}

static bool read_log_level(struct mcp__request *rq)
{
    const peg_json *level = peg_json_get(rq->meta, MCP_META "logLevel");

    rq->log_level = MCP_N_LEVELS;
    if (!level)
        return true;
    rq->log_level = mcp_level_of(peg_json_str(level));
    rq->wants_log = true;
    if (rq->log_level < MCP_N_LEVELS)
        return true;
    mcp__send_errorf(rq, MCP_INVALID_PARAMS, "_meta: " MCP_META "logLevel is no log level");
    return false;
}

/* False: it was answered. */
static bool read_modern_meta(struct mcp__request *rq)
{
    const peg_json *version = peg_json_get(rq->meta, MCP_META "protocolVersion");

    rq->era = MCP_MODERN;
    rq->capabilities = peg_json_get(rq->meta, MCP_META "clientCapabilities");
    rq->can = mcp__abilities_of(rq->capabilities);
    if (peg_json_kind_of(version) != PEG_JSON_STRING) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "_meta must have " MCP_META "protocolVersion, a string");
        return false;
    }
    if (!mcp__check_headers(rq))
        return false;
    if (!peg__str_is(peg_json_str(version), MCP_VERSION_MODERN)) {
        mcp__reject_version(rq, peg_json_str(version));
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
    rq->can = peer->abilities;
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
        if (!mcp__check_headers(rq))
            return false;
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

static bool is_empty_list(const struct mcp__request *rq, const struct method *method)
{
    return rq->era == MCP_MODERN && (method->offer & (MCP_OFFERS_RESOURCES | MCP_OFFERS_PROMPTS)) &&
           (rq->peer->server->config.source->offers & MCP_OFFERS_EMPTY_LISTS);
}

static bool is_offered(const struct mcp__request *rq, const struct method *method)
{
    const struct mcp_config *config = &rq->peer->server->config;

    if (rq->peer->is_stateless && (method->run == mcp__set_level || method->run == mcp__subscribe ||
                                   method->run == mcp__unsubscribe))
        return false;
    return (method->eras & 1 << rq->era) &&
           (!method->is_of_tasks || mcp__has_tasks(rq->peer->server)) &&
           (!method->offer || (config->source->offers & method->offer) ||
            is_empty_list(rq, method));
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

peg_status mcp_peer_receive_http(struct mcp_peer *peer, peg_str text, void *stream,
                                 const struct mcp_http *http)
{
    peg_status status;

    peer->http = http;
    peer->is_stateless = !http->has_session;
    status = mcp_peer_receive(peer, text, stream);
    peer->http = NULL;
    return status;
}
