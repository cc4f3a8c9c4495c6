/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines gather in one buffer while the thread writes the other; they change places when it is done.
 * The lock is never held while anything is written. (The gateway's event log does the same, with
 * files and rates.)
 */

#include "cli/terminal/terminal.h"

#include <pthread.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/text/writer.h"

enum { DROPPED_BYTES = 256 };

struct cli_line_queue {
    cli_line_queue_dropped_fn put_dropped;
    struct peg__writer writer;
    bool is_read; /* at its end; the thread's until then */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_lines;
    struct peg__buf waiting;
    struct peg__buf writing; /* the thread's while it writes */
    uint64_t n_dropped;      /* to be reported */
};

/* ---- with the lock -------------------------------------------------------------------------- */

static bool add_waiting_line(struct cli_line_queue *lines, peg_str line)
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
static void report_dropped(struct cli_line_queue *lines)
{
    struct peg__buf line = PEG__BUF(DROPPED_BYTES);

    if (!lines->n_dropped)
        return;
    lines->put_dropped(&line, lines->n_dropped);
    if (!line.status && add_waiting_line(lines, peg__buf_view(&line)))
        lines->n_dropped = 0;
    peg__buf_free(&line);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void *write_lines(void *user)
{
    struct cli_line_queue *lines = user;

    pthread_mutex_lock(&lines->lock);
    for (;;) {
        const struct peg__buf full = lines->waiting;

        if (!full.len && atomic_load(&lines->writer.is_over))
            break;
        if (!full.len) {
            pthread_cond_wait(&lines->has_lines, &lines->lock);
            continue;
        }
        lines->waiting = lines->writing;
        lines->writing = full;
        report_dropped(lines);
        pthread_mutex_unlock(&lines->lock);

        (void)peg__writer_write(&lines->writer, STDERR_FILENO, peg__buf_view(&lines->writing));

        pthread_mutex_lock(&lines->lock);
        peg__buf_clear(&lines->writing);
    }
    pthread_mutex_unlock(&lines->lock);
    lines->is_read = peg__writer_takes(&lines->writer, STDERR_FILENO);
    return NULL;
}

/* ---- its life ------------------------------------------------------------------------------- */

static void free_queue(struct cli_line_queue *lines)
{
    peg__buf_free(&lines->waiting);
    peg__buf_free(&lines->writing);
    pthread_cond_destroy(&lines->has_lines);
    pthread_mutex_destroy(&lines->lock);
    peg__free(lines);
}

struct cli_line_queue *cli_line_queue_new(cli_line_queue_dropped_fn put_dropped)
{
    struct cli_line_queue *lines = peg__alloc_zero(1, sizeof(*lines));

    if (!lines)
        return NULL;
    lines->put_dropped = put_dropped;
    lines->waiting.max = PEG_LIMIT_REMOTE_LINES_BYTES;
    lines->writing.max = PEG_LIMIT_REMOTE_LINES_BYTES;
    pthread_mutex_init(&lines->lock, NULL);
    pthread_cond_init(&lines->has_lines, NULL);
    if (!peg__writer_start(&lines->writer, write_lines, lines)) {
        free_queue(lines);
        return NULL;
    }
    return lines;
}

/* ---- telling ------------------------------------------------------------------------------- */

void cli_line_queue_put(struct cli_line_queue *lines, peg_str line)
{
    pthread_mutex_lock(&lines->lock);
    report_dropped(lines);
    if (lines->n_dropped || !add_waiting_line(lines, line))
        lines->n_dropped++;
    pthread_cond_signal(&lines->has_lines);
    pthread_mutex_unlock(&lines->lock);
}

bool cli_line_queue_free(struct cli_line_queue *lines)
{
    bool is_read;

    pthread_mutex_lock(&lines->lock);
    report_dropped(lines);
    atomic_store(&lines->writer.is_over, true);
    pthread_cond_signal(&lines->has_lines);
    pthread_mutex_unlock(&lines->lock);
    if (!peg__writer_join(&lines->writer, STDERR_FILENO))
        return false; /* the lines stay the thread's, until the process ends */
    is_read = lines->is_read;
    free_queue(lines);
    return is_read;
}
