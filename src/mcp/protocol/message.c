/* SPDX-License-Identifier: Apache-2.0 */

/* JSON-RPC 2.0 as MCP narrows it: ids are strings or integers, there are no batches. */

#include <stdarg.h>
#include <string.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

/* ---- what comes in ---- */

static bool is_id(const peg_json *id)
{
    return id && (id->kind == PEG_JSON_INTEGER ||
                  (id->kind == PEG_JSON_STRING && id->len <= PEG_LIMIT_MCP_ID_BYTES));
}

enum mcp__kind mcp__classify(const peg_json *message, struct mcp__request *rq)
{
    const peg_json *id = peg_json_get(message, "id");
    const peg_json *method = peg_json_get(message, "method");
    const peg_json *params = peg_json_get(message, "params");

    if (is_id(id))
        rq->id = id;
    if (!peg__str_is(peg_json_str(peg_json_get(message, "jsonrpc")), "2.0") || (id && !rq->id))
        return MCP__INVALID;
    if (!method)
        return id && (peg_json_get(message, "result") || peg_json_get(message, "error"))
                   ? MCP__RESPONSE
                   : MCP__INVALID;
    if (method->kind != PEG_JSON_STRING || (params && params->kind != PEG_JSON_OBJECT))
        return MCP__INVALID;
    rq->method = peg_json_str(method);
    rq->params = params;
    return id ? MCP__REQUEST : MCP__NOTIFICATION;
}

peg_str mcp__id_text(struct mcp_peer *peer, const peg_json *id)
{
    peg__buf_clear(&peer->key);
    peg__json_write(id, PEG_JSON_COMPACT, &peer->key);
    return peg__buf_view(&peer->key);
}

/* ---- requests without an answer ---- */

peg_status mcp__add_request(struct mcp__request *rq)
{
    const peg_str key = mcp__id_text(rq->peer, rq->id);

    return rq->peer->key.status ? PEG_ENOMEM : peg__map_add(&rq->peer->requests, key, rq);
}

void mcp__remove_request(struct mcp__request *rq)
{
    const peg_str key = mcp__id_text(rq->peer, rq->id);

    if (!rq->peer->key.status && peg__map_get(&rq->peer->requests, key) == rq) {
        peg__map_remove(&rq->peer->requests, key, NULL);
        return;
    }
    PEG__MAP_EACH(&rq->peer->requests, entry)
    { /* out of memory */
        if (entry->value == rq) {
            peg__map_remove(&rq->peer->requests, entry->name, NULL);
            return;
        }
    }
}

struct mcp__request *mcp__find_request(struct mcp_peer *peer, const peg_json *id)
{
    const peg_str key = is_id(id) ? mcp__id_text(peer, id) : (peg_str){"", 0};

    return key.len && !peer->key.status ? peg__map_get(&peer->requests, key) : NULL;
}

void mcp__request_free(struct mcp__request *rq)
{
    rq->doc = peg_json_doc_free(rq->doc);
}

bool mcp__is_same_client(const struct mcp_peer *peer, const struct mcp_peer *other)
{
    return peer == other ||
           (peer->session && other->session && !strcmp(peer->session, other->session) &&
            !strcmp(peer->principal, other->principal));
}

/* ---- what goes out ---- */

struct peg__out *mcp__open(struct mcp_peer *peer)
{
    peg__buf_clear(&peer->buf);
    peer->out = (struct peg__out){.buf = &peer->buf};
    peg__out_object(&peer->out);
    peg__out_cmember(&peer->out, "jsonrpc", "2.0");
    return &peer->out;
}

void mcp__send(struct mcp_peer *peer, const struct mcp_sent *how)
{
    struct mcp_sent sent = *how;

    peg__out_end_object(&peer->out);
    if (peer->buf.status) {
        if (!how->may_be_lost)
            peer->status = PEG_ENOMEM;
        return;
    }
    sent.text = peg__buf_view(&peer->buf);
    peer->ops->send(peer->user, &sent);
}

struct peg__out *mcp__open_result(struct mcp__request *rq, const char *type)
{
    struct peg__out *out = mcp__open(rq->peer);

    peg__out_key(out, "id");
    peg__out_value(out, rq->id);
    peg__out_key(out, "result");
    peg__out_object(out);
    if (rq->era == MCP_MODERN)
        peg__out_cmember(out, "resultType", type);
    return out;
}

static void put_result_meta(struct mcp__request *rq, struct peg__out *out, peg_str meta)
{
    if (rq->era == MCP_LEGACY && !meta.len)
        return;
    peg__out_key(out, "_meta");
    peg__out_object(out);
    if (rq->era == MCP_MODERN) {
        peg__out_key(out, MCP_META "serverInfo");
        peg__out_raw(out, rq->peer->server->info);
    }
    if (meta.len)
        peg__out_raw(out, meta); /* members: a comma goes before them as before a value */
    peg__out_end_object(out);
}

/* The answer of a request, sent or not, is its end. */
static void send_answer(struct mcp__request *rq, int http_status)
{
    mcp__send(rq->peer,
              &(struct mcp_sent){.stream = rq->stream, .is_end = true, .http_status = http_status});
}

void mcp__send_result(struct mcp__request *rq, peg_str meta)
{
    struct peg__out *out = &rq->peer->out;

    put_result_meta(rq, out, meta);
    peg__out_end_object(out);
    if (rq->peer->buf.status) {
        mcp__send_error(rq, MCP_INTERNAL_ERROR,
                        rq->peer->buf.status == PEG_ELIMIT
                            ? peg__str("the result is too large to be sent: ask for less")
                            : peg__str("the server is out of memory: try again later"),
                        (peg_str){"", 0});
        return;
    }
    send_answer(rq, 200);
}

void mcp__send_empty(struct mcp__request *rq)
{
    mcp__open_result(rq, "complete");
    mcp__send_result(rq, (peg_str){"", 0});
}

/* Legacy clients take any other status for a failure of the transport, and 404 for the end of their
 * session. */
static int http_status_of(const struct mcp__request *rq, int code)
{
    const bool is_of_message =
        code != MCP_PARSE_ERROR && code != MCP_INVALID_REQUEST && code != MCP_UNSUPPORTED_VERSION;

    if (rq->era == MCP_LEGACY && rq->id && is_of_message)
        return 200;
    return code == MCP_METHOD_NOT_FOUND ? 404 : code == MCP_INTERNAL_ERROR ? 500 : 400;
}

void mcp__send_error(struct mcp__request *rq, int code, peg_str message, peg_str data)
{
    struct peg__out *out = mcp__open(rq->peer);

    if (rq->id) {
        peg__out_key(out, "id");
        peg__out_value(out, rq->id);
    }
    peg__out_key(out, "error");
    peg__out_object(out);
    peg__out_key(out, "code");
    peg__out_integer(out, code);
    peg__out_member(out, "message", message);
    if (data.len) {
        peg__out_key(out, "data");
        peg__out_raw(out, data);
    }
    peg__out_end_object(out);
    send_answer(rq, http_status_of(rq, code));
}

void mcp__send_errorf(struct mcp__request *rq, int code, const char *fmt, ...)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf_cut(&text, fmt, args);
    va_end(args);
    mcp__send_error(rq, code, peg__buf_view(&text), (peg_str){"", 0});
    peg__buf_free(&text);
}

struct peg__out *mcp__open_notification(struct mcp_peer *peer, const char *method)
{
    struct peg__out *out = mcp__open(peer);

    peg__out_cmember(out, "method", method);
    peg__out_key(out, "params");
    peg__out_object(out);
    return out;
}

void mcp__send_notification(struct mcp_peer *peer, struct mcp__request *rq, bool may_be_lost)
{
    peg__out_end_object(&peer->out);
    if (rq)
        rq->has_streamed = true;
    mcp__send(peer,
              &(struct mcp_sent){.stream = rq ? rq->stream : NULL, .may_be_lost = may_be_lost});
}

void mcp__put_cache_hints(struct mcp__request *rq, struct peg__out *out)
{
    const struct mcp_config *config = &rq->peer->server->config;

    if (rq->era != MCP_MODERN)
        return;
    peg__out_key(out, "ttlMs");
    peg__out_integer(out, config->ttl_ms);
    peg__out_cmember(out, "cacheScope", config->is_private ? "private" : "public");
}

/* ---- levels ---- */

static const char *const level_names[MCP_N_LEVELS] = {"debug", "info",     "notice", "warning",
                                                      "error", "critical", "alert",  "emergency"};

const char *mcp__level_name(int level)
{
    return level_names[level];
}

int mcp_level_of(peg_str name)
{
    int level = 0;

    while (level < MCP_N_LEVELS && !peg__str_is(name, level_names[level]))
        level++;
    return level;
}
