/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notifications of changes. A modern client opens streams for what it wants to hear of; a legacy
 * one hears of every list once it has initialized, and of resources that it subscribed to.
 */

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

enum { LEAST_MS = 1000 }; /* between two notifications of one list */

struct mcp__listen {
    struct mcp__request request;
    struct mcp__listen *next;
    struct mcp__listen *prev;
    bool wants[MCP_N_LISTS];
    const peg_json *uris; /* of resources; NULL: none */
};

/* By list; templates are reported as resources. */
static const struct {
    const char *member;
    unsigned offer;
    const char *method;
} lists[MCP_N_LISTS] = {
    [MCP_TOOLS] = {"toolsListChanged", MCP_OFFERS_TOOLS, "notifications/tools/list_changed"},
    [MCP_RESOURCES] = {"resourcesListChanged", MCP_OFFERS_RESOURCES,
                       "notifications/resources/list_changed"},
    [MCP_TEMPLATES] = {NULL, MCP_OFFERS_RESOURCES, "notifications/resources/list_changed"},
    [MCP_PROMPTS] = {"promptsListChanged", MCP_OFFERS_PROMPTS,
                     "notifications/prompts/list_changed"},
};

/* ---- streams of modern clients ---- */

static void put_subscription(struct peg__out *out, const struct mcp__request *rq)
{
    peg__out_key(out, "_meta");
    peg__out_object(out);
    peg__out_key(out, MCP_META "subscriptionId");
    peg__out_value(out, rq->id);
    peg__out_end_object(out);
}

static void read_filter(struct mcp__listen *listen, unsigned offers)
{
    const peg_json *filter = peg_json_get(listen->request.params, "notifications");
    const peg_json *uris = peg_json_get(filter, "resourceSubscriptions");

    for (int kind = 0; kind < MCP_N_LISTS; kind++) {
        if (lists[kind].member && (offers & lists[kind].offer))
            listen->wants[kind] = peg_json_is_true(peg_json_get(filter, lists[kind].member));
    }
    listen->wants[MCP_TEMPLATES] = listen->wants[MCP_RESOURCES];
    if ((offers & MCP_OFFERS_UPDATES) && peg_json_kind_of(uris) == PEG_JSON_ARRAY)
        listen->uris = uris;
}

static void acknowledge(struct mcp__listen *listen)
{
    struct mcp_peer *peer = listen->request.peer;
    struct peg__out *out = mcp__open_notification(peer, "notifications/subscriptions/acknowledged");

    put_subscription(out, &listen->request);
    peg__out_key(out, "notifications");
    peg__out_object(out);
    for (int kind = 0; kind < MCP_N_LISTS; kind++) {
        if (listen->wants[kind] && lists[kind].member) {
            peg__out_key(out, lists[kind].member);
            peg__out_bool(out, true);
        }
    }
    if (listen->uris) {
        peg__out_key(out, "resourceSubscriptions");
        peg__out_value(out, listen->uris);
    }
    peg__out_end_object(out);
    mcp__send_notification(peer, &listen->request, false);
}

static bool is_filter(const peg_json *filter)
{
    const peg_json *uris = peg_json_get(filter, "resourceSubscriptions");

    if (peg_json_kind_of(filter) != PEG_JSON_OBJECT || (uris && uris->kind != PEG_JSON_ARRAY) ||
        peg_json_len(uris) > PEG_LIMIT_MCP_SUBSCRIPTIONS)
        return false;
    PEG_JSON_EACH_ITEM (uris, uri) {
        if (uri->kind != PEG_JSON_STRING)
            return false;
    }
    return true;
}

static void free_listen(struct mcp__listen *listen)
{
    mcp__request_free(&listen->request);
    peg__free(listen);
}

void mcp__listen_to(struct mcp__request *rq)
{
    struct mcp_peer *peer = rq->peer;
    struct mcp__listen *listen;
    peg_status status;

    if (!is_filter(peg_json_get(rq->params, "notifications"))) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "notifications must be an object; its resourceSubscriptions, at most %d "
                         "strings",
                         PEG_LIMIT_MCP_SUBSCRIPTIONS);
        return;
    }
    listen = peg__alloc_zero(1, sizeof(*listen));
    if (!listen) {
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR, "the server is out of memory: try again later");
        return;
    }
    listen->request = *rq;
    listen->request.doc = NULL;
    listen->request.waiter = MCP__LISTEN;
    status = mcp__add_request(&listen->request);
    if (status) {
        peg__free(listen);
        mcp__send_errorf(rq, status == PEG_EEXISTS ? MCP_INVALID_REQUEST : MCP_INTERNAL_ERROR,
                         status == PEG_EEXISTS
                             ? "the id is in use by a request that has no answer yet"
                             : "too many requests wait for an answer: try again later");
        return;
    }
    listen->request.doc = rq->doc;
    rq->doc = NULL;
    read_filter(listen, peer->server->config.source->offers);
    PEG_LIST_PUSH(peer->listens, listen, next, prev);
    acknowledge(listen);
}

static void remove_listen(struct mcp__listen *listen)
{
    struct mcp_peer *peer = listen->request.peer;

    mcp__remove_request(&listen->request);
    PEG_LIST_REMOVE(peer->listens, listen, next, prev);
    free_listen(listen);
}

void mcp__drop_listen(struct mcp__request *rq)
{
    remove_listen(peg__container_of(rq, struct mcp__listen, request));
}

static void send_end(struct mcp__listen *listen)
{
    struct mcp__request *rq = &listen->request;
    struct peg__buf meta = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    struct peg__out out = {.buf = &meta};

    peg__out_key(&out, MCP_META "subscriptionId");
    peg__out_value(&out, rq->id);
    mcp__open_result(rq, "complete");
    if (!meta.status)
        mcp__send_result(rq, peg__buf_view(&meta));
    peg__buf_free(&meta);
}

void mcp__drop_listens(struct mcp_peer *peer, bool says_so)
{
    while (peer->listens) {
        if (says_so)
            send_end(peer->listens);
        remove_listen(peer->listens);
    }
}

/* ---- subscriptions of legacy clients ---- */

static bool read_uri(struct mcp__request *rq, peg_str *ret_uri)
{
    const peg_json *uri = peg_json_get(rq->params, "uri");

    *ret_uri = peg_json_str(uri);
    if (peg_json_kind_of(uri) == PEG_JSON_STRING && ret_uri->len &&
        ret_uri->len <= PEG_LIMIT_MCP_URI_BYTES)
        return true;
    mcp__send_errorf(rq, MCP_INVALID_PARAMS, "uri must be a string of 1 to %d bytes",
                     PEG_LIMIT_MCP_URI_BYTES);
    return false;
}

void mcp__subscribe(struct mcp__request *rq)
{
    peg_str uri;
    peg_status status;

    if (!read_uri(rq, &uri))
        return;
    status = peg__map_put(&rq->peer->subscribed, uri, rq->peer, NULL);
    if (status)
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR,
                         status == PEG_ELIMIT ? "too many subscriptions: end some"
                                              : "the server is out of memory: try again later");
    else
        mcp__send_empty(rq);
}

void mcp__unsubscribe(struct mcp__request *rq)
{
    peg_str uri;

    if (!read_uri(rq, &uri))
        return;
    peg__map_remove(&rq->peer->subscribed, uri, NULL);
    mcp__send_empty(rq);
}

/* ---- notifying ---- */

static void notify_peer(struct mcp_peer *peer, enum mcp_list_kind kind)
{
    if (peer->is_initialized) {
        mcp__open_notification(peer, lists[kind].method);
        mcp__send_notification(peer, NULL, false);
    }
    for (struct mcp__listen *listen = peer->listens; listen; listen = listen->next) {
        if (listen->wants[kind]) {
            put_subscription(mcp__open_notification(peer, lists[kind].method), &listen->request);
            mcp__send_notification(peer, &listen->request, false);
        }
    }
}

static int64_t due_ms(const struct mcp_server *server, int kind)
{
    if (!server->is_changed[kind])
        return INT64_MAX;
    return server->notified_ms[kind] ? server->notified_ms[kind] + LEAST_MS : 0;
}

int64_t mcp__changes_due_ms(const struct mcp_server *server)
{
    int64_t due = INT64_MAX;

    for (int kind = 0; kind < MCP_N_LISTS; kind++) {
        if (due_ms(server, kind) < due)
            due = due_ms(server, kind);
    }
    return due;
}

void mcp__notify_changes(struct mcp_server *server)
{
    for (int kind = 0; kind < MCP_N_LISTS; kind++) {
        if (due_ms(server, kind) > server->now_ms)
            continue;
        server->is_changed[kind] = false;
        server->notified_ms[kind] = server->now_ms ? server->now_ms : 1;
        for (struct mcp_peer *peer = server->peers; peer; peer = peer->next)
            notify_peer(peer, (enum mcp_list_kind)kind);
    }
}

void mcp_server_changed(struct mcp_server *server, enum mcp_list_kind kind)
{
    server->is_changed[kind == MCP_TEMPLATES ? MCP_RESOURCES : kind] = true;
    mcp__notify_changes(server);
}

static void notify_updated(struct mcp_peer *peer, struct mcp__request *rq, peg_str uri)
{
    struct peg__out *out = mcp__open_notification(peer, "notifications/resources/updated");

    if (rq)
        put_subscription(out, rq);
    peg__out_member(out, "uri", uri);
    mcp__send_notification(peer, rq, false);
}

static bool wants_uri(const struct mcp__listen *listen, peg_str uri)
{
    PEG_JSON_EACH_ITEM (listen->uris, item) {
        if (peg__str_eq(peg_json_str(item), uri))
            return true;
    }
    return false;
}

void mcp_server_updated(struct mcp_server *server, peg_str uri)
{
    for (struct mcp_peer *peer = server->peers; peer; peer = peer->next) {
        if (peg__map_get(&peer->subscribed, uri))
            notify_updated(peer, NULL, uri);
        for (struct mcp__listen *listen = peer->listens; listen; listen = listen->next) {
            if (listen->uris && wants_uri(listen, uri))
                notify_updated(peer, &listen->request, uri);
        }
    }
}
