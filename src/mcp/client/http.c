/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The link to a server over HTTP. A request is sent, and its answer read, on the thread that waits
 * for it. Two more threads do what no call waits for: one listens to what the server says of
 * itself, the other sends notifications and responses, in order, and begins with the first of them.
 */

#include <signal.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

struct outgoing {
    struct outgoing *next;
    size_t len;
    char text[];
};

struct http {
    peg_mcp_client *client;
    peg_ctx *ctx; /* of the threads */
    peg_cancel *cancel;
    pthread_t listener;
    bool has_listener;
    struct peg__buf listening; /* what the listener sends; empty: it asks with GET */
    pthread_t sender;
    /* under the client's lock */
    bool has_sender;
    struct outgoing *first;
    struct outgoing *last;
    size_t n_waiting; /* bytes */
};

static void block_signals(void)
{
    sigset_t all;

    sigfillset(&all); /* signals are the host's */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

/* ---- messages without an answer ---- */

static void post_message(struct http *h, peg_str message)
{
    struct mcp__request_http r;
    peg_ctx *ctx = NULL;
    peg_error ignored;

    if (peg_ctx_with_deadline(h->ctx, PEG_LIMIT_MCP_IMPORT_POST_MS, &ctx, &ignored))
        return;
    mcp__http_begin(&r, h->client);
    r.message = message;
    (void)mcp__http_send(&r, ctx, &ignored);
    mcp__http_end(&r);
    peg_ctx_unref(ctx);
}

static bool has_outgoing(void *user)
{
    const struct http *h = user;

    return h->first || peg_cancel_fired(h->cancel);
}

/* NULL: it is to stop. */
static struct outgoing *take_outgoing(struct http *h)
{
    struct outgoing *message = NULL;

    pthread_mutex_lock(&h->client->wait.lock);
    peg__wait_for(&h->client->wait, NULL, INT64_MAX, has_outgoing, h);
    if (!peg_cancel_fired(h->cancel)) {
        message = h->first;
        h->first = message->next;
        h->n_waiting -= message->len;
        if (!h->first)
            h->last = NULL;
    }
    pthread_mutex_unlock(&h->client->wait.lock);
    return message;
}

static void *send_all(void *user)
{
    struct http *h = user;
    struct outgoing *message;

    block_signals();
    while ((message = take_outgoing(h))) {
        post_message(h, peg__strn(message->text, message->len));
        peg__free(message);
    }
    return NULL;
}

/* Under the lock. */
static void queue_outgoing(struct http *h, struct outgoing *message)
{
    if (h->last)
        h->last->next = message;
    else
        h->first = message;
    h->last = message;
    h->n_waiting += message->len;
    if (!h->has_sender)
        h->has_sender = pthread_create(&h->sender, NULL, send_all, h) == 0;
    peg__wait_wake(&h->client->wait);
}

static void send_later(peg_mcp_client *client, peg_str text)
{
    struct outgoing *message = peg__alloc(sizeof(*message) + text.len);
    bool is_queued = false;

    if (!message)
        return;
    *message = (struct outgoing){.len = text.len};
    memcpy(message->text, text.ptr, text.len);
    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open) {
        struct http *h = client->link_state;

        is_queued = h->n_waiting + text.len <= PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES;
        if (is_queued)
            queue_outgoing(h, message);
    }
    pthread_mutex_unlock(&client->wait.lock);
    if (!is_queued)
        peg__free(message);
}

/* Those that are waited for are the manager's, which closes the link itself. */
static void send_http(peg_mcp_client *client, peg_str message, bool waits)
{
    if (waits)
        post_message(client->link_state, message);
    else
        send_later(client, message);
}

/* ---- requests ---- */

static peg_status exchange_http(struct mcp__exchange *x, peg_ctx *ctx, peg_str message,
                                peg_error *reterr)
{
    peg_mcp_client *client = x->client;
    peg_ctx *own = NULL;
    peg_cancel *cancel = NULL;
    peg_status status = peg_ctx_with_cancel(ctx, &own, &cancel, reterr);

    if (status)
        return status;
    pthread_mutex_lock(&client->wait.lock);
    x->cancel = cancel;
    pthread_mutex_unlock(&client->wait.lock);
    if (!mcp__exchange_is_done(x))
        mcp__http_exchange(x, own, message);
    pthread_mutex_lock(&client->wait.lock);
    x->cancel = NULL;
    pthread_mutex_unlock(&client->wait.lock);
    peg_cancel_unref(cancel);
    peg_ctx_unref(own);
    return mcp__exchange_wait(x, ctx, reterr);
}

/* ---- what the server says of itself ---- */

/* False: there is no use in asking again. */
static bool judge_stream(struct mcp__request_http *r, peg_status status, const peg_error *error)
{
    peg_error why;

    if (status && !r->answer.status && !r->answer.was_sent) {
        mcp__http_explain(error, &why);
        mcp__mark_lost(r->client, &why, false);
        return false;
    }
    if (!mcp__http_lost_session(r))
        return status || r->answer.status == 200 || r->answer.status >= 500;
    peg__fail(&why, PEG_EIO, "E_MCP_UNAVAILABLE", "the MCP server has ended the session");
    mcp__mark_lost(r->client, &why, true);
    return false;
}

/* Streams that end soon are asked for less and less often. */
static int64_t choose_pause_ms(const struct mcp__request_http *r, int64_t *backoff_ms)
{
    const int64_t ms = r->sse.retry_ms >= 0 ? r->sse.retry_ms : *backoff_ms;
    const int64_t most = PEG_LIMIT_MCP_IMPORT_BACKOFF_MAX_MS;

    *backoff_ms = r->n_events              ? PEG_LIMIT_MCP_IMPORT_RESUME_MS
                  : 2 * *backoff_ms < most ? 2 * *backoff_ms
                                           : most;
    return ms < PEG_LIMIT_MCP_IMPORT_RESUME_MS / 10 ? PEG_LIMIT_MCP_IMPORT_RESUME_MS / 10 : ms;
}

static void *listen_on(void *user)
{
    struct http *h = user;
    int64_t backoff_ms = PEG_LIMIT_MCP_IMPORT_RESUME_MS;
    struct mcp__request_http r;
    bool goes_on = true;

    block_signals();
    mcp__http_begin(&r, h->client);
    r.message = peg__buf_view(&h->listening);
    r.verb = r.message.len ? NULL : "GET";
    r.is_own_stream = true;
    while (goes_on) {
        peg_error error;
        const peg_status status = mcp__http_send(&r, h->ctx, &error);

        mcp__settle_stream(h->client); /* also if there is none */
        goes_on = !peg_ctx_check(h->ctx, NULL) && judge_stream(&r, status, &error) &&
                  !peg_ctx_wait(h->ctx, choose_pause_ms(&r, &backoff_ms), &error);
        r.is_listening = true;
    }
    mcp__http_end(&r);
    return NULL;
}

static void listen_http(peg_mcp_client *client, peg_str message)
{
    struct http *h = client->link_state;

    peg__buf_str(&h->listening, message);
    if (h->listening.status)
        return;
    pthread_mutex_lock(&client->wait.lock);
    client->awaits_stream = true;
    pthread_mutex_unlock(&client->wait.lock);
    h->has_listener = pthread_create(&h->listener, NULL, listen_on, h) == 0;
    if (!h->has_listener)
        mcp__settle_stream(client);
}

/* ---- open and close ---- */

static void free_http_link(struct http *h)
{
    while (h->first) {
        struct outgoing *message = h->first;

        h->first = message->next;
        peg__free(message);
    }
    peg__buf_free(&h->listening);
    peg_ctx_unref(h->ctx);
    peg_cancel_unref(h->cancel);
    peg__free(h);
}

static peg_status open_http(peg_mcp_client *client, peg_error *reterr)
{
    struct http *h = peg__alloc_zero(1, sizeof(*h));
    peg_status status;

    if (!h)
        return peg__fail_nomem(reterr);
    h->client = client;
    h->listening = (struct peg__buf)PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES);
    status = peg_ctx_with_cancel(NULL, &h->ctx, &h->cancel, reterr);
    if (status) {
        free_http_link(h);
        return status;
    }
    client->link_state = h;
    pthread_mutex_lock(&client->wait.lock);
    client->session[0] = '\0';
    pthread_mutex_unlock(&client->wait.lock);
    mcp__opened(client);
    return PEG_OK;
}

/* Tells the server that the session is over, if it can be reached. */
static void delete_session(peg_mcp_client *client)
{
    struct mcp__request_http r;
    peg_ctx *ctx = NULL;
    peg_error ignored;

    bool has_session;

    pthread_mutex_lock(&client->wait.lock);
    has_session = client->session[0] && !client->ended_session;
    pthread_mutex_unlock(&client->wait.lock);
    if (!has_session || peg_ctx_with_deadline(NULL, PEG_LIMIT_MCP_IMPORT_DELETE_MS, &ctx, &ignored))
        return;
    mcp__http_begin(&r, client);
    r.verb = "DELETE";
    (void)mcp__http_send(&r, ctx, &ignored);
    mcp__http_end(&r);
    peg_ctx_unref(ctx);
}

static void stop_exchanges(peg_mcp_client *client)
{
    peg_cancel *cancels[PEG_LIMIT_MCP_IMPORT_CALLS];
    size_t n = 0;

    pthread_mutex_lock(&client->wait.lock);
    for (struct mcp__exchange *x = client->exchanges; client->is_stopping && x; x = x->next) {
        if (x->cancel)
            cancels[n++] = peg_cancel_ref(x->cancel);
    }
    pthread_mutex_unlock(&client->wait.lock);
    while (n) {
        peg_cancel_fire(cancels[--n], "the MCP server is closed");
        peg_cancel_unref(cancels[n]);
    }
}

static void close_threads(struct http *h, const peg_error *why)
{
    peg_mcp_client *client = h->client;

    peg_cancel_fire(h->cancel, "the MCP server is closed");
    pthread_mutex_lock(&client->wait.lock);
    peg__wait_wake(&client->wait);
    pthread_mutex_unlock(&client->wait.lock);
    mcp__mark_lost(client, why, false);
    if (h->has_listener)
        pthread_join(h->listener, NULL);
    if (h->has_sender)
        pthread_join(h->sender, NULL);
}

static void close_http(peg_mcp_client *client)
{
    struct http *h = client->link_state;
    peg_error why;

    peg__fail(&why, PEG_EIO, "E_MCP_UNAVAILABLE", "the MCP server was closed here");
    if (h)
        close_threads(h, &why);
    mcp__lose_all(client, &why);
    stop_exchanges(client);
    if (!h)
        return;
    delete_session(client);
    client->link_state = NULL;
    free_http_link(h);
}

const struct mcp__link_ops mcp__http_link = {
    .open = open_http,
    .exchange = exchange_http,
    .send = send_http,
    .listen = listen_http,
    .close = close_http,
    .is_http = true,
};
