/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_IMPORT_HTTP_WORLD_H
#define PEG_TESTS_MCP_IMPORT_HTTP_WORLD_H

/* A registry with the tools of tests/mcp/import/http_server.py, which runs beside it. */

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import_world.h"
#include "pegboard/http.h"

enum { HTTP_TOOLS = 23 };

struct http_server {
    pid_t pid;
    int port;
};

static inline void http_server_start(struct http_server *s, const char *era, int port,
                                     const char *word)
{
    char path[1024];
    char number[16];
    char line[16] = "";
    int out[2];
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/tests/mcp/import/http_server.py", getenv("PEG_SOURCE_ROOT"));
    snprintf(number, sizeof(number), "%d", port);
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    s->pid = fork();
    if (s->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execlp("python3", "python3", path, era, number, word, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    while (n < sizeof(line) - 1 && read(out[0], line + n, 1) == 1 && line[n] != '\n')
        n++;
    close(out[0]);
    s->port = atoi(line); /* NOLINT(cert-err34-c): 0 is checked */
    CHECK(s->port > 0);
}

static inline void http_server_stop(struct http_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

struct http_import {
    struct http_server server;
    struct import w;
    peg_http *http;
};

static inline peg_status http_import_try(struct http_import *h, const char *era, const char *word,
                                         const peg_mcp_import_options *more)
{
    static const char *const headers[] = {"X-Team: tools", NULL};
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT};
    char url[64];

    if (more)
        options = *more;
    http_server_start(&h->server, era, 0, word);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/mcp", h->server.port);
    import_init(&h->w);
    h->w.timeout_ms = 60000;
    CHECK_STATUS(peg_http_new(&h->http, &h->w.error), PEG_OK, h->w.error);
    options.url = options.url ? options.url : url;
    options.http = h->http;
    options.headers = headers;
    options.on_event = import_on_event;
    options.user = &h->w;
    return peg_mcp_import(h->w.registry, &options, &h->w.client, &h->w.error);
}

static inline void http_import_open(struct http_import *h, const char *era, const char *word)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .backoff_ms = 20,
                                            .max_backoff_ms = 200};

    CHECK_STATUS(http_import_try(h, era, word, &options), PEG_OK, h->w.error);
}

static inline void http_import_close(struct http_import *h)
{
    import_close(&h->w);
    http_server_stop(&h->server);
    peg_http_free(h->http);
}

#endif
