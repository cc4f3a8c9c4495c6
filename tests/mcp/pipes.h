/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_PIPES_H
#define PEG_TESTS_MCP_PIPES_H

/* A server of the public API on a thread of its own, and its client at the other end of pipes. */

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/mcp.h"

struct pipes {
    peg_registry *registry;
    peg_mcp_server *server;
    int to_server;
    int from_server;
    int server_in;
    int server_out;
    pthread_t thread;
    bool is_running;
    peg_status status; /* of serving */
    peg_error error;
    char *line; /* the last one that came; from malloc */
    char *rest; /* read, and not taken yet; from malloc */
    size_t rest_len;
};

static inline void *pipes_serve(void *user)
{
    struct pipes *p = user;

    p->status = peg_mcp_server_serve(p->server, p->server_in, p->server_out, &p->error);
    return NULL;
}

static inline void pipes_add(struct pipes *p, const peg_tool_def *def)
{
    peg_tool *tool = NULL;

    CHECK_STATUS(peg_tool_new(def, &tool, &p->error), PEG_OK, p->error);
    CHECK_STATUS(peg_registry_register(p->registry, tool, false, &p->error), PEG_OK, p->error);
    peg_tool_unref(tool);
}

static inline void pipes_init(struct pipes *p)
{
    *p = (struct pipes){.to_server = -1, .from_server = -1};
    CHECK_INT(peg_registry_new(NULL, 0, &p->registry, NULL), PEG_OK);
}

static inline void pipes_start(struct pipes *p, const peg_mcp_options *options, bool uses_socket)
{
    int in[2];
    int out[2];

    CHECK_STATUS(peg_mcp_server_new(p->registry, options, &p->server, &p->error), PEG_OK, p->error);
    if (uses_socket) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0);
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0);
    } else {
        CHECK(pipe(in) == 0 && pipe(out) == 0);
    }
    p->server_in = in[0];
    p->to_server = in[1];
    p->from_server = out[0];
    p->server_out = out[1];
    CHECK(pthread_create(&p->thread, NULL, pipes_serve, p) == 0);
    p->is_running = true;
}

/* The client closes its end; what the server returned. */
static inline peg_status pipes_end(struct pipes *p)
{
    if (p->to_server >= 0)
        close(p->to_server);
    p->to_server = -1;
    if (p->is_running) {
        pthread_join(p->thread, NULL);
        close(p->server_in);
        close(p->server_out);
    }
    p->is_running = false;
    return p->status;
}

static inline void pipes_free(struct pipes *p)
{
    pipes_end(p);
    if (p->from_server >= 0)
        close(p->from_server);
    peg_mcp_server_free(p->server);
    peg_registry_unref(p->registry);
    free(p->line);
    free(p->rest);
}

static inline void pipes_write(struct pipes *p, const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(p->to_server, text, len);

        CHECK(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

static inline void pipes_send(struct pipes *p, const char *text)
{
    pipes_write(p, text, strlen(text));
    pipes_write(p, "\n", 1);
}

/* The next line, or NULL at the end. Half a minute without one is a failure. */
static inline const char *pipes_read(struct pipes *p)
{
    struct pollfd fd = {.fd = p->from_server, .events = POLLIN};
    char *end;

    while (!(end = p->rest_len ? memchr(p->rest, '\n', p->rest_len) : NULL)) {
        ssize_t n;

        p->rest = realloc(p->rest, p->rest_len + 65536);
        CHECK(poll(&fd, 1, 30000) == 1);
        n = read(p->from_server, p->rest + p->rest_len, 65536);
        CHECK(n >= 0);
        if (n == 0)
            return NULL;
        p->rest_len += (size_t)n;
    }
    free(p->line);
    p->line = malloc((size_t)(end - p->rest) + 1);
    memcpy(p->line, p->rest, (size_t)(end - p->rest));
    p->line[end - p->rest] = '\0';
    p->rest_len -= (size_t)(end + 1 - p->rest);
    memmove(p->rest, end + 1, p->rest_len);
    return p->line;
}

#define CHECK_READ(p, part)                                                                        \
    do {                                                                                           \
        const char *t_line = pipes_read(p);                                                        \
        CHECK(t_line);                                                                             \
        if (!strstr(t_line, part))                                                                 \
            T_FAIL("\"%s\" is not in %s", part, t_line);                                           \
    } while (0)

#endif
