/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop of a server on two descriptors: lines in, lines out, and handlers that report.
 *
 *   SERVING  -- end of input, or stop --> DRAINING: requests get their answers, for a while
 *   DRAINING -- none left, time over, or another stop --> ENDING: calls are canceled, output is
 *               written
 *
 * A client that does not read is not read from either, so what waits for it stays bounded; progress
 * and log messages are dropped meanwhile.
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/stdio/internal.h"

enum phase { SERVING, DRAINING, ENDING };
enum output { IS_FILE, IS_PIPE, IS_SOCKET };
enum { READ_BYTES = 64 << 10 };

struct serving {
    peg_mcp_server *server;
    struct mcp_peer *peer;
    int in_fd;
    int out_fd;
    enum output output_kind;
    enum phase phase;
    int64_t until_ms;    /* of the phase */
    unsigned n_stops;    /* that made it drain: 0 at the end of input */
    struct peg__buf in;  /* the line that is being read */
    size_t n_scanned;    /* of it, without an end of line */
    bool is_skipping;    /* the rest of a line that was too long */
    struct peg__buf out; /* what waits to be written */
    size_t n_written;    /* of it */
    bool is_broken;      /* the client does not read any more */
    int read_errno;      /* 0: none */
    bool is_out_of_memory;
};

static int64_t now_ms(void)
{
    return peg__mono_ns() / PEG_NS_PER_MS;
}

/* ---- lines out ---- */

static size_t n_waiting(const struct serving *s)
{
    return s->out.len - s->n_written;
}

static void send_line(void *user, const struct mcp_sent *sent)
{
    struct serving *s = user;

    if (s->is_broken || (sent->may_be_lost && n_waiting(s) > PEG_LIMIT_MCP_OUTPUT_BYTES))
        return;
    peg__buf_str(&s->out, sent->text);
    peg__buf_putc(&s->out, '\n');
    if (s->out.status)
        s->is_out_of_memory = true;
}

static const struct mcp_peer_ops peer_ops = {.send = send_line};

/* Does not wait: a pipe that poll() calls writable takes PIPE_BUF bytes. */
static ssize_t write_some(const struct serving *s, const char *bytes, size_t n)
{
    switch (s->output_kind) {
    case IS_SOCKET:
        return send(s->out_fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    case IS_PIPE:
        return write(s->out_fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
    case IS_FILE:
        break;
    }
    return write(s->out_fd, bytes, n);
}

static void write_output(struct serving *s)
{
    const ssize_t n = write_some(s, s->out.ptr + s->n_written, n_waiting(s));

    if (n > 0)
        s->n_written += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        s->is_broken = true;
    if (!n_waiting(s) || s->is_broken) {
        s->n_written = 0;
        /* What one large result took is not kept for ever. */
        if (s->out.capacity > PEG_LIMIT_MCP_OUTPUT_BYTES)
            peg__buf_free(&s->out);
        else
            peg__buf_clear(&s->out);
    }
}

static enum output kind_of(int fd)
{
    struct stat info;

    if (fstat(fd, &info))
        return IS_FILE;
    return S_ISSOCK(info.st_mode) ? IS_SOCKET : S_ISFIFO(info.st_mode) ? IS_PIPE : IS_FILE;
}

/* ---- lines in ---- */

static void take_line(struct serving *s, peg_str line)
{
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (!peg__str_is_blank(line) && mcp_peer_receive(s->peer, line, NULL))
        s->is_out_of_memory = true;
}

/* A line that is too long is refused with its beginning, and its rest is skipped. */
static void skip_long_line(struct serving *s)
{
    if (!s->is_skipping)
        take_line(s, peg__buf_view(&s->in));
    s->is_skipping = true;
    peg__buf_clear(&s->in);
    s->n_scanned = 0;
}

static void take_lines(struct serving *s)
{
    size_t start = 0;
    char *end;

    while ((end = memchr(s->in.ptr + s->n_scanned, '\n', s->in.len - s->n_scanned))) {
        const size_t next = (size_t)(end - s->in.ptr) + 1;

        if (!s->is_skipping)
            take_line(s, peg__strn(s->in.ptr + start, next - 1 - start));
        s->is_skipping = false;
        start = s->n_scanned = next;
    }
    memmove(s->in.ptr, s->in.ptr + start, s->in.len - start);
    s->in.len -= start;
    s->n_scanned = s->in.len;
    if (s->in.len > PEG_LIMIT_MCP_MESSAGE_BYTES)
        skip_long_line(s);
}

static void start_draining(struct serving *s)
{
    if (s->phase != SERVING)
        return;
    s->phase = DRAINING;
    s->n_stops = atomic_load(&s->server->n_stops) > 0;
    s->until_ms = now_ms() + s->server->drain_ms;
    mcp_peer_finish(s->peer);
}

static void read_input(struct serving *s)
{
    char *at = peg__buf_reserve(&s->in, READ_BYTES);
    ssize_t n;

    if (!at) {
        s->is_out_of_memory = true;
        return;
    }
    n = read(s->in_fd, at, READ_BYTES);
    if (n > 0) {
        s->in.len += (size_t)n;
        take_lines(s);
    } else if (n == 0) {
        if (!s->is_skipping)
            take_line(s, peg__buf_view(&s->in)); /* without an end of line */
        start_draining(s);
    } else if (errno != EAGAIN && errno != EINTR) {
        s->read_errno = errno;
        start_draining(s);
    }
}

/* ---- phases ---- */

static void start_ending(struct serving *s)
{
    s->phase = ENDING;
    s->until_ms = now_ms() + s->server->drain_ms;
    mcp_server_cancel_all(s->server->protocol, "the server stops");
}

/* True: it is over. */
static bool proceed(struct serving *s)
{
    const unsigned n_stops = atomic_load(&s->server->n_stops);

    if (n_stops || s->is_broken || s->is_out_of_memory)
        start_draining(s);
    if (s->phase == DRAINING && (!mcp_peer_n_requests(s->peer) || now_ms() >= s->until_ms ||
                                 n_stops > s->n_stops || s->is_broken || s->is_out_of_memory))
        start_ending(s);
    return s->phase == ENDING && !mcp_server_n_calls(s->server->protocol) &&
           (!n_waiting(s) || s->is_broken || now_ms() >= s->until_ms);
}

static int timeout_of(const struct serving *s)
{
    const int64_t now = now_ms();
    int64_t due = mcp_server_due_ms(s->server->protocol);

    /* At the end calls are waited for as long as it takes. */
    if (s->phase == DRAINING || (s->phase == ENDING && n_waiting(s)))
        due = s->until_ms < due ? s->until_ms : due;
    if (due == INT64_MAX)
        return -1;
    return due <= now ? 0 : due - now > INT_MAX ? INT_MAX : (int)(due - now);
}

static void advance(const struct serving *s)
{
    mcp_server_advance(s->server->protocol, now_ms(), peg_clock_now_ms(peg_clock_system()));
}

static void take_wake(const struct serving *s)
{
    uint64_t n;

    (void)!read(s->server->wake_fd, &n, sizeof(n));
    mcp_host_pump(s->server->host);
}

static void run_round(struct serving *s)
{
    const bool reads = s->phase == SERVING && n_waiting(s) < PEG_LIMIT_MCP_OUTPUT_BYTES;
    struct pollfd fds[] = {
        {.fd = s->server->wake_fd, .events = POLLIN},
        {.fd = s->is_broken ? -1 : s->out_fd, .events = n_waiting(s) ? POLLOUT : 0},
        {.fd = reads ? s->in_fd : -1, .events = POLLIN},
    };

    if (poll(fds, 3, timeout_of(s)) < 0)
        return; /* a signal */
    advance(s);
    if (fds[0].revents)
        take_wake(s);
    if (fds[1].revents & (POLLERR | POLLNVAL))
        s->is_broken = true;
    else if (fds[1].revents & POLLOUT)
        write_output(s);
    if (fds[2].revents)
        read_input(s);
}

static peg_status end_of(const struct serving *s, peg_error *reterr)
{
    if (s->is_out_of_memory)
        return peg__fail_nomem(reterr);
    if (s->read_errno)
        return peg__fail(reterr, PEG_EIO, "E_MCP", "the client cannot be read from (error %d)",
                         s->read_errno);
    return PEG_OK;
}

static peg_status serve_client(struct serving *s, peg_error *reterr)
{
    if (mcp_peer_new(s->server->protocol, &peer_ops, s, "local", &s->peer))
        return peg__fail_nomem(reterr);
    advance(s);
    mcp_host_pump(s->server->host); /* what it offers by now */
    while (!proceed(s))
        run_round(s);
    mcp_peer_free(s->peer);
    peg__buf_free(&s->in);
    peg__buf_free(&s->out);
    return end_of(s, reterr);
}

/* ---- SIGPIPE: a pipe without a reader is an end, and no reason to die ---- */

static void block_sigpipe(sigset_t *ret_before)
{
    sigset_t pipe_alone;

    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_alone, ret_before);
}

static void restore_sigpipe(const sigset_t *before)
{
    const struct timespec none = {0};
    sigset_t pipe_alone;

    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    if (!sigismember(before, SIGPIPE))
        (void)sigtimedwait(&pipe_alone, NULL, &none);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

peg_status peg_mcp_server_serve(peg_mcp_server *server, int in_fd, int out_fd, peg_error *reterr)
{
    struct serving s = {.server = server,
                        .in_fd = in_fd,
                        .out_fd = out_fd,
                        .output_kind = kind_of(out_fd),
                        .in = PEG__BUF(PEG_LIMIT_MCP_MESSAGE_BYTES + 2 * READ_BYTES),
                        .out = PEG__BUF(PEG_LIMIT_TEXT_BYTES)};
    int n_served = 0;
    sigset_t before;
    peg_status status;

    if (!atomic_compare_exchange_strong(&server->n_served, &n_served, -1))
        return peg__fail(reterr, PEG_ESTATE, "E_MCP",
                         "the server serves a client already: make another one");
    block_sigpipe(&before);
    status = serve_client(&s, reterr);
    restore_sigpipe(&before);
    atomic_store(&server->n_served, 0);
    return status;
}
