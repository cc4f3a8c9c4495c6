/* SPDX-License-Identifier: Apache-2.0 */

/* The table of routes. Segments are compared as they came, and decoded afterwards: "%2F" is a
 * letter of a name, never the border of two. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/http/internal.h"

/* ---- the server ---------------------------------------------------------------------------- */

static bool is_param(peg_str segment)
{
    return segment.len > 2 && segment.ptr[0] == '{' && segment.ptr[segment.len - 1] == '}';
}

/* The first segment of a path that begins with '/'; *path is what follows it. */
static peg_str next_segment(peg_str *path)
{
    const peg_str rest = peg__str_from(*path, 1);
    const char *end = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    const peg_str segment = peg__strn(rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len);

    *path = peg__str_from(rest, segment.len);
    return segment;
}

static bool is_route(const struct net_http_route *route)
{
    peg_str path = peg__str(peg__or_empty(route->path));
    size_t n_params = 0;

    if (!route->method || !net_http_is_token(peg__str(route->method)) || !route->handler ||
        !route->handler->on_request == !route->handler->on_body || path.len == 0 ||
        path.ptr[0] != '/')
        return false;
    while (path.len > 0)
        n_params += is_param(next_segment(&path));
    return n_params <= NET_HTTP_MAX_PARAMS;
}

peg_status net_http_server_new(const struct net_http_options *options,
                               struct net_http_server **ret_server, peg_error *reterr)
{
    struct net_http_server *server;
    struct net_http_options *own;

    for (size_t i = 0; i < options->n_routes; i++) {
        if (!is_route(&options->routes[i]))
            return peg__fail(reterr, PEG_EINVAL, "E_HTTP_ROUTE",
                             "route %zu needs a method, a path, and a handler with either "
                             "on_request or on_body",
                             i);
    }
    server = peg__alloc_zero(1, sizeof(*server));
    if (!server)
        return peg__fail_nomem(reterr);
    own = &server->options;
    *own = *options;
    own->max_requests = PEG__OR_DEFAULT(own->max_requests, PEG_LIMIT_NET_HTTP_REQUESTS);
    own->max_send_bytes = PEG__OR_DEFAULT(own->max_send_bytes, PEG_LIMIT_NET_HTTP_SEND_BYTES);
    own->head_ms = PEG__OR_DEFAULT(own->head_ms, PEG_LIMIT_NET_HTTP_HEAD_MS);
    own->body_ms = PEG__OR_DEFAULT(own->body_ms, PEG_LIMIT_NET_HTTP_BODY_MS);
    own->idle_ms = PEG__OR_DEFAULT(own->idle_ms, PEG_LIMIT_NET_HTTP_IDLE_MS);
    own->send_ms = PEG__OR_DEFAULT(own->send_ms, PEG_LIMIT_NET_HTTP_SEND_MS);
    *ret_server = server;
    return PEG_OK;
}

struct net_http_server *net_http_server_free(struct net_http_server *server)
{
    peg__free(server);
    return NULL;
}

size_t net_http_server_n_requests(const struct net_http_server *server)
{
    return atomic_load_explicit(&server->n_requests, memory_order_relaxed);
}

/* ---- escapes ------------------------------------------------------------------------------- */

/* The byte that two digits stand for; -1: they are none. */
static int escaped_byte(peg_str digits)
{
    const int high = digits.len >= 2 ? peg__hex_value(digits.ptr[0]) : -1;
    const int low = high >= 0 ? peg__hex_value(digits.ptr[1]) : -1;

    return low < 0 ? -1 : high << 4 | low;
}

peg_str net_http_decode(struct peg__arena *arena, peg_str text, bool is_query)
{
    const peg_str none = {NULL, 0};
    char *to = peg__arena_alloc(arena, text.len + 1);
    size_t n = 0;

    if (!to)
        return none;
    for (size_t i = 0; i < text.len; i++) {
        int c = (unsigned char)text.ptr[i];

        if (c == '%') {
            c = escaped_byte(peg__str_from(text, i + 1));
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        if (c <= 0)
            return none;
        to[n++] = (char)c;
    }
    to[n] = '\0';
    return peg__utf8_is_valid(peg__strn(to, n)) ? peg__strn(to, n) : none;
}

/* ---- looking one up ------------------------------------------------------------------------ */

/* Writes the params as they came. */
static bool matches_path(const struct net_http_route *route, peg_str path, peg_str *ret_params)
{
    peg_str pattern = peg__str(route->path);
    size_t n = 0;

    while (pattern.len > 0 && path.len > 0) {
        const peg_str wanted = next_segment(&pattern);
        const peg_str segment = next_segment(&path);

        if (is_param(wanted) && segment.len > 0)
            ret_params[n++] = segment;
        else if (!peg__str_eq(wanted, segment))
            return false;
    }
    return pattern.len == 0 && path.len == 0;
}

static bool matches_method(const struct net_http_route *route, peg_str method)
{
    return peg__str_is(method, route->method) ||
           (peg__str_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

static void add_allowed(struct peg__buf *allow, const char *method)
{
    peg__buf_printf(allow, "%s%s%s", allow->len ? ", " : "", method,
                    strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

static bool decode_params(struct net_http_request *request)
{
    for (size_t i = 0; i < NET_HTTP_MAX_PARAMS && request->params[i].ptr; i++) {
        request->params[i] = net_http_decode(request->arena, request->params[i], false);
        if (!request->params[i].ptr)
            return false;
    }
    return true;
}

const struct net_http_route *net_http_route_find(const struct net_http_options *options,
                                                 struct net_http_request *request, int *ret_status,
                                                 struct peg__buf *allow)
{
    *ret_status = 404;
    for (size_t i = 0; i < options->n_routes; i++) {
        const struct net_http_route *route = &options->routes[i];

        memset(request->params, 0, sizeof(request->params));
        if (!matches_path(route, request->path, request->params))
            continue;
        if (matches_method(route, request->method)) {
            *ret_status = 400;
            return decode_params(request) ? route : NULL;
        }
        *ret_status = 405;
        add_allowed(allow, route->method);
    }
    return NULL;
}
