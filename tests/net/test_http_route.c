/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "net/http/internal.h"

static void nop(struct net_http_request *request, peg_str body, void *user)
{
    (void)request;
    (void)body;
    (void)user;
}

static const struct net_http_handler handler = {.on_request = nop};

static const struct net_http_route routes[] = {
    {"GET", "/", &handler},
    {"POST", "/mcp", &handler},
    {"GET", "/mcp", &handler},
    {"POST", "/mcp/{toolset}", &handler},
    {"GET", "/v1/toolsets/{toolset}/tools/{tool}", &handler},
    {"GET", "/v1/toolsets/{toolset}/health", &handler},
    {"DELETE", "/v1/calls/{id}", &handler},
};

struct found {
    int route; /* -1: none */
    int status;
    char allow[64];
    struct peg__arena arena;
    struct net_http_request request;
};

static struct found find(const char *method, const char *path)
{
    const struct net_http_options options = {.routes = routes,
                                             .n_routes = sizeof(routes) / sizeof(routes[0])};
    struct peg__buf allow = PEG__BUF(64);
    static struct found found;
    const struct net_http_route *route;

    found = (struct found){.request = {.method = peg__str(method), .path = peg__str(path)}};
    found.request.arena = &found.arena;
    route = net_http_route_find(&options, &found.request, &found.status, &allow);
    found.route = route ? (int)(route - routes) : -1;
    snprintf(found.allow, sizeof(found.allow), "%.*s", PEG_ARG(peg__buf_view(&allow)));
    peg__buf_free(&allow);
    return found;
}

static void check_found(const char *method, const char *path, int route, const char *first,
                        const char *second)
{
    struct found found = find(method, path);

    if (found.route != route)
        T_FAIL("%s %s: route %d, status %d", method, path, found.route, found.status);
    CHECK_STR(peg__str(found.request.params[0].ptr ? found.request.params[0].ptr : ""), first);
    CHECK_STR(peg__str(found.request.params[1].ptr ? found.request.params[1].ptr : ""), second);
    peg__arena_free(&found.arena);
}

TEST(http_route_is_found_by_method_and_path)
{
    check_found("GET", "/", 0, "", "");
    check_found("HEAD", "/", 0, "", "");
    check_found("POST", "/mcp", 1, "", "");
    check_found("GET", "/mcp", 2, "", "");
    check_found("POST", "/mcp/files", 3, "files", "");
    check_found("GET", "/v1/toolsets/a/tools/b", 4, "a", "b");
    check_found("GET", "/v1/toolsets/a/health", 5, "a", "");
    check_found("DELETE", "/v1/calls/x-1", 6, "x-1", "");
}

TEST(http_route_params_are_decoded_after_they_are_cut)
{
    check_found("POST", "/mcp/a%2Fb", 3, "a/b", "");
    check_found("POST", "/mcp/%c3%a4+b", 3, "\xc3\xa4+b", "");
    check_found("GET", "/v1/toolsets/%2E%2e/tools/%25", 4, "..", "%");
}

static void check_status(const char *method, const char *path, int status, const char *allow)
{
    struct found found = find(method, path);

    if (found.route != -1 || found.status != status)
        T_FAIL("%s %s: route %d, status %d", method, path, found.route, found.status);
    CHECK_STR(peg__str(found.allow), allow);
    peg__arena_free(&found.arena);
}

TEST(http_route_that_is_missing_is_named)
{
    check_status("GET", "/nope", 404, "");
    check_status("GET", "/mcp/", 404, "");
    check_status("POST", "/mcp/a/", 404, "");
    check_status("POST", "//mcp", 404, "");
    check_status("GET", "/v1/toolsets//tools/b", 404, "");
    check_status("DELETE", "/mcp", 405, "POST, GET, HEAD");
    check_status("get", "/", 405, "GET, HEAD");
    check_status("GET", "/v1/calls/1", 405, "DELETE");
    check_status("POST", "/mcp/%00", 400, "");
    check_status("POST", "/mcp/%ff", 400, "");
    check_status("POST", "/mcp/%c0%af", 400, "");
}

TEST(http_server_refuses_routes_that_are_none)
{
    static const struct net_http_handler empty = {0};
    static const struct net_http_route bad[] = {
        {NULL, "/", &handler},
        {"G T", "/", &handler},
        {"GET", NULL, &handler},
        {"GET", "x", &handler},
        {"GET", "/", NULL},
        {"GET", "/", &empty},
        {"GET", "/{a}/{b}/{c}/{d}/{e}", &handler},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct net_http_options options = {.routes = &bad[i], .n_routes = 1};
        struct net_http_server *server = NULL;
        peg_error error;

        CHECK_INT(net_http_server_new(&options, &server, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_HTTP_ROUTE");
        CHECK(!server);
    }
}

TEST(http_query_is_decoded_by_name)
{
    struct peg__arena arena = {0};
    struct net_http_request request = {.arena = &arena,
                                       .query = peg__str("q=a+b%2Bc&empty=&flag&q=2&bad=%ff")};
    peg_str value;

    CHECK(net_http_query(&request, "q", &value));
    CHECK_STR(value, "a b+c");
    CHECK(net_http_query(&request, "empty", &value));
    CHECK_STR(value, "");
    CHECK(net_http_query(&request, "flag", &value));
    CHECK_STR(value, "");
    CHECK(!net_http_query(&request, "bad", &value));
    CHECK(!net_http_query(&request, "missing", &value));
    CHECK(!net_http_query(&request, "", &value));
    peg__arena_free(&arena);
}

TORTURE(http_route_survives_any_allocation_failure)
{
    const struct net_http_options options = {.routes = routes,
                                             .n_routes = sizeof(routes) / sizeof(routes[0])};
    struct net_http_server *server = NULL;
    const peg_status status = net_http_server_new(&options, &server, NULL);

    net_http_server_free(server);
    return status;
}
