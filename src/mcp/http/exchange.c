/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is sent to a request: JSON, or a stream of events if there is something to report before the
 * answer. The protocol sends under the lock, into a buffer; the thread of the request writes it
 * without the lock, so that a client that does not read holds up itself alone.
 */

#include <stdio.h>
#include <string.h>

#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "mcp/http/internal.h"

/* ---- what the protocol sends ---- */

static void put_event(struct mcp__exchange *exchange, peg_str text)
{
    peg__buf_puts(&exchange->out, "event: message\ndata: ");
    peg__buf_str(&exchange->out, text);
    peg__buf_puts(&exchange->out, "\n\n");
}

static void queue_answer(struct mcp__exchange *exchange, const struct mcp_sent *sent)
{
    if (exchange->stage == MCP__STREAMING) {
        put_event(exchange, sent->text);
    } else {
        exchange->status = sent->http_status;
        peg__buf_str(&exchange->out, sent->text);
    }
    exchange->stage = MCP__ANSWERED;
}

/* A client that does not read misses reports. */
static void queue_report(struct mcp__exchange *exchange, const struct mcp_sent *sent)
{
    if (sent->may_be_lost &&
        (!exchange->takes_events || exchange->out.len > PEG_LIMIT_MCP_OUTPUT_BYTES))
        return;
    if (exchange->takes_events) {
        exchange->stage = MCP__STREAMING;
        put_event(exchange, sent->text);
        return;
    }
    exchange->stage = MCP__ANSWERED;
    exchange->status = 406;
    peg__buf_puts(&exchange->out, "this needs a stream: send 'Accept: text/event-stream'\n");
}

/* Where notifications go that belong to no request. */
static struct mcp__exchange *find_listener(const struct mcp__web_client *client)
{
    struct mcp__exchange *exchange = client->exchanges;

    while (exchange && !(exchange->is_listening && exchange->http))
        exchange = exchange->next;
    return exchange;
}

static void send_to_client(void *user, const struct mcp_sent *sent)
{
    struct mcp__exchange *exchange = sent->stream ? sent->stream : find_listener(user);

    if (!exchange || exchange->stage == MCP__ANSWERED)
        return;
    if (!exchange->http) { /* it was lost */
        if (sent->is_end)
            exchange->stage = MCP__ANSWERED;
        return;
    }
    if (sent->is_end)
        queue_answer(exchange, sent);
    else
        queue_report(exchange, sent);
    mcp__wake(exchange);
}

const struct mcp_peer_ops mcp__exchange_ops = {.send = send_to_client};

/* ---- what the thread of the request writes ---- */

enum { MAX_HEADERS = 4 };

static void begin_http_answer(struct mcp__exchange *exchange, size_t len)
{
    const bool is_stream = !exchange->status;
    const peg_mcp_http *http = exchange->http;
    peg_mcp_header headers[MAX_HEADERS];
    char length[24];
    size_t n = 0;

    headers[n++] = (peg_mcp_header){"content-type", is_stream                 ? "text/event-stream"
                                                    : exchange->status == 406 ? "text/plain"
                                                                              : "application/json"};
    if (is_stream) {
        headers[n++] = (peg_mcp_header){"cache-control", "no-store"};
    } else {
        snprintf(length, sizeof(length), "%zu", len);
        headers[n++] = (peg_mcp_header){"content-length", length};
    }
    if (exchange->session[0])
        headers[n++] = (peg_mcp_header){"mcp-session-id", exchange->session};
    exchange->has_begun = true;
    if (!http->begin(is_stream ? 200 : exchange->status, headers, n, http->user))
        exchange->is_gone = true;
}

static void write_bytes(struct mcp__exchange *exchange, peg_str bytes)
{
    const peg_mcp_http *http = exchange->http;

    if (!exchange->has_begun)
        begin_http_answer(exchange, bytes.len);
    if (bytes.len && !exchange->is_gone && !http->write(bytes, http->user))
        exchange->is_gone = true;
    exchange->written_ms = mcp__now_ms();
}

void mcp__exchange_write(struct mcp__exchange *exchange, const struct peg__buf *out)
{
    if (exchange->is_gone)
        return;
    if (out->len)
        write_bytes(exchange, peg__buf_view(out));
    else if (exchange->has_begun &&
             exchange->written_ms + PEG_LIMIT_GATEWAY_MCP_KEEPALIVE_MS <= mcp__now_ms())
        write_bytes(exchange, peg__str(":\n\n"));
}

void mcp__exchange_finish(struct mcp__exchange *exchange)
{
    if (!exchange->has_begun && !exchange->is_gone)
        begin_http_answer(exchange, 0);
}

void mcp__reply_text(const peg_mcp_http *http, int status, const char *sentence)
{
    char length[24];
    const peg_mcp_header headers[] = {{"content-type", "text/plain; charset=utf-8"},
                                      {"content-length", length},
                                      {"allow", "POST, GET, DELETE"}};

    snprintf(length, sizeof(length), "%zu", strlen(sentence));
    if (http->begin(status, headers, status == 405 ? 3 : 2, http->user) && sentence[0])
        (void)http->write(peg__str(sentence), http->user);
}
