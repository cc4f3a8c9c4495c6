/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a client gets a token: OAuth 2.0 Protected Resource Metadata (RFC 9728), which names the
 * authorization server of --mcp-authorization-server. Without that option there is none to be
 * found, and a client is asked for a token that it has.
 *
 *   /.well-known/oauth-protected-resource          of all that is here
 *   /.well-known/oauth-protected-resource/mcp...   of that endpoint
 *
 * A resource is named as the client has reached it, by Host: it has to be what the client asked
 * for. A client's own words go back to that client alone, so answers are not to be cached.
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "json/json.h"

#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* May it be repeated, in a header too? */
static bool is_plain_url(peg_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>')
            return false;
    }
    return text.len > 0;
}

/* What ends TLS before this gateway says so. */
static const char *scheme_of(const struct gw_node *node, const struct net_http_request *request)
{
    return node->mcp.has_tls || peg__str_is(net_http_field(request, "x-forwarded-proto"), "https")
               ? "https"
               : "http";
}

bool gw_mcp_is_issuer(const char *url)
{
    const peg_str text = peg__str(url);
    const size_t scheme = peg__str_starts(text, peg__str("https://"))  ? 8
                          : peg__str_starts(text, peg__str("http://")) ? 7
                                                                       : 0;

    return scheme && is_plain_url(text) && text.len > scheme && !strpbrk(url + scheme, "?#") &&
           url[scheme] != '/' && text.len <= PEG_LIMIT_NET_HTTP_HEAD_BYTES / 8;
}

bool gw_mcp_put_challenge(const struct gw_node *node, const struct net_http_request *request,
                          struct peg__buf *out)
{
    if (!node->mcp.issuer || !is_plain_url(request->host) || !is_plain_url(request->path))
        return false;
    peg__buf_printf(out, "Bearer resource_metadata=\"%s://" PEG_FMT WELL_KNOWN PEG_FMT "\"",
                    scheme_of(node, request), PEG_ARG(request->host), PEG_ARG(request->path));
    return !out->status;
}

static void put_metadata(struct peg__buf *json, const struct gw_node *node,
                         const struct net_http_request *request)
{
    const peg_str path = peg__str_from(request->path, sizeof(WELL_KNOWN) - 1);
    struct peg__buf resource = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = json};

    peg__buf_printf(&resource, "%s://" PEG_FMT PEG_FMT, scheme_of(node, request),
                    PEG_ARG(request->host), PEG_ARG(path));
    peg__out_object(&out);
    peg__out_member(&out, "resource", peg__buf_view(&resource));
    peg__out_key(&out, "authorization_servers");
    peg__out_array(&out);
    peg__out_cstring(&out, node->mcp.issuer);
    peg__out_end_array(&out);
    peg__out_key(&out, "bearer_methods_supported");
    peg__out_raw(&out, peg__str("[\"header\"]"));
    peg__out_cmember(&out, "resource_name", node->name);
    peg__out_end_object(&out);
    if (resource.status)
        json->status = resource.status;
    peg__buf_free(&resource);
}

static void answer_metadata(struct net_http_request *request, peg_str body, void *user)
{
    static const struct net_http_field fields[] = {
        {PEG_LIT("cache-control"), PEG_LIT("no-store")},
    };
    static const struct net_http_answer answer = {
        .status = 200, .content_type = "application/json", .fields = fields, .n_fields = 1};
    const struct gw_node *node = user;
    struct peg__buf json = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    (void)body;
    if (!node->mcp.issuer) {
        net_http_reply_text(request, 404,
                            "this gateway names no authorization server: it takes tokens of its "
                            "own, see --mcp-authorization-server");
        return;
    }
    if (!is_plain_url(request->host) || !is_plain_url(request->path)) {
        net_http_reply_text(request, 400, "Host or the path has characters of no URL");
        return;
    }
    put_metadata(&json, node, request);
    if (json.status)
        net_http_reply_text(request, 503, "out of memory: try again later");
    else
        net_http_reply(request, &answer, peg__buf_view(&json));
    peg__buf_free(&json);
}

enum { NO_BODY = 1 << 10 };

const struct net_http_handler gw_mcp_metadata = {.on_request = answer_metadata,
                                                 .max_body = NO_BODY};
