/* SPDX-License-Identifier: Apache-2.0 */

/* A small HTTP/1.1 server: a thread for each connection, bodies with a length. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

enum { MAX_HEAD = 32 << 10, MAX_BODY = 8 << 20, MAX_FIELDS = 64 };

struct connection {
    peg_mcp_server *server;
    int fd;
    char head[MAX_HEAD]; /* and what was read behind it */
    size_t n_read;
    peg_mcp_header fields[MAX_FIELDS];
    size_t n_fields;
    bool is_chunked; /* the answer */
};

/* ---- answers ---- */

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool begin_answer(int status, const peg_mcp_header *headers, size_t n_headers, void *user)
{
    struct connection *c = user;
    char text[2048];
    size_t len = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 %d Status\r\n", status);

    c->is_chunked = true;
    for (size_t i = 0; i < n_headers; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s: %s\r\n", headers[i].name,
                                headers[i].value);
        if (!strcmp(headers[i].name, "content-length"))
            c->is_chunked = false;
    }
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\r\n",
                            c->is_chunked ? "transfer-encoding: chunked\r\n" : "");
    return send_all(c->fd, text, len);
}

static bool write_answer(peg_str bytes, void *user)
{
    const struct connection *c = user;
    char size[24];

    if (!c->is_chunked)
        return send_all(c->fd, bytes.ptr, bytes.len);
    snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
    return send_all(c->fd, size, strlen(size)) && send_all(c->fd, bytes.ptr, bytes.len) &&
           send_all(c->fd, "\r\n", 2);
}

static bool is_client_gone(void *user)
{
    const struct connection *c = user;
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- requests ---- */

static const char *find_field(const struct connection *c, const char *name)
{
    for (size_t i = 0; i < c->n_fields; i++) {
        if (!strcasecmp(c->fields[i].name, name))
            return c->fields[i].value;
    }
    return NULL;
}

/* Reads until there is a whole head; its length, or 0. */
static size_t read_head(struct connection *c)
{
    for (;;) {
        const char *end = memmem(c->head, c->n_read, "\r\n\r\n", 4);
        ssize_t n;

        if (end)
            return (size_t)(end - c->head) + 4;
        n = c->n_read < MAX_HEAD - 1 ? recv(c->fd, c->head + c->n_read, MAX_HEAD - 1 - c->n_read, 0)
                                     : 0;
        if (n <= 0)
            return 0;
        c->n_read += (size_t)n;
    }
}

static void trim_end(char *text)
{
    size_t len = strlen(text);

    while (len && strchr(" \t", text[len - 1]))
        text[--len] = '\0';
}

/* The lines behind the first one. */
static void split_fields(struct connection *c, char *line)
{
    char *rest = NULL;

    c->n_fields = 0;
    for (line = strtok_r(line, "\r\n", &rest); line && c->n_fields < MAX_FIELDS;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char *colon = strchr(line, ':');

        if (!colon)
            continue;
        *colon++ = '\0';
        trim_end(colon);
        c->fields[c->n_fields++] = (peg_mcp_header){line, colon + strspn(colon, " \t")};
    }
}

/* From malloc, with what was read behind the head; NULL: there is none to come. */
static char *read_body(struct connection *c, size_t head_len, size_t len)
{
    char *body = len <= MAX_BODY ? malloc(len + 1) : NULL;
    size_t n = c->n_read - head_len < len ? c->n_read - head_len : len;

    if (!body)
        return NULL;
    memcpy(body, c->head + head_len, n);
    while (n < len) {
        const ssize_t got = recv(c->fd, body + n, len - n, 0);

        if (got <= 0) {
            free(body);
            return NULL;
        }
        n += (size_t)got;
    }
    return body;
}

static bool answer_request(struct connection *c, const char *method, peg_str body)
{
    const peg_mcp_http http = {
        PEG_MCP_HTTP_INIT,     .method = method,          .body = body,
        .headers = c->fields,  .n_headers = c->n_fields,  .begin = begin_answer,
        .write = write_answer, .is_gone = is_client_gone, .user = c};
    peg_error error;

    if (peg_mcp_server_http(c->server, &http, &error)) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        return false;
    }
    return !c->is_chunked || send_all(c->fd, "0\r\n\r\n", 5);
}

/* False: the connection is over. */
static bool take_request(struct connection *c)
{
    const size_t head_len = read_head(c);
    char *line_end;
    const char *length;
    char method[16] = "";
    size_t len;
    char *body;
    bool is_answered;

    if (!head_len)
        return false;
    c->head[head_len - 2] = '\0';
    line_end = strstr(c->head, "\r\n");
    if (!line_end || sscanf(c->head, "%15s", method) != 1)
        return false;
    split_fields(c, line_end);
    length = find_field(c, "content-length");
    len = length ? strtoul(length, NULL, 10) : 0;
    body = read_body(c, head_len, len);
    if (!body)
        return false;
    is_answered = answer_request(c, method, (peg_str){body, len});
    free(body);
    len += head_len;
    c->n_read = c->n_read > len ? c->n_read - len : 0;
    memmove(c->head, c->head + len, c->n_read);
    return is_answered;
}

static void *serve_connection(void *user)
{
    struct connection *c = user;

    while (take_request(c))
        ;
    close(c->fd);
    free(c);
    return NULL;
}

/* ---- connections ---- */

static int open_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 512) ||
        getsockname(fd, (struct sockaddr *)&address, &len))
        return -1;
    printf("http://127.0.0.1:%d/mcp\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static bool start_connection(peg_mcp_server *server, int fd)
{
    struct connection *c = calloc(1, sizeof(*c));
    pthread_t thread;
    const int on = 1;

    if (!c)
        return false;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->server = server;
    c->fd = fd;
    if (pthread_create(&thread, NULL, serve_connection, c)) {
        free(c);
        return false;
    }
    pthread_detach(thread);
    return true;
}

int fixture_serve_http(peg_mcp_server *server)
{
    const int listener = open_listener();

    if (listener < 0) {
        perror("cannot listen");
        return 1;
    }
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0 && !start_connection(server, fd))
            close(fd);
    }
}
