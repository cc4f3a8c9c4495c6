/* SPDX-License-Identifier: Apache-2.0 */

/* What a loop has for MCP clients: the server, requests that are open, and what happens with time.
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/limits/mcp.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/mcp/internal.h"
#include "pegboard/common.h"

enum { TTL_MS = 60 * 1000 }; /* of lists, for clients that do not listen */

/* ---- exchanges ---- */

struct gw_mcp_exchange *gw_mcp_exchange_new(struct gw_mcp *mcp, struct net_http_request *request,
                                            peg_str principal)
{
    struct gw_mcp_exchange *exchange = peg__alloc(sizeof(*exchange) + principal.len + 1);

    if (!exchange)
        return NULL;
    *exchange = (struct gw_mcp_exchange){.mcp = mcp, .request = request};
    memcpy(exchange->principal, principal.ptr, principal.len);
    exchange->principal[principal.len] = '\0';
    PEG_LIST_PUSH(mcp->exchanges, exchange, next, prev);
    return exchange;
}

void gw_mcp_forget_lookup(struct gw_mcp_exchange *exchange)
{
    struct gw_mcp_lookup *lookup = &exchange->lookup;
    struct gw_mcp *mcp = exchange->mcp;

    if (!lookup->number)
        return;
    PEG_LIST_REMOVE(mcp->lookups, lookup, next, prev);
    lookup->number = 0;
    bus_forget_wait(mcp->calls->bus, &lookup->wait);
    bus_disarm(mcp->calls->bus, &lookup->late);
}

void gw_mcp_exchange_free(struct gw_mcp_exchange *exchange)
{
    struct gw_mcp *mcp = exchange->mcp;

    gw_mcp_forget_lookup(exchange);
    exchange->request = NULL; /* nothing more is sent */
    mcp_peer_free(exchange->peer);
    if (exchange->is_listening)
        peg__quota_give_back(&mcp->streams, exchange->quota_key, 1);
    if (exchange->large_bytes)
        peg__quota_give_back(&mcp->calls->quotas.large_bytes, exchange->quota_key,
                             exchange->large_bytes);
    PEG_LIST_REMOVE(mcp->exchanges, exchange, next, prev);
    peg__free(exchange);
}

/* ---- time ---- */

static void arm_wake(struct gw_mcp *mcp)
{
    int64_t due_ms = mcp_server_due_ms(mcp->server);

    if (mcp->sessions.sweep_ms && mcp->sessions.sweep_ms < due_ms)
        due_ms = mcp->sessions.sweep_ms;
    if (mcp->keepalive_ms && mcp->keepalive_ms < due_ms)
        due_ms = mcp->keepalive_ms;
    if (mcp->is_reaping)
        due_ms = 0;
    net_loop_disarm(mcp->calls->loop, &mcp->timer);
    if (due_ms < INT64_MAX)
        net_loop_arm(mcp->calls->loop, &mcp->timer, due_ms * PEG_NS_PER_MS);
}

static bool is_abandoned(const struct gw_mcp_exchange *exchange)
{
    return !exchange->request && exchange->stage == GW_MCP_ANSWERED;
}

static void reap(struct gw_mcp *mcp)
{
    struct gw_mcp_exchange *next;

    mcp->is_reaping = false;
    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = next) {
        next = exchange->next;
        if (is_abandoned(exchange))
            gw_mcp_exchange_free(exchange);
    }
}

/* A silent stream is taken for a dead one by what stands between client and server. */
static void keep_alive(struct gw_mcp *mcp)
{
    bool has_streams = false;

    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = exchange->next) {
        if (!exchange->request || exchange->stage != GW_MCP_STREAMING)
            continue;
        has_streams = true;
        if (net_http_is_writable(exchange->request))
            (void)net_http_send_comment(exchange->request, NULL);
    }
    mcp->keepalive_ms = has_streams ? gw_mcp_now_ms(mcp) + PEG_LIMIT_GATEWAY_MCP_KEEPALIVE_MS : 0;
}

static void advance_server(struct gw_mcp *mcp)
{
    mcp_server_advance(mcp->server, gw_mcp_now_ms(mcp), peg_clock_now_ms(peg_clock_system()));
}

static void wake_clients(struct net_timer *timer)
{
    struct gw_mcp *mcp = peg__container_of(timer, struct gw_mcp, timer);

    if (mcp->is_reaping)
        reap(mcp);
    if (mcp->keepalive_ms && mcp->keepalive_ms <= gw_mcp_now_ms(mcp))
        keep_alive(mcp);
    gw_mcp_sessions_sweep(&mcp->sessions, gw_mcp_now_ms(mcp));
    advance_server(mcp);
    arm_wake(mcp);
}

void gw_mcp_wake_in_time(struct gw_mcp *mcp)
{
    arm_wake(mcp);
}

void gw_mcp_exchange_free_soon(struct gw_mcp_exchange *exchange)
{
    struct gw_mcp *mcp = exchange->mcp;

    exchange->request = NULL;
    exchange->stage = GW_MCP_ANSWERED;
    mcp->is_reaping = true;
    arm_wake(mcp);
}

void gw_mcp_keep_streams(struct gw_mcp *mcp)
{
    if (mcp->keepalive_ms)
        return;
    mcp->keepalive_ms = gw_mcp_now_ms(mcp) + PEG_LIMIT_GATEWAY_MCP_KEEPALIVE_MS;
    arm_wake(mcp);
}

/* ---- streams that stay open ---- */

uint16_t gw_mcp_quota_key(const struct gw_mcp *mcp, const char *principal)
{
    struct peg__hash_key secret;

    memcpy(&secret, mcp->calls->options.secret, sizeof(secret));
    return mcp->calls->options.has_principals ? peg__quota_key(secret, peg__str(principal)) : 0;
}

const char *gw_mcp_exchange_listen(struct gw_mcp_exchange *exchange)
{
    struct gw_mcp *mcp = exchange->mcp;

    if (mcp->is_closed)
        return "this node stops: ask another one";
    exchange->quota_key = gw_mcp_quota_key(mcp, exchange->principal);
    if (peg__quota_take(&mcp->streams, exchange->quota_key, 1, PEG__QUOTA_BEGIN) == PEG_OK) {
        exchange->is_listening = true;
        return NULL;
    }
    return peg__quota_has(&mcp->streams, 0, 1, PEG__QUOTA_BEGIN)
               ? "this principal has its share of the streams that a node keeps open: close some"
               : "too many streams are open on this node: close some, or ask another one";
}

bool gw_mcp_exchange_hold(struct gw_mcp_exchange *exchange, size_t n_bytes)
{
    struct gw_mcp *mcp = exchange->mcp;

    if (n_bytes <= PEG_LIMIT_GATEWAY_SMALL_REQUEST_BYTES)
        return true;
    exchange->quota_key = gw_mcp_quota_key(mcp, exchange->principal);
    if (peg__quota_take(&mcp->calls->quotas.large_bytes, exchange->quota_key, n_bytes,
                        PEG__QUOTA_BEGIN))
        return false;
    exchange->large_bytes = n_bytes;
    return true;
}

static void end_stream(struct gw_mcp_exchange *exchange)
{
    mcp_peer_finish(exchange->peer);
    if (exchange->request && exchange->stage == GW_MCP_STREAMING) {
        exchange->stage = GW_MCP_ANSWERED;
        net_http_finish(exchange->request);
    }
}

void gw_mcp_end_unknown(struct gw_mcp *mcp, const struct gw_auth *auth)
{
    if (mcp)
        gw_mcp_sessions_end_unknown(&mcp->sessions, auth);
    for (struct gw_mcp_exchange *exchange = mcp ? mcp->exchanges : NULL; exchange;
         exchange = exchange->next) {
        if (exchange->is_listening && !gw_auth_knows(auth, peg__str(exchange->principal)))
            end_stream(exchange);
    }
}

void gw_mcp_close(struct gw_mcp *mcp)
{
    mcp->is_closed = true;
    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = exchange->next) {
        if (exchange->is_listening)
            end_stream(exchange);
    }
}

void gw_mcp_end_session(struct gw_mcp *mcp, peg_str session, peg_str principal)
{
    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = exchange->next) {
        if (!exchange->peer || !peg__str_is(session, exchange->session) ||
            !peg__str_is(principal, exchange->principal))
            continue;
        if (exchange->is_listening)
            end_stream(exchange);
        else
            mcp_peer_refuse(exchange->peer, "the client has ended its session");
    }
}

void gw_mcp_end_canceled(struct gw_mcp *mcp)
{
    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = exchange->next) {
        if (!exchange->peer || exchange->stage == GW_MCP_READING ||
            exchange->stage == GW_MCP_ANSWERED || exchange->is_listening ||
            mcp_peer_n_requests(exchange->peer))
            continue;
        if (!exchange->request) {
            gw_mcp_exchange_free_soon(exchange);
            continue;
        }
        if (exchange->stage == GW_MCP_WAITING &&
            net_http_begin_events(exchange->request, NULL) != PEG_OK)
            net_http_reset(exchange->request);
        exchange->stage = GW_MCP_ANSWERED;
        net_http_finish(exchange->request);
    }
}

/* ---- its life ---- */

void gw_mcp_on_snapshot(struct gw_mcp *mcp)
{
    if (!mcp)
        return;
    advance_server(mcp);
    mcp_server_changed(mcp->server, MCP_TOOLS);
    arm_wake(mcp);
}

void gw_mcp_on_secret(struct gw_mcp *mcp)
{
    if (!mcp)
        return;
    memcpy(mcp->sessions.secret, mcp->calls->options.secret, sizeof(mcp->sessions.secret));
    mcp_server_set_secret(mcp->server, mcp->calls->options.secret);
}

static peg_status make_server(struct gw_mcp *mcp)
{
    char prefix[BUS_ADDRESS_TEXT + 1];
    const struct mcp_config config = {
        .name = "pegboard",
        .version = peg_version(),
        .title = mcp->node->name,
        .source = &mcp->source,
        .page_items = PEG_LIMIT_MCP_PAGE_ITEMS,
        .ttl_ms = TTL_MS,
        .is_private = gw_auth_asks(mcp->node->auth),
        .wait_ms = PEG_LIMIT_MCP_WAIT_MS,
        .max_calls = PEG_LIMIT_GATEWAY_MCP_CALLS,
        .secret = mcp->calls->options.secret, /* a retry may come to any node */
        .ask_prefix = prefix,                 /* answers find this loop: gw_mcp_peek() */
    };

    bus_address_print(mcp->sessions.self, prefix);
    memcpy(prefix + strlen(prefix), "/", 2);
    memcpy(mcp->sessions.secret, mcp->calls->options.secret, sizeof(mcp->sessions.secret));
    return mcp_server_new(&config, &mcp->server);
}

peg_status gw_mcp_new(struct gw_node *node, unsigned number, struct gw_mcp **ret_mcp,
                      peg_error *reterr)
{
    struct gw_mcp *mcp = peg__alloc_zero(1, sizeof(*mcp));
    peg_status status;

    if (!mcp)
        return peg__fail_nomem(reterr);
    mcp->node = node;
    mcp->calls = node->calls[number];
    mcp->source = (struct mcp_source){.ops = &gw_mcp_source_ops,
                                      .offers = MCP_OFFERS_TOOLS | MCP_OFFERS_LOG |
                                                MCP_OFFERS_TASKS | MCP_OFFERS_EMPTY_LISTS};
    mcp->timer.fn = wake_clients;
    mcp->sessions = (struct gw_mcp_sessions){.by_key = PEG__MAP(PEG_LIMIT_GATEWAY_MCP_SESSIONS),
                                             .quota = &node->mcp.sessions,
                                             .self = mcp->calls->bus->self};
    status = peg__quota_init(&mcp->streams, &(struct peg__quota_limits){
                                                .max = PEG_LIMIT_GATEWAY_MCP_STREAMS,
                                                .has_shares = mcp->calls->options.has_principals});
    if (!status)
        status = make_server(mcp);
    if (status) {
        gw_mcp_free(mcp);
        return status == PEG_EIO
                   ? peg__fail(reterr, PEG_EIO, "E_GATEWAY", "the system has no randomness")
                   : peg__fail_nomem(reterr);
    }
    *ret_mcp = mcp;
    return PEG_OK;
}

struct gw_mcp *gw_mcp_free(struct gw_mcp *mcp)
{
    if (!mcp)
        return NULL;
    while (mcp->exchanges)
        gw_mcp_exchange_free(mcp->exchanges);
    net_loop_disarm(mcp->calls->loop, &mcp->timer);
    bus_disarm(mcp->calls->bus, &mcp->renewal);
    gw_mcp_sessions_clear(&mcp->sessions);
    mcp_server_free(mcp->server);
    peg__quota_destroy(&mcp->streams);
    peg__free(mcp);
    return NULL;
}
