/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streamable HTTP. A POST is one message, and gets one answer: JSON, or a stream of events if there
 * is something to report before it. A GET is the stream on which a legacy client hears of changes.
 *
 *   client closes its stream    a modern request is canceled; a legacy call goes on, its answer
 *                               is dropped
 *   notifications/cancelled     cancels a legacy request of the same session, on any loop that has
 * it
 *
 * A legacy client that can be asked gets a session at initialize (session.c); what it sends later
 * begins when the owner of the session has said that it exists. For all others a session is only a
 * name, which tells the clients of a principal apart: nothing is kept for it, so every node takes
 * it and it never ends.
 */

#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/mcp/internal.h"

static struct gw_mcp *mcp_of(const struct gw_node *node, const struct net_loop *loop)
{
    return node->mcp.loops[gw_router_of(gw_node_calls(node, loop))->number];
}

/* ---- what goes out ---- */

/* Of a legacy client that has initialized. False: there are too many, and it was answered. */
static bool name_session(struct gw_mcp_exchange *exchange, char ret_name[GW_MCP_SESSION_TEXT])
{
    struct gw_mcp *mcp = exchange->mcp;
    const unsigned abilities = mcp_peer_abilities(exchange->peer);
    peg_status status;

    if (!abilities)
        status = peg__id_hex(ret_name) ? PEG_OK : PEG_EIO;
    else
        status = gw_mcp_session_make(&mcp->sessions, exchange->principal,
                                     gw_mcp_quota_key(mcp, exchange->principal), abilities,
                                     gw_mcp_now_ms(mcp), ret_name);
    if (status == PEG_ELIMIT)
        net_http_reply_text(
            exchange->request, 429,
            "quota exceeded: too many MCP sessions (PEG_LIMIT_GATEWAY_MCP_SESSIONS, "
            "%d on a node, and a share of them for each principal): end some with "
            "DELETE, or ask another node",
            PEG_LIMIT_GATEWAY_MCP_SESSIONS);
    else if (status)
        net_http_reply_text(exchange->request, 503, "out of memory: try again later");
    else if (abilities)
        gw_mcp_wake_in_time(mcp);
    return !status;
}

static void reply_json(struct gw_mcp_exchange *exchange, const struct mcp_sent *sent)
{
    char name[GW_MCP_SESSION_TEXT];
    struct net_http_field session = {.name = PEG_LIT("mcp-session-id")};
    struct net_http_answer answer = {
        .status = sent->http_status, .content_type = "application/json", .fields = &session};

    if (mcp_peer_version(exchange->peer) && sent->http_status == 200) {
        if (!name_session(exchange, name))
            return;
        session.value = peg__str(name);
        answer.n_fields = 1;
    }
    net_http_reply(exchange->request, &answer, sent->text);
}

static void send_answer(struct gw_mcp_exchange *exchange, const struct mcp_sent *sent)
{
    const bool is_stream = exchange->stage == GW_MCP_STREAMING;

    exchange->stage = GW_MCP_ANSWERED;
    if (!is_stream)
        reply_json(exchange, sent);
    else if (net_http_send_event(exchange->request, "message", NULL, sent->text, NULL))
        net_http_reset(exchange->request);
    else
        net_http_finish(exchange->request);
}

/* False: the client takes none, or is gone. */
static bool begin_stream(struct gw_mcp_exchange *exchange)
{
    if (exchange->stage == GW_MCP_STREAMING)
        return true;
    if (!exchange->takes_events || net_http_begin_events(exchange->request, NULL))
        return false;
    exchange->stage = GW_MCP_STREAMING;
    gw_mcp_keep_streams(exchange->mcp);
    return true;
}

/* A reader that is too slow misses reports, and notifications of changes, of which it has many. */
static void send_report(struct gw_mcp_exchange *exchange, const struct mcp_sent *sent)
{
    if (begin_stream(exchange)) {
        if (sent->is_question)
            gw_mcp_wake_in_time(exchange->mcp); /* it expires */
        if (sent->is_question || net_http_is_writable(exchange->request))
            (void)net_http_send_event(exchange->request, "message", NULL, sent->text, NULL);
    } else if (!sent->may_be_lost) {
        exchange->stage = GW_MCP_ANSWERED;
        net_http_reply_text(exchange->request, 406,
                            "this needs a stream: send 'Accept: text/event-stream'");
    }
}

static void send_to_client(void *user, const struct mcp_sent *sent)
{
    struct gw_mcp_exchange *exchange = user;

    if (exchange->stage == GW_MCP_ANSWERED)
        return;
    if (!exchange->request) {
        if (sent->is_end)
            gw_mcp_exchange_free_soon(exchange);
    } else if (sent->is_end) {
        send_answer(exchange, sent);
    } else {
        send_report(exchange, sent);
    }
}

static const struct mcp_peer_ops peer_ops = {.send = send_to_client};

/* ---- a head ---- */

static bool header_has(peg_str text, const char *part)
{
    return text.len && memmem(text.ptr, text.len, part, strlen(part));
}

static bool takes_events(const struct net_http_request *request)
{
    const peg_str accept = net_http_field(request, "accept");

    return !accept.len || header_has(accept, "text/event-stream") || header_has(accept, "*/*") ||
           header_has(accept, "text/*");
}

/* False: it was answered. */
static bool check_toolset(struct net_http_request *request, const struct gw_mcp *mcp)
{
    const struct gw_snapshot *snapshot = gw_mcp_snapshot(mcp);
    const peg_str name = request->params[0];

    if (!snapshot) {
        net_http_reply_text(request, 503, "starting: try again");
        return false;
    }
    if (!name.ptr || gw_snapshot_find(snapshot, name))
        return true;
    net_http_reply_text(request, 404, "there is no toolset '%.*s' here",
                        (int)(name.len < 256 ? name.len : peg__utf8_cut(name.ptr, 256)), name.ptr);
    return false;
}

/* NULL: it was answered. */
static struct gw_mcp_exchange *begin_exchange(struct net_http_request *request,
                                              struct gw_node *node)
{
    struct peg__buf principal = PEG__BUF(PEG_LIMIT_TLS_NAME_BYTES + 8);
    struct gw_mcp *mcp = mcp_of(node, request->loop);
    struct gw_mcp_exchange *exchange = NULL;

    if (gw_mcp_admit(request, node, &principal) && check_toolset(request, mcp)) {
        exchange =
            principal.status ? NULL : gw_mcp_exchange_new(mcp, request, peg__buf_view(&principal));
        if (!exchange)
            net_http_reply_text(request, 503, "out of memory: try again later");
    }
    peg__buf_free(&principal);
    if (exchange)
        exchange->takes_events = takes_events(request);
    request->state = exchange;
    return exchange;
}

static void read_post_head(struct net_http_request *request, void *user)
{
    static const char json[] = "application/json";
    const peg_str type = net_http_field(request, "content-type");

    if (!begin_exchange(request, user))
        return;
    if (type.len < sizeof(json) - 1 || strncasecmp(type.ptr, json, sizeof(json) - 1) != 0)
        net_http_reply_text(request, 415, "send 'Content-Type: application/json'");
}

static void read_delete_head(struct net_http_request *request, void *user)
{
    (void)begin_exchange(request, user);
}

static void read_get_head(struct net_http_request *request, void *user)
{
    const struct gw_mcp_exchange *exchange = begin_exchange(request, user);

    if (exchange && !exchange->takes_events)
        net_http_reply_text(request, 406, "send 'Accept: text/event-stream'");
}

/* ---- sessions ---- */

static bool is_name(peg_str text)
{
    size_t n = 0;

    while (n < text.len && peg__hex_value(text.ptr[n]) >= 0)
        n++;
    return n == text.len && n == PEG_ID_HEX_TEXT - 1;
}

static void reject_session(struct gw_mcp_exchange *exchange)
{
    net_http_reply_text(exchange->request, 404, "there is no such session: initialize again");
}

/* The session of a legacy request. False: it is none of ours, and was answered. */
static bool read_session(struct gw_mcp_exchange *exchange)
{
    const struct net_http_request *request = exchange->request;
    const peg_str version = net_http_field(request, "mcp-protocol-version");
    const peg_str text = net_http_field(request, "mcp-session-id");
    const bool is_modern = version.len && peg__str_compare(version, peg__str("2026")) > 0;

    if (!text.len || is_modern)
        return true;
    if (!is_name(text) &&
        !gw_mcp_session_parse(&exchange->mcp->sessions, text, &exchange->session_id)) {
        reject_session(exchange);
        return false;
    }
    memcpy(exchange->session, text.ptr, text.len);
    exchange->session[text.len] = '\0';
    return true;
}

static bool has_session(const struct gw_mcp_exchange *exchange)
{
    return exchange->session_id.owner.node != 0;
}

/* False: it was answered. */
static bool check_found(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    if (found->standing == GW_MCP_GONE)
        reject_session(exchange);
    else if (found->standing == GW_MCP_UNREACHABLE)
        net_http_reply_text(exchange->request, 503,
                            "the node that has the session does not answer: try again");
    return found->standing == GW_MCP_KNOWN;
}

static void accept_message(struct gw_mcp_exchange *exchange)
{
    static const struct net_http_answer accepted = {.status = 202};

    exchange->stage = GW_MCP_ANSWERED;
    net_http_reply(exchange->request, &accepted, (peg_str){"", 0});
}

/* One whose loop is gone is dropped. */
static void on_answer_forwarded(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    if (found->standing != GW_MCP_UNREACHABLE)
        accept_message(exchange);
    else
        (void)check_found(exchange, found);
}

/* Without a session the request may be on any loop of this node. Only a cancellation is repeated
 * there: any other message would be worked on once more. */
static void spread_cancellation(struct gw_mcp_exchange *exchange, peg_str text)
{
    const struct gw_node *node = exchange->mcp->node;
    struct gw_mcp_peeked peeked;

    if (!exchange->session[0])
        return;
    gw_mcp_peek(text, &peeked);
    if (!peeked.is_cancellation)
        return;
    gw_mcp_end_canceled(exchange->mcp);
    if (text.len > PEG_LIMIT_MCP_SENTENCE_BYTES)
        return;
    for (unsigned i = 0; i < node->n_loops; i++)
        gw_mcp_forward(exchange, (struct bus_address){exchange->mcp->sessions.self.node, i}, text,
                       NULL);
}

/* ---- messages ---- */

static bool offers_search(struct net_http_request *request, const struct gw_mcp *mcp)
{
    const struct gw_snapshot *snapshot = gw_mcp_snapshot(mcp);
    const size_t most = mcp->node->mcp.search_above;
    const peg_str name = request->params[0];
    const struct gw_toolset *toolset =
        name.ptr && snapshot ? gw_snapshot_find(snapshot, name) : NULL;
    const size_t n = toolset ? toolset->n_tools : snapshot ? snapshot->n_tools : 0;
    peg_str mode;

    if (net_http_query(request, "tools", &mode))
        return peg__str_is(mode, "search");
    return most && n > most;
}

/* Headers of arguments, by their names. */
static size_t find_params(const struct net_http_request *request,
                          struct mcp_param ret_params[NET_HTTP_MAX_FIELDS])
{
    static const char prefix[] = "mcp-param-";
    const size_t len = sizeof(prefix) - 1;
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields && n < NET_HTTP_MAX_FIELDS; i++) {
        const struct net_http_field *field = &request->fields[i];

        if (field->name.len > len && strncasecmp(field->name.ptr, prefix, len) == 0)
            ret_params[n++] = (struct mcp_param){peg__str_from(field->name, len), field->value};
    }
    return n;
}

/* PEG_ENOMEM: there is none to answer with. */
static peg_status receive_message(struct gw_mcp_exchange *exchange, peg_str text)
{
    struct net_http_request *request = exchange->request;
    struct gw_mcp_scope scope = {
        .toolset = request->params[0].ptr ? request->params[0] : (peg_str){"", 0},
        .is_search = offers_search(request, exchange->mcp),
    };
    struct mcp_param params[NET_HTTP_MAX_FIELDS];
    const struct mcp_http http = {
        .has_session = has_session(exchange),
        .version = net_http_field(request, "mcp-protocol-version"),
        .method = net_http_field(request, "mcp-method"),
        .name = net_http_field(request, "mcp-name"),
        .params = params,
        .n_params = find_params(request, params),
    };
    peg_status status = exchange->session[0]
                            ? mcp_peer_set_session(exchange->peer, peg__str(exchange->session))
                            : PEG_OK;

    if (status)
        return status;
    gw_mcp_set_time(exchange->mcp);
    mcp_peer_set_scope(exchange->peer, &scope);
    status = mcp_peer_receive_http(exchange->peer, text, exchange, &http);
    mcp_peer_set_scope(exchange->peer, NULL);
    return status;
}

static bool listens(const struct net_http_request *request)
{
    return peg__str_is(net_http_field(request, "mcp-method"), "subscriptions/listen");
}

static bool open_peer(struct gw_mcp_exchange *exchange)
{
    exchange->stage = GW_MCP_WAITING;
    if (mcp_peer_new(exchange->mcp->server, &peer_ops, exchange, exchange->principal,
                     &exchange->peer) == PEG_OK)
        return true;
    net_http_reply_text(exchange->request, 503, "out of memory: try again later");
    return false;
}

static bool count_stream(struct gw_mcp_exchange *exchange)
{
    const char *reason = gw_mcp_exchange_listen(exchange);

    if (reason)
        net_http_reply_text(exchange->request, 429, "%s", reason);
    return !reason;
}

/* A large message is kept until its request ends, which may be long after its client has left.
 * False: there is no room, and it was answered. */
static bool count_message(struct gw_mcp_exchange *exchange, size_t n)
{
    if (gw_mcp_exchange_hold(exchange, n))
        return true;
    exchange->stage = GW_MCP_ANSWERED;
    net_http_reply_text(exchange->request, 429,
                        "quota exceeded: too many bytes in large messages, of this principal or "
                        "of all (PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES, %d on a loop): try again "
                        "when some calls have ended, or send a reference to the data",
                        PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES);
    return false;
}

static void serve_message(struct gw_mcp_exchange *exchange, peg_str body)
{
    if (!count_message(exchange, body.len))
        return;
    if (receive_message(exchange, body))
        net_http_reset(exchange->request);
    else if (exchange->stage == GW_MCP_WAITING && !mcp_peer_n_requests(exchange->peer))
        accept_message(exchange);
}

/* Questions need a stream. */
static void set_client(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    const struct mcp_client client = {
        .abilities = exchange->takes_events ? exchange->session_id.abilities : 0,
        .log_level = found->log_level,
    };

    mcp_peer_set_client(exchange->peer, &client);
    gw_mcp_keep_session(exchange);
}

/* The client chose the id of an answer: an address without a reader must not get it. */
static bool has_requests(const struct gw_mcp_found *found, struct bus_address loop)
{
    size_t i = 0;

    while (i < found->n_loops && !bus_address_equal(found->loops[i], loop))
        i++;
    return i < found->n_loops;
}

static void take_answer_of_session(struct gw_mcp_exchange *exchange,
                                   const struct gw_mcp_found *found, struct bus_address asker)
{
    if (has_requests(found, asker))
        gw_mcp_forward(exchange, asker, exchange->body, on_answer_forwarded);
    else
        accept_message(exchange); /* as one to a question that has ended */
}

static void take_post_of_session(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    const peg_str body = exchange->body;
    struct gw_mcp_peeked peeked;

    if (!check_found(exchange, found))
        return;
    gw_mcp_peek(body, &peeked);
    if (peeked.is_answer && peeked.asker.node) {
        take_answer_of_session(exchange, found, peeked.asker);
    } else if (peeked.is_cancellation) {
        for (size_t i = 0; i < found->n_loops; i++)
            gw_mcp_forward(exchange, found->loops[i], body, NULL);
        accept_message(exchange);
    } else if (open_peer(exchange)) {
        set_client(exchange, found);
        serve_message(exchange, body);
    }
}

static void take_post(struct net_http_request *request, peg_str body, void *user)
{
    struct gw_mcp_exchange *exchange = request->state;
    struct gw_mcp_peeked peeked;

    (void)user;
    if (!read_session(exchange))
        return;
    if (has_session(exchange)) {
        exchange->body = body;
        gw_mcp_peek(body, &peeked);
        gw_mcp_find_session(exchange, &peeked, take_post_of_session);
        return;
    }
    if ((listens(request) && !count_stream(exchange)) || !open_peer(exchange))
        return;
    serve_message(exchange, body);
    if (exchange->stage == GW_MCP_ANSWERED)
        spread_cancellation(exchange, body);
}

static void open_get(struct gw_mcp_exchange *exchange)
{
    if (!count_stream(exchange) || !open_peer(exchange))
        return;
    mcp_peer_notify(exchange->peer);
    if (!begin_stream(exchange) || net_http_send_comment(exchange->request, NULL))
        net_http_reset(exchange->request);
}

static void take_get_of_session(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    if (!check_found(exchange, found))
        return;
    gw_mcp_keep_session(exchange);
    open_get(exchange);
}

static void take_get(struct net_http_request *request, peg_str body, void *user)
{
    struct gw_mcp_exchange *exchange = request->state;

    (void)body;
    (void)user;
    if (!read_session(exchange))
        return;
    if (has_session(exchange))
        gw_mcp_find_session(exchange, NULL, take_get_of_session);
    else
        open_get(exchange);
}

static void end_deleted(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    static const struct net_http_answer done = {.status = 204};

    if (!check_found(exchange, found))
        return;
    for (size_t i = 0; i < found->n_loops; i++)
        gw_mcp_forward_end(exchange, found->loops[i]);
    net_http_reply(exchange->request, &done, (peg_str){"", 0});
}

static void take_delete(struct net_http_request *request, peg_str body, void *user)
{
    struct gw_mcp_exchange *exchange = request->state;

    (void)body;
    (void)user;
    if (!read_session(exchange))
        return;
    if (has_session(exchange))
        gw_mcp_delete_session(exchange, end_deleted);
    else if (exchange->session[0])
        net_http_reply_text(request, 405, "nothing is kept for this session: it has no end");
    else
        net_http_reply_text(request, 400, "name a session with Mcp-Session-Id");
}

/* ---- the end ---- */

static void end_exchange(struct net_http_request *request, void *user)
{
    struct gw_mcp_exchange *exchange = request->state;

    (void)user;
    if (!exchange)
        return;
    exchange->request = NULL;
    if (exchange->peer && exchange->stage != GW_MCP_ANSWERED) {
        mcp_peer_close_stream(exchange->peer, exchange);
        if (mcp_peer_n_requests(exchange->peer))
            return; /* of a legacy client, which did not say that it wants no answer */
    }
    gw_mcp_exchange_free(exchange);
}

const struct net_http_handler gw_mcp_post = {
    .on_head = read_post_head,
    .on_request = take_post,
    .on_end = end_exchange,
    .max_body = PEG_LIMIT_MCP_MESSAGE_BYTES,
};

enum { NO_BODY = 1 << 10 };

const struct net_http_handler gw_mcp_get = {
    .on_head = read_get_head,
    .on_request = take_get,
    .on_end = end_exchange,
    .max_body = NO_BODY,
};

const struct net_http_handler gw_mcp_delete = {
    .on_head = read_delete_head,
    .on_request = take_delete,
    .on_end = end_exchange,
    .max_body = NO_BODY,
};
