/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loads an MCP server over HTTP/1.1 and says what came of it, as one JSON object.
 *
 *   mcp-load --target 127.0.0.1:PORT --path PATH --method METHOD --params JSON [--pid PID...]
 *            [--header "NAME: VALUE"...] [--session] [--echo] [--conns N] [--seconds S] [--warm S]
 *
 * Closed loop: each connection has one request under way, followed by the next as soon as it is
 * answered. A run of eight `$` in the parameters is the number of the request, which is its id,
 * too; with --echo the answer must have it twice. With --session each connection begins with
 * `initialize`, sends the session that it got, and ends it in the end. Every answer must be a
 * result that is no error: a server that fails has no figures.
 *
 * One thread, which sleeps while it waits: a client that spins would take a core from processes
 * that need it in turn. The servers' CPU is read from the clocks of their processes when the
 * measurement begins and when it ends.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../grpc/load.h"
#include "../help.h"

enum { MAX_CONNS = 4096, MAX_PIDS = 16, MAX_HEADERS = 16, ID_LEN = 8, FIRST_ID = 10000000 };
enum { HEAD_BYTES = 4096, FIRST_ROOM = 64 << 10, EVENTS = 256, STALL_MS = 30000, LEAVE_S = 20 };

enum phase { OPENING, ANNOUNCING, CALLING, LEAVING };

struct options {
    struct sockaddr_in target;
    const char *path;
    const char *method;
    const char *params;
    const char *headers[MAX_HEADERS];
    unsigned n_headers;
    pid_t pids[MAX_PIDS];
    unsigned n_pids;
    unsigned n_conns;
    double seconds;
    double warm_seconds;
    bool has_sessions;
    bool is_echo;
};

/* A connection, with the request that is under way. */
struct conn {
    int fd;
    enum phase phase;
    char session[128];
    unsigned id;
    int64_t sent_ns;
    char *in; /* NUL-terminated */
    size_t in_len;
    size_t in_room;
};

struct load {
    struct options options;
    struct conn conns[MAX_CONNS];
    int poll;
    unsigned next_id;
    char *out;
    size_t out_room;
    bool is_measuring;
    bool is_ending; /* sessions */
    unsigned n_gone;
    uint64_t n_calls;
    uint64_t n_bytes; /* of answers */
    int64_t began_ns;
    int64_t ended_ns;
    int64_t cpu_ns[MAX_PIDS];
    struct histogram latencies;
};

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "mcp-load: %s: %.2000s\n", what, why);
    exit(1);
}

static void *allocate(void *old, size_t size)
{
    void *room = realloc(old, size);

    if (!room)
        fail("memory", "there is none");
    return room;
}

/* ---- requests ---- */

static void write_all(const struct conn *conn, const char *bytes, size_t len)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = write(conn->fd, bytes + done, len - done);

        if (n < 0 && errno != EINTR)
            fail("write", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
}

/* Requests are small, so that a connection takes them whole. */
static void post(struct load *load, struct conn *conn, const char *body)
{
    const struct options *o = &load->options;
    const size_t body_len = strlen(body);
    size_t len;

    if (load->out_room < HEAD_BYTES + body_len)
        load->out = allocate(load->out, load->out_room = HEAD_BYTES + body_len);
    len = (size_t)snprintf(load->out, HEAD_BYTES,
                           "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: "
                           "application/json\r\nAccept: application/json, text/event-stream\r\n"
                           "Content-Length: %zu\r\n%s%s%s",
                           o->path, ntohs(o->target.sin_port), body_len,
                           *conn->session ? "Mcp-Session-Id: " : "", conn->session,
                           *conn->session ? "\r\n" : "");
    for (unsigned i = 0; i < o->n_headers && len < HEAD_BYTES; i++)
        len += (size_t)snprintf(load->out + len, HEAD_BYTES - len, "%s\r\n", o->headers[i]);
    if (len + 2 >= HEAD_BYTES)
        fail("--header", "too many of them");
    memcpy(load->out + len, "\r\n", 2);
    memcpy(load->out + len + 2, body, body_len);
    conn->in_len = 0;
    conn->sent_ns = now_ns();
    write_all(conn, load->out, len + 2 + body_len);
}

static void send_call(struct load *load, struct conn *conn)
{
    static char *body;
    const struct options *o = &load->options;
    const size_t room = strlen(o->params) + strlen(o->method) + 128;
    char digits[16];
    char *at;

    conn->phase = CALLING;
    conn->id = load->next_id++;
    body = allocate(body, room);
    snprintf(body, room, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":%s}",
             conn->id, o->method, o->params);
    snprintf(digits, sizeof(digits), "%u", conn->id);
    at = strstr(body, "$$$$$$$$");
    if (at)
        memcpy(at, digits, ID_LEN);
    post(load, conn, body);
}

static void send_delete(const struct load *load, struct conn *conn)
{
    char text[HEAD_BYTES];
    const int len =
        snprintf(text, sizeof(text),
                 "DELETE %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nMcp-Session-Id: %s\r\n\r\n",
                 load->options.path, ntohs(load->options.target.sin_port), conn->session);

    conn->phase = LEAVING;
    conn->in_len = 0;
    write_all(conn, text, (size_t)len);
}

static void send_first(struct load *load, struct conn *conn)
{
    if (!load->options.has_sessions) {
        send_call(load, conn);
        return;
    }
    conn->phase = OPENING;
    post(load, conn,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
         "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}"
         "}");
}

/* ---- answers ---- */

static const char *find_field(const char *head, const char *name)
{
    const char *at = strcasestr(head, name);

    return at ? at + strlen(name) : NULL;
}

/* Has the last chunk come? Chunks are not taken apart: what is looked for in them is short. */
static bool has_last_chunk(const char *body, const char *end)
{
    while (body < end) {
        char *behind;
        const unsigned long long size = strtoull(body, &behind, 16);
        const char *next = strstr(behind, "\r\n");

        if (!next || (unsigned long long)(end - next) < size + 4)
            return false;
        if (!size)
            return true;
        body = next + 2 + size + 2;
    }
    return false;
}

/* NULL: it has not come whole. Its body else; head and body are NUL-terminated. */
static const char *find_body(struct conn *conn)
{
    char *border = strstr(conn->in, "\r\n\r\n");
    const char *end = conn->in + conn->in_len;
    const char *length;
    const char *body;
    bool is_whole;

    if (!border)
        return NULL;
    body = border + 4;
    *border = '\0';
    length = find_field(conn->in, "\r\ncontent-length:");
    if (length)
        is_whole = (size_t)(end - body) >= strtoull(length, NULL, 10);
    else if (find_field(conn->in, "\r\ntransfer-encoding: chunked"))
        is_whole = has_last_chunk(body, end);
    else
        is_whole = true;
    if (!is_whole)
        *border = '\r';
    return is_whole ? body : NULL;
}

/* The number of the request, and the one that came back in its text. */
static void check_result(const struct load *load, const struct conn *conn, const char *body)
{
    char digits[16];
    const char *at;

    snprintf(digits, sizeof(digits), "%u", conn->id);
    at = strstr(body, digits);
    if (strncmp(conn->in, "HTTP/1.1 200", 12) != 0 || !at || !strstr(body, "\"result\"") ||
        strstr(body, "\"isError\":true"))
        fail("an answer", conn->in_len ? body : "nothing");
    if (load->options.is_echo && !strstr(at + ID_LEN, digits))
        fail("an answer to something else", body);
}

static void keep_session(struct conn *conn)
{
    const char *id = find_field(conn->in, "\r\nmcp-session-id:");
    size_t len;

    if (strncmp(conn->in, "HTTP/1.1 200", 12) != 0 || !id)
        fail("initialize", conn->in);
    id += strspn(id, " ");
    len = strcspn(id, "\r\n");
    if (len >= sizeof(conn->session))
        fail("initialize", "the session is too long");
    memcpy(conn->session, id, len);
    conn->session[len] = '\0';
}

static void take_answer(struct load *load, struct conn *conn, const char *body)
{
    if (conn->phase == OPENING) {
        keep_session(conn);
        conn->phase = ANNOUNCING;
        post(load, conn, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
        return;
    }
    if (conn->phase == LEAVING) {
        load->n_gone++;
        epoll_ctl(load->poll, EPOLL_CTL_DEL, conn->fd, NULL);
        return;
    }
    if (conn->phase == CALLING) {
        check_result(load, conn, body);
        if (load->is_measuring) {
            load->n_calls++;
            load->n_bytes += conn->in_len;
            histogram_add(&load->latencies, now_ns() - conn->sent_ns);
        }
    }
    if (load->is_ending)
        send_delete(load, conn);
    else
        send_call(load, conn);
}

static void read_conn(struct load *load, struct conn *conn)
{
    const char *body;
    ssize_t n;

    if (conn->in_room - conn->in_len < FIRST_ROOM)
        conn->in = allocate(conn->in, conn->in_room = 2 * conn->in_room + FIRST_ROOM);
    n = read(conn->fd, conn->in + conn->in_len, conn->in_room - conn->in_len - 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        fail("a connection", n ? strerror(errno) : "the server has closed it");
    conn->in_len += (size_t)n;
    conn->in[conn->in_len] = '\0';
    body = find_body(conn);
    if (body)
        take_answer(load, conn, body);
}

/* ---- the measurement ---- */

static void open_conn(struct load *load, struct conn *conn)
{
    const int yes = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};

    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 ||
        connect(conn->fd, (const struct sockaddr *)&load->options.target,
                sizeof(load->options.target)) ||
        setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) ||
        epoll_ctl(load->poll, EPOLL_CTL_ADD, conn->fd, &event))
        fail("--target", strerror(errno));
    send_first(load, conn);
}

static void run_until(struct load *load, int64_t end_ns)
{
    struct epoll_event events[EVENTS];

    while (now_ns() < end_ns) {
        const int n = epoll_wait(load->poll, events, EVENTS, STALL_MS);

        if (n == 0)
            fail("the server", "it has said nothing for 30 s");
        for (int i = 0; i < n; i++)
            read_conn(load, events[i].data.ptr);
    }
}

static bool all_call(const struct load *load)
{
    for (unsigned i = 0; i < load->options.n_conns; i++) {
        if (load->conns[i].phase != CALLING)
            return false;
    }
    return true;
}

static void measure(struct load *load)
{
    const struct options *o = &load->options;

    do
        run_until(load, now_ns() + (int64_t)(o->warm_seconds * 1e9));
    while (!all_call(load));
    for (unsigned i = 0; i < o->n_pids; i++)
        load->cpu_ns[i] = process_cpu_ns(o->pids[i]);
    load->is_measuring = true;
    load->began_ns = now_ns();
    run_until(load, load->began_ns + (int64_t)(o->seconds * 1e9));
    load->ended_ns = now_ns();
    for (unsigned i = 0; i < o->n_pids; i++)
        load->cpu_ns[i] = process_cpu_ns(o->pids[i]) - load->cpu_ns[i];
}

static void report(const struct load *load)
{
    int64_t cpu_ns = 0;

    if (!load->n_calls)
        fail("the server", "it has answered nothing");
    for (unsigned i = 0; i < load->options.n_pids; i++)
        cpu_ns += load->cpu_ns[i];
    printf("{\"calls\":%llu,\"seconds\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"bytes\":%llu,"
           "\"cpu_s\":%.4f,\"server_cpu_s\":%.4f}\n",
           (unsigned long long)load->n_calls, (double)(load->ended_ns - load->began_ns) / 1e9,
           histogram_quantile_us(&load->latencies, 0.5),
           histogram_quantile_us(&load->latencies, 0.99), (unsigned long long)load->n_bytes,
           (double)cpu_ns / 1e9, (double)load->cpu_ns[0] / 1e9);
}

/* Each when its last answer has come; else the server would keep them, and the next measurement
 * would find them there. */
static void end_sessions(struct load *load)
{
    const int64_t end_ns = now_ns() + (int64_t)LEAVE_S * 1000000000;
    struct epoll_event events[EVENTS];

    load->is_measuring = false;
    load->is_ending = true;
    while (load->n_gone < load->options.n_conns && now_ns() < end_ns) {
        const int n = epoll_wait(load->poll, events, EVENTS, 100);

        for (int i = 0; i < n; i++)
            read_conn(load, events[i].data.ptr);
    }
}

/* ---- options ---- */

static struct sockaddr_in parse_target(const char *text)
{
    struct sockaddr_in target = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";

    if (colon && (size_t)(colon - text) < sizeof(host))
        memcpy(host, text, (size_t)(colon - text));
    if (!colon || inet_pton(AF_INET, host, &target.sin_addr) != 1)
        fail("--target", "it is ADDRESS:PORT");
    target.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    return target;
}

static void take_option(struct options *o, int option)
{
    switch (option) {
    case 't':
        o->target = parse_target(optarg);
        break;
    case 'u':
        o->path = optarg;
        break;
    case 'm':
        o->method = optarg;
        break;
    case 'a':
        o->params = optarg;
        break;
    case 'H':
        if (o->n_headers == MAX_HEADERS)
            fail("--header", "too many of them");
        o->headers[o->n_headers++] = optarg;
        break;
    case 'p':
        if (o->n_pids == MAX_PIDS)
            fail("--pid", "too many of them");
        o->pids[o->n_pids++] = (pid_t)strtol(optarg, NULL, 10);
        break;
    case 'c':
        o->n_conns = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 's':
        o->seconds = strtod(optarg, NULL);
        break;
    case 'w':
        o->warm_seconds = strtod(optarg, NULL);
        break;
    case 'S':
        o->has_sessions = true;
        break;
    case 'e':
        o->is_echo = true;
        break;
    default:
        exit(2);
    }
}

static void parse_options(struct options *o, int argc, char **argv)
{
    static const struct option names[] = {
        {"target", required_argument, NULL, 't'}, {"path", required_argument, NULL, 'u'},
        {"method", required_argument, NULL, 'm'}, {"params", required_argument, NULL, 'a'},
        {"header", required_argument, NULL, 'H'}, {"pid", required_argument, NULL, 'p'},
        {"conns", required_argument, NULL, 'c'},  {"seconds", required_argument, NULL, 's'},
        {"warm", required_argument, NULL, 'w'},   {"session", no_argument, NULL, 'S'},
        {"echo", no_argument, NULL, 'e'},         {0},
    };
    int option;

    *o = (struct options){.path = "/mcp",
                          .method = "ping",
                          .params = "{}",
                          .n_conns = 1,
                          .seconds = 1,
                          .warm_seconds = 0.2};
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        take_option(o, option);
    if (!o->target.sin_port || !o->n_conns || o->n_conns > MAX_CONNS)
        fail("usage", "--target is required, and there are 1 to 4096 connections");
}

int main(int argc, char **argv)
{
    static struct load load = {.next_id = FIRST_ID};

    bench_help(argc, argv,
               "usage: mcp-load --target ADDRESS:PORT [--path PATH] [--method METHOD]\n"
               "                [--params JSON] [--pid PID...] [--header LINE...] [--session]\n"
               "                [--echo] [--conns N] [--seconds S] [--warm S]\n\n"
               "Loads an MCP server over HTTP/1.1 and prints what came of it as JSON.\n");
    parse_options(&load.options, argc, argv);
    load.poll = epoll_create1(EPOLL_CLOEXEC);
    if (load.poll < 0)
        fail("epoll", strerror(errno));
    for (unsigned i = 0; i < load.options.n_conns; i++)
        open_conn(&load, &load.conns[i]);
    measure(&load);
    report(&load);
    if (load.options.has_sessions)
        end_sessions(&load);
    return 0;
}
