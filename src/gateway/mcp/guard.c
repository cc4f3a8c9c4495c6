/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may ask. A web page may have the browser of its reader send requests to this machine, under a
 * name of its own that resolves to 127.0.0.1 (DNS rebinding). Such a request has the page's name in
 * Host, or in Origin. So, before anything else is read:
 *
 *   Host     an address, a name of this machine, or one of --mcp-hosts; where callers show
 *            credentials, which a browser does not have for that page, any name
 *   Origin   none, the host itself, a page of this machine, or one of --mcp-hosts
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/mcp/internal.h"
#include "mcp/http/http.h"

static bool takes_host(const struct gw_node *node, peg_str host)
{
    return gw_auth_asks(node->auth) || mcp_takes_host(host, node->mcp.hosts);
}

/* ---- credentials ---- */

static void ask_for_token(struct net_http_request *request, const struct gw_node *node)
{
    struct peg__buf challenge = PEG__BUF(2 * (size_t)PEG_LIMIT_NET_HTTP_HEAD_BYTES);
    const bool has_metadata = gw_mcp_put_challenge(node, request, &challenge);
    const struct net_http_field field = {
        .name = PEG_LIT("www-authenticate"),
        .value = has_metadata ? peg__buf_view(&challenge) : peg__str("Bearer"),
    };
    const struct net_http_answer answer = {
        .status = 401,
        .content_type = "text/plain; charset=utf-8",
        .fields = &field,
        .n_fields = 1,
    };

    net_http_reply(request, &answer,
                   peg__str("send 'Authorization: Bearer <token>' with a token of this gateway, "
                            "or connect with a client certificate if it has --tls-client-ca\n"));
    peg__buf_free(&challenge);
}

bool gw_mcp_admit(struct net_http_request *request, struct gw_node *node,
                  struct peg__buf *ret_principal)
{
    if (!takes_host(node, request->host)) {
        net_http_reply_text(request, 403,
                            "this gateway is not known by the name in Host: use its address, or "
                            "start it with --mcp-hosts");
        return false;
    }
    if (!mcp_takes_origin(request->origin, request->host, node->mcp.hosts)) {
        net_http_reply_text(request, 403,
                            "pages of this Origin may not use this gateway: see --mcp-hosts");
        return false;
    }
    if (!gw_auth_admits_http(node->auth, request, ret_principal)) {
        gw_auth_note_http(node->auth, request);
        ask_for_token(request, node);
        return false;
    }
    net_http_authenticate(request, peg__buf_view(ret_principal));
    return true;
}
