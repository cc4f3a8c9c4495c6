/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The link to a process: one thread writes what waits for it, reads its lines, and reports what it
 * writes to standard error. The process is waited for when the link is closed.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"
#include "tools/spawn.h"

enum {
    READ_BYTES = 64 << 10,
    LINE_BYTES = 512, /* of standard error */
    LAST_READS = 64,  /* of what is left in the pipe of a process that has ended */
    STEP_MS = 10,     /* where the kernel does not tell of the end of a process */
    ENDING_MS = 1000, /* for a process that has closed its output */
};

struct stdio {
    peg_mcp_client *client;
    struct peg__child child;
    struct peg__family family;
    int pidfd; /* -1: the kernel has none */
    int wake;  /* an eventfd */
    pthread_t thread;
    bool has_thread;
    /* the thread's */
    struct peg__buf in;
    size_t n_scanned; /* of it, without a line end */
    char line[LINE_BYTES];
    size_t line_len;
    int64_t window_ns; /* of standard error */
    unsigned n_lines;
    uint64_t n_unreported;
    bool is_over;
    peg_error why;
    /* under the client's lock */
    struct peg__buf out;
    size_t n_written;  /* of it */
    uint64_t n_queued; /* bytes ever */
    uint64_t n_sent;   /* bytes ever */
    bool is_closing;
};

/* ---- out ---- */

static void wake(const struct stdio *s)
{
    eventfd_write(s->wake, 1);
}

/* Under the lock. */
static peg_status queue_line(struct stdio *s, peg_str message, peg_error *reterr)
{
    const size_t waiting = s->out.len - s->n_written;

    if (waiting && waiting + message.len > PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                         "the MCP server does not read: more than %d MiB wait for it",
                         PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES >> 20);
    if (!peg__buf_reserve(&s->out, message.len + 1)) {
        s->out.status = PEG_OK; /* what was there is still whole */
        return peg__fail_nomem(reterr);
    }
    peg__buf_str(&s->out, message);
    peg__buf_putc(&s->out, '\n');
    s->n_queued += message.len + 1;
    return PEG_OK;
}

static void send_message(peg_mcp_client *client, peg_str message, bool waits)
{
    peg_error ignored;

    (void)waits; /* they go out in order */
    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open && !queue_line(client->link_state, message, &ignored))
        wake(client->link_state);
    pthread_mutex_unlock(&client->wait.lock);
}

static peg_status exchange(struct mcp__exchange *x, peg_ctx *ctx, peg_str message,
                           peg_error *reterr)
{
    peg_mcp_client *client = x->client;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->wait.lock);
    if (client->is_open && !x->is_done) {
        struct stdio *s = client->link_state;

        x->sent_at = s->n_queued;
        status = queue_line(s, message, reterr);
        if (!status)
            wake(s);
    } /* else it was lost since, and so was the exchange */
    pthread_mutex_unlock(&client->wait.lock);
    return status ? status : mcp__exchange_wait(x, ctx, reterr);
}

/* What the server says comes by the one pipe, asked for or not. */
static void listen_on_pipe(peg_mcp_client *client, peg_str message)
{
    if (message.len)
        send_message(client, message, false);
}

static void write_output(struct stdio *s)
{
    pthread_mutex_lock(&s->client->wait.lock);
    while (s->n_written < s->out.len) {
        const ssize_t n = write(s->child.in, s->out.ptr + s->n_written, s->out.len - s->n_written);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            peg__close(&s->child.in); /* its end is seen elsewhere */
        if (n <= 0)
            break;
        s->n_written += (size_t)n;
        s->n_sent += (uint64_t)n;
    }
    if (s->n_written == s->out.len) {
        s->n_written = 0;
        if (s->out.capacity > PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES)
            peg__buf_free(&s->out);
        else
            peg__buf_clear(&s->out);
    }
    pthread_mutex_unlock(&s->client->wait.lock);
}

/* ---- in ---- */

static void give_up_server(struct stdio *s, const peg_error *why)
{
    if (!s->is_over)
        s->why = *why;
    s->is_over = true;
}

static void take_server_line(struct stdio *s, peg_str line)
{
    peg_error why;

    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (!s->is_over && !peg__str_is_blank(line) && mcp__receive(s->client, NULL, line, &why))
        give_up_server(s, &why);
}

static void take_lines(struct stdio *s)
{
    size_t start = 0;
    char *end;
    peg_error why;

    while ((end = memchr(s->in.ptr + s->n_scanned, '\n', s->in.len - s->n_scanned))) {
        const size_t next = (size_t)(end - s->in.ptr) + 1;

        take_server_line(s, peg__strn(s->in.ptr + start, next - 1 - start));
        start = s->n_scanned = next;
    }
    memmove(s->in.ptr, s->in.ptr + start, s->in.len - start);
    s->in.len -= start;
    s->n_scanned = s->in.len;
    if (s->in.len > PEG_LIMIT_MCP_IMPORT_BYTES) {
        peg__fail(&why, PEG_ELIMIT, "E_MCP_LIMIT", "the MCP server sent a line of more than %d MiB",
                  PEG_LIMIT_MCP_IMPORT_BYTES >> 20);
        give_up_server(s, &why);
    } else if (!s->in.len && s->in.capacity > (1 << 20)) {
        peg__buf_free(&s->in); /* what one large result took is not kept */
    }
}

/* True: there may be more. */
static bool read_output(struct stdio *s)
{
    char *at = peg__buf_reserve(&s->in, READ_BYTES);
    peg_error why;
    ssize_t n;

    if (!at) {
        peg__fail_nomem(&why);
        give_up_server(s, &why);
        return false;
    }
    n = s->child.out < 0 ? 0 : read(s->child.out, at, READ_BYTES);
    if (n > 0) {
        s->in.len += (size_t)n;
        take_lines(s);
        return !s->is_over;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    take_server_line(s, peg__buf_view(&s->in)); /* without an end of line */
    peg__buf_clear(&s->in);
    s->n_scanned = 0;
    peg__close(&s->child.out);
    return false;
}

/* ---- standard error ---- */

static void report_line(struct stdio *s, const char *text)
{
    if (s->client->options.on_event)
        mcp__report(s->client, &(peg_mcp_event){.kind = PEG_MCP_STDERR, .message = text});
    else
        peg__log(PEG_LOG_INFO, "", "an MCP server says: %s", text);
}

/* A new window begins with how much was left out of the last one. */
static bool may_report(struct stdio *s)
{
    const int64_t now = peg__mono_ns();
    char text[96];

    if (now - s->window_ns > PEG_LIMIT_MCP_IMPORT_WINDOW_MS * PEG_NS_PER_MS) {
        s->window_ns = now;
        s->n_lines = 0;
        if (s->n_unreported) {
            snprintf(text, sizeof(text), "(%llu lines were left out)",
                     (unsigned long long)s->n_unreported);
            s->n_unreported = 0;
            report_line(s, text);
        }
    }
    if (s->n_lines++ < PEG_LIMIT_MCP_IMPORT_STDERR)
        return true;
    s->n_unreported++;
    return false;
}

/* Printable: other bytes become question marks, which keeps a line from being taken for another. */
static void end_line(struct stdio *s)
{
    struct peg__buf text = PEG__BUF(4 * (size_t)LINE_BYTES);

    for (size_t i = 0; i < s->line_len; i++) {
        if ((unsigned char)s->line[i] < ' ' || s->line[i] == 0x7F)
            s->line[i] = s->line[i] == '\t' ? ' ' : '?';
    }
    peg__buf_as_utf8(&text, peg__strn(s->line, s->line_len));
    if (s->line_len && !text.status && may_report(s))
        report_line(s, text.ptr);
    peg__buf_free(&text);
    s->line_len = 0;
}

static bool read_errors(struct stdio *s)
{
    char bytes[4096];
    const ssize_t n = s->child.err < 0 ? 0 : read(s->child.err, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        peg__close(&s->child.err);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            end_line(s);
        else if (s->line_len < LINE_BYTES)
            s->line[s->line_len++] = bytes[i];
    }
    if (n <= 0)
        end_line(s);
    return n > 0;
}

/* ---- the thread ---- */

/* Has it ended? It is not waited for yet, so that its pid stays its own. */
static bool check_process(struct stdio *s)
{
    siginfo_t info = {.si_pid = 0};
    peg_error why;

    if (waitid(P_PID, (id_t)s->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0)
        return false;
    for (int i = 0; i < LAST_READS && read_output(s); i++)
        continue;
    for (int i = 0; i < LAST_READS && read_errors(s); i++)
        continue;
    if (info.si_code == CLD_EXITED)
        peg__fail(&why, PEG_EIO, "E_MCP_START", "the MCP server exited with status %d",
                  info.si_status);
    else
        peg__fail(&why, PEG_EIO, "E_MCP_START", "the MCP server was ended by signal %d",
                  info.si_status);
    give_up_server(s, &why);
    return true;
}

/* One that has closed its output mostly ends, and how it ended says more. */
static bool check_ending(struct stdio *s)
{
    struct pollfd fd = {.fd = s->pidfd, .events = POLLIN};

    if (check_process(s))
        return true;
    (void)poll(&fd, 1, ENDING_MS);
    return check_process(s);
}

static bool has_output(struct stdio *s)
{
    bool has_some;

    pthread_mutex_lock(&s->client->wait.lock);
    has_some = s->n_written < s->out.len;
    s->is_over = s->is_over || s->is_closing;
    pthread_mutex_unlock(&s->client->wait.lock);
    return has_some;
}

static void run_round(struct stdio *s)
{
    enum { WAKE, CHILD, IN, OUT, ERR, N };
    struct pollfd fds[N] = {
        [WAKE] = {.fd = s->wake, .events = POLLIN},
        [CHILD] = {.fd = s->pidfd, .events = POLLIN},
        [IN] = {.fd = has_output(s) ? s->child.in : -1, .events = POLLOUT},
        [OUT] = {.fd = s->child.out, .events = POLLIN},
        [ERR] = {.fd = s->child.err, .events = POLLIN},
    };
    const int timeout = s->pidfd < 0 ? STEP_MS : -1; /* it is looked at now and then */
    peg_error why;
    eventfd_t n;

    if (s->is_over || poll(fds, N, timeout) < 0)
        return;
    if (fds[WAKE].revents)
        eventfd_read(s->wake, &n);
    if (fds[IN].revents)
        write_output(s);
    if (fds[OUT].revents)
        read_output(s);
    if (fds[ERR].revents)
        read_errors(s);
    if (s->child.out >= 0) {
        if (fds[CHILD].revents || s->pidfd < 0)
            (void)check_process(s);
    } else if (!s->is_over && !check_ending(s)) {
        peg__fail(&why, PEG_EIO, "E_MCP_START", "the MCP server closed its standard output");
        give_up_server(s, &why);
    }
}

static void *pump(void *user)
{
    struct stdio *s = user;
    sigset_t all;

    sigfillset(&all); /* signals are the host's; SIGPIPE is an error of write() */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!s->is_over)
        run_round(s);
    if (s->why.status)
        mcp__lose(s->client, &s->why, s->n_sent);
    return NULL;
}

/* ---- open and close ---- */

static void free_stdio(struct stdio *s)
{
    peg__close(&s->child.in);
    peg__close(&s->child.out);
    peg__close(&s->child.err);
    peg__close(&s->pidfd);
    peg__close(&s->wake);
    peg__buf_free(&s->in);
    peg__buf_free(&s->out);
    peg__free(s);
}

static bool has_exited(const struct stdio *s)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)s->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
           info.si_pid != 0;
}

/* True: it has ended within the grace. */
static bool await_exit(const struct stdio *s)
{
    const int64_t until_ns =
        peg__mono_ns() + (int64_t)PEG_LIMIT_MCP_IMPORT_GRACE_MS * PEG_NS_PER_MS;
    struct pollfd fd = {.fd = s->pidfd, .events = POLLIN};

    while (!has_exited(s)) {
        const int64_t left_ms = (until_ns - peg__mono_ns()) / PEG_NS_PER_MS;

        if (left_ms <= 0)
            return false;
        (void)poll(&fd, 1, s->pidfd < 0 || left_ms < STEP_MS ? STEP_MS : (int)left_ms);
    }
    return true;
}

static void end_process(struct stdio *s)
{
    siginfo_t info;

    peg__close(&s->child.in);
    if (!await_exit(s)) {
        peg__family_signal(&s->family, SIGTERM);
        kill(-s->child.pid, SIGTERM);
        (void)await_exit(s);
    }
    peg__family_signal(&s->family, SIGKILL);
    kill(-s->child.pid, SIGKILL); /* what it started, too */
    peg__family_kill(&s->family);
    while (waitid(P_PID, (id_t)s->child.pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    peg__family_leave(&s->family);
}

static void close_link(peg_mcp_client *client)
{
    struct stdio *s = client->link_state;
    peg_error why;

    if (!s)
        return;
    peg__fail(&why, PEG_EIO, "E_MCP_UNAVAILABLE", "the MCP server was closed here");
    pthread_mutex_lock(&client->wait.lock);
    s->is_closing = true;
    pthread_mutex_unlock(&client->wait.lock);
    wake(s);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    mcp__lose(client, &why, s->n_sent);
    end_process(s);
    client->link_state = NULL;
    free_stdio(s);
}

static peg_status spawn_server(struct stdio *s, peg_error *reterr)
{
    const peg_mcp_import_options *options = &s->client->options;
    const struct peg__program program = {
        .argv = options->command, .env = options->env, .directory = options->directory};
    const int error = peg__family_spawn(&s->family, &program, &s->child);

    if (error == ENOMEM)
        return peg__fail_nomem(reterr);
    if (error)
        return peg__fail(reterr, PEG_EIO, "E_MCP_START",
                         "the MCP server '%.200s' cannot be started: %s", options->command[0],
                         error == ENOENT   ? "it is not found"
                         : error == EACCES ? "it may not be executed"
                                           : "the system refuses");
    s->pidfd = pidfd_open(s->child.pid, 0);
    return PEG_OK;
}

static peg_status open_link(peg_mcp_client *client, peg_error *reterr)
{
    struct stdio *s = peg__alloc_zero(1, sizeof(*s));
    peg_status status = PEG_OK;

    if (!s)
        return peg__fail_nomem(reterr);
    *s = (struct stdio){
        .client = client,
        .child = {.pid = -1, .in = -1, .out = -1, .err = -1},
        .pidfd = -1,
        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .in = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES + 2 * READ_BYTES),
        .out = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES + PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES)};
    if (s->wake < 0)
        status = peg__fail(reterr, PEG_EIO, "E_MCP_START",
                           "the system has no descriptor for the MCP server: close some");
    if (!status)
        status = spawn_server(s, reterr);
    if (status) {
        free_stdio(s);
        return status;
    }
    client->link_state = s;
    mcp__opened(client);
    s->has_thread = pthread_create(&s->thread, NULL, pump, s) == 0;
    if (s->has_thread)
        return PEG_OK;
    close_link(client);
    return peg__fail(reterr, PEG_EIO, "E_MCP_START",
                     "the system has no thread for the MCP server: end some, or raise its limit");
}

const struct mcp__link_ops mcp__stdio_link = {.open = open_link,
                                              .exchange = exchange,
                                              .send = send_message,
                                              .listen = listen_on_pipe,
                                              .close = close_link};
