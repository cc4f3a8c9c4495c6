/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_WEB_H
#define PEG_TESTS_MCP_WEB_H

/* A server of the public API, and requests of HTTP that a test hands over: on its own thread, or on
 * one of their own while the test goes on. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/mcp.h"

enum { WEB_HEADERS = 12, WEB_PATIENCE_MS = 30000 };

struct web {
    peg_registry *registry;
    peg_mcp_server *server;
    peg_error error;
};

/* A request, and what was answered. */
struct exchange {
    struct web *web;
    const char *method;
    const char *body;
    const char *principal;
    const char *hosts;
    peg_mcp_header headers[WEB_HEADERS];
    size_t n_headers;
    pthread_t thread;
    peg_status result;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int status; /* 0: not yet */
    size_t n_begins;
    char type[64];
    char session[64];
    char text[16384];
    size_t len;
    bool is_over;
    bool is_gone; /* the client is */
};

/* ---- the host's functions ---- */

static inline bool web_begin(int status, const peg_mcp_header *headers, size_t n, void *user)
{
    struct exchange *x = user;
    bool is_gone;

    pthread_mutex_lock(&x->lock);
    x->status = status;
    x->n_begins++;
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(headers[i].name, "content-type"))
            snprintf(x->type, sizeof(x->type), "%s", headers[i].value);
        if (!strcmp(headers[i].name, "mcp-session-id"))
            snprintf(x->session, sizeof(x->session), "%s", headers[i].value);
    }
    is_gone = x->is_gone;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return !is_gone;
}

static inline bool web_write(peg_str bytes, void *user)
{
    struct exchange *x = user;
    bool is_gone;

    pthread_mutex_lock(&x->lock);
    is_gone = x->is_gone || x->len + bytes.len >= sizeof(x->text);
    if (!is_gone) {
        memcpy(x->text + x->len, bytes.ptr, bytes.len);
        x->len += bytes.len;
        x->text[x->len] = '\0';
    }
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return !is_gone;
}

static inline bool web_is_gone(void *user)
{
    struct exchange *x = user;
    bool is_gone;

    pthread_mutex_lock(&x->lock);
    is_gone = x->is_gone;
    pthread_mutex_unlock(&x->lock);
    return is_gone;
}

/* ---- requests ---- */

static inline struct exchange *web_exchange(struct web *w, const char *method, const char *body)
{
    struct exchange *x = calloc(1, sizeof(*x));

    CHECK(x);
    x->web = w;
    x->method = method;
    x->body = body;
    x->headers[0] = (peg_mcp_header){"Host", "127.0.0.1:80"};
    x->headers[1] = (peg_mcp_header){"Content-Type", "application/json"};
    x->n_headers = 2;
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    return x;
}

/* Adds it, or takes the place of one. */
static inline void web_set(struct exchange *x, const char *name, const char *value)
{
    size_t i = 0;

    while (i < x->n_headers && strcasecmp(x->headers[i].name, name) != 0)
        i++;
    CHECK(i < WEB_HEADERS);
    x->headers[i] = (peg_mcp_header){name, value};
    x->n_headers += i == x->n_headers;
}

static inline void *web_run(void *user)
{
    struct exchange *x = user;
    const peg_mcp_http http = {PEG_MCP_HTTP_INIT,
                               .method = x->method,
                               .body = peg_cstr(x->body),
                               .principal = x->principal,
                               .hosts = x->hosts,
                               .headers = x->headers,
                               .n_headers = x->n_headers,
                               .begin = web_begin,
                               .write = web_write,
                               .is_gone = web_is_gone,
                               .user = x};
    const peg_status status = peg_mcp_server_http(x->web->server, &http, NULL);

    pthread_mutex_lock(&x->lock);
    x->result = status;
    x->is_over = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static inline void web_start(struct exchange *x)
{
    CHECK_INT(pthread_create(&x->thread, NULL, web_run, x), 0);
}

/* Until its answer has this text; NULL: until it is over. */
static inline void web_await(struct exchange *x, const char *text)
{
    struct timespec until;
    bool has_come;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WEB_PATIENCE_MS / 1000;
    pthread_mutex_lock(&x->lock);
    while (!(has_come = text ? strstr(x->text, text) != NULL : x->is_over) &&
           pthread_cond_timedwait(&x->changed, &x->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&x->lock);
    if (!has_come)
        T_FAIL("'%s' has not come, but %s", text ? text : "its end", x->text);
}

static inline void web_leave(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    x->is_gone = true;
    pthread_mutex_unlock(&x->lock);
}

static inline void web_end(struct exchange *x)
{
    web_await(x, NULL);
    pthread_join(x->thread, NULL);
}

static inline struct exchange *web_free(struct exchange *x)
{
    pthread_mutex_destroy(&x->lock);
    pthread_cond_destroy(&x->changed);
    free(x);
    return NULL;
}

/* ---- the server ---- */

static inline void web_add(struct web *w, const peg_tool_def *def)
{
    peg_tool *tool = NULL;

    CHECK_STATUS(peg_tool_new(def, &tool, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_register(w->registry, tool, false, &w->error), PEG_OK, w->error);
    peg_tool_unref(tool);
}

static inline void web_open(struct web *w)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "test", .drain_ms = 100};

    *w = (struct web){0};
    CHECK_STATUS(peg_registry_new(NULL, 0, &w->registry, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_mcp_server_new(w->registry, &options, &w->server, &w->error), PEG_OK,
                 w->error);
}

static inline void web_close(struct web *w)
{
    w->server = peg_mcp_server_free(w->server);
    w->registry = peg_registry_unref(w->registry);
}

#endif
