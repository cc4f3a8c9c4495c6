/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Headers of HTTP repeat parts of a modern message, so that what stands between client and server
 * can go by them. Both must go by the same: a message that says something else is refused.
 */

#include <string.h>

#include "base/limits/mcp.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

void mcp__reject_version(struct mcp__request *rq, peg_str version)
{
    struct peg__buf data = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    struct peg__out out = {.buf = &data};

    peg__out_object(&out);
    peg__out_key(&out, "supported");
    peg__out_raw(&out, peg__str("[\"" MCP_VERSION_MODERN "\"]"));
    /* A header may have any bytes, a message of ours may not. */
    peg__out_member(&out, "requested", peg__utf8_is_valid(version) ? version : (peg_str){"", 0});
    peg__out_end_object(&out);
    mcp__send_error(rq, MCP_UNSUPPORTED_VERSION,
                    peg__str("the protocol version is not supported: use one of data.supported"),
                    peg__buf_view(&data));
    peg__buf_free(&data);
}

/* Versions are dates, so they have the order of their text. */
bool mcp__has_modern_header(const struct mcp_peer *peer)
{
    static const char modern[] = MCP_VERSION_MODERN;

    return peer->http && peer->http->version.len == sizeof(modern) - 1 &&
           peg__is_digit(peer->http->version.ptr[0]) &&
           memcmp(peer->http->version.ptr, modern, sizeof(modern) - 1) >= 0;
}

/* Clients before 2025-06-18 send none. */
static bool is_legacy_version(peg_str version)
{
    return !version.len || peg__str_is(version, MCP_VERSION_LEGACY) ||
           peg__str_is(version, MCP_VERSION_OLDEST) || peg__str_is(version, "2025-03-26");
}

/* What Mcp-Name repeats; NULL: nothing. */
static const peg_json *named_by(const struct mcp__request *rq)
{
    if (peg__str_is(rq->method, "tools/call") || peg__str_is(rq->method, "prompts/get"))
        return peg_json_get(rq->params, "name");
    if (peg__str_is(rq->method, "tasks/get") || peg__str_is(rq->method, "tasks/update") ||
        peg__str_is(rq->method, "tasks/cancel"))
        return peg_json_get(rq->params, "taskId");
    return peg__str_is(rq->method, "resources/read") ? peg_json_get(rq->params, "uri") : NULL;
}

/* What is no plain ASCII comes as "=?base64?...?=". */
bool mcp__decode_header(peg_str header, struct peg__buf *bytes, peg_str *ret_text)
{
    static const char head[] = "=?base64?";
    static const char tail[] = "?=";
    const size_t around = sizeof(head) - 1 + sizeof(tail) - 1;
    size_t len = 0;
    char *at;

    *ret_text = header;
    if (header.len < around || memcmp(header.ptr, head, sizeof(head) - 1) != 0 ||
        memcmp(header.ptr + header.len - 2, tail, sizeof(tail) - 1) != 0)
        return true;
    header = peg__strn(header.ptr + sizeof(head) - 1, header.len - around);
    at = peg__buf_reserve(bytes, peg__base64_bytes(header.len) + 1);
    if (!at || header.len % 4 || !peg__base64_decode(header, at, &len)) /* padding belongs to it */
        return false;
    *ret_text = peg__strn(at, len);
    return true;
}

static bool is_header_of(peg_str header, peg_str value)
{
    struct peg__buf bytes = PEG__BUF(PEG_LIMIT_MCP_MESSAGE_BYTES);
    peg_str text;
    const bool is_equal = mcp__decode_header(header, &bytes, &text) && peg__str_eq(text, value);

    peg__buf_free(&bytes);
    return is_equal;
}

/* False: it was answered. */
static bool accept_header(struct mcp__request *rq, const char *name, peg_str header, bool is_same)
{
    if (is_same)
        return true;
    mcp__send_errorf(rq, MCP_HEADER_MISMATCH,
                     header.len ? "the header %s does not say what the message says"
                                : "the header %s is missing",
                     name);
    return false;
}

bool mcp__check_headers(struct mcp__request *rq)
{
    const struct mcp_http *http = rq->peer->http;
    const peg_json *name = named_by(rq);
    const peg_str version = peg_json_str(peg_json_get(rq->meta, MCP_META "protocolVersion"));

    if (!http)
        return true;
    if (rq->era == MCP_LEGACY) {
        if (is_legacy_version(http->version))
            return true;
        mcp__reject_version(rq, http->version);
        return false;
    }
    /* The first two are plain text in every message, and others compare them as they are. */
    return accept_header(rq, "MCP-Protocol-Version", http->version,
                         peg__str_eq(http->version, version)) &&
           accept_header(rq, "Mcp-Method", http->method, peg__str_eq(http->method, rq->method)) &&
           (peg_json_kind_of(name) != PEG_JSON_STRING ||
            accept_header(rq, "Mcp-Name", http->name,
                          is_header_of(http->name, peg_json_str(name))));
}
