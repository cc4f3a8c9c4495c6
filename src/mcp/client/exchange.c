/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that wait for an answer, and what the server sends: an answer goes to its exchange,
 * progress and questions wait as notes for the thread of theirs, the rest is counted.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

/* ---- a request ---- */

static peg_status reject_begin(const peg_mcp_client *client, peg_error *reterr)
{
    if (client->is_stopping)
        return peg__fail(reterr, PEG_EIO, "E_MCP_UNAVAILABLE",
                         "the MCP server was closed here: the call was not started");
    if (client->lost == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_EIO, "E_MCP_UNAVAILABLE",
                     "the MCP server is not running, and the call was not started; try again in a "
                     "few seconds (%.200s)",
                     client->lost ? client->why.message : "it is being started");
}

peg_status mcp__exchange_begin(struct mcp__exchange *x, peg_error *reterr)
{
    peg_mcp_client *client = x->client;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->wait.lock);
    if (client->is_stopping || !(x->is_call ? client->is_ready : client->is_open)) {
        status = reject_begin(client, reterr);
    } else if (client->n_exchanges >= PEG_LIMIT_MCP_IMPORT_CALLS) {
        status = peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                           "more than %d calls wait for the MCP server: try again later",
                           PEG_LIMIT_MCP_IMPORT_CALLS);
    } else {
        x->id = client->next_id++;
        x->sent_at = UINT64_MAX; /* not at all */
        PEG_LIST_PUSH(client->exchanges, x, next, prev);
        client->n_exchanges++;
        client->n_calls += x->is_call;
    }
    pthread_mutex_unlock(&client->wait.lock);
    return status;
}

static void free_note(struct mcp__note *note)
{
    peg_json_doc_free(note->doc);
    peg__free(note);
}

void mcp__exchange_end(struct mcp__exchange *x)
{
    peg_mcp_client *client = x->client;

    if (x->id) {
        pthread_mutex_lock(&client->wait.lock);
        PEG_LIST_REMOVE(client->exchanges, x, next, prev);
        client->n_exchanges--;
        client->n_calls -= x->is_call;
        pthread_mutex_unlock(&client->wait.lock);
    }
    while (x->first) {
        struct mcp__note *note = x->first;

        x->first = note->next;
        free_note(note);
    }
    x->answer = peg_json_doc_free(x->answer);
    x->id = 0;
}

/* ---- waiting ---- */

static bool has_news(void *user)
{
    const struct mcp__exchange *x = user;

    return x->is_done || x->first;
}

/* Under the lock. */
static struct mcp__note *take_note(struct mcp__exchange *x)
{
    struct mcp__note *note = x->first;

    if (note) {
        x->first = note->next;
        x->n_notes--;
        if (!x->first)
            x->last = NULL;
    }
    return note;
}

void mcp__exchange_take_notes(struct mcp__exchange *x)
{
    struct peg__wait *wait = &x->client->wait;
    struct mcp__note *note;

    pthread_mutex_lock(&wait->lock);
    while ((note = take_note(x))) {
        pthread_mutex_unlock(&wait->lock);
        if (x->on_note)
            x->on_note(x, peg_json_root(note->doc));
        free_note(note);
        pthread_mutex_lock(&wait->lock);
    }
    pthread_mutex_unlock(&wait->lock);
}

peg_status mcp__exchange_wait(struct mcp__exchange *x, peg_ctx *ctx, peg_error *reterr)
{
    struct peg__wait *wait = &x->client->wait;
    enum peg__woke woke = PEG__WOKE_DONE;
    bool is_done = false;

    while (woke == PEG__WOKE_DONE && !is_done) {
        mcp__exchange_take_notes(x);
        pthread_mutex_lock(&wait->lock);
        woke = peg__wait_for(wait, ctx, INT64_MAX, has_news, x);
        is_done = x->is_done && !x->first;
        pthread_mutex_unlock(&wait->lock);
    }
    if (!is_done) {
        peg__ctx_why_stopped(ctx, reterr);
        return reterr->status;
    }
    if (x->status)
        *reterr = x->error;
    return x->status;
}

peg_status mcp__exchange_run(struct mcp__exchange *x, peg_ctx *ctx, struct peg__buf *message,
                             peg_error *reterr)
{
    if (message->status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                         "the request is larger than %d MiB: send less",
                         PEG_LIMIT_MCP_IMPORT_BYTES >> 20);
    if (message->status)
        return peg__fail_nomem(reterr);
    return x->client->link->exchange(x, ctx, peg__buf_view(message), reterr);
}

const peg_json *mcp__read_result(const peg_json_doc *answer, peg_error *reterr)
{
    const peg_json *message = peg_json_root(answer);
    const peg_json *result = peg_json_get(message, "result");
    const peg_json *error = peg_json_get(message, "error");
    const peg_str text = peg_json_str_or(peg_json_get(error, "message"), "it does not say why");
    const size_t len = text.len <= 300 ? text.len : peg__utf8_cut(text.ptr, 300);

    if (peg_json_kind_of(result) == PEG_JSON_OBJECT)
        return result;
    if (error)
        peg__fail(reterr, PEG_EHOST, "E_MCP_SERVER",
                  "the MCP server answered with error %lld: %.*s",
                  (long long)peg_json_int64_or(peg_json_get(error, "code"), 0), (int)len, text.ptr);
    else
        peg__fail(reterr, PEG_EHOST, "E_MCP_PROTOCOL",
                  "the MCP server answered with neither a result nor an error");
    return NULL;
}

const peg_json *mcp__exchange_result(const struct mcp__exchange *x, peg_error *reterr)
{
    return mcp__read_result(x->answer, reterr);
}

/* ---- what comes: under the lock ---- */

/* One that belongs to no request. */
static peg_status count_stray(peg_mcp_client *client, peg_error *reterr)
{
    const int64_t now = peg__mono_ns();

    if (now - client->window_ns > PEG_LIMIT_MCP_IMPORT_WINDOW_MS * PEG_NS_PER_MS) {
        client->window_ns = now;
        client->n_strays = 0;
    }
    if (++client->n_strays <= PEG_LIMIT_MCP_IMPORT_STRAYS)
        return PEG_OK;
    return peg__fail(reterr, PEG_EHOST, "E_MCP_LIMIT",
                     "the MCP server floods: more than %d messages in %d s that answer nothing",
                     PEG_LIMIT_MCP_IMPORT_STRAYS, PEG_LIMIT_MCP_IMPORT_WINDOW_MS / 1000);
}

static struct mcp__exchange *find_exchange(const peg_mcp_client *client, const peg_json *id)
{
    struct mcp__exchange *x = client->exchanges;
    int64_t number;

    if (!id || !peg_json_int64(id, &number))
        return NULL;
    while (x && x->id != number)
        x = x->next;
    return x;
}

/* Of a legacy server on a pipe nothing tells which call a message belongs to: it is known if there
 * is one. */
static struct mcp__exchange *find_call(const peg_mcp_client *client, struct mcp__exchange *stream)
{
    struct mcp__exchange *x = client->exchanges;

    if (stream)
        return stream->is_call ? stream : NULL;
    if (client->n_calls != 1)
        return NULL;
    while (x && !x->is_call)
        x = x->next;
    return x;
}

/* Takes the document over if it has room. */
static bool queue_note(struct mcp__exchange *x, peg_json_doc **doc)
{
    struct mcp__note *note;

    if (!x || !x->on_note || x->is_done || x->n_notes >= PEG_LIMIT_MCP_IMPORT_NOTES)
        return false;
    note = peg__alloc_zero(1, sizeof(*note));
    if (!note)
        return false;
    note->doc = *doc;
    *doc = NULL;
    if (x->last)
        x->last->next = note;
    else
        x->first = note;
    x->last = note;
    x->n_notes++;
    peg__wait_wake(&x->client->wait);
    return true;
}

/* True: it was expected. */
static bool take_server_answer(peg_mcp_client *client, peg_json_doc **doc)
{
    struct mcp__exchange *x = find_exchange(client, peg_json_get(peg_json_root(*doc), "id"));

    if (!x || x->is_done)
        return false;
    x->answer = *doc;
    *doc = NULL;
    x->is_done = true;
    peg__wait_wake(&client->wait);
    return true;
}

bool mcp__exchange_take(struct mcp__exchange *x, peg_str text)
{
    peg_json_doc *doc = NULL;
    peg_error ignored;
    const peg_status status = peg_json_parse(text, NULL, &doc, &ignored);
    const peg_json *error = peg_json_get(peg_json_root(doc), "error");
    bool is_answer = !status && peg_json_kind_of(error) == PEG_JSON_OBJECT;

    pthread_mutex_lock(&x->client->wait.lock);
    is_answer = is_answer && !x->is_done;
    if (is_answer) {
        x->answer = doc;
        x->is_done = true;
    }
    pthread_mutex_unlock(&x->client->wait.lock);
    if (!is_answer)
        peg_json_doc_free(doc);
    return is_answer;
}

void mcp__exchange_fail(struct mcp__exchange *x, const peg_error *why)
{
    pthread_mutex_lock(&x->client->wait.lock);
    if (!x->is_done) {
        x->is_done = true;
        x->status = why->status;
        x->error = *why;
    }
    pthread_mutex_unlock(&x->client->wait.lock);
}

bool mcp__exchange_is_done(struct mcp__exchange *x)
{
    bool is_done;

    pthread_mutex_lock(&x->client->wait.lock);
    is_done = x->is_done;
    pthread_mutex_unlock(&x->client->wait.lock);
    return is_done;
}

static bool take_notification(peg_mcp_client *client, struct mcp__exchange *stream, peg_str method,
                              peg_json_doc **doc)
{
    const peg_json *params = peg_json_get(peg_json_root(*doc), "params");

    if (peg__str_is(method, "notifications/progress"))
        return queue_note(find_exchange(client, peg_json_get(params, "progressToken")), doc);
    if (peg__str_is(method, "notifications/message"))
        return queue_note(find_call(client, stream), doc);
    if (peg__str_is(method, "notifications/tools/list_changed")) {
        client->has_new_list = true;
        peg__wait_wake(&client->wait);
    }
    return false;
}

/* A request of the server that no call can answer. */
static void write_refusal(struct mcp__message *m, const peg_json *id, peg_str method)
{
    if (peg__str_is(method, "ping"))
        mcp__write_response(m, id, peg__str("{}"));
    else if (peg__str_is(method, "elicitation/create"))
        mcp__write_response(m, id, peg__str("{\"action\":\"decline\"}"));
    else
        mcp__write_error(m, id, MCP_METHOD_NOT_FOUND, "Method not found");
}

peg_status mcp__receive(peg_mcp_client *client, struct mcp__exchange *stream, peg_str text,
                        peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    struct mcp__message refusal = MCP__MESSAGE;
    peg_status status = peg_json_parse(text, NULL, &doc, reterr);
    const peg_json *id = peg_json_get(peg_json_root(doc), "id");
    const peg_json *method = peg_json_get(peg_json_root(doc), "method");
    const peg_str name = peg_json_str(method);
    const bool is_small = text.len <= PEG_LIMIT_MCP_REPORT_BYTES; /* it may wait for a person */
    bool is_expected = false;

    if (status == PEG_ENOMEM)
        return status;
    status = PEG_OK; /* a line that is no JSON is one more stray */
    pthread_mutex_lock(&client->wait.lock);
    if (doc && !method)
        is_expected = take_server_answer(client, &doc);
    else if (doc && !id && is_small)
        is_expected = take_notification(client, stream, name, &doc);
    else if (doc && id && is_small && peg__str_is(name, "elicitation/create"))
        is_expected = queue_note(find_call(client, stream), &doc);
    if (!is_expected)
        status = count_stray(client, reterr);
    pthread_mutex_unlock(&client->wait.lock);
    if (doc && method && id)
        write_refusal(&refusal, id, name);
    peg_json_doc_free(doc);
    if (refusal.text.len && !refusal.text.status)
        client->link->send(client, peg__buf_view(&refusal.text), false);
    mcp__message_free(&refusal);
    return status;
}

/* ---- the server comes and goes ---- */

void mcp__opened(peg_mcp_client *client)
{
    pthread_mutex_lock(&client->wait.lock);
    client->is_open = true;
    client->lost = PEG_OK;
    client->has_new_list = false;
    client->awaits_stream = false;
    client->ended_session = false;
    client->n_strays = 0;
    pthread_mutex_unlock(&client->wait.lock);
}

static void fail_exchange(struct mcp__exchange *x, const peg_error *why, bool was_sent)
{
    x->is_done = true;
    x->status = why->status;
    x->error = *why;
    if (!x->is_call || why->status == PEG_ENOMEM)
        return;
    x->status = PEG_EIO;
    if (was_sent)
        peg__fail(&x->error, PEG_EIO, "E_MCP_LOST",
                  "the MCP server was lost during the call (%.300s)", why->message);
    else
        peg__fail(&x->error, PEG_EIO, "E_MCP_UNAVAILABLE",
                  "the MCP server was lost, and the call was not started (%.300s)", why->message);
}

/* Under the lock. */
static void set_lost(peg_mcp_client *client, const peg_error *why)
{
    client->is_open = client->is_ready = false;
    client->state.is_connected = false;
    client->lost = why->status;
    client->why = *why;
    peg__wait_wake(&client->wait);
}

void mcp__mark_lost(peg_mcp_client *client, const peg_error *why, bool ended_session)
{
    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open) {
        set_lost(client, why);
        client->ended_session = ended_session;
    }
    pthread_mutex_unlock(&client->wait.lock);
}

void mcp__lose_all(peg_mcp_client *client, const peg_error *why)
{
    pthread_mutex_lock(&client->wait.lock);
    for (struct mcp__exchange *x = client->exchanges; client->is_stopping && x; x = x->next) {
        if (!x->is_done)
            fail_exchange(x, why, true);
    }
    peg__wait_wake(&client->wait);
    pthread_mutex_unlock(&client->wait.lock);
}

void mcp__exchange_lose(struct mcp__exchange *x, const peg_error *why, bool was_sent)
{
    pthread_mutex_lock(&x->client->wait.lock);
    if (!x->is_done)
        fail_exchange(x, why, was_sent);
    pthread_mutex_unlock(&x->client->wait.lock);
}

void mcp__settle_stream(peg_mcp_client *client)
{
    pthread_mutex_lock(&client->wait.lock);
    if (client->awaits_stream) {
        client->awaits_stream = false;
        if (client->is_ready)
            client->has_new_list = true; /* it is late: the list may have changed */
        peg__wait_wake(&client->wait);
    }
    pthread_mutex_unlock(&client->wait.lock);
}

void mcp__doubt(peg_mcp_client *client)
{
    pthread_mutex_lock(&client->wait.lock);
    client->has_new_list = true;
    peg__wait_wake(&client->wait);
    pthread_mutex_unlock(&client->wait.lock);
}

static bool is_ready_or_lost(void *user)
{
    const peg_mcp_client *client = user;

    return client->is_ready || client->is_stopping ||
           (client->lost && !client->ended_session && !client->is_open);
}

peg_status mcp__await_ready(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr)
{
    enum peg__woke woke;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->wait.lock);
    woke = peg__wait_for(&client->wait, ctx, INT64_MAX, is_ready_or_lost, client);
    if (woke == PEG__WOKE_DONE && !client->is_ready)
        status = reject_begin(client, reterr);
    pthread_mutex_unlock(&client->wait.lock);
    if (woke == PEG__WOKE_DONE)
        return status;
    peg__ctx_why_stopped(ctx, reterr);
    return reterr->status;
}

void mcp__lose(peg_mcp_client *client, const peg_error *why, uint64_t sent)
{
    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open) {
        set_lost(client, why);
        for (struct mcp__exchange *x = client->exchanges; x; x = x->next) {
            if (!x->is_done)
                fail_exchange(x, why, x->sent_at < sent);
        }
    }
    pthread_mutex_unlock(&client->wait.lock);
}
