/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines gather in one buffer while the thread writes the other; they change places when it is done.
 * The lock is never held while anything is written. (The gateway's journal does the same for its
 * events, with files and rates.)
 */

#include "cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    PIECE_BYTES = 4096, /* what a pipe takes at once when it says that it takes something */
    LAST_MS = 1000,     /* for whoever reads, at the end; whole seconds */
    POLL_MS = 100,
    DROPPED_BYTES = 256,
};

struct cli_lines {
    cli_lines_dropped_fn put_dropped;
    pthread_t thread;
    atomic_bool is_over;
    atomic_uint n_looks; /* of the thread, at standard error: it looks or it is stuck in a write */
    bool is_read;        /* at its end; the thread's until then */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_lines;
    struct peg__buf waiting;
    struct peg__buf writing; /* the thread's while it writes */
    uint64_t n_dropped;      /* to be told */
};

/* ---- with the lock -------------------------------------------------------------------------- */

static bool add(struct cli_lines *lines, peg_str line)
{
    struct peg__buf *waiting = &lines->waiting;
    const size_t len = waiting->len;

    if (len + line.len + 1 > PEG_LIMIT_REMOTE_LINES_BYTES)
        return false;
    peg__buf_str(waiting, line);
    peg__buf_putc(waiting, '\n');
    if (!waiting->status)
        return true;
    waiting->len = len; /* no memory: half a line is none */
    waiting->status = PEG_OK;
    return false;
}

/* As soon as there is room, before any other line. */
static void tell_dropped(struct cli_lines *lines)
{
    struct peg__buf line = PEG__BUF(DROPPED_BYTES);

    if (!lines->n_dropped)
        return;
    lines->put_dropped(&line, lines->n_dropped);
    if (!line.status && add(lines, peg__buf_view(&line)))
        lines->n_dropped = 0;
    peg__buf_free(&line);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Does standard error take bytes now? Waits for it, but not long once this is to end. */
static bool takes_more(struct cli_lines *lines, int *left_ms)
{
    struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};

    for (;;) {
        const int n = poll(&poll_fd, 1, POLL_MS);

        atomic_fetch_add(&lines->n_looks, 1);
        if (n > 0)
            return (poll_fd.revents & POLLOUT) != 0;
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0 && atomic_load(&lines->is_over) && (*left_ms -= POLL_MS) <= 0)
            return false;
    }
}

static void write_out(struct cli_lines *lines, peg_str text, int *left_ms)
{
    struct stat st;
    const bool is_file = fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);

    while (text.len) {
        const size_t want = is_file || text.len < PIECE_BYTES ? text.len : PIECE_BYTES;
        ssize_t n;

        if (!is_file && !takes_more(lines, left_ms))
            break;
        n = write(STDERR_FILENO, text.ptr, want);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            break;
        text = peg__str_from(text, (size_t)n);
    }
}

static void *write_lines(void *user)
{
    struct cli_lines *lines = user;
    int left_ms = LAST_MS;

    pthread_mutex_lock(&lines->lock);
    for (;;) {
        const struct peg__buf full = lines->waiting;

        if (!full.len && atomic_load(&lines->is_over))
            break;
        if (!full.len) {
            pthread_cond_wait(&lines->has_lines, &lines->lock);
            continue;
        }
        lines->waiting = lines->writing;
        lines->writing = full;
        tell_dropped(lines);
        pthread_mutex_unlock(&lines->lock);

        write_out(lines, peg__buf_view(&lines->writing), &left_ms);

        pthread_mutex_lock(&lines->lock);
        peg__buf_clear(&lines->writing);
    }
    pthread_mutex_unlock(&lines->lock);
    lines->is_read = takes_more(lines, &left_ms);
    return NULL;
}

/* Signals are for the thread that waits for them. */
static int start_thread(struct cli_lines *lines)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&lines->thread, NULL, write_lines, lines);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* ---- its life ------------------------------------------------------------------------------- */

static void drop(struct cli_lines *lines)
{
    peg__buf_free(&lines->waiting);
    peg__buf_free(&lines->writing);
    pthread_cond_destroy(&lines->has_lines);
    pthread_mutex_destroy(&lines->lock);
    peg__free(lines);
}

struct cli_lines *cli_lines_new(cli_lines_dropped_fn put_dropped)
{
    struct cli_lines *lines = peg__alloc_zero(1, sizeof(*lines));

    if (!lines)
        return NULL;
    lines->put_dropped = put_dropped;
    lines->waiting.max = PEG_LIMIT_REMOTE_LINES_BYTES;
    lines->writing.max = PEG_LIMIT_REMOTE_LINES_BYTES;
    pthread_mutex_init(&lines->lock, NULL);
    pthread_cond_init(&lines->has_lines, NULL);
    if (start_thread(lines)) {
        drop(lines);
        return NULL;
    }
    return lines;
}

/* ---- telling ------------------------------------------------------------------------------- */

void cli_lines_put(struct cli_lines *lines, peg_str line)
{
    pthread_mutex_lock(&lines->lock);
    tell_dropped(lines);
    if (lines->n_dropped || !add(lines, line))
        lines->n_dropped++;
    pthread_cond_signal(&lines->has_lines);
    pthread_mutex_unlock(&lines->lock);
}

/* A terminal says that it takes bytes when it takes one, and a write of more then sleeps until
 * somebody reads. False: the thread does. */
static bool join(struct cli_lines *lines)
{
    if (!isatty(STDERR_FILENO)) {
        pthread_join(lines->thread, NULL);
        return true;
    }
    for (;;) {
        const unsigned n_looks = atomic_load(&lines->n_looks);
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LAST_MS / 1000;
        if (pthread_timedjoin_np(lines->thread, NULL, &until) == 0)
            return true;
        if (atomic_load(&lines->n_looks) == n_looks)
            return false;
    }
}

bool cli_lines_free(struct cli_lines *lines)
{
    bool is_read;

    pthread_mutex_lock(&lines->lock);
    tell_dropped(lines);
    atomic_store(&lines->is_over, true);
    pthread_cond_signal(&lines->has_lines);
    pthread_mutex_unlock(&lines->lock);
    if (!join(lines)) {
        pthread_detach(lines->thread);
        return false; /* the lines stay the thread's, until the process ends */
    }
    is_read = lines->is_read;
    drop(lines);
    return is_read;
}
