/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a connection:
 *
 *   connect -> ready -> lost -> pause -> connect ...
 *                \-> the list has changed: read it again
 *
 * The first connection is made on the thread of peg_mcp_import(), the others on the manager's.
 */

#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

/* ---- connecting ---- */

static void set_ready(peg_mcp_client *client)
{
    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open) {
        client->is_ready = true;
        client->state.is_connected = true;
        client->state.n_connects++;
        peg__wait_wake(&client->wait); /* calls may wait for it */
    }
    pthread_mutex_unlock(&client->wait.lock);
}

/* A modern server tells of changes to those who ask, a legacy one asks on its own stream, too. */
static void listen_to_server(peg_mcp_client *client)
{
    struct mcp__message m = MCP__MESSAGE;
    int64_t id;

    if (client->era == MCP_LEGACY)
        client->link->listen(client, peg__str(""));
    if (client->era == MCP_LEGACY || !client->tells_changes)
        return;
    pthread_mutex_lock(&client->wait.lock);
    id = client->next_id++;
    pthread_mutex_unlock(&client->wait.lock);
    mcp__open_request(&m, id, "subscriptions/listen");
    mcp__put_request_meta(&m, client, false, 0);
    peg__out_key(&m.out, "notifications");
    peg__out_raw(&m.out, peg__str("{\"toolsListChanged\":true}"));
    mcp__close_request(&m);
    if (!m.text.status)
        client->link->listen(client, peg__buf_view(&m.text));
    mcp__message_free(&m);
}

static bool has_own_stream(void *user)
{
    const peg_mcp_client *client = user;

    return !client->awaits_stream || !client->is_open || client->is_stopping;
}

/* What the server says before its stream is there is lost: changes of its list, and questions of
 * calls. Some servers answer with the first event only: the list is read without them. */
static void await_own_stream(peg_mcp_client *client, peg_ctx *ctx)
{
    const int64_t until_ns =
        peg__mono_ns() + (int64_t)PEG_LIMIT_MCP_IMPORT_STREAM_MS * PEG_NS_PER_MS;

    pthread_mutex_lock(&client->wait.lock);
    (void)peg__wait_for(&client->wait, ctx, until_ns, has_own_stream, client);
    pthread_mutex_unlock(&client->wait.lock);
}

/* Silence until the deadline is what the host can do something about. */
static peg_status explain_silence(const peg_mcp_client *client, peg_status status,
                                  peg_error *reterr)
{
    if (status != PEG_ETIMEOUT)
        return status;
    return peg__fail(reterr, PEG_ETIMEOUT, "E_MCP_START",
                     "the MCP server did not answer within %lld ms",
                     (long long)client->options.start_ms);
}

peg_status mcp__connect_and_list(peg_mcp_client *client, peg_error *reterr)
{
    peg_ctx *ctx = NULL;
    peg_status status = peg_ctx_with_deadline(client->ctx, client->options.start_ms, &ctx, reterr);

    if (!status)
        status = client->link->open(client, reterr);
    if (!status)
        status = mcp__connect(client, ctx, reterr);
    if (!status) {
        listen_to_server(client); /* first, so that no change is missed */
        await_own_stream(client, ctx);
        status = mcp__list_imported(client, ctx, reterr);
    }
    if (status) {
        status = explain_silence(client, status, reterr);
        client->link->close(client);
    } else {
        set_ready(client);
    }
    peg_ctx_unref(ctx);
    return status;
}

/* ---- while it is connected ---- */

static bool has_event(void *user)
{
    const peg_mcp_client *client = user;

    return client->is_stopping || !client->is_open || client->has_new_list;
}

static bool is_stopping(void *user)
{
    const peg_mcp_client *client = user;

    return client->is_stopping;
}

/* False: it is to stop. */
static bool pause_for(peg_mcp_client *client, int64_t ms)
{
    bool stops;

    pthread_mutex_lock(&client->wait.lock);
    stops = peg__wait_for(&client->wait, NULL, peg__mono_ns() + ms * PEG_NS_PER_MS, is_stopping,
                          client) == PEG__WOKE_DONE;
    pthread_mutex_unlock(&client->wait.lock);
    return !stops;
}

void mcp__report_tools(peg_mcp_client *client, peg_mcp_event_kind kind)
{
    const peg_mcp_client_state state = peg_mcp_client_info(client);

    mcp__report(client, &(peg_mcp_event){.kind = kind,
                                         .server = state.server,
                                         .version = state.version,
                                         .n_tools = state.n_tools});
}

/* A list that cannot be read again is a reason to begin anew. */
static peg_status relist(peg_mcp_client *client, peg_error *reterr)
{
    peg_ctx *ctx = NULL;
    peg_status status = peg_ctx_with_deadline(client->ctx, client->options.start_ms, &ctx, reterr);

    if (!status)
        status = mcp__list_imported(client, ctx, reterr);
    peg_ctx_unref(ctx);
    if (!status)
        mcp__report_tools(client, PEG_MCP_TOOLS_CHANGED);
    return explain_silence(client, status, reterr);
}

/* Is it there? Over HTTP only an answer tells. */
static peg_status check_server(peg_mcp_client *client, peg_error *reterr)
{
    struct mcp__exchange x = {.client = client,
                              .method = client->era == MCP_MODERN ? "server/discover" : "ping"};
    struct mcp__message m = MCP__MESSAGE;
    peg_ctx *ctx = NULL;
    peg_status status = peg_ctx_with_deadline(client->ctx, client->options.start_ms, &ctx, reterr);

    if (!status)
        status = mcp__exchange_begin(&x, reterr);
    if (!status) {
        mcp__open_request(&m, x.id, x.method);
        mcp__put_request_meta(&m, client, false, 0);
        mcp__close_request(&m);
        status = mcp__exchange_run(&x, ctx, &m.text, reterr);
    }
    mcp__exchange_end(&x);
    mcp__message_free(&m);
    peg_ctx_unref(ctx);
    return explain_silence(client, status, reterr);
}

/* When to ask it, unless something happens before. */
static int64_t next_check_ns(const peg_mcp_client *client)
{
    return client->link->is_http ? peg__mono_ns() + client->options.check_ms * PEG_NS_PER_MS
                                 : INT64_MAX;
}

/* Until it is lost, and why, or PEG_OK: it is to stop. */
static peg_status follow_server(peg_mcp_client *client, peg_error *reterr)
{
    peg_status status = PEG_OK;
    bool goes_on = true;

    while (goes_on && !status) {
        enum peg__woke woke;
        bool has_list;

        pthread_mutex_lock(&client->wait.lock);
        woke = peg__wait_for(&client->wait, NULL, next_check_ns(client), has_event, client);
        goes_on = !client->is_stopping;
        if (goes_on && !client->is_open) {
            status = client->lost;
            *reterr = client->why;
        }
        has_list = goes_on && !status && client->has_new_list;
        client->has_new_list = false;
        pthread_mutex_unlock(&client->wait.lock);
        if (woke == PEG__WOKE_TIME)
            status = check_server(client, reterr);
        if (has_list)
            status = relist(client, reterr);
        if (has_list && !status)
            goes_on = pause_for(client, PEG_LIMIT_MCP_IMPORT_RELIST_MS);
    }
    return status;
}

/* ---- between connections ---- */

/* Twice as long each time, less up to a quarter by chance. */
static int64_t take_backoff_ms(peg_mcp_client *client)
{
    const int64_t ms = client->backoff_ms;
    const int64_t twice = 2 * ms;
    const int64_t most = client->options.max_backoff_ms;
    uint64_t chance = (uint64_t)peg__mono_ns() / 1000;

    client->backoff_ms = twice < most ? twice : most;
    return ms - (int64_t)(chance % (uint64_t)(ms / 4 + 1));
}

/* One that stayed for as long as the longest pause begins anew. */
static void judge_stay(peg_mcp_client *client, int64_t since_ns)
{
    if (peg__mono_ns() - since_ns > client->options.max_backoff_ms * PEG_NS_PER_MS)
        client->backoff_ms = client->options.backoff_ms;
}

static void report_lost(peg_mcp_client *client, const peg_error *why, int64_t retry_ms)
{
    const peg_mcp_client_state state = peg_mcp_client_info(client);

    mcp__report(client, &(peg_mcp_event){.kind = PEG_MCP_LOST,
                                         .server = state.server,
                                         .code = why->code,
                                         .message = why->message,
                                         .retry_ms = retry_ms});
    peg__log(PEG_LOG_WARN, why->code, "an MCP server was lost, and is started again in %lld ms: %s",
             (long long)retry_ms, why->message);
}

/* A session that ended, and not as soon as it had begun, is no reason to wait. */
static bool can_hurry(peg_mcp_client *client, int64_t since_ns)
{
    bool has_ended;

    pthread_mutex_lock(&client->wait.lock);
    has_ended = client->ended_session;
    pthread_mutex_unlock(&client->wait.lock);
    return has_ended && peg__mono_ns() - since_ns > PEG_LIMIT_MCP_IMPORT_RESUME_MS * PEG_NS_PER_MS;
}

/* False: it is to stop. */
static bool reconnect(peg_mcp_client *client, peg_error why, bool hurries)
{
    peg_status status;

    do {
        const int64_t ms = hurries ? 0 : take_backoff_ms(client);

        report_lost(client, &why, ms);
        if (!pause_for(client, ms))
            return false;
        hurries = false;
        status = mcp__connect_and_list(client, &why);
    } while (status);
    mcp__report_tools(client, PEG_MCP_CONNECTED);
    return true;
}

void *mcp__manage(void *user)
{
    peg_mcp_client *client = user;
    bool goes_on = true;
    sigset_t all;

    sigfillset(&all); /* signals are the host's */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (goes_on) {
        const int64_t since_ns = peg__mono_ns();
        peg_error why;

        bool hurries;

        goes_on = follow_server(client, &why) != PEG_OK;
        hurries = can_hurry(client, since_ns);
        client->link->close(client);
        judge_stay(client, since_ns);
        if (goes_on)
            goes_on = reconnect(client, why, hurries);
    }
    return NULL;
}
