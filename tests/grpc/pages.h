/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_PAGES_H
#define PEG_TESTS_GRPC_PAGES_H

/* Pages beside gRPC: every GET has the same handler, of which there is one at a time. */

#include "../t.h"
#include "net/http/http.h"

static struct net_http_handler page_handler;
static const struct net_http_route page_routes[] = {{"GET", "/{page}", &page_handler},
                                                    {"GET", "/", &page_handler}};
static struct net_http_server *pages;

static inline struct net_http_server *
open_pages(void (*answer)(struct net_http_request *request, peg_str body, void *user), void *user)
{
    const struct net_http_options options = {
        .routes = page_routes, .n_routes = 2, .user = user, .body_ms = 500};

    page_handler = (struct net_http_handler){.on_request = answer, .max_body = 100};
    CHECK_INT(net_http_server_new(&options, &pages, NULL), PEG_OK);
    return pages;
}

static inline void close_pages(void)
{
    CHECK_INT(net_http_server_n_requests(pages), 0);
    pages = net_http_server_free(pages);
}

#endif
