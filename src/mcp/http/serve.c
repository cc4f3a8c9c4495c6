/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request of HTTP, from its head to the end of its answer.
 *
 *   POST    one message, and its answer
 *   GET     the stream on which the client of a session hears of changes
 *   DELETE  ends a session
 *
 *   client is gone  a modern request is canceled; a legacy call goes on, and its answer is dropped
 *   stopped         streams end, calls have drain_ms, and what comes is refused
 *
 * Functions of the host are called without a lock.
 */

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/http/internal.h"

/* How often a thread that waits looks for its client, and whether the server was stopped. */
enum { TICK_MS = 500, MAX_PARAMS = 64 };

/* ---- its head ---- */

/* Read before the lock is taken. */
struct head {
    const char *principal;
    peg_str session; /* "": none */
    bool is_modern;
    bool takes_events;
    struct mcp_http http;
    struct mcp_param params[MAX_PARAMS];
};

/* The first of its name; "": there is none. */
static peg_str read_header(const peg_mcp_http *http, const char *name)
{
    for (size_t i = 0; i < http->n_headers; i++) {
        if (strcasecmp(http->headers[i].name, name) == 0)
            return peg__str(http->headers[i].value);
    }
    return peg__str("");
}

/* Headers that repeat arguments. */
static size_t read_params(const peg_mcp_http *http, struct mcp_param ret_params[MAX_PARAMS])
{
    static const char prefix[] = "mcp-param-";
    const size_t len = sizeof(prefix) - 1;
    size_t n = 0;

    for (size_t i = 0; i < http->n_headers && n < MAX_PARAMS; i++) {
        const peg_mcp_header *header = &http->headers[i];

        if (strncasecmp(header->name, prefix, len) == 0)
            ret_params[n++] =
                (struct mcp_param){peg__str(header->name + len), peg__str(header->value)};
    }
    return n;
}

static bool has_part(peg_str text, const char *part)
{
    return text.len && memmem(text.ptr, text.len, part, strlen(part));
}

static void read_head(const peg_mcp_http *http, struct head *head)
{
    const peg_str accept = read_header(http, "accept");
    const peg_str version = read_header(http, "mcp-protocol-version");

    *head = (struct head){
        .principal = http->principal ? http->principal : "local",
        .is_modern = version.len && peg__str_compare(version, peg__str("2026")) > 0,
        .takes_events = !accept.len || has_part(accept, "text/event-stream") ||
                        has_part(accept, "*/*") || has_part(accept, "text/*"),
        .http = {.version = version,
                 .method = read_header(http, "mcp-method"),
                 .name = read_header(http, "mcp-name")},
    };
    head->http.params = head->params;
    head->http.n_params = read_params(http, head->params);
    if (!head->is_modern)
        head->session = read_header(http, "mcp-session-id");
    head->http.has_session = head->session.len || has_part(http->body, "\"initialize\"");
}

/* False: it was answered. */
static bool admit(const peg_mcp_http *http)
{
    const peg_str host = read_header(http, "host");

    if (!mcp_takes_host(host, http->hosts) ||
        !mcp_takes_origin(read_header(http, "origin"), host, http->hosts)) {
        mcp__reply_text(http, 403,
                        "this server is not known by the name in Host, or pages of this Origin may "
                        "not use it\n");
        return false;
    }
    return true;
}

/* ---- the loop: under the lock ---- */

static void pump(struct mcp_web *web)
{
    mcp_server_advance(web->protocol, mcp__now_ms(), peg_clock_now_ms(peg_clock_system()));
    mcp_host_pump(web->host);
}

static void notice_stop(struct mcp_web *web)
{
    const unsigned n_stops = atomic_load(web->n_stops);

    if (!n_stops)
        return;
    if (!web->stopped_ms) {
        web->stopped_ms = mcp__now_ms();
        for (struct mcp__web_client *client = web->clients; client; client = client->next) {
            if (client->peer)
                mcp_peer_finish(client->peer);
        }
    }
    if (n_stops > 1 || web->stopped_ms + web->drain_ms <= mcp__now_ms())
        mcp_server_cancel_all(web->protocol, "the server stops");
}

static void enter_web(struct mcp_web *web)
{
    pthread_mutex_lock(&web->lock);
    pump(web);
    notice_stop(web);
}

static void leave_web(struct mcp_web *web)
{
    mcp__web_reap(web);
    pthread_mutex_unlock(&web->lock);
    mcp__resign(web);
}

static bool is_exchange_over(const struct mcp__exchange *exchange)
{
    const struct mcp__web_client *client = exchange->client;

    if (exchange->stage == MCP__ANSWERED || !client->peer)
        return true;
    if (exchange->is_listening)
        return client->web->stopped_ms != 0;
    return !mcp_peer_awaits(client->peer, exchange);
}

static bool is_client_gone(const struct mcp__exchange *exchange)
{
    const peg_mcp_http *http = exchange->http;

    return exchange->is_gone || (http->is_gone && http->is_gone(http->user));
}

static struct peg__buf take_output(struct mcp__exchange *exchange)
{
    const struct peg__buf out = exchange->out;

    exchange->out = (struct peg__buf)PEG__BUF(out.max);
    return out;
}

/* Writes what comes until the answer has come, or the client is gone. The lock is held before and
 * after. */
static peg_status run_exchange(struct mcp__exchange *exchange)
{
    struct mcp_web *web = exchange->client->web;
    bool is_last = false;
    peg_status status = PEG_OK;

    while (!is_last && !exchange->is_gone && !status) {
        struct peg__buf out = take_output(exchange);
        const int64_t due_ms = mcp_server_due_ms(web->protocol);
        bool leads = false;

        is_last = is_exchange_over(exchange);
        status = out.status;
        pthread_mutex_unlock(&web->lock);
        if (out.len) /* a client that does not read must not keep others waiting */
            mcp__resign(web);
        if (!status)
            mcp__exchange_write(exchange, &out);
        peg__buf_free(&out);
        if (!is_last && !status) {
            leads = mcp__wait(exchange, mcp__now_ms() + TICK_MS, due_ms);
            exchange->is_gone = is_client_gone(exchange);
        }
        pthread_mutex_lock(&web->lock);
        if (leads)
            pump(web);
        notice_stop(web);
    }
    return status;
}

/* Its thread leaves. */
static void lose_exchange(struct mcp__exchange *exchange)
{
    exchange->http = NULL;
    if (exchange->stage != MCP__ANSWERED && exchange->client->peer)
        mcp_peer_close_stream(exchange->client->peer, exchange);
}

/* ---- requests ---- */

/* NULL: *ret_refusal is the status of the answer. */
static struct mcp__exchange *open_exchange(struct mcp_web *web, const peg_mcp_http *http,
                                           const struct head *head, int *ret_refusal)
{
    struct mcp__web_client *client;
    struct mcp__exchange *exchange;

    *ret_refusal = 503;
    if (web->stopped_ms)
        return NULL;
    if (head->session.len) {
        client = mcp__web_client_find(web, head->session, head->principal);
        if (!client)
            *ret_refusal = 404;
    } else {
        client = mcp__web_client_new(web, head->principal, &mcp__exchange_ops);
    }
    exchange = client ? mcp__exchange_new(client, http) : NULL;
    if (exchange)
        exchange->takes_events = head->takes_events;
    return exchange;
}

static void refuse_http(const peg_mcp_http *http, int status)
{
    mcp__reply_text(http, status,
                    status == 404 ? "there is no such session: initialize again\n"
                                  : "the server stops, or is out of memory: try again later\n");
}

static void note_session(struct mcp__exchange *exchange)
{
    struct mcp__web_client *client = exchange->client;

    if (!client->peer || client->id[0] || !mcp_peer_version(client->peer))
        return;
    mcp__web_client_keep(client);
    memcpy(exchange->session, client->id, sizeof(exchange->session));
}

/* Without a lock: what was not answered by a message. */
static void end_answer(struct mcp__exchange *exchange, bool is_request, bool is_stopped)
{
    if (exchange->has_begun || exchange->is_gone)
        return;
    if (!is_request)
        mcp__reply_text(exchange->http, 202, "");
    else if (is_stopped)
        refuse_http(exchange->http, 503);
    else
        mcp__exchange_finish(exchange); /* canceled */
}

static peg_status serve_post(struct mcp_web *web, const peg_mcp_http *http, const struct head *head)
{
    struct mcp__exchange *exchange;
    bool is_request;
    bool is_stopped;
    int refusal;
    peg_status status;

    enter_web(web);
    exchange = open_exchange(web, http, head, &refusal);
    if (!exchange) {
        leave_web(web);
        refuse_http(http, refusal);
        return PEG_OK;
    }
    status = mcp_peer_receive_http(exchange->client->peer, http->body, exchange, &head->http);
    is_request =
        exchange->stage != MCP__WAITING || mcp_peer_awaits(exchange->client->peer, exchange);
    note_session(exchange);
    if (status)
        mcp__web_client_end(exchange->client);
    else
        status = run_exchange(exchange);
    is_stopped = web->stopped_ms != 0 || status;
    pthread_mutex_unlock(&web->lock);
    end_answer(exchange, is_request || status, is_stopped);
    pthread_mutex_lock(&web->lock);
    lose_exchange(exchange);
    leave_web(web);
    return status;
}

static peg_status serve_get(struct mcp_web *web, const peg_mcp_http *http, const struct head *head)
{
    struct mcp__exchange *exchange;
    int refusal;
    peg_status status;

    enter_web(web);
    exchange = open_exchange(web, http, head, &refusal);
    if (!exchange) {
        leave_web(web);
        refuse_http(http, refusal);
        return PEG_OK;
    }
    exchange->is_listening = true;
    exchange->stage = MCP__STREAMING;
    peg__buf_puts(&exchange->out, ":\n\n");
    status = run_exchange(exchange);
    lose_exchange(exchange);
    leave_web(web);
    return status;
}

static void serve_delete(struct mcp_web *web, const peg_mcp_http *http, const struct head *head)
{
    struct mcp__web_client *client;

    enter_web(web);
    client = mcp__web_client_find(web, head->session, head->principal);
    if (client)
        mcp__web_client_end(client);
    leave_web(web);
    if (client)
        mcp__reply_text(http, 200, "");
    else
        refuse_http(http, 404);
}

static bool has_json(const peg_mcp_http *http)
{
    static const char json[] = "application/json";
    const peg_str type = read_header(http, "content-type");

    return type.len >= sizeof(json) - 1 && strncasecmp(type.ptr, json, sizeof(json) - 1) == 0;
}

static peg_status route(struct mcp_web *web, const peg_mcp_http *http)
{
    struct head head;

    read_head(http, &head);
    if (!strcmp(http->method, "POST")) {
        if (has_json(http))
            return serve_post(web, http, &head);
        mcp__reply_text(http, 415, "send 'Content-Type: application/json'\n");
    } else if (!head.session.len) {
        mcp__reply_text(http, 405, "send a POST; GET and DELETE are for sessions\n");
    } else if (!strcmp(http->method, "DELETE")) {
        serve_delete(web, http, &head);
    } else if (strcmp(http->method, "GET") != 0) {
        mcp__reply_text(http, 405, "send a POST, GET or DELETE\n");
    } else if (!head.takes_events) {
        mcp__reply_text(http, 406, "send 'Accept: text/event-stream'\n");
    } else {
        return serve_get(web, http, &head);
    }
    return PEG_OK;
}

peg_status mcp_web_serve(struct mcp_web *web, const peg_mcp_http *http, peg_error *reterr)
{
    if (!http->method || !http->headers || !http->begin || !http->write)
        return peg__fail(reterr, PEG_EINVAL, "E_MCP",
                         "a request needs method, headers, begin and write");
    if (!admit(http))
        return PEG_OK;
    return route(web, http) ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- its life ---- */

peg_status mcp_web_new(int64_t drain_ms, atomic_uint *n_stops, struct mcp_web **ret_web)
{
    struct mcp_web *web = peg__alloc_zero(1, sizeof(*web));

    if (!web)
        return PEG_ENOMEM;
    web->drain_ms = drain_ms;
    web->n_stops = n_stops;
    web->sessions = (struct peg__map)PEG__MAP(PEG_LIMIT_MCP_SESSIONS);
    pthread_mutex_init(&web->lock, NULL);
    pthread_mutex_init(&web->wait_lock, NULL);
    pthread_cond_init(&web->reported, NULL);
    *ret_web = web;
    return PEG_OK;
}

void mcp_web_set_host(struct mcp_web *web, struct mcp_host *host, struct mcp_server *protocol)
{
    web->host = host;
    web->protocol = protocol;
}

/* Calls that are canceled still end. */
void mcp_web_drain(struct mcp_web *web)
{
    if (!web || !web->host)
        return;
    while (web->clients) {
        struct mcp__web_client *client = web->clients;

        mcp__web_client_end(client);
        mcp__web_reap(web);
    }
    mcp_server_cancel_all(web->protocol, "the server stops");
    for (;;) {
        pump(web);
        if (!mcp_server_n_calls(web->protocol))
            return;
        pthread_mutex_lock(&web->wait_lock);
        while (!web->has_reports)
            pthread_cond_wait(&web->reported, &web->wait_lock);
        web->has_reports = false;
        pthread_mutex_unlock(&web->wait_lock);
    }
}

struct mcp_web *mcp_web_free(struct mcp_web *web)
{
    if (!web)
        return NULL;
    peg__map_free(&web->sessions);
    pthread_cond_destroy(&web->reported);
    pthread_mutex_destroy(&web->wait_lock);
    pthread_mutex_destroy(&web->lock);
    peg__free(web);
    return NULL;
}
