/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request over HTTP, on the thread that sends it. Its answer is one message, or a stream of
 * events with messages:
 *
 *   mcp__http_exchange -> mcp__http_send -> take_answer_bytes -> take_event -> mcp__receive
 *                      -> resume_stream         a legacy stream that was cut is taken up where it
 * was
 *                      -> end_exchange      what became of it
 */

#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

enum { SESSION_ERROR = -32000 }; /* as servers of the official SDKs refuse what they do not know */

void mcp__http_begin(struct mcp__request_http *r, peg_mcp_client *client)
{
    *r = (struct mcp__request_http){.client = client, .body = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES)};
    peg__sse_init(&r->sse, PEG_LIMIT_MCP_IMPORT_BYTES);
}

void mcp__http_end(struct mcp__request_http *r)
{
    peg__sse_free(&r->sse);
    peg__buf_free(&r->body);
}

/* ---- what comes ---- */

static bool has_content_type(const struct mcp__request_http *r, const char *type)
{
    const size_t len = strlen(type);
    const char *text = r->answer.content_type;

    return !strncasecmp(text, type, len) && (!text[len] || strchr("; \t", text[len]));
}

static bool is_stream(const struct mcp__request_http *r)
{
    return r->answer.status == 200 && has_content_type(r, "text/event-stream");
}

static bool is_header_named(peg_str name, const char *expected)
{
    return name.len == strlen(expected) && !strncasecmp(name.ptr, expected, name.len);
}

/* What comes by a header goes out as one. */
static void take_http_header(peg_str name, peg_str value, void *user)
{
    struct mcp__request_http *r = user;

    if (r->is_own_stream && is_header_named(name, "content-type") && is_stream(r))
        mcp__settle_stream(r->client);
    if (r->is_listening && is_header_named(name, "content-type") && is_stream(r))
        mcp__doubt(r->client); /* what changed while nothing was heard? */
    if (!is_header_named(name, "mcp-session-id") || value.len >= sizeof(r->session))
        return;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] <= ' ' || value.ptr[i] >= 0x7F)
            return;
    }
    memcpy(r->session, value.ptr, value.len);
    r->session[value.len] = '\0';
}

static peg_status take_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct mcp__request_http *r = user;

    r->n_events++;
    if (!peg__str_is(name, "message") || peg__str_is_blank(data))
        return PEG_OK;
    return mcp__receive(r->client, r->x, data, reterr);
}

static peg_status take_answer_bytes(struct peg__http_answer *answer, peg_str bytes, void *user,
                                    peg_error *reterr)
{
    struct mcp__request_http *r = user;
    peg_status status = PEG_OK;

    if (is_stream(r)) {
        status = peg__sse_feed(&r->sse, bytes, take_event, r, reterr);
    } else if (has_content_type(r, "application/json")) {
        peg__buf_str(&r->body, bytes);
        status = r->body.status;
    }
    if (status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                  "the MCP server sent a message of more than %d MiB",
                  PEG_LIMIT_MCP_IMPORT_BYTES >> 20);
    else if (status == PEG_ENOMEM)
        peg__fail_nomem(reterr);
    answer->is_over = r->x && mcp__exchange_is_done(r->x);
    return status;
}

static void take_waiting_notes(void *user)
{
    const struct mcp__request_http *r = user;

    if (r->x)
        mcp__exchange_take_notes(r->x);
}

/* ---- sending ---- */

/* A new stream begins with a new line. */
static void reset_stream(struct mcp__request_http *r)
{
    struct peg__sse last = r->sse;

    peg__sse_init(&r->sse, PEG_LIMIT_MCP_IMPORT_BYTES);
    r->sse.id = last.id;
    r->sse.retry_ms = last.retry_ms;
    last.id = (struct peg__buf)PEG__BUF(0);
    peg__sse_free(&last);
    peg__buf_clear(&r->body);
    r->n_events = 0;
}

peg_status mcp__http_send(struct mcp__request_http *r, peg_ctx *ctx, peg_error *reterr)
{
    peg_mcp_client *client = r->client;
    const struct peg__transport *transport = &client->http->transport;
    struct peg__buf headers = PEG__BUF(2 * (size_t)PEG_LIMIT_MCP_IMPORT_HEADER_BYTES);
    peg_status status = PEG_OK;

    reset_stream(r);
    pthread_mutex_lock(&client->wait.lock);
    memcpy(r->used_session, client->session, sizeof(r->used_session));
    mcp__write_headers(&headers, client, r, r->used_session);
    pthread_mutex_unlock(&client->wait.lock);
    if (headers.status == PEG_ELIMIT)
        status = peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                           "the headers for the MCP server have more than %d KiB: send less",
                           2 * PEG_LIMIT_MCP_IMPORT_HEADER_BYTES >> 10);
    else if (headers.status)
        status = peg__fail_nomem(reterr);
    if (!status) {
        const struct peg__http_request request = {
            .url = client->options.url,
            .headers = headers.ptr,
            .method = r->verb,
            .body = r->message,
            .is_once = r->x && r->x->is_call && !r->x->is_repeatable,
            .only_public = client->only_public,
            .connect_ms = PEG_LIMIT_MCP_IMPORT_CONNECT_MS,
            .idle_ms = -1,
            .total_ms = -1,
            .max_bytes = SIZE_MAX,
            .on_bytes = take_answer_bytes,
            .on_header = take_http_header,
            .on_step = take_waiting_notes,
            .user = r,
        };

        status = transport->send(transport->self, ctx, &request, &r->answer, reterr);
    }
    if (is_stream(r) && !(r->x && mcp__exchange_is_done(r->x))) {
        peg_error ignored;

        (void)peg__sse_end(&r->sse, take_event, r, &ignored);
    }
    peg__buf_free(&headers);
    return status;
}

bool mcp__http_lost_session(const struct mcp__request_http *r)
{
    peg_json_doc *doc = NULL;
    int64_t code = 0;

    if (!r->used_session[0] || r->client->era != MCP_LEGACY)
        return false;
    if (r->answer.status == 400 && !peg_json_parse(peg__buf_view(&r->body), NULL, &doc, NULL))
        code =
            peg_json_int64_or(peg_json_get(peg_json_get(peg_json_root(doc), "error"), "code"), 0);
    peg_json_doc_free(doc);
    return r->answer.status == 404 || code == SESSION_ERROR;
}

/* ---- an exchange ---- */

void mcp__http_explain(const peg_error *why, peg_error *reterr)
{
    if (why->status == PEG_ENOMEM || !strncmp(why->code, "E_MCP", 5))
        *reterr = *why;
    else if (!strcmp(why->code, "E_ENGINE_ADDRESS"))
        peg__fail(reterr, PEG_EIO, "E_MCP_ADDRESS",
                  "the name of the MCP server leads to an address of this machine or of a private "
                  "network: write the address itself, or allow private_addresses");
    else
        peg__fail(reterr, PEG_EIO, "E_MCP_START", "the MCP server cannot be reached (%.300s)",
                  why->message);
}

/* The stream of a legacy server may be cut at any time, on purpose, too. */
static bool may_resume(const struct mcp__request_http *r, unsigned n_resumes)
{
    return r->client->era == MCP_LEGACY && r->sse.id.len && is_stream(r) &&
           n_resumes < PEG_LIMIT_MCP_IMPORT_RESUMES && !mcp__exchange_is_done(r->x);
}

static peg_status resume_stream(struct mcp__request_http *r, peg_ctx *ctx, peg_error *reterr)
{
    const int64_t least_ms = PEG_LIMIT_MCP_IMPORT_RESUME_MS / 10;
    const int64_t ms = r->sse.retry_ms >= 0 ? r->sse.retry_ms : PEG_LIMIT_MCP_IMPORT_RESUME_MS;
    peg_status status = peg_ctx_wait(ctx, ms > least_ms ? ms : least_ms, reterr);

    r->verb = "GET";
    return status ? status : mcp__http_send(r, ctx, reterr);
}

static void fail_status(const struct mcp__request_http *r)
{
    const long status = r->answer.status;
    peg_error why;

    if (status / 100 == 3)
        peg__fail(
            &why, PEG_EHOST, "E_MCP_HTTP",
            "the MCP server redirects (HTTP status %ld), which is not followed: write the URL "
            "that it has now",
            status);
    else if (status == 401 || status == 403 || status == 407)
        peg__fail(&why, PEG_EHOST, "E_MCP_HTTP",
                  "the MCP server refuses us (HTTP status %ld): credentials belong into `headers`",
                  status);
    else if (status / 100 == 2)
        peg__fail(&why, PEG_EHOST, "E_MCP_PROTOCOL",
                  "the MCP server answered a request without a response of MCP (HTTP status %ld)",
                  status);
    else
        peg__fail(&why, PEG_EHOST, "E_MCP_HTTP",
                  "the MCP server answered with HTTP status %ld and nothing of MCP", status);
    r->x->is_refused = status == 400 || status == 404 || status == 405 || status == 406 ||
                       status == 415 || status == 422 || status >= 500;
    /* A proxy that lost it says so, too; and a stream that was to be resumed had begun. */
    if ((status >= 500 || r->verb) && r->x->is_call) {
        mcp__exchange_lose(r->x, &why, true);
        mcp__doubt(r->client);
    } else {
        mcp__exchange_fail(r->x, &why);
    }
}

/* A session that is there since then stays. */
static bool is_session_of(const struct mcp__request_http *r)
{
    bool is_same;

    pthread_mutex_lock(&r->client->wait.lock);
    is_same = !strcmp(r->client->session, r->used_session);
    pthread_mutex_unlock(&r->client->wait.lock);
    return is_same;
}

/* What was refused was not started, and may be sent again; not so what had begun, and whose stream
 * was to be resumed. */
static void end_session(const struct mcp__request_http *r)
{
    const bool had_begun = r->verb;
    peg_error why;

    peg__fail(&why, PEG_EIO, "E_MCP_UNAVAILABLE", "the MCP server has ended the session");
    r->x->lost_session = !had_begun;
    mcp__exchange_lose(r->x, &why, had_begun);
    if (is_session_of(r))
        mcp__mark_lost(r->client, &why, true);
}

static bool has_error_code(const struct mcp__request_http *r, int64_t code)
{
    const peg_json *error = peg_json_get(peg_json_root(r->x->answer), "error");

    return peg_json_int64_or(peg_json_get(error, "code"), 0) == code;
}

static void keep_session(const struct mcp__request_http *r)
{
    pthread_mutex_lock(&r->client->wait.lock);
    memcpy(r->client->session, r->session, sizeof(r->session));
    pthread_mutex_unlock(&r->client->wait.lock);
}

/* It got through. */
static void end_answered(struct mcp__request_http *r)
{
    const peg_str body = peg__buf_view(&r->body);
    peg_error why;

    if (mcp__http_lost_session(r))
        end_session(r);
    else if (r->answer.status / 100 == 2 && body.len && mcp__receive(r->client, r->x, body, &why))
        mcp__exchange_fail(r->x, &why);
    else if (r->answer.status / 100 != 2 && body.len)
        (void)mcp__exchange_take(r->x, body);
    if (is_stream(r) && !mcp__exchange_is_done(r->x)) {
        peg__fail(&why, PEG_EIO, "E_MCP_START", "it ended its answer in the middle");
        mcp__exchange_lose(r->x, &why, true);
        mcp__doubt(r->client);
    } else if (!mcp__exchange_is_done(r->x)) {
        fail_status(r);
    }
    if (r->x->answer && has_error_code(r, MCP_HEADER_MISMATCH))
        mcp__doubt(r->client); /* its tools may be others now */
}

static void end_exchange(struct mcp__request_http *r, peg_status status, const peg_error *error)
{
    const bool was_sent = r->answer.was_sent || r->verb;
    peg_error why;

    if (!status) {
        end_answered(r);
    } else if (!mcp__exchange_is_done(r->x)) {
        mcp__http_explain(error, &why);
        mcp__exchange_lose(r->x, &why, was_sent);
        if (was_sent)
            mcp__doubt(r->client);
        else
            mcp__mark_lost(r->client, &why, false);
    }
    if (r->session[0] && !strcmp(r->x->method, "initialize"))
        keep_session(r);
}

void mcp__http_exchange(struct mcp__exchange *x, peg_ctx *ctx, peg_str message)
{
    struct mcp__request_http r;
    unsigned n_resumes = 0;
    peg_error error;
    peg_status status;

    mcp__http_begin(&r, x->client);
    r.x = x;
    r.message = message;
    status = mcp__http_send(&r, ctx, &error);
    while ((!status || status == PEG_EIO) && !peg_ctx_check(ctx, NULL) &&
           may_resume(&r, n_resumes)) {
        status = resume_stream(&r, ctx, &error);
        n_resumes = r.n_events ? 0 : n_resumes + 1;
    }
    if (!peg_ctx_check(ctx, NULL) || mcp__exchange_is_done(x))
        end_exchange(&r, status, &error);
    mcp__exchange_take_notes(x);
    mcp__http_end(&r);
}
