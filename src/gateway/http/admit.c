/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may ask, before anything is read. A page of another origin cannot use the API:
 *
 *   Host              as for MCP: no name that somebody else made up (DNS rebinding)
 *   Origin            none or the host's own, or one of --cors-origin
 *   Sec-Fetch-Site    likewise, for requests without Origin
 *   Content-Type      JSON wherever there is a body, which no form can send
 *   Authorization     the only place of a token, where browsers put none of their own accord
 */

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/http/internal.h"
#include "mcp/http/http.h"

/* ---- origins ---- */

static bool is_same_text(peg_str a, peg_str b)
{
    return a.len && a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* "https://app.example": one of --cors-origin? */
static bool is_cors_origin(const struct gw_node *node, peg_str origin)
{
    peg_str rest = peg__str(peg__or_empty(node->http.cors_origins));

    while (rest.len) {
        const size_t len = strcspn(rest.ptr, ",");

        if (is_same_text(peg__strn(rest.ptr, len), origin))
            return true;
        rest = peg__str_from(rest, len < rest.len ? len + 1 : len);
    }
    return false;
}

/* Browsers tell since 2020 where a request comes from, also where they send no Origin. */
static bool is_of_another_site(const struct net_http_request *request)
{
    const peg_str site = net_http_field(request, "sec-fetch-site");

    return peg__str_is(site, "cross-site") || peg__str_is(site, "same-site");
}

/* It comes from no page, or from one of the host itself. */
static bool is_of_own_page(const struct net_http_request *request)
{
    const peg_str origin = request->origin;
    const char *at = origin.len ? memmem(origin.ptr, origin.len, "://", 3) : NULL;

    if (!origin.len)
        return !is_of_another_site(request);
    return at && is_same_text(peg__str_from(origin, (size_t)(at - origin.ptr) + 3), request->host);
}

/* ---- answers ---- */

void gw_answer_add(struct gw_answer *answer, const char *name, peg_str value)
{
    if (value.len && answer->answer.n_fields < GW_ANSWER_FIELDS)
        answer->fields[answer->answer.n_fields++] =
            (struct net_http_field){.name = peg__str(name), .value = value};
}

void gw_answer_init(struct gw_answer *answer, const struct net_http_request *request,
                    const struct gw_node *node, int status, const char *content_type)
{
    answer->answer = (struct net_http_answer){
        .status = status, .content_type = content_type, .fields = answer->fields};
    gw_answer_add(answer, "cache-control", peg__str("no-store"));
    gw_answer_add(answer, "x-content-type-options", peg__str("nosniff"));
    if (!node->http.cors_origins)
        return;
    gw_answer_add(answer, "vary", peg__str("origin"));
    if (!is_cors_origin(node, request->origin))
        return;
    gw_answer_add(answer, "access-control-allow-origin", request->origin);
    gw_answer_add(answer, "access-control-expose-headers",
                  peg__str("location, pegboard-call-id, pegboard-epoch, retry-after"));
}

/* ---- pages ---- */

static bool is_of_api(peg_str path)
{
    return peg__str_starts(path, peg__str("/v1/")) || peg__str_is(path, "/openapi.json");
}

/* What a browser asks before it sends a request of another page. */
static void answer_preflight(struct net_http_request *request, const struct gw_node *node)
{
    struct gw_answer answer;

    gw_answer_init(&answer, request, node, 204, NULL);
    gw_answer_add(&answer, "access-control-allow-methods", peg__str("GET, POST, PUT, DELETE"));
    gw_answer_add(&answer, "access-control-allow-headers",
                  peg__str("authorization, content-type, idempotency-key, last-event-id, "
                           "pegboard-asked-epoch, prefer, traceparent, tracestate, baggage"));
    gw_answer_add(&answer, "access-control-max-age", peg__str("600"));
    net_http_reply(request, &answer.answer, peg__strn("", 0));
}

bool gw_api_admits(struct net_http_request *request, void *user)
{
    const struct gw_node *node = user;
    const bool is_listed = is_cors_origin(node, request->origin);

    if (!is_of_api(request->path))
        return true;
    if (!gw_auth_asks(node->auth) && !mcp_takes_host(request->host, node->mcp.hosts)) {
        gw_problem_reply_error(request, node, WIRE_PERMISSION_DENIED,
                               "this gateway is not known by the name in Host: use its address, "
                               "or start it with --mcp-hosts");
        return false;
    }
    if (!is_listed && !is_of_own_page(request)) {
        gw_problem_reply_error(request, node, WIRE_PERMISSION_DENIED,
                               "pages of this origin may not use this gateway: see --cors-origin");
        return false;
    }
    if (is_listed && peg__str_is(request->method, "OPTIONS")) {
        answer_preflight(request, node);
        return false;
    }
    return true;
}

/* ---- callers ---- */

/* The call of gRPC authenticates, too; this is before a body is read. */
void gw_api_check_reader(struct net_http_request *request, void *user)
{
    struct gw_node *node = user;
    struct peg__buf principal = PEG__BUF(PEG_LIMIT_TLS_NAME_BYTES + 8);

    if (gw_auth_admits_http(node->auth, request, &principal)) {
        net_http_authenticate(request, peg__buf_view(&principal));
    } else {
        gw_auth_note_http(node->auth, request);
        gw_problem_reply_error(request, node, WIRE_UNAUTHENTICATED,
                               "send 'Authorization: Bearer <token>' with a token of this "
                               "gateway, or connect with a client certificate if it has "
                               "--tls-client-ca");
    }
    peg__buf_free(&principal);
}

/* "application/json" and "application/...+json", with any parameters. */
static bool is_json_type(peg_str type)
{
    static const char json[] = "application/json";
    const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    size_t len = end ? (size_t)(end - type.ptr) : type.len;

    while (len && (type.ptr[len - 1] == ' ' || type.ptr[len - 1] == '\t'))
        len--;
    if (len == sizeof(json) - 1 && strncasecmp(type.ptr, json, len) == 0)
        return true;
    return len > 17 && strncasecmp(type.ptr, "application/", 12) == 0 &&
           strncasecmp(type.ptr + len - 5, "+json", 5) == 0;
}

void gw_api_check_writer(struct net_http_request *request, void *user)
{
    const struct gw_node *node = user;

    gw_api_check_reader(request, user);
    if (!request->has_begun && !is_json_type(net_http_field(request, "content-type")))
        gw_problem_reply(
            request, node,
            &(struct gw_problem){.type = wire_error_name(WIRE_INVALID_FORMAT),
                                 .status = 415,
                                 .detail = PEG_LIT("send 'Content-Type: application/json'")});
}
